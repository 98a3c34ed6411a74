"""Start and end the programs, and scripted backends, on loopback addresses."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from program import Program, wait_until

COMMANDS = {"rust": os.environ["STREAMDATA_RUST"], "go": os.environ["STREAMDATA_GO"]}
MAXIMUM_BODY_BYTES = 64 * 1024


def hosts_of(count: int) -> list[str]:
    """Loopback addresses that stand for the pods of a service."""
    return [f"127.0.0.{number}" for number in range(1, count + 1)]


class Server(Program):
    """One program in one role."""

    def __init__(self, name: str, role: str, environment: dict[str, str], log: Path) -> None:
        self.name = name
        super().__init__([COMMANDS[name], role], environment, log)

    def stats(self) -> dict[str, Any]:
        """Wait until no request is under way, and return the balancer's stats."""
        stats: dict[str, Any] = {}

        def at_rest() -> bool:
            stats.update(self.ask("/stats").json())
            return bool(stats["current"] == 0)

        wait_until(at_rest, "nothing is under way")
        return stats

    def wait_healthy(self, count: int) -> None:
        """Wait until a balancer reports this number of healthy backends."""

        def healthy() -> bool:
            backends = self.ask("/stats").json()["backends"].values()
            return len([backend for backend in backends if backend["healthy"]]) == count

        wait_until(healthy, f"{count} backends are healthy")


class Seen(NamedTuple):
    """A request that a backend received; header names are in lower case."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int


# The bytes that a backend sends; ``None`` makes it close the connection.
Reply = Callable[[Seen], bytes | None]


def response(status: str, *headers: str, body: bytes = b"") -> bytes:
    """The bytes of a response with exactly these headers."""
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


def fine(_seen: Seen) -> bytes:
    return response("200 OK", "Content-Type: text/plain", "Content-Length: 4", body=b"fine")


class Backend:
    """A server that sends scripted replies and records requests, except those to ``/healthz``."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.reply: Reply = fine
        self.health = "200 OK"
        self.seen: list[Seen] = []
        self.accepted = 0
        self.lock = threading.Lock()
        self.start()

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def connections(self) -> int:
        """The number of connections that carried requests, without health checks."""
        return len({seen.connection for seen in self.seen})

    def start(self) -> None:
        self.open: set[socket.socket] = set()
        self.listener = socket.create_server((self.host, self.port), backlog=128)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def stop(self) -> None:
        """Stop, as a killed pod does."""
        ends = [self.listener]
        with self.lock:
            ends += self.open
        for end in ends:
            # close() alone would leave a socket open while another thread waits for it.
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.accepted += 1
                self.open.add(accepted)
                number = self.accepted
            threading.Thread(target=self._serve, args=(accepted, number), daemon=True).start()

    def _serve(self, accepted: socket.socket, number: int) -> None:
        try:
            with accepted.makefile("rb") as stream:
                while (seen := self._read(stream, number)) is not None:
                    if seen.target == "/healthz":
                        # Otherwise a request could reuse the check's connection just when it ends.
                        reply: bytes | None = response(self.health, "Content-Length: 0", "Connection: close")
                    else:
                        with self.lock:
                            self.seen.append(seen)
                        reply = self.reply(seen)
                    if reply is None:
                        return
                    accepted.sendall(reply)
                    if b"\r\nconnection: close" in reply.lower():
                        return
        except OSError:
            return
        finally:
            with self.lock:
                self.open.discard(accepted)
            accepted.close()

    @staticmethod
    def _read(stream: Any, number: int) -> Seen | None:
        line = stream.readline().decode().split()
        if not line:
            return None
        headers = []
        while (field := stream.readline().decode("latin-1").rstrip("\r\n")) != "":
            name, _, value = field.partition(":")
            headers.append((name.lower(), value.strip()))
        # The balancer sends every body with its length.
        assert "transfer-encoding" not in dict(headers)
        body = stream.read(int(dict(headers).get("content-length", "0")))
        return Seen(line[0], line[1], sorted(headers), body, number)


def hold(backends: Sequence[Backend]) -> threading.Event:
    """Make backends delay their answers until the event is set."""
    go = threading.Event()

    def held(seen: Seen) -> bytes:
        assert go.wait(timeout=20)
        return fine(seen)

    for backend in backends:
        backend.reply = held
    return go
