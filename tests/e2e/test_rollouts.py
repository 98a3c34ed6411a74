"""A Rollout that is promoted or aborted by the verdict, with the real controller of Argo Rollouts.

Not part of the default suite, because the controller takes minutes to build: ``make gitops``.
"""

import json
from collections.abc import Iterator

import pytest
import yaml

import box
import waiting
from benchmarks import FORTIO
from conftest import watched
from evidence import say
from gitops import (
    GENEROUS,
    GITOPS,
    JUDGED_SECONDS,
    TIGHT,
    Shop,
    benchmark,
    controller,
    definitions,
    pod_template,
    program,
    without_operator,
)
from kube import Object, get

NAMESPACE = "e2e-gitops"
OTHER_IMAGE = "example.org/other:1"
# Exit codes of the gate.
FAIL, INCONCLUSIVE, OTHER = 10, 11, 16
API_SERVER = "https://10.240.0.2:6443"
METRICS, HEALTH = 28320, 28321
# A Job starts a pod, which asks the API server.
ANALYSIS_SECONDS = 120


def rollout(version: str) -> Object:
    """The release as a Rollout with one pod."""
    template = pod_template(version)
    arguments = [{"name": "benchmark", "value": "shop"}, {"name": "image", "value": FORTIO}]
    strategy = {
        "activeService": "shop-active",
        "previewService": "shop-preview",
        "prePromotionAnalysis": {"templates": [{"templateName": "energy-gate"}], "args": arguments},
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "shop"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": template["metadata"]["labels"]},
            "template": template,
            "strategy": {"blueGreen": strategy},
        },
    }


