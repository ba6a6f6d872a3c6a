"""An estimate in words, and tables of several: from the dict that is also printed as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from stratal.protocols import JsonDict, JsonMapping, JsonRows
from stratal.report.notes import (
    FIRST_MODEL,
    JUDGE_SHARES,
    RANDOM_ROWS,
    UNLABELLED,
    Note,
    unlabelled_text,
    without_code,
)
from stratal.report.text import (
    POINTS,
    Page,
    ReportTable,
    brief,
    capitalise,
    format_number,
    interval_text,
    level_text,
    noted,
    points_interval_text,
    points_text,
    table_of,
    value_and_interval,
    value_text,
    width_text,
)
from stratal.report.verdicts import UNDECIDED

# Names of the estimates that an answer about a judge compares.
CORRECTED = "corrected"
JUDGE_ONLY = "judge only"
LABELS_ONLY = "labels only"

# Metric and class → the row of a judge's table.
MetricRows = Mapping[tuple[str, str | None], Mapping[str, Any]]


def answer_sentences(findings: JsonMapping) -> list[str]:
    """Return the answer: the quantity with its interval, and how many random labels are as precise.

    Parameters
    ----------
    findings : dict
        `quantity`, `share`, and `estimate` (`Estimate.to_dict`).
    """
    estimate = {**findings["estimate"], "share": findings["share"]}
    board = estimate.get("leaderboard")
    if board:
        return [_best_model_sentence(board, estimate)]
    if findings.get("quantity"):
        estimate["quantity"] = findings["quantity"]
    return [_value_sentence(estimate), *_equivalent_labels(estimate)]


def _best_model_sentence(board: JsonRows, estimate: JsonMapping) -> str:
    """Return the sentence on the first of several models, and on those that are not distinguishable."""
    best = board[0]
    row = {**estimate, "estimate": best["mean"], "confidence_interval": best["confidence_interval"]}
    sentence = f"{best['model']} {value_with_interval(row)}, {_labels_text(estimate)}"
    # A model whose band of ranks begins with 1 may be the best too.
    others = [row["model"] for row in board[1:] if row["rank"] is None or row["rank"][0] == 1]
    if others:
        sentence += f"; not distinguishable from this model: {', '.join(others)}"
    return f"Best of {len(board)} models: {sentence}"


def _labels_text(estimate: JsonMapping) -> str:
    """Return the number of labels, and the number that a metric uses if it is smaller."""
    labelled = estimate.get("labels", estimate["n"])
    nonresponse = estimate.get("nonresponse") or {}
    labelled = nonresponse.get("labelled", labelled)
    if labelled == 1:
        noun = "label"
    else:
        noun = "labels"
    text = f"{labelled:,} {noun}"
    if estimate["n"] < labelled:
        text = f"{estimate['n']:,} of {text}"
    return f"{text}{clusters_text(estimate)}"


def clusters_text(counts: JsonMapping) -> str:
    """Return in how many clusters labels or drawn units are; "" if units were drawn one by one."""
    clusters = counts.get("clusters")
    if clusters is None:
        return ""
    noun = "cluster" if clusters == 1 else "clusters"
    return f" in {clusters:,} {noun}"


def _equivalent_labels(estimate: JsonMapping) -> list[str]:
    """Return the sentence on the number of random labels of the same precision, with its range.

    There is none if the number is unknown or below one (labels that do not vary), if all units are labelled,
    or if the labels are random and no proxy is used.
    """
    if is_census(estimate):
        return []
    if estimate.get("design") == "simple-random" and not estimate.get("lam"):
        return []
    equal = estimate.get("random_labels_of_equal_width")
    size = estimate.get("effective_sample_size")
    if equal is not None and equal >= 1:
        return [f"As precise as about {equal:,.0f} random labels"]
    if equal is not None or size is None or size < 1:
        return []
    ends = [f"{end:,.0f}" for end in estimate.get("effective_sample_size_interval") or ()]
    range_text = ""
    # Ends that are equal when rounded are no range.
    if len(set(ends)) == 2:
        range_text = f" ({' to '.join(ends)})"
    return [f"As precise as about {size:,.0f} random labels{range_text}"]


# Characters of a bar.
BAR_CHARACTERS = 24


def leaderboard_table(
    rows: JsonRows, confidence_level: float, *, share: bool, bars: bool = True
) -> ReportTable:
    """Return the table of a leaderboard.

    Parameters
    ----------
    rows : sequence of dict
        `rank` (first and last possible rank, or None), `model`, `mean`, `confidence_interval`, and `to_best`:
        difference to the best model and its interval, None for the best itself.
    confidence_level : float
    share : bool
        Whether the means are shares, shown in percent.
    bars : bool
        Whether to draw the intervals with characters, for output without figures.
    """
    intervals = [row["confidence_interval"] or [None] for row in rows]
    ends = [end for interval in intervals if None not in interval for end in interval] or [0.0, 1.0]
    lowest = min(ends)
    highest = max(ends)
    level = level_text(confidence_level)
    unit = {"share": share}

    def interval_entry(row: JsonMapping) -> str | None:
        interval = row["confidence_interval"]
        if interval is None:
            return None
        return interval_text(interval, share)

    def difference_entry(row: JsonMapping) -> str | None:
        if row["to_best"] is None:
            return None
        return _difference_text(row["to_best"], unit)

    def difference_interval_entry(row: JsonMapping) -> str | None:
        interval = row["to_best_interval"]
        if interval is None:
            return None
        return _difference_interval_text(interval, unit)

    columns: JsonDict = {
        "rank": lambda row: rank_text(row["rank"]),
        "model": "model",
        "mean": lambda row: value_text(row["mean"], share),
        level: interval_entry,
        "": lambda row: bar(row["confidence_interval"], row["mean"], lowest, highest),
        "to the best": difference_entry,
        f"its {level}": difference_interval_entry,
    }
    if not bars:
        del columns[""]
    return table_of("Leaderboard", rows, columns)


def rank_text(rank: Sequence[int] | None) -> str:
    """Return a rank, or the band of possible ranks."""
    if rank is None:
        return "–"
    first, last = rank
    if first == last:
        return str(first)
    return f"{first} to {last}"


def bar(interval: Sequence[float | None] | None, value: float, low: float, high: float) -> str:
    """Return an interval and its value as a line of characters from `low` to `high`."""
    if interval is None or None in interval or not high > low:
        return ""
    scale = (BAR_CHARACTERS - 1) / (high - low)
    left, right, middle = (round((float(x or 0.0) - low) * scale) for x in (*interval, value))
    line = [" "] * BAR_CHARACTERS
    line[left : right + 1] = "─" * (right - left + 1)
    line[left] = "├"
    line[right] = "┤"
    line[middle] = "●"
    return "".join(line)


# Tables that an estimate's dict may contain in addition to its strata, and their titles in a report.
TABLES = {
    "estimands": "Quantities",
    "outcomes": "Quantities",
    "metrics": "Metrics",
    "comparisons": "Differences",
    "questions": "Questions",
    "domains": "Groups",
    "judge": "Judge",
    "judge_groups": "Judge by group",
    "calibration": "Calibration",
}

# Noun of each choice in the sentence on methods.
_METHOD_NOUNS = {
    "design": "sample",
    "estimator": "estimator",
    "interval_method": "interval",
    "outcome": "outcome",
}
_HEADERS = {"standard_error": "standard error", "p_value": "p", "domain": "group"}


def _tables(result: JsonMapping) -> list[ReportTable]:
    """Return all tables of a result: strata, leaderboard, metrics, comparisons, judges and groups."""
    strata = result.get("strata", ())
    level = result["confidence_level"]
    tables = []
    if len(strata) > 1 and any(row["mean"] is not None for row in strata):
        tables.append(table_of("Strata", strata, _STRATA))
    if "leaderboard" in result:
        tables.append(leaderboard_table(result["leaderboard"], level, share=result["share"]))
    for kind, title in TABLES.items():
        if kind == "judge" and kind in result:
            tables += judge_tables(result[kind], level_text(level))
        elif kind in result:
            tables.append(estimates_table(title, result[kind], level))
    return tables


_STRATA = {
    "stratum": "name", "units": "size", "labels": "n", "mean": "mean", "sd": "standard_deviation",
}  # fmt: skip


def _forecast_sentences(estimate: JsonMapping) -> list[str]:
    """Return the sentence on the widths that more labels are expected to give; none if they are unknown."""
    rows: JsonRows = estimate.get("more_labels") or ()
    if len(rows) < 2:
        return []
    share = estimate["share"]
    first = rows[len(rows) // 2]
    last = rows[-1]
    if first["half_width"] == 0:
        return [f"With all {first['labels']:,} labels: exact"]
    sentence = f"With {first['labels']:,} labels: interval about {_width_of_forecast(first, share)} wide"
    if first is last:
        return [sentence]
    if last["half_width"] == 0:
        return [f"{sentence}; with all {last['labels']:,}: exact"]
    return [f"{sentence}; with {last['labels']:,}: {_width_of_forecast(last, share).removesuffix(POINTS)}"]


def _width_of_forecast(row: JsonMapping, share: bool) -> str:
    """Return the width of the interval that a number of labels is expected to give."""
    return width_text(2 * row["half_width"], share)


def answer_page(result: JsonMapping, quantity: str = "") -> Page:
    """Return the answer in at most `text.MAX_LINES` lines, which `estimate` prints by default.

    Parameters
    ----------
    result : dict
        `Estimate.to_dict`, or a table of several estimates; with `more_labels` and `requirements` if they are
        known.
    quantity : str
        The quantity of a table of several estimates.
    """
    level = result["confidence_level"]
    board = result.get("leaderboard", ())
    notes = _notes_of_answer(result)
    if board:
        notes = without_code(notes, FIRST_MODEL)
    # A sentence of the answer states the same as each of these notes.
    if len(result.get("judge_readings", ())) > 1:
        notes = without_code(notes, JUDGE_SHARES)
    if unlabelled(result):
        notes = without_code(notes, UNLABELLED)
    tables = []
    for kind in TABLES:
        rows = result.get(kind, ())
        # Judges and a single comparison are sentences, and each group in which a judge is worse is a note.
        is_sentence = kind in ("judge", "judge_groups") or (kind == "comparisons" and len(rows) == 1)
        if not rows or is_sentence:
            continue
        if kind == "comparisons" and board:
            tables.append(leaderboard_table(board, level, share=result["share"]))
        else:
            tables.append(_table_lowest_first(rows, kind, level))
    warned = result.get("warnings", ())
    return brief(Page(lines=_answer_lines(result, quantity, warned[:1]), tables=tables, notes=noted(notes)))


def details_page(result: JsonMapping, quantity: str = "") -> Page:
    """Return the answer with the methods, all warnings and notes, and all rows of all tables.

    The parameters are those of `answer_page`.
    """
    lines = _answer_lines(result, quantity, result.get("warnings", ()))
    if "estimate" in result:
        if "leaderboard" in result:
            lines += [_value_sentence(result), *_equivalent_labels(result)]
        lines.append(_method_sentence(result))
        if result.get("lam"):
            lines.append(_lam_text(result))
    return Page(lines=lines, tables=_tables(result), notes=noted(_notes_of_answer(result)))


def _answer_lines(result: JsonMapping, quantity: str, warned: Sequence[str]) -> list[str]:
    """Return the sentences of the answer, with the warnings in `warned`."""
    lines = []
    if quantity:
        lines.append(quantity)
    lines += verdict_lines(result)
    board = result.get("leaderboard", ())
    if "estimate" in result:
        lines = sentences(result, details=False, equivalent_labels=not board)
        # With several models, the facts about a single one are part of the details only.
        if board:
            lines[0] = _best_model_sentence(board, result)
        else:
            lines += _forecast_sentences(result)
    elif result.get("judge"):
        lines = [*judge_sentences(result["judge"]), *lines]
    if "unscored" in result and "estimate" not in result:
        lines += _unscored_lines(result["unscored"])
    warnings = [f"{text[:1].upper()}{text[1:]}." for text in warned]
    omitted = len(result.get("warnings", ())) - len(warned)
    if omitted:
        warnings[-1] = f"{warnings[-1][:-1]} ({omitted} more: --details)."
    # Warnings follow the sentence with the value; a table of several estimates has no such sentence.
    if "estimate" in result:
        lines[1:1] = warnings
    else:
        lines += warnings
    if "roles" in result:
        sentence = result["roles"]["sentence"]
        lines.append(f"{sentence[:1].upper()}{sentence[1:]}.")
    if "post_stratified" in result:
        weighted = result["post_stratified"]
        lines.append(f"Weighted by {weighted['by']}: {value_with_interval(weighted)}.")
    sentence_on_groups = groups_sentence(result)
    if sentence_on_groups is not None:
        lines.append(sentence_on_groups)
    comparisons = result.get("comparisons", ())
    if len(comparisons) == 1:
        lines.append(_comparison_sentence(comparisons[0], result["confidence_level"]))
    return lines


def _notes_of_answer(result: JsonMapping) -> list[str]:
    """Return the notes, without those that the sentences of an answer contain."""
    warned = result.get("warnings", ())
    notes = [note for note in result.get("notes", ()) if note not in warned]
    if "roles" not in result:
        return notes
    return [*result["roles"]["notes"], *without_code(notes, RANDOM_ROWS)]


def _table_lowest_first(rows: JsonRows, kind: str, level: float) -> ReportTable:
    """Return a table of estimates; the table of groups begins with the lowest."""
    title = TABLES[kind]
    if kind == "domains":
        defined = [row for row in rows if row["estimate"] is not None]
        undefined = [row for row in rows if row["estimate"] is None]
        rows = sorted(defined, key=lambda row: row["estimate"]) + undefined
        title = f"{title}, the lowest first"
    return estimates_table(title, rows, level)


def _comparison_sentence(row: JsonMapping, level: float) -> str:
    """Return the comparison of two models in one line; shares in percentage points."""
    first = row["a"]
    second = row["b"]
    ends = row["confidence_interval"]
    value = row["estimate"]
    if ends is None or value is None:
        return f"{first} and {second}: undecided (no interval)."
    between = f"{first} − {second}: {_difference_text(value, row)}"
    between += f" ({level_text(level)} {_difference_interval_text(ends, row)})"
    low, high = ends
    if low is not None and low > 0:
        return f"{first} is above {second}. {between}"
    if high is not None and high < 0:
        return f"{second} is above {first}. {between}"
    more_labels = row.get("more_labels")
    if more_labels is None:
        return f"{first} and {second}: undecided. {between}"
    return (
        f"{first} and {second}: undecided; about {more_labels:,} more labels may be enough to decide. "
        f"{between}"
    )


def _difference_text(value: float | None, row: JsonMapping) -> str:
    """Return a difference; that of shares in percentage points."""
    if row.get("share") and value is not None:
        return f"{points_text(value)}{POINTS}"
    return format_number(value)


def _difference_interval_text(ends: Sequence[float | None], row: JsonMapping) -> str:
    """Return the interval of a difference; that of shares in percentage points."""
    if row.get("share"):
        return points_interval_text(ends)
    return interval_text(ends)


def requirement_remark(requirement: JsonMapping) -> str:
    """Return the reason for a verdict, or the labels that would decide an undecided requirement; else ""."""
    if "reason" in requirement:
        return str(requirement["reason"])
    if requirement["verdict"] != UNDECIDED or requirement.get("estimate", 0.0) is None:
        return ""
    more_labels = requirement["more_labels"]
    if more_labels is None:
        return "if the estimate stays the same, no number of labels would decide it"
    if more_labels == 1:
        noun = "label"
    else:
        noun = "labels"
    return f"about {more_labels:,} more {noun} would decide it if the estimate stays the same"


def requirement_text(requirement: JsonMapping) -> str:
    """Return a requirement with its verdict."""
    text = f"{requirement['required']}: {requirement['verdict']}"
    remark = requirement_remark(requirement)
    if not remark:
        return text
    if "reason" in requirement:
        return f"{text} ({remark})"
    return f"{text}; {remark}"


def verdict_lines(estimate: JsonMapping) -> list[str]:
    """Return a sentence for the verdict on each requirement."""
    exact = is_census(estimate) and estimate.get("target") == "population"
    if exact:
        suffix = f", exactly for these {estimate['population_size']:,} units"
    else:
        suffix = ""
    return [
        f"Required {requirement_text(requirement)}{suffix}."
        for requirement in estimate.get("requirements", ())
    ]


# Entries of a row that the table shows in another form, or a sentence above it.
_UNPRINTED_NAMES = ("more_labels", "share", "estimator", "lam", "interval_method")


def estimates_table(title: str, rows: JsonRows, confidence_level: float) -> ReportTable:
    """Return a table of several estimates: metrics, comparisons, domains.

    Entries that are dicts or tuples are left out. Shares are in percent, and their differences in percentage
    points.
    """
    names = dict.fromkeys(name for row in rows for name in row if not isinstance(row[name], tuple | dict))
    headers = _HEADERS | {"confidence_interval": level_text(confidence_level)}
    columns: JsonDict = {
        headers.get(name, name.replace("_", " ")): name for name in names if name not in _UNPRINTED_NAMES
    }
    # Undefined estimates are shown as a dash.
    if "estimate" in columns:
        columns["estimate"] = partial(table_entry, name="estimate")
        columns[headers["confidence_interval"]] = partial(table_entry, name="confidence_interval")
    if "standard error" in columns:
        columns["standard error"] = partial(table_entry, name="standard_error")
    return table_of(title, rows, columns)


def table_entry(row: JsonMapping, name: str) -> Any:
    """Return an entry of a table of estimates as text: in percent, in percentage points, or as a number."""
    value = row.get(name)
    if value is None and name == "estimate":
        return "–"
    if value is None or not row.get("share"):
        return value
    if name == "standard_error":
        return f"{points_text(value)}{POINTS}"
    is_difference = "p_value" in row
    if name == "estimate" and is_difference:
        return _difference_text(value, row)
    if name == "estimate":
        return value_text(value, share=True)
    if is_difference:
        return _difference_interval_text(value, row)
    return interval_text(value, share=True)


def sentences(estimate: JsonMapping, *, details: bool = True, equivalent_labels: bool = True) -> list[str]:
    """Return an estimate in sentences: value, judge, facts, precision, missing labels and verdicts.

    `details` adds the standard error, the methods and λ. `equivalent_labels` adds the number of random labels
    of the same precision.
    """
    lines = [_value_sentence(estimate)]
    if estimate["estimate"] is None:
        return lines
    if "unscored" in estimate:
        lines += _unscored_lines(estimate["unscored"])
    lines += _judge_reading_lines(estimate)
    if estimate.get("judge"):
        lines += judge_sentences(estimate["judge"])
    counts = estimate.get("differing")
    if counts and counts["items"]:
        lines[-1] += (
            f" They differ on {counts['items']:,} of {counts['labelled']:,} labelled items "
            "(--disagreements FILE.csv writes them)."
        )
    if details:
        lines.append(_method_sentence(estimate))
    if equivalent_labels:
        lines += _equivalent_labels(estimate)
    if unlabelled(estimate):
        lines.append(missing_text(estimate["nonresponse"], share=bool(estimate.get("share"))))
    lines += verdict_lines(estimate)
    if "disagreements" in estimate:
        file = estimate["disagreements"]
        # Only a table has roles, and it has the labels in the same file.
        if "roles" in estimate:
            advice = "review them, and correct the labels in the table."
        else:
            advice = "fill in the last column of the file, and pass the file after the labels."
        lines.append(f"Disagreements: {file['items']:,} items in {file['file']}; {advice}")
    if details and estimate.get("lam"):
        lines.append(_lam_text(estimate))
    return lines


def lam_of_groups(result: JsonMapping) -> str | None:
    """Return the λ of the means of groups; "" without a proxy, None if all units have the same estimator."""
    rows = [row for row in result.get("domains", ()) if "estimator" in row]
    if not rows or "estimate" not in result:
        return None
    corrected_rows = [row["lam"] for row in rows if row["lam"]]
    if bool(corrected_rows) == bool(result.get("lam")):
        return None
    return _lam_range(corrected_rows)


def groups_sentence(result: JsonMapping) -> str | None:
    """Return how the means of groups are estimated, if the estimate of all units is another one."""
    lam = lam_of_groups(result)
    if lam is None:
        return None
    if not lam:
        return "Groups: from the weighted labels alone, without the proxy"
    return (
        f"Groups: corrected by the proxy (λ = {lam}); --estimator horvitz-thompson gives the weighted means"
    )


def _lam_range(lam_of_rows: Sequence[Sequence[float]]) -> str:
    """Return the λ of each proxy that is used, with the range where the groups' λ differ."""
    texts = []
    for lam_of_proxy in zip(*lam_of_rows, strict=True):
        ends = dict.fromkeys(map(format_number, (min(lam_of_proxy), max(lam_of_proxy))))
        if any(lam_of_proxy):
            texts.append(" to ".join(ends))
    return ", ".join(texts)


