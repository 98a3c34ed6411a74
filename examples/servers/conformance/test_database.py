"""Both servers use the database in the same way, and survive its failure."""

import concurrent.futures
import http.client
import re
import socket
import time
from collections import Counter
from pathlib import Path

import pytest

from harness import Server
from postgres import Postgres
from program import LOOPBACK, Answer, ask, wait_until

SQL = "SELECT etag, vcard FROM contacts WHERE id = $1"
KEY = "00000006-1234-4abc-8def-0123456789ab"
NO_DATABASE = b"The database does not answer\n"


def backends(postgres: Postgres, name: str) -> set[str]:
    """Process IDs of the PostgreSQL backends of one kind of server, without its address book's backends."""
    sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = "
    return set(postgres.psql(f"{sql}'contacts-{name}'").splitlines())


@pytest.mark.parametrize(("pool_size", "connections"), [(None, 10), ("3", 3)])
def test_the_whole_pool_is_open_before_the_first_request(
    postgres: Postgres, name: str, start, pool_size: str | None, connections: int
) -> None:
    others = backends(postgres, name)
    variables = {} if pool_size is None else {"POOL_SIZE": pool_size}
    server = start(name, DATABASE_URL=postgres.url(), **variables).wait_ready()
    opened = backends(postgres, name) - others
    assert len(opened) == connections
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(server.ask, [f"/contacts/{KEY}"] * 100))
    assert {answer.status for answer in answers} == {200}
    assert backends(postgres, name) - others == opened, "no connection is opened or replaced under load"
    server.end()
    wait_until(lambda: not opened & backends(postgres, name), "the connections are closed")


def test_a_request_is_one_prepared_select(postgres: Postgres, name: str, server: Server) -> None:
    """PostgreSQL's log shows only this one statement per request, and no further parse."""
    postgres.psql("ALTER SYSTEM SET log_statement = 'all'; SELECT pg_reload_conf()")
    try:
        wait_until(lambda: postgres.psql("SHOW log_statement") == "all", "statements are logged")
        time.sleep(0.3)  # PostgreSQL's backends read their configuration before their next statement
        server.ask(f"/contacts/{KEY}")
        begin = postgres.log.stat().st_size
        connection = server.connection()
        for _ in range(50):
            assert ask(connection, f"/contacts/{KEY}").status == 200
    finally:
        postgres.psql("ALTER SYSTEM RESET log_statement; SELECT pg_reload_conf()")
    with postgres.log.open("rb") as log:
        log.seek(begin)
        lines = log.read().decode().splitlines()
    prefix = f"contacts-{name}|LOG:  "
    statements = Counter(
        re.sub(r"^execute (?!<unnamed>)\S+: ", "prepared: ", line.removeprefix(prefix))
        for line in lines
        if line.startswith(prefix)
    )
    assert statements == {f"prepared: {SQL}": 50}


def test_one_thread_does_the_work(servers: dict[str, Server], name: str) -> None:
    """Other threads may exist (uvloop looks up names in some), but they do nothing under load."""
    server = servers[name]
    before = _cpu_ticks(server.process.pid)
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(server.ask, [f"/contacts/{KEY}"] * 500))
    used = {thread: ticks - before.get(thread, 0) for thread, ticks in _cpu_ticks(server.process.pid).items()}
    assert used.pop(server.process.pid) > 0
    assert sum(used.values()) <= 2


def test_without_a_database_503_and_recovery(postgres: Postgres, servers: dict[str, Server]) -> None:
    refusal = (503, "text/plain; charset=utf-8", NO_DATABASE)
    before = {name: server.ask(f"/contacts/{KEY}").body for name, server in servers.items()}
    held = {name: server.connection() for name, server in servers.items()}
    for connection in held.values():
        ask(connection, f"/contacts/{KEY}")
    postgres.stop()
    try:
        for name, server in servers.items():
            for path in (f"/contacts/{KEY}", "/healthz"):
                for answer in (server.ask(path), ask(held[name], path)):
                    assert _essence(answer) == refusal
            assert server.ask("/contacts/none").status == 400, "this needs no database"
            assert "connect" in server.text().splitlines()[-1].lower(), "the cause is logged"
    finally:
        postgres.start()
    for name, server in servers.items():
        begin = time.monotonic()
        wait_until(lambda server=server: server.ask("/healthz").status == 200, f"{name} is back", 10)
        print(f"{name} is back after {time.monotonic() - begin:.2f} s")
        for _ in range(30):
            assert ask(held[name], f"/contacts/{KEY}").body == before[name]
        assert server.process.poll() is None


def test_a_database_that_hangs_is_given_five_seconds(postgres: Postgres, servers: dict[str, Server]) -> None:
    """More requests than connections wait for a lock. None waits forever, and no connection is lost."""
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        with postgres.table_locked():
            begin = time.monotonic()
            waiting = [
                threads.submit(server.ask, f"/contacts/{KEY}") for server in servers.values() for _ in "12345"
            ]
            answers = [future.result() for future in waiting]
            took = time.monotonic() - begin
        assert [_essence(answer)[0] for answer in answers] == [503] * 10
        # A second round of waiting would make ten seconds.
        assert 4.5 < took < 9.5
    for name, server in servers.items():
        assert "no answer within 5 s" in server.text()
        for _ in range(30):
            assert server.ask(f"/contacts/{KEY}").status == 200
        wait_until(lambda name=name: len(backends(postgres, name)) <= 10, "no connection too many")


def test_a_list_is_cut_if_the_database_fails(postgres: Postgres, servers: dict[str, Server]) -> None:
    """Half of the address book must not look like the whole address book."""
    body = (
        '<C:addressbook-query xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav">'
        "<prop><C:address-data/></prop><C:filter/></C:addressbook-query>"
    )
    waiting = []
    for server in servers.values():
        connection = server.connection()
        # The client reads slowly, so most of the answer does not exist yet when the database stops.
        connection.sock = socket.socket()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sock.connect((LOOPBACK, server.port))
        connection.request("REPORT", "/dav/addressbooks/contacts/", body, {"Depth": "1"})
        response = connection.getresponse()
        assert (response.status, response.getheader("transfer-encoding")) == (207, "chunked")
        waiting.append(response)
    postgres.stop()
    try:
        for response in waiting:
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                response.read()
        for server in servers.values():
            assert "an answer was cut" in server.text()
            assert _essence(server.ask("/dav/addressbooks/contacts/none"))[0] == 503
            assert _essence(server.ask("/dav/addressbooks/contacts/", "REPORT", None, body))[0] == 207
            assert (
                _essence(server.ask("/dav/addressbooks/contacts/", "REPORT", {"Depth": "1"}, body))[0] == 503
            )
    finally:
        postgres.start()
    for name, server in servers.items():
        wait_until(lambda server=server: server.ask("/healthz").status == 200, f"{name} is back", 10)


def _essence(answer: Answer) -> tuple[int, str, bytes]:
    return answer.status, answer.header("content-type"), answer.body


def _cpu_ticks(process: int) -> dict[int, int]:
    """CPU time of each thread, in the kernel's ticks."""
    ticks = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        ticks[int(task.name)] = int(fields[11]) + int(fields[12])
    return ticks
