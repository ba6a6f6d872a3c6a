"""`study_status`: how a study stands, as one plain dict."""

from __future__ import annotations

import itertools
import sqlite3
import warnings
from statistics import median
from typing import Any

from stratal.errors import MissingExtraError, StratalError, StratalWarning
from stratal.labels.annotators import Agreement, agreement_of, level_of_answers
from stratal.labels.labels import Labels
from stratal.study import serving, showing
from stratal.study.agreement import drift, pair_agreement
from stratal.study.interim import anytime_interval, estimate_study, look
from stratal.study.journal import head
from stratal.study.labelling import present_labels
from stratal.study.question import SCALE, Question
from stratal.study.study import Study

UNLIKELY = 0.01
"""p-value below which a drift is mentioned."""


def study_status(study: Study, *, confidence_level: float = 0.95, **options: Any) -> dict[str, Any]:
    """Return progress, agreement, times, nonresponse and the interim estimate of a study.

    Parameters
    ----------
    study : Study
    confidence_level : float
    **options
        As of `stratal.estimate`, for the interim estimate.

    Returns
    -------
    dict
        Plain numbers, text, lists and dicts.

    Examples
    --------
    >>> study_status.__name__
    'study_status'
    """
    question = study.question
    with study.verified() as connection:
        described = {
            "study": study.id,
            "folder": str(study.folder),
            "question": question.text,
            "rubric_version": question.rubric_version,
            "server": serving.served_by(study.folder),
            "journal": connection.execute("PRAGMA journal_mode").fetchone()[0],
            "head": head(connection),
            "annotators": [_annotator(connection, name) for name in study.annotators],
            "rounds": _rounds(connection),
            "nonresponse": _nonresponse(connection, study.sample().design.stratum_names),
            "disagreements": _disagreements(connection),
            "flags": _flags(connection),
            "time": _time(connection, study),
        }
        answers = _shared_answers(connection)
        labels = present_labels(connection, question, str(study.folder))
        agreed, described["agreement"] = _agreement(labels, answers, question)
        described["drift"] = _drifts(connection, answers, question)
    described |= _interim(study, described["rounds"], confidence_level, options)
    described["notes"] = [*(agreed.warnings if agreed is not None else ()), *_notes(described, study)]
    return described


def pairs_of(study: Study) -> list[dict[str, Any]]:
    """Return how far each pair of annotators agrees on the items that both answered.

    Examples
    --------
    >>> pairs_of.__name__
    'pairs_of'
    """
    with study.verified() as connection:
        return [pair.to_dict() for pair in _pairs(_shared_answers(connection), study.question)]


def _annotator(connection: sqlite3.Connection, name: str) -> dict[str, Any]:
    row = connection.execute("SELECT * FROM annotator WHERE name = ?", (name,)).fetchone()
    times = connection.execute(
        "SELECT min(at) AS first, max(at) AS last FROM journal WHERE annotator = ? AND item IS NOT NULL",
        (name,),
    ).fetchone()
    taken = connection.execute(
        "SELECT seconds FROM journal WHERE annotator = ? AND action IN ('submit', 'skip') "
        "AND seconds IS NOT NULL",
        (name,),
    ).fetchall()
    rounds = connection.execute(
        "SELECT round, sum(status = 'submitted') AS submitted, sum(status = 'skipped') AS skipped "
        "FROM answer JOIN item USING (item) WHERE annotator = ? GROUP BY round ORDER BY round",
        (name,),
    ).fetchall()
    return {
        "annotator": name,
        "submitted": row["submitted"],
        "skipped": row["skipped"],
        "rounds": [dict(entry) for entry in rounds],
        "set_aside": bool(row["aside"]),
        "seconds_per_item": float(median(entry["seconds"] for entry in taken)) if taken else None,
        "first": times["first"],
        "last": times["last"],
    }


