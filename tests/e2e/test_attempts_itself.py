"""Differences between ledger and observation, and the tolerances. Needs no cluster."""

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import yaml

import attempts
import checks
import oracle
from evidence import PodSpan
from kube import ROOT, Object, duration_seconds

NAME, RUN = "bench-1-b01-rust-1", "1"
READY = 1_800_000_000.0
IDLE = 5.0
CREATED = READY + 8
REQUESTS = oracle.Requests(READY + 12.3, seconds=20, total=10, successes=10, rate=0.5, milliseconds=1)
ENDED = READY + 34
AFTER = READY + 36.2
Spans = dict[str, PodSpan]


def pod(role: str, node: str = "pi-1", **more: Any) -> PodSpan:
    known = PodSpan(f"ns/{role}", "uid", role, node, begin=READY - 5, run=RUN, trial=NAME, created=READY - 6)
    return dataclasses.replace(known, ready={READY - 2}, **more)


@pytest.fixture
def spans() -> Spans:
    return {
        "a": dataclasses.replace(pod("candidate"), ready={READY}),
        "b": pod("candidate"),
        "db": pod("database", trial=""),
        "old-db": pod("database", trial="", end=READY - 1),
        "db-of-another-run": pod("database", trial="", run="2"),
        "inj": pod("injector", "injector-1", created=CREATED, injector_ended=ENDED),
        "next": pod("candidate", trial="bench-1-b01-rust-2"),
    }


@pytest.fixture
def trial() -> Object:
    return {
        "metadata": {"name": NAME},
        "spec": {"run": RUN, "measuredNode": "pi-1", "injectorNode": "injector-1"},
        "status": {
            "candidatePods": ["a", "b"],
            "databasePods": ["db"],
            "idleBefore": {"startUnixSeconds": READY + 2, "endUnixSeconds": READY + 7},
            "window": {"startUnixSeconds": REQUESTS.start, "endUnixSeconds": REQUESTS.end + 1e-4},
            "idleAfter": {"startUnixSeconds": AFTER, "endUnixSeconds": AFTER + IDLE},
            "energy": {"conditions": {}},
        },
    }


def test_a_ledger_that_agrees_has_no_fault(trial: Object, spans: Spans) -> None:
    attempt, faults = attempts.seen(trial, spans, REQUESTS, IDLE)
    assert faults == []
    assert (attempt.candidate, attempt.database) == (("a", "b"), ("db",))
    assert attempt.idle_before == oracle.Window(READY + 2, READY + 7)
    assert attempt.idle_after.seconds == pytest.approx(IDLE)


def moved(window: str, start: float, end: float) -> Callable[[Object], None]:
    def change(trial: Object) -> None:
        trial["status"][window]["startUnixSeconds"] += start
        trial["status"][window]["endUnixSeconds"] += end

    return change


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda trial: trial["status"]["candidatePods"].pop(), "candidatePods"),
        (lambda trial: trial["status"].pop("databasePods"), "databasePods"),
        (lambda trial: trial["status"].update(databasePods=["old-db"]), "databasePods"),
        (lambda trial: trial["spec"].update(measuredNode="pi-2"), "measuredNode"),
        (lambda trial: trial["spec"].update(injectorNode="pi-1"), "injectorNode"),
        (moved("window", 0.1, 0), "window"),
        (moved("window", 0, -0.1), "window"),
        (moved("idleBefore", -0.5, -0.5), "idleBefore"),
        (moved("idleBefore", 1, 1), "idleBefore"),
        (moved("idleBefore", 0, -1), "idleBefore"),
        (moved("idleAfter", -1.4, -1.4), "idleAfter"),
        (moved("idleAfter", 2, 2), "idleAfter"),
        (moved("idleAfter", 0, 0.5), "idleAfter"),
    ],
)
def test_each_difference_is_a_fault(
    trial: Object, spans: Spans, change: Callable[[Object], None], fault: str
) -> None:
    wrong = copy.deepcopy(trial)
    change(wrong)
    _, (found,) = attempts.seen(wrong, spans, REQUESTS, IDLE)
    assert found.startswith(f"{fault}: ")


def test_a_check_of_the_database_moves_the_baseline(trial: Object, spans: Spans) -> None:
    spans["check"] = pod("prepare", "injector-1", end=READY + 1.5)
    spans["inj"].created += 2
    # The operator saw the end 0.5 s after it, and the baseline begins 1.75 s after that.
    moved("idleBefore", 1.75, 1.75)(trial)
    assert attempts.seen(trial, spans, REQUESTS, IDLE)[1] == []
    too_early, too_late = copy.deepcopy(trial), copy.deepcopy(trial)
    spans["check"].end = READY + 4
    moved("idleBefore", -1, -1)(too_early)
    spans["check"].end = READY + 4
    assert attempts.seen(too_early, spans, REQUESTS, IDLE)[1] != []
    spans["check"].end = READY - 5
    assert attempts.seen(too_late, spans, REQUESTS, IDLE)[1] != []
    spans["check"].end = None
    assert attempts.seen(trial, spans, REQUESTS, IDLE)[1] == [
        "idleBefore: the end of the database's check was not seen"
    ]


def test_readiness_that_was_lost_under_load_does_not_move_the_baseline(trial: Object, spans: Spans) -> None:
    spans["db"].ready.add(READY + 20)
    assert attempts.seen(trial, spans, REQUESTS, IDLE)[1] == []


def test_a_node_may_cool_before_its_baseline_if_it_has_a_thermometer(trial: Object, spans: Spans) -> None:
    spans["inj"].created += 20
    moved("idleBefore", 20, 20)(trial)
    assert attempts.seen(trial, spans, REQUESTS, IDLE)[1] != []
    trial["status"]["energy"]["conditions"]["idleBeforeCelsius"] = 40.0
    assert attempts.seen(trial, spans, REQUESTS, IDLE)[1] == []


