"""Two candidates under nine loads, five blocks at each: status and the operator's memory stay small.

Not part of the default suite, because it takes over an hour: ``make articles``.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import waiting
from benchmarks import SHORT, apply_example
from checks import STATUS_BYTES, disagreements, outcome
from conftest import watched
from evidence import say
from kube import Object, get, kubectl, summarize
from session import Session

NAMESPACE = "e2e-nine-points"
NAME = "rust-vs-python-sweep"
POINTS = 9
CANDIDATES = ("rust", "python")
BLOCKS = 5
SECONDS = 7200
# The ledger's entries, which the operator caches, and memory that the allocator keeps.
GROWTH_MIB = 8


# The ledger becomes as long as with five times as many blocks.
LONGER = 5


@dataclass
class Swept:
    session: Session
    benchmark: Object
    trials: list[Object]


@pytest.fixture(scope="module")
def swept(request: pytest.FixtureRequest) -> Iterator[Swept]:
    with watched([NAMESPACE], request) as session:
        apply_example(NAMESPACE, f"examples/{NAME}.yaml", SHORT)
        benchmark = session.ended(f"{NAMESPACE}/{NAME}", SECONDS)
        yield Swept(session, benchmark, session.observer.trials_of(f"{NAMESPACE}/{NAME}"))


def test_each_point_has_both_candidates_and_their_comparison(swept: Swept) -> None:
    say(summarize(swept.benchmark))
    status = swept.benchmark["status"]
    points = [f"c{2**power}-max" for power in range(POINTS)]
    assert status["verdict"] == "Reported", status["columns"]
    results = [(result["point"], result["candidate"], result["trials"]) for result in status["results"]]
    assert sorted(results) == sorted((point, name, BLOCKS) for point in points for name in CANDIDATES)
    assert sorted(comparison["point"] for comparison in status["comparisons"]) == sorted(points)


def test_every_trials_figures_agree_with_the_oracle(swept: Swept) -> None:
    measured = [trial for trial in swept.trials if outcome(trial) == "Measured"]
    assert len(measured) >= POINTS * len(CANDIDATES) * BLOCKS
    assert disagreements(swept.session, swept.session.record(), measured) == []


def test_status_stays_small(swept: Swept) -> None:
    size = len(json.dumps(swept.benchmark["status"]))
    entries = sorted(len(json.dumps(trial["status"])) for trial in swept.trials)
    say(f"status {size} bytes, {len(entries)} entries of the ledger of {entries[0]} to {entries[-1]} bytes")
    assert size < STATUS_BYTES


def test_the_operators_memory_stays_flat(swept: Swept) -> None:
    early, late = swept.session.memory.early_and_late_mib("operator")
    say(f"operator: {early:.1f} MiB in the second tenth of the run, {late:.1f} MiB in the last")
    assert late - early < GROWTH_MIB


def lengthen(benchmark: Object, trials: list[Object]) -> str:
    """Creates a suspended copy of the benchmark with several copies of each entry. Returns its name."""
    namespace, name = benchmark["metadata"]["namespace"], "longer"
    copy = {key: benchmark[key] for key in ("apiVersion", "kind")}
    copy |= {
        "metadata": {"namespace": namespace, "name": name},
        "spec": benchmark["spec"] | {"suspend": True},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(copy))
    kubectl("wait", "--for=jsonpath={.status.run}", f"fb/{name}", "-n", namespace, "--timeout=30s")
    of = get("fb", name, "-n", namespace)
    text = json.dumps(trials)
    for key in (lambda fb: fb["metadata"]["uid"], lambda fb: fb["status"]["run"]):
        text = text.replace(key(benchmark), key(of))
    items = []
    for attempt in range(1, LONGER + 1):
        for trial in json.loads(text):
            # The garbage collector compares the owner's name too.
            owner = trial["metadata"]["ownerReferences"][0] | {"name": name}
            trial["metadata"] = {
                "namespace": namespace,
                "name": f"{trial['metadata']['name']}-{attempt}",
                "ownerReferences": [owner],
            }
            trial["spec"] |= {"attempt": attempt, "benchmark": name}
            items.append(trial)
    entries = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    kubectl("create", "-f", "-", "--validate=false", stdin=entries, timeout=300)
    kubectl("replace", "--subresource=status", "--validate=false", "-f", "-", stdin=entries, timeout=300)
    # Last, because the operator sees entries by their label. It would end an entry without an outcome.
    labels = [f"{key}={value}" for key, value in json.loads(text)[0]["metadata"]["labels"].items()]
    unseen = f"!{labels[0].partition('=')[0]}"
    kubectl("label", "fbt", "-n", namespace, "-l", unseen, *labels, timeout=300)
    return name


def test_a_longer_ledger_takes_no_more_memory(swept: Swept) -> None:
    (before,) = swept.session.memory.resident_kib("operator").values()
    name = lengthen(swept.benchmark, swept.trials)

    def verdict() -> str:
        return str(get("fb", name, "-n", NAMESPACE)["status"].get("verdict", ""))

    def is_up() -> bool:
        return bool(swept.session.memory.resident_kib("operator"))

    assert waiting.until(verdict, 60, f"the verdict of {name}") == swept.benchmark["status"]["verdict"]
    for look in range(10):
        # Each change makes the operator read the whole ledger, if the changes do not come together.
        kubectl("annotate", "--overwrite", "fb", name, "-n", NAMESPACE, f"look={look}")
        waiting.hold(1, is_up, "the operator's process")
    assert verdict() == swept.benchmark["status"]["verdict"]
    (after,) = swept.session.memory.resident_kib("operator").values()
    entries = LONGER * len(swept.trials)
    say(f"operator: {before / 1024:.1f} MiB, and {after / 1024:.1f} MiB with {entries} entries to look at")
    assert after - before < 1024 * GROWTH_MIB
