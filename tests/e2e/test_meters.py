"""The same benchmark with the board's model, with a plug, and through stock Kepler.

The plug and Kepler are stand-ins (``stand_in_plug.py``, ``stand_in_kepler.py``). Meter, bridge, chart and
operator are real. The oracle computes the truth from the kernel's CPU accounting and the model's constants.

Not part of the default suite, because it takes a quarter of an hour: ``make meters``.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import pytest

import box
import oracle
import stand_in_kepler
import stand_in_plug
from benchmarks import FORTIO, FORTIO_ARGS, Benchmark, spec
from checks import ORACLE_ERROR, assert_ended, outcome
from conftest import watched
from disturbances import METER_PORT, attempt_under_load, hold_unmeasured, outcome_of
from evidence import is_ready, say
from kube import OPERATOR_NAMESPACE, Object, install
from session import Session

NAMESPACE = "e2e-meters"
PLUG_PORT = 28290
KEPLER_PORT = 28284
BRIDGE = "/run/frugality/kepler"
# Above the greatest power of the box's fictitious board.
MAX_WATTS = 12
# How far the energy through the bridge may be from the truth, over three minutes or more.
BRIDGE_ERROR = 0.01
# Longer than the operator needs to find that an instrument is silent.
SILENT_SECONDS = 12
SERVER = {"name": "fortio", "image": FORTIO, "args": FORTIO_ARGS, "readinessPath": "/debug"}


def benchmark(name: str, blocks: int) -> Benchmark:
    """A load that keeps the node's one core busy, at a rate that does not depend on the machine's speed."""
    return Benchmark(
        NAMESPACE,
        name,
        spec(
            candidates=[SERVER],
            request={"path": "/?size=100"},
            load={"duration": "20s", "warmUp": "3s", "rate": 3000},
            trials={"blocks": blocks, "idleBaseline": "5s", "maxAttempts": 10},
            deadline="20m",
        ),
    )


@dataclass
class Run:
    """A benchmark that has ended, and the oracle's gross joules of each measured attempt."""

    benchmark: Object
    trials: list[Object]
    true_joules: dict[str, float]

    @property
    def figure(self) -> Object:
        """Gross joules per request, of all trials."""
        return self.benchmark["status"]["results"][0]["grossJoulesPerRequest"]

    @property
    def half_width(self) -> float:
        """Half the width of the figure's stated interval, as a logarithm."""
        figure = self.figure
        return math.log(figure["expanded"]["upper"] / figure["value"])

    @property
    def true_figure(self) -> float:
        """The oracle's figure."""
        per_request = [
            self.true_joules[trial["metadata"]["name"]] / trial["status"]["requests"]["successes"]
            for trial in self.trials
        ]
        return math.exp(math.fsum(map(math.log, per_request)) / len(per_request))


def stated(trial: Object) -> float:
    """The uncertainty of the node's energy that the attempt states, with a coverage factor of 2."""
    energy = trial["status"]["energy"]
    of_meter = energy.get("meterRelativeUncertainty", 0.0)
    return 2 * math.hypot(of_meter, energy["nodeJoulesRelativeUncertainty"])


@dataclass
class Meters:
    """The runs. Each one is done at its first use."""

    session: Session
    values: Object = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)

    def use(self, values: Object) -> None:
        """Installs the chart with these values, if it is not installed with them already."""
        if values != self.values:
            say(f"installing with {values}")
            self.values = values
            install(values, box.ARTIFACTS / "meters-values.json")

    def run(self, source: "Source") -> Run:
        """The run of the benchmark with this source."""
        if source.name not in self.runs:
            self.use({"meter": source.values})
            with source.around(self):
                wanted = benchmark(source.name, 5)
                wanted.apply()
                ended = self.session.ended(wanted.key, 900)
            trials = [t for t in self.session.observer.trials_of(wanted.key) if outcome(t) == "Measured"]
            true_joules = {trial["metadata"]["name"]: self.truth(trial) for trial in trials}
            self.runs[source.name] = Run(ended, trials, true_joules)
        return self.runs[source.name]

    def truth(self, trial: Object) -> float:
        """Node joules of an attempt's window, by the oracle."""
        name = trial["metadata"]["name"]
        observer = self.session.observer
        window = oracle.Requests.of(observer.until(lambda: observer.fortio.get(name), 30, f"log of {name}"))
        return self.session.model.node_joules(self.session.record(), window.start, window.end)

    def meter_address(self) -> str:
        """The address of the meter's pod on the measured node."""
        observer = self.session.observer

        def found() -> str | None:
            pods = observer.pods_named(OPERATOR_NAMESPACE, "frugality-meter")
            on_node = [pod for pod in pods if pod["spec"].get("nodeName") == box.MEASURED_NODE]
            addresses = [pod["status"].get("podIP") for pod in on_node if is_ready(pod)]
            return addresses[0] if len(on_node) == 1 and addresses else None

        return observer.until(found, 60, "the one meter of the measured node")


