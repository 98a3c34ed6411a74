"""The true figures, computed without the operator.

It has two parts. Neither shares code, data or arithmetic with the product:

- a recorder, a separate process. Ten times per second it writes down the kernel's CPU accounting of the
  measured node and of every pod on it (``python3 oracle.py record --help``);
- the definitions of the figures. They are computed from this record, from the load generator's JSON, and from
  the two constants of the board's power model.
"""

import argparse
import bisect
import calendar
import contextlib
import itertools
import json
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CGROUPS = Path("/sys/fs/cgroup")
HERTZ = 10.0
# If reading a sample takes longer, the reading was interrupted, and the sample's time is not known well
# enough.
LONGEST_READ_SECONDS = 0.005
# The meter divides energy among pods in steps of this length (`meter.interval` in hack/box-values.yaml).
# The oracle does the same, but its steps begin at other times.
STEP_SECONDS = 0.25
# The operator reads the meter in these intervals.
READING_SECONDS = 0.5
# Student's t for a two-sided 95 %, by degrees of freedom (any table).
STUDENT_T_95 = {1: 12.706205, 2: 4.302653, 3: 3.182446, 4: 2.7764451052, 5: 2.570582, 9: 2.262157}
# Student's t for the claims of a first try: a two-sided error of 5 % · 6/π².
STUDENT_T_CLAIM = {1: 20.928033, 2: 5.604141, 3: 3.876413, 4: 3.283647, 5: 2.991457, 9: 2.565803}


# ---- the recorder --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cgroup:
    """A node's cgroup in the hierarchy that accounts for CPU time."""

    path: Path
    version: int

    @classmethod
    def find(cls, name: str, mount: Path = CGROUPS) -> "Cgroup":
        for directory, version in ((mount / "cpuacct", 1), (mount / "cpu,cpuacct", 1), (mount, 2)):
            found = cls(directory / name.strip("/"), version)
            if found.counter(found.path).exists():
                return found
        raise FileNotFoundError(f"no CPU accounting of the cgroup {name} below {mount}")

    def counter(self, directory: Path) -> Path:
        return directory / ("cpuacct.usage" if self.version == 1 else "cpu.stat")

    def nanoseconds(self, directory: Path) -> int:
        text = self.counter(directory).read_text()
        if self.version == 1:
            return int(text)
        return 1000 * int(text.split("usage_usec", 1)[1].split(None, 1)[0])

    def pods(self) -> dict[str, Path]:
        """Directories of the node's pods, by UID."""
        top = self.path / "kubepods"
        levels = (top, top / "burstable", top / "besteffort")
        return {
            entry.name.removeprefix("pod"): Path(entry.path)
            for level in levels
            if level.is_dir()
            for entry in os.scandir(level)
            if entry.is_dir() and entry.name.startswith("pod")
        }

    def sample(self) -> tuple[float, int, dict[str, int]]:
        """Time, and CPU time of the node and its pods in nanoseconds. Reads again after an interruption."""
        while True:
            pods = self.pods()
            begin = time.time()
            node = self.nanoseconds(self.path)
            usage = {}
            for uid, directory in pods.items():
                try:
                    usage[uid] = self.nanoseconds(directory)
                except OSError:  # The pod has ended.
                    continue
            end = time.time()
            if end - begin <= LONGEST_READ_SECONDS:
                return (begin + end) / 2, node, usage
            time.sleep(LONGEST_READ_SECONDS)


def record(cgroup: Cgroup, output: Path, hertz: float = HERTZ) -> None:
    """Writes one line per sample, ``time node uid=… uid=…``, until the process or its parent ends."""
    parent = os.getppid()
    # A sample takes a millisecond of work. It must be in time even while an API server starts.
    with contextlib.suppress(PermissionError):
        lowest = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
        os.sched_setscheduler(0, os.SCHED_RR, lowest)
    with output.open("w", encoding="ascii") as lines:
        due = time.monotonic()
        while os.getppid() == parent:
            at, node, pods = cgroup.sample()
            print(
                f"{at:.6f}", node, *(f"{uid}={usage}" for uid, usage in pods.items()), file=lines, flush=True
            )
            due = max(due + 1 / hertz, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))


# ---- the record ----------------------------------------------------------------------------------


@dataclass
class Counter:
    """A CPU counter over time, linear between samples."""

    times: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, at: float, nanoseconds: int) -> None:
        self.times.append(at)
        self.seconds.append(nanoseconds / 1e9)

    def at(self, when: float) -> float:
        after = bisect.bisect_left(self.times, when)
        if after == 0 or after == len(self.times):
            raise ValueError(f"the record does not reach {when:.3f}")
        (t0, t1), (s0, s1) = self.times[after - 1 : after + 1], self.seconds[after - 1 : after + 1]
        if t1 - t0 > 2.0:
            raise ValueError(f"the record has a gap of {t1 - t0:.1f} s at {when:.3f}")
        return s0 + (s1 - s0) * (when - t0) / (t1 - t0)

    def used(self, start: float, end: float) -> float:
        return self.at(end) - self.at(start)


