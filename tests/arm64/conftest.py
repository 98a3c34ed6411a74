"""Runs hack/images once for a Pi: it builds the images, imports them into containerd and pushes them."""

import os
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from image import PATIENCE_SECONDS, Image, free_port

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
IMAGES = (
    "operator",
    "meter",
    "injector",
    "injector-k6",
    "contacts-rust",
    "contacts-python",
    "radicale",
    "streamdata-rust",
    "streamdata-go",
    "mnesia-erlang",
    "programs",
)

# Replaces ssh: accepts only "pi-1 sudo COMMAND", and runs the command here.
SSH = """#!/bin/sh
[ "$1 $2" = "pi-1 sudo" ] || exit 255
shift 2
PATH={node}:$PATH exec "$@"
"""
UNAME = """#!/bin/sh
echo aarch64
"""
# k3s keeps images in containerd's namespace k8s.io. A Pi needs no --platform, because its own is arm64.
K3S = """#!/bin/sh
case "$1 $2 $3 $4" in
  "--version   ") echo k3s ;;
  "ctr images import -")
    exec ctr --address {socket} --namespace k8s.io images import --platform linux/arm64 -
    ;;
  *) exit 64 ;;
esac
"""
REGISTRY = """version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
CONTAINERD = """version = 2
disabled_plugins = ["io.containerd.grpc.v1.cri"]
"""


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., None]]:
    """Starts a program and waits until ``ready`` succeeds. All programs end with the session."""
    folder = tmp_path_factory.mktemp("daemons")
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str | Path, ready: list[str | Path]) -> None:
        log = folder / f"{Path(command[0]).name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        started.append(process)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while subprocess.run(ready, check=False, capture_output=True).returncode:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"{command[0]} does not answer: {log.read_text()}"
            time.sleep(0.1)

    yield start
    for process in started:
        process.terminate()
        process.wait(timeout=PATIENCE_SECONDS)


@dataclass
class Pi:
    """The k3s that ``ssh pi-1 sudo k3s`` reaches: a containerd that the test started."""

    path: Path
    socket: Path

    def images(self) -> dict[str, str]:
        """Maps the name of each image to its platform."""
        command = ["ctr", "--address", self.socket, "--namespace", "k8s.io", "images", "list"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True)
        rows = [line.split() for line in listed.stdout.splitlines()[1:]]
        return {row[0]: row[5] for row in rows}


@pytest.fixture(scope="session")
def pi(tmp_path_factory: pytest.TempPathFactory, daemon: Callable[..., None]) -> Pi:
    folder = tmp_path_factory.mktemp("pi")
    pi = Pi(folder / "bin", folder / "containerd.sock")
    executable(pi.path / "ssh", SSH.format(node=folder / "node"))
    executable(folder / "node" / "uname", UNAME)
    executable(folder / "node" / "k3s", K3S.format(socket=pi.socket))
    config = folder / "config.toml"
    config.write_text(CONTAINERD, encoding="utf-8")
    command = ["containerd", "--config", config, "--address", pi.socket]
    command += ["--root", folder / "root", "--state", folder / "state"]
    daemon(*command, ready=["ctr", "--address", pi.socket, "version"])
    return pi


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory, daemon: Callable[..., None]) -> str:
    """Address of an empty registry without TLS."""
    folder = tmp_path_factory.mktemp("registry")
    port = free_port()
    config = folder / "config.yml"
    config.write_text(REGISTRY.format(folder=folder / "data", port=port), encoding="utf-8")
    address = f"127.0.0.1:{port}"
    ready = ["curl", "--fail", "--silent", f"http://{address}/v2/"]
    daemon("docker-registry", "serve", config, ready=ready)
    return address


@pytest.fixture(scope="session")
def archives(pi: Pi, registry: str) -> dict[str, Path]:
    """The images' archives. One command builds, imports and pushes the images."""
    command = [ROOT / "hack" / "images", "--import-k3s", "pi-1"]
    command += ["--push", f"{registry}/pi/frugality", "--insecure"]
    environment = os.environ | {"PATH": f"{pi.path}:{os.environ['PATH']}"}
    subprocess.run(command, check=True, env=environment)
    return {name: ROOT / "build" / "arm64" / f"{name}.tar" for name in IMAGES}


@pytest.fixture(scope="session")
def images(archives: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Image]:
    folder = tmp_path_factory.mktemp("images")
    return {name: Image.unpack(archive, folder / name) for name, archive in archives.items()}


@pytest.fixture(params=IMAGES)
def image(request: pytest.FixtureRequest, images: dict[str, Image]) -> Image:
    return images[request.param]
