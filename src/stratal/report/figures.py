"""Figures, drawn by Matplotlib from plain numbers: results that draw themselves, and panels of lines.

Nothing here knows of designs or papers; whoever calls hands in numbers and names. Files are PNG or whatever
the path's ending says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stratal.errors import InputError, MissingExtraError
from stratal.report.text import level_text

GREY = "#999999"
"""What others are compared with."""

MOST_ROWS = 60
"""Rows that a plot shows; more would not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Values with their intervals, one below the other.

    Parameters
    ----------
    title, x_label : str
    rows : sequence of (name, value or None, interval or None)
    confidence_level : float, optional
        Named in the legend.
    level : float, optional
        A vertical line to compare with, such as 0 for differences.
    bare : str
        What a value without an interval is, for the legend.

    Examples
    --------
    >>> Intervals(title="Models", x_label="accuracy", rows=[("new", 0.8, [0.7, 0.9])]).level is None
    True
    """

    title: str
    x_label: str
    rows: Sequence[tuple[str, float | None, Sequence[float | None] | None]]
    confidence_level: float | None = None
    level: float | None = None
    bare: str = "no interval"

    def draw(self, ax: Any) -> None:
        """Draw on axes."""
        rows = [row for row in self.rows if row[1] is not None][:MOST_ROWS]
        for with_interval in (True, False):
            kept = [(place, row) for place, row in enumerate(rows) if (row[2] is not None) == with_interval]
            values, places = [row[1] for _, row in kept], [place for place, _ in kept]
            if kept and with_interval:
                level = "interval" if self.confidence_level is None else level_text(self.confidence_level)
                style = {"fmt": "o", "color": COLOURS[0], "capsize": 3, "label": f"estimate with its {level}"}
                ax.errorbar(values, places, xerr=_reaches([row for _, row in kept]), **style)
            elif kept:
                ax.scatter(values, places, label=self.bare, facecolors="none", edgecolors="#444444")
        if self.level is not None:
            ax.axvline(self.level, color="black", linewidth=0.8, linestyle=":", label=f"{self.level:g}")
        _name_rows(ax, [row[0] for row in rows], self.title, self.x_label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Groups of horizontal bars, one group for each name.

    Parameters
    ----------
    title, x_label : str
    rows : sequence of (name, value, ...)
    series : sequence of str
        What the values are.

    Examples
    --------
    >>> Bars(title="Strata", x_label="share", rows=[("low", 1.0)], series=["units"]).rows[0]
    ('low', 1.0)
    """

    title: str
    x_label: str
    rows: Sequence[tuple[Any, ...]]
    series: Sequence[str]

    def draw(self, ax: Any) -> None:
        """Draw on axes."""
        names, *columns = zip(*self.rows[:MOST_ROWS], strict=True)
        width = 0.8 / len(columns)
        for number, (label, values) in enumerate(zip(self.series, columns, strict=True)):
            places = [place + (number - (len(columns) - 1) / 2) * width for place in range(len(names))]
            hatch = ("", "///", "...")[number % 3]
            style = {"color": (GREY, *COLOURS)[number % 3], "hatch": hatch, "edgecolor": "white"}
            ax.barh(places, values, height=width, label=label, **style)
        _name_rows(ax, names, self.title, self.x_label)


class Plotted:
    """Base of results that draw themselves.

    Examples
    --------
    >>> class Answer(Plotted):
    ...     def _plot(self):
    ...         return Intervals(title="Answer", x_label="value", rows=[("new", 42.0, None)])
    >>> Answer().plot().get_title()
    'Answer'
    """

    __slots__ = ()

    def _plot(self) -> Intervals | Bars:
        """Return what is to be drawn."""
        raise NotImplementedError

    def plot(self, ax: Any = None) -> Any:
        """Draw with Matplotlib, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones, wide enough to print, unless given. `ax.figure.savefig(path)` keeps them.

        Raises
        ------
        MissingExtraError
            If Matplotlib is not installed.
        InputError
            If `ax` is no axes.
        """
        made = self._plot()
        if ax is None:
            height = 1.2 + 0.3 * min(len(made.rows), MOST_ROWS)
            ax = grid_of_axes(1, 1, width=7.0, height=height)[1][0]
        elif not hasattr(ax, "errorbar"):
            raise InputError(
                "ax must be Matplotlib's axes",
                given=f"a {type(ax).__name__}",
                allowed="what plt.subplots() returns second",
                action="Leave ax out for a new figure.",
            )
        made.draw(ax)
        return ax


