"""Programs that run to completion: their executions, the numbers in their output, and a failed program."""

import pytest

from benchmarks import EXECUTED, NOT_EXECUTED, SENT, Benchmark
from checks import assert_ended, disagreements, outcome
from kube import Object, get
from session import Session

TURN_SECONDS = 600
executed = pytest.mark.benchmarks(EXECUTED)


def measured(session: Session, benchmark: Benchmark = EXECUTED) -> Object:
    session.ended(benchmark.key, TURN_SECONDS)
    trials = session.observer.trials_of(benchmark.key)
    (trial,) = [trial for trial in trials if outcome(trial) == "Measured"]
    return trial


@executed
def test_whole_executions_are_counted_with_their_score_and_their_work(session: Session) -> None:
    status = measured(session)["status"]
    figures, batch, window = status["requests"], status["batch"], status["window"]
    seconds = window["endUnixSeconds"] - window["startUnixSeconds"]
    assert figures["errors"] == 0
    assert figures["successes"] == batch["executions"]["count"] > 1
    # All executions that begin within 20 s, one after another.
    assert seconds - batch["executions"]["maxSeconds"] < 20 < seconds + 0.1
    assert 0.9 * seconds < batch["executions"]["sumSeconds"] < 1.001 * seconds
    # A single thread searches the same nodes each time, because positions and depth are the same.
    work, score = batch["work"], batch["score"]
    assert work["least"] == work["most"] > 10_000
    assert score["least"] <= score["mean"] <= score["most"]
    # The engine does not count its starting time.
    assert work["mean"] / batch["executions"]["minSeconds"] < score["most"]
    assert figures["work"] == pytest.approx(work["mean"] * work["count"])
    assert figures["requestsPerSecond"] == pytest.approx(figures["work"] / seconds)
    assert not {"fortio", "k6"} & status.keys()


@executed
def test_the_program_runs_only_in_the_window(session: Session) -> None:
    trial = measured(session)
    (pod,) = trial["status"]["candidatePods"]
    record, window = session.record(), trial["status"]["window"]
    begin, end = window["startUnixSeconds"], window["endUnixSeconds"]
    # It computes all the time, on the one measured core. It does not run before and after the window.
    assert record.pods[pod].used(begin, end) > 0.4 * (end - begin)
    idle = trial["status"]["idleAfter"]
    idle_seconds = idle["endUnixSeconds"] - idle["startUnixSeconds"]
    assert record.pods[pod].used(idle["startUnixSeconds"], idle["endUnixSeconds"]) < 0.05 * idle_seconds


@pytest.mark.benchmarks(SENT)
def test_the_number_of_executions_is_the_one_of_the_spec(session: Session) -> None:
    batch = measured(session, SENT)["status"]["batch"]
    assert batch["executions"]["count"] == SENT.spec["batch"]["executions"]
    # The program sends for five seconds, by its own clock.
    sent = 8 * batch["work"]["mean"] / batch["score"]["mean"]
    assert sent == pytest.approx(5, rel=0.05)


@pytest.mark.parametrize("benchmark", [EXECUTED, SENT], ids=lambda it: it.name)
def test_its_figures_agree_with_the_oracle(session: Session, benchmark: Benchmark) -> None:
    assert disagreements(session, session.record(), [measured(session, benchmark)]) == []


@executed
def test_only_the_ledger_is_left(session: Session) -> None:
    measured(session)

    def left() -> list[str]:
        items = get("deployments,replicasets,services,jobs,pods", "-n", EXECUTED.namespace)["items"]
        names = [item["metadata"]["name"] for item in items]
        return [name for name in names if name.startswith(EXECUTED.name)]

    session.observer.until(lambda: not left(), 60, "the end of the program's pod")


@pytest.mark.benchmarks(NOT_EXECUTED)
def test_a_failed_program_is_reported_with_its_output(session: Session) -> None:
    benchmark = session.ended(NOT_EXECUTED.key, TURN_SECONDS)
    message = assert_ended(benchmark, "Error", "NoSuccessfulRequest")
    assert "candidate program was never executed as expected" in message
    assert "exit code 3: there is no board" in message
