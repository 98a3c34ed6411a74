"""The script of the example passes all its checks on each candidate, and the candidates do the same work."""

import re
import runpy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import AGENTS, BOOK, CANDIDATES, SERVERS, Candidate, Ended, Spec, run
from postgres import Postgres
from program import wait_until

CHECKS = {
    "the address book has a tag",
    "the tag shows the last change",
    "all contacts are listed",
    "the contacts are fetched",
    "the contact is read",
    "its tag is the listed one",
    "it has the last change",
    "the change is accepted",
}
REQUESTS_PER_CYCLE = {"207": 3, "200": 1, "204": 1}


@pytest.fixture(scope="module")
def script(spec: Spec) -> str:
    return spec["scenario"]["script"]


@pytest.fixture(scope="module")
def names(postgres: Postgres, candidates: dict[str, Candidate]) -> list[str]:
    """The last segments of the contacts' paths."""
    return postgres.psql("SELECT name FROM contacts ORDER BY id", database="rust").splitlines()


@pytest.fixture(scope="module")
def seeded(candidates: dict[str, Candidate], names: list[str]) -> dict[str, list[bytes]]:
    """Each candidate's contacts, before the load writes."""
    return {
        name: [candidate.ask(BOOK + segment).body for segment in names]
        for name, candidate in candidates.items()
    }


@pytest.fixture(scope="module")
def ended(
    script: str, candidates: dict[str, Candidate], seeded: dict[str, list[bytes]], folder: Path
) -> dict[str, Ended]:
    """How the script ended on each candidate."""
    with ThreadPoolExecutor() as pool:
        runs = {
            name: pool.submit(run, script, candidate, folder / f"{name}.injector")
            for name, candidate in candidates.items()
        }
    return {name: outcome.result() for name, outcome in runs.items()}


def test_files_of_radicale_are_the_rows_of_the_table(postgres: Postgres, folder: Path) -> None:
    contact = runpy.run_path(str(SERVERS / "radicale" / "seed.py"))["contact"]
    rows = 10_000
    postgres.create("compared")
    postgres.seed(rows, database="compared")
    written = "".join("{}\n{}\n".format(*contact(row)) for row in range(1, rows + 1))
    stored = postgres.psql(r"SELECT name || E'\n' || vcard FROM contacts ORDER BY id", database="compared")
    assert stored + "\n" == written


def test_all_candidates_serve_the_same_contacts(seeded: dict[str, list[bytes]], contacts: int) -> None:
    assert len(set(seeded["rust"])) == contacts
    assert seeded["python"] == seeded["rust"]
    # Radicale sorts the lines, and the parameters of a line.
    assert [comparable(vcard) for vcard in seeded["radicale"]] == [
        comparable(vcard) for vcard in seeded["rust"]
    ]


def comparable(vcard: bytes) -> list[list[bytes]]:
    return sorted(sorted(re.split(rb"[;:]", line)) for line in vcard.split(b"\r\n"))


@pytest.mark.parametrize("name", CANDIDATES)
def test_every_check_of_the_script_passes(ended: dict[str, Ended], name: str) -> None:
    outcome = ended[name]
    assert outcome.code == 0, outcome.text
    result = outcome.result
    assert set(result["checks"]) == CHECKS
    cycles = result["cycles"]["count"]
    # A busy machine may drop cycles.
    assert cycles >= 10
    for check in result["checks"].values():
        assert check["failed"] == 0
        # At an end of the window, each agent may have one open cycle.
        assert check["passed"] == pytest.approx(cycles, abs=AGENTS)
    assert (result["failedCycles"]["count"], result["requests"]["failed"]) == (0, 0)
    assert result["firstFailures"] == []
    codes = result["requests"]["codes"]
    assert codes.keys() == REQUESTS_PER_CYCLE.keys()
    for code, count in codes.items():
        per_cycle = REQUESTS_PER_CYCLE[code]
        assert count == pytest.approx(cycles * per_cycle, abs=AGENTS * per_cycle)


