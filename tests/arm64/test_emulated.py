"""Runs the images' programs under emulation, in the image's own files and as the image's user."""

import itertools
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from api_server import GROUP, ApiServer
from conftest import ROOT, VERSION
from image import PATIENCE_SECONDS, Image, Service, free_port

RUN = (
    *("run", "--injector-image=injector", "--injector-k6-image=injector-k6"),
    "--database-image=postgresql:15",
)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Starts a service by its command and port."""
    started: list[Service] = []
    count = itertools.count()

    def serve(command: list[str], port: int, **environment: str) -> Service:
        service = Service(command, port, tmp_path / f"service-{next(count)}.log", **environment)
        started.append(service)
        return service

    yield serve
    for service in started:
        service.end()


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[ApiServer]:
    server = ApiServer(tmp_path)
    yield server
    server.close()


@pytest.mark.parametrize("name", ["operator", "meter", "injector", "injector-k6"])
def test_program_prints_its_version(images: dict[str, Image], name: str) -> None:
    assert images[name].run("--version").stdout == f"frugality-{name} {VERSION}\n"


def test_injector_has_a_runner_that_runs(images: dict[str, Image]) -> None:
    told = images["injector"].run("--version", program="/usr/bin/frugality-runner")
    assert told.stdout == f"frugality-runner {VERSION}\n"


def test_injector_has_a_fortio_that_runs(images: dict[str, Image]) -> None:
    told = images["injector"].run("version", program="/usr/bin/fortio")
    assert re.match(r"v?1\.\d+\.\d+", told.stdout), told


def test_only_one_image_has_k6_and_it_has_k6s_licence_and_source(images: dict[str, Image]) -> None:
    assert "k6" in images["injector-k6"].run("version", program="/usr/bin/k6").stdout
    assert not (images["injector"].root / "usr/bin/k6").exists()
    documents = images["injector-k6"].root / "usr/share/doc/k6"
    assert "GNU AFFERO GENERAL PUBLIC LICENSE" in (documents / "LICENSE.md").read_text(encoding="utf-8")
    assert (documents / "k6-source.tar.xz").is_file()


def test_operator_has_a_plugin_that_prints_the_resources_that_the_chart_installs(
    images: dict[str, Image],
) -> None:
    plugin = images["operator"].run("crd", program="/usr/bin/kubectl-frugality")
    printed = list(yaml.safe_load_all(plugin.stdout))
    installed = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]
    assert sorted(printed, key=str) == sorted(installed, key=str)


def test_operator_reports_that_it_cannot_reach_a_cluster(images: dict[str, Image]) -> None:
    done = images["operator"].run(*RUN)
    assert done.returncode == 1
    assert "no connection to a cluster" in done.stderr


def test_operator_starts_by_tls_becomes_ready_serves_metrics_and_ends(
    images: dict[str, Image], api_server: ApiServer, serve: Callable[..., Service]
) -> None:
    image, port = images["operator"], free_port()
    config = image.directory("cluster") / "kubeconfig"
    config.write_text(api_server.kubeconfig(), encoding="utf-8")
    config.chmod(0o644)
    command = image.command(*RUN, f"--listen=127.0.0.1:{port}")
    operator = serve(command, port, KUBECONFIG=str(image.inside(config)))
    assert operator.wait_for("/readyz", 200) == "ok\n"
    assert operator.get("/healthz") == (200, "ok\n")
    status, metrics = operator.get("/metrics")
    assert status == 200
    assert metrics.endswith("# EOF\n")
    assert {f"{GROUP}frugalitybenchmarks", f"{GROUP}frugalitytrials"} <= api_server.asked
    assert api_server.watched.wait(PATIENCE_SECONDS)
    assert operator.end() == 0


def test_meter_models_the_energy_of_a_node_and_shares_it_among_its_pods(
    images: dict[str, Image], serve: Callable[..., Service]
) -> None:
    """The pod uses half of the node's CPU time, so it gets half of the active energy."""
    image, port = images["meter"], free_port()
    node = image.directory("node")
    uid = "11111111-2222-3333-4444-555555555555"
    (node / "pods" / f"default_contacts_{uid}").mkdir(parents=True)
    counters = node / "cgroup" / "cpuacct"
    pod = f"kubepods/burstable/pod{uid}"
    (counters / pod).mkdir(parents=True)

    def set_cpu(cgroup: str, text: str) -> None:
        (counters / cgroup / "cpuacct.usage").write_text(f"{text}\n", encoding="utf-8")

    def joules(metric: str) -> float:
        [value] = re.findall(rf"^{metric}\{{[^}}]*\}} (\S+)$", meter.get("/metrics")[1], re.MULTILINE)
        return float(value)

    set_cpu(pod, "0")
    set_cpu("", "0")
    inside = image.inside(node)
    command = image.command(
        *["run", "--node-name=pi-1", "--cpus=2", "--idle-watts=2", "--watts-per-cpu=3", "--interval=50ms"],
        *[f"--cgroup-fs={inside}/cgroup", f"--pod-logs={inside}/pods", f"--sysfs={inside}/sys"],
        f"--listen=127.0.0.1:{port}",
    )
    meter = serve(command, port)
    meter.wait_for("/readyz", 200)
    assert joules("kepler_node_cpu_active_joules_total") == 0
    assert 'pod_name="contacts"' in meter.get("/metrics")[1]
    # Both counters change between two readings, because the meter reads nothing while the node's counter is
    # not a number.
    set_cpu("", "not to be read")
    meter.wait_for("/readyz", 503)
    set_cpu(pod, "1000000000")
    set_cpu("", "2000000000")
    meter.wait_for("/readyz", 200)
    active = joules("kepler_node_cpu_active_joules_total")
    assert active > 0
    assert joules("kepler_pod_cpu_joules_total") == pytest.approx(active / 2)


def script(folder: Path, name: str, image: Image) -> str:
    """The path of a shell script that starts the image's program."""
    path = folder / name
    path.write_text(f'#!/bin/sh\nexec {shlex.join(image.command())} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("suite", "tests", "programs"),
    [
        # The suite's tests of answers, with a real PostgreSQL.
        (
            "conformance",
            "test_answers.py",
            {"CONTACTS_RUST": "contacts-rust", "CONTACTS_PYTHON_SERVER": "contacts-python"},
        ),
        (
            "conformance_streamdata",
            "test_serve.py",
            {"STREAMDATA_RUST": "streamdata-rust", "STREAMDATA_GO": "streamdata-go"},
        ),
    ],
)
def test_candidates_servers_answer_as_they_must(
    suite: str, tests: str, programs: dict[str, str], images: dict[str, Image], tmp_path: Path
) -> None:
    commands = {variable: script(tmp_path, name, images[name]) for variable, name in programs.items()}
    run = ROOT / "examples" / "servers" / suite / "run"
    subprocess.run([run, tests], check=True, env=os.environ | commands)
