"""An estimate in words, and tables of several: from the dict that is also printed as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stratal.protocols import JsonDict, JsonMapping, JsonRows
from stratal.report.notes import FIRST_MODEL, JUDGE_SHARES, RANDOM_ROWS, UNLABELLED, Note, without_code
from stratal.report.text import (
    MOST_ROWS,
    Page,
    ReportTable,
    brief,
    format_number,
    interval_text,
    level_text,
    noted,
    table_of,
    value_text,
)

# Names of estimates that an answer about a judge has side by side.
CORRECTED = "corrected"
JUDGE_ONLY = "judge only"
LABELS_ONLY = "labels only"

# Metric and class → the row of a judge's table.
MetricRows = Mapping[tuple[str, str | None], Mapping[str, Any]]


def answer_sentence(findings: JsonMapping) -> str:
    """Return the answer: the quantity, its interval, and what the labels are worth.

    Parameters
    ----------
    findings : dict
        `quantity`, `share`, and `estimate` (`Estimate.to_dict`).
    """
    estimate = findings["estimate"]
    share = findings["share"]
    level = level_text(estimate["confidence_level"])
    board = estimate.get("leaderboard")
    row_of_estimate = {**estimate, "model": findings.get("quantity"), "mean": estimate["estimate"]}
    first = board[0] if board else row_of_estimate
    sentence = f"{first['model']} {value_text(first['mean'], share)}"
    ends = first["confidence_interval"]
    if ends is not None:
        sentence += f", {level} {interval_text(ends, share)}"
    labels = (estimate.get("nonresponse") or {"labelled": estimate["n"]})["labelled"]
    sentence += f", from {labels:,} labels"
    if not board:
        worth_of_labels = worth_text(estimate)
        return f"{sentence[:1].upper()}{sentence[1:]}{f' {worth_of_labels}' if worth_of_labels else ''}."
    others = [row["model"] for row in board[1:] if row["rank"] is None or row["rank"][0] == 1]
    if others:
        others_text = f"; not distinguishable from it: {', '.join(others)}"
    else:
        others_text = ""
    return f"Best of {len(board)} models: {sentence}{others_text}."


def worth_text(estimate: JsonMapping) -> str | None:
    """Return how many random labels these are worth, with the range, or how many give as narrow an interval.

    None where neither is known.
    """
    equal = estimate.get("random_labels_of_equal_width")
    size = estimate.get("effective_sample_size")
    if equal is not None:
        return f"as precise as {equal:,.0f} random ones"
    if size is None:
        return None
    ends = [f"{end:,.0f}" for end in estimate.get("effective_sample_size_interval") or ()]
    return f"worth {size:,.0f} random ones" + (f" ({'–'.join(ends)})" if len(set(ends)) == 2 else "")


# Characters of a bar.
BAR_CHARACTERS = 24


def leaderboard_table(rows: JsonRows, confidence_level: float, *, bars: bool = True) -> ReportTable:
    """Return the table of a leaderboard.

    Parameters
    ----------
    rows : sequence of dict
        `rank` (first and last that are left open, or None), `model`, `mean`, `confidence_interval`, and
        `to_best`: difference to the best model and its interval, None for the best itself.
    confidence_level : float
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
        "mean": "mean",
        level: "confidence_interval",
        "": lambda row: bar(row["confidence_interval"], row["mean"], min(ends), max(ends)),
        "to the best": "to_best",
        f"its {level}": "to_best_interval",
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


def estimate_page(estimate: JsonMapping, most_strata: int = MOST_ROWS) -> Page:
    """Return the page of an estimate (`Estimate.to_dict`), or of another quantity with such a dict.

    Parameters
    ----------
    estimate : dict
        `estimate`, `standard_error`, `confidence_interval`, `confidence_level`, `n`; the rest where known.
        Without an interval, `no_interval` says why.
    most_strata : int
        Strata shown, with a line that says how many more there are.
    """
    lines = sentences(estimate)
    warned = estimate.get("warnings", ())
    lines[1:1] = [f"{note[:1].upper()}{note[1:]}." for note in warned]
    notes = [note for note in estimate.get("notes", ()) if note not in warned]
    return Page(lines=lines, tables=_tables(estimate, most_strata), notes=noted(notes))


