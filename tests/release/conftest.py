"""What the tests of a release share: the paths, the functions of hack/release.sh, and a registry."""

import os
import socket
import subprocess
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
PUBLISHED = "ghcr.io/frugality-dev"
# The images that the chart names. A release has more.
CHART_IMAGES = ("operator", "injector", "meter")
PATIENCE_SECONDS = 30
CONFIGURATION = """version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "{address}"}}
"""


def part(name: str) -> str:
    """The path of a program that the lab built."""
    found = subprocess.run([ROOT / "hack/lab/lab", "part", name], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def helm_program() -> str:
    return os.environ.get("HELM") or part("helm")


def function(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a function of hack/release.sh."""
    script = '. hack/common.sh; . hack/release.sh; "$@"'
    return subprocess.run(
        ["bash", "-c", script, "bash", name, *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )


def printed(name: str, *arguments: str) -> str:
    done = function(name, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an empty registry without TLS."""
    folder = tmp_path_factory.mktemp("registry")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    configuration = folder / "config.yaml"
    configuration.write_text(CONFIGURATION.format(folder=folder / "data", address=address))
    log = folder / "log"
    with log.open("wb") as out:
        program = os.environ.get("FRUGALITY_REGISTRY") or part("registry")
        environment = os.environ | {"OTEL_TRACES_EXPORTER": "none"}
        process = subprocess.Popen([program, "serve", configuration], stdout=out, stderr=out, env=environment)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not answers(address):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"the registry does not answer: {log.read_text()}"
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/v2/", timeout=5):
            return True
    except urllib.error.URLError:
        return False
