"""A release is installed and upgraded from its artifacts alone: chart, images and install.yaml.

Not part of the default suite: ``make release-test``. hack/release pushes what hack/images has built at this
commit to a registry that runs in the network of each node. Kubelets pull from it by digest: for 127.0.0.1
containerd uses HTTP.

Each test continues from the state that the previous one left. The module removes the operator and its
definitions for a time, so no other benchmark may be in the cluster.
"""

import contextlib
import json
import os
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import box
import waiting
from benchmarks import EXAMPLE, SHORT, apply_example
from conftest import remove_namespaces
from evidence import say
from gitops import KUBECONFIG, MEASURED_SECONDS, controller, empty, program
from kube import OPERATOR_NAMESPACE, ROOT, Object, get, kubectl
from releases import (
    RELEASE,
    apply,
    assert_no_benchmarks,
    contains,
    ended,
    found,
    ledger,
    remove_definitions,
)

VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
PUBLISHED = "ghcr.io/frugality-dev"
PORT = 28500
REGISTRY = f"127.0.0.1:{PORT}/frugality"
CHART = f"oci://{REGISTRY}/charts/frugality-operator"
FROM_REGISTRY = (CHART, "--version", VERSION, "--plain-http")
CHECKOUT = str(ROOT / "charts/frugality-operator")
BOX_VALUES = ("--values", str(ROOT / "hack/box-values.yaml"))
OUT = ROOT / "build/release" / VERSION
FILES = box.ARTIFACTS / "release"
NAMESPACE = "e2e-release"
CONFIGURATION = {
    "version": "0.1",
    "storage": {"filesystem": {"rootdirectory": str(FILES / "data")}},
    "http": {"addr": f"127.0.0.1:{PORT}"},
}
# The registry would send its traces to a collector.
NO_TRACES = {"OTEL_TRACES_EXPORTER": "none"}
EXAMPLE_SECONDS = 1800


