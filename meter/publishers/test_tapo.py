"""tapo.py with the real python-kasa, against a stand-in for the plug that speaks KLAP.

FRUGALITY_BIN_DIR is the directory of frugality-meter. The last tests also need Debian's packages mosquitto and
mosquitto-clients.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from plug_stand_in import Plug

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "tapo.py"
DOCUMENT = HERE.parents[1] / "docs" / "power-on-a-pi.md"
METER = os.environ.get("FRUGALITY_BIN_DIR")
# A machine under load needs seconds to import the packages.
PATIENCE = 60


def eventually(condition, what):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    pytest.fail(f"not seen: {what}")


class Lines:
    """The lines of a running program."""

    def __init__(self, plug, tmp_path, password):
        self.password_file = tmp_path / "password"
        self.password_file.write_text(f"{password}\n")
        command = [
            sys.executable,
            PROGRAM,
            "127.0.0.1",
            f"--port={plug.port}",
            f"--family={plug.family}",
            f"--username={plug.username}",
            f"--password-file={self.password_file}",
            "--interval=0.2",
            "--timeout=1",
        ]
        self.program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def until(self, wanted, what):
        """The lines up to the first that `wanted` accepts."""
        end = time.monotonic() + PATIENCE
        seen = []
        while time.monotonic() < end:
            line = self.program.stdout.readline()
            assert line, f"the program ended after {seen}"
            seen.append(line.strip())
            if wanted(seen[-1]):
                return seen
        pytest.fail(f"not seen: {what}, but {seen}")

    def until_line(self, line):
        return self.until(lambda it: it == line, line)


@pytest.fixture
def lines(tmp_path):
    with contextlib.ExitStack() as stack:

        def start(plug, password=None):
            stack.callback(plug.close)
            running = Lines(plug, tmp_path, password or plug.password)
            stack.callback(running.program.wait)
            stack.callback(running.program.kill)
            return running

        yield start


@pytest.mark.parametrize(("family", "login"), [("tapo", 2), ("kasa", 2), ("kasa", 1)])
def test_every_login_gives_the_power(lines, family, login):
    plug = Plug(family, login)
    running = lines(plug)
    running.until_line("4.321")
    plug.watts = 5.5
    running.until_line("5.500")
    assert plug.handshakes == 1


def test_an_ended_session_is_replaced_without_an_old_number(lines):
    plug = Plug()
    running = lines(plug)
    running.until_line("4.321")
    plug.end_session()
    plug.watts = 5.5
    seen = running.until_line("5.500")
    # A line that was on its way may have the power from before.
    assert all(it == "4.321" or it.startswith("no power: ") for it in seen[:-1])
    assert seen[:-1].count("4.321") <= 2
    assert plug.handshakes == 2


def test_a_plug_that_stops_answering_gives_no_number_until_it_is_back(lines):
    plug = Plug()
    running = lines(plug)
    running.until_line("4.321")
    plug.watts = None
    running.until(lambda it: it.startswith("no power: the plug has not answered"), "silence")
    for _ in range(10):
        line = running.program.stdout.readline()
        assert line.startswith("no power: "), line
    plug.watts = 6.0
    plug.gone.set()
    seen = running.until_line("6.000")
    assert all(it.startswith("no power: ") for it in seen[:-1])


@pytest.mark.parametrize("family", ["tapo", "kasa"])
def test_a_wrong_password_is_reported_and_a_new_one_is_used_at_once(lines, family):
    plug = Plug(family)
    running = lines(plug, "wrong")
    refused = "no power: the plug refuses this username or password"
    running.until_line(refused)
    for _ in range(5):
        assert running.program.stdout.readline().strip() == refused
    assert plug.handshakes == 0
    running.password_file.write_text(plug.password)
    seen = running.until_line("4.321")
    assert not any("wrong" in it or plug.password in it for it in seen)


def test_a_plug_without_a_meter_is_reported(lines):
    plug = Plug()
    plug.measures = False
    lines(plug).until_line("no power: a P110 does not measure power")


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def recipe():
    """The command of the document."""
    [line] = [it.strip() for it in DOCUMENT.read_text().splitlines() if "tapo.py 192" in it]
    return line


class Node:
    """A node with a meter, a broker, and the command of the document."""

    def __init__(self, plug, tmp_path, stack, password=None):
        broker, self.port = free_port(), free_port()
        (tmp_path / "mosquitto.conf").write_text(
            f"listener {broker} 127.0.0.1\nallow_anonymous true\nuser root\n"
        )
        self.start(stack, ["/usr/sbin/mosquitto", "-c", tmp_path / "mosquitto.conf"])

        def listens():
            with socket.socket() as it:
                return it.connect_ex(("127.0.0.1", broker)) == 0

        eventually(listens, "the broker")
        (tmp_path / "password").write_text(password or plug.password)
        cpu = tmp_path / "cgroup" / "cpuacct"
        cpu.mkdir(parents=True)
        (cpu / "cpuacct.usage").write_text("0\n")
        (tmp_path / "logs").mkdir()
        source = {"type": "mqtt", "broker": f"127.0.0.1:{broker}", "topic": "pi-1/power", "unit": "W"}
        power = {"source": source, "relativeUncertainty": 0.03}
        (tmp_path / "power.json").write_text(json.dumps({"default": power}))
        self.start(
            stack,
            [
                f"{METER}/frugality-meter",
                "run",
                "--node-name=pi-1",
                "--cpus=2",
                "--interval=100ms",
                f"--listen=127.0.0.1:{self.port}",
                f"--cgroup-fs={tmp_path / 'cgroup'}",
                f"--pod-logs={tmp_path / 'logs'}",
                f"--sysfs={tmp_path / 'sys'}",
                f"--power-config={tmp_path / 'power.json'}",
            ],
        )
        command = (
            recipe()
            .replace("python3 tapo.py 192.168.1.30", f"{sys.executable} {PROGRAM} 127.0.0.1 --port {plug.port}")
            .replace("me@example.org", plug.username)
            .replace("tapo-password", str(tmp_path / "password"))
            .replace("-h 192.168.1.10", f"-h 127.0.0.1 -p {broker}")
        )
        assert "192.168" not in command
        # With its own group, because the shell starts two programs.
        shell = subprocess.Popen(["bash", "-c", command], start_new_session=True)
        stack.callback(shell.wait)
        stack.callback(os.killpg, shell.pid, 9)

    @staticmethod
    def start(stack, command):
        program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(program.wait)
        stack.callback(program.kill)

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def number(self, metric):
        _, text = self.get("/metrics")
        [value] = [it.rsplit(" ", 1)[1] for it in text.splitlines() if it.startswith(f"{metric}{{")]
        return float(value)


@pytest.fixture
def node(tmp_path):
    if not METER:
        pytest.fail("set FRUGALITY_BIN_DIR to the directory of frugality-meter", pytrace=False)
    with contextlib.ExitStack() as stack:

        def start(plug, **settings):
            stack.callback(plug.close)
            return Node(plug, tmp_path, stack, **settings)

        yield start


def test_the_recipe_meters_a_plug_and_its_failure_reaches_the_meter(node):
    plug = Plug()
    running = node(plug)
    eventually(lambda: running.get("/readyz")[0] == 200, "a ready meter")

    def joules_and_time():
        joules = running.number("kepler_node_cpu_joules_total")
        return joules, running.number("frugality_meter_reading_timestamp_seconds")

    before = joules_and_time()
    eventually(lambda: joules_and_time()[1] > before[1] + 3, "three seconds of energy")
    after = joules_and_time()
    watts = (after[0] - before[0]) / (after[1] - before[1])
    assert watts == pytest.approx(4.321, abs=0.01)

    plug.watts = None

    def silent():
        status, reason = running.get("/readyz")
        return status == 503 and "no power: the plug has not answered" in reason

    eventually(silent, "the plug's silence")


def test_a_wrong_password_reaches_the_meter(node):
    plug = Plug()
    running = node(plug, password="wrong")

    def refused():
        status, reason = running.get("/readyz")
        return status == 503 and "refuses this username or password" in reason

    eventually(refused, "the refused password")
    _, text = running.get("/metrics")
    assert "kepler_" not in text
