"""README and quick start contain the examples unchanged, and the list of examples is complete."""

import re
import textwrap
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
LIST = (ROOT / "examples/README.md").read_text()


@pytest.mark.parametrize("document", ["README.md", "docs/quickstart.md"])
def test_documents_contain_the_examples_unchanged(document: str) -> None:
    blocks = re.findall(r"^ *```yaml\n(.*?)^ *```$", (ROOT / document).read_text(), re.S | re.M)
    written = [yaml.safe_load(textwrap.dedent(block)) for block in blocks]
    shown = [m for m in written if isinstance(m, dict) and m.get("kind") == "FrugalityBenchmark"]
    assert shown
    for manifest in shown:
        file = ROOT / "examples" / f"{manifest['metadata']['name']}.yaml"
        assert manifest == yaml.safe_load(file.read_text())


def test_the_list_of_examples_is_complete() -> None:
    for file in ROOT.glob("examples/*.yaml"):
        assert f"]({file.name})" in LIST, file.name
