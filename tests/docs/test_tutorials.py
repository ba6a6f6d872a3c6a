"""Tutorials and the first estimate print what they say, and are notebooks."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def load(name):
    """A module of the documentation, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run_pages = load("run_pages")
PAGES = run_pages.run_pages(DOCS)
LONG = ("models", "history", "trust-a-judge")
"""Pages that take seconds to print what nearly the same commands print on the others."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.stem in LONG else []) for page in PAGES],
    ids=lambda page: page.stem,
)
def test_a_page_prints_what_it_says(page, tmp_path):
    text = page.read_text()

    remedy = f"run: python docs/run_pages.py {page.relative_to(DOCS.parent)}"
    assert run_pages.rerun(text, tmp_path) == text, remedy


def test_a_changed_number_is_seen(tmp_path):
    command = "stratal plan --population-size 1000 --rate 0.9 --budget 100"
    page = f"```console\n$ {command}\n…\nNo such line\n…\n```\n"

    assert "No such line" not in run_pages.rerun(page, tmp_path)
    assert run_pages.rerun("```python\nprint(2 + 2)\n```\n\n```text\n5\n```\n", tmp_path) == (
        "```python\nprint(2 + 2)\n```\n\n```text\n4\n```\n"
    )


def test_lines_left_out_stay_left_out(tmp_path):
    page = "```python\nprint('one', 'two', 'three', sep=chr(10))\n```\n\n```text\none\n…\nthree\n```\n"

    assert run_pages.rerun(page, tmp_path) == page


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "index"], ids=lambda page: page.stem)
def test_a_page_is_a_notebook(page):
    nbformat = pytest.importorskip("nbformat")

    text, notebooks = page.read_text(), load("notebooks")
    made = nbformat.reads(notebooks.notebook(text), as_version=4)
    code = [cell.source for cell in made.cells if cell.cell_type == "code"]
    assert sum(cell.startswith("!stratal ") for cell in code) == text.count("\n$ stratal ")
    assert [cell for cell in code if not cell.startswith("!")] == [
        block.rstrip() for kind, block in notebooks.BLOCK.findall(text) if kind == "python"
    ]


def test_every_tutorial_is_on_the_list():
    listed = (DOCS / "tutorials" / "index.md").read_text()
    pages = {page.name for page in DOCS.glob("tutorials/*.md")} - {"index.md"}

    assert {name for name in pages if f"({name})" not in listed} == set()
