"""Shared fixtures: a member that is alone, and clusters."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness import HOSTS, MODES, NameServer, Server
from program import free_port, started

Start = Callable[..., Server]


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start a member with these variables; all members end with the session."""
    folder = tmp_path_factory.mktemp("logs")

    def member(number: int, **environment: str) -> Server:
        return Server(environment, folder / f"{number}.log")

    with started(member) as start:
        yield start


@pytest.fixture(scope="session")
def alone(start: Start) -> Server:
    return start().wait_ready()


@pytest.fixture
def fresh(start: Start) -> Iterator[Server]:
    """A member that is alone, for one test, which ends it."""
    server = start().wait_ready()
    yield server
    server.end()


@dataclass
class Cluster:
    """Up to three started members, by their addresses."""

    start: Start
    environment: dict[str, str]
    members: dict[str, Server] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.port, self.distribution_port = (str(free_port(HOSTS)) for _ in range(2))

    def begin(self, *hosts: str, **variables: str) -> None:
        """Start the members at these addresses."""
        for host in hosts:
            own = {"PORT": self.port, "LISTEN_ADDRESS": host, "POD_IP": host, "PEERS_COUNT": "3"}
            own |= {"PEERS_HOST": ",".join(HOSTS), "ERL_DIST_PORT": self.distribution_port}
            self.members[host] = self.start(**own | self.environment | variables)

    def wait_ready(self) -> "Cluster":
        for member in self.members.values():
            member.wait_ready()
        return self

    def all(self) -> list[Server]:
        return list(self.members.values())

    def end(self) -> None:
        for member in self.members.values():
            member.end()


@pytest.fixture
def cluster(start: Start) -> Iterator[Callable[..., Cluster]]:
    """Clusters for one test. Their members are not started yet."""
    made: list[Cluster] = []

    def cluster(**environment: str) -> Cluster:
        made.append(Cluster(start, environment))
        return made[-1]

    yield cluster
    for one in made:
        one.end()


@pytest.fixture
def names(tmp_path: Path) -> NameServer:
    return NameServer(tmp_path / "inetrc")


@pytest.fixture(scope="module", params=MODES)
def three(request: pytest.FixtureRequest, start: Start) -> Iterator[Cluster]:
    """Three members, in each mode."""
    made = Cluster(start, {"MODE": request.param})
    made.begin(*HOSTS)
    yield made.wait_ready()
    made.end()
