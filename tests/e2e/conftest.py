"""One session: its benchmarks are applied at once, queue, are watched, and are checked afterwards."""

import contextlib
import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest

import box
import gates
import oracle
import scenarios
import waiting
from benchmarks import DELETED, KILLED, LONG, NAMESPACES
from evidence import Observer, save, say
from kube import Object, conditions, get, kubectl
from memory import Memory
from needs import MARK, check_declared, needed
from session import LONG_RUN_SECONDS, Session, in_background, meter_model, start_recorder

_failures_shown = 0
_session: Session | None = None


def remove_namespaces(namespaces: list[str], wait: bool) -> None:
    how = ("--ignore-not-found", f"--wait={wait}".lower(), "--timeout=120s")
    kubectl("delete", "namespace", *namespaces, *how, timeout=150)


@contextlib.contextmanager
def watched(namespaces: list[str], request: pytest.FixtureRequest) -> Iterator[Session]:
    """A watched cluster with these namespaces, new and empty. They are deleted at the end."""
    global _session
    # An earlier session may have left a benchmark.
    going = [ns["metadata"]["name"] for ns in get("namespaces")["items"] if "deletionTimestamp" in ns["metadata"]]
    remove_namespaces([*namespaces, *going], wait=True)
    others = [
        f"{fb['metadata']['namespace']}/{fb['metadata']['name']}"
        for fb in get("fb", "-A")["items"]
        if fb["metadata"]["namespace"] not in namespaces
        and conditions(fb).get("Complete", {}).get("status") != "True"
    ]
    assert not others, f"unfinished benchmarks would go first: {others}"
    fortio = box.ARTIFACTS / "fortio"
    fortio.mkdir(parents=True, exist_ok=True)
    model = meter_model()
    say(f"the model: {model}; evidence in {box.ARTIFACTS}")
    recorder = start_recorder(box.MEASURED_NODE, Session.recording)
    observer = Observer(fortio)
    _session = Session(observer, Memory(observer), model)
    try:
        for namespace in namespaces:
            kubectl("create", "namespace", namespace)
            # Every pod of a benchmark must satisfy this standard.
            kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
        yield _session
    finally:
        observer.close()
        save(box.ARTIFACTS / "trials.json", list(observer.trials.values()))
        recorder.terminate()
        recorder.wait(10)
        if request.session.testsfailed and os.environ.get("E2E_KEEP") == "1":
            say(f"kept the namespaces {', '.join(namespaces)}")
        else:
            # Usually only the ledger is left in them, so the deletion is quick and disturbs nothing.
            remove_namespaces(namespaces, wait=False)


@pytest.fixture(scope="session")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """The session of the default suite, with the benchmarks that the collected tests need."""
    applied = needed(request.session.items)
    with watched(NAMESPACES, request) as session:
        observer = session.observer
        # Before the benchmarks are applied, to see every phase.
        if KILLED in applied:
            session.killing = in_background("killing the operator", scenarios.kill_in_each_phase, observer)
        if DELETED in applied:
            session.deleting = in_background("deleting a benchmark", scenarios.delete_under_load, observer)
        for benchmark in applied:
            benchmark.apply()
            # The queue is ordered by creation times, which have whole seconds.
            waiting.next_second()
        yield session


@pytest.fixture(scope="session")
def long_run(session: Session) -> Object:
    """The long run, ended."""
    result = session.ended(LONG.key, LONG_RUN_SECONDS)
    session.memory.stop(box.ARTIFACTS / "memory.json")
    return result


# ---- collection ----------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}(*benchmarks): benchmarks of the session that a test needs")


def pytest_collection_finish(session: pytest.Session) -> None:
    check_declared(session.items)


def pytest_report_collectionfinish(items: list[pytest.Item]) -> str:
    keys = [benchmark.key for benchmark in needed(items)]
    return f"benchmarks of the session: {', '.join(keys) or 'none'}"


# ---- reports -------------------------------------------------------------------------------------


@pytest.hookimpl(hookwrapper=True)  # Debian's pytest has no newer form of it.
def pytest_runtest_makereport() -> Generator[None, Any, None]:
    global _failures_shown
    report = (yield).get_result()
    if report.failed and _session is not None and _failures_shown < 3:
        _failures_shown += 1
        report.sections.append(("the cluster at the failure", cluster_now()))


def cluster_now() -> str:
    operator = ("-n", scenarios.OPERATOR_NAMESPACE, "deployment/frugality-operator", "--tail=30")
    texts = []
    for command in (
        ("get", "fb", "-A", "-o", "wide"),
        ("get", "fbt", "-A", "-o", "wide"),
        ("get", "pods", "-A", "-l", "frugality.dev/benchmark-uid", "-o", "wide"),
        ("logs", *operator),
    ):
        result = kubectl(*command, check=False)
        texts.append(f"$ kubectl {' '.join(command)}\n{result.stdout}{result.stderr}")
    return "\n".join(texts)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    write = terminalreporter.write_line
    shown = gates.table(
        {
            report.nodeid.rsplit("::", 1)[-1].split("[")[0]: report.outcome
            for outcome in ("passed", "failed", "error", "skipped")
            for report in terminalreporter.stats.get(outcome, [])
            if report.when == "call" or report.outcome != "passed"
        }
    )
    if shown:
        terminalreporter.section("what the gates did, each by the tool's own controller")
        for line in shown:
            write(line)
    if _session is None:
        return
    worst: dict[str, oracle.Deviation] = {}
    for deviation in _session.deviations:
        known = worst.setdefault(deviation.figure, deviation)
        if deviation.relative > known.relative:
            worst[deviation.figure] = deviation
    if worst:
        terminalreporter.section("the operator's figures next to the oracle's: the largest deviation of each")
        for name, deviation in sorted(worst.items()):
            write(f"{name:48} {100 * deviation.relative:10.6f} %   allowed {100 * deviation.tolerance:g} %")
    memory = _session.memory.summary()
    if memory:
        terminalreporter.section("resident memory during the long run")
        for part, row in memory.items():
            write(f"{part:30} median {row['medianMiB']:6.1f} MiB   most {row['maxMiB']:6.1f} MiB")
    for problem in _session.observer.problems:
        write(f"problem: {problem}")
