"""An upgrade from the chart and the images of an old commit, with a benchmark that has ended and one that runs.

Not part of the default suite: ``make upgrade-test``, which builds the old images. Their names differ from those of today. The
test removes the operator and its definitions for a time.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import waiting
from conftest import remove_namespaces
from evidence import say
from gitops import MEASURED_SECONDS
from kube import LAB, OPERATOR_NAMESPACE, ROOT, get, kubectl
from releases import RELEASE, apply, assert_no_benchmarks, contains, ended, found, ledger, remove_definitions

# A checkout of the old commit.
OLD = Path(os.environ["E2E_UPGRADE_FROM"])
VALUES = "hack/box-values.yaml"
NAMESPACE = "e2e-older-chart"


def helm(*arguments: str, folder: Path = ROOT) -> str:
    command = [LAB, "helm", "--namespace", OPERATOR_NAMESPACE, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def images() -> set[str]:
    """The images of operator and node meter, and of the injectors. The box has the same database image for all commits."""
    workloads = get("deployments,daemonsets", "-n", OPERATOR_NAMESPACE)["items"]
    containers = [it["spec"]["template"]["spec"]["containers"][0] for it in workloads]
    variables = [variable for it in containers for variable in it.get("env", [])]
    used = {it["value"] for it in variables if "_INJECTOR_" in it["name"] and it["name"].endswith("_IMAGE")}
    return used | {it["image"] for it in containers}


@pytest.fixture
def old_chart() -> Iterator[set[str]]:
    """An empty cluster with the old chart, and its images. At the end the chart of this checkout is installed again."""
    assert_no_benchmarks(but_of=NAMESPACE)
    remove_namespaces([NAMESPACE], wait=True)
    helm("uninstall", RELEASE, "--wait")
    remove_definitions()
    try:
        chart = (str(OLD / "charts/frugality-operator"), "--values", str(OLD / VALUES))
        helm("install", RELEASE, *chart, "--wait", "--timeout=3m", folder=OLD)
        kubectl("create", "namespace", NAMESPACE)
        kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
        yield images()
    finally:
        chart = ("charts/frugality-operator", "--values", VALUES)
        helm("upgrade", "--install", RELEASE, *chart, "--take-ownership", "--wait", "--timeout=3m")
        remove_namespaces([NAMESPACE], wait=True)


def test_an_upgrade_from_an_old_commit_keeps_what_has_ended_and_refuses_to_mix_images_in_a_run(
    old_chart: set[str],
) -> None:
    apply("ended", NAMESPACE)
    before = ended("ended", NAMESPACE, MEASURED_SECONDS)["status"]
    entries = ledger("ended", NAMESPACE)
    assert before["verdict"] == "Pass", before
    assert len(entries) >= 5
    apply("running", NAMESPACE, maxAttempts=3)
    waiting.until(lambda: ledger("running", NAMESPACE), 300, "a measured attempt", every=2)
    measured = ledger("running", NAMESPACE)

    # As docs/versions.md has it. In the old chart, all namespaces could have benchmarks.
    namespaces = ("--set", "benchmarkNamespaces={*}")
    chart = ("charts/frugality-operator", "--reset-then-reuse-values", *namespaces)
    helm("upgrade", RELEASE, *chart, "--wait", "--timeout=5m")
    assert not images() & old_chart, "the old images are still used"
    say(f"upgraded during a run, from {sorted(old_chart)} to {sorted(images())}")
    # The old operator did not record its images, so the new one can't go on with them.
    running = ended("running", NAMESPACE, MEASURED_SECONDS)["status"]
    assert (running["verdict"], running["columns"]["reason"]) == ("Invalid", "TooManyVoidAttempts"), running
    assert "ImageChanged: the image of injector is" in running["columns"]["message"]
    now = ledger("running", NAMESPACE)
    assert {uid: now.get(uid) for uid in measured} == measured
    # Nothing is measured again, and every figure, sentence and time is the same.
    assert ledger("ended", NAMESPACE) == entries
    after = found("ended", NAMESPACE)["status"]
    assert contains(after, before), (after, before)
    kubectl("patch", "fb", "running", "-n", NAMESPACE, "--type=merge", "-p", '{"spec":{"rerun":2}}')
    waiting.until(
        lambda: found("running", NAMESPACE)["status"].get("verdict") == "Pass",
        MEASURED_SECONDS,
        "the verdict of another run",
        every=5,
    )
