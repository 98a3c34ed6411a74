"""Both services give the same answers, with the payloads that they received."""

import copy
import json
import socket
from typing import Any

import pytest

from harness import MAXIMUM_BODY_BYTES, Server
from program import ask, same

PAYLOAD: dict[str, Any] = {
    "name": "name123444",
    "deviceId": "id123444",
    "patientId": "patient123444",
    "data": [
        {
            "hr": 68,
            "bps": 120,
            "bpd": 80,
            "spo2": 97,
            "custom": {"tp": 37.5, "rr": 14, "etc": "<none> & “more”"},
            "date": "2026-01-01T10:00:00Z",
        }
    ],
}
DEVICES = 10_000


def text(payload: Any) -> str:
    return json.dumps(payload, separators=(",", ":"), ensure_ascii=False)


def changed(path: str, value: Any) -> dict[str, Any]:
    """The payload with one field, named by its path, replaced; ``...`` removes the field."""
    payload = copy.deepcopy(PAYLOAD)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = payload
    for part in parents:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return payload


def post(servers: dict[str, Server], body: str | bytes) -> Any:
    return same(servers, "/streamdata", "POST", {"Content-Type": "application/json"}, body)


def test_a_payload_is_taken_and_given_back(services: dict[str, Server]) -> None:
    answer = post(services, text(PAYLOAD))
    assert (answer.status, answer.body) == (200, b'{"status":"OK","deviceId":"id123444","readings":1}')
    assert answer.headers == [("content-length", "50"), ("content-type", "application/json")]
    kept = same(services, "/streamdata/id123444")
    assert (kept.status, kept.body) == (200, text(PAYLOAD).encode())


def test_the_last_payload_of_a_device_is_kept(services: dict[str, Server]) -> None:
    post(services, text(PAYLOAD))
    last = changed("data", PAYLOAD["data"] * 3)
    assert post(services, text(last)).json()["readings"] == 3
    post(services, text(changed("deviceId", "another")))
    assert same(services, "/streamdata/id123444").json() == last


def test_there_may_be_no_readings(services: dict[str, Server]) -> None:
    assert post(services, text(changed("data", []))).json()["readings"] == 0
    assert same(services, "/streamdata/id123444").json()["data"] == []


@pytest.mark.parametrize("number", ["36", "36.0", "-0.5", "3.65e1", "0.00001234", "1e15"])
def test_numbers_come_back_as_they_were(services: dict[str, Server], number: str) -> None:
    payload = text(PAYLOAD).replace("37.5", number)
    assert post(services, payload).status == 200
    assert same(services, "/streamdata/id123444").json() == json.loads(payload)


@pytest.mark.parametrize("device", ["a b", "a/b", "ä", "%", "..", "a+b", "?#"])
def test_any_device_is_found_by_its_name(services: dict[str, Server], device: str) -> None:
    sent = changed("deviceId", device)
    assert post(services, text(sent)).json()["deviceId"] == device
    encoded = "".join(f"%{byte:02X}" for byte in device.encode())
    assert same(services, f"/streamdata/{encoded}").json() == sent


@pytest.mark.parametrize("path", ["more", "data.0.more", "data.0.custom.more"])
def test_unknown_fields_are_ignored(services: dict[str, Server], path: str) -> None:
    assert post(services, text(changed(path, {"a": [None, True, 1.5]}))).status == 200
    assert same(services, "/streamdata/id123444").json() == PAYLOAD


FIELDS = [
    *["name", "deviceId", "patientId", "data", "data.0.hr", "data.0.bps", "data.0.bpd", "data.0.spo2"],
    *["data.0.custom", "data.0.custom.tp", "data.0.custom.rr", "data.0.custom.etc", "data.0.date"],
]


@pytest.mark.parametrize("path", FIELDS)
@pytest.mark.parametrize("value", [..., None, True, {"a": 1}, [1]])
def test_a_field_that_is_missing_or_wrong_is_refused(
    services: dict[str, Server], path: str, value: Any
) -> None:
    for server in services.values():
        answer = server.ask("/streamdata", "POST", None, text(changed(path, value)))
        assert answer.status == 400
        assert answer.error().startswith("not a payload: ")
        if value is ...:
            assert f"missing field `{path.split('.')[-1]}`" in answer.error()


@pytest.mark.parametrize("path", [path for path in FIELDS if path[-2:] in ("hr", "ps", "pd", "o2", "rr")])
@pytest.mark.parametrize("value", [1.5, "1", 2**63, -(2**63) - 1])
def test_a_value_that_is_no_integer_is_refused(services: dict[str, Server], path: str, value: Any) -> None:
    for server in services.values():
        assert server.ask("/streamdata", "POST", None, text(changed(path, value))).status == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"hr=68",
        text(PAYLOAD).encode()[:-1],
        text(PAYLOAD).encode() + b"}",
        text(PAYLOAD).encode() * 2,
        text(PAYLOAD).replace("37.5", "NaN").encode(),
        text(PAYLOAD).replace("37.5", "1e400").encode(),
        text(PAYLOAD).replace(":68", ":068").encode(),
        text(PAYLOAD).replace("name123444", "line\nbreak").encode(),
        text(PAYLOAD).encode().replace(b"name123444", b"\xff"),
        text(PAYLOAD).encode("utf-16"),
        text(changed("deviceId", "")).encode(),
    ],
)
def test_a_body_that_is_no_payload_is_refused(services: dict[str, Server], body: bytes) -> None:
    for server in services.values():
        answer = server.ask("/streamdata", "POST", None, body)
        assert answer.status == 400
        assert answer.error().startswith("not a payload: ")


