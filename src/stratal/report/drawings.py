"""Drawings of a report as inline SVG: narrow enough for a phone, in colours of the page's style sheet.

Colours are names of classes, so that print and dark mode change them; what colour shows, shape
or text shows too. Every drawing has a title, a description, and a table with the same content.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from stratal.report.text import interval_text, value_text


@dataclass(frozen=True, slots=True)
class Scale:
    """Places of values between `start` (at `low`) and `end` (at `high`).

    Examples
    --------
    >>> scale = Scale(0.0, 2.0, 10.0, 30.0)
    >>> scale(1.0), scale.ends([None, 1.0])
    (20.0, [10.0, 20.0])
    """

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, values: Iterable[float | None], start: float, end: float) -> Scale:
        """Return the scale that holds all values that are there; its width is never zero."""
        known = [float(value) for value in values if value is not None] or [0.0, 1.0]
        low, high = min(known), max(known)
        if not high > low:
            low, high = low - 0.5, high + 0.5
        return cls(low, high, start, end)

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ends(self, interval: Sequence[float | None]) -> list[float]:
        """Return the places of an interval's ends; the scale's own where it is open."""
        low, high = interval
        return [self.start if low is None else self(low), self.end if high is None else self(high)]


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return up to `most` + 1 round numbers from `low` to `high`.

    Examples
    --------
    >>> ticks(0.911, 0.952)
    [0.92, 0.93, 0.94, 0.95]
    """
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round((first + k) * step, digits) + 0.0 for k in range(count)]


WIDTH = 440
"""Units of a drawing's width: its text is read on a phone, and is not shouted across a page."""

_LEFT, _RIGHT = 12.0, WIDTH - 12.0
_ROW = 40
_MOST_ROWS = 40
_NAME = 46
"""Characters of a row's name that leave room for its values."""

Row = Mapping[str, Any]
"""`name`, `estimate`, `confidence_interval`, and perhaps `reported`: whether it is the answer."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing and its description in words.

    Parameters
    ----------
    name : str
        Part of the ids of its title and description.
    title : str
    description : str
        What it shows, for those who do not see it.
    height : float
    marks : sequence of str
        Elements of SVG.

    Examples
    --------
    >>> Drawing("a", "A", "b", 9, ()).svg()[:20]
    '<svg viewBox="0 0 44'
    """

    name: str
    title: str
    description: str
    height: float
    marks: Sequence[str]

    def svg(self) -> str:
        """Return the element."""
        ids = (f"{self.name}-title", f"{self.name}-description")
        return (
            f'<svg viewBox="0 0 {WIDTH} {self.height:g}" role="img" aria-labelledby="{ids[0]} {ids[1]}">'
            f'<title id="{ids[0]}">{escape(self.title)}</title>'
            f'<desc id="{ids[1]}">{escape(self.description)}</desc>{"".join(self.marks)}</svg>'
        )


def forest_drawing(
    name: str, title: str, rows: Sequence[Row], share: bool, *, margin: float = 0.0
) -> Drawing:
    """Return intervals below each other, each with its name and value above it.

    `margin` is how far the scale goes on at either side, as a share of what it must hold; a share stays
    between 0 and 1.

    Examples
    --------
    >>> row = {"name": "new", "estimate": 0.8, "confidence_interval": [0.7, 0.9]}
    >>> forest_drawing("models", "Models", [row], share=True).description
    'new: 80.0%, 70.0–90.0%'
    """
    title = title if len(rows) <= _MOST_ROWS else f"{title}: the first {_MOST_ROWS} of {len(rows):,}"
    rows = rows[:_MOST_ROWS]
    values = [value for row in rows for value in (row["estimate"], *(row["confidence_interval"] or ()))]
    known = [float(value) for value in values if value is not None]
    more = margin * (max(known) - min(known)) if known else 0.0
    ends = [min(known) - more, max(known) + more] if known else []
    if share and known and min(known) >= 0 and max(known) <= 1:
        ends = [max(ends[0], 0.0), min(ends[1], 1.0)]
    scale = Scale.of(ends, _LEFT + 6, _RIGHT - 6)
    marks, words = [_axis(scale, _ROW * len(rows) + 8, share)], []
    for number, row in enumerate(rows):
        marks.append(_interval_row(row, scale, _ROW * number, share))
        words.append(f"{row['name']}: {_row_text(row, share)}")
    return Drawing(name, title, "; ".join(words), _ROW * len(rows) + 30, marks)


