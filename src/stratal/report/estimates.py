"""Estimates as sentences and tables, from the dicts that are also printed as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from stratal.protocols import JsonDict, JsonMapping, JsonRows
from stratal.report.judges import judge_reading_lines, judge_sentences, judge_tables
from stratal.report.notes import (
    FIRST_MODEL,
    JUDGE_SHARES,
    RANDOM_ROWS,
    UNLABELLED,
    unlabelled_text,
    without_code,
)
from stratal.report.text import (
    POINTS,
    Page,
    ReportTable,
    capitalise,
    difference_interval_text,
    difference_text,
    format_notes,
    format_number,
    interval_text,
    level_text,
    points_text,
    shorten_page,
    table_entry,
    table_of,
    value_text,
    width_text,
)
from stratal.report.verdicts import UNDECIDED


def answer_sentences(findings: JsonMapping) -> list[str]:
    """Return the answer: the quantity with its interval, and how many random labels are as precise.

    Parameters
    ----------
    findings : dict
        `quantity`, `share`, and `estimate` (`Estimate.to_dict`).
    """
    estimate = {**findings["estimate"], "share": findings["share"]}
    leaderboard = estimate.get("leaderboard")
    if leaderboard:
        return [_best_model_sentence(leaderboard, estimate)]
    if findings.get("quantity"):
        estimate["quantity"] = findings["quantity"]
    return [_value_sentence(estimate), *_equivalent_labels(estimate)]


def _best_model_sentence(leaderboard: JsonRows, estimate: JsonMapping) -> str:
    """Return the sentence on the best of several models, and on those that may be as good."""
    best = leaderboard[0]
    row = {**estimate, "estimate": best["mean"], "confidence_interval": best["confidence_interval"]}
    sentence = f"{best['model']} {value_with_interval(row)}, {_labels_text(estimate)}"
    # A model whose band of ranks begins with 1 may be the best too.
    others = [row["model"] for row in leaderboard[1:] if row["rank"] is None or row["rank"][0] == 1]
    if others:
        sentence += f"; not distinguishable from this model: {', '.join(others)}"
    return f"Best of {len(leaderboard)} models: {sentence}"


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
    return f"{text}{cluster_count_text(estimate)}"


def cluster_count_text(counts: JsonMapping) -> str:
    """Return the number of clusters of labels or drawn units as text; "" if single units were drawn."""
    clusters = counts.get("clusters")
    if clusters is None:
        return ""
    noun = "cluster" if clusters == 1 else "clusters"
    return f" in {clusters:,} {noun}"


def _equivalent_labels(estimate: JsonMapping) -> list[str]:
    """Return the sentence on the number of random labels of the same precision, with its range.

    The list is empty if the number is unknown or below one (labels that do not vary), if all units are
    labelled, or if the labels themselves are random and no proxy is used.
    """
    if is_census(estimate):
        return []
    if estimate.get("design") == "simple-random" and not estimate.get("lam"):
        return []
    labels_of_equal_width = estimate.get("random_labels_of_equal_width")
    size = estimate.get("effective_sample_size")
    if labels_of_equal_width is not None and labels_of_equal_width >= 1:
        return [f"As precise as about {labels_of_equal_width:,.0f} random labels"]
    if labels_of_equal_width is not None or size is None or size < 1:
        return []
    ends = [f"{end:,.0f}" for end in estimate.get("effective_sample_size_interval") or ()]
    range_text = ""
    # Ends that are equal when rounded are no range.
    if len(set(ends)) == 2:
        range_text = f" ({' to '.join(ends)})"
    return [f"As precise as about {size:,.0f} random labels{range_text}"]


# Width of a bar in characters.
BAR_CHARACTERS = 24


def leaderboard_table(
    rows: JsonRows, confidence_level: float, *, is_share: bool, bars: bool = True
) -> ReportTable:
    """Return the table of a leaderboard.

    Parameters
    ----------
    rows : sequence of dict
        `rank` (first and last possible rank, or None), `model`, `mean`, `confidence_interval`, and `to_best`:
        difference to the best model and its interval, None for the best itself.
    confidence_level : float
    is_share : bool
        Whether the means are shares, shown in percent.
    bars : bool
        Whether to draw the intervals with characters, for output without figures.
    """
    # The common scale of the bars, from the intervals with two finite limits.
    ends: list[float] = []
    for row in rows:
        interval = row["confidence_interval"]
        if interval is not None and None not in interval:
            ends += interval
    lowest = min(ends, default=0.0)
    highest = max(ends, default=1.0)
    level = level_text(confidence_level)

    def interval_entry(row: JsonMapping) -> str | None:
        interval = row["confidence_interval"]
        if interval is None:
            return None
        return interval_text(interval, is_share)

    def difference_entry(row: JsonMapping) -> str | None:
        if row["to_best"] is None:
            return None
        return difference_text(row["to_best"], is_share)

    def difference_interval_entry(row: JsonMapping) -> str | None:
        interval = row["to_best_interval"]
        if interval is None:
            return None
        return difference_interval_text(interval, is_share)

    columns: JsonDict = {
        "rank": lambda row: rank_text(row["rank"]),
        "model": "model",
        "mean": lambda row: value_text(row["mean"], is_share),
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


# Titles of the tables that an estimate's dict may contain in addition to its strata.
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

# Nouns after the names of methods in the sentence on methods.
_METHOD_NOUNS = {
    "design": "sample",
    "estimator": "estimator",
    "interval_method": "interval",
    "outcome": "outcome",
}

# Headers of columns that differ from the names of the entries.
_HEADERS = {"standard_error": "standard error", "p_value": "p", "domain": "group"}


def _tables(result: JsonMapping) -> list[ReportTable]:
    """Return all tables of a result: strata, leaderboard, metrics, comparisons, judges and groups."""
    strata = result.get("strata", ())
    level = result["confidence_level"]
    tables = []
    if len(strata) > 1 and any(row["mean"] is not None for row in strata):
        tables.append(table_of("Strata", strata, _STRATUM_COLUMNS))
    if "leaderboard" in result:
        tables.append(leaderboard_table(result["leaderboard"], level, is_share=result["share"]))
    for kind, title in TABLES.items():
        if kind == "judge" and kind in result:
            tables += judge_tables(result[kind], level_text(level))
        elif kind in result:
            tables.append(estimates_table(title, result[kind], level))
    return tables


# Header and entry of each column of the table of strata.
_STRATUM_COLUMNS = {
    "stratum": "name", "units": "size", "labels": "n", "mean": "mean", "sd": "standard_deviation",
}  # fmt: skip


def _forecast_sentences(estimate: JsonMapping) -> list[str]:
    """Return the sentence on the expected widths with more labels, if they are known."""
    rows: JsonRows = estimate.get("more_labels") or ()
    if len(rows) < 2:
        return []
    is_share = estimate["share"]
    middle = rows[len(rows) // 2]
    last = rows[-1]
    if middle["half_width"] == 0:
        return [f"With all {middle['labels']:,} labels: exact"]
    sentence = f"With {middle['labels']:,} labels: interval about {_width_of_forecast(middle, is_share)} wide"
    if middle is last:
        return [sentence]
    if last["half_width"] == 0:
        return [f"{sentence}; with all {last['labels']:,}: exact"]
    return [f"{sentence}; with {last['labels']:,}: {_width_of_forecast(last, is_share).removesuffix(POINTS)}"]


def _width_of_forecast(row: JsonMapping, is_share: bool) -> str:
    """Return the expected width of the interval with the labels of a forecast."""
    return width_text(2 * row["half_width"], is_share)


def answer_page(result: JsonMapping, quantity: str = "") -> Page:
    """Return the answer that `estimate` prints by default, in about `text.MAX_LINES` lines.

    Parameters
    ----------
    result : dict
        `Estimate.to_dict`, or a table of several estimates; with `more_labels` and `requirements` if they are
        known.
    quantity : str
        The quantity of a table of several estimates.
    """
    level = result["confidence_level"]
    leaderboard = result.get("leaderboard", ())
    notes = _notes_of_answer(result)
    # Sentences of the answer state the same as these notes.
    if leaderboard:
        notes = without_code(notes, FIRST_MODEL)
    if len(result.get("judge_readings", ())) > 1:
        notes = without_code(notes, JUDGE_SHARES)
    if n_unlabelled(result):
        notes = without_code(notes, UNLABELLED)
    tables = []
    for kind in TABLES:
        rows = result.get(kind, ())
        # Judges and a single comparison are sentences, and each group in which a judge is worse is a note.
        is_sentence = kind in ("judge", "judge_groups") or (kind == "comparisons" and len(rows) == 1)
        if not rows or is_sentence:
            continue
        if kind == "comparisons" and leaderboard:
            tables.append(leaderboard_table(leaderboard, level, is_share=result["share"]))
        else:
            tables.append(_answer_table(rows, kind, level))
    first_warning = result.get("warnings", ())[:1]
    return shorten_page(
        Page(lines=_answer_lines(result, quantity, first_warning), tables=tables, notes=format_notes(notes))
    )


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
    return Page(lines=lines, tables=_tables(result), notes=format_notes(_notes_of_answer(result)))


def _answer_lines(result: JsonMapping, quantity: str, printed_warnings: Sequence[str]) -> list[str]:
    """Return the sentences of the answer, with the printed ones of its warnings."""
    lines = []
    if quantity:
        lines.append(quantity)
    lines += verdict_lines(result)
    leaderboard = result.get("leaderboard", ())
    if "estimate" in result:
        lines = sentences(result, details=False, equivalent_labels=not leaderboard)
        # With several models, the facts about a single one are part of the details only.
        if leaderboard:
            lines[0] = _best_model_sentence(leaderboard, result)
        else:
            lines += _forecast_sentences(result)
    elif result.get("judge"):
        lines = [*judge_sentences(result["judge"]), *lines]
    if "unscored" in result and "estimate" not in result:
        lines += _unscored_lines(result["unscored"])
    warnings = [f"{capitalise(text)}." for text in printed_warnings]
    n_omitted = len(result.get("warnings", ())) - len(warnings)
    if n_omitted:
        warnings[-1] = f"{warnings[-1][:-1]} ({n_omitted} more: --details)."
    # Warnings follow the sentence with the value; a table of several estimates has no such sentence.
    if "estimate" in result:
        lines[1:1] = warnings
    else:
        lines += warnings
    if "roles" in result:
        lines.append(f"{capitalise(result['roles']['sentence'])}.")
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
    warnings = result.get("warnings", ())
    notes = [note for note in result.get("notes", ()) if note not in warnings]
    if "roles" not in result:
        return notes
    return [*result["roles"]["notes"], *without_code(notes, RANDOM_ROWS)]


def _answer_table(rows: JsonRows, kind: str, level: float) -> ReportTable:
    """Return a table of estimates, with groups in increasing order."""
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
    is_share = bool(row.get("share"))
    difference = f"{first} − {second}: {difference_text(value, is_share)}"
    difference += f" ({level_text(level)} {difference_interval_text(ends, is_share)})"
    low, high = ends
    if low is not None and low > 0:
        return f"{first} is above {second}. {difference}"
    if high is not None and high < 0:
        return f"{second} is above {first}. {difference}"
    more_labels = row.get("more_labels")
    if more_labels is None:
        return f"{first} and {second}: undecided. {difference}"
    return (
        f"{first} and {second}: undecided; about {more_labels:,} more labels may be enough to decide. "
        f"{difference}"
    )


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


# Entries of a row without a column: the table contains them in another form, or a sentence above it does.
_UNPRINTED_NAMES = ("more_labels", "share", "estimator", "lam", "interval_method")


def estimates_table(title: str, rows: JsonRows, confidence_level: float) -> ReportTable:
    """Return a table of several estimates: metrics, comparisons, domains.

    Entries that are dicts or tuples have no column. Shares are in percent, their differences in points.
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


