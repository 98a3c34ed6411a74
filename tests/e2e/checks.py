"""Checks that several tests share."""

import attempts
import oracle
from kube import Object, conditions, duration_seconds
from session import Session

RUNNING = {"Complete": "False", "Succeeded": "Unknown", "Ready": "False", "Reconciling": "True"}
PASS = {"Complete": "True", "Succeeded": "True", "Ready": "True"}
REPORTED = {"Complete": "True", "Succeeded": "Unknown", "Ready": "False", "Stalled": "True"}
OTHER_END = {"Complete": "True", "Succeeded": "False", "Ready": "False", "Stalled": "True"}
EXACT = 1e-6

# ---- tolerances of energy and CPU time ----
#
# Each figure is the difference of a counter at the ends of a window. The operator reads the counter twice per second
# and draws a line between two readings. `oracle.possible_errors` says how far the true counter can be from this line.
#
# The oracle's own error is at most 0.4 %, because it has only ten samples per second.
ORACLE_ERROR = 0.004
# Room for a machine that is so busy that samples come late.
LEAST_TOLERANCE = ORACLE_ERROR + 0.006
# A cycle of a script can be shorter than the time between two samples. The oracle may then be off by one at each end.
CYCLES_AT_ENDS = 2
# Kepler's share is quadratic in the use of the CPU. The meter computes it in intervals of h = 0.25 s. If a
# program begins or ends in an interval, the share is off by up to h/4 seconds of full power. The oracle's
# intervals begin at other times. The shortest program here runs for 1.2 s. Both of its ends can be off by
# 2·(h/4)/1.2 = 10 %. The ends of many executions lie all over an interval, and half of this is the average.
SHARE_OF_A_PROGRAM = 0.05
# The same is true of a script's cycles, if an interval has fewer than this.
MANY_CYCLES = 10

# ---- limits of net joules (docs/measurement.md, "Work in the baselines") ----
MAX_IDLE_CPUS = {"candidate": 0.03, "database": 0.1}
# How far the oracle's CPU use in the baselines may be from the operator's at these limits.
NEAR_THE_LIMIT = 0.1
# In runs on the box the detection limit was at most 0.8 % of gross joules. More than this share is visible.
SURELY_ABOVE_ZERO = 0.02
# The product's reasons for no net joules: work of pods, a trial below its own limit or below the run's.
WORK_IN_BASELINES = {whose: f"the {whose}'s pods used " for whose in MAX_IDLE_CPUS}
BELOW_ITS_LIMIT = " cannot be distinguished from 0: "
BELOW_THE_RUNS_LIMIT = ", which follows from all trials "
# The most that a status may hold.
STATUS_BYTES = 32 * 1024


def kstatus(found: dict[str, Object]) -> dict[str, str]:
    return {kind: condition["status"] for kind, condition in found.items()}


def assert_ended(benchmark: Object, verdict: str, reason: str) -> str:
    """Checks verdict, reason, conditions and generation of an ended benchmark. Returns the message."""
    status, found = benchmark["status"], conditions(benchmark)
    assert (status["verdict"], found["Complete"]["reason"]) == (verdict, reason), found["Complete"]["message"]
    assert kstatus(found) == {"Pass": PASS, "Reported": REPORTED}.get(verdict, OTHER_END)
    generation = benchmark["metadata"]["generation"]
    assert status["observedGeneration"] == generation
    assert {c["observedGeneration"] for c in found.values()} == {generation}
    assert {c["reason"] for c in found.values()} == {reason}
    return found["Complete"]["message"]


def assert_no_number(benchmark: Object) -> None:
    """Checks that there is no figure and no winner, and that the columns are blank."""
    status = benchmark["status"]
    figures = (
        "results",
        "comparisons",
        "budgets",
        "winner",
        "provenance",
        "meter",
        "decidingFigure",
        "ledgerDigest",
    )
    assert [name for name in figures if status.get(name)] == []
    columns = ("winner", "ratio", "energy", "rate", "latency", "power")
    assert [name for name in columns if status["columns"].get(name)] == []