def _lam_text(estimate: JsonMapping) -> str:
    return "λ = " + ", ".join(map(format_number, estimate["lam"]))


def _undefined_sentence(estimate: JsonMapping) -> str:
    """Return the sentence that a quantity is undefined, with the interval of its possible values if known."""
    name = str(estimate.get("quantity") or "estimate")
    sentence = f"{capitalise(name)} is undefined"
    ends = estimate.get("confidence_interval")
    if ends is None:
        return sentence
    interval = interval_text(ends, bool(estimate.get("share")))
    return f"{sentence} ({level_text(estimate['confidence_level'])} {interval})"


def _value_sentence(estimate: JsonMapping) -> str:
    """Return the quantity, its value with the interval, and the number of labels."""
    if estimate["estimate"] is None:
        return _undefined_sentence(estimate)
    if "probability" in estimate:
        name = f"{estimate['probability']:g} quantile:"
    else:
        name = str(estimate.get("quantity") or "estimate")
    answer = _census_value_text(estimate)
    if answer is None and estimate["confidence_interval"] is None:
        answer = f"{_value_text(estimate)}, {_labels_text(estimate)}; {_no_interval_reason(estimate)}"
    elif answer is None:
        answer = f"{value_with_interval(estimate)}, {_labels_text(estimate)}"
    return f"{capitalise(name)} {answer}"


