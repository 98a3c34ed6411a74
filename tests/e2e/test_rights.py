"""Rights: the operator has only the rights that it needs, and only the operator writes the ledger."""

import json

import pytest

from benchmarks import LONG
from kube import kubectl
from scenarios import OPERATOR_NAMESPACE
from session import Session

OPERATOR = f"system:serviceaccount:{OPERATOR_NAMESPACE}:frugality-operator"
EDITOR = "e2e-editor"
on_ledger = pytest.mark.benchmarks(LONG)


def may(user: str, *what: str) -> bool:
    answer = kubectl("auth", "can-i", *what, f"--as={user}", check=False).stdout.strip()
    assert answer in ("yes", "no"), answer
    return answer == "yes"


def test_the_installed_operator_has_the_rights_of_the_chart() -> None:
    """The operator's test target api_server tries every right of the chart's roles."""
    assert may(OPERATOR, "create", "jobs.batch", "-A")
    assert not may(OPERATOR, "get", "secrets", "-A")
    assert not may(OPERATOR, "*", "*", "-A")


@pytest.fixture(scope="module")
def trial(session: Session) -> str:
    """The name of a measured entry of the ledger. A user has the cluster's edit role in its namespace."""
    binding = (
        "create",
        "rolebinding",
        EDITOR,
        "--clusterrole=edit",
        f"--user={EDITOR}",
        "-n",
        LONG.namespace,
    )
    kubectl(*binding)

    def measured() -> list[str]:
        trials = session.observer.trials_of(LONG.key)
        return [t["metadata"]["name"] for t in trials if t.get("status", {}).get("outcome") == "Measured"]

    return session.observer.until(measured, 240, "the first measured trial")[0]


def patch(trial: str, change: object, *how: str) -> str:
    command = ("patch", "fbt", trial, "-n", LONG.namespace, "--type=merge", "-p", json.dumps(change), *how)
    result = kubectl(*command, check=False)
    assert result.returncode != 0, result.stdout
    return result.stderr


@on_ledger
def test_editor_may_benchmark_and_read_the_ledger(trial: str) -> None:
    assert may(EDITOR, "create", "frugalitybenchmarks.frugality.dev", "-n", LONG.namespace)
    assert trial in kubectl("get", "fbt", "-n", LONG.namespace, f"--as={EDITOR}").stdout


@on_ledger
@pytest.mark.parametrize("how", [(), ("--subresource=status",)], ids=["spec", "status"])
def test_editor_may_not_write_the_ledger(trial: str, how: tuple[str, ...]) -> None:
    change = {"spec": {"candidate": "forged"}, "status": {"message": "forged"}}
    assert "(Forbidden)" in patch(trial, change, f"--as={EDITOR}", *how)


@on_ledger
def test_editor_may_not_delete_the_ledger_nor_write_a_verdict(trial: str) -> None:
    deleted = kubectl("delete", "fbt", trial, "-n", LONG.namespace, f"--as={EDITOR}", check=False)
    assert "(Forbidden)" in deleted.stderr
    forged = json.dumps({"status": {"verdict": "Pass"}})
    patched = kubectl(
        *("patch", "fb", LONG.name, "-n", LONG.namespace, "--type=merge", "--subresource=status"),
        *("-p", forged, f"--as={EDITOR}"),
        check=False,
    )
    assert "(Forbidden)" in patched.stderr


@on_ledger
def test_an_administrator_cannot_rewrite_an_entry(trial: str) -> None:
    assert "can't be rewritten" in patch(trial, {"spec": {"candidate": "forged"}})
    assert "can't be rewritten" in patch(trial, {"status": {"message": "forged"}}, "--subresource=status")
