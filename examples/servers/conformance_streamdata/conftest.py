"""Shared fixtures: a service of each kind, and balancers in front of scripted backends."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from harness import COMMANDS, Backend, Server, hosts_of
from program import free_port, started

Start = Callable[..., Server]


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start a program by name in a role with these variables; all programs end with the session."""
    folder = tmp_path_factory.mktemp("logs")

    def server(number: int, name: str, role: str, **environment: str) -> Server:
        return Server(name, role, environment, folder / f"{name}-{role}-{number}.log")

    with started(server) as start:
        yield start


@pytest.fixture(scope="session")
def services(start: Start) -> dict[str, Server]:
    return {name: start(name, "serve").wait_ready() for name in COMMANDS}


@pytest.fixture(params=COMMANDS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def fresh(name: str, start: Start) -> Iterator[Server]:
    """A service for one test, which ends it."""
    server = start(name, "serve").wait_ready()
    yield server
    server.end()


@dataclass
class Group:
    """A balancer and its backends."""

    balancer: Server
    backends: list[Backend]

    def counts(self) -> list[int]:
        """The number of requests that each backend has received."""
        return [len(backend.seen) for backend in self.backends]

    def end(self) -> None:
        self.balancer.end()
        for backend in self.backends:
            backend.stop()


def group(start: Start, name: str, count: int) -> Group:
    hosts = hosts_of(count)
    port = free_port(hosts)
    backends = [Backend(host, port) for host in hosts]
    balancer = start(name, "balance", SERVICE_HOST=",".join(hosts), SERVICE_PORT=str(port)).wait_ready()
    balancer.wait_healthy(count)
    return Group(balancer, backends)


@pytest.fixture
def four(name: str, start: Start) -> Iterator[Group]:
    """A balancer in front of four backends, for one test."""
    made = group(start, name, 4)
    yield made
    made.end()


@pytest.fixture(scope="module")
def balanced(start: Start) -> Iterator[dict[str, Group]]:
    """A balancer of each kind, each in front of its own backend."""
    made = {name: group(start, name, 1) for name in COMMANDS}
    yield made
    for one in made.values():
        one.end()
