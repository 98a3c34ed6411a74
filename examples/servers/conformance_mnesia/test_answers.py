"""Answers of a member that is alone."""

import concurrent.futures
import json
import re
import socket
import zlib
from typing import Any

import pytest

from conftest import Start
from harness import MAXIMUM_BODY_BYTES, MODES, TRANSACTIONS, Server, text
from program import Answer, ask


def post(server: Server, body: str | bytes) -> Answer:
    return server.ask("/objects", "POST", {"Content-Type": "application/json"}, body)


def test_an_object_is_created_and_given_back(alone: Server) -> None:
    answer = post(alone, text("name", "<any> & “text”"))
    created = answer.json()
    path = f"/objects/{created['id']}"
    assert (answer.status, answer.header("location")) == (201, path)
    assert created == {"id": created["id"], "version": 1, "name": "name", "text": "<any> & “text”"}
    read = alone.ask(path)
    assert (read.status, read.body) == (200, answer.body)


def test_ids_are_128_bits_and_never_the_same(alone: Server) -> None:
    paths = [alone.create() for _ in range(50)]
    assert len(set(paths)) == 50
    assert [path for path in paths if not re.fullmatch(r"/objects/[0-9A-F]{32}", path)] == []


def test_an_object_is_modified(alone: Server) -> None:
    path = alone.create("one", "first")
    for version, name in ((2, "two"), (3, "three")):
        answer = alone.ask(path, "PUT", None, text(name, f"of {name}"))
        modified = {"id": path.split("/")[-1], "version": version, "name": name, "text": f"of {name}"}
        assert (answer.status, answer.json()) == (200, modified)
        assert alone.ask(path).json() == modified


def test_an_object_is_deleted_once(alone: Server) -> None:
    path = alone.create()
    answer = alone.ask(path, "DELETE")
    assert (answer.status, answer.body) == (204, b"")
    for method, body in (("GET", None), ("PUT", text()), ("DELETE", None)):
        gone = alone.ask(path, method, None, body)
        assert (gone.status, gone.error()) == (404, "there is no such object")


def test_browsing_returns_the_requested_number(fresh: Server) -> None:
    assert fresh.ask("/objects").json() == {"objects": []}
    created = [post(fresh, text(f"name{number}")).json() for number in range(25)]
    for query, count in (
        ("", 10),
        ("?limit=1", 1),
        ("?limit=24", 24),
        ("?a=b&limit=25", 25),
        ("?limit=100", 25),
    ):
        listed = fresh.ask(f"/objects{query}").json()["objects"]
        assert len(listed) == count
        assert len({one["id"] for one in listed}) == count
        assert [one for one in listed if one not in created] == []


@pytest.mark.parametrize("limit", ["0", "101", "-1", "1.5", "ten", "", "+1", "9" * 30])
def test_a_limit_is_a_whole_number(alone: Server, limit: str) -> None:
    answer = alone.ask(f"/objects?limit={limit}")
    assert (answer.status, answer.error()) == (400, "limit must be a whole number from 1 to 100")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "it is not JSON"),
        (b"{", "it is not JSON"),
        (b"name=a&text=b", "it is not JSON"),
        (text().encode() * 2, "it is not JSON"),
        (text().encode().replace(b"name", b"\xff"), "it is not JSON"),
        (text().encode("utf-16"), "it is not JSON"),
        (b'{"name":"line\nbreak","text":""}', "it is not JSON"),
        (b"[]", "it is not a JSON object"),
        (b"null", "it is not a JSON object"),
        (b'"text"', "it is not a JSON object"),
        (b"{}", "missing field `name`"),
        (b'{"text":"b"}', "missing field `name`"),
        (b'{"name":"a"}', "missing field `text`"),
        (b'{"name":null,"text":"b"}', "name is not a string"),
        (b'{"name":"a","text":["b"]}', "text is not a string"),
        (b"[" * MAXIMUM_BODY_BYTES, "it is not JSON"),
    ],
)
def test_a_body_that_is_no_object_is_refused(alone: Server, body: bytes, fault: str) -> None:
    path = alone.create()
    for answer in (post(alone, body), alone.ask(path, "PUT", None, body)):
        assert (answer.status, answer.error()) == (400, f"not an object: {fault}")
    assert alone.ask(path).json()["version"] == 1


def test_unknown_fields_are_ignored_and_the_last_of_two_counts(alone: Server) -> None:
    answer = post(alone, '{"id":"mine","version":7,"name":"a","more":{"b":[1.5]},"text":"","name":"b"}')
    assert answer.status == 201
    assert answer.json() | {"id": ""} == {"id": "", "version": 1, "name": "b", "text": ""}


def sized(size: int) -> bytes:
    """The body of an object with this size in bytes."""
    return text("n", "t" * (size - len(text("n", "")))).encode()


