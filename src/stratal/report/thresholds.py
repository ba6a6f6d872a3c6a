"""Pages of thresholds: the accepted set, the candidates, and the curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from stratal.protocols import JsonDict, JsonMapping
from stratal.report.document import sections_html
from stratal.report.sections import forest_drawing
from stratal.report.text import Page, ReportTable, interval_text, table_of, value_text

_NAMES = {
    "error": "error",
    "precision": "precision",
    "recall": "recall",
    "false_positive_rate": "false positive rate",
    "f1": "F1",
}
# Metrics whose limit is an upper one.
_UPPER = ("error", "false_positive_rate")
_OF_TARGET = {
    "population": "for these items",
    "superpopulation": "for future items from the same source",
}
# Groups that are listed in sentences.
_SENTENCES = 5


def threshold_page(result: JsonMapping, *, details: bool = True) -> Page:
    """Return the page of `Threshold.to_dict`: the verdict and the accepted sets, and the curve.

    Without details, the candidate sets of an error, and the curve of other metrics.
    """
    curve = _curve_table(result)
    tables = [_candidate_table(result), *([curve] if curve is not None else [])]
    if not details:
        if result["metric"] == "error":
            tables = tables[:1]
        else:
            tables = tables[-1:]
    return Page(lines=_sentences(result), tables=tables, notes=[f"Note: {note}" for note in result["notes"]])


def threshold_html(result: JsonMapping, version: str) -> str:
    """Return a self-contained HTML page of `Threshold.to_dict`."""
    lines = _sentences(result)
    answer = Page(title="Answer", name="answer", lines=lines, notes=result["notes"])
    sets = Page(title="Candidate sets", name="candidates", tables=[_candidate_table(result)])
    subtitle = f"{result['labels']:,} labels of {result['population_size']:,} units"
    return sections_html(
        title=f"Which items satisfy {result['requirement']}?",
        subtitle=subtitle,
        answer=lines[0],
        sections=[answer, sets, *_curve_sections(result)],
        kind="stratal-threshold",
        version=version,
    )


def _sentences(result: JsonMapping) -> list[str]:
    """Return the verdict and, for each accepted set, what is guaranteed."""
    head = f"{result['requirement']}: {result['verdict']}"
    chosen = result["chosen"]
    if not chosen:
        return [f"{head}. {_without_a_set(result)}"]
    level = f"{100 * result['confidence_level']:g}% confidence"
    scope = " for all groups together" if result["by"] else ""
    guarantee = f"With {level}{scope}, {_OF_TARGET[result['target']]}."
    sentences = [_sentence(result, row) for row in chosen[:_SENTENCES]]
    lines = [f"{head}. {sentences[0]}", *sentences[1:]]
    if len(chosen) > _SENTENCES:
        lines.append(f"… and {len(chosen) - _SENTENCES} more groups: see the table.")
    return [*lines, guarantee]


def _sentence(result: JsonMapping, row: JsonMapping) -> str:
    """Return what is accepted, and the metric of it with its limit."""
    group = "" if row["group"] is None else f"{row['group']}: "
    if row["items"] is None:
        items = ""
    else:
        items = f"{row['items']:,} items, "
    metric = _NAMES[result["metric"]]
    if result["metric"] in _UPPER:
        side = "at most"
    else:
        side = "at least"
    return (
        f"{group}Accept {_set_text(result, row)} without review: {items}{value_text(row['share'], True)} of "
        f"all; their {metric} is {side} {_outward(row['limit'], result['metric'])} (estimated "
        f"{value_text(row['estimate'], True)} from {row['labels']:,} labels)."
    )


def _outward(limit: float, metric: str) -> str:
    """Return a limit in percent, rounded to the side on which it still holds."""
    if not 0.001 < limit < 0.999:
        return value_text(limit, True)
    if metric in _UPPER:
        rounded = math.ceil(limit * 1000 - 1e-9)
    else:
        rounded = math.floor(limit * 1000 + 1e-9)
    return value_text(rounded / 1000, True)


def _set_text(result: JsonMapping, row: JsonMapping) -> str:
    """Return the condition on the scores."""
    pairs = zip(result["scores"], row["thresholds"], strict=True)
    parts = [f"{name} ≥ {value:.6g}" for name, value in pairs if value is not None]
    return " and ".join(parts) or "everything"


def _without_a_set(result: JsonMapping) -> str:
    """Return why no set is accepted, and what would change it."""
    labels = f"these {result['labels']:,} labels"
    if result["all_violated"]:
        if result["verdict"] == "FAIL":
            others = "the score has no other thresholds"
        else:
            others = "sets above the highest hold too few labels to tell"
        return (
            f"At each of the {len(result['candidates']):,} candidate thresholds, {labels} show that it is "
            f"violated; {others}."
        )
    needed = result["labels_needed"]
    if needed is None:
        return (
            f"No threshold is guaranteed by {labels}; at these rates, more labels alone would not change it."
        )
    return f"No threshold is guaranteed by {labels}; about {needed:,} would do, if the rates stay."


def _candidate_table(result: JsonMapping) -> ReportTable:
    """Return the table of the candidate sets."""
    metric = _NAMES[result["metric"]]
    columns: JsonDict = {"group": "group"}
    for place, name in enumerate(result["scores"]):
        columns[f"{name} ≥"] = lambda row, place=place: _threshold_text(row["thresholds"][place])
    columns |= {
        "items": "items",
        "share": lambda row: value_text(row["share"], True),
        "labels": "labels",
        metric: lambda row: value_text(row["estimate"], True),
        "limit": lambda row: value_text(row["limit"], True),
        "accepted": lambda row: "yes" if row["accepted"] else "no",
    }
    rows = _shown(result["candidates"], result["chosen"])
    if len(rows) == len(result["candidates"]):
        shown = ""
    else:
        shown = f", {len(rows)} of {len(result['candidates'])}"
    return table_of(f"Candidate sets{shown}", rows, columns)


# Candidate sets in the table of a terminal; the JSON output has all.
_MOST_SETS = 10


def _shown(rows: Sequence[Mapping[str, object]], chosen: Sequence[Mapping[str, object]]) -> list[JsonMapping]:
    """Return about ten of the candidate sets, with those that are chosen."""
    step = max(1, -(-len(rows) // _MOST_SETS))
    return [row for place, row in enumerate(rows) if (place + 1) % step == 0 or row in chosen]


def _threshold_text(value: float | None) -> str:
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
        "share": lambda row: value_text(row["share"], True),
    }
    for name in curve["points"][0]["metrics"]:
        columns[_metric_name(result, name)] = lambda row, name=name: _with_band(row["metrics"][name])
    best = curve["best_f1"]
    title = f"By threshold, with {100 * curve['confidence_level']:g}% bands for all thresholds together"
    if best is not None:
        title += f"; F1 is largest at {_threshold_text(curve['points'][best]['threshold'])}"
    return table_of(title, curve["points"], columns)


def _metric_name(result: Mapping[str, object], name: str) -> str:
    """Return the name of a curve's metric; of right answers, a precision is the accuracy of the accepted."""
    if result["metric"] == "error" and name == "precision":
        return "accuracy"
    return _NAMES[name]


