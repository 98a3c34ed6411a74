"""A real API server accepts the manifest of a release. It has no kubelet, so nothing runs."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from release import ROOT, free_address, printed, program

START_SECONDS = 90

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """kubectl as the administrator of an API server without objects."""
    folder = tmp_path_factory.mktemp("api")
    address = free_address()
    subprocess.run(["openssl", "genrsa", "-out", "account.key"], cwd=folder, check=True, capture_output=True)
    (folder / "tokens.csv").write_text('admin,admin,admin,"system:masters"\n')
    store = f"unix://{folder}/kine.sock"
    kine = [program("FRUGALITY_KINE", "kine"), "--listen-address", store]
    kine += ["--endpoint", f"sqlite://{folder}/state.db?_journal=WAL&cache=shared&_synchronous=OFF"]
    server = [program("FRUGALITY_KUBE_APISERVER", "kube-apiserver"), f"--etcd-servers={store}"]
    server += ["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--cert-dir=."]
    server += [f"--secure-port={address.rpartition(':')[2]}", "--endpoint-reconciler-type=none"]
    server += ["--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC"]
    server += ["--token-auth-file=tokens.csv", "--disable-admission-plugins=ServiceAccount"]
    server += ["--service-account-issuer=https://kubernetes.default.svc"]
    server += ["--service-account-key-file=account.key", "--service-account-signing-key-file=account.key"]
    client = [program("FRUGALITY_KUBECTL", "kubectl"), f"--server=https://{address}", "--token=admin"]
    client += ["--insecure-skip-tls-verify"]

    def run(*arguments: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [*client, *arguments]
        environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "KUBECONFIG": str(folder / "none")}
        done = subprocess.run(
            command, input=stdin, env=environment, check=False, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    processes = []
    try:
        for command in (kine, server):
            with (folder / f"{Path(command[0]).name}.log").open("wb") as log:
                processes.append(subprocess.Popen(command, cwd=folder, stdout=log, stderr=log))
        deadline = time.monotonic() + START_SECONDS
        # The API server itself creates the namespace default, a moment after it is ready.
        while run("get", "namespace", "default", check=False).returncode:
            for process in processes:
                assert process.poll() is None, f"{process.args[0]} has ended: see {folder}"
            assert time.monotonic() < deadline, f"the API server does not answer: see {folder}"
            time.sleep(0.5)
        yield run
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def installed(kubectl: Kubectl, manifest: str) -> Kubectl:
    kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
    return kubectl


def test_an_empty_cluster_accepts_the_manifest(installed: Kubectl) -> None:
    found = installed("get", "deployments,daemonsets", "-n", "frugality-system", "-o", "name").stdout.split()
    assert found == ["deployment.apps/frugality-operator", "daemonset.apps/frugality-meter"]
    wait = ("wait", "--for=condition=Established", "--timeout=30s", "crd")
    installed(*wait, "frugalitybenchmarks.frugality.dev", "frugalitytrials.frugality.dev")


def test_applying_the_manifest_again_changes_nothing(installed: Kubectl, manifest: str) -> None:
    objects = ("get", "deployments,daemonsets,crds", "-A", "-o")
    versions = (*objects, "jsonpath={.items[*].metadata.generation}")
    before = installed(*versions).stdout
    installed("apply", "--server-side", "-f", "-", stdin=manifest)
    assert installed(*versions).stdout == before


def test_the_definitions_alone_are_accepted_over_it(installed: Kubectl) -> None:
    installed("apply", "--server-side", "-f", "-", stdin=printed("definitions"))


def test_a_benchmark_with_a_foreign_database_image_is_refused(installed: Kubectl) -> None:
    """The policy of the chart is part of the manifest. The API server needs seconds for a new policy."""
    benchmark = Path(__file__).parents[2] / "examples/rust-vs-python.yaml"
    text = benchmark.read_text().replace("poolSize: 10", 'poolSize: 10\n    image: "example.com/evil:15"')
    deadline = time.monotonic() + 30
    said = ""
    while "database.image must be of" not in said:
        assert time.monotonic() < deadline, said
        done = installed("create", "--dry-run=server", "-f", "-", stdin=text, check=False)
        said = done.stdout + done.stderr
        time.sleep(0.5)


def documented(command: str) -> tuple[str, ...]:
    """The arguments of the last command in the guide that begins so. The file is read from standard input."""
    text = (ROOT / "docs/versions.md").read_text()
    found = re.findall(rf"^ +kubectl ({re.escape(command)} .*)$", text, re.MULTILINE)
    return tuple(re.sub(r"https://\S+/install\.yaml", "-", found[-1]).split())


def meter_environment(kubectl: Kubectl) -> dict[str, str]:
    text = kubectl("get", "daemonset", "frugality-meter", "-n", "frugality-system", "-o", "json").stdout
    (container,) = json.loads(text)["spec"]["template"]["spec"]["containers"]
    return {it["name"]: it["value"] for it in container["env"] if "value" in it}


def test_an_upgrade_as_documented_keeps_a_model_that_was_chosen_as_documented(
    installed: Kubectl, manifest: str
) -> None:
    installed(*documented("-n frugality-system set env"))
    chosen = meter_environment(installed)
    assert chosen["FRUGALITY_METER_BOARD"] == "pi-4b"
    assert "FRUGALITY_METER_POWER_CONFIG" not in chosen
    for _ in range(2):
        installed(*documented("apply --server-side"), stdin=manifest)
        installed(*documented("-n frugality-system set env"))
        assert meter_environment(installed) == chosen
