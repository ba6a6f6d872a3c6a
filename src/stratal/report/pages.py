"""Pages that commands print, made from the JSON dicts of results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stratal.protocols import JsonDict, JsonMapping
from stratal.report.estimates import cluster_count_text, unscored_lines, value_with_interval, verdict_lines
from stratal.report.text import (
    POINTS,
    Page,
    ReportTable,
    format_notes,
    format_number,
    interval_text,
    level_text,
    shorten_page,
    table_of,
    width_text,
)


def inspection_page(inspection: JsonMapping) -> Page:
    """Return the page of a file: its columns, and its proxies if they were named."""
    columns: JsonDict = {
        "column": lambda row: row["name"] or "(no name)",
        "kind": "kind",
        "missing": "missing",
        "distinct": "distinct",
        "least": lambda row: format_number(row["minimum"]),
        "mean": lambda row: format_number(row["mean"]),
        "most": lambda row: format_number(row["maximum"]),
    }
    proxy_columns: JsonDict = {
        "proxy": "name",
        "scale": lambda row: "the outcome's" if row["scaled"] else "only orders",
        "mean": lambda row: format_number(row["mean"]),
        "10%": lambda row: format_number(row["quantiles"][1]),
        "50%": lambda row: format_number(row["quantiles"][5]),
        "90%": lambda row: format_number(row["quantiles"][9]),
    }
    tables = [table_of("Columns", inspection["columns"], columns)]
    if "proxies" in inspection:
        tables.append(table_of("Proxies", inspection["proxies"], proxy_columns))
    lines = [f"{inspection['file']}: {inspection['rows']:,} rows"]
    log = inspection.get("log")
    if log:
        lines += unscored_lines(log["failed"], log["missing"])
    proxies = inspection.get("proxies")
    suggested = inspection.get("suggested_proxy")
    if not proxies and suggested is not None:
        proxies = [suggested]
    lines += _meaning_lines(proxies)
    return Page(lines=lines, tables=tables, notes=format_notes(inspection.get("notes", ())))


def _meaning_lines(proxies: Sequence[Mapping[str, object]] | None) -> list[str]:
    """Return the line that states what the proxies predict; [] without proxies."""
    if not proxies:
        return []
    meanings = [
        f"{row['name']} predicts {row['meaning']} ({'declared' if row['declared'] else 'inferred'})"
        for row in proxies
    ]
    if all(row["declared"] for row in proxies):
        change = ""
    else:
        change = "; --predicts changes it"
    return [f"{', '.join(meanings)}{change}."]


def draw_page(
    draw: JsonMapping,
    strata: Sequence[Sequence[Any]],
    *,
    has_columns: bool = True,
    content: Sequence[str] = (),
) -> Page:
    """Return the page of a draw with the paths of its files.

    Parameters
    ----------
    draw : dict
        `n`, `population_size`, `design`, `seed`, `round`, `new`, `columns_to_fill`, and the paths `sample`
        and `to_label`. Optional: `pilot`, the reason for the size of a pilot, `previous`, how labels of
        earlier waves are used, `label_format` for labels that are sets, `clusters` with the `budget`, and
        `notes` on reading the file.
    strata : sequence of (name, units, new units, units of earlier rounds)
        A row for each stratum.
    has_columns : bool
        Whether the labelling table has columns in addition to ids.
    content : sequence of str
        Columns of the file with texts or images, which the labelling table could show.
    """
    round_text = ""
    if draw["round"] > 1:
        round_text = f", {draw['new']:,} of them new in round {draw['round']}"
    tables = []
    header: tuple[str, ...] = ("stratum", "units", "to label", "earlier rounds")
    if draw["round"] == 1:
        header = header[:3]
        strata = [row[:3] for row in strata]
    if strata:
        tables.append(ReportTable(title="Strata", header=header, rows=strata))
    notes = [
        f"To label: {draw['to_label']}  (fill in {_columns_to_fill_text(draw)})",
        f"Sample:   {draw['sample']}  (keep it: the estimate needs it)",
    ]
    if not has_columns:
        shown_columns = ",".join(content) or "COL,…"
        suffix = "" if content else ", such as the text"
        notes.append(f"Annotators will see only the ids; --show {shown_columns} adds columns{suffix}.")
    notes += [draw[name] for name in ("pilot", "previous") if name in draw]
    notes += format_notes(draw.get("notes", ()))
    lines = [f"{_draw_text(draw)}{round_text}."]
    budget = draw.get("budget")
    if "clusters" in draw and budget is not None and draw["n"] > budget:
        excess = draw["n"] - budget
        comparison = f"{excess:,} more units than the budget of {budget:,}"
        lines.append(f"Only whole clusters are drawn, so the sample has {comparison}.")
    return Page(lines=lines, tables=tables, notes=notes)


def _columns_to_fill_text(draw: JsonMapping) -> str:
    """Return the columns that annotators fill in, with a hint on their values."""
    columns = draw["columns_to_fill"]
    noun = "column" if len(columns) == 1 else "columns"
    names = ", ".join(f"`{name}`" for name in columns)
    hint = ""
    if "label_format" in draw:
        hint = f" with {draw['label_format']}"
    elif "label_hint" in draw:
        hint = f": {draw['label_hint']}"
    return f"the {noun} {names}{hint}"


def _draw_text(draw: JsonMapping) -> str:
    """Return the sentence on a draw without its final full stop."""
    units = f"Drew {draw['n']:,} of {draw['population_size']:,} units{cluster_count_text(draw)}"
    return f"{units} ({draw['design']}, seed {draw['seed']})"


def _expected_or_worst_error(row: JsonMapping) -> float | str | None:
    """Return the expected standard error, or its upper limit if it is unknown."""
    expected: float | None = row["expected_standard_error"]
    worst = row.get("worst_standard_error")
    if expected is None and worst is not None:
        return f"at most {worst:.4f}"
    return expected


def _width_column(half_width_key: str) -> Callable[[JsonMapping], str | None]:
    """Return a function of an estimand's row that returns the width of its interval as text."""

    def width_of(row: JsonMapping) -> str | None:
        half_width = row[half_width_key]
        if half_width is None:
            return None
        return width_text(2 * half_width, row["share"])

    return width_of


