"""Unpacks an image's archive, and starts its programs with the archive's entry point and user."""

import json
import os
import shutil
import socket
import struct
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The Pi 5's kernel has pages of 16 KiB.
PAGE_BYTES = 16 * 1024
# Long, because emulated programs are slow and share the machine with other work.
PATIENCE_SECONDS = 120
AARCH64 = 183
LOAD = 1


@dataclass
class Image:
    """The tag and configuration of an archive. Its files are below ``root``."""

    tag: str
    config: dict[str, Any]
    root: Path

    @classmethod
    def unpack(cls, archive: Path, root: Path) -> "Image":
        root.mkdir(mode=0o755)
        with tarfile.open(archive) as tar:

            def content(name: str) -> Any:
                file = tar.extractfile(name)
                assert file is not None
                return json.load(file)

            [manifest] = content("manifest.json")
            config = content(manifest["Config"])
            for layer in manifest["Layers"]:
                with tarfile.open(fileobj=tar.extractfile(layer)) as files:
                    unpack_layer(files, root)
        return cls(manifest["RepoTags"][0], config, root)

    @property
    def user(self) -> str:
        """``UID:GID`` as a container runtime reads it: a user without a group has group 0."""
        user, _, group = self.config["config"].get("User", "0").partition(":")
        return f"{int(user or 0)}:{int(group or 0)}"

    @property
    def entrypoint(self) -> list[str]:
        return self.config["config"]["Entrypoint"]

    def command(self, *arguments: str | Path, program: str | None = None) -> list[str]:
        """The command that starts the entry point or `program` in the image's files as the image's user."""
        start = [program] if program else self.entrypoint
        return ["chroot", f"--userspec={self.user}", str(self.root), *start, *map(str, arguments)]

    def run(self, *arguments: str | Path, program: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments, program=program),
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | {"RUST_BACKTRACE": "0"},
            timeout=PATIENCE_SECONDS,
        )

    def programs(self) -> Iterator["Program"]:
        """Every ELF file."""
        for path in self.root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield Program.read(path)

    def directory(self, name: str) -> Path:
        """A new directory in the image's files."""
        made = self.root / name
        made.mkdir(mode=0o755)
        return made

    def inside(self, path: Path) -> Path:
        """The path of this file for a program in the image."""
        return Path("/") / path.relative_to(self.root)


def unpack_layer(files: tarfile.TarFile, root: Path) -> None:
    """Unpacks a layer over the earlier layers. A file ``.wh.NAME`` removes NAME."""
    for member in files:
        path = root / member.name
        if path.name.startswith(".wh."):
            removed = path.with_name(path.name.removeprefix(".wh."))
            if removed.is_dir() and not removed.is_symlink():
                shutil.rmtree(removed)
            else:
                removed.unlink(missing_ok=True)
            continue
        if not member.isdir() and (path.is_symlink() or path.exists()):
            path.unlink()
        files.extract(member, root, numeric_owner=True)


@dataclass
class Program:
    """The headers of an ELF file."""

    path: Path
    machine: int
    load_alignments: list[int]

    @classmethod
    def read(cls, path: Path) -> "Program":
        data = path.read_bytes()
        [machine] = struct.unpack_from("<H", data, 18)
        [offset] = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        alignments = []
        for header in range(offset, offset + size * count, size):
            [kind] = struct.unpack_from("<I", data, header)
            if kind == LOAD:
                alignments += struct.unpack_from("<Q", data, header + 48)
        return cls(path, machine, alignments)


class Service:
    """A program of an image that serves until the test ends it."""

    def __init__(self, command: list[str], port: int, log: Path, **environment: str) -> None:
        self.port = port
        self.log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=out, env={"PATH": os.environ["PATH"]} | environment
            )

    def get(self, path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def wait_for(self, path: str, status: int) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        last = "nothing"
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            try:
                last = self.get(path)
                if last[0] == status:
                    return last[1]
            except OSError as error:
                last = error
            time.sleep(0.1)
        raise AssertionError(f"{path} answers {last}: {self.log.read_text()}")

    def end(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(timeout=PATIENCE_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
