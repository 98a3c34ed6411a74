"""The main example, rust-vs-python in its short form, to its verdict."""

import json
import math
import re
from collections.abc import Callable
from typing import Any

import pytest

import oracle
from benchmarks import LONG
from checks import (
    BELOW_THE_RUNS_LIMIT,
    EXACT,
    PASS,
    RUNNING,
    assert_ended,
    disagreements,
    is_near_zero,
    kstatus,
    outcome,
)
from kube import Object, get, kubectl, table
from session import Session

pytestmark = pytest.mark.benchmarks(LONG)
NUMBER = r"\d[\d.]*(e-?\d+)?"
# The range over all boards, because the power is modelled.
RANGE = rf"{NUMBER} \[{NUMBER}–{NUMBER}\]"


def counted(session: Session) -> list[Object]:
    """The trials that count: the newest attempt at each block."""
    trials = session.observer.trials_of(LONG.key)
    newest: dict[int, int] = {}
    for trial in trials:
        block, attempt = trial["spec"]["block"], trial["spec"]["attempt"]
        newest[block] = max(newest.get(block, 0), attempt)
    return [t for t in trials if t["spec"]["attempt"] == newest[t["spec"]["block"]]]


def test_rust_wins_within_its_budgets(session: Session, long_run: Object) -> None:
    message = assert_ended(long_run, "Pass", "BudgetsMet")
    assert message.startswith("All 3 budgets met for rust: "), message
    assert "modelled" in message
    status = long_run["status"]
    assert status["winner"] == "rust"
    assert status["progress"]["trialsDone"] == status["progress"]["trialsPlanned"] == 10
    assert [b["outcome"] for b in status["budgets"]] == ["Met", "Met", "Met"]
    assert (status["measuredNode"], status["injectorNode"], status["sharedNode"]) == (
        "pi-1",
        "injector-1",
        False,
    )
    assert (status["provenance"], status["decidingFigure"]) == ("Modelled", "Gross")
    results = [(result["point"], result["candidate"], result["trials"]) for result in status["results"]]
    assert results == [("c4-max", "rust", 5), ("c4-max", "python", 5)]


def test_conditions_follow_kstatus_all_the_time(session: Session, long_run: Object) -> None:
    seen = [kstatus(moment.conditions) for moment in session.observer.moments(LONG.key) if moment.conditions]
    assert len(seen) > 20
    assert [s for s in seen if s not in (RUNNING, PASS)] == []
    assert seen.index(PASS) == seen.count(RUNNING)


def test_nothing_is_shown_before_the_end(session: Session, long_run: Object) -> None:
    running = [m.status for m in session.observer.moments(LONG.key) if kstatus(m.conditions) == RUNNING]
    assert len(running) > 20
    shown = [s for s in running if s.get("results") or s.get("verdict") or s.get("winner")]
    assert shown == []


def test_get_fb_shows_the_result_in_one_row(long_run: Object) -> None:
    (row,) = table(kubectl("get", "fb", "-n", LONG.namespace).stdout)
    columns = {
        "NAME": "rust-vs-python",
        "VERDICT": "Pass",
        "WINNER": "rust",
        "RATIO": RANGE,
        # The accuracy of the box's fictitious board is unknown.
        "ENERGY/REQ": rf"~{NUMBER} [mµ]J gross",
        "REQ/S": rf"{NUMBER}k?",
        "MS/REQ": NUMBER,
        "POWER": "modelled",
        "TRIALS": "10/10",
        "AGE": r"\w+",
    }
    assert list(row) == list(columns)
    assert {name: cell for name, cell in row.items() if not re.fullmatch(columns[name], cell)} == {}


def test_get_fbt_shows_one_row_per_attempt(session: Session, long_run: Object) -> None:
    rows = table(kubectl("get", "fbt", "-n", LONG.namespace).stdout)
    rows = [row for row in rows if row["OUTCOME"] == "Measured"]
    columns = {
        "NAME": rf"rust-vs-python-{long_run['status']['run']}-b0[1-5]-(rust|python)-\d+",
        "OUTCOME": "Measured",
        "REASON": "Measured",
        "GROSS/REQ": rf"~{NUMBER} [mµ]J",
        "REQ/S": rf"{NUMBER}k?",
        "MS/REQ": NUMBER,
        "AGE": r"\w+",
    }
    assert len(rows) >= 10
    assert list(rows[0]) == list(columns)
    for row in rows:
        assert {name: cell for name, cell in row.items() if not re.fullmatch(columns[name], cell)} == {}


