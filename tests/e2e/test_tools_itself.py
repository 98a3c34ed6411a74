"""How the suite reads kubectl, and whether its stand-ins behave like the originals. Needs no cluster."""

import http.client
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import box
import gates
import kube
import scenarios
import stand_in_kepler
import stand_in_plug
import waiting
from evidence import Observer
from oracle import Cgroup

FB = """\
NAME             VERDICT   WINNER   RATIO              ENERGY/REQ       REQ/S   MS/REQ   POWER      TRIALS   AGE
rust-vs-python   Pass      rust     0.42 [0.38–0.47]   ~0.44 mJ gross   11.1k   0.36     modelled   10/10    10m
other                                                                                               0/2      1s
"""


def test_a_table_may_have_blank_cells_and_cells_with_spaces() -> None:
    first, second = kube.table(FB)
    assert (first["RATIO"], first["ENERGY/REQ"]) == ("0.42 [0.38–0.47]", "~0.44 mJ gross")
    assert (first["REQ/S"], first["TRIALS"], first["AGE"]) == ("11.1k", "10/10", "10m")
    assert (second["NAME"], second["VERDICT"], second["ENERGY/REQ"]) == ("other", "", "")
    assert (second["POWER"], second["TRIALS"]) == ("", "0/2")
    assert kube.table("No resources found\n") == []


def test_owners_are_found_over_several_steps() -> None:
    def resource(kind: str, uid: str, *owned_by: str) -> kube.Object:
        references = [{"uid": owner} for owner in owned_by]
        return {"kind": kind, "metadata": {"name": "it", "uid": uid, "ownerReferences": references}}

    pod = resource("Pod", "3", "2", "gone")
    listed = [resource("Deployment", "1"), resource("ReplicaSet", "2", "1"), pod]
    by_uid = {each["metadata"]["uid"]: each for each in listed}
    assert [scenarios.name_of(owner) for owner in scenarios.owners(pod, by_uid)] == [
        "ReplicaSet/it",
        "Deployment/it",
    ]
    assert scenarios.owners({"kind": "Endpoints", "metadata": {"name": "it"}}, by_uid) == []


# ---- the stand-in for Kepler ---------------------------------------------------------------------

REAL_KEPLER = sorted((kube.ROOT / "measure/tests/data/kepler-v0.11.4").glob("*.prom"))
POD = "bed27566-8352-495a-8672-08132c7957e6"


