"""A benchmark that is deleted under load leaves nothing behind, and the queue continues."""

from collections.abc import Iterable

import pytest

from benchmarks import DELETED, KILLED
from scenarios import Deletion, name_of, owners
from session import Session

pytestmark = pytest.mark.benchmarks(DELETED)
# The kinds that the operator creates for a benchmark with CloudNativePG, and Kubernetes for these kinds.
OF_OPERATOR = {
    *("FrugalityBenchmark", "FrugalityTrial", "Cluster", "Deployment", "ReplicaSet", "Job", "Pod"),
    *("Service", "EndpointSlice"),
}
# The kinds that CloudNativePG creates for a Cluster in each of its versions.
OF_CLOUDNATIVEPG = {
    *("Pod", "PersistentVolumeClaim", "Secret", "Service", "EndpointSlice"),
    *("ServiceAccount", "Role", "RoleBinding"),
}
# Kubernetes gives these no owner: Endpoints go with their Service, volumes with their claim.
UNOWNED = {"Endpoints", "PersistentVolume"}


@pytest.fixture(scope="module")
def deletion(session: Session) -> Deletion:
    return session.deleting.result(900)


def owner_kinds(deletion: Deletion) -> dict[str, set[str]]:
    """The kinds of all owners of each object, by the object's kind and name."""
    by_uid = {resource["metadata"]["uid"]: resource for resource in deletion.before}
    return {
        name_of(resource): {owner["kind"] for owner in owners(resource, by_uid)}
        for resource in deletion.before
    }


def kinds(names: Iterable[str]) -> set[str]:
    return {name.split("/")[0] for name in names}


def test_it_had_exactly_the_kinds_of_objects_that_the_operator_creates(deletion: Deletion) -> None:
    found = owner_kinds(deletion)
    outside_the_database = [name for name, owned_by in found.items() if "Cluster" not in owned_by]
    assert kinds(outside_the_database) - UNOWNED == OF_OPERATOR, outside_the_database


def test_its_database_had_objects_that_belong_to_cloudnativepgs_cluster(deletion: Deletion) -> None:
    of_database = [name for name, owned_by in owner_kinds(deletion).items() if "Cluster" in owned_by]
    # Further kinds are CloudNativePG's choice. The Cluster owns them too, or the test before this one fails.
    assert OF_CLOUDNATIVEPG - kinds(of_database) == set(), of_database


def test_each_object_belonged_to_the_benchmark(deletion: Deletion) -> None:
    found = owner_kinds(deletion)
    strays = [name for name, owned_by in found.items() if "FrugalityBenchmark" not in owned_by]
    assert [name for name in strays if name.split("/")[0] not in UNOWNED | {"FrugalityBenchmark"}] == []
    names = {kind: {n.split("/")[1] for n in found if n.startswith(f"{kind}/")} for kind in kinds(found)}
    # Kubernetes names Endpoints after their Service. Later versions may create none.
    assert names.get("Endpoints", set()) <= names["Service"]
    claims = [r for r in deletion.before if r["kind"] == "PersistentVolumeClaim"]
    assert names["PersistentVolume"] == {claim["spec"]["volumeName"] for claim in claims}


def test_nothing_of_it_is_left_after_a_minute(deletion: Deletion) -> None:
    assert deletion.left == set(), f"left after {deletion.seconds:.0f} s"


@pytest.mark.benchmarks(KILLED)
def test_the_next_benchmark_in_the_queue_begins(session: Session, deletion: Deletion) -> None:
    def goes_on() -> bool:
        return session.observer.reason(KILLED.key) in ("StartingDatabase", "Seeding", "Measuring") or (
            session.observer.is_complete(KILLED.key)
        )

    session.observer.until(goes_on, 60, f"the turn of {KILLED.key} after {DELETED.key}")