def test_each_block_has_one_trial_of_each_candidate_in_a_changing_order(
    session: Session, long_run: Object
) -> None:
    blocks: dict[int, list[str]] = {}
    for trial in counted(session):
        assert outcome(trial) == "Measured"
        blocks.setdefault(trial["spec"]["block"], []).append(trial["spec"]["candidate"])
    assert sorted(blocks) == [1, 2, 3, 4, 5]
    assert all(sorted(order) == ["python", "rust"] for order in blocks.values())
    assert {order[0] for order in blocks.values()} == {"python", "rust"}


def test_every_trial_had_fresh_pods_and_the_same_rows(session: Session, long_run: Object) -> None:
    trials = counted(session)
    pods = [pod for trial in trials for pod in trial["status"]["candidatePods"]]
    assert len(pods) == len(set(pods)) == 10
    assert {tuple(trial["status"]["databasePods"]) for trial in trials} == {
        tuple(trials[0]["status"]["databasePods"])
    }
    assert {trial["status"]["database"]["rows"] for trial in trials} == {10_000}
    assert len({trial["status"]["database"]["digest"] for trial in trials}) == 1
    # A contact is one query, in one transaction.
    asked = [trial["status"]["transactionsPerRequest"] for trial in trials]
    assert asked == pytest.approx([1.0] * 10, abs=0.02)


def test_every_trials_figures_agree_with_fortio_and_the_kernel(session: Session, long_run: Object) -> None:
    record = session.record()
    measured = [trial for trial in session.observer.trials_of(LONG.key) if outcome(trial) == "Measured"]
    assert len(measured) >= 10
    assert disagreements(session, record, measured) == []
    # A withheld figure is not compared. Therefore at least one trial must have it.
    assert any("netWithheld" not in trial["status"]["energy"] for trial in measured)


FIGURES = {
    "requestsPerSecond": lambda s: s["requests"]["requestsPerSecond"],
    "millisecondsPerRequest": lambda s: s["requests"]["msPerRequest"],
    "grossJoulesPerRequest": lambda s: s["energy"]["grossJoulesPerRequest"],
    "netJoulesPerRequest": lambda s: s["energy"].get("netJoulesPerRequest"),
    "attributedJoulesPerRequest": lambda s: s["energy"]["attributed"]["candidateAndDatabaseJoulesPerRequest"],
    "cpuMillisecondsPerRequest": lambda s: 1000 * s["energy"]["cpu"]["candidateAndDatabaseSecondsPerRequest"],
}


def test_each_measured_attempt_has_its_course(session: Session, long_run: Object) -> None:
    traces = {trace["metadata"]["name"]: trace for trace in get("fbtr", "-n", LONG.namespace)["items"]}
    for trial in counted(session):
        status = trial["status"]
        trace = traces[trial["metadata"]["name"]]
        assert trace["metadata"]["ownerReferences"][0]["uid"] == trial["metadata"]["uid"]
        assert trace["spec"]["provenance"] == status["energy"]["provenance"] == "Modelled"
        phases = {phase["phase"]: phase for phase in trace["spec"]["phases"]}
        assert list(phases) == ["IdleBefore", "WarmUp", "Window", "Tail", "IdleAfter"]
        assert sum(phase["points"] for phase in phases.values()) <= 100
        window = phases["Window"]
        assert {name: window[name] for name in status["window"]} == status["window"]
        # The ledger has seven digits, and the course has whole millijoules.
        assert sum(window["nodeMillijoules"]) / 1000 == pytest.approx(
            status["energy"]["nodeJoules"], rel=1e-6, abs=0.001
        )
        slices, requests = trace["spec"]["slices"], status["requests"]
        assert len(slices["successes"]) == 32
        assert sum(slices["successes"]) == requests["successes"]
        assert sum(slices["errors"]) == requests["errors"]
        window_seconds = status["window"]["endUnixSeconds"] - status["window"]["startUnixSeconds"]
        assert 32 * slices["sliceSeconds"] == pytest.approx(window_seconds, rel=0.05)
        sums = zip(slices["successes"], slices["meanNanoseconds"], strict=True)
        milliseconds = sum(count * (mean or 0) for count, mean in sums) / 1e6
        assert milliseconds / requests["successes"] == pytest.approx(requests["msPerRequest"], rel=1e-4)
        assert len(json.dumps(trace["spec"], separators=(",", ":"))) < 7000


