"""The files for pipelines, run as each tool runs them: its variables are put in, and its shell runs the result."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from conftest import GITOPS, IMAGE, ROOT, Environment

Fail = Callable[[], None]
USAGE, PASS, FAIL, OTHER_IMAGE = 2, 0, 10, 16
OTHER = "example.org/rust:2@sha256:" + "2" * 64


def documents(path: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((GITOPS / path).read_text()))


def filled(text: str, pattern: str, values: dict[str, str]) -> str:
    """The text with each placeholder replaced. A placeholder without a value is an error."""
    return re.sub(pattern, lambda found: values[found[1]], text)


def lines(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


class GitHub:
    """Runs the composite action's step with the files that a runner gives."""

    INPUT = r"\$\{\{ inputs\.([a-z-]+) \}\}"

    def __init__(self, folder: Path, environment: Environment) -> None:
        (self.action,) = documents("github/action.yml")
        self.outputs, self.summary = folder / "outputs", folder / "summary"
        self.environment = environment | {
            "GITHUB_ACTION_PATH": str(GITOPS / "github"),
            "GITHUB_OUTPUT": str(self.outputs),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }

    def run(self, **given: str) -> subprocess.CompletedProcess[str]:
        inputs = {name: it.get("default", "") for name, it in self.action["inputs"].items()} | given
        (step,) = self.action["runs"]["steps"]
        env = {name: filled(str(value), self.INPUT, inputs) for name, value in step["env"].items()}
        command = ["bash", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(command, env=self.environment | env, capture_output=True, text=True, timeout=60)


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
    assert "::error title=maxJoulesPerRequest::rust: " in done.stdout


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


def gitlab(folder: Path, environment: Environment, **given: str) -> subprocess.CompletedProcess[str]:
    """Runs the component's job in a folder, with its variables."""
    header, jobs = documents("gitlab/templates/energy-gate.yml")
    inputs = {name: it.get("default", "") for name, it in header["spec"]["inputs"].items()} | given
    (job,) = jobs.values()
    placeholder = r"\$\[\[ inputs\.([a-z-]+) \]\]"
    variables = {name: filled(value, placeholder, inputs) for name, value in job["variables"].items()}
    script = "\n".join(filled(line, placeholder, inputs) for line in job["script"])
    command = ["sh", "-e", "-c", script]
    done = subprocess.run(
        command, env=environment | variables, cwd=folder, capture_output=True, text=True, timeout=60
    )
    reports = [*job["artifacts"]["paths"], *job["artifacts"]["reports"].values()]
    assert job["artifacts"]["when"] == "always"
    for report in reports:
        assert (folder / report).stat().st_size > 0, f"{report}: {done.stderr}"
    return done


def test_the_gitlab_component_passes_and_fails_with_all_reports(
    tmp_path: Path, environment: Environment, fail: Fail
) -> None:
    assert gitlab(tmp_path, environment, name="two", image=IMAGE).returncode == PASS
    fail()
    done = gitlab(tmp_path, environment, name="two", namespace="farm", context="pis", image=IMAGE)
    assert done.returncode == FAIL
    assert "farm/two" in done.stdout
    assert ElementTree.parse(tmp_path / "energy-gate.xml").getroot().get("failures") == "2"


def in_container(container: dict[str, Any], pattern: str, values: dict[str, str], environment: Environment) -> int:
    words = [*container["command"], *container.get("args", [])]
    command = [filled(word, pattern, values) for word in words]
    return subprocess.run(command, env=environment, timeout=60).returncode


def test_the_tekton_task_passes_and_fails_with_its_result(
    tmp_path: Path, environment: Environment, fail: Fail
) -> None:
    (task,) = documents("tekton/energy-gate.yaml")
    (step,) = task["spec"]["steps"]
    (result,) = task["spec"]["results"]
    path = tmp_path / "outputs"
    given = {"name": "two", "namespace": "shop", "image": IMAGE}
    params = {param["name"]: param.get("default", "") for param in task["spec"]["params"]} | given
    values = {f"params.{name}": value for name, value in params.items()}
    values[f"results.{result['name']}.path"] = str(path)
    placeholder = r"\$\(([a-z.-]+)\)"
    assert in_container(step, placeholder, values, environment) == PASS
    assert lines(path)["verdict"] == "Pass"
    # Tekton keeps 4096 bytes of results in all.
    assert path.stat().st_size < 4096
    path.unlink()
    fail()
    assert in_container(step, placeholder, values, environment) == FAIL
    assert lines(path)["verdict"] == "Fail"


def test_the_job_of_argo_rollouts_passes_and_fails(environment: Environment, fail: Fail) -> None:
    template, _, _ = documents("argo-rollouts/analysis-job.yaml")
    (metric,) = template["spec"]["metrics"]
    (container,) = metric["provider"]["job"]["spec"]["template"]["spec"]["containers"]
    arguments = {arg["name"]: arg.get("value", "") for arg in template["spec"]["args"]}
    values = {f"args.{name}": value for name, value in (arguments | {"benchmark": "two", "image": IMAGE}).items()}
    placeholder = r"\{\{([a-z.-]+)\}\}"
    assert in_container(container, placeholder, values, environment) == PASS
    fail()
    assert in_container(container, placeholder, values, environment) == FAIL


def test_the_guide_includes_a_file_of_gitlab_that_exists() -> None:
    guide = (ROOT / "docs/gitops.md").read_text()
    (file,) = re.findall(r"^    file: (\S+\.yml)$", guide, re.MULTILINE)
    assert (ROOT / file).is_file()
