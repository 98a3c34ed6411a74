"""Both balancers pass on requests and answers in the same way, spread them evenly, and count them."""

import concurrent.futures
import http.client
import socket
import time
from typing import Any

import pytest

from conftest import Group, Start
from harness import MAXIMUM_BODY_BYTES, Reply, Seen, Server, fine, hold, hosts_of, response
from program import Answer, ask, free_port, same, wait_until

Pair = dict[str, Group]


def balancers(balanced: Pair) -> dict[str, Server]:
    return {name: one.balancer for name, one in balanced.items()}


def passed(balanced: Pair, *request: Any) -> tuple[Seen, Answer]:
    """The request that both backends receive for this request, and the answer of both balancers."""
    for one in balanced.values():
        one.backends[0].seen.clear()
        one.backends[0].reply = fine
    # Each balancer adds a date, because the backend sends none. The dates may differ by a second.
    answers = {name: one.balancer.ask(*request).undated() for name, one in balanced.items()}
    assert answers["rust"] == answers["go"]
    seen = {}
    for name, one in balanced.items():
        [got] = one.backends[0].seen
        seen[name] = got._replace(connection=0)
    assert seen["rust"] == seen["go"]
    return seen["rust"], answers["rust"]


def replied(balanced: Pair, reply: Reply, method: str = "GET") -> Answer:
    """The answer of both balancers to a backend's reply, with every header."""
    answers = []
    for one in balanced.values():
        one.backends[0].reply = reply
        answers.append(one.balancer.ask("/", method))
    first, second = answers
    assert first == second
    return first


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"])
@pytest.mark.parametrize("body", [None, b"", b"body"])
def test_method_and_body_are_passed_on(balanced: Pair, method: str, body: bytes | None) -> None:
    host = {"Host": "balancer"}
    seen, answer = passed(balanced, "/streamdata", method, host, body)
    assert (seen.method, seen.target, seen.body) == (method, "/streamdata", body or b"")
    assert (answer.status, answer.body) == (200, b"fine")


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/a/b?c=d&e=%20f;g",
        "/?",
        "/?a?b",
        "//a//b/../c",
        "/%2F%41%7e",
        "/a+b,c:d@e!f'(*)?c+d",
        "/a%00b%FF",
    ],
)
def test_path_and_query_are_passed_on(balanced: Pair, target: str) -> None:
    seen, _ = passed(balanced, target, "GET", {"Host": "balancer"})
    assert seen.target == target


def test_end_to_end_headers_are_passed_on_and_no_others_are_added(balanced: Pair) -> None:
    sent = {
        "Host": "balancer",
        "Accept-Encoding": "br",
        "Authorization": "Bearer token",
        "Content-Length": "2",
        "Content-Type": "application/json",
        "Cookie": "a=b",
        "X-Forwarded-For": "192.0.2.1",
        "X-Own": "1, 2",
    }
    seen, _ = passed(balanced, "/", "POST", sent, b"{}")
    assert seen.headers == sorted((name.lower(), value) for name, value in sent.items())


def test_a_header_that_is_there_twice_is_passed_on_twice(balanced: Pair) -> None:
    for one in balanced.values():
        one.backends[0].seen.clear()
        connection = one.balancer.connection()
        connection.putrequest("GET", "/", skip_accept_encoding=True)
        for value in ("first", "second"):
            connection.putheader("X-Twice", value)
        connection.endheaders()
        connection.getresponse().read()
        connection.close()
        [seen] = one.backends[0].seen
        assert [value for name, value in seen.headers if name == "x-twice"] == ["first", "second"]


