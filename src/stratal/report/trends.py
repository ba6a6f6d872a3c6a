"""Pages of trends: the verdict, the latest level with its changes, all waves, and the drift of the score."""

from __future__ import annotations

from collections.abc import Sequence

from stratal.protocols import JsonDict, JsonMapping
from stratal.report.document import sections_html
from stratal.report.drawings import forest_drawing
from stratal.report.estimates import bar
from stratal.report.text import (
    Page,
    ReportTable,
    format_notes,
    format_number,
    interval_text,
    level_text,
    signed_text,
    table_of,
    value_and_interval,
    value_text,
)

# The quantity of rows with the level (mean outcome) of the latest wave; other rows have changes of it.
_LEVEL = "level"

# Entries of a row that do not identify its group, model or metric.
_VALUE_FIELDS = frozenset(
    (
        "quantity",
        "reference",
        "estimate",
        "standard_error",
        "confidence_interval",
        "p_value",
        "same_items",
        "n",
    )
)

# Largest number of waves in the table of a terminal; the JSON output contains all.
_MAX_TABLE_WAVES = 16


def trend_page(result: JsonMapping, *, details: bool = True) -> Page:
    """Return the page of `Trend.to_dict`.

    Without details, the table has only the latest waves.
    """
    tables = [_wave_table(result, details=details)]
    groups = [row for row in result["rows"] if _row_label(row)]
    if groups:
        tables.append(_group_table(result, groups))
    return Page(lines=_trend_sentences(result), tables=tables, notes=format_notes(result["notes"]))


def trend_html(result: JsonMapping, version: str) -> str:
    """Return a self-contained HTML page of `Trend.to_dict`."""
    # Shares are printed in percent.
    is_share = result["share"]
    lines = _trend_sentences(result)
    sections = [Page(title="Answer", name="answer", lines=lines, notes=result["notes"])]
    for index, label in enumerate(dict.fromkeys(_row_label(row) for row in result["rows"])):
        rows = [
            {
                "name": wave["wave"],
                **_wave_estimate(wave, label),
                # The drawing emphasises the latest wave.
                "reported": wave["wave"] == result["latest"],
            }
            for wave in result["waves"]
        ]
        title = "Level by wave"
        if label:
            title += f": {label}"
        drawing = forest_drawing(f"wave-{index}", title, rows, is_share)
        sections.append(Page(title=title, name=f"waves-{index}", drawings=[drawing]))
    sections.append(Page(title="Waves", name="waves", tables=[_wave_table(result, details=True)]))
    changes = [row for row in result["rows"] if row["quantity"] != _LEVEL]
    if changes:
        table = _group_table(result, result["rows"])
        sections.append(Page(title="Latest wave", name="changes", tables=[table]))
    if result["score"]:
        sections.append(Page(title="Score, without labels", name="score", tables=[_score_table(result)]))
    n_labels = sum(wave["labels"] for wave in result["waves"])
    return sections_html(
        title=f"What changed since {result['waves'][0]['wave']}?",
        subtitle=f"{n_labels:,} labels in {len(result['waves'])} waves",
        answer=lines[0],
        sections=sections,
        kind="stratal-trend",
        version=version,
    )


def _row_label(row: JsonMapping) -> str:
    """Return the group, model or metric of a row; empty for the mean of all items."""
    return " ".join(
        str(value) for name, value in row.items() if name not in _VALUE_FIELDS and value is not None
    )


def _wave_estimate(wave: JsonMapping, label: str) -> JsonDict:
    """Return estimate and interval of the row with a label, which are None if the wave has no such row."""
    for row in wave["estimates"]:
        if _row_label(row) == label:
            return {"estimate": row["estimate"], "confidence_interval": row["confidence_interval"]}
    return {"estimate": None, "confidence_interval": None}


