"""hack/release to a real registry, and what a user then finds in it.

Needs the archives of hack/images: ``make release-test``.
"""

import hashlib
import json
import os
import subprocess
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from release import CHART_IMAGES, PUBLISHED, ROOT, VERSION, helm_program, images

OUT = ROOT / "build/release" / VERSION
MEDIA_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
)


@pytest.fixture(scope="module")
def prefix(registry: str) -> str:
    """The registry and the path of a release that was pushed."""
    prefix = f"{registry}/frugality"
    command = [ROOT / "hack/release", "--no-build", "--registry", prefix, "--plain-http"]
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return prefix


@pytest.fixture(scope="module")
def references(prefix: str) -> dict[str, str]:
    """The digest of each name in images.txt."""
    lines = (OUT / "images.txt").read_text().split()
    return dict(line.removeprefix(f"{prefix}/").split(f":{VERSION}@") for line in lines)


def manifest(prefix: str, name: str, reference: str) -> tuple[str, dict[str, Any]]:
    """The digest and the content of a manifest in the registry."""
    registry, _, path = prefix.partition("/")
    request = urllib.request.Request(
        f"http://{registry}/v2/{path}/{name}/manifests/{reference}",
        headers={"Accept": ", ".join(MEDIA_TYPES)},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        content = answer.read()
    return f"sha256:{hashlib.sha256(content).hexdigest()}", json.loads(content)


def archives() -> list[Path]:
    return sorted(OUT.glob("kubectl-frugality_*.tar.gz"))


def test_the_list_has_all_images_and_the_chart_with_the_digests_of_the_registry(
    prefix: str, references: dict[str, str]
) -> None:
    assert set(references) == {*images(), "charts/frugality-operator"}
    for name, digest in references.items():
        # The content under the tag, and the content under the digest.
        assert manifest(prefix, name, VERSION)[0] == digest
        assert manifest(prefix, name, digest)[0] == digest


def test_each_image_has_a_platform_per_architecture(prefix: str, references: dict[str, str]) -> None:
    wanted = {archive.name.removesuffix(".tar.gz").rpartition("_")[2] for archive in archives()}
    for name in references.keys() - {"charts/frugality-operator"}:
        _, index = manifest(prefix, name, VERSION)
        assert {it["platform"]["architecture"] for it in index["manifests"]} == wanted, name


@pytest.fixture(scope="module")
def pulled(prefix: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart as a user gets it."""
    folder = tmp_path_factory.mktemp("pulled")
    url = f"oci://{prefix}/charts/frugality-operator"
    command = [helm_program(), "pull", url, "--version", VERSION, "--plain-http", "--destination", folder]
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    subprocess.run(command, check=True, env=environment)
    return folder / f"frugality-operator-{VERSION}.tgz"


def test_the_chart_in_the_registry_is_the_file_of_the_release(pulled: Path) -> None:
    assert pulled.read_bytes() == (OUT / pulled.name).read_bytes()


def test_the_chart_and_install_yaml_name_exactly_the_digests_in_the_registry(
    prefix: str, references: dict[str, str], pulled: Path
) -> None:
    chart = subprocess.run(
        [
            helm_program(),
            "template",
            "frugality",
            pulled,
            "--set",
            "meter.board=pi-4b",
            "--kube-version=1.35.4",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    wanted = {f"{prefix}/{name}:{VERSION}@{references[name]}" for name in CHART_IMAGES}
    for text in (chart, (OUT / "install.yaml").read_text()):
        found = {word.strip("\"'") for word in text.split() if f"{prefix}/" in word}
        assert found == wanted
        assert PUBLISHED not in text


def test_install_yaml_and_crds_yaml_have_the_same_definitions() -> None:
    (install, crds) = (
        list(yaml.safe_load_all((OUT / name).read_text())) for name in ("install.yaml", "crds.yaml")
    )
    found = {it["metadata"]["name"]: it["spec"] for it in install if it["kind"] == "CustomResourceDefinition"}
    assert found == {it["metadata"]["name"]: it["spec"] for it in crds}


def test_each_file_has_a_checksum() -> None:
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "checksums.txt"], cwd=OUT, check=True)
    listed = {line.split()[1] for line in (OUT / "checksums.txt").read_text().splitlines()}
    assert listed == {file.name for file in OUT.iterdir()} - {"checksums.txt"}


def test_krew_gets_the_checksums_of_the_archives() -> None:
    plugin = yaml.safe_load((OUT / "frugality.yaml").read_text())
    found = {it["uri"].rpartition("/")[2]: it["sha256"] for it in plugin["spec"]["platforms"]}
    assert found == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in archives()}


def test_the_archive_of_this_machine_has_the_license_and_a_program_that_runs(
    prefix: str, tmp_path: Path
) -> None:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    with tarfile.open(OUT / f"kubectl-frugality_{VERSION}_linux_{machine}.tar.gz") as archive:
        assert archive.getnames() == ["kubectl-frugality", "kubectl_complete-frugality", "LICENSE"]
        assert {(it.uid, it.gid) for it in archive} == {(0, 0)}
        archive.extractall(tmp_path)
    said = subprocess.run(
        [tmp_path / "kubectl-frugality", "--version"], check=True, capture_output=True, text=True
    )
    assert said.stdout.split()[-1] == VERSION
    assert (tmp_path / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_a_second_release_of_the_same_archives_has_the_same_plugin(prefix: str) -> None:
    before = [file.read_bytes() for file in archives()]
    command = [ROOT / "hack/release", "--no-build", "--registry", prefix, "--plain-http"]
    subprocess.run(command, check=True, capture_output=True)
    assert [file.read_bytes() for file in archives()] == before