@dataclass
class Record:
    """The kernel's CPU accounting of a node and its pods."""

    node: Counter = field(default_factory=Counter)
    pods: dict[str, Counter] = field(default_factory=dict)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> "Record":
        result = cls()
        for line in lines:
            if not line.endswith("\n"):
                break  # The recorder is writing this line.
            at, node, *pods = line.split()
            result.node.add(float(at), int(node))
            for pod in pods:
                uid, usage = pod.split("=")
                result.pods.setdefault(uid, Counter()).add(float(at), int(usage))
        return result

    @classmethod
    def read(cls, path: Path) -> "Record":
        with path.open(encoding="ascii") as lines:
            return cls.parse(lines)


# ---- the definitions -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """Power of a board: idle watts, and watts per busy CPU."""

    idle_watts: float
    watts_per_cpu: float
    cpus: int

    def node_joules(self, record: Record, start: float, end: float) -> float:
        """∫ (idle + w·u) dt = idle·T + w·ΔCPU."""
        return self.idle_watts * (end - start) + self.watts_per_cpu * record.node.used(start, end)

    @property
    def most_watts(self) -> float:
        return self.idle_watts + self.watts_per_cpu * self.cpus

    def pods_joules(self, record: Record, uids: Iterable[str], start: float, end: float) -> float:
        """∫ (idle + w·u)·u/cpus · (pods' share of the CPU time) dt, in short steps."""
        counters = [record.pods[uid] for uid in uids]
        steps = max(1, round((end - start) / STEP_SECONDS))
        total = 0.0
        for step in range(steps):
            a = start + (end - start) * step / steps
            b = start + (end - start) * (step + 1) / steps
            used = record.node.used(a, b)
            if used > 0:
                ratio = min(1.0, used / (self.cpus * (b - a)))
                share = sum(counter.used(a, b) for counter in counters) / used
                total += self.node_joules(record, a, b) * ratio * share
        return total


@dataclass(frozen=True)
class Requests:
    """The measured run by the load generator's JSON: requests, cycles of k6, or executions of a program."""

    start: float
    seconds: float
    total: int
    successes: int
    rate: float | None
    milliseconds: float | None
    work: float | None = None

    @property
    def units(self) -> float:
        """The divisor of joules: successes, or units of work."""
        return self.successes if self.work is None else self.work

    @property
    def end(self) -> float:
        return self.start + self.seconds

    @classmethod
    def of(cls, load: Mapping[str, Any], expected_codes: Sequence[int] = (200,)) -> "Requests":
        if "executions" in load:
            return cls._of_batch(load)
        return cls._of_k6(load) if "cycles" in load else cls._of_fortio(load, expected_codes)

    @classmethod
    def _of_batch(cls, batch: Mapping[str, Any]) -> "Requests":
        done, failed = batch["executions"], batch["failedExecutions"]["count"]
        seconds, successes = batch["durationSeconds"], done["count"]
        work = batch["work"] and batch["work"]["mean"] * batch["work"]["count"]
        return cls(
            start=batch["startUnixSeconds"],
            seconds=seconds,
            total=successes + failed,
            successes=successes,
            rate=(successes if work is None else work) / seconds if successes else None,
            milliseconds=1000 * done["sumSeconds"] / successes if successes else None,
            work=work,
        )

    @classmethod
    def _of_k6(cls, k6: Mapping[str, Any]) -> "Requests":
        done, failed = k6["cycles"], k6["failedCycles"]["count"]
        seconds, successes = k6["durationSeconds"], done["count"]
        # Dropped cycles would have taken longest.
        is_timed = successes and not k6["droppedCycles"]
        return cls(
            start=k6["startUnixSeconds"],
            seconds=seconds,
            total=successes + failed,
            successes=successes,
            rate=successes / seconds if successes else None,
            milliseconds=1000 * done["sumSeconds"] / successes if is_timed else None,
        )

    @classmethod
    def _of_fortio(cls, fortio: Mapping[str, Any], expected_codes: Sequence[int]) -> "Requests":
        seconds = fortio["ActualDuration"] / 1e9
        codes = {int(code): count for code, count in fortio["RetCodes"].items()}
        successes = sum(codes.get(code, 0) for code in expected_codes)
        good_seconds = fortio["DurationHistogram"]["Sum"] - fortio["ErrorsDurationHistogram"]["Sum"]
        return cls(
            start=unix_seconds(fortio["StartTime"]),
            seconds=seconds,
            total=sum(codes.values()),
            successes=successes,
            rate=successes / seconds if successes else None,
            milliseconds=1000 * good_seconds / successes if successes else None,
        )


