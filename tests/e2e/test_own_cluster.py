"""``hack/demo --context`` on the box, as if it were a user's own cluster: from nothing to the verdict, and back to nothing.

Not part of the default suite: ``make release-test``. It removes the operator and its definitions for a time. The nodes have the
images already, as after ``hack/images --import-k3s``.
"""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import box
from evidence import say
from gitops import KUBECONFIG, program
from kube import OPERATOR_NAMESPACE, ROOT
from releases import RELEASE, assert_no_benchmarks, definitions, remove_definitions

VALUES = str(ROOT / "hack/box-values.yaml")
HOME = box.ARTIFACTS / "own-cluster"
DEMO_SECONDS = 1800


def run(*command: str, seconds: float = 180) -> str:
    """Runs a command as a user whose machine reaches the API server, with kubectl and helm in the PATH."""
    HOME.mkdir(parents=True, exist_ok=True)
    tools = {str(Path(program(tool)).parent) for tool in ("kubectl", "helm")}
    environment = {
        "KUBECONFIG": str(KUBECONFIG),
        "HOME": str(HOME),
        "PATH": os.pathsep.join([*sorted(tools), os.environ["PATH"]]),
    }
    in_network = [*box.in_network_of(box.INJECTOR_NODE), *command]
    done = subprocess.run(
        in_network, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def empty_cluster() -> Iterator[None]:
    """The box without the operator, which is installed again at the end."""
    assert_no_benchmarks()
    helm = ("--namespace", OPERATOR_NAMESPACE, "--wait")
    run("helm", "uninstall", RELEASE, *helm)
    remove_definitions()
    try:
        yield
    finally:
        chart = (RELEASE, "charts/frugality-operator", "--values", VALUES, "--take-ownership", "--timeout=3m")
        run("helm", "upgrade", "--install", *chart, *helm, seconds=240)


def test_the_demo_runs_in_a_cluster_of_the_user_and_names_the_commands_that_remove_it(
    empty_cluster: None,
) -> None:
    context = run("kubectl", "config", "current-context").strip()
    options = ("--context", context, "--values", VALUES, "--standalone")
    began = time.monotonic()
    printed = run(str(ROOT / "hack/demo"), *options, seconds=DEMO_SECONDS)
    say(printed)
    say(f"hack/demo {shlex.join(options)}: {time.monotonic() - began:.0f} s")
    # hack/demo ends with 0 on Pass alone.
    assert re.search(r"^rust-vs-python +Pass +rust ", printed, re.MULTILINE), printed
    _, _, farewell = printed.partition("To remove the benchmark")
    commands = [shlex.split(line) for line in farewell.splitlines() if line.startswith("  ")]
    assert [command[0] for command in commands] == ["kubectl", "helm", "kubectl"]
    for command in commands:
        run(*command)
    assert definitions() == []
