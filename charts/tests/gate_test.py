"""Tests of the gate for Flagger, which the chart installs only if it is wanted."""

import subprocess

import pytest

from rendered import (
    CHART,
    KUBERNETES,
    NAMESPACE,
    PI,
    binary,
    container,
    find,
    flat,
    helm,
    pod,
    refusal,
    render,
    rights,
)

GATE = (*PI, "--set", "gate.enabled=true")
NAME = "frugality-gate"


def of_the_gate(*arguments):
    return [o for o in render(*arguments) if o["metadata"]["name"] == NAME]


def test_the_gate_is_not_installed_by_default():
    assert of_the_gate(*PI) == []


def test_the_gate_changes_nothing_else():
    assert [o for o in render(*GATE) if o["metadata"]["name"] != NAME] == render(*PI)


def test_lint_is_clean_with_the_gate():
    result = helm("lint", "--strict", str(CHART), *KUBERNETES, *GATE)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_gate_reads_three_kinds_of_objects_and_writes_nothing():
    expected = (
        rights("frugality.dev", "frugalitybenchmarks", "get")
        | rights("flagger.app", "canaries", "get")
        | rights("apps", "deployments", "get")
        | rights("apps", "daemonsets", "get")
    )
    assert flat(find(render(*GATE), "ClusterRole", NAME)["rules"]) == expected


def bindings(*arguments):
    return [
        o for o in of_the_gate(*arguments) if o["kind"] in ("RoleBinding", "ClusterRoleBinding")
    ]


def test_the_gate_s_account_is_bound_to_its_role_only():
    [binding] = bindings(*GATE)
    assert binding["kind"] == "ClusterRoleBinding"
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == ("ClusterRole", NAME)
    [subject] = binding["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    assert pod(find(render(*GATE), "Deployment", NAME))["serviceAccountName"] == NAME


def test_with_namespaces_the_gate_reads_only_them():
    found = bindings(*GATE, "--set", "gate.namespaces={shop,farm}")
    assert [(b["kind"], b["metadata"]["namespace"]) for b in found] == [
        ("RoleBinding", "shop"),
        ("RoleBinding", "farm"),
    ]
    for binding in found:
        assert binding["subjects"][0]["namespace"] == NAMESPACE


def test_only_flagger_s_namespace_may_ask():
    policy = find(render(*GATE, "--set", "gate.flaggerNamespace=mesh"), "NetworkPolicy", NAME)
    labels = find(render(*GATE), "Deployment", NAME)["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    [rule] = policy["spec"]["ingress"]
    assert rule["from"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "mesh"}}}
    ]
    assert rule["ports"] == [{"protocol": "TCP", "port": "http"}]


def test_the_service_selects_the_gate_and_not_the_operator():
    objects = render(*GATE)
    deployment = find(objects, "Deployment", NAME)
    selector = find(objects, "Service", NAME)["spec"]["selector"]
    assert selector == deployment["spec"]["selector"]["matchLabels"]
    other = find(objects, "Deployment", "frugality-operator")
    assert not selector.items() <= other["spec"]["template"]["metadata"]["labels"].items()


def test_the_gate_s_pod_satisfies_the_restricted_standard_and_runs_on_the_operator_s_nodes():
    objects = render(*GATE)
    gate = pod(find(objects, "Deployment", NAME))
    operator = pod(find(objects, "Deployment", "frugality-operator"))
    assert gate["securityContext"] == operator["securityContext"]
    assert gate["affinity"] == operator["affinity"]
    main = container(find(objects, "Deployment", NAME))
    assert main["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert main["image"] == container(find(objects, "Deployment", "frugality-operator"))["image"]
    assert main["resources"]["limits"]["memory"] == "64Mi"
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & set(gate)


@pytest.mark.parametrize(("allowed", "args"), [("false", None), ("true", ["--allow-tag"])])
def test_tags_are_accepted_only_if_wanted(allowed, args):
    deployment = find(
        render(*GATE, "--set", f"gate.allowTag={allowed}"), "Deployment", NAME
    )
    assert container(deployment).get("args") == args


def test_the_program_knows_the_options_and_listens_on_the_port():
    main = container(find(render(*GATE, "--set", "gate.allowTag=true"), "Deployment", NAME))
    program, *command = main["command"]
    shown = subprocess.run(
        [binary(program), *command, "--help"], check=True, capture_output=True, text=True
    ).stdout
    for option in main["args"]:
        assert option in shown
    [port] = main["ports"]
    assert f"[default: [::]:{port['containerPort']}]" in shown
    for probe in ("livenessProbe", "readinessProbe"):
        assert main[probe]["httpGet"] == {"path": "/healthz", "port": port["name"]}


def test_a_wrong_value_is_refused():
    assert "additional properties 'allowTags'" in refusal(*GATE, "--set", "gate.allowTags=true")
