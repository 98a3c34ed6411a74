"""The oracle with nodes whose truth is known, and with wrong figures. Needs no cluster."""

import copy
import dataclasses
import itertools
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

import box
import oracle
import waiting
from kube import ROOT
from oracle import Attempt, Cgroup, Model, Record, Requests, Window

MODEL = Model(idle_watts=3.0, watts_per_cpu=2.0, cpus=1)
BEGIN = 1_800_000_000.0
CANDIDATE, DATABASE = "11111111-aaaa", "22222222-bbbb"
# Begin and end of the load, and the CPU use of candidate, database and node.
LOAD = (10.0, 40.0)
SHARES = {CANDIDATE: 0.5, DATABASE: 0.25}
NODE_UNDER_LOAD, NODE_IDLE = 0.8, 0.1


def used(at: float, under_load: float, idle: float) -> float:
    """CPU seconds since 0, with this use under load and idle."""
    loaded = min(max(at - LOAD[0], 0.0), LOAD[1] - LOAD[0])
    return loaded * under_load + (at - loaded) * idle


def synthetic() -> Record:
    lines = []
    for sample in range(600):
        at = sample / 10 + 0.03 * math.sin(sample)
        pods = " ".join(f"{uid}={1e9 * used(at, share, 0):.0f}" for uid, share in SHARES.items())
        node = 1e9 * used(at, NODE_UNDER_LOAD, NODE_IDLE)
        lines.append(f"{BEGIN + at:.6f} {node:.0f} {pods}\n")
    return Record.parse([*lines, "1800000060.0 12"])


def fortio() -> dict:
    return json.loads((ROOT / "measure/tests/data/fortio/one-in-five-fails.json").read_text())


@pytest.fixture
def attempt() -> Attempt:
    baselines = Window(BEGIN + 2, BEGIN + 7), Window(BEGIN + 45, BEGIN + 50)
    return Attempt([CANDIDATE], [DATABASE], *baselines)


@pytest.fixture
def window() -> Requests:
    return Requests(BEGIN + 15, seconds=20, total=1010, successes=1000, rate=50, milliseconds=2)


def test_energy_of_a_steady_load_agrees_with_a_calculation_by_hand(
    attempt: Attempt, window: Requests
) -> None:
    figures = oracle.energy_figures(synthetic(), MODEL, window, attempt)
    by_hand = {
        "nodeJoules": 20 * (3 + 2 * 0.8),
        "grossJoulesPerRequest": 0.092,
        "idleBeforeWatts": 3 + 2 * 0.1,
        "netJoules": 92 - 20 * 3.2,
        "netJoulesPerRequest": 0.028,
        "attributed.candidateJoules": 20 * (3 + 2 * 0.8) * 0.5,
        "attributed.databaseJoules": 20 * (3 + 2 * 0.8) * 0.25,
        "attributed.candidateAndDatabaseJoulesPerRequest": 0.069,
        "cpu.candidateSeconds": 10,
        "cpu.nodeSeconds": 16,
    }
    for name, value in by_hand.items():
        assert figures[name] == pytest.approx(value, rel=1e-4), name


def test_a_window_across_a_step_counts_each_side_separately(attempt: Attempt) -> None:
    window = Requests(BEGIN, 20, 1, 1, 1.0, 1.0)
    record = synthetic()
    with pytest.raises(ValueError, match="does not reach"):
        oracle.energy_figures(record, MODEL, window, attempt)
    window = Requests(BEGIN + 1, 18, 1, 1, 1.0, 1.0)
    figures = oracle.energy_figures(record, MODEL, window, attempt)
    assert figures["nodeJoules"] == pytest.approx(3 * 18 + 2 * (9 * 0.1 + 9 * 0.8), rel=1e-3)
    # Nine idle seconds and nine under load. The mean use over all of them would give other joules.
    assert figures["attributed.candidateJoules"] == pytest.approx(9 * (3 + 2 * 0.8) * 0.5, rel=5e-3)


