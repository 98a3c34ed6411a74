"""Interventions during the session: the operator is killed, a benchmark is deleted."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import box
import waiting
from benchmarks import DELETED, KILLED
from evidence import TRIAL_LABEL, Observer, container, is_ready, say
from kube import OPERATOR_NAMESPACE, Object, get, kubectl

OPERATOR = "frugality-operator"
# The time in the queue.
LONG_WAIT_SECONDS = 1200
# From one phase to the next. The operator restarts in this time.
PHASE_SECONDS = 120
# From the injector's start to the middle of the measured run: after 2 s of warm-up.
INTO_LOAD_SECONDS = 9
# From the injector's end to the middle of the idle baseline, which begins 3 s later.
INTO_IDLE_AFTER_SECONDS = 5.5
# Within this time no object of a deleted benchmark must be left.
DELETION_SECONDS = 60


@dataclass(frozen=True)
class Kill:
    """One kill of the operator."""

    phase: str
    trial: str | None
    """Name of the open attempt."""
    back_after_seconds: float


def open_trial(observer: Observer, key: str) -> Object | None:
    trials = [trial for trial in observer.trials_of(key) if "outcome" not in trial.get("status", {})]
    return trials[-1] if trials else None


def kill_operator(observer: Observer, phase: str, key: str = KILLED.key) -> Kill:
    """Kills the operator's process like a crash. Deletes its pod, because a back-off delays restarts."""
    pods = observer.pods_named(OPERATOR_NAMESPACE, OPERATOR)
    assert len(pods) == 1, f"{len(pods)} operators"
    uid, name = pods[0]["metadata"]["uid"], pods[0]["metadata"]["name"]
    found = [pid for pid, comm in box.processes(uid) if OPERATOR.startswith(comm)]
    assert len(found) == 1, f"processes of {name}: {found}"
    trial = open_trial(observer, key)
    os.kill(found[0], signal.SIGKILL)
    begin = time.monotonic()
    say(f"killed the operator: {phase}")
    kubectl("delete", "pod", "-n", OPERATOR_NAMESPACE, name, "--grace-period=0", "--force")

    def next_one() -> bool:
        pods = observer.pods_named(OPERATOR_NAMESPACE, OPERATOR)
        return any(pod["metadata"]["uid"] != uid and is_ready(pod) for pod in pods)

    observer.until(next_one, 60, f"another operator after the kill in the phase {phase}")
    return Kill(phase, trial["metadata"]["name"] if trial else None, time.monotonic() - begin)


def kill_in_each_phase(observer: Observer) -> list[Kill]:
    """Kills the operator once in each phase of the benchmark ``killed``."""
    key = KILLED.key

    def phase(found: Callable[[], object], seconds: float, what: str) -> None:
        def look() -> object:
            assert not observer.is_complete(key), (
                f"{key} ended before the phase {what}: {observer.message(key)}"
            )
            return found()

        observer.until(look, seconds, what)

    def candidate() -> list[Object]:
        trial = open_trial(observer, key)
        name = trial["metadata"]["name"] if trial else ""
        pods = observer.pods_of(KILLED.namespace, "candidate")
        return [pod for pod in pods if pod["metadata"]["labels"].get(TRIAL_LABEL) == name]

    def injector(state: str, but_not: str = "") -> bool:
        trial = open_trial(observer, key)
        name = trial["metadata"]["name"] if trial else but_not
        pods = observer.pods_of(KILLED.namespace, "injector")
        of_trial = [pod for pod in pods if pod["metadata"]["labels"].get(TRIAL_LABEL) == name]
        return name != but_not and any(state in container(pod, "injector") for pod in of_trial)

    def doing(words: str) -> bool:
        return words in observer.message(key)

    kills = []
    phase(lambda: observer.reason(key) == "StartingDatabase", LONG_WAIT_SECONDS, "database start")
    kills.append(kill_operator(observer, "database start"))
    phase(lambda: observer.reason(key) == "Seeding", PHASE_SECONDS, "seeding")
    kills.append(kill_operator(observer, "seeding"))
    phase(lambda: candidate() and not any(map(is_ready, candidate())), PHASE_SECONDS, "server start")
    kills.append(kill_operator(observer, "server start"))
    phase(lambda: any(map(is_ready, candidate())) and doing("idle baseline"), PHASE_SECONDS, "idle before")
    kills.append(kill_operator(observer, "idle before"))
    phase(lambda: injector("running"), PHASE_SECONDS, "load")
    waiting.hold(INTO_LOAD_SECONDS, lambda: injector("running"), f"load on {key}")
    kills.append(kill_operator(observer, "load"))
    loaded = kills[-1].trial or ""
    phase(lambda: injector("terminated", but_not=loaded), PHASE_SECONDS, "idle after")
    waiting.hold(INTO_IDLE_AFTER_SECONDS, lambda: injector("terminated"), f"the idle baseline of {key}")
    kills.append(kill_operator(observer, "idle after"))
    return kills