def test_hop_by_hop_headers_of_a_request_end_at_the_balancer(balanced: Pair) -> None:
    sent = {
        "Host": "balancer",
        "Accept-Encoding": "br",
        "Connection": "X-One, upgrade ,x-two",
        "X-One": "1",
        "X-Two": "2",
        "X-Three": "3",
        "Keep-Alive": "timeout=5",
        "Proxy-Connection": "keep-alive",
        "Proxy-Authorization": "Basic YTpi",
        "TE": "trailers",
        "Trailer": "X-Four",
        "Upgrade": "websocket",
    }
    seen, _ = passed(balanced, "/", "GET", sent)
    assert seen.headers == [("accept-encoding", "br"), ("host", "balancer"), ("x-three", "3")]


def test_hop_by_hop_headers_of_an_answer_end_at_the_balancer(balanced: Pair) -> None:
    headers = ["Connection: x-one", "X-One: 1", "Keep-Alive: timeout=5", "Upgrade: h2c", "Trailer: X-Four"]
    headers += ["Proxy-Authenticate: Basic", "X-Three: 3", "Date: today", "Content-Length: 0"]
    answer = replied(balanced, lambda _: response("200 OK", *headers))
    assert answer.headers == [("content-length", "0"), ("date", "today"), ("x-three", "3")]


def test_a_body_in_chunks_is_passed_on_with_its_length(balanced: Pair) -> None:
    headers = {"Host": "balancer", "Accept-Encoding": "br", "Transfer-Encoding": "chunked"}
    seen, _ = passed(balanced, "/", "POST", headers, b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert seen.body == b"abcde"
    assert seen.headers == [("accept-encoding", "br"), ("content-length", "5"), ("host", "balancer")]


def test_a_body_after_100_continue_is_passed_on(balanced: Pair) -> None:
    for one in balanced.values():
        one.backends[0].seen.clear()
        with socket.create_connection((one.balancer.host, one.balancer.port), timeout=5) as client:
            client.sendall(b"POST / HTTP/1.1\r\nHost: b\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
            client.sendall(b"{}")
            assert client.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
        [seen] = one.backends[0].seen
        assert (seen.body, seen.headers) == (b"{}", [("content-length", "2"), ("host", "b")])


@pytest.mark.parametrize(
    "status", ["200 OK", "201 Created", "301 Moved", "404 Nowhere", "503 Later", "599 Odd"]
)
def test_status_headers_and_body_of_an_answer_are_passed_on(balanced: Pair, status: str) -> None:
    headers = ["Content-Type: text/x", "Set-Cookie: a=b", "Set-Cookie: c=d", "Location: /x", 'ETag: "e"']
    whole = response(status, *headers, "Date: today", "Content-Length: 4", body=b"body")
    answer = replied(balanced, lambda _: whole)
    assert (answer.status, answer.body) == (int(status[:3]), b"body")
    assert answer.headers == [
        ("content-length", "4"),
        ("content-type", "text/x"),
        ("date", "today"),
        ("etag", '"e"'),
        ("location", "/x"),
        ("set-cookie", "a=b"),
        ("set-cookie", "c=d"),
    ]


def test_nothing_is_guessed_about_an_answer(balanced: Pair) -> None:
    answer = replied(
        balanced, lambda _: response("200 OK", "Date: today", "Content-Length: 6", body=b"<html>")
    )
    assert answer.headers == [("content-length", "6"), ("date", "today")]
    for status in ("204 No Content", "304 Not Modified"):
        answer = replied(balanced, lambda _, status=status: response(status, "Date: today"))  # type: ignore[misc]
        assert (answer.headers, answer.body) == ([("date", "today")], b"")


def test_the_length_of_an_answer_to_head_is_passed_on(balanced: Pair) -> None:
    answer = replied(balanced, lambda _: response("200 OK", "Date: today", "Content-Length: 1234"), "HEAD")
    assert (answer.headers, answer.body) == ([("content-length", "1234"), ("date", "today")], b"")
    answer = replied(balanced, lambda _: response("200 OK", "Date: today"), "HEAD")
    assert answer.header("content-length") is None


@pytest.mark.parametrize("size", [0, 1, 200_000, 3_000_000])
def test_long_answers_are_passed_on(balanced: Pair, size: int) -> None:
    body = b"0123456789" * (size // 10) + b"x" * (size % 10)
    whole = response("200 OK", "Date: today", f"Content-Length: {size}", body=body)
    assert replied(balanced, lambda _: whole).body == body
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:]) if part)
    whole = response("200 OK", "Date: today", "Transfer-Encoding: chunked", body=chunks + b"0\r\n\r\n")
    answer = replied(balanced, lambda _: whole)
    assert (answer.body, answer.headers) == (body, [("date", "today"), ("transfer-encoding", "chunked")])
    # Without a length, the end of the connection is the end of the answer.
    whole = response("200 OK", "Date: today", "Connection: close", body=body)
    answer = replied(balanced, lambda _: whole)
    assert (answer.body, answer.headers) == (body, [("date", "today"), ("transfer-encoding", "chunked")])


