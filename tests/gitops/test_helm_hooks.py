"""The chart of ``gitops/helm``: its gate waits for its own benchmark, and for the image that the benchmark measures."""

import copy
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import GITOPS, PROGRAMS, cluster_of

HELM = os.environ.get("HELM", "helm")
IMAGE = "example.org/shop@sha256:" + "3" * 64


def template(
    release: str, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [HELM, "template", release, str(GITOPS / "helm"), "--set", f"image={IMAGE}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def rendered() -> dict[str, Any]:
    """The chart's objects by their kind."""
    done = template("web")
    assert done.returncode == 0, done.stderr
    return {it["kind"]: it for it in yaml.safe_load_all(done.stdout)}


def test_the_gate_waits_for_the_benchmark_of_the_image() -> None:
    objects = rendered()
    benchmark, job = objects["FrugalityBenchmark"], objects["Job"]
    assert benchmark["spec"]["candidates"][0]["image"] == IMAGE
    pod = job["spec"]["template"]["spec"]
    (gate,) = pod["containers"]
    assert f"--image={IMAGE}" in gate["command"]
    assert gate["command"][-1] == benchmark["metadata"]["name"] == "web-energy"
    assert pod["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"]


class Installed:
    """A cluster with the benchmark of an earlier release, as `lookup` finds it."""

    VERSION = "frugality.dev/v1alpha1"

    def __init__(self, folder: Path, release: dict[str, Any]) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self.benchmark = copy.deepcopy(release)
        self.benchmark["metadata"] |= {"namespace": "shop", "uid": "1", "generation": 1}
        # The API server adds defaults.
        self.benchmark["spec"] |= {"deadline": "6h", "trials": {"blocks": 10}}
        self.benchmark["spec"]["request"] |= {"method": "GET"}

    def found(self, path: str) -> Any:
        version = {"groupVersion": self.VERSION, "version": "v1alpha1"}
        group = {"name": "frugality.dev", "versions": [version], "preferredVersion": version}
        benchmarks = {"name": "frugalitybenchmarks", "kind": "FrugalityBenchmark", "namespaced": True, "verbs": ["get"]}
        resources = {"kind": "APIResourceList", "groupVersion": self.VERSION, "resources": [benchmarks]}
        return {
            "/version": {"major": "1", "minor": "35", "gitVersion": "v1.35.4"},
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
            "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]},
            f"/apis/{self.VERSION}": resources,
            f"/apis/{self.VERSION}/namespaces/shop/frugalitybenchmarks/web-energy": self.benchmark,
        }.get(path.partition("?")[0])

    def applies(self, *arguments: str) -> bool:
        """Whether `helm upgrade` replaces the benchmark."""
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig)}
        environment |= {"HELM_CACHE_HOME": str(self.kubeconfig.parent), "HOME": str(self.kubeconfig.parent)}
        with cluster_of(self.kubeconfig, self.found):
            done = template("web", "--namespace=shop", "--dry-run=server", *arguments, environment=environment)
        assert done.returncode == 0, done.stderr
        return "kind: FrugalityBenchmark" in done.stdout


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path, rendered()["FrugalityBenchmark"])


def test_a_retry_keeps_the_benchmark_and_another_image_replaces_it(installed: Installed) -> None:
    assert not installed.applies()
    assert installed.applies("--set", f"image={IMAGE.replace('3', '4')}")


def test_a_benchmark_whose_budgets_were_edited_in_the_cluster_is_replaced(installed: Installed) -> None:
    (budget,) = installed.benchmark["spec"]["budgets"]
    budget["maxJoulesPerRequest"] = 2
    installed.benchmark["metadata"]["generation"] = 2
    assert installed.applies()
    del installed.benchmark["spec"]["budgets"]
    assert installed.applies()


def test_a_field_that_the_api_server_dropped_is_no_edit(installed: Installed) -> None:
    (budget,) = installed.benchmark["spec"]["budgets"]
    del budget["maxJoulesPerRequest"]
    assert not installed.applies()


def test_another_run_of_the_same_spec_keeps_the_benchmark(installed: Installed) -> None:
    installed.benchmark["spec"]["rerun"] = 2
    installed.benchmark["metadata"]["generation"] = 2
    assert not installed.applies()


def test_the_hooks_come_in_their_order() -> None:
    hooks = {kind: it["metadata"]["annotations"] for kind, it in rendered().items()}
    assert {it["helm.sh/hook"] for it in hooks.values()} == {"pre-install,pre-upgrade"}
    weights = {kind: int(it["helm.sh/hook-weight"]) for kind, it in hooks.items()}
    assert max(weights["ServiceAccount"], weights["RoleBinding"]) < weights["FrugalityBenchmark"] < weights["Job"]


def test_the_operator_can_read_the_benchmark(tmp_path: Path) -> None:
    file = tmp_path / "benchmark.yaml"
    file.write_text(yaml.safe_dump(rendered()["FrugalityBenchmark"]))
    command = [str(PROGRAMS / "kubectl-frugality"), "estimate", "-f", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_release_name_leaves_room_for_the_benchmark_s() -> None:
    assert template("a" * 23).returncode == 0
    for name in ("a" * 24, "1shop", "shop.web"):
        refused = template(name)
        assert refused.returncode != 0
        assert "at most 23 characters" in refused.stderr


def test_the_gate_ends_before_helm_does() -> None:
    """Helm's time limit for a hook begins with the Job, before its pod runs."""
    (gate,) = rendered()["Job"]["spec"]["template"]["spec"]["containers"]
    hours = [re.fullmatch(r"--timeout=(\d+)h", it) for it in gate["command"]]
    (of_gate,) = [int(it[1]) for it in hours if it]
    guide = (GITOPS.parent / "docs/gitops.md").read_text()
    (of_helm,) = re.findall(r"helm upgrade --install shop \./chart --set image=\S+ --timeout (\d+)h", guide)
    assert of_gate < int(of_helm)