def helm(*arguments: str) -> str:
    """Runs helm in the network of the injector's node, from which it reaches API server and registry."""
    command = [*box.in_network_of(box.INJECTOR_NODE), program("helm")]
    command += ["--namespace", OPERATOR_NAMESPACE, *arguments]
    environment = {"KUBECONFIG": str(KUBECONFIG), "HOME": str(FILES), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def release() -> Iterator[None]:
    """The registry with the release. At the end the chart of this checkout is installed again."""
    assert_no_benchmarks(but_of=NAMESPACE)
    empty(FILES)
    configuration = FILES / "registry.yaml"
    configuration.write_text(json.dumps(CONFIGURATION))
    values = FILES / "values.json"
    values.write_text(helm("get", "values", RELEASE, "--output", "json"))
    remove_namespaces([NAMESPACE], wait=True)
    kubectl("create", "namespace", NAMESPACE)
    kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    with contextlib.ExitStack() as stack:
        for node in (box.INJECTOR_NODE, box.MEASURED_NODE):
            serve = (program("registry"), "serve", str(configuration))
            stack.enter_context(controller(f"registry-{node}", *serve, node=node, **NO_TRACES))
        push = [*box.in_network_of(box.INJECTOR_NODE), str(ROOT / "hack/release")]
        push += ["--no-build", "--registry", REGISTRY, "--plain-http"]
        environment = dict(os.environ) | {"HELM": program("helm")}
        subprocess.run(push, env=environment, check=True, timeout=900)
        try:
            yield
        finally:
            installed = ("--values", str(values), "--take-ownership", "--wait")
            helm("upgrade", "--install", RELEASE, CHECKOUT, *installed)
            remove_namespaces([NAMESPACE], wait=False)
    shutil.rmtree(FILES / "data")


def digests() -> dict[str, str]:
    """The reference with a digest of each image that the release pushed."""
    lines = (OUT / "images.txt").read_text().split()
    return {line.removeprefix(f"{REGISTRY}/").partition(":")[0]: line for line in lines}


def container(kind: str, name: str) -> Object:
    """The container of a workload of the operator's namespace."""
    pod = get(kind, name, "-n", OPERATOR_NAMESPACE)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return container


def assert_the_release_runs(*workloads: str) -> None:
    """Checks that the workloads run the images of the registry by their digests."""
    for workload in workloads:
        kubectl("rollout", "status", workload, "-n", OPERATOR_NAMESPACE, "--timeout=3m", timeout=200)
    operator = container("deployment", "frugality-operator")
    assert operator["image"] == digests()["operator"]
    environment = {it["name"]: it.get("value") for it in operator["env"]}
    assert environment["FRUGALITY_INJECTOR_IMAGE"] == digests()["injector"]
    assert environment["FRUGALITY_INJECTOR_K6_IMAGE"] == digests()["injector-k6"]
    assert container("daemonset", "frugality-meter")["image"] == digests()["meter"]


@pytest.fixture
def previous(tmp_path: Path) -> str:
    """The chart of the commit before this one."""
    archive = subprocess.run(
        ["git", "archive", "HEAD~1", "charts/frugality-operator"], cwd=ROOT, check=True, capture_output=True
    )
    subprocess.run(["tar", "--extract", "--directory", tmp_path], input=archive.stdout, check=True)
    return str(tmp_path / "charts/frugality-operator")


def test_an_upgrade_keeps_what_has_ended_and_finishes_what_runs(previous: str) -> None:
    """From the chart of the previous commit, with the images that hack/install loaded into the nodes."""
    images = {
        "image": "operator",
        "injector.image": "injector",
        "injector.k6Image": "injector-k6",
        "meter.image": "meter",
    }
    loaded = [f"{value}.repository={PUBLISHED}/{name}" for value, name in images.items()]
    loaded += [f"{value}.tag={VERSION}" for value in images]
    flags = [word for setting in loaded for word in ("--set", setting)]
    helm("upgrade", RELEASE, previous, *BOX_VALUES, *flags, "--take-ownership", "--wait", "--timeout=3m")
    apply("ended", NAMESPACE)
    before = ended("ended", NAMESPACE, MEASURED_SECONDS)
    entries = ledger("ended", NAMESPACE)
    assert before["status"]["verdict"] == "Pass"
    assert len(entries) >= 5
    apply("running", NAMESPACE)
    waiting.until(lambda: ledger("running", NAMESPACE), 300, "a measured attempt", every=2)
    measured = ledger("running", NAMESPACE)

    helm("upgrade", RELEASE, *FROM_REGISTRY, *BOX_VALUES, "--wait", "--timeout=5m")
    assert_the_release_runs("deployment/frugality-operator", "daemonset/frugality-meter")
    say("upgraded during a run")
    running = ended("running", NAMESPACE, MEASURED_SECONDS)
    assert running["status"]["verdict"] == "Pass", running["status"]
    # The attempts before the upgrade still count.
    now = ledger("running", NAMESPACE)
    assert {uid: now.get(uid) for uid in measured} == measured
    # Nothing is measured again, and every figure, sentence and time is the same.
    assert ledger("ended", NAMESPACE) == entries
    status = found("ended", NAMESPACE)["status"]
    assert contains(status, before["status"]), (status, before["status"])


def test_a_new_installation_from_the_registry_runs_the_example() -> None:
    helm("uninstall", RELEASE, "--wait")
    remove_definitions()
    helm("install", RELEASE, *FROM_REGISTRY, *BOX_VALUES, "--wait", "--timeout=5m")
    assert_the_release_runs("deployment/frugality-operator", "daemonset/frugality-meter")
    assert "Phase:          Succeeded" in helm("test", RELEASE)
    example = FILES / "example.yaml"
    example.write_text((ROOT / EXAMPLE).read_text().replace(PUBLISHED, REGISTRY))
    name = apply_example(NAMESPACE, str(example), SHORT)
    status = ended(name, NAMESPACE, EXAMPLE_SECONDS)["status"]
    assert (status["verdict"], status.get("winner")) == ("Pass", "rust"), status


def test_install_yaml_alone_leads_to_a_verdict() -> None:
    """The box has no sensor, so its meters get a model as docs/versions.md describes it."""
    helm("uninstall", RELEASE, "--wait")
    remove_definitions()
    began = time.monotonic()
    manifest = OUT / "install.yaml"
    meter = yaml.safe_load((ROOT / "hack/box-values.yaml").read_text())["meter"]
    model = {
        "BOARD": meter["board"],
        "IDLE_WATTS": meter["idleWatts"],
        "WATTS_PER_CPU": meter["wattsPerCpu"],
        "INTERVAL": meter["interval"],
        "CPUS": meter["cpus"],
        "CGROUP_ROOT": meter["cgroupRoot"],
    }
    try:
        kubectl("apply", "--server-side", "-f", str(manifest), timeout=120)
        settings = [f"FRUGALITY_METER_{name}={value}" for name, value in model.items()]
        daemon_set = "daemonset/frugality-meter"
        kubectl("set", "env", daemon_set, "-n", OPERATOR_NAMESPACE, "FRUGALITY_METER_POWER_CONFIG-", *settings)
        assert_the_release_runs("deployment/frugality-operator", daemon_set)
        # install.yaml allows benchmarks in this namespace only.
        apply("release", "default")
        status = ended("release", "default", MEASURED_SECONDS)["status"]
        assert status["verdict"] == "Pass", status
        say(f"from install.yaml to a verdict in {time.monotonic() - began:.0f} s")
    finally:
        kept = ("Namespace", "CustomResourceDefinition")
        objects = [it for it in yaml.safe_load_all(manifest.read_text()) if it["kind"] not in kept]
        kubectl("delete", "fb", "release", "-n", "default", "--ignore-not-found", "--timeout=60s", timeout=90)
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        kubectl("delete", "--ignore-not-found", "-f", "-", stdin=json.dumps(items), timeout=120)
        kubectl("label", "namespace", OPERATOR_NAMESPACE, "pod-security.kubernetes.io/enforce-")