def sentences(estimate: JsonMapping, *, details: bool = True, equivalent_labels: bool = True) -> list[str]:
    """Return an estimate in sentences: value, failed answers, judge, precision, missing labels and verdicts.

    `details` adds the standard error, the methods and λ. `equivalent_labels` adds the number of random labels
    of the same precision.
    """
    lines = [_value_sentence(estimate)]
    if estimate["estimate"] is None:
        return lines
    if "unscored" in estimate:
        lines += _unscored_lines(estimate["unscored"])
    lines += judge_reading_lines(estimate)
    if estimate.get("judge"):
        lines += judge_sentences(estimate["judge"])
    differences = estimate.get("differing")
    if differences and differences["items"]:
        lines[-1] += (
            f" They differ on {differences['items']:,} of {differences['labelled']:,} labelled items "
            "(--disagreements FILE.csv writes them)."
        )
    if details:
        lines.append(_method_sentence(estimate))
    if equivalent_labels:
        lines += _equivalent_labels(estimate)
    if n_unlabelled(estimate):
        lines.append(missing_text(estimate["nonresponse"], is_share=bool(estimate.get("share"))))
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
    """Return the λ of the means of groups if their estimator differs from that of all units, else None.

    It is "" if the means of groups use no proxy.
    """
    rows = [row for row in result.get("domains", ()) if "estimator" in row]
    if not rows or "estimate" not in result:
        return None
    lam_of_rows = [row["lam"] for row in rows if row["lam"]]
    if bool(lam_of_rows) == bool(result.get("lam")):
        return None
    return _lam_range(lam_of_rows)


