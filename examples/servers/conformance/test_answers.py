"""Both servers give the same answers, byte for byte, with the contents of the table."""

import hashlib
import random
import uuid

import pytest

from conftest import ROWS
from harness import Server
from postgres import Postgres
from program import Answer, ask, same

Contacts = dict[int, tuple[str, bytes]]
KEY = "00000006-1234-4abc-8def-0123456789ab"


def number_of(key: str) -> int:
    return 1 + int(key[:8], 16) % ROWS


def test_two_hundred_random_contacts(servers: dict[str, Server], contacts: Contacts) -> None:
    chance = random.Random(20260101)
    connections = {name: server.connection() for name, server in servers.items()}
    bodies = set()
    for _ in range(200):
        key = str(uuid.UUID(int=chance.getrandbits(128), version=4))
        answers = {name: ask(one, f"/contacts/{key}").undated() for name, one in connections.items()}
        assert answers["rust"] == answers["python"]
        etag, vcard = contacts[number_of(key)]
        assert answers["rust"] == Answer(
            200,
            [
                ("content-length", str(len(vcard))),
                ("content-type", "text/vcard; charset=utf-8"),
                ("etag", f'"{etag}"'),
            ],
            vcard,
        )
        assert etag == hashlib.md5(vcard).hexdigest()
        bodies.add(vcard)
    assert len(bodies) > 190, "the keys must be spread over the rows"


@pytest.mark.parametrize(
    ("key", "number"),
    [
        ("00000000-0000-4000-8000-000000000000", 1),
        ("0000270f-0000-4000-8000-000000000000", ROWS),
        ("00002710-0000-4000-8000-000000000000", 1),
        ("FFFFFFFF-FFFF-4FFF-BFFF-FFFFFFFFFFFF", 1 + 0xFFFFFFFF % ROWS),
    ],
)
def test_first_and_last_rows(servers: dict[str, Server], contacts: Contacts, key: str, number: int) -> None:
    etag, _vcard = contacts[number]
    assert same(servers, f"/contacts/{key}").header("etag") == f'"{etag}"'


@pytest.mark.parametrize("path", [f"/contacts/{KEY}", "/healthz", "/contacts/none", "/none"])
def test_head_is_get_without_a_body(servers: dict[str, Server], path: str) -> None:
    get, head = same(servers, path), same(servers, path, "HEAD")
    assert get.body
    assert head == get._replace(body=b"")


@pytest.mark.parametrize(
    ("if_none_match", "status"),
    [
        ("{etag}", 304),
        ("W/{etag}", 304),
        ("*", 304),
        (" * ", 304),
        ('"other", {etag}', 304),
        ('"other",W/{etag} ,"more"', 304),
        ('"comma,inside", {etag}', 304),
        ('"other"', 200),
        ("{bare}", 200),
        ('"*"', 200),
        ('"{bare}', 200),
        ('"a"{bare}"b"', 200),
        ("", 200),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_if_none_match(
    servers: dict[str, Server], contacts: Contacts, if_none_match: str, status: int, method: str
) -> None:
    bare, vcard = contacts[number_of(KEY)]
    value = if_none_match.format(etag=f'"{bare}"', bare=bare)
    answer = same(servers, f"/contacts/{KEY}", method, {"If-None-Match": value})
    assert answer.status == status
    assert answer.header("etag") == f'"{bare}"'
    if status == 304:
        # The length that GET would send, or no header (RFC 9110, 8.6).
        assert answer.header("content-length") == (str(len(vcard)) if method == "HEAD" else None)
        assert answer.header("content-type") is None
    assert answer.body == (vcard if (status, method) == (200, "GET") else b"")


@pytest.mark.parametrize(
    "key",
    [
        "",
        "42",
        "none",
        KEY[:-1],
        KEY + "0",
        KEY + "/",
        KEY.replace("-", ""),
        KEY.replace("a", "g"),
        "+" + KEY[1:],
        "%7B" + KEY + "%7D",
        "urn:uuid:" + KEY,
        KEY[:-1] + "%0A",
        KEY + "%0A",
        "a%0Ab",
        KEY.replace("0", "%D9%A0"),
        "%ff%fe",
        "a%2Fb",
        "a/b",
    ],
)
def test_a_key_that_is_no_uuid_is_refused(servers: dict[str, Server], key: str) -> None:
    answer = same(servers, f"/contacts/{key}")
    assert answer.status == 400
    assert answer.header("content-type") == "text/plain; charset=utf-8"
    assert b"UUID" in answer.body


def test_a_percent_encoded_uuid_is_the_same_key(servers: dict[str, Server]) -> None:
    assert same(servers, f"/contacts/%30{KEY[1:]}") == same(servers, f"/contacts/{KEY}")


def test_a_query_string_changes_nothing(servers: dict[str, Server]) -> None:
    assert same(servers, f"/contacts/{KEY}?a=b") == same(servers, f"/contacts/{KEY}")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
@pytest.mark.parametrize("path", [f"/contacts/{KEY}", "/contacts/none", "/healthz"])
def test_other_methods_are_refused(servers: dict[str, Server], method: str, path: str) -> None:
    answer = same(servers, path, method)
    assert answer.status == 405
    assert answer.header("allow") == "GET, HEAD"


@pytest.mark.parametrize("path", ["/", "/contacts", "/healthz/", "/Contacts/" + KEY, "/metrics"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_paths_are_not_found(servers: dict[str, Server], path: str, method: str) -> None:
    answer = same(servers, path, method)
    assert (answer.status, answer.header("content-type")) == (404, "text/plain; charset=utf-8")


def test_health(servers: dict[str, Server]) -> None:
    answer = same(servers, "/healthz")
    assert (answer.status, answer.body) == (200, b"ok\n")


def test_a_row_that_is_gone_is_not_found(servers: dict[str, Server], postgres: Postgres) -> None:
    number = number_of(KEY)
    saved = f"CREATE TABLE saved AS SELECT * FROM contacts WHERE id = {number};"
    postgres.psql(f"{saved} DELETE FROM contacts WHERE id = {number}")
    try:
        assert same(servers, f"/contacts/{KEY}").status == 404
    finally:
        postgres.psql("INSERT INTO contacts SELECT * FROM saved; DROP TABLE saved")
    assert same(servers, f"/contacts/{KEY}").status == 200
