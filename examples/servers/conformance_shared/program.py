"""Start, query and end programs for the conformance suites, in the way of their containers.

The suites end every process by its ID. Only the temporary folder remains, and ``run`` removes it.
"""

import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

LOOPBACK = "127.0.0.1"

# SIGTERM would end pytest without its fixtures' clean-up. As an interrupt, it ends the programs too.
signal.signal(signal.SIGTERM, signal.default_int_handler)


def free_port(hosts: Sequence[str] = (LOOPBACK,)) -> int:
    """A port that is free on all these addresses."""
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
    """A whole HTTP response; the headers are sorted and have lower-case names."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The only value of a header, or ``None`` if it is missing."""
        values = [value for key, value in self.headers if key == name]
        assert len(values) <= 1, f"{name} occurs twice: {values}"
        return values[0] if values else None

    def without(self, name: str) -> "Answer":
        """The same answer without a header, which must occur once."""
        assert self.header(name) is not None, f"{name} is missing: {self.headers}"
        return self._replace(headers=[one for one in self.headers if one[0] != name])

    def undated(self) -> "Answer":
        """The same answer without its date, which must occur."""
        assert (self.header("date") or "").endswith(" GMT"), self.headers
        return self.without("date")

    def json(self) -> Any:
        assert self.header("content-type") == "application/json"
        return json.loads(self.body)

    def error(self) -> str:
        """The text of a refusal, whose body must be one line of JSON."""
        assert b"\n" not in self.body
        fault = self.json()
        assert list(fault) == ["error"]
        text = fault["error"]
        assert isinstance(text, str)
        return text


class Program:
    """A running server and its log."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, folder: Path | None = None
    ) -> None:
        own = {"PATH": os.environ["PATH"], "PORT": str(free_port()), "LISTEN_ADDRESS": LOOPBACK}
        environment = own | dict(environment)
        self.log = log
        self.host = environment["LISTEN_ADDRESS"]
        self.port = int(environment["PORT"]) if environment["PORT"].isdecimal() else 0
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                command, env=environment, cwd=folder, stdout=stream, stderr=stream
            )

    def wait_for(self, path: str, status: int = 200) -> Self:
        def answers() -> bool:
            assert self.process.poll() is None, self.text()
            try:
                return self.ask(path).status == status
            except OSError:
                return False

        wait_until(answers, f"{self.log.stem} answers {status} to {path}")
        return self

    def wait_ready(self) -> Self:
        return self.wait_for("/healthz")

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

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=10)

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8")


P = TypeVar("P", bound=Program)


@contextlib.contextmanager
def started(start: Callable[..., P]) -> Iterator[Callable[..., P]]:
    """A function that starts programs. All programs end with the context.

    ``start`` makes a program from its number, which no other has, and from the function's arguments.
    """
    numbers = itertools.count()
    with contextlib.ExitStack() as ends:

        def numbered(*arguments: str, **variables: str) -> P:
            program = start(next(numbers), *arguments, **variables)
            ends.callback(program.end)
            return program

        yield numbered


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


def same(
    servers: Mapping[str, Program],
    path: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: str | bytes | None = None,
) -> Answer:
    """The answer of all servers, which must be equal in every header except the date."""
    answers = {name: server.ask(path, method, headers, body).undated() for name, server in servers.items()}
    first, *others = answers.values()
    assert all(answer == first for answer in others), answers
    return first


def end_under_load(server: Program, *request: str, is_whole: Callable[[int, bytes], bool]) -> None:
    """End a server while four clients send this request.

    Each client gets whole answers, then a closed connection. The process ends by itself with 0.
    """
    faults: list[str] = []
    go = threading.Event()

    def client() -> None:
        connection = server.connection()
        whole = 0
        while True:
            try:
                connection.request(*request)
                answer = connection.getresponse()
            except ConnectionError:
                return
            except (http.client.HTTPException, OSError) as error:
                faults.append(repr(error))
                return
            # An answer that has begun must be complete. Only then may the connection close.
            try:
                body = answer.read()
            except (http.client.HTTPException, OSError) as error:
                faults.append(f"in mid-answer: {error!r}")
                return
            if not is_whole(answer.status, body):
                faults.append(f"{answer.status} {body!r}")
                return
            whole += 1
            if whole > 100:
                go.set()

    clients = [threading.Thread(target=client) for _ in range(4)]
    for thread in clients:
        thread.start()
    assert go.wait(timeout=20)
    server.terminate()
    assert server.process.wait(timeout=20) == 0
    for thread in clients:
        thread.join(timeout=20)
    assert not any(thread.is_alive() for thread in clients)
    assert faults == []


def end_while_idle(server: Program) -> None:
    """End a server that has a connection without a request."""
    connection = server.connection()
    ask(connection, "/healthz")
    begin = time.monotonic()
    server.terminate()
    assert server.process.wait(timeout=20) == 0
    assert time.monotonic() - begin < 10
    connection.close()
