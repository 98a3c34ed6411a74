"""A benchmark is suspended under load and resumed. Others are created suspended, run again, or expire.

The others are tested during the first one's run, which takes a minute and a quarter.
"""

import json
from collections.abc import Iterator

import pytest

from benchmarks import AGAIN, CREATED_SUSPENDED, EXPIRES, LIFE, PAUSED, Benchmark
from checks import assert_ended, kstatus, outcome
from evidence import UID_LABEL, container
from kube import Object, conditions, get, kubectl, table
from scenarios import OPERATOR_NAMESPACE
from session import Session

# This module applies its own benchmarks.
pytestmark = pytest.mark.benchmarks()
SUSPENDED = {"Complete": "False", "Succeeded": "Unknown", "Ready": "False"}
IN_LINE = ("Waiting", "Queued", "CleaningUp", "Measuring")
# The time until all earlier benchmarks in the queue have ended.
TURN_SECONDS = 600


@pytest.fixture(scope="module", autouse=True)
def applied(session: Session) -> Iterator[None]:
    """Applies all benchmarks at once. Deletes them at the end: no other benchmark may wait for them."""
    for benchmark in LIFE:
        benchmark.apply()
    yield
    kubectl("delete", "fb", "--all", "-n", AGAIN.namespace, "--timeout=60s", timeout=90)


def suspend(benchmark: Benchmark, wish: bool) -> None:
    change = json.dumps({"spec": {"suspend": wish}})
    kubectl("patch", "fb", benchmark.name, "-n", benchmark.namespace, "--type=merge", "-p", change)


def at_rest(session: Session, benchmark: Benchmark) -> Object:
    """The benchmark, once it is suspended and has neither pods nor a lock."""
    uid = get("fb", benchmark.name, "-n", benchmark.namespace)["metadata"]["uid"]

    def rests() -> bool:
        pods = session.observer.pods.values()
        if any(pod["metadata"].get("labels", {}).get(UID_LABEL) == uid for pod in pods):
            return False
        leases = get("leases", "-n", OPERATOR_NAMESPACE, "-l", "frugality.dev/lock=node")["items"]
        holders = [lease["spec"].get("holderIdentity", "") for lease in leases]
        is_held = any(holder.startswith(f"{uid} ") for holder in holders)
        return session.observer.reason(benchmark.key) == "Suspended" and not is_held

    session.observer.until(rests, 45, f"{benchmark.key} at rest")
    return get("fb", benchmark.name, "-n", benchmark.namespace)


def test_a_benchmark_suspended_under_load_releases_its_nodes(session: Session) -> None:
    def loaded() -> bool:
        injectors = session.observer.pods_of(PAUSED.namespace, "injector")
        return any("running" in container(pod, "injector") for pod in injectors)

    session.observer.until(loaded, TURN_SECONDS, f"load on {PAUSED.key}")
    suspend(PAUSED, True)
    resting = at_rest(session, PAUSED)
    assert kstatus(conditions(resting)) == SUSPENDED
    assert "verdict" not in resting["status"]
    [trial] = session.observer.trials_of(PAUSED.key)
    assert (outcome(trial), trial["status"]["reason"]) == ("Void", "Suspended")
    assert not {"requests", "energy"} & trial["status"].keys()
    wide = kubectl("get", "fb", PAUSED.name, "-n", PAUSED.namespace, "-o", "wide").stdout
    [row] = table(wide)
    assert (row["TRIALS"], row["LEFT"][:5]) == ("0/1", "about")
    suspend(PAUSED, False)


def test_a_benchmark_created_suspended_starts_only_when_resumed(session: Session) -> None:
    key = CREATED_SUSPENDED.key
    resting = at_rest(session, CREATED_SUSPENDED)
    assert "set spec.suspend to false to begin" in conditions(resting)["Complete"]["message"]
    assert session.observer.trials_of(key) == []
    suspend(CREATED_SUSPENDED, False)
    session.observer.until(lambda: session.observer.reason(key) in IN_LINE, 20, f"{key} in line")
    suspend(CREATED_SUSPENDED, True)
    at_rest(session, CREATED_SUSPENDED)


