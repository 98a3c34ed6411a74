"""A script instead of a request: the operator counts cycles. The members of the cluster find each other."""

import pytest

from benchmarks import SCRIPTED, UNREADABLE_SCRIPT
from checks import assert_ended, disagreements, outcome
from kube import Object, get
from session import Session

TURN_SECONDS = 600
scripted = pytest.mark.benchmarks(SCRIPTED)
MEMBERS = 2


def measured(session: Session) -> Object:
    session.ended(SCRIPTED.key, TURN_SECONDS)
    trials = session.observer.trials_of(SCRIPTED.key)
    (trial,) = [trial for trial in trials if outcome(trial) == "Measured"]
    return trial


@scripted
def test_cycles_and_their_failed_checks_are_counted(session: Session) -> None:
    status = measured(session)["status"]
    figures, k6 = status["requests"], status["k6"]
    assert figures["successes"] > 100
    assert figures["requests"] == figures["successes"] + figures["errors"]
    assert figures["requestsPerCycle"] == pytest.approx(2, rel=0.02)
    # The script lets every tenth cycle of an agent fail.
    assert figures["errorRate"] == pytest.approx(0.1, abs=0.02)
    assert k6["checks"]["is no tenth"]["failed"] == pytest.approx(figures["errors"], abs=4)
    assert k6["checks"]["was created"]["failed"] == 0
    assert k6["rate"] == SCRIPTED.spec["load"]["rate"]
    assert figures["shortfall"] < 0.05
    assert "fortio" not in status


@scripted
def test_both_members_of_the_cluster_served_requests(session: Session) -> None:
    trial = measured(session)
    pods = trial["status"]["candidatePods"]
    assert len(pods) == MEMBERS
    record, window = session.record(), trial["status"]["window"]
    seconds = [record.pods[uid].used(window["startUnixSeconds"], window["endUnixSeconds"]) for uid in pods]
    assert min(seconds) > 0.2 * max(seconds) > 0, seconds


@scripted
def test_its_figures_agree_with_the_oracle(session: Session) -> None:
    assert disagreements(session, session.record(), [measured(session)]) == []


@scripted
def test_only_the_ledger_is_left(session: Session) -> None:
    measured(session)

    def left() -> list[str]:
        kinds = "deployments,replicasets,services,jobs,pods"
        items = get(kinds, "-n", SCRIPTED.namespace)["items"]
        return [item["metadata"]["name"] for item in items if SCRIPTED.name in item["metadata"]["name"]]

    session.observer.until(lambda: not left(), 60, "the end of the cluster")


@pytest.mark.benchmarks(UNREADABLE_SCRIPT)
def test_a_script_that_cannot_run_is_reported(session: Session) -> None:
    benchmark = session.ended(UNREADABLE_SCRIPT.key, TURN_SECONDS)
    message = assert_ended(benchmark, "Error", "ScriptFailed")
    assert "options set vus, which is the benchmark's to say" in message
