"""Helm 4 and the verdict of a benchmark in a chart. Helm also tests the installation.

Not part of the default suite: ``make gitops``. If the benchmark is an ordinary template, Helm waits for it and fails with its
message. It installs the release in addition to the benchmark, so it holds nothing back, and returns to the revision before with
``--rollback-on-failure``. If the benchmark is a hook, as in ``gitops/helm``, Helm holds the release back.
"""

import json
import subprocess
import time
from collections.abc import Iterator

import pytest

import box
import waiting
from benchmarks import FORTIO
from conftest import watched
from evidence import say
from gitops import (
    GENEROUS,
    GITOPS,
    JUDGED_SECONDS,
    KUBECONFIG,
    MEASURED_SECONDS,
    TIGHT,
    Shop,
    app,
    benchmark,
    empty,
    program,
    write,
)
from kube import OPERATOR_NAMESPACE, Object, get, kubectl

NAMESPACE = "e2e-gitops"
HOOKED = "e2e-gitops-hook"
CHART = box.ARTIFACTS / "chart"
# So that a benchmark ends with Inconclusive, because this is too little for a verdict.
ONE_BLOCK = {"blocks": 1, "idleBaseline": "5s", "maxAttempts": 10}


class Helm:
    """A chart with a benchmark and an app."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        empty(CHART)
        write(CHART / "Chart.yaml", {"apiVersion": "v2", "name": "shop", "version": "0.1.0"})

    def write(self, version: str, gate: Object) -> None:
        write(CHART / "templates/benchmark.yaml", gate)
        write(CHART / "templates/app.yaml", app(NAMESPACE, version))

    def upgrade(self, *flags: str) -> subprocess.CompletedProcess[str]:
        release = ("upgrade", "--install", "shop", str(CHART), "--namespace", NAMESPACE)
        return self.run(*release, "--wait", *flags)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = start(*arguments)
        output, error = process.communicate(timeout=1200)
        return subprocess.CompletedProcess(arguments, process.returncode, output, error)


def start(*arguments: str) -> subprocess.Popen[str]:
    """Starts helm in the network of the injector's node, from which it reaches the API server."""
    command = [*box.in_network_of(box.INJECTOR_NODE), program("helm-4"), *arguments]
    environment = {"KUBECONFIG": str(KUBECONFIG), "HOME": str(CHART), "PATH": "/usr/bin:/bin"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Hooked:
    """The chart of ``gitops/helm`` with an app, and with a benchmark of the tests."""

    def __init__(self) -> None:
        self.shop = Shop(HOOKED)

    def upgrade(self, version: str, gate: Object, image: str = FORTIO) -> subprocess.Popen[str]:
        """Starts the installation of a version whose gate accepts this image."""
        chart = empty(CHART)
        for name in ("Chart.yaml", "templates/energy-gate.yaml"):
            (chart / name).parent.mkdir(exist_ok=True)
            text = (GITOPS / "helm" / name).read_text()
            # The box has no registry, so its images have no digests.
            (chart / name).write_text(text.replace("--timeout=8h", "--allow-tag"))
        write(chart / "values.yaml", {"image": image})
        spec = json.dumps(gate["spec"])
        text = (GITOPS / "helm/templates/benchmark.yaml").read_text()
        begin, rest = text.split('{{- define "energy-gate.spec" }}\n')
        rest = rest.partition("\n{{- end }}\n")[2]
        definition = f'{{{{- define "energy-gate.spec" }}}}\n{spec}\n{{{{- end }}}}\n'
        (chart / "templates/benchmark.yaml").write_text(begin + definition + rest)
        write(chart / "templates/app.yaml", app(HOOKED, version))
        return start("upgrade", "--install", "shop", str(chart), "--namespace", HOOKED, "--wait", "--timeout=15m")

    def fails(self, version: str, gate: Object, image: str = FORTIO) -> str:
        """What Helm prints about a release that does not pass. The release before stays."""
        upgrade = self.upgrade(version, gate, image)
        output, error = upgrade.communicate(timeout=1200)
        say(output + error)
        assert upgrade.returncode != 0, output
        # Not a refusal of the API server.
        assert "nergy gate" in output + error
        assert self.shop.version() == "1"
        return output + error


@pytest.fixture(scope="module")
def helm(request: pytest.FixtureRequest) -> Iterator[Helm]:
    with watched([NAMESPACE], request):
        yield Helm(Shop(NAMESPACE))


def test_helm_returns_after_the_verdict_pass(helm: Helm) -> None:
    helm.write("1", benchmark(NAMESPACE, GENEROUS))
    done = helm.upgrade("--timeout=15m")
    assert done.returncode == 0, done.stderr
    assert helm.shop.status()["verdict"] == "Pass"


def test_helm_fails_with_the_reason_and_rolls_back(helm: Helm) -> None:
    helm.write("2", benchmark(NAMESPACE, TIGHT))
    done = helm.upgrade("--timeout=5m", "--rollback-on-failure")
    say(done.stderr)
    assert done.returncode != 0
    assert "Budget exceeded for server" in done.stderr
    assert helm.shop.version() == "1"
    assert helm.shop.verdict() == "Pass"


def test_helm_fails_on_inconclusive(helm: Helm) -> None:
    helm.write("2", benchmark(NAMESPACE, helm.shop.undecided_budget()))
    done = helm.upgrade("--timeout=5m", "--rollback-on-failure")
    assert done.returncode != 0
    assert "Undecided for server" in done.stderr
    assert helm.shop.version() == "1"


@pytest.fixture(scope="module")
def hooked(request: pytest.FixtureRequest) -> Iterator[Hooked]:
    with watched([HOOKED], request):
        yield Hooked()


def test_a_hook_holds_the_release_until_the_verdict_and_helm_applies_it_on_pass(hooked: Hooked) -> None:
    upgrade = hooked.upgrade("1", benchmark(HOOKED, GENEROUS))
    hooked.shop.until_measuring()

    def has_verdict() -> bool:
        if "verdict" in hooked.shop.status() or upgrade.poll() is not None:
            return True
        assert hooked.shop.version() is None, "the release was not held"
        return False

    waiting.until(has_verdict, MEASURED_SECONDS, "a verdict", every=2)
    output, error = upgrade.communicate(timeout=120)
    assert upgrade.returncode == 0, output + error
    assert hooked.shop.status()["verdict"] == "Pass"
    assert hooked.shop.version() == "1"
    assert hooked.shop.deployed_after_the_verdict()


def test_a_hook_stops_a_release_on_fail_and_helm_prints_the_reason(hooked: Hooked) -> None:
    assert "Budget exceeded for server" in hooked.fails("2", benchmark(HOOKED, TIGHT))


def test_a_retry_of_a_stopped_release_measures_nothing_again(hooked: Hooked) -> None:
    uid = get("fb", "shop-energy", "-n", HOOKED)["metadata"]["uid"]
    began = time.monotonic()
    assert "Budget exceeded for server" in hooked.fails("2", benchmark(HOOKED, TIGHT))
    assert time.monotonic() - began < JUDGED_SECONDS
    assert get("fb", "shop-energy", "-n", HOOKED)["metadata"]["uid"] == uid


def test_a_budget_that_was_edited_in_the_cluster_does_not_let_the_release_through(hooked: Hooked) -> None:
    uid = get("fb", "shop-energy", "-n", HOOKED)["metadata"]["uid"]
    budgets = benchmark(HOOKED, GENEROUS)["spec"]["budgets"]
    patch = json.dumps({"spec": {"budgets": budgets}})
    kubectl("patch", "fb", "shop-energy", "-n", HOOKED, "--type=merge", "--patch", patch)
    status = hooked.shop.status
    waiting.until(lambda: status().get("verdict") == "Pass", JUDGED_SECONDS, "a Pass of the patched budgets", every=2)
    assert "Budget exceeded for server" in hooked.fails("2", benchmark(HOOKED, TIGHT))
    assert get("fb", "shop-energy", "-n", HOOKED)["metadata"]["uid"] != uid


def test_a_hook_stops_a_release_on_inconclusive(hooked: Hooked) -> None:
    short = benchmark(HOOKED, GENEROUS)
    short["spec"]["trials"] = ONE_BLOCK
    # Budgets need five blocks.
    del short["spec"]["budgets"]
    assert "TooFewBlocks" in hooked.fails("2", short)


def test_a_hook_refuses_a_verdict_about_another_image(hooked: Hooked) -> None:
    other = f"{FORTIO}-other"
    assert other in hooked.fails("2", benchmark(HOOKED, GENEROUS), image=other)


def test_helm_tests_the_installation_and_shows_each_check(helm: Helm) -> None:
    done = helm.run("test", "frugality", "--namespace", OPERATOR_NAMESPACE, "--logs", "--timeout=2m")
    assert done.returncode == 0, done.stderr
    for check in ("definitions", "operator", "meters", "database", "storage"):
        assert f"OK    {check} " in done.stdout, done.stdout
    pods = get("pods", "-n", OPERATOR_NAMESPACE)["items"]
    assert not [it for it in pods if it["metadata"]["name"].endswith(("-test", "-doctor"))]
