"""The chart's NetworkPolicies on nodes that enforce them: a run needs no other connection, and others are refused.

Not part of the default suite: ``make network``. The box's own network enforces no policy. These tests start kube-router on
both nodes, whose code k3s uses for the same purpose.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import box
import waiting
from benchmarks import BALANCED, DATABASE, FORTIO, FORTIO_ARGS, SCRIPTED, Benchmark, spec
from checks import outcome
from conftest import watched
from disturbances import METER_PORT
from evidence import say
from gitops import KUBECONFIG, controller, pod_template, program
from kube import OPERATOR_NAMESPACE, Object, get, install, kubectl
from session import Session

NAMESPACE, OTHER = "e2e-network", "e2e-network-other"
NODES = (box.INJECTOR_NODE, box.MEASURED_NODE)
VALUES = {
    "networkPolicies": {"enabled": True, "benchmarks": True},
    "benchmarkNamespaces": [NAMESPACE],
}
# The box's range of Service addresses.
SERVICES = "10.43.0.0/16"
# Its own command for this (--cleanup-config) ends with a panic.
REMOVE_RULES = """
iptables-save -t filter | grep -vE 'KUBE-(ROUTER|POD-FW|NWPLCY)' | iptables-restore -T filter
ipset list -n | grep '^KUBE-' | xargs --no-run-if-empty -n 1 ipset destroy
"""
OPERATOR_PORT, SERVER_PORT = 8080, 8080
RUN_SECONDS = 600
SERVER = {"name": "fortio", "image": FORTIO, "args": FORTIO_ARGS, "readinessPath": "/debug"}
# Its server is up long enough for the questions.
ASKED = Benchmark(
    NAMESPACE, "asked", spec(candidates=[SERVER], load={"duration": "10m", "rate": 50}, request={"path": "/"})
)
STORED = Benchmark(NAMESPACE, "stored", spec(database=DATABASE, deadline="10m"))


@contextlib.contextmanager
def plug_in() -> Iterator[None]:
    """Enforces the policies on both nodes, and removes all rules at the end."""
    router = program("kube-router")
    flags = ("--run-firewall=true", "--run-router=false", "--run-service-proxy=false", "--run-loadbalancer=false")
    flags += (f"--kubeconfig={KUBECONFIG}", f"--service-cluster-ip-range={SERVICES}", "--health-port=0")
    with contextlib.ExitStack() as stack:
        for node in NODES:
            clean = [*box.in_network_of(node), "sh", "-e", "-c", REMOVE_RULES]
            stack.callback(subprocess.run, clean, check=True, timeout=60)
            command = (router, *flags, f"--hostname-override={node}")
            stack.enter_context(controller(f"kube-router-{node}", *command, node=node))
        yield


@dataclass(frozen=True)
class Pod:
    """A running pod with Fortio."""

    namespace: str
    name: str
    ip: str

    def reaches(self, url: str) -> bool:
        ask = ("exec", "-n", self.namespace, self.name, "--", "fortio", "curl", "-timeout", "2s", url)
        return kubectl(*ask, check=False, timeout=30).returncode == 0


def running(namespace: str, labels: str) -> Pod | None:
    """The only running pod with these labels."""
    pods = get("pods", "-n", namespace, "-l", labels)["items"]
    pods = [pod for pod in pods if pod["status"]["phase"] == "Running"]
    if len(pods) != 1:
        return None
    return Pod(namespace, pods[0]["metadata"]["name"], pods[0]["status"]["podIP"])


def stranger(namespace: str) -> Pod:
    """A pod of another workload, on the injector's node."""
    pod = {"apiVersion": "v1", "kind": "Pod"} | pod_template("1")
    pod["metadata"]["name"] = "stranger"
    kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(pod))
    return waiting.until(lambda: running(namespace, "app=shop"), 60, f"the pod in {namespace}")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Session]:
    with watched([NAMESPACE, OTHER], request) as session:
        install(VALUES, box.ARTIFACTS / "network-values.json")
        try:
            yield session
        finally:
            install({}, box.ARTIFACTS / "network-values.json")


@pytest.fixture(scope="module")
def enforced(cluster: Session) -> Iterator[Session]:
    with plug_in():
        yield cluster


def test_only_the_connections_of_a_run_are_possible(cluster: Session) -> None:
    del cluster
    ASKED.apply()
    candidate = waiting.until(
        lambda: running(NAMESPACE, "frugality.dev/role=candidate"), RUN_SECONDS, "the candidate", every=2
    )
    operator = running(OPERATOR_NAMESPACE, "app.kubernetes.io/name=frugality-operator")
    assert operator
    meters = get("pods", "-n", OPERATOR_NAMESPACE, "-l", "app.kubernetes.io/name=frugality-meter")["items"]
    meter = str(meters[0]["status"]["podIP"])
    strangers = [stranger(namespace) for namespace in (NAMESPACE, OTHER)]

    def url(ip: str, port: int, path: str = "metrics") -> str:
        return f"http://{ip}:{port}/{path}"

    of_operator, of_meter = url(operator.ip, OPERATOR_PORT), url(meter, METER_PORT)
    of_candidate = url(candidate.ip, SERVER_PORT, "debug")
    connections = [(pod, to) for pod in strangers for to in (of_operator, of_meter, of_candidate)]
    to_strangers = [url(pod.ip, SERVER_PORT, "debug") for pod in strangers]
    connections += [(candidate, to) for to in (of_operator, of_meter, *to_strangers)]

    def open_connections() -> list[str]:
        return [f"{pod.namespace}/{pod.name} to {to}" for pod, to in connections if pod.reaches(to)]

    # Otherwise their refusal would show nothing.
    assert len(open_connections()) == len(connections)
    with plug_in():
        waiting.until(lambda: not open_connections(), 120, "the refusal of each connection")
        # Its own server still answers it.
        assert candidate.reaches(of_candidate)
        say(f"refused: {len(connections)} connections")
    waiting.until(lambda: len(open_connections()) == len(connections), 60, "the connections without rules")
    kubectl("delete", "fb", ASKED.name, "-n", NAMESPACE, "--timeout=60s", timeout=90)


def measured(session: Session, benchmark: Benchmark) -> list[Object]:
    """The attempts of a benchmark in this namespace, until its end."""
    here = Benchmark(NAMESPACE, benchmark.name, benchmark.spec)
    here.apply()
    ended = session.ended(here.key, RUN_SECONDS)
    trials = session.observer.trials_of(here.key)
    message = ended["status"]["columns"]["message"]
    assert "Measured" in map(outcome, trials), message
    # A refused connection would make an attempt void.
    reasons = [trial["status"].get("reason") for trial in trials]
    assert "ClockOffsetUnknown" not in reasons, message
    return trials


def test_a_server_with_a_database_needs_no_other_connection(enforced: Session) -> None:
    """CloudNativePG, seed, check, candidate, injector, both clocks, and the probe of the server."""
    for trial in measured(enforced, STORED):
        assert outcome(trial) == "Measured", trial["status"]
        assert trial["status"]["clock"], trial["status"]


def test_a_balancer_and_its_services_need_no_other_connection(enforced: Session) -> None:
    measured(enforced, BALANCED)


def test_peers_under_a_script_need_no_other_connection(enforced: Session) -> None:
    measured(enforced, SCRIPTED)
