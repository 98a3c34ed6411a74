"""The waits that poll, and their questions to the kernel. Needs no cluster."""

import ast
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import box
import waiting

# Samplers and stand-ins have their own pace. For tests, only `waiting` sleeps.
MAY_SLEEP = {"waiting.py", "oracle.py", "stand_in_kepler.py", "stand_in_plug.py"}


def test_until_returns_the_first_answer_that_is_true() -> None:
    answers = iter([None, 0, "", "seen", "too late"])
    assert waiting.until(lambda: next(answers), 5, "an answer", every=0.001) == "seen"


def test_until_asks_once_more_at_its_deadline_and_then_fails_with_its_purpose() -> None:
    with pytest.raises(waiting.NotSeenError, match="the answer: not seen in 0 s"):
        waiting.until(lambda: None, 0, "the answer")
    assert waiting.until(lambda: True, 0, "the answer")


def test_hold_lasts_its_time_and_fails_as_soon_as_the_state_ends() -> None:
    begin = time.monotonic()
    waiting.hold(0.2, lambda: True, "the state", every=0.05)
    assert time.monotonic() - begin >= 0.2
    answers = iter([True, True, False])
    with pytest.raises(AssertionError, match="the state: ended after"):
        waiting.hold(5, lambda: next(answers), "the state", every=0.001)


def test_next_second_ends_in_another_second() -> None:
    before = int(time.time())
    waiting.next_second()
    assert before < int(time.time()) <= before + 2


def test_no_test_sleeps_for_a_fixed_time() -> None:
    sleeping = {
        path.name
        for path in Path(__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "sleep"
    }
    assert sleeping <= MAY_SLEEP


def test_a_listening_port_is_seen_and_a_closed_one_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert box.listens(os.getpid(), port)
    assert not box.listens(os.getpid(), port)


def test_the_state_of_a_process_is_the_kernels() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert box.state_of(process.pid) not in ("", "T")
        process.send_signal(signal.SIGSTOP)
        waiting.until(lambda: box.state_of(process.pid) == "T", 5, "the stop", every=0.01)
        process.send_signal(signal.SIGCONT)
        waiting.until(lambda: box.state_of(process.pid) != "T", 5, "the continuation", every=0.01)
        process.kill()
        waiting.until(lambda: not box.state_of(process.pid), 5, "the end", every=0.01)
