"""Start the candidates of the example, and run its script with the injector as the operator does."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from program import Program

SERVERS = Path(__file__).parents[1]
CANDIDATES = {
    "rust": ([os.environ["CONTACTS_RUST"]], None),
    "python": ([os.environ["CONTACTS_PYTHON"], "-m", "contacts_python"], SERVERS / "python"),
    "radicale": ([os.environ["RADICALE_PYTHON"], str(SERVERS / "radicale" / "start.py")], None),
}
BOOK = "/dav/addressbooks/contacts/"
# The example's agents and rate, which each server reaches even if other tests use the same cores.
AGENTS, RATE = 4, 5

Spec = dict[str, Any]


def example() -> Spec:
    return yaml.safe_load(Path(os.environ["EXAMPLE"]).read_text(encoding="utf-8"))


class Candidate(Program):
    """A candidate of the example, which stores files below a folder of the test."""

    def __init__(self, candidate: Spec, variables: dict[str, str], folder: Path) -> None:
        self.readiness_path = candidate.get("readinessPath", "/healthz")
        command, directory = CANDIDATES[candidate["name"]]
        environment = {"PYTHONDONTWRITEBYTECODE": "1", "FOLDER": str(folder)}
        environment |= {variable["name"]: variable["value"] for variable in candidate.get("env", [])}
        super().__init__(command, environment | variables, folder.with_suffix(".log"), directory)

    def wait_ready(self) -> Self:
        return self.wait_for(self.readiness_path)


@dataclass(frozen=True)
class Ended:
    """How the injector ended, and k6's result."""

    code: int
    text: str
    result: Any


def run(script: str, target: Program, log: Path, seconds: int = 5) -> Ended:
    """Run the script for this long, with a warm-up and a tail of a second each."""
    log.touch()
    done = subprocess.run(
        [
            os.environ["FRUGALITY_INJECTOR"],
            "run",
            f"--url=http://{target.host}:{target.port}",
            f"--k6={os.environ['FRUGALITY_K6']}",
            f"--script={script}",
            f"--termination-log={log}",
            f"--connections={AGENTS}",
            f"--rate={RATE}",
            f"--duration-seconds={seconds}",
            "--warm-up-seconds=1",
            "--tail-seconds=1",
        ],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    line = done.stdout.strip()
    return Ended(done.returncode, done.stderr, json.loads(line) if line else None)
