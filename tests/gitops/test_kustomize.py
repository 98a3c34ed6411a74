"""kustomize puts a digest into the images of a benchmark."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from conftest import GITOPS, ROOT

CONFIGURATION = "frugality-images.yaml"
DIGEST = "sha256:" + "0" * 64
KUBECTL = os.environ.get("FRUGALITY_KUBECTL", "kubectl")


def images(folder: Path, configurations: list[str]) -> list[str]:
    """The images of a benchmark, and of a baseline with the benchmark's candidate."""
    benchmark = yaml.safe_load((ROOT / "examples/rust-vs-go-streamdata.yaml").read_text())
    candidate = benchmark["spec"]["candidates"][0]
    baseline = {
        "apiVersion": benchmark["apiVersion"],
        "kind": "FrugalityBaseline",
        "metadata": {"name": "streamdata"},
        "spec": {"candidate": {"image": candidate["image"], "backends": candidate["backends"]}},
    }
    (folder / "objects.yaml").write_text(yaml.safe_dump_all([benchmark, baseline]))
    shutil.copy(GITOPS / "kustomize" / CONFIGURATION, folder)
    names = {image.split(":")[0] for image in images_of(benchmark, baseline)}
    kustomization = {
        "resources": ["objects.yaml"],
        "configurations": configurations,
        "images": [{"name": name, "digest": DIGEST} for name in sorted(names)],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization))
    built = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, text=True, check=True)
    objects = {it["kind"]: it for it in yaml.safe_load_all(built.stdout)}
    return images_of(objects["FrugalityBenchmark"], objects["FrugalityBaseline"])


def images_of(benchmark: Any, baseline: Any) -> list[str]:
    candidates = [benchmark["spec"]["candidates"][0], baseline["spec"]["candidate"]]
    servers = [server for candidate in candidates for server in [candidate, *candidate["backends"]]]
    return [server["image"] for server in servers]


def test_the_digest_goes_into_each_image_of_benchmark_and_baseline(tmp_path: Path) -> None:
    found = images(tmp_path, [CONFIGURATION])
    assert len(found) >= 4
    assert all(image.endswith(f"@{DIGEST}") for image in found), found


def test_without_the_configuration_nothing_changes(tmp_path: Path) -> None:
    assert not any(DIGEST in image for image in images(tmp_path, []))