def _with_band(value: JsonMapping) -> str:
    if value["estimate"] is None:
        return interval_text(value["simultaneous"], True)
    return f"{value_text(value['estimate'], True)} ({interval_text(value['simultaneous'], True)})"


def _curve_sections(result: JsonMapping) -> list[Page]:
    """Return a section with the drawing of each metric of the curve, and one with the table of all."""
    table = _curve_table(result)
    if table is None:
        return []
    points = result["curve"]["points"]
    sections = []
    for name in points[0]["metrics"]:
        rows = [
            {
                "name": _set_name(result, point),
                "estimate": point["metrics"][name]["estimate"],
                "confidence_interval": point["metrics"][name]["simultaneous"],
            }
            for point in points
        ]
        metric = _metric_name(result, name)
        title = f"{metric[:1].upper()}{metric[1:]} by threshold"
        drawing = forest_drawing(f"curve-{name}", title, rows, True)
        sections.append(Page(title=title, name=f"curve-{name}-section", drawings=[drawing]))
    return [*sections, Page(title="All metrics by threshold", name="curve", tables=[table])]


def _set_name(result: JsonMapping, point: JsonMapping) -> str:
    """Return the name of the set of units that reach a threshold."""
    if point["threshold"] is None:
        return "all items"
    return f"{result['scores'][0]} ≥ {_threshold_text(point['threshold'])}"