def outcome(trial: Object) -> str:
    return trial.get("status", {}).get("outcome", "")


def next_to_oracle(session: Session, record: oracle.Record, trial: Object) -> list[oracle.Deviation]:
    """Every figure of a measured trial, next to the oracle's.

    The pods and windows of the ledger must agree with the observed ones.
    """
    name, status = trial["metadata"]["name"], trial["status"]
    observer = session.observer
    load = observer.fortio.get(name)
    assert load is not None, f"no log of the injector of {name}: {observer.problems}"
    requests = oracle.Requests.of(load)
    benchmark = observer.benchmarks[f"{trial['metadata']['namespace']}/{trial['spec']['benchmark']}"]
    idle_seconds = duration_seconds(benchmark["spec"]["trials"]["idleBaseline"])
    attempt, faults = attempts.seen(trial, observer.spans_now(), requests, idle_seconds)
    assert faults == [], f"{name}: the ledger differs from the observation: {faults}"
    true = oracle.energy_figures(record, session.model, requests, attempt)
    possible = oracle.possible_errors(record, session.model, requests, attempt)
    withheld = status["energy"].get("netWithheld")
    assert net_may_be(record, attempt, true, withheld), f"{name}: {withheld or 'net joules are not withheld'}"
    if withheld is not None:
        true["netJoules"] = true["netJoulesPerRequest"] = None
    return [
        *oracle.compare(status["requests"], oracle.request_figures(requests), EXACT),
        *(
            deviation
            for figure, value in true.items()
            for deviation in oracle.compare(
                status["energy"], {figure: value}, tolerance(load, figure, value, possible[figure])
            )
        ),
    ]


def tolerance(load: Object, figure: str, true: float | None, possible_error: float) -> float:
    """The largest relative deviation of a figure, by the JSON of its load and its possible error at the ends."""
    allowed = LEAST_TOLERANCE + possible_error / abs(true) if true else 0.0
    has_bursts = "executions" in load
    if "cycles" in load:
        count, seconds = load["cycles"]["count"], load["durationSeconds"]
        allowed += CYCLES_AT_ENDS / max(count, 1)
        has_bursts = count * oracle.STEP_SECONDS < MANY_CYCLES * seconds
    return allowed + (SHARE_OF_A_PROGRAM if has_bursts and figure.startswith("attributed.") else 0.0)


def net_may_be(
    record: oracle.Record, attempt: oracle.Attempt, true: oracle.Figures, withheld: str | None
) -> bool:
    """Whether net joules are withheld for a reason that the oracle sees, or reported because it sees none."""
    pods = {"candidate": attempt.candidate, "database": attempt.database}
    used = {
        whose: oracle.idle_cpus(record, uids, attempt) / MAX_IDLE_CPUS[whose] for whose, uids in pods.items()
    }
    for whose, words in WORK_IN_BASELINES.items():
        if withheld is not None and withheld.startswith(words):
            return used[whose] >= 1 - NEAR_THE_LIMIT
    may_count = max(used.values()) <= 1 + NEAR_THE_LIMIT
    if withheld is None:
        return may_count
    # The other reason, a baseline that is too short for the meter, would be wrong in each benchmark here.
    return may_count and BELOW_ITS_LIMIT in withheld and is_near_zero(true["netJoules"], true["nodeJoules"])


def is_near_zero(net_joules: float | None, node_joules: float | None) -> bool:
    """Whether net joules may be below a detection limit."""
    return (net_joules or 0.0) < SURELY_ABOVE_ZERO * (node_joules or 0.0)


def disagreements(session: Session, record: oracle.Record, trials: list[Object]) -> list[str]:
    """The figures of these trials that differ from the oracle's. All figures go to the table at the end.

    An empty list of trials is an error. Otherwise a test without trials would pass.
    """
    assert trials, "there is no measured trial to compare with the oracle"
    wrong = []
    for trial in trials:
        found = next_to_oracle(session, record, trial)
        session.deviations += found
        wrong += [f"{trial['metadata']['name']}: {deviation}" for deviation in found if deviation.is_wrong]
    return wrong
