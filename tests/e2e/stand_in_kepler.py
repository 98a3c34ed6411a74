"""A stand-in for stock Kepler v0.11.4 on a node whose power comes over the node meter's bridge.

Kepler itself is not available here. The stand-in reads the same powercap tree and behaves as Kepler did in
observations:

- It reads every zone below ``class/powercap``. If a counter fell, it assumes that the counter wrapped.
- It takes a snapshot every 5 s, and at a scrape if the last snapshot is older than 500 ms.
- It reports no timestamps and no CPU time of pods.
- The active part of an interval's energy is proportional to the CPU use of the interval *before*. The active
  part is shared among pods by CPU time.
- If a zone's counter did not change, the pods' counters begin again at 0.

The stand-in reads CPU time from cgroups, while Kepler reads it from processes. It reads pods' names from the
folders of their logs, while Kepler asks the kubelet. Each snapshot is a line of the log: Unix seconds and
joules of the node.

    python3 stand_in_kepler.py --sysfs DIR --cgroup /lab/pi-1 --cpus 1 --pod-logs DIR --node pi-1 \\
        --listen 28284 --log FILE
"""

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from oracle import Cgroup
from stand_in import Answer, serve

INTERVAL_SECONDS = 5.0
STALENESS_SECONDS = 0.5
VERSION = "v0.11.4"
KIND = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
Labels = dict[str, str]


@dataclass
class Zone:
    """One zone of the powercap tree."""

    directory: Path
    last: int | None = None
    joules: dict[str, float] = field(default_factory=lambda: {"": 0.0, "active_": 0.0, "idle_": 0.0})
    watts: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``package-0`` is the zone ``package``."""
        return self._read("name").split("-")[0]

    def _read(self, name: str) -> str:
        return (self.directory / name).read_text().strip()

    def advance(self, seconds: float, ratio: float) -> float:
        """The zone's joules of the interval that ends now. The share ``ratio`` of them is active."""
        counter = int(self._read("energy_uj"))
        last, self.last = self.last, counter
        if last is None:
            self.joules[""] = counter / 1e6
            return 0.0
        risen = counter - last if counter >= last else int(self._read("max_energy_range_uj")) - last + counter
        joules = risen / 1e6
        parts = {"": joules, "active_": joules * ratio, "idle_": joules * (1 - ratio)}
        for part, share in parts.items():
            self.joules[part] += share
            self.watts[part] = share / seconds
        # The node's own counter is the counter of the hardware.
        self.joules[""] = counter / 1e6
        return joules


@dataclass
class Pod:
    """One pod's energy and power in every zone."""

    joules: dict[str, float] = field(default_factory=dict)
    watts: dict[str, float] = field(default_factory=dict)


