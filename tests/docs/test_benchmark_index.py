"""The index of what was measured: its figures are those of the pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.gathering import MAIN, Figure, entries, index

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAGE = """# A page: of something

| way | coverage | width |
|---|---|---|
| ours | 0.93 → **0.951** | 1,200.5 |
| theirs | .8 (0.1) | – |

| way | coverage |
|---|---|
| ours | -3, twice |
"""


@pytest.mark.parametrize(
    ("figure", "found"),
    [
        (Figure("coverage"), ["0.951", ".8", "-3"]),
        (Figure("coverage", "ours"), ["0.951", "-3"]),
        (Figure("width"), ["1,200.5"]),
        (Figure("height"), []),
    ],
)
def test_numbers_of_a_column_are_found_in_every_table(figure, found):
    assert list(entries(figure, PAGE)) == found


def test_every_figure_of_the_index_stands_on_its_page():
    for name, figures in MAIN.items():
        text = (BENCHMARKS / "results" / f"{name}.md").read_text()

        assert [figure for figure in figures if not list(entries(figure, text))] == [], name


def test_a_page_shows_the_least_and_the_greatest_and_says_that_it_is_old(tmp_path, monkeypatch):
    monkeypatch.setitem(MAIN, "new", (Figure("coverage", called="covers"), Figure("width")))
    (tmp_path / "new.md").write_text(PAGE + "\nto be measured again\n")
    (tmp_path / "unknown.md").write_text("# Unknown\n")

    assert index(tmp_path).splitlines()[2:] == [
        "| [A page](results/new.md) | covers: -3 to 0.951; width: 1,200.5 (older than the present code) |",
        "| [Unknown](results/unknown.md) |  |",
    ]