@contextlib.contextmanager
def kepler(meters: Meters) -> Iterator[None]:
    """Redirects the meter's connections to a Kepler, which reads the meter's bridge."""
    files = box.files_of(box.MEASURED_NODE)
    tree = ("--sysfs", f"{files}{BRIDGE}", "--pod-logs", f"{files}/var/log/pods")
    cgroup = ("--cgroup", f"{box.CGROUP_ROOT}/{box.MEASURED_NODE}")
    node = ("--node", box.MEASURED_NODE, "--cpus", str(meters.session.model.cpus))
    served = ("--listen", str(KEPLER_PORT), "--log", str(box.ARTIFACTS / "kepler.log"))
    address = meters.meter_address()
    with (
        box.stand_in(box.MEASURED_NODE, stand_in_kepler, *tree, *cgroup, *node, *served),
        box.redirected(box.MEASURED_NODE, address, METER_PORT, KEPLER_PORT),
    ):
        yield


@dataclass(frozen=True)
class Source:
    """A source of power, and its description in the status."""

    name: str
    provenance: str
    meter: str
    values: Object
    around: Callable[[Meters], AbstractContextManager[None]] = lambda _: nullcontext()


PLUG_VALUES = {
    "power": {
        "nodes": {
            box.MEASURED_NODE: {
                "source": {"type": "shelly-gen2", "host": f"{box.INJECTOR_ADDRESS}:{PLUG_PORT}"},
                "maxWatts": MAX_WATTS,
            }
        }
    }
}
MODEL = Source(
    "model",
    "Modelled",
    "frugality-meter 0.1.0 board-model generic (2 W idle + 3 W per CPU, accuracy unknown)",
    {},
)
PLUG = Source("plug", "Metered", "frugality-meter 0.1.0 shelly-gen2", PLUG_VALUES)
KEPLER = Source(
    "kepler",
    "Modelled",
    f"kepler {stand_in_kepler.VERSION} /host/sys/class/powercap/frugality-modelled:0",
    {"bridge": {"enabled": True, "hostPath": BRIDGE}},
    kepler,
)
SOURCES = [MODEL, PLUG, KEPLER]
PAIRS = list(itertools.combinations(SOURCES, 2))
each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)


@pytest.fixture(scope="module")
def plug_mode(meters: "Meters") -> Iterator[Callable[[str], object]]:
    """The plug of the measured node. Yields the function that sets the plug's mode."""
    file = box.ARTIFACTS / "stand-in-plug.mode"
    file.write_text("plugged")
    model = meters.session.model
    arguments = ("--cgroup", f"{box.CGROUP_ROOT}/{box.MEASURED_NODE}", "--listen", str(PLUG_PORT))
    constants = ("--idle-watts", str(model.idle_watts), "--watts-per-cpu", str(model.watts_per_cpu))
    with box.stand_in(box.INJECTOR_NODE, stand_in_plug, *arguments, *constants, "--mode-file", str(file)):
        yield file.write_text


@pytest.fixture(scope="module")
def meters(request: pytest.FixtureRequest) -> Iterator[Meters]:
    with watched([NAMESPACE], request) as session:
        meters = Meters(session)
        try:
            yield meters
        finally:
            meters.use({})


@each_source
def test_the_status_names_the_source_of_power(meters: Meters, plug_mode: object, source: Source) -> None:
    run = meters.run(source)
    assert_ended(run.benchmark, "Reported", "NoBudgets")
    status = run.benchmark["status"]
    assert (status["provenance"], status["meter"]) == (source.provenance, source.meter)
    # Modelled joules are never shown as if they were measured.
    is_modelled = source.provenance == "Modelled"
    assert status["columns"]["energy"].startswith("~") == is_modelled
    assert status["columns"]["power"] == source.provenance.lower()
    for trial in run.trials:
        assert trial["status"]["energy"]["provenance"] == source.provenance