def test_two_cpus_halve_attributed_joules(attempt: Attempt, window: Requests) -> None:
    two = Model(3.0, 2.0, cpus=2)
    figures = oracle.energy_figures(synthetic(), two, window, attempt)
    assert figures["attributed.candidateJoules"] == pytest.approx(20 * 4.6 * 0.25, rel=1e-4)


def test_figures_of_the_database_and_per_request_can_be_absent(attempt: Attempt) -> None:
    alone = dataclasses.replace(attempt, database=[])
    figures = oracle.energy_figures(synthetic(), MODEL, Requests(BEGIN + 15, 20, 10, 0, None, None), alone)
    absent = {name for name, value in figures.items() if value is None}
    assert absent == {
        "grossJoulesPerRequest",
        "netJoulesPerRequest",
        "attributed.databaseJoules",
        "attributed.candidateJoulesPerRequest",
        "attributed.candidateAndDatabaseJoulesPerRequest",
        "cpu.databaseSeconds",
    }


def test_rates_and_times_count_successes_only() -> None:
    raw = fortio()
    requests = Requests.of(raw)
    codes, seconds = raw["RetCodes"], raw["ActualDuration"] / 1e9
    assert (requests.total, requests.successes) == (sum(codes.values()), codes["200"])
    assert requests.successes < requests.total
    assert requests.rate == codes["200"] / seconds < raw["ActualQPS"]
    all_seconds, failed = raw["DurationHistogram"]["Sum"], raw["ErrorsDurationHistogram"]["Sum"]
    assert requests.milliseconds == pytest.approx(1000 * (all_seconds - failed) / codes["200"])
    assert Requests.of(raw, [204]).rate is None
    assert Requests.of(raw, [204]).milliseconds is None


def test_dropped_cycles_leave_no_time_per_cycle() -> None:
    k6 = {
        "startUnixSeconds": BEGIN,
        "durationSeconds": 20.0,
        "cycles": {"count": 1000, "sumSeconds": 5.0},
        "failedCycles": {"count": 10},
        "droppedCycles": 0,
    }
    requests = Requests.of(k6)
    assert (requests.total, requests.rate, requests.milliseconds) == (1010, 50.0, 5.0)
    dropped = Requests.of(k6 | {"droppedCycles": 1})
    assert (dropped.rate, dropped.milliseconds) == (50.0, None)


def test_joules_of_a_program_are_per_unit_of_work() -> None:
    batch = {
        "startUnixSeconds": BEGIN,
        "durationSeconds": 20.0,
        "executions": {"count": 4, "sumSeconds": 18.0},
        "failedExecutions": {"count": 1},
        "work": {"count": 4, "mean": 250.0},
    }
    requests = Requests.of(batch)
    assert (requests.total, requests.successes, requests.units) == (5, 4, 1000)
    assert (requests.rate, requests.milliseconds) == (50, 4500)
    without = Requests.of(batch | {"work": None})
    assert (without.units, without.rate) == (4, 0.2)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-02-28T23:59:59.123456789Z", 1772323199.123456789),
        ("2024-03-01T01:00:00.5+01:00", 1709251200.5),
    ],
)
def test_times_of_go_are_read(text: str, seconds: float) -> None:
    assert oracle.unix_seconds(text) == pytest.approx(seconds, abs=1e-6)


def test_each_figure_that_differs_is_found(attempt: Attempt, window: Requests) -> None:
    true = oracle.energy_figures(synthetic(), MODEL, window, attempt)
    reported: dict = {"attributed": {}, "cpu": {}}
    for path, value in true.items():
        *parents, name = path.split(".")
        (reported[parents[0]] if parents else reported)[name] = value
    assert not [d for d in oracle.compare(reported, true, 0.01) if d.is_wrong]
    for path in true:
        *parents, name = path.split(".")
        for wrong in (
            lambda value: value * 1.02,
            lambda value: value * 0.98,
            lambda value: None,
            lambda value: 0,
        ):
            spoilt = copy.deepcopy(reported)
            place = spoilt[parents[0]] if parents else spoilt
            place[name] = wrong(place[name])
            assert [d.figure for d in oracle.compare(spoilt, true, 0.01) if d.is_wrong] == [path]


