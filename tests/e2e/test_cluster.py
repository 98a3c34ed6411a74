"""Erlang servers that replicate their data with Mnesia, in its four modes, under a script of several requests.

Not among the tests of every day, for it takes over half an hour: ``make articles``.
"""

import json
from collections.abc import Iterator

import pytest

from benchmarks import apply_example
from checks import STATUS_BYTES, disagreements, outcome
from conftest import watched
from evidence import say
from kube import Object, summarize
from session import Session

NAMESPACE = "e2e-cluster"
EXAMPLE = "examples/mnesia-cluster.yaml"
SHORT_CLUSTER = "examples/short-cluster.patch.yaml"
SECONDS = 3600
MEMBERS = {"c8-max-x1": 1, "c8-max-x3": 3}
SYNCHRONOUS = {"sync-trans", "sync-dirty"}


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with watched([NAMESPACE], request) as session:
        yield session


@pytest.fixture(scope="module")
def cluster(session: Session) -> Object:
    apply_example(NAMESPACE, EXAMPLE, SHORT_CLUSTER)
    benchmark = session.ended(f"{NAMESPACE}/mnesia-cluster", SECONDS)
    say(f"{EXAMPLE}\n{summarize(benchmark)}")
    return benchmark


@pytest.fixture(scope="module")
def trials(session: Session, cluster: Object) -> list[Object]:
    """The measured ones."""
    of_benchmark = session.observer.trials_of(f"{NAMESPACE}/{cluster['metadata']['name']}")
    return [trial for trial in of_benchmark if outcome(trial) == "Measured"]


def test_each_trials_figures_are_the_oracles(session: Session, cluster: Object, trials: list[Object]) -> None:
    assert cluster["status"]["verdict"] == "Pass", cluster["status"]["columns"]
    assert {result["trials"] for result in cluster["status"]["results"]} == {5}
    assert len(trials) >= 5 * 2 * 4
    assert disagreements(session, session.record(), trials) == []
    assert len(json.dumps(cluster["status"])) < STATUS_BYTES


def test_all_members_are_measured(trials: list[Object]) -> None:
    for trial in trials:
        assert len(trial["status"]["candidatePods"]) == MEMBERS[trial["spec"]["point"]]


def test_cycles_are_what_the_script_says(cluster: Object) -> None:
    for result in cluster["status"]["results"]:
        cycles = result["cycles"]
        # A cycle that fails to create ends with its first request.
        assert 5.9 < cycles["requestsPerCycle"] <= 6.01, result
        assert len(cycles["checks"]) == 4
        assert all(check["passed"] > 0 for check in cycles["checks"])


def test_synchronous_modes_and_single_members_are_consistent(cluster: Object) -> None:
    for result in cluster["status"]["results"]:
        failed = sum(check["failed"] for check in result["cycles"]["checks"])
        if result["candidate"] in SYNCHRONOUS or MEMBERS[result["point"]] == 1:
            assert failed == 0, result["cycles"]


def test_members_and_modes_are_told_apart(cluster: Object) -> None:
    joules = {
        (result["candidate"], result["point"]): result["grossJoulesPerRequest"]
        for result in cluster["status"]["results"]
    }
    one, three = MEMBERS
    for candidate in ("transaction", "sync-trans", "async-dirty", "sync-dirty"):
        # On one node further members only replicate.
        assert joules[candidate, one]["upper"] < joules[candidate, three]["lower"], candidate
    # What synchronous transactions cost beside changes without any.
    assert joules["async-dirty", three]["upper"] < joules["sync-trans", three]["lower"]
