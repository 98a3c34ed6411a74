"""Both programs start and end as a container must, in both roles."""

import http.client
import os
import socket
import subprocess
import threading
import time

import pytest

from conftest import Group, Start
from harness import COMMANDS, Seen, Server, fine, hold
from program import end_under_load, end_while_idle, wait_until

PAYLOAD = b'{"name":"n","deviceId":"d","patientId":"p","data":[]}'


@pytest.mark.parametrize(
    ("role", "variables", "message"),
    [
        ("serve", {"PORT": "http"}, 'PORT must be a whole number from 1 to 65535, not "http"'),
        ("serve", {"PORT": "0"}, 'PORT must be a whole number from 1 to 65535, not "0"'),
        ("serve", {"LISTEN_ADDRESS": "here"}, 'LISTEN_ADDRESS must be an IP address, not "here"'),
        ("balance", {}, "SERVICE_HOST is not set: give the host of the service"),
        ("balance", {"SERVICE_HOST": "a"}, "SERVICE_PORT is not set: give the port of the service"),
        (
            "balance",
            {"SERVICE_HOST": "a", "SERVICE_PORT": "b"},
            'SERVICE_PORT must be a whole number from 1 to 65535, not "b"',
        ),
        (
            "balance",
            {"SERVICE_HOST": "a,", "SERVICE_PORT": "80"},
            'SERVICE_HOST must be a host, or hosts separated by commas, not "a,"',
        ),
    ],
)
def test_wrong_settings_end_with_their_name(
    name: str, start: Start, role: str, variables: dict[str, str], message: str
) -> None:
    server = start(name, role, **variables)
    assert server.process.wait(timeout=10) == 1
    assert message in server.text()
    assert len(server.text().splitlines()) == 1


def test_a_port_that_is_taken_ends_the_server(name: str, start: Start, services: dict[str, Server]) -> None:
    server = start(name, "serve", PORT=str(services[name].port))
    assert server.process.wait(timeout=10) == 1
    assert "in use" in server.text()


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["balance", "--help"]])
def test_help_names_the_settings(name: str, arguments: list[str]) -> None:
    done = subprocess.run([COMMANDS[name], *arguments], capture_output=True, check=True, timeout=10)
    words = ["serve", "balance"] if arguments[0] == "--help" else ["PORT", "LISTEN_ADDRESS"]
    words += ["SERVICE_HOST", "SERVICE_PORT"] if arguments[0] == "balance" else []
    assert [word for word in words if word not in done.stdout.decode()] == []
    assert done.stderr == b""


@pytest.mark.parametrize("arguments", [[], ["other"], ["serve", "balance"]])
def test_an_unknown_role_is_refused(name: str, arguments: list[str]) -> None:
    done = subprocess.run([COMMANDS[name], *arguments], capture_output=True, timeout=10)
    assert done.returncode == 2
    assert b"Usage: streamdata-" in done.stderr
    assert done.stdout == b""


def test_the_port_is_8080_unless_it_is_given(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """On an address that no other program uses."""
    log = tmp_path_factory.mktemp("default") / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [COMMANDS[name], "serve"],
            env={"PATH": os.environ["PATH"], "LISTEN_ADDRESS": "127.80.80.1"},
            stderr=stream,
        )
    try:
        wait_until(lambda: "listening on 127.80.80.1:8080" in log.read_text(encoding="utf-8"), "it listens")
    finally:
        process.terminate()
        assert process.wait(timeout=5) == 0


def test_sigterm_under_load_cuts_no_answer_of_a_service(fresh: Server) -> None:
    end_under_load(fresh, "POST", "/streamdata", PAYLOAD, is_whole=lambda status, _: status == 200)


def test_sigterm_under_load_cuts_no_answer_of_a_balancer(four: Group) -> None:
    end_under_load(four.balancer, "POST", "/streamdata", PAYLOAD, is_whole=lambda status, _: status == 200)


def test_sigterm_closes_idle_connections(fresh: Server) -> None:
    end_while_idle(fresh)


def test_sigterm_lets_a_request_end_that_has_begun(fresh: Server) -> None:
    with socket.create_connection((fresh.host, fresh.port), timeout=5) as client:
        head = f"POST /streamdata HTTP/1.1\r\nHost: s\r\nContent-Length: {len(PAYLOAD)}\r\n\r\n"
        client.sendall(head.encode() + PAYLOAD[:10])
        time.sleep(0.2)
        fresh.terminate()
        wait_until(lambda: "stopping" in fresh.text(), "it begins to stop")
        client.sendall(PAYLOAD[10:])
        assert client.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
    assert fresh.process.wait(timeout=5) == 0


def test_sigterm_lets_a_balancer_wait_for_a_backend(four: Group) -> None:
    go = hold(four.backends)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(four.balancer.ask("/").status))
    thread.start()
    wait_until(lambda: sum(four.counts()) == 1, "the request is under way")
    four.balancer.terminate()
    wait_until(lambda: "stopping" in four.balancer.text(), "it begins to stop")
    go.set()
    thread.join(timeout=5)
    assert answers == [200]
    assert four.balancer.process.wait(timeout=5) == 0


def test_sigterm_does_not_wait_for_a_backend_that_hangs(four: Group) -> None:
    go = threading.Event()

    def hang(seen: Seen) -> bytes:
        assert go.wait(timeout=20)
        return fine(seen)

    for backend in four.backends:
        backend.reply = hang
    faults = []

    def client() -> None:
        try:
            four.balancer.ask("/")
        except (http.client.HTTPException, OSError) as error:
            faults.append(error)

    thread = threading.Thread(target=client)
    thread.start()
    wait_until(lambda: sum(four.counts()) == 1, "the request is under way")
    begin = time.monotonic()
    four.balancer.terminate()
    assert four.balancer.process.wait(timeout=20) == 0
    assert 0.5 < time.monotonic() - begin < 10
    go.set()
    thread.join(timeout=5)
    assert len(faults) == 1
