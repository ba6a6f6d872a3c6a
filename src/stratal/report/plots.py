"""Results that draw themselves with Matplotlib: intervals below each other, and bars of strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stratal.errors import InputError
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
        from stratal.report.figures import COLOURS

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
        from stratal.report.figures import COLOURS

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
        from stratal.report.figures import new_axes

        made = self._plot()
        if ax is None:
            ax = new_axes(made.height)
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
    ax.set_title(title, fontsize=10)
    ax.set_xlabel(x_label, fontsize=9)
    ax.tick_params(labelsize=8)
    ax.grid(axis="x", alpha=0.25, linewidth=0.5)
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
