"""Disturbances from outside while a benchmark is measured, each with its repair."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import box
import scenarios
import stand_in_meter
import waiting
from evidence import TRIAL_LABEL, Observer, container, say
from kube import Object, kubectl

STAND_IN_PORT = 28283
METER_PORT = 28282
# Any image of the box that can keep a CPU busy.
HOG_IMAGE = "ghcr.io/frugality-dev/contacts-python:0.1.0"


@dataclass(frozen=True)
class Disturbance:
    """A fault under load."""

    name: str
    reasons: tuple[str, ...]
    """The reasons for which the attempt may be void. If empty, the attempt must be measured."""
    act: Callable[[], None]
    """Causes the fault and repairs it."""


@dataclass(frozen=True)
class Done:
    """A disturbance that was done."""

    disturbance: Disturbance
    trial: str
    seconds: float


class Hand:
    """Causes the faults for one benchmark."""

    def __init__(self, observer: Observer, namespace: str, key: str) -> None:
        self.observer, self.namespace, self.key = observer, namespace, key
        self.mode_file = box.ARTIFACTS / "stand-in-meter.mode"

    def all(self) -> list[Disturbance]:
        """Every disturbance, in the order in which they are done."""
        replaced, interrupted = ("PodReplaced",), ("ReadingsInterrupted",)
        return [
            Disturbance("candidate's pod killed", replaced, lambda: self.delete_pod("candidate")),
            Disturbance("database's pod killed", replaced, lambda: self.delete_pod("database")),
            Disturbance("injector's Job deleted", ("InjectorDeleted",), self.delete_job),
            Disturbance("meter killed", ("MeterRestarted", "ReadingsInterrupted"), self.kill_meter),
            Disturbance("meter frozen for 10 s", ("ReadingsInterrupted", "MeterStale"), self.freeze_meter),
            Disturbance("meter sent backwards", ("CounterDecreased",), lambda: self.stand_in("backwards", 4)),
            Disturbance("meter stale for 8 s", ("MeterStale",), lambda: self.stand_in("stale", 8)),
            Disturbance(
                "meter without power metrics for 8 s",
                ("NoPowerMetrics", "ReadingsInterrupted"),
                lambda: self.stand_in("powerless", 8),
            ),
            Disturbance("busy loop on the candidate's node", ("NeighbourActive",), self.hog),
            Disturbance("busy loop outside the measured node's cgroups", ("CpuTaken",), self.hog_outside),
            Disturbance("operator killed, first time", interrupted, self.kill_operator),
            Disturbance("operator killed, second time", interrupted, self.kill_operator),
            Disturbance("operator killed, third time", interrupted, self.kill_operator),
            Disturbance("API server restarted", (), self.restart_api_server),
            Disturbance("kubelet of the measured node stopped for a minute", (), self.stop_kubelet),
        ]

    # ---- pods and Jobs ---------------------------------------------------------------------------

    def delete_pod(self, role: str) -> None:
        for pod in self.observer.pods_of(self.namespace, role):
            name = pod["metadata"]["name"]
            kubectl("delete", "pod", "-n", self.namespace, name, "--grace-period=0", "--force")

    def delete_job(self) -> None:
        kubectl("delete", "job", "-n", self.namespace, "--all", "--cascade=foreground", "--wait=false")

    def hog(self) -> None:
        """Runs a busy loop for ten seconds, in a pod of another namespace on the measured node."""
        name = f"hog-{time.time_ns()}"
        loop = "import time\nend = time.time() + 10\nwhile time.time() < end: pass"
        spec = {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": box.MEASURED_NODE},
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "hog",
                    "image": HOG_IMAGE,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python3", "-c", loop],
                }
            ],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        kubectl("apply", "-n", "default", "-f", "-", stdin=json.dumps(pod))
        kubectl(
            "wait",
            "-n",
            "default",
            f"pod/{name}",
            "--for=jsonpath={.status.phase}=Succeeded",
            "--timeout=40s",
        )
        kubectl("delete", "pod", "-n", "default", name)

    def hog_outside(self) -> None:
        """Runs a busy loop for ten seconds on the measured node's CPUs, outside the node's cgroups."""
        cpus = os.sched_getaffinity(self.meter_process())
        pinned = f"import os, time\nos.sched_setaffinity(0, {cpus})"
        loop = f"{pinned}\nend = time.time() + 10\nwhile time.time() < end: pass"
        subprocess.run([sys.executable, "-c", loop], check=True, timeout=60)

    # ---- the meter -------------------------------------------------------------------------------

    def meter_process(self) -> int:
        pods = self.observer.pods_named(scenarios.OPERATOR_NAMESPACE, "frugality-meter")
        (pod,) = [pod for pod in pods if pod["spec"].get("nodeName") == box.MEASURED_NODE]
        (pid,) = [
            pid for pid, comm in box.processes(pod["metadata"]["uid"]) if "frugality-meter".startswith(comm)
        ]
        return pid

    def kill_meter(self) -> None:
        old = self.meter_process()
        os.kill(old, signal.SIGKILL)

        def back() -> bool:
            with contextlib.suppress(ValueError):
                return self.meter_process() != old
            return False

        self.observer.until(back, 60, "another meter")

    def freeze_meter(self) -> None:
        freeze(self.meter_process(), 10)

    def stand_in(self, mode: str, seconds: float) -> None:
        trial = scenarios.open_trial(self.observer, self.key)
        name = trial["metadata"]["name"] if trial else ""
        self.mode_file.write_text(mode)
        try:
            hold_unmeasured(self.observer, self.key, name, seconds)
        finally:
            self.mode_file.write_text("pass")

    @contextlib.contextmanager
    def stand_in_before_the_meter(self) -> Iterator[None]:
        """Redirects all connections to the measured node's meter to the stand-in."""
        pods = self.observer.pods_named(scenarios.OPERATOR_NAMESPACE, "frugality-meter")
        (pod,) = [pod for pod in pods if pod["spec"].get("nodeName") == box.MEASURED_NODE]
        address = pod["status"]["podIP"]
        self.mode_file.write_text("pass")
        with (
            box.stand_in(
                box.MEASURED_NODE,
                stand_in_meter,
                *("--upstream", f"{address}:{METER_PORT}", "--listen", str(STAND_IN_PORT)),
                *("--mode-file", str(self.mode_file)),
            ),
            box.redirected(box.MEASURED_NODE, address, METER_PORT, STAND_IN_PORT),
        ):
            yield

    # ---- operator, API server, kubelet -------------------------------------------------------------

    def kill_operator(self) -> None:
        scenarios.kill_operator(self.observer, "load", self.key)

    def restart_api_server(self) -> None:
        old = box.system_process("control-plane", "kube-apiserver")
        os.kill(old, signal.SIGKILL)

        def is_back() -> bool:
            with contextlib.suppress(ValueError):
                is_another = box.system_process("control-plane", "kube-apiserver") != old
                return is_another and kubectl("get", "--raw", "/readyz", check=False).returncode == 0
            return False

        self.observer.until(is_back, 60, "another API server that is ready")

    def stop_kubelet(self) -> None:
        freeze(box.system_process(box.MEASURED_NODE, "kubelet"), 60)


