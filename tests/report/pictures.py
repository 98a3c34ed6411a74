"""Pictures of reports: files to look at, and what the tests compare.

The comparison must hold for all fonts and rasterisers. Therefore the texts of a chart are compared as texts,
and the rest of the chart as a picture: in a fixed size, reduced to the mean colour of large cells.
"""

import base64
import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

RECORDED = Path(__file__).parent / "pictures.json"
# Width of a cell, in pixels of the picture.
CELL = 32
# Greatest difference of a cell's colour, and of the mean of all cells, from 0 to 255.
MOST_OF_A_CELL = 16.0
MOST_OF_THE_MEAN = 2.0

# The style for a picture without texts.
WITHOUT_TEXTS = """
figure svg { width: 1000px !important; max-width: none }
figure svg text { visibility: hidden }
"""

# A blank page reduces the picture: the report's own page may load nothing.
REDUCE = """async ([picture, cell]) => {
    const image = new Image();
    image.src = 'data:image/png;base64,' + picture;
    await image.decode();
    const [columns, rows] = [Math.round(image.width / cell), Math.round(image.height / cell)];
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const cells = [];
    for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
            const x = Math.floor(column * image.width / columns);
            const y = Math.floor(row * image.height / rows);
            const data = context.getImageData(x, y, cell, cell).data;
            const sum = [0, 0, 0];
            let count = 0;
            for (let at = 0; at < data.length; at += 4) {
                if (data[at + 3] === 0) continue;
                count += 1;
                for (const part of [0, 1, 2]) sum[part] += data[at + part];
            }
            cells.push(sum.map(it => Math.round(it / Math.max(count, 1))));
        }
    }
    return { columns, rows, cells };
}"""


def reduced(blank: Page, picture: bytes) -> dict[str, Any]:
    return blank.evaluate(REDUCE, [base64.b64encode(picture).decode(), CELL])


def packed(reduced: dict[str, Any]) -> dict[str, Any]:
    """The cells as text, a line per row."""
    columns = reduced["columns"]
    cells = ["".join(f"{part:02x}" for part in cell) for cell in reduced["cells"]]
    rows = ["".join(cells[at : at + columns]) for at in range(0, len(cells), columns)]
    return {"columns": columns, "rows": rows}


def recorded() -> dict[str, Any]:
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[float]:
    """The difference of each cell, as the mean over its three parts."""
    if one["columns"] != other["columns"] or len(one["rows"]) != len(other["rows"]):
        return [255.0]
    parts = [[bytes.fromhex(row) for row in it["rows"]] for it in (one, other)]
    pairs = zip(b"".join(parts[0]), b"".join(parts[1]), strict=True)
    apart = [abs(left - right) for left, right in pairs]
    return [sum(apart[at : at + 3]) / 3 for at in range(0, len(apart), 3)]
