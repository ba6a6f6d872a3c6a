"""An estimate in words, and tables of several: from the dict that is also printed as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from stratal.protocols import JsonDict, JsonMapping, JsonRows
from stratal.report.notes import FIRST_MODEL, JUDGE_SHARES, RANDOM_ROWS, UNLABELLED, Note, without_code
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
    value_text,
    width_text,
)

# Names of estimates that an answer about a judge has side by side.
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
        return [_best_model(board, estimate)]
    if findings.get("quantity"):
        estimate["quantity"] = findings["quantity"]
    return [_value_sentence(estimate), *_equivalent_labels(estimate)]


def _best_model(board: JsonRows, estimate: JsonMapping) -> str:
    """Return the sentence on the first of several models, and on those that are not distinguishable."""
    best = board[0]
    row = {**estimate, "estimate": best["mean"], "confidence_interval": best["confidence_interval"]}
    sentence = f"{best['model']} {value_with_interval(row)}, {_labels_text(estimate)}"
    others = [row["model"] for row in board[1:] if row["rank"] is None or row["rank"][0] == 1]
    if others:
        sentence += f"; not distinguishable from it: {', '.join(others)}"
    return f"Best of {len(board)} models: {sentence}"


def _labels_text(estimate: JsonMapping) -> str:
    """Return the number of labels, and of those that count for a metric if they are fewer."""
    labelled = (estimate.get("nonresponse") or {}).get("labelled", estimate.get("labels", estimate["n"]))
    noun = "label" if labelled == 1 else "labels"
    if estimate["n"] < labelled:
        return f"{estimate['n']:,} of {labelled:,} {noun}"
    return f"{labelled:,} {noun}"


def _equivalent_labels(estimate: JsonMapping) -> list[str]:
    """Return the sentence on the number of random labels of the same precision, with its range.

    No sentence where that is unknown, where all units are labelled, or where the labels are random and no
    proxy is used.
    """
    if is_census(estimate):
        return []
    if estimate.get("design") == "simple-random" and not estimate.get("lam"):
        return []
    equal = estimate.get("random_labels_of_equal_width")
    size = estimate.get("effective_sample_size")
    if equal is not None:
        return [f"As precise as about {equal:,.0f} random labels"]
    if size is None:
        return []
    ends = [f"{end:,.0f}" for end in estimate.get("effective_sample_size_interval") or ()]
    range_text = f" ({' to '.join(ends)})" if len(set(ends)) == 2 else ""
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
        `rank` (first and last that are left open, or None), `model`, `mean`, `confidence_interval`, and
        `to_best`: difference to the best model and its interval, None for the best itself.
    confidence_level : float
    share : bool
        Whether the means are shares, shown in percent.
    bars : bool
        Draw the intervals with characters, where there is no picture.
    """
    intervals = [
        row["confidence_interval"] for row in rows if None not in (row["confidence_interval"] or [None])
    ]
    ends = [end for interval in intervals for end in interval] or [0.0, 1.0]
    level = level_text(confidence_level)
    columns: JsonDict = {
        "rank": lambda row: rank_text(row["rank"]),
        "model": "model",
        "mean": lambda row: value_text(row["mean"], share),
        level: lambda row: row["confidence_interval"] and interval_text(row["confidence_interval"], share),
        "": lambda row: bar(row["confidence_interval"], row["mean"], min(ends), max(ends)),
        "to the best": lambda row: row["to_best"] and _difference_text(row["to_best"], {"share": share}),
        f"its {level}": lambda row: (
            row["to_best_interval"] and _difference_ends(row["to_best_interval"], {"share": share})
        ),
    }
    if not bars:
        del columns[""]
    return table_of("Leaderboard", rows, columns)


def rank_text(rank: Sequence[int] | None) -> str:
    """Return a rank, or the band of ranks that is left open."""
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
    place = [round((float(x or 0.0) - low) / (high - low) * (BAR_CHARACTERS - 1)) for x in (*interval, value)]
    left, right, middle = place
    line = [" "] * BAR_CHARACTERS
    line[left : right + 1] = "─" * (right - left + 1)
    line[left] = "├"
    line[right] = "┤"
    line[middle] = "●"
    return "".join(line)


# Tables that an estimate's dict may carry besides its strata, and their titles in a report.
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

_KINDS = {"design": "sample", "estimator": "estimator", "interval_method": "interval", "outcome": "outcome"}
_HEADERS = {"standard_error": "standard error", "p_value": "p"}


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


