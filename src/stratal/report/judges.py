"""The agreement of judges with people's labels, as sentences and tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from stratal.protocols import JsonDict, JsonMapping, JsonRows
from stratal.report.notes import JUDGE_SHARES, Note
from stratal.report.text import (
    ReportTable,
    capitalise,
    format_number,
    table_entry,
    table_of,
    value_and_interval,
    value_text,
)

# Names of the estimates that an answer about a judge compares.
CORRECTED = "corrected"
JUDGE_ONLY = "judge only"
LABELS_ONLY = "labels only"

# The rows of a judge's table by metric and class.
MetricRows = Mapping[tuple[str, str | None], Mapping[str, Any]]

# Number of judges with a sentence in an answer; `--details` prints all.
MAX_JUDGE_SENTENCES = 3


def rows_by_judge(rows: JsonRows) -> dict[str, dict[tuple[str, str | None], JsonMapping]]:
    """Return the rows of each judge by metric and class, without the cells of its confusion matrix."""
    grouped: dict[str, dict[tuple[str, str | None], JsonMapping]] = {}
    for row in rows:
        if row["metric"] != "share":
            grouped.setdefault(row["judge"], {})[row["metric"], row.get("class")] = row
    return grouped


def judge_sentences(rows: JsonRows, limit: int = MAX_JUDGE_SENTENCES) -> list[str]:
    """Return a sentence on the agreement of each judge with people's labels, and on several judges."""
    consistencies = []
    lines = []
    judges = {}
    for judge, metrics in rows_by_judge(rows).items():
        # Share of equal verdicts among all pairs of verdicts on a unit, by several judges or calls of one.
        if ("consistency", None) in metrics:
            consistencies.append(metrics.pop(("consistency", None)))
        if metrics:
            judges[judge] = metrics
    for judge, metrics in [*judges.items()][:limit]:
        lines.append(_judge_sentence(judge, metrics))
    if len(judges) > limit:
        lines[-1] += f" {len(judges) - limit} more: --details."
    lines += [
        f"Two judges agree with each other on {value_and_interval(row)} of the units."
        for row in consistencies
    ]
    return lines + _best_proxy_sentence(judges)


def _judge_sentence(judge: str, metrics: MetricRows) -> str:
    """Return the sentence on the agreement of a judge with people's labels, which are classes or numbers."""
    if ("agreement", None) not in metrics:
        metric_texts = [
            f"{name.replace('_', ' ')} {value_and_interval(row, is_share=False)}"
            for (name, _), row in metrics.items()
        ]
        return f"{judge!r} and people: {', '.join(metric_texts)}."
    agreement = value_and_interval(metrics["agreement", None])
    kappa = value_and_interval(metrics["kappa", None], is_share=False)
    sentence = f"{judge!r} agrees with people on {agreement} of units, with a kappa of {kappa}"
    if ("no_verdict", None) in metrics:
        share_text = value_text(metrics["no_verdict", None]["estimate"], is_share=True)
        sentence += f"; the {share_text} of units without a verdict are excluded"
    classes = _classes_by_rarity(metrics)
    if len(classes) != 2:
        return f"{sentence}."
    detected, other = classes
    sensitivity = value_and_interval(metrics["recall", detected])
    false_alarms = value_and_interval(_complement(metrics["recall", other]))
    return (
        f"{sentence}; it catches {sensitivity} of the {detected!r} (sensitivity), "
        f"with false alarms on {false_alarms} of the {other!r} (1 − specificity)."
    )


def _complement(row: JsonMapping) -> JsonDict:
    """Return estimate and interval of 1 minus a rate."""
    value = row["estimate"]
    ends = row["confidence_interval"]
    if value is not None:
        value = 1.0 - value
    if ends is not None:
        ends = [None if end is None else 1.0 - end for end in reversed(ends)]
    return {"estimate": value, "confidence_interval": ends}


# Verdicts that an answer has a fault, which a judge should detect.
_FAULT_WORDS = frozenset(("fail", "failed", "wrong", "incorrect", "bad", "unsafe", "no", "false", "0"))


def _classes_by_rarity(metrics: MetricRows) -> list[str]:
    """Return the classes with a known share: faults first, then by increasing share of the labels.

    Because faults come first whatever their share, sensitivity refers to the same class for all labels.
    """
    sort_keys = []
    for (metric, class_name), row in metrics.items():
        if metric == "prevalence" and class_name and row["estimate"] is not None:
            is_no_fault = class_name.casefold() not in _FAULT_WORDS
            sort_keys.append((is_no_fault, row["estimate"], class_name))
    return [class_name for _, _, class_name in sorted(sort_keys)]


