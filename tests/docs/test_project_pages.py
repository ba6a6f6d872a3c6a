"""The pages for those who carry on: the map is the house, templates exist, decisions have one form."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.architecture.house import ROOMS

ROOT = Path(__file__).parents[2]
MAP = (ROOT / "CONTRIBUTING.md").read_text()
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py"), *ROOT.glob("papers/*.py")]


def test_the_map_lists_the_rooms_in_the_order_of_imports():
    rows = re.findall(r"^\| (`[a-z`/, ]+`) \|", MAP, re.MULTILINE)
    rooms = [name.strip("`/") for row in rows for name in row.split(", ")]

    assert rooms == [name for name in ROOMS if not name.startswith("__")]


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", MAP))))
def test_every_file_that_the_map_names_exists(target):
    assert (ROOT / target).exists(), f"CONTRIBUTING.md names {target}: name the file that took its place"


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_decisions_have_one_form(path):
    text = path.read_text()

    assert re.match(rf"# {int(path.name[:4])}\. \S.*\n\n- Status: \S.*\n- Date: \d{{4}}-\d\d-\d\d\n\n", text)
    assert re.findall(r"^#+ .*$", text, re.MULTILINE)[1:] == ["## Context", "## Decision", "## Consequences"]


def test_decisions_are_numbered_without_gaps():
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_cites_a_page_that_readers_do_not_have(path):
    for words in ("peers.md", "design.md", "style.md", "house plan", "stratal reproduce "):
        assert words not in path.read_text(), f"{path} cites {words}"


def test_every_python_that_is_claimed_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    claimed = {c.split(" :: ")[-1] for c in project["classifiers"] if re.search(r"Python :: 3\.\d+$", c)}
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    jobs = re.split(r"\n(?=  [\w-]+:\n)", workflow)
    must_pass = "\n".join(job for job in jobs if "continue-on-error: true" not in job)

    assert claimed == set(re.findall(r'"(3\.\d+)"', must_pass))
    assert min(claimed, key=lambda v: int(v[2:])) == project["requires-python"].removeprefix(">=")
