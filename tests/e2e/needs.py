"""Which benchmarks of the session the collected tests need.

A test names the benchmarks that it looks at: ``@pytest.mark.benchmarks(LONG, DELETED)``. For a whole module,
``pytestmark`` names them. A test that is parametrized by a benchmark needs this benchmark without a mark.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from benchmarks import ALL, Benchmark

MARK = "benchmarks"


def declared(item: Any) -> set[str] | None:
    """Keys of the benchmarks that a test declares. ``None`` if the test declares nothing, not even none."""
    marks = list(item.iter_markers(MARK))
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    of_parameters = {value.key for value in parameters if isinstance(value, Benchmark)}
    if not marks and not of_parameters:
        return None
    return of_parameters | {benchmark.key for mark in marks for benchmark in mark.args}


def needed(items: Iterable[Any]) -> list[Benchmark]:
    """The session's benchmarks that these tests need, in the order of the queue."""
    keys = {key for item in items for key in declared(item) or ()}
    return [benchmark for benchmark in ALL if benchmark.key in keys]


def uses_session(item: Any) -> bool:
    """Whether a test uses the session of this suite. Some modules have a session fixture of their own."""
    return "session" in item.fixturenames and not hasattr(item.module, "session")


def check_declared(items: Iterable[Any]) -> None:
    """Each test that uses the session must declare its benchmarks. Otherwise ``-k`` would not apply them."""
    silent = [item.nodeid for item in items if uses_session(item) and declared(item) is None]
    if silent:
        raise pytest.UsageError(
            f"these tests use the session and declare no benchmark: {', '.join(silent)}. "
            f"Mark them with @pytest.mark.{MARK}(...), without arguments if they need none of benchmarks.ALL"
        )
