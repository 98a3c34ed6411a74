"""The files for pipelines, run as each tool runs them: its variables are put in, and its shell runs the result."""

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

GITOPS = Path(__file__).resolve().parents[2] / "gitops"
Environment = dict[str, str]
Done = subprocess.CompletedProcess[str]


def documents(path: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((GITOPS / path).read_text()))


def filled(text: str, pattern: str, values: dict[str, str]) -> str:
    """The text with each placeholder replaced. A placeholder without a value is an error."""
    return re.sub(pattern, lambda found: values[found[1]], text)


def lines(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def run(command: list[str], environment: Environment, seconds: float = 60, folder: Path | None = None) -> Done:
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False
    )


class GitHub:
    """The composite action's step, with the files that a runner gives."""

    INPUT = r"\$\{\{ inputs\.([a-z-]+) \}\}"

    def __init__(self, folder: Path, environment: Environment) -> None:
        (self.action,) = documents("github/action.yml")
        self.outputs, self.summary = folder / "outputs", folder / "summary"
        self.environment = environment | {
            "GITHUB_ACTION_PATH": str(GITOPS / "github"),
            "GITHUB_OUTPUT": str(self.outputs),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }

    def run(self, seconds: float = 60, **given: str) -> Done:
        inputs = {name: it.get("default", "") for name, it in self.action["inputs"].items()} | given
        (step,) = self.action["runs"]["steps"]
        env = {name: filled(str(value), self.INPUT, inputs) for name, value in step["env"].items()}
        return run(["bash", "-eo", "pipefail", "-c", step["run"]], self.environment | env, seconds)


class GitLab:
    """The component's job in a folder, with its variables."""

    INPUT = r"\$\[\[ inputs\.([a-z-]+) \]\]"

    def __init__(self, folder: Path, environment: Environment) -> None:
        self.header, jobs = documents("gitlab/templates/energy-gate.yml")
        (self.job,) = jobs.values()
        self.folder = folder
        self.environment = environment

    def run(self, *options: str, seconds: float = 60, **given: str) -> Done:
        """Runs the job. `options` are further options of its command."""
        inputs = {name: it.get("default", "") for name, it in self.header["spec"]["inputs"].items()} | given
        variables = {name: filled(value, self.INPUT, inputs) for name, value in self.job["variables"].items()}
        script = "\n".join(filled(line, self.INPUT, inputs) for line in self.job["script"])
        # An option ends before the benchmark's name.
        command = ["sh", "-e", "-c", script.replace(" -- ", " ".join(["", *options, "-- "]))]
        return run(command, self.environment | variables, seconds, self.folder)

    def reports(self) -> list[Path]:
        """The files that the job keeps. It keeps them after a failure too."""
        assert self.job["artifacts"]["when"] == "always"
        names = [*self.job["artifacts"]["paths"], *self.job["artifacts"]["reports"].values()]
        return [self.folder / name for name in names]


class Tekton:
    """The task's container, with its parameters."""

    PLACEHOLDER = r"\$\(([a-z.-]+)\)"

    def __init__(self, folder: Path, environment: Environment) -> None:
        (self.task,) = documents("tekton/energy-gate.yaml")
        (result,) = self.task["spec"]["results"]
        self.outputs = folder / "result"
        self.result = {f"results.{result['name']}.path": str(self.outputs)}
        self.environment = environment

    def run(self, *options: str, seconds: float = 60, **given: str) -> Done:
        """Runs the step. `options` are further options of its command."""
        params = {param["name"]: param.get("default", "") for param in self.task["spec"]["params"]} | given
        values = self.result | {f"params.{name}": value for name, value in params.items()}
        (step,) = self.task["spec"]["steps"]
        words = container_command(step, self.PLACEHOLDER, values)
        name = words.index("--")
        return run([*words[:name], *options, *words[name:]], self.environment, seconds)


def container_command(container: dict[str, Any], pattern: str, values: dict[str, str]) -> list[str]:
    """The words that a container executes."""
    words = [*container["command"], *container.get("args", [])]
    return [filled(word, pattern, values) for word in words]
