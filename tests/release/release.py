"""What the tests of a release share: names, the functions of hack/release.sh, and the lab's programs."""

import os
import socket
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
PUBLISHED = "ghcr.io/frugality-dev"
# The images that the chart names. A release has more.
CHART_IMAGES = ("operator", "injector", "injector-k6", "meter")
PREFIX = "registry.example.org/mine"
DIGESTS = {image: f"sha256:{number:064x}" for number, image in enumerate(CHART_IMAGES, start=1)}
PAIRS = " ".join(f"{image}={digest}" for image, digest in DIGESTS.items())


def program(variable: str, name: str) -> str:
    """The path in a variable of `make unit`, or the path of the lab's part."""
    return os.environ.get(variable) or part(name)


def part(name: str) -> str:
    """The path of a program that the lab built."""
    found = subprocess.run([ROOT / "hack/lab/lab", "part", name], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def helm_program() -> str:
    return program("HELM", "helm")


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


def free_address() -> str:
    """A local address on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


def images() -> set[str]:
    """The names of all images of a release."""
    return set(function("eval", 'printf "%s\\n" "${IMAGES[@]}"').stdout.split())
