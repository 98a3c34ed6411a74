"""Writes the reference values."""

import json
import pathlib


def write(script, document):
    """Writes a document next to the script that computed it: one case per line. A changed value is then one line of
    a diff."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list):
            rows = ",\n".join("    " + json.dumps(row) for row in value)
            lines.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    pathlib.Path(script).with_suffix(".json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