def _tables(result: JsonMapping, most_strata: int) -> list[ReportTable]:
    """Return all tables of a result: strata, leaderboard, metrics, comparisons, judges and groups."""
    strata = result.get("strata", ())
    level = result["confidence_level"]
    tables = []
    if len(strata) > 1 and any(row["mean"] is not None for row in strata):
        tables.append(replace(table_of("Strata", strata, _STRATA), most=most_strata))
    if "leaderboard" in result:
        tables.append(leaderboard_table(result["leaderboard"], level))
    for kind, title in TABLES.items():
        if kind == "judge" and kind in result:
            tables += judge_tables(result[kind], level_text(level))
        elif kind in result:
            tables.append(estimates_table(title, result[kind], level))
    return tables


_STRATA = {
    "stratum": "name", "units": "size", "labels": "n", "mean": "mean", "sd": "standard_deviation",
}  # fmt: skip


def _forecast(row: JsonMapping, *, is_current: bool) -> str:
    """Return the half-width with so many labels: the current one, an expected one, or none with all units."""
    if row["half_width"] == 0:
        return f"exact with all {row['labels']:,}"
    text = f"± {format_number(row['half_width'])} with {row['labels']:,}"
    if is_current:
        return text
    return f"about {text}"


def answer_page(result: JsonMapping, quantity: str = "") -> Page:
    """Return the answer in at most `text.MOST_LINES` lines: what `estimate` prints unless it is to say more.

    Parameters
    ----------
    result : dict
        As for `estimate_page`, or a table of several estimates alone; with `more_labels` and `requirements`
        where they are known.
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
            tables.append(leaderboard_table(ranked, level) if ranked else _lowest(rows, kind, level))
    warned = result.get("warnings", ())
    return brief(Page(lines=_answer_lines(result, quantity, warned[:1]), tables=tables, notes=noted(notes)))


def details_page(result: JsonMapping, quantity: str = "") -> Page:
    """Return the answer with the methods, all warnings and notes, and all rows of all tables.

    The parameters are those of `answer_page`.
    """
    lines = _answer_lines(result, quantity, result.get("warnings", ()))
    if "estimate" in result:
        if "leaderboard" in result:
            lines += [_value_sentence(result), *_worth_sentences(result)]
        lines.append(_facts(result))
        if result.get("lam"):
            lines.append(_lam_text(result))
    return Page(lines=lines, tables=_tables(result, MOST_ROWS), notes=noted(_notes_of_answer(result)))


def _answer_lines(result: JsonMapping, quantity: str, warned: Sequence[str]) -> list[str]:
    """Return the sentences of the answer, with those of its warnings that are `warned`."""
    lines = [*([quantity] if quantity else []), *verdict_lines(result)]
    board = result.get("leaderboard", ())
    if "estimate" in result:
        lines = sentences(result, details=False, equivalent_labels=not board)
        if board:  # the best first: what else is known of one model alone is in the details
            lines[0] = answer_sentence({"estimate": result, "share": result.get("outcome") == "binary"})
        else:
            more_labels = result.get("more_labels") or ()
            if len(more_labels) > 1:
                rows = sorted({0, len(more_labels) // 2, len(more_labels) - 1})
                forecasts = ", ".join(_forecast(more_labels[row], is_current=row == 0) for row in rows)
                lines.append(f"More labels: {forecasts}.")
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
        shares = result.get("outcome") == "binary"
        lines.append(_two_models(comparisons[0], result["confidence_level"], shares=shares))
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


def _two_models(row: JsonMapping, level: float, *, shares: bool) -> str:
    """Return the comparison of two models in one line; of shares in percentage points."""
    first = row["a"]
    second = row["b"]
    ends = row["confidence_interval"]
    value = row["estimate"]
    between = f"{first} − {second} {format_number(value)}"
    if ends is None or value is None:
        return f"{first} and {second}: undecided ({between}, no interval)."
    between += f", {level_text(level)} {interval_text(ends)}"
    low, high = (0.0 if end is None else end for end in ends)
    if low > 0 or high < 0:
        above, below = (first, second) if low > 0 else (second, first)
        return f"{above} is above {below}: {between}."
    more_labels = row.get("more_labels")
    if shares:
        reach = f"{format_number(100 * abs(value))} points"
    else:
        reach = format_number(abs(value))
    if more_labels is None:
        buys = ""
    else:
        buys = f"; about {more_labels:,} more labels for ± {reach}"
    return f"{first} and {second}: undecided{buys} ({between})."


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
    """Return a table of several estimates: metrics, comparisons, domains; rows' own dicts are left out."""
    names = (name for row in rows for name in row if not isinstance(row[name], tuple | dict))
    headers = _HEADERS | {"confidence_interval": level_text(confidence_level)}
    columns: JsonDict = {
        headers.get(name, name.replace("_", " ")): name for name in names if name != "more_labels"
    }
    if "estimate" in columns:  # shown even where none is defined
        columns["estimate"] = lambda row: "–" if row["estimate"] is None else row["estimate"]
    return table_of(title, rows, columns)


