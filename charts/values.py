"""Generates the documentation of the chart's values from the comments in values.yaml.

    python charts/values.py        writes README.md's table and the descriptions in values.schema.json

The comment directly above a key is its description. A map is one value, unless one of its keys has
a comment. A comment such as ``# ---- Title ----`` begins a section.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parent / "frugality-operator"
BEGIN, END = "<!-- values: written by `make generate` -->", "<!-- end of values -->"
# Characters. The table refers to values.yaml for a longer default.
LONGEST_DEFAULT = 60


class UndocumentedError(Exception):
    """A value has no comment."""


@dataclass(frozen=True)
class Value:
    """One value, or a map of values with a comment of its own."""

    section: str
    path: str
    """Keys joined by dots."""
    description: str
    default: Any
    is_group: bool


def values(text: str) -> list[Value]:
    """The values in the text of a values.yaml, in the order of the file."""
    lines = text.splitlines()
    found: list[Value] = []

    def walk(mapping: yaml.MappingNode, defaults: dict[str, Any], parents: tuple[str, ...]) -> None:
        for key, node in mapping.value:
            path = (*parents, key.value)
            default = defaults[key.value]
            description = _comment_above(lines, key)
            is_group = isinstance(node, yaml.MappingNode) and _has_comments(lines, node)
            if not description and not is_group:
                raise UndocumentedError(f"{'.'.join(path)} has no comment")
            if description:
                section = _section(lines, key.start_mark.line)
                found.append(Value(section, ".".join(path), description, default, is_group))
            if is_group:
                walk(node, default, path)

    walk(yaml.compose(text), yaml.safe_load(text), ())
    return found


def _comment_above(lines: list[str], key: yaml.Node) -> str:
    line, column = key.start_mark.line, key.start_mark.column
    if lines[line][:column].strip():  # the key shares its line with another key
        return ""
    first = line
    while first > 0 and re.match(r" *#(?! -{4})", lines[first - 1]):
        first -= 1
    return " ".join(text.strip().removeprefix("#").strip() for text in lines[first:line])


def _has_comments(lines: list[str], mapping: yaml.MappingNode) -> bool:
    return any(
        _comment_above(lines, key)
        or (isinstance(node, yaml.MappingNode) and _has_comments(lines, node))
        for key, node in mapping.value
    )


def _section(lines: list[str], line: int) -> str:
    titles = (re.match(r"# -{4} (.+?) -+$", text) for text in reversed(lines[:line]))
    return next((title[1] for title in titles if title), "Values")


def table(found: list[Value]) -> str:
    """One Markdown table per section."""
    parts = []
    section = None
    for value in found:
        if value.section != section:
            section = value.section
            parts.append(f"\n### {section}\n\n| value | default | meaning |\n|---|---|---|")
        description = value.description.replace("|", "\\|")
        parts.append(f"| `{value.path}` | {_default(value)} | {description} |")
    return "\n".join(parts) + "\n"


def _default(value: Value) -> str:
    if value.is_group:
        return ""
    default = json.dumps(value.default, ensure_ascii=False)
    return f"`{default}`" if len(default) <= LONGEST_DEFAULT else "see `values.yaml`"


def readme(text: str, found: list[Value]) -> str:
    """The text of README.md with the tables of these values between the markers."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table(found)}\n{END}{after}"


def schema(text: str, found: list[Value]) -> str:
    """The text of values.schema.json with the descriptions of these values."""
    whole = json.loads(text)
    for value in found:
        part = whole
        for key in value.path.split("."):
            part = part["properties"][key]
        types = {name: rule for name, rule in part.items() if name != "description"}
        part.clear()
        part.update({"description": value.description, **types})
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    found = values((CHART / "values.yaml").read_text())
    for name, written in (("README.md", readme), ("values.schema.json", schema)):
        file = CHART / name
        file.write_text(written(file.read_text(), found))


if __name__ == "__main__":
    main()
