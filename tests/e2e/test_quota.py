"""A run waits in a namespace without room and reports why. A pod with a copied label delays no benchmark."""

import json
from collections.abc import Iterator

import pytest

import waiting
from benchmarks import FORTIO, FORTIO_ARGS, Benchmark, spec
from conftest import remove_namespaces
from kube import Object, conditions, get, kubectl

NAMESPACE = "e2e-quota"
CANDIDATE = {"name": "fortio", "image": FORTIO, "args": FORTIO_ARGS, "readinessPath": "/debug"}
CANDIDATE |= {"resources": {"requests": {"cpu": "10m"}}}
CROWDED = Benchmark(
    NAMESPACE,
    "crowded",
    spec(
        candidates=[CANDIDATE],
        request={"path": "/"},
        load={"duration": "20s", "warmUp": "2s", "rate": 50},
        deadline="15m",
    ),
)
# At first no pod may be created.
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "small"},
    "spec": {"hard": {"pods": "0", "requests.cpu": "1"}},
}
# A foreign Deployment with the label of a benchmark that does not exist. Its pods fit on no node.
LABELS = {"frugality.dev/benchmark-uid": "00000000-0000-4000-8000-000000000000"}
STRAY = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "stray"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {
                "nodeSelector": {"example.com/no-such-label": "yes"},
                "containers": [{"name": "stray", "image": FORTIO}],
            },
        },
    },
}


@pytest.fixture(scope="module")
def crowded() -> Iterator[None]:
    """The benchmark in a namespace whose quota has no room, next to a stray pod in another namespace."""
    stray = f"{NAMESPACE}-stray"
    remove_namespaces([NAMESPACE, stray], wait=True)
    for namespace in (NAMESPACE, stray):
        kubectl("create", "namespace", namespace)
    kubectl("create", "-n", stray, "-f", "-", stdin=json.dumps(STRAY))
    kubectl("create", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(QUOTA))
    CROWDED.apply()
    yield
    remove_namespaces([NAMESPACE, stray], wait=False)


def until(reasons: set[str], seconds: float) -> Object:
    """Waits until the condition Complete has one of these reasons, and returns the condition."""
    seen: Object = {}

    def found() -> Object | None:
        nonlocal seen
        seen = conditions(get("fb", CROWDED.name, "-n", NAMESPACE)).get("Complete", {})
        return seen if seen.get("reason") in reasons else None

    try:
        return waiting.until(found, seconds, f"the reason {', '.join(sorted(reasons))}", every=1)
    except waiting.NotSeenError as error:
        raise AssertionError(f"{error}; last seen: {seen}") from error


def test_a_run_without_room_for_its_pods_waits_and_names_the_quota(crowded: None) -> None:
    complete = until({"QuotaExceeded"}, 300)
    assert complete["status"] == "False"
    assert "exceeded quota: small" in complete["message"], complete


def test_a_run_with_room_again_continues_to_its_end(crowded: None) -> None:
    room = json.dumps({"spec": {"hard": {"pods": "10"}}})
    kubectl("patch", "resourcequota", "small", "-n", NAMESPACE, "--type=merge", "-p", room)
    # Only one block is measured, and figures need five.
    complete = until({"TooFewBlocks"}, 600)
    assert complete["status"] == "True"