# Columns of the tables of designs and of allocations.
_DESIGN_COLUMNS = {
    "design": "design",
    "estimator": "estimator",
    "allocation": "allocation",
    "optimistic SE": "optimistic_standard_error",
    "expected SE": _expected_or_worst_error,
    "conservative SE": "conservative_standard_error",
    "relative efficiency": "relative_efficiency",
}

_STRATUM_COLUMNS = {
    "stratum": "name", "units": "size", "to label": "n", "mean proxy": "proxy_mean",
    "expected sd": "expected_standard_deviation",
}  # fmt: skip


def plan_page(plan: JsonMapping, *, details: bool = True) -> Page:
    """Return the page of a plan (`Plan.to_dict`): the recommended design and its expected precision.

    With details, it also contains the designs, the strata and the detectable difference of two models.
    """
    estimand_columns = {
        "estimand": "estimand",
        "labels": "labels",
        "expected SE": "expected_standard_error",
        f"width of the {level_text(plan['confidence_level'])}": _width_column("expected_half_width"),
        "target width": _width_column("wanted_half_width"),
        "relative efficiency": "relative_efficiency",
    }
    lines = _plan_lines(plan)
    notes = [*format_notes(plan["notes"]), *format_notes(plan["assumptions"], "Assumed")]
    tables = []
    if plan.get("estimands"):
        tables.append(table_of("Estimands", plan["estimands"], estimand_columns))
    if not details:
        return shorten_page(Page(lines=lines, tables=tables, notes=notes))
    if plan.get("detectable_difference"):
        difference = width_text(plan["detectable_difference"], plan["share"])
        lines.append(
            f"Two models on these labels: differences of at least {difference} are detected with 80% power "
            "(smaller ones if the models err on the same units)"
        )
    if not tables and not _is_threshold_plan(plan):
        tables.append(table_of("Designs", plan["designs"], _DESIGN_COLUMNS))
    if plan.get("allocations"):
        tables.append(table_of("Allocations", plan["allocations"], _DESIGN_COLUMNS))
    tables.append(table_of("Strata", plan["strata"], _STRATUM_COLUMNS))
    return Page(lines=lines, tables=tables, notes=notes)


