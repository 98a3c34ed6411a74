"""The same servers and programs on two boards: each trial on its candidate's node, with this node's meter.

``pi-2`` is a second board of the box (``lab board pi-2``). Its model has half the watts of ``pi-1``, so the
true ratio is known. The values state an uncertainty of 2 % for both models. Without it there would be no
comparison.

Not part of the default suite, because it takes an hour: ``make articles``.
"""

import dataclasses
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import box
import oracle
from benchmarks import SHORT, apply_example, apply_examples
from checks import disagreements, outcome
from conftest import watched
from evidence import say
from kube import LAB, OPERATOR_NAMESPACE, Object, get, install, summarize
from session import Session, start_recorder

NAMESPACE = "e2e-boards"
EXAMPLE = "examples/two-boards.yaml"
SHORT_BOARDS = "examples/short-boards.patch.yaml"
ERLANG = "examples/mnesia-two-boards.yaml"
PROGRAMS = "examples/boards-cpu.yaml"
BOARD = "pi-2"
IMAGES = [
    f"ghcr.io/frugality-dev/{name}:0.1.0"
    for name in ("meter", "injector", "streamdata-rust", "mnesia-erlang", "programs")
]
SECONDS = 3000
UNCERTAINTY = 0.02
NODE_OF = {"large": box.MEASURED_NODE, "small": BOARD}
# The prices in the example.
PRICE_OF = {"large": 90, "small": 30}
FIVE_YEARS_SECONDS = 43800 * 3600