def _judge_reading_lines(estimate: JsonMapping) -> list[str]:
    """Return the estimates of judge and labels, alone and combined, and the error of the judge alone."""
    rows = {row["name"]: row for row in estimate.get("judge_readings") or ()}
    if len(rows) < 2:
        return []
    share = estimate["share"]
    texts = [f"{name} {value_and_interval(row, share)}" for name, row in rows.items()]
    line = f"{', '.join(texts)}."
    lines = [capitalise(line)]
    judge = rows.get(JUDGE_ONLY)
    reported = next(iter(rows.values()))
    ends = reported["confidence_interval"]
    if judge is None or judge["confidence_interval"] is not None:
        return lines
    if ends is None or None in ends or estimate.get("target") != "population":
        return lines
    scale = 1.0
    unit = ""
    if share:
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
    near, far = sorted(map(abs, errors))
    value = scale * abs(judge["estimate"] - reported["estimate"])
    return [
        *lines,
        f"{name} alone is {value:.3g}{unit} too {direction} ({near:.3g} to {far:.3g}): report the first "
        "estimate.",
    ]


def is_census(estimate: JsonMapping) -> bool:
    """Return whether every unit of the population is labelled."""
    labelled = (estimate.get("nonresponse") or {}).get("labelled")
    return labelled is not None and labelled == estimate.get("population_size")