class MadeUpNode:
    """Replaces a node's cgroup. The node has one pod, which uses half of the node's CPU time."""

    def __init__(self) -> None:
        self.nanoseconds_used = 0

    def sample(self) -> tuple[float, int, dict[str, int]]:
        return 0.0, self.nanoseconds_used, {POD: self.nanoseconds_used // 2}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    zone = tmp_path / "sys/class/powercap/frugality-modelled:0"
    zone.mkdir(parents=True)
    for name, text in (("name", "psys"), ("energy_uj", "100000000"), ("max_energy_range_uj", "1" + 18 * "0")):
        (zone / name).write_text(f"{text}\n")
    (tmp_path / "pods" / f"default_echo_{POD}").mkdir(parents=True)
    return tmp_path


class Fed:
    """A stand-in whose zone and node a test advances."""

    def __init__(self, tree: Path) -> None:
        self.node = MadeUpNode()
        self.counter = tree / "sys/class/powercap/frugality-modelled:0/energy_uj"
        arguments = (tree / "sys", self.node, 1, tree / "pods", "pi-1", tree / "log")
        self.now = 0.0
        self.kepler = stand_in_kepler.Kepler(*arguments, clock=lambda: self.now)

    def after(self, microjoules: int, cpu_seconds: float) -> str:
        """The answer a little more than half a second later."""
        self.now += 0.625
        self.counter.write_text(f"{int(self.counter.read_text()) + microjoules}\n")
        self.node.nanoseconds_used += int(cpu_seconds * 1e9)
        return self.kepler.page()


@pytest.fixture
def fed(tree: Path) -> Fed:
    return Fed(tree)


def shape(page: str) -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """Help, type and label names by metric."""
    found = {}
    for about, kind, sample in re.findall(r"# HELP (.*)\n# TYPE (.*)\n(.*)\n", page):
        name, labels = sample.split("{")[0], tuple(re.findall(r'(\w+)="', sample))
        found[name] = (about.split(" ", 1)[1], kind.split(" ")[1], labels)
    return found


def value(page: str, name: str) -> float:
    (found,) = re.findall(rf"^{name}{{.*}} (\S+)$", page, re.MULTILINE)
    return float(found)


def test_the_stand_in_serves_the_series_of_a_real_kepler(fed: Fed) -> None:
    page = fed.after(1_000_000, 0.1)
    ours = shape(page)
    assert len(REAL_KEPLER) == 9
    for text in REAL_KEPLER:
        real = shape(text.read_text())
        assert {name: real[name] for name in ours} == ours, text.name
    assert not re.search("frugality_|cpu_seconds", page)
    assert 'path="/host/sys/class/powercap/frugality-modelled:0"' in page
    assert f'pod_id="{POD}",pod_name="echo",pod_namespace="default"' in page


def test_the_stand_in_repeats_keplers_peculiarities(fed: Fed) -> None:
    fed.after(2_000_000, 0.25)
    page = fed.after(2_000_000, 0.25)
    assert value(page, "kepler_node_cpu_joules_total") == 104.0
    assert page == fed.kepler.page(), "an answer within the staleness is the same"
    before = value(page, "kepler_pod_cpu_joules_total")
    # 2 J times the CPU use of the previous interval, 0.25 s of 0.625 s. Half of this is the pod's.
    assert before == pytest.approx(2 * 0.4 * 0.5)
    # If the zone's counter does not change, the pods' counters begin at 0. If it falls, Kepler assumes a
    # wrap.
    assert value(fed.after(0, 0.25), "kepler_pod_cpu_joules_total") == 0
    assert value(fed.after(-1_000_000, 0.25), "kepler_node_cpu_active_joules_total") > 1e10


# ---- the stand-in for a plug ---------------------------------------------------------------------


def test_the_plug_shows_the_energy_of_the_nodes_cpu_time(tmp_path: Path) -> None:
    counter, mode = tmp_path / "cgroup/cpuacct/node/cpuacct.usage", tmp_path / "mode"
    counter.parent.mkdir(parents=True)
    counter.write_text("0\n")
    now = 0.0
    node = stand_in_plug.Node(Cgroup(counter.parent, 1), 2.0, 3.0, clock=lambda: now)
    used = 0
    for _ in range(10 * stand_in_plug.SAMPLES_PER_SECOND):
        # Idle for five seconds, then half a CPU in use.
        now += 1 / stand_in_plug.SAMPLES_PER_SECOND
        used += 0 if now <= 5 else int(0.5e9 / stand_in_plug.SAMPLES_PER_SECOND)
        counter.write_text(f"{used}\n")
        node.look()
    watts, joules = node.power_and_energy()
    assert watts == pytest.approx(3.5)
    assert joules == pytest.approx(5 * 2.0 + 5 * 3.5, rel=0.02)
    shown = json.loads(stand_in_plug.status(3.44, 5400.0))
    assert (shown["apower"], shown["aenergy"]["total"]) == (3.4, 1.5)

    mode.write_text("plugged")
    arguments = ("--idle-watts", "2", "--watts-per-cpu", "3", "--listen", "28291", "--mode-file", str(mode))
    process = subprocess.Popen([sys.executable, stand_in_plug.__file__, "--cgroup", "/", *arguments])
    url = f"http://127.0.0.1:28291{stand_in_plug.PATH}"
    try:

        def shown_by_plug() -> kube.Object | None:
            assert process.poll() is None, "the stand-in has ended"
            return answer_of(url)

        shown = waiting.until(shown_by_plug, 30, "the plug's answer", every=0.1)
        assert shown["apower"] >= 2
        mode.write_text("silent")
        assert answer_of(url) is None
    finally:
        process.terminate()
        process.wait(10)


def answer_of(url: str) -> kube.Object | None:
    """The JSON at this address. ``None`` if there is no answer."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)
    except (urllib.error.URLError, ConnectionError, http.client.HTTPException):
        return None


def test_a_gates_cell_is_shown_only_if_all_of_its_tests_passed() -> None:
    outcomes = dict.fromkeys(gates.TESTS, "passed")
    header, flux, *_, helm = gates.table(outcomes)
    assert header.split("  ")[0] == "tool"
    assert flux.split() == ["Flux", "shown", "shown", "shown", "shown", "(compares", "no", "images)"]
    assert "(returns after it)" in helm
    outcomes["test_flux_stops_a_release_on_inconclusive"] = "failed"
    del outcomes["test_flux_holds_a_release_that_no_operator_has_seen"]
    assert gates.table(outcomes)[1].split()[:6] == ["Flux", "not", "run", "shown", "shown", "failed"]
    assert gates.table({"test_another": "passed"}) == []


def test_the_table_of_the_gates_names_tests_that_exist() -> None:
    texts = [file.read_text() for file in Path(__file__).parent.glob("test_*.py")]
    for name in gates.TESTS:
        assert any(f"def {name}(" in text for text in texts), name


def test_a_check_that_was_never_seen_to_run_has_a_span() -> None:
    observer = object.__new__(Observer)
    observer.spans = {}

    def see(role: str, state: str) -> None:
        labels = {"frugality.dev/benchmark-uid": "1", "frugality.dev/role": role}
        metadata = {"uid": role, "namespace": "ns", "name": role, "labels": labels}
        metadata["creationTimestamp"] = "2026-11-26T19:50:00Z"
        statuses = [{"name": role, "state": {state: {}}}]
        pod = {"metadata": metadata, "spec": {}, "status": {"containerStatuses": statuses}}
        observer._note_span("MODIFIED", pod)

    for role in ("prepare", "seed"):
        see(role, "waiting")
    assert observer.spans == {}
    for role in ("prepare", "seed"):
        see(role, "terminated")
    (check,) = observer.spans.values()
    assert check.role == "prepare"
    assert check.end is not None
    seen = check.end
    see("prepare", "terminated")
    assert check.end == seen


def test_the_processes_of_a_pod_are_found_while_cgroups_end(tmp_path: Path) -> None:
    cgroups = {"pi-1/pod1": "", "pi-1/pod1/server": "7\n8\n", "pi-1/pod2/server": "9\n"}
    for cgroup, pids in cgroups.items():
        (tmp_path / cgroup).mkdir(parents=True, exist_ok=True)
        (tmp_path / cgroup / "cgroup.procs").write_text(pids)
    # The file of a cgroup that has ended since its directory was listed.
    (tmp_path / "pi-1/pod1/sidecar").mkdir()
    assert list(box.pids_in(tmp_path, "pod1")) == ["7", "8"]
