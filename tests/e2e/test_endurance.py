"""Ten million requests in one window: status, ledger and the operator's memory stay small.

Not part of the default suite, because it takes up to half an hour: ``make articles``.
"""

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from benchmarks import apply_example
from checks import STATUS_BYTES, assert_ended, disagreements, outcome
from conftest import watched
from evidence import say
from kube import Object, export
from session import Session

NAMESPACE = "e2e-endurance"
EXAMPLE = "examples/endurance.yaml"
SHORT_ENDURANCE = "examples/short-endurance.patch.yaml"
REQUESTS = 10_000_000
SECONDS = 2700
# The same limit as for a window of 20 s.
ENTRY_BYTES = 16 * 1024
# The operator keeps the window's readings: some kilobytes twice per second. The allocator keeps some memory
# too.
GROWTH_MIB = 8


@dataclass
class Endured:
    session: Session
    benchmark: Object
    trial: Object


@pytest.fixture(scope="module")
def endured(request: pytest.FixtureRequest) -> Iterator[Endured]:
    with watched([NAMESPACE], request) as session:
        apply_example(NAMESPACE, EXAMPLE, SHORT_ENDURANCE)
        benchmark = session.ended(f"{NAMESPACE}/endurance", SECONDS)
        trials = session.observer.trials_of(f"{NAMESPACE}/endurance")
        measured = [trial for trial in trials if outcome(trial) == "Measured"]
        assert len(measured) == 1, [trial["status"].get("message") for trial in trials]
        yield Endured(session, benchmark, measured[0])


def test_all_requests_are_in_one_window_and_agree_with_the_oracle(endured: Endured) -> None:
    assert_ended(endured.benchmark, "Inconclusive", "TooFewBlocks")
    status = endured.trial["status"]
    assert status["requests"]["requests"] == REQUESTS
    assert status["requests"]["errors"] == 0
    assert disagreements(endured.session, endured.session.record(), [endured.trial]) == []
    energy = status["energy"]
    say(
        f"{status['requests']['requestsPerSecond']:.0f} requests/s, "
        f"{1e3 * energy['grossJoulesPerRequest']:.3f} mJ/request, memory grows by "
        f"{3600 * energy['candidateWorkingSetGrowthBytesPerSecond'] / 2**20:.2f} MiB/h, "
        f"{status.get('restarts', 0)} restarts"
    )


def test_the_growth_of_memory_is_reported(endured: Endured) -> None:
    growth = endured.trial["status"]["energy"]["candidateWorkingSetGrowthBytesPerSecond"]
    window = endured.trial["status"]["window"]
    seconds = window["endUnixSeconds"] - window["startUnixSeconds"]
    peak = endured.trial["status"]["energy"]["candidatePeakWorkingSetBytes"]
    assert -peak < growth * seconds < peak


def test_the_drift_of_latency_is_reported(endured: Endured) -> None:
    status = endured.trial["status"]
    course, window = status["course"], status["window"]
    # The course has every request, and its mean equals Fortio's mean.
    counts, means = course["requests"], course["meanSeconds"]
    assert sum(counts) == REQUESTS
    mean = sum(n * mean for n, mean in zip(counts, means, strict=True)) / REQUESTS
    assert mean == pytest.approx(status["requests"]["msPerRequest"] / 1e3, rel=1e-3)
    seconds = window["endUnixSeconds"] - window["startUnixSeconds"]
    assert len(counts) - 1 <= seconds / course["sliceSeconds"] <= len(counts)
    length, whole = course["sliceSeconds"], course["wholeSeconds"]
    slices = [((index + 0.5) * length, mean) for index, mean in enumerate(means)]
    inside = [(middle, mean) for middle, mean in slices if middle + length / 2 <= whole]
    assert 0.8 * seconds < whole <= seconds
    slope = statistics.linear_regression(*zip(*inside, strict=True)).slope
    say(f"mean latency {1e3 * mean:.3f} ms, rises by {3.6e6 * slope:.4f} ms/h: {course}")
    (exported,) = [row for row in export(NAMESPACE) if row["outcome"] == "Measured"]
    assert exported["latencyDriftSecondsPerSecond"] == pytest.approx(slope, rel=1e-6)


def test_status_and_ledger_stay_small(endured: Endured) -> None:
    sizes = len(json.dumps(endured.benchmark["status"])), len(json.dumps(endured.trial["status"]))
    say(f"status {sizes[0]} bytes, entry of the ledger {sizes[1]} bytes")
    assert sizes[0] < STATUS_BYTES
    assert sizes[1] < ENTRY_BYTES


def test_the_operators_memory_stays_flat(endured: Endured) -> None:
    early, late = endured.session.memory.early_and_late_mib("operator")
    say(f"operator: {early:.1f} MiB in the second tenth of the run, {late:.1f} MiB in the last")
    assert late - early < GROWTH_MIB
