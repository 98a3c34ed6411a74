"""A user with the installed chart's edit role runs benchmarks, and gains no other right through them.

The operator's test target api_server tries every right and every field.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from benchmarks import DATABASE, Benchmark, spec
from conftest import remove_namespaces
from kube import Object, kubectl

NAMESPACE = "e2e-users"
AUTHOR = "author"
SECRET = "treasure"
# No node has this label, so a benchmark with it never gets a turn.
NOWHERE = {"measuredNodeSelector": {"example.com/no-such-label": "yes"}}
User = Callable[..., CompletedProcess[str]]
ENTRY = {
    "apiVersion": "frugality.dev/v1alpha1",
    "kind": "FrugalityTrial",
    "metadata": {"name": "entry"},
    "spec": {
        **{"benchmark": "kept", "run": "0", "point": "c4-max", "candidate": "rust"},
        **{"block": 1, "attempt": 1, "position": 1, "seed": 1},
        **{"measuredNode": "pi-1", "injectorNode": "injector-1"},
    },
}


def benchmark(name: str = "mine", **changes: object) -> Object:
    return Benchmark(NAMESPACE, name, spec(**{"placement": NOWHERE, **changes})).manifest


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    """A namespace with a Secret, a benchmark, a ledger entry, and an account with the chart's edit role."""
    remove_namespaces([NAMESPACE], wait=True)
    kubectl("create", "namespace", NAMESPACE)
    kubectl("create", "secret", "generic", SECRET, "--from-literal=key=gold", "-n", NAMESPACE)
    for manifest in (benchmark("kept"), ENTRY):
        kubectl("create", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(manifest))
    kubectl("create", "serviceaccount", AUTHOR, "-n", NAMESPACE)
    kubectl(
        *("create", "rolebinding", "benchmarks", "--clusterrole=frugality-edit"),
        *(f"--serviceaccount={NAMESPACE}:{AUTHOR}", "-n", NAMESPACE),
    )
    yield NAMESPACE
    remove_namespaces([NAMESPACE], wait=False)


def with_token(account: str, directory: Path) -> User:
    """kubectl with an account's token, without the administrator's certificate."""
    config = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    token = kubectl("create", "token", account, "-n", NAMESPACE).stdout.strip()
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    file = directory / f"{account}.kubeconfig"
    file.write_text(json.dumps(config))

    def user(*arguments: str, stdin: str | None = None) -> CompletedProcess[str]:
        whole = ("--kubeconfig", str(file), "-n", NAMESPACE, *arguments)
        return kubectl(*whole, stdin=stdin, check=False)

    return user


@pytest.fixture(scope="module")
def author(namespace: str, tmp_path_factory: pytest.TempPathFactory) -> User:
    return with_token(AUTHOR, tmp_path_factory.mktemp("author"))


def create(user: User, manifest: Object, *how: str) -> None:
    """Creates an object, which must be accepted."""
    result = user("create", "-f", "-", *how, stdin=json.dumps(manifest))
    assert result.returncode == 0, result.stderr


def refusal(user: User, manifest: Object) -> str:
    result = user("create", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest))
    assert result.returncode != 0, result.stdout
    return result.stderr


def test_the_token_is_the_authors(author: User) -> None:
    said = author("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert said.stdout == f"system:serviceaccount:{NAMESPACE}:{AUTHOR}", said.stderr


def test_an_author_creates_changes_reads_and_deletes_benchmarks(author: User) -> None:
    create(author, benchmark())
    change = json.dumps({"spec": {"deadline": "1h"}})
    patched = author("patch", "fb", "mine", "--type=merge", "-p", change)
    assert patched.returncode == 0, patched.stderr
    assert json.loads(author("get", "fb", "mine", "-o", "json").stdout)["spec"]["deadline"] == "1h"
    assert author("get", "fbt").returncode == 0
    assert author("delete", "fb", "mine").returncode == 0
    assert "NotFound" in author("get", "fb", "mine").stderr


FORBIDDEN = f'is forbidden: User "system:serviceaccount:{NAMESPACE}:{AUTHOR}" cannot'
STATUS = ("--subresource=status", "--type=merge", "-p", '{"status":{"verdict":"Pass"}}')


@pytest.mark.parametrize(
    "command",
    [
        ("get", "secret", SECRET),
        ("create", "token", "default"),
        ("create", "deployment", "mine", "--image=a"),
        ("patch", "fb", "kept", *STATUS),
        ("patch", "fbt", "entry", *STATUS),
        ("delete", "fbt", "entry"),
        ("get", "fb", "-n", "default"),
    ],
    ids=" ".join,
)
def test_an_author_may_not(author: User, command: tuple[str, ...]) -> None:
    result = author(*command)
    assert FORBIDDEN in result.stderr, result.stdout + result.stderr


def test_a_field_that_would_give_more_rights_is_unknown(author: User) -> None:
    greedy = benchmark(candidates=[spec()["candidates"][0] | {"hostNetwork": True}])
    assert 'unknown field "spec.candidates[0].hostNetwork"' in refusal(author, greedy)


@pytest.mark.parametrize("image", ["example.com/evil:15", "localhost/frugality/postgresql-evil:15"])
def test_other_images_of_the_database_are_refused(author: User, image: str) -> None:
    said = refusal(author, benchmark(database=DATABASE | {"image": image}))
    assert "database.image must be of" in said
    assert "database.allowedImages" in said


def test_the_image_that_this_installation_allows_is_accepted(author: User) -> None:
    image = {"image": "localhost/frugality/postgresql:15-1"}
    create(author, benchmark(database=DATABASE | image), "--dry-run=server")