def _rounds(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    rows = connection.execute(
        "SELECT round AS round, count(*) AS items, sum(answers > 0 OR decision IS NOT NULL) AS labelled, "
        "sum(copies) AS wanted, sum(min(answers, copies)) AS answers FROM item GROUP BY round ORDER BY round"
    )
    return [dict(row) for row in rows]


def _nonresponse(connection: sqlite3.Connection, names: tuple[str, ...]) -> dict[str, Any]:
    """Return items that are labelled, that were only skipped, and that nobody has seen to yet."""
    rows = connection.execute(
        "SELECT stratum, count(*) AS items, sum(labelled) AS labelled, "
        "sum(NOT labelled AND skips) AS skipped "
        "FROM (SELECT stratum, answers > 0 OR decision IS NOT NULL AS labelled, EXISTS (SELECT 1 FROM answer "
        "JOIN annotator ON name = annotator WHERE answer.item = item.item AND status = 'skipped' "
        "AND aside = 0) AS skips FROM item) GROUP BY stratum ORDER BY stratum"
    ).fetchall()
    strata = [
        {
            "stratum": names[row["stratum"]] if row["stratum"] < len(names) else str(row["stratum"]),
            "items": row["items"],
            "labelled": row["labelled"],
            "skipped": row["skipped"],
            "open": row["items"] - row["labelled"] - row["skipped"],
        }
        for row in rows
    ]
    counts = ("items", "labelled", "skipped", "open")
    return {**{name: sum(row[name] for row in strata) for name in counts}, "strata": strata}


def _disagreements(connection: sqlite3.Connection) -> dict[str, int]:
    row = connection.execute(
        "SELECT coalesce(sum(apart AND decision IS NULL), 0) AS open, count(decision) AS decided FROM item"
    ).fetchone()
    return {"open": row["open"], "decided": row["decided"]}


def _flags(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the items that are flagged now, with what was written."""
    rows = connection.execute(
        "SELECT item.id AS item, annotator, note FROM journal AS said JOIN item USING (item) "
        "WHERE action = 'flag' AND NOT EXISTS (SELECT 1 FROM journal AS later WHERE later.item = said.item "
        "AND later.annotator = said.annotator AND later.seq > said.seq AND later.action IN ('flag', 'unflag')"
        ") ORDER BY seq"
    )
    return [dict(row) for row in rows]


def _time(connection: sqlite3.Connection, study: Study) -> dict[str, float | None]:
    pace = connection.execute(
        "SELECT seconds FROM journal WHERE action IN ('submit', 'skip') AND seconds IS NOT NULL "
        "ORDER BY seq DESC LIMIT ?",
        (showing.RECENT,),
    ).fetchall()
    if not pace:
        return {"seconds_per_item": None, "seconds_left": None}
    seconds = float(median(row["seconds"] for row in pace))
    tally = connection.execute("SELECT total - done AS wanted FROM tally").fetchone()
    working = max(1, showing.at_work(connection, study.clock()))
    return {"seconds_per_item": seconds, "seconds_left": seconds * tally["wanted"] / working}


Shared = list[tuple[str, str, str, int]]
"""Item, annotator, answer and line of the journal, of items that several people labelled."""


def _shared_answers(connection: sqlite3.Connection) -> Shared:
    rows = connection.execute(
        "SELECT item.id AS id, answer.annotator, answer.value, seq FROM answer JOIN item USING (item) "
        "JOIN annotator ON name = answer.annotator "
        "WHERE answers > 1 AND status = 'submitted' AND aside = 0 ORDER BY seq"
    )
    return [tuple(row) for row in rows]


def _agreement(
    labels: Labels, answers: Shared, question: Question
) -> tuple[Agreement | None, dict[str, Any] | None]:
    """Return how far the annotators agree, by itself and as a plain dict with each pair."""
    if not answers:
        return None, None
    classes, found = not question.counted, None
    try:
        found = agreement_of(labels, classes=classes)
        overall = {} if found is None else found.to_dict()
    except MissingExtraError as error:
        level = level_of_answers(labels, classes=classes)
        overall = {"alpha": None, "level": level, "note": str(error)}
    return found, overall | {"pairs": [pair.to_dict() for pair in _pairs(answers, question)]}


def _pairs(answers: Shared, question: Question) -> list[Any]:
    said: dict[str, dict[str, str]] = {}
    for item, who, value, _ in answers:
        said.setdefault(who, {})[item] = value
    pairs = []
    for first, second in itertools.combinations(sorted(said), 2):
        shared = [item for item in said[first] if item in said[second]]
        one, other = ([said[who][item] for item in shared] for who in (first, second))
        numbers = None
        if question.kind == SCALE:
            numbers = [float(question.outcome(name)) for name in sorted({*one, *other})]
        if shared:
            pairs.append(pair_agreement(first, second, one, other, numbers=numbers))
    return pairs


def _drifts(connection: sqlite3.Connection, answers: Shared, question: Question) -> list[dict[str, Any]]:
    """Return how agreement and outcomes of each annotator changed over the work."""
    by_item: dict[str, list[tuple[str, str]]] = {}
    for item, who, value, _ in answers:
        by_item.setdefault(item, []).append((who, value))
    agreeing: dict[str, list[float]] = {}
    for item, who, value, _ in answers:
        others = [other == value for person, other in by_item[item] if person != who]
        agreeing.setdefault(who, []).append(sum(others) / len(others))
    found = [drift(who, "agreement", values) for who, values in sorted(agreeing.items())]
    if question.counted:
        outcomes: dict[str, list[float]] = {}
        for row in connection.execute(
            "SELECT annotator, value FROM answer WHERE status = 'submitted' ORDER BY annotator, seq"
        ):
            outcomes.setdefault(row["annotator"], []).append(float(question.outcome(row["value"])))
        found += [drift(who, "outcome", values) for who, values in outcomes.items()]
    return [entry.to_dict() for entry in found if entry is not None]


def _interim(
    study: Study, rounds: list[dict[str, Any]], confidence_level: float, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the estimate so far and the interval that holds at every moment; None, and why, without them."""
    found: dict[str, Any] = {"estimate": None, "anytime_interval": None, "reasons": []}
    half_width = study.setting("half_width")
    found["stop"] = {
        "half_width": float(half_width) if half_width else None,
        "enough": study.setting("enough") == "yes" if study.database.access.reading else look(study),
    }
    if not any(row["labelled"] for row in rounds):
        found["reasons"].append("no item is labelled yet, so there is no estimate")
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StratalWarning)
        try:
            interim = estimate_study(study, **options)
            found["estimate"] = interim.to_dict(confidence_level)
            found["reasons"] += interim.refuted
        except StratalError as error:
            found["reasons"].append(str(error))
            return found
    try:
        interval = anytime_interval(study, confidence_level)
        found["anytime_interval"] = [interval.low, interval.high]
    except StratalError as error:
        found["reasons"].append(f"no interval that holds at every moment: {error}")
    return found


def _notes(described: dict[str, Any], study: Study) -> list[str]:
    notes = list(described.pop("reasons"))
    for entry in described["drift"]:
        if entry["p_value"] is not None and entry["p_value"] < UNLIKELY:
            parts = ", ".join(f"{part:.2f}" for part in entry["parts"])
            change = f"{entry['what']} changed over time ({parts}; p = {entry['p_value']:.2g})"
            notes.append(f"{entry['annotator']}: {change}")
    if described["stop"]["enough"]:
        notes.append("the interval is as narrow as was asked for: labelling may stop")
    with study.database.read() as connection:
        if showing.clock_behind(connection, study.clock()) > showing.SLACK:
            notes.append("this computer's clock is behind labels that were saved before")
    return notes
