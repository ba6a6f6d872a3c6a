"""The report in a real browser: light, dark, print, phone; accessible, silent, and inert."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.browser import browser_open
from tests.tiers import cells, sized

import stratal

pytest.importorskip("playwright")


SHOTS = os.environ.get("STRATAL_SCREENSHOTS")
"""A folder: every page that these tests make is saved there, to be looked at."""

LOOKS = {
    "light": {"viewport": {"width": 1100, "height": 800}},
    "dark": {"viewport": {"width": 1100, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 320, "height": 640}},
}
EVIL = (
    "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script><svg onload='window.hacked=1'>"
    "</svg><a href='javascript:window.hacked=1'>x</a><style>*{display:none}</style>"
)


@pytest.fixture(scope="module")
def browser():
    with browser_open() as opened:
        yield opened


def report_of(name, shared, folder, **options):
    """Write a report of a file of the shared data."""
    table = pq.read_table(shared / "data" / f"{name}.parquet").to_pydict()
    if name == "gsm8k_models":
        return of_several_models(table, folder)
    groups = {"group": list(map(str, table["group"]))} if "group" in table else {}
    proxy = np.asarray(table["proxy"], float)
    population = stratal.Population.from_arrays(proxy=proxy, ids=table["id"], groups=groups)
    sample = stratal.plan(population, 250).draw(seed=7)
    truth = dict(zip(map(str, table["id"]), map(float, table["z"]), strict=True))
    labels = {unit: truth[unit] for unit in sample.ids.tolist()}
    tables = [stratal.estimate(sample, labels, by=name) for name in groups]
    return stratal.findings(sample, labels, tables=tables, **options).write(folder / f"{name}.html")


def of_several_models(table, folder):
    outcomes, proxies = {}, {}
    for item, model, z, proxy in zip(*(table[c] for c in ("item", "group", "z", "proxy")), strict=True):
        outcomes.setdefault(model, {})[item] = float(z)
        proxies.setdefault(item, []).append(float(proxy))
    population = stratal.Population.from_arrays(
        ids=list(proxies), proxy=[float(np.mean(values)) for values in proxies.values()]
    )
    sample = stratal.plan(population, 200).draw(seed=7)
    drawn = {model: {i: z[i] for i in sample.ids.tolist()} for model, z in outcomes.items()}
    compared = stratal.compare(sample, drawn)
    first = next(iter(drawn.values()))
    return stratal.findings(sample, first, tables=[compared]).write(folder / "gsm8k_models.html")


def opened(browser, path, look, page_options=None):
    page = browser.new_context(**LOOKS[look], **(page_options or {})).new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"report-{path.stem}-{look}.png"), full_page=True)
    return page, asked


def violations(page):
    from axe_playwright_python.sync_playwright import Axe

    return [entry["id"] for entry in Axe().run(page).response["violations"]]


REAL = ("cifar10_vgg", "frank_factuality", "pandalm_pairwise", "gsm8k_models")


@pytest.mark.parametrize("name", cells(REAL, fast=("frank_factuality",)))
def test_reports_of_real_data(browser, shared, tmp_path, name):
    path = report_of(name, shared, tmp_path, question="How good is it?")

    assert path.stat().st_size < 1_000_000
    for look in sized(["dark"], list(LOOKS)):
        page, asked = opened(browser, path, look)
        assert asked == [path.as_uri()]
        width = page.viewport_size["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []
        page.context.close()


def test_print_is_dark_on_white_whatever_the_screen_was(browser, shared, tmp_path):
    path = report_of("forest", shared, tmp_path)
    page, _ = opened(browser, path, "dark")
    page.emulate_media(media="print")

    colours = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert colours == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
    assert len(page.pdf()) > 10_000


PAGES = re.compile(rb"/Type\s*/Page\b(?!s)")


def test_a_simple_case_prints_on_two_pages_and_headings_stay_with_their_pictures(browser, tmp_path):
    population = stratal.Population.from_arrays(proxy=np.linspace(0.3, 1, 1500))
    sample = stratal.plan(population, 100).draw(seed=7)
    labels = (np.random.default_rng(7).random(100) < sample.proxies[:, 0]).astype(float)
    path = stratal.findings(sample, labels, quantity="accuracy").write(tmp_path / "simple.html")
    page, _ = opened(browser, path, "light")

    assert len(PAGES.findall(page.pdf(prefer_css_page_size=True))) == 2
    page.emulate_media(media="print")
    kept = """() => [...document.querySelectorAll("section:has(figure)")].map(section => {
      const heading = getComputedStyle(section.querySelector("h2"))
      const figure = getComputedStyle(section.querySelector("figure"))
      return [heading.breakAfter, figure.breakBefore, figure.breakInside]
    })"""
    found = page.evaluate(kept)
    assert found
    assert {tuple(part) for part in found} == {("avoid", "avoid", "avoid")}


def test_script_in_every_field_stays_text(browser, tmp_path):
    size = 60
    texts = [EVIL] * size
    population = stratal.Population.from_arrays(
        proxy={EVIL: np.linspace(0.1, 0.9, size)},
        ids=[f"{EVIL}{k}" for k in range(size)],
        groups={EVIL + "group": [f"{EVIL}{k % 2}" for k in range(size)]},
        show={EVIL + "text": texts},
    )
    strata = stratal.strata.stratify(population, method="category", by=EVIL + "group")
    design = stratal.designs.Stratified(
        strata=strata, allocation=stratal.strata.allocate(strata, 30, method="equal")
    )
    sample = design.draw(population, seed=7)
    labels = {unit: float(k % 3 > 0) for k, unit in enumerate(sample.ids.tolist())}
    found = stratal.findings(
        sample,
        labels,
        tables=[
            stratal.estimate(sample, labels, by=EVIL + "group"),
            stratal.compare(sample, {EVIL: labels, EVIL + "2": labels}),
        ],
        title=EVIL,
        question=EVIL,
        quantity=EVIL,
        notes=[EVIL],
        commands=[EVIL],
        examples=5,
    )
    page, asked = opened(browser, found.write(tmp_path / "evil.html"), "light", {"bypass_csp": True})
    page.wait_for_timeout(200)

    assert page.evaluate("window.hacked") is None
    assert len(asked) == 1
    assert page.locator("img, script, a, iframe").count() == 0
    assert page.locator("body").is_visible()
    assert page.locator("h1").inner_text().startswith("<img src=x")


def test_what_is_drawn_is_what_the_twin_says(browser, shared, tmp_path):
    table = pq.read_table(shared / "data" / "forest.parquet").to_pydict()
    population = stratal.Population.from_arrays(proxy=np.asarray(table["proxy"], float), ids=table["id"])
    sample = stratal.plan(population, 250).draw(seed=7)
    truth = dict(zip(map(str, table["id"]), map(float, table["z"]), strict=True))
    found = stratal.findings(sample, {unit: truth[unit] for unit in sample.ids.tolist()})
    page, _ = opened(browser, found.write(tmp_path / "forest.html"), "light")

    strata = found.to_dict()["strata"]
    rows = page.locator("#strata table tbody tr")
    assert rows.count() == len(strata)
    for place, row in enumerate(strata):
        shown = rows.nth(place).locator("td").all_text_contents()
        assert shown == [
            f"{place + 1}. {row['name']}",
            *(f"{row[name]:,}" for name in ("size", "drawn", "n")),
            *(f"{100 * row[name]:.1f}%" for name in ("proxy_mean", "mean")),
            f"{100 * row['standard_deviation']:.1f} points",
        ]
    assert page.locator("svg[role=img] title").count() == page.locator("svg").count() >= 3


def test_the_colours_are_told_apart_by_the_colour_blind():
    """Lightness alone tells the reported mark from the others, in each palette."""
    style = (Path(stratal.__file__).parent / "report" / "templates" / "report.css").read_text()
    palettes = [
        dict(pair.split(": ") for pair in block.replace("\n", " ").split("; ") if "--" in pair)
        for block in _blocks(style)
    ]
    assert len(palettes) == 3
    for palette in palettes:
        paper = _luminance(palette["--paper"])
        for name in ("--ink", "--quiet", "--main", "--other"):
            light, dark = sorted([paper, _luminance(palette[name])], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, palette)


def _blocks(style):
    found = re.findall(r"--paper:.*?(?=\})", style, re.DOTALL)
    return [re.sub(r";\s*$", "", re.sub(r";\s+", "; ", block.strip())) for block in found]


def _luminance(colour):
    parts = [int(colour.strip()[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
