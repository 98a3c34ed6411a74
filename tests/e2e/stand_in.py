"""What the stand-ins share: a server that answers what a function says."""

import contextlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Status, content type and body; where there is none, the connection is closed without an answer.
Answer = tuple[int, str, bytes] | None


def serve(port: int, answer: Callable[[str], Answer]) -> None:
    """Answers every GET by its path, for ever."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answered = answer(self.path)
            if answered is None:
                return
            status, kind, body = answered
            # Whoever asked may have been killed since.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()
