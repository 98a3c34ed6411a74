"""Start and end the two servers, on the loopback address."""

import os
import shlex
from pathlib import Path

from program import Program

COMMANDS = {
    "rust": [os.environ["CONTACTS_RUST"]],
    "python": shlex.split(os.environ["CONTACTS_PYTHON_SERVER"]),
}


class Server(Program):
    """One of the two servers."""

    def __init__(self, name: str, environment: dict[str, str], log: Path) -> None:
        self.name = name
        super().__init__(COMMANDS[name], environment, log, Path(os.environ["CONTACTS_PYTHON_PACKAGE"]))