def _trend_sentences(result: JsonMapping) -> list[str]:
    """Return the verdicts, the latest level with its changes, and the drift of the score."""
    is_share = result["share"]
    lines = [_alarm_sentence(alarm) for alarm in result.get("alarms", ())]
    first_label = _row_label(result["rows"][0])
    rows = [row for row in result["rows"] if _row_label(row) == first_label]
    n_labels = next(wave["labels"] for wave in result["waves"] if wave["wave"] == result["latest"])
    subject = "In"
    if first_label:
        subject = f"{first_label} in"
    latest_value = value_and_interval(rows[0], is_share)
    lines.append(f"{subject} {_wave_text(result['latest'])}: {latest_value}, from {n_labels:,} labels.")
    lines += [_change_sentence(row, is_share) for row in rows[1:]]
    confidence = level_text(result["confidence_level"])
    if len(result["rows"]) > 1:
        lines.append(
            f"The {len(result['rows'])} intervals of the latest wave hold simultaneously ({confidence}s)."
        )
    if "pooled" in result:
        lines.append(_pooled_sentence(result["pooled"], is_share, confidence))
    return [*lines, *_score_sentences(result)]


def _pooled_sentence(pooled: JsonMapping, is_share: bool, confidence: str) -> str:
    """Return the sentence on the level pooled over waves, with its assumption."""
    value = value_text(pooled["estimate"], is_share)
    if pooled["confidence_interval"] is None:
        return (
            f"Pooled with earlier waves: {value}. This is more precise if the level changes slowly, and only "
            "slightly less precise otherwise. It has no interval."
        )
    interval = interval_text(pooled["confidence_interval"], is_share)
    if is_share:
        change = format_number(100 * pooled["max_change"]) + " points"
    else:
        change = str(pooled["max_change"])
    return (
        f"Pooled with earlier waves: {value} ({interval}; {confidence}), if the level changes by at most "
        f"{change} between two waves."
    )


def _alarm_sentence(alarm: JsonMapping) -> str:
    """Return the verdict on a requirement of all waves."""
    error_text = f"probability of any false alarm at most {100 * alarm['error']:.3g}%"
    threshold_text = f"alarm at {format_number(alarm['threshold'])}; {error_text}"
    reference_text = ""
    if alarm["reference"]:
        reference_text = f" since {_range_text(alarm['reference'])}"
    verdict = f"Required {alarm['requirement']}{reference_text}: {alarm['verdict']}"
    if not alarm["waves"]:
        return f"{verdict}; no wave has been tested yet."
    if alarm["wave"] is None:
        return f"{verdict} (e-value {format_number(alarm['e_values'][-1])}, {threshold_text})."
    e_value = alarm["e_values"][alarm["waves"].index(alarm["wave"])]
    e_value_text = "∞"
    if e_value is not None:
        e_value_text = format_number(e_value)
    return f"{verdict} in {alarm['wave']} (e-value {e_value_text}, {threshold_text})."


def _range_text(names: Sequence[str]) -> str:
    """Return the first and the last of consecutive waves as text."""
    if len(names) == 1:
        return names[0]
    return f"{names[0]} to {names[-1]}"


def _wave_text(name: str) -> str:
    """Return a wave's name, after "wave" if it is a number."""
    if name.isdigit():
        return f"wave {name}"
    return name


def _change_sentence(row: JsonMapping, is_share: bool) -> str:
    """Return a change in points or in the outcome's units, and its direction if the interval excludes 0."""
    ends = row["confidence_interval"]
    change = f"Since {_wave_text(row['reference'])}: {_change_text(row['estimate'], is_share)}"
    if ends is None or row["estimate"] is None:
        return f"{change}, no interval."
    low, high = ends
    limits = f"{_signed_change(low, is_share)} to {_signed_change(high, is_share)}"
    if low is not None and low > 0:
        verdict = "it rose"
    elif high is not None and high < 0:
        verdict = "it fell"
    else:
        verdict = "no clear change"
    return f"{change} ({limits}): {verdict}."


def _change_text(value: float | None, is_share: bool) -> str:
    """Return a change with its sign and, for shares, its unit."""
    text = _signed_change(value, is_share)
    if is_share:
        return f"{text} points"
    return text


