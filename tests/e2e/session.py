"""The session that tests use: the watched cluster, the oracle, and the interventions."""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import box
import oracle
import scenarios
import waiting
from evidence import Observer, save, say
from kube import Object, get, kubectl
from memory import Memory

T = TypeVar("T")
# How long the long run may take. All other benchmarks have their own deadlines.
LONG_RUN_SECONDS = 1500


@dataclass
class Session:
    """The watched cluster, the oracle and the interventions."""

    observer: Observer
    memory: Memory
    model: oracle.Model
    recording: Path = box.ARTIFACTS / "cpu.record"
    killing: "Future[list[scenarios.Kill]]" = field(default_factory=Future)
    deleting: "Future[scenarios.Deletion]" = field(default_factory=Future)
    deviations: list[oracle.Deviation] = field(default_factory=list)

    def record(self) -> oracle.Record:
        """The oracle's record so far."""
        return oracle.Record.read(self.recording)

    def ended(self, key: str, timeout: float) -> Object:
        """The benchmark, once ``kubectl wait`` has returned."""
        namespace, name = key.split("/")
        kubectl(
            *("wait", "--for=condition=Complete", f"fb/{name}", "-n", namespace, f"--timeout={timeout:.0f}s"),
            timeout=timeout + 30,
        )
        keep(namespace, name)
        return get("fb", name, "-n", namespace)


def keep(namespace: str, name: str) -> None:
    """Saves a benchmark with its ledger and its courses, as ``kubectl frugality report --filename`` reads them."""
    items = [get("fb", name, "-n", namespace)]
    trials = get("fbt", "-n", namespace)["items"]
    trials = [trial for trial in trials if trial["spec"]["benchmark"] == name]
    names = {trial["metadata"]["name"] for trial in trials}
    traces = get("fbtr", "-n", namespace)["items"]
    traces = [trace for trace in traces if trace["metadata"]["name"] in names]
    folder = box.ARTIFACTS / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    resources = {"apiVersion": "v1", "kind": "List", "items": [*items, *trials, *traces]}
    save(folder / f"{namespace}.{name}.json", resources)


def meter_model() -> oracle.Model:
    """The constants of the installed meter's model, and the number of the node's CPUs."""
    meter = get("daemonset", "frugality-meter", "-n", scenarios.OPERATOR_NAMESPACE)
    env = {e["name"]: e.get("value") for e in meter["spec"]["template"]["spec"]["containers"][0]["env"]}
    cpus = box.measured_cpus()
    board = env["FRUGALITY_METER_BOARD"]
    if board == "generic":
        return oracle.Model(
            float(env["FRUGALITY_METER_IDLE_WATTS"]), float(env["FRUGALITY_METER_WATTS_PER_CPU"]), cpus
        )
    command = ("exec", "-n", scenarios.OPERATOR_NAMESPACE, "daemonset/frugality-meter", "--")
    listed = kubectl(*command, "/usr/bin/frugality-meter", "boards").stdout
    return oracle.Model(*oracle.boards(listed)[board], cpus)


def in_background(name: str, work: Callable[[Observer], T], observer: Observer) -> Future[T]:
    """Runs work in a thread. A test fetches its result or its failure."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work(observer))
        except BaseException as error:  # The test raises the error again.
            say(f"{name}: {error}")
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def start_recorder(node: str, path: Path) -> subprocess.Popen[bytes]:
    """Starts the oracle's record of a node's CPU accounting."""
    cgroup = f"{box.CGROUP_ROOT}/{node}"
    # A record of an older session would look like a record of this session.
    path.unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, oracle.__file__, "record", "--cgroup", cgroup, "--file", str(path)]
    )

    def is_writing() -> bool:
        assert process.poll() is None, "the oracle's recorder has ended"
        return path.exists() and path.stat().st_size > 0

    waiting.until(is_writing, 30, "the oracle's first sample", every=0.1)
    return process
