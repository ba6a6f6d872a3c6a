"""Panels of lines, drawn by Matplotlib from plain numbers: figures of the papers and the documentation.

Files are PNG or whatever the path's ending says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stratal.report.figures import COLOURS, grid_of_axes, label_axes, logarithmic_scale

MARKERS = "osD^vPX*<>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a panel.

    Parameters
    ----------
    x, y : sequence of float
    label : str
    low, high : sequence of float, optional
        A band around it.
    style : dict
        Keywords of Matplotlib's `plot`, in place of the usual colour, marker and line.
    names : sequence of str
        One for each point, written next to it.

    Examples
    --------
    >>> Line(x=[1, 2], y=[3, 4], label="HT", style={"linestyle": "--"}).names
    ()
    """

    x: Sequence[float]
    y: Sequence[float]
    label: str
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    style: dict[str, Any] = field(default_factory=dict)
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One set of axes.

    Parameters
    ----------
    title, x_label, y_label : str
    lines : sequence of Line
    level : float, optional
        A horizontal line to compare with.
    level_label : str
        What it is, for the legend.
    logarithmic : str
        "x", "y", "xy" or "".
    limits : (float, float), optional
        Of the vertical axis.

    Examples
    --------
    >>> Panel(title="galaxies", x_label="n", y_label="MSE", lines=[]).level is None
    True
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    level: float | None = None
    level_label: str = ""
    logarithmic: str = ""
    limits: tuple[float, float] | None = None


def draw_lines(panels: Sequence[Panel], path: str | Path, *, columns: int = 3, heading: str = "") -> Path:
    """Draw panels of lines, a heading above and one legend below them all, and return the file's path.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    """
    figure, axes = grid_of_axes(len(panels), columns)
    if heading:
        figure.suptitle(heading, fontsize=8)
    numbers: dict[str, int] = {}
    for panel, ax in zip(panels, axes, strict=False):
        for line in panel.lines:
            style = line.style
            if "color" not in style:
                style = line_style(numbers.setdefault(line.label, len(numbers))) | style
            ax.plot(line.x, line.y, label=line.label or "_nolegend_", **style)
            if line.low is not None and line.high is not None:
                ax.fill_between(line.x, line.low, line.high, color=style["color"], alpha=0.15, linewidth=0)
            for x, y, name in zip(line.x, line.y, line.names, strict=False):
                ax.annotate(name, (x, y), xytext=(3, 3), textcoords="offset points", fontsize=5.5)
        label_axes(ax, panel.title, panel.x_label, panel.y_label)
        if panel.level is not None:
            named = panel.level_label or "_nolegend_"
            ax.axhline(panel.level, color="black", linewidth=0.8, linestyle=":", label=named)
        for which in panel.logarithmic:
            logarithmic_scale(ax, which)
        if panel.limits is not None:
            ax.set_ylim(*panel.limits)
    return save_figure(figure, axes, path)


def line_style(number: int) -> dict[str, Any]:
    """Return the colour and marker of a number; from 10 on the colours come again, dashed.

    Examples
    --------
    >>> line_style(0)["color"], line_style(10)["linestyle"]
    ('#0072b2', '--')
    """
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    dashes = "-" if number < len(COLOURS) else "--"
    return {"color": colour, "marker": marker, "linestyle": dashes, "markersize": 3.5, "linewidth": 1.4}


def save_figure(figure: Any, axes: Sequence[Any], path: str | Path) -> Path:
    """Write the figure, with one legend for what is labelled in `axes`."""
    seen: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        for label, handle in zip(labels, handles, strict=True):
            seen.setdefault(label, handle)
    if seen:
        inches = 0.5 + 0.06 * max(map(len, seen))
        columns = max(1, min(len(seen), 4, int(figure.get_figwidth() / inches)))
        place = {"loc": "outside lower center", "ncols": columns, "fontsize": 7, "frameon": False}
        figure.legend(list(seen.values()), list(seen), **place)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target)
    return target
