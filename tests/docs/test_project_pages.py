"""Pages for contributors: the table of subpackages is complete, templates exist, decisions have one form."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.architecture.structure import LAYERS

ROOT = Path(__file__).parents[2]
CONTRIBUTING_TEXT = (ROOT / "CONTRIBUTING.md").read_text()
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py"), *ROOT.glob("papers/*.py")]

PARTS = ["## Context", "## Decision", "## Consequences", "## Rejected alternatives"]
MAX_DECISIONS = 20  # records in force; a record that continues another is merged into it

UNPUBLISHED = ("peers.md", "design.md", "style.md", "stratal reproduce ")


def test_the_table_lists_the_subpackages_in_the_order_of_imports():
    section = CONTRIBUTING_TEXT.split("\n## ")[1]
    rows = re.findall(r"^\| (`[a-z_`/, ]+`) \|", section, re.MULTILINE)
    subpackages = [name.strip("`/") for row in rows for name in row.split(", ")]

    assert subpackages == [name for name in LAYERS if not name.startswith("__")]


def test_every_file_that_the_page_names_exists():
    named = sorted(set(re.findall(r"\]\(([^)#]+)\)", CONTRIBUTING_TEXT)))
    lost = [target for target in named if not (ROOT / target).exists()]

    assert lost == [], "CONTRIBUTING.md: name the files that took their place"


def test_decisions_have_one_form():
    for path in DECISIONS:
        text, number = path.read_text(), int(path.name[:4])
        head = rf"# {number}\. \S.*\n\n- Status: \S.*\n- Date: \d{{4}}-\d\d-\d\d\n\n"
        headings = re.findall(r"^#+ .*$", text, re.MULTILINE)[1:]

        assert re.match(head, text), path.name
        assert headings == PARTS, path.name


def test_decisions_are_numbered_without_gaps():
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    assert len(DECISIONS) <= MAX_DECISIONS


def test_nothing_cites_a_page_that_readers_do_not_have():
    pattern = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, UNPUBLISHED)) + ")")
    pages = {path: path.read_text().replace("add-a-design.md", "") for path in PAGES}
    cited = {str(path.relative_to(ROOT)): pattern.findall(text) for path, text in pages.items()}

    assert {path: words for path, words in cited.items() if words} == {}


def test_no_placeholder_stands_for_an_address_that_does_not_exist():
    pages = [ROOT / "pyproject.toml", *ROOT.glob("*.md"), *ROOT.glob("*.cff")]

    assert [path.name for path in pages if "example.org" in path.read_text()] == []


def test_every_python_that_is_claimed_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    claimed = {c.split(" :: ")[-1] for c in project["classifiers"] if re.search(r"Python :: 3\.\d+$", c)}
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    jobs = re.split(r"\n(?=  [\w-]+:\n)", workflow)
    must_pass = "\n".join(job for job in jobs if "continue-on-error: true" not in job)

    assert claimed == set(re.findall(r'"(3\.\d+)"', must_pass))
    assert min(claimed, key=lambda v: int(v[2:])) == project["requires-python"].removeprefix(">=")
