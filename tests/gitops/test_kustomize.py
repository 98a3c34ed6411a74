"""kustomize puts a digest into the images of a benchmark."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import yaml

from conftest import GITOPS, ROOT

CONFIGURATION = "frugality-images.yaml"
DIGEST = "sha256:" + "0" * 64
KUBECTL = os.environ.get("FRUGALITY_KUBECTL", "kubectl")


def images(folder: Path, configurations: list[str]) -> list[str]:
    shutil.copy(ROOT / "examples/rust-vs-go-streamdata.yaml", folder / "benchmark.yaml")
    shutil.copy(GITOPS / "kustomize" / CONFIGURATION, folder)
    benchmark = yaml.safe_load((folder / "benchmark.yaml").read_text())
    candidate = benchmark["spec"]["candidates"][0]
    names = [server["image"].split(":")[0] for server in [candidate, *candidate["backends"]]]
    kustomization = {
        "resources": ["benchmark.yaml"],
        "configurations": configurations,
        "images": [{"name": name, "digest": DIGEST} for name in names],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization))
    built = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, text=True, check=True)
    candidate = yaml.safe_load(built.stdout)["spec"]["candidates"][0]
    return [server["image"] for server in [candidate, *candidate["backends"]]]


def test_the_digest_goes_into_candidates_and_backends(tmp_path: Path) -> None:
    found = images(tmp_path, [CONFIGURATION])
    assert len(found) > 1
    assert all(image.endswith(f"@{DIGEST}") for image in found), found


def test_without_the_configuration_nothing_changes(tmp_path: Path) -> None:
    assert not any(DIGEST in image for image in images(tmp_path, []))
