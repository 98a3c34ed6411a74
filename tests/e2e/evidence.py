"""The observer of a session: every status of a benchmark, every pod, and the load generators' results."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from kube import KubectlError, Object, Watch, conditions, kubectl
from oracle import unix_seconds

UID_LABEL = "frugality.dev/benchmark-uid"
ROLE_LABEL = "frugality.dev/role"
TRIAL_LABEL = "frugality.dev/trial"
RUN_LABEL = "frugality.dev/run"
BEGUN = time.monotonic()
T = TypeVar("T")
# pytest shows a test's output after the test. Progress lines appear at once.
_terminal = os.fdopen(os.dup(2), "w", buffering=1)


def say(text: str) -> None:
    """Prints a line of progress."""
    print(f"[{time.monotonic() - BEGUN:4.0f} s] {text}", file=_terminal)


# Keys in the JSON of a load: of Fortio, of k6, and of a program's executions.
RESULT_KEYS = ("DurationHistogram", "cycles", "executions")


@dataclass(frozen=True)
class Moment:
    """A benchmark's status at one time."""

    at: float
    key: str
    reason: str
    message: str
    conditions: dict[str, Object]
    status: Object


@dataclass
class PodSpan:
    """A benchmark's pod as seen from here. All times are Unix seconds."""

    pod: str
    benchmark: str
    role: str
    node: str
    begin: float
    """When a container was first seen to run."""
    end: float | None = None
    """When the last container was seen to have ended."""
    run: str = ""
    trial: str = ""
    created: float = 0.0
    ready: set[float] = field(default_factory=set)
    """Each time at which the API server says that the pod became ready."""
    injector_ended: float | None = None
    """When the container `injector` ended, by its kubelet."""


def key_of(resource: Object) -> str:
    return f"{resource['metadata']['namespace']}/{resource['metadata']['name']}"


def is_ready(pod: Object) -> bool:
    return conditions(pod).get("Ready", {}).get("status") == "True"


def container(pod: Object, name: str) -> Object:
    """State of one of the pod's containers: ``{running: …}``, ``{terminated: …}`` or ``{waiting: …}``."""
    statuses = pod.get("status", {}).get("containerStatuses", [])
    return next((status["state"] for status in statuses if status["name"] == name), {})


def _runs(pod: Object) -> bool:
    status = pod.get("status", {})
    every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    return any("running" in c.get("state", {}) for c in every)


