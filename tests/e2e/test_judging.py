"""Editing a budget judges the same trials anew, and measures nothing."""

import json
import re

import pytest

from benchmarks import LONG
from checks import assert_ended
from kube import Object, get, kubectl
from session import Session

IMPOSSIBLE = "0.000001"


def trials() -> set[str]:
    return {trial["metadata"]["uid"] for trial in get("fbt", "-n", LONG.namespace)["items"]}


def judged_with(session: Session, budgets: list[Object]) -> Object:
    """The benchmark, once the operator has looked at these budgets."""
    change = json.dumps({"spec": {"budgets": budgets}})
    command = ("patch", "fb", LONG.name, "-n", LONG.namespace, "--type=merge", "-p", change, "-o", "json")
    generation = json.loads(kubectl(*command).stdout)["metadata"]["generation"]

    def is_judged() -> bool:
        status = session.observer.benchmarks[LONG.key].get("status", {})
        return status.get("observedGeneration") == generation and session.observer.is_complete(LONG.key)

    session.observer.until(is_judged, 60, "the new judgement")
    return get("fb", LONG.name, "-n", LONG.namespace)


@pytest.fixture(scope="module")
def before(long_run: Object) -> tuple[Object, set[str]]:
    return long_run, trials()


def test_a_budget_that_cannot_be_met_fails_with_numbers(
    session: Session, before: tuple[Object, set[str]]
) -> None:
    run, ledger = before
    failed = judged_with(session, [{"candidate": "rust", "maxJoulesPerRequest": IMPOSSIBLE}])
    message = assert_ended(failed, "Fail", "BudgetExceeded")
    figure = next(r for r in run["status"]["results"] if r["candidate"] == "rust")["grossJoulesPerRequest"]
    (budget,) = failed["status"]["budgets"]
    assert (budget["outcome"], budget["limitValue"]) == ("Exceeded", float(IMPOSSIBLE))
    assert budget["figure"] == figure
    decides = figure["expanded"]
    for number in (figure["value"], decides["lower"], decides["upper"], float(IMPOSSIBLE)):
        assert any(abs(told / number - 1) < 0.006 for told in numbers(message)), (number, message)
    assert "gross J/request" in message
    assert failed["status"]["winner"] == "rust"
    assert (failed["status"]["run"], trials()) == (run["status"]["run"], ledger)


def test_the_old_budgets_pass_again(session: Session, before: tuple[Object, set[str]]) -> None:
    run, ledger = before
    passed = judged_with(session, run["spec"]["budgets"])
    assert_ended(passed, "Pass", "BudgetsMet")
    same = ("run", "results", "comparisons", "ledgerDigest", "winner", "budgets")
    assert {name for name in same if passed["status"][name] != run["status"][name]} == set()
    assert trials() == ledger


def numbers(text: str) -> list[float]:
    """The numbers of a sentence."""
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", text)]
