"""A stand-in between the operator and the real node meter, for faults that no healthy meter has.

It passes on the answers of the real meter, changed by a mode. For each answer it reads the mode from a file:

- ``pass``       the answer is unchanged;
- ``backwards``  every energy counter of the node is 20 J lower, as if the counter had fallen;
- ``stale``      the text stays the same, as from a meter that has stopped reading;
- ``powerless``  status 200 without any power metric, like stock Kepler without RAPL.

    python3 stand_in_meter.py --upstream 10.42.1.4:28282 --listen 28283 --mode-file FILE
"""

import argparse
import re
from pathlib import Path
from urllib.request import urlopen

from stand_in import Answer, serve

FALL_JOULES = 20.0
NODE_ENERGY = re.compile(r"^(kepler_node_cpu\w*_joules_total\{.*\}) (\S+)$", re.MULTILINE)
POWER = re.compile(r"^(?:# \w+ )?kepler_\w+_(?:joules_total|watts)\b.*\n", re.MULTILINE)


def changed(text: str, mode: str, kept: dict[str, str]) -> str:
    """The text that the operator gets instead of the real meter's ``text``."""
    if mode != "stale":
        kept.pop("text", None)
    match mode:
        case "pass":
            return text
        case "backwards":
            return NODE_ENERGY.sub(lambda m: f"{m[1]} {max(float(m[2]) - FALL_JOULES, 0.0)}", text)
        case "stale":
            return kept.setdefault("text", text)
        case "powerless":
            return POWER.sub("", text)
        case _:
            raise ValueError(f"unknown mode {mode!r}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--upstream", required=True, metavar="HOST:PORT", help="the real meter")
    parser.add_argument("--listen", required=True, type=int, metavar="PORT")
    parser.add_argument("--mode-file", required=True, type=Path, metavar="FILE")
    options = parser.parse_args()
    kept: dict[str, str] = {}

    def answer(path: str) -> Answer:
        with urlopen(f"http://{options.upstream}{path}", timeout=2) as upstream:
            body, kind = upstream.read(), upstream.headers["Content-Type"]
        if path == "/metrics":
            body = changed(body.decode(), options.mode_file.read_text().strip(), kept).encode()
        return 200, kind, body

    serve(options.listen, answer)


if __name__ == "__main__":
    main()
