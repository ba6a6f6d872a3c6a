"""A simulation's table as figures: errors, efficiency, coverage and width against the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stratal.report.figures import Line, Panel, draw_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """A figure of merit: its column, its name, what it is compared with, which axes are logarithmic."""

    name: str
    label: str
    logarithmic: str
    level: float | None = None
    of_intervals: bool = False


_FIGURES = (
    _Figure(name="mse", label="mean squared error", logarithmic="xy"),
    _Figure(name="mae", label="mean absolute error", logarithmic="xy"),
    _Figure(name="relative_efficiency", label="relative efficiency", logarithmic="x", level=1.0),
    _Figure(name="mvr", label="ratio of estimated variances", logarithmic="x", level=1.0),
    _Figure(name="coverage", label="coverage", logarithmic="x", of_intervals=True),
    _Figure(name="width", label="width of the interval", logarithmic="xy", of_intervals=True),
)


def write_figures(
    rows: Sequence[Mapping[str, Any]],
    directory: str | Path,
    *,
    confidence_level: float = 0.95,
    data: str = "",
) -> list[Path]:
    """Write one PNG per figure of merit, a panel per estimator (and interval), a line per design.

    Parameters
    ----------
    rows : sequence of dict
        Of `SimulationTable.to_dict`.
    directory : path
        Made if it does not exist.
    confidence_level : float
        Drawn in the panel of coverage.
    data : str
        Name of the data, written above the panels.

    Returns
    -------
    list of Path

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    """
    written = []
    bands = f"{rows[0]['replicates']:,} samples; bands: ± 2 Monte Carlo standard errors" if rows else ""
    for figure in _FIGURES:
        known = [row for row in rows if row[figure.name] is not None]
        panels: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for row in known:
            interval = row["interval"] if figure.of_intervals else ""
            panels.setdefault((row["estimator"], interval), []).append(row)
        if panels:
            level = confidence_level if figure.name == "coverage" else figure.level
            drawn = [_panel(figure, *names, kept, level) for names, kept in panels.items()]
            target = Path(directory) / f"{figure.name}.png"
            written.append(
                draw_lines(drawn, target, columns=2, heading=f"{data}: {bands}" if data else bands)
            )
    return written


def _panel(
    figure: _Figure, estimator: str, interval: str, rows: Sequence[Mapping[str, Any]], level: float | None
) -> Panel:
    return Panel(
        title=f"{estimator}, {interval}" if interval else estimator,
        x_label="labels",
        y_label=figure.label,
        lines=[_line(figure.name, design, rows) for design in dict.fromkeys(row["design"] for row in rows)],
        level=level,
        level_label="" if level is None else f"{figure.label}: {level:g}",
        logarithmic=figure.logarithmic,
    )


def _line(name: str, design: str, rows: Sequence[Mapping[str, Any]]) -> Line:
    """Return a design's line, each budget once, with a band of two Monte Carlo standard errors."""
    kept = {row["budget"]: row for row in reversed(rows) if row["design"] == design}
    points = [kept[budget] for budget in sorted(kept)]
    values = [row[name] for row in points]
    reach = [2 * (row[f"{name}_se"] or 0.0) for row in points]
    return Line(
        x=[row["budget"] for row in points],
        y=values,
        label=design,
        low=[value - error for value, error in zip(values, reach, strict=True)],
        high=[value + error for value, error in zip(values, reach, strict=True)],
    )