def unix_seconds(text: str) -> float:
    """Unix seconds of a time in RFC 3339, to the nanosecond, as Go writes it."""
    match = re.fullmatch(r"(\d+-\d+-\d+T\d+:\d+:\d+)(\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    if match is None:
        raise ValueError(f"not a time: {text}")
    whole, fraction, zone = match.groups()
    offset = 0
    if zone != "Z":
        offset = int(zone[0] + "1") * (3600 * int(zone[1:3]) + 60 * int(zone[4:6]))
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - offset + float(fraction or 0)


@dataclass(frozen=True)
class Window:
    """An interval, in Unix seconds."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Attempt:
    """An attempt's pods, by UID, and its idle baselines."""

    candidate: Sequence[str]
    database: Sequence[str]
    idle_before: Window
    idle_after: Window

    @property
    def baselines(self) -> tuple[Window, Window]:
        return self.idle_before, self.idle_after


Figures = dict[str, float | None]


def request_figures(requests: Requests) -> Figures:
    """The true figures of a trial's ``requests``. ``None`` means "must be absent"."""
    return {
        "requests": requests.total,
        "successes": requests.successes,
        "requestsPerSecond": requests.rate,
        "msPerRequest": requests.milliseconds,
    }


def energy_figures(record: Record, model: Model, requests: Requests, attempt: Attempt) -> Figures:
    """The true figures of a trial's ``energy``, each by its own definition."""
    start, end = requests.start, requests.end
    candidate, database = attempt.candidate, attempt.database
    gross = model.node_joules(record, start, end)
    idle = [model.node_joules(record, it.start, it.end) / it.seconds for it in attempt.baselines]
    net = gross - (end - start) * sum(idle) / 2
    of_candidate = model.pods_joules(record, candidate, start, end)
    of_database = model.pods_joules(record, database, start, end) if database else None
    of_both = of_candidate + (of_database or 0.0)

    def each(joules: float) -> float | None:
        return joules / requests.units if requests.successes else None

    return {
        "nodeJoules": gross,
        "grossJoulesPerRequest": each(gross),
        "idleBeforeWatts": idle[0],
        "idleAfterWatts": idle[1],
        "netJoules": net,
        "netJoulesPerRequest": each(net),
        "attributed.candidateJoules": of_candidate,
        "attributed.databaseJoules": of_database,
        "attributed.candidateJoulesPerRequest": each(of_candidate),
        "attributed.candidateAndDatabaseJoulesPerRequest": each(of_both) if database else None,
        "cpu.nodeSeconds": record.node.used(start, end),
        "cpu.candidateSeconds": sum(record.pods[uid].used(start, end) for uid in candidate),
        "cpu.databaseSeconds": sum(record.pods[uid].used(start, end) for uid in database)
        if database
        else None,
    }


def off_line(counter: Callable[[float], float], when: float, latest: float = math.inf) -> float:
    """How far a line between two readings can be from a counter at a time, whenever the readings were.

    Large if the load pauses or begins near that time, as between the warm-up and the window. The counter is known
    until `latest`.
    """

    def off(begin: float) -> float:
        first, last = counter(begin), counter(begin + READING_SECONDS)
        return abs(counter(when) - first - (last - first) * (when - begin) / READING_SECONDS)

    begins = [when - READING_SECONDS * tenth / 10 for tenth in range(11)]
    return max((off(begin) for begin in begins if begin + READING_SECONDS <= latest), default=0.0)


def off_lines(counters: Sequence[Counter], start: float, end: float) -> float:
    """`off_line` of a sum of counters, at both ends of a window together."""
    latest = min((it.times[-1] for it in counters), default=math.inf)
    return sum(off_line(lambda at: sum(it.at(at) for it in counters), time, latest) for time in (start, end))


def possible_errors(record: Record, model: Model, requests: Requests, attempt: Attempt) -> dict[str, float]:
    """How far each of `energy_figures` can be off for an operator that draws lines between its readings."""

    def off(uids: Iterable[str]) -> float:
        return off_lines([record.pods[uid] for uid in uids], start, end)

    start, end = requests.start, requests.end
    of_node = off_lines([record.node], start, end)
    idle = [
        model.watts_per_cpu * off_lines([record.node], it.start, it.end) / it.seconds
        for it in attempt.baselines
    ]
    gross = model.watts_per_cpu * of_node
    net = gross + (end - start) * sum(idle) / 2

    def attributed(uids: Iterable[str]) -> float:
        # A pod's joules are P(u) × its CPU time / CPUs. Both factors can be off.
        share = sum(record.pods[uid].used(start, end) for uid in uids) / record.node.used(start, end)
        return (model.most_watts * off(uids) + gross * share) / model.cpus

    def each(joules: float) -> float:
        return joules / (requests.units or math.inf)

    candidate, database = attempt.candidate, attempt.database
    of_candidate, of_database = attributed(candidate), attributed(database)
    joules = {
        "nodeJoules": gross,
        "netJoules": net,
        "attributed.candidateJoules": of_candidate,
        "attributed.candidateAndDatabaseJoules": of_candidate + of_database,
        "attributed.databaseJoules": of_database,
    }
    return {
        **joules,
        **{f"{name}PerRequest": each(of_window) for name, of_window in joules.items()},
        "grossJoulesPerRequest": each(gross),
        "idleBeforeWatts": idle[0],
        "idleAfterWatts": idle[1],
        "cpu.nodeSeconds": of_node,
        "cpu.candidateSeconds": off(candidate),
        "cpu.databaseSeconds": off(database),
    }


def idle_cpus(record: Record, pods: Iterable[str], attempt: Attempt) -> float:
    """CPUs that pods used in both baselines together."""
    seconds = sum(window.seconds for window in attempt.baselines)
    used = sum(record.pods[uid].used(it.start, it.end) for uid in pods for it in attempt.baselines)
    return used / seconds


@dataclass(frozen=True)
class Deviation:
    """A figure of the operator next to the oracle's."""

    figure: str
    reported: float | None
    true: float | None
    tolerance: float

    @property
    def relative(self) -> float:
        if self.reported is None or self.true is None:
            return 0.0 if self.reported is self.true else math.inf
        if self.true == 0:
            return 0.0 if self.reported == 0 else math.inf
        return abs(self.reported - self.true) / abs(self.true)

    @property
    def is_wrong(self) -> bool:
        return not self.relative <= self.tolerance

    def __str__(self) -> str:
        return f"{self.figure}: reported {self.reported}, is {self.true} ({100 * self.relative:.4f} % off)"


def compare(reported: Mapping[str, Any], true: Figures, tolerance: float) -> list[Deviation]:
    """Every figure of the oracle next to the figure in an object of the ledger."""
    return [Deviation(path, _look_up(reported, path), value, tolerance) for path, value in true.items()]


def _look_up(reported: Mapping[str, Any], path: str) -> float | None:
    value: Any = reported
    for name in path.split("."):
        value = (value or {}).get(name)
    return value


# ---- the statistics ------------------------------------------------------------------------------


def geometric(values: Sequence[float], quantiles: dict[int, float] = STUDENT_T_95) -> dict[str, float]:
    """Geometric mean with its 95 % t-interval, as ``{value, lower, upper}``."""
    interval = arithmetic([math.log(value) for value in values], quantiles)
    return {name: math.exp(value) for name, value in interval.items()}


def arithmetic(values: Sequence[float], quantiles: dict[int, float] = STUDENT_T_95) -> dict[str, float]:
    """Mean with its 95 % t-interval."""
    n = len(values)
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = quantiles[n - 1] * spread / math.sqrt(n)
    return {"value": mean, "lower": mean - half, "upper": mean + half}


def paired(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Geometric mean of the ratios, block by block, with the t-interval of a first try's claims."""
    return geometric([a / b for a, b in zip(ours, theirs, strict=True)], STUDENT_T_CLAIM)


# ---- the command ---------------------------------------------------------------------------------


def boards(text: str) -> dict[str, tuple[float, float]]:
    """Idle watts and watts per CPU by board, from the output of ``frugality-meter boards``."""
    found = re.finditer(r"^(\S+) .*? ([\d.]+) +\d+ % +([\d.]+) +(\d+) +[\d.]+ ", text, re.MULTILINE)
    return {
        name: (float(idle), (float(full) - float(idle)) / int(cores))
        for name, idle, full, cores in (match.groups() for match in found)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=["record", "show"])
    parser.add_argument("--cgroup", help="cgroup of the measured node, such as /lab/pi-1")
    parser.add_argument("--file", type=Path, required=True, help="where the record is")
    arguments = parser.parse_args()
    if arguments.command == "record":
        record(Cgroup.find(arguments.cgroup), arguments.file)
    else:
        read = Record.read(arguments.file)
        times = read.node.times
        span = times[-1] - times[0]
        longest = max(b - a for a, b in itertools.pairwise(times))
        used = read.node.used(times[1], times[-2])
        summary = {"samples": len(times), "seconds": span, "longestGap": longest, "cpuSeconds": used}
        print(json.dumps(summary | {"pods": len(read.pods)}))


if __name__ == "__main__":
    main()
