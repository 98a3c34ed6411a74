"""What all pods of the chart have in common: their security and what they ask of a board."""

import json

import pytest

from rendered import PI, find, render


def pods(*arguments):
    """The spec of every pod of the chart, by the name of the pod or its controller."""
    return {
        o["metadata"]["name"]: o["spec"] if o["kind"] == "Pod" else o["spec"]["template"]["spec"]
        for o in render(*arguments)
        if o["kind"] in ("Pod", "Deployment", "DaemonSet", "Job")
    }


@pytest.mark.parametrize(
    "name", ["frugality-operator", "frugality-operator-test", "frugality-operator-doctor"]
)
def test_all_pods_but_the_meter_satisfy_the_restricted_standard(name):
    # https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted, and stricter.
    pod = pods(*PI)[name]
    context = pod["securityContext"]
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"} & set(pod)
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == 65532
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    [main] = pod["containers"]
    assert main["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert all("hostPort" not in port for port in main.get("ports", []))


def test_there_are_no_other_pods():
    assert set(pods(*PI)) == {
        "frugality-operator",
        "frugality-operator-test",
        "frugality-operator-doctor",
        "frugality-meter",
    }


def mebibytes(pod, kind):
    [main] = pod["containers"]
    amount = main["resources"][kind]["memory"]
    assert amount.endswith("Mi")
    return int(amount.removesuffix("Mi"))


def test_all_of_it_fits_a_board_with_1_gb():
    every = pods(*PI).values()
    # The k3s server alone takes about half of the memory of such a board.
    assert sum(mebibytes(pod, "requests") for pod in every) <= 64
    assert sum(mebibytes(pod, "limits") for pod in every) <= 256


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ((), ["ghcr.io/cloudnative-pg/postgresql", "ghcr.io/cloudnative-pg/"]),
        (
            ("--set", "database.image=registry:5000/pg:16@sha256:0a"),
            ["registry:5000/pg", "ghcr.io/cloudnative-pg/"],
        ),
        (
            ("--set", "database.allowedImages={example.com/pg}"),
            ["ghcr.io/cloudnative-pg/postgresql", "example.com/pg"],
        ),
    ],
)
def test_images_of_the_database_are_of_the_default_s_repository_or_allowed(settings, allowed):
    policy = find(render(*PI, *settings), "ValidatingAdmissionPolicy", "frugality-database-images")
    expressions = {v["name"]: v["expression"] for v in policy["spec"]["variables"]}
    assert json.loads(expressions["allowed"]) == allowed


def test_a_cluster_without_admission_policies_is_given_none():
    kinds = {o["kind"] for o in render(*PI, "--kube-version", "1.29.0")}
    assert not {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} & kinds
