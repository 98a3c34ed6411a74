"""Write the address book's files, then run Radicale in this process's place."""

import json
import os
import sys
from pathlib import Path

from seed import contact

HERE = Path(__file__).parent
# The path of the address book of the other two servers.
BOOK = "collection-root/dav/addressbooks/contacts"


def number_of(name: str, default: str, maximum: int) -> int:
    text = os.environ.get(name, default)
    value = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= value <= maximum:
        sys.exit(f"{name} must be a whole number from 1 to {maximum}, not {text!r}")
    return value


def write_book(book: Path, contacts: int) -> None:
    """Write the built-in contacts, as Radicale's storage keeps them: one file per contact."""
    unfinished = book.with_suffix(".new")
    unfinished.mkdir(parents=True, exist_ok=True)
    properties = {"tag": "VADDRESSBOOK", "D:displayname": "Contacts"}
    (unfinished / ".Radicale.props").write_text(json.dumps(properties), encoding="utf-8")
    for row in range(1, contacts + 1):
        name, vcard = contact(row)
        (unfinished / name).write_text(vcard, encoding="utf-8", newline="")
    unfinished.rename(book)


def main() -> None:
    port = number_of("PORT", "8080", 65535)
    contacts = number_of("CONTACTS", "100", 100_000)
    folder = Path(os.environ.get("FOLDER", "/var/lib/radicale"))
    book = folder / BOOK
    # A restarted container may have the contacts already.
    if not book.exists():
        write_book(book, contacts)
    # Radicale opens a socket for each: all addresses of IPv6, and of IPv4.
    addresses = [os.environ["LISTEN_ADDRESS"]] if "LISTEN_ADDRESS" in os.environ else ["[::]", "0.0.0.0"]
    hosts = ",".join(f"{address}:{port}" for address in addresses)
    command = [sys.executable, "-m", "radicale", "--config", str(HERE / "config")]
    command += ["--rights-file", str(HERE / "rights"), "--storage-filesystem-folder", str(folder)]
    command += ["--server-hosts", hosts]
    os.execv(command[0], command)


main()
