"""A release that Flux holds until its benchmark has the verdict Pass, with the real kustomize-controller.

Not part of the default suite, because its controllers take minutes to build: ``make gitops``.

The source is an ExternalArtifact, whose status this test writes: source-controller can't be built here. All else is Flux.
"""

import hashlib
import json
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
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
    without_operator,
    write,
)
from kube import Object, conditions, get, kubectl

NAMESPACE = "e2e-gitops"
FLUX = "flux-system"
PORT = 28300
FILES = box.ARTIFACTS / "artifacts"


class Flux:
    """The source and the two Kustomizations of ``gitops/flux``, with an ExternalArtifact as their source."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.commits = 0
        source = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "ExternalArtifact"}
        self.apply(source | {"metadata": {"name": "shop", "namespace": FLUX}, "spec": {}})
        for kustomization in yaml.safe_load_all((GITOPS / "flux/kustomizations.yaml").read_text()):
            kustomization["spec"]["sourceRef"]["kind"] = "ExternalArtifact"
            self.apply(kustomization)

    @staticmethod
    def apply(resource: Object) -> None:
        kubectl("apply", "-f", "-", stdin=json.dumps(resource))

    def commit(self, version: str, budget: float, **changes: object) -> str:
        """Publishes benchmark and app as the next revision, and returns the revision."""
        self.commits += 1
        folder = empty(FILES / f"commit-{self.commits}")
        write(folder / "energy/benchmark.yaml", benchmark(self.shop.namespace, budget, **changes))
        write(folder / "app/deployment.yaml", app(self.shop.namespace, version))
        archive = FILES / f"shop-{self.commits}.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(folder, arcname=".")
        digest = f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}"
        revision = f"v{self.commits}@{digest}"
        self.publish(archive, revision, digest)
        return revision

    def publish(self, archive: Path, revision: str, digest: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        generation = get("externalartifact", "shop", "-n", FLUX)["metadata"]["generation"]
        ready = {"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored"}
        status = {
            "artifact": {
                "url": f"http://127.0.0.1:{PORT}/{archive.name}",
                "path": archive.name,
                "revision": revision,
                "digest": digest,
                "size": archive.stat().st_size,
                "lastUpdateTime": now,
            },
            "conditions": [ready | {"observedGeneration": generation, "lastTransitionTime": now}],
        }
        patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
        kubectl("patch", "externalartifact", "shop", "-n", FLUX, *patch)

    def ready(self, name: str) -> Object:
        """The condition Ready of a Kustomization."""
        return conditions(get("kustomization", name, "-n", FLUX)).get("Ready", {})

    def until_refused(self, revision: str) -> str:
        """Waits until the gate's health check has failed for the revision, and returns Flux's message."""

        def refused() -> bool:
            kustomization = get("kustomization", "shop-energy", "-n", FLUX)
            is_current = kustomization["status"].get("lastAttemptedRevision") == revision
            return is_current and self.ready("shop-energy").get("reason") == "HealthCheckFailed"

        waiting.until(refused, 2 * JUDGED_SECONDS, "a failed health check", every=2)
        return str(self.ready("shop-energy")["message"])


@pytest.fixture(scope="module")
def flux(request: pytest.FixtureRequest) -> Iterator[Flux]:
    definitions("kustomize-controller")
    empty(FILES)
    with watched([NAMESPACE, FLUX], request):
        server = ("python3", "-m", "http.server", str(PORT), "--bind", "127.0.0.1")
        flags = (
            "--watch-all-namespaces",
            "--enable-leader-election=false",
            "--feature-gates=ExternalArtifact=true,CancelHealthCheckOnNewRevision=true",
            "--requeue-dependency=5s",
            "--metrics-addr=127.0.0.1:28301",
            "--health-addr=127.0.0.1:28302",
        )
        with (
            controller("artifacts", *server, cwd=FILES),
            controller("flux", program("kustomize-controller"), *flags, RUNTIME_NAMESPACE=FLUX),
        ):
            try:
                yield Flux(Shop(NAMESPACE))
            finally:
                # Only the controller can remove its finalizers.
                kubectl("delete", "kustomization", "--all", "-n", FLUX, timeout=120)


def test_flux_holds_the_release_until_the_verdict_and_releases_it_on_pass(flux: Flux) -> None:
    flux.commit("1", GENEROUS)
    flux.shop.until_measuring()
    assert flux.shop.version() is None
    assert flux.ready("shop").get("reason") == "DependencyNotReady"
    assert flux.shop.verdict() == "Pass"
    flux.shop.until_version("1")
    assert flux.shop.deployed_after_the_verdict()


def test_flux_stops_a_release_on_fail_and_names_the_benchmark(flux: Flux) -> None:
    message = flux.until_refused(flux.commit("2", TIGHT))
    say(message)
    assert flux.shop.verdict() == "Fail"
    flux.shop.keeps_version("1")
    assert f"FrugalityBenchmark/{NAMESPACE}/shop status: 'Failed'" in message


def test_flux_stops_a_release_on_inconclusive(flux: Flux) -> None:
    flux.until_refused(flux.commit("2", flux.shop.undecided_budget()))
    assert flux.shop.verdict() == "Inconclusive"
    flux.shop.keeps_version("1")


def test_flux_releases_what_it_held_once_the_budget_is_met(flux: Flux) -> None:
    flux.commit("2", GENEROUS)
    flux.shop.until_version("2", 2 * JUDGED_SECONDS)


def test_a_commit_while_the_benchmark_measures_replaces_the_one_that_waits(flux: Flux) -> None:
    flux.commit("3", GENEROUS, rerun=2)
    waiting.until(lambda: "verdict" not in flux.shop.status(), JUDGED_SECONDS, "the second run", every=2)
    # The verdict of the first run does not count for the second one.
    flux.shop.keeps_version("2")
    # These are the settings of the first run, so the operator reports that run's verdict again.
    flux.commit("4", GENEROUS)
    flux.shop.until_version("4", 2 * JUDGED_SECONDS)


@pytest.fixture
def no_operator() -> Iterator[None]:
    """No operator, as in the seconds before it sees a new benchmark."""
    with without_operator():
        yield


STATUS_DEFAULT = "/spec/versions/0/schema/openAPIV3Schema/properties/status/default"


def patch_definition(operation: Object) -> None:
    patch = json.dumps([operation])
    kubectl("patch", "crd", "frugalitybenchmarks.frugality.dev", "--type=json", "-p", patch)


def replace_benchmark(flux: Flux, version: str) -> str:
    """Publishes a release whose benchmark is a new object, so that no operator has seen it."""
    kubectl("delete", "fb", "shop", "-n", NAMESPACE, "--wait=false")
    kubectl("patch", "fb", "shop", "-n", NAMESPACE, "--type=merge", "-p", '{"metadata":{"finalizers":null}}', check=False)
    waiting.until(lambda: not get("fb", "-n", NAMESPACE)["items"], 30, "no benchmark", every=1)
    return flux.commit(version, GENEROUS, suspend=True)


def test_flux_holds_a_release_that_no_operator_has_seen(flux: Flux, no_operator: None) -> None:
    replace_benchmark(flux, "5")
    waiting.until(lambda: get("fb", "-n", NAMESPACE)["items"], JUDGED_SECONDS, "the benchmark", every=1)
    flux.shop.keeps_version("4")


def test_without_the_default_status_flux_would_release_it(flux: Flux, no_operator: None) -> None:
    """The reason for the default: this is what must not happen."""
    patch_definition({"op": "remove", "path": STATUS_DEFAULT})
    try:
        replace_benchmark(flux, "6")
        flux.shop.until_version("6", 2 * JUDGED_SECONDS)
    finally:
        patch_definition({"op": "add", "path": STATUS_DEFAULT, "value": {"observedGeneration": -1}})
