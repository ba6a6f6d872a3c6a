"""Figures, drawn by Matplotlib from plain numbers: of results that draw themselves, and of simulations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stratal.errors import installed
from stratal.report.text import level_text

# What others are compared with.
GREY = "#999999"

# Rows that a plot shows; more would not be read.
MOST_ROWS = 60


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
            values = [row[1] for _, row in kept]
            places = [place for place, _ in kept]
            if kept and with_interval:
                if self.confidence_level is None:
                    level = "interval"
                else:
                    level = level_text(self.confidence_level)
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
        """
        made = self._plot()
        if ax is None:
            height = 1.2 + 0.3 * min(len(made.rows), MOST_ROWS)
            ax = grid_of_axes(1, 1, width=7.0, height=height)[1][0]
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


# Okabe and Ito's palette, distinguished by most colour-blind readers.
COLOURS = tuple(
    "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #444444 #999933 #8c4f2b #7f7fff".split()  # noqa: SIM905
)

# Width of a figure, so that it can be printed.
LEAST_PIXELS = 1200


def grid_of_axes(
    panels: int, columns: int, *, width: float = 3.6, height: float = 3.0
) -> tuple[Any, list[Any]]:
    """Return a new figure and its axes, each so many inches wide and high, wide enough together to print.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    """
    with installed("matplotlib", extra="plot"):
        from matplotlib.figure import Figure
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


# Column of a simulation → its name, what it is compared with; the others' scale is logarithmic.
_MERITS: dict[str, tuple[str, float | None]] = {
    "mse": ("mean squared error", None),
    "mae": ("mean absolute error", None),
    "relative_efficiency": ("relative efficiency", 1.0),
    "mvr": ("ratio of estimated variances", 1.0),
    "coverage": ("coverage", None),
    "width": ("width of the interval", None),
}


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
    if rows:
        bands = f"{rows[0]['replicates']:,} samples; bands: ± 2 Monte Carlo standard errors"
    else:
        bands = ""
    Path(directory).mkdir(parents=True, exist_ok=True)
    for merit, (label, level) in _MERITS.items():
        level = confidence_level if merit == "coverage" else level
        kinds: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            names = [row["estimator"], row["interval"] if merit in ("coverage", "width") else None]
            if row[merit] is not None:
                kinds.setdefault(", ".join(filter(None, names)), []).append(row)
        if not kinds:
            continue
        figure, axes = grid_of_axes(len(kinds), 2)
        figure.suptitle(f"{data}: {bands}" if data else bands, fontsize=8)
        seen: dict[str, Any] = {}
        for (title, kept), ax in zip(kinds.items(), axes, strict=False):
            _draw_designs(ax, merit, kept)
            if level is None:
                logarithmic_scale(ax)
            else:
                style = {"color": "black", "linewidth": 0.8, "linestyle": ":"}
                ax.axhline(level, label=f"{label}: {level:g}", **style)
            name_axes(ax, title, "labels", label)
            seen |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        place = {"loc": "outside lower center", "ncols": 2, "fontsize": 7, "frameon": False}
        figure.legend(list(seen.values()), list(seen), **place)
        written.append(Path(directory) / f"{merit}.png")
        figure.savefig(written[-1])
    return written


def logarithmic_scale(ax: Any, which: str = "y") -> None:
    """Make an axis logarithmic, with plain numbers: at 1, 2 and 5, within one decade at each digit.

    Over more than four decades there is room for powers of ten alone.
    """
    from matplotlib.ticker import LogLocator

    ax.set(**{f"{which}scale": "log"})
    low, high = getattr(ax, f"get_{which}lim")()
    axis = getattr(ax, f"{which}axis")
    decades = high / low
    digits = (1,) if decades > 1e4 else (1, 2, 5) if decades > 10 else tuple(range(1, 10))
    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter("{x:.0e}" if decades > 1e4 and high > 1e6 else "{x:.10g}")
    axis.set_minor_formatter("")


def _draw_designs(ax: Any, merit: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw each design's line, each budget once, with a band of two Monte Carlo standard errors."""
    for number, design in enumerate(dict.fromkeys(row["design"] for row in rows)):
        kept = {row["budget"]: row for row in reversed(rows) if row["design"] == design}
        budgets = sorted(kept)
        values = [kept[budget][merit] for budget in budgets]
        reach = [2 * (kept[budget][f"{merit}_se"] or 0.0) for budget in budgets]
        colour = COLOURS[number % len(COLOURS)]
        dashes = "-" if number < len(COLOURS) else "--"
        ax.plot(budgets, values, label=design, color=colour, linestyle=dashes, marker="o", markersize=3.5)
        low, high = ([value + side * r for value, r in zip(values, reach, strict=True)] for side in (-1, 1))
        ax.fill_between(budgets, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.set_xscale("log")
        ax.set_xticks(budgets, budgets, minor=False)
        ax.minorticks_off()
