"""The seeded table is the same on every machine, with the size and form in the README."""

import hashlib

from conftest import ROWS
from postgres import Postgres

# The digest of 10,000 rows in examples/servers/README.md.
DIGEST = "94046ec613084a5e6d00a6b76a15afbe"
DIGEST_SQL = (
    "SELECT count(*), md5(string_agg(id || ' ' || uid || ' ' || etag, ',' ORDER BY id)) FROM contacts"
)


def test_the_digest_is_the_documented_one(postgres: Postgres) -> None:
    assert postgres.psql(DIGEST_SQL) == f"{ROWS}|{DIGEST}"


def test_seeding_again_replaces_the_table(postgres: Postgres) -> None:
    before = postgres.psql(DIGEST_SQL)
    postgres.seed(17)
    assert postgres.psql("SELECT min(id), max(id), count(*) FROM contacts") == "1|17|17"
    postgres.seed(ROWS)
    assert postgres.psql(DIGEST_SQL) == before


def test_the_table_stays_as_it_was_seeded(postgres: Postgres) -> None:
    assert (
        postgres.psql(
            "SELECT pg_get_userbyid(relowner), reltuples, reloptions FROM pg_class WHERE relname = 'contacts'"
        )
        == f"app|{ROWS}|{{autovacuum_enabled=off}}"
    )


def test_etags_are_md5_of_the_vcards(contacts: dict[int, tuple[str, bytes]]) -> None:
    assert sorted(contacts) == list(range(1, ROWS + 1))
    for etag, vcard in contacts.values():
        assert etag == hashlib.md5(vcard).hexdigest()


def test_every_vcard_is_well_formed(contacts: dict[int, tuple[str, bytes]]) -> None:
    assert len({vcard for _etag, vcard in contacts.values()}) == ROWS
    for number, (_etag, vcard) in contacts.items():
        assert 400 <= len(vcard) <= 600, (number, len(vcard))
        assert vcard.endswith(b"\r\n")
        lines = vcard.removesuffix(b"\r\n").split(b"\r\n")
        assert not any(b"\n" in line or b"\r" in line for line in lines), number
        assert max(map(len, lines)) <= 75, (number, lines)
        text = [line.decode() for line in lines]
        assert text[0] == "BEGIN:VCARD"
        assert text[1] == f"VERSION:{'3.0' if number % 2 else '4.0'}"
        assert text[-1] == "END:VCARD"
        properties = [line.split(":", 1) for line in text]
        names = [name.split(";")[0] for name, _ in properties]
        assert {"UID", "FN", "N", "EMAIL", "TEL", "ADR", "REV"} <= set(names)
        fields = dict(zip(names, (value for _, value in properties), strict=True))
        assert fields["N"].count(";") == 4, number
        assert fields["ADR"].count(";") == 6, number
        assert all(fields.values()), (number, fields)