def test_a_body_may_have_64_kib(alone: Server) -> None:
    created = post(alone, sized(MAXIMUM_BODY_BYTES))
    assert created.status == 201
    path = f"/objects/{created.json()['id']}"
    assert alone.ask(path).body == created.body
    for size in (MAXIMUM_BODY_BYTES + 1, 3 * MAXIMUM_BODY_BYTES):
        for answer in (post(alone, sized(size)), alone.ask(path, "PUT", None, sized(size))):
            assert (answer.status, answer.header("connection")) == (413, "close")
            assert answer.error() == "the body is larger than 65536 bytes"


@pytest.mark.parametrize(("size", "status"), [(MAXIMUM_BODY_BYTES, 201), (MAXIMUM_BODY_BYTES + 1, 413)])
def test_a_body_may_come_in_chunks(alone: Server, size: int, status: int) -> None:
    body = sized(size)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:1000], body[1000:]))
    answer = alone.ask("/objects", "POST", {"Transfer-Encoding": "chunked"}, chunks + b"0\r\n\r\n")
    assert answer.status == status


def test_expect_100_continue_is_answered(alone: Server) -> None:
    head = "POST /objects HTTP/1.1\r\nHost: s\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n"
    for size, expected in ((500, b"HTTP/1.1 100 "), (MAXIMUM_BODY_BYTES + 1, b"HTTP/1.1 413 ")):
        with socket.create_connection((alone.host, alone.port), timeout=20) as client:
            client.sendall(head.format(size).encode())
            assert client.recv(len(expected)) == expected


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Content-Length: many", 400),
        ("Content-Length: -1", 400),
        ("Transfer-Encoding: gzip", 501),
        ("Transfer-Encoding: chunked", 400),
    ],
)
def test_a_body_of_unknown_length_is_refused(alone: Server, header: str, status: int) -> None:
    """The server closes the connection, because the rest of the body must not be read as a request."""
    with socket.create_connection((alone.host, alone.port), timeout=20) as client:
        client.sendall(f"POST /objects HTTP/1.1\r\nHost: s\r\n{header}\r\n\r\nno chunk\r\n\r\n".encode())
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while part := client.recv(10_000):
            answer += part
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nConnection: close\r\n" in answer
    assert answer.count(b"HTTP/1.1") == 1


METHODS = {
    "/objects": "GET, HEAD, POST",
    "/objects/0": "GET, HEAD, PUT, DELETE",
    "/mandelbrot": "GET, HEAD",
    "/healthz": "GET, HEAD",
    "/readyz": "GET, HEAD",
    "/stats": "GET, HEAD",
}


@pytest.mark.parametrize("path", METHODS)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"])
def test_other_methods_are_refused(alone: Server, path: str, method: str) -> None:
    allow = METHODS[path]
    if method not in allow.split(", "):
        answer = alone.ask(path, method, None, text())
        assert (answer.status, answer.header("allow")) == (405, allow)
        assert answer.error() == f"only {allow} is served here"


