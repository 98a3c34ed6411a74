"""What a user can check of a release with a key: signatures, checksums, and lists of packages.

With the real syft and cosign, without the Internet. Needs the archives of hack/images: ``make release-test``.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from release import ROOT, VERSION, free_address, function, images

OUT = ROOT / "build/release" / VERSION
PASSWORD = "of a test"
Json = dict[str, Any]
Run = Callable[..., subprocess.CompletedProcess[str]]
INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)


class Key(NamedTuple):
    """Two files."""

    private: Path
    public: Path


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """syft and cosign in PATH, in the versions of hack/release, and no way to the Internet."""
    found = function("eval", 'need_syft; need_cosign; printf %s "$PATH"')
    assert found.returncode == 0, found.stderr
    proxy = f"http://{free_address()}"
    # Of these, Go's programs use no proxy for the registry on this machine.
    offline = {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "https_proxy": proxy, "http_proxy": proxy}
    home = {"HOME": str(tmp_path_factory.mktemp("home"))}
    return os.environ | offline | home | {"PATH": found.stdout, "COSIGN_PASSWORD": PASSWORD}


@pytest.fixture(scope="module")
def cosign(environment: dict[str, str]) -> Run:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = ["cosign", *(str(it) for it in arguments)]
        return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)

    return run


@pytest.fixture(scope="module")
def new_key(cosign: Run, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Key]:
    def make() -> Key:
        name = tmp_path_factory.mktemp("key") / "release"
        done = cosign("generate-key-pair", "--output-key-prefix", name)
        assert done.returncode == 0, done.stderr
        return Key(name.with_suffix(".key"), name.with_suffix(".pub"))

    return make


@pytest.fixture(scope="module")
def key(new_key: Callable[[], Key]) -> Key:
    return new_key()


@pytest.fixture(scope="module")
def prefix(registry: str, key: Key, environment: dict[str, str]) -> str:
    """The registry and the path of a signed release."""
    prefix = f"{registry}/signed"
    command = [ROOT / "hack/release", "--no-build", "--registry", prefix, "--plain-http", "--sbom"]
    done = subprocess.run(
        [*command, "--sign-key", key.private], check=False, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return prefix


@pytest.fixture(scope="module")
def references(prefix: str) -> list[str]:
    """What was pushed, by tag and digest."""
    return (OUT / "images.txt").read_text().split()


@pytest.fixture
def verify(cosign: Run) -> Run:
    """Verifies references with a public key, as docs/versions.md says."""

    def run(public: Path, *what: str) -> subprocess.CompletedProcess[str]:
        return cosign("verify", "--key", public, "--insecure-ignore-tlog", "--allow-http-registry", *what)

    return run


def verified(text: str) -> list[str]:
    """The digests in the answer of cosign."""
    found = [json.loads(line) for line in text.splitlines() if line]
    return [it["critical"]["image"]["docker-manifest-digest"] for signatures in found for it in signatures]


def test_every_image_and_the_chart_have_a_signature_of_the_key(
    references: list[str], key: Key, verify: Run
) -> None:
    assert len(references) == len(images()) + 1
    by_digest = [re.sub(rf":{VERSION}@", "@", reference) for reference in references]
    by_tag = [reference.partition("@")[0] for reference in references]
    for names in (by_digest, by_tag):
        done = verify(key.public, *names)
        assert done.returncode == 0, done.stderr
        assert verified(done.stdout) == [reference.partition("@")[2] for reference in references]


def test_another_key_did_not_sign(
    references: list[str],
    new_key: Callable[[], Key],
    verify: Run,
    cosign: Run,
) -> None:
    other = new_key().public
    for reference in references:
        done = verify(other, reference)
        assert done.returncode != 0
        assert "failed to verify signature" in done.stderr, done.stderr
    assert verify_blob(cosign, other, OUT / "checksums.txt").returncode != 0


def test_an_image_that_was_replaced_has_no_signature(prefix: str, key: Key, verify: Run) -> None:
    """The tag of the operator is moved to an image that differs in an annotation."""
    registry, _, path = prefix.partition("/")
    address = f"http://{registry}/v2/{path}/operator/manifests"
    index = request(f"{address}/{VERSION}")
    assert verify(key.public, f"{prefix}/operator:{VERSION}").returncode == 0
    changed = json.dumps(json.loads(index) | {"annotations": {"changed": "yes"}}).encode()
    media_type = json.loads(index)["mediaType"]
    request(f"{address}/{VERSION}", "PUT", changed, media_type)
    done = verify(key.public, f"{prefix}/operator:{VERSION}")
    assert done.returncode != 0
    assert "no signatures found" in done.stderr, done.stderr
    # The digest still names what was signed.
    signed = hashlib.sha256(index).hexdigest()
    assert verify(key.public, f"{prefix}/operator@sha256:{signed}").returncode == 0
    request(f"{address}/{VERSION}", "PUT", index, media_type)
    assert verify(key.public, f"{prefix}/operator:{VERSION}").returncode == 0


def request(url: str, method: str = "GET", body: bytes | None = None, media_type: str = "") -> bytes:
    headers = {"Accept": ", ".join(INDEXES)} | ({"Content-Type": media_type} if media_type else {})
    asked = urllib.request.Request(url, data=body, method=method, headers=headers)
    with urllib.request.urlopen(asked, timeout=20) as answer:
        return bytes(answer.read())


def verify_blob(cosign: Run, public: Path, file: Path) -> subprocess.CompletedProcess[str]:
    bundle = OUT / "checksums.txt.sigstore.json"
    return cosign("verify-blob", "--key", public, "--insecure-ignore-tlog", "--bundle", bundle, file)


def test_each_other_file_has_a_signed_checksum(
    prefix: str, key: Key, cosign: Run, tmp_path: Path
) -> None:
    done = verify_blob(cosign, key.public, OUT / "checksums.txt")
    assert done.returncode == 0, done.stderr
    assert "Verified OK" in done.stderr
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "checksums.txt"], cwd=OUT, check=True)
    listed = {line.split()[1] for line in (OUT / "checksums.txt").read_text().splitlines()}
    assert listed == {file.name for file in OUT.iterdir()} - {"checksums.txt", "checksums.txt.sigstore.json"}
    assert "sbom.tar.gz" in listed

    changed = tmp_path / "checksums.txt"
    text = (OUT / "checksums.txt").read_text()
    changed.write_text(("1" if text[0] == "0" else "0") + text[1:])
    assert verify_blob(cosign, key.public, changed).returncode != 0
    shutil.copytree(OUT, tmp_path / "copy")
    with (tmp_path / "copy/install.yaml").open("a") as file:
        file.write("---\n")
    checked = subprocess.run(
        ["sha256sum", "--check", "checksums.txt"],
        cwd=tmp_path / "copy",
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"LC_ALL": "C"},
    )
    assert checked.returncode == 1
    failed = [line for line in checked.stdout.splitlines() if not line.endswith(": OK")]
    assert failed == ["install.yaml: FAILED"]


def test_a_key_with_the_wrong_password_or_none_ends_the_release_before_it_begins(
    key: Key, environment: dict[str, str], tmp_path: Path
) -> None:
    command = [ROOT / "hack/release", "--no-build", "--registry", "127.0.0.1:1/none", "--sign-key"]
    without = {name: value for name, value in environment.items() if name != "COSIGN_PASSWORD"}
    for file, variables, message in (
        (key.private, environment | {"COSIGN_PASSWORD": "wrong"}, "with this password"),
        (key.private, without, "needs its password in COSIGN_PASSWORD"),
        (tmp_path / "none.key", environment, "there is no key"),
    ):
        done = subprocess.run(
            [*command, file],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=variables,
        )
        assert done.returncode == 1
        assert message in done.stderr
        assert "pushing" not in done.stderr


@pytest.fixture(scope="module")
def lists(prefix: str) -> dict[str, Json]:
    """The SPDX documents of the release."""
    with tarfile.open(OUT / "sbom.tar.gz") as archive:
        files = {it.name: archive.extractfile(it) for it in archive}
        return {name.removesuffix(".spdx.json"): json.load(file) for name, file in files.items() if file}


def versions(document: Json, kind: str) -> set[tuple[str, str]]:
    """Name and version of each package of a kind, such as cargo, deb, golang or pypi."""
    found = set()
    for package in document["packages"]:
        locators = [it["referenceLocator"] for it in package.get("externalRefs", [])]
        if any(it.startswith(f"pkg:{kind}/") for it in locators):
            found.add((package["name"], package["versionInfo"]))
    return found


def names(document: Json, kind: str) -> set[str]:
    return {name for name, _ in versions(document, kind)}


def locked_crates() -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Name and version of the crates of this repository, and of the crates of others."""
    crates = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    others = {(it["name"], it["version"]) for it in crates if "source" in it}
    return {(it["name"], it["version"]) for it in crates} - others, others


