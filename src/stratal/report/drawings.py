"""SVG drawings of reports: intervals in rows, and plots with two axes.

They are narrow enough for a phone. Colours are CSS classes of the style sheet, so that print and dark mode
can change them, and shape or text shows the same as colour. Every drawing has a title and a description.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from stratal.protocols import JsonRows
from stratal.report.text import interval_text, value_text
from stratal.whole_numbers import COUNT_ROUNDING, rounded_down, rounded_up


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear scale that maps the value `low` to the position `start`, and `high` to `end`."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, values: Iterable[float | None], start: float, end: float) -> Scale:
        """Return the scale from the smallest to the largest value; None is ignored."""
        numbers = [float(value) for value in values if value is not None] or [0.0, 1.0]
        low = min(numbers)
        high = max(numbers)
        # A scale needs a positive width.
        if not high > low:
            low = low - 0.5
            high = high + 0.5
        return cls(low, high, start, end)

    def __call__(self, value: float) -> float:
        """Return the position of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ends(self, interval: Sequence[float | None]) -> list[float]:
        """Return the positions of the limits of an interval; None is the end of the scale."""
        low, high = interval
        positions = [self.start, self.end]
        if low is not None:
            positions[0] = self(low)
        if high is not None:
            positions[1] = self(high)
        return positions


def ticks(low: float, high: float, max_steps: int = 5) -> list[float]:
    """Return at most `max_steps` + 1 round numbers from `low` to `high`."""
    min_step = (high - low) / max_steps
    power = 10.0 ** math.floor(math.log10(min_step))
    # The smallest round step that is large enough.
    candidates = [power * factor for factor in (1, 2, 2.5, 5, 10)]
    step = next(candidate for candidate in candidates if candidate >= min_step * (1 - COUNT_ROUNDING))
    first = rounded_up(low / step)
    count = rounded_down(high / step) - first + 1
    digits = max(0, 2 - math.floor(math.log10(step)))
    # Adding 0.0 turns −0.0 into 0.0.
    return [round((first + index) * step, digits) + 0.0 for index in range(count)]


# Width of a drawing in SVG units: the text is legible on a phone and not too large on a wide screen.
DRAWING_WIDTH = 440

# Ends of the horizontal axis of intervals, in SVG units.
_LEFT = 12.0
_RIGHT = DRAWING_WIDTH - 12.0

# Height of a row in SVG units: a line of text above the interval.
_ROW_HEIGHT = 40

# A longer drawing is not legible; the table has all rows.
_MAX_ROWS = 40

# Largest number of characters of a row's name, which leaves space for its values.
_NAME_LENGTH = 46

# A dict with `name`, `estimate`, `confidence_interval`, and optionally `reported`: whether it is the estimate
# of the report, which is emphasised.
ReportRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Drawing:
    """An SVG drawing and its description in words.

    Parameters
    ----------
    name : str
        Prefix of the ids of title and description.
    title : str
    description : str
        Content of the drawing for screen readers.
    height : float
    marks : sequence of str
        SVG elements.
    """

    name: str
    title: str
    description: str
    height: float
    marks: Sequence[str]

    def svg(self) -> str:
        """Return the SVG element."""
        title_id = f"{self.name}-title"
        description_id = f"{self.name}-description"
        return (
            f'<svg viewBox="0 0 {DRAWING_WIDTH} {self.height:g}" role="img" '
            f'aria-labelledby="{title_id} {description_id}">'
            f'<title id="{title_id}">{escape(self.title)}</title>'
            f'<desc id="{description_id}">{escape(self.description)}</desc>{"".join(self.marks)}</svg>'
        )


