"""The list of steps and durations that the scripts in hack/ write."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BEGIN = '#!/usr/bin/env bash\n. "$(dirname "$0")/common.sh"\n'
OUTER = 'say "compile"\nsleep 1.1\nsay "test"\nhack/inner\nlongest_steps\nsay "all of it passed"\n'
INNER = 'say "inside"\nsleep 1.1\nlongest_steps\nexit "${STATUS:-0}"\n'


def checkout(folder: Path) -> Path:
    (folder / "hack").mkdir()
    shutil.copy(ROOT / "hack/common.sh", folder / "hack")
    shutil.copy(ROOT / "Cargo.toml", folder)
    for name, text in (("outer", OUTER), ("inner", INNER)):
        script = folder / "hack" / name
        script.write_text(BEGIN + text, encoding="utf-8")
        script.chmod(0o755)
    return folder


def run(folder: Path, **variables: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if name != "FRUGALITY_TIMINGS"}
    done = subprocess.run(
        [folder / "hack/outer"], env=environment | variables, cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == int(variables.get("STATUS", "0"))
    return done.stderr.splitlines()


def steps(folder: Path) -> list[tuple[str, str]]:
    rows = [line.split("\t") for line in (folder / "build/timings.tsv").read_text(encoding="utf-8").splitlines()]
    assert all(int(seconds) < 60 for seconds, _, _ in rows)
    return [(script, step) for _, script, step in rows]


def test_each_step_of_a_command_and_of_the_scripts_that_it_runs_has_a_duration(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    expected = [
        ("hack/outer", "compile"),
        ("hack/inner", "inside"),
        ("hack/outer", "test"),
        ("hack/outer", "all of it passed"),
    ]
    run(folder)
    assert steps(folder) == expected
    run(folder)
    assert steps(folder) == expected, "each command begins the list again"


def test_the_command_prints_its_longest_steps_once_before_its_last_line(tmp_path: Path) -> None:
    printed = run(checkout(tmp_path))
    (head,) = (number for number, line in enumerate(printed) if line.startswith("The longest steps."))
    assert printed[-1].endswith("] all of it passed")
    table = [line.split() for line in printed[head + 1 : -1]]
    assert {(script, step) for _, _, script, step in table} == {
        ("hack/outer", "compile"),
        ("hack/outer", "test"),
        ("hack/inner", "inside"),
    }
    assert [int(seconds) for seconds, *_ in table] == sorted((int(it[0]) for it in table), reverse=True)


def test_a_step_that_fails_has_a_duration_too(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    run(folder, STATUS="3")
    assert steps(folder) == [("hack/outer", "compile"), ("hack/inner", "inside"), ("hack/outer", "test")]
