"""The images' contents, and the nodes and registries that get them from hack/images."""

import json
import os
import subprocess
import urllib.request
from pathlib import Path

import pytest

from conftest import IMAGES, ROOT, VERSION, Pi
from image import AARCH64, PAGE_BYTES, Image

INDEX = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"
LAB = ROOT / "hack" / "lab" / "lab"


def test_image_is_for_arm64_and_only_the_meter_runs_as_root(image: Image) -> None:
    assert image.config["architecture"] == "arm64"
    assert image.config["os"] == "linux"
    assert (image.user == "0:0") == ("/meter:" in image.tag)


def test_every_program_is_for_arm64_and_fits_pages_of_16_kib(image: Image) -> None:
    programs = list(image.programs())
    assert {program.machine for program in programs} == {AARCH64}
    assert [p.path for p in programs if not p.load_alignments or min(p.load_alignments) < PAGE_BYTES] == []


def test_no_program_of_ours_has_an_allocator_that_is_built_for_one_page_size(
    images: dict[str, Image],
) -> None:
    ours = [p.path for image in images.values() for p in image.programs() if "frugality" in p.path.name]
    ours += [images[name].root / "usr/local/bin" / name for name in ("contacts-rust", "streamdata-rust")]
    assert {path.name for path in ours} == {
        "frugality-operator",
        "kubectl-frugality",
        "frugality-meter",
        "frugality-injector",
        "frugality-runner",
        "contacts-rust",
        "streamdata-rust",
    }
    assert [path for path in ours if b"<jemalloc>" in path.read_bytes()] == []


@pytest.mark.usefixtures("archives")
def test_k3s_of_the_pi_has_every_image_under_the_name_that_the_chart_uses(pi: Pi) -> None:
    wanted = {f"ghcr.io/frugality-dev/{name}:{VERSION}": "linux/arm64" for name in IMAGES}
    assert pi.images() == wanted


def platforms(registry: str, repository: str, tag: str) -> list[str]:
    """The platforms of a multi-architecture image in a registry, one per architecture."""
    request = urllib.request.Request(
        f"http://{registry}/v2/{repository}/manifests/{tag}", headers={"Accept": INDEX}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        manifests = json.load(answer)["manifests"]
    return sorted(f"{m['platform']['os']}/{m['platform']['architecture']}" for m in manifests)


@pytest.mark.usefixtures("archives")
@pytest.mark.parametrize("name", IMAGES)
def test_registry_has_every_image(registry: str, name: str) -> None:
    assert platforms(registry, f"pi/frugality/{name}", VERSION) == ["linux/arm64"]


def test_images_of_two_architectures_are_pushed_as_one(registry: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n", encoding="utf-8")
    archives = []
    for architecture in ("amd64", "arm64"):
        archive = tmp_path / f"{architecture}.tar"
        choose = ["--arch", architecture]
        name = "localhost/frugality/two-architectures:1"
        subprocess.run([LAB, "build-image", *choose, tmp_path / "Dockerfile", name, tmp_path], check=True)
        subprocess.run([LAB, "save-image", *choose, name, archive], check=True)
        archives.append(archive)
    subprocess.run([LAB, "push-image", "--insecure", *archives, f"{registry}/pi/two:1"], check=True)
    assert platforms(registry, "pi/two", "1") == ["linux/amd64", "linux/arm64"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arch", "mips"], "unknown architecture mips: use amd64, arm64 or all"),
        (["--arch"], "--arch needs a value"),
        (["--insecure"], "--insecure is only for --push"),
        (["--push", "https://registry.example.org/x"], "--push takes a registry and a path"),
        (["--import-k3s", "elsewhere"], "k3s does not answer on elsewhere"),
        (["--tag", "2"], "unknown option --tag"),
    ],
)
def test_images_reports_a_wrong_argument_before_it_builds(pi: Pi, arguments: list[str], message: str) -> None:
    done = subprocess.run(
        [ROOT / "hack" / "images", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": f"{pi.path}:{os.environ['PATH']}"},
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert "building" not in done.stderr
