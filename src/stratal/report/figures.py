"""Figures: a few plain shapes (lines, violins, points, bars), drawn by Matplotlib from plain numbers.

Nothing here knows of designs or papers; whoever calls hands in numbers and names. Files are PNG or whatever
the path's ending says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import MissingExtraError

COLOURS = tuple(
    "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #444444 #999933 #8c4f2b #7f7fff".split()  # noqa: SIM905
)
"""Okabe and Ito's palette, told apart by most colour-blind readers."""

MARKERS = "osD^vPX*<>"

LEAST_PIXELS = 1200
"""Width of a figure, so that it can be printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a panel.

    Parameters
    ----------
    x, y : sequence of float
    label : str
    low, high : sequence of float, optional
        A band around it.
    dashed : bool
    points : bool
        Markers only, no line between them.
    plain : bool
        A thin grey line without markers, to compare with; in the legend if it has a label.
    style : int, optional
        Number of its colour and marker, the same for a method in every figure; by order if left out. From 10
        on the colours come again, dashed.
    names : sequence of str
        One for each point, written beside it.
    marks : bool
        Black crosses: numbers that somebody else printed.

    Examples
    --------
    >>> Line(x=[1, 2], y=[3, 4], label="HT").dashed
    False
    """

    x: Sequence[float]
    y: Sequence[float]
    label: str
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dashed: bool = False
    points: bool = False
    plain: bool = False
    style: int | None = None
    names: Sequence[str] = ()
    marks: bool = False


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
    figure, axes = _figure(len(panels), columns)
    if heading:
        figure.suptitle(heading, fontsize=8)
    styles: dict[str, int] = {}
    for panel, ax in zip(panels, axes, strict=False):
        for line in panel.lines:
            if line.plain:
                shown = line.label or "_nolegend_"
                ax.plot(line.x, line.y, label=shown, color="#999999", linewidth=0.8, linestyle="--", zorder=0)
            elif line.marks:
                ax.plot(line.x, line.y, "x", label=line.label, color="black", markersize=6, zorder=5)
            else:
                own = styles.setdefault(line.label, len(styles))
                _draw_line(ax, line, own if line.style is None else line.style)
            for x, y, name in zip(line.x, line.y, line.names, strict=False):
                ax.annotate(name, (x, y), xytext=(3, 3), textcoords="offset points", fontsize=5.5)
        _finish(ax, panel.title, panel.x_label, panel.y_label)
        if panel.level is not None:
            named = panel.level_label or "_nolegend_"
            ax.axhline(panel.level, color="black", linewidth=0.8, linestyle=":", label=named)
        _scales(ax, panel)
        if panel.limits is not None:
            ax.set_ylim(*panel.limits)
    return _save(figure, axes, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violins:
    """What violins show besides their values.

    Parameters
    ----------
    level : float, optional
        A dashed line.
    errors : mapping of panel to mapping of name to errors, optional
        Error bars of the values' shape.
    ranges : mapping of name to (low, high), optional
        Intervals that somebody else printed, drawn as brackets beside the violins.
    styles : mapping of name to int, optional
        Numbers of colours.
    """

    level: float | None = None
    columns: int = 2
    logarithmic: bool = False
    errors: Mapping[str, Mapping[str, Sequence[float]]] | None = None
    ranges: Mapping[str, tuple[float, float]] | None = None
    styles: Mapping[str, int] | None = None


def draw_violins(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    path: str | Path,
    *,
    y_label: str,
    how: Violins = Violins(),
) -> Path:
    """Draw violins with their points, {panel: {name: values}}."""
    figure, axes = _figure(len(panels), how.columns, width=4.6)
    rng = np.random.default_rng(0)
    for (title, groups), ax in zip(panels.items(), axes, strict=False):
        for place, (name, group) in enumerate(groups.items(), start=1):
            values = np.asarray(group, dtype=np.float64)
            bars = None if how.errors is None else np.asarray(how.errors[title][name], dtype=np.float64)
            if how.logarithmic:
                bars = None if bars is None else bars[values > 0]
                values = values[values > 0]
            number = place - 1 if how.styles is None else how.styles.get(name, place - 1)
            colour = COLOURS[number % len(COLOURS)]
            if len(values) > 1 and np.ptp(values) > 0:
                _draw_violin(ax, place, values, colour)
            places = place + rng.uniform(-0.1, 0.1, len(values))
            ax.errorbar(places, values, bars, fmt=".", color=colour, markersize=5, elinewidth=0.6)
            if how.ranges is not None and name in how.ranges:
                ax.plot([place + 0.42] * 2, how.ranges[name], color="black", marker="_", linewidth=0.8)
        ax.set_xticks(range(1, len(groups) + 1), list(groups), rotation=35, ha="right", fontsize=7)
        _finish(ax, title, "", y_label)
        if how.logarithmic:
            _logarithmic(ax)
        if how.level is not None:
            ax.axhline(how.level, color="#b00000", linewidth=1.0, linestyle="--")
    return _save(figure, (), path)


def draw_bars(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    path: str | Path,
    *,
    x_label: str,
    y_label: str,
    columns: int = 3,
) -> Path:
    """Draw groups of bars, one group per position: {panel: {series: values}}."""
    figure, axes = _figure(len(panels), columns)
    for (title, series), ax in zip(panels.items(), axes, strict=False):
        width = 0.8 / max(len(series), 1)
        for number, (name, values) in enumerate(series.items()):
            places = np.arange(1, len(values) + 1) + (number - (len(series) - 1) / 2) * width
            ax.bar(places, values, width=width, label=name, color=COLOURS[number % len(COLOURS)])
        _finish(ax, title, x_label, y_label)
    return _save(figure, axes, path)


def new_axes(height: float, *, width: float = 7.0) -> Any:
    """Return the axes of a new figure, so many inches high and wide enough to print.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", extra="plot") from None
    dots = max(130, math.ceil(LEAST_PIXELS / width))
    return Figure(figsize=(width, height), dpi=dots, layout="constrained").subplots()


def _figure(panels: int, columns: int, *, width: float = 3.6) -> tuple[Any, list[Any]]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", extra="plot") from None
    columns = min(columns, max(panels, 1))
    rows = max(math.ceil(panels / columns), 1)
    inches = width * columns
    dots = max(130, math.ceil(LEAST_PIXELS / inches))
    figure = Figure(figsize=(inches, 3.0 * rows + 0.4), dpi=dots, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in axes[panels:]:
        ax.set_axis_off()
    return figure, axes


def _finish(ax: Any, title: str, x_label: str, y_label: str) -> None:
    ax.set_title(title, fontsize=9)
    ax.set_xlabel(x_label, fontsize=8)
    ax.set_ylabel(y_label, fontsize=8)
    ax.tick_params(labelsize=7)
    ax.grid(alpha=0.25, linewidth=0.5)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_line(ax: Any, line: Line, number: int) -> None:
    colour, second = COLOURS[number % len(COLOURS)], number >= len(COLOURS)
    ax.plot(
        line.x,
        line.y,
        label=line.label,
        color=colour,
        marker=MARKERS[number % len(MARKERS)],
        markersize=4.5 if line.points else 3.5,
        linestyle="none" if line.points else "--" if line.dashed or second else "-",
        linewidth=1.4,
        alpha=0.8 if line.points else 1.0,
    )
    if line.low is not None and line.high is not None:
        ax.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, linewidth=0)


def _draw_violin(ax: Any, place: int, values: FloatArray, colour: str) -> None:
    parts = ax.violinplot([values], positions=[place], showmedians=True, widths=0.8)
    parts["bodies"][0].set(facecolor=colour, alpha=0.35)
    for name in ("cmedians", "cbars", "cmins", "cmaxes"):
        parts[name].set(color="#444444", linewidth=0.8)


def _scales(ax: Any, panel: Panel) -> None:
    places = sorted({float(x) for line in panel.lines for x in line.x})
    if "x" in panel.logarithmic:
        ax.set_xscale("log")
        ax.set_xticks(list(_sparse(places)))
        ax.set_xticks([], minor=True)
        ax.xaxis.set_major_formatter("{x:.10g}")
    elif all(x.is_integer() for x in places):
        ax.xaxis.get_major_locator().set_params(integer=True)
    if "y" in panel.logarithmic:
        _logarithmic(ax)


def _logarithmic(ax: Any) -> None:
    """Make the vertical axis logarithmic, with plain numbers."""
    from matplotlib.ticker import LogLocator

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")


def _sparse(ticks: Sequence[float], ratio: float = 1.45) -> Iterator[float]:
    """Yield ticks far enough apart that their labels do not touch."""
    last = 0.0
    for tick in ticks:
        if tick >= last * ratio:
            yield tick
            last = tick


def _save(figure: Any, axes: Sequence[Any], path: str | Path) -> Path:
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
