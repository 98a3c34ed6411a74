"""Whether exactly the benchmarks that the collected tests need are applied. Needs no cluster."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import benchmarks
from benchmarks import ALL, ANSWERS_500, DELETED, KILLED, LIFE, LONG, NO_IMAGE, QUEUE, SENT, Benchmark
from needs import check_declared, declared, needed

HERE = Path(__file__).parent


def item(*marks: tuple[Benchmark, ...], **parameters: object) -> SimpleNamespace:
    """A collected test with these marks and parameters."""
    test = SimpleNamespace(
        nodeid="test_it",
        fixturenames=["session"],
        module=SimpleNamespace(),
        iter_markers=lambda name: iter([SimpleNamespace(args=args) for args in marks]),
    )
    if parameters:
        test.callspec = SimpleNamespace(params=parameters)
    return test


def test_marks_of_a_module_and_of_a_test_add_up_in_the_order_of_the_queue() -> None:
    assert needed([item((KILLED,), (LONG,)), item((DELETED,))]) == [LONG, DELETED, KILLED]


def test_a_test_that_is_parametrized_by_a_benchmark_needs_it() -> None:
    assert needed([item(benchmark=SENT, reason="any"), item((LONG,), benchmark=NO_IMAGE)]) == [
        LONG,
        SENT,
        NO_IMAGE,
    ]


def test_benchmarks_that_a_module_applies_itself_are_not_applied_by_the_session() -> None:
    assert needed([item(tuple(LIFE))]) == []


def test_a_test_that_uses_the_session_and_declares_nothing_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match="test_it"):
        check_declared([item((LONG,)), item()])
    assert declared(item(())) == set()
    check_declared([item(())])


def test_a_module_with_its_own_session_declares_nothing() -> None:
    own = item()
    own.module.session = "another fixture"
    check_declared([own])
    other = item()
    other.fixturenames = ["tmp_path"]
    check_declared([other])


def default_suite() -> list[str]:
    """The modules that ``tests/e2e/run`` runs without an option, except the suite's own unit tests."""
    listed = re.search(r"^TESTS=\(\n(.*?)^\)", (HERE / "run").read_text(), re.MULTILINE | re.DOTALL)
    assert listed is not None
    return [word for word in listed[1].split() if word.endswith(".py")]


def reported(*arguments: str) -> list[str]:
    """The benchmarks that pytest would apply."""
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", *arguments],
        cwd=HERE,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    line = re.search(r"^benchmarks of the session: (.*)$", collected.stdout, re.MULTILINE)
    assert line is not None, collected.stdout + collected.stderr
    return [] if line[1] == "none" else line[1].split(", ")


def test_the_complete_suite_applies_all_in_the_order_of_the_queue() -> None:
    assert reported(*default_suite()) == [benchmark.key for benchmark in ALL]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("test_memory", [LONG]),
        ("test_standalone", [KILLED]),
        ("test_turns", QUEUE),
        ("no-image", [NO_IMAGE]),
        ("test_errors and answers", [ANSWERS_500]),
        ("test_admission or test_operator_may_not", []),
    ],
)
def test_a_selection_applies_only_its_benchmarks(expression: str, expected: list[Benchmark]) -> None:
    assert reported(*default_suite(), "-k", expression) == [benchmark.key for benchmark in expected]


@pytest.mark.parametrize("module", default_suite())
def test_a_module_declares_each_benchmark_that_it_imports(module: str) -> None:
    names = {name: value for name, value in vars(benchmarks).items() if isinstance(value, Benchmark)}
    tree = ast.parse((HERE / module).read_text())
    imported = {
        names[alias.name].key
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "benchmarks"
        for alias in node.names
        if alias.name in names
    }
    of_session = imported & {benchmark.key for benchmark in ALL}
    if of_session:
        assert of_session <= set(reported(module))