def _is_threshold_plan(plan: JsonMapping) -> bool:
    """Return whether the plan is for the accepted set of `threshold`, which has no standard error."""
    return bool((plan.get("estimand") or {}).get("kind") == "threshold")


def _plan_lines(plan: JsonMapping) -> list[str]:
    """Return the sentences on the design, the labels it is based on, and the expected precision."""
    design = plan["recommended"]
    budget = plan["budget"]
    efficiency = design["relative_efficiency"]
    rounds = plan.get("rounds")
    lines = [_plan_sentence(plan)]
    lines += _meaning_lines(plan.get("proxies"))
    labels = plan.get("labels")
    if labels:
        proxy_text = ""
        if labels["proxy_mean"] is not None:
            proxy_text = f", and the mean of their proxy is {labels['proxy_mean']:.3g}"
        lines.append(
            f"Recalibrated on {labels['used']:,} labels from {labels['source']}: their mean is "
            f"{labels['mean']:.3g}{proxy_text}"
        )
    if plan.get("previous"):
        lines.append(plan["previous"].removesuffix("."))
    if rounds:
        lines += _round_lines(plan, rounds)
    else:
        lines += _precision_lines(plan)
    if plan.get("looks"):
        boundary, n_looks = plan["looks"].split(":")
        lines.append(
            f"This is the interval at the last of {n_looks} looks ({boundary}); the intervals of all looks "
            "hold simultaneously."
        )
    if efficiency is not None and efficiency > 1 and not plan.get("estimands") and not rounds:
        lines.append(f"As precise as about {efficiency * budget:,.0f} random labels")
    return lines


def _plan_sentence(plan: JsonMapping) -> str:
    """Return how many units are labelled, and how they are chosen."""
    budget = plan["budget"]
    rounds = plan.get("rounds")
    verb = "Label a pilot of" if plan.get("pilot") else "Label"
    sentence = f"{verb} {budget:,} of {plan['population_size']:,} units"
    n_strata = len(plan["strata"])
    design = plan["recommended"]["design"]
    if design == "stratified" and n_strata > 1:
        sentence += f", chosen at random within {n_strata:,} strata"
    elif design in ("stratified", "simple-random"):
        sentence += ", chosen at random"
    else:
        sentence += f", by a {design} sample"
    if rounds and rounds["total"] > budget:
        sentence += f", and {rounds['total'] - budget:,} more in a second round, based on the first labels"
    return sentence


def _round_lines(plan: JsonMapping, rounds: JsonMapping) -> list[str]:
    """Return the sentences on the expected precision or guarantee with the labels of all rounds."""
    total = rounds["total"]
    if rounds["expected_half_width"] is not None:
        level = level_text(plan["confidence_level"])
        width = width_text(2 * rounds["expected_half_width"], plan["share"])
        return [f"With all {total:,} labels: {level} about {width} wide"]
    requirement = str((plan.get("estimand") or {}).get("require"))
    if rounds["cases_needed"] is not None:
        return [_required_cases_sentence(requirement, rounds)]
    if rounds["largest_items"] is None:
        return []
    n_required = rounds["labels_needed"]
    if n_required is None:
        return [
            f"{requirement} cannot be guaranteed: according to the score, no sufficiently large set "
            "satisfies it."
        ]
    lines = [
        f"If the score is a probability, about {rounds['expected_items']:,} of {plan['population_size']:,} "
        f"units are accepted for {requirement}; the largest set that satisfies it has "
        f"{rounds['largest_items']:,} units."
    ]
    if n_required > total:
        lines.append(f"A guarantee for half of that set requires about {n_required:,} labels.")
    return lines


def _required_cases_sentence(requirement: str, rounds: JsonMapping) -> str:
    """Return the sentence on the units of a class, or not of it, that a guarantee requires."""
    cases = "units that are not of the class"
    if rounds["cases_of_class"]:
        cases = "units of the class"
    n_required = rounds["labels_needed"]
    if n_required is None:
        return f"{requirement} cannot be guaranteed: according to the score, there are no {cases}."
    verdict = "can be guaranteed"
    if n_required > rounds["total"]:
        verdict = "cannot be guaranteed"
    return (
        f"{requirement} {verdict} with {rounds['total']:,} labels: this requires {rounds['cases_needed']:,} "
        f"{cases} among which no error is found. According to the score, about {n_required:,} random labels "
        "are needed to find that many."
    )


