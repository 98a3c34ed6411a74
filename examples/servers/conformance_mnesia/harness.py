"""What the tests start and end: members, alone or three of them on loopback addresses.

Every process is ended by its own id. Nothing is left behind but the temporary folder that ``run`` removes.
"""

import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

LOOPBACK = "127.0.0.1"
COMMAND = os.environ["MNESIA_ERLANG"]
MAXIMUM_BODY_BYTES = 64 * 1024
# What the members of a cluster listen on; the first is the lowest.
HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
SYNCHRONOUS = ("sync_transaction", "sync_dirty")
TRANSACTIONS = ("transaction", "sync_transaction")
MODES = (*TRANSACTIONS, "async_dirty", "sync_dirty")


def free_port(hosts: Sequence[str] = (LOOPBACK,)) -> int:
    """A port that is free on all of these addresses."""
    while True:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
        try:
            for host in hosts:
                with socket.socket() as probe:
                    probe.bind((host, port))
        except OSError:
            continue
        return port


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


class Answer(NamedTuple):
    """An HTTP response, whole; names of headers are in lower case."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The one value of a header, if it is there."""
        values = [value for key, value in self.headers if key == name]
        assert len(values) <= 1, f"{name} is there twice: {values}"
        return values[0] if values else None

    def json(self) -> Any:
        assert self.header("content-type") == "application/json"
        return json.loads(self.body)

    def error(self) -> str:
        """The text of a refusal, which is one line of JSON and nothing else."""
        assert b"\n" not in self.body
        fault = self.json()
        assert list(fault) == ["error"]
        text = fault["error"]
        assert isinstance(text, str)
        return text


def ask(
    connection: http.client.HTTPConnection,
    path: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: str | bytes | None = None,
) -> Answer:
    connection.request(method, path, body.encode() if isinstance(body, str) else body, headers or {})
    response = connection.getresponse()
    fields = sorted((name.lower(), value) for name, value in response.getheaders())
    return Answer(response.status, fields, response.read())


def text(name: str = "name", content: str = "text") -> str:
    """What a client sends of an object."""
    return json.dumps({"name": name, "text": content}, ensure_ascii=False)


class NameServer:
    """A DNS server whose every name resolves to the addresses that it is given; to none at first."""

    def __init__(self, settings: Path) -> None:
        self.addresses: tuple[str, ...] = ()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((LOOPBACK, 0))
        port = self.socket.getsockname()[1]
        lines = [
            '{resolv_conf, ""}',
            "clear_search",
            f"{{nameserver, {{127,0,0,1}}, {port}}}",
            "{lookup, [dns]}",
        ]
        settings.write_text("".join(f"{line}.\n" for line in lines), encoding="utf-8")
        # What has a member resolve names here, and not as the machine does.
        self.variables = {"PEERS_HOST": "members", "ERL_INETRC": str(settings)}
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            query, client = self.socket.recvfrom(512)
            # The name, its type and class, after the head; what comes then is about the query.
            question = query[12 : query.index(b"\0", 12) + 5]
            addresses = self.addresses
            head = query[:2] + struct.pack(">5H", 0x8180 if addresses else 0x8183, 1, len(addresses), 0, 0)
            # Each names the question, and is good for no time at all.
            records = [struct.pack(">3HIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(one) for one in addresses]
            self.socket.sendto(head + question + b"".join(records), client)


@dataclass
class Server:
    """One member, as its container starts it."""

    environment: dict[str, str]
    log: Path

    def __post_init__(self) -> None:
        own = {"PATH": os.environ["PATH"], "PORT": str(free_port()), "LISTEN_ADDRESS": LOOPBACK}
        environment = own | self.environment
        self.host = environment["LISTEN_ADDRESS"]
        self.port = int(environment["PORT"]) if environment["PORT"].isdecimal() else 0
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([COMMAND], env=environment, stdout=log, stderr=log)

    def wait_for(self, path: str, status: int = 200) -> "Server":
        def answers() -> bool:
            assert self.process.poll() is None, self.text()
            try:
                return self.ask(path).status == status
            except OSError:
                return False

        wait_until(answers, f"{self.host} answers {status} to {path}")
        return self

    def wait_ready(self) -> "Server":
        return self.wait_for("/readyz")

    def wait_waiting(self, fault: str) -> None:
        """Wait until it says that this is what it is not ready for."""
        self.wait_for("/readyz", 503)
        wait_until(lambda: self.ask("/readyz").error() == fault, f"{self.host}: {fault}")

    def wait_log(self, words: str) -> None:
        wait_until(lambda: words in self.text(), f"the log of {self.host} has: {words}")

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=20)

    def ask(
        self,
        path: str,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: str | bytes | None = None,
    ) -> Answer:
        connection = self.connection()
        try:
            return ask(connection, path, method, headers, body)
        finally:
            connection.close()

    def create(self, *fields: str) -> str:
        """The path of a new object."""
        answer = self.ask("/objects", "POST", None, text(*fields))
        assert answer.status == 201, answer
        path = answer.header("location")
        assert path is not None
        return path

    def stats(self) -> Any:
        return self.ask("/stats").json()

    def objects(self) -> dict[str, dict[str, Any]]:
        """All objects by their ids, of which there must be fewer than one answer holds."""
        listed = self.ask("/objects?limit=100").json()["objects"]
        assert len(listed) < 100
        objects = {one["id"]: one for one in listed}
        assert len(objects) == len(listed)
        return objects

    def kill(self) -> None:
        """Be gone, as a node that lost its power."""
        self.process.kill()
        self.process.wait(timeout=10)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=10)

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8")