def test_the_source_and_each_image_have_a_list(lists: dict[str, Json]) -> None:
    archives = [file.name.removesuffix(".tar.gz") for file in OUT.glob("kubectl-frugality_*.tar.gz")]
    architectures = {name.rpartition("_")[2] for name in archives}
    wanted = {f"{image}_{architecture}" for image in images() for architecture in architectures}
    assert set(lists) == wanted | {"source"}


def test_the_lists_are_spdx(lists: dict[str, Json], prefix: str) -> None:
    for name, document in lists.items():
        assert document["spdxVersion"] == "SPDX-2.3"
        assert document["dataLicense"] == "CC0-1.0"
        assert document["documentNamespace"].startswith("https://")
        tool = [it for it in document["creationInfo"]["creators"] if it.startswith("Tool: ")]
        assert re.fullmatch(r"Tool: syft-\d+\.\d+\.\d+", tool[0]), tool
        elements = [*document["packages"], *document.get("files", [])]
        ids = [it["SPDXID"] for it in elements]
        assert len(ids) == len(set(ids)), name
        known = {*ids, document["SPDXID"]}
        for relation in document["relationships"]:
            assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= known, name
        for package in document["packages"]:
            assert package["name"]
            assert package["downloadLocation"]
        # What the document describes has the name and the version of the artifact.
        relations = document["relationships"]
        (described,) = (it["relatedSpdxElement"] for it in relations if it["relationshipType"] == "DESCRIBES")
        (root,) = (it for it in document["packages"] if it["SPDXID"] == described)
        wanted = "frugality" if name == "source" else f"{prefix}/{name.rpartition('_')[0]}"
        assert (root["name"], root["versionInfo"], document["name"]) == (wanted, VERSION, wanted)


