"""The sections of a report that hold several estimates: metrics, groups, quantities, models, two versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stratal.report.drawings import forest_drawing
from stratal.report.estimates import TABLES, estimates_table
from stratal.report.leaderboard import leaderboard_table, rank_text
from stratal.report.section import Findings, Section
from stratal.report.text import Table
from stratal.report.versions import new_version_page

PERCENT = ("comparisons", "domains")
"""Rows that are shares where the estimate is; the others may each be something else."""


def tables_sections(found: Findings) -> list[Section]:
    """Return a section for each table that the estimate's dict carries."""
    return [
        _models(found) if kind == "comparisons" else _table(found, kind)
        for kind in TABLES
        if found["estimate"].get(kind)
    ]


def _table(found: Findings, kind: str) -> Section:
    rows, title = found["estimate"][kind], TABLES[kind]
    marks = [(_named(row), row["estimate"], row["confidence_interval"], False) for row in rows]
    share = found["share"] and kind in PERCENT
    return Section(
        title=title,
        name=kind,
        drawings=[forest_drawing(kind, title, marks, {**found, "share": share})],
        tables=[estimates_table(title, rows, found["confidence_level"], None)],
    )


def _named(row: Mapping[str, Any]) -> str:
    """Return a row's name: what its label says, which stands before its estimate."""
    label = list(row)[: list(row).index("estimate")]
    return " · ".join(str(row[name]) for name in label if row[name])


def _models(found: Findings) -> Section:
    """Return the section of differences, with the models' ranks where there are any."""
    section = _table(found, "comparisons")
    board = found["estimate"].get("leaderboard")
    if not board:
        return section
    rows = [
        (f"{rank_text(row['rank'])} · {row['model']}", row["mean"], row["confidence_interval"], False)
        for row in board
    ]
    table = leaderboard_table(board, found["confidence_level"])
    without_bars = Table(
        title=table.title,
        header=[*table.header[:4], *table.header[5:]],
        rows=[[*row[:4], *row[5:]] for row in table.rows],
    )
    return Section(
        title="Models",
        name="models",
        lines=[
            "Models from the best, on the same labels. A rank such as 1 to 3 is the band of ranks that the "
            "simultaneous intervals of all differences leave open."
        ],
        drawings=[forest_drawing("models", "Models from the best", rows, found)],
        tables=[without_bars, *section.tables],
    )


def new_version_section(found: Findings) -> Section | None:
    """Return the section of an old and a new version on the same labels."""
    new = found.get("new_version")
    if new is None:
        return None
    page = new_version_page(new)
    rows = [
        (name, new[key]["estimate"], new[key]["confidence_interval"], key == "new")
        for name, key in (("old version", "old"), ("new version", "new"))
    ]
    return Section(
        title="The new version on the same labels",
        name="new-version",
        lines=page.lines,
        drawings=[forest_drawing("versions", "Old and new version", rows, found)],
        tables=page.tables,
        points=page.notes,
    )
