"""A stand-in for the smart plug of a node. It answers like a Shelly of the second generation.

It measures nothing. It reads the CPU time of the node's cgroup from the kernel. By its answers the node draws
IDLE watts, and WATTS-PER-CPU for every CPU in use. A test can therefore check the meter that reads the plug.

- ``apower`` is the mean power of the last second, rounded to a tenth of a watt;
- ``aenergy.total`` counts watt-hours, to a thousandth.

The mode file holds ``plugged`` or ``silent``. A silent plug closes each connection without an answer, like a
plug without radio contact. Its counter continues.

    python3 stand_in_plug.py --cgroup /lab/pi-1 --idle-watts 2 --watts-per-cpu 3 --listen 28290 \\
        --mode-file FILE
"""

import argparse
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from oracle import Cgroup
from stand_in import Answer, serve

PATH = "/rpc/Switch.GetStatus?id=0"
KIND = "application/json"
SAMPLES_PER_SECOND = 20
MEAN_OVER_SECONDS = 1.0
VOLTS = 230.0
Clock = Callable[[], float]


class Node:
    """The energy of a node by its CPU time, over the last seconds."""

    def __init__(
        self, cgroup: Cgroup, idle_watts: float, watts_per_cpu: float, clock: Clock = time.monotonic
    ) -> None:
        self._cgroup, self._idle_watts, self._watts_per_cpu = cgroup, idle_watts, watts_per_cpu
        self._clock, self._began = clock, clock()
        self._first = cgroup.nanoseconds(cgroup.path)
        self._samples = [self._sample()]

    def _sample(self) -> tuple[float, float]:
        now = self._clock()
        cpu_seconds = (self._cgroup.nanoseconds(self._cgroup.path) - self._first) / 1e9
        return now, self._idle_watts * (now - self._began) + self._watts_per_cpu * cpu_seconds

    def look(self) -> None:
        """Takes another sample."""
        self._samples = [*self._samples[-2 * SAMPLES_PER_SECOND :], self._sample()]

    def keep_looking(self) -> None:
        """Takes samples until the process ends."""
        while True:
            time.sleep(1 / SAMPLES_PER_SECOND)
            self.look()

    def power_and_energy(self) -> tuple[float, float]:
        """Mean watts of the last second, and joules since the beginning."""
        at, joules = self._sample()
        samples = self._samples
        then, before = next((s for s in samples if at - s[0] <= MEAN_OVER_SECONDS), samples[-1])
        return (joules - before) / max(at - then, 1e-3), joules


def status(watts: float, joules: float) -> bytes:
    """The answer of a Shelly Plus Plug S."""
    return json.dumps(
        {
            "id": 0,
            "source": "init",
            "output": True,
            "apower": round(watts, 1),
            "voltage": VOLTS,
            "current": round(watts / VOLTS, 3),
            "aenergy": {"total": round(joules / 3600, 3), "by_minute": [0.0, 0.0, 0.0], "minute_ts": 0},
            "temperature": {"tC": 31.4, "tF": 88.5},
        }
    ).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cgroup", required=True, help="cgroup of the node, such as /lab/pi-1")
    parser.add_argument("--idle-watts", required=True, type=float)
    parser.add_argument("--watts-per-cpu", required=True, type=float)
    parser.add_argument("--listen", required=True, type=int, metavar="PORT")
    parser.add_argument("--mode-file", required=True, type=Path, metavar="FILE")
    options = parser.parse_args()
    node = Node(Cgroup.find(options.cgroup), options.idle_watts, options.watts_per_cpu)
    threading.Thread(target=node.keep_looking, daemon=True).start()

    def answer(path: str) -> Answer:
        if options.mode_file.read_text().strip() != "plugged":
            return None
        if path != PATH:
            return 404, KIND, b"not found"
        return 200, KIND, status(*node.power_and_energy())

    serve(options.listen, answer)


if __name__ == "__main__":
    main()