def test_a_target_that_is_no_path_is_refused(balanced: Pair) -> None:
    answer = same(balancers(balanced), "*", "OPTIONS")
    assert (answer.status, answer.error()) == (400, "the target is not a path")


def test_a_body_may_have_64_kib(balanced: Pair) -> None:
    assert passed(balanced, "/", "POST", {"Host": "b"}, bytes(MAXIMUM_BODY_BYTES))[1].status == 200
    for one in balanced.values():
        one.backends[0].seen.clear()
    answer = same(balancers(balanced), "/", "POST", None, bytes(MAXIMUM_BODY_BYTES + 1))
    assert (answer.status, answer.header("connection")) == (413, "close")
    assert answer.error() == "the body is larger than 65536 bytes"
    assert [one.backends[0].seen for one in balanced.values()] == [[], []]


def test_only_get_of_its_own_paths_is_the_balancers(balanced: Pair) -> None:
    answer = same(balancers(balanced), "/healthz?deep")
    assert (answer.status, answer.body, answer.header("content-type")) == (
        200,
        b"ok",
        "text/plain; charset=utf-8",
    )
    for path in ("/stats", "/stats/", "/healthz/"):
        assert passed(balanced, path, "POST", {"Host": "b"}, b"{}")[0].target == path
    assert passed(balanced, "/stats", "HEAD", {"Host": "b"})[0].method == "HEAD"


def test_requests_are_spread_evenly_over_kept_connections(four: Group) -> None:
    connection = four.balancer.connection()
    for _ in range(40):
        assert ask(connection, "/streamdata", "POST", None, b"{}").status == 200
    connection.close()
    assert four.counts() == [10] * 4
    assert [backend.connections() for backend in four.backends] == [1] * 4