def test_a_figure_that_must_be_absent_is_wrong_if_present() -> None:
    assert oracle.compare({"msPerRequest": 0}, {"msPerRequest": None}, 0.01)[0].is_wrong
    assert not oracle.compare({}, {"msPerRequest": None}, 0.01)[0].is_wrong


def test_a_gap_in_the_record_is_an_error() -> None:
    record = Record.parse(["0 0\n", "0.1 1\n", "3.0 2\n", "3.1 3\n"])
    with pytest.raises(ValueError, match="gap"):
        record.node.at(2.0)


def test_intervals_agree_with_a_published_example() -> None:
    # Five values of mean 5 and variance 2.5. Half the interval is 2.776 · √(2.5 / 5).
    interval = oracle.arithmetic([3, 4, 5, 6, 7])
    assert interval["value"] == 5
    assert interval["upper"] - 5 == pytest.approx(2.7764451 * math.sqrt(0.5))
    means = oracle.geometric([1, 10, 100])
    assert means["value"] == pytest.approx(10)
    assert means["lower"] * means["upper"] == pytest.approx(100)
    assert oracle.paired([2, 4, 8], [4, 8, 16]) == pytest.approx({"value": 0.5, "lower": 0.5, "upper": 0.5})


def test_boards_are_read_from_the_meters_own_table() -> None:
    table = """Modelled power: P = idle watts + watts per CPU x (CPU-seconds used per second)

BOARD                                 IDLE W     ±  FULL W  CORES  W PER CPU     ±  SOURCE
pi-2b        Raspberry Pi 2 Model B     3.33  41 %     4.8      4     0.3675  19 %  P. Montens, 2016: "idle"
generic      any other board               -     -       -      -          -     -  yours: --idle-watts
"""
    assert oracle.boards(table) == {"pi-2b": (3.33, pytest.approx(0.3675))}


@pytest.mark.parametrize("version", [1, 2])
def test_recorder_writes_the_kernels_accounting(tmp_path: Path, version: int) -> None:
    node = (tmp_path / "cpuacct" if version == 1 else tmp_path) / "lab/pi-1"
    pods = {"uid-a": node / "kubepods/poduid-a", "uid-b": node / "kubepods/besteffort/poduid-b"}

    def account(directory: Path, nanoseconds: int) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        if version == 1:
            (directory / "cpuacct.usage").write_text(f"{nanoseconds}\n")
        else:
            (directory / "cpu.stat").write_text(f"usage_usec {nanoseconds // 1000}\nuser_usec 5\n")

    account(node, 7_000_000)
    for uid, directory in pods.items():
        account(directory, 1_000_000 * ord(uid[-1]))
    (node / "kubepods/burstable/podgone").mkdir(parents=True)
    at, total, usage = Cgroup.find("/lab/pi-1", tmp_path).sample()
    assert abs(at - time.time()) < 1
    assert (total, usage) == (7_000_000, {"uid-a": 97_000_000, "uid-b": 98_000_000})


def test_recorder_writes_ten_samples_a_second_and_ends_with_its_parent(tmp_path: Path) -> None:
    try:
        Cgroup.find("/")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    output = tmp_path / "record"
    command = [sys.executable, oracle.__file__, "record", "--cgroup", "/", "--file", str(output)]
    # The parent ends once its standard input is closed.
    script = f"import subprocess; print(subprocess.Popen({command!r}).pid, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        recorder = int(parent.stdout.readline())

        def has_thirty_samples() -> bool:
            return output.exists() and output.read_text().count("\n") > 30

        waiting.until(has_thirty_samples, 30, "thirty samples", every=0.1)
        parent.stdin.close()
        parent.wait(10)
        waiting.until(lambda: not box.state_of(recorder), 10, "the recorder's end", every=0.1)
    record = Record.read(output)
    gaps = [after - before for before, after in itertools.pairwise(record.node.times)]
    # On a busy machine single samples are late.
    assert statistics.median(gaps) == pytest.approx(1 / oracle.HERTZ, rel=0.2)
    assert record.node.seconds[-1] > record.node.seconds[0]
