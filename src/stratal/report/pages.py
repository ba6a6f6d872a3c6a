"""What commands print of a result, in words and tables: plain dict → `Page`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from stratal.report.estimates import unscored_lines, value_with_interval, verdict_lines
from stratal.report.text import Page, ReportTable, brief, interval_text, level_text, noted, number, table_of


def inspection_page(found: Mapping[str, Any]) -> Page:
    """Return the page of a file: `describe_columns`, with `describe_proxies` where it was checked.

    Examples
    --------
    >>> inspection_page({"file": "p.csv", "rows": 1200, "columns": []}).lines
    ['p.csv: 1,200 rows']
    """
    columns: dict[str, Any] = {
        "column": lambda row: row["name"] or "(no name)",
        **{name: name for name in ("kind", "missing", "distinct")},
        "least": lambda row: number(row["minimum"]),
        "mean": lambda row: number(row["mean"]),
        "most": lambda row: number(row["maximum"]),
    }
    proxies: dict[str, Any] = {
        "proxy": "name",
        "scale": lambda row: "the outcome's" if row["scaled"] else "only orders",
        "mean": lambda row: number(row["mean"]),
        **{f"{k}0 %": lambda row, k=k: number(row["quantiles"][k]) for k in (1, 5, 9)},
    }
    tables = [table_of("Columns", found["columns"], columns)]
    if "proxies" in found:
        tables.append(table_of("Proxies", found["proxies"], proxies))
    lines = [f"{found['file']}: {found['rows']:,} rows"]
    log = found.get("log")
    lines += unscored_lines(log["failed"], log["missing"]) if log else []
    suggested = found.get("suggested_proxy")
    lines += _meaning_lines(found.get("proxies") or (None if suggested is None else [suggested]))
    return Page(lines=lines, tables=tables, notes=noted(found.get("notes", ())))


def _meaning_lines(proxies: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """Return one line on what the proxies predict, none without proxies."""
    if not proxies:
        return []
    meanings = [
        f"{row['name']} predicts {row['meaning']} ({'declared' if row['declared'] else 'inferred'})"
        for row in proxies
    ]
    change = "" if all(row["declared"] for row in proxies) else "; --predicts changes it"
    return [f"{', '.join(meanings)}{change}."]


_IDS_ALONE = "Annotators will see only the ids; --show COL,… adds columns, such as the text."


def handover_page(found: Mapping[str, Any], strata: Sequence[Sequence[Any]], *, shown: bool = True) -> Page:
    """Return the page of a draw, and where its files are.

    Parameters
    ----------
    found : dict
        `n`, `population_size`, `design`, `seed`, `round`, `new`, and the paths `sample` and `to_label`; of a
        pilot also `pilot`, why it is as large; `label_format`, if labels are sets of tags.
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
    if found["round"] > 1:
        added = f", {found['new']:,} of them new in round {found['round']}"
    else:
        added = ""
    table = ReportTable(title="Strata", header=("stratum", "units", "to label"), rows=strata)
    if "label_format" in found:
        how = f" with {found['label_format']}"
    else:
        how = ""
    return Page(
        lines=[f"{_drew(found)}{added}."],
        tables=[table] if strata else [],
        notes=[
            f"To label: {found['to_label']}  (fill in the column `label`{how})",
            f"Sample:   {found['sample']}  (keep it: the estimate needs it)",
            *([] if shown else [_IDS_ALONE]),
            *([found["pilot"]] if "pilot" in found else []),
        ],
    )


def _drew(found: Mapping[str, Any]) -> str:
    drawn = f"Drew {found['n']:,} of {found['population_size']:,} units"
    return f"{drawn} ({found['design']}, seed {found['seed']})"


def _or_worst(row: Mapping[str, Any]) -> Any:
    """Return the expected standard error, or what it is at most."""
    expected = row["expected_standard_error"]
    worst = row.get("worst_standard_error")
    if expected is None and worst is not None:
        return f"at most {worst:.4f}"
    return expected