def test_many_clients_are_spread_evenly(four: Group) -> None:
    clients = 16

    def client(_: int) -> set[int]:
        connection = four.balancer.connection()
        statuses = {ask(connection, "/", "POST", None, b"{}").status for _ in range(50)}
        connection.close()
        return statuses

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        assert set().union(*pool.map(client, range(clients))) == {200}
    assert four.counts() == [clients * 50 // 4] * 4
    assert sum(backend.connections() for backend in four.backends) <= 2 * clients


def test_stats_count_what_was_done(four: Group) -> None:
    before = four.balancer.stats()
    idle = {"requests": 0, "current": 0, "failures": 0, "healthy": True}
    addresses = [backend.address for backend in four.backends]
    assert before == {
        "requests": 0,
        "current": 0,
        "failed": 0,
        "bytesReceived": 0,
        "bytesSent": 0,
        "backends": dict.fromkeys(addresses, idle),
    }
    assert list(before["backends"]) == addresses
    for _ in range(6):
        four.balancer.ask("/", "POST", None, b"123")
    assert four.balancer.ask("/", "POST", None, bytes(MAXIMUM_BODY_BYTES + 1)).status == 413
    assert four.balancer.stats() == {
        "requests": 7,
        "current": 0,
        "failed": 1,
        "bytesReceived": 6 * len(b"123"),
        "bytesSent": 6 * len(b"fine"),
        "backends": {
            address: idle | {"requests": count}
            for address, count in zip(addresses, [2, 2, 1, 1], strict=True)
        },
    }


def test_stats_have_what_is_under_way(four: Group) -> None:
    go = hold(four.backends)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = [pool.submit(four.balancer.ask, "/") for _ in range(5)]
        wait_until(lambda: sum(four.counts()) == 5, "all are under way")
        stats = four.balancer.ask("/stats").json()
        go.set()
    assert {answer.result().status for answer in waiting} == {200}
    assert (stats["requests"], stats["current"], stats["failed"]) == (5, 5, 0)
    assert [backend["current"] for backend in stats["backends"].values()] == [2, 1, 1, 1]
    assert {backend["current"] for backend in four.balancer.stats()["backends"].values()} == {0}


def test_if_a_backend_is_down_the_next_one_answers(four: Group) -> None:
    """Even before a health check finds that the backend is down."""
    four.backends[1].stop()
    for _ in range(24):
        assert four.balancer.ask("/", "POST", None, b"{}").status == 200
    assert four.counts()[1] == 0
    four.balancer.wait_healthy(3)
    stats = four.balancer.stats()
    assert (stats["requests"], stats["failed"]) == (24, 0)
    assert stats["backends"][four.backends[1].address]["healthy"] is False
    assert four.balancer.ask("/healthz").status == 200
    # After the check, the balancer does not try this backend, and spreads its share over the others.
    for backend in four.backends:
        backend.seen.clear()
    for _ in range(30):
        assert four.balancer.ask("/", "POST", None, b"{}").status == 200
    assert four.counts() == [10, 0, 10, 10]
    four.backends[1].start()
    four.balancer.wait_healthy(4)
    for _ in range(20):
        assert four.balancer.ask("/", "POST", None, b"{}").status == 200
    assert four.counts() == [15, 5, 15, 15]


def test_if_all_backends_are_down_the_balancer_answers_502(four: Group) -> None:
    for backend in four.backends:
        backend.stop()
    answer = four.balancer.ask("/", "POST", None, b"{}")
    assert (answer.status, answer.error()) == (502, "no backend answers")
    four.balancer.wait_healthy(0)
    health = four.balancer.ask("/healthz")
    assert (health.status, health.error()) == (503, "no backend is healthy")
    answer = four.balancer.ask("/", "POST", None, b"{}")
    assert (answer.status, answer.body) == (502, b'{"error":"no backend answers"}')
    stats = four.balancer.stats()
    assert (stats["requests"], stats["failed"], stats["bytesSent"]) == (2, 2, 0)
    assert [backend["failures"] for backend in stats["backends"].values()] == [2] * 4
    four.backends[2].start()
    wait_until(lambda: four.balancer.ask("/healthz").status == 200, "one is healthy again")
    assert four.balancer.ask("/").status == 200


def test_a_backend_that_says_it_is_not_healthy_comes_last(four: Group) -> None:
    for backend in four.backends:
        # A request on a connection that has just ended would break off.
        backend.reply = lambda _: response("200 OK", "Content-Length: 0", "Connection: close")
    for backend in four.backends[:2]:
        backend.health = "503 Later"
    four.balancer.wait_healthy(2)
    for _ in range(10):
        assert four.balancer.ask("/").status == 200
    assert four.counts() == [0, 0, 5, 5]
    # An unhealthy backend is better than none.
    for backend in four.backends[2:]:
        backend.stop()
    assert four.balancer.ask("/").status == 200
    assert sum(four.counts()[:2]) == 1


def test_a_request_that_may_have_been_taken_is_not_sent_twice(four: Group) -> None:
    for backend in four.backends:
        backend.reply = lambda _: None
    answer = four.balancer.ask("/", "POST", None, b"{}")
    assert (answer.status, answer.error()) == (502, "the backend broke off")
    assert sum(four.counts()) == 1
    stats = four.balancer.stats()
    assert (stats["requests"], stats["failed"]) == (1, 1)
    assert sum(backend["failures"] for backend in stats["backends"].values()) == 1


def test_an_answer_that_breaks_off_is_not_taken_for_whole(four: Group) -> None:
    for backend in four.backends:
        backend.reply = lambda _: response("200 OK", "Content-Length: 9", "Connection: close", body=b"half")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        four.balancer.ask("/")
    stats = four.balancer.stats()
    assert (stats["requests"], stats["failed"], stats["bytesSent"]) == (1, 1, 4)
    assert sum(backend["failures"] for backend in stats["backends"].values()) == 1


def test_a_client_that_goes_away_is_not_a_failure(four: Group) -> None:
    go = hold(four.backends)
    with socket.create_connection((four.balancer.host, four.balancer.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: b\r\n\r\n")
        wait_until(lambda: sum(four.counts()) == 1, "the request is under way")
    stats = four.balancer.stats()
    go.set()
    assert (stats["requests"], stats["failed"]) == (1, 0)
    assert [backend["current"] for backend in stats["backends"].values()] == [0] * 4
    assert [backend["failures"] for backend in stats["backends"].values()] == [0] * 4


def test_a_part_of_an_answer_is_passed_on_when_it_comes(four: Group) -> None:
    """An answer of unknown length may have long pauses."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"
    for backend in four.backends:
        backend.reply = lambda _: head
    connection = four.balancer.connection()
    connection.request("GET", "/")
    assert connection.getresponse().read1(100) == b"first"
    connection.close()


def test_names_are_resolved(name: str, start: Start) -> None:
    port = free_port()
    service = start(name, "serve", PORT=str(port))
    balancer = start(name, "balance", SERVICE_HOST="localhost", SERVICE_PORT=str(port)).wait_ready()
    assert list(balancer.ask("/stats").json()["backends"]) == [f"127.0.0.1:{port}"]
    service.end()
    balancer.end()


def test_a_name_that_is_unknown_has_no_backends(name: str, start: Start) -> None:
    balancer = start(name, "balance", SERVICE_HOST="none.invalid", SERVICE_PORT="80")
    wait_until(lambda: "cannot resolve none.invalid" in balancer.text(), "it says so")
    assert balancer.ask("/healthz").status == 503
    assert balancer.ask("/").error() == "no backend answers"
    assert balancer.stats()["backends"] == {}
    time.sleep(2.5)
    assert balancer.text().count("cannot resolve") == 1
    balancer.end()


@pytest.mark.parametrize("behind", ["rust", "go"])
def test_services_answer_through_a_balancer(name: str, behind: str, start: Start) -> None:
    """As in the example: four pods of the service behind one balancer."""
    hosts = hosts_of(4)
    port = str(free_port(hosts))
    services = [start(behind, "serve", LISTEN_ADDRESS=host, PORT=port) for host in hosts]
    balancer = start(name, "balance", SERVICE_HOST=",".join(hosts), SERVICE_PORT=port).wait_ready()
    balancer.wait_healthy(4)
    payload = b'{"name":"n","deviceId":"d","patientId":"p","data":[]}'
    connection = balancer.connection()
    for _ in range(40):
        answer = ask(connection, "/streamdata", "POST", {"Content-Type": "application/json"}, payload)
        assert (answer.status, answer.body) == (200, b'{"status":"OK","deviceId":"d","readings":0}')
    assert ask(connection, "/streamdata", "POST", None, b"{").error().startswith("not a payload: ")
    assert ask(connection, "/streamdata").header("allow") == "POST"
    connection.close()
    for service in services:
        assert service.ask("/streamdata/d").body == payload
    stats = balancer.stats()
    assert (stats["requests"], stats["failed"]) == (42, 0)
    assert sorted(backend["requests"] for backend in stats["backends"].values()) == [10, 10, 11, 11]
    for server in (balancer, *services):
        server.terminate()
    for server in (balancer, *services):
        assert server.process.wait(timeout=5) == 0
