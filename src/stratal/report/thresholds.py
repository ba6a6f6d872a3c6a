"""Pages of thresholds: the accepted set, the candidates, and the curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stratal.protocols import JsonDict, JsonMapping
from stratal.report.drawings import (
    DRAWING_WIDTH,
    PLOT_LEFT,
    PLOT_TOP,
    Drawing,
    Scale,
    plot_axes,
    rounded_ends,
    svg_line,
    svg_text,
)
from stratal.report.text import Page, ReportTable, capitalise, interval_text, table_of, value_text
from stratal.report.verdicts import FAIL
from stratal.whole_numbers import rounded_down, rounded_up

# Names of metrics in sentences and tables.
_METRIC_NAMES = {
    "error": "error",
    "precision": "precision",
    "recall": "recall",
    "false_positive_rate": "false positive rate",
    "f1": "F1",
}

# Metrics with an upper limit; the others have a lower one.
_UPPER_LIMIT_METRICS = ("error", "false_positive_rate")

# Items to which a guarantee refers, by target.
_TARGET_TEXTS = {
    "population": "for these items",
    "superpopulation": "for future items from the same source",
}

# Number of groups with a sentence; the table contains all.
_MAX_GROUP_SENTENCES = 5


def threshold_page(result: JsonMapping, *, details: bool = True) -> Page:
    """Return the page of `Threshold.to_dict`: the verdict and the accepted sets, and the curve.

    Without details, the only table contains the candidate sets of an error, or the curve of another metric.
    """
    curve = _curve_table(result)
    tables = [_candidate_table(result)]
    if curve is not None:
        tables.append(curve)
    if not details and result["metric"] == "error":
        tables = tables[:1]
    elif not details:
        tables = tables[-1:]
    return Page(
        lines=threshold_sentences(result), tables=tables, notes=[f"Note: {note}" for note in result["notes"]]
    )


def threshold_sections(result: JsonMapping) -> list[Page]:
    """Return the sections of a report on `Threshold.to_dict`: the accepted set, curves, and candidates."""
    lines = threshold_sentences(result)
    answer = Page(title="Accepted set", name="accepted-set", lines=lines, notes=result["notes"])
    table = _candidate_table(result)
    return [answer, *_curve_sections(result), Page(title="Candidate sets", name="candidates", tables=[table])]


def threshold_sentences(result: JsonMapping) -> list[str]:
    """Return the verdict, a sentence for each accepted set, and the scope of the guarantee."""
    verdict = f"{result['requirement']}: {result['verdict']}"
    chosen = result["chosen"]
    if not chosen:
        return [f"{verdict}. {_no_set_sentence(result)}"]
    level = f"{100 * result['confidence_level']:g}% confidence"
    scope = ""
    if result["by"]:
        scope = " for all groups together"
    guarantee = f"With {level}{scope}, {_TARGET_TEXTS[result['target']]}."
    sentences = [_set_sentence(result, row) for row in chosen[:_MAX_GROUP_SENTENCES]]
    lines = [f"{verdict}. {sentences[0]}", *sentences[1:]]
    if len(chosen) > _MAX_GROUP_SENTENCES:
        lines.append(f"… and {len(chosen) - _MAX_GROUP_SENTENCES} more groups: see the table.")
    return [*lines, guarantee]


def _set_sentence(result: JsonMapping, row: JsonMapping) -> str:
    """Return the condition of an accepted set, and its metric with the limit."""
    group = ""
    items = ""
    if row["group"] is not None:
        group = f"{row['group']}: "
    if row["items"] is not None:
        items = f"{row['items']:,} items, "
    metric = _METRIC_NAMES[result["metric"]]
    if result["metric"] in _UPPER_LIMIT_METRICS:
        comparison = "at most"
    else:
        comparison = "at least"
    limit = _conservative_limit_text(row["limit"], result["metric"])
    return (
        f"{group}Accept {_set_text(result, row)} without review: {items}{_share_text(row['share'])} of "
        f"all; their {metric} is {comparison} {limit} (estimated {value_text(row['estimate'], True)} from "
        f"{row['labels']:,} labels)."
    )


def _conservative_limit_text(limit: float, metric: str) -> str:
    """Return a limit in percent, rounded up for an upper limit and down for a lower one."""
    # Near 0% and 100%, `value_text` has more digits.
    if not 0.001 < limit < 0.999:
        return value_text(limit, True)
    if metric in _UPPER_LIMIT_METRICS:
        rounded = rounded_up(limit * 1000)
    else:
        rounded = rounded_down(limit * 1000)
    return value_text(rounded / 1000, True)


def _set_text(result: JsonMapping, row: JsonMapping) -> str:
    """Return the conditions on the scores of a set, or `everything`."""
    pairs = zip(result["scores"], row["thresholds"], strict=True)
    conditions = [f"{name} ≥ {value:.6g}" for name, value in pairs if value is not None]
    return " and ".join(conditions) or "everything"


def _no_set_sentence(result: JsonMapping) -> str:
    """Return the reason why no set is accepted, and the number of labels that would probably change it."""
    labels = f"these {result['labels']:,} labels"
    if result["all_violated"]:
        if result["verdict"] == FAIL:
            other_sets = "the score has no other thresholds"
        else:
            other_sets = "sets above the highest threshold contain too few labels for a decision"
        n_candidates = len(result["candidates"])
        if n_candidates == 1:
            candidates = "the only candidate threshold"
        else:
            candidates = f"each of the {n_candidates:,} candidate thresholds"
        return f"At {candidates}, {labels} show that the requirement is violated; {other_sets}."
    n_required = result["labels_needed"]
    if n_required is None:
        return (
            f"With {labels}, no threshold can be guaranteed; at these rates, more labels would not change "
            "this."
        )
    return (
        f"With {labels}, no threshold can be guaranteed; at the same rates, about {n_required:,} labels "
        "would suffice."
    )


def _candidate_table(result: JsonMapping) -> ReportTable:
    """Return the table of some candidate sets, with all accepted ones."""
    metric = _METRIC_NAMES[result["metric"]]
    columns: JsonDict = {"group": "group"}
    for index, name in enumerate(result["scores"]):
        # The default of `index` keeps its current value.
        columns[f"{name} ≥"] = lambda row, index=index: _threshold_text(row["thresholds"][index])
    columns |= {
        "items": "items",
        "share": lambda row: _share_text(row["share"]),
        "labels": "labels",
        metric: lambda row: value_text(row["estimate"], True),
        "limit": lambda row: value_text(row["limit"], True),
        "accepted": lambda row: "yes" if row["accepted"] else "no",
    }
    rows = _selected_candidates(result["candidates"], result["chosen"])
    number_text = ""
    if len(rows) < len(result["candidates"]):
        number_text = f", {len(rows)} of {len(result['candidates'])}"
    return table_of(f"Candidate sets{number_text}", rows, columns)


# About the number of candidate sets in the table; the JSON output contains all.
_MAX_TABLE_SETS = 10


def _selected_candidates(
    rows: Sequence[Mapping[str, object]], chosen: Sequence[Mapping[str, object]]
) -> list[JsonMapping]:
    """Return about ten of the candidate sets, and all accepted ones."""
    # Division rounded up.
    step = max(1, -(-len(rows) // _MAX_TABLE_SETS))
    return [row for index, row in enumerate(rows) if (index + 1) % step == 0 or row in chosen]


def _share_text(share: float) -> str:
    """Return a share of units in percent, with two significant digits below 1%, as of a rare class."""
    if share < 0.01:
        return f"{100 * share:.2g}%"
    return value_text(share, True)


def _threshold_text(value: float | None) -> str:
    """Return a threshold as text; None accepts all units."""
    if value is None:
        return "all"
    return f"{value:.4g}"


def _curve_table(result: JsonMapping) -> ReportTable | None:
    """Return the table of the curve with simultaneous bands; None without a curve."""
    curve = result["curve"]
    if curve is None:
        return None
    columns: JsonDict = {
        f"{result['scores'][0]} ≥": lambda row: _threshold_text(row["threshold"]),
        "share": lambda row: _share_text(row["share"]),
    }
    for name in curve["points"][0]["metrics"]:
        columns[_metric_name(result, name)] = lambda row, name=name: _band_text(row["metrics"][name])
    best = curve["best_f1"]
    title = f"By threshold, with {100 * curve['confidence_level']:g}% bands for all thresholds together"
    if best is not None:
        title += f"; F1 is largest for {_set_name(result, curve['points'][best])}"
    return table_of(title, curve["points"], columns)


def _metric_name(result: Mapping[str, object], name: str) -> str:
    """Return the name of a curve's metric; the precision of correct answers is called accuracy."""
    if result["metric"] == "error" and name == "precision":
        return "accuracy"
    return _METRIC_NAMES[name]