def groups_sentence(result: JsonMapping) -> str | None:
    """Return the sentence on the estimator of groups, if it differs from that of all units."""
    lam = lam_of_groups(result)
    if lam is None:
        return None
    if not lam:
        return "Groups: from the weighted labels alone, without the proxy"
    return (
        f"Groups: corrected by the proxy (λ = {lam}); --estimator horvitz-thompson gives the weighted means"
    )


def _lam_range(lam_of_rows: Sequence[Sequence[float]]) -> str:
    """Return the λ of each proxy as text, or its range over the groups; proxies with λ = 0 are left out."""
    texts = []
    for lam_of_proxy in zip(*lam_of_rows, strict=True):
        ends = dict.fromkeys(map(format_number, (min(lam_of_proxy), max(lam_of_proxy))))
        if any(lam_of_proxy):
            texts.append(" to ".join(ends))
    return ", ".join(texts)


def _lam_text(estimate: JsonMapping) -> str:
    """Return the λ of each proxy of an estimate as text."""
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


def is_census(estimate: JsonMapping) -> bool:
    """Return whether every unit of the population is labelled."""
    labelled = (estimate.get("nonresponse") or {}).get("labelled")
    return labelled is not None and labelled == estimate.get("population_size")


def _census_value_text(estimate: JsonMapping) -> str | None:
    """Return the value of a census, or of a superpopulation of which most units are labelled; else None."""
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
    """Return whether most units are labelled, although the target is the superpopulation.

    Readers could mistake the interval for that of these units, which would be narrower.
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
        interval = difference_interval_text(ends, is_share=True)
    else:
        interval = interval_text(ends, bool(estimate.get("share")))
    return f"{_value_text(estimate)} ({level_text(estimate['confidence_level'])} {interval})"


def _value_text(estimate: JsonMapping) -> str:
    """Return the value of an estimate: in percent, in percentage points, or as a number."""
    value = estimate["estimate"]
    if _is_difference_of_shares(estimate):
        return difference_text(value, is_share=True)
    return value_text(value, bool(estimate.get("share")))


def _is_difference_of_shares(estimate: JsonMapping) -> bool:
    """Return whether an estimate is a difference of two shares, whose bounds are −1 and 1."""
    low_bound, _ = estimate.get("bounds") or (0.0, 1.0)
    return bool(estimate.get("share")) and low_bound < 0


def _no_interval_reason(estimate: JsonMapping) -> str:
    """Return the reason why an estimate has no interval."""
    return f"no interval: {estimate.get('no_interval', 'it is undefined')}"


def _method_sentence(estimate: JsonMapping) -> str:
    """Return the sentence on the standard error, the labels and the methods."""
    n_counted = estimate["n"]
    labelled = estimate.get("labels", estimate["n"])
    labels_text = f"{labelled:,} labels"
    if estimate.get("population_size") is not None:
        labels_text += f" of {estimate['population_size']:,.0f} units"
    if n_counted < labelled:
        labels_text += f", {n_counted:,} of them in its denominator"
    nouns = dict(_METHOD_NOUNS)
    if labelled == estimate.get("population_size") and estimate.get("target") == "superpopulation":
        # All units are labelled, so there was no draw.
        nouns.pop("design")
    methods = [f"{_method_name(estimate[name])} {noun}" for name, noun in nouns.items() if estimate.get(name)]
    if "target" in estimate:
        methods.append(f"target: {estimate['target']}")
    text = f"{labels_text}; {', '.join(methods)}"
    if "standard_error" not in estimate:
        return text
    value = estimate["standard_error"]
    if estimate.get("share") and value is not None:
        return f"Standard error {points_text(value)}{POINTS}; {text}"
    return f"Standard error {format_number(value)}; {text}"


# Names of methods that are named after persons.
_PROPER_NAMES = {
    "horvitz-thompson": "Horvitz–Thompson",
    "clopper-pearson": "Clopper–Pearson",
    "korn-graubard": "Korn–Graubard",
    "hajek": "Hájek",
    "wilson": "Wilson",
    "blaker": "Blaker",
    "fieller": "Fieller",
    "fisher": "Fisher",
    "woodruff": "Woodruff",
}


def _method_name(method: str) -> str:
    """Return the name of a method with capital letters if it is named after persons."""
    for name, proper_name in _PROPER_NAMES.items():
        method = method.replace(name, proper_name)
    return method


def n_unlabelled(estimate: JsonMapping) -> int:
    """Return the number of drawn units without a label."""
    counts = estimate.get("nonresponse") or {"drawn": 0, "labelled": 0}
    return int(counts["drawn"] - counts["labelled"])


def missing_text(counts: JsonMapping, *, is_share: bool) -> str:
    """Return the sentences on drawn units without a label, with the worst case of the estimate if known.

    `is_share` states whether the estimate is a share, shown in percent.
    """
    ends = counts.get("worst_bounds")
    text = f"{unlabelled_text(counts['drawn'], counts['labelled'])}."
    if ends is None:
        return text
    low, high = (value_text(end, is_share) for end in ends)
    return (
        f"{text} If all units without a label had the lowest possible outcome, the estimate without a proxy "
        f"would be {low}; with the highest possible outcome, {high}."
    )


def unscored_lines(
    failed: Mapping[str, int], missing: Mapping[str, int], counted: str | None = None
) -> list[str]:
    """Return the sentences on failed answers and missing scores of a log, if there are any.

    Parameters
    ----------
    failed : mapping of str to int
        Failed answers by model; the name of a single model is "".
    missing : mapping of str to int
        Missing scores by the metric's column.
    counted : str, optional
        How the estimate counts failed answers, as text.
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
        ending = ""
        if counted is not None:
            ending = f"; {counted}"
        lines.append(f"{', '.join(counts)} {noun} failed (an error, or no output){ending}.")
    missing_counts = [f"{n:,} of {name!r}" for name, n in missing.items() if n]
    if missing_counts:
        lines.append(f"Missing scores: {', '.join(missing_counts)}.")
    return lines


def _unscored_lines(counts: JsonMapping) -> list[str]:
    """Return the sentences on failed answers and missing scores from the dict of an estimate."""
    return unscored_lines(counts["failed_answers"], counts["missing_scores"], counts["counted"])
