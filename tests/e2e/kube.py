"""kubectl as a user types it, and watches without polling. No client library."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LAB = os.environ.get("E2E_LAB", str(ROOT / "hack/lab/lab"))
# ``hack/images`` writes kubectl-frugality there.
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
PROGRAM = ROOT / "build" / ARCHITECTURE / "kubectl-frugality"
OPERATOR_NAMESPACE = os.environ.get("E2E_OPERATOR_NAMESPACE", "frugality-system")
Object = dict[str, Any]


class KubectlError(AssertionError):
    """kubectl ended with an error that was not expected."""


def kubectl(
    *arguments: str, stdin: str | None = None, timeout: float = 60, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Runs ``kubectl ARGUMENTS...`` on the box's cluster, from the root of the repository."""
    result = subprocess.run(
        [LAB, "kubectl", *arguments],
        cwd=ROOT,
        input=stdin if stdin is not None else "",
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if check and result.returncode != 0:
        command = shlex.join(["kubectl", *arguments])
        raise KubectlError(f"{command}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result


def install(values: Object, file: Path) -> None:
    """Installs the chart as ``hack/install`` does, with further values, which it writes to ``file``."""
    file.write_text(json.dumps(values))
    release = ("upgrade", "frugality", "charts/frugality-operator", "--namespace", OPERATOR_NAMESPACE)
    options = ("--values", "hack/box-values.yaml", "--values", str(file), "--wait", "--timeout=3m")
    result = subprocess.run(
        [LAB, "helm", *release, *options],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if result.returncode != 0:
        output = f"{result.stdout}{result.stderr}"
        raise KubectlError(f"helm upgrade with {values}: exit {result.returncode}\n{output}")


def get(*arguments: str) -> Object:
    """``kubectl get ARGUMENTS... -o json``."""
    return json.loads(kubectl("get", *arguments, "-o", "json").stdout)


def duration_seconds(text: str) -> float:
    """A duration as a spec has it, for example ``1m30s``."""
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    return sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)(ms|s|m|h)", text))


def summarize(benchmark: Object) -> str:
    """The output of ``kubectl frugality summarize`` for a benchmark."""
    return _frugality("summarize", benchmark)


def export(namespace: str) -> list[Object]:
    """The output of ``kubectl frugality export`` for a namespace's ledger."""
    rows: list[Object] = json.loads(_frugality("export", get("fbt", "-n", namespace)))
    return rows


def _frugality(command: str, resource: Object) -> str:
    pod = ("exec", "-i", "-n", OPERATOR_NAMESPACE, "deployment/frugality-operator", "--")
    return kubectl(*pod, "kubectl-frugality", command, stdin=json.dumps(resource)).stdout


def table(text: str) -> list[dict[str, str]]:
    """The rows of a table of ``kubectl get``, each as column -> cell. Cells may hold single spaces."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    columns = [(match.group().strip(), match.start()) for match in re.finditer(r"\S+(?: \S+)*", lines[0])]
    ends = [start for _, start in columns[1:]] + [None]
    return [
        {name: line[start:end].strip() for (name, start), end in zip(columns, ends, strict=True)}
        for line in lines[1:]
    ]


def conditions(resource: Object) -> dict[str, Object]:
    """The conditions of a resource, by type."""
    return {c["type"]: c for c in resource.get("status", {}).get("conditions", [])}


class Watch:
    """``kubectl get KIND -A --watch``: passes each event to a listener until it is closed."""

    def __init__(self, kind: str, listener: Callable[[str, Object], None]) -> None:
        self._kind = kind
        self._listener = listener
        self._closed = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {kind}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closed.is_set():
            arguments = ["get", self._kind, "-A", "--watch", "--output-watch-events", "-o", "json"]
            # In a separate process group, because a shell in other namespaces is kubectl's parent.
            self._process = subprocess.Popen(
                [LAB, "kubectl", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            with self._process as process:
                assert process.stdout is not None
                # A line that the end of kubectl cut off is not JSON. The next watch repeats the object.
                with contextlib.suppress(json.JSONDecodeError):
                    for line in process.stdout:
                        event = json.loads(line)
                        self._listener(event["type"], event["object"])
            self._closed.wait(1)

    def close(self) -> None:
        self._closed.set()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._thread.join(10)
