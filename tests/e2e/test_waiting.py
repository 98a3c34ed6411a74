"""While another benchmark is measured: who waits says so, and what can't be is refused without a turn."""

import pytest

from benchmarks import DELETED, LONG, MODELLED, NO_INJECTOR
from checks import RUNNING, assert_ended, assert_no_number, kstatus
from evidence import Moment
from session import Session


@pytest.mark.benchmarks(LONG, DELETED)
def test_the_others_say_that_they_queue_and_for_whom(session: Session) -> None:
    def queued() -> list[Moment]:
        moments = session.observer.moments(DELETED.key)
        return [m for m in moments if m.reason == "Queued" and f"waits for {LONG.key}" in m.message]

    moment = session.observer.until(queued, 120, f"{DELETED.key} waiting for {LONG.key}")[0]
    assert kstatus(moment.conditions) == RUNNING


@pytest.mark.benchmarks(NO_INJECTOR)
def test_without_a_node_for_the_injector_it_says_what_to_write(session: Session) -> None:
    ended = session.ended(NO_INJECTOR.key, 120)
    message = assert_ended(ended, "Invalid", "NoInjectorNode")
    assert "example.com/no-such-label=yes" in message
    assert "spec.placement.allowSharedNode: true" in message
    assert_no_number(ended)


@pytest.mark.benchmarks(MODELLED)
def test_modelled_power_gates_nothing_that_does_not_allow_it(session: Session) -> None:
    ended = session.ended(MODELLED.key, 120)
    message = assert_ended(ended, "Invalid", "ModelledPowerNotAllowed")
    assert "spec.energy.allowModelled: true" in message
    assert_no_number(ended)
    assert session.observer.trials_of(MODELLED.key) == []
