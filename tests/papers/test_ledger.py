"""The ledger of the papers: what it names exists, and its verdicts are those that are stored."""

import importlib
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from papers import PAPERS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "papers"
LEDGER = (DOCS / "ledger.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in LEDGER.splitlines() if re.match(r"\| (?!where|---)", line)]
NAMED = re.findall(r"`((?:stratal|papers)\.[\w.]+)`", LEDGER)
CLAIM = re.compile(rf"`({'|'.join(PAPERS)}) ([^`]+)`: ([^;|]+)")


def resolved(name):
    """Return what a dotted name stands for, from the longest part of it that is a module."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def stored_verdicts():
    """Return how the rows of each paper's page end, by their first column."""
    found = {}
    for paper in PAPERS:
        for claim in json.loads((DOCS / "numbers" / f"{paper}.json").read_text(encoding="utf-8"))["claims"]:
            verdict = {True: "yes", False: "no", None: "open"}[claim["agrees"]]
            found.setdefault((paper, claim["where"]), Counter())[verdict] += 1
    return found


def test_every_name_and_file_in_the_ledger_exists():
    assert len(ROWS) > 120
    assert len(set(NAMED)) > 50
    for name in set(NAMED):
        assert resolved(name) is not None
    for path in set(re.findall(r"`((?:tests|benchmarks)/[\w./]+)`", LEDGER)):
        assert (ROOT / path).is_file(), path
    commands = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for option in set(re.findall(r"`(--[a-z-]+)`", LEDGER)):
        assert option in commands, option


@pytest.mark.parametrize("page", ["ledger", "practitioners"])
def test_every_page_and_heading_that_is_linked_exists(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for target in set(re.findall(r"\]\(([^)]+)\)", text)):
        file, _, heading = target.partition("#")
        found = (DOCS / file).resolve()
        assert found.is_file(), target
        titles = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), re.M) if heading else []
        slugs = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
        assert not heading or heading in slugs, target


def test_its_verdicts_are_those_that_the_pages_store_and_no_row_of_a_page_is_left_out():
    stored, told = stored_verdicts(), {}
    for paper, where, counts in CLAIM.findall(LEDGER):
        found = {word: int(count) for count, word in re.findall(r"(\d+) (yes|no|open)", counts)}
        assert found == stored[paper, where], (paper, where)
        told[paper, where] = found

    assert set(stored) == set(told)


def test_every_row_has_a_sign_and_few_wait_for_data_and_none_for_code():
    signs = [row[-1].strip() for row in ROWS]
    rest = [sign for sign in signs if sign != "✓"]

    assert all(row[3].strip() for row in ROWS)
    assert all(sign.startswith(("~ ", "✗ ")) and len(sign) > 10 for sign in rest)
    assert sum("*data*" in sign for sign in rest) <= 5
    assert all("*data*" in sign or "no code or data" in sign for sign in rest)