def _census_value_text(estimate: JsonMapping) -> str | None:
    """Return the value of a (nearly complete) census with its target; None of other samples."""
    size = estimate.get("population_size")
    if is_census(estimate):
        labelled_text = f"all {size:,} units are labelled"
    elif _is_of_most_units(estimate):
        labelled_text = f"{estimate['nonresponse']['labelled']:,} of {size:,} units are labelled"
    else:
        return None
    if estimate.get("target") == "superpopulation":
        return (
            f"{value_with_interval(estimate)}; {labelled_text}, and the interval is for the superpopulation "
            "from which they come"
        )
    value = value_text(estimate["estimate"], estimate.get("share", False))
    return f"{value}, exact for these {size:,} units, which are all labelled"


def _is_of_most_units(estimate: JsonMapping) -> bool:
    """Return whether most units are labelled, and the target is nevertheless the superpopulation.

    The interval could be taken for one of these units, which would be narrower.
    """
    labelled = (estimate.get("nonresponse") or {}).get("labelled")
    if estimate.get("target") != "superpopulation" or labelled is None:
        return False
    return bool(estimate["population_size"] / 2 <= labelled)


def value_with_interval(estimate: JsonMapping) -> str:
    """Return an estimate's value and its interval in parentheses, or the reason why there is none."""
    ends = estimate["confidence_interval"]
    if ends is None:
        return f"{_value_text(estimate)}; {_no_interval_reason(estimate)}"
    if _is_difference_of_shares(estimate):
        interval = _difference_interval_text(ends, estimate)
    else:
        interval = interval_text(ends, bool(estimate.get("share")))
    return f"{_value_text(estimate)} ({level_text(estimate['confidence_level'])} {interval})"


