"""The chart is removed, an older version is installed and then upgraded. Users' objects remain.

Each test continues from the state that the previous one left. The module is the last one, because it removes
the operator for a time.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator

import pytest
import yaml

import waiting
from benchmarks import Benchmark, spec
from conftest import remove_namespaces
from kube import LAB, ROOT, Object, get, kubectl
from scenarios import OPERATOR_NAMESPACE

CHART = ROOT / "charts/frugality-operator"
RELEASE = "frugality"
NAMESPACE = "e2e-upgrade"
DEFINITIONS = ("frugalitybenchmarks.frugality.dev", "frugalitytrials.frugality.dev")
PREVIOUS = "0.0.9"
# A field of spec.request that the previous version's definition does not have. No rule names it.
NEW_FIELD = "responsesMayDiffer"
# A template that the previous version did not have. Without it benchmarks may name any image.
NEW_TEMPLATE = "database-images.yaml"
# No node has the label, so the benchmark never gets a turn.
OLD = Benchmark(
    NAMESPACE,
    "old",
    spec(
        placement={"measuredNodeSelector": {"example.com/no-such-label": "yes"}},
        database={"image": "example.com/old:15", "seed": {"contacts": 1}},
    ),
)
USES_NEW_FIELD = Benchmark(NAMESPACE, "new", spec(request={"path": "/contacts/{uuid}", NEW_FIELD: True}))


def helm(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [LAB, "helm", "--namespace", OPERATOR_NAMESPACE, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert result.returncode == 0 or not check, result.stdout + result.stderr
    return result


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A file with the values of the installed release. At the end the release is restored."""
    file = tmp_path_factory.mktemp("values") / "values.json"
    file.write_text(helm("get", "values", RELEASE, "-o", "json").stdout)
    remove_namespaces([NAMESPACE], wait=True)
    kubectl("create", "namespace", NAMESPACE)
    try:
        yield str(file)
    finally:
        helm("upgrade", "--install", RELEASE, str(CHART), "-f", str(file), "--take-ownership", "--wait")
        remove_namespaces([NAMESPACE], wait=False)


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A copy of this chart as an earlier version."""
    chart = tmp_path_factory.mktemp("previous") / CHART.name
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about | {"version": PREVIOUS}))
    (chart / "templates" / NEW_TEMPLATE).unlink()
    file = chart / "files/crds/frugalitybenchmarks.yaml"
    definition = yaml.safe_load(file.read_text())
    del known_fields(definition)[NEW_FIELD]
    file.write_text(yaml.safe_dump(definition))
    return str(chart)


def known_fields(definition: Object) -> Object:
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema["properties"]["spec"]["properties"]["request"]["properties"]


def cluster() -> tuple[set[str], set[str]]:
    """UIDs of all definitions, benchmarks and ledger entries, and the chart's label of the definitions."""
    definitions = get("crd", *DEFINITIONS)["items"]
    objects = [*definitions, *get("fb", "-A")["items"], *get("fbt", "-A")["items"]]
    versions = {d["metadata"]["labels"]["helm.sh/chart"] for d in definitions}
    return {o["metadata"]["uid"] for o in objects}, versions


def assert_said_soon(words: str, *command: str, stdin: str | None = None) -> None:
    """Waits for an answer with these words. The API server needs seconds for new definitions and policies."""
    said = ""

    def is_said() -> bool:
        nonlocal said
        result = kubectl(*command, "--dry-run=server", stdin=stdin, check=False)
        said = result.stdout + result.stderr
        return words in said

    try:
        waiting.until(is_said, 15, f"the answer {words!r}")
    except waiting.NotSeenError as error:
        raise AssertionError(f"{error}; last answer: {said}") from error


def assert_new_field(words: str) -> None:
    create = ("create", "--validate=strict", "-f", "-")
    assert_said_soon(words, *create, stdin=json.dumps(USES_NEW_FIELD.manifest))


def test_uninstall_keeps_definitions_benchmarks_and_ledger(values: str) -> None:
    before, _ = cluster()
    helm("uninstall", RELEASE, "--wait")
    assert cluster()[0] == before
    kinds = "deployments,daemonsets,services,serviceaccounts,roles,clusterroles,validatingadmissionpolicies"
    left = kubectl("get", kinds, "-n", OPERATOR_NAMESPACE, "-o", "name").stdout
    assert "frugality" not in left


def test_foreign_definitions_are_taken_over_only_on_request(values: str, previous: str) -> None:
    # The state after kubectl apply.
    for name in DEFINITIONS:
        kubectl("annotate", "crd", name, "meta.helm.sh/release-name-", "meta.helm.sh/release-namespace-")
        kubectl("label", "crd", name, "app.kubernetes.io/managed-by-")
    before, _ = cluster()
    refused = helm("install", RELEASE, previous, "-f", values, check=False)
    assert "invalid ownership metadata" in refused.stderr
    helm("install", RELEASE, previous, "-f", values, "--take-ownership", "--wait")
    assert cluster() == (before, {f"{CHART.name}-{PREVIOUS}"})
    assert_new_field(f'unknown field "spec.request.{NEW_FIELD}"')


def test_helm_test_reports_definitions_older_than_the_operator() -> None:
    failed = helm("test", RELEASE, check=False)
    assert failed.returncode != 0
    said = kubectl("logs", "-n", OPERATOR_NAMESPACE, "frugality-operator-test").stdout
    assert f"FrugalityBenchmark is older than this operator and lacks spec.request.{NEW_FIELD}" in said


def test_an_upgrade_adds_the_new_field_and_keeps_benchmarks(values: str) -> None:
    OLD.apply()
    before, _ = cluster()
    uid = operator_pod()
    helm("upgrade", RELEASE, str(CHART), "-f", values, "--wait")
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    assert cluster() == (before, {f"{CHART.name}-{version}"})
    assert_new_field("created (server dry run)")
    # The images are unchanged. Therefore nothing restarts, and no attempt is void.
    assert operator_pod() == uid


def operator_pod() -> str:
    selector = "app.kubernetes.io/name=frugality-operator"
    pods = get("pods", "-n", OPERATOR_NAMESPACE, "-l", selector)["items"]
    [uid] = [pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return uid


def test_an_older_benchmark_can_be_edited_although_its_image_is_not_allowed() -> None:
    patch = ("patch", "fb", OLD.name, "-n", NAMESPACE, "--type=merge", "-p")
    other = json.dumps({"spec": {"database": {"image": "example.com/other:15"}}})
    assert_said_soon("database.image must be of", *patch, other)
    kubectl(*patch, json.dumps({"spec": {"deadline": "1h"}}))


def test_helm_test_passes_and_leaves_nothing() -> None:
    assert "Phase:          Succeeded" in helm("test", RELEASE).stdout
    left = kubectl("get", "pods,serviceaccounts,roles", "-n", OPERATOR_NAMESPACE, "-o", "name").stdout
    assert "frugality-operator-test" not in left
    assert "frugality-operator-doctor" not in left
