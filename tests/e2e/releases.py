"""What the tests of installation and upgrade share: a benchmark whose verdict is a matter of minutes, and its ledger."""

import json

import waiting
from gitops import GENEROUS, benchmark
from kube import Object, conditions, get, kubectl

RELEASE = "frugality"


def apply(name: str, namespace: str, **trials: object) -> None:
    """A benchmark of a small server with a budget, five blocks long. `trials` are fields of its spec.trials."""
    manifest = benchmark(namespace, GENEROUS)
    manifest["metadata"]["name"] = name
    manifest["spec"]["trials"] |= trials
    kubectl("apply", "-f", "-", stdin=json.dumps(manifest))


def found(name: str, namespace: str) -> Object:
    return get("fb", name, "-n", namespace)


def ended(name: str, namespace: str, seconds: float) -> Object:
    """The benchmark with its verdict."""

    def is_complete() -> bool:
        return conditions(found(name, namespace)).get("Complete", {}).get("status") == "True"

    waiting.until(is_complete, seconds, f"a verdict of {name}", every=5)
    return found(name, namespace)


def ledger(name: str, namespace: str) -> dict[str, Object]:
    """The record of each attempt that has ended."""
    entries = [it for it in get("fbt", "-n", namespace)["items"] if it["spec"]["benchmark"] == name]
    return {it["metadata"]["uid"]: it["status"] for it in entries if "outcome" in it.get("status", {})}


def contains(now: object, then: object) -> bool:
    """Whether all of a value is still there. The upgraded definitions may allow further fields."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(name in now and contains(now[name], then[name]) for name in then)
    if isinstance(then, list):
        return isinstance(now, list) and len(now) == len(then) and all(map(contains, now, then))
    return now == then


def definitions() -> list[str]:
    """The names of the chart's definitions that the cluster has."""
    names = kubectl("get", "crd", "-o", "name").stdout.split()
    return [name for name in names if name.endswith(".frugality.dev")]


def remove_definitions() -> None:
    """Removes the definitions and with them all benchmarks, for an installation into an empty cluster."""
    kubectl("delete", *definitions(), "--timeout=120s", timeout=150)


def assert_no_benchmarks(but_of: str = "") -> None:
    """These tests remove the definitions, and would remove the benchmarks of others."""
    others = {it["metadata"]["namespace"] for it in get("fb", "-A")["items"]} - {but_of}
    assert not others, f"this test removes the definitions, and there are benchmarks in {sorted(others)}"
