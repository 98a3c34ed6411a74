"""A Canary that is promoted, held or rolled back by the verdict, with the real Flagger and the chart's gate.

Not part of the default suite: ``make gitops``.
"""

import json
import subprocess
from collections.abc import Iterator

import pytest
import yaml

import waiting
from benchmarks import FORTIO
from conftest import watched
from evidence import say
from gitops import (
    GENEROUS,
    GITOPS,
    JUDGED_SECONDS,
    KUBECONFIG,
    TIGHT,
    Shop,
    benchmark,
    controller,
    definitions,
    pod_template,
    program,
)
from kube import LAB, OPERATOR_NAMESPACE, ROOT, Object, get, kubectl

NAMESPACE = "e2e-gitops"
# A deployed pod with this image would not start, so nothing but the gate decides about it while it has no pods.
OTHER_IMAGE = "example.org/other:1"
PORT = 28330
# Flagger's shortest interval. It looks for new Canaries every ten seconds.
INTERVAL = "10s"
# Long enough to change the verdict between the first yes and the promotion.
ITERATIONS = 8
# Flagger's steps: new pods, the iterations, the promotion, and the end of the new pods.
RELEASED_SECONDS = 300
ASKED_SECONDS = 90


def deployment(version: str, image: str = FORTIO) -> Object:
    """The release. Flagger changes the number of replicas."""
    template = pod_template(version, image)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop"},
        "spec": {"selector": {"matchLabels": template["metadata"]["labels"]}, "template": template},
    }


def gate() -> list[Object]:
    """The chart's gate. The box has no registry, so its images have no digests."""
    settings = ("--set", "gate.enabled=true", "--set", "gate.allowTag=true", "--set", f"gate.namespaces={{{NAMESPACE}}}")
    # Without a cluster Helm takes a version of its own.
    version = json.loads(kubectl("get", "--raw", "/version").stdout)["gitVersion"]
    command = (LAB, "helm", "template", "frugality", "charts/frugality-operator", "--namespace", OPERATOR_NAMESPACE)
    options = (
        *("--kube-version", version, "--values", "hack/box-values.yaml"),
        *("--show-only", "templates/gate.yaml", *settings),
    )
    done = subprocess.run(
        [*command, *options], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True
    )
    return [it for it in yaml.safe_load_all(done.stdout) if it]


class Flagger:
    """The Canary of ``gitops/flagger`` and its target."""

    def __init__(self, shop: Shop, address: str) -> None:
        self.shop = shop
        text = (GITOPS / "flagger/canary.yaml").read_text()
        text = text.replace("http://frugality-gate.frugality-system", f"http://{address}")
        self.canary: Object = yaml.safe_load(text.replace("shop-release", "shop"))
        self.canary["spec"]["analysis"] |= {"interval": INTERVAL, "iterations": ITERATIONS}

    def release(self, version: str, image: str = FORTIO) -> None:
        self.shop.apply(deployment(version, image))

    def judge(self, budget: float) -> str:
        """Changes the budget, and returns the verdict."""
        self.shop.apply(benchmark(NAMESPACE, budget))
        return self.shop.verdict(JUDGED_SECONDS)

    def active(self) -> str:
        """The version of the pods that get the traffic."""
        primary = get("deployment", "shop-primary", "-n", NAMESPACE)
        (server,) = primary["spec"]["template"]["spec"]["containers"]
        return str(server["env"][0]["value"])

    def phase(self) -> str:
        return str(get("canary", "shop", "-n", NAMESPACE).get("status", {}).get("phase"))

    def until_phase(self, phase: str, seconds: float = ASKED_SECONDS) -> None:
        waiting.until(lambda: self.phase() == phase, seconds, f"phase {phase}", every=2)

    def until_released(self, version: str) -> None:
        self.until_phase("Succeeded", RELEASED_SECONDS)
        assert self.active() == version

    def is_held(self, version: str) -> None:
        """Checks that Flagger asks, that the old release stays, and that no pod of the new one starts."""
        self.until_phase("Waiting")

        def holds() -> bool:
            target = get("deployment", "shop", "-n", NAMESPACE)
            return self.phase() == "Waiting" and self.active() == version and target["spec"]["replicas"] == 0

        waiting.hold(25, holds, f"version {version}", every=2)

    def answers(self) -> str:
        """The gate's log."""
        return kubectl("logs", "-n", OPERATOR_NAMESPACE, "deployment/frugality-gate", "--tail=20").stdout


