"""Writes the picture at the top of the README: the head of a report. Usage: readme_picture.py FILE"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from conftest import KINDS, launched, write

KIND = "demo"
WIDTH = 1000
# The last section in the picture.
LAST = "#budgets"
MARGIN = 32


def main() -> None:
    picture = Path(sys.argv[1])
    picture.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = Path(folder) / "report.html"
        write(KINDS[KIND], report)
        browser = launched(playwright)
        page = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
        page.goto(report.as_uri())
        last = page.locator(LAST).bounding_box()
        height = last["y"] + last["height"] + MARGIN
        page.screenshot(path=picture, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
        browser.close()


if __name__ == "__main__":
    main()
