"""An attempt as the observer saw it: pods by the API server, windows by readiness and the injector's log.

The ledger must agree. Only then the oracle computes figures, from the observed pods and windows.
"""

from collections.abc import Mapping, Sequence

import oracle
from evidence import PodSpan
from kube import Object

# By docs/measurement.md ("One attempt"): the first baseline begins 2 s after readiness.
READY_SECONDS = 2.0
# The injector is asked for a tail of load after the window. Both baselines settle: the first one after the check
# of the database, the second one after the tail. Both lengths depend on the meter. The box's own samples four
# times per second.
SHORTEST_TAIL_SECONDS, SHORTEST_SETTLE_SECONDS = 1.15, 1.75
LONGEST_SETTLE_SECONDS = 3.0
# The operator sees the end of the check this late at most.
SEEN_SECONDS = 3.0
# The API server's times are whole seconds, rounded down.
WHOLE_SECOND = 1.0
# Meter and injector are on one machine and have one clock. The injector found differences below 0.1 ms.
SAME_TIME_SECONDS = 0.01
# The most that a node may cool before its baseline.
COOLING_SECONDS = 60.0


def seen(
    trial: Object, spans: Mapping[str, PodSpan], requests: oracle.Requests, idle_seconds: float
) -> tuple[oracle.Attempt, list[str]]:
    """A measured attempt as it was seen, and where the ledger differs from this."""
    name, spec, status = trial["metadata"]["name"], trial["spec"], trial["status"]
    mine = {uid: span for uid, span in spans.items() if span.trial == name}
    candidate = {uid: span for uid, span in mine.items() if span.role == "candidate"}
    # The attempts of a run share its database. The pods that ran during the window count.
    database = {
        uid: span
        for uid, span in spans.items()
        if span.role == "database" and span.run == spec["run"] and _ran(span, requests.start, requests.end)
    }
    checks = [span for span in mine.values() if span.role == "prepare"]
    injectors = [span for span in mine.values() if span.role == "injector"]
    assert len(injectors) == 1, f"{name}: {len(injectors)} pods of the injector were seen"
    (injector,) = injectors
    measured = [*candidate.values(), *database.values()]
    idle_before, idle_after = (_window(status[key]) for key in ("idleBefore", "idleAfter"))
    cools = "idleBeforeCelsius" in status["energy"].get("conditions", {})
    faults = [
        *_different("candidatePods", status.get("candidatePods", []), sorted(candidate)),
        *_different("databasePods", status.get("databasePods", []), sorted(database)),
        *_different("measuredNode", spec["measuredNode"], ", ".join({span.node for span in measured})),
        *_different("injectorNode", spec["injectorNode"], injector.node),
        *_away("window", _window(status["window"]), oracle.Window(requests.start, requests.end)),
        *_before(idle_before, measured, checks, injector, idle_seconds, cools),
        *_after(idle_after, requests, injector, idle_seconds),
    ]
    for span in candidate.values():
        if not _ran(span, idle_before.start, idle_after.end):
            faults.append(f"{span.pod} did not run from the first baseline to the end of the second")
    return oracle.Attempt(tuple(candidate), tuple(database), idle_before, idle_after), faults


def _window(window: Object) -> oracle.Window:
    return oracle.Window(window["startUnixSeconds"], window["endUnixSeconds"])


def _ran(span: PodSpan, start: float, end: float) -> bool:
    return span.begin <= start and (span.end is None or span.end >= end)


def _different(field: str, reported: object, observed: object) -> list[str]:
    return [] if reported == observed else [f"{field}: the ledger has {reported}, seen: {observed}"]


def _away(field: str, reported: oracle.Window, observed: oracle.Window) -> list[str]:
    off = max(abs(reported.start - observed.start), abs(reported.end - observed.end))
    return [] if off <= SAME_TIME_SECONDS else [f"{field}: {off:.3f} s off, {reported} instead of {observed}"]


def _before(
    reported: oracle.Window,
    pods: Sequence[PodSpan],
    checks: Sequence[PodSpan],
    injector: PodSpan,
    idle_seconds: float,
    cools: bool,
) -> list[str]:
    """The baseline before the load.

    It begins 2 s after the last pod became ready. If the check of the database ended later, it settles
    after the operator saw that. The observer knows that time to a few seconds. The ledger's time must lie in
    this interval, and the oracle then uses it.
    """
    ready = [max((at for at in pod.ready if at <= injector.created), default=None) for pod in pods]
    known = [at for at in ready if at is not None]
    if not known or len(known) < len(ready):
        return [f"idleBefore: {len(known)} of {len(ready)} pods were seen ready before the load"]
    start = max(known) + READY_SECONDS
    ends = [check.end for check in checks if check.end is not None]
    if len(ends) < len(checks):
        return ["idleBefore: the end of the database's check was not seen"]
    for end in ends:
        latest = end + SEEN_SECONDS + LONGEST_SETTLE_SECONDS
        earliest = max(start, end - WHOLE_SECOND + SHORTEST_SETTLE_SECONDS)
        if earliest <= reported.start <= latest:
            start = reported.start
    if cools and start <= reported.start <= start + COOLING_SECONDS:
        # The observer sees no temperatures. It knows only that the node may cool before the baseline.
        start = reported.start
    faults = _away("idleBefore", reported, oracle.Window(start, start + idle_seconds))
    if reported.end > injector.created + WHOLE_SECOND:
        late = f"{reported.end:.3f}, after the injector's creation at {injector.created:.0f}"
        faults.append(f"idleBefore: ends at {late}")
    return faults


def _after(
    reported: oracle.Window, requests: oracle.Requests, injector: PodSpan, idle_seconds: float
) -> list[str]:
    """The baseline after the load.

    The log shows the end of the window, but not of the tail. The tail may take a little longer. Then
    the injector ends, and its kubelet records the second. The baseline's start is therefore known to one or
    two seconds. The ledger's time must lie in this interval, and the oracle then uses it.
    """
    if injector.injector_ended is None:
        return ["idleAfter: the end of the injector was not seen"]
    earliest = requests.end + SHORTEST_TAIL_SECONDS + SHORTEST_SETTLE_SECONDS - SAME_TIME_SECONDS
    latest = injector.injector_ended + WHOLE_SECOND + LONGEST_SETTLE_SECONDS
    faults = []
    if not earliest <= reported.start <= latest:
        faults.append(f"idleAfter: begins at {reported.start:.3f}, not from {earliest:.3f} to {latest:.3f}")
    if abs(reported.seconds - idle_seconds) > SAME_TIME_SECONDS:
        faults.append(f"idleAfter: lasts {reported.seconds:.3f} s instead of {idle_seconds:g} s")
    return faults
