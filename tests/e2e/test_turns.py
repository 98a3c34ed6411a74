"""One benchmark at a time in the whole cluster."""

from itertools import combinations

from benchmarks import DELETED, QUEUE
from evidence import say
from session import Session


def test_first_come_first_served(session: Session) -> None:
    def begins() -> list[float]:
        return [
            min((m.at for m in session.observer.moments(b.key) if m.reason not in waiting), default=0.0)
            for b in QUEUE
        ]

    waiting = ("", "Queued", "Waiting", "CleaningUp")
    for benchmark in [b for b in QUEUE if b is not DELETED]:
        session.ended(benchmark.key, 600)
    assert all(begins())
    assert begins() == sorted(begins())


def test_no_two_attempts_of_the_session_overlap(session: Session) -> None:
    spans = []
    for benchmark in QUEUE:
        for trial in session.observer.trials_of(benchmark.key):
            status = trial.get("status", {})
            if "idleBefore" in status:
                # A void attempt has no second baseline; its first one is in nobody else's span all the same.
                last = status.get("idleAfter", status["idleBefore"])
                begin, end = status["idleBefore"]["startUnixSeconds"], last["endUnixSeconds"]
                spans.append((begin, end, trial["metadata"]["name"]))
    assert len(spans) >= 12
    assert [(a, b) for a, b in combinations(sorted(spans), 2) if b[0] < a[1]] == []


def test_no_pods_of_two_benchmarks_ran_at_the_same_time(session: Session) -> None:
    observer = session.observer
    observer.until(lambda: all(span.end for span in observer.spans.values()), 60, "the end of all pods")
    spans = list(observer.spans.values())
    assert len({span.benchmark for span in spans}) >= 4
    overlapping = [
        (a.pod, b.pod)
        for a, b in combinations(sorted(spans, key=lambda span: span.begin), 2)
        if a.benchmark != b.benchmark and b.begin < (a.end or 0)
    ]
    say(f"{len(spans)} pods of benchmarks ran in this session")
    assert overlapping == []