def _value_text(estimate: JsonMapping) -> str:
    """Return the value of an estimate: in percent, in percentage points, or as a number."""
    value = estimate["estimate"]
    if _is_difference_of_shares(estimate):
        return _difference_text(value, estimate)
    return value_text(value, bool(estimate.get("share")))


def _is_difference_of_shares(estimate: JsonMapping) -> bool:
    """Return whether an estimate is a difference of two shares, whose bounds are −1 and 1."""
    low_bound, _ = estimate.get("bounds") or (0.0, 1.0)
    return bool(estimate.get("share")) and low_bound < 0


def _no_interval_reason(estimate: JsonMapping) -> str:
    """Return the reason why an estimate has no interval."""
    return f"no interval: {estimate.get('no_interval', 'it is undefined')}"


def _method_sentence(estimate: JsonMapping) -> str:
    counted = estimate["n"]
    labelled = estimate.get("labels", estimate["n"])
    labels = f"{labelled:,} labels"
    if estimate.get("population_size") is not None:
        labels += f" of {estimate['population_size']:,.0f} units"
    if counted < labelled:
        labels += f", {counted:,} of them in its denominator"
    nouns = dict(_METHOD_NOUNS)
    if labelled == estimate.get("population_size") and estimate.get("target") == "superpopulation":
        # All units were labelled, and none was drawn.
        nouns.pop("design")
    methods = [f"{_method_name(estimate[name])} {noun}" for name, noun in nouns.items() if estimate.get(name)]
    if "target" in estimate:
        methods.append(f"target: {estimate['target']}")
    text = f"{labels}; {', '.join(methods)}"
    if "standard_error" not in estimate:
        return text
    value = estimate["standard_error"]
    if estimate.get("share") and value is not None:
        return f"Standard error {points_text(value)}{POINTS}; {text}"
    return f"Standard error {format_number(value)}; {text}"