def _reaches(rows: Sequence[Any]) -> list[list[float]]:
    """Return how far intervals reach below and above their values; an open end not at all."""
    return [
        [max(value - (value if low is None else low), 0.0) for _, value, (low, _) in rows],
        [max((value if high is None else high) - value, 0.0) for _, value, (_, high) in rows],
    ]


def _name_rows(ax: Any, names: Sequence[str], title: str, x_label: str) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    name_axes(ax, title, x_label, size=9, grid="x")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)


COLOURS = tuple(
    "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #444444 #999933 #8c4f2b #7f7fff".split()  # noqa: SIM905
)
"""Okabe and Ito's palette, distinguished by most colour-blind readers."""

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
        name_axes(ax, panel.title, panel.x_label, panel.y_label)
        if panel.level is not None:
            named = panel.level_label or "_nolegend_"
            ax.axhline(panel.level, color="black", linewidth=0.8, linestyle=":", label=named)
        for which in panel.logarithmic:
            logarithmic_scale(ax, which)
        if panel.limits is not None:
            ax.set_ylim(*panel.limits)
    return save_figure(figure, axes, path)


def grid_of_axes(
    panels: int, columns: int, *, width: float = 3.6, height: float = 3.0
) -> tuple[Any, list[Any]]:
    """Return a new figure and its axes, each so many inches wide and high, wide enough together to print.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", extra="plot") from None
    columns = min(columns, max(panels, 1))
    rows = max(math.ceil(panels / columns), 1)
    dots = max(130, math.ceil(LEAST_PIXELS / (width * columns)))
    figure = Figure(figsize=(width * columns, height * rows + 0.4), dpi=dots, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in axes[panels:]:
        ax.set_axis_off()
    return figure, axes


def name_axes(
    ax: Any, title: str, x_label: str, y_label: str = "", *, size: int = 8, grid: str = "both"
) -> None:
    """Write what axes show, in letters of a size, with a light grid."""
    ax.set_title(title, fontsize=size + 1)
    ax.set_xlabel(x_label, fontsize=size)
    ax.set_ylabel(y_label, fontsize=size)
    ax.tick_params(labelsize=size - 1)
    ax.grid(axis=grid, alpha=0.25, linewidth=0.5)
    ax.spines[["top", "right"]].set_visible(False)


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


def logarithmic_scale(ax: Any, which: str = "y") -> None:
    """Make an axis logarithmic, with plain numbers."""
    from matplotlib.ticker import LogLocator

    ax.set(**{f"{which}scale": "log"})
    axis = getattr(ax, f"{which}axis")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:.10g}")
    axis.set_minor_formatter("")


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


_MERITS: dict[str, tuple[str, str, float | None]] = {
    "mse": ("mean squared error", "xy", None),
    "mae": ("mean absolute error", "xy", None),
    "relative_efficiency": ("relative efficiency", "x", 1.0),
    "mvr": ("ratio of estimated variances", "x", 1.0),
    "coverage": ("coverage", "x", None),
    "width": ("width of the interval", "xy", None),
}
"""Column of a simulation → its name, which axes are logarithmic, what it is compared with."""


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
    for merit, (label, logarithmic, level) in _MERITS.items():
        level = confidence_level if merit == "coverage" else level
        kinds: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            of_intervals = merit in ("coverage", "width")
            names = [row["estimator"], row["interval"] if of_intervals else None]
            if row[merit] is not None:
                kinds.setdefault(", ".join(filter(None, names)), []).append(row)
        panels = [
            Panel(
                title=title, x_label="labels", y_label=label, level=level, logarithmic=logarithmic,
                lines=[_line(merit, design, kept) for design in dict.fromkeys(row["design"] for row in kept)],
                level_label="" if level is None else f"{label}: {level:g}",
            )
            for title, kept in kinds.items()
        ]  # fmt: skip
        if panels:
            heading = f"{data}: {bands}" if data else bands
            written.append(draw_lines(panels, Path(directory) / f"{merit}.png", columns=2, heading=heading))
    return written


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
