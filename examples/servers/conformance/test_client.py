"""The public client vdirsyncer finds the address book, copies it, and transfers changes both ways."""

import concurrent.futures
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import BOOK_ROWS
from harness import Server
from postgres import Postgres

VDIRSYNCER = Path(os.environ["CONTACTS_PYTHON"]).with_name("vdirsyncer")
BOOK = "/dav/addressbooks/contacts/"
CONFIG = """
[general]
status_path = "{folder}/status/"
[pair book]
a = "folder"
b = "server"
collections = ["from b"]
[storage folder]
type = "filesystem"
path = "{folder}/books/"
fileext = ".vcf"
[storage server]
type = "carddav"
url = "http://127.0.0.1:{port}/"
"""
NEW = "BEGIN:VCARD\r\nVERSION:4.0\r\nUID:urn:uuid:{uid}\r\nFN:{name}\r\nEND:VCARD\r\n"


class Client:
    """vdirsyncer with a separate folder. Its configuration has only the server's address."""

    def __init__(self, folder: Path, port: int) -> None:
        self.book = folder / "books" / "contacts"
        self.book.mkdir(parents=True)
        self.config = folder / "config"
        self.config.write_text(CONFIG.format(folder=folder, port=port), encoding="utf-8")

    def run(self, command: str) -> str:
        done = subprocess.run(
            [VDIRSYNCER, "--config", self.config, command],
            env={"PATH": os.environ["PATH"], "HOME": str(self.config.parent)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout.decode()
        return done.stdout.decode()

    def contacts(self) -> dict[str, bytes]:
        """The contacts in the folder, by UID."""
        files = [path.read_bytes() for path in self.book.iterdir()]
        found = {
            re.search(rb"^UID:(?:urn:uuid:)?(.+?)\r?$", vcard, re.MULTILINE)[1]: vcard for vcard in files
        }
        assert len(found) == len(files)
        return {uid.decode(): vcard for uid, vcard in found.items()}

    def file(self, uid: str) -> Path:
        (path,) = (path for path in self.book.iterdir() if uid.encode() in path.read_bytes())
        return path


def in_the_database(postgres: Postgres, name: str) -> dict[str, bytes]:
    sql = "SELECT uid || ' ' || replace(encode(convert_to(vcard, 'UTF8'), 'hex'), E'\\n', '') FROM contacts"
    rows = postgres.psql(sql, database=f"book_{name}").splitlines()
    return {uid: bytes.fromhex(vcard) for uid, vcard in map(str.split, rows)}


@pytest.fixture
def restored(books: dict[str, Server], postgres: Postgres) -> Iterator[dict[str, Server]]:
    yield books
    for name in books:
        postgres.seed(BOOK_ROWS, database=f"book_{name}")


def test_a_client_transfers_changes_in_both_directions(
    restored: dict[str, Server], postgres: Postgres, tmp_path: Path
) -> None:
    with concurrent.futures.ThreadPoolExecutor(len(restored)) as threads:
        runs = [
            threads.submit(transfers_changes_in_both_directions, server, postgres, tmp_path / name)
            for name, server in restored.items()
        ]
        for run in runs:
            run.result()


def transfers_changes_in_both_directions(book: Server, postgres: Postgres, folder: Path) -> None:
    client = Client(folder, book.port)
    client.run("discover")
    client.run("sync")
    copied = client.contacts()
    assert len(copied) == BOOK_ROWS
    assert copied == in_the_database(postgres, book.name)
    assert "Copying" not in client.run("sync"), "the entity tags show no change"

    here, there, gone_here, gone_there = sorted(copied)[:4]
    file = client.file(here)
    file.write_bytes(re.sub(rb"(?m)^FN:.*$", b"FN:Changed here\r", copied[here]))
    client.file(gone_here).unlink()
    (client.book / "new.vcf").write_bytes(NEW.format(uid="new-here", name="New here").encode())
    changed = NEW.format(uid=there, name="Changed there").encode()
    assert book.ask(f"{BOOK}{there}.vcf", "PUT", body=changed).status == 204
    assert book.ask(f"{BOOK}{gone_there}.vcf", "DELETE").status == 204
    new = NEW.format(uid="new-there", name="New there").encode()
    assert book.ask(f"{BOOK}new%20there.vcf", "PUT", body=new).status == 201
    client.run("sync")

    after = client.contacts()
    assert after == in_the_database(postgres, book.name)
    assert after.keys() == copied.keys() - {gone_here, gone_there} | {"new-here", "new-there"}
    assert b"FN:Changed here\r\n" in after[here]
    assert after[there] == changed
    assert {uid for uid in copied.keys() & after.keys() if after[uid] != copied[uid]} == {here, there}
    assert "Copying" not in client.run("sync")
