"""What the README shows is what the examples hold."""

import re
import textwrap
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def test_the_readme_shows_the_examples_as_they_are() -> None:
    blocks = re.findall(r"^ *```yaml\n(.*?)^ *```$", README, re.S | re.M)
    written = [yaml.safe_load(textwrap.dedent(block)) for block in blocks]
    shown = [m for m in written if isinstance(m, dict) and m.get("kind") == "FrugalityBenchmark"]
    assert shown
    for manifest in shown:
        file = ROOT / "examples" / f"{manifest['metadata']['name']}.yaml"
        assert manifest == yaml.safe_load(file.read_text())


def test_the_readme_names_every_example() -> None:
    files = (file for file in ROOT.glob("examples/*.yaml") if ".patch." not in file.name)
    for file in files:
        assert f"examples/{file.name}" in README, file.name