@pytest.mark.parametrize(
    "path", ["/", "/objects/", "/objects/a/b", "/Objects", "//objects", "/healthz/", "*"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_other_paths_are_not_found(alone: Server, path: str, method: str) -> None:
    answer = alone.ask(path, method)
    assert (answer.status, answer.error()) == (404, "there is nothing at this path")


@pytest.mark.parametrize("name", ["0", "a%20b", "%FF", "%", "%2F", "..", "0" * 32])
def test_what_was_not_created_is_not_found(alone: Server, name: str) -> None:
    answer = alone.ask(f"/objects/{name}")
    assert (answer.status, answer.error()) == (404, "there is no such object")


def test_head_is_get_without_a_body(alone: Server) -> None:
    paths = [alone.create(), "/mandelbrot?width=2", "/healthz", "/readyz", "/objects?limit=1", "/objects/0"]
    for path in paths:
        get, head = (alone.ask(path, method) for method in ("GET", "HEAD"))
        assert get.body
        fields = [[one for one in answer.headers if one[0] != "date"] for answer in (get, head)]
        assert (head.status, fields[1], head.body) == (get.status, fields[0], b"")


def test_a_connection_is_kept(alone: Server) -> None:
    path = alone.create()
    connection = alone.connection()
    connection.connect()
    first = connection.sock
    for target, method, body in (
        ("/objects", "POST", text()),
        ("/objects", "POST", "{"),
        (path, "PUT", text()),
        (path, "GET", None),
        (path, "DELETE", None),
        (path, "DELETE", None),
        ("/objects", "PATCH", text()),
        ("/none", "POST", text()),
        ("/healthz", "GET", None),
    ):
        ask(connection, target, method, None, body)
        assert connection.sock is first
    connection.close()


def test_requests_may_follow_each_other_before_they_are_answered(alone: Server) -> None:
    request = f"POST /objects HTTP/1.1\r\nHost: s\r\nContent-Length: {len(text())}\r\n\r\n{text()}".encode()
    with socket.create_connection((alone.host, alone.port), timeout=20) as client:
        client.sendall(request * 20 + b"GET /healthz HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
        answers = b""
        while part := client.recv(10_000):
            answers += part
    assert answers.count(b"HTTP/1.1 201 ") == 20
    assert answers.endswith(b"\r\n\r\nok")


def test_no_more_objects_are_kept_than_the_settings_say(start: Start) -> None:
    server = start(MAX_OBJECTS="3").wait_ready()
    paths = [server.create() for _ in range(3)]
    answer = post(server, text())
    assert (answer.status, answer.error()) == (507, "no more objects are kept")
    assert server.ask(paths[0], "PUT", None, text("changed")).status == 200
    assert server.ask(paths[0], "DELETE").status == 204
    server.create()
    assert server.stats()["objects"] == 3
    server.end()


def mandelbrot(width: int, height: int, iterations: int) -> dict[str, int]:
    """The expected result, by the same arithmetic of doubles."""
    counts = []
    for y in range(height):
        for x in range(width):
            cr, ci = -2.0 + 3.0 * x / width, -1.5 + 3.0 * y / height
            zr = zi = 0.0
            count = 0
            while count < iterations and not zr * zr + zi * zi > 4.0:
                zr, zi, count = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci, count + 1
            counts.append(count)
    checksum = zlib.crc32(b"".join(count.to_bytes(2, "big") for count in counts))
    inside = counts.count(iterations)
    found = {"width": width, "height": height, "iterations": iterations}
    return found | {"inside": inside, "checksum": checksum}


@pytest.mark.parametrize(
    ("query", "size"),
    [
        ("", (64, 64, 100)),
        ("?width=1&height=1&iterations=1", (1, 1, 1)),
        ("?width=31&height=17&iterations=1000", (31, 17, 1000)),
        ("?iterations=2&width=512", (512, 64, 2)),
        ("?height=3", (64, 3, 100)),
    ],
)
def test_the_fractal_is_right(alone: Server, query: str, size: tuple[int, int, int]) -> None:
    answer = alone.ask(f"/mandelbrot{query}")
    assert (answer.status, answer.json()) == (200, mandelbrot(*size))


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("width=513", "width must be a whole number from 1 to 512"),
        ("height=0", "height must be a whole number from 1 to 512"),
        ("iterations=1001", "iterations must be a whole number from 1 to 1000"),
        ("iterations=", "iterations must be a whole number from 1 to 1000"),
    ],
)
def test_a_fractal_has_bounds(alone: Server, query: str, fault: str) -> None:
    answer = alone.ask(f"/mandelbrot?{query}")
    assert (answer.status, answer.error()) == (400, fault)


def test_health_and_readiness(alone: Server) -> None:
    for path in ("/healthz", "/readyz"):
        answer = alone.ask(path)
        assert (answer.status, answer.body) == (200, b"ok")


def test_operations_are_counted(fresh: Server) -> None:
    kept, deleted = fresh.create(), fresh.create()
    for target, method, body in (
        ("/objects", "GET", None),
        (kept, "GET", None),
        (kept, "GET", None),
        (kept, "GET", None),
        (kept, "PUT", text()),
        (deleted, "DELETE", None),
        (deleted, "DELETE", None),
        (deleted, "GET", None),
        ("/objects", "POST", "{"),
        ("/mandelbrot?width=1", "GET", None),
    ):
        fresh.ask(target, method, None, body)
    assert fresh.stats() == {
        "mode": "transaction",
        "members": ["127.0.0.1"],
        "objects": 1,
        "operations": {"create": 2, "browse": 1, "read": 3, "modify": 1, "delete": 1},
        "missing": 2,
        "aborted": 0,
        "restarts": 0,
    }


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_supports_all_operations(start: Start, mode: str) -> None:
    """Sequential writers lose nothing in any mode. Simultaneous writers lose nothing in transactions."""
    server = start(MODE=mode).wait_ready()
    assert server.stats()["mode"] == mode
    path = server.create()
    clients, each = (4, 50) if mode in TRANSACTIONS else (1, 50)

    def client(_: int) -> list[Any]:
        connection = server.connection()
        return [json.loads(ask(connection, path, "PUT", None, text()).body)["version"] for _ in range(each)]

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        versions = [version for seen in pool.map(client, range(clients)) for version in seen]
    assert sorted(versions) == list(range(2, clients * each + 2))
    assert server.ask("/objects").json()["objects"] == [server.ask(path).json()]
    assert server.ask(path, "DELETE").status == 204
    assert server.objects() == {}
    server.end()
