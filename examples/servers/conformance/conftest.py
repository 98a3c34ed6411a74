"""Shared fixtures: one seeded PostgreSQL, one server of each kind, and two servers without a database."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import COMMANDS, Server
from postgres import Postgres
from program import free_port, started

pytest_plugins = ["postgres_fixtures"]

ROWS = 10_000
# Contacts in an address book that tests write to: more than one page of the servers.
BOOK_ROWS = 300


@pytest.fixture(scope="session")
def postgres(postgres: Postgres) -> Postgres:
    """The shared fixture, with contacts."""
    postgres.seed(ROWS)
    return postgres


@pytest.fixture(scope="session")
def contacts(postgres: Postgres) -> dict[int, tuple[str, bytes]]:
    """The whole table: entity tag and vCard by primary key."""
    rows = json.loads(postgres.psql("SELECT json_agg(json_build_array(id, etag, vcard)) FROM contacts"))
    return {number: (etag, vcard.encode()) for number, etag, vcard in rows}


@pytest.fixture(scope="session")
def start(folder: Path) -> Iterator[Callable[..., Server]]:
    """Start a server by name with these variables; all servers end with the session."""

    def server(number: int, name: str, **environment: str) -> Server:
        return Server(name, environment, folder / f"{name}-{number}.log")

    with started(server) as start:
        yield start


@pytest.fixture(scope="session", autouse=True)
def orphans(start: Callable[..., Server]) -> dict[str, Server]:
    """Servers without a database, started first because they give up only after a minute."""
    url = f"postgresql://app:app@127.0.0.1:{free_port()}/contacts?sslmode=disable"
    return {name: start(name, DATABASE_URL=url) for name in COMMANDS}


@pytest.fixture(scope="session")
def servers(postgres: Postgres, start: Callable[..., Server]) -> dict[str, Server]:
    servers = {name: start(name, DATABASE_URL=postgres.url()) for name in COMMANDS}
    return {name: server.wait_ready() for name, server in servers.items()}


@pytest.fixture(scope="session")
def books(postgres: Postgres, start: Callable[..., Server]) -> dict[str, Server]:
    """Servers with separate address books, equal at the start and written to in the same way."""
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
    """A server for one test, which ends it."""
    server = start(name, DATABASE_URL=postgres.url()).wait_ready()
    yield server
    server.end()
