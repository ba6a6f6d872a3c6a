"""The site as readers get it: built strictly in a folder of its own, links followed, searched offline."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.browser import browser_open
from tests.docs.test_site import build_site
from tests.tiers import SLOW, cells, sized

pytest.importorskip("mkdocs")
pytest.importorskip("playwright")

ROOT = Path(__file__).parents[2]
__all__ = ["build_site"]


class Page(HTMLParser):
    """What a page links to, what it loads, and the names of its places."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") != "canonical":
            self.loads.append(given["href"])
        elif tag in ("script", "img", "iframe") and "src" in given:
            self.loads.append(given["src"])


def broken(site: Path) -> list[str]:
    """The links within a site that lead nowhere, and what it loads from elsewhere."""
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    found = []
    for path, page in pages.items():
        shown = path.relative_to(site)
        found += [f"{shown} loads {load}" for load in page.loads if load.startswith(("http", "//"))]
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            goal = goal / "index.html" if goal.is_dir() else goal
            there = goal in pages and (
                parts.fragment in ("", *pages[goal].places) or unquote(parts.fragment) in pages[goal].places
            )
            if not (there or (goal.exists() and goal not in pages)):
                found.append(f"{shown} links to {link}")
    return sorted(set(found))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "docs" / "build_site.py"), str(folder)]
    paths = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def browser():
    with browser_open() as opened:
        yield opened


def test_every_link_and_anchor_leads_somewhere_and_nothing_is_loaded_from_the_net(site):
    assert len(list(site.rglob("*.html"))) > 80
    assert broken(site) == []


def test_a_broken_link_is_seen(tmp_path):
    (tmp_path / "index.html").write_text(
        '<h1 id="top">A</h1><a href="#top">x</a><a href="b.html#no">x</a><a href="c.html">x</a>'
        '<a href="https://example.org">x</a><script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<a href="index.html#top">x</a>')

    assert broken(tmp_path) == [
        "index.html links to b.html#no",
        "index.html links to c.html",
        "index.html loads https://example.org/x.js",
    ]


@pytest.mark.parametrize("link", ["nowhere.md", "index.md#nowhere"])
def test_a_broken_link_ends_the_build(build_site, tmp_path, link):
    yaml = pytest.importorskip("yaml")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# A\n\n[x]({link})\n")
    rules = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["validation"]
    settings = {"site_name": "A", "validation": rules, "plugins": [], "theme": {"name": "mkdocs"}}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    command = build_site.builder(tmp_path / "mkdocs.yml")
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert link in done.stderr


def test_every_tutorial_has_its_notebook(site):
    names = {path.stem for path in ROOT.glob("docs/tutorials/*.md")} - {"index"}

    assert len(names) >= 10
    for name in names:
        made = json.loads((site / "tutorials" / f"{name}.ipynb").read_text())
        assert any(cell["cell_type"] == "code" for cell in made["cells"])
        assert f'href="{name}.ipynb"' in (site / "tutorials" / f"{name}.html").read_text()


def test_the_search_needs_no_server_and_has_every_how_to(site):
    index = (site / "search" / "search_index.js").read_text()
    entries = json.loads(index.removeprefix("var __index = "))["docs"]
    pages = {entry["location"].split("#")[0] for entry in entries}

    assert {f"how-to/{path.stem}.html" for path in ROOT.glob("docs/how-to/*.md")} <= pages


@pytest.mark.slow
def test_search_finds_a_page_without_a_server(site, browser):
    window = browser.new_context(offline=True).new_page()
    window.goto(f"file://{site}/index.html")
    window.click("input[name=query]")
    window.keyboard.type("spreadsheet ate ids")
    window.wait_for_selector(".md-search-result__item", timeout=20_000)

    found = window.locator(".md-search-result__link").evaluate_all("links => links.map(link => link.href)")
    assert any("how-to/" in link for link in found)


FIRST_PAGES = {
    "install": ["start/install"],
    "confidence interval": ["how-to/intervals"],
    "p-value": ["methods/comparisons", "methods/intervals"],
    "judge": ["tutorials/trust-a-judge", "methods/judges", "tutorials/judge-and-two-annotators"],
    "F1": ["tutorials/rare-class", "methods/metrics"],
    "threshold": ["methods/thresholds"],
    "recall": ["methods/metrics", "start/where-to-go", "tutorials/rare-class"],
    "AUC": ["methods/metrics", "start/where-to-go"],
    "strata": ["methods/strata"],
    "allocation": ["methods/allocation"],
    "budget": ["how-to/index", "methods/plans"],
    "half-width": ["methods/adaptive", "methods/plans"],
    "proxies": ["methods/proxies"],
    "annotators": ["methods/annotators"],
    "agreement": ["methods/annotators", "tutorials/judge-and-two-annotators"],
    "kappa": ["methods/judges", "methods/estimands"],
    "Label Studio": ["guide/tools"],
    "Inspect": ["guide/tools"],
    "MLflow": ["guide/platforms", "guide/tools"],
    "GitHub Action": ["guide/machines"],
    "compare models": ["tutorials/models", "methods/comparisons"],
    "new version": ["guide/report", "how-to/index"],
    "drift": ["methods/trends"],
    "regression": ["methods/regression"],
    "clusters": ["methods/designs", "methods/elsewhere"],
    "weights": ["methods/elsewhere", "methods/means"],
    "JSON": ["guide/machines"],
    "notebook": ["guide/labelling", "tutorials/index"],
    "DuckDB": ["how-to/engines", "guide/data"],
    "nonresponse": ["methods/elsewhere", "methods/means"],
    "report": ["guide/report"],
}
"""What a user searches for → the pages that may come first."""