@dataclass(frozen=True)
class Deletion:
    """The objects of a benchmark right before its deletion, and the names of the objects that remained."""

    before: list[Object]
    left: set[str]
    seconds: float


def name_of(resource: Object) -> str:
    """Kind and name."""
    return f"{resource['kind']}/{resource['metadata']['name']}"


def objects(namespace: str, kinds: str) -> list[Object]:
    """All objects of a namespace and its volumes, except the objects that each namespace has."""
    # Without any object, kubectl prints nothing.
    text = kubectl("get", kinds, "-n", namespace, "-o", "json", "--ignore-not-found").stdout
    listed = json.loads(text)["items"] if text.strip() else []
    volumes = [
        volume
        for volume in get("persistentvolumes")["items"]
        if volume["spec"].get("claimRef", {}).get("namespace") == namespace
    ]
    of_every_namespace = {"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"}
    return [resource for resource in (*listed, *volumes) if name_of(resource) not in of_every_namespace]


def owners(resource: Object, by_uid: dict[str, Object]) -> list[Object]:
    """An object's owners, with the owners of each owner."""
    direct = [by_uid.get(owner["uid"]) for owner in resource["metadata"].get("ownerReferences", [])]
    known = [owner for owner in direct if owner is not None]
    return [*known, *(further for owner in known for further in owners(owner, by_uid))]


def delete_under_load(observer: Observer) -> Deletion:
    """Deletes the benchmark ``deleted`` while Fortio loads its server."""
    kinds = ",".join(
        kind
        for kind in kubectl("api-resources", "--verbs=list", "--namespaced", "-o", "name").stdout.split()
        if not kind.startswith("events")
    )

    def is_loaded() -> bool:
        assert not observer.is_complete(DELETED.key), (
            f"{DELETED.key} ended before there was load: {observer.message(DELETED.key)}"
        )
        pods = observer.pods_of(DELETED.namespace, "injector")
        return any("running" in container(pod, "injector") for pod in pods)

    observer.until(
        is_loaded,
        LONG_WAIT_SECONDS,
        "load on the benchmark before its deletion",
    )
    waiting.hold(3, is_loaded, f"load on {DELETED.key}")
    before = objects(DELETED.namespace, kinds)
    begin = time.monotonic()
    kubectl("delete", "fb", DELETED.name, "-n", DELETED.namespace)
    say(f"deleted {DELETED.key} under load; {len(before)} objects must go")
    left = set(map(name_of, before))

    def is_gone() -> bool:
        nonlocal left
        left = set(map(name_of, objects(DELETED.namespace, kinds)))
        return not left

    with contextlib.suppress(waiting.NotSeenError):
        waiting.until(is_gone, DELETION_SECONDS, f"the end of all objects of {DELETED.key}", every=2)
    seconds = time.monotonic() - begin
    say(f"{len(left)} objects of {DELETED.key} left after {seconds:.0f} s")
    return Deletion(before, left, seconds)