def test_the_list_of_an_image_names_the_digest_in_the_registry(lists: dict[str, Json], prefix: str) -> None:
    registry, _, path = prefix.partition("/")
    for name, document in lists.items():
        if name == "source":
            continue
        image, _, architecture = name.rpartition("_")
        index = json.loads(request(f"http://{registry}/v2/{path}/{image}/manifests/{VERSION}"))
        (digest,) = (
            it["digest"] for it in index["manifests"] if it["platform"]["architecture"] == architecture
        )
        (root,) = (it for it in document["packages"] if it.get("primaryPackagePurpose") == "CONTAINER")
        (locator,) = (it["referenceLocator"] for it in root["externalRefs"])
        assert f"@{digest}?" in urllib.parse.unquote(locator), name


def test_no_list_names_a_folder_of_the_machine_that_made_the_release(lists: dict[str, Json]) -> None:
    for document in lists.values():
        text = json.dumps(document)
        assert str(ROOT) not in text
        assert "build/release" not in text


def test_the_list_of_the_source_has_what_the_lock_files_pin(lists: dict[str, Json]) -> None:
    source = lists["source"]
    _, others = locked_crates()
    assert versions(source, "cargo") == others
    assert {"kube", "tokio"} <= names(source, "cargo")
    k6 = re.search(
        r"^require (go\.k6\.io/k6) (\S+)$", (ROOT / "injector/k6/go.mod").read_text(), re.MULTILINE
    )
    assert k6
    assert k6.groups() in versions(source, "golang")
    requirements = (ROOT / "examples/servers/python/requirements.txt").read_text()
    pinned = set(re.findall(r"^(\S+)==(\S+)", requirements, re.MULTILINE))
    assert pinned
    assert pinned <= versions(source, "pypi")


# Image: kind and name of packages that its list has at least.
CONTENTS = {
    "operator": {"cargo": {"frugality-operator", "kubectl-frugality", "kube", "tokio"}},
    "meter": {"cargo": {"frugality-meter", "tokio"}},
    "injector": {
        "cargo": {"frugality-injector", "frugality-runner"},
        "golang": {"fortio.org/fortio", "stdlib"},
    },
    "injector-k6": {"cargo": {"frugality-injector"}, "golang": {"go.k6.io/k6", "stdlib"}},
    "contacts-rust": {"cargo": {"contacts-rust", "axum"}},
    "contacts-python": {"pypi": {"uvicorn"}, "deb": {"python3"}},
    "radicale": {"pypi": {"radicale"}, "deb": {"python3"}},
    "streamdata-rust": {"cargo": {"streamdata-rust"}},
    "streamdata-go": {"golang": {"stdlib"}},
    "mnesia-erlang": {"deb": {"erlang-mnesia"}},
    "programs": {"deb": {"povray", "stockfish"}},
}


def test_the_list_of_an_image_has_its_debian_packages_and_what_its_programs_are_made_of(
    lists: dict[str, Json],
) -> None:
    assert set(CONTENTS) == images()
    own, others = locked_crates()
    for name, document in lists.items():
        if name == "source":
            continue
        assert {"libc6", "base-files"} <= names(document, "deb"), name
        for kind, packages in CONTENTS[name.rpartition("_")[0]].items():
            assert packages <= {it.lower() for it in names(document, kind)}, name
        assert versions(document, "cargo") <= own | others, name


def test_the_list_of_an_image_has_no_crate_that_only_tests_or_builds_use(lists: dict[str, Json]) -> None:
    for name, document in lists.items():
        if name != "source":
            assert not {"insta", "rcgen", "syn", "proc-macro2"} & names(document, "cargo"), name
