"""The texts of a release, without a registry: values, manifest, definitions and the description for krew."""

import os
import subprocess
from typing import Any

import pytest
import yaml

from release import CHART_IMAGES, DIGESTS, PAIRS, PREFIX, PUBLISHED, ROOT, VERSION, function, printed

CHART = ROOT / "charts/frugality-operator"


def references(values: dict[str, Any]) -> list[dict[str, Any]]:
    injector = values["injector"]
    return [values["image"], injector["image"], injector["k6Image"], values["meter"]["image"]]


def test_the_values_name_each_image_by_registry_and_digest() -> None:
    pinned = yaml.safe_load(printed("pinned_values", PREFIX, PAIRS))
    for image, reference in zip(CHART_IMAGES, references(pinned), strict=True):
        assert reference["repository"] == f"{PREFIX}/{image}"
        assert reference["digest"] == DIGESTS[image]


def test_the_values_differ_only_in_these_fields() -> None:
    pinned = yaml.safe_load(printed("pinned_values", PUBLISHED, PAIRS))
    for reference in references(pinned):
        reference["digest"] = ""
    assert pinned == yaml.safe_load((CHART / "values.yaml").read_text())


def test_an_image_that_the_chart_does_not_name_is_an_error() -> None:
    done = function("pinned_values", PREFIX, f"{PAIRS} radicale={DIGESTS['meter']}")
    assert done.returncode == 1
    assert "no value of the chart names: radicale" in done.stderr


def test_the_readme_does_not_state_the_defaults_of_the_checkout() -> None:
    text = printed("pinned_readme", PREFIX)
    assert PUBLISHED not in text
    assert text.count(f'`"{PREFIX}/') == len(CHART_IMAGES)
    assert len([line for line in text.splitlines() if ".digest` | see `values.yaml` |" in line]) == len(
        CHART_IMAGES
    )


@pytest.fixture(scope="module")
def objects(manifest: str) -> list[dict[str, Any]]:
    return [it for it in yaml.safe_load_all(manifest) if it]


def test_the_manifest_begins_with_the_namespace_of_the_operator(objects: list[dict[str, Any]]) -> None:
    namespace = objects[0]
    assert (namespace["kind"], namespace["metadata"]["name"]) == ("Namespace", "frugality-system")
    placed = {it["metadata"]["namespace"] for it in objects if "namespace" in it["metadata"]}
    # By default, benchmarks run in the namespace default, which every cluster has.
    assert placed == {"frugality-system", "default"}
    elsewhere = [it["kind"] for it in objects if it["metadata"].get("namespace") == "default"]
    assert elsewhere == ["RoleBinding"]


def test_the_manifest_has_definitions_operator_and_meter_and_no_test(objects: list[dict[str, Any]]) -> None:
    kinds = [it["kind"] for it in objects]
    assert kinds.count("CustomResourceDefinition") == 4
    assert (kinds.count("Deployment"), kinds.count("DaemonSet")) == (1, 1)
    # One on the images of databases, and six on the operator's account.
    assert kinds.count("ValidatingAdmissionPolicy") == 7
    assert "Pod" not in kinds


def test_no_object_of_the_manifest_says_that_helm_manages_it(objects: list[dict[str, Any]]) -> None:
    labels = [it["metadata"].get("labels", {}) for it in objects]
    assert not [it for it in labels if "app.kubernetes.io/managed-by" in it]


def test_the_manifest_uses_each_image_by_its_digest(manifest: str) -> None:
    for image, digest in DIGESTS.items():
        assert f"{PREFIX}/{image}:{VERSION}@{digest}" in manifest
    assert PUBLISHED not in manifest


def test_the_manifest_invents_no_watts(objects: list[dict[str, Any]]) -> None:
    (meter,) = [it for it in objects if it["kind"] == "DaemonSet"]
    (container,) = meter["spec"]["template"]["spec"]["containers"]
    names = {it["name"] for it in container["env"]}
    assert not [name for name in names if "WATTS" in name and "MAX" not in name]
    (power,) = [it for it in objects if it["kind"] == "ConfigMap"]
    assert "auto" in str(power["data"])


def test_the_definitions_are_the_generated_ones() -> None:
    written = list(yaml.safe_load_all(printed("definitions")))
    generated = [yaml.safe_load(file.read_text()) for file in sorted((ROOT / "crds").glob("*.yaml"))]
    assert written == generated


def test_krew_gets_one_platform_per_archive() -> None:
    sums = {"amd64": "a" * 64, "arm64": "b" * 64}
    plugin = yaml.safe_load(printed("krew_manifest", *(f"{name}={value}" for name, value in sums.items())))
    assert (plugin["apiVersion"], plugin["kind"]) == (
        "krew.googlecontainertools.github.com/v1alpha2",
        "Plugin",
    )
    assert plugin["metadata"]["name"] == "frugality"
    spec = plugin["spec"]
    assert spec["version"] == f"v{VERSION}"
    found = {it["selector"]["matchLabels"]["arch"]: it for it in spec["platforms"]}
    for architecture, value in sums.items():
        platform = found.pop(architecture)
        assert platform["selector"]["matchLabels"]["os"] == "linux"
        assert platform["sha256"] == value
        assert platform["uri"].endswith(
            f"/v{VERSION}/kubectl-frugality_{VERSION}_linux_{architecture}.tar.gz"
        )
        assert platform["bin"] == "kubectl-frugality"
    assert not found


# The list of steps of the command that runs this test stays as it is.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "FRUGALITY_TIMINGS": os.devnull}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arch", "mips"], "unknown architecture mips: use amd64, arm64 or all"),
        (["--arch"], "--arch needs a value"),
        (["--registry", "https://registry.example.org/x"], "--registry takes a registry and a path"),
        (["--registry", "registry.example.org"], "--registry takes a registry and a path"),
        (["--registry", PREFIX, "--sign-key", "none.key"], "there is no key none.key"),
        (["--all"], "unknown option --all"),
    ],
)
def test_a_wrong_argument_is_reported_before_anything_is_built(arguments: list[str], message: str) -> None:
    done = subprocess.run(
        [ROOT / "hack/release", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert "building" not in done.stderr


def test_the_public_registry_gets_only_what_a_tag_says() -> None:
    done = subprocess.run(
        [ROOT / "hack/release"], check=False, capture_output=True, text=True, env=ENVIRONMENT
    )
    assert done.returncode == 1
    assert "this checkout has changes" in done.stderr or f"is not the tag v{VERSION}" in done.stderr