# Columns of designs and of allocations.
_WAYS = {
    "design": "design",
    "estimator": "estimator",
    "allocation": "allocation",
    "optimistic SE": "optimistic_standard_error",
    "expected SE": _or_worst,
    "conservative SE": "conservative_standard_error",
    "relative efficiency": "relative_efficiency",
}

_STRATA = {
    "stratum": "name", "units": "size", "to label": "n", "mean proxy": "proxy_mean",
    "expected sd": "expected_standard_deviation",
}  # fmt: skip


def plan_page(plan: Mapping[str, Any], *, details: bool = True) -> Page:
    """Return the page of a plan (`Plan.to_dict`): what is recommended and what it is expected to give.

    Without details it is the answer alone, in few lines; with them also the designs, the strata, and which
    difference of two models would show.

    Examples
    --------
    >>> plan_page({"budget": 20, "population_size": 100, "recommended": {"design": "simple-random",
    ...     "estimator": "horvitz-thompson", "expected_standard_error": None, "relative_efficiency": None},
    ...     "designs": [], "strata": [], "assumptions": [], "notes": [], "confidence_level": 0.95}).lines[0]
    'Plan: label 20 of 100 units by a simple-random sample, estimate by horvitz-thompson'
    """
    columns = {
        "estimand": "estimand",
        "labels": "labels",
        "expected SE": "expected_standard_error",
        f"{level_text(plan['confidence_level'])} ±": "expected_half_width",
        "wanted ±": "wanted_half_width",
        "relative efficiency": "relative_efficiency",
    }
    lines = _sentences(plan)
    notes = [*noted(plan["notes"]), *noted(plan["assumptions"], "Assumed")]
    several = plan.get("estimands")
    if several:
        tables = [table_of("Estimands", several, columns)]
    else:
        tables = []
    if not details:
        return brief(Page(lines=lines, tables=tables, notes=notes))
    if plan.get("detectable_difference"):
        lines.append(
            f"Two models on these labels: a difference of {plan['detectable_difference']:.4f} or more will "
            "be detected with 80 % power (a smaller one will if they err on the same units)."
        )
    tables = tables or [table_of("Designs", plan["designs"], _WAYS)]
    if plan.get("allocations"):
        tables.append(table_of("Allocations", plan["allocations"], _WAYS))
    return Page(lines=lines, tables=[*tables, table_of("Strata", plan["strata"], _STRATA)], notes=notes)


def _sentences(plan: Mapping[str, Any]) -> list[str]:
    chosen = plan["recommended"]
    budget = plan["budget"]
    labels = plan.get("labels")
    error = chosen["expected_standard_error"]
    gain = chosen["relative_efficiency"]
    lines = [
        f"{'Pilot' if plan.get('pilot') else 'Plan'}: label {budget:,} of {plan['population_size']:,} units "
        f"by a {chosen['design']} sample, estimate by {chosen['estimator']}"
    ]
    lines += _meaning_lines(plan.get("proxies"))
    if labels:  # which labels the promise follows from, and what they showed of the proxy
        mean = labels["proxy_mean"]
        if mean is None:
            proxy = ""
        else:
            proxy = f", where the proxy says {mean:.3g}"
        lines.append(
            f"Recalibrated on {labels['used']:,} labels of {labels['source']}: their mean is "
            f"{labels['mean']:.3g}{proxy}"
        )
    # Where nothing is left open the notes say that the value will be exact.
    if error is not None and plan["half_width_range"][1] > 0:
        optimistic, conservative = plan["half_width_range"]
        lines.append(
            f"Expected standard error {error:.4f}; {level_text(plan['confidence_level'])} about "
            f"± {plan['expected_half_width']:.4f} "
            f"(optimistic {optimistic:.4f}, conservative {conservative:.4f})"
        )
    elif plan.get("worst_half_width"):
        low, high = plan["worst_bounds"]
        if (low, high) == (0, 1):
            between = "of 0 or 1"
        else:
            between = f"of {low:g} to {high:g}"
        lines.append(
            f"With labels {between}: standard error at most {chosen['worst_standard_error']:.4f}; "
            f"{level_text(plan['confidence_level'])} at worst about ± {plan['worst_half_width']:.4f}"
        )
    if plan.get("looks"):
        boundary, number = plan["looks"].split(":")
        lines.append(
            f"That is the interval at the last of {number} looks ({boundary}); all of them hold together."
        )
    if gain is not None and gain > 1 and not plan.get("estimands"):
        lines.append(f"About as precise as {gain * budget:,.0f} labels of a simple random sample.")
    return lines


