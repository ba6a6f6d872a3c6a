"""A study of annotators in words and tables: what was made, how it stands, whether it is sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stratal.report.text import Page, Table, interval_text, level_text, noted, number

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
