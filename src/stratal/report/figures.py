"""Matplotlib figures of results and of simulations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stratal.errors import optional_import
from stratal.protocols import Foreign, JsonDict, JsonMapping
from stratal.report.text import level_text

# Colour of reference values.
GREY = "#999999"

# Largest number of rows of a plot; more rows are not legible.
MAX_ROWS = 60

# Height of a group of bars, as a share of the distance between groups.
_GROUP_HEIGHT = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Plot of values with intervals, one row per value.

    Parameters
    ----------
    title, x_label : str
    rows : sequence of (name, value or None, interval or None)
    confidence_level : float, optional
        For the legend.
    reference : float, optional
        Position of a vertical line, such as 0 for differences.
    no_interval_label : str
        Text of the legend for values without an interval.
    """

    title: str
    x_label: str
    rows: Sequence[tuple[str, float | None, Sequence[float | None] | None]]
    confidence_level: float | None = None
    reference: float | None = None
    no_interval_label: str = "no interval"

    def draw(self, ax: Foreign) -> None:
        """Draw on Matplotlib axes."""
        # Rows without a value are left out.
        rows = [row for row in self.rows if row[1] is not None][:MAX_ROWS]
        with_interval = [(position, row) for position, row in enumerate(rows) if row[2] is not None]
        without_interval = [(position, row) for position, row in enumerate(rows) if row[2] is None]
        if with_interval:
            interval_name = "interval"
            if self.confidence_level is not None:
                interval_name = level_text(self.confidence_level)
            ax.errorbar(
                [value for _, (_, value, _) in with_interval],
                [position for position, _ in with_interval],
                xerr=_error_bars([row for _, row in with_interval]),
                fmt="o",
                color=COLOURS[0],
                capsize=3,
                label=f"estimate with its {interval_name}",
            )
        if without_interval:
            ax.scatter(
                [value for _, (_, value, _) in without_interval],
                [position for position, _ in without_interval],
                label=self.no_interval_label,
                facecolors="none",
                edgecolors="#444444",
            )
        if self.reference is not None:
            label = f"{self.reference:g}"
            ax.axvline(self.reference, color="black", linewidth=0.8, linestyle=":", label=label)
        _label_rows(ax, [row[0] for row in rows], self.title, self.x_label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Plot of groups of horizontal bars, one group per row.

    Parameters
    ----------
    title, x_label : str
    rows : sequence of (name, value, ...)
    series : sequence of str
        Names of the values.
    """

    title: str
    x_label: str
    rows: Sequence[tuple[Foreign, ...]]
    series: Sequence[str]

    def draw(self, ax: Foreign) -> None:
        """Draw on Matplotlib axes."""
        names, *columns = zip(*self.rows[:MAX_ROWS], strict=True)
        height = _GROUP_HEIGHT / len(columns)
        for index, (label, values) in enumerate(zip(self.series, columns, strict=True)):
            # The bars of a row are centred at its position.
            offset = (index - (len(columns) - 1) / 2) * height
            ax.barh(
                [position + offset for position in range(len(names))],
                values,
                height=height,
                label=label,
                color=(GREY, *COLOURS)[index % 3],
                # Patterns distinguish the series without colour.
                hatch=("", "///", "...")[index % 3],
                edgecolor="white",
            )
        _label_rows(ax, names, self.title, self.x_label)


class PlotDisplay:
    """Base of results with a plot."""

    __slots__ = ()

    def _plot(self) -> Intervals | Bars:
        """Return the plot of the result."""
        raise NotImplementedError

    def plot(self, ax: object = None) -> Foreign:
        """Draw with Matplotlib, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: new axes of a printable width. `ax.figure.savefig(path)` saves the figure.

        Raises
        ------
        MissingExtraError
            If Matplotlib is not installed.
        """
        plot = self._plot()
        if ax is None:
            # Inches: title, axis and legend, and the rows.
            height = 1.2 + 0.3 * min(len(plot.rows), MAX_ROWS)
            ax = grid_of_axes(1, 1, width=7.0, height=height)[1][0]
        plot.draw(ax)
        return ax


def _error_bars(rows: Sequence[Foreign]) -> list[list[float]]:
    """Return the lengths of the intervals below and above their values, 0 for an infinite limit."""
    below = []
    above = []
    for _, value, (low, high) in rows:
        below.append(0.0 if low is None else max(value - low, 0.0))
        above.append(0.0 if high is None else max(high - value, 0.0))
    return [below, above]


def _label_rows(ax: Foreign, names: Sequence[str], title: str, x_label: str) -> None:
    """Write the names of the rows, from top to bottom, the title and the legend."""
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    label_axes(ax, title, x_label, size=9, grid="x")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)


# Okabe and Ito's palette, which most colour-blind readers can distinguish.
COLOURS = tuple(
    "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #444444 #999933 #8c4f2b #7f7fff".split()  # noqa: SIM905
)

# Smallest width of a figure that can be printed, in pixels.
MIN_PIXELS = 1200

# Smallest resolution of a figure, in pixels per inch.
_MIN_RESOLUTION = 130


def grid_of_axes(
    panels: int, columns: int, *, width: float = 3.6, height: float = 3.0
) -> tuple[Foreign, list[Foreign]]:
    """Return a new figure of a printable width and its axes; `width` and `height` of each are in inches.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    """
    with optional_import("matplotlib", extra="plot"):
        from matplotlib.figure import Figure
    columns = min(columns, max(panels, 1))
    rows = max(math.ceil(panels / columns), 1)
    resolution = max(_MIN_RESOLUTION, math.ceil(MIN_PIXELS / (width * columns)))
    size = (width * columns, height * rows + 0.4)
    figure = Figure(figsize=size, dpi=resolution, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in axes[panels:]:
        ax.set_axis_off()
    return figure, axes


def label_axes(
    ax: Foreign, title: str, x_label: str, y_label: str = "", *, size: int = 8, grid: str = "both"
) -> None:
    """Write the title and the labels of axes in a font size, and draw a light grid."""
    ax.set_title(title, fontsize=size + 1)
    ax.set_xlabel(x_label, fontsize=size)
    ax.set_ylabel(y_label, fontsize=size)
    ax.tick_params(labelsize=size - 1)
    ax.grid(axis=grid, alpha=0.25, linewidth=0.5)
    ax.spines[["top", "right"]].set_visible(False)


# Label and reference value of each plotted column of a simulation. Without a reference value, the scale is
# logarithmic; that of the coverage is the confidence level.
_MERITS: dict[str, tuple[str, float | None]] = {
    "mse": ("mean squared error", None),
    "mae": ("mean absolute error", None),
    "relative_efficiency": ("relative efficiency", 1.0),
    "mvr": ("ratio of estimated variances", 1.0),
    "coverage": ("coverage", None),
    "width": ("width of the interval", None),
}


def write_figures(
    rows: Sequence[Mapping[str, object]],
    directory: str | Path,
    *,
    confidence_level: float = 0.95,
    data: str = "",
) -> list[Path]:
    """Write one PNG file per figure of merit, with panels by estimator and interval and lines by design.

    Parameters
    ----------
    rows : sequence of dict
        Rows of `SimulationTable.to_dict`.
    directory : path
        It is created if it does not exist.
    confidence_level : float
        Reference value of the coverage.
    data : str
        Name of the data, for the title.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    """
    paths = []
    title = ""
    if rows:
        title = f"{rows[0]['replicates']:,} samples; bands: ± 2 Monte Carlo standard errors"
    if data:
        title = f"{data}: {title}"
    Path(directory).mkdir(parents=True, exist_ok=True)
    for merit, (label, reference) in _MERITS.items():
        if merit == "coverage":
            reference = confidence_level
        panels = _rows_by_panel(rows, merit)
        if panels:
            figure = _merit_figure(panels, merit, label, reference)
            figure.suptitle(title, fontsize=8)
            paths.append(Path(directory) / f"{merit}.png")
            figure.savefig(paths[-1])
    return paths


def _rows_by_panel(rows: Sequence[JsonMapping], merit: str) -> dict[str, list[JsonMapping]]:
    """Return the rows with a value of the figure of merit by the title of their panel."""
    panels: dict[str, list[JsonMapping]] = {}
    for row in rows:
        title = row["estimator"]
        if merit in ("coverage", "width") and row["interval"]:
            title = f"{title}, {row['interval']}"
        if row[merit] is not None:
            panels.setdefault(title, []).append(row)
    return panels


def _merit_figure(
    panels: Mapping[str, Sequence[Mapping[str, object]]], merit: str, label: str, reference: float | None
) -> Foreign:
    """Return the Matplotlib figure of one figure of merit: rows by panel, with a common legend."""
    figure, axes = grid_of_axes(len(panels), 2)
    handles: JsonDict = {}
    for (title, rows), ax in zip(panels.items(), axes, strict=False):
        _draw_designs(ax, merit, rows)
        if reference is None:
            logarithmic_scale(ax)
        else:
            ax.axhline(
                reference, label=f"{label}: {reference:g}", color="black", linewidth=0.8, linestyle=":"
            )
        label_axes(ax, title, "labels", label)
        ax_handles, ax_labels = ax.get_legend_handles_labels()
        handles |= dict(zip(ax_labels, ax_handles, strict=True))
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=2,
        fontsize=7,
        frameon=False,
    )
    return figure


def logarithmic_scale(ax: Foreign, which: str = "y") -> None:
    """Make an axis logarithmic with decimal numbers at its ticks.

    Within one decade every digit has a tick, up to four decades 1, 2 and 5, beyond only the powers of ten.
    """
    # Matplotlib is an optional package.
    from matplotlib.ticker import LogLocator

    ax.set(**{f"{which}scale": "log"})
    if which == "y":
        low, high = ax.get_ylim()
        axis = ax.yaxis
    else:
        low, high = ax.get_xlim()
        axis = ax.xaxis
    ratio = high / low
    digits: tuple[int, ...]
    # Fewer labels on an axis over more powers of ten.
    if ratio > 1e4:
        digits = (1,)
    elif ratio > 10:
        digits = (1, 2, 5)
    else:
        digits = tuple(range(1, 10))
    axis.set_major_locator(LogLocator(subs=digits))
    # Long decimal numbers would overlap.
    axis.set_major_formatter("{x:.0e}" if ratio > 1e4 and high > 1e6 else "{x:.10g}")
    axis.set_minor_formatter("")


def _draw_designs(ax: Foreign, merit: str, rows: Sequence[JsonMapping]) -> None:
    """Draw one line per design over the budgets, with a band of two Monte Carlo standard errors."""
    for index, design in enumerate(dict.fromkeys(row["design"] for row in rows)):
        # Rows of different intervals have the same value: the first row of a budget is drawn.
        row_by_budget = {row["budget"]: row for row in reversed(rows) if row["design"] == design}
        budgets = sorted(row_by_budget)
        values = [row_by_budget[budget][merit] for budget in budgets]
        errors = [2 * (row_by_budget[budget][f"{merit}_se"] or 0.0) for budget in budgets]
        colour = COLOURS[index % len(COLOURS)]
        # Dashes distinguish designs that share a colour.
        line_style = "-" if index < len(COLOURS) else "--"
        ax.plot(budgets, values, label=design, color=colour, linestyle=line_style, marker="o", markersize=3.5)
        low = [value - error for value, error in zip(values, errors, strict=True)]
        high = [value + error for value, error in zip(values, errors, strict=True)]
        ax.fill_between(budgets, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.set_xscale("log")
        ax.set_xticks(budgets, budgets, minor=False)
        ax.minorticks_off()