def forest_drawing(
    name: str, title: str, rows: Sequence[ReportRow], is_share: bool, *, margin: float = 0.0
) -> Drawing:
    """Return a drawing of intervals, one per row, with names and values above them.

    `margin` extends the scale on both sides, as a share of its width. The scale of a share stays within 0 and
    1.
    """
    if len(rows) > _MAX_ROWS:
        title = f"{title}: the first {_MAX_ROWS} of {len(rows):,}"
        rows = rows[:_MAX_ROWS]
    scale = _forest_scale(rows, is_share, margin)
    bottom = _ROW_HEIGHT * len(rows) + 8
    marks = [svg_line(_LEFT, bottom, _RIGHT, bottom, "axis")]
    for tick in ticks(scale.low, scale.high):
        x = scale(tick)
        marks += [
            svg_line(x, 0, x, bottom, "grid"),
            svg_text(x, bottom + 15, tick_text(tick, is_share), "tick", "middle"),
        ]
    for index, row in enumerate(rows):
        marks += _row_marks(row, scale, _ROW_HEIGHT * index + 28, is_share)
    description = "; ".join(f"{row['name']}: {_row_text(row, is_share)}" for row in rows)
    return Drawing(name, title, description, _ROW_HEIGHT * len(rows) + 30, marks)


def _forest_scale(rows: Sequence[ReportRow], is_share: bool, margin: float) -> Scale:
    """Return the horizontal scale that contains all values and limits, extended by a margin."""
    values = [value for row in rows for value in (row["estimate"], *(row["confidence_interval"] or ()))]
    numbers = [float(value) for value in values if value is not None]
    ends: list[float] = []
    if numbers:
        low = min(numbers)
        high = max(numbers)
        extension = margin * (high - low)
        ends = [low - extension, high + extension]
        if is_share and low >= 0 and high <= 1:
            ends = [max(ends[0], 0.0), min(ends[1], 1.0)]
    # Leave space for the marks of the limits.
    return Scale.of(ends, _LEFT + 6, _RIGHT - 6)


def _row_marks(row: ReportRow, scale: Scale, y: float, is_share: bool) -> list[str]:
    """Return the SVG elements of a row: name, value, interval and dot."""
    row_class = "other"
    name_class = "name"
    radius = 4
    if row.get("reported"):
        row_class = "reported"
        name_class = "name strong"
        radius = 5
    marks = [
        svg_text(_LEFT, y - 14, _shorten(row["name"]), name_class),
        svg_text(_RIGHT, y - 14, _row_text(row, is_share), "value", "end"),
    ]
    if row["confidence_interval"] is not None:
        low, high = scale.ends(row["confidence_interval"])
        marks.append(svg_line(low, y, high, y, f"range {row_class}"))
        marks += [svg_line(x, y - 4, x, y + 4, f"range {row_class}") for x in (low, high)]
    if row["estimate"] is not None:
        marks.append(_svg_dot(scale(row["estimate"]), y, row_class, radius))
    return marks


def _shorten(name: str) -> str:
    """Return a name whose middle is replaced by an ellipsis if it is too long."""
    if len(name) <= _NAME_LENGTH:
        return name
    return f"{name[: _NAME_LENGTH // 2 - 1]}…{name[-(_NAME_LENGTH // 2) :]}"


def _row_text(row: ReportRow, is_share: bool) -> str:
    """Return the value and the interval of a row as text; one of them may be missing."""
    interval = row["confidence_interval"]
    if interval is None:
        return value_text(row["estimate"], is_share)
    if row["estimate"] is None:
        return interval_text(interval, is_share)
    return f"{value_text(row['estimate'], is_share)} ({interval_text(interval, is_share)})"