def _band_text(value: JsonMapping) -> str:
    """Return the estimate of a point of the curve, if there is one, with its simultaneous interval."""
    if value["estimate"] is None:
        return interval_text(value["simultaneous"], True)
    return f"{value_text(value['estimate'], True)} ({interval_text(value['simultaneous'], True)})"


# Vertical position of the axis of a curve in SVG units.
_CURVE_BOTTOM = 212

# Height below the axis: ticks, thresholds, and the title.
_AXIS_HEIGHT = 60

# Width of the text of a threshold below the axis.
_THRESHOLD_WIDTH = 46


def _curve_sections(result: JsonMapping) -> list[Page]:
    """Return the section with a drawing of each metric of the curve, and the table of all."""
    table = _curve_table(result)
    if table is None:
        return []
    drawings = [_curve_drawing(result, name) for name in result["curve"]["points"][0]["metrics"]]
    level = f"{100 * result['curve']['confidence_level']:g}%"
    line = (
        f"The light band holds for all thresholds together ({level}), the dark one for each separately. "
        "Dashed lines mark the required value and the accepted set."
    )
    return [
        Page(
            title="By threshold",
            name="curve",
            lines=[line],
            drawings=[drawing for drawing in drawings if drawing is not None],
            tables=[table],
        )
    ]


