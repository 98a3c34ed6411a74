"""The server of the stand-ins. A function gives the answer to each request."""

import contextlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Status, content type and body. Without them the server closes the connection and does not answer.
Answer = tuple[int, str, bytes] | None


def serve(port: int, answer: Callable[[str], Answer]) -> None:
    """Answers every GET request by its path, until the process ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answered = answer(self.path)
            if answered is None:
                return
            status, kind, body = answered
            # The client may have been killed in the meantime.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()