def _forecasts(estimate: JsonMapping) -> list[str]:
    """Return the sentence on the widths that more labels are expected to give; none if they are unknown."""
    rows: JsonRows = estimate.get("more_labels") or ()
    if len(rows) < 2:
        return []
    share = estimate["share"]
    first = rows[len(rows) // 2]
    last = rows[-1]
    if first["half_width"] == 0:
        return [f"With all {first['labels']:,} labels: exact"]
    sentence = f"With {first['labels']:,} labels: interval about {_width(first, share)} wide"
    if first is last:
        return [sentence]
    if last["half_width"] == 0:
        return [f"{sentence}; with all {last['labels']:,}: exact"]
    return [f"{sentence}; with {last['labels']:,}: {_width(last, share).removesuffix(POINTS)}"]


def _width(row: JsonMapping, share: bool) -> str:
    """Return the width of the interval that a number of labels is expected to give."""
    return width_text(2 * row["half_width"], share)


def answer_page(result: JsonMapping, quantity: str = "") -> Page:
    """Return the answer in at most `text.MOST_LINES` lines: what `estimate` prints unless it is to say more.

    Parameters
    ----------
    result : dict
        `Estimate.to_dict`, or a table of several estimates alone; with `more_labels` and `requirements` where
        they are known.
    quantity : str
        What a table of several alone is of.
    """
    level = result["confidence_level"]
    board = result.get("leaderboard", ())
    notes = _notes_of_answer(result)
    if board:
        notes = without_code(notes, FIRST_MODEL)
    if len(result.get("judge_readings", ())) > 1:  # which has the shares
        notes = without_code(notes, JUDGE_SHARES)
    if unlabelled(result):  # its sentence says the same, with what the missing labels could change
        notes = without_code(notes, UNLABELLED)
    tables = []
    for kind in TABLES:
        rows = result.get(kind, ())
        is_sentence = kind in ("judge", "judge_groups") or (kind == "comparisons" and len(rows) == 1)
        # A judge's sentences are there, and a note on each group that is worse.
        if rows and not is_sentence:
            ranked = board if kind == "comparisons" else ()
            if ranked:
                tables.append(leaderboard_table(ranked, level, share=result["share"]))
            else:
                tables.append(_lowest(rows, kind, level))
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
        lines.append(_facts(result))
        if result.get("lam"):
            lines.append(_lam_text(result))
    return Page(lines=lines, tables=_tables(result), notes=noted(_notes_of_answer(result)))


def _answer_lines(result: JsonMapping, quantity: str, warned: Sequence[str]) -> list[str]:
    """Return the sentences of the answer, with those of its warnings that are `warned`."""
    lines = [*([quantity] if quantity else []), *verdict_lines(result)]
    board = result.get("leaderboard", ())
    if "estimate" in result:
        lines = sentences(result, details=False, equivalent_labels=not board)
        if board:  # the best first: what else is known of one model alone is in the details
            lines[0] = _best_model(board, result)
        else:
            lines += _forecasts(result)
    elif result.get("judge"):
        lines = [*judge_sentences(result["judge"]), *lines]
    if "unscored" in result and "estimate" not in result:
        lines += _unscored(result["unscored"])
    warnings = [f"{text[:1].upper()}{text[1:]}." for text in warned]
    omitted = len(result.get("warnings", ())) - len(warned)
    if omitted:
        warnings[-1] = f"{warnings[-1][:-1]} ({omitted} more: --details)."
    first = 1 if "estimate" in result else len(lines)
    lines[first:first] = warnings
    if "roles" in result:
        lines.append(f"{result['roles']['sentence'][:1].upper()}{result['roles']['sentence'][1:]}.")
    if "post_stratified" in result:
        weighted = result["post_stratified"]
        lines.append(f"Weighted by {weighted['by']}: {value_with_interval(weighted)}.")
    comparisons = result.get("comparisons", ())
    if len(comparisons) == 1:
        lines.append(_two_models(comparisons[0], result["confidence_level"]))
    return lines


def _notes_of_answer(result: JsonMapping) -> list[str]:
    """Return the notes, without those that the sentences of an answer contain."""
    warned = result.get("warnings", ())
    notes = [note for note in result.get("notes", ()) if note not in warned]
    if "roles" not in result:
        return notes
    return [*result["roles"]["notes"], *without_code(notes, RANDOM_ROWS)]


def _lowest(rows: JsonRows, kind: str, level: float) -> ReportTable:
    """Return a table, of groups with the lowest first."""
    title = TABLES[kind]
    if kind == "domains":
        rows = sorted(rows, key=lambda row: float("inf") if row["estimate"] is None else row["estimate"])
        title = f"{title}, the lowest first"
    return estimates_table(title, rows, level)


def _two_models(row: JsonMapping, level: float) -> str:
    """Return the comparison of two models in one line; of shares in percentage points."""
    first = row["a"]
    second = row["b"]
    ends = row["confidence_interval"]
    value = row["estimate"]
    if ends is None or value is None:
        return f"{first} and {second}: undecided (no interval)."
    between = f"{first} − {second}: {_difference_text(value, row)}"
    between += f" ({level_text(level)} {_difference_ends(ends, row)})"
    low, high = (0.0 if end is None else end for end in ends)
    if low > 0 or high < 0:
        above, below = (first, second) if low > 0 else (second, first)
        return f"{above} is above {below}. {between}"
    more_labels = row.get("more_labels")
    if more_labels is None:
        return f"{first} and {second}: undecided. {between}"
    return f"{first} and {second}: undecided; about {more_labels:,} more labels may decide. {between}"


def _difference_text(value: float | None, row: JsonMapping) -> str:
    """Return a difference, of shares in percentage points."""
    if row.get("share") and value is not None:
        return f"{points_text(value)}{POINTS}"
    return format_number(value)


def _difference_ends(ends: Sequence[float | None], row: JsonMapping) -> str:
    """Return the interval of a difference, of shares in percentage points."""
    if row.get("share"):
        return points_interval_text(ends)
    return interval_text(ends)


def requirement_remark(requirement: JsonMapping) -> str:
    """Return the reason for a verdict, or what would decide a requirement that is undecided; else ""."""
    if "reason" in requirement:
        return str(requirement["reason"])
    if requirement["verdict"] != "UNDECIDED" or requirement.get("estimate", 0.0) is None:
        return ""
    more_labels = requirement["more_labels"]
    if more_labels is None:
        return "at this estimate no number of labels would decide it"
    if more_labels == 1:
        noun = "label"
    else:
        noun = "labels"
    return f"about {more_labels:,} more {noun} would decide it if the estimate stays"


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
    """Return a sentence for each verdict on what was required."""
    exact = is_census(estimate) and estimate.get("target") == "population"
    if exact:
        suffix = f", exactly for these {estimate['population_size']:,} units"
    else:
        suffix = ""
    return [
        f"Required {requirement_text(requirement)}{suffix}."
        for requirement in estimate.get("requirements", ())
    ]


def estimates_table(title: str, rows: JsonRows, confidence_level: float) -> ReportTable:
    """Return a table of several estimates: metrics, comparisons, domains; rows' own dicts are left out.

    Shares are in percent, and their differences in percentage points.
    """
    names = dict.fromkeys(name for row in rows for name in row if not isinstance(row[name], tuple | dict))
    headers = _HEADERS | {"confidence_interval": level_text(confidence_level)}
    columns: JsonDict = {
        headers.get(name, name.replace("_", " ")): name
        for name in names
        if name not in ("more_labels", "share")
    }
    if "estimate" in columns:  # shown even where none is defined
        columns["estimate"] = partial(table_entry, name="estimate")
        columns[headers["confidence_interval"]] = partial(table_entry, name="confidence_interval")
    if "standard error" in columns:
        columns["standard error"] = partial(table_entry, name="standard_error")
    return table_of(title, rows, columns)


def table_entry(row: JsonMapping, name: str) -> Any:
    """Return an entry of a table of estimates as text: in percent, in percentage points, or as a number."""
    value = row.get(name)
    is_difference = "p_value" in row
    if value is None:
        return "–" if name == "estimate" else None
    if not row.get("share"):
        return value
    if name == "standard_error":
        return f"{points_text(value)}{POINTS}"
    if name == "estimate":
        return _difference_text(value, row) if is_difference else value_text(value, share=True)
    return _difference_ends(value, row) if is_difference else interval_text(value, share=True)


def sentences(estimate: JsonMapping, *, details: bool = True, equivalent_labels: bool = True) -> list[str]:
    """Return an estimate in sentences: value, judge, facts, precision, missing labels and verdicts.

    `details`: with the standard error, the methods and λ. `equivalent_labels`: with the number of random
    labels that are as precise.
    """
    lines = [_value_sentence(estimate)]
    if estimate["estimate"] is None:
        return lines
    if "unscored" in estimate:
        lines += _unscored(estimate["unscored"])
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
        lines.append(_facts(estimate))
    if equivalent_labels:
        lines += _equivalent_labels(estimate)
    if unlabelled(estimate):
        lines.append(missing_text(estimate["nonresponse"]))
    lines += verdict_lines(estimate)
    if "disagreements" in estimate:
        file = estimate["disagreements"]
        if "roles" in estimate:  # of a table, which has the labels
            advice = "review them, and correct the labels in the table."
        else:
            advice = "fill in its last column, and give it after the labels."
        lines.append(f"Disagreements: {file['items']:,} items in {file['file']}; {advice}")
    if details and estimate.get("lam"):
        lines.append(_lam_text(estimate))
    return lines


def _lam_text(estimate: JsonMapping) -> str:
    return "λ = " + ", ".join(map(format_number, estimate["lam"]))


def _undefined_sentence(estimate: JsonMapping) -> str:
    """Return that a quantity is undefined, with the interval of all possible values where it is known."""
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
    answer = _value_of_all_units(estimate)
    if answer is None and estimate["confidence_interval"] is None:
        answer = f"{_value(estimate)}, {_labels_text(estimate)}; {_no_interval(estimate)}"
    elif answer is None:
        answer = f"{value_with_interval(estimate)}, {_labels_text(estimate)}"
    return f"{capitalise(name)} {answer}"


def _judge_reading_lines(estimate: JsonMapping) -> list[str]:
    """Return the estimates of judge and labels, alone and together, and how far the judge is off."""
    rows = {row["name"]: row for row in estimate.get("judge_readings") or ()}
    if len(rows) < 2:
        return []
    share = estimate["share"]
    texts = [f"{name} {_briefly(row, share)}" for name, row in rows.items()]
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
        return [*lines, f"These labels do not show that {name} alone is off: {low} to {high}{unit}."]
    direction = "low"
    if errors[0] > 0.0:
        direction = "high"
    near, far = sorted(map(abs, errors))
    value = scale * abs(judge["estimate"] - reported["estimate"])
    return [
        *lines,
        f"{name} alone is {value:.3g}{unit} too {direction} ({near:.3g} to {far:.3g}): report the first "
        "number.",
    ]


def is_census(estimate: JsonMapping) -> bool:
    """Return whether every unit of the population is labelled."""
    labelled = (estimate.get("nonresponse") or {}).get("labelled")
    return labelled is not None and labelled == estimate.get("population_size")


def _value_of_all_units(estimate: JsonMapping) -> str | None:
    """Return the value from labels of all units, and what it is of; None where some are not labelled."""
    if not is_census(estimate):
        return None
    size = estimate["population_size"]
    if estimate.get("target") == "superpopulation":
        of_all = (
            f"all {size:,} units are labelled, and the interval is for the superpopulation they come from"
        )
        return f"{value_with_interval(estimate)}; {of_all}"
    value = value_text(estimate["estimate"], estimate.get("share", False))
    return f"{value}, exact for these {size:,} units, which are all labelled"


def value_with_interval(estimate: JsonMapping) -> str:
    """Return an estimate's value and its interval in parentheses, or why there is none."""
    ends = estimate["confidence_interval"]
    if ends is None:
        return f"{_value(estimate)}; {_no_interval(estimate)}"
    if _is_difference_of_shares(estimate):
        interval = _difference_ends(ends, estimate)
    else:
        interval = interval_text(ends, bool(estimate.get("share")))
    return f"{_value(estimate)} ({level_text(estimate['confidence_level'])} {interval})"


def _value(estimate: JsonMapping) -> str:
    """Return the value of an estimate: in percent, in percentage points, or as a number."""
    value = estimate["estimate"]
    if _is_difference_of_shares(estimate):
        return _difference_text(value, estimate)
    return value_text(value, bool(estimate.get("share")))


def _is_difference_of_shares(estimate: JsonMapping) -> bool:
    """Return whether an estimate is a difference of two shares, whose bounds are −1 and 1."""
    low_bound, _ = estimate.get("bounds") or (0.0, 1.0)
    return bool(estimate.get("share")) and low_bound < 0


def _no_interval(estimate: JsonMapping) -> str:
    """Return why an estimate has no interval."""
    return f"no interval: {estimate.get('no_interval', 'it is undefined')}"


def _facts(estimate: JsonMapping) -> str:
    counted = estimate["n"]
    labelled = estimate.get("labels", estimate["n"])
    labels = f"{labelled:,} labels"
    if estimate.get("population_size") is not None:
        labels += f" of {estimate['population_size']:,.0f} units"
    if counted < labelled:
        labels += f", {counted:,} of them in its denominator"
    kinds = [f"{_proper_names(estimate[name])} {word}" for name, word in _KINDS.items() if estimate.get(name)]
    kinds += [f"target: {estimate['target']}"] if "target" in estimate else []
    if "standard_error" in estimate:
        value = estimate["standard_error"]
        if estimate.get("share") and value is not None:
            error = f"Standard error {points_text(value)}{POINTS}; "
        else:
            error = f"Standard error {format_number(value)}; "
    else:
        error = ""
    return f"{error}{labels}; {', '.join(kinds)}"


# Methods that have the names of persons.
_PROPER_NAMES = {
    "horvitz-thompson": "Horvitz–Thompson",
    "clopper-pearson": "Clopper–Pearson",
    "korn-graubard": "Korn–Graubard",
    "hajek": "Hájek",
    "wilson": "Wilson",
}


def _proper_names(method: str) -> str:
    """Return the name of a method with capital letters where it is named after persons."""
    for name, proper_name in _PROPER_NAMES.items():
        method = method.replace(name, proper_name)
    return method


def unlabelled(estimate: JsonMapping) -> int:
    """Return how many drawn units have no label."""
    counts = estimate.get("nonresponse") or {"drawn": 0, "labelled": 0}
    return int(counts["drawn"] - counts["labelled"])


def missing_text(counts: JsonMapping) -> str:
    """Return what drawn units without a label mean for the estimate, and what it is at worst where known."""
    missing = counts["drawn"] - counts["labelled"]
    ends = counts.get("worst_bounds")
    text = (
        f"{missing:,} of {counts['drawn']:,} drawn units have no label ({counts['rate']:.1%}); the labels of "
        "their stratum stand for them, as if labels were missing at random."
    )
    if ends is None:
        return text
    low, high = map(format_number, ends)
    return (
        f"{text} If all missing labels were at a bound, the estimate would be {low} or {high} (without a "
        "proxy)."
    )


def unscored_lines(
    failed: Mapping[str, int], missing: Mapping[str, int], counted: str | None = None
) -> list[str]:
    """Return the sentences on answers that failed and on scores that are missing; none where there are none.

    Parameters
    ----------
    failed : mapping of str to int
        Answers that failed, by the model ("" for the only one).
    missing : mapping of str to int
        Scores that are missing, by the metric's column.
    counted : str, optional
        What failed answers count as in an estimate.
    """
    lines = []
    each = [f"{n:,}" + (f" of {model!r}" if model else "") for model, n in failed.items() if n]
    if each:
        if sum(failed.values()) == 1:
            noun = "answer"
        else:
            noun = "answers"
        ending = "" if counted is None else f"; {counted}"
        lines.append(f"{', '.join(each)} {noun} failed (an error, or no output){ending}.")
    lacking = [f"{n:,} of {name!r}" for name, n in missing.items() if n]
    if lacking:
        lines.append(f"Missing scores: {', '.join(lacking)}.")
    return lines


def _unscored(counts: JsonMapping) -> list[str]:
    return unscored_lines(counts["failed_answers"], counts["missing_scores"], counts["counted"])


# Judges that an answer has a sentence on.
MOST_SENTENCES = 3


def by_judge(rows: JsonRows) -> dict[str, dict[tuple[str, str | None], JsonMapping]]:
    """Return the rows of each judge by metric and class, without the cells of its table with people."""
    rows_by_judge: dict[str, dict[tuple[str, str | None], JsonMapping]] = {}
    for row in rows:
        if row["metric"] != "share":
            rows_by_judge.setdefault(row["judge"], {})[row["metric"], row.get("class")] = row
    return rows_by_judge


def judge_sentences(rows: JsonRows, limit: int = MOST_SENTENCES) -> list[str]:
    """Return what labels say of each judge in one sentence, and of several how they compare.

    Of two classes the rarer one is what a judge looks for.
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
        lines.append(_sentence(judge, metrics))
    if len(judges) > limit:
        lines[-1] += f" {len(judges) - limit} more: --details."
    lines += [f"Two of them agree with each other on {_briefly(row)}." for row in agreements]
    return lines + _best_proxy(judges)


def _sentence(judge: str, metrics: MetricRows) -> str:
    if ("agreement", None) not in metrics:
        parts = [
            f"{name.replace('_', ' ')} {_briefly(row, share=False)}" for (name, _), row in metrics.items()
        ]
        return f"{judge!r} and people: {', '.join(parts)}."
    agreed, kappa = (metrics[name, None] for name in ("agreement", "kappa"))
    sentence = f"{judge!r} agrees with people on {_briefly(agreed)}, kappa {_briefly(kappa, share=False)}"
    if ("no_verdict", None) in metrics:
        share = value_text(metrics["no_verdict", None]["estimate"], share=True)
        sentence += f"; the {share} of the units without a verdict are left out"
    classes = _caught_first(metrics)
    if len(classes) != 2:
        return f"{sentence}."
    caught, other = classes
    value, ends = (metrics["recall", other][name] for name in ("estimate", "confidence_interval"))
    missed = {
        "estimate": None if value is None else 1.0 - value,
        "confidence_interval": ends and [None if end is None else 1.0 - end for end in reversed(ends)],
    }
    return (
        f"{sentence}; it catches {_briefly(metrics['recall', caught])} of the {caught!r} (sensitivity), "
        f"with false alarms on {_briefly(missed)} of the {other!r} (1 − specificity)."
    )


# Words of verdicts on an answer that a judge is to find.
_FAULTS = frozenset(("fail", "failed", "wrong", "incorrect", "bad", "unsafe", "no", "false", "0"))


def _caught_first(metrics: MetricRows) -> list[str]:
    """Return the classes whose share is known: a fault first, otherwise the rarest among people's labels.

    The order of a verdict and its opposite does not depend on the labels, so that sensitivity is of one class
    in all requests.
    """
    shares = [
        (of.casefold() not in _FAULTS, row["estimate"], of)
        for (name, of), row in metrics.items()
        if name == "prevalence" and of and row["estimate"] is not None
    ]
    return [of for _, _, of in sorted(shares)]


def _briefly(row: JsonMapping, share: bool = True) -> str:
    value = value_text(row["estimate"], share)
    ends = row["confidence_interval"]
    if ends is None:
        return value
    return f"{value} ({interval_text(ends, share)})"


def _best_proxy(judges: Mapping[str, MetricRows]) -> list[str]:
    """Return which of several judges predicts people best: the correlation says what it is worth as a proxy.

    With a correlation r a label is worth up to 1/(1 − r²) labels without a proxy (Cochran 1977, 7.3).
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
        gain = f"; a label is worth up to {1.0 / (1.0 - best**2):.1f} with it"
    else:
        gain = ""
    return [f"Best proxy on these labels: {name!r}, correlation {format_number(best)} ({rest}){gain}."]


def judge_notes(rows: JsonRows) -> list[str]:
    """Return the three readings of a share, with the first judge's; nothing of more than two classes."""
    judge, metrics = next(iter(by_judge(rows).items()))
    classes = _caught_first(metrics)
    if len(classes) != 2 or ("rogan_gladen", classes[0]) not in metrics:
        return []
    names = ("prevalence", "predicted_prevalence", "rogan_gladen")
    ours, raw, other = (metrics[name, classes[0]] for name in names)
    text = (
        f"the share of {classes[0]!r} is {_briefly(ours)} by the labels; {judge!r} alone says "
        f"{value_text(raw['estimate'], share=True)}, which no label corrects, and Rogan & Gladen's "
        f"correction {_briefly(other)}, which takes labels for a random sample: take the first"
    )
    return [Note(JUDGE_SHARES, text)]


def judge_tables(rows: JsonRows, level: str) -> list[ReportTable]:
    """Return the table of all quantities, and for each judge that of people's classes and its own."""
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
            lines.setdefault(row["class"], {"people's label": row["class"]})[row["judged"]] = _briefly(row)
    for judge, lines in shares.items():
        title = f"Share of all units, by people and by {judge!r}"
        judged = next(iter(lines.values()))
        tables.append(table_of(title, list(lines.values()), list(judged)))
    return tables