def _row_text(row: Row, share: bool) -> str:
    value, interval = row["estimate"], row["confidence_interval"]
    ends = [] if interval is None else [interval_text(interval, share)]
    return ", ".join([*([] if value is None and ends else [value_text(value, share)]), *ends])


def _interval_row(row: Row, scale: Scale, top: float, share: bool) -> str:
    value, interval, reported = row["estimate"], row["confidence_interval"], row.get("reported")
    kind, y = "reported" if reported else "other", top + 28
    marks = [
        _text(_LEFT, top + 14, _cut(row["name"]), "name" + (" strong" if reported else "")),
        _text(_RIGHT, top + 14, _row_text(row, share), "value", "end"),
    ]
    if interval is not None:
        low, high = scale.ends(interval)
        marks += [_line(low, y, high, y, f"range {kind}")]
        marks += [_line(end, y - 4, end, y + 4, f"range {kind}") for end in (low, high)]
    if value is not None:
        marks.append(_dot(scale(value), y, kind, 5 if reported else 4))
    return "".join(marks)


def calibration_drawing(check: Mapping[str, Any]) -> Drawing:
    """Return mean labels over mean proxies with their intervals, and the diagonal.

    Examples
    --------
    >>> bins = [{"proxy_mean": 0.9, "outcome_mean": 0.8, "confidence_interval": [0.7, 0.9], "n": 30}]
    >>> calibration_drawing({"proxy": "judge", "bins": bins}).description
    'mean proxy 0.900: mean outcome 0.800 (30 labels)'
    """
    rows = [row for row in check["bins"] if row["outcome_mean"] is not None]
    known = [
        value
        for row in rows
        for value in (row["proxy_mean"], row["outcome_mean"], *(row["confidence_interval"] or ()))
    ]
    across, up = Scale.of(known, 44, 300), Scale.of(known, 262, 12)
    low, high = across.low, across.high
    marks = [
        _line(44, 262, 300, 262, "axis"),
        _line(44, 262, 44, 12, "axis"),
        _line(across(low), up(low), across(high), up(high), "diagonal"),
        _text(172, 300, "mean proxy", "name", "middle"),
        '<text x="12" y="137" class="name" text-anchor="middle" transform="rotate(-90 12 137)">'
        "mean outcome</text>",
    ]
    for tick in ticks(low, high):
        marks += [_text(across(tick), 278, f"{tick:g}", "tick", "middle")]
        marks += [_text(38, up(tick) + 4, f"{tick:g}", "tick", "end")]
    for row in rows:
        x, interval = across(row["proxy_mean"]), row["confidence_interval"]
        if interval is not None:
            low, high = up.ends(interval)
            marks.append(_line(x, low, x, high, "range reported"))
        marks.append(_dot(x, up(row["outcome_mean"])))
    words = [
        f"mean proxy {row['proxy_mean']:.3f}: mean outcome {row['outcome_mean']:.3f} ({row['n']:,} labels)"
        for row in rows
    ]
    return Drawing("calibration-curve", "Labels by proxy", "; ".join(words), 306, marks)


def _axis(scale: Scale, y: float, share: bool) -> str:
    marks = [_line(_LEFT, y, _RIGHT, y, "axis")]
    for tick in ticks(scale.low, scale.high):
        marks += [
            _line(scale(tick), 0, scale(tick), y, "grid"),
            _text(scale(tick), y + 15, f"{100 * tick:.6g}%" if share else f"{tick:g}", "tick", "middle"),
        ]
    return "".join(marks)


def _dot(x: float, y: float, kind: str = "reported", r: int = 4) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" class="mark {kind}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _cut(text: str) -> str:
    """Return a text without its middle if it is too long: names of strata differ at both ends."""
    return text if len(text) <= _NAME else f"{text[: _NAME // 2 - 1]}…{text[-(_NAME // 2) :]}"