def sentences(estimate: JsonMapping, *, details: bool = True, equivalent_labels: bool = True) -> list[str]:
    """Return an estimate in sentences: value, missing scores, judge, facts, worth, missing labels, verdicts.

    `details`: with the standard error, the methods and λ. `equivalent_labels`: with the number of random
    labels that the labels are worth.
    """
    if estimate["estimate"] is None:
        ends = estimate.get("confidence_interval")
        if ends is None:
            return ["Estimate undefined"]
        return [f"Estimate undefined, {level_text(estimate['confidence_level'])} {interval_text(ends)}"]
    lines = [_value_sentence(estimate)]
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
        lines += _worth_sentences(estimate)
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


def _name_of_estimand(text: str) -> str:
    """Return the name of a quantity from an estimand's text: `average:f1,average=micro` is micro f1.

    Arguments such as `probability=COLUMN` are no part of the name; a threshold is.
    """
    first, *others = text.split(",")
    kind, _, metric = first.partition(":")
    if kind == "average":
        averages = [part.removeprefix("average=") for part in others if part.startswith("average=")]
        return f"{next(iter(averages), 'macro')} {metric}"
    if "=" in first and "@" not in first:
        first = kind
    return ",".join([first, *(part for part in others if "=" not in part)])


def _value_sentence(estimate: JsonMapping) -> str:
    """Return the estimand, its value and its interval."""
    if "probability" in estimate:
        name = f"{estimate['probability']:g} quantile:"
    else:
        quantity = str(estimate.get("quantity", "estimate"))
        name = _name_of_estimand(estimate.get("estimand", f"{quantity[:1].upper()}{quantity[1:]}"))
    return f"{name} {_value_of_all_units(estimate) or value_with_interval(estimate)}"


def _judge_reading_lines(estimate: JsonMapping) -> list[str]:
    """Return the estimates of judge and labels, alone and together, and how far the judge is off."""
    rows = {row["name"]: row for row in estimate.get("judge_readings") or ()}
    if len(rows) < 2:
        return []
    share = estimate.get("outcome") == "binary"
    texts = [f"{name} {_briefly(row, share)}" for name, row in rows.items()]
    line = f"{', '.join(texts)}."
    lines = [f"{line[:1].upper()}{line[1:]}"]
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


def _worth_sentences(estimate: JsonMapping) -> list[str]:
    """Return the sentence on how many random labels the labels are worth.

    None where that is unknown, or where the labels are random ones and no proxy is used.
    """
    text = worth_text(estimate)
    is_plain = estimate.get("design") == "simple-random" and not estimate.get("lam")
    if text is None or is_plain:
        return []
    if estimate["n"] == 1:
        return [f"Your 1 label is {text}."]
    return [f"Your {estimate['n']:,} labels are {text}."]


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
    return f"{format_number(estimate['estimate'])}, exact for these {size:,} units, which are all labelled"


def value_with_interval(estimate: JsonMapping) -> str:
    """Return an estimate's value and its interval, or why there is none."""
    value = format_number(estimate["estimate"])
    if estimate["confidence_interval"] is None:
        return f"{value}; no interval: {estimate.get('no_interval', 'it is undefined')}"
    level = level_text(estimate["confidence_level"])
    return f"{value}, {level} {interval_text(estimate['confidence_interval'])}"


def _facts(estimate: JsonMapping) -> str:
    counted = estimate["n"]
    labelled = estimate.get("labels", estimate["n"])
    labels = f"{labelled:,} labels"
    if estimate.get("population_size") is not None:
        labels += f" of {estimate['population_size']:,.0f} units"
    if counted < labelled:
        labels += f", {counted:,} of them in its denominator"
    kinds = [f"{estimate[name]} {word}" for name, word in _KINDS.items() if estimate.get(name)]
    kinds += [f"target: {estimate['target']}"] if "target" in estimate else []
    if "standard_error" in estimate:
        error = f"Standard error {format_number(estimate['standard_error'])}; "
    else:
        error = ""
    return f"{error}{labels}; {', '.join(kinds)}"


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
    same = {name: name for name in ("judge", "metric", "class", "estimate")}
    columns = {**same, level: "confidence_interval", "n": "n"}
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
