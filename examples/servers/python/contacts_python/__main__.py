"""Start the server: one process, one thread, one event loop."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn
import uvloop

from .contacts import application
from .database import Database, DatabaseError
from .settings import Settings, SettingsError

# Time limit for requests in flight after SIGTERM. The process ends within 5 s.
GRACE_SECONDS = 4
# Connections that may wait for accept(): tokio's default.
BACKLOG = 1024

log = logging.getLogger("contacts_python")


class Server(uvicorn.Server):
    """uvicorn without its signal handlers: they end the process by the signal, not with exit code 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(port: int) -> socket.socket:
    """Listen on all addresses of IPv6 and IPv4, or of IPv4 only if the machine has no IPv6."""
    try:
        return socket.create_server(
            ("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
        )
    except (OSError, ValueError):
        return socket.create_server(("0.0.0.0", port), backlog=BACKLOG)


async def serve(settings: Settings) -> int:
    loop = asyncio.get_running_loop()
    # SIGTERM ends process 1 of a container only if the process handles it. The handler is therefore set
    # before the wait for the database.
    connecting = loop.create_task(Database.connect(settings))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, connecting.cancel)
    try:
        database = await connecting
    except asyncio.CancelledError:
        return 0
    except DatabaseError as error:
        log.error("%s", error)
        return 1

    try:
        listener = listen(settings.port)
    except OSError as error:
        log.error("cannot listen on port %d: %s", settings.port, error)
        return 1

    server = Server(
        uvicorn.Config(
            application(database, settings.credentials),
            backlog=BACKLOG,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            # Like the Rust server, keep idle connections open between two requests of a load.
            timeout_keep_alive=3600,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )

    def stop() -> None:
        log.info("stopping: finishing the requests in flight")
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    log.info(
        "serving %d contacts on port %d with a pool of %d connections",
        database.rows,
        settings.port,
        settings.pool_size,
    )
    try:
        await server.serve(sockets=[listener])
    finally:
        database.terminate()
    return 0


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    try:
        settings = Settings.from_environment(os.environ)
    except SettingsError as error:
        log.error("%s", error)
        return 1
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(settings))


if __name__ == "__main__":
    sys.exit(main())
