"""A user with the chart's edit role runs benchmarks, and gains no other right through them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from benchmarks import DATABASE, Benchmark, spec
from conftest import remove_namespaces
from kube import Object, get, kubectl

NAMESPACE = "e2e-users"
AUTHOR, NOBODY = "author", "nobody"
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
    """A namespace with a Secret, a benchmark and a ledger entry.

    One account is bound to the chart's edit role, another one is not.
    """
    remove_namespaces([NAMESPACE], wait=True)
    kubectl("create", "namespace", NAMESPACE)
    kubectl("create", "secret", "generic", SECRET, "--from-literal=key=gold", "-n", NAMESPACE)
    for manifest in (benchmark("kept"), ENTRY):
        kubectl("create", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(manifest))
    for account in (AUTHOR, NOBODY):
        kubectl("create", "serviceaccount", account, "-n", NAMESPACE)
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


def create(user: User, manifest: Object, *how: str) -> str:
    """Creates an object, which must be accepted. Returns the output."""
    result = user("create", "-f", "-", *how, stdin=json.dumps(manifest))
    assert result.returncode == 0, result.stderr
    return result.stdout


def refusal(user: User, manifest: Object, *how: str) -> str:
    result = user("create", "--dry-run=server", "-f", "-", *how, stdin=json.dumps(manifest))
    assert result.returncode != 0, result.stdout
    return result.stderr


# ---- the role's rights ---------------------------------------------------------------------------


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


def rights(user: User) -> set[tuple[str, str, str]]:
    """All rights of an account in the namespace, by the API server."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": NAMESPACE},
    }
    status = json.loads(create(user, review, "--validate=ignore", "-o", "json"))["status"]
    assert not status["incomplete"]
    return {
        (group, resource, verb)
        for rule in status["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_role_allows_benchmarks_and_reading_the_ledger_only(author: User, tmp_path: Path) -> None:
    read = ("get", "list", "watch")
    write = ("create", "delete", "deletecollection", "patch", "update")
    expected = {("frugality.dev", "frugalitybenchmarks", verb) for verb in (*read, *write)}
    expected |= {("frugality.dev", "frugalitybaselines", verb) for verb in (*read, *write)}
    expected |= {("frugality.dev", "frugalitytrials", verb) for verb in read}
    expected |= {("frugality.dev", "frugalitytraces", verb) for verb in read}
    assert rights(author) - rights(with_token(NOBODY, tmp_path)) == expected


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "mine"},
    "spec": {"containers": [{"name": "a", "image": "a"}]},
}
FORBIDDEN = f'is forbidden: User "system:serviceaccount:{NAMESPACE}:{AUTHOR}" cannot'
STATUS = ("--subresource=status", "--type=merge", "-p", '{"status":{"verdict":"Pass"}}')


@pytest.mark.parametrize(
    "command",
    [
        ("get", "secret", SECRET),
        ("get", "secrets"),
        ("get", "configmaps"),
        ("get", "pods"),
        ("delete", "pods", "--all"),
        ("create", "token", "default"),
        ("create", "token", "frugality-operator", "-n", "frugality-system"),
        ("create", "rolebinding", "more", "--clusterrole=admin", f"--serviceaccount={NAMESPACE}:{AUTHOR}"),
        ("create", "deployment", "mine", "--image=a"),
        ("create", "job", "mine", "--image=a"),
        ("patch", "fb", "kept", *STATUS),
        ("patch", "fbt", "entry", *STATUS),
        ("patch", "fbt", "entry", "--type=merge", "-p", '{"spec":{"candidate":"forged"}}'),
        ("delete", "fbt", "entry"),
        ("delete", "fbt", "--all"),
        ("get", "fb", "-n", "default"),
    ],
    ids=" ".join,
)
def test_an_author_may_not(author: User, command: tuple[str, ...]) -> None:
    result = author(*command)
    assert FORBIDDEN in result.stderr, result.stdout + result.stderr


@pytest.mark.parametrize("manifest", [POD, ENTRY], ids=["pod", "entry of the ledger"])
def test_an_author_may_not_create(author: User, manifest: Object) -> None:
    result = author("create", "--validate=ignore", "-f", "-", stdin=json.dumps(manifest))
    assert FORBIDDEN in result.stderr, result.stdout + result.stderr


# ---- fields that would give pods more rights -----------------------------------------------------

HOST = {"name": "host", "hostPath": {"path": "/"}}
SECRET_VOLUME = {"name": "secret", "secret": {"secretName": SECRET}}
FROM_SECRET = {"name": "STOLEN", "valueFrom": {"secretKeyRef": {"name": SECRET, "key": "key"}}}
LITERAL = {"name": "STOLEN", "value": "x"}
CANDIDATE_FIELDS = [
    {"privileged": True},
    {"securityContext": {"privileged": True}},
    {"podSecurityContext": {"runAsUser": 0}},
    {"capabilities": {"add": ["SYS_ADMIN"]}},
    {"hostNetwork": True},
    {"hostPID": True},
    {"hostIPC": True},
    {"hostPort": 80},
    {"volumes": [HOST]},
    {"volumes": [SECRET_VOLUME]},
    {"volumeMounts": [{"name": "host", "mountPath": "/host"}]},
    {"serviceAccountName": "frugality-operator"},
    {"serviceAccount": "frugality-operator"},
    {"automountServiceAccountToken": True},
    {"envFrom": [{"secretRef": {"name": SECRET}}]},
    {"initContainers": [{"name": "a", "image": "a"}]},
    {"sidecars": [{"name": "a", "image": "a"}]},
    {"nodeName": "injector-1"},
    {"runtimeClassName": "any"},
    {"priorityClassName": "system-node-critical"},
    {"template": {"spec": {"hostNetwork": True}}},
    {"podSpec": {"hostNetwork": True}},
    {"annotations": {"any": "thing"}},
]
DATABASE_FIELDS = [
    {"superuserSecret": {"name": SECRET}},
    {"enableSuperuserAccess": True},
    {"env": [FROM_SECRET]},
    {"envFrom": [{"secretRef": {"name": SECRET}}]},
    {"projectedVolumeTemplate": {"sources": [{"secret": {"name": SECRET}}]}},
    {"serviceAccountTemplate": {"metadata": {}}},
    {"externalClusters": [{"name": "a"}]},
    {"bootstrap": {"initdb": {"postInitSQL": ["DROP ROLE postgres"]}}},
    {"securityContext": {"runAsUser": 0}},
    {"spec": {"env": [FROM_SECRET]}},
]
SPEC_FIELDS = [
    {"serviceAccountName": "frugality-operator"},
    {"podTemplate": {"hostNetwork": True}},
    {"injector": {"image": "a"}},
    {"meter": {"url": "http://mine"}},
]
RUST = spec()["candidates"][0]


