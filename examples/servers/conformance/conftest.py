"""What the tests share: one seeded PostgreSQL, one server of each kind, and two that find no database."""

import itertools
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import COMMANDS, Postgres, Server
from program import free_port

ROWS = 10_000
# Contacts of an address book that the tests write into: more than one page of the servers.
BOOK_ROWS = 300

# Ended by SIGTERM, pytest would leave the servers behind; interrupted, it ends them.
signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.getbasetemp()
    # PostgreSQL's user has to pass through to its own folder.
    for part in (folder, folder.parent):
        part.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def postgres(folder: Path) -> Iterator[Postgres]:
    postgres = Postgres(folder / "postgres")
    try:
        postgres.seed(ROWS)
        yield postgres
    finally:
        postgres.stop()


@pytest.fixture(scope="session")
def contacts(postgres: Postgres) -> dict[int, tuple[str, bytes]]:
    """The whole table: entity tag and vCard by primary key."""
    rows = json.loads(postgres.psql("SELECT json_agg(json_build_array(id, etag, vcard)) FROM contacts"))
    return {number: (etag, vcard.encode()) for number, etag, vcard in rows}


@pytest.fixture(scope="session")
def start(folder: Path) -> Iterator[Callable[..., Server]]:
    """Start a server by name with these variables; all are gone at the end of the session."""
    started: list[Server] = []
    count = itertools.count()

    def start(name: str, **environment: str) -> Server:
        server = Server(name, environment, folder / f"{name}-{next(count)}.log")
        started.append(server)
        return server

    yield start
    for server in started:
        server.end()


@pytest.fixture(scope="session", autouse=True)
def orphans(start: Callable[..., Server]) -> dict[str, Server]:
    """Servers whose database never comes. They take a minute to give up, so they are started first."""
    url = f"postgresql://app:app@127.0.0.1:{free_port()}/contacts?sslmode=disable"
    return {name: start(name, DATABASE_URL=url) for name in COMMANDS}


@pytest.fixture(scope="session")
def servers(postgres: Postgres, start: Callable[..., Server]) -> dict[str, Server]:
    servers = {name: start(name, DATABASE_URL=postgres.url()) for name in COMMANDS}
    return {name: server.wait_ready() for name, server in servers.items()}


@pytest.fixture(scope="session")
def books(postgres: Postgres, start: Callable[..., Server]) -> dict[str, Server]:
    """Servers with an address book of their own each, equal at the start and written to in the same way."""
    servers = {}
    for name in COMMANDS:
        postgres.create(f"book_{name}")
        postgres.seed(BOOK_ROWS, database=f"book_{name}")
        servers[name] = start(name, DATABASE_URL=postgres.url(database=f"book_{name}"))
    return {name: server.wait_ready() for name, server in servers.items()}


@pytest.fixture(params=COMMANDS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def server(name: str, servers: dict[str, Server]) -> Server:
    return servers[name]


@pytest.fixture
def fresh(name: str, postgres: Postgres, start: Callable[..., Server]) -> Iterator[Server]:
    """A server of the test's own, to be ended by it."""
    server = start(name, DATABASE_URL=postgres.url()).wait_ready()
    yield server
    server.end()
