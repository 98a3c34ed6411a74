"""Three members have the same objects, from the start and after one or all of them were killed."""

import concurrent.futures
import http.client
import itertools
import random
import signal
from collections.abc import Callable

import pytest

from conftest import Cluster
from harness import HOSTS, MODES, SYNCHRONOUS, TRANSACTIONS, NameServer, Server, text
from program import ask, wait_until

Clusters = Callable[..., Cluster]


def mode_of(cluster: Cluster) -> str:
    return cluster.environment["MODE"]


def wait_same(members: list[Server]) -> dict[str, dict[str, object]]:
    """Wait until all members have the same objects, and return these."""

    def same() -> bool:
        first, *others = (member.objects() for member in members)
        return all(objects == first for objects in others)

    wait_until(same, "all members have the same objects")
    return members[0].objects()


def wait_body(member: Server, path: str, body: bytes) -> None:
    wait_until(lambda: member.ask(path).body == body, f"{member.host} has the written object")


def wait_deleted(connection: http.client.HTTPConnection, path: str) -> None:
    """Delete an object at a member that may not have it yet."""
    wait_until(lambda: ask(connection, path, "DELETE").status == 204, "it can be deleted")


def wait_count(member: Server, count: int) -> None:
    wait_until(lambda: member.stats()["objects"] == count, f"{member.host} has {count} objects")


def test_all_members_are_there(three: Cluster) -> None:
    for member in three.all():
        stats = member.stats()
        assert (stats["members"], stats["mode"]) == (list(HOSTS), mode_of(three))
        assert (member.ask("/readyz").status, member.ask("/healthz").status) == (200, 200)


def test_a_write_at_one_member_arrives_at_the_others(three: Cluster) -> None:
    """In every mode, in some only after a while."""
    for writer, reader in itertools.permutations(three.all(), 2):
        path = writer.create("one")
        reader.wait_for(path)
        modified = writer.ask(path, "PUT", None, text("two"))
        assert modified.json()["version"] == 2
        wait_body(reader, path, modified.body)
        assert writer.ask(path, "DELETE").status == 204
        reader.wait_for(path, 404)


def cycle(writer: http.client.HTTPConnection, reader: http.client.HTTPConnection, misses: list[str]) -> None:
    """Create, modify and delete at one member, and read at another member right after each."""
    created = ask(writer, "/objects", "POST", None, text("one"))
    path = created.header("location")
    assert path is not None
    if ask(reader, path).body != created.body:
        misses.append("create")
    modified = ask(writer, path, "PUT", None, text("two"))
    if ask(reader, path).body != modified.body:
        misses.append("modify")
    assert ask(writer, path, "DELETE").status == 204
    if ask(reader, path).status != 404:
        misses.append("delete")


@pytest.mark.parametrize("three", SYNCHRONOUS, indirect=True)
def test_synchronous_modes_are_right_at_once(three: Cluster) -> None:
    """Under load: each of six clients writes at one member and reads at another."""
    misses: list[str] = []

    def client(pair: tuple[Server, Server]) -> None:
        writer, reader = (member.connection() for member in pair)
        for _ in range(40):
            cycle(writer, reader, misses)
        writer.close()
        reader.close()

    pairs = list(itertools.permutations(three.all(), 2))
    with concurrent.futures.ThreadPoolExecutor(len(pairs)) as pool:
        list(pool.map(client, pairs))
    assert misses == []


