"""The profiles: values for a kind of cluster. Each renders with the command in its head."""

import re
import shlex

import pytest
import yaml

from rendered import CHART, KUBERNETES, REPOSITORY, container, find, helm, pod, render

PROFILES = sorted((CHART / "profiles").glob("*.yaml"))


def command(profile):
    """The values that the installation command in the profile's head sets, the profile included."""
    head = profile.read_text().split("\n\n")[0]
    lines = [line.removeprefix("#").strip() for line in head.splitlines()]
    text = " ".join(line.removesuffix("\\").strip() for line in lines)
    flag = r"(?:--create-namespace |--\S+ (?:'[^']*'|\S+) ?)"
    [found] = re.findall(rf"helm install frugality charts/frugality-operator ({flag}+)", text)
    words = shlex.split(found)
    assert f"charts/frugality-operator/profiles/{profile.name}" in words
    start = words.index("--values")
    return tuple(str(REPOSITORY / w) if w.endswith(profile.name) else w for w in words[start:])


def test_the_profiles_are_for_boards_laptops_and_shared_clusters():
    assert [p.stem for p in PROFILES] == ["laptop", "pi", "shared"]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.stem)
def test_a_profile_is_valid_and_documented(profile):
    result = helm("lint", "--strict", str(CHART), *KUBERNETES, *command(profile))
    assert result.returncode == 0, result.stdout + result.stderr
    find(render(*command(profile)), "Deployment", "frugality-operator")
    for document in (CHART / "README.md", REPOSITORY / "docs" / "quickstart.md"):
        assert f"profiles/{profile.name}" in document.read_text(), document


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.stem)
def test_a_profile_repeats_no_default(profile):
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())

    def repeated(part, default, path):
        if isinstance(part, dict) and part:
            for key, inner in part.items():
                yield from repeated(inner, (default or {}).get(key), f"{path}.{key}")
        elif part == default and not path.startswith((".injector.resources", ".meter.board")):
            yield path

    assert list(repeated(yaml.safe_load(profile.read_text()), defaults, "")) == []


def profile(name):
    return render(*command(CHART / "profiles" / f"{name}.yaml"))


def test_on_boards_the_operator_stays_off_the_measured_one():
    operator = find(profile("pi"), "Deployment", "frugality-operator")
    [term] = pod(operator)["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    [rule] = term["matchExpressions"]
    assert rule == {"key": "frugality.dev/role", "operator": "NotIn", "values": ["measured"]}
    mounts = container(find(profile("pi"), "DaemonSet", "frugality-meter"))["volumeMounts"]
    assert "device-tree" in [mount["name"] for mount in mounts]


def test_a_shared_cluster_gives_rights_in_named_namespaces_and_separates_the_pods():
    objects = profile("shared")
    runs = "frugality-operator-runs"
    bound = [o for o in objects if "roleRef" in o and o["roleRef"]["name"] == runs]
    assert [(o["kind"], o["metadata"]["namespace"]) for o in bound] == [("RoleBinding", "shop")]
    policies = [o for o in objects if o["kind"] == "NetworkPolicy"]
    assert {o["metadata"]["namespace"] for o in policies} == {"frugality-system", "shop"}
    for role in ("frugality-edit", "frugality-view"):
        assert "aggregate" not in str(find(objects, "ClusterRole", role)["metadata"]["labels"])


# ---- Artifact Hub -------------------------------------------------------------------------------

ABOUT = yaml.safe_load((CHART / "Chart.yaml").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())


def annotation(name):
    return yaml.safe_load(ABOUT["annotations"][f"artifacthub.io/{name}"])


def test_the_annotations_name_the_images_of_this_version():
    images = {i["name"]: i["image"] for i in annotation("images")}
    expected = {
        name: f"{image['repository']}:{ABOUT['appVersion']}"
        for name, image in {
            "operator": DEFAULTS["image"],
            "injector": DEFAULTS["injector"]["image"],
            "injector-k6": DEFAULTS["injector"]["k6Image"],
            "meter": DEFAULTS["meter"]["image"],
        }.items()
    }
    assert images == expected | {"postgresql": DEFAULTS["database"]["image"]}


def test_the_annotations_name_the_resources():
    crds = [yaml.safe_load(p.read_text()) for p in (CHART / "files" / "crds").glob("*.yaml")]
    assert {(c["name"], c["kind"], c["version"]) for c in annotation("crds")} == {
        (c["metadata"]["name"], c["spec"]["names"]["kind"], c["spec"]["versions"][0]["name"])
        for c in crds
    }
    [example] = annotation("crdsExamples")
    assert example["kind"] == "FrugalityBenchmark"
    crd = next(c for c in crds if c["spec"]["names"]["kind"] == "FrugalityBenchmark")
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert set(spec.get("required", [])) <= set(example["spec"]) <= set(spec["properties"])


def test_the_annotations_name_license_and_changes():
    license_text = (REPOSITORY / "LICENSE").read_text()
    assert ABOUT["annotations"]["artifacthub.io/license"] == "Apache-2.0"
    assert "Apache License" in license_text
    assert "Version 2.0" in license_text
    for change in annotation("changes"):
        assert change["kind"] in ("added", "changed", "fixed", "removed", "security", "deprecated")
    for link in annotation("links"):
        assert link["url"].startswith(ABOUT["home"])