def sized(size: int) -> bytes:
    """A payload with this size in bytes."""
    return text(changed("name", "n" * (size - len(text(changed("name", "")).encode())))).encode()


def test_a_body_may_have_64_kib(services: dict[str, Server]) -> None:
    assert post(services, sized(MAXIMUM_BODY_BYTES)).status == 200
    for size in (MAXIMUM_BODY_BYTES + 1, 3 * MAXIMUM_BODY_BYTES):
        answer = post(services, sized(size))
        assert (answer.status, answer.header("connection")) == (413, "close")
        assert answer.error() == "the body is larger than 65536 bytes"


@pytest.mark.parametrize(("size", "status"), [(MAXIMUM_BODY_BYTES, 200), (MAXIMUM_BODY_BYTES + 1, 413)])
def test_a_body_may_come_in_chunks(services: dict[str, Server], size: int, status: int) -> None:
    body = sized(size)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:1000], body[1000:]))
    answer = same(services, "/streamdata", "POST", {"Transfer-Encoding": "chunked"}, chunks + b"0\r\n\r\n")
    assert answer.status == status


def test_expect_100_continue_is_answered(services: dict[str, Server]) -> None:
    head = "POST /streamdata HTTP/1.1\r\nHost: s\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n"
    for server in services.values():
        for size, expected in ((500, b"HTTP/1.1 100 "), (MAXIMUM_BODY_BYTES + 1, b"HTTP/1.1 413 ")):
            with socket.create_connection((server.host, server.port), timeout=5) as client:
                client.sendall(head.format(size).encode())
                assert client.recv(len(expected)) == expected


@pytest.mark.parametrize(
    ("path", "allow"),
    [("/streamdata", "POST"), ("/streamdata/id123444", "GET, HEAD"), ("/healthz", "GET, HEAD")],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"])
def test_other_methods_are_refused(services: dict[str, Server], path: str, allow: str, method: str) -> None:
    if method in allow.split(", "):
        return
    answer = same(services, path, method)
    assert (answer.status, answer.header("allow")) == (405, allow)
    if method != "HEAD":
        assert answer.error() == f"only {allow} is served here"


@pytest.mark.parametrize(
    "path",
    ["/", "/streamdata/", "/streamdata/a/b", "/Streamdata", "//streamdata", "/healthz/", "/stats", "*"],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_other_paths_are_not_found(services: dict[str, Server], path: str, method: str) -> None:
    answer = same(services, path, method)
    assert answer.status == 404
    assert answer.error() == "there is nothing at this path"


@pytest.mark.parametrize("device", ["none", "ID123444", "%FF", "id123444%20"])
def test_a_device_that_sent_nothing_is_not_found(services: dict[str, Server], device: str) -> None:
    answer = same(services, f"/streamdata/{device}")
    assert answer.status == 404
    assert answer.error() == "nothing is kept of this device"


def test_a_query_string_changes_nothing(services: dict[str, Server]) -> None:
    assert same(services, "/streamdata?a=b;c", "POST", None, text(PAYLOAD)).status == 200
    assert same(services, "/streamdata/id123444?a=b").json() == PAYLOAD


@pytest.mark.parametrize("path", ["/healthz", "/streamdata/id123444", "/streamdata/none", "/none"])
def test_head_is_get_without_a_body(services: dict[str, Server], path: str) -> None:
    post(services, text(PAYLOAD))
    get, head = same(services, path), same(services, path, "HEAD")
    assert get.body
    assert head == get._replace(body=b"")


def test_health(services: dict[str, Server]) -> None:
    answer = same(services, "/healthz")
    assert (answer.status, answer.body) == (200, b"ok")


def test_a_connection_is_kept(services: dict[str, Server]) -> None:
    for server in services.values():
        connection = server.connection()
        connection.connect()
        first = connection.sock
        for path, method, body in (
            ("/streamdata", "POST", text(PAYLOAD)),
            ("/streamdata", "POST", "{"),
            ("/streamdata", "DELETE", None),
            ("/none", "POST", text(PAYLOAD)),
            ("/healthz", "GET", None),
        ):
            ask(connection, path, method, None, body)
            assert connection.sock is first
        connection.close()


def test_no_more_than_ten_thousand_devices_are_kept(fresh: Server) -> None:
    statuses = []
    with socket.create_connection((fresh.host, fresh.port), timeout=20) as client:
        stream = client.makefile("rb")
        for begin in range(0, DEVICES + 1, 100):
            numbers = range(begin, min(begin + 100, DEVICES + 1))
            bodies = [text(changed("deviceId", f"device-{number}")).encode() for number in numbers]
            head = b"POST /streamdata HTTP/1.1\r\nHost: s\r\nContent-Length: %d\r\n\r\n"
            client.sendall(b"".join(head % len(body) + body for body in bodies))
            for _ in bodies:
                statuses.append(int(stream.readline().split()[1]))
                length = 0
                while (line := stream.readline().lower().rstrip()) != b"":
                    if line.startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                stream.read(length)
    assert statuses == [200] * DEVICES + [507]
    full = fresh.ask("/streamdata", "POST", None, text(changed("deviceId", "one-more")))
    assert (full.status, full.error()) == (507, "no more devices are kept")
    # Known devices can still send payloads.
    last = changed("deviceId", f"device-{DEVICES - 1}") | {"name": "last"}
    assert fresh.ask("/streamdata", "POST", None, text(last)).status == 200
    assert fresh.ask(f"/streamdata/device-{DEVICES - 1}").json() == last
    assert fresh.ask("/streamdata/one-more").status == 404
