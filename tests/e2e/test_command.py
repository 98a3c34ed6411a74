"""From an image to a verdict with ``kubectl frugality`` alone: ``run``, ``watch`` in a pipe, ``compare``.

Not part of the default suite, because it takes half an hour: ``tests/e2e/run --command``.
"""

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

import box
from benchmarks import FORTIO, FORTIO_ARGS
from conftest import watched
from kube import PROGRAM, Object, get, kubectl
from session import Session

NAMESPACE = "e2e-command"
# Five blocks of two candidates, with blocks that are measured again.
RUN_SECONDS = 1800
ASKED_SECONDS = 60
# A rate that every server reaches, so the verdict is Pass whatever the power is.
LOAD = ("--from-deployment=shop", "--blocks=5", "--duration=20s", "--budget=rps=1")


def frugality(*arguments: str, timeout: float = ASKED_SECONDS) -> subprocess.CompletedProcess[str]:
    """``kubectl-frugality ARGUMENTS...`` in the namespace, with pipes instead of a terminal."""
    return subprocess.run(
        [PROGRAM, *arguments, "--namespace", NAMESPACE],
        env=dict(os.environ) | {"KUBECONFIG": str(box.LAB_DIR / "kubeconfig")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def deployment() -> Object:
    """The settings of the server. It has no pods, so it disturbs nothing."""
    labels = {"app": "shop"}
    server = {
        "name": "server",
        "image": FORTIO,
        "args": FORTIO_ARGS,
        "ports": [{"containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/debug", "port": 8080}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [server]}},
        },
    }


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Session]:
    assert PROGRAM.exists(), f"{PROGRAM} is missing: hack/images writes it"
    with watched([NAMESPACE], request) as session:
        kubectl("create", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(deployment()))
        yield session


@pytest.fixture(scope="module")
def two(cluster: Session) -> subprocess.CompletedProcess[str]:
    """Two images, followed to the result."""
    del cluster
    return frugality("run", FORTIO, "--against", FORTIO, "--name=two", *LOAD, timeout=RUN_SECONDS)


@pytest.fixture(scope="module")
def one(two: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """One image, created first and then watched in a pipe."""
    del two
    created = frugality("run", "--name=one", "--detach", *LOAD)
    assert created.returncode == 0, created.stderr
    assert f"kubectl frugality watch one --namespace {NAMESPACE}" in created.stdout
    return frugality("watch", "one", timeout=RUN_SECONDS)


def test_the_api_server_accepts_the_file_of_a_dry_run(cluster: Session) -> None:
    del cluster
    written = frugality("run", FORTIO, "--name=dry", "--dry-run=client", *LOAD)
    assert written.returncode == 0, written.stderr
    kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=written.stdout)
    checked = frugality("run", FORTIO, "--name=dry", "--dry-run=server", *LOAD)
    assert (checked.returncode, checked.stdout) == (0, written.stdout), checked.stderr
    assert get("fb", "-n", NAMESPACE)["items"] == []


def test_run_ends_with_the_verdict(two: subprocess.CompletedProcess[str]) -> None:
    assert two.returncode == 0, two.stderr
    assert two.stdout.startswith("two: Pass (BudgetsMet)\n"), two.stdout
    assert f"created FrugalityBenchmark two in namespace {NAMESPACE}" in two.stderr
    # Each attempt is a line, and nothing moves the cursor of a pipe.
    assert two.stderr.count(" two: block ") >= 9, two.stderr
    assert "\x1b" not in two.stdout + two.stderr


def test_a_second_run_of_the_same_name_follows_the_first(two: subprocess.CompletedProcess[str]) -> None:
    again = frugality("run", FORTIO, "--against", FORTIO, "--name=two", *LOAD)
    assert (again.returncode, again.stdout) == (0, two.stdout), again.stderr
    other = frugality("run", FORTIO, "--name=two", *LOAD)
    assert other.returncode == 1
    assert "exists in namespace" in other.stderr


def test_watch_in_a_pipe_ends_with_the_verdict(one: subprocess.CompletedProcess[str]) -> None:
    assert one.returncode == 0, one.stderr
    assert one.stdout.startswith("one: Pass (BudgetsMet)\n"), one.stdout
    assert " one: Measuring, trials " in one.stderr, one.stderr


def test_two_runs_of_one_load_are_compared(one: subprocess.CompletedProcess[str]) -> None:
    del one
    compared = frugality("compare", "two", "one")
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert "requests/s" in compared.stdout
    assert "decide nothing" in compared.stdout
