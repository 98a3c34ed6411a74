"""An injector that is too weak for its candidates: figures that it limits support no conclusion.

A LimitRange limits every container of the namespace to 0.3 CPU. The spec gives the candidates higher limits,
so only the injector is limited.

Not part of the default suite, because it takes a quarter of an hour: ``tests/e2e/run --injector``.
"""

import json
import statistics
import subprocess
from collections.abc import Iterator

import pytest

from conftest import watched
from evidence import say
from kube import LAB, ROOT, Object, conditions, get, kubectl, summarize

NAMESPACE = "e2e-injector"
EXAMPLE = "examples/nginx-vs-lighttpd.yaml"
SERVERS = ["nginx", "lighttpd"]
IMAGES = {server: f"localhost/static/{server}:1" for server in SERVERS}
SECONDS = 1500
LIMIT_RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"namespace": NAMESPACE, "name": "little"},
    "spec": {
        "limits": [{"type": "Container", "default": {"cpu": "300m"}, "defaultRequest": {"cpu": "100m"}}]
    },
}
OF_THEIR_OWN = {"requests": {"cpu": "100m"}, "limits": {"cpu": "2"}}


def lab(*arguments: str) -> None:
    command = [LAB, *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, f"lab {' '.join(arguments)}: {result.stdout}{result.stderr}"


@pytest.fixture(scope="module")
def limited(request: pytest.FixtureRequest) -> Iterator[Object]:
    """nginx and lighttpd, loaded by an injector with 0.3 CPU, at their end."""
    for server, image in IMAGES.items():
        lab("build-image", f"examples/static/{server}.Dockerfile", image, "examples/static")
    lab("load", *IMAGES.values())
    with watched([NAMESPACE], request) as session:
        kubectl("apply", "-f", "-", stdin=json.dumps(LIMIT_RANGE))
        example = json.loads(
            kubectl("create", "-f", EXAMPLE, "--dry-run=client", "--validate=false", "-o", "json").stdout
        )
        spec = example["spec"]
        for candidate in spec["candidates"]:
            candidate["resources"] = OF_THEIR_OWN
        # A ratio below a factor of two would be a tie.
        spec["energy"]["tieWithin"] = 1
        manifest = {**example, "metadata": {"namespace": NAMESPACE, "name": "limited"}}
        kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
        benchmark = session.ended(f"{NAMESPACE}/limited", SECONDS)
        say(summarize(benchmark))
        yield benchmark


def test_two_servers_behind_a_weak_injector_are_not_compared(limited: Object) -> None:
    status = limited["status"]
    complete = conditions(limited)["Complete"]
    assert (status["verdict"], complete["reason"]) == ("Inconclusive", "InjectorLimited"), complete
    assert "nginx and lighttpd are not compared" in complete["message"]
    assert "give the injector more CPU" in complete["message"]
    assert "winner" not in status
    assert "tie" not in status
    assert "comparisons" not in status


def test_figures_that_the_injector_limits_are_withheld(limited: Object) -> None:
    results = limited["status"]["results"]
    assert [result["candidate"] for result in results] == SERVERS
    for result in results:
        assert result["injector"]["limits"] == "Rate", result
        for figure in ("requestsPerSecond", "millisecondsPerRequest", "grossJoulesPerRequest", "latency"):
            assert figure not in result, result
        # CPU time depends on the server alone.
        assert result["cpuMillisecondsPerRequest"]["value"] > 0


def test_no_trial_is_void_because_of_the_injector(limited: Object) -> None:
    trials = get("fbt", "-n", NAMESPACE)["items"]
    outcomes = [(trial["status"]["outcome"], trial["status"]["reason"]) for trial in trials]
    assert outcomes.count(("Measured", "Measured")) == 10
    reasons = {reason for _, reason in outcomes}
    assert not reasons & {"InjectorStarved", "InjectorThrottled", "InjectorBusy"}, reasons
    used = [t["status"]["injectorCpu"] for t in trials if t["status"]["outcome"] == "Measured"]
    assert all(abs(cpu["limitCpus"] - 0.3) < 1e-6 for cpu in used), used
    # Trials differ: the kernel also counts a process that waits for its next share and lacks little.
    assert statistics.median(cpu["throttledSeconds"] for cpu in used) > 0.2, used
    assert limited["status"]["results"][0]["voidAttempts"] <= 1
