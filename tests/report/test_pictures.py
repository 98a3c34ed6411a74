"""The charts look as they did. After a change that is meant, record them again. Look at build/report/*.png:

RECORD=1 python -m pytest tests/report/test_pictures.py
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conftest import Open
from pictures import (
    MOST_OF_A_CELL,
    MOST_OF_THE_MEAN,
    RECORDED,
    WITHOUT_TEXTS,
    differences,
    packed,
    recorded,
    reduced,
)

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/report"
SHOWN = ["budgets", "fail", "sweep", "modelled", "levels", "scenario", "batch", "demo"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", SHOWN)
def test_the_charts_look_as_they_did(kind: str, scheme: Any, opened: Open) -> None:
    report = opened(kind, color_scheme=scheme)
    FOLDER.mkdir(parents=True, exist_ok=True)
    report.page.screenshot(path=FOLDER / f"{kind}-{scheme}.png", full_page=True)
    blank = report.page.context.browser.new_page()
    now = {}
    report.page.add_style_tag(content=WITHOUT_TEXTS)
    for chart in report.page.locator("figure svg[role=img]").all():
        name = chart.get_attribute("aria-labelledby").split()[0]
        texts = chart.locator("text").all_text_contents()
        picture = packed(reduced(blank, chart.screenshot()))
        now[name] = {**picture, "texts": [text.strip() for text in texts]}
    blank.close()
    key = f"{kind} {scheme}"
    if os.environ.get("RECORD"):
        known = dict(sorted({**recorded(), key: now}.items()))
        RECORDED.write_text(json.dumps(known, indent=1) + "\n")
    then = recorded()[key]
    assert list(now) == list(then)
    for name, chart in now.items():
        assert chart["texts"] == then[name]["texts"], name
        apart = differences(chart, then[name])
        assert max(apart) <= MOST_OF_A_CELL, name
        assert sum(apart) / len(apart) <= MOST_OF_THE_MEAN, name


def test_another_chart_is_noticed() -> None:
    """Charts of two benchmarks differ for the comparison, and so do light and dark."""
    known = recorded()
    for name in ["comparisons-0-t", "figures-0-t"]:
        one = known["budgets light"][name]
        for other in ["modelled light", "budgets dark"]:
            apart = differences(one, known[other][name])
            assert max(apart) > MOST_OF_A_CELL or sum(apart) / len(apart) > MOST_OF_THE_MEAN


def test_a_report_on_a_phone_can_be_looked_at(opened: Open) -> None:
    page = opened("budgets", viewport={"width": 360, "height": 740}, device_scale_factor=2).page
    FOLDER.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=FOLDER / "budgets-phone.png", full_page=True)
    assert page.locator("h1").bounding_box()["width"] <= 360