def _signed_change(value: float | None, is_share: bool) -> str:
    """Return a change with its sign, of shares in percentage points; None is an infinite limit."""
    if value is None:
        return "unlimited"
    if is_share:
        return signed_text(100 * value, "+.1f")
    return signed_text(value, "+.3g")


def _score_sentences(result: JsonMapping) -> list[str]:
    """Return a line for each score with the change of its mean over all items."""
    lines = []
    for score in dict.fromkeys(row["score"] for row in result["score"]):
        rows = [row for row in result["score"] if row["score"] == score]
        last = rows[-1]
        mean_text = format_number(last["mean"])
        line = f"Score {score} of all items in {last['wave']}, without labels: mean {mean_text}"
        # With two waves, the previous one is the first.
        shifts = [("shift_since_previous", rows[-2]["wave"])]
        if len(rows) > 2:
            shifts.append(("shift_since_first", rows[0]["wave"]))
        for name, wave in shifts:
            if last[name] is not None:
                shift = signed_text(last[name], "+.2f")
                line += f", {shift} standard deviations since {wave}"
        lines.append(f"{line}. This does not estimate quality.")
    return lines


def _wave_table(result: JsonMapping, *, details: bool) -> ReportTable:
    """Return a row for each wave, with a bar; its intervals are those of the wave alone."""
    is_share = result["share"]
    first_label = _row_label(result["rows"][0])
    rows = [{**wave, **_wave_estimate(wave, first_label)} for wave in result["waves"]]
    title = "Waves"
    if not details and len(rows) > _MAX_TABLE_WAVES:
        title = f"Waves: the last {_MAX_TABLE_WAVES} of {len(rows)} (--details shows all)"
        rows = rows[-_MAX_TABLE_WAVES:]
    # The common scale of the bars.
    ends = [
        end for row in rows for end in row["confidence_interval"] or (row["estimate"],) if end is not None
    ]
    low = min(ends, default=0.0)
    high = max(ends, default=1.0)

    def estimate_entry(row: JsonMapping) -> str | None:
        if row["estimate"] is None:
            return None
        return value_text(row["estimate"], is_share)

    def interval_entry(row: JsonMapping) -> str | None:
        if row["confidence_interval"] is None:
            return None
        return interval_text(row["confidence_interval"], is_share)

    columns: JsonDict = {
        "wave": "wave",
        "labels": "labels",
        "estimate": estimate_entry,
        level_text(result["confidence_level"]): interval_entry,
        "": lambda row: bar(row["confidence_interval"], row["estimate"], low, high),
    }
    return table_of(title, rows, columns)


def _group_table(result: JsonMapping, rows: Sequence[JsonMapping]) -> ReportTable:
    """Return the level of each group in the latest wave, and its changes."""
    is_share = result["share"]

    def value_entry(row: JsonMapping) -> str:
        if row["quantity"] == _LEVEL or row["confidence_interval"] is None:
            return value_and_interval(row, is_share)
        low, high = row["confidence_interval"]
        limits = f"{_signed_change(low, is_share)} to {_signed_change(high, is_share)}"
        return f"{_change_text(row['estimate'], is_share)} ({limits})"

    names = list(dict.fromkeys(_row_label(row) for row in rows))
    table_rows: list[JsonDict] = [{"group": name or "all"} for name in names]
    columns = {"group": "group", "level": "level"}
    for row in rows:
        if row["quantity"] == _LEVEL:
            column = "level"
        else:
            column = f"since {row['reference']}"
        table_rows[names.index(_row_label(row))][column] = value_entry(row)
        columns[column] = column
    return table_of(f"{result['latest']}, simultaneous intervals", table_rows, columns)


def _score_table(result: JsonMapping) -> ReportTable:
    """Return mean and spread of the scores by wave."""
    columns = {
        "score": "score",
        "wave": "wave",
        "mean": "mean",
        "sd": "standard_deviation",
        "shift since the previous wave (sd)": "shift_since_previous",
        "shift since the first wave (sd)": "shift_since_first",
    }
    return table_of("Mean of the score over all items (does not estimate quality)", result["score"], columns)
