"""The binaries know what the chart sets."""

import re
import subprocess
import threading

import pytest

from rendered import (
    AUTO,
    CHART,
    GENERIC,
    GROUP,
    KEPLER,
    PI,
    binary,
    container,
    environment,
    meter,
    refusal,
    render,
    run,
)


def understood(name):
    result = run(binary(name), "run", "--help")
    assert result.returncode == 0, result.stderr
    return set(re.findall(r"\[env: (\w+)=", result.stdout))


@pytest.mark.parametrize(
    "settings",
    [
        PI,
        (*GENERIC, "--set", "meter.cpus=1"),
        KEPLER,
        (*AUTO, *GROUP, "--set", "meter.bridge.enabled=true"),
    ],
    ids=["pi", "generic", "kepler", "sources"],
)
def test_the_binaries_know_every_variable_that_the_chart_sets(settings):
    for o in render(*settings):
        if o["kind"] in ("Deployment", "DaemonSet"):
            assert container(o)["args"] == ["run"]
            name = o["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"]
            # glibc reads this one.
            unknown = set(environment(o)) - understood(name) - {"MALLOC_ARENA_MAX"}
            assert not unknown, o["metadata"]["name"]


def test_the_boards_that_the_chart_names_are_the_boards_that_the_meter_knows():
    result = run(binary("frugality-meter"), "boards")
    known = set(re.findall(r"^([a-z][\w-]+) ", result.stdout, re.MULTILINE)) - {"generic"}
    assert known, result.stdout
    texts = [refusal()]
    texts += [(CHART / f).read_text() for f in ("values.yaml", "values.schema.json", "README.md")]
    for text in texts:
        assert set(re.findall(r"\bpi-(?:zero-)?\d\w+(?:-plus)?\b", text)) == known


@pytest.mark.parametrize("settings", [PI, GENERIC], ids=["pi", "generic"])
def test_the_meter_starts_with_the_settings_of_the_chart(settings):
    env = environment(meter(*settings)) | {
        "NODE_NAME": "pi-1",
        "FRUGALITY_METER_CGROUP_FS": "/sys/fs/cgroup",
        "FRUGALITY_METER_SYSFS": "/sys",
        "FRUGALITY_METER_LISTEN": "127.0.0.1:0",
    }
    with subprocess.Popen(
        [binary("frugality-meter"), "run"], env=env, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = threading.Timer(20, process.kill)
        deadline.start()
        log = []
        for line in process.stderr:
            log.append(line)
            if "serving" in line:
                process.terminate()
        deadline.cancel()
    assert process.returncode == 0, "".join(log)
    assert any("serving" in line for line in log), "".join(log)
