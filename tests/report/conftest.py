"""The built kubectl-frugality, and Debian's Chromium that opens its reports."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("FRUGALITY_BIN_DIR", ROOT / "target/release")) / "kubectl-frugality"
CHROMIUM = "/usr/bin/chromium"
DATA = ROOT / "tests/report/data"
STATUSES = ROOT / "cli/tests/data"

# Each kind of benchmark, with the file that kubectl printed.
KINDS = {
    "budgets": DATA / "budgets.json",
    "fail": DATA / "fail.json",
    "sweep": DATA / "sweep.json",
    "modelled": DATA / "modelled.json",
    "levels": DATA / "levels.json",
    "scenario": STATUSES / "scenario.json",
    "batch": STATUSES / "batch.json",
    "shared-node": STATUSES / "shared-node.json",
    "depends-on-board": STATUSES / "depends-on-board.json",
    # make demo, as it ran in the box.
    "demo": DATA / "demo.json",
}


def objects(path: Path) -> list[dict[str, Any]]:
    """The objects in a list, or the only object."""
    read = json.loads(path.read_text())
    return read.get("items", [read])


def benchmark_in(path: Path) -> dict[str, Any]:
    return next(it for it in objects(path) if it["kind"] == "FrugalityBenchmark")


# Benchmarks that ended in the cluster in a box: tests/e2e keeps each of them.
if "FRUGALITY_BENCHMARKS" in os.environ:
    ended = sorted(Path(os.environ["FRUGALITY_BENCHMARKS"]).glob("*.json"))
    # An end without figures, such as Invalid, has little to show.
    with_figures = {it.stem: it for it in ended if benchmark_in(it)["status"].get("results")}
    assert with_figures, "no benchmark has ended with figures"
    KINDS |= with_figures


def write(source: Path, output: Path | str) -> str:
    """Writes a report of the objects in a file. Returns standard output."""
    command = [PROGRAM, "report", "--filename", source, "-o", output]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass
class Opened:
    """A report in the browser, and what the browser noted."""

    page: Page
    source: Path
    notes: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def launched(playwright: Playwright) -> Browser:
    # Root can't use Chromium's sandbox; the pages are the project's own.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=CHROMIUM, args=options)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = launched(playwright)
        yield opened
        opened.close()


Open = Callable[..., Opened]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the report of a kind or of a file."""
    contexts = []

    def of(kind: str | Path, **options: Any) -> Opened:
        source = KINDS[kind] if isinstance(kind, str) else kind
        file = tmp_path / f"{source.stem}.html"
        write(source, file)
        options.setdefault("viewport", {"width": 1100, "height": 900})
        context = browser.new_context(**options)
        contexts.append(context)
        report = Opened(context.new_page(), source)
        page = report.page
        page.on("console", lambda message: report.notes.append(message.text))
        page.on("pageerror", lambda error: report.notes.append(str(error)))
        page.on("dialog", lambda dialog: (report.notes.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: report.requests.append(request.url))
        page.goto(file.as_uri())
        return report

    yield of
    for context in contexts:
        context.close()
