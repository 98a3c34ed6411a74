"""Fixtures of the suites that need PostgreSQL. Their conftest.py names this module in ``pytest_plugins``."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres import Postgres


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.getbasetemp()
    # PostgreSQL's user must be able to reach its folder.
    for part in (folder, folder.parent):
        part.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def postgres(folder: Path) -> Iterator[Postgres]:
    """A PostgreSQL without contacts. It ends with the session."""
    postgres = Postgres(folder / "postgres")
    try:
        yield postgres
    finally:
        postgres.stop()
