"""The API server refuses an invalid spec, and names the rule."""

import json
from pathlib import Path

import pytest

from benchmarks import DATABASE, Benchmark, spec
from kube import ROOT, Object, kubectl

RUST = spec()["candidates"][0]
FIVE = {"blocks": 5}


def create(manifest: Object) -> tuple[int, str]:
    result = kubectl(
        "create", "--dry-run=server", "-n", "default", "-f", "-", stdin=json.dumps(manifest), check=False
    )
    return result.returncode, result.stdout + result.stderr


def benchmark(name: str = "nonsense", **changes: object) -> Object:
    return Benchmark("default", name, spec(**changes)).manifest


def test_the_valid_spec_is_accepted() -> None:
    code, text = create(benchmark())
    assert code == 0, text


@pytest.mark.parametrize(
    "example",
    sorted(f for f in (ROOT / "examples").glob("*.yaml") if ".patch." not in f.name),
    ids=lambda f: f.stem,
)
def test_the_examples_are_accepted(example: Path) -> None:
    # The demo may have left a benchmark in the default namespace.
    kubectl("create", "--dry-run=server", "-n", "kube-public", "-f", str(example))


def test_a_new_benchmark_is_in_progress_and_applying_it_again_changes_nothing() -> None:
    """The benchmark is suspended, so nothing is measured."""
    manifest = benchmark(
        "unchanged", trials=FIVE, suspend=True, budgets=[{"candidate": "rust", "maxJoulesPerRequest": 0.02}]
    )
    text = json.dumps(manifest)
    try:
        created = json.loads(kubectl("apply", "-o", "json", "-f", "-", stdin=text).stdout)
        # Before the operator writes a status. Flux and Helm would treat a missing status as ready.
        assert created["status"] == {"observedGeneration": -1}
        again = kubectl("apply", "-f", "-", stdin=text).stdout
        assert again.split()[-1] == "unchanged", again
    finally:
        kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (
            benchmark("9-lives"),
            "metadata.name must be a DNS label of at most 30 characters that begins with a letter",
        ),
        (benchmark("a" * 31), "metadata.name must be a DNS label of at most 30 characters"),
        (
            benchmark(trials={"blocks": 4}, budgets=[{"candidate": "rust", "maxErrorRatio": 0}]),
            "budgets need spec.trials.blocks of at least 5",
        ),
        (
            benchmark(trials=FIVE, budgets=[{"candidate": "go", "maxErrorRatio": 0}]),
            "every budget must name a candidate of spec.candidates",
        ),
        (
            benchmark(trials=FIVE, budgets=[{"candidate": "rust"}]),
            "a budget needs at least one of maxJoulesPerRequest",
        ),
        (
            benchmark(trials=FIVE, budgets=[{"candidate": "rust", "maxErrorRatio": 1.5}]),
            "maxErrorRatio is a share from 0 to 1",
        ),
        (
            benchmark(candidates=[RUST | {"env": [{"name": "DATABASE_URL", "value": "postgresql://mine"}]}]),
            "env must not set PORT, DATABASE_URL",
        ),
        (benchmark(database=DATABASE | {"image": "postgres"}), "database.image needs a tag that begins with"),
        (benchmark(database={"seed": {}}), "database.seed needs exactly one of contacts"),
        (benchmark(request={"path": "/", "body": "x"}), "request.body goes with method POST, PUT or PATCH"),
        (benchmark(load={"duration": "20s", "requests": 1000}), "load takes duration or requests, not both"),
        (benchmark(load={"duration": "5s"}), "load.duration must be from 20s to 1h"),
        (
            benchmark(load={"rate": 10, "duration": "60s", "connections": 301}),
            "load has less than two requests for each connection",
        ),
        (
            benchmark(load={"sweep": {"connections": [8, 4]}}),
            "load.sweep.connections must ascend",
        ),
        (
            benchmark(load={"sweep": {"connections": [2**n for n in range(11)], "replicas": [1, 2, 3]}}),
            "load.sweep has from 2 to 32 points",
        ),
        (
            benchmark(load={"sweep": {"replicas": [1, 2], "maxErrorRatio": 0.01}}),
            "load.sweep.maxErrorRatio ends a sweep over connections",
        ),
        (benchmark(load={"rate": "Fast"}), "load.rate must be Max or a whole number of requests per second"),
        (benchmark(load={"warmUp": "1s"}), "load.warmUp must be from 2s to 10m"),
        (benchmark(trials={"idleBaseline": "1s"}), "trials.idleBaseline must be from 5s to 10m"),
        (
            benchmark(energy={"boundary": "Candidate"}),
            "energy.boundary Candidate needs energy.decidingFigure Attributed",
        ),
        (benchmark(deadline="10s"), "spec.deadline must be from 1m to 336h"),
        (benchmark(costs={"nodeLifetime": "43800h"}), "costs needs money, carbon or both"),
        (
            benchmark(load={"rate": 100, "requests": 500}),
            "load.requests are sent in less than 20s at this load.rate",
        ),
        (
            benchmark(trials={"blocks": 50}, deadline="10m"),
            "spec.deadline is shorter than the trials must take",
        ),
        (
            benchmark(
                trials=FIVE,
                load={"rate": 50},
                budgets=[{"candidate": "rust", "minRequestsPerSecond": 60}],
            ),
            "a budget's minRequestsPerSecond can't be met at a lower load.rate",
        ),
        (benchmark(energy={"tieWithin": 0.05}), "energy.tieWithin compares candidates: name a second one"),
        (
            benchmark(candidates=[RUST | {"image": "https://ghcr.io/you/server:1"}]),
            "a candidate's image is a name without blanks and without https://",
        ),
        (benchmark(candidates=[RUST | {"backends": [RUST]}]), "a backend has the candidate's own name"),
        (
            benchmark(candidates=[RUST | {"readinessPath": "healthz"}]),
            "readinessPath is a path without host and blanks that begins with /",
        ),
        (
            benchmark(
                candidates=[RUST | {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "500m"}}}]
            ),
            "resources.requests.cpu is more than resources.limits.cpu",
        ),
        (
            benchmark(request={"path": "http://server/contacts"}),
            "request.path is a path without host and blanks that begins with /",
        ),
        (
            benchmark(request={"path": "/", "headers": [{"name": "Connection", "value": "close"}]}),
            "request.headers must not set Connection",
        ),
        (
            benchmark(database=DATABASE | {"image": "postgres:14"}),
            "database.image must be PostgreSQL 15 or later",
        ),
        (
            benchmark(database=DATABASE | {"parameters": {"port": "6000"}}),
            "database.parameters must not set port",
        ),
        (
            benchmark(database=DATABASE | {"runAsUser": 999}),
            "database.runAsUser goes with provider: Standalone",
        ),
        (
            benchmark(database=DATABASE | {"provider": "Standalone", "instances": 2}),
            "database.instances goes with CloudNativePG",
        ),
        (
            benchmark(database=DATABASE | {"provider": "Standalone", "storage": {"storageClass": "fast"}}),
            "database.storage.storageClass goes with CloudNativePG",
        ),
        (
            benchmark(database=DATABASE | {"poolSize": 50, "parameters": {"max_connections": "50"}}),
            "database.parameters.max_connections leaves too few connections",
        ),
        (
            benchmark(
                placement={
                    "measuredNodeSelector": {"kubernetes.io/hostname": "pi-1"},
                    "injectorNodeSelector": {"kubernetes.io/hostname": "pi-1"},
                }
            ),
            "placement puts the injector on the measured node",
        ),
        (
            benchmark(trials=FIVE, budgets=[{"candidate": "rust", "maxJoulesPerRequest": "0.02"}]),
            'spec.budgets[0].maxJoulesPerRequest in body must be of type number: "string"',
        ),
        (
            benchmark(candidates=[RUST | {"readyWithin": "2h"}]),
            "a candidate's readyWithin must be from 1s to 1h",
        ),
        (benchmark(rerun=0), "spec.rerun"),
        (benchmark(candidates=[RUST | {"runAsUser": 0}]), "spec.candidates[0].runAsUser"),
        (benchmark(candidates=[]), "spec.candidates"),
        (benchmark(candidates=[RUST, RUST]), 'Duplicate value: {"name":"rust"}'),
        (benchmark(candidates=[RUST | {"hostNetwork": True}]), "hostNetwork"),
    ],
)
def test_an_invalid_spec_is_refused_with_the_rule(manifest: Object, message: str) -> None:
    code, text = create(manifest)
    assert code != 0
    assert message in text
