"""The short form of the example that synchronises an address book, with Radicale as a candidate.

Not part of the default suite, because it takes a quarter of an hour. ``make articles`` runs it.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from benchmarks import apply_example
from checks import disagreements, outcome
from conftest import watched
from evidence import say
from kube import Object, summarize
from session import Session

NAMESPACE = "e2e-sync"
EXAMPLE = "examples/carddav-sync.yaml"
SHORT_SYNC = "examples/short-sync.patch.yaml"
SECONDS = 3600
CANDIDATES = {"rust", "python", "radicale"}


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with watched([NAMESPACE], request) as session:
        yield session


@pytest.fixture(scope="module")
def benchmark(session: Session) -> Object:
    name = apply_example(NAMESPACE, EXAMPLE, SHORT_SYNC)
    benchmark = session.ended(f"{NAMESPACE}/{name}", SECONDS)
    say(f"{EXAMPLE}\n{summarize(benchmark)}")
    return benchmark


@pytest.fixture(scope="module")
def trials(session: Session, benchmark: Object) -> list[Object]:
    """The measured trials, including trials of blocks that were measured again."""
    of_benchmark = session.observer.trials_of(f"{NAMESPACE}/{benchmark['metadata']['name']}")
    measured = [trial for trial in of_benchmark if outcome(trial) == "Measured"]
    found = Counter(trial["spec"]["candidate"] for trial in measured)
    assert found.keys() == CANDIDATES, found
    assert min(found.values()) >= 5, found
    return measured


def test_each_trials_figures_agree_with_the_oracle(
    session: Session, benchmark: Object, trials: list[Object]
) -> None:
    status = benchmark["status"]
    assert status["verdict"] == "Reported", status["columns"]
    assert {result["candidate"] for result in status["results"]} == CANDIDATES
    assert {result["trials"] for result in status["results"]} == {5}
    assert disagreements(session, session.record(), trials) == []


def test_every_candidate_gets_the_same_requests_and_passes_every_check(benchmark: Object) -> None:
    for result in benchmark["status"]["results"]:
        cycles = result["cycles"]
        assert cycles["requestsPerCycle"] == pytest.approx(5, rel=0.01), result
        assert len(cycles["checks"]) == 8
        for check in cycles["checks"]:
            assert check["passed"] > 0, check
            assert check["failed"] == 0, check


def test_radicale_does_not_use_the_database(trials: list[Object]) -> None:
    """Transactions per request are not known of a script with a `setup`, so the database's CPU time shows it."""
    used: dict[str, list[float]] = {name: [] for name in CANDIDATES}
    for trial in trials:
        used[trial["spec"]["candidate"]].append(trial["status"]["energy"]["cpu"]["databaseSeconds"])
    # An idle PostgreSQL and its probes work too.
    assert 2 * max(used["radicale"]) < min(used["rust"] + used["python"]), used


def test_radicale_is_compared_although_it_makes_no_transactions(benchmark: Object) -> None:
    pairs = {frozenset((it["candidate"], it["against"])): it for it in benchmark["status"]["comparisons"]}
    ratio = pairs[frozenset(("radicale", "rust"))]["ratio"]
    assert ratio["upper"] < 1 or ratio["lower"] > 1, ratio
