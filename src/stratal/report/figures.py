"""Figures, drawn by Matplotlib from plain numbers: results that draw themselves, and panels of lines.

Nothing here knows of designs or papers; whoever calls hands in numbers and names. Files are PNG or whatever
the path's ending says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
        known = [(place, row) for place, row in enumerate(rows) if row[2] is not None]
        others = [(place, row) for place, row in enumerate(rows) if row[2] is None]
        if known:
            name = level_text(self.confidence_level) if self.confidence_level is not None else "interval"
            ax.errorbar(
                [row[1] for _, row in known],
                [place for place, _ in known],
                xerr=_reaches([row for _, row in known]),
                fmt="o",
                color=COLOURS[0],
                capsize=3,
                label=f"estimate with its {name}",
            )
        if others:
            style = {"marker": "o", "facecolors": "none", "edgecolors": "#444444"}
            values = [row[1] for _, row in others]
            ax.scatter(values, [place for place, _ in others], label=self.bare, **style)
        if self.level is not None:
            ax.axvline(self.level, color="black", linewidth=0.8, linestyle=":", label=f"{self.level:g}")
        ax.set_yticks(range(len(rows)), [row[0] for row in rows])
        ax.invert_yaxis()
        _name(ax, self.title, self.x_label)

    @property
    def height(self) -> float:
        """Inches."""
        return 1.6 + 0.28 * min(len(self.rows), MOST_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Groups of horizontal bars, one group for each name.

    Parameters
    ----------
    title, x_label : str
    names : sequence of str
    series : mapping of name to sequence of float

    Examples
    --------
    >>> round(Bars(title="Strata", x_label="share", names=["low"], series={"units": [1.0]}).height, 2)
    1.94
    """

    title: str
    x_label: str
    names: Sequence[str]
    series: Mapping[str, Sequence[float]]

    def draw(self, ax: Any) -> None:
        """Draw on axes."""
        names = list(self.names)[:MOST_ROWS]
        width = 0.8 / max(len(self.series), 1)
        for number, (label, values) in enumerate(self.series.items()):
            places = [place + (number - (len(self.series) - 1) / 2) * width for place in range(len(names))]
            hatch = ("", "///", "...")[number % 3]
            style = {"color": (GREY, *COLOURS)[number % 3], "hatch": hatch, "edgecolor": "white"}
            ax.barh(places, list(values)[:MOST_ROWS], height=width, label=label, **style)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        _name(ax, self.title, self.x_label)

    @property
    def height(self) -> float:
        """Inches."""
        return 1.6 + 0.34 * min(len(self.names), MOST_ROWS)


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
            ax = grid_of_axes(1, 1, width=7.0, height=made.height - 0.4)[1][0]
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


def _name(ax: Any, title: str, x_label: str) -> None:
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
    dashed : bool
    kind : {"line", "points", "plain", "printed"}
        `points` are markers without a line, `plain` is a thin grey line without markers, to compare with,
        `printed` are black crosses: numbers that somebody else printed.
    style : int, optional
        Number of its colour and marker, the same for a method in every figure; by order if left out. From 10
        on the colours come again, dashed.
    names : sequence of str
        One for each point, written next to it.

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
    kind: str = "line"
    style: int | None = None
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
    styles: dict[str, int] = {}
    for panel, ax in zip(panels, axes, strict=False):
        for line in panel.lines:
            own = styles.setdefault(line.label, len(styles)) if line.kind in ("line", "points") else 0
            _draw_line(ax, line, own if line.style is None else line.style)
            for x, y, name in zip(line.x, line.y, line.names, strict=False):
                ax.annotate(name, (x, y), xytext=(3, 3), textcoords="offset points", fontsize=5.5)
        name_axes(ax, panel.title, panel.x_label, panel.y_label)
        if panel.level is not None:
            named = panel.level_label or "_nolegend_"
            ax.axhline(panel.level, color="black", linewidth=0.8, linestyle=":", label=named)
        _scales(ax, panel)
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


def _draw_line(ax: Any, line: Line, number: int) -> None:
    colour, second = COLOURS[number % len(COLOURS)], number >= len(COLOURS)
    dashed = line.dashed or second
    kinds: dict[str, dict[str, Any]] = {
        "line": {},
        "points": {"linestyle": "none", "markersize": 4.5, "alpha": 0.8},
        "plain": {"color": GREY, "marker": "", "linewidth": 0.8, "linestyle": "--", "zorder": 0},
        "printed": {"color": "black", "marker": "x", "markersize": 6, "linestyle": "none", "zorder": 5},
    }
    usual = {
        "color": colour, "marker": MARKERS[number % len(MARKERS)], "markersize": 3.5, "linewidth": 1.4,
        "linestyle": "--" if dashed else "-",
    }  # fmt: skip
    ax.plot(line.x, line.y, label=line.label or "_nolegend_", **usual | kinds[line.kind])
    if line.low is not None and line.high is not None:
        ax.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, linewidth=0)


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
        logarithmic_scale(ax)


def logarithmic_scale(ax: Any) -> None:
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
            title = (
                f"{row['estimator']}, {row['interval']}"
                if of_intervals and row["interval"]
                else row["estimator"]
            )
            if row[merit] is not None:
                kinds.setdefault(title, []).append(row)
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