def statuses(session: Session, candidate: str) -> list[Object]:
    trials = [t for t in counted(session) if t["spec"]["candidate"] == candidate]
    return [t["status"] for t in sorted(trials, key=lambda t: t["spec"]["block"])]


def figures(session: Session, candidate: str, name: str) -> list[Any]:
    return [FIGURES[name](status) for status in statuses(session, candidate)]


@pytest.mark.parametrize("candidate", ["rust", "python"])
@pytest.mark.parametrize("name", FIGURES)
def test_summary_is_the_geometric_mean_with_its_t_interval(
    session: Session, long_run: Object, candidate: str, name: str
) -> None:
    result = next(r for r in long_run["status"]["results"] if r["candidate"] == candidate)
    values = figures(session, candidate, name)
    if name == "netJoulesPerRequest" and (None in values or name not in result):
        assert name not in result
        pytest.skip(f"{candidate}: {why_no_net(session, candidate, result)}")
    # A copy, because other tests use the status too.
    bounds = dict(result[name])
    expanded = dict(bounds.pop("expanded", {}))
    exact = oracle.geometric(values)
    if name == "cpuMillisecondsPerRequest":
        # Its only interval includes the edge uncertainty.
        ends = max(share_of_ends(s, name) for s in statuses(session, candidate))
        assert bounds == pytest.approx(for_correlated(exact, bounds, ends), rel=EXACT)
        assert not expanded
        return
    exact = for_correlated(exact, bounds)
    assert bounds == pytest.approx(exact, rel=EXACT)
    assert bool(expanded) == name.endswith("JoulesPerRequest")
    if expanded:
        assert expanded.pop("coversMeter") is False
        assert expanded.pop("repeatabilityOnly") is True
        assert expanded == pytest.approx(widened(session, candidate, name, exact), rel=EXACT)


def why_no_net(session: Session, candidate: str, result: Object) -> str:
    """The reason for no net joules. It must be a trial's own, or a trial's joules must be near zero."""
    (reason,) = (text for text in result.get("withheld", []) if text.startswith("net joules "))
    energies = [status["energy"] for status in statuses(session, candidate)]
    if BELOW_THE_RUNS_LIMIT in reason:
        assert any(is_near_zero(it["netJoules"], it["nodeJoules"]) for it in energies if "netJoules" in it)
    else:
        # `disagreements` compares the reason of each trial with the oracle.
        assert any(it["netWithheld"] in reason for it in energies if "netWithheld" in it), reason
    return reason


def test_net_joules_are_reported_for_at_least_one_candidate(long_run: Object) -> None:
    """Net joules that are withheld for every candidate would leave the figure untested."""
    reported = [r["candidate"] for r in long_run["status"]["results"] if "netJoulesPerRequest" in r]
    assert reported, [r.get("withheld") for r in long_run["status"]["results"]]


def for_correlated(
    exact: dict[str, float], reported: dict[str, float], ends: float = 0.0
) -> dict[str, float]:
    """The interval with the edge uncertainty, or the reported one if correlated trials explain it.

    Independent trials look correlated in one run of ten. Correlation makes the t-interval of five trials at
    most 9.3 times as wide. The tracer's oracle computes these intervals exactly.
    """
    half, found = (math.log(it["upper"] / it["value"]) for it in (exact, reported))
    expected = wider(exact, ends)
    if reported["upper"] <= expected["upper"] * (1 + EXACT):
        return expected
    assert found < math.hypot(9.4 * half, 2 * ends), (exact, reported)
    return exact | {"lower": exact["value"] / math.exp(found), "upper": exact["value"] * math.exp(found)}


def wider(exact: dict[str, float], ends: float) -> dict[str, float]:
    """An interval with the edge uncertainty, at a coverage factor of 2."""
    half = math.hypot(math.log(exact["upper"] / exact["value"]), 2 * ends)
    return exact | {"lower": exact["value"] / math.exp(half), "upper": exact["value"] * math.exp(half)}


