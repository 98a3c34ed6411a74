"""The Canary to copy, and the built gate's server asked as Flagger asks for its webhooks."""

import copy
import json
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
import yaml

from conftest import GITOPS, IMAGE, PROGRAMS, ROOT, cluster_of

Object = dict[str, Any]
OTHER = "example.org/rust:2@sha256:" + "2" * 64
NAMESPACE = "shop"


class Cluster:
    """The objects of a release, as the API server has them."""

    def __init__(self, benchmark: Object) -> None:
        (self.canary,) = yaml.safe_load_all((GITOPS / "flagger/canary.yaml").read_text())
        self.canary["metadata"]["namespace"] = NAMESPACE
        self.deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "shop", "namespace": NAMESPACE},
            "spec": {"template": {"spec": {"containers": [{"name": "shop", "image": IMAGE}]}}},
        }
        self.benchmark = benchmark

    def object(self, path: str) -> Object | None:
        """The object at a path of the API server."""
        _, _, group, _, _, namespace, plural, name = path.partition("?")[0].split("/")
        objects = {
            ("flagger.app", "canaries", "shop"): self.canary,
            ("apps", "deployments", "shop"): self.deployment,
            ("frugality.dev", "frugalitybenchmarks", "shop-release"): self.benchmark,
        }
        return objects.get((group, plural, name)) if namespace == NAMESPACE else None


@pytest.fixture
def cluster(benchmark: Object) -> Cluster:
    return Cluster(copy.deepcopy(benchmark))


class Gate:
    """A gate that runs, and the Canary's webhooks sent to it."""

    def __init__(self, cluster: Cluster, address: str) -> None:
        self.cluster = cluster
        self.address = address

    def ask(self, kind: str) -> tuple[int, str]:
        """Status and text for the Canary's webhook of a type."""
        analysis = self.cluster.canary["spec"]["analysis"]
        (webhook,) = [it for it in analysis["webhooks"] if it["type"] == kind]
        phase = "Waiting" if kind == "confirm-rollout" else "Progressing"
        # As Flagger marshals CanaryWebhookPayload (pkg/apis/flagger/v1beta1/canary.go of v1.36.1).
        payload = {
            "name": self.cluster.canary["metadata"]["name"],
            "namespace": NAMESPACE,
            "phase": phase,
            "checksum": "85d557f47b",
            "metadata": webhook["metadata"],
        }
        url = f"http://{self.address}{urlparse(webhook['url']).path}"
        request = urllib.request.Request(
            url, json.dumps(payload).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@pytest.fixture
def gate(tmp_path: Path, cluster: Cluster) -> Iterator[Gate]:
    kubeconfig = tmp_path / "kubeconfig"
    command = [PROGRAMS / "kubectl-frugality", "serve-gate", "--listen=127.0.0.1:0"]
    with (
        cluster_of(kubeconfig, cluster.object),
        subprocess.Popen(
            command, env={"KUBECONFIG": str(kubeconfig)}, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr
        line = process.stderr.readline()
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield Gate(cluster, line.split()[-1])
        process.terminate()
        assert process.wait(20) == 0


def answers(gate: Gate) -> list[int]:
    return [gate.ask(kind)[0] for kind in ("confirm-rollout", "confirm-promotion", "rollback")]


def test_pass_opens_and_fail_rolls_back(gate: Gate) -> None:
    assert answers(gate) == [200, 200, 403]
    gate.cluster.benchmark["status"]["verdict"] = "Fail"
    assert answers(gate) == [403, 403, 200]
    gate.cluster.benchmark["status"]["verdict"] = "Inconclusive"
    assert answers(gate) == [403, 403, 403]


def test_an_edited_benchmark_holds_the_release(gate: Gate) -> None:
    gate.cluster.benchmark["metadata"]["generation"] += 1
    assert answers(gate) == [409, 409, 409]


def test_the_verdict_must_be_about_the_image_of_the_deployment_at_this_moment(gate: Gate) -> None:
    template = gate.cluster.deployment["spec"]["template"]
    template["spec"]["containers"][0]["image"] = OTHER
    assert answers(gate) == [403, 403, 403]
    assert "does not measure the image" in gate.ask("confirm-rollout")[1]


def test_a_canary_without_the_second_question_is_refused(gate: Gate) -> None:
    webhooks = gate.cluster.canary["spec"]["analysis"]["webhooks"]
    assert [it["type"] for it in webhooks] == ["confirm-rollout", "confirm-promotion", "rollback"]
    del webhooks[1]
    status, text = gate.ask("confirm-rollout")
    assert status == 400
    assert "confirm-promotion" in text


def test_the_addresses_belong_to_the_chart_s_service() -> None:
    (canary,) = yaml.safe_load_all((GITOPS / "flagger/canary.yaml").read_text())
    template = (ROOT / "charts/frugality-operator/templates/gate.yaml").read_text()
    assert "kind: Service\nmetadata:\n  name: frugality-gate\n" in template
    assert "port: 80\n" in template
    for webhook in canary["spec"]["analysis"]["webhooks"]:
        url = urlparse(webhook["url"])
        assert url.netloc == "frugality-gate.frugality-system"
        assert url.path == ("/rollback" if webhook["type"] == "rollback" else "/confirm")
