"""Fixtures of the suites that need PostgreSQL."""

import signal
from pathlib import Path

import pytest

# SIGTERM would end pytest without its fixtures' clean-up. As an interrupt, it ends the servers too.
signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.getbasetemp()
    # PostgreSQL's user must be able to reach its folder.
    for part in (folder, folder.parent):
        part.chmod(0o755)
    return folder