def test_an_ended_benchmark_is_deleted_after_its_ttl(session: Session) -> None:
    def verdict() -> str:
        moments = session.observer.moments(EXPIRES.key)
        return next((m.status["verdict"] for m in moments if m.status.get("verdict")), "")

    assert session.observer.until(verdict, 30, f"the end of {EXPIRES.key}") == "Invalid"
    session.observer.until(lambda: EXPIRES.key not in session.observer.benchmarks, 90, "its deletion")


def test_a_new_run_keeps_the_verdict_of_the_one_before(session: Session) -> None:
    first = session.ended(AGAIN.key, 30)
    assert_ended(first, "Invalid", "ModelledPowerNotAllowed")
    assert "history" not in first["status"]
    change = json.dumps({"spec": {"rerun": 2}})
    kubectl("patch", "fb", AGAIN.name, "-n", AGAIN.namespace, "--type=merge", "-p", change)
    # It must not return with the verdict of the previous run.
    kubectl(
        "wait",
        "fb",
        AGAIN.name,
        "-n",
        AGAIN.namespace,
        "--for=condition=Complete",
        "--timeout=30s",
        timeout=45,
    )
    assert get("fb", AGAIN.name, "-n", AGAIN.namespace)["status"]["run"] != first["status"]["run"]

    def again() -> list[Object]:
        status = session.observer.benchmarks[AGAIN.key]["status"]
        return status.get("history", []) if status["run"] != first["status"]["run"] else []

    [past] = session.observer.until(again, 30, "a verdict in the history")
    assert past == {
        "run": first["status"]["run"],
        "verdict": "Invalid",
        "reason": "ModelledPowerNotAllowed",
        "endedAt": conditions(first)["Complete"]["lastTransitionTime"],
        "generation": first["metadata"]["generation"],
    }


def test_the_resumed_benchmark_runs_to_its_end(session: Session) -> None:
    ended = session.ended(PAUSED.key, TURN_SECONDS)
    assert_ended(ended, "Inconclusive", "TooFewBlocks")
    trials = session.observer.trials_of(PAUSED.key)
    assert {trial["spec"]["run"] for trial in trials} == {ended["status"]["run"]}
    assert [trial["spec"]["attempt"] for trial in trials] == list(range(1, len(trials) + 1))
    [*voids, measured] = trials
    assert {outcome(trial) for trial in voids} == {"Void"}
    assert outcome(measured) == "Measured"
    assert measured["status"]["requests"]["errors"] == 0


def test_events_report_the_suspension_and_the_attempts(session: Session) -> None:
    events = get("events", "-n", PAUSED.namespace)["items"]
    mine = [event for event in events if event["involvedObject"]["name"] == PAUSED.name]
    messages = [event["message"] for event in mine]
    # One for the attempt that became void, and one for the state.
    assert [event["reason"] for event in mine].count("Suspended") == 2, messages
    void, measured = "block 1 attempt 1 fortio at c4-r100: Void", " fortio at c4-r100: Measured: "
    for text in (": 1 trial, about ", void, measured):
        assert any(text in message for message in messages), (text, messages)


def test_describe_shows_the_events_in_the_order_in_which_they_happened() -> None:
    events = get("events", "-n", PAUSED.namespace)["items"]
    mine = [event for event in events if event["involvedObject"]["name"] == PAUSED.name]
    mine.sort(key=lambda event: event["eventTime"])
    assert len(mine) > 5
    described = kubectl("describe", "fb", PAUSED.name, "-n", PAUSED.namespace).stdout
    shown = described.rpartition("\nEvents:\n")[2]
    # Two events may have the same message.
    place = 0
    for event in mine:
        message = event["message"].splitlines()[0]
        place = shown.find(message, place)
        assert place >= 0, (message, shown)
        place += len(message)
