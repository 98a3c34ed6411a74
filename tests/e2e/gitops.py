"""What the gates' tests share: a controller as a process, a release, and the benchmark that gates it.

The controllers are upstream's own programs. They run as processes in the network of the injector's node instead of in pods,
so no images of them are needed.
"""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import box
import waiting
from benchmarks import FORTIO, FORTIO_ARGS, spec
from kube import LAB, OPERATOR_NAMESPACE, ROOT, Object, get, kubectl

KUBECONFIG = box.LAB_DIR / "kubeconfig"
GITOPS = ROOT / "gitops"
# No limit that a request of this server could exceed, and one that it can't keep.
GENEROUS, TIGHT = 1.0, 1e-9
# Enough for five blocks, with blocks that are measured again.
MEASURED_SECONDS = 900
# A verdict on other budgets needs no measurement.
JUDGED_SECONDS = 60


def program(name: str) -> str:
    """The path of a program that the lab built."""
    found = subprocess.run([LAB, "part", name], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def definitions(name: str) -> None:
    """Installs the custom resources of a program that the lab built."""
    manifest = Path(program(name)).parent / "release.yaml"
    kubectl("apply", "--server-side", "-f", "-", stdin=manifest.read_text(), timeout=120)


@contextlib.contextmanager
def controller(
    name: str, *command: str, cwd: Path = ROOT, node: str = box.INJECTOR_NODE, **environment: str
) -> Iterator[None]:
    """Runs a program in the network of a node, with the box's kubeconfig. Its log is evidence."""
    box.ARTIFACTS.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ) | {"KUBECONFIG": str(KUBECONFIG)} | environment
    with (box.ARTIFACTS / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [*box.in_network_of(node), *command],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            # A wrong option ends it at once.
            waiting.hold(2, lambda: process.poll() is None, f"{name} ({log.name})")
            yield
            assert process.poll() is None, f"{name} has ended: see {log.name}"
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def benchmark(namespace: str, budget: float, **changes: object) -> Object:
    """A benchmark of the release's server with a budget on joules."""
    server = {"name": "server", "image": FORTIO, "args": FORTIO_ARGS, "readinessPath": "/debug"}
    return {
        "apiVersion": "frugality.dev/v1alpha1",
        "kind": "FrugalityBenchmark",
        "metadata": {"namespace": namespace, "name": "shop"},
        "spec": spec(
            candidates=[server],
            request={"path": "/?size=100"},
            load={"duration": "20s", "warmUp": "2s", "rate": 1000},
            trials={"blocks": 5, "idleBaseline": "5s", "maxAttempts": 10},
            energy={"allowModelled": True},
            budgets=[{"candidate": "server", "maxJoulesPerRequest": budget}],
            **changes,
        ),
    }


def app(namespace: str, version: str) -> Object:
    """The release: a Deployment without pods, so that it disturbs no measurement."""
    labels = {"app": "shop"}
    container = {"name": "server", "image": FORTIO, "args": FORTIO_ARGS}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": "shop", "labels": {"version": version}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def pod_template(version: str, image: str = FORTIO) -> Object:
    """The template of the release's pods: on the injector's node, where they disturb no measurement."""
    server = {
        "name": "server",
        "image": image,
        "args": FORTIO_ARGS,
        "env": [{"name": "VERSION", "value": version}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": box.INJECTOR_NODE},
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [server],
    }
    return {"metadata": {"labels": {"app": "shop"}}, "spec": spec}


@dataclass(frozen=True)
class Shop:
    """What the cluster has of the release."""

    namespace: str

    def apply(self, resource: Object) -> None:
        kubectl("apply", "-n", self.namespace, "-f", "-", stdin=json.dumps(resource))

    def benchmark(self) -> Object:
        return get("fb", "shop", "-n", self.namespace)

    def status(self) -> Object:
        """The status, empty before the benchmark exists."""
        found = get("fb", "-n", self.namespace)["items"]
        return found[0].get("status", {}) if found else {}

    def version(self) -> str | None:
        """The version of the app that is deployed."""
        found = get("deployment", "-n", self.namespace, "-l", "app!=frugality")["items"]
        shops = [it for it in found if it["metadata"]["name"] == "shop"]
        return shops[0]["metadata"]["labels"]["version"] if shops else None

    def until_version(self, version: str, seconds: float = JUDGED_SECONDS) -> None:
        waiting.until(lambda: self.version() == version, seconds, f"version {version}", every=2)

    def keeps_version(self, version: str) -> None:
        """Checks that the release stays while its tool asks some more times. Flux asks every five seconds."""
        waiting.hold(20, lambda: self.version() == version, f"version {version}", every=2)

    def until_measuring(self) -> None:
        """Waits until a trial is under way, so that the gate waits for a real measurement."""
        waiting.until(lambda: self.status().get("phase"), 120, "a phase of the run", every=2)

    def verdict(self, seconds: float = MEASURED_SECONDS) -> str:
        """The verdict of the current generation."""
        waiting.until(self._has_ended, seconds, "a verdict", every=5)
        return str(self.status()["verdict"])

    def _has_ended(self) -> bool:
        benchmark = self.benchmark()
        status = benchmark["status"]
        is_current = status["observedGeneration"] == benchmark["metadata"]["generation"]
        return is_current and "verdict" in status

    def undecided_budget(self) -> float:
        """A limit inside the interval of the measured figure."""
        (budget,) = self.status()["budgets"]
        return float(budget["figure"]["value"])

    def deployed_after_the_verdict(self) -> bool:
        """Whether the API server created the app after the run had ended."""
        created = get("deployment", "shop", "-n", self.namespace)["metadata"]["creationTimestamp"]
        conditions = {it["type"]: it for it in self.status()["conditions"]}
        return str(created) >= str(conditions["Complete"]["lastTransitionTime"])


@contextlib.contextmanager
def without_operator() -> Iterator[None]:
    """Ends the operator, and starts it again at the end."""
    scale = ("scale", "deployment/frugality-operator", "-n", OPERATOR_NAMESPACE)
    wait = ("wait", "pod", "-n", OPERATOR_NAMESPACE, "-l", "app.kubernetes.io/name=frugality-operator")
    kubectl(*scale, "--replicas=0")
    kubectl(*wait, "--for=delete", "--timeout=60s", timeout=70)
    try:
        yield
    finally:
        kubectl(*scale, "--replicas=1")
        kubectl("rollout", "status", "deployment/frugality-operator", "-n", OPERATOR_NAMESPACE, timeout=90)


def empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def write(path: Path, *objects: Object) -> None:
    """Writes objects as one file. JSON is YAML."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n---\n".join(json.dumps(it) for it in objects))
