"""The memory of operator, meters and CloudNativePG. The suite prints it and keeps it as memory.json."""

import json

import pytest

import box
from benchmarks import LONG
from kube import Object
from session import Session


@pytest.mark.benchmarks(LONG)
def test_every_part_was_found_during_the_long_run(session: Session, long_run: Object) -> None:
    found = json.loads((box.ARTIFACTS / "memory.json").read_text())
    assert {part.split()[0] for part in found} == {"operator", "meter", "cloudnative-pg"}
    assert {part for part in found if part.startswith("meter")} == {"meter on pi-1", "meter on injector-1"}
    assert all(row["samples"] > 50 and row["medianMiB"] > 0.5 for row in found.values())
