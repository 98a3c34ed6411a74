"""Releases against the release before: the first one, an equal one, and one that needs more energy.

The box has no registry. A name with a digest, as kubelet asks the node's image store for it, is an alias of the imported
image. The three releases are edits of one benchmark, as in Git.

Not part of the default suite, because it takes half an hour: ``tests/e2e/run --baseline``.
"""

import json
import subprocess
from collections.abc import Iterator

import pytest

import box
import waiting
from benchmarks import DATABASE, RUST, spec
from checks import outcome
from conftest import watched
from kube import Object, get, kubectl, summarize
from session import Session

NAMESPACE = "e2e-baseline"
KEY = f"{NAMESPACE}/shop"
PYTHON = "ghcr.io/frugality-dev/contacts-python:0.1.0"
# Equal servers on the box differ by less. The Python server needs more than twice the energy of the Rust server.
MARGIN = 1.2
# Five blocks of two candidates, with blocks that are measured again.
RUN_SECONDS = 1500
PROMOTED_SECONDS = 60


def ctr(node: str, *arguments: str) -> str:
    """The output of containerd's command line on a node."""
    pid = str(box.system_process(node, "kubelet"))
    command = ["nsenter", "--target", pid, "--mount", "--net", "ctr", "--namespace", "k8s.io", "images"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"ctr images {' '.join(arguments)} on {node}: {done.stderr}"
    return done.stdout


def with_digest(image: str, repository: str) -> str:
    """A name with the digest of an imported image, under which the measured node has the image too."""
    lines = ctr(box.MEASURED_NODE, "list", f"name=={image}").splitlines()
    (digest,) = [line.split()[2] for line in lines if line.startswith(f"{image} ")]
    name = f"{repository}@{digest}"
    ctr(box.MEASURED_NODE, "tag", "--force", image, name)
    return name


def release(image: str) -> Object:
    return {
        "apiVersion": "frugality.dev/v1alpha1",
        "kind": "FrugalityBenchmark",
        "metadata": {"namespace": NAMESPACE, "name": "shop"},
        "spec": spec(
            candidates=[{"name": "new", "image": image, "imagePullPolicy": "IfNotPresent"}],
            baseline={
                "name": "shop",
                "maxEnergyRatio": MARGIN,
                "whenMissing": "Pass",
                "promote": "OnPass",
            },
            database=DATABASE,
            trials={"blocks": 5, "idleBaseline": "5s", "maxAttempts": 10},
            energy={"allowModelled": True},
        ),
    }


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Session]:
    with watched([NAMESPACE], request) as session:
        yield session


@pytest.fixture(scope="module")
def images() -> dict[str, str]:
    """The images of the three releases. The second one is the first one under another name."""
    return {
        "first": with_digest(RUST, "localhost/frugality/shop"),
        "equal": with_digest(RUST, "localhost/frugality/shop-next"),
        "worse": with_digest(PYTHON, "localhost/frugality/shop-python"),
    }


def ended(session: Session, image: str) -> Object:
    kubectl("apply", "-f", "-", stdin=json.dumps(release(image)))
    return session.ended(KEY, RUN_SECONDS)


def reason(benchmark: Object) -> str:
    return str(benchmark["status"]["columns"]["reason"])


def promotion(image: str) -> Object:
    """The FrugalityBaseline, once the operator has recorded that it has this image."""

    def found() -> Object | None:
        items = get("fbl", "-n", NAMESPACE)["items"]
        recorded = [it for it in items if it.get("status", {}).get("promotedFrom", {}).get("image") == image]
        return recorded[0] if recorded else None

    return waiting.until(found, PROMOTED_SECONDS, f"the promotion of {image}", every=1)


def measured_images(session: Session, run: str) -> dict[str, set[str]]:
    """Digests of the images that the candidates of a run ran."""
    images: dict[str, set[str]] = {}
    for trial in session.observer.trials_of(KEY):
        candidate = trial["spec"]["candidate"]
        if trial["spec"]["run"] == run and outcome(trial) == "Measured":
            digest = trial["status"]["images"]["server"].rpartition("@")[2]
            images.setdefault(candidate, set()).add(digest)
    return images


def test_the_first_release_passes_and_becomes_the_baseline(cluster: Session, images: dict[str, str]) -> None:
    benchmark = ended(cluster, images["first"])
    assert (benchmark["status"]["verdict"], reason(benchmark)) == ("Pass", "NoBaseline")
    made = promotion(images["first"])
    assert made["spec"]["candidate"]["image"] == images["first"]
    assert made["status"]["promotedFrom"]["run"] == benchmark["status"]["run"]
    assert made["status"]["promotedFrom"]["reason"] == "NoBaseline"
    assert "previous" not in made["status"]


def test_an_equal_release_passes_and_replaces_the_baseline(cluster: Session, images: dict[str, str]) -> None:
    benchmark = ended(cluster, images["equal"])
    status = benchmark["status"]
    assert (status["verdict"], reason(benchmark)) == ("Pass", "BudgetsMet"), status["columns"]["message"]
    told = status["baseline"]["baseline"]
    assert told["image"] == images["first"]
    assert told["energyRatio"]["lower"] < 1 < MARGIN
    assert set(measured_images(cluster, status["run"])) == {"new", "baseline"}
    made = promotion(images["equal"])
    assert made["spec"]["candidate"]["image"] == images["equal"]
    assert [it["image"] for it in made["status"]["previous"]] == [images["first"]]
    assert "of baseline's" in summarize(benchmark)


def test_a_worse_release_fails_against_the_promoted_one(cluster: Session, images: dict[str, str]) -> None:
    benchmark = ended(cluster, images["worse"])
    status = benchmark["status"]
    assert (status["verdict"], reason(benchmark)) == ("Fail", "BudgetExceeded"), status["columns"]["message"]
    assert status["baseline"]["baseline"]["image"] == images["equal"]
    assert status["baseline"]["baseline"]["energyRatio"]["value"] > MARGIN
    assert "promotion" not in status["baseline"]
    ran = measured_images(cluster, status["run"])
    assert all(len(digests) == 1 for digests in ran.values()), ran
    assert ran["new"] != ran["baseline"]
    (kept,) = get("fbl", "-n", NAMESPACE)["items"]
    assert kept["spec"]["candidate"]["image"] == images["equal"]