def _precision_lines(plan: JsonMapping) -> list[str]:
    """Return the sentence on the expected or largest standard error and half-width."""
    design = plan["recommended"]
    level = level_text(plan["confidence_level"])
    error = design["expected_standard_error"]
    # If the half-width is 0, the notes state that the value will be exact.
    if error is not None and plan["half_width_range"][1] > 0:
        expected = width_text(2 * plan["expected_half_width"], plan["share"])
        ends = [width_text(2 * end, plan["share"]) for end in plan["half_width_range"]]
        range_text = f"{ends[0].removesuffix(POINTS)} to {ends[1]}"
        return [f"Expected {level}: about {expected} wide (range {range_text})"]
    if not plan.get("worst_half_width"):
        return []
    low, high = plan["worst_bounds"]
    is_share = (low, high) == (0, 1)
    bounds = "0 or 1" if is_share else f"between {low:g} and {high:g}"
    width = width_text(2 * plan["worst_half_width"], is_share)
    return [f"If labels are {bounds}: {level} at most about {width} wide"]


def detection_page(detection: JsonMapping) -> Page:
    """Return the page of the number of labels that detect a difference (`plan_to_detect`)."""
    level = level_text(detection["confidence_level"])
    power = f"{100 * detection['power']:g}% power"
    difference = width_text(detection["detect"], is_share=True)
    return Page(
        lines=[f"Labels to detect a difference of {difference} with {power} ({level}):"],
        tables=[table_of("", detection["detections"], ("comparison", "labels"))],
        notes=[
            "One label covers both answers to an item. With a file of answers, the plan uses the "
            "items on which they differ: stratal plan FILE --estimand difference:A,B --detect D."
        ],
    )


def simulation_page(simulation: JsonMapping) -> Page:
    """Return the page of a simulation (`SimulationTable.to_dict`), with the files in `written`."""
    efficiency = "relative_efficiency"
    columns = {
        "design": "design",
        "estimator": "estimator",
        "interval": "interval",
        "n": "budget",
        "bias": lambda row: f"{row['bias']:+.4f}",
        "RMSE": lambda row: math.sqrt(row["mse"]),
        "efficiency": lambda row: f"{_fixed(row[efficiency], 2)} ± {_fixed(row[f'{efficiency}_se'], 2)}",
        "coverage": lambda row: _fixed(row["coverage"], 3),
        "width": "width",
    }
    notes = [f"Wrote {path}" for path in simulation.get("written", ())]
    return Page(tables=[table_of("", simulation["rows"], columns)], notes=notes)


def _fixed(value: float | None, digits: int) -> str:
    """Return a number with a fixed number of decimal digits."""
    if value is None:
        return "–"
    return f"{value:.{digits}f}"


def study_page(study: JsonMapping, *, has_answers: bool = False) -> Page:
    """Return the page of a new study; `has_answers` if the model's answers are known (`--predicted`)."""
    lines = [
        f"{_draw_text(study)} into {study['study']}.",
        f"{study['answers']:,} answers needed from {', '.join(study['annotators'])}.",
    ]
    columns = {
        "choice": "name",
        "counts as": lambda choice: "no answer" if choice.get("none") else choice["value"],
        "key": lambda choice: choice["key"] or None,
    }
    tables = []
    for question in study["questions"]:
        name = question.get("name")
        prefix = f"{name}: " if name else ""
        lines.append(f"Question: {prefix}{question['text']}")
        if question["choices"]:
            title = f"Choices: {name}" if name else "Choices"
            tables.append(table_of(title, question["choices"], columns))
    return Page(lines=lines, tables=tables, notes=format_notes(_study_notes(study, has_answers)))


def _study_notes(study: JsonMapping, has_answers: bool) -> list[str]:
    """Return the notes on hidden columns, on choices without values, and on pictures and sounds."""
    notes = []
    if not study["shown"]:
        notes.append("annotators see only the ids: no column is shown (--show)")
    question = study["question"]
    choices = question["choices"]
    are_classes = question.get("kind") == "choices" and all(choice["value"] is None for choice in choices)
    if are_classes and not has_answers:
        values = range(len(choices) - 1, -1, -1)
        example = ",".join(f"{choice['name']}={value}" for choice, value in zip(choices, values, strict=True))
        notes.append(
            "these choices count as classes: they can be compared with the model's answers (--predicted) but "
            f"not averaged. To average them, give each a value, such as --choices {example}"
        )
    notes += [
        f"column {name!r} contains names of images or audio files: {action}"
        for name, action in study.get("pictures", {}).items()
    ]
    return notes