def test_both_servers_with_a_database_make_the_same_transactions(
    script: str, postgres: Postgres, start: Callable[..., Candidate], contacts: int, folder: Path
) -> None:
    """``queriesMayDiffer`` also allows a difference between these two, so the operator does not check it."""

    def count(database: str) -> int:
        sql = f"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{database}'"
        return int(postgres.psql(sql, database="postgres"))

    def transactions(name: str, script: str | None) -> tuple[int, int]:
        """The transactions of a server from its start to its end, and the cycles."""
        database, cycles = f"counted_{name}", 0
        before = count(database)
        candidate = start(name, DATABASE_URL=postgres.url(database=database)).wait_ready()
        if script is not None:
            result = run(script, candidate, folder / f"{database}.injector", seconds=3).result
            cycles = result["warmUp"]["requests"] + result["cycles"]["count"] + result["tail"]["requests"]
        candidate.terminate()
        # The end of its connections makes the count complete.
        assert candidate.process.wait(timeout=10) == 0
        sql = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'"
        wait_until(lambda: postgres.psql(sql, database="postgres") == "0", "PostgreSQL ends the connections")
        return count(database) - before, cycles

    def per_cycle(name: str) -> float:
        (at_rest, _), (in_all, cycles) = transactions(name, None), transactions(name, script)
        return (in_all - at_rest) / cycles

    for name in ("rust", "python"):
        postgres.create(f"counted_{name}")
        postgres.seed(contacts, database=f"counted_{name}")
    with ThreadPoolExecutor() as pool:
        rust, python = pool.map(per_cycle, ("rust", "python"))
    # Each of the five requests makes one transaction at least.
    assert rust >= 5
    # The operator's limit.
    assert python == pytest.approx(rust, rel=0.1)


@pytest.mark.parametrize("name", CANDIDATES)
def test_agents_changed_their_own_contacts_only(
    ended: dict[str, Ended],
    seeded: dict[str, list[bytes]],
    candidates: dict[str, Candidate],
    names: list[str],
    name: str,
) -> None:
    after = [candidates[name].ask(BOOK + segment).body for segment in names]
    changed = [segment for segment, was, body in zip(names, seeded[name], after, strict=True) if was != body]
    # k6 gives a cycle to any idle agent, and promises no cycle to each. One agent alone would prove nothing.
    assert len(changed) >= 2
    assert set(changed) <= set(sorted(names)[:AGENTS])
    for segment, body in zip(names, after, strict=True):
        assert len(re.findall(rb"^NOTE:revision \d+\r$", body, re.MULTILINE)) == (segment in changed)


def test_a_write_with_a_stale_tag_is_seen(
    script: str, candidates: dict[str, Candidate], folder: Path
) -> None:
    stale = script.replace("put(path, changed, etag)", "put(path, changed, '\"stale\"')")
    assert stale != script
    outcome = run(stale, candidates["radicale"], folder / "stale.injector", seconds=1)
    assert outcome.code == 0, outcome.text
    assert outcome.result["checks"]["the change is accepted"]["passed"] == 0
    assert outcome.result["cycles"]["count"] == 0
    assert outcome.result["failedCycles"]["count"] > 0


def test_another_number_of_contacts_ends_the_run(
    script: str, start: Callable[..., Candidate], contacts: int, folder: Path
) -> None:
    fewer = start("radicale", CONTACTS=str(contacts - 1)).wait_ready()
    outcome = run(script, fewer, folder / "fewer.injector", seconds=1)
    assert outcome.code != 0
    assert f"list: 207, {contacts - 1} contacts" in outcome.text


def test_radicale_refuses_a_number_that_is_none(start: Callable[..., Candidate]) -> None:
    candidate = start("radicale", CONTACTS="many")
    assert candidate.process.wait(timeout=10) == 1
    assert candidate.text() == "CONTACTS must be a whole number from 1 to 100000, not 'many'\n"