def _curve_drawing(result: JsonMapping, name: str) -> Drawing | None:
    """Return the curve of a metric over the accepted share with both bands; None if nothing is estimated."""
    points = []
    for point in result["curve"]["points"]:
        estimates = point["metrics"][name]
        if estimates["estimate"] is not None:
            points.append({"share": point["share"], "threshold": point["threshold"], **estimates})
    if len(points) < 2:
        return None
    metric = _metric_name(result, name)
    required = _required_value(result, name)
    values = [end for point in points for end in point["simultaneous"]]
    x_scale = Scale.of([0.0, *(point["share"] for point in points)], PLOT_LEFT, DRAWING_WIDTH - 16)
    if required is not None:
        values.append(required)
    ends = rounded_ends(values)
    y_scale = Scale.of(ends, _CURVE_BOTTOM, PLOT_TOP)
    x_title = f"accepted share of the units; below it: {result['scores'][0]} ≥"
    marks = plot_axes(x_scale, y_scale, x_title, metric, is_share=True, title_offset=52)
    for band in ("simultaneous", "pointwise"):
        upper = [(x_scale(point["share"]), y_scale(point[band][1])) for point in points]
        lower = [(x_scale(point["share"]), y_scale(point[band][0])) for point in points]
        marks.append(f'<polygon points="{_coordinates([*upper, *lower[::-1]])}" class="band"/>')
    curve = [(x_scale(point["share"]), y_scale(point["estimate"])) for point in points]
    marks.append(f'<polyline points="{_coordinates(curve)}" class="range reported"/>')
    if required is not None:
        y = y_scale(required)
        marks.append(svg_line(x_scale.start, y, x_scale.end, y, "diagonal"))
    for row in result["chosen"]:
        x = x_scale(row["share"])
        marks.append(svg_line(x, y_scale.start, x, y_scale.end, "diagonal"))
    marks += _threshold_marks(points, x_scale)
    description = "; ".join(f"{_set_name(result, point)}: {_band_text(point)}" for point in points)
    title = f"{capitalise(metric)} by threshold"
    return Drawing(f"curve-{name}", title, description, _CURVE_BOTTOM + _AXIS_HEIGHT, marks)


def _threshold_marks(points: Sequence[JsonMapping], x_scale: Scale) -> list[str]:
    """Return the SVG elements of thresholds below the axis, without those that would overlap."""
    marks = []
    next_free_x = x_scale.start
    for point in points:
        x = x_scale(point["share"])
        if x >= next_free_x and point["threshold"] is not None:
            text = _threshold_text(point["threshold"])
            text_x = min(x, DRAWING_WIDTH - 0.5 * _THRESHOLD_WIDTH)
            marks.append(svg_text(text_x, _CURVE_BOTTOM + 31, text, "tick", "middle"))
            next_free_x = x + _THRESHOLD_WIDTH
    return marks


def _required_value(result: JsonMapping, name: str) -> float | None:
    """Return the required value of a curve's metric; None for the other metrics."""
    # The error of accepted items is 1 minus their precision.
    if result["metric"] == "error" and name == "precision":
        return 1.0 - float(result["required"])
    if result["metric"] == name:
        return float(result["required"])
    return None


def _coordinates(points: Sequence[tuple[float, float]]) -> str:
    """Return points as the text of an SVG attribute."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _set_name(result: JsonMapping, point: JsonMapping) -> str:
    """Return the name of the set of units that reach a threshold."""
    if point["threshold"] is None:
        return "all items"
    return f"{result['scores'][0]} ≥ {_threshold_text(point['threshold'])}"
