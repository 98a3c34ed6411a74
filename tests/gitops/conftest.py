"""A benchmark behind an HTTP server that answers as the API server does, and the built kubectl-frugality that asks it.

The server is a stand-in: it has one object. ``make gitops`` runs the gates against a real API server.
"""

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
GITOPS = ROOT / "gitops"
PROGRAMS = Path(os.environ.get("FRUGALITY_BIN_DIR", ROOT / "target/release"))
IMAGE = "example.org/rust:1@sha256:" + "1" * 64

Environment = dict[str, str]


@pytest.fixture
def benchmark() -> dict[str, Any]:
    """A benchmark with the verdict Pass, two candidates and a budget for IMAGE."""
    benchmark = json.loads((ROOT / "cli/tests/data/passed.json").read_text())
    benchmark["spec"]["candidates"][0]["image"] = IMAGE
    return benchmark


@contextlib.contextmanager
def cluster_of(kubeconfig: Path, found: Callable[[str], Any]) -> Iterator[None]:
    """Serves what ``found`` returns for a path, or 404 for None. Writes a kubeconfig for it, with the namespace ``shop``."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            *_, plural, name = self.path.partition("?")[0].split("/")
            missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
            missing |= {"reason": "NotFound", "message": "", "details": {"name": name, "kind": plural}}
            there = found(self.path)
            body = json.dumps(there or missing).encode()
            self.send_response(200 if there else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "pis",
        "clusters": [{"name": "pis", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "pis", "context": {"cluster": "pis", "user": "me", "namespace": "shop"}}],
    }
    kubeconfig.write_text(json.dumps(config))
    yield
    server.shutdown()
    server.server_close()


@pytest.fixture
def environment(tmp_path: Path, benchmark: dict[str, Any]) -> Iterator[Environment]:
    """What a pipeline's step finds: kubectl-frugality in PATH, and a kubeconfig. Later changes of the benchmark count."""
    kubeconfig = tmp_path / "kubeconfig"
    with cluster_of(kubeconfig, lambda _: benchmark):
        yield {"PATH": f"{PROGRAMS}:/usr/bin:/bin", "KUBECONFIG": str(kubeconfig)}


@pytest.fixture
def fail(benchmark: dict[str, Any]) -> Callable[[], None]:
    """Changes the benchmark's verdict to Fail."""

    def change() -> None:
        benchmark["status"]["verdict"] = "Fail"
        benchmark["status"]["budgets"][0]["outcome"] = "Exceeded"

    return change