def detection_page(found: Mapping[str, Any]) -> Page:
    """Return the page of labels by which a difference shows (`plan_to_detect`).

    Examples
    --------
    >>> found = {"detect": 0.02, "power": 0.8, "confidence_level": 0.95,
    ...          "detections": [{"comparison": "both models", "labels": 1960}]}
    >>> detection_page(found).lines
    ['Labels to detect a difference of 0.02 with 80 % power (95% interval):']
    """
    level = level_text(found["confidence_level"])
    power = f"{100 * found['power']:g} % power"
    return Page(
        lines=[f"Labels to detect a difference of {found['detect']:g} with {power} ({level}):"],
        tables=[table_of("", found["detections"], ("comparison", "labels"))],
        notes=[
            "A label is of one item, for the answers of both. With a file of answers the plan knows where "
            "they differ: stratal plan FILE --estimand difference:A,B --detect D."
        ],
    )


def simulation_page(found: Mapping[str, Any]) -> Page:
    """Return the page of a simulation (`SimulationTable.to_dict`).

    Parameters
    ----------
    found : dict
        `rows`; and `written`, the files that were, where there are any.

    Examples
    --------
    >>> simulation_page({"rows": [], "written": ["table.parquet"]}).notes
    ['Wrote table.parquet']
    """
    gain = "relative_efficiency"
    columns = {
        **{name: name for name in ("design", "estimator", "interval")},
        "n": "budget",
        "bias": lambda row: f"{row['bias']:+.4f}",
        "RMSE": lambda row: math.sqrt(row["mse"]),
        "efficiency": lambda row: f"{_fixed(row[gain], 2)} ± {_fixed(row[f'{gain}_se'], 2)}",
        "coverage": lambda row: _fixed(row["coverage"], 3),
        "width": "width",
    }
    notes = [f"Wrote {path}" for path in found.get("written", ())]
    return Page(tables=[table_of("", found["rows"], columns)], notes=notes)


