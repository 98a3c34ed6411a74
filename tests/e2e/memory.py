"""Resident memory of operator, meters and CloudNativePG during the long run."""

import statistics
import threading
from pathlib import Path

import box
from evidence import Observer, save

SAMPLE_SECONDS = 2.0
# Namespace and app.kubernetes.io/name of each part.
PARTS = {
    "operator": ("frugality-system", "frugality-operator"),
    "meter": ("frugality-system", "frugality-meter"),
    "cloudnative-pg": ("cnpg-system", "cloudnative-pg"),
}


class Memory:
    """Samples VmRSS of the parts' processes until it is stopped."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._stopped = threading.Event()
        self.samples: dict[str, list[int]] = {}
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(SAMPLE_SECONDS):
            for part in PARTS:
                for where, kib in self.resident_kib(part).items():
                    self.samples.setdefault(f"{part} on {where}", []).append(kib)

    def resident_kib(self, part: str) -> dict[str, int]:
        """The resident memory of a part now, by node."""
        found = {}
        for pod in self._observer.pods_named(*PARTS[part]):
            pids = [pid for pid, _ in box.processes(pod["metadata"]["uid"])]
            resident = [kib for pid in pids if (kib := box.resident_kib(pid)) is not None]
            if resident:
                found[pod["spec"].get("nodeName", "")] = sum(resident)
        return found

    def stop(self, path: Path) -> None:
        if not self._stopped.is_set():
            self._stopped.set()
            self._thread.join(10)
            save(path, self.summary())

    def early_and_late_mib(self, part: str) -> tuple[float, float]:
        """The memory of a part with one pod: its median in the second tenth of the time, and in the last."""
        (samples,) = [kib for name, kib in self.samples.items() if name.startswith(f"{part} ")]
        tenth = len(samples) // 10
        assert tenth > 10
        early, late = samples[tenth : 2 * tenth], samples[-tenth:]
        return statistics.median(early) / 1024, statistics.median(late) / 1024

    def summary(self) -> dict[str, dict[str, float]]:
        return {
            part: {
                "samples": len(samples),
                "medianMiB": round(statistics.median(samples) / 1024, 1),
                "maxMiB": round(max(samples) / 1024, 1),
            }
            for part, samples in sorted(self.samples.items())
        }
