"""The files for pipelines, against an HTTP server that has one benchmark."""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conftest import IMAGE, ROOT, Environment
from pipelines import GitHub, GitLab, Tekton, container_command, documents, lines, run

Fail = Callable[[], None]
USAGE, PASS, FAIL, OTHER_IMAGE = 2, 0, 10, 16
OTHER = "example.org/rust:2@sha256:" + "2" * 64


@pytest.fixture
def github(tmp_path: Path, environment: Environment) -> GitHub:
    return GitHub(tmp_path, environment)


def test_the_github_action_passes_and_writes_its_outputs_and_a_summary(github: GitHub, tmp_path: Path) -> None:
    junit = tmp_path / "energy gate.xml"
    done = github.run(name="two", image=IMAGE, junit=str(junit))
    assert done.returncode == PASS, done.stderr
    outputs = lines(github.outputs)
    for name, output in github.action["outputs"].items():
        assert output["value"] == f"${{{{ steps.gate.outputs.{name} }}}}"
        assert outputs[name]
    assert (outputs["verdict"], outputs["open"]) == ("Pass", "true")
    assert github.summary.read_text().startswith("### Energy gate open for shop/two: Pass")
    assert "::notice title=Energy gate open for shop/two%3A Pass::" in done.stdout
    assert ElementTree.parse(junit).getroot().get("failures") == "0"


def test_the_github_action_fails_with_the_budget_as_an_annotation(github: GitHub, fail: Fail) -> None:
    fail()
    done = github.run(name="two", image=IMAGE)
    assert done.returncode == FAIL
    assert lines(github.outputs)["open"] == "false"
    assert "::error title=maxJoulesPerRequest::Met for rust: " in done.stdout


def test_the_github_action_checks_each_image(github: GitHub) -> None:
    done = github.run(name="two", image=f"\n{IMAGE}\n{OTHER}\n")
    assert done.returncode == OTHER_IMAGE
    assert OTHER in lines(github.outputs)["message"]


def test_the_github_action_needs_images_with_digests(github: GitHub) -> None:
    for image in ("", " \n "):
        assert github.run(name="two", image=image).returncode == 1
    assert github.run(name="two", image="example.org/rust:1").returncode == USAGE
    assert github.action["inputs"]["image"]["required"] is True


def test_a_name_that_is_an_option_does_not_open_the_gate(github: GitHub, benchmark: dict[str, Any]) -> None:
    benchmark["status"]["verdict"] = "Fail"
    for name in ("--help", "--version"):
        assert github.run(name=name, image=IMAGE).returncode not in (PASS, USAGE)


def test_the_github_action_uses_namespace_and_context(github: GitHub) -> None:
    assert "farm/two" in github.run(name="two", image=IMAGE, namespace="farm").stdout
    done = github.run(name="two", image=IMAGE, context="no-such-context")
    assert done.returncode == 1
    assert "no-such-context" in lines(github.outputs)["message"]


def test_a_missing_program_is_named(github: GitHub) -> None:
    github.environment["PATH"] = "/usr/bin:/bin"
    done = github.run(name="two", image=IMAGE)
    assert done.returncode == 1
    assert "kubectl-frugality is not in the PATH" in done.stderr


def test_the_gitlab_component_passes_and_fails_with_all_reports(
    tmp_path: Path, environment: Environment, fail: Fail
) -> None:
    gitlab = GitLab(tmp_path, environment)
    assert gitlab.run(name="two", image=IMAGE).returncode == PASS
    assert all(report.stat().st_size > 0 for report in gitlab.reports())
    fail()
    done = gitlab.run(name="two", namespace="farm", context="pis", image=IMAGE)
    assert done.returncode == FAIL
    assert "farm/two" in done.stdout
    assert all(report.stat().st_size > 0 for report in gitlab.reports())
    assert ElementTree.parse(tmp_path / "energy-gate.xml").getroot().get("failures") == "2"


def test_the_tekton_task_passes_and_fails_with_its_result(
    tmp_path: Path, environment: Environment, fail: Fail
) -> None:
    tekton = Tekton(tmp_path, environment)
    assert tekton.run(name="two", namespace="shop", image=IMAGE).returncode == PASS
    assert lines(tekton.outputs)["verdict"] == "Pass"
    # Tekton keeps 4096 bytes of results in all.
    assert tekton.outputs.stat().st_size < 4096
    tekton.outputs.unlink()
    fail()
    assert tekton.run(name="two", namespace="shop", image=IMAGE).returncode == FAIL
    assert lines(tekton.outputs)["verdict"] == "Fail"


def test_the_github_action_waits_while_the_benchmark_is_replaced(github: GitHub, benchmark: dict[str, Any]) -> None:
    (candidate, *_) = benchmark["spec"]["candidates"]
    candidate["image"] = OTHER
    assert github.run(name="two", image=IMAGE).returncode == OTHER_IMAGE
    benchmark["metadata"]["deletionTimestamp"] = "2026-11-21T05:00:00Z"

    def replace() -> None:
        candidate["image"] = IMAGE
        del benchmark["metadata"]["deletionTimestamp"]

    later = threading.Timer(2, replace)
    later.start()
    done = github.run(name="two", image=IMAGE, **{"wait-for-image": "30s"})
    later.join()
    assert done.returncode == PASS, done.stderr


@pytest.mark.parametrize("tool", [GitHub, GitLab, Tekton])
def test_each_tool_gives_the_gate_the_time_to_wait_for_the_image(
    tool: type[GitHub | GitLab | Tekton], tmp_path: Path, environment: Environment
) -> None:
    done = tool(tmp_path, environment).run(name="two", namespace="shop", image=IMAGE, **{"wait-for-image": "soon"})
    assert done.returncode == USAGE
    assert "invalid value 'soon' for '--wait-for-image" in done.stderr


def test_the_job_of_argo_rollouts_passes_and_fails(environment: Environment, fail: Fail) -> None:
    template, _, _ = documents("argo-rollouts/analysis-job.yaml")
    (metric,) = template["spec"]["metrics"]
    (container,) = metric["provider"]["job"]["spec"]["template"]["spec"]["containers"]
    arguments = {arg["name"]: arg.get("value", "") for arg in template["spec"]["args"]}
    values = {f"args.{name}": value for name, value in (arguments | {"benchmark": "two", "image": IMAGE}).items()}
    command = container_command(container, r"\{\{([a-z.-]+)\}\}", values)
    assert run(command, environment).returncode == PASS
    fail()
    assert run(command, environment).returncode == FAIL


def test_the_guide_includes_a_file_of_gitlab_that_exists() -> None:
    guide = (ROOT / "docs/gitops.md").read_text()
    (file,) = re.findall(r"^    file: (\S+\.yml)$", guide, re.MULTILINE)
    assert (ROOT / file).is_file()
