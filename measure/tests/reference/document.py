"""How the reference values are written."""

import json
import pathlib


def write(script, document):
    """Writes a document beside the script that computed it: one case a line, so that a change of a value is one
    line of a diff."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list):
            rows = ",\n".join("    " + json.dumps(row) for row in value)
            lines.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    pathlib.Path(script).with_suffix(".json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
