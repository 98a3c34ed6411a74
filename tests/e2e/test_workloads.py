"""A candidate of several servers: all of them are measured, and the trial reports each server's part."""

import pytest

import oracle
from benchmarks import BALANCED
from checks import LEAST_TOLERANCE, disagreements, outcome
from kube import Object, get
from session import Session

pytestmark = pytest.mark.benchmarks(BALANCED)
TURN_SECONDS = 600
PODS = 3


def measured(session: Session) -> Object:
    session.ended(BALANCED.key, TURN_SECONDS)
    trials = session.observer.trials_of(BALANCED.key)
    (trial,) = [trial for trial in trials if outcome(trial) == "Measured"]
    return trial


def test_every_request_reaches_a_service(session: Session) -> None:
    status = measured(session)["status"]
    assert status["requests"]["errors"] == 0
    assert status["requests"]["successes"] > 1000
    spans = session.observer.spans
    pods = {uid: spans[uid] for uid in status["candidatePods"]}
    assert len(pods) == PODS
    assert {span.node for span in pods.values()} == {measured(session)["spec"]["measuredNode"]}
    assert set(status["images"]) >= {"server", "backend-service", "injector"}


def test_its_figures_agree_with_the_oracle(session: Session) -> None:
    assert disagreements(session, session.record(), [measured(session)]) == []


def test_each_server_has_its_part(session: Session) -> None:
    status = measured(session)["status"]
    energy = status["energy"]
    front, back = energy["workloads"]
    assert (front["name"], back["name"]) == ("go", "service")
    assert (len(front["pods"]), len(back["pods"])) == (1, PODS - 1)
    assert sorted([*front["pods"], *back["pods"]]) == sorted(status["candidatePods"])
    for part, whole in (("joules", "attributed"), ("cpuSeconds", "cpu")):
        name = {"joules": "candidateJoules", "cpuSeconds": "candidateSeconds"}[part]
        assert front[part] + back[part] == pytest.approx(energy[whole][name], rel=1e-9)
        # The balancer passes all requests on to two services. All three have work.
        assert min(front[part], back[part]) > 0.05 * energy[whole][name]
    # Both services got requests. The balancer alternates between them.
    record = session.record()
    window = status["window"]
    ends = window["startUnixSeconds"], window["endUnixSeconds"]
    counters = [record.pods[uid] for uid in back["pods"]]
    seconds = [counter.used(*ends) for counter in counters]
    allowed = LEAST_TOLERANCE * sum(seconds) + oracle.off_lines(counters, *ends)
    assert sum(seconds) == pytest.approx(back["cpuSeconds"], abs=allowed)
    assert max(seconds) < 1.5 * min(seconds), seconds


def test_only_the_ledger_is_left(session: Session) -> None:
    measured(session)

    def left() -> list[str]:
        kinds = "deployments,replicasets,services,jobs,pods"
        return [item["metadata"]["name"] for item in get(kinds, "-n", BALANCED.namespace)["items"]]

    session.observer.until(lambda: not left(), 60, "the end of its servers")
