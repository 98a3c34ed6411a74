"""hack/demo on the user's own cluster: it lists what is missing, and changes nothing before.

kubectl and helm are scripts that answer like a cluster of two Pis, and log their arguments. curl is a script
that answers like the public registry.
"""

import os
import shlex
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
IMAGES = [
    f'["ghcr.io/frugality-dev/{name}:{VERSION}"]'
    for name in ("operator", "meter", "injector", "contacts-rust", "contacts-python")
]
# Arguments, as a shell pattern: the answer. None is an error.
CLUSTER: dict[str, str | None] = {
    "*version*": "Client Version: v1.35.4\nServer Version: v1.33.1+k3s1",
    "*config*view*": "pis at https://pi-1:6443",
    "*auth*can-i*": "",
    "*get*nodes*": "pi-1\tarm64\tTrue\tPreferNoSchedule\npi-2\tarm64\tTrue\t",
    "*get*node*pi-*": "\n".join(IMAGES),
    "*get*crd*clusters.postgresql.cnpg.io*": "crd",
    "*get*deployments*cloudnative-pg*": "1",
    "*get*deployment*frugality-operator*": f"registry.example.org/f/operator:{VERSION}",
    "*get*storageclasses*": "local-path",
    "*apply*": None,
}
# curl's exit codes.
HAS_IMAGE, NO_SUCH_IMAGE, NO_SUCH_HOST = 0, 22, 6
CHANGES = ("apply", "create namespace", "delete", "upgrade", "annotate", "label")


class Demo:
    """hack/demo on a cluster with these answers."""

    def __init__(self, folder: Path, answers: dict[str, str | None], installed: bool, registry: int) -> None:
        self.folder = folder
        self.asked = folder / "asked"
        self.asked.touch()
        cases = "".join(
            f"{pattern}) {'echo refused >&2; exit 1' if text is None else f'echo {shlex.quote(text)}'} ;;\n"
            for pattern, text in answers.items()
        )
        log = f"#!/bin/sh\nprintf '%s\\n' \"$0 $*\" >>{self.asked}\n"
        self.program("kubectl", f'{log}case "$*" in\n{cases}*) exit 64 ;; esac\n')
        self.program("helm", f"{log}exit {0 if installed else 1}\n")
        self.program("curl", f"#!/bin/sh\nexit {registry}\n")

    def program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run(self, *arguments: str) -> str:
        """Runs hack/demo, and returns its error output. It must fail and change nothing in the cluster."""
        done = subprocess.run(
            [ROOT / "hack" / "demo", *arguments],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}"},
        )
        assert done.returncode == 1
        assert [word for word in CHANGES if f" {word} " in self.asked.read_text()] == []
        return done.stderr


@pytest.fixture
def demo(tmp_path: Path) -> Callable[..., Demo]:
    def demo(installed: bool = False, registry: int = NO_SUCH_IMAGE, **changed: str | None) -> Demo:
        """The cluster above with other answers to the patterns that contain a word of `changed`."""
        answers = {
            pattern: next((text for word, text in changed.items() if word in pattern), answer)
            for pattern, answer in CLUSTER.items()
        }
        return Demo(tmp_path, answers, installed, registry)

    return demo


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"version": None}, "error: the cluster does not answer: refused"),
        ({"version": "Server Version: v1.28.9+k3s1"}, "missing: Kubernetes 1.29 or newer"),
        ({"can": None}, "missing: the right to create clusterroles"),
        ({"nodes": "pi-1\tarm64\tTrue\t"}, "missing: two nodes that are ready and untainted"),
        ({"nodes": "pi-1\tarm64\tTrue\t\npi-2\tarm64\tFalse\t"}, "there are: pi-1\n"),
        ({"nodes": "pi-1\tarm64\tTrue\t\npi-2\tarm64\tTrue\tNoSchedule NoExecute"}, "there are: pi-1\n"),
        (
            {"nodes": "pi-1\tarm64\tTrue\t\npi-2\tarm\tTrue\t"},
            "missing: images for the architecture of pi-2, arm",
        ),
        ({"crd": None}, "missing: CloudNativePG, for the database"),
        ({"deployments": ""}, "missing: a CloudNativePG operator that is available"),
        ({"storageclasses": ""}, "missing: a default StorageClass"),
        (
            {"node*pi": "\n".join(IMAGES[:3] + IMAGES[4:])},
            f"…:{VERSION} in the node pi-2, and in the registry: contacts-rust",
        ),
    ],
)
def test_demo_reports_what_is_missing_before_it_changes_anything(
    demo: Callable[..., Demo], changed: dict[str, str | None], message: str
) -> None:
    assert message in demo(**changed).run("--context", "pis", "--board", "pi-4b")


def test_a_source_of_power_is_required_unless_the_chart_is_installed(demo: Callable[..., Demo]) -> None:
    assert "missing: a source of the nodes' power" in demo().run("--context", "pis")
    told = demo(installed=True, storageclasses="").run("--context", "pis")
    assert "missing: a default StorageClass" in told
    assert "missing: a source of the nodes' power" not in told


def test_candidates_come_from_the_registry_of_the_installed_operator(demo: Callable[..., Demo]) -> None:
    no_image_in_the_nodes = {"node*pi": "", "storageclasses": ""}
    told = demo(installed=True, **no_image_in_the_nodes).run("--context", "pis")
    assert told.count("missing: ") == 1
    told = demo(**no_image_in_the_nodes).run("--context", "pis", "--board", "pi-4b")
    assert told.count("missing: ") == 3


