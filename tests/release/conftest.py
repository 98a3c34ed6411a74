"""A chart with digests, its manifest, and a registry."""

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from release import PAIRS, PREFIX, ROOT, free_address, helm_program, printed, program

PATIENCE_SECONDS = 30
CONFIGURATION = """version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "{address}"}}
"""


@pytest.fixture(scope="session")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart with the digests of a release."""
    folder = tmp_path_factory.mktemp("charts") / "frugality-operator"
    subprocess.run(["cp", "-r", ROOT / "charts/frugality-operator", folder], check=True)
    (folder / "values.yaml").write_text(printed("pinned_values", PREFIX, PAIRS))
    return folder


@pytest.fixture(scope="session")
def manifest(chart: Path) -> str:
    """The text of install.yaml."""
    return printed("manifest", helm_program(), str(chart))


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an empty registry without TLS."""
    folder = tmp_path_factory.mktemp("registry")
    address = free_address()
    configuration = folder / "config.yaml"
    configuration.write_text(CONFIGURATION.format(folder=folder / "data", address=address))
    log = folder / "log"
    with log.open("wb") as out:
        server = program("FRUGALITY_REGISTRY", "registry")
        environment = os.environ | {"OTEL_TRACES_EXPORTER": "none"}
        process = subprocess.Popen([server, "serve", configuration], stdout=out, stderr=out, env=environment)
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
