"""The sections of a report that hold several estimates: metrics, groups, quantities, models, two versions."""

from __future__ import annotations

from stratal.report.drawings import forest_drawing
from stratal.report.estimates import TARGETS, estimates_table
from stratal.report.leaderboard import leaderboard_table, rank_text
from stratal.report.section import Findings, Section
from stratal.report.text import Table
from stratal.report.versions import new_version_page


def _targets(found: Findings, kind: str, title: str, naming: tuple[str, ...]) -> Section | None:
    estimate = found["estimate"]
    if not estimate.get(kind):
        return None
    rows = estimate[kind]
    drawn = [
        (
            " · ".join(str(row[name]) for name in naming if row.get(name)),
            row["estimate"],
            row["confidence_interval"],
        )
        for row in rows
    ]
    drawing = forest_drawing(kind, title, [(*row, False) for row in drawn], found)
    named = "Differences" if kind == TARGETS[1] else title
    table = estimates_table(named, rows, found["confidence_level"], None)
    return Section(title=title, name=kind, drawings=[drawing], tables=[table])


def metrics_section(found: Findings) -> Section | None:
    """Return the section of metrics, which are no shares: some go from −1 to 1."""
    return _targets({**found, "share": False}, TARGETS[0], "Metrics", ("metric", "class"))


def slices_section(found: Findings) -> Section | None:
    """Return the section of groups of units."""
    return _targets(found, TARGETS[2], "Groups", ("domain",))


def estimands_section(found: Findings) -> Section | None:
    """Return the section of several quantities: some are shares, some are not."""
    kind = "outcomes" if "outcomes" in found["estimate"] else "estimands"
    return _targets({**found, "share": False}, kind, "Quantities", (kind[:-1],))


def models_section(found: Findings) -> Section | None:
    """Return the section of compared models, with their ranks where there are any."""
    section = _targets(found, TARGETS[1], "Models", ("a", "b"))
    board = found["estimate"].get("leaderboard")
    if section is None or not board:
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