# Methods that are named after persons.
_PROPER_NAMES = {
    "horvitz-thompson": "Horvitz–Thompson",
    "clopper-pearson": "Clopper–Pearson",
    "korn-graubard": "Korn–Graubard",
    "hajek": "Hájek",
    "wilson": "Wilson",
    "blaker": "Blaker",
}


def _method_name(method: str) -> str:
    """Return the name of a method with capital letters if it is named after persons."""
    for name, proper_name in _PROPER_NAMES.items():
        method = method.replace(name, proper_name)
    return method


def unlabelled(estimate: JsonMapping) -> int:
    """Return the number of drawn units without a label."""
    counts = estimate.get("nonresponse") or {"drawn": 0, "labelled": 0}
    return int(counts["drawn"] - counts["labelled"])


def missing_text(counts: JsonMapping, *, share: bool) -> str:
    """Return the sentences on drawn units without a label, with the worst case of the estimate if known.

    `share` states whether the estimate is a share, shown in percent.
    """
    ends = counts.get("worst_bounds")
    text = f"{unlabelled_text(counts['drawn'], counts['labelled'])}."
    if ends is None:
        return text
    low, high = (value_text(end, share) for end in ends)
    return (
        f"{text} If all units without a label had the lowest possible outcome, the estimate without a proxy "
        f"would be {low}; with the highest possible outcome, {high}."
    )


