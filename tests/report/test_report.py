"""Reports in a real browser: what they load, what they show, and who can read them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from conftest import KINDS, Open, benchmark_in, objects, write

MOST_BYTES = 1_500_000
PHONE = {"width": 360, "height": 740}
# The least contrast of text by WCAG 2.2, 1.4.3.
LEAST_CONTRAST = 4.5

kinds = pytest.mark.parametrize("kind", KINDS)


@kinds
def test_a_report_loads_nothing_and_the_browser_has_no_complaint(kind: str, opened: Open) -> None:
    report = opened(kind)
    report.page.wait_for_load_state("networkidle")
    assert report.notes == []
    assert report.requests == [report.page.url]
    assert len(Path(report.page.url.removeprefix("file://")).read_bytes()) < MOST_BYTES


def test_the_browser_refuses_to_load_anything(opened: Open) -> None:
    report = opened("budgets")
    loaded = report.page.evaluate(
        """async () => {
            const image = new Image();
            const shown = new Promise(done => {
                image.onload = () => done(true);
                image.onerror = () => done(false);
            });
            image.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==';
            const fetched = fetch('http://127.0.0.1:9/').then(() => true, () => false);
            return [await shown, await fetched];
        }"""
    )
    assert loaded == [False, False]
    assert any("Content Security Policy" in note for note in report.notes)


def cells(page: Page, heading: str) -> list[str]:
    """The cells of the column with this heading, in the first table that has it."""
    return page.evaluate(
        """heading => {
            for (const table of document.querySelectorAll('table')) {
                const headings = [...table.querySelectorAll('th')].map(it => it.textContent);
                const index = headings.indexOf(heading);
                if (index >= 0)
                    return [...table.querySelectorAll('tbody tr')].map(it => it.cells[index].textContent);
            }
            return [];
        }""",
        heading,
    )


def agrees(shown: str, figure: dict[str, Any] | None, factor: float = 1.0) -> bool:
    """Whether a text such as 12.55±0.14 is the figure with half of its interval, rounded to the digits that it has."""
    if figure is None:
        return shown == "–"
    number, _, half = shown.lstrip("~").partition("±")
    digits = len(number.split(".")[1].split("e")[0]) if "." in number else 0
    exponent = int(number.split("e")[1]) if "e" in number else 0
    last = 10.0 ** (exponent - digits)
    value = figure["value"] * factor
    if shown.startswith("~"):
        # Without a known accuracy no interval is shown.
        return half == "" and abs(float(number) - value) <= max(0.5000001 * last, 0.05 * abs(value))
    interval = figure.get("expanded", figure)
    expected = factor * (interval["upper"] - interval["lower"]) / 2
    # An uncertainty below the last digit is shown as 1 in this digit. One of a number with an exponent has 3 digits.
    room = 0.005 * expected if "e" in number else 0.5000001 * last
    is_half = abs(float(half) - max(expected, last)) <= room if half else expected == 0
    return is_half and abs(float(number) - value) <= 0.5000001 * last


def test_a_wrong_number_is_noticed() -> None:
    """The comparison itself, with texts that are not a rounding of the figure."""
    figure = {"value": 12.5512, "lower": 12.41, "upper": 12.69}
    assert agrees("12.55±0.14", figure)
    assert not any(agrees(text, figure) for text in ["12.56±0.14", "12.55±0.15", "12.55", "–"])
    wide = figure | {"expanded": {"lower": 12.0, "upper": 13.0}}
    assert agrees("12.6±0.5", wide)
    assert not agrees("12.55±0.14", wide)
    assert not agrees("~12.5±0.1", figure)


@kinds
def test_the_numbers_equal_the_status(kind: str, opened: Open) -> None:
    report = opened(kind)
    status = benchmark_in(report.source)["status"]
    results = status["results"]
    unit, whole = ("CYCLE",) * 2 if "cycles" in results[0] else ("REQUEST",) * 2
    if "batch" in results[0]:
        unit, whole = results[0]["batch"].get("workUnit", "execution").upper(), "EXECUTION"
    columns = {
        f"{unit}S/S": ("requestsPerSecond", 1.0),
        f"MS/{whole}": ("millisecondsPerRequest", 1.0),
        f"CPU MS/{unit}": ("cpuMillisecondsPerRequest", 1.0),
        f"GROSS mJ/{unit}": ("grossJoulesPerRequest", 1e3),
        f"NET mJ/{unit}": ("netJoulesPerRequest", 1e3),
        f"ATTRIBUTED mJ/{unit}": ("attributedJoulesPerRequest", 1e3),
    }
    for heading, (name, factor) in columns.items():
        shown = cells(report.page, heading)
        assert len(shown) == len(results), heading
        for text, result in zip(shown, results, strict=True):
            assert agrees(text, result.get(name), factor), (heading, text, result.get(name))
    curves = [it["loadCurve"] for it in status.get("sweep", []) if "loadCurve" in it]
    columns = {
        f"{unit}S/J AT ALL LEVELS": ("requestsPerJoule", 1.0),
        f"MARGINAL mJ/{unit}": ("marginalJoulesPerRequest", 1e3),
        "IDLE SHARE": ("idleShare", 1.0),
        "PROPORTIONALITY": ("proportionality", 1.0),
    }
    for heading, (name, factor) in columns.items():
        for text, curve in zip(cells(report.page, heading), curves, strict=True):
            assert agrees(text, curve.get(name), factor), (heading, text, curve.get(name))


@kinds
def test_the_percentiles_equal_the_status(kind: str, opened: Open) -> None:
    report = opened(kind)
    results = [it for it in benchmark_in(report.source)["status"]["results"] if it.get("latency")]
    for place in range(max((len(it["latency"]) for it in results), default=0)):
        known = [it["latency"][place] if place < len(it["latency"]) else None for it in results]
        percentile = next(it["percentile"] for it in known if it)
        shown = cells(report.page, f"P{percentile:g} ms")
        for text, expected in zip(shown, known, strict=True):
            if expected is None:
                assert text == "–"
                continue
            numbers = [expected[f"{it}illiseconds"] for it in ("m", "leastM", "mostM")]
            assert ends(text.replace("–", " ")) == pytest.approx(numbers, rel=6e-3)


def ends(text: str) -> list[float]:
    """Value and ends of 0.345 [0.337–0.352]."""
    return [float(it) for it in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]


@kinds
def test_each_chart_shows_the_ratios_and_budgets_of_the_status(kind: str, opened: Open) -> None:
    report = opened(kind)
    status = benchmark_in(report.source)["status"]
    for comparison, shown in zip(status.get("comparisons", []), cells(report.page, "RATIO"), strict=True):
        ratio = comparison["ratio"]
        interval = ratio.get("expanded", ratio)
        expected = [ratio["value"], interval["lower"], interval["upper"]]
        assert ends(shown) == pytest.approx(expected, rel=6e-3)
        boards = comparison.get("boards")
        decided = shown if boards is None or comparison.get("board") == "StatedAccuracy" else None
        drawn = report.page.locator("#comparisons svg").text_content()
        assert decided is None or decided in drawn
    messages = cells(report.page, "IN WORDS")[: len(status.get("budgets", []))]
    assert messages == [budget["message"] for budget in status.get("budgets", [])]
    drawn = report.page.locator("#budgets svg")
    for budget in status.get("budgets", []):
        assert budget["limit"] in drawn.text_content()


def test_a_budget_has_its_limit_and_its_result_in_the_chart(opened: Open) -> None:
    drawn = opened("fail").page.locator("#budgets svg").text_content()
    for words in ["at most 20 gross mJ/request", "✗ exceeded", "at most 10 ms/request", "≈ undecided"]:
        assert words in drawn


@pytest.mark.parametrize("kind", ["modelled", "depends-on-board"])
def test_modelled_energy_is_marked_wherever_it_is_shown(kind: str, opened: Open) -> None:
    page = opened(kind).page
    assert page.get_by_role("note").text_content().startswith("≈ Modelled, not measured")
    for chart in page.locator("figure", has_text="joules").all():
        assert "modelled" in chart.text_content().lower()
    assert "MODELLED" in page.locator("#comparisons svg").text_content()
    assert "(modelled)" in page.locator(".big").first.text_content()


def test_fake_energy_is_marked(tmp_path: Path, opened: Open) -> None:
    items = objects(KINDS["budgets"])
    items[0]["status"]["provenance"] = "Fake"
    source = tmp_path / "fake.json"
    source.write_text(json.dumps({"kind": "List", "items": items}))
    page = opened(source).page
    assert page.get_by_role("note").text_content().startswith("⚠ Fake")
    assert "FAKE" in page.locator("#figures svg").first.text_content()


def test_an_absent_figure_has_its_reason_and_is_no_zero(opened: Open) -> None:
    page = opened("shared-node").page
    withheld = benchmark_in(KINDS["shared-node"])["status"]["results"][0]["withheld"]
    text = page.locator("main").inner_text()
    for reason in withheld:
        assert reason in text
    assert set(cells(page, "GROSS mJ/REQUEST")) == {"–"}


def test_void_attempts_have_a_pattern_and_a_letter_for_their_reason(opened: Open) -> None:
    report = opened("budgets")
    void = [it for it in objects(report.source) if it.get("status", {}).get("outcome") == "Void"]
    reasons = {it["status"]["reason"] for it in void}
    chart = report.page.locator("#attempts svg")
    bars = chart.locator("[class^=f-void]")
    assert bars.count() == len(void) > 1
    patterns = {bar.evaluate("it => getComputedStyle(it).fill") for bar in bars.all()}
    assert all("url(" in pattern for pattern in patterns)
    assert len(patterns) == len(reasons) > 1
    named = report.page.locator(".reasons li").all_text_contents()
    assert {text.split()[1].rstrip(":") for text in named} == reasons
    letters = [text.split()[0] for text in named]
    drawn = chart.locator("text").all_text_contents()
    assert all(letter in [it.strip() for it in drawn] for letter in letters)


@kinds
def test_each_chart_has_a_name_a_description_and_its_numbers(kind: str, opened: Open) -> None:
    page = opened(kind).page
    charts = page.locator("figure")
    assert charts.count() >= 3
    assert page.get_by_role("img").count() == charts.count()
    seen = set()
    for chart in charts.all():
        drawing = chart.locator("svg[role=img]")
        ids = drawing.get_attribute("aria-labelledby").split()
        texts = [page.locator(f"[id='{it}']").text_content() for it in ids]
        assert all(text.strip() for text in texts)
        assert seen.isdisjoint(ids)
        seen.update(ids)
        assert chart.locator("details table tbody tr").count() > 0
    for region in page.locator(".scroll").all():
        assert region.get_attribute("aria-label")
    assert page.locator("h1").count() == 1
    for section in page.locator("section").all():
        assert page.locator(f"[id='{section.get_attribute('aria-labelledby')}']").text_content()


def test_a_keyboard_reaches_and_opens_the_numbers(opened: Open) -> None:
    page = opened("budgets").page
    table = page.locator("#budgets table")
    assert not table.is_visible()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('#budgets summary')"):
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    assert table.is_visible()


@kinds
@pytest.mark.parametrize("width", [320, 360, 768, 1100])
def test_the_page_is_as_wide_as_the_window(kind: str, width: int, opened: Open) -> None:
    page = opened(kind, viewport={"width": width, "height": 800}).page
    for details in page.locator("details").all():
        details.evaluate("it => { it.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Charts stay readable: they scroll within their box.
    charts = page.locator("figure svg[role=img]").all()
    assert charts
    for chart in charts:
        assert chart.bounding_box()["width"] >= 600


CONTRAST = """selector => {
    const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
    const luminance = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map(it => it / 255)
            .map(it => it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const back = element => {
        for (let it = element; it; it = it.parentElement) {
            const colour = parse(getComputedStyle(it).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    return [...document.querySelectorAll(selector)].map(element => {
        const style = getComputedStyle(element);
        const isDrawn = element.namespaceURI.endsWith('svg');
        const [one, other] = [parse(isDrawn ? style.fill : style.color), back(element)].map(luminance);
        const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        return [element.textContent.slice(0, 40), contrast];
    });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["budgets", "fail", "sweep", "modelled"])
def test_text_has_contrast_in_light_and_in_dark(kind: str, scheme: Any, opened: Open) -> None:
    page = opened(kind, color_scheme=scheme).page
    selector = "h1, h2, p:not(.badge), dt, dd, td, th, a, summary, li, .tag, svg text:not(.f-watermark)"
    contrasts = page.evaluate(CONTRAST, selector)
    assert len(contrasts) > 50
    low = [it for it in contrasts if it[1] < LEAST_CONTRAST]
    assert low == []
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    bright = sum(map(int, re.findall(r"\d+", paper)[:3])) / 3
    assert bright > 230 if scheme == "light" else bright < 40


def test_a_printed_report_is_black_on_white_and_not_cut(opened: Open) -> None:
    page = opened("sweep", color_scheme="dark", viewport={"width": 720, "height": 1000}).page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert sum(map(int, re.findall(r"\d+", ink))) < 200
    assert page.evaluate("document.documentElement.scrollWidth") <= 720
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("kind", ["budgets", "demo"])
def test_the_data_are_in_the_page(kind: str, opened: Open) -> None:
    report = opened(kind)
    name = benchmark_in(report.source)["metadata"]["name"]
    expected = {
        f"{name}.json": benchmark_in(report.source),
        f"{name}-ledger.csv": write(report.source, "csv"),
    }
    traces = [it for it in objects(report.source) if it["kind"] == "FrugalityTrace"]
    if traces:
        expected[f"{name}-traces.json"] = traces
    links = report.page.locator(".downloads a")
    assert links.count() == len(expected)
    for link in links.all():
        with report.page.expect_download() as download:
            link.click()
        file = download.value
        text = file.path().read_bytes().decode()
        wanted = expected[file.suggested_filename]
        if file.suggested_filename.endswith("-traces.json"):
            specs = [it["spec"] for it in json.loads(text)["items"]]
            assert specs == [it["spec"] for it in wanted]
        elif file.suggested_filename.endswith(".json"):
            assert json.loads(text) == wanted
        else:
            assert text.replace("\r\n", "\n") == wanted.replace("\r\n", "\n")
    assert report.requests == [report.page.url]


HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>'


def test_what_comes_from_the_cluster_is_text(tmp_path: Path, opened: Open) -> None:
    """Every text of the objects that is not an enum contains HTML."""
    kept = {"kind", "apiVersion", "outcome", "provenance", "verdict", "decidingFigure", "limit", "run"}
    kept |= {"creationTimestamp", "finishedAt", "lastTransitionTime", "board", "arrivals", "rate"}

    def poisoned(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            if name == "images":
                return {it + HOSTILE: digest + HOSTILE for it, digest in value.items()}
            return {key: poisoned(it, key) for key, it in value.items()}
        if isinstance(value, list):
            return [poisoned(it, name) for it in value]
        return value + HOSTILE if isinstance(value, str) and name not in kept else value

    items = objects(KINDS["budgets"])
    for item in items:
        item["status"] = poisoned(item["status"])
        spec = item["spec"]
        for place in ["point", "candidate", "benchmark"]:
            if spec.get(place):
                spec[place] += HOSTILE
        for candidate in spec.get("candidates", []):
            candidate["image"] += HOSTILE
    items[0]["metadata"]["name"] += HOSTILE
    # The enums of the status stay unchanged.
    energies = [it["status"]["energy"] for it in items[1:] if it["status"].get("energy")]
    clean = objects(KINDS["budgets"])
    originals = [it["status"]["energy"] for it in clean[1:] if it["status"].get("energy")]
    for energy, original in zip(energies, originals, strict=True):
        energy["meter"]["provenance"] = original["meter"]["provenance"]
    source = tmp_path / "hostile.json"
    source.write_text(json.dumps({"kind": "List", "items": items}))
    report = opened(source)
    assert report.notes == []
    assert report.page.locator("img, script").count() == 0
    assert report.page.locator("h1").text_content() == f"shop/two{HOSTILE}"
    assert HOSTILE in report.page.locator("#comparisons svg").text_content()
