"""Erlang servers that replicate data with Mnesia in its four modes, under a script of several requests.

Not part of the default suite, because it takes an hour and a quarter: ``make articles``.
"""

import json
from collections.abc import Iterator

import pytest

from benchmarks import SHORT, apply_example
from checks import STATUS_BYTES, disagreements, outcome
from conftest import watched
from evidence import say
from kube import Object, summarize
from session import Session

NAMESPACE = "e2e-cluster"
EXAMPLE = "examples/mnesia-cluster.yaml"
MANDELBROT = "examples/mnesia-mandelbrot.yaml"
SHORT_CLUSTER = "examples/short-cluster.patch.yaml"
SECONDS = 5400
MEMBERS = {f"c8-{rate}-x{count}": count for rate in ("r100", "max") for count in (1, 2, 3)}
SYNCHRONOUS = {"sync-trans", "sync-dirty"}


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with watched([NAMESPACE], request) as session:
        yield session


@pytest.fixture(scope="module")
def cluster(session: Session) -> Object:
    return run(session, EXAMPLE, SHORT_CLUSTER)


@pytest.fixture(scope="module")
def mandelbrot(session: Session) -> Object:
    return run(session, MANDELBROT, SHORT)


def run(session: Session, example: str, patch: str) -> Object:
    name = apply_example(NAMESPACE, example, patch)
    benchmark = session.ended(f"{NAMESPACE}/{name}", SECONDS)
    say(f"{example}\n{summarize(benchmark)}")
    return benchmark


def trials_of(session: Session, benchmark: Object) -> list[Object]:
    """The measured trials of a benchmark."""
    of_benchmark = session.observer.trials_of(f"{NAMESPACE}/{benchmark['metadata']['name']}")
    return [trial for trial in of_benchmark if outcome(trial) == "Measured"]


def assert_true(session: Session, benchmark: Object) -> None:
    trials = trials_of(session, benchmark)
    assert benchmark["status"]["verdict"] == "Reported", benchmark["status"]["columns"]
    assert {result["trials"] for result in benchmark["status"]["results"]} == {5}
    assert len(trials) >= 5 * len(benchmark["status"]["results"])
    assert disagreements(session, session.record(), trials) == []
    assert len(json.dumps(benchmark["status"])) < STATUS_BYTES


def test_each_trials_figures_agree_with_the_oracle(session: Session, cluster: Object) -> None:
    assert_true(session, cluster)


def test_all_members_are_measured(session: Session, cluster: Object) -> None:
    for trial in trials_of(session, cluster):
        assert len(trial["status"]["candidatePods"]) == MEMBERS[trial["spec"]["point"]]


def test_a_cycle_has_the_requests_and_checks_of_the_script(cluster: Object) -> None:
    for result in cluster["status"]["results"]:
        cycles = result["cycles"]
        # If a cycle can't create its object, it ends with its first request.
        assert 5.9 < cycles["requestsPerCycle"] <= 6.01, result
        assert len(cycles["checks"]) == 4
        assert all(check["passed"] > 0 for check in cycles["checks"])


def test_synchronous_modes_and_single_members_are_consistent(cluster: Object) -> None:
    for result in cluster["status"]["results"]:
        failed = sum(check["failed"] for check in result["cycles"]["checks"])
        if result["candidate"] in SYNCHRONOUS or MEMBERS[result["point"]] == 1:
            assert failed == 0, result["cycles"]


def test_members_and_modes_are_separated(cluster: Object) -> None:
    status = cluster["status"]
    one, two, three = (f"c8-r100-x{count}" for count in (1, 2, 3))
    # On one node another member only replicates.
    assert [result["mostRequestsPerJoule"]["point"] for result in status["sweep"]] == [one] * 4
    joules = {(it["candidate"], it["point"]): it["netJoulesPerRequest"] for it in status["results"]}
    for candidate in ("transaction", "sync-trans"):
        for several in (two, three):
            assert joules[candidate, one]["upper"] < joules[candidate, several]["lower"], candidate
    # Synchronous transactions cost more than changes without a transaction. The leader of a point is compared with the others.
    at_three = {it["against"]: it for it in status["comparisons"] if it["point"] == three}
    comparison = at_three["sync-trans"]
    assert comparison["candidate"] in {"async-dirty", "sync-dirty"}
    assert comparison["ratio"]["upper"] < 1


def test_members_that_compute_do_the_same_work(session: Session, mandelbrot: Object) -> None:
    assert_true(session, mandelbrot)
    one, two, three = mandelbrot["status"]["results"]
    assert [it["point"] for it in (one, two, three)] == ["c8-max-x1", "c8-max-x2", "c8-max-x3"]
    # All members share one core. Each picture takes about the same CPU time.
    for several in (two, three):
        ratio = several["cpuMillisecondsPerRequest"]["value"] / one["cpuMillisecondsPerRequest"]["value"]
        assert 0.8 < ratio < 1.25, ratio
    for trial in trials_of(session, mandelbrot):
        assert len(trial["status"]["candidatePods"]) == MEMBERS[trial["spec"]["point"]]
        assert trial["status"]["requests"]["errors"] == 0