def _fixed(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def study_page(found: Mapping[str, Any], *, compared: bool = False) -> Page:
    """Return the page of a study that was made; `compared`: with the model's answers, by `--predicted`.

    Examples
    --------
    >>> found = {"n": 3, "population_size": 9, "design": "poisson", "seed": 7, "study": "audit",
    ...          "annotators": ["ann"], "answers": 3, "shown": []}
    >>> found["question"] = {"text": "Right?", "choices": []}
    >>> study_page(found | {"questions": [found["question"]]}).lines[0]
    'Drew 3 of 9 units (poisson, seed 7) into audit.'
    """
    question = found["question"]
    choices = found["question"]["choices"]
    columns = {
        "choice": "name",
        "counts as": lambda choice: "no answer" if choice.get("none") else choice["value"],
        "key": lambda choice: choice["key"] or None,
    }
    if found["shown"]:
        notes = []
    else:
        notes = ["annotators see nothing but the ids: no column is shown (--show)"]
    classes = question.get("kind") == "choices" and all(choice["value"] is None for choice in choices)
    if classes and not compared:
        values = range(len(choices) - 1, -1, -1)
        numbered = ",".join(f"{choice['name']}={k}" for choice, k in zip(choices, values, strict=True))
        notes.append(
            "these choices count as classes: they can be compared with the model's answers (--predicted) but "
            f"not averaged. To average them say what each counts as, such as --choices {numbered}"
        )
    notes += [
        f"column {name!r} names pictures or sounds: {do}" for name, do in found.get("pictures", {}).items()
    ]
    lines = [
        f"{_drew(found)} into {found['study']}.",
        f"{found['answers']:,} answers wanted from {', '.join(found['annotators'])}.",
    ]
    tables = []
    for entry in found["questions"]:
        name = entry.get("name")
        lines.append(f"Question: {f'{name}: ' if name else ''}{entry['text']}")
        if entry["choices"]:
            tables.append(table_of(f"Choices: {name}" if name else "Choices", entry["choices"], columns))
    return Page(lines=lines, tables=tables, notes=noted(notes))


_IMPORTED = {
    "new": "items without an answer of this annotator",
    "changed": "the annotator had given another answer",
    "skipped": "skips among these",
    "same": "the study has them already",
    "repeated": "taken in before and changed in the study since: they stay as they are there",
    "unmatched": "items that are not in this study: left out",
}


def import_page(found: Mapping[str, Any]) -> Page:
    """Return the page of answers that were imported, or would be (`ImportResult`).

    Examples
    --------
    >>> found = {"file": "export.json", "tool": "label-studio", "new": 2, "changed": 0, "skipped": 1,
    ...          "same": 0, "repeated": 0, "unmatched": 1, "strangers": ["x"], "annotators": {"ann": 2},
    ...          "applied": False, "notes": []}
    >>> import_page(found).lines
    ['export.json (label-studio): would save 2 answers of ann; nothing was saved yet.']
    """
    count = found["new"] + found["changed"]
    saved = f"{count:,} answer{'' if count == 1 else 's'} of {', '.join(found['annotators']) or 'nobody'}"
    if found["applied"]:
        done = f"saved {saved}."
    else:
        done = f"would save {saved}; nothing was saved yet."
    rows = [[name, found[name], meaning] for name, meaning in _IMPORTED.items()]
    strangers = ", ".join(map(repr, found["strangers"]))
    return Page(
        lines=[f"{found['file']} ({found['tool']}): {done}"],
        tables=[ReportTable(title="Answers", header=("", "answers", "meaning"), rows=rows)],
        notes=noted(
            [
                *change_lines(found),
                *([f"not in this study: {strangers}"] if strangers else []),
                *found["notes"],
            ]
        ),
    )


_CHANGES = {
    "new_answers": "new answers",
    "changed_answers": "answers that replace earlier ones",
    "withdrawn_answers": "answers taken back",
}


def change_lines(found: Mapping[str, Any]) -> list[str]:
    """Return whose answers an import adds, changes and takes back, a line for each kind that occurs.

    Examples
    --------
    >>> change_lines({"new_answers": {"ann": 2}, "changed_answers": {"bob": 11}, "withdrawn_answers": {}})
    ['new answers: ann 2', 'answers that replace earlier ones: bob 11']
    """
    lines = []
    for name, words in _CHANGES.items():
        counts = found.get(name) or {}
        if counts:
            lines.append(f"{words}: " + ", ".join(f"{who} {count:,}" for who, count in counts.items()))
    return lines


# So many tables of pairs, of so many classes, are shown; `--json` has all.
_PAIRS = 3
_CLASSES = 8

_PEOPLE = {
    "annotator": lambda row: row["annotator"] + (" (set aside)" if row["set_aside"] else ""),
    "submitted": "submitted",
    "skipped": "skipped",
    "per item": lambda row: duration(row["seconds_per_item"]),
    "last": "last",
}


def status_page(found: Mapping[str, Any]) -> Page:
    """Return the page of a study's status (`study_status`)."""
    agreement = found["agreement"]
    rounds = found["rounds"]
    times = found["time"]
    given, wanted = (sum(row[name] for row in rounds) for name in ("answers", "wanted"))
    each = times["seconds_per_item"]
    left = times["seconds_left"]
    pace = "" if each is None else f"; {duration(each)} per item"
    pace += f", about {duration(left)} left" if left else ""
    lines = [f"{found['folder']}: {found['question']}", f"{given:,} of {wanted:,} answers{pace}"]
    if found["estimate"] is not None:
        made = found["estimate"]
        anytime = found["anytime_interval"]
        look = found.get("planned_look")
        lines.append(f"Estimate so far {value_with_interval(made)} if labelling stops now")
        if anytime is not None:
            level = level_text(made["confidence_level"])
            lines.append(f"{level} that holds at every moment: {interval_text(anytime)}")
        if look is not None:
            lines.append(
                f"Look {look['look']} of {look['of']}, at {look['estimate']['n']:,} labels: "
                f"{value_with_interval(look['estimate'])}; it holds at all looks together"
            )
    others = [other for other in found["questions"][1:] if other["estimate"] is not None]
    lines += [f"{other['outcome']}: {value_with_interval(other['estimate'])}" for other in others]
    lines += verdict_lines(found)
    tables = [
        table_of("Annotators", found["annotators"], _PEOPLE),
        table_of("Rounds", rounds, ("round", "items", "labelled", "answers", "wanted")),
    ]
    if agreement is not None:
        open_ = found["disagreements"]
        pairs = agreement["pairs"]
        if open_["share"] is None:
            share = ""
        else:
            share = f", {open_['share']:.0%} of {open_['shared']:,} shared items"
        title = (
            f"Agreement: Krippendorff's alpha ({agreement['level']}) {number(agreement['alpha'])}; "
            f"{open_['open']:,} disagreements open, {open_['decided']:,} decided{share}"
        )
        tables += [
            table_of(title, pairs, PAIR | {"Cohen's kappa": "kappa"}),
            *map(_confusion, pairs[:_PAIRS]),
        ]
    if found["nonresponse"]["skipped"]:
        names = ("stratum", "items", "labelled", "skipped", "open")
        tables.append(table_of("Items that were only skipped", found["nonresponse"]["strata"], names))
    if found["flags"]:
        flagged = {"item": "item", "by": "annotator", "note": "note"}
        tables.append(table_of("Flagged", found["flags"], flagged))
    missing = (agreement or {}).get("note")
    if missing:
        unknown = [f"how far the annotators agree: {missing}"]
    else:
        unknown = []
    return Page(lines=lines, tables=tables, notes=noted([*found["notes"], *unknown]))


# Columns of a table of pairs of annotators.
PAIR = {"pair": lambda row: f"{row['first']}, {row['second']}", "shared": "shared", "agreeing": "agreeing"}


def _confusion(pair: Mapping[str, Any]) -> ReportTable:
    """Return the answers of one by those of the other, the rest of many classes left out."""
    classes = pair["classes"][:_CLASSES]
    return ReportTable(
        title="Confusion",
        header=(f"{pair['first']} \\ {pair['second']}", *classes),
        rows=[[name, *row[:_CLASSES]] for name, row in zip(classes, pair["confusion"], strict=False)],
    )


def check_page(found: Mapping[str, Any]) -> Page:
    """Return the page of a check.

    Examples
    --------
    >>> check_page({"study": "audit", "sound": True, "problems": [], "notes": [], "items": 3, "lines": 2,
    ...             "head": "ab"}).lines[0]
    'audit: sound (3 items, 2 lines of journal).'
    """
    size = f"{found['items']:,} items, {found['lines']:,} lines of journal"
    wrong = len(found["problems"])
    if found["sound"]:
        verdict = "sound"
    else:
        verdict = f"{wrong} problem{'s' * (wrong > 1)}"
    return Page(
        lines=[f"{found['study']}: {verdict} ({size}).", f"Last hash: {found['head']}"],
        notes=[*noted(found["problems"], "Problem"), *noted(found["notes"])],
    )


def duration(seconds: float | None) -> str:
    """Return a length of time in a few characters.

    Examples
    --------
    >>> duration(8.5), duration(600), duration(10_000), duration(None), duration(0.0)
    ('8.5 s', '10 min', '2.8 h', '–', '–')
    """
    if seconds is None or seconds < 0.05:  # of answers that were imported no time is known
        return "–"
    if seconds < 90:
        return f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
