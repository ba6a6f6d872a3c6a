"""Text and lines of site and reports stand out from their ground (WCAG AA), by the style sheets' colours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REPORT = (ROOT / "src" / "stratal" / "report" / "templates" / "report.css").read_text()
SITE = (ROOT / "docs" / "assets" / "extra.css").read_text()

TEXT, GRAPHIC = 4.5, 3.0
PAGES = {"light": ("#ffffff", "#f5f5f5", "#ffffff"), "dark": ("#1e2129", "#272a35", "#ffffff")}
"""The theme's ground of a page and of code, and the text in its header."""


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def over(text, ground, opacity):
    """The colour of a text that lets the ground through."""
    pairs = zip(*([int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in (text, ground)), strict=True)
    return "#" + "".join(f"{round(opacity * a + (1 - opacity) * b):02x}" for a, b in pairs)


def variables(css):
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})\b", css))


def looks_of_the_report():
    light = variables(REPORT.split("@media")[0])
    dark = variables(re.search(r"@media \(prefers-color-scheme: dark\) \{(.*?)\n\}", REPORT, re.DOTALL)[1])
    paper = variables(re.search(r"@media print \{(.*?)\n  \}", REPORT, re.DOTALL)[1])
    return {"light": light, "dark": dark, "print": paper}


def test_the_measure_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("look", ["light", "dark", "print"])
def test_a_report_can_be_read(look):
    found = looks_of_the_report()[look]

    for text in ("ink", "quiet", "main"):
        for ground in ("paper", "wash"):
            assert contrast(found[text], found[ground]) >= TEXT, (text, ground)
    for mark in ("main", "other", "second"):
        assert contrast(found[mark], found["paper"]) >= GRAPHIC, mark


@pytest.mark.parametrize("look", ["light", "dark"])
def test_the_site_can_be_read(look):
    blocks = re.findall(r"([^{}]*)\{([^{}]*)\}", SITE)
    mine = "slate" if look == "dark" else ":root"
    found = {}
    for selector, body in blocks:
        if mine in selector or (look == "dark" and ":root" in selector and "default" not in selector):
            found |= variables(body)
    page, code, header = PAGES[look]

    assert contrast(found["md-typeset-a-color"], page) >= TEXT
    assert contrast(found["md-accent-fg-color"], page) >= TEXT
    opacity = float(re.search(r"\.md-tabs__link \{ opacity: ([.\d]+)", SITE)[1])
    band = found["md-primary-fg-color"]
    assert contrast(over(header, band, opacity), band) >= TEXT
    shown = {name: colour for name, colour in found.items() if name.startswith("md-code-hl")}
    assert shown
    for name, colour in shown.items():
        assert contrast(colour, code) >= TEXT, name
    if look == "light":
        assert contrast(found["md-default-fg-color--light"], page) >= TEXT
