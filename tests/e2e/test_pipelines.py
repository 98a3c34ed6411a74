"""The gates of GitHub, GitLab and Tekton, each by the script that its pipeline runs, against a real verdict.

Not part of the default suite: ``make gitops``. The pipelines' own runners are not there. What they do with an action, a
component or a task is in ``tests/gitops/pipelines.py``.
"""

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import box
from benchmarks import FORTIO
from conftest import watched
from evidence import say
from gitops import GENEROUS, KUBECONFIG, MEASURED_SECONDS, TIGHT, Shop, benchmark, empty
from kube import PROGRAM, ROOT

sys.path.append(str(ROOT / "tests/gitops"))
from pipelines import Done, GitHub, GitLab, Tekton, lines

NAMESPACE = "e2e-gitops-pipelines"
FILES = box.ARTIFACTS / "pipelines"
PASS, FAIL, INCONCLUSIVE, NOT_ENDED, OTHER_IMAGE = 0, 10, 11, 14, 16
OTHER = "example.org/shop:2"

# Runs a pipeline's gate, with an image and with the longest time to wait.
Gate = Callable[[str, int], Done]


@pytest.fixture(scope="module")
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    with watched([NAMESPACE], request):
        yield Shop(NAMESPACE)


def gates() -> tuple[Path, dict[str, Gate]]:
    """A new folder of files, and the gates. The box has no registry, so its images have no digests."""
    folder = empty(FILES)
    # Only the box's network reaches the API server.
    command = folder / "bin/kubectl-frugality"
    command.parent.mkdir()
    inside = shlex.join([*box.in_network_of(box.INJECTOR_NODE), str(PROGRAM)])
    command.write_text(f'#!/bin/sh\nexec {inside} "$@"\n')
    command.chmod(0o755)
    environment = {"PATH": f"{command.parent}:/usr/bin:/bin", "KUBECONFIG": str(KUBECONFIG)}
    gitlab, tekton = (tool(folder, environment) for tool in (GitLab, Tekton))
    github = GitHub(folder, environment)

    def given(image: str, seconds: int) -> dict[str, str]:
        return {"name": "shop", "namespace": NAMESPACE, "image": image, "timeout": f"{seconds}s"}

    def of_github(image: str, seconds: int) -> Done:
        return github.run(seconds=seconds + 60, **given(image, seconds), **{"allow-tag": "true"})

    def of_gitlab(image: str, seconds: int) -> Done:
        return gitlab.run("--allow-tag", seconds=seconds + 60, **given(image, seconds))

    def of_tekton(image: str, seconds: int) -> Done:
        return tekton.run("--allow-tag", seconds=seconds + 60, **given(image, seconds))

    return folder, {"outputs": of_github, "energy-gate.env": of_gitlab, "result": of_tekton}


def assert_each_ends_with(
    code: int, verdict: str, image: str = FORTIO, seconds: int = 60, message: str = ""
) -> None:
    folder, each = gates()
    for outputs, gate in each.items():
        done = gate(image, seconds)
        say(done.stdout + done.stderr)
        assert done.returncode == code, done.stdout + done.stderr
        written = lines(folder / outputs)
        assert (written["verdict"], written["open"]) == (verdict, str(code == PASS).lower())
        assert message in written["message"]


def test_the_pipelines_wait_for_the_verdict(shop: Shop) -> None:
    shop.apply(benchmark(NAMESPACE, GENEROUS))
    shop.until_measuring()
    # Without an answer of the API server there is no verdict either.
    assert_each_ends_with(NOT_ENDED, "NotEnded", seconds=5, message="Last state: Measuring")


def test_the_pipelines_continue_on_pass(shop: Shop) -> None:
    assert_each_ends_with(PASS, "Pass", seconds=MEASURED_SECONDS)
    assert shop.verdict() == "Pass"


def test_the_pipelines_stop_on_fail(shop: Shop) -> None:
    shop.apply(benchmark(NAMESPACE, TIGHT))
    assert_each_ends_with(FAIL, "Fail")


def test_the_pipelines_stop_on_inconclusive(shop: Shop) -> None:
    shop.apply(benchmark(NAMESPACE, shop.undecided_budget()))
    assert_each_ends_with(INCONCLUSIVE, "Inconclusive")


def test_the_pipelines_refuse_a_verdict_about_another_image(shop: Shop) -> None:
    shop.apply(benchmark(NAMESPACE, GENEROUS))
    assert shop.verdict() == "Pass"
    assert_each_ends_with(OTHER_IMAGE, "OtherImage", image=OTHER)
