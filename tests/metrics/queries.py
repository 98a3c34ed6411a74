"""The queries of the chart's alerts and dashboard and of docs/metrics.md."""

import json
import re
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
MONITORING = REPOSITORY / "charts/frugality-operator/files/monitoring"
RULES = MONITORING / "rules.yaml"
DOCUMENT = (REPOSITORY / "docs/metrics.md").read_text()


def alerts() -> list[dict]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return group["rules"]


def panels() -> list[dict]:
    return json.loads((MONITORING / "dashboard.json").read_text())["panels"]


def expressions() -> list[str]:
    """All queries. The dashboard's variables match everything, as with Grafana's choice All."""
    of_panels = [re.sub(r"\$\w+", ".*", target["expr"]) for panel in panels() for target in panel["targets"]]
    _, section = DOCUMENT.split("\n## Queries\n")
    of_document = re.findall(r"\| `([^`]+)` \|$", section.partition("\n## ")[0], re.MULTILINE)
    assert of_document
    return [*(alert["expr"] for alert in alerts()), *of_panels, *of_document]


def documented() -> set[str]:
    """Names of the operator's metrics, by the document's tables."""
    return set(
        re.findall(r"^\| `(frugality_\w+)` \| (?:counter|gauge|histogram|info) ", DOCUMENT, re.MULTILINE)
    )