def test_members_agree_when_the_load_is_over(three: Cluster) -> None:
    """Each client creates, modifies and deletes its own objects, with each request at another member.

    In ``async_dirty`` each client uses one member only. If two members change one object at about the same
    time, the third may receive the changes in another order, and then stays different for good.
    """
    before = wait_same(three.all())

    def client(seed: int) -> set[str]:
        chosen = random.Random(seed)
        members = [three.all()[seed % 3]] if mode_of(three) == "async_dirty" else three.all()
        connections = [member.connection() for member in members]
        mine: list[str] = []
        for number in range(100):
            connection = chosen.choice(connections)
            body = text(f"{seed}-{number}")
            if len(mine) < 5:
                path = ask(connection, "/objects", "POST", None, body).header("location")
                assert path is not None
                mine.append(path)
                continue
            path = chosen.choice(mine)
            if chosen.random() < 0.5:
                ask(connection, path, "PUT", None, body)
            else:
                wait_deleted(connection, path)
                mine.remove(path)
        return set(mine)

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        left = set().union(*pool.map(client, range(6)))
    after = wait_same(three.all())
    assert {f"/objects/{one}" for one in set(after) - set(before)} == left
    assert {member.stats()["objects"] for member in three.all()} == {len(after)}


@pytest.mark.parametrize("three", TRANSACTIONS, indirect=True)
def test_transactions_lose_no_change(three: Cluster) -> None:
    """All members change one object at the same time, and each change has its own version."""
    path = three.all()[0].create()
    wait_until(lambda: all(member.ask(path).status == 200 for member in three.all()), "it is everywhere")

    def client(member: Server) -> list[int]:
        connection = member.connection()
        return [int(ask(connection, path, "PUT", None, text()).json()["version"]) for _ in range(40)]

    with concurrent.futures.ThreadPoolExecutor(len(HOSTS)) as pool:
        versions = sorted(itertools.chain.from_iterable(pool.map(client, three.all())))
    assert versions == list(range(2, 2 + 40 * len(HOSTS)))
    wait_same(three.all())


@pytest.mark.parametrize("mode", MODES)
def test_a_member_that_was_killed_comes_back_with_everything(cluster: Clusters, mode: str) -> None:
    """Kill each member in turn, also the lowest, which created the table. No second table is created."""
    made = cluster(MODE=mode)
    made.begin(*HOSTS)
    made.wait_ready()
    expected = {made.members[HOSTS[1]].create()}
    for host in (HOSTS[2], HOSTS[0]):
        others = [member for other, member in made.members.items() if other != host]
        wait_count(made.members[host], len(expected))
        made.members[host].kill()
        for member in others:
            member.wait_waiting(f"2 of 3 members have the table; not yet: {host}")
        # The others continue.
        expected.add(others[0].create())
        made.begin(host)
        made.wait_ready()
        assert {f"/objects/{one}" for one in wait_same(made.all())} == expected
    assert [member.stats()["members"] for member in made.all()] == [list(HOSTS)] * 3


def test_members_come_one_after_the_other_and_the_lowest_last(cluster: Clusters) -> None:
    made = cluster()
    for host in (HOSTS[2], HOSTS[1]):
        made.begin(host)
        member = made.members[host]
        member.wait_waiting(f"0 of 3 members have the table; not yet: {', '.join(HOSTS)}")
        assert member.ask("/healthz").status == 200
        for method, path in (("GET", "/objects"), ("POST", "/objects"), ("GET", "/objects/0")):
            answer = member.ask(path, method, None, text())
            assert (answer.status, answer.error()) == (503, "this member does not have the table yet")
        assert member.stats()["members"] == []
    made.begin(HOSTS[0])
    made.wait_ready()
    assert made.members[HOSTS[1]].stats()["members"] == list(HOSTS)


def test_a_cluster_that_was_killed_starts_with_an_empty_table(cluster: Clusters) -> None:
    made = cluster()
    made.begin(*HOSTS)
    made.wait_ready().all()[0].create()
    for member in made.all():
        member.kill()
    made.begin(*HOSTS)
    made.wait_ready()
    assert wait_same(made.all()) == {}
    made.all()[1].create()
    assert len(wait_same(made.all())) == 1