# Counts of an import and their meanings.
_IMPORT_COUNTS = {
    "new": "items without an answer of this annotator",
    "changed": "the annotator had given a different answer",
    "skipped": "skips among these",
    "same": "already in the study",
    "repeated": "imported before and changed in the study since then: the study's answers are kept",
    "unmatched": "items that are not in this study: ignored",
}


def import_page(result: JsonMapping) -> Page:
    """Return the page of answers that were imported, or would be (`ImportResult`)."""
    n_saved = result["new"] + result["changed"]
    noun = "answer" if n_saved == 1 else "answers"
    answers = f"{n_saved:,} {noun} from {', '.join(result['annotators']) or 'nobody'}"
    if result["applied"]:
        outcome = f"saved {answers}."
    else:
        outcome = f"would save {answers}; nothing has been saved yet."
    notes = change_lines(result)
    if result["strangers"]:
        notes.append(f"not in this study: {', '.join(map(repr, result['strangers']))}")
    rows = [[name, result[name], meaning] for name, meaning in _IMPORT_COUNTS.items()]
    return Page(
        lines=[f"{result['file']} ({result['tool']}): {outcome}"],
        tables=[ReportTable(title="Answers", header=("", "answers", "meaning"), rows=rows)],
        notes=format_notes([*notes, *result["notes"]]),
    )


# Titles of the kinds of changes of an import.
_CHANGE_TITLES = {
    "new_answers": "new answers",
    "changed_answers": "answers that replace earlier ones",
    "withdrawn_answers": "withdrawn answers",
}


def change_lines(result: JsonMapping) -> list[str]:
    """Return one line per kind of change of an import, with the number of answers of each annotator."""
    lines = []
    for name, title in _CHANGE_TITLES.items():
        counts = result.get(name) or {}
        if counts:
            by_annotator = ", ".join(f"{annotator} {count:,}" for annotator, count in counts.items())
            lines.append(f"{title}: {by_annotator}")
    return lines


# Largest number of pairs of annotators with a confusion table; the JSON output contains all.
_MAX_PAIRS = 3

# Largest number of classes in a confusion table, so that it fits in a terminal.
_MAX_CLASSES = 8

_ANNOTATOR_COLUMNS = {
    "annotator": lambda row: row["annotator"] + (" (set aside)" if row["set_aside"] else ""),
    "submitted": "submitted",
    "skipped": "skipped",
    "per item": lambda row: duration(row["seconds_per_item"]),
    "last": "last",
}


def status_page(status: JsonMapping) -> Page:
    """Return the page of the status of a study (`study_status`)."""
    lines = [
        f"{status['folder']}: {status['question']}",
        _progress_line(status),
        *_current_estimate_lines(status),
        *verdict_lines(status),
    ]
    tables = [
        table_of("Annotators", status["annotators"], _ANNOTATOR_COLUMNS),
        table_of("Rounds", status["rounds"], ("round", "items", "labelled", "answers", "wanted")),
        *_agreement_tables(status),
    ]
    if status["nonresponse"]["skipped"]:
        names = ("stratum", "items", "labelled", "skipped", "open")
        tables.append(table_of("Items that were only skipped", status["nonresponse"]["strata"], names))
    if status["flags"]:
        columns = {"item": "item", "by": "annotator", "note": "note"}
        tables.append(table_of("Flagged", status["flags"], columns))
    notes = list(status["notes"])
    agreement = status["agreement"] or {}
    if agreement.get("note"):
        notes.append(f"agreement between the annotators: {agreement['note']}")
    return Page(lines=lines, tables=tables, notes=format_notes(notes))


