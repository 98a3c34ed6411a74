"""The part of an API server that the operator needs to start: TLS, and empty lists of all resources."""

import base64
import http.server
import json
import ssl
import subprocess
import threading
from pathlib import Path

import yaml

GROUP = "/apis/frugality.dev/v1alpha1/"


def certificate(folder: Path) -> tuple[Path, Path, Path]:
    """Makes an authority, and a key and certificate for 127.0.0.1 that it signs. Returns the three paths."""
    authority, key, leaf = (folder / name for name in ("ca.crt", "server.key", "server.crt"))
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    new += ["-days", "2"]
    for command in (
        [*new, "-subj", "/CN=tests", "-keyout", folder / "ca.key", "-out", authority],
        [
            *[*new, "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", leaf],
            *["-CA", authority, "-CAkey", folder / "ca.key"],
            *["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"],
        ],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return authority, key, leaf


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers lists. A watch stays open and sends no event."""

    protocol_version = "HTTP/1.1"
    server: "ApiServer"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.server.asked.add(path)
        if "watch=" in query:
            self.server.watched.set()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            self.server.ended.wait()
            self.close_connection = True
            return
        listed = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
        body = json.dumps(listed).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Prints nothing, because the tests report failures."""


class ApiServer(http.server.ThreadingHTTPServer):
    """Serves from its construction until `close`."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: set[str] = set()
        self.watched = threading.Event()
        self.ended = threading.Event()
        authority, key, leaf = certificate(folder)
        self.authority = base64.b64encode(authority.read_bytes()).decode()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(leaf, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def kubeconfig(self) -> str:
        server = f"https://127.0.0.1:{self.server_port}"
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {
                        "name": "tests",
                        "cluster": {"server": server, "certificate-authority-data": self.authority},
                    }
                ],
                "users": [{"name": "tests", "user": {}}],
                "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
                "current-context": "tests",
            }
        )

    def close(self) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()
