"""Tests of the hook that runs the doctor for ``helm test``."""

import subprocess

import pytest

from rendered import GROUP, KEPLER, NAMESPACE, PI, binary, find, flat, render, rights

NAME = "frugality-operator-doctor"


def parts(*arguments):
    return [o for o in render(*arguments) if o["metadata"]["name"].startswith(NAME)]


def test_all_of_it_is_a_hook_that_a_successful_test_removes():
    weights = {}
    for o in parts(*PI):
        annotations = o["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "test"
        assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        weights.setdefault(o["kind"], int(annotations["helm.sh/hook-weight"]))
    # A test that fails ends helm test. The check of the definitions comes first, and the pod after its rights.
    pod = weights.pop("Pod")
    assert 0 < min(weights.values()) <= max(weights.values()) < pod


@pytest.mark.parametrize(
    ("settings", "namespace", "names"),
    [
        (PI, NAMESPACE, ["frugality-meter"]),
        ((*PI, *GROUP), NAMESPACE, ["frugality-meter", "frugality-meter-ina"]),
        (KEPLER, "kepler", ["kepler"]),
    ],
    ids=["meter", "group", "kepler"],
)
def test_the_doctor_only_reads_what_it_checks(settings, namespace, names):
    objects = render(*settings)
    assert flat(find(objects, "Role", NAME)["rules"]) == rights(
        "apps", "deployments", "get", "frugality-operator"
    )
    meters = find(objects, "Role", f"{NAME}-meters")
    assert meters["metadata"]["namespace"] == namespace
    expected = set().union(*(rights("apps", "daemonsets", "get", name) for name in names))
    assert flat(meters["rules"]) == expected
    assert flat(find(objects, "ClusterRole", NAME)["rules"]) == rights(
        "storage.k8s.io", "storageclasses", "list"
    )


def test_only_the_doctor_s_account_has_its_roles():
    bindings = [o for o in parts(*PI) if "roleRef" in o]
    assert len(bindings) == 3
    for binding in bindings:
        assert binding["roleRef"]["name"] == binding["metadata"]["name"]
        [subject] = binding["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    assert find(parts(*PI), "Pod", NAME)["spec"]["serviceAccountName"] == NAME


def test_the_program_knows_the_options():
    [main] = find(parts(*PI), "Pod", NAME)["spec"]["containers"]
    program, *command = main["command"]
    shown = subprocess.run(
        [binary(program), *command, "--help"], check=True, capture_output=True, text=True
    ).stdout
    for option in main["args"]:
        assert option.split("=")[0] in shown
    assert f"--namespace={NAMESPACE}" in main["args"]
