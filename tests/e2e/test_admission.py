"""The API server refuses an invalid spec, and names the rule. The operator's test target api_server tries every rule."""

import json
from pathlib import Path

import pytest

from benchmarks import Benchmark, spec
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
            benchmark(trials={"blocks": 4}, budgets=[{"candidate": "rust", "maxErrorRatio": 0}]),
            "budgets need spec.trials.blocks of at least 5",
        ),
        (benchmark(candidates=[RUST | {"hostNetwork": True}]), "hostNetwork"),
    ],
)
def test_an_invalid_spec_is_refused_with_the_rule(manifest: Object, message: str) -> None:
    code, text = create(manifest)
    assert code != 0
    assert message in text