class Rollouts:
    """The files of ``gitops/argo-rollouts`` and a Rollout that uses them."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        for file in ("analysis-job.yaml", "analysis-web.yaml"):
            text = (GITOPS / "argo-rollouts" / file).read_text()
            # The box has no registry, so its images have no digests.
            text = text.replace("--timeout=8h", "--allow-tag")
            for resource in yaml.safe_load_all(text):
                self.shop.apply(resource)
        for name in ("active", "preview"):
            ports = [{"port": 80, "targetPort": 8080}]
            spec = {"selector": {"app": "shop"}, "ports": ports}
            metadata = {"name": f"shop-{name}"}
            self.shop.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})

    def release(self, version: str) -> None:
        self.shop.apply(rollout(version))

    def judge(self, budget: float) -> str:
        """Changes the budget, and returns the verdict."""
        self.shop.apply(benchmark(NAMESPACE, budget))
        return self.shop.verdict(JUDGED_SECONDS)

    def active(self) -> str:
        """The version that the active Service selects."""
        selector = get("service", "shop-active", "-n", NAMESPACE)["spec"]["selector"]
        (found,) = get("replicaset", "-n", NAMESPACE, "-l", _label(selector))["items"]
        (server,) = found["spec"]["template"]["spec"]["containers"]
        return str(server["env"][0]["value"])

    def until_phase(self, phase: str) -> str:
        def status() -> Object:
            found = get("rollout", "shop", "-n", NAMESPACE)
            status: Object = found.get("status", {})
            is_current = status.get("observedGeneration") == str(found["metadata"]["generation"])
            return status if is_current and status.get("phase") == phase else {}

        return str(waiting.until(status, ANALYSIS_SECONDS, f"phase {phase}", every=2).get("message", ""))

    def is_asking(self) -> bool:
        """Whether the analysis before a promotion is under way."""
        runs = get("analysisrun", "-n", NAMESPACE, "-l", "rollout-type=PrePromotion")["items"]
        return any(run.get("status", {}).get("phase") == "Running" for run in runs)

    def analysis(self, name: str, template: str, **arguments: str) -> None:
        """Starts an AnalysisRun of a template."""
        spec = get("analysistemplate", template, "-n", NAMESPACE)["spec"]
        for argument in spec["args"]:
            if argument["name"] in arguments:
                argument["value"] = arguments[argument["name"]]
        kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun"}
        self.shop.apply(kind | {"metadata": {"name": name}, "spec": spec})

    def web(self, name: str, image: str = FORTIO, candidate: str = "server") -> None:
        self.analysis(
            name,
            "energy-gate-web",
            **{
                "namespace": NAMESPACE,
                "benchmark": "shop",
                "candidate": candidate,
                "image": image,
                "api-server": API_SERVER,
            },
        )

    def last_exit_code(self) -> int:
        """Exit code of the gate in the newest Job's pod."""
        pods = get("pods", "-n", NAMESPACE, "-l", "batch.kubernetes.io/job-name")["items"]
        gates = [pod for pod in pods if pod["spec"]["containers"][0]["name"] == "gate"]
        newest = max(gates, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        (container,) = newest["status"]["containerStatuses"]
        return int(container["state"]["terminated"]["exitCode"])

    def phase(self, name: str) -> str:
        return str(get("analysisrun", name, "-n", NAMESPACE).get("status", {}).get("phase"))

    def measurements(self, name: str) -> list[str]:
        """The results of the questions of an AnalysisRun so far."""
        (metric,) = get("analysisrun", name, "-n", NAMESPACE)["status"].get("metricResults", [{}])
        return [it["phase"] for it in metric.get("measurements", [])]

    def until_analysed(self, name: str, phase: str) -> None:
        waiting.until(lambda: self.phase(name) == phase, ANALYSIS_SECONDS, f"{name} {phase}", every=2)


def _label(selector: dict[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in selector.items())


@pytest.fixture(scope="module")
def rollouts(request: pytest.FixtureRequest) -> Iterator[Rollouts]:
    definitions("rollouts-controller")
    flags = ("--leader-elect=false", f"--metricsPort={METRICS}", f"--healthzPort={HEALTH}", "--loglevel=info")
    trusted = {"SSL_CERT_FILE": str(box.LAB_DIR / "pki/ca.crt")}
    with watched([NAMESPACE], request), controller("rollouts", program("rollouts-controller"), *flags, **trusted):
        yield Rollouts(Shop(NAMESPACE))


def test_rollouts_holds_the_release_until_the_verdict_and_promotes_it_on_pass(rollouts: Rollouts) -> None:
    rollouts.release("1")
    rollouts.until_phase("Healthy")
    rollouts.shop.apply(benchmark(NAMESPACE, GENEROUS))
    rollouts.release("2")
    rollouts.web("web-pass")
    rollouts.shop.until_measuring()
    assert rollouts.active() == "1"
    waiting.until(lambda: rollouts.measurements("web-pass"), 60, "an answer to the web analysis", every=2)
    assert set(rollouts.measurements("web-pass")) == {"Inconclusive"}
    assert rollouts.shop.verdict() == "Pass"
    rollouts.until_phase("Healthy")
    assert rollouts.active() == "2"
    rollouts.until_analysed("web-pass", "Successful")


def test_rollouts_aborts_the_release_on_fail(rollouts: Rollouts) -> None:
    assert rollouts.judge(TIGHT) == "Fail"
    rollouts.release("3")
    say(rollouts.until_phase("Degraded"))
    assert rollouts.active() == "2"
    assert rollouts.last_exit_code() == FAIL
    rollouts.web("web-fail")
    rollouts.until_analysed("web-fail", "Failed")


def test_rollouts_aborts_the_release_on_inconclusive(rollouts: Rollouts) -> None:
    assert rollouts.judge(rollouts.shop.undecided_budget()) == "Inconclusive"
    rollouts.release("4")
    rollouts.until_phase("Degraded")
    assert rollouts.active() == "2"
    assert rollouts.last_exit_code() == INCONCLUSIVE
    rollouts.web("web-inconclusive")
    rollouts.until_analysed("web-inconclusive", "Failed")


def test_rollouts_promotes_the_release_once_the_budget_is_met(rollouts: Rollouts) -> None:
    assert rollouts.judge(GENEROUS) == "Pass"
    rollouts.release("5")
    rollouts.until_phase("Healthy")
    assert rollouts.active() == "5"


def test_rollouts_does_not_accept_a_verdict_of_an_older_generation(rollouts: Rollouts) -> None:
    assert rollouts.shop.verdict(JUDGED_SECONDS) == "Pass"
    with without_operator():
        # The status still says Pass, for the budget before.
        rollouts.shop.apply(benchmark(NAMESPACE, TIGHT))
        rollouts.release("6")
        rollouts.web("web-older")
        waiting.until(rollouts.is_asking, ANALYSIS_SECONDS, "the analysis of the release", every=2)
        waiting.hold(40, lambda: rollouts.active() == "5", "the old release", every=2)
        assert rollouts.shop.status()["verdict"] == "Pass"
        assert "Successful" not in rollouts.measurements("web-older")
    rollouts.until_phase("Degraded")
    assert (rollouts.active(), rollouts.last_exit_code()) == ("5", FAIL)
    rollouts.until_analysed("web-older", "Failed")
    assert rollouts.judge(GENEROUS) == "Pass"


def test_rollouts_refuses_a_verdict_about_another_image(rollouts: Rollouts) -> None:
    assert rollouts.shop.verdict(JUDGED_SECONDS) == "Pass"
    rollouts.web("web-other", OTHER_IMAGE)
    # No answer but the first is asked for within 30 s.
    waiting.until(lambda: rollouts.measurements("web-other"), 60, "an answer to the web analysis", every=2)
    assert rollouts.measurements("web-other") == ["Inconclusive"]
    template = get("analysistemplate", "energy-gate", "-n", NAMESPACE)
    text = json.dumps(template).replace("--wait-for-image=5m", "--wait-for-image=0s")
    rollouts.shop.apply(json.loads(text) | {"metadata": {"name": "energy-gate-at-once"}})
    rollouts.analysis("job-other", "energy-gate-at-once", benchmark="shop", image=OTHER_IMAGE)
    rollouts.until_analysed("job-other", "Failed")
    assert rollouts.last_exit_code() == OTHER
