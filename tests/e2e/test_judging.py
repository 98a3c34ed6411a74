"""After an edit of budgets or costs the operator judges the same trials again, and measures nothing."""

import json
import re

import pytest

from benchmarks import LONG
from checks import assert_ended
from kube import Object, get, kubectl
from session import Session

pytestmark = pytest.mark.benchmarks(LONG)
IMPOSSIBLE = 0.000001


def trials() -> set[str]:
    return {trial["metadata"]["uid"] for trial in get("fbt", "-n", LONG.namespace)["items"]}


def judged_with(session: Session, **changes: object) -> Object:
    """The benchmark after the operator has judged it with these fields of the spec."""
    change = json.dumps({"spec": changes})
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
    failed = judged_with(session, budgets=[{"candidate": "rust", "maxJoulesPerRequest": IMPOSSIBLE}])
    message = assert_ended(failed, "Fail", "BudgetExceeded")
    figure = next(r for r in run["status"]["results"] if r["candidate"] == "rust")["grossJoulesPerRequest"]
    (budget,) = failed["status"]["budgets"]
    assert (budget["outcome"], budget["limitValue"]) == ("Exceeded", IMPOSSIBLE)
    # A budget of a first try is judged at 96.96 %. A candidate's figure has a 95 % interval.
    judged = budget["figure"]
    assert judged["value"] == figure["value"]
    assert judged["lower"] < figure["lower"] < figure["upper"] < judged["upper"]
    # The accuracy of the box's fictitious board is unknown. The message has the figure without an interval.
    assert figure["expanded"]["repeatabilityOnly"]
    # The figure is in mJ or µJ, with two or three digits.
    joules = [number * unit for number in numbers(message) for unit in (1e-3, 1e-6)]
    assert any(abs(shown / figure["value"] - 1) < 0.06 for shown in joules), message
    assert "(limit 0.000001 J = 1 µJ)" in message
    assert "The model's accuracy is unknown" in message
    assert "[" not in budget["message"]
    assert "J/request" in message
    assert " gross " in message
    assert failed["status"]["winner"] == "rust"
    assert (failed["status"]["run"], trials()) == (run["status"]["run"], ledger)


def test_the_old_budgets_pass_again(session: Session, before: tuple[Object, set[str]]) -> None:
    run, ledger = before
    passed = judged_with(session, budgets=run["spec"]["budgets"])
    assert_ended(passed, "Pass", "BudgetsMet")
    same = ("run", "results", "comparisons", "ledgerDigest", "winner", "budgets")
    assert {name for name in same if passed["status"][name] != run["status"][name]} == set()
    assert trials() == ledger


def test_costs_are_reported_with_the_joules(session: Session, before: tuple[Object, set[str]]) -> None:
    run, ledger = before
    hours, price, kilowatt_hour, embodied, grid = 43800, 90, 0.25, 25000, 56
    costs = {
        "nodeLifetime": f"{hours}h",
        "money": {"currency": "EUR", "node": price, "perKilowattHour": kilowatt_hour},
        "carbon": {"nodeGrams": embodied, "gramsPerKilowattHour": grid},
    }
    try:
        judged = judged_with(session, costs=costs)
        for result in judged["status"]["results"]:
            joules = result["grossJoulesPerRequest"]["value"]
            rate = result["requestsPerSecond"]["value"]
            for kind, node, energy in (("money", price, kilowatt_hour), ("carbon", embodied, grid)):
                terms = (joules * 1e6 / 3.6e6 * energy, node * 1e6 / rate / (hours * 3600))
                cost = result[kind]
                assert cost["unit"] == {"money": "EUR", "carbon": "gCO2e"}[kind]
                assert (cost["energy"], cost["node"]) == pytest.approx(terms, rel=1e-5)
                total = cost["total"]
                assert total["value"] == pytest.approx(sum(terms), rel=1e-5)
                assert total["lower"] < total["value"] < total["upper"]
    finally:
        plain = judged_with(session, costs=None)
    assert [r for r in plain["status"]["results"] if "money" in r or "carbon" in r] == []
    assert (plain["status"]["run"], trials()) == (run["status"]["run"], ledger)


def numbers(text: str) -> list[float]:
    """The numbers of a sentence."""
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", text)]