@each_source
def test_every_attempts_energy_is_true_within_its_stated_uncertainty(
    meters: Meters, plug_mode: object, source: Source
) -> None:
    run = meters.run(source)
    assert len(run.trials) >= 5
    wrong = []
    for trial in run.trials:
        name, reported = trial["metadata"]["name"], trial["status"]["energy"]["nodeJoules"]
        true, allowed = run.true_joules[name], stated(trial) + ORACLE_ERROR
        off = reported / true - 1
        say(
            f"{name}: {reported:.3f} J, truth {true:.3f} J: {100 * off:+.2f} %, allowed {100 * allowed:.1f} %"
        )
        if abs(off) > allowed:
            wrong.append(name)
    assert wrong == []


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda source: source.name)
def test_two_sources_agree_within_their_stated_uncertainty(
    meters: Meters, plug_mode: object, a: Source, b: Source
) -> None:
    runs = [meters.run(source) for source in (a, b)]
    allowed = math.hypot(*(run.half_width for run in runs)) + 2 * ORACLE_ERROR
    # The oracle saw any difference between the two runs too.
    off = [math.log(run.figure["value"] / run.true_figure) for run in runs]
    for source, run in zip((a, b), runs, strict=True):
        say(f"{source.name}: {run.figure}, truth {run.true_figure:.6g}")
    assert abs(off[0] - off[1]) <= allowed


def test_an_instrument_states_its_accuracy(meters: Meters, plug_mode: object) -> None:
    for trial in meters.run(PLUG).trials:
        assert trial["status"]["energy"]["meterRelativeUncertainty"] >= 0.03
    expanded = meters.run(PLUG).figure["expanded"]
    assert expanded["coversMeter"]
    assert expanded["upper"] > meters.run(PLUG).figure["upper"]


def test_a_plug_that_is_silent_under_load_makes_the_attempt_void(
    meters: Meters, plug_mode: Callable[[str], object]
) -> None:
    wanted, observer = benchmark("silent", 1), meters.session.observer
    meters.use({"meter": PLUG.values})
    wanted.apply()
    name = attempt_under_load(observer, wanted.key, set())
    say(f"the plug falls silent ({name})")
    plug_mode("silent")
    hold_unmeasured(observer, wanted.key, name, SILENT_SECONDS)
    plug_mode("plugged")
    status = outcome_of(observer, wanted.key, name)["status"]
    say(f"{status['outcome']} {status['reason']}: {status['message']}")
    assert (status["outcome"], status["reason"]) == ("Void", "MeterStale")
    assert "energy" not in status
    # The plug answers again. The block is tried again, and its figures are right.
    assert_ended(meters.session.ended(wanted.key, 600), "Inconclusive", "TooFewBlocks")
    measured = [t for t in observer.trials_of(wanted.key) if outcome(t) == "Measured"]
    assert [t["status"]["energy"]["provenance"] for t in measured] == ["Metered"]
    for trial in measured:
        off = trial["status"]["energy"]["nodeJoules"] / meters.truth(trial) - 1
        assert abs(off) <= stated(trial) + ORACLE_ERROR


def test_keplers_node_counter_follows_the_truth_without_resets_or_jumps(
    meters: Meters, plug_mode: object
) -> None:
    meters.run(KEPLER)
    lines = (box.ARTIFACTS / "kepler.log").read_text().splitlines()
    counted = [tuple(map(float, line.split())) for line in lines]
    for (before, low), (after, high) in itertools.pairwise(counted):
        assert 0 <= high - low <= MAX_WATTS * (after - before + 0.2), f"{high - low} J in {after - before} s"
    (start, first), (end, last) = counted[0], counted[-1]
    true = meters.session.model.node_joules(meters.session.record(), start, end)
    say(f"{end - start:.0f} s: {last - first:.2f} J through the bridge, truth {true:.2f} J")
    assert end - start > 180
    assert abs((last - first) / true - 1) <= BRIDGE_ERROR