def test_pods_that_were_not_seen_ready_or_ended_early_are_faults(trial: Object, spans: Spans) -> None:
    spans["b"].end = AFTER + 1
    assert attempts.seen(trial, spans, REQUESTS, IDLE)[1] == [
        "ns/candidate did not run from the first baseline to the end of the second"
    ]
    spans["b"].end = None
    spans["b"].ready.clear()
    assert attempts.seen(trial, spans, REQUESTS, IDLE)[1] == [
        "idleBefore: 2 of 3 pods were seen ready before the load"
    ]
    del spans["inj"]
    with pytest.raises(AssertionError, match="0 pods of the injector"):
        attempts.seen(trial, spans, REQUESTS, IDLE)


def test_the_oracles_steps_are_the_meters_interval() -> None:
    values = yaml.safe_load((ROOT / "hack/box-values.yaml").read_text())
    assert duration_seconds(values["meter"]["interval"]) == oracle.STEP_SECONDS


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5), ("1m30s", 90), ("250ms", 0.25), ("336h", 1_209_600)]
)
def test_durations_of_a_spec_are_read(text: str, seconds: float) -> None:
    assert duration_seconds(text) == seconds


CYCLES = {"cycles": {"count": 200}, "durationSeconds": 20.0}
MANY = {"cycles": {"count": 2000}, "durationSeconds": 20.0}


@pytest.mark.parametrize(
    ("load", "figure", "expected"),
    [
        ({"NumThreads": 4}, "netJoules", 0.011),
        (MANY, "attributed.candidateJoules", 0.012),
        (CYCLES, "netJoules", 0.021),
        (CYCLES, "attributed.databaseJoules", 0.071),
        ({"executions": {}}, "attributed.candidateJoules", 0.061),
        ({"executions": {}}, "cpu.candidateSeconds", 0.011),
    ],
)
def test_tolerances_depend_on_the_load_the_figure_and_its_possible_error(
    load: Object, figure: str, expected: float
) -> None:
    assert checks.tolerance(load, figure, 100.0, 0.1) == pytest.approx(expected)


def test_a_load_without_a_whole_cycle_has_a_tolerance() -> None:
    none = {"cycles": {"count": 0}, "durationSeconds": 20.0}
    assert checks.tolerance(none, "nodeJoules", 100.0, 0.1) > 0.011


def test_a_record_that_ends_soon_after_a_window_is_enough() -> None:
    counter = oracle.Counter(times=[99.0, 100.0, 100.1], seconds=[0.0, 1.0, 1.1])
    assert oracle.off_lines([counter], 99.6, 100.0) == pytest.approx(0.0, abs=1e-9)


def test_a_figure_that_must_be_absent_has_no_tolerance() -> None:
    assert checks.tolerance({"NumThreads": 4}, "netJoules", None, 0.1) == 0.0


def test_a_line_between_readings_is_off_by_a_quarter_of_the_load_that_begins_there() -> None:
    began = oracle.off_line(lambda when: max(0.0, when - 100.0), 100.0)
    assert began == pytest.approx(oracle.READING_SECONDS / 4)
    assert oracle.off_line(lambda when: 0.7 * when, 100.0) == pytest.approx(0.0, abs=1e-9)
    # A pause of 50 ms before the window.
    paused = oracle.off_line(lambda when: when - min(max(when - 99.95, 0.0), 0.05), 100.0)
    assert 0.02 < paused < 0.05


def test_without_trials_nothing_agrees_with_the_oracle() -> None:
    session: Any = None
    with pytest.raises(AssertionError, match="no measured trial"):
        checks.disagreements(session, oracle.Record(), [])


def test_the_reasons_for_no_net_joules_are_in_the_products_words() -> None:
    for words, file in (
        ("the {whose}'s pods used ", "measure/src/energy/idle.rs"),
        (checks.BELOW_ITS_LIMIT, "measure/src/energy/baseline.rs"),
        (checks.BELOW_THE_RUNS_LIMIT, "operator/src/plan/verdict/detection.rs"),
    ):
        assert words in (ROOT / file).read_text(), file


BELOW = "net energy of 1.000 J cannot be distinguished from 0: the detection limit is 2.000 J"


@pytest.mark.parametrize(
    ("idle_cpus", "net", "withheld", "right"),
    [
        (0.001, 50.0, None, True),
        (0.001, 50.0, BELOW, False),
        (0.001, 3.0, BELOW, False),
        (0.001, 1.0, BELOW, True),
        (0.2, 1.0, BELOW, False),
        (0.2, 50.0, "the candidate's pods used 0.200 CPUs in the idle baselines", True),
        (0.001, 1.0, "the candidate's pods used 0.200 CPUs in the idle baselines", False),
        (0.2, 50.0, "the database's pods used 0.200 CPUs in the idle baselines", False),
        (0.2, 50.0, None, False),
        (0.001, 1.0, "an idle baseline of 5.000 s is too short for a meter", False),
    ],
)
def test_net_joules_are_withheld_only_for_a_reason_that_the_oracle_sees(
    idle_cpus: float, net: float, withheld: str | None, right: bool
) -> None:
    record = oracle.Record()
    counter = record.pods.setdefault("a", oracle.Counter())
    for tenth in range(600):
        counter.add(tenth / 10, round(1e8 * tenth * idle_cpus))
    attempt = oracle.Attempt(["a"], [], oracle.Window(1, 6), oracle.Window(40, 45))
    true: oracle.Figures = {"netJoules": net, "nodeJoules": 100.0}
    assert checks.net_may_be(record, attempt, true, withheld) is right
