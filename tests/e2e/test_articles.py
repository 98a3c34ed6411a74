"""Two of the examples that repeat the articles, in their documented short forms, and their results.

Not part of the default suite, because these two take an hour. ``make articles`` runs them and all others.
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

NAMESPACE = "e2e-articles"
STREAMDATA = "examples/rust-vs-go-streamdata.yaml"
STREAMDATA_POINTS = {"c10-max", "c40-max", "c160-max"}
SWEEP = "examples/rust-vs-python-sweep.yaml"
SHORT_SWEEP = "examples/short-sweep.patch.yaml"
EXAMPLE_SECONDS = 2400


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with watched([NAMESPACE], request) as session:
        yield session


def run(session: Session, example: str, patch: str) -> Object:
    """Runs an example in its documented short form to its end."""
    name = apply_example(NAMESPACE, example, patch)
    benchmark = session.ended(f"{NAMESPACE}/{name}", EXAMPLE_SECONDS)
    say(f"{example}\n{summarize(benchmark)}")
    return benchmark


@pytest.fixture(scope="module")
def streamdata(session: Session) -> Object:
    return run(session, STREAMDATA, SHORT)


@pytest.fixture(scope="module")
def sweep(session: Session) -> Object:
    return run(session, SWEEP, SHORT_SWEEP)


def assert_true(session: Session, benchmark: Object) -> None:
    """Checks that it ended with a verdict, and that each trial's figures agree with the oracle."""
    status = benchmark["status"]
    assert status["verdict"] == "Reported", status["columns"]
    key = f"{NAMESPACE}/{benchmark['metadata']['name']}"
    assert {result["trials"] for result in status["results"]} == {5}
    # Including trials of blocks that were measured again.
    trials = [trial for trial in session.observer.trials_of(key) if outcome(trial) == "Measured"]
    assert len(trials) >= 5 * len(status["results"])
    assert disagreements(session, session.record(), trials) == []
    assert len(json.dumps(status)) < STATUS_BYTES


def test_rust_and_go_behind_balancers_are_separated(session: Session, streamdata: Object) -> None:
    assert_true(session, streamdata)
    status = streamdata["status"]
    comparisons = [c for c in status["comparisons"] if c["candidate"] == "rust"]
    assert {comparison["point"] for comparison in comparisons} == STREAMDATA_POINTS
    for comparison in comparisons:
        ratio = comparison["ratio"]
        assert ratio["upper"] < 1 or ratio["lower"] > 1, comparison
    for result in status["results"]:
        names = [workload["name"] for workload in result["workloads"]]
        assert names == sorted([result["candidate"], "service"])
        parts = sum(w["attributedJoulesPerRequest"]["value"] for w in result["workloads"])
        # The means of the parts and of the whole are geometric. Their sums differ by less than their spread.
        assert parts == pytest.approx(result["attributedJoulesPerRequest"]["value"], rel=0.02)


def test_the_balancers_sweep_names_the_best_points(streamdata: Object) -> None:
    assert_bests(streamdata, ["rust", "go"], STREAMDATA_POINTS)


def test_a_sweep_names_the_best_points_of_each_server(session: Session, sweep: Object) -> None:
    assert_true(session, sweep)
    assert_bests(sweep, ["rust", "python"], {"c2-max", "c8-max", "c32-max"})


def assert_bests(benchmark: Object, candidates: list[str], points: set[str]) -> None:
    """Checks that every point is measured, and that each candidate's best points are named."""
    status = benchmark["status"]
    assert [result["candidate"] for result in status["sweep"]] == candidates
    assert {result["point"] for result in status["results"]} == points
    for result in status["sweep"]:
        for best in ("mostRequestsPerSecond", "mostRequestsPerJoule", "knee"):
            assert {result[best]["point"]} <= set(result[best]["among"]) <= points
