"""The chart's NetworkPolicies: each needed connection is allowed, and others are not.

`connects` evaluates the policies by the rules of Kubernetes: a pod that no policy selects is free, and
several policies add up. https://kubernetes.io/docs/concepts/services-networking/network-policies/
"""

from dataclasses import dataclass

import pytest

from rendered import KEPLER, NAMESPACE, PI, PLUG, refusal, render

ON = (
    *("--set", "networkPolicies.enabled=true"),
    *("--set", "networkPolicies.benchmarks=true"),
    *("--set", "benchmarkNamespaces={shop}"),
)
SCRAPED = (
    "--set",
    "networkPolicies.scrapers[0].namespaceSelector.matchLabels.kubernetes\\.io/metadata\\.name=monitoring",
)


@dataclass(frozen=True)
class Pod:
    """A pod, or a machine outside the cluster if there is no namespace."""

    namespace: str | None
    labels: tuple[tuple[str, str], ...] = ()


def role(name, namespace="shop"):
    return Pod(namespace, (("frugality.dev/role", name),))


def program(name, namespace):
    return Pod(namespace, (("app.kubernetes.io/name", name),))


OUTSIDE = Pod(None)
CANDIDATE, INJECTOR, PREPARE, SEED, DATABASE = map(
    role, ("candidate", "injector", "prepare", "seed", "database")
)
OPERATOR = Pod(
    NAMESPACE,
    (
        ("app.kubernetes.io/instance", "frugality"),
        ("app.kubernetes.io/name", "frugality-operator"),
    ),
)
METER = Pod(
    NAMESPACE,
    (("app.kubernetes.io/instance", "frugality"), ("app.kubernetes.io/name", "frugality-meter")),
)
CNPG = program("cloudnative-pg", "cnpg-system")
DNS = program("coredns", "kube-system")
PROMETHEUS = program("prometheus", "monitoring")
STRANGER = program("stranger", "shop")


def selects(selector, labels):
    labels = dict(labels)
    for requirement in selector.get("matchExpressions", []):
        assert requirement["operator"] == "In"
        if labels.get(requirement["key"]) not in requirement["values"]:
            return False
    return selector.get("matchLabels", {}).items() <= labels.items()


def is_peer(peer, pod, namespace):
    """Whether a rule of a policy in this namespace names this pod."""
    if pod.namespace is None:
        return False
    names = {"kubernetes.io/metadata.name": pod.namespace}
    if "namespaceSelector" in peer:
        if not selects(peer["namespaceSelector"], names):
            return False
    elif pod.namespace != namespace:
        return False
    return selects(peer.get("podSelector", {}), pod.labels)


def allows(policies, direction, key, pod, other, port, protocol):
    about = [
        p
        for p in policies
        if p["metadata"]["namespace"] == pod.namespace
        and selects(p["spec"]["podSelector"], pod.labels)
        and direction in p["spec"]["policyTypes"]
    ]
    rules = [
        (rule, p["metadata"]["namespace"])
        for p in about
        for rule in p["spec"].get(direction.lower()) or []
    ]
    return not about or any(
        (key not in rule or any(is_peer(peer, other, namespace) for peer in rule[key]))
        and (
            "ports" not in rule
            or any(
                p["port"] == port and p.get("protocol", "TCP") == protocol for p in rule["ports"]
            )
        )
        for rule, namespace in rules
    )


def connects(source, target, port, *settings, protocol="TCP"):
    policies = [o for o in render(*settings) if o["kind"] == "NetworkPolicy"]
    return allows(policies, "Egress", "to", source, target, port, protocol) and allows(
        policies, "Ingress", "from", target, source, port, protocol
    )


# The table in docs/threat-model.md.
NEEDED = [
    (OPERATOR, OUTSIDE, 443),
    (OPERATOR, OUTSIDE, 6443),
    (OPERATOR, METER, 28282),
    (OPERATOR, CANDIDATE, 9000),
    (program("frugality-operator-test", NAMESPACE), OPERATOR, 8080),
    (INJECTOR, CANDIDATE, 9000),
    (INJECTOR, METER, 28282),
    (INJECTOR, OPERATOR, 8080),
    (INJECTOR, DATABASE, 5432),
    (PREPARE, DATABASE, 5432),
    (SEED, DATABASE, 5432),
    (CANDIDATE, DATABASE, 5432),
    (CANDIDATE, CANDIDATE, 9000),
    (CNPG, DATABASE, 8000),
    (DATABASE, OUTSIDE, 6443),
    (DATABASE, DATABASE, 5432),
    (DATABASE, DATABASE, 8000),
]
REFUSED = [
    (STRANGER, METER, 28282),
    (STRANGER, OPERATOR, 8080),
    (PROMETHEUS, METER, 28282),
    (STRANGER, CANDIDATE, 8080),
    (role("injector", "bank"), CANDIDATE, 8080),
    (STRANGER, DATABASE, 5432),
    (role("candidate", "bank"), DATABASE, 5432),
    (CNPG, DATABASE, 5432),
    (CANDIDATE, OUTSIDE, 443),
    (CANDIDATE, OUTSIDE, 6443),
    (CANDIDATE, METER, 28282),
    (CANDIDATE, OPERATOR, 8080),
    (CANDIDATE, INJECTOR, 8080),
    (CANDIDATE, STRANGER, 80),
    (CANDIDATE, role("database", "bank"), 5432),
    (INJECTOR, OUTSIDE, 443),
    (INJECTOR, STRANGER, 80),
    (METER, OUTSIDE, 443),
    (METER, CANDIDATE, 8080),
    (OPERATOR, STRANGER, 80),
    (OPERATOR, DATABASE, 5432),
]


@pytest.mark.parametrize(("source", "target", "port"), NEEDED)
def test_every_needed_connection_is_allowed(source, target, port):
    assert connects(source, target, port, *PI, *ON)


@pytest.mark.parametrize(("source", "target", "port"), REFUSED)
def test_other_connections_are_refused(source, target, port):
    assert not connects(source, target, port, *PI, *ON)
    # The policies refuse it, and not the test's own rules.
    assert connects(source, target, port, *PI)


@pytest.mark.parametrize("source", [OPERATOR, CANDIDATE, INJECTOR, PREPARE, SEED, DATABASE])
def test_names_can_be_resolved(source):
    assert connects(source, DNS, 53, *PI, *ON, protocol="UDP")
    assert connects(source, DNS, 53, *PI, *ON)


def test_scrapers_read_the_metrics_of_both():
    for target, port in ((OPERATOR, 8080), (METER, 28282)):
        assert connects(PROMETHEUS, target, port, *PI, *ON, *SCRAPED)
        assert not connects(STRANGER, target, port, *PI, *ON, *SCRAPED)


def test_a_meter_with_a_device_reaches_it():
    assert connects(METER, OUTSIDE, 80, *PI, *PLUG, *ON)


def test_the_operator_reaches_a_kepler_in_its_own_namespace():
    kepler = program("kepler", "kepler")
    assert connects(OPERATOR, kepler, 28282, *KEPLER, *ON)
    assert connects(INJECTOR, kepler, 28282, *KEPLER, *ON)
    assert not connects(OPERATOR, METER, 28282, *KEPLER, *ON)


def test_there_is_no_policy_unless_the_administrator_wants_one():
    assert not [o for o in render(*PI) if o["kind"] == "NetworkPolicy"]


def test_policies_for_benchmarks_need_the_names_of_the_namespaces():
    message = refusal(*PI, *ON[:4], "--set", "benchmarkNamespaces={*}")
    assert "networkPolicies.benchmarks needs the names of the namespaces" in message