def behind(more: Object) -> Object:
    """A candidate's field with one backend."""
    return {"backends": [RUST | {"name": "service"} | more]}


def asking() -> Iterator[object]:
    """Benchmarks that ask for more rights, each with the path of its unknown field."""
    for field in CANDIDATE_FIELDS:
        name = next(iter(field))
        yield pytest.param(
            benchmark(candidates=[RUST | field]), f"spec.candidates[0].{name}", id=f"candidate {name}"
        )
        yield pytest.param(
            benchmark(candidates=[RUST | behind(field)]),
            f"spec.candidates[0].backends[0].{name}",
            id=f"backend {name}",
        )
    for field in DATABASE_FIELDS:
        name = next(iter(field))
        yield pytest.param(
            benchmark(database=DATABASE | field), f"spec.database.{name}", id=f"database {name}"
        )
    for field in SPEC_FIELDS:
        name = next(iter(field))
        yield pytest.param(benchmark(**field), f"spec.{name}", id=f"spec {name}")
    env = [FROM_SECRET | LITERAL]
    yield pytest.param(
        benchmark(candidates=[RUST | {"env": env}]), "spec.candidates[0].env[0].valueFrom", id="env"
    )


@pytest.mark.parametrize(("manifest", "path"), list(asking()))
def test_a_field_that_would_give_more_rights_is_unknown(author: User, manifest: Object, path: str) -> None:
    assert f'unknown field "{path}"' in refusal(author, manifest, "--validate=strict")


def fields(value: object) -> set[str]:
    """The names of all fields in an object."""
    if isinstance(value, dict):
        return set(value) | {name for inner in value.values() for name in fields(inner)}
    return {name for inner in value for name in fields(inner)} if isinstance(value, list) else set()


def test_fields_that_would_give_more_rights_are_never_stored(author: User) -> None:
    candidate = {name: value for field in CANDIDATE_FIELDS for name, value in field.items()}
    database = {name: value for field in DATABASE_FIELDS for name, value in field.items()}
    more = {name: value for field in SPEC_FIELDS for name, value in field.items()}
    asked = benchmark(
        "greedy",
        candidates=[RUST | candidate | {"env": [FROM_SECRET | LITERAL]} | behind(candidate)],
        database=DATABASE | database,
        **more,
    )
    create(author, asked, "--validate=ignore")
    stored = json.loads(author("get", "fb", "greedy", "-o", "json").stdout)["spec"]
    assert author("delete", "fb", "greedy").returncode == 0
    # The same as without these fields, defaults included.
    create(
        author, benchmark("modest", candidates=[RUST | {"env": [LITERAL]} | behind({})], database=DATABASE)
    )
    assert stored == json.loads(author("get", "fb", "modest", "-o", "json").stdout)["spec"]
    assert author("delete", "fb", "modest").returncode == 0


def test_no_field_of_the_resource_is_a_forbidden_feature_of_a_pod() -> None:
    [version] = get("crd", "frugalitybenchmarks.frugality.dev")["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    words = ("privileged", "host", "secret", "serviceaccount", "volume", "securitycontext", "valuefrom")
    suspects = {
        name
        for name in property_names(schema)
        if any(word in name.lower() for word in words) or name in ("envFrom", "podSpec")
    }
    # Names of Secrets. Only the kubelet reads them, to pull images.
    assert suspects <= {"imagePullSecrets"}
    # The author chooses a candidate's image and therefore its command. The author can't choose the database's
    # image.
    holders = {name for name, part in schema["properties"].items() if "command" in property_names(part)}
    assert holders == {"candidates"}
    assert "x-kubernetes-preserve-unknown-fields" not in fields(schema)
    assert "x-kubernetes-embedded-resource" not in fields(schema)


def property_names(schema: Object) -> set[str]:
    found = set(schema.get("properties", {}))
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return found.union(*(property_names(part) for part in inner if isinstance(part, dict)))


@pytest.mark.parametrize(
    "image", ["example.com/evil:15", "localhost/frugality/postgresql-evil:15", "ghcr.io/cloudnative-pgx/a:15"]
)
def test_other_images_of_the_database_are_refused(author: User, image: str) -> None:
    said = refusal(author, benchmark(database=DATABASE | {"image": image}))
    assert "database.image must be of" in said
    assert "database.allowedImages" in said


@pytest.mark.parametrize("image", ["localhost/frugality/postgresql:15-1", "ghcr.io/cloudnative-pg/a:17"])
def test_allowed_images_of_the_database_are_accepted(author: User, image: str) -> None:
    create(author, benchmark(database=DATABASE | {"image": image}), "--dry-run=server")
