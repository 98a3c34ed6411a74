"""The cluster in a box as the host sees it: its directory, its cgroups, the processes of a pod."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import waiting
from oracle import CGROUPS, Cgroup

CGROUP_ROOT = os.environ.get("FRUGALITY_LAB_CGROUP_ROOT", "/lab").rstrip("/")
MEASURED_NODE = "pi-1"
INJECTOR_NODE = "injector-1"
# The address of the injector's node for the measured node.
INJECTOR_ADDRESS = "10.240.0.2"
_CACHE = Path(os.environ.get("FRUGALITY_CACHE", Path.home() / ".cache/frugality"))
LAB_DIR = Path(os.environ.get("FRUGALITY_LAB_DIR", _CACHE / "lab"))
ARTIFACTS = Path(os.environ.get("E2E_ARTIFACTS", LAB_DIR / "e2e"))


def measured_cpus() -> int:
    """CPUs that the measured node's pods run on."""
    relative = f"{CGROUP_ROOT.strip('/')}/{MEASURED_NODE}/kubepods"
    for path in (CGROUPS / "cpuset" / relative / "cpuset.cpus", CGROUPS / relative / "cpuset.cpus.effective"):
        if path.exists():
            ranges = [part.split("-") for part in path.read_text().strip().split(",")]
            return sum(int(r[-1]) - int(r[0]) + 1 for r in ranges)
    return os.cpu_count() or 1


def processes(pod_uid: str) -> Iterator[tuple[int, str]]:
    """Process IDs and names of a pod's containers, without the sandbox."""
    for pid in pids_in(Cgroup.find(CGROUP_ROOT).path, f"pod{pod_uid}"):
        name = _name_of(pid)
        if name and name != "pause":
            yield int(pid), name


def pids_in(root: Path, cgroup: str) -> Iterator[str]:
    """Process IDs in the cgroups of this name and below them. Cgroups may end meanwhile, those of other pods too."""
    # Unlike Path.glob, os.walk passes over directories that have ended.
    for directory, _, _ in os.walk(root):
        if cgroup in Path(directory).parts:
            with contextlib.suppress(OSError):
                yield from Path(directory, "cgroup.procs").read_text().split()


def system_process(part: str, name: str) -> int:
    """The process of this name in a part of the box itself: ``control-plane`` or a node."""
    procs = Cgroup.find(f"{CGROUP_ROOT}/system/{part}").path / "cgroup.procs"
    (pid,) = [int(pid) for pid in procs.read_text().split() if _name_of(pid) == name[:15]]
    return pid


def in_network_of(node: str) -> list[str]:
    """The beginning of a command line that runs a command in a node's network."""
    return ["nsenter", f"--net=/proc/{system_process(node, 'kubelet')}/ns/net"]


def files_of(node: str) -> Path:
    """The root directory as a node's kubelet sees it."""
    return Path(f"/proc/{system_process(node, 'kubelet')}/root")


@contextlib.contextmanager
def stand_in(node: str, script: ModuleType, *arguments: str) -> Iterator[None]:
    """Runs one of this suite's stand-ins in a node's network."""
    command = [*in_network_of(node), sys.executable, str(script.__file__), *arguments]
    port = int(arguments[arguments.index("--listen") + 1])
    process = subprocess.Popen(command)

    def is_up() -> bool:
        assert process.poll() is None, f"{script.__name__} has ended"
        return listens(process.pid, port)

    try:
        waiting.until(is_up, 30, f"{script.__name__} on port {port} of {node}", every=0.1)
        yield
    finally:
        process.terminate()
        process.wait(10)


def listens(pid: int, port: int) -> bool:
    """Whether a program listens on this TCP port (IPv4), in the network of a process."""
    sockets = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    # Columns: number, local address, remote address, state. 0A is LISTEN.
    return any(socket[1].endswith(f":{port:04X}") and socket[3] == "0A" for socket in sockets)


def state_of(pid: int) -> str:
    """The kernel's letter for a process's state, for example ``T`` for stopped; empty after its end."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    state = status.rpartition(")")[2].split()[0]
    return "" if state in "ZX" else state


@contextlib.contextmanager
def redirected(node: str, address: str, port: int, to_port: int) -> Iterator[None]:
    """Redirects a node's incoming connections for this address and port to another port of the node."""
    rule = ["PREROUTING", "-d", address, "-p", "tcp", "--dport", str(port)]
    rule += ["-j", "REDIRECT", "--to-ports", str(to_port)]
    iptables = [*in_network_of(node), "iptables", "-t", "nat"]
    subprocess.run([*iptables, "-I", *rule], check=True)
    try:
        yield
    finally:
        subprocess.run([*iptables, "-D", *rule], check=False)


def _name_of(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # The process has ended.
        return ""


def resident_kib(pid: int) -> int | None:
    """VmRSS of a process. ``None`` if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(found[0]) if found else None
