"""docs/threat-model.md: every threat names a test, and the test exists."""

import re

from rendered import REPOSITORY

TEXT = (REPOSITORY / "docs" / "threat-model.md").read_text()


def rows():
    """The cells of each row of the table of threats."""
    [section] = re.findall(r"## Threats and their tests\n(.*?)\n## ", TEXT, re.DOTALL)
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def test_every_threat_has_a_test_that_exists():
    assert len(rows()) >= 15
    for *_, tests in rows():
        named = re.findall(r"`([\w/.-]+)::(\w+)`", tests)
        assert named, tests
        for file, name in named:
            source = (REPOSITORY / file).read_text()
            assert re.search(rf"\b(?:fn|def) {name}\(", source), f"{file} has no test {name}"


def test_every_attacker_is_introduced():
    [table] = re.findall(r"\| attacker \| has at first \|\n\|---\|---\|\n((?:\| .*\n)+)", TEXT)
    introduced = [line.strip("| ").split(" | ")[0] for line in table.splitlines()]
    for attacker, *_ in rows():
        assert any(re.match(rf"{attacker.partition(' of ')[0]}\b", it) for it in introduced), attacker
