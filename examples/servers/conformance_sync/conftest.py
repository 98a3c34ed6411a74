"""Shared fixtures: the example's spec, and its three candidates with equal address books."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import CANDIDATES, Candidate, Spec, example
from postgres import Postgres
from program import started

pytest_plugins = ["postgres_fixtures"]


@pytest.fixture(scope="session")
def spec() -> Spec:
    return example()["spec"]


@pytest.fixture(scope="session")
def contacts(spec: Spec) -> int:
    return spec["database"]["seed"]["contacts"]


@pytest.fixture(scope="session")
def start(folder: Path, spec: Spec) -> Iterator[Callable[..., Candidate]]:
    """Start a candidate with the environment of the example, and more variables; all end with the session."""

    def candidate(number: int, name: str, **variables: str) -> Candidate:
        (candidate,) = (candidate for candidate in spec["candidates"] if candidate["name"] == name)
        return Candidate(candidate, variables, folder / f"{name}-{number}")

    with started(candidate) as start:
        yield start


@pytest.fixture(scope="session")
def candidates(postgres: Postgres, start: Callable[..., Candidate], contacts: int) -> dict[str, Candidate]:
    """All candidates. As in the cluster, each one gets a fresh database, even if it does not use it."""
    candidates = {}
    for name in CANDIDATES:
        postgres.create(name)
        postgres.seed(contacts, database=name)
        candidates[name] = start(name, DATABASE_URL=postgres.url(database=name))
    return {name: candidate.wait_ready() for name, candidate in candidates.items()}
