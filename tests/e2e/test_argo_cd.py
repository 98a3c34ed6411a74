"""A release whose gate is in the sync wave before it, with Argo CD's real application controller and repository server.

Not part of the default suite, because Argo CD takes minutes to build: ``make gitops``.
"""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import box
import waiting
from conftest import watched
from evidence import say
from gitops import (
    GENEROUS,
    GITOPS,
    JUDGED_SECONDS,
    TIGHT,
    Shop,
    app,
    benchmark,
    controller,
    definitions,
    empty,
    program,
    write,
)
from kube import Object, get, kubectl

NAMESPACE = "e2e-gitops"
ARGO_CD = "argocd"
REDIS, REPOSITORY, METRICS, REPOSITORY_METRICS = 28310, 28311, 28312, 28313
CUSTOMIZATION = GITOPS / "argo-cd/resource_customizations/frugality.dev/FrugalityBenchmark"
CASES = yaml.safe_load((CUSTOMIZATION / "health_test.yaml").read_text())["tests"]
GIT = box.ARTIFACTS / "argo-cd"
# Argo CD finds a commit, compares and syncs.
SYNC_SECONDS = 120


def settings() -> list[Object]:
    """What Argo CD reads at its start, with our health script."""
    labels = {"app.kubernetes.io/part-of": "argocd"}

    def named(kind: str, name: str, data: dict[str, str]) -> Object:
        metadata = {"name": name, "namespace": ARGO_CD, "labels": labels | {"app.kubernetes.io/name": name}}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data}

    script = (CUSTOMIZATION / "health.lua").read_text()
    key = base64.b64encode(b"a key that signs nothing here").decode()
    everything = [{"group": "*", "kind": "*"}]
    project = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "default", "namespace": ARGO_CD},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"namespace": "*", "server": "*"}],
            "clusterResourceWhitelist": everything,
        },
    }
    return [
        named("ConfigMap", "argocd-cm", {"resource.customizations.health.frugality.dev_FrugalityBenchmark": script}),
        named("ConfigMap", "argocd-rbac-cm", {}),
        named("Secret", "argocd-secret", {"server.secretkey": key}),
        project,
    ]


class ArgoCD:
    """An Application of a Git repository with the benchmark in wave -1 and the app in wave 0."""

    def __init__(self, shop: Shop, repository: Path) -> None:
        self.shop = shop
        self.repository = repository
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=e2e", "-c", "user.email=e2e@example.org")
        command = ["git", *identity, *arguments]
        done = subprocess.run(command, cwd=self.repository, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, version: str, budget: float, **changes: object) -> str:
        """Commits benchmark and app, and returns the commit."""
        gate = benchmark(self.shop.namespace, budget, **changes)
        gate["metadata"]["annotations"] = {"argocd.argoproj.io/sync-wave": "-1"}
        write(self.repository / "benchmark.yaml", gate)
        write(self.repository / "app.yaml", app(self.shop.namespace, version))
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", f"version {version}")
        return self.git("rev-parse", "HEAD")

    def deploy(self) -> None:
        application = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "shop", "namespace": ARGO_CD},
            "spec": {
                "project": "default",
                "source": {"repoURL": f"file://{self.repository}", "path": ".", "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": self.shop.namespace},
                # Without retries, a stopped sync ends at once.
                "syncPolicy": {"automated": {}, "retry": {"limit": 0}},
            },
        }
        kubectl("apply", "-f", "-", stdin=json.dumps(application))

    def status(self) -> Object:
        return get("application", "shop", "-n", ARGO_CD).get("status", {})

    def until_phase(self, phase: str, commit: str, seconds: float = SYNC_SECONDS) -> str:
        """Waits until the sync of a commit is in a phase, and returns its message."""

        def is_in_phase() -> bool:
            operation = self.status().get("operationState", {})
            revision = operation.get("operation", {}).get("sync", {}).get("revision")
            return (operation.get("phase"), revision) == (phase, commit)

        waiting.until(is_in_phase, seconds, f"phase {phase} of {commit[:7]}", every=2)
        return str(self.status()["operationState"].get("message", ""))

    def sync(self, commit: str) -> None:
        """Starts a sync of a commit by hand."""
        patch = {"operation": {"initiatedBy": {"username": "e2e"}, "sync": {"revision": commit}}}
        kubectl("patch", "application", "shop", "-n", ARGO_CD, "--type=merge", "-p", json.dumps(patch))

    def terminate(self) -> None:
        """Ends the sync that waits, as ``argocd app terminate-op`` does."""
        patch = {"status": {"operationState": {"phase": "Terminating"}}}
        kubectl("patch", "application", "shop", "-n", ARGO_CD, "--type=merge", "-p", json.dumps(patch))

    def health(self) -> Object:
        """Argo CD's health of the benchmark."""
        (found,) = [it for it in self.status()["resources"] if it["kind"] == "FrugalityBenchmark"]
        return found["health"]


def unsigned_commits() -> Path:
    """A folder with the script of Argo CD's image that checks a commit's signature. These commits have none."""
    script = empty(GIT / "bin") / "git-verify-wrapper.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return script.parent


