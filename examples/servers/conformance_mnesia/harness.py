"""Start and end members on loopback addresses: one alone, or three."""

import json
import os
import socket
import struct
import threading
from pathlib import Path
from typing import Any, Self

from program import LOOPBACK, Program, wait_until

COMMAND = os.environ["MNESIA_ERLANG"]
MAXIMUM_BODY_BYTES = 64 * 1024
# The addresses of a cluster's members, in ascending order.
HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
SYNCHRONOUS = ("sync_transaction", "sync_dirty")
TRANSACTIONS = ("transaction", "sync_transaction")
MODES = (*TRANSACTIONS, "async_dirty", "sync_dirty")


def text(name: str = "name", content: str = "text") -> str:
    """The body that a client sends for an object."""
    return json.dumps({"name": name, "text": content}, ensure_ascii=False)


class NameServer:
    """A DNS server that resolves every name to ``addresses``, which is empty at first."""

    def __init__(self, settings: Path) -> None:
        self.addresses: tuple[str, ...] = ()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((LOOPBACK, 0))
        port = self.socket.getsockname()[1]
        lines = [
            '{resolv_conf, ""}',
            "clear_search",
            f"{{nameserver, {{127,0,0,1}}, {port}}}",
            "{lookup, [dns]}",
        ]
        settings.write_text("".join(f"{line}.\n" for line in lines), encoding="utf-8")
        # With these variables a member resolves names with this server.
        self.variables = {"PEERS_HOST": "members", "ERL_INETRC": str(settings)}
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            query, client = self.socket.recvfrom(512)
            # After the head come the name, its type and its class. The rest of the query is ignored.
            question = query[12 : query.index(b"\0", 12) + 5]
            addresses = self.addresses
            head = query[:2] + struct.pack(">5H", 0x8180 if addresses else 0x8183, 1, len(addresses), 0, 0)
            # Each record refers to the name in the question. Its time to live is 0.
            records = [struct.pack(">3HIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(one) for one in addresses]
            self.socket.sendto(head + question + b"".join(records), client)


class Server(Program):
    """One member."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        super().__init__([COMMAND], environment, log)

    def wait_ready(self) -> Self:
        return self.wait_for("/readyz")

    def wait_waiting(self, fault: str) -> None:
        """Wait until the member gives this reason for not being ready."""
        self.wait_for("/readyz", 503)
        wait_until(lambda: self.ask("/readyz").error() == fault, f"{self.host}: {fault}")

    def wait_log(self, words: str) -> None:
        wait_until(lambda: words in self.text(), f"the log of {self.host} has: {words}")

    def create(self, *fields: str) -> str:
        """The path of a new object."""
        answer = self.ask("/objects", "POST", None, text(*fields))
        assert answer.status == 201, answer
        path = answer.header("location")
        assert path is not None
        return path

    def stats(self) -> Any:
        return self.ask("/stats").json()

    def objects(self) -> dict[str, dict[str, Any]]:
        """All objects, by ID. They must be fewer than the maximum of one answer."""
        listed = self.ask("/objects?limit=100").json()["objects"]
        assert len(listed) < 100
        objects = {one["id"]: one for one in listed}
        assert len(objects) == len(listed)
        return objects

    def kill(self) -> None:
        """Kill the member, as a power failure of its node would."""
        self.process.kill()
        self.process.wait(timeout=10)
