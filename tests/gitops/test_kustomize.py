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
OLD = "sha256:" + "1" * 64
KUBECTL = os.environ.get("FRUGALITY_KUBECTL", "kubectl")


def built(folder: Path, configurations: list[str]) -> tuple[list[str], list[str]]:
    """The images of a benchmark, and of a baseline that has the same candidate with an old digest."""
    benchmark = yaml.safe_load((ROOT / "examples/rust-vs-go-streamdata.yaml").read_text())
    candidate = benchmark["spec"]["candidates"][0]
    old = f"{candidate['image'].split(':')[0]}@{OLD}"
    baseline = {
        "apiVersion": benchmark["apiVersion"],
        "kind": "FrugalityBaseline",
        "metadata": {"name": "streamdata"},
        "spec": {"pinned": True, "candidate": {"image": old, "backends": []}},
    }
    (folder / "objects.yaml").write_text(yaml.safe_dump_all([benchmark, baseline]))
    shutil.copy(GITOPS / "kustomize" / CONFIGURATION, folder)
    names = {image.split(":")[0] for image in images_of(candidate)}
    kustomization = {
        "resources": ["objects.yaml"],
        "configurations": configurations,
        "images": [{"name": name, "digest": DIGEST} for name in sorted(names)],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization))
    printed = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, text=True, check=True)
    objects = {it["kind"]: it["spec"] for it in yaml.safe_load_all(printed.stdout)}
    return (
        images_of(objects["FrugalityBenchmark"]["candidates"][0]),
        images_of(objects["FrugalityBaseline"]["candidate"]),
    )


def images_of(candidate: Any) -> list[str]:
    return [server["image"] for server in [candidate, *candidate["backends"]]]


def test_the_digest_goes_into_each_image_of_a_benchmark_and_into_no_earlier_release(tmp_path: Path) -> None:
    benchmark, baseline = built(tmp_path, [CONFIGURATION])
    assert len(benchmark) >= 2
    assert all(image.endswith(f"@{DIGEST}") for image in benchmark), benchmark
    assert [image.split("@")[1] for image in baseline] == [OLD]


def test_without_the_configuration_nothing_changes(tmp_path: Path) -> None:
    benchmark, _ = built(tmp_path, [])
    assert not any(DIGEST in image for image in benchmark)