def _progress_line(status: JsonMapping) -> str:
    """Return the line on the number of answers, the time per item and the remaining time."""
    n_answers = sum(row["answers"] for row in status["rounds"])
    n_required = sum(row["wanted"] for row in status["rounds"])
    line = f"{n_answers:,} of {n_required:,} answers"
    seconds_per_item = status["time"]["seconds_per_item"]
    seconds_left = status["time"]["seconds_left"]
    if seconds_per_item is not None:
        line += f"; {duration(seconds_per_item)} per item"
    if seconds_left:
        line += f", about {duration(seconds_left)} left"
    return line


def _current_estimate_lines(status: JsonMapping) -> list[str]:
    """Return the lines on the current estimates of a study."""
    lines = []
    estimate = status["estimate"]
    if estimate is not None:
        quantity = str(estimate["quantity"])
        name = f"{quantity[:1].upper()}{quantity[1:]}"
        lines.append(f"{name} {value_with_interval(estimate)} if labelling stops now")
        if status["anytime_interval"] is not None:
            level = level_text(estimate["confidence_level"])
            interval = interval_text(status["anytime_interval"], estimate["share"])
            lines.append(f"{level} that is valid at any time: {interval}")
        interim = status.get("planned_look")
        if interim is not None:
            lines.append(
                f"Look {interim['look']} of {interim['of']}, at {interim['estimate']['n']:,} labels: "
                f"{value_with_interval(interim['estimate'])}; the intervals of all looks hold simultaneously"
            )
    other_questions = [row for row in status["questions"][1:] if row["estimate"] is not None]
    lines += [f"{row['outcome']}: {value_with_interval(row['estimate'])}" for row in other_questions]
    return lines


def _agreement_tables(status: JsonMapping) -> list[ReportTable]:
    """Return the table of pairs of annotators, and the confusion tables of the first pairs."""
    agreement = status["agreement"]
    if agreement is None:
        return []
    disagreements = status["disagreements"]
    share_text = ""
    if disagreements["share"] is not None:
        share_text = f", {disagreements['share']:.0%} of {disagreements['shared']:,} shared items"
    title = (
        f"Agreement: Krippendorff's alpha ({agreement['level']}) {format_number(agreement['alpha'])}; "
        f"{disagreements['open']:,} disagreements open, {disagreements['decided']:,} decided{share_text}"
    )
    pairs = agreement["pairs"]
    return [
        table_of(title, pairs, PAIR_COLUMNS | {"Cohen's kappa": "kappa"}),
        *map(_confusion_table, pairs[:_MAX_PAIRS]),
    ]


# Columns of a table of pairs of annotators.
PAIR_COLUMNS = {
    "pair": lambda row: f"{row['first']}, {row['second']}",
    "shared": "shared",
    "agreeing": "agreeing",
}


def _confusion_table(pair: JsonMapping) -> ReportTable:
    """Return the table of the answers of one annotator by those of the other, for the first classes."""
    classes = pair["classes"][:_MAX_CLASSES]
    return ReportTable(
        title="Confusion",
        header=(f"{pair['first']} \\ {pair['second']}", *classes),
        rows=[[name, *row[:_MAX_CLASSES]] for name, row in zip(classes, pair["confusion"], strict=False)],
    )


def check_page(check: JsonMapping) -> Page:
    """Return the page of a check of a study."""
    size = f"{check['items']:,} items, {check['lines']:,} journal entries"
    n_problems = len(check["problems"])
    noun = "problem" if n_problems == 1 else "problems"
    verdict = f"{n_problems} {noun}"
    if check["sound"]:
        verdict = "sound"
    return Page(
        lines=[f"{check['study']}: {verdict} ({size}).", f"Last hash: {check['head']}"],
        notes=[*format_notes(check["problems"], "Problem"), *format_notes(check["notes"])],
    )


# Shorter times are unknown: imported answers have no time.
_MIN_SECONDS = 0.05

# Times below one and a half minutes are printed in seconds.
_MIN_SECONDS_FOR_MINUTES = 90

# Times below one and a half hours are printed in minutes.
_MIN_SECONDS_FOR_HOURS = 5400


def duration(seconds: float | None) -> str:
    """Return a time in seconds, minutes or hours as text."""
    if seconds is None or seconds < _MIN_SECONDS:
        return "–"
    if seconds < _MIN_SECONDS_FOR_MINUTES:
        return f"{seconds:.1f} s"
    if seconds < _MIN_SECONDS_FOR_HOURS:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
