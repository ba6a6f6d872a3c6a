"""A study of annotators in words and tables: what was made, how it stands, whether it is sound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from stratal.report.text import MOST_STRATA, Page, Table, first_rows, interval_text, level_text, noted, number


def inspection_page(found: Mapping[str, Any]) -> Page:
    """Return what is said of a file: `describe_columns`, with `describe_proxies` where it was checked.

    Examples
    --------
    >>> inspection_page({"file": "p.csv", "rows": 1200, "columns": []}).lines
    ['p.csv: 1,200 rows']
    """
    tables = [_columns_table(found), *([_proxies_table(found)] if "proxies" in found else [])]
    return Page(
        lines=[f"{found['file']}: {found['rows']:,} rows"], tables=tables, notes=noted(found.get("notes", ()))
    )


def _columns_table(found: Mapping[str, Any]) -> Table:
    return Table(
        title="Columns",
        header=("column", "kind", "missing", "distinct", "least", "mean", "most"),
        rows=[
            [
                row["name"] or "(no name)",
                *(row[name] for name in ("kind", "missing", "distinct")),
                *(number(row[name]) for name in ("minimum", "mean", "maximum")),
            ]
            for row in found["columns"]
        ],
    )


def _proxies_table(found: Mapping[str, Any]) -> Table:
    return Table(
        title="Proxies",
        header=("proxy", "scale", "mean", "10 %", "50 %", "90 %"),
        rows=[
            [
                row["name"],
                "the outcome's" if row["scaled"] else "only orders",
                number(row["mean"]),
                *(number(row["quantiles"][decile]) for decile in (1, 5, 9)),
            ]
            for row in found["proxies"]
        ],
    )


_IDS_ALONE = "Whoever labels sees ids alone; --show COL,… puts columns beside them, such as the text."


def handover_page(found: Mapping[str, Any], strata: Sequence[Sequence[Any]], *, shown: bool = True) -> Page:
    """Return what is said of a draw, and where its files are.

    Parameters
    ----------
    found : dict
        `n`, `population_size`, `design`, `seed`, `round`, `new`, and the paths `sample` and `to_label`.
    strata : sequence of (name, units, drawn units)
    shown : bool
        Whether the table for the annotators has more than ids.

    Examples
    --------
    >>> found = {"n": 3, "population_size": 9, "design": "poisson", "seed": 7, "round": 1, "new": 3,
    ...          "sample": "a/sample.parquet", "to_label": "a/to_label.csv"}
    >>> handover_page(found, []).lines
    ['Drew 3 of 9 units (poisson, seed 7).']
    """
    added = f", {found['new']:,} of them new in round {found['round']}" if found["round"] > 1 else ""
    drew = f"Drew {found['n']:,} of {found['population_size']:,} units"
    notes = [
        f"To label: {found['to_label']}  (fill in the column `label`)",
        f"Sample:   {found['sample']}  (keep it: the estimate needs it)",
        *([] if shown else [_IDS_ALONE]),
    ]
    rows = first_rows(strata, MOST_STRATA, "strata", "stratal plan --json")
    table = Table(title="Strata", header=("stratum", "units", "to label"), rows=rows)
    return Page(
        lines=[f"{drew} ({found['design']}, seed {found['seed']}){added}."],
        tables=[table] if strata else [],
        notes=notes,
    )


def plan_page(plan: Mapping[str, Any]) -> Page:
    """Return what is said of a plan (`Plan.to_dict`): what is recommended and what it is expected to give.

    Examples
    --------
    >>> plan_page({"budget": 20, "population_size": 100, "recommended": {"design": "simple-random",
    ...     "estimator": "horvitz-thompson", "expected_standard_error": None, "relative_efficiency": None},
    ...     "designs": [], "strata": [], "assumptions": [], "notes": []}).lines[0]
    'Plan: label 20 of 100 units by a simple-random sample, estimate by horvitz-thompson'
    """
    notes = [*noted(plan["assumptions"], "Assumed"), *noted(plan["notes"])]
    tables = [_designs_table(plan), _strata_table(plan)]
    if plan.get("estimands"):
        tables[0] = _estimands_table(plan["estimands"], plan["confidence_level"])
    return Page(lines=_sentences(plan), tables=tables, notes=notes)


def _sentences(plan: Mapping[str, Any]) -> list[str]:
    chosen, budget = plan["recommended"], plan["budget"]
    error, gain = chosen["expected_standard_error"], chosen["relative_efficiency"]
    what = "Pilot" if plan.get("pilot") else "Plan"
    lines = [
        f"{what}: label {budget:,} of {plan['population_size']:,} units by a {chosen['design']} sample, "
        f"estimate by {chosen['estimator']}"
    ]
    if plan.get("labels"):
        lines.append(_labels_sentence(plan["labels"]))
    if plan.get("estimands"):
        gain = None
    if error is not None:
        hopeful, cautious = plan["half_width_range"]
        lines.append(
            f"Expected standard error {error:.4f}; {level_text(plan['confidence_level'])} about "
            f"± {plan['expected_half_width']:.4f} (hopeful {hopeful:.4f}, cautious {cautious:.4f})"
        )
    elif plan.get("worst_half_width") is not None:
        lines.append(
            f"{_labels_between(*plan['worst_bounds'])}: standard error at most "
            f"{chosen['worst_standard_error']:.4f}; "
            f"{level_text(plan['confidence_level'])} at worst about ± {plan['worst_half_width']:.4f}"
        )
    if gain is not None and gain > 1:
        lines.append(f"About as precise as {gain * budget:,.0f} labels of a simple random sample.")
    if plan.get("detectable_difference") is not None:
        lines.append(
            f"Two models on these labels: a difference of {plan['detectable_difference']:.4f} or more will "
            "show in four draws of five (a smaller one will if they err on the same units)."
        )
    return lines


def _labels_between(low: float, high: float) -> str:
    """Return what the worst is the worst of."""
    return "With labels of 0 or 1" if (low, high) == (0, 1) else f"With labels of {low:g} to {high:g}"


def _labels_sentence(labels: Mapping[str, Any]) -> str:
    """Return which labels the promise follows from, and what they showed of the proxy."""
    told = labels["proxy_mean"]
    proxy = "" if told is None else f", where the proxy says {told:.3g}"
    return (
        f"Recalibrated on {labels['used']:,} labels of {labels['source']}: their mean is "
        f"{labels['mean']:.3g}{proxy}"
    )


def _designs_table(plan: Mapping[str, Any]) -> Table:
    names = (
        "design",
        "estimator",
        "hopeful_standard_error",
        "expected_standard_error",
        "cautious_standard_error",
        "relative_efficiency",
    )
    return Table(
        title="Designs",
        header=[name.replace("_standard_error", " SE").replace("_", " ") for name in names],
        rows=[
            [_or_worst(row) if name == "expected_standard_error" else row[name] for name in names]
            for row in plan["designs"]
        ],
    )


def _estimands_table(rows: Sequence[Mapping[str, Any]], confidence_level: float) -> Table:
    """Return what is expected of each of several estimands."""
    headers = {
        "estimand": "estimand",
        "labels": "labels",
        "expected_standard_error": "expected SE",
        "expected_half_width": f"{level_text(confidence_level)} ±",
        "wanted_half_width": "wanted ±",
        "relative_efficiency": "relative efficiency",
    }
    names = [name for name in headers if any(row[name] is not None for row in rows)]
    return Table(
        title="Estimands",
        header=[headers[name] for name in names],
        rows=[[row[name] for name in names] for row in rows],
    )


def _or_worst(row: Mapping[str, Any]) -> Any:
    """Return the expected standard error, or what it is at most."""
    expected, worst = row["expected_standard_error"], row.get("worst_standard_error")
    return f"at most {worst:.4f}" if expected is None and worst is not None else expected


def _strata_table(plan: Mapping[str, Any]) -> Table:
    names = ("name", "size", "n", "proxy_mean", "expected_standard_deviation")
    return Table(
        title="Strata",
        header=("stratum", "units", "to label", "mean proxy", "expected sd"),
        rows=first_rows([[row[name] for name in names] for row in plan["strata"]], MOST_STRATA, "strata"),
    )


def simulation_page(found: Mapping[str, Any], target_error: float | None = None) -> Page:
    """Return what is said of a simulation (`SimulationTable.to_dict`).

    Parameters
    ----------
    found : dict
        `rows`; with a target, `labels_to_reach`; and `written`, the files that were, where there are any.
    target_error : float, optional
        The mean absolute error of `labels_to_reach`.

    Examples
    --------
    >>> reached = {"design": "simple-random", "estimator": "hajek", "labels": None}
    >>> simulation_page({"rows": [], "labels_to_reach": [reached]}, 0.01).notes
    ['Labels until the mean absolute error is 0.01:', '  simple-random, hajek: not within these budgets']
    """
    header = ("design", "estimator", "interval", "n", "bias", "RMSE", "efficiency", "coverage", "width")
    reached, notes = found.get("labels_to_reach", ()), []
    if reached:
        notes.append(f"Labels until the mean absolute error is {target_error:g}:")
    for row in reached:
        labels = "not within these budgets" if row["labels"] is None else f"{row['labels']:.0f}"
        notes.append(f"  {row['design']}, {row['estimator']}: {labels}")
    notes += [f"Wrote {path}" for path in found.get("written", ())]
    return Page(tables=[Table(header=header, rows=[_row(row) for row in found["rows"]])], notes=notes)


def _row(row: Mapping[str, Any]) -> list[Any]:
    return [
        row["design"],
        row["estimator"],
        row["interval"],
        row["budget"],
        f"{row['bias']:+.4f}",
        math.sqrt(row["mse"]),
        f"{_fixed(row['relative_efficiency'], 2)} ± {_fixed(row['relative_efficiency_se'], 2)}",
        _fixed(row["coverage"], 3),
        row["width"],
    ]


def _fixed(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


_PAIRS, _CLASSES = 3, 8
"""So many tables of pairs, of so many classes, are shown; `--json` has all."""


def study_page(found: Mapping[str, Any], *, compared: bool = False) -> Page:
    """Return what is said of a study that was made; `compared`: with the model's answers, by `--predicted`.

    Examples
    --------
    >>> found = {"n": 3, "population_size": 9, "design": "poisson", "seed": 7, "study": "audit",
    ...          "question": {"text": "Right?", "choices": []}, "annotators": ["ann"], "answers": 3,
    ...          "shown": []}
    >>> study_page(found).lines[0]
    'Drew 3 of 9 units (poisson, seed 7) into audit.'
    """
    drew = f"Drew {found['n']:,} of {found['population_size']:,} units"
    question = found["question"]
    choices = question["choices"]
    rows = [[choice["name"], choice["value"], choice["key"] or None] for choice in choices]
    notes = [] if found["shown"] else ["annotators see nothing but the ids: no column is shown (--show)"]
    classes = question.get("kind") == "choices" and all(choice["value"] is None for choice in choices)
    if classes and not compared:
        values = range(len(choices) - 1, -1, -1)
        numbered = ",".join(f"{choice['name']}={k}" for choice, k in zip(choices, values, strict=True))
        notes.append(
            "these choices count as classes: they can be compared with the model's answers (--predicted) but "
            f"not averaged. To average them say what each counts as, such as --choices {numbered}"
        )
    return Page(
        lines=[
            f"{drew} ({found['design']}, seed {found['seed']}) into {found['study']}.",
            f"{found['answers']:,} answers wanted from {', '.join(found['annotators'])}.",
            f"Question: {question['text']}",
        ],
        tables=[Table(title="Choices", header=("choice", "counts as", "key"), rows=rows)] if rows else [],
        notes=noted(notes),
    )


def taken_page(found: Mapping[str, Any]) -> Page:
    """Return what is said of answers that were taken in, or would be (`Taken`).

    Examples
    --------
    >>> found = {"file": "export.json", "tool": "label-studio", "new": 2, "changed": 0, "skipped": 1,
    ...          "same": 0, "repeated": 0, "unmatched": 1, "strangers": ["x"], "annotators": {"ann": 2},
    ...          "applied": False, "notes": []}
    >>> taken_page(found).lines
    ['export.json (label-studio): would save 2 answers of ann; nothing was saved yet.']
    """
    count = found["new"] + found["changed"]
    answers = f"{count:,} answer{'' if count == 1 else 's'}"
    people = ", ".join(found["annotators"]) or "nobody"
    done = f"saved {answers} of {people}."
    if not found["applied"]:
        done = f"would save {answers} of {people}; nothing was saved yet."
    kinds = (
        ("new", "items without an answer of this annotator"),
        ("changed", "the annotator had said something else"),
        ("skipped", "skips among these"),
        ("same", "the study has them already"),
        ("repeated", "taken in before and changed in the study since: they stay as they are there"),
        ("unmatched", "items that are not in this study: left out"),
    )
    rows = [[name, found[name], meaning] for name, meaning in kinds]
    strangers = (
        [f"not in this study: {', '.join(map(repr, found['strangers']))}"] if found["strangers"] else []
    )
    return Page(
        lines=[f"{found['file']} ({found['tool']}): {done}"],
        tables=[Table(title="Answers", header=("", "answers", "meaning"), rows=rows)],
        notes=noted([*strangers, *found["notes"]]),
    )


def status_page(found: Mapping[str, Any]) -> Page:
    """Return what is said of how a study stands (`study_status`).

    Examples
    --------
    >>> status_page.__name__
    'status_page'
    """
    tables = [_people(found), _rounds(found), *_agreement(found), *_nonresponse(found)]
    if found["flags"]:
        rows = [[row["item"], row["annotator"], row["note"]] for row in found["flags"]]
        tables.append(Table(title="Flagged", header=("item", "by", "note"), rows=rows))
    missing = (found["agreement"] or {}).get("note")
    unknown = [f"how far the annotators agree: {missing}"] if missing else []
    return Page(lines=_headline(found), tables=tables, notes=noted([*found["notes"], *unknown]))


def check_page(found: Mapping[str, Any]) -> Page:
    """Return what is said of a check.

    Examples
    --------
    >>> check_page({"study": "audit", "sound": True, "problems": [], "notes": [], "items": 3, "lines": 2,
    ...             "head": "ab"}).lines[0]
    'audit: sound (3 items, 2 lines of journal).'
    """
    size = f"{found['items']:,} items, {found['lines']:,} lines of journal"
    verdict = "sound" if found["sound"] else f"{len(found['problems'])} problems"
    return Page(
        lines=[f"{found['study']}: {verdict} ({size}).", f"Last hash: {found['head']}"],
        notes=[*noted(found["problems"], "Problem"), *noted(found["notes"])],
    )


def duration(seconds: float | None) -> str:
    """Return a length of time in a few characters.

    Examples
    --------
    >>> duration(8.5), duration(600), duration(10_000), duration(None)
    ('8.5 s', '10 min', '2.8 h', '–')
    """
    if seconds is None:
        return "–"
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _headline(found: Mapping[str, Any]) -> list[str]:
    given = sum(row["answers"] for row in found["rounds"])
    wanted = sum(row["wanted"] for row in found["rounds"])
    times = found["time"]
    lines = [
        f"{found['folder']}: {found['question']}",
        f"{given:,} of {wanted:,} answers; {duration(times['seconds_per_item'])} per item, "
        f"{duration(times['seconds_left'])} left",
    ]
    if found["estimate"] is not None:
        made = found["estimate"]
        level = level_text(made["confidence_level"])
        ends = interval_text(made["confidence_interval"])
        lines.append(f"Estimate so far {number(made['estimate'])}, {level} {ends} if labelling stops now")
        if found["anytime_interval"] is not None:
            ends = interval_text(found["anytime_interval"])
            lines.append(f"{level} that holds at every moment: {ends}")
    if found["server"] is not None:
        lines.append(f"Served at {found['server']}")
    return lines


def _people(found: Mapping[str, Any]) -> Table:
    rows = [
        [
            row["annotator"] + (" (set aside)" if row["set_aside"] else ""),
            row["submitted"],
            row["skipped"],
            duration(row["seconds_per_item"]),
            row["last"],
        ]
        for row in found["annotators"]
    ]
    return Table(
        title="Annotators", header=("annotator", "submitted", "skipped", "per item", "last"), rows=rows
    )


def _rounds(found: Mapping[str, Any]) -> Table:
    names = ("round", "items", "labelled", "answers", "wanted")
    return Table(
        title="Rounds", header=names, rows=[[row[name] for name in names] for row in found["rounds"]]
    )


def _agreement(found: Mapping[str, Any]) -> list[Table]:
    agreement, open_ = found["agreement"], found["disagreements"]
    if agreement is None:
        return []
    rows = [
        [f"{pair['first']}, {pair['second']}", pair["shared"], pair["agreeing"], pair["kappa"]]
        for pair in agreement["pairs"]
    ]
    alpha = number(agreement["alpha"])
    title = (
        f"Agreement: Krippendorff's alpha ({agreement['level']}) {alpha}; "
        f"{open_['open']:,} disagreements open, {open_['decided']:,} decided"
    )
    pairs = Table(title=title, header=("pair", "shared", "agreeing", "Cohen's kappa"), rows=rows)
    return [pairs, *(_confusion(pair) for pair in agreement["pairs"][:_PAIRS])]


def _confusion(pair: Mapping[str, Any]) -> Table:
    """Return what one said where the other said something, the rest of many classes left out."""
    classes = pair["classes"][:_CLASSES]
    return Table(
        title="Confusion",
        header=(f"{pair['first']} \\ {pair['second']}", *classes),
        rows=[[name, *row[:_CLASSES]] for name, row in zip(classes, pair["confusion"], strict=False)],
    )


def _nonresponse(found: Mapping[str, Any]) -> list[Table]:
    described = found["nonresponse"]
    if not described["skipped"]:
        return []
    names = ("stratum", "items", "labelled", "skipped", "open")
    rows = [[row[name] for name in names] for row in described["strata"]]
    return [Table(title="Items that were only skipped", header=names, rows=rows)]
