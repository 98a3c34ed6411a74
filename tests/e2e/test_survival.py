"""A run with every disturbance: each one has its reason, and the figures agree with a quiet run.

Not part of the default suite, because it takes half an hour: ``make survival``.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from benchmarks import DATABASE, Benchmark, spec
from checks import assert_ended, disagreements, outcome
from conftest import watched
from disturbances import Done, Hand, disturb
from evidence import say
from kube import Object
from session import Session

NAMESPACE = "e2e-survival"
TRIALS = {"blocks": 5, "idleBaseline": "5s"}
QUIET = Benchmark(NAMESPACE, "quiet", spec(database=DATABASE, trials=TRIALS, deadline="30m"))
DISTURBED = Benchmark(
    NAMESPACE, "disturbed", spec(database=DATABASE, trials=TRIALS | {"maxAttempts": 20}, deadline="60m")
)


@dataclass
class Survival:
    """Both runs, ended."""

    session: Session
    quiet: Object
    disturbed: Object
    done: list[Done]


@pytest.fixture(scope="module")
def survival(request: pytest.FixtureRequest) -> Iterator[Survival]:
    with watched([NAMESPACE], request) as session:
        QUIET.apply()
        quiet = session.ended(QUIET.key, 900)
        DISTURBED.apply()
        hand = Hand(session.observer, NAMESPACE, DISTURBED.key)
        with hand.stand_in_before_the_meter():
            done = disturb(hand)
            disturbed = session.ended(DISTURBED.key, 1200)
        yield Survival(session, quiet, disturbed, done)


def test_the_run_ends_by_itself(survival: Survival) -> None:
    for benchmark in (survival.quiet, survival.disturbed):
        assert_ended(benchmark, "Reported", "NoBudgets")
        assert benchmark["status"]["progress"]["trialsDone"] == 5


def test_every_disturbance_has_its_reason(survival: Survival) -> None:
    trials = {t["metadata"]["name"]: t for t in survival.session.observer.trials_of(DISTURBED.key)}
    wrong = []
    for done in survival.done:
        status = trials[done.trial]["status"]
        expected = done.disturbance.reasons or ("Measured",)
        say(
            f"{done.disturbance.name:48} {status['outcome']:9} {status['reason']:20} {status['message'][:90]}"
        )
        if status["reason"] not in expected:
            wrong.append(f"{done.disturbance.name}: {status['reason']} ({status['message']})")
        assert status["outcome"] == "Measured" or "energy" not in status
    assert len(survival.done) == len({done.trial for done in survival.done})
    assert wrong == []


def test_only_disturbed_attempts_are_void(survival: Survival) -> None:
    disturbed = {done.trial for done in survival.done}
    trials = survival.session.observer.trials_of(DISTURBED.key)
    void = {t["metadata"]["name"]: t["status"]["reason"] for t in trials if outcome(t) == "Void"}
    assert {name: reason for name, reason in void.items() if name not in disturbed} == {}


def test_every_measured_figure_agrees_with_the_oracle(survival: Survival) -> None:
    session = survival.session
    trials = [t for key in (QUIET.key, DISTURBED.key) for t in session.observer.trials_of(key)]
    measured = [trial for trial in trials if outcome(trial) == "Measured"]
    assert len(measured) >= 10
    assert disagreements(session, session.record(), measured) == []


def test_the_figure_agrees_with_the_quiet_run(survival: Survival) -> None:
    def figure(benchmark: Object) -> Object:
        return benchmark["status"]["results"][0]["grossJoulesPerRequest"]

    quiet, disturbed = figure(survival.quiet), figure(survival.disturbed)
    say(f"quiet {quiet}, disturbed {disturbed}")
    halves = [math.log(f["upper"] / f["value"]) for f in (quiet, disturbed)]
    assert abs(math.log(disturbed["value"] / quiet["value"])) <= math.hypot(*halves)