@pytest.mark.parametrize("mode", MODES)
def test_sigterm_loses_no_answered_write(cluster: Clusters, mode: str) -> None:
    made = cluster(MODE=mode)
    made.begin(*HOSTS)
    made.wait_ready()
    last = made.members[HOSTS[0]]
    created = {last.create("name", "t" * 10_000) for _ in range(50)}
    last.terminate()
    assert last.process.wait(timeout=20) == 0
    del made.members[HOSTS[0]]
    assert {f"/objects/{one}" for one in wait_same(made.all())} == created


def test_a_member_with_another_cookie_stays_outside(cluster: Clusters) -> None:
    made = cluster()
    made.begin(*HOSTS[:2])
    made.begin(HOSTS[2], ERLANG_COOKIE="another")
    stranger = made.members[HOSTS[2]]
    for member in made.all()[:2]:
        member.wait_log(f"{HOSTS[2]}' rejected")
    for member in made.all():
        member.wait_for("/readyz", 503)
    stranger.kill()
    made.begin(HOSTS[2])
    made.wait_ready()


def test_a_name_is_resolved_until_it_has_all_addresses(cluster: Clusters, names: NameServer) -> None:
    made = cluster(**names.variables)
    made.begin(*HOSTS)
    for member in made.all():
        member.wait_waiting("0 of 3 members have the table; 0 addresses are known")
        member.wait_log("cannot resolve members: ")
    names.addresses = HOSTS[:2]
    for member in made.all():
        assert member.text().count("cannot resolve members: ") == 1
        waiting = f"0 of 3 members have the table; not yet: {', '.join(HOSTS[:2])}; 2 addresses are known"
        member.wait_waiting(waiting)
    names.addresses = HOSTS
    made.wait_ready()


def test_a_member_at_a_new_address_takes_the_place_of_another(cluster: Clusters, names: NameServer) -> None:
    """As with a deleted pod: the members forget the old address, so a new member does not wait for it."""
    names.addresses = HOSTS
    made = cluster(**names.variables)
    made.begin(*HOSTS)
    path = made.wait_ready().all()[0].create()
    made.members.pop(HOSTS[2]).kill()
    new = "127.0.0.5"
    names.addresses = (*HOSTS[:2], new)
    made.begin(new)
    made.wait_ready()
    assert [member.stats()["members"] for member in made.all()] == [list(names.addresses)] * 3
    assert made.members[new].ask(path).status == 200
    made.members[HOSTS[0]].wait_log(f"forgot {HOSTS[2]}")


def test_a_name_server_that_fails_changes_nothing(cluster: Clusters, names: NameServer) -> None:
    names.addresses = HOSTS
    made = cluster(**names.variables)
    made.begin(*HOSTS)
    made.wait_ready()
    names.addresses = ()
    for member in made.all():
        member.wait_log("cannot resolve members: ")
        assert member.ask("/readyz").status == 200
    made.members[HOSTS[2]].kill()
    for member in made.all()[:2]:
        member.wait_for("/readyz", 503)
    names.addresses = HOSTS
    made.begin(HOSTS[2])
    made.wait_ready()
    assert "forgot" not in "".join(member.text() for member in made.all())


def test_a_member_that_was_cut_off_gives_way_to_the_others(cluster: Clusters) -> None:
    """A member stops until the others consider it lost, and then there are two tables."""
    made = cluster(MODE="async_dirty", ERL_FLAGS="-kernel net_ticktime 4")
    made.begin(*HOSTS)
    made.wait_ready()
    [first, *others] = made.all()
    both = first.create()
    wait_same(made.all())
    first.process.send_signal(signal.SIGSTOP)
    for member in others:
        member.wait_for("/readyz", 503)
    theirs = others[0].create()
    first.process.send_signal(signal.SIGCONT)
    first.wait_log("dropping the table")
    made.wait_ready()
    assert {f"/objects/{one}" for one in wait_same(made.all())} == {both, theirs}
    assert "dropping the table" not in "".join(member.text() for member in others)
