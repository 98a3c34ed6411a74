"""The chart of ``gitops/helm``: its gate waits for its own benchmark, and for the image that the benchmark measures."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from conftest import GITOPS, PROGRAMS

HELM = os.environ.get("HELM", "helm")
IMAGE = "example.org/shop@sha256:" + "3" * 64


def template(release: str) -> subprocess.CompletedProcess[str]:
    command = [HELM, "template", release, str(GITOPS / "helm"), "--set", f"image={IMAGE}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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