@pytest.mark.parametrize("query", cells(FIRST_PAGES, fast=("install", "confidence interval", "threshold")))
def test_search_finds_the_right_page_first(site, browser, query):
    window = browser.new_context(offline=True).new_page()
    window.goto(f"file://{site}/index.html")
    window.click("input[name=query]")
    window.keyboard.type(query)
    window.wait_for_selector(".md-search-result__item", timeout=20_000)
    window.wait_for_timeout(
        1_000
    )  # the results of the first letters are replaced by those of the whole query

    first = window.locator(".md-search-result__link").first.get_attribute("href")
    place = first.split("?")[0].split("#")[0].removeprefix(f"file://{site}/").removesuffix(".html")
    assert place in FIRST_PAGES[query]


class SiteInAFolder(http.server.SimpleHTTPRequestHandler):
    """Serves a site at /docs/, and its page 404.html for what does not exist."""

    site: Path

    def translate_path(self, path):
        name = unquote(urlsplit(path).path).removeprefix("/docs/")
        target = self.site / (name or "index.html")
        return str(target if target.is_file() else self.site / "404.html")

    def log_message(self, *_):
        """Nothing is logged."""

    def do_HEAD(self):
        if self.translate_path(self.path).endswith("404.html"):
            self.send_error(404)
        else:
            super().do_HEAD()


def test_the_page_of_a_wrong_address_searches_the_site(site, browser):
    SiteInAFolder.site = site
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), SiteInAFolder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        window = browser.new_page()
        window.goto(f"http://127.0.0.1:{server.server_port}/docs/old/place/page.html")
        assert "Page not found" in window.inner_text("h1")
        window.fill("input[name=q]", "install")
        window.keyboard.press("Enter")
        window.wait_for_selector(".md-search-result__item", timeout=20_000)

        assert "/docs/start/install.html" in window.locator(".md-search-result__link").first.get_attribute(
            "href"
        )
        server.shutdown()


COPIED = """code => {
  code.setAttribute("data-md-copying", "")  // as the theme's button does
  return code.innerText.trimEnd()
}"""


def test_what_is_copied_from_a_console_is_what_was_typed(site, browser):
    window = browser.new_page()
    window.goto(f"file://{site}/tutorials/classifier.html")
    copied = window.locator(".language-console code").first.evaluate(COPIED)

    assert [line.split()[:2] for line in copied.splitlines() if line] == [
        ["stratal", "demo"],
        ["stratal", "doctor"],
    ]


WIDER = """() => {
  const wide = document.documentElement.clientWidth
  const scrolls = element => element && element !== document.body
    && (getComputedStyle(element).overflowX !== "visible" || scrolls(element.parentElement))
  return [...document.querySelectorAll("article *")]
    .filter(e => e.getBoundingClientRect().right > wide + 1 && e.getBoundingClientRect().width)
    .filter(e => !scrolls(e.parentElement))
    .map(e => e.tagName + " " + e.textContent.slice(0, 40))
}"""


def test_nothing_is_cut_off_on_a_phone_and_no_script_fails(site, browser):
    window = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    mistakes: list[str] = []
    window.on("pageerror", lambda error: mistakes.append(f"{window.url}: {error}"))
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    widest = ("commands", "methods/means", "reference/json")  # long words, formulas, tables
    for path in pages if SLOW else [site / f"{page}.html" for page in widest]:
        window.goto(f"file://{path}", wait_until="load")
        shown = path.relative_to(site)
        wider = window.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        mistakes += [f"{shown} is {wider} pixels too wide"] if wider > 0 else []
        mistakes += [f"{shown}: {what}" for what in window.evaluate(WIDER)]

    assert mistakes == []


def test_every_page_has_one_title_and_a_description_of_its_figures(site):
    for path in site.rglob("*.html"):
        text = path.read_text()
        if path.name != "404.html":
            assert len(re.findall(r"<h1[ >]", text)) == 1, path
        for label in re.findall(r'<svg role="img" aria-label="([^"]*)"', text):
            assert len(label) > 40, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_links_can_be_seen_by_everybody(site, browser, scheme):
    pytest.importorskip("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    rules = ["color-contrast", "link-in-text-block", "image-alt", "svg-img-alt", "aria-dialog-name", "region"]
    window = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme).new_page()
    pages = ["methods/means", "404", "index", "start/first-estimate", "guide/labelling", "project/gallery"]
    mistakes = []
    for page in pages[: sized(2, None)]:
        window.goto(f"file://{site}/{page}.html")
        window.wait_for_timeout(300)  # the theme fades its tabs in
        found = Axe().run(window, options={"runOnly": rules}).response["violations"]
        mistakes += [(page, part["id"], part["nodes"][0]["target"]) for part in found]

    assert mistakes == []