def unscored_lines(
    failed: Mapping[str, int], missing: Mapping[str, int], counted: str | None = None
) -> list[str]:
    """Return the sentences on failed answers and on missing scores, if there are any.

    Parameters
    ----------
    failed : mapping of str to int
        Failed answers by model; the name of a single model is "".
    missing : mapping of str to int
        Missing scores by the metric's column.
    counted : str, optional
        The value of failed answers in an estimate, as text.
    """
    lines = []
    counts = []
    for model, n in failed.items():
        if n and model:
            counts.append(f"{n:,} of {model!r}")
        elif n:
            counts.append(f"{n:,}")
    if counts:
        if sum(failed.values()) == 1:
            noun = "answer"
        else:
            noun = "answers"
        if counted is None:
            ending = ""
        else:
            ending = f"; {counted}"
        lines.append(f"{', '.join(counts)} {noun} failed (an error, or no output){ending}.")
    lacking = [f"{n:,} of {name!r}" for name, n in missing.items() if n]
    if lacking:
        lines.append(f"Missing scores: {', '.join(lacking)}.")
    return lines


def _unscored_lines(counts: JsonMapping) -> list[str]:
    return unscored_lines(counts["failed_answers"], counts["missing_scores"], counts["counted"])


# Number of judges with a sentence in an answer; `--details` has all.
MAX_JUDGE_SENTENCES = 3