def _best_proxy_sentence(judges: Mapping[str, MetricRows]) -> list[str]:
    """Return the sentence on the judge that correlates most with people's labels, if there are several.

    With a correlation r, a label is worth up to 1/(1 − r²) labels without a proxy (Cochran 1977, 7.3).
    """
    correlations = []
    for judge, metrics in judges.items():
        row = metrics.get(("pearson", None)) or metrics.get(("mcc", None))
        if row is not None and row["estimate"] is not None:
            correlations.append((row["estimate"], judge))
    if len(correlations) < 2:
        return []
    (correlation, best_judge), *others = sorted(correlations, reverse=True)
    others_text = ", ".join(f"{judge!r} {format_number(value)}" for value, judge in others)
    gain_text = ""
    if 0.0 < correlation < 1.0:
        gain = 1.0 / (1.0 - correlation**2)
        gain_text = f"; with it, a label is worth up to {gain:.1f} labels without a proxy"
    return [
        f"Best proxy on these labels: {best_judge!r}, correlation {format_number(correlation)} "
        f"({others_text}){gain_text}."
    ]


def judge_notes(rows: JsonRows) -> list[str]:
    """Return the note with three estimates of a share for the first judge; [] without two classes."""
    judge, metrics = next(iter(rows_by_judge(rows).items()))
    classes = _classes_by_rarity(metrics)
    if len(classes) != 2 or ("rogan_gladen", classes[0]) not in metrics:
        return []
    names = ("prevalence", "predicted_prevalence", "rogan_gladen")
    by_labels, by_judge_alone, rogan_gladen = (metrics[name, classes[0]] for name in names)
    judge_share = value_text(by_judge_alone["estimate"], is_share=True)
    text = (
        f"the share of {classes[0]!r} is {value_and_interval(by_labels)} by the labels. {judge!r} alone "
        f"gives {judge_share}, which is not corrected. Rogan & Gladen's correction gives "
        f"{value_and_interval(rogan_gladen)}, but assumes that the labels are a random sample. Use the "
        "first value"
    )
    return [Note(JUDGE_SHARES, text)]


def judge_tables(rows: JsonRows, level: str) -> list[ReportTable]:
    """Return the table of all quantities, and for each judge the confusion matrix with people's classes."""
    columns: JsonDict = {name: name for name in ("judge", "metric", "class")}
    columns |= {
        "estimate": partial(table_entry, name="estimate"),
        level: partial(table_entry, name="confidence_interval"),
        "n": "n",
    }
    tables = [table_of("Judge", [row for row in rows if row["metric"] != "share"], columns)]
    # By judge and people's label: the row of a confusion matrix.
    confusion: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        if row["metric"] == "share":
            matrix = confusion.setdefault(row["judge"], {})
            matrix_row = matrix.setdefault(row["class"], {"people's label": row["class"]})
            matrix_row[row["judged"]] = value_and_interval(row)
    for judge, matrix in confusion.items():
        title = f"Share of all units, by people and by {judge!r}"
        header = list(next(iter(matrix.values())))
        tables.append(table_of(title, list(matrix.values()), header))
    return tables


def judge_reading_lines(estimate: JsonMapping) -> list[str]:
    """Return the estimates of judge and labels, alone and combined, and the error of the judge alone."""
    rows = {row["name"]: row for row in estimate.get("judge_readings") or ()}
    if len(rows) < 2:
        return []
    is_share = estimate["share"]
    value_texts = [f"{name} {value_and_interval(row, is_share)}" for name, row in rows.items()]
    lines = [capitalise(f"{', '.join(value_texts)}.")]
    judge = rows.get(JUDGE_ONLY)
    reported = next(iter(rows.values()))
    ends = reported["confidence_interval"]
    # Without an interval, the judge's estimate has no sampling error. Its differences from the reported
    # limits are then the limits of the judge's error.
    if judge is None or judge["confidence_interval"] is not None:
        return lines
    if ends is None or None in ends or estimate.get("target") != "population":
        return lines
    scale = 1.0
    unit = ""
    if is_share:
        scale = 100.0
        unit = " points"
    errors = sorted(scale * (judge["estimate"] - end) for end in ends)
    name = repr(judge["judge"])
    if errors[0] <= 0.0 <= errors[1]:
        low, high = (f"{error:+.3g}" for error in errors)
        return [*lines, f"These labels do not show a bias of {name} alone: {low} to {high}{unit}."]
    direction = "low"
    if errors[0] > 0.0:
        direction = "high"
    smallest, largest = sorted(map(abs, errors))
    error = scale * abs(judge["estimate"] - reported["estimate"])
    return [
        *lines,
        f"{name} alone is {error:.3g}{unit} too {direction} ({smallest:.3g} to {largest:.3g}): report the "
        "first estimate.",
    ]
