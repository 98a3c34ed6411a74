"""Both servers start and end as a container must."""

import http.client
import socket
import threading
import time

import pytest

from conftest import ROWS
from harness import Server
from postgres import Postgres
from program import end_under_load, end_while_idle, free_port, wait_until

KEY = "00000006-1234-4abc-8def-0123456789ab"
URL = "postgresql://app:app@127.0.0.1:1/contacts?sslmode=disable"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "DATABASE_URL is not set"),
        ({"DATABASE_URL": "contacts"}, "DATABASE_URL is not a PostgreSQL URL"),
        ({"DATABASE_URL": URL.replace("?sslmode=disable", "")}, "sslmode=disable"),
        ({"DATABASE_URL": URL.replace("disable", "require")}, "sslmode=disable"),
        ({"DATABASE_URL": URL, "POOL_SIZE": "0"}, 'POOL_SIZE must be a whole number from 1 to 1000, not "0"'),
        ({"DATABASE_URL": URL, "BASIC_AUTH": "ann"}, "BASIC_AUTH must be user:password"),
        ({"DATABASE_URL": URL, "PORT": "http"}, 'PORT must be a whole number from 1 to 65535, not "http"'),
    ],
)
def test_wrong_settings_end_with_their_name(
    name: str, start, variables: dict[str, str], message: str
) -> None:
    server = start(name, **variables)
    assert server.process.wait(timeout=10) == 1
    assert message in server.text()
    assert len(server.text().splitlines()) == 1


def test_a_port_that_is_taken_ends_the_server(name: str, start, postgres: Postgres, servers) -> None:
    server = start(name, DATABASE_URL=postgres.url(), PORT=str(servers[name].port))
    assert server.process.wait(timeout=10) == 1
    assert "in use" in server.text()


def test_sigterm_under_load_cuts_no_answer(fresh: Server) -> None:
    def is_whole(status: int, body: bytes) -> bool:
        return status == 200 and body.endswith(b"END:VCARD\r\n")

    end_under_load(fresh, "GET", f"/contacts/{KEY}", is_whole=is_whole)


def test_sigterm_lets_a_request_in_flight_end(fresh: Server, postgres: Postgres) -> None:
    statuses = []
    thread = threading.Thread(target=lambda: statuses.append(fresh.ask(f"/contacts/{KEY}").status))
    with postgres.table_locked():
        thread.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        wait_until(lambda: postgres.psql(waiting) == "1", "the request waits for the lock")
        fresh.terminate()
        wait_until(lambda: not _accepts(fresh.port), "no more connections are accepted")
        time.sleep(1)
        assert fresh.process.poll() is None
    thread.join(timeout=5)
    assert statuses == [200]
    assert fresh.process.wait(timeout=15) == 0


def test_sigterm_does_not_wait_for_a_request_that_hangs(fresh: Server, postgres: Postgres) -> None:
    def hang() -> None:
        try:
            fresh.ask(f"/contacts/{KEY}")
        except (http.client.HTTPException, OSError):
            return

    thread = threading.Thread(target=hang)
    with postgres.table_locked():
        thread.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        wait_until(lambda: postgres.psql(waiting) == "1", "the request waits for the lock")
        fresh.terminate()
        assert fresh.process.wait(timeout=15) == 0
        thread.join(timeout=5)
        assert not thread.is_alive()


def test_sigterm_closes_idle_connections(fresh: Server) -> None:
    end_while_idle(fresh)


def test_a_server_waits_for_its_database(name: str, start, postgres: Postgres) -> None:
    """The server starts before its database, logs each try, and serves as soon as the database is usable."""
    port = free_port()
    server = start(name, DATABASE_URL=postgres.url(port))
    wait_until(lambda: server.text().count("waiting for the database") >= 2, "two tries")
    assert not _accepts(server.port)
    with Forward(port, postgres.port):
        server.wait_ready()
        assert server.ask(f"/contacts/{KEY}").status == 200
    server.end()


def test_an_empty_table_is_not_ready(name: str, start, postgres: Postgres) -> None:
    postgres.seed(0)
    try:
        server = start(name, DATABASE_URL=postgres.url())
        wait_until(lambda: "the table contacts" in server.text(), "it waits for rows")
    finally:
        postgres.seed(ROWS)
    server.wait_ready().end()


def test_sigterm_during_the_wait_for_the_database(name: str, start) -> None:
    server = start(name, DATABASE_URL=URL)
    wait_until(lambda: "waiting for the database" in server.text(), "the first try")
    server.terminate()
    assert server.process.wait(timeout=15) == 0


def test_a_database_that_never_comes_ends_the_server(orphans: dict[str, Server], name: str) -> None:
    orphan = orphans[name]
    assert orphan.process.wait(timeout=75) == 1
    *tries, last = orphan.text().splitlines()
    assert 30 <= len(tries) <= 61
    assert all("waiting for the database" in line for line in tries)
    assert "the database is not usable after 60 s" in last


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


class Forward:
    """Forward a so far unused port to another port."""

    def __init__(self, port: int, target: int) -> None:
        self.listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.target = target
        self.sockets: list[socket.socket] = []

    def __enter__(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        for end in (self.listener, *self.sockets):
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target))
            self.sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
