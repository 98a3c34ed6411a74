"""A database that the operator runs itself is measured like a database of CloudNativePG.

Only the ledger is left of it, although the operator is killed six times during the run.
"""

import pytest

from benchmarks import KILLED as STANDALONE
from checks import disagreements, outcome
from evidence import PodSpan
from kube import Object, get
from session import Session

pytestmark = pytest.mark.benchmarks(STANDALONE)
TURN_SECONDS = 600


def measured(session: Session) -> Object:
    session.ended(STANDALONE.key, TURN_SECONDS)
    trials = session.observer.trials_of(STANDALONE.key)
    (trial,) = [trial for trial in trials if outcome(trial) == "Measured"]
    return trial


def databases(session: Session) -> dict[str, PodSpan]:
    """Pods of the database by their UID."""
    spans = session.observer.spans.items()
    return {
        uid: span
        for uid, span in spans
        if span.role == "database" and span.pod.startswith(f"{STANDALONE.namespace}/")
    }


def test_the_database_is_one_measured_pod(session: Session) -> None:
    status = measured(session)["status"]
    ((uid, span),) = databases(session).items()
    assert status["databasePods"] == [uid]
    assert span.node == measured(session)["spec"]["measuredNode"]
    assert status["database"]["rows"] == STANDALONE.spec["database"]["seed"]["contacts"]
    assert status["requests"]["errors"] == 0
    assert status["transactionsPerRequest"] == pytest.approx(1.0, abs=0.02)
    assert status["energy"]["attributed"]["databaseJoules"] > 0


def test_its_figures_agree_with_the_oracle(session: Session) -> None:
    assert disagreements(session, session.record(), [measured(session)]) == []


def test_only_the_ledger_is_left(session: Session) -> None:
    measured(session)
    kinds = "deployments,replicasets,services,jobs,pods,secrets,persistentvolumeclaims"

    def left() -> list[str]:
        return [item["metadata"]["name"] for item in get(kinds, "-n", STANDALONE.namespace)["items"]]

    session.observer.until(lambda: not left(), 60, "the end of the database and its login")
    assert get("fbt", "-n", STANDALONE.namespace)["items"]