def lab(*arguments: str) -> None:
    result = subprocess.run([LAB, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, f"lab {' '.join(arguments)}: {result.stdout}{result.stderr}"


@dataclass
class Boards:
    """The benchmark at its end, and the session of each candidate's node."""

    sessions: dict[str, Session]
    benchmark: Object
    trials: list[Object]

    def of(self, candidate: str) -> list[Object]:
        return [trial for trial in self.trials if trial["spec"]["candidate"] == candidate]

    def result(self, candidate: str) -> Object:
        results = self.benchmark["status"]["results"]
        (result,) = [result for result in results if result["candidate"] == candidate]
        return result


def power(models: dict[str, oracle.Model]) -> Object:
    nodes = {
        node: {
            "source": {"type": "model"},
            "idleWatts": model.idle_watts,
            "wattsPerCpu": model.watts_per_cpu,
            "relativeUncertainty": UNCERTAINTY,
        }
        for node, model in models.items()
    }
    return {"meter": {"power": {"nodes": nodes}}}


def ended(sessions: dict[str, Session], name: str) -> Boards:
    session = sessions["large"]
    benchmark = session.ended(f"{NAMESPACE}/{name}", SECONDS)
    say(summarize(benchmark))
    trials = session.observer.trials_of(f"{NAMESPACE}/{name}")
    return Boards(sessions, benchmark, [trial for trial in trials if outcome(trial) == "Measured"])


@pytest.fixture(scope="module")
def boards(sessions: dict[str, Session]) -> Boards:
    return ended(sessions, apply_example(NAMESPACE, EXAMPLE, SHORT_BOARDS))


@pytest.fixture(scope="module")
def erlang(sessions: dict[str, Session]) -> Boards:
    return ended(sessions, apply_example(NAMESPACE, ERLANG, SHORT))


@pytest.fixture(scope="module")
def programs(sessions: dict[str, Session]) -> dict[str, Boards]:
    names = apply_examples(NAMESPACE, PROGRAMS, SHORT)
    return {name: ended(sessions, name) for name in names}


@pytest.fixture(scope="module")
def sessions(request: pytest.FixtureRequest) -> Iterator[dict[str, Session]]:
    """The sessions by candidate, each with the model of the candidate's node."""
    lab("board", BOARD)
    try:
        lab("load", *IMAGES)
        with watched([NAMESPACE], request) as session:
            known = session.model
            half = dataclasses.replace(
                known, idle_watts=known.idle_watts / 2, watts_per_cpu=known.watts_per_cpu / 2
            )
            install(power({box.MEASURED_NODE: known, BOARD: half}), box.ARTIFACTS / "boards-values.json")
            recording = box.ARTIFACTS / "cpu-of-the-board.record"
            recorder = start_recorder(BOARD, recording)
            try:
                small = dataclasses.replace(session, model=half, recording=recording)
                yield {"large": session, "small": small}
            finally:
                recorder.terminate()
                recorder.wait(10)
    finally:
        install({}, box.ARTIFACTS / "boards-values.json")
        lab("board", BOARD, "down")


@pytest.mark.parametrize("candidate", NODE_OF)
def test_each_trial_is_on_its_own_board_and_agrees_with_the_oracle(boards: Boards, candidate: str) -> None:
    assert_on_its_board(boards, candidate)


def assert_on_its_board(boards: Boards, candidate: str) -> None:
    trials = boards.of(candidate)
    assert len(trials) >= 5
    session, node = boards.sessions[candidate], NODE_OF[candidate]
    for trial in trials:
        assert trial["spec"]["measuredNode"] == node
        assert trial["spec"]["injectorNode"] == box.INJECTOR_NODE
        for uid in trial["status"]["candidatePods"]:
            assert session.observer.spans[uid].node == node
    assert disagreements(session, session.record(), trials) == []


@pytest.mark.parametrize("candidate", NODE_OF)
def test_a_script_runs_against_each_board_and_agrees_with_the_oracle(erlang: Boards, candidate: str) -> None:
    assert_on_its_board(erlang, candidate)
    result = erlang.result(candidate)
    assert result["errorRatio"]["value"] == 0
    assert result["cycles"]["requestsPerCycle"] == pytest.approx(6, abs=0.02)
    (check,) = result["cycles"]["checks"]
    assert (check["failed"], check["passed"] > 0) == (0, True)


def test_the_board_of_half_the_watts_wins_with_both_meters_uncertainty(boards: Boards) -> None:
    assert_half(boards)


def test_the_board_of_half_the_watts_runs_cycles_for_half_the_joules(erlang: Boards) -> None:
    assert_half(erlang)


def assert_half(boards: Boards) -> None:
    status = boards.benchmark["status"]
    assert (status["verdict"], status["winner"]) == ("Reported", "small")
    assert status["measuredNode"] == f"{box.MEASURED_NODE}, {BOARD}"
    (comparison,) = [c for c in status["comparisons"] if c["candidate"] == "small"]
    ratio, expanded = comparison["ratio"], comparison["ratio"]["expanded"]
    # Half the watts for the same work at the same speed, if the machine's speed does not change.
    assert expanded["lower"] < 0.5 < expanded["upper"], ratio
    assert expanded["coversMeter"]
    # 2 % of each meter, with a coverage factor of 2, in addition to the spread.
    assert expanded["upper"] / ratio["value"] > 1 + 2 * UNCERTAINTY * 2**0.5
    assert expanded["upper"] > ratio["upper"]


@pytest.mark.parametrize("candidate", NODE_OF)
def test_watts_and_costs_belong_to_the_board(boards: Boards, candidate: str) -> None:
    result, trials = boards.result(candidate), boards.of(candidate)[-5:]
    node = result["node"]
    assert node["name"] == NODE_OF[candidate]
    idle = [trial["status"]["energy"][f"idle{when}Watts"] for trial in trials for when in ("Before", "After")]
    assert min(idle) <= node["idleWatts"]["value"] <= max(idle)
    model = boards.sessions[candidate].model
    assert model.idle_watts < node["idleWatts"]["value"] < node["loadWatts"]["value"]
    assert node["loadWatts"]["value"] < model.idle_watts + model.watts_per_cpu * model.cpus * 1.01
    rate = result["requestsPerSecond"]["value"]
    for_node = 1e6 / rate * PRICE_OF[candidate] / FIVE_YEARS_SECONDS
    assert result["money"]["node"] == pytest.approx(for_node, rel=1e-4)


PROGRAM_NAMES = ("cpu-stockfish", "cpu-raytracer", "cpu-network", "cpu-disk")
WORK = {"cpu-stockfish": "node", "cpu-network": "byte"}


@pytest.mark.parametrize("name", PROGRAM_NAMES)
def test_programs_run_on_each_board_and_agree_with_the_oracle(programs: dict[str, Boards], name: str) -> None:
    assert set(programs) == set(PROGRAM_NAMES)
    boards = programs[name]
    assert boards.benchmark["status"]["verdict"] == "Reported", boards.benchmark["status"]["columns"]
    for candidate in NODE_OF:
        assert_on_its_board(boards, candidate)
        result = boards.result(candidate)
        assert result["errorRatio"]["value"] == 0
        batch = result["batch"]
        score = batch["score"]
        assert score["least"] <= score["mean"] <= score["most"]
        assert score["standardDeviation"] > 0
        assert batch.get("workUnit") == WORK.get(name)
        # Only of the trials that count.
        last = boards.of(candidate)[-result["trials"] :]
        assert batch["executions"] == sum(t["status"]["batch"]["executions"]["count"] for t in last)
        # The joules of an execution are the joules of its units.
        units = batch.get("workPerExecution", 1)
        of_unit = result["grossJoulesPerRequest"]["value"]
        assert batch["joulesPerExecution"]["value"] == pytest.approx(of_unit * units, rel=0.02)


@pytest.mark.parametrize("name", ["cpu-stockfish", "cpu-raytracer"])
def test_the_board_of_half_the_watts_computes_for_half_the_joules(
    programs: dict[str, Boards], name: str
) -> None:
    status = programs[name].benchmark["status"]
    assert status["winner"] == "small"
    (comparison,) = [c for c in status["comparisons"] if c["candidate"] == "small"]
    expanded = comparison["ratio"]["expanded"]
    assert expanded["lower"] < 0.5 < expanded["upper"], comparison["ratio"]


def test_no_node_is_held_afterwards(boards: Boards) -> None:
    """All three locks are free once the last pod is gone."""

    def is_free() -> bool:
        return not get("leases", "-n", OPERATOR_NAMESPACE, "-l", "frugality.dev/lock=node")["items"]

    observer = boards.sessions["large"].observer
    observer.until(is_free, 60, "the end of all locks")
