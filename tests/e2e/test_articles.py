"""Three of the examples, in their documented short forms, and their results.

Not part of the default suite, because these take over an hour. ``make articles`` runs them and all others.
"""

import json
from collections.abc import Iterator
from statistics import fmean, geometric_mean, linear_regression

import pytest

from benchmarks import SHORT, apply_example
from checks import STATUS_BYTES, disagreements, outcome
from conftest import watched
from evidence import say
from kube import Object, summarize
from session import Session

NAMESPACE = "e2e-articles"
STREAMDATA = "examples/rust-vs-go-streamdata.yaml"
STREAMDATA_POINTS = {"c10-max", "c40-max", "c160-max"}
SWEEP = "examples/rust-vs-python-sweep.yaml"
SHORT_SWEEP = "examples/short-sweep.patch.yaml"
LEVELS = "examples/rust-vs-python-levels.yaml"
SHORT_LEVELS = "examples/short-levels.patch.yaml"
EXAMPLE_SECONDS = 2400


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with watched([NAMESPACE], request) as session:
        yield session


def run(session: Session, example: str, patch: str) -> Object:
    """Runs an example in its documented short form to its end."""
    name = apply_example(NAMESPACE, example, patch)
    benchmark = session.ended(f"{NAMESPACE}/{name}", EXAMPLE_SECONDS)
    say(f"{example}\n{summarize(benchmark)}")
    return benchmark


@pytest.fixture(scope="module")
def streamdata(session: Session) -> Object:
    return run(session, STREAMDATA, SHORT)


@pytest.fixture(scope="module")
def sweep(session: Session) -> Object:
    return run(session, SWEEP, SHORT_SWEEP)


@pytest.fixture(scope="module")
def levels(session: Session) -> Object:
    return run(session, LEVELS, SHORT_LEVELS)


def assert_true(session: Session, benchmark: Object) -> None:
    """Checks that it ended with a verdict, and that each trial's figures agree with the oracle."""
    status = benchmark["status"]
    assert status["verdict"] == "Reported", status["columns"]
    key = f"{NAMESPACE}/{benchmark['metadata']['name']}"
    assert {result["trials"] for result in status["results"]} == {5}
    # Including trials of blocks that were measured again.
    trials = [trial for trial in session.observer.trials_of(key) if outcome(trial) == "Measured"]
    assert len(trials) >= 5 * len(status["results"])
    assert disagreements(session, session.record(), trials) == []
    assert len(json.dumps(status)) < STATUS_BYTES


def test_rust_and_go_behind_balancers_are_separated(session: Session, streamdata: Object) -> None:
    assert_true(session, streamdata)
    status = streamdata["status"]
    comparisons = [c for c in status["comparisons"] if c["candidate"] == "rust"]
    assert {comparison["point"] for comparison in comparisons} == STREAMDATA_POINTS
    for comparison in comparisons:
        ratio = comparison["ratio"]
        assert ratio["upper"] < 1 or ratio["lower"] > 1, comparison
    for result in status["results"]:
        names = [workload["name"] for workload in result["workloads"]]
        assert names == sorted([result["candidate"], "service"])
        parts = sum(w["attributedJoulesPerRequest"]["value"] for w in result["workloads"])
        # The means of the parts and of the whole are geometric. Their sums differ by less than their spread.
        assert parts == pytest.approx(result["attributedJoulesPerRequest"]["value"], rel=0.02)


def test_the_balancers_sweep_names_the_best_points(streamdata: Object) -> None:
    assert_bests(streamdata, ["rust", "go"], STREAMDATA_POINTS)


def test_a_sweep_names_the_best_points_of_each_server(session: Session, sweep: Object) -> None:
    assert_true(session, sweep)
    assert_bests(sweep, ["rust", "python"], {"c2-max", "c8-max", "c32-max"})


def assert_bests(benchmark: Object, candidates: list[str], points: set[str]) -> None:
    """Checks that every point is measured, and that each candidate's best points are named."""
    status = benchmark["status"]
    assert [result["candidate"] for result in status["sweep"]] == candidates
    assert {result["point"] for result in status["results"]} == points
    for result in status["sweep"]:
        for best in ("mostRequestsPerSecond", "mostRequestsPerJoule", "knee"):
            assert {result[best]["point"]} <= set(result[best]["among"]) <= points


@pytest.fixture(scope="module")
def rounds(session: Session, levels: Object) -> dict[str, list[dict[str, Object]]]:
    """The newest measured trials of each candidate: round by round, by point."""
    key = f"{NAMESPACE}/{levels['metadata']['name']}"
    points = len({result["point"] for result in levels["status"]["results"]})
    found: dict[str, list[dict[str, Object]]] = {}
    # A later attempt at a block replaces an earlier one.
    for trial in session.observer.trials_of(key):
        spec = trial["spec"]
        if spec["block"] > 0 and outcome(trial) == "Measured":
            of_candidate = found.setdefault(spec["candidate"], [{} for _ in range(5)])
            of_candidate[(spec["block"] - 1) // points][spec["point"]] = trial
    return found


def rate(trial: Object) -> float:
    return trial["status"]["requests"]["requestsPerSecond"]


def test_levels_are_shares_of_the_highest_rate_and_are_reached(
    session: Session, levels: Object, rounds: dict[str, list[dict[str, Object]]]
) -> None:
    assert_true(session, levels)
    for of_candidate in rounds.values():
        for of_round in of_candidate:
            highest = rate(of_round["c8-max"])
            assert "ratePerSecond" not in of_round["c8-max"]["spec"]
            for level in (100, 50):
                trial = of_round[f"c8-{level}%"]
                asked = trial["spec"]["ratePerSecond"]
                assert highest * level / 100 - 0.01 <= asked <= highest * level / 100
                # A server may not reach its highest rate again if requests are due at even distances.
                assert rate(trial) == pytest.approx(asked, rel=0.2 if level == 100 else 0.02)


def test_the_load_curve_follows_from_the_trials(
    levels: Object, rounds: dict[str, list[dict[str, Object]]]
) -> None:
    for sweep in levels["status"]["sweep"]:
        curve = sweep["loadCurve"]
        assert "withheld" not in curve, curve
        per_joule, marginal, share = [], [], []
        for of_round in rounds[sweep["candidate"]]:
            trials = [of_round["c8-100%"], of_round["c8-50%"]]
            energies = [trial["status"]["energy"] for trial in trials]
            idle = fmean(it[when] for it in energies for when in ("idleBeforeWatts", "idleAfterWatts"))
            watts = [it["nodeJoules"] / length(trial) for it, trial in zip(energies, trials, strict=True)]
            rates = [rate(trial) for trial in trials]
            per_joule.append(sum(rates) / (sum(watts) + idle))
            marginal.append(linear_regression([*rates, 0], [*watts, idle]).slope)
            share.append(idle / watts[0])
        assert curve["requestsPerJoule"]["value"] == pytest.approx(geometric_mean(per_joule), rel=1e-5)
        assert curve["marginalJoulesPerRequest"]["value"] == pytest.approx(geometric_mean(marginal), rel=1e-5)
        assert curve["idleShare"]["value"] == pytest.approx(geometric_mean(share), rel=1e-5)


def length(trial: Object) -> float:
    window = trial["status"]["window"]
    return window["endUnixSeconds"] - window["startUnixSeconds"]
