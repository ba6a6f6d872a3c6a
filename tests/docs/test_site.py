"""The site: every page has a place in it, and it builds without a warning."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def build_site():
    pytest.importorskip("mkdocs")
    sys.path.insert(0, str(DOCS))
    try:
        yield importlib.import_module("build_site")
    finally:
        sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def text_of_page(build_site):
    """The text of each page by its place; some pages are generated."""
    return {place: text for place, _, text in build_site.sources()}


@pytest.fixture(scope="module")
def navigation(build_site, text_of_page):
    yaml = pytest.importorskip("yaml")
    places = sorted(text_of_page)
    return places, build_site.spread(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"], places)


def named(entry):
    """The pages that a part of the navigation names."""
    parts = entry.values() if isinstance(entry, dict) else entry
    return [entry] if isinstance(entry, str) else [page for part in parts for page in named(part)]


def test_every_page_is_in_the_navigation_once_or_is_named_beside_it(navigation):
    yaml = pytest.importorskip("yaml")
    places = navigation[0]
    pages = named(navigation[1])
    beside = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["not_in_nav"].split()
    others = [place for place in places if place not in pages]

    assert len(pages) == len(set(pages))
    assert set(pages) <= set(places)
    for place in others:
        assert any(f"/{place}".startswith(entry) for entry in beside), (
            f"name {place} in mkdocs.yml, under nav"
        )


def test_the_site_has_its_parts_in_order(navigation):
    assert [name for part in navigation[1] for name in part] == [
        "Get started",
        "Tutorials",
        "User guide",
        "API",
        "About",
    ]


def test_the_navigation_has_at_most_90000_words(text_of_page, navigation):
    prose = [
        re.sub(r"^ *```.*?^ *```$", "", text_of_page[place], flags=re.DOTALL | re.MULTILINE)
        for place in named(navigation[1])
    ]

    assert 70_000 < sum(len(text.split()) for text in prose) <= 90_000


def test_decisions_results_and_the_changelog_are_not_searched(text_of_page):
    unsearched = [place for place in text_of_page if place.startswith(("decisions/", "benchmarks/"))]

    assert len(unsearched) > 20
    for place in (*unsearched, "project/changelog.md", "project/benchmarks.md"):
        assert text_of_page[place].startswith("---\nsearch:\n  exclude: true"), place


def test_every_public_name_has_its_docstring_in_the_reference(build_site):
    import stratal

    pages = "".join(build_site.make_pages.reference_pages().values())
    for name in set(stratal.__all__) - {"__version__", *stratal._PUBLIC_MODULES}:
        assert f"heading: stratal.{name}\n" in pages, f"docs/make_pages.py has no page for {name}"


def test_links_that_leave_the_folder_find_their_page(build_site):
    places = {"benchmarks/coverage.md", "project/changelog.md", "glossary.md", "methods/means.md"}

    def moved(link, home, place):
        return build_site.LINK.sub(lambda found: build_site.moved(found, home, place, places), link)

    assert moved("[a](../../benchmarks/results/coverage.md)", "docs/methods", "methods/means.md") == (
        "[a](../benchmarks/coverage.md)"
    )
    assert moved("[a](docs/glossary.md#words)", ".", "project/changelog.md") == "[a](../glossary.md#words)"
    assert moved("[a](src/stratal/errors.py)", ".", "project/contributing.md") == "a"
    assert moved("[a](nowhere.md)", "docs/methods", "methods/means.md") == "[a](nowhere.md)"


def test_a_page_that_begins_with_a_section_gets_its_title(build_site):
    assert build_site.titled("## A & b\n\n```\n## no heading\n```\n\n### c\n") == (
        "# A & b\n\n```\n## no heading\n```\n\n## c\n"
    )
    assert build_site.titled("# A\n\n## b\n") == "# A\n\n## b\n"


def test_an_option_in_a_sentence_is_kept_whole(build_site):
    page = "<p><code>a --by-x B</code> <code>--c</code></p><pre><span></span><code>plan --by x</code></pre>"

    assert build_site.wrapped(page) == (
        "<p><code>a <span class=option>--by-x</span> B</code> <code><span class=option>--c</span></code></p>"
        "<pre><span></span><code>plan --by x</code></pre>"
    )


def test_long_code_may_break_anywhere(build_site):
    short, long = f"<td><code>{'a' * 44}</code></td>", f"<td><code>{'a' * 45}</code></td>"

    assert build_site.wrapped(short) == short
    assert build_site.wrapped(long) == long.replace("<code>", "<code class=long>")


@pytest.mark.parametrize("path", sorted(DOCS.glob("figures/*.svg")), ids=lambda path: path.stem)
def test_figures_are_drawn_by_the_script_are_small_and_described(path):
    pages = "".join(page.read_text() for page in [*DOCS.rglob("*.md"), ROOT / "README.md"])
    described = re.findall(rf"!\[([^\]]*)\]\([^)]*figures/{path.name}\)", pages)

    assert f"def {path.stem.replace('-', '_')}(path" in (DOCS / "figures.py").read_text()
    assert path.stat().st_size < 100_000
    assert described, f"no page shows {path.name}"
    assert min(map(len, described)) > 40, f"say what {path.name} shows, for those who cannot see it"


@pytest.mark.parametrize("path", sorted(DOCS.glob("methods/*.md")), ids=lambda path: path.stem)
def test_a_page_of_a_method_says_when_it_fails_and_shows_a_figure(path):
    text = path.read_text()

    assert "## Assumptions, and when it fails\n\n- **Assumed**" in text
    assert re.search(r"!\[[^\]]+\]\(\.\./figures/[^)]+\.svg\)", text), "draw one in docs/figures.py"
    assert "python docs/figures.py" in text


def test_every_result_of_a_benchmark_is_on_the_index():
    listed = re.findall(r"\(results/([^)]+)\)", (ROOT / "benchmarks" / "RESULTS.md").read_text())

    assert sorted(listed) == sorted(page.name for page in ROOT.glob("benchmarks/results/*.md")), (
        "write it: python -m benchmarks.run --gather"
    )


def test_every_figure_of_the_script_is_drawn():
    names = re.findall(r"^@figure\ndef (\w+)", (DOCS / "figures.py").read_text(), re.MULTILINE)

    assert {name.replace("_", "-") for name in names} == {path.stem for path in DOCS.glob("figures/*.svg")}


def test_kinds_of_objects_are_named_once(build_site):
    page = build_site.json_keys.page()

    assert "One object: [Planned](#planned) or [Detection](#detection) or" in page
    assert "object or object" not in page


def test_every_json_key_is_on_its_page(build_site):
    page = build_site.json_keys.page()
    keys = set()
    for path in DOCS.glob("schemas/*.json"):
        keys |= set(re.findall(r'"(\w+)": \{\n', path.read_text())) - {
            "properties",
            "items",
            "$defs",
            "additionalProperties",
        }
    written = set(re.findall(r"`(?:[\w]+\.)*(\w+)`", page)) | set(
        re.findall(r"^## (\w+)$", page, re.MULTILINE)
    )

    assert len(keys) > 100
    assert sorted(keys - written) == []


def test_every_figure_of_the_gallery_has_its_code(build_site):
    text = (DOCS / "project" / "gallery.md").read_text()
    shown = build_site.with_code(text)

    assert text.count("../figures/") >= 15
    assert shown.count('??? note "Code and data: python docs/figures.py') == text.count("../figures/")
    assert "def forty_intervals(path: Path)" in shown
