"""One colour and marker for each method, the same in every figure of every paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from papers.panels import Line, Panel, line_style
from stratal.report.figures import GREY

_SAME = (
    ("classical", "random", "SRS, HT", "SRS HT", "own confidence", "none, neyman"),
    ("PPI++", "SRS, DF", "features", "none, robust"),
    (
        "proportional",
        "SSRS proportional, HT",
        "StratPPI proportional",
        "stratified",
        "proportional, normal interval",
        "features and confidence",
        "one curve, robust",
        "KM",
    ),
    (
        "Neyman",
        "SSRS Neyman, HT",
        "Neyman, normal interval",
        "StratPPI heuristic",
        "StratPPI optimal",
        "Neyman, true S_h",
        "one curve, neyman",
        "EQSZ",
    ),
    ("stratal's default", "a curve for each, robust", "GMM"),
    ("StratPPI, λ shrunk", "λ_h shrunk", "SQRT", "A1, 5 first"),
    ("StratPPI, W_h estimated", "λ_h as fitted", "CBRT", "A1, 10 first"),
    ("WTMN", "A1, 20 first"),
    ("EQWD",),
    ("stratal's second round", "a curve for each, neyman"),
)
"""Names of one method in the three papers; a method's place is its colour."""

_SECOND = {
    "A2, 5 first, step 20": 11,
    "A2, 10 first, step 20": 13,
    "A2, 5 first, step 10": 15,
    "A2, 10 first, step 10": 16,
}

STYLES = {name: number for number, names in enumerate(_SAME) for name in names} | _SECOND


POINTS = {"linestyle": "none", "markersize": 4.5, "alpha": 0.8}
"""Markers without a line."""

PLAIN = {"color": GREY, "marker": "", "linewidth": 0.8, "linestyle": "--", "zorder": 0}
"""A thin grey line to compare with."""

PRINTED = {"color": "black", "marker": "x", "markersize": 6, "linestyle": "none", "zorder": 5}
"""Black crosses: numbers that the authors printed."""


def line(
    label: str,
    x: Sequence[float],
    y: Sequence[float],
    error: Sequence[float] | None = None,
) -> Line:
    """Return a line in its method's colour, with a band of two Monte Carlo standard errors either side.

    Examples
    --------
    >>> line("PPI++", [1.0], [2.0], [0.25]).low
    [1.5]
    """
    low = high = None
    if error is not None:
        low = [a - 2.0 * e for a, e in zip(y, error, strict=True)]
        high = [a + 2.0 * e for a, e in zip(y, error, strict=True)]
    style = line_style(STYLES[label]) if label in STYLES else {}
    return Line(x=list(x), y=list(y), label=label, low=low, high=high, style=style)


def panel(title: str, y_label: str, lines: Sequence[Line], x_label: str = "n", **more: Any) -> Panel:
    """Return a panel with a level at 1, the random sample's, unless another is given; None is none."""
    given: dict[str, Any] = {"level": 1.0, "level_label": "random"} | more
    if given["level"] is None:
        given["level_label"] = ""
    return Panel(title=title, x_label=x_label, y_label=y_label, lines=lines, **given)