@pytest.mark.parametrize("case", CASES, ids=lambda it: Path(it["inputPath"]).stem)
def test_argo_cd_s_own_interpreter_gives_the_health(case: Object) -> None:
    """With the command by which Argo CD's users test a script. It needs no cluster."""
    (config,) = [it for it in settings() if it["metadata"]["name"] == "argocd-cm"]
    write(GIT / "argocd-cm.json", config)
    command = [program("argocd"), "admin", "settings", "resource-overrides", "health"]
    command += [str(CUSTOMIZATION / case["inputPath"]), "--argocd-cm-path", str(GIT / "argocd-cm.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    expected = case["healthStatus"]
    assert f"STATUS: {expected['status']}\nMESSAGE: {expected['message']}\n" in done.stdout, done.stdout


@pytest.fixture(scope="module")
def argo_cd(request: pytest.FixtureRequest) -> Iterator[ArgoCD]:
    definitions("argocd")
    repository = empty(GIT / "repository")
    argocd = program("argocd")
    redis = ("redis-server", "--port", str(REDIS), "--bind", "127.0.0.1", "--save", "", "--dir", str(GIT))
    common = ("--loglevel=info", f"--redis=127.0.0.1:{REDIS}")
    ports = (f"--port={REPOSITORY}", f"--metrics-port={REPOSITORY_METRICS}")
    listen = (*ports, "--address=127.0.0.1", "--disable-tls", "--client-ca-path=")
    # Otherwise a new commit is seen after three minutes.
    fresh = "--revision-cache-expiration=5s"
    controlled = (
        f"--repo-server=127.0.0.1:{REPOSITORY}",
        "--repo-server-plaintext",
        f"--metrics-port={METRICS}",
        "--app-resync=10",
        # Otherwise only Argo CD's web server can show the health of a resource.
        "--persist-resource-health",
        "--app-resync-jitter=0",
    )
    environment = {
        "ARGOCD_FAKE_IN_CLUSTER": "true",
        "ARGOCD_GPG_ENABLED": "false",
        "ARGOCD_TLS_DATA_PATH": str(empty(GIT / "tls")),
        "ARGOCD_SSH_DATA_PATH": str(empty(GIT / "ssh")),
        "HOSTNAME": "argocd-application-controller-0",
        "TMPDIR": str(empty(GIT / "tmp")),
        "PATH": f"{unsigned_commits()}:{os.environ['PATH']}",
    }
    name = {"ARGOCD_BINARY_NAME": "argocd-repo-server"}, {"ARGOCD_BINARY_NAME": "argocd-application-controller"}
    with watched([NAMESPACE, ARGO_CD], request):
        for resource in settings():
            kubectl("apply", "-f", "-", stdin=json.dumps(resource))
        with (
            controller("redis", *redis),
            controller("repository-server", argocd, *common, *listen, fresh, **environment, **name[0]),
            controller("argo-cd", argocd, *common, *controlled, f"--namespace={ARGO_CD}", **environment, **name[1]),
        ):
            yield ArgoCD(Shop(NAMESPACE), repository)


def test_argo_cd_holds_the_next_wave_until_the_verdict_and_applies_it_on_pass(argo_cd: ArgoCD) -> None:
    commit = argo_cd.commit("1", GENEROUS)
    argo_cd.deploy()
    argo_cd.shop.until_measuring()
    assert argo_cd.shop.version() is None
    argo_cd.until_phase("Running", commit)
    assert argo_cd.shop.verdict() == "Pass"
    argo_cd.until_phase("Succeeded", commit)
    assert argo_cd.shop.version() == "1"
    assert argo_cd.shop.deployed_after_the_verdict()


def test_argo_cd_stops_the_next_wave_on_fail_and_shows_the_reason(argo_cd: ArgoCD) -> None:
    message = argo_cd.until_phase("Failed", argo_cd.commit("2", TIGHT))
    health = argo_cd.health()
    say(f"{message}: {health}")
    assert health["status"] == "Degraded"
    assert argo_cd.shop.verdict() == "Fail"
    argo_cd.shop.keeps_version("1")


def test_argo_cd_stops_the_next_wave_on_inconclusive(argo_cd: ArgoCD) -> None:
    argo_cd.until_phase("Failed", argo_cd.commit("2", argo_cd.shop.undecided_budget()))
    assert argo_cd.shop.verdict(JUDGED_SECONDS) == "Inconclusive"
    argo_cd.shop.keeps_version("1")


def test_another_sync_of_the_stopped_commit_applies_nothing_more(argo_cd: ArgoCD) -> None:
    commit = argo_cd.git("rev-parse", "HEAD")
    started = argo_cd.status()["operationState"]["startedAt"]
    argo_cd.sync(commit)
    waiting.until(
        lambda: argo_cd.status()["operationState"]["startedAt"] != started, SYNC_SECONDS, "another sync", every=2
    )
    argo_cd.until_phase("Failed", commit)
    argo_cd.shop.keeps_version("1")


def test_argo_cd_applies_the_next_wave_once_the_budget_is_met(argo_cd: ArgoCD) -> None:
    argo_cd.until_phase("Succeeded", argo_cd.commit("2", GENEROUS))
    argo_cd.shop.until_version("2")


def test_a_newer_commit_waits_until_the_sync_before_it_is_terminated(argo_cd: ArgoCD) -> None:
    older = argo_cd.commit("3", GENEROUS, rerun=2, suspend=True)
    argo_cd.until_phase("Running", older)
    waiting.until(lambda: argo_cd.health()["status"] == "Suspended", JUDGED_SECONDS, "a suspended benchmark", every=2)
    newer = argo_cd.commit("4", GENEROUS)
    # Argo CD looks for commits every ten seconds.
    waiting.hold(40, lambda: argo_cd.shop.version() == "2", "the old release", every=5)
    argo_cd.terminate()
    argo_cd.until_phase("Succeeded", newer)
    argo_cd.shop.until_version("4")