class Kepler:
    """The snapshots, and the exposition of the newest one."""

    def __init__(
        self,
        sysfs: Path,
        cgroup: Cgroup,
        cpus: int,
        pod_logs: Path,
        node: str,
        log: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._cgroup, self._cpus, self._pod_logs, self._node = cgroup, cpus, pod_logs, node
        self._log = log.open("w", encoding="ascii", buffering=1)
        self._sysfs = sysfs
        self._zones = [Zone(entry) for entry in sorted((sysfs / "class/powercap").iterdir())]
        self._lock = threading.Lock()
        self._taken = clock()
        _, self._cpu, self._pods_cpu = cgroup.sample()
        self._ratio = 0.0
        self._pods: dict[str, Pod] = {}
        for zone in self._zones:
            zone.advance(1.0, 0.0)

    def keep_fresh(self) -> None:
        """Takes snapshots until the process ends."""
        while True:
            time.sleep(INTERVAL_SECONDS)
            self.page()

    def page(self) -> str:
        """The exposition of a snapshot that is not stale."""
        with self._lock:
            if self._clock() - self._taken > STALENESS_SECONDS:
                self._take()
            return "".join(self._families())

    def _take(self) -> None:
        now = self._clock()
        _, cpu, pods_cpu = self._cgroup.sample()
        seconds, self._taken = now - self._taken, now
        used = (cpu - self._cpu) / 1e9
        shares = {
            uid: max(0.0, (nanoseconds - self._pods_cpu.get(uid, 0)) / max(cpu - self._cpu, 1))
            for uid, nanoseconds in pods_cpu.items()
        }
        pods = {uid: self._pods.get(uid, Pod()) for uid in pods_cpu}
        for zone in self._zones:
            joules = zone.advance(seconds, self._ratio)
            for uid, pod in pods.items():
                given = joules * self._ratio * shares[uid]
                before = pod.joules.get(zone.name, 0.0) if joules > 0 else 0.0
                pod.joules[zone.name] = before + given
                pod.watts[zone.name] = given / seconds
        self._pods, self._cpu, self._pods_cpu = pods, cpu, pods_cpu
        self._ratio = min(1.0, used / (self._cpus * seconds))
        print(f"{time.time():.6f}", *(zone.joules[""] for zone in self._zones), file=self._log)

    def _names(self) -> dict[str, tuple[str, str]]:
        """Namespace and name of a pod by its UID."""
        parts = [entry.name.split("_") for entry in self._pod_logs.iterdir()]
        return {uid: (namespace, name) for namespace, name, uid in (p for p in parts if len(p) == 3)}

    def _families(self) -> Iterator[str]:
        build = {"arch": "amd64", "branch": "", "goversion": "go1.26.8", "revision": "", "version": VERSION}
        about = "A metric with a constant '1' value labeled with version information"
        yield family("kepler_build_info", "gauge", about, [(build, 1.0)])
        node = {"node_name": self._node}
        for part, state in (("", ""), ("active_", " in active state"), ("idle_", " in idle state")):
            name, about = f"kepler_node_cpu_{part}", f"consumption of cpu{state} at node level in"
            labels = [node | {"path": self._path(zone), "zone": zone.name} for zone in self._zones]
            joules = list(zip(labels, (zone.joules[part] for zone in self._zones), strict=True))
            watts = list(zip(labels, (zone.watts.get(part, 0.0) for zone in self._zones), strict=True))
            yield family(f"{name}joules_total", "counter", f"Energy {about} joules", joules)
            yield family(f"{name}watts", "gauge", f"Power {about} watts", watts)
        about = "CPU usage ratio of a node (value between 0.0 and 1.0)"
        yield family("kepler_node_cpu_usage_ratio", "gauge", about, [(node, self._ratio)])
        names = self._names()
        energy, power = list[tuple[Labels, float]](), list[tuple[Labels, float]]()
        for uid, pod in sorted(self._pods.items()):
            namespace, name = names.get(uid, ("", ""))
            of_pod = node | {"pod_id": uid, "pod_name": name, "pod_namespace": namespace, "state": "running"}
            energy += [(of_pod | {"zone": zone}, joules) for zone, joules in pod.joules.items()]
            power += [(of_pod | {"zone": zone}, watts) for zone, watts in pod.watts.items()]
        about = "consumption of cpu at pod level in"
        yield family("kepler_pod_cpu_joules_total", "counter", f"Energy {about} joules", energy)
        yield family("kepler_pod_cpu_watts", "gauge", f"Power {about} watts", power)

    def _path(self, zone: Zone) -> str:
        """The path in Kepler's container, which mounts the host's sysfs."""
        return f"/host/sys/{zone.directory.relative_to(self._sysfs)}"


def family(name: str, kind: str, about: str, samples: list[tuple[Labels, float]]) -> str:
    """One metric in the text format."""
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        inside = ",".join(f'{label}="{content}"' for label, content in sorted(labels.items()))
        lines.append(f"{name}{{{inside}}} {value!r}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sysfs", required=True, type=Path, metavar="DIR", help="the bridge's directory")
    parser.add_argument("--cgroup", required=True, help="cgroup of the node, such as /lab/pi-1")
    parser.add_argument("--cpus", required=True, type=int, help="CPUs of the node")
    parser.add_argument("--pod-logs", required=True, type=Path, metavar="DIR")
    parser.add_argument("--node", required=True, metavar="NAME")
    parser.add_argument("--listen", required=True, type=int, metavar="PORT")
    parser.add_argument("--log", required=True, type=Path, metavar="FILE")
    options = parser.parse_args()
    cgroup = Cgroup.find(options.cgroup)
    kepler = Kepler(options.sysfs, cgroup, options.cpus, options.pod_logs, options.node, options.log)
    threading.Thread(target=kepler.keep_fresh, daemon=True).start()

    def answer(path: str) -> Answer:
        if path != "/metrics":
            return 404, KIND, b"not found"
        return 200, KIND, kepler.page().encode()

    serve(options.listen, answer)


if __name__ == "__main__":
    main()
