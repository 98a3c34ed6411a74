"""A node runs one benchmark at a time. Namespaces take turns, each in the order in which its benchmarks were created."""

from itertools import combinations, zip_longest

import pytest

from benchmarks import ANSWERS_500, DELETED, KILLED, LONG, NO_DATABASE, QUEUE, Benchmark
from checks import outcome
from evidence import say
from kube import get
from scenarios import OPERATOR_NAMESPACE
from session import LONG_RUN_SECONDS, Session

pytestmark = pytest.mark.benchmarks(*QUEUE)
# From the end of the previous benchmark to the benchmark's own end.
TURN_SECONDS = 600


def test_benchmarks_of_several_namespaces_all_end(session: Session) -> None:
    assert 2 < len({benchmark.namespace for benchmark in QUEUE}) < len(QUEUE)
    measured = (LONG, KILLED, ANSWERS_500)
    for benchmark in measured:
        session.ended(benchmark.key, LONG_RUN_SECONDS if benchmark is LONG else TURN_SECONDS)
        [*others, last] = map(outcome, session.observer.trials_of(benchmark.key))
        assert last == "Measured"
        assert set(others) <= {"Measured", "Void"}


def in_turn(benchmarks: list[Benchmark]) -> list[Benchmark]:
    """The first benchmark of each namespace, then the second of each, and so on."""
    of_namespace: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks:
        of_namespace.setdefault(benchmark.namespace, []).append(benchmark)
    return [benchmark for turn in zip_longest(*of_namespace.values()) for benchmark in turn if benchmark]


def test_namespaces_take_turns(session: Session) -> None:
    def begins() -> list[float]:
        return [
            min((m.at for m in session.observer.moments(b.key) if m.reason not in waiting), default=0.0)
            for b in in_turn(QUEUE)
        ]

    assert in_turn(QUEUE) != QUEUE
    waiting = ("", "Queued", "Waiting", "CleaningUp")
    for benchmark in [b for b in in_turn(QUEUE) if b is not DELETED]:
        session.ended(benchmark.key, TURN_SECONDS)
    assert all(begins())
    assert begins() == sorted(begins())


def test_a_waiting_benchmark_names_the_benchmark_and_the_node(session: Session) -> None:
    messages = {m.message for m in session.observer.moments(NO_DATABASE.key) if m.reason == "Queued"}
    for other in [b for b in QUEUE if b is not NO_DATABASE]:
        said = [text for text in messages if text.startswith(f"waiting for {other.key}: node ")]
        assert said, f"{NO_DATABASE.key} never waited for {other.key}: {messages}"


def test_no_two_attempts_of_the_session_overlap_on_a_node(session: Session) -> None:
    spans = []
    for benchmark in QUEUE:
        for trial in session.observer.trials_of(benchmark.key):
            spec, status = trial["spec"], trial.get("status", {})
            if "idleBefore" in status:
                # A void attempt has no second baseline. Its first baseline must still overlap with no other
                # attempt.
                last = status.get("idleAfter", status["idleBefore"])
                begin, end = status["idleBefore"]["startUnixSeconds"], last["endUnixSeconds"]
                nodes = {spec["measuredNode"], spec["injectorNode"]}
                spans.append((begin, end, trial["metadata"]["name"], nodes))
    # Ten of the long run, three of the run whose operator is killed, and one of the server that fails.
    assert len(spans) >= 14
    ordered = sorted(spans, key=lambda span: span[:3])
    overlapping = [(a, b) for a, b in combinations(ordered, 2) if b[0] < a[1] and a[3] & b[3]]
    assert overlapping == []


def test_no_pods_of_two_benchmarks_ran_on_a_node_at_the_same_time(session: Session) -> None:
    observer = session.observer
    observer.until(lambda: all(span.end for span in observer.spans.values()), 60, "the end of all pods")
    spans = list(observer.spans.values())
    # All but the three whose images can't be pulled or run, and perhaps the one that crashes at once.
    assert len({span.benchmark for span in spans}) >= len(QUEUE) - 4
    assert all(span.node for span in spans)
    overlapping = [
        (a.pod, b.pod, a.node)
        for a, b in combinations(sorted(spans, key=lambda span: span.begin), 2)
        if a.benchmark != b.benchmark and a.node == b.node and b.begin < (a.end or 0)
    ]
    say(f"{len(spans)} pods of benchmarks ran on {len({span.node for span in spans})} nodes in this session")
    assert overlapping == []


def test_at_the_end_all_locks_are_free(session: Session) -> None:
    def locks() -> list[str]:
        leases = get("leases", "-n", OPERATOR_NAMESPACE, "-l", "frugality.dev/lock=node")["items"]
        return [lease["spec"].get("holderIdentity", "") for lease in leases]

    session.observer.until(lambda: not any(locks()), 60, "locks given back")
