"""A benchmark deleted under load leaves nothing behind, and the queue goes on."""

import pytest

from benchmarks import DELETED, KILLED
from scenarios import Deletion
from session import Session

pytestmark = pytest.mark.benchmarks(DELETED)


@pytest.fixture(scope="module")
def deletion(session: Session) -> Deletion:
    return session.deleting.result(900)


def test_it_had_objects_of_every_kind(deletion: Deletion) -> None:
    kinds = {name.split("/")[0].split(".")[0] for name in deletion.before}
    expected = {
        *("cluster", "configmap", "deployment", "endpoints", "endpointslice", "frugalitytrial", "job", "pod"),
        *(
            "persistentvolume",
            "persistentvolumeclaim",
            "replicaset",
            "role",
            "rolebinding",
            "secret",
            "service",
        ),
    }
    # ConfigMaps are CloudNativePG's, for its monitoring; a version of it may do without.
    assert expected - {"configmap", "endpoints"} <= kinds


def test_nothing_of_it_is_left_after_two_minutes(deletion: Deletion) -> None:
    assert deletion.left == set()
    assert deletion.seconds <= 120


@pytest.mark.benchmarks(KILLED)
def test_the_next_in_the_queue_goes_on(session: Session, deletion: Deletion) -> None:
    def goes_on() -> bool:
        return session.observer.reason(KILLED.key) in ("StartingDatabase", "Seeding", "Measuring") or (
            session.observer.is_complete(KILLED.key)
        )

    session.observer.until(goes_on, 60, f"the turn of {KILLED.key} after {DELETED.key}")
