"""The chart's alerts and dashboard for the metrics in docs/metrics.md, checked with Prometheus' own promtool."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from queries import DOCUMENT, REPOSITORY, RULES, alerts, expressions, panels

UNIT_TESTS = Path(__file__).with_name("alerts.yaml")


def promtool(*arguments: str | Path) -> str:
    done = subprocess.run(
        ["promtool", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=UNIT_TESTS.parent,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_accepts_the_alerts() -> None:
    assert f"{len(alerts())} rules found" in promtool("check", "rules", RULES)


def test_each_alert_fires_when_it_must_and_only_then() -> None:
    assert "SUCCESS" in promtool("test", "rules", UNIT_TESTS)


def test_each_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    cases = [
        case for test in yaml.safe_load(UNIT_TESTS.read_text())["tests"] for case in test["alert_rule_test"]
    ]
    names = {alert["alert"] for alert in alerts()}
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == names
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == names


def test_the_document_has_a_row_for_each_alert() -> None:
    rows = re.findall(r"^\| `(Frugality\w+)` \|", DOCUMENT, re.MULTILINE)
    assert rows == [alert["alert"] for alert in alerts()]


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_the_link_of_an_alert_leads_to_a_heading(alert: dict) -> None:
    path, _, anchor = alert["annotations"]["runbook_url"].partition("/blob/main/")[2].partition("#")
    headings = re.findall(r"^#+ (.*)$", (REPOSITORY / path).read_text(), re.MULTILINE)
    assert anchor in {re.sub(r"[^a-z0-9-]", "", heading.lower().replace(" ", "-")) for heading in headings}


@pytest.mark.parametrize("expression", expressions())
def test_a_query_uses_documented_metrics(expression: str) -> None:
    names = re.findall(r"\b(?:frugality|kepler)_\w+", expression)
    assert names
    for name in names:
        assert f"`{name.removesuffix('_bucket')}`" in DOCUMENT, name


def test_a_panel_has_a_title_a_unit_and_a_place_of_its_own() -> None:
    taken = set()
    for panel in panels():
        assert panel["title"]
        assert panel["type"] == "table" or panel["fieldConfig"]["defaults"]["unit"]
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
