"""A benchmark that can't work ends as Error with a reason, before its deadline and without a figure.

The operator's own tests cover a cluster without CloudNativePG. This suite would need a second cluster for it.
"""

import re

import pytest

from benchmarks import ANSWERS_500, AS_ROOT, CRASHES, NO_DATABASE, NO_IMAGE, WRONG_PORT, Benchmark
from checks import assert_ended, assert_no_number, next_to_oracle, outcome
from kube import duration_seconds
from session import Session


@pytest.mark.parametrize(
    ("benchmark", "reason", "message"),
    [
        (ANSWERS_500, "NoSuccessfulRequest", r"Candidate broken answered no request as expected: \d+ × 500\.$"),
        (NO_IMAGE, "ImagePullFailed", "candidate missing: .*no-such-server"),
        (AS_ROOT, "ImageRunsAsRoot", "candidate root: .*image will run as root.*runAsUser"),
        (CRASHES, "CandidateCrashed", "crashing: .*ended 2 times .*: exit code 3: lost its configuration"),
        (WRONG_PORT, "CandidateNotReady", "the server was not ready 15 s after its start: nothing listens on port 9090"),
        (NO_DATABASE, "ImagePullFailed", "database: .*postgresql:15-missing"),
    ],
    ids=lambda value: value.name if isinstance(value, Benchmark) else "",
)
def test_an_error_has_its_reason_before_the_deadline_and_no_figure(
    session: Session, benchmark: Benchmark, reason: str, message: str
) -> None:
    ended = session.ended(benchmark.key, 400)
    text = assert_ended(ended, "Error", reason)
    assert re.search(message, text), text
    assert_no_number(ended)
    moments = session.observer.moments(benchmark.key)
    begun = min(m.at for m in moments if m.reason not in ("", "Queued", "Waiting", "CleaningUp"))
    over = min(m.at for m in moments if m.status.get("verdict"))
    assert over - begun < duration_seconds(benchmark.spec["deadline"])


@pytest.mark.benchmarks(ANSWERS_500)
def test_a_server_that_only_fails_is_still_measured(session: Session) -> None:
    session.ended(ANSWERS_500.key, 400)
    trials = session.observer.trials_of(ANSWERS_500.key)
    (trial,) = [trial for trial in trials if outcome(trial) == "Measured"]
    assert trial["status"]["requests"]["successes"] == 0
    assert trial["status"]["requests"]["errors"] > 500
    found = {d.figure: d for d in next_to_oracle(session, session.record(), trial)}
    # Fifty requests per second use too little CPU to compare it within one percent.
    names = (
        "requests",
        "successes",
        "requestsPerSecond",
        "msPerRequest",
        "nodeJoules",
        "grossJoulesPerRequest",
    )
    assert [str(found[name]) for name in names if found[name].is_wrong] == []
    assert [name for name in names if found[name].reported is None] == [*names[2:4], names[5]]
