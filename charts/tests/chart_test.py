"""Renders the chart as a user would and checks its packaging."""

import re
import shutil

import pytest
import yaml

from rendered import (
    CHART,
    GENERIC,
    KEPLER,
    KUBERNETES,
    NAMESPACE,
    PI,
    REPOSITORY,
    container,
    find,
    helm,
    meter,
    operator,
    refusal,
    render,
)

# ---- packaging ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [(), PI, GENERIC, KEPLER], ids=["defaults", "pi", "generic", "kepler"]
)
def test_lint_is_clean(settings):
    result = helm("lint", "--strict", str(CHART), *KUBERNETES, *settings)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "[WARNING]" not in result.stdout, result.stdout
    assert "[ERROR]" not in result.stdout, result.stdout


def definitions(*arguments):
    return {
        o["metadata"]["name"]: o
        for o in render(*PI, *arguments)
        if o["kind"] == "CustomResourceDefinition"
    }


def test_the_definitions_are_the_generated_ones_and_are_upgraded_and_kept():
    generated = {
        o["metadata"]["name"]: o
        for o in (yaml.safe_load(p.read_text()) for p in (REPOSITORY / "crds").glob("*.yaml"))
    }
    assert set(generated) == {
        "frugalitybaselines.frugality.dev",
        "frugalitybenchmarks.frugality.dev",
        "frugalitytraces.frugality.dev",
        "frugalitytrials.frugality.dev",
    }
    rendered = definitions()
    assert {name: o["spec"] for name, o in rendered.items()} == {
        name: o["spec"] for name, o in generated.items()
    }, "run make generate: crds/ and the chart's files/crds/ differ"
    for o in rendered.values():
        # Without this annotation, Helm deletes the definition with the release, which deletes all
        # benchmarks.
        assert o["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        assert o["metadata"]["labels"]["app.kubernetes.io/part-of"] == "frugality"
    # Helm never upgrades definitions in this folder.
    assert not (CHART / "crds").exists()


def test_the_chart_can_leave_out_the_definitions():
    assert definitions("--set", "crds.install=false") == {}


def test_a_cluster_too_old_for_the_validation_rules_is_refused():
    assert "incompatible with Kubernetes" in refusal(*PI, "--kube-version", "1.28.9")


@pytest.mark.parametrize(
    ("version", "recursive"), [("1.29.0", False), ("1.30.9+k3s1", False), ("1.31.0+k3s1", True)]
)
def test_a_field_that_the_cluster_does_not_know_is_not_sent(version, recursive):
    mounts = container(meter(*PI, "--kube-version", version))["volumeMounts"]
    assert {"recursiveReadOnly" in mount for mount in mounts} == {recursive}


def test_everything_but_the_rights_to_run_benchmarks_is_in_the_release_s_namespace():
    cluster_wide = {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    elsewhere = set()
    for o in render(*PI):
        if o["kind"] not in cluster_wide and o["metadata"]["namespace"] != NAMESPACE:
            elsewhere.add((o["kind"], o["metadata"]["namespace"], o["metadata"]["name"]))
        for subject in o.get("subjects", []):
            assert subject["namespace"] == NAMESPACE
    assert elsewhere == {("RoleBinding", "default", "frugality-operator-runs")}


def notes(tmp_path, *settings):
    """Renders NOTES.txt as a value of a template: Helm renders notes only on a cluster."""
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    file = chart / "templates" / "NOTES.txt"
    text = file.read_text()
    file.unlink()
    (chart / "templates" / "notes.yaml").write_text(
        '{{ define "notes" }}'
        + text
        + '{{ end }}{kind: Notes, metadata: {name: x}, text: {{ include "notes" . | toJson }}}'
    )
    return find(render(*settings, chart=chart), "Notes", "x")["text"]


@pytest.mark.parametrize(
    ("settings", "energy"), [(PI, "pi-4b"), (KEPLER, "namespace kepler")], ids=["pi", "kepler"]
)
def test_notes_say_what_to_do_next(settings, energy, tmp_path):
    shown = notes(tmp_path, *settings)
    assert f"kubectl --namespace {NAMESPACE} rollout status deployment/frugality-operator" in shown
    assert f"helm test frugality --namespace {NAMESPACE}" in shown
    assert energy in shown
    assert "kubectl get frugalitybenchmarks" in shown
    assert "--clusterrole=frugality-edit" in shown
    # Rendered without a cluster, so without CloudNativePG.
    assert "CloudNativePG was not found" in shown
    assert "crds/" not in shown


def test_notes_say_that_the_user_must_apply_the_definitions(tmp_path):
    shown = notes(tmp_path, *PI, "--set", "crds.install=false")
    assert "kubectl apply --server-side -f crds/" in shown


def test_a_new_chart_with_the_same_images_restarts_nothing(tmp_path):
    # A restart of a meter voids the current attempt on its node.
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    about = chart / "Chart.yaml"
    about.write_text(re.sub(r"(?m)^version: .*$", "version: 999.0.0", about.read_text()))
    newer = render(*PI, chart=chart)
    for before in (operator(*PI), meter(*PI)):
        after = find(newer, before["kind"], before["metadata"]["name"])
        assert after["metadata"] != before["metadata"]
        assert after["spec"] == before["spec"]


# ---- helm test ------------------------------------------------------------------------------------


def test_helm_test_asks_the_operator_s_service_without_any_rights():
    objects = render(*PI)
    pod, account = (
        find(objects, kind, "frugality-operator-test") for kind in ("Pod", "ServiceAccount")
    )
    for o in (pod, account):
        annotations = o["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "test"
        assert "hook-succeeded" in annotations["helm.sh/hook-delete-policy"]
    assert pod["spec"]["serviceAccountName"] == account["metadata"]["name"]
    assert int(account["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0
    service = find(objects, "Service", "frugality-operator")
    [port] = service["spec"]["ports"]
    [main] = pod["spec"]["containers"]
    host = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert main["args"] == ["check", f"--url=http://{host}:{port['port']}"]
    assert main["image"] == container(operator(*PI))["image"]
    # The Service must not select this pod. The pod must avoid the measured node.
    assert not service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    template = operator(*PI)["spec"]["template"]["spec"]
    assert pod["spec"]["affinity"] == template["affinity"]