def by_judge(rows: JsonRows) -> dict[str, dict[tuple[str, str | None], JsonMapping]]:
    """Return the rows of each judge by metric and class, without the cells of its table with people."""
    rows_by_judge: dict[str, dict[tuple[str, str | None], JsonMapping]] = {}
    for row in rows:
        if row["metric"] != "share":
            rows_by_judge.setdefault(row["judge"], {})[row["metric"], row.get("class")] = row
    return rows_by_judge


def judge_sentences(rows: JsonRows, limit: int = MAX_JUDGE_SENTENCES) -> list[str]:
    """Return a sentence on the agreement of each judge with the labels, and the comparison of several judges.

    The rarer one of two classes counts as the class that a judge detects.
    """
    agreements = []
    lines = []
    judges = {}
    for judge, metrics in by_judge(rows).items():
        if ("consistency", None) in metrics:
            agreements.append(metrics.pop(("consistency", None)))
        if metrics:
            judges[judge] = metrics
    for judge, metrics in [*judges.items()][:limit]:
        lines.append(_judge_sentence(judge, metrics))
    if len(judges) > limit:
        lines[-1] += f" {len(judges) - limit} more: --details."
    lines += [
        f"Two judges agree with each other on {value_and_interval(row)} of the units." for row in agreements
    ]
    return lines + _best_proxy_sentence(judges)


def _judge_sentence(judge: str, metrics: MetricRows) -> str:
    if ("agreement", None) not in metrics:
        parts = [
            f"{name.replace('_', ' ')} {value_and_interval(row, share=False)}"
            for (name, _), row in metrics.items()
        ]
        return f"{judge!r} and people: {', '.join(parts)}."
    agreement = value_and_interval(metrics["agreement", None])
    kappa = value_and_interval(metrics["kappa", None], share=False)
    sentence = f"{judge!r} agrees with people on {agreement} of units, with a kappa of {kappa}"
    if ("no_verdict", None) in metrics:
        share = value_text(metrics["no_verdict", None]["estimate"], share=True)
        sentence += f"; the {share} of units without a verdict are excluded"
    classes = _classes_by_rarity(metrics)
    if len(classes) != 2:
        return f"{sentence}."
    caught, other = classes
    sensitivity = value_and_interval(metrics["recall", caught])
    false_alarms = value_and_interval(_complement(metrics["recall", other]))
    return (
        f"{sentence}; it catches {sensitivity} of the {caught!r} (sensitivity), "
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


# Verdicts on an answer that mean a fault, which a judge should detect.
_FAULT_WORDS = frozenset(("fail", "failed", "wrong", "incorrect", "bad", "unsafe", "no", "false", "0"))


def _classes_by_rarity(metrics: MetricRows) -> list[str]:
    """Return the classes with a known share: faults first, then in the order of their shares of the labels.

    The order of a verdict and its opposite does not depend on the labels, so that sensitivity refers to the
    same class in all requests.
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
    (best, name), *others = sorted(correlations, reverse=True)
    rest = ", ".join(f"{judge!r} {format_number(value)}" for value, judge in others)
    if 0.0 < best < 1.0:
        gain = f"; with it, a label is worth up to {1.0 / (1.0 - best**2):.1f} labels without a proxy"
    else:
        gain = ""
    return [f"Best proxy on these labels: {name!r}, correlation {format_number(best)} ({rest}){gain}."]


def judge_notes(rows: JsonRows) -> list[str]:
    """Return the note with three estimates of a share for the first judge; none for more than two classes."""
    judge, metrics = next(iter(by_judge(rows).items()))
    classes = _classes_by_rarity(metrics)
    if len(classes) != 2 or ("rogan_gladen", classes[0]) not in metrics:
        return []
    names = ("prevalence", "predicted_prevalence", "rogan_gladen")
    by_labels, by_judge_alone, rogan_gladen = (metrics[name, classes[0]] for name in names)
    judge_share = value_text(by_judge_alone["estimate"], share=True)
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
    shares: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        if row["metric"] == "share":
            lines = shares.setdefault(row["judge"], {})
            line = lines.setdefault(row["class"], {"people's label": row["class"]})
            line[row["judged"]] = value_and_interval(row)
    for judge, lines in shares.items():
        title = f"Share of all units, by people and by {judge!r}"
        judged = next(iter(lines.values()))
        tables.append(table_of(title, list(lines.values()), list(judged)))
    return tables
