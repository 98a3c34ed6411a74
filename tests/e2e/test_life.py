"""A benchmark is suspended and resumed, run again, and deleted after its time."""

import json
from collections.abc import Iterator

import pytest

from benchmarks import AGAIN, CREATED_SUSPENDED, EXPIRES, LIFE, PAUSED, Benchmark
from checks import assert_ended, kstatus
from kube import Object, get, kubectl
from scenarios import OPERATOR_NAMESPACE
from session import Session

SUSPENDED = {"Complete": "False", "Succeeded": "Unknown", "Ready": "False"}
WAITING = ("Waiting", "Queued", "CleaningUp")
AT_WORK = ("StartingDatabase", "Seeding", "Measuring")


@pytest.fixture(scope="module", autouse=True)
def applied(session: Session) -> Iterator[None]:
    """All at once; at the end none is left that others would wait for."""
    for benchmark in LIFE:
        benchmark.apply()
    yield
    kubectl("delete", "fb", "--all", "-n", AGAIN.namespace, "--timeout=60s", timeout=90)


def suspend(benchmark: Benchmark, wish: bool) -> None:
    change = json.dumps({"spec": {"suspend": wish}})
    kubectl("patch", "fb", benchmark.name, "-n", benchmark.namespace, "--type=merge", "-p", change)


def at_rest(session: Session, benchmark: Benchmark) -> Object:
    """The benchmark, once it is suspended and nothing of it is left: neither pods nor a lock."""

    def rests() -> bool:
        pods = [
            p for p in session.observer.pods.values() if p["metadata"]["namespace"] == benchmark.namespace
        ]
        leases = get("leases", "-n", OPERATOR_NAMESPACE, "-l", "frugality.dev/lock=node")["items"]
        holders = [lease["spec"].get("holderIdentity", "") for lease in leases]
        held = [holder for holder in holders if holder.endswith(f" {benchmark.key}")]
        return session.observer.reason(benchmark.key) == "Suspended" and not pods and not held

    session.observer.until(rests, 45, f"{benchmark.key} at rest")
    return get("fb", benchmark.name, "-n", benchmark.namespace)


def test_one_created_suspended_does_not_start_until_it_is_resumed(session: Session) -> None:
    key = CREATED_SUSPENDED.key
    told = at_rest(session, CREATED_SUSPENDED)
    complete = told["status"]["conditions"][0]
    assert "set spec.suspend to false to begin" in complete["message"]
    assert kstatus({c["type"]: c for c in told["status"]["conditions"]}) == SUSPENDED
    assert session.observer.trials_of(key) == []
    suspend(CREATED_SUSPENDED, False)
    session.observer.until(
        lambda: session.observer.reason(key) in (*WAITING, *AT_WORK), 20, f"{key} in the queue"
    )
    suspend(CREATED_SUSPENDED, True)
    at_rest(session, CREATED_SUSPENDED)


def test_one_in_the_queue_or_at_work_gives_up_its_nodes_and_goes_on(session: Session) -> None:
    key = PAUSED.key
    session.observer.until(lambda: session.observer.reason(key) in ("Queued", *AT_WORK), 30, f"{key} in line")
    run = session.observer.benchmarks[key]["status"]["run"]
    suspend(PAUSED, True)
    told = at_rest(session, PAUSED)
    assert told["status"]["run"] == run
    assert "verdict" not in told["status"]
    reasons = {t.get("status", {}).get("reason") for t in session.observer.trials_of(key)}
    assert reasons <= {"Suspended"}
    suspend(PAUSED, False)
    session.observer.until(
        lambda: session.observer.reason(key) in ("Queued", *AT_WORK), 30, f"{key} in line again"
    )
    assert session.observer.benchmarks[key]["status"]["run"] == run
    suspend(PAUSED, True)
    at_rest(session, PAUSED)


def test_the_events_tell_it(session: Session) -> None:
    told = get("events", "-n", PAUSED.namespace)["items"]
    mine = [event for event in told if event["involvedObject"]["name"] == PAUSED.name]
    reasons = [event["reason"] for event in mine]
    assert reasons.count("Suspended") >= 2, reasons
    messages = [event["message"] for event in mine]
    assert any("1 trial" in message and "about" in message for message in messages), messages


def test_an_ended_one_is_deleted_after_its_time(session: Session) -> None:
    def verdict() -> str:
        moments = session.observer.moments(EXPIRES.key)
        return next((m.status["verdict"] for m in moments if m.status.get("verdict")), "")

    assert session.observer.until(verdict, 30, f"the end of {EXPIRES.key}") == "Invalid"
    session.observer.until(lambda: EXPIRES.key not in session.observer.benchmarks, 30, "its deletion")


def test_a_new_run_keeps_the_verdict_of_the_one_before(session: Session) -> None:
    first = session.ended(AGAIN.key, 30)
    assert_ended(first, "Invalid", "ModelledPowerNotAllowed")
    assert "history" not in first["status"]
    kubectl("annotate", "fb", AGAIN.name, "-n", AGAIN.namespace, "frugality.dev/rerun=2")

    def again() -> list[Object]:
        status = session.observer.benchmarks[AGAIN.key]["status"]
        return status.get("history", []) if status["run"] != first["status"]["run"] else []

    [past] = session.observer.until(again, 30, "a verdict in the history")
    complete = first["status"]["conditions"][0]
    assert past == {
        "run": first["status"]["run"],
        "verdict": "Invalid",
        "reason": "ModelledPowerNotAllowed",
        "endedAt": complete["lastTransitionTime"],
        "generation": first["metadata"]["generation"],
    }
