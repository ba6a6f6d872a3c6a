"""A simulation's table as figures: errors, efficiency, coverage and width against the budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stratal.report.figures import Line, Panel, draw_lines

if TYPE_CHECKING:
    from stratal.simulation.table import SimulationTable

_FIGURES = (
    ("mse", "mean squared error", None, "xy"),
    ("mae", "mean absolute error", None, "xy"),
    ("relative_efficiency", "relative efficiency", 1.0, "x"),
    ("mvr", "ratio of estimated variances", 1.0, "x"),
    ("coverage", "coverage", None, "x"),
    ("width", "width of the interval", None, "xy"),
)


def write_figures(
    table: SimulationTable, directory: str | Path, *, confidence_level: float = 0.95
) -> list[Path]:
    """Write one PNG per figure of merit, a panel per estimator, a line per design.

    Parameters
    ----------
    table : SimulationTable
    directory : path
        Made if it does not exist.
    confidence_level : float
        Drawn in the panel of coverage.

    Returns
    -------
    list of Path

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    """
    written = []
    estimators = list(dict.fromkeys(table["estimator"].tolist()))
    for name, label, level, logarithmic in _FIGURES:
        if np.all(np.isnan(table[name])):
            continue
        level = confidence_level if name == "coverage" else level
        panels = [_panel(table, name, label, level, logarithmic, estimator) for estimator in estimators]
        written.append(draw_lines(panels, Path(directory) / f"{name}.png", columns=2))
    return written


def _panel(
    table: SimulationTable, name: str, label: str, level: float | None, logarithmic: str, estimator: str
) -> Panel:
    kept = table.where(estimator=estimator)
    interval = kept["interval"][0]
    lines = []
    for design in dict.fromkeys(kept["design"].tolist()):
        x, y = kept.series(name, design=design, interval=interval)
        _, error = kept.series(f"{name}_se", design=design, interval=interval)
        lines.append(
            Line(
                x=x.tolist(),
                y=y.tolist(),
                label=design,
                low=(y - 2 * error).tolist(),
                high=(y + 2 * error).tolist(),
            )
        )
    return Panel(
        title=estimator, x_label="labels", y_label=label, lines=lines, level=level, logarithmic=logarithmic
    )