def calibration_drawing(
    bins: JsonRows, x_title: str = "mean proxy", y_title: str = "mean outcome"
) -> Drawing:
    """Return a drawing of mean labels by mean proxies in bins, with their intervals and the diagonal.

    Each bin has `proxy_mean`, `outcome_mean`, `confidence_interval` and the number of labels `n`.
    """
    rows = [row for row in bins if row["outcome_mean"] is not None]
    values = [
        float(value)
        for row in rows
        for value in (row["proxy_mean"], row["outcome_mean"], *(row["confidence_interval"] or ()))
        if value is not None
    ]
    ends = rounded_ends(values)
    x_scale = Scale.of(ends, PLOT_LEFT, _PLOT_RIGHT)
    y_scale = Scale.of(ends, _PLOT_BOTTOM, PLOT_TOP)
    marks = plot_axes(x_scale, y_scale, x_title, y_title)
    marks.append(svg_line(x_scale.start, y_scale.start, x_scale.end, y_scale.end, "diagonal"))
    for row in rows:
        x = x_scale(row["proxy_mean"])
        if row["confidence_interval"] is not None:
            y_low, y_high = y_scale.ends(row["confidence_interval"])
            marks.append(svg_line(x, y_low, x, y_high, "range reported"))
        marks.append(_svg_dot(x, y_scale(row["outcome_mean"])))
    descriptions = [
        f"{x_title} {row['proxy_mean']:.3f}: {y_title} {row['outcome_mean']:.3f} ({row['n']:,} labels)"
        for row in rows
    ]
    return Drawing("calibration-curve", "Labels by proxy", "; ".join(descriptions), _PLOT_BOTTOM + 44, marks)


# Area of a plot with two axes in SVG units, with space for the labels of the axes.
PLOT_LEFT = 54
PLOT_TOP = 12
_PLOT_RIGHT = 310
_PLOT_BOTTOM = 262


def rounded_ends(values: Sequence[float]) -> list[float]:
    """Return the ends of an axis: the nearest ticks that enclose the values."""
    scale = Scale.of(values, start=0, end=1)
    first, second, *_ = ticks(scale.low, scale.high)
    step = second - first
    return [
        rounded_down(scale.low / step) * step,
        rounded_up(scale.high / step) * step,
    ]


def plot_axes(
    x_scale: Scale,
    y_scale: Scale,
    x_title: str,
    y_title: str,
    *,
    is_share: bool = False,
    title_offset: float = 36,
) -> list[str]:
    """Return the SVG elements of two axes with ticks, a grid and titles; shares are in percent."""
    marks = []
    for tick in ticks(y_scale.low, y_scale.high):
        y = y_scale(tick)
        marks.append(svg_line(x_scale.start, y, x_scale.end, y, "grid"))
        marks.append(svg_text(x_scale.start - 6, y + 4, tick_text(tick, is_share), "tick", "end"))
    marks += [
        svg_text(x_scale(tick), y_scale.start + 16, tick_text(tick, is_share), "tick", "middle")
        for tick in ticks(x_scale.low, x_scale.high)
    ]
    marks.append(svg_line(x_scale.start, y_scale.start, x_scale.end, y_scale.start, "axis"))
    marks.append(svg_line(x_scale.start, y_scale.start, x_scale.start, y_scale.end, "axis"))
    x_middle = 0.5 * (x_scale.start + x_scale.end)
    marks.append(svg_text(x_middle, y_scale.start + title_offset, x_title, "name", "middle"))
    y_middle = 0.5 * (y_scale.start + y_scale.end)
    marks.append(
        f'<text x="12" y="{y_middle:g}" class="name" text-anchor="middle" '
        f'transform="rotate(-90 12 {y_middle:g})">{escape(y_title)}</text>'
    )
    return marks


def tick_text(tick: float, is_share: bool) -> str:
    """Return the label of a tick, in percent for shares."""
    if is_share:
        return f"{100 * tick:.6g}%"
    return f"{tick:g}"


def _svg_dot(x: float, y: float, css_class: str = "reported", radius: int = 4) -> str:
    """Return the SVG element of a dot with a CSS class."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="mark {css_class}"/>'


def svg_line(x1: float, y1: float, x2: float, y2: float, css_class: str) -> str:
    """Return the SVG element of a line with a CSS class."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css_class}"/>'


def svg_text(x: float, y: float, text: str, css_class: str, anchor: str = "start") -> str:
    """Return the SVG element of a text with a CSS class; `anchor` is the part of the text at x."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css_class}" text-anchor="{anchor}">{escape(text)}</text>'