class Observer:
    """Keeps the newest benchmarks, trials and pods, and the parts of older ones that tests need."""

    def __init__(self, fortio_directory: Path) -> None:
        self._changed = threading.Condition()
        self._closed = False
        self._fortio_directory = fortio_directory
        self._logs = ThreadPoolExecutor(1, "logs")
        self._asked: set[str] = set()
        self._said: dict[str, str] = {}
        self.benchmarks: dict[str, Object] = {}
        self.trials: dict[str, Object] = {}
        self.pods: dict[str, Object] = {}
        self.history: list[Moment] = []
        self.spans: dict[str, PodSpan] = {}
        self.fortio: dict[str, Object] = {}
        self.problems: list[str] = []
        self._watches = [
            Watch("frugalitybenchmarks", self._on_benchmark),
            Watch("frugalitytrials", self._on_trial),
            Watch("pods", self._on_pod),
        ]

    def close(self) -> None:
        with self._changed:
            # Threads that still wait end here, and change nothing after the session.
            self._closed = True
            self._changed.notify_all()
        for watch in self._watches:
            watch.close()
        self._logs.shutdown()

    def until(self, found: Callable[[], T | None], timeout: float, what: str) -> T:
        """Waits until ``found`` returns something true, and returns it."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                assert not self._closed, f"{what}: not seen before the end of the session"
                result = found()
                if result:
                    return result
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"{what}: not seen in {timeout:.0f} s")
                self._changed.wait(min(left, 0.5))

    # ---- events of the watches -------------------------------------------------------------------

    def _on_benchmark(self, event: str, benchmark: Object) -> None:
        key = key_of(benchmark)
        status = benchmark.get("status", {})
        complete = conditions(benchmark).get("Complete", {})
        moment = Moment(
            at=time.time(),
            key=key,
            reason=complete.get("reason", ""),
            message=complete.get("message", ""),
            conditions=conditions(benchmark),
            status=status,
        )
        with self._changed:
            if event == "DELETED":
                self.benchmarks.pop(key, None)
            else:
                self.benchmarks[key] = benchmark
                self.history.append(moment)
            self._changed.notify_all()
        self._report(event, moment)

    def _report(self, event: str, moment: Moment) -> None:
        trials = moment.status.get("columns", {}).get("trials", "")
        verdict = moment.status.get("verdict", "")
        message = moment.message.split(";")[0]
        line = "deleted" if event == "DELETED" else f"{trials:>5} {verdict or moment.reason}: {message}"
        if (moment.reason or event == "DELETED") and self._said.get(moment.key) != line:
            self._said[moment.key] = line
            say(f"{moment.key:26} {line[:150]}")

    def _on_trial(self, event: str, trial: Object) -> None:
        with self._changed:
            # Trials of a deleted benchmark are kept.
            self.trials[key_of(trial)] = trial
            self._changed.notify_all()

    def _on_pod(self, event: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        with self._changed:
            if event == "DELETED":
                self.pods.pop(uid, None)
            else:
                self.pods[uid] = pod
            self._note_span(event, pod)
            self._changed.notify_all()
        if "terminated" in container(pod, "injector") and uid not in self._asked:
            self._asked.add(uid)
            self._logs.submit(self._keep_log, pod)

    def _note_span(self, event: str, pod: Object) -> None:
        labels = pod["metadata"].get("labels", {})
        if UID_LABEL not in labels:
            return
        uid = pod["metadata"]["uid"]
        runs = event != "DELETED" and _runs(pod)
        span = self.spans.get(uid)
        # The check of the database is so short that its pod may have ended before it was seen to run.
        ends_at_once = labels.get(ROLE_LABEL) == "prepare" and "terminated" in container(pod, "prepare")
        if span is None and (runs or ends_at_once):
            span = self.spans[uid] = PodSpan(
                pod=key_of(pod),
                benchmark=labels[UID_LABEL],
                role=labels.get(ROLE_LABEL, ""),
                node=pod["spec"].get("nodeName", ""),
                begin=time.time(),
                run=labels.get(RUN_LABEL, ""),
                trial=labels.get(TRIAL_LABEL, ""),
                created=unix_seconds(pod["metadata"]["creationTimestamp"]),
                end=None if runs else time.time(),
            )
        elif span is not None:
            # A container may start after another one has ended. The pod ends with its last container.
            span.end = None if runs else span.end or time.time()
        if span is None:
            return
        if is_ready(pod):
            span.ready.add(unix_seconds(conditions(pod)["Ready"]["lastTransitionTime"]))
        if "terminated" in (state := container(pod, "injector")):
            span.injector_ended = unix_seconds(state["terminated"]["finishedAt"])

    def _keep_log(self, pod: Object) -> None:
        trial = pod["metadata"]["labels"][TRIAL_LABEL]
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        try:
            log = kubectl("logs", "-n", namespace, name, "-c", "injector").stdout
        except (KubectlError, subprocess.TimeoutExpired) as error:
            # The pod of a benchmark that was deleted under load may be gone. No test needs its log.
            if "(NotFound)" not in str(error):
                self.problems.append(f"log of {namespace}/{name}: {error}")
            return
        for line in log.splitlines():
            if line.startswith("{") and any(f'"{key}"' in line for key in RESULT_KEYS):
                with self._changed:
                    self.fortio[trial] = json.loads(line)
                    self._changed.notify_all()
                (self._fortio_directory / f"{trial}.json").write_text(line)
                return
        self.problems.append(f"log of {namespace}/{name} has no JSON of a load:\n{log[-2000:]}")

    # ---- questions -----------------------------------------------------------------------------

    def reason(self, key: str) -> str:
        return conditions(self.benchmarks.get(key, {})).get("Complete", {}).get("reason", "")

    def message(self, key: str) -> str:
        return conditions(self.benchmarks.get(key, {})).get("Complete", {}).get("message", "")

    def is_complete(self, key: str) -> bool:
        return conditions(self.benchmarks.get(key, {})).get("Complete", {}).get("status") == "True"

    def trials_of(self, key: str) -> list[Object]:
        """All entries that were ever seen in the ledger of a benchmark, in order."""
        namespace, name = key.split("/")
        with self._changed:
            mine = [
                trial
                for trial in self.trials.values()
                if trial["metadata"]["namespace"] == namespace and trial["spec"]["benchmark"] == name
            ]
        return sorted(mine, key=lambda t: [t["spec"][field] for field in ("block", "attempt", "position")])

    def pods_of(self, namespace: str, role: str) -> list[Object]:
        return self._pods(namespace, ROLE_LABEL, role)

    def pods_named(self, namespace: str, name: str) -> list[Object]:
        """Living pods of a namespace with this ``app.kubernetes.io/name``."""
        return self._pods(namespace, "app.kubernetes.io/name", name)

    def _pods(self, namespace: str, label: str, value: str) -> list[Object]:
        # The watch's thread may add a pod at any time.
        with self._changed:
            return [
                pod
                for pod in self.pods.values()
                if pod["metadata"]["namespace"] == namespace
                and pod["metadata"].get("labels", {}).get(label) == value
            ]

    def spans_now(self) -> dict[str, PodSpan]:
        """The pods that were seen to run, by their UID."""
        with self._changed:
            return {uid: replace(span, ready=set(span.ready)) for uid, span in self.spans.items()}

    def moments(self, key: str) -> list[Moment]:
        with self._changed:
            return [moment for moment in self.history if moment.key == key]


def save(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")
