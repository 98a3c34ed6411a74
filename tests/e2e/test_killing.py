"""The operator is killed in each phase. The run continues, and an attempt is either right or void."""

import pytest

from benchmarks import KILLED, LONG, MODELLED, NO_INJECTOR
from checks import assert_ended, assert_no_number, disagreements, outcome
from evidence import say
from kube import Object
from scenarios import Kill
from session import LONG_RUN_SECONDS, Session

pytestmark = pytest.mark.benchmarks(KILLED)
# The kills come after the long run, if the long run is in the queue.
KILLS_SECONDS = LONG_RUN_SECONDS + 600


@pytest.fixture(scope="module")
def kills(session: Session) -> list[Kill]:
    kills = session.killing.result(KILLS_SECONDS)
    for kill in kills:
        say(f"operator back {kill.back_after_seconds:.1f} s after its death in the phase: {kill.phase}")
    return kills


@pytest.fixture(scope="module")
def killed(session: Session, kills: list[Kill]) -> Object:
    return session.ended(KILLED.key, 400)


def test_the_operator_was_killed_once_in_each_phase(kills: list[Kill]) -> None:
    phases = ["database start", "seeding", "server start", "idle before", "load", "idle after"]
    assert [kill.phase for kill in kills] == phases


def test_the_run_ends_by_itself(session: Session, killed: Object) -> None:
    message = assert_ended(killed, "Inconclusive", "TooFewBlocks")
    assert "spec.trials.blocks: 5 or more" in message
    assert killed["status"]["progress"]["trialsDone"] == 1
    assert_no_number(killed)


def test_an_attempt_whose_readings_were_lost_is_void(
    session: Session, kills: list[Kill], killed: Object
) -> None:
    by_name = {t["metadata"]["name"]: t for t in session.observer.trials_of(KILLED.key)}
    lost = [kill.trial for kill in kills if kill.phase in ("load", "idle after")]
    assert len(set(lost)) == 2
    for name in lost:
        status = by_name[name]["status"]
        assert (status["outcome"], status["reason"]) == ("Void", "ReadingsInterrupted")
        assert "energy" not in status
        assert "columns" not in status
    assert killed["status"]["progress"]["voidAttempts"] >= 2


def test_every_other_attempt_agrees_with_the_oracle(session: Session, killed: Object) -> None:
    trials = session.observer.trials_of(KILLED.key)
    assert {outcome(trial) for trial in trials} == {"Measured", "Void"}
    measured = [trial for trial in trials if outcome(trial) == "Measured"]
    record = session.record()
    assert disagreements(session, record, measured) == []


@pytest.mark.benchmarks(LONG, NO_INJECTOR, MODELLED)
def test_ended_benchmarks_stay_ended(session: Session, killed: Object) -> None:
    for ended in (LONG, NO_INJECTOR, MODELLED):
        known: set[int] = set()
        for moment in session.observer.moments(ended.key):
            generation = moment.status.get("observedGeneration", 0)
            complete = moment.conditions.get("Complete", {}).get("status") == "True"
            assert complete or generation not in known, f"{ended.key} went back to {moment.reason}"
            known |= {generation} if complete else set()
        assert known, ended.key