@pytest.fixture(scope="module")
def flagger(request: pytest.FixtureRequest) -> Iterator[Flagger]:
    definitions("flagger")
    flags = (
        *("-kubeconfig", str(KUBECONFIG), "-namespace", NAMESPACE, "-port", str(PORT)),
        *("-mesh-provider", "kubernetes", "-log-level", "info", "-selector-labels", "app"),
    )
    with watched([NAMESPACE], request):
        manifest = "\n---\n".join(json.dumps(it) for it in gate())
        kubectl("apply", "-f", "-", stdin=manifest)
        try:
            kubectl("rollout", "status", "deployment/frugality-gate", "-n", OPERATOR_NAMESPACE, timeout=90)
            address = get("service", "frugality-gate", "-n", OPERATOR_NAMESPACE)["spec"]["clusterIP"]
            with controller("flagger", program("flagger"), *flags):
                yield Flagger(Shop(NAMESPACE), address)
            say(kubectl("logs", "-n", OPERATOR_NAMESPACE, "deployment/frugality-gate").stdout)
        finally:
            kubectl("delete", "--ignore-not-found", "-f", "-", stdin=manifest)


def test_flagger_holds_the_release_until_the_verdict_and_promotes_it_on_pass(flagger: Flagger) -> None:
    flagger.release("1")
    flagger.shop.apply(flagger.canary)
    flagger.until_phase("Initialized", RELEASED_SECONDS)
    flagger.shop.apply(benchmark(NAMESPACE, GENEROUS))
    flagger.release("2")
    flagger.shop.until_measuring()
    flagger.is_held("1")
    assert "verdict" not in flagger.shop.status(), "the measurement ended before Flagger asked"
    assert "Not yet: benchmark shop" in flagger.answers()
    assert flagger.shop.verdict() == "Pass"
    flagger.until_released("2")


def test_flagger_holds_the_release_on_fail(flagger: Flagger) -> None:
    assert flagger.judge(TIGHT) == "Fail"
    flagger.release("3")
    flagger.is_held("2")
    assert "benchmark shop has the verdict Fail" in flagger.answers()


def test_flagger_rolls_a_release_back_whose_verdict_becomes_fail(flagger: Flagger) -> None:
    assert flagger.judge(GENEROUS) == "Pass"
    flagger.until_phase("Progressing")
    assert flagger.judge(TIGHT) == "Fail"
    flagger.until_phase("Failed", RELEASED_SECONDS)
    assert flagger.active() == "2"
    assert "Roll back: benchmark shop has the verdict Fail" in flagger.answers()


def test_flagger_holds_the_release_on_inconclusive(flagger: Flagger) -> None:
    assert flagger.judge(flagger.shop.undecided_budget()) == "Inconclusive"
    flagger.release("4")
    flagger.is_held("2")


def test_flagger_promotes_the_release_once_the_budget_is_met(flagger: Flagger) -> None:
    assert flagger.judge(GENEROUS) == "Pass"
    flagger.until_released("4")


def test_flagger_holds_another_image_than_the_measured_one(flagger: Flagger) -> None:
    assert flagger.shop.verdict(JUDGED_SECONDS) == "Pass"
    flagger.release("5", OTHER_IMAGE)
    flagger.is_held("4")
    assert "benchmark shop does not measure the image" in flagger.answers()
