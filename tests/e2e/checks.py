"""Questions that several tests ask."""

import oracle
from kube import Object, conditions
from session import Session

RUNNING = {"Complete": "False", "Succeeded": "Unknown", "Ready": "False", "Reconciling": "True"}
PASS = {"Complete": "True", "Succeeded": "True", "Ready": "True"}
REPORTED = {"Complete": "True", "Succeeded": "Unknown", "Ready": "False", "Stalled": "True"}
OTHER_END = {"Complete": "True", "Succeeded": "False", "Ready": "False", "Stalled": "True"}
EXACT = 1e-6
WITHIN_ONE_PERCENT = 0.01
# However uncertain a trial says that it is: with hundreds of connections the load pauses at the window's ends.
WITHIN_TWO_PERCENT = 0.02
# Kepler's share is quadratic in the use of the CPU, and so depends on where the meter's intervals fall in that of a
# program that begins and ends every few seconds. The oracle's are half as long.
SHARE_OF_A_PROGRAM = 0.05
# The most that a status may hold.
STATUS_BYTES = 32 * 1024


def kstatus(found: dict[str, Object]) -> dict[str, str]:
    return {kind: condition["status"] for kind, condition in found.items()}


def assert_ended(benchmark: Object, verdict: str, reason: str) -> str:
    """Verdict, reason, conditions and generation of an ended benchmark; returns the message."""
    status, found = benchmark["status"], conditions(benchmark)
    assert (status["verdict"], found["Complete"]["reason"]) == (verdict, reason), found["Complete"]["message"]
    assert kstatus(found) == {"Pass": PASS, "Reported": REPORTED}.get(verdict, OTHER_END)
    generation = benchmark["metadata"]["generation"]
    assert status["observedGeneration"] == generation
    assert {c["observedGeneration"] for c in found.values()} == {generation}
    assert {c["reason"] for c in found.values()} == {reason}
    return found["Complete"]["message"]


def assert_no_number(benchmark: Object) -> None:
    """Neither a figure nor a winner, and blank columns."""
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


def beside_oracle(session: Session, record: oracle.Record, trial: Object) -> list[oracle.Deviation]:
    """Every figure of a measured trial beside the oracle's."""
    name, status = trial["metadata"]["name"], trial["status"]
    fortio = session.observer.fortio.get(name)
    assert fortio is not None, f"no log of the injector of {name}: {session.observer.problems}"
    requests = oracle.Requests.of(fortio)
    true = oracle.energy_figures(record, session.model, requests, status)
    if "netWithheld" in status["energy"]:
        true["netJoules"] = true["netJoulesPerRequest"] = None
    return [
        *oracle.compare(status["requests"], oracle.request_figures(requests), EXACT),
        *(
            deviation
            for figure, value in true.items()
            for deviation in oracle.compare(status["energy"], {figure: value}, tolerance(status, figure))
        ),
    ]


def tolerance(status: Object, figure: str) -> float:
    if "batch" in status and figure.startswith("attributed."):
        return SHARE_OF_A_PROGRAM
    if "batch" in status and figure.startswith("cpu."):
        # A window begins with a program's start, and the meter reads twice a second.
        return WITHIN_TWO_PERCENT
    return max(WITHIN_ONE_PERCENT, min(what_the_ends_cost(status), WITHIN_TWO_PERCENT))


def what_the_ends_cost(status: Object) -> float:
    """Twice the standard uncertainty that the trial itself states, over what the load took above idle."""
    energy, window = status["energy"], status["window"]
    seconds = window["endUnixSeconds"] - window["startUnixSeconds"]
    of_node = energy["nodeJoules"]
    of_load = of_node - seconds * (energy.get("idleBeforeWatts", 0) + energy.get("idleAfterWatts", 0)) / 2
    return 2 * energy.get("nodeJoulesRelativeUncertainty", 0) * of_node / of_load if of_load > 0 else 0.0


def disagreements(session: Session, record: oracle.Record, trials: list[Object]) -> list[str]:
    """The figures of these trials that are not the oracle's; all are kept for the table at the end."""
    wrong = []
    for trial in trials:
        found = beside_oracle(session, record, trial)
        session.deviations += found
        wrong += [f"{trial['metadata']['name']}: {deviation}" for deviation in found if deviation.is_wrong]
    return wrong