def widened(session: Session, candidate: str, name: str, exact: dict[str, float]) -> dict[str, float]:
    """The bounds with the edge uncertainty, from the exact figure. The reported figure is rounded."""
    interval = wider(exact, max(share_of_ends(s, name) for s in statuses(session, candidate)))
    return {bound: interval[bound] for bound in ("lower", "upper")}


def share_of_ends(status: Object, name: str) -> float:
    """The edge uncertainty as a share of a figure in joules. For net joules it includes drift between the baselines."""
    energy = status["energy"]
    joules = FIGURES[name](status) * status["requests"]["successes"]
    if name.startswith("net"):
        ends = energy["nodeJoulesRelativeUncertainty"] * energy["nodeJoules"]
        return math.hypot(ends, energy.get("netDriftJoules", 0)) / joules
    if name.startswith("attributed"):
        joules = energy.get("netJoules", joules)
    if name.startswith("cpu"):
        joules = energy.get("netJoules", energy["nodeJoules"])
    return energy["nodeJoulesRelativeUncertainty"] * energy["nodeJoules"] / joules


def test_summary_reports_errors_and_memory(session: Session, long_run: Object) -> None:
    for result in long_run["status"]["results"]:
        mine = [t["status"] for t in counted(session) if t["spec"]["candidate"] == result["candidate"]]
        errors = oracle.arithmetic([s["requests"]["errorRate"] for s in mine])
        assert result["errorRatio"]["value"] == pytest.approx(errors["value"], rel=EXACT)
        peak = max(s["energy"]["candidatePeakWorkingSetBytes"] for s in mine)
        assert result["peakMemoryBytes"] == peak > 1_000_000


def test_comparison_is_paired_by_block(session: Session, long_run: Object) -> None:
    rust, python = (figures(session, name, "grossJoulesPerRequest") for name in ("rust", "python"))
    comparisons = {(c["candidate"], c["against"]): c for c in long_run["status"]["comparisons"]}
    # Only the winner's comparison is shown. The other one is its inverse.
    assert set(comparisons) == {("rust", "python")}
    ratio = oracle.paired(rust, python)
    comparison = comparisons["rust", "python"]
    # A copy, because other tests use the status too.
    own = dict(comparison["ratio"])
    decides = own.pop("expanded")
    assert own == pytest.approx(ratio, rel=EXACT)
    # On any board the ratio lies between the ratio of times and the ratio of the node's CPU times.
    extremes = {
        "idleOnly": oracle.paired(*(per_request(session, name, window) for name in ("rust", "python"))),
        "cpuOnly": oracle.paired(*(per_request(session, name, node_cpu) for name in ("rust", "python"))),
    }
    for name, extreme in extremes.items():
        assert comparison["boards"][name] == pytest.approx(extreme, rel=EXACT), name
    # The status rounds to seven digits.
    assert decides["upper"] >= max(it["upper"] for it in extremes.values()) * (1 - 1e-6)
    assert decides["lower"] <= min(it["lower"] for it in extremes.values()) * (1 + 1e-6)
    assert decides["upper"] < 1
    assert comparison["separated"]
    assert comparison["board"] == "EveryBoard"


def per_request(session: Session, candidate: str, amount: Callable[[Object], float]) -> list[float]:
    return [amount(s) / s["requests"]["successes"] for s in statuses(session, candidate)]


def window(status: Object) -> float:
    return status["window"]["endUnixSeconds"] - status["window"]["startUnixSeconds"]


def node_cpu(status: Object) -> float:
    return status["energy"]["cpu"]["nodeSeconds"]


def test_an_event_reports_the_verdict(long_run: Object) -> None:
    events = get("events", "-n", LONG.namespace)["items"]
    verdicts = [e for e in events if e["reason"] == "BudgetsMet" and e["involvedObject"]["name"] == LONG.name]
    assert [e["type"] for e in verdicts] == ["Normal"]


def test_only_the_ledger_is_left_after_the_end(session: Session, long_run: Object) -> None:
    def gone() -> bool:
        return not [
            pod for pod in session.observer.pods.values() if pod["metadata"]["namespace"] == LONG.namespace
        ]

    session.observer.until(gone, 90, "the end of the long run's pods")
    assert get("deployments,services,jobs,clusters.postgresql.cnpg.io", "-n", LONG.namespace)["items"] == []
    assert len(get("fbt", "-n", LONG.namespace)["items"]) >= 10
