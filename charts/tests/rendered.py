"""Renders the chart as a user would, and has helpers for the tests of the result.

HELM is the path of the helm binary. FRUGALITY_BIN_DIR is optional: a directory with
frugality-operator and frugality-meter. If it is set, the tests check that both programs know the
settings of the chart.
"""

import functools
import os
import subprocess
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "charts" / "frugality-operator"
BINARIES = os.environ.get("FRUGALITY_BIN_DIR")

NAMESPACE = "frugality-system"
# Kubernetes version to render for, because a helm built from source has no useful default.
KUBERNETES = ("--kube-version", "1.35.4")
PI = ("--set", "meter.board=pi-4b")
GENERIC = ("--set", "meter.idleWatts=0", "--set", "meter.wattsPerCpu=1.5")
KEPLER = ("--set", "meter.enabled=false")
PLUG = (
    "--set",
    "meter.power.nodes.pi-1.source.type=shelly-gen2",
    "--set",
    "meter.power.nodes.pi-1.source.host=192.168.1.20",
)
AUTO = ("--set", "meter.power.default.source.type=auto")
GROUP = (
    "--set",
    "meter.power.groups[0].name=ina",
    "--set",
    "meter.power.groups[0].label=frugality.dev/power=ina226",
    "--set",
    "meter.power.groups[0].power.source.type=hwmon",
)


def run(*command, env=None):
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=env)


def helm(*arguments):
    program = os.environ.get("HELM")
    if not program:
        pytest.fail("set HELM to the path of a helm 3 binary", pytrace=False)
    return run(program, *arguments)


@functools.cache
def template(*arguments, chart=CHART):
    # A later flag overrides an earlier one, so arguments can override the version.
    return helm(
        "template",
        "frugality",
        str(chart),
        "--namespace",
        NAMESPACE,
        *KUBERNETES,
        *arguments,
    )


def render(*arguments, chart=CHART):
    result = template(*arguments, chart=chart)
    assert result.returncode == 0, result.stderr
    # PyYAML's C loader needs a tenth of the time for the CRDs.
    return [document for document in yaml.load_all(result.stdout, yaml.CSafeLoader) if document]


def refusal(*arguments):
    result = template(*arguments)
    assert result.returncode != 0, "helm did not refuse the chart"
    return result.stderr


def find(objects, kind, name):
    [found] = [o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name]
    return found


def pod(workload):
    return workload["spec"]["template"]["spec"]


def container(workload):
    [found] = pod(workload)["containers"]
    return found


def environment(workload):
    """The container's environment: literal values, and names of pod fields in brackets."""
    return {
        e["name"]: e.get("value") or f"[{e['valueFrom']['fieldRef']['fieldPath']}]"
        for e in container(workload)["env"]
    }


def operator(*arguments):
    return find(render(*arguments), "Deployment", "frugality-operator")


def meter(*arguments):
    return find(render(*arguments), "DaemonSet", "frugality-meter")


def flat(rules):
    """Rules as a set of single rights, independent of order and grouping."""
    return {
        (group, resource, verb, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [None])
    }


def rights(group, resource, verbs, name=None):
    return {(group, resource, verb, name) for verb in verbs.split()}


def binary(name):
    if not BINARIES:
        pytest.skip("FRUGALITY_BIN_DIR is not set")
    return str(Path(BINARIES).resolve() / name)


def may_get_the_meters_daemonsets(objects, namespace, names):
    role = find(objects, "Role", "frugality-operator-meters")
    binding = find(objects, "RoleBinding", "frugality-operator-meters")
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == namespace
    assert role["rules"] == [
        {
            "apiGroups": ["apps"],
            "resources": ["daemonsets"],
            "resourceNames": names,
            "verbs": ["get"],
        }
    ]