def freeze(pid: int, seconds: float) -> None:
    """Stops a process for some seconds. The process continues even if this fails."""

    def is_stopped() -> bool:
        return box.state_of(pid) == "T"

    os.kill(pid, signal.SIGSTOP)
    try:
        waiting.until(is_stopped, 5, f"the stop of process {pid}", every=0.05)
        waiting.hold(seconds, is_stopped, f"the stop of process {pid}")
    finally:
        os.kill(pid, signal.SIGCONT)


def disturb(hand: Hand) -> list[Done]:
    """Causes each disturbance under the load of another attempt, and waits for the attempt's outcome."""
    observer, done = hand.observer, list[Done]()
    seen: set[str] = set()
    for disturbance in hand.all():
        name = attempt_under_load(observer, hand.key, seen)
        say(f"{disturbance.name} ({name})")
        begin = time.monotonic()
        disturbance.act()
        outcome_of(observer, hand.key, name)
        done.append(Done(disturbance, name, time.monotonic() - begin))
    return done


def attempt_under_load(observer: Observer, key: str, seen: set[str]) -> str:
    """Waits for the middle of the load of an attempt that was not seen before, and returns its name."""
    namespace = key.split("/")[0]

    def is_loaded(name: str) -> bool:
        pods = observer.pods_of(namespace, "injector")
        mine = [pod for pod in pods if pod["metadata"]["labels"].get(TRIAL_LABEL) == name]
        return any("running" in container(pod, "injector") for pod in mine)

    def found() -> str | None:
        assert not observer.is_complete(key), f"{key} has ended: {observer.message(key)}"
        trial = scenarios.open_trial(observer, key)
        name = trial["metadata"]["name"] if trial else ""
        return name if name and name not in seen and is_loaded(name) else None

    name = observer.until(found, 300, f"load on {key}")
    seen.add(name)
    waiting.hold(scenarios.INTO_LOAD_SECONDS, lambda: is_loaded(name), f"load of {name}")
    return name


def hold_unmeasured(observer: Observer, key: str, name: str, seconds: float) -> None:
    """Lets a disturbance of an attempt last. The attempt must not be measured before the disturbance ends."""

    def is_unmeasured() -> bool:
        mine = [t for t in observer.trials_of(key) if t["metadata"]["name"] == name]
        return all(t.get("status", {}).get("outcome") != "Measured" for t in mine)

    waiting.hold(seconds, is_unmeasured, f"the disturbance of {name}")


def outcome_of(observer: Observer, key: str, name: str) -> Object:
    """Waits for an attempt's outcome, and returns its entry in the ledger."""

    def ended() -> Object | None:
        (trial,) = [t for t in observer.trials_of(key) if t["metadata"]["name"] == name]
        return trial if "outcome" in trial.get("status", {}) else None

    return observer.until(ended, 180, f"the end of {name}")
