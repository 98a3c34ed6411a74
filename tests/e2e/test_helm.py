"""Helm 4 waits for the verdict of a benchmark in a chart, and fails with its message. It also tests the installation.

Not part of the default suite: ``make gitops``. Helm installs the release beside its benchmark, so it holds nothing back. With
``--rollback-on-failure`` it returns to the revision before.
"""

import subprocess
from collections.abc import Iterator

import pytest

import box
from conftest import watched
from evidence import say
from gitops import GENEROUS, KUBECONFIG, TIGHT, Shop, app, benchmark, empty, program, write
from kube import OPERATOR_NAMESPACE, Object, get

NAMESPACE = "e2e-gitops"
CHART = box.ARTIFACTS / "chart"


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
        command = [*box.in_network_of(box.INJECTOR_NODE), program("helm-4"), *arguments]
        environment = {"KUBECONFIG": str(KUBECONFIG), "HOME": str(CHART), "PATH": "/usr/bin:/bin"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)


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


def test_helm_tests_the_installation_and_shows_each_check(helm: Helm) -> None:
    done = helm.run("test", "frugality", "--namespace", OPERATOR_NAMESPACE, "--logs", "--timeout=2m")
    assert done.returncode == 0, done.stderr
    for check in ("definitions", "operator", "meters", "database", "storage"):
        assert f"OK    {check} " in done.stdout, done.stdout
    pods = get("pods", "-n", OPERATOR_NAMESPACE)["items"]
    assert not [it for it in pods if it["metadata"]["name"].endswith(("-test", "-doctor"))]
