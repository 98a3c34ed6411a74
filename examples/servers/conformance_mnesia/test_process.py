"""A member starts and ends as a container must."""

import os
import socket
import subprocess
import time

import pytest

from conftest import Start
from harness import COMMAND, HOSTS, Server, text
from program import LOOPBACK, end_under_load, end_while_idle, free_port, wait_until

CLUSTER = {"PEERS_HOST": LOOPBACK, "POD_IP": LOOPBACK}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PORT": "http"}, 'PORT must be a whole number from 1 to 65535, not "http"'),
        ({"PORT": "0"}, 'PORT must be a whole number from 1 to 65535, not "0"'),
        ({"PORT": "80800"}, 'PORT must be a whole number from 1 to 65535, not "80800"'),
        ({"PORT": ""}, 'PORT must be a whole number from 1 to 65535, not ""'),
        ({"LISTEN_ADDRESS": "here"}, 'LISTEN_ADDRESS must be an IP address, not "here"'),
        (
            {"MODE": "dirty"},
            'MODE must be transaction, sync_transaction, async_dirty or sync_dirty, not "dirty"',
        ),
        ({"MAX_OBJECTS": "many"}, 'MAX_OBJECTS must be a whole number from 1 to 100000000, not "many"'),
        ({"PEERS_COUNT": "33"}, 'PEERS_COUNT must be a whole number from 1 to 32, not "33"'),
        (
            {"PEERS_COUNT": "3"},
            "PEERS_HOST is not set: give the host that resolves to the addresses of all members",
        ),
        ({"PEERS_HOST": "a"}, "POD_IP is not set: with PEERS_HOST, give the member's own IPv4 address"),
        (CLUSTER | {"POD_IP": "::1"}, 'POD_IP must be an IPv4 address, not "::1"'),
        (
            CLUSTER | {"PEERS_HOST": "a,"},
            'PEERS_HOST must be a host, or hosts separated by commas, not "a,"',
        ),
        (
            CLUSTER | {"ERL_DIST_PORT": "4369x"},
            'ERL_DIST_PORT must be a whole number from 1 to 65535, not "4369x"',
        ),
        (
            CLUSTER | {"ERLANG_COOKIE": ""},
            "ERLANG_COOKIE must be 1 to 255 letters, digits, - or _, and not begin with -",
        ),
    ],
)
def test_wrong_settings_end_with_their_name(start: Start, variables: dict[str, str], message: str) -> None:
    server = start(**variables)
    assert server.process.wait(timeout=20) == 1
    assert server.text() == f"{message}\n"


def test_a_port_that_is_taken_ends_the_server(start: Start, alone: Server) -> None:
    server = start(PORT=str(alone.port))
    assert server.process.wait(timeout=20) == 1
    last = f"cannot listen on 127.0.0.1:{alone.port}: address already in use"
    assert server.text().splitlines()[-1] == last


def test_a_port_for_the_cluster_that_is_taken_ends_the_server(start: Start, alone: Server) -> None:
    server = start(**CLUSTER, ERL_DIST_PORT=str(alone.port))
    assert server.process.wait(timeout=20) == 1
    last = f"cannot listen on 127.0.0.1:{alone.port} for the other members: "
    assert server.text().splitlines()[-1].startswith(last)


def test_help_names_the_settings() -> None:
    done = subprocess.run([COMMAND, "--help"], capture_output=True, check=True, timeout=20)
    words = ["PORT", "LISTEN_ADDRESS", "MODE", "MAX_OBJECTS", "PEERS_HOST", "PEERS_COUNT", "POD_IP"]
    words += ["ERL_DIST_PORT", "ERLANG_COOKIE"]
    assert [word for word in words if f"\n  {word} " not in done.stdout.decode()] == []
    assert done.stderr == b""


def test_arguments_are_refused() -> None:
    done = subprocess.run([COMMAND, "serve"], capture_output=True, timeout=20)
    assert done.returncode == 2
    assert b"Usage: mnesia-erlang" in done.stderr
    assert done.stdout == b""


def test_a_container_needs_no_home_and_nowhere_to_write(
    start: Start, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The default port is 8080, here on an address that no other program uses."""
    folder = tmp_path_factory.mktemp("default")
    log = folder.with_name("default.log")
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [COMMAND],
            env={"PATH": os.environ["PATH"], "LISTEN_ADDRESS": "127.80.80.1"},
            cwd=folder,
            stderr=stream,
        )
    try:
        wait_until(lambda: "listening on 127.80.80.1:8080" in log.read_text(encoding="utf-8"), "it listens")
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0
    assert list(folder.iterdir()) == []


def test_sigterm_under_load_cuts_no_answer(fresh: Server) -> None:
    end_under_load(fresh, "POST", "/objects", text(), is_whole=lambda status, _: status == 201)


def test_sigterm_closes_idle_connections(fresh: Server) -> None:
    end_while_idle(fresh)


def begun(server: Server) -> socket.socket:
    """A connection with a request that the server has begun to read."""
    client = socket.create_connection((server.host, server.port), timeout=20)
    head = "POST /objects HTTP/1.1\r\nHost: s\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n"
    client.sendall(head.format(len(text())).encode())
    assert client.recv(1000).startswith(b"HTTP/1.1 100 ")
    return client


def test_sigterm_lets_a_request_end_that_has_begun(fresh: Server) -> None:
    with begun(fresh) as client:
        fresh.terminate()
        fresh.wait_log("stopping")
        client.sendall(text().encode())
        answer = client.recv(1000)
        assert answer.startswith(b"HTTP/1.1 201 Created\r\n")
        assert b"\r\nConnection: close\r\n" in answer
    assert fresh.process.wait(timeout=20) == 0


def test_sigterm_does_not_wait_for_a_client_that_hangs(fresh: Server) -> None:
    with begun(fresh) as client:
        begin = time.monotonic()
        fresh.terminate()
        fresh.terminate()
        assert fresh.process.wait(timeout=20) == 0
        assert 0.5 < time.monotonic() - begin < 10
        assert client.recv(1000) == b""
    assert "were cut" in fresh.text()


def test_sigterm_while_it_waits_for_others(start: Start) -> None:
    port = str(free_port(HOSTS))
    server = start(POD_IP=HOSTS[0], PEERS_HOST=",".join(HOSTS), PEERS_COUNT="3", ERL_DIST_PORT=port)
    server.wait_for("/readyz", 503)
    server.terminate()
    assert server.process.wait(timeout=20) == 0
