"""A namespace without room: the run waits and says why. A pod with a copied label delays nobody."""

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
# No pod fits at first.
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "small"},
    "spec": {"hard": {"pods": "0", "requests.cpu": "1"}},
}
# A Deployment of somebody else, with the label of a benchmark that does not exist, for a node that does not.
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
    """The condition Complete once it has one of these reasons."""
    seen: Object = {}

    def found() -> Object | None:
        nonlocal seen
        seen = conditions(get("fb", CROWDED.name, "-n", NAMESPACE)).get("Complete", {})
        return seen if seen.get("reason") in reasons else None

    try:
        return waiting.until(found, seconds, f"the reason {', '.join(sorted(reasons))}", every=1)
    except waiting.NotSeenError as error:
        raise AssertionError(f"{error}; last seen: {seen}") from error


def test_without_room_for_its_pods_a_run_waits_and_says_so(crowded: None) -> None:
    complete = until({"QuotaExceeded"}, 300)
    assert complete["status"] == "False"
    assert "exceeded quota: small" in complete["message"], complete


def test_once_there_is_room_it_goes_on_and_ends(crowded: None) -> None:
    room = json.dumps({"spec": {"hard": {"pods": "10"}}})
    kubectl("patch", "resourcequota", "small", "-n", NAMESPACE, "--type=merge", "-p", room)
    # One block is measured, and five are the least that is reported.
    complete = until({"TooFewBlocks"}, 600)
    assert complete["status"] == "True"
