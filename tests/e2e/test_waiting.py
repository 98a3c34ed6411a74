"""While a benchmark is measured, another one reports its wait. Impossible ones are refused without a turn."""

import pytest

from benchmarks import DELETED, LONG, MODELLED, NO_INJECTOR
from checks import RUNNING, assert_ended, assert_no_number, kstatus
from evidence import Moment
from session import Session


@pytest.mark.benchmarks(LONG, DELETED)
def test_a_queued_benchmark_names_the_benchmark_before_it(session: Session) -> None:
    def queued() -> list[Moment]:
        moments = session.observer.moments(DELETED.key)
        return [m for m in moments if m.reason == "Queued" and f"waiting for {LONG.key}" in m.message]

    moment = session.observer.until(queued, 120, f"{DELETED.key} waiting for {LONG.key}")[0]
    assert kstatus(moment.conditions) == RUNNING


@pytest.mark.benchmarks(NO_INJECTOR)
def test_a_benchmark_without_injector_node_names_the_setting_to_write(session: Session) -> None:
    ended = session.ended(NO_INJECTOR.key, 120)
    message = assert_ended(ended, "Invalid", "NoInjectorNode")
    assert "example.com/no-such-label=yes" in message
    assert "spec.placement.allowSharedNode: true" in message
    assert_no_number(ended)


@pytest.mark.benchmarks(MODELLED)
def test_modelled_power_decides_a_budget_only_if_the_spec_allows_it(session: Session) -> None:
    ended = session.ended(MODELLED.key, 120)
    message = assert_ended(ended, "Invalid", "ModelledPowerNotAllowed")
    assert "spec.energy.allowModelled: true" in message
    assert_no_number(ended)
    assert session.observer.trials_of(MODELLED.key) == []