@pytest.mark.parametrize("registry", [HAS_IMAGE, NO_SUCH_HOST])
def test_nodes_may_pull_images_that_they_lack(demo: Callable[..., Demo], registry: int) -> None:
    told = demo(registry=registry, **{"node*pi": "", "storageclasses": ""}).run(
        "--context", "pis", "--board", "pi-4b"
    )
    assert told.count("missing: ") == 1


def test_nodes_cannot_pull_images_of_localhost(demo: Callable[..., Demo]) -> None:
    told = demo(registry=HAS_IMAGE, **{"node*pi": ""}).run(
        "--context", "pis", "--board", "pi-4b", "--registry", "localhost/mine"
    )
    assert told.count("missing: images localhost/mine/…") == 2


def test_demo_reports_everything_that_is_missing_at_once(demo: Callable[..., Demo]) -> None:
    told = demo(nodes="pi-1\tarm64\tTrue\t", crd=None, storageclasses="").run("--context", "pis")
    assert told.count("missing: ") == 4


def test_one_node_is_enough_if_load_and_servers_may_share_it(demo: Callable[..., Demo]) -> None:
    one = {"nodes": "pi-1\tarm64\tTrue\t", "storageclasses": ""}
    told = demo(**one).run("--context", "pis", "--board", "pi-4b", "--share-node")
    assert told.count("missing: ") == 1


def test_a_standalone_database_needs_neither_cloud_native_pg_nor_a_storage_class(
    demo: Callable[..., Demo],
) -> None:
    without = {"crd": None, "storageclasses": "", "nodes": "pi-1\tarm64\tTrue\t"}
    told = demo(**without).run("--context", "pis", "--board", "pi-4b", "--standalone")
    assert told.count("missing: ") == 1


@pytest.mark.parametrize("program", ["kind", "k3d"])
def test_demo_creates_a_cluster_and_contacts_no_other(demo: Callable[..., Demo], program: str) -> None:
    created = demo(registry=HAS_IMAGE, crd=None, storageclasses="", nodes="node/one\nnode/two")
    created.program(program, f"#!/bin/sh\nprintf '%s\\n' \"$0 $*\" >>{created.asked}\n")
    pinned = created.folder / "pinned"
    created.program("docker", f"#!/bin/sh\nprintf '%s\\n' \"$*\" >>{pinned}\n")
    created.program("nproc", "#!/bin/sh\necho 5\n")
    told = created.run(f"--{program}", "--board", "pi-4b")
    assert told.count("missing: ") == 1
    first, *others = [
        line.removeprefix(f"{created.folder}/") for line in created.asked.read_text().splitlines()
    ]
    assert f"{program} " in first
    assert " create " in first
    assert "frugality-demo" in first
    of_clusters = [line for line in others if not line.startswith(program)]
    assert of_clusters
    assert [line for line in of_clusters if f"context={program}-frugality-demo" not in line] == []
    assert pinned.read_text().splitlines() == ["update --cpuset-cpus 0-1 one", "update --cpuset-cpus 2-3 two"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "--board", "pi-4b"], "kind is not in PATH"),
        (["--k3d", "--board", "pi-4b"], "k3d is not in PATH"),
    ],
)
def test_demo_reports_a_missing_program(
    demo: Callable[..., Demo], arguments: list[str], message: str
) -> None:
    assert message in demo().run(*arguments)


def test_demo_does_not_look_for_images_of_a_registry_in_the_nodes(demo: Callable[..., Demo]) -> None:
    without = {"node*pi": "", "storageclasses": ""}
    told = demo(**without).run("--context", "pis", "--board", "pi-4b", "--registry", "registry.example.org/f")
    assert told.count("missing: ") == 1


def test_demo_contacts_only_the_named_cluster(demo: Callable[..., Demo]) -> None:
    before = demo(storageclasses="")
    before.run("--context", "pis", "--board", "pi-4b")
    asked = before.asked.read_text().splitlines()
    assert asked
    assert [line for line in asked if not ("--context=pis" in line or "--kube-context=pis" in line)] == []


def test_files_in_the_variable_kubeconfig_are_in_the_folder_of_the_user(
    demo: Callable[..., Demo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "my clusters"
    own.mkdir()
    monkeypatch.chdir(own)
    monkeypatch.setenv("KUBECONFIG", "pis:sub/other::/etc/farm")
    called = demo(storageclasses="")
    called.program("helm", f"#!/bin/sh\necho \"$KUBECONFIG\" >>{called.asked}\nexit 1\n")
    called.run("--context", "pis", "--board", "pi-4b")
    assert f"{own}/pis:{own}/sub/other::/etc/farm" in called.asked.read_text().splitlines()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--board", "pi-4b"], "are for your own cluster: name it with --context or --kubeconfig"),
        (["--context"], "--context needs a value"),
        (["--kubeconfig", "no-such-file"], "--kubeconfig: no file no-such-file"),
        (["--all"], "unknown option --all"),
    ],
)
def test_demo_reports_a_wrong_argument(demo: Callable[..., Demo], arguments: list[str], message: str) -> None:
    assert message in demo().run(*arguments)
