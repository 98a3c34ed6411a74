"""A node works for one benchmark at a time, whatever its namespace; all get their turn, by age."""

from itertools import combinations

from benchmarks import DELETED, QUEUE, TURNS
from checks import assert_ended, outcome
from evidence import say
from kube import get
from scenarios import OPERATOR_NAMESPACE
from session import Session

# From the queue before them to their own end: a minute each.
TURNS_SECONDS = 600


def test_three_benchmarks_in_two_namespaces_all_end(session: Session) -> None:
    assert len(TURNS) == 3
    assert len({benchmark.namespace for benchmark in TURNS}) == 2
    for benchmark in TURNS:
        ended = session.ended(benchmark.key, TURNS_SECONDS)
        assert_ended(ended, "Inconclusive", "TooFewBlocks")
        [*voids, last] = session.observer.trials_of(benchmark.key)
        assert outcome(last) == "Measured"
        assert {outcome(trial) for trial in voids} <= {"Void"}


def test_first_come_first_served(session: Session) -> None:
    def begins() -> list[float]:
        return [
            min((m.at for m in session.observer.moments(b.key) if m.reason not in waiting), default=0.0)
            for b in QUEUE
        ]

    waiting = ("", "Queued", "Waiting", "CleaningUp")
    for benchmark in [b for b in QUEUE if b is not DELETED]:
        session.ended(benchmark.key, TURNS_SECONDS)
    assert all(begins())
    assert begins() == sorted(begins())


def test_who_waits_says_for_whom_and_for_which_node(session: Session) -> None:
    first, *others = TURNS
    for benchmark in others:
        messages = {m.message for m in session.observer.moments(benchmark.key) if m.reason == "Queued"}
        said = [text for text in messages if text.startswith(f"waits for {first.key}: node ")]
        assert said, f"{benchmark.key} never waited for {first.key}: {messages}"


def test_no_two_attempts_of_the_session_overlap_on_a_node(session: Session) -> None:
    spans = []
    for benchmark in QUEUE:
        for trial in session.observer.trials_of(benchmark.key):
            spec, status = trial["spec"], trial.get("status", {})
            if "idleBefore" in status:
                # A void attempt has no second baseline; its first one is in nobody else's span all the same.
                last = status.get("idleAfter", status["idleBefore"])
                begin, end = status["idleBefore"]["startUnixSeconds"], last["endUnixSeconds"]
                nodes = {spec["measuredNode"], spec["injectorNode"]}
                spans.append((begin, end, trial["metadata"]["name"], nodes))
    assert len(spans) >= 12 + len(TURNS)
    ordered = sorted(spans, key=lambda span: span[:3])
    overlapping = [(a, b) for a, b in combinations(ordered, 2) if b[0] < a[1] and a[3] & b[3]]
    assert overlapping == []


def test_no_pods_of_two_benchmarks_ran_on_a_node_at_the_same_time(session: Session) -> None:
    observer = session.observer
    observer.until(lambda: all(span.end for span in observer.spans.values()), 60, "the end of all pods")
    spans = list(observer.spans.values())
    assert len({span.benchmark for span in spans}) >= 4 + len(TURNS)
    assert all(span.node for span in spans)
    overlapping = [
        (a.pod, b.pod, a.node)
        for a, b in combinations(sorted(spans, key=lambda span: span.begin), 2)
        if a.benchmark != b.benchmark and a.node == b.node and b.begin < (a.end or 0)
    ]
    say(f"{len(spans)} pods of benchmarks ran on {len({span.node for span in spans})} nodes in this session")
    assert overlapping == []


def test_each_node_has_a_lock_and_at_the_end_all_are_free(session: Session) -> None:
    def locks() -> dict[str, str]:
        leases = get("leases", "-n", OPERATOR_NAMESPACE, "-l", "frugality.dev/lock=node")["items"]
        return {lease["metadata"]["name"]: lease["spec"].get("holderIdentity", "") for lease in leases}

    session.observer.until(lambda: not any(locks().values()), 60, "locks given back")
    nodes = {span.node for span in session.observer.spans.values()}
    assert len(locks()) == len(nodes)
    for node in nodes:
        assert any(name.startswith(f"frugality-node-{node}-") for name in locks()), node
