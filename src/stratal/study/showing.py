"""What is read out of a study for a page: items, answers, disagreements, progress."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from datetime import datetime
from statistics import median
from typing import Any

from stratal.study.faults import MISSING, StudyError
from stratal.study.journal import setting
from stratal.study.question import Question
from stratal.study.records import Answer, Disagreement, Item, Progress

RECENT = 50
"""Answers that an annotator's pace is taken from, and lines that the clock is compared with."""

AT_WORK = 3600.0
"""Seconds since the last answer within which an annotator counts as working."""

SLACK = 1.0
"""Seconds by which a clock may differ without being mentioned."""

_ANSWERS = (
    "SELECT journal.seq, at, answer.annotator, item.id AS id, status, answer.value, note, seconds "
    "FROM answer JOIN journal USING (seq) JOIN item ON item.item = answer.item "
)


def shown_item(connection: sqlite3.Connection, question: Question, annotator: str, row: Any) -> Item:
    """Return an item as an annotator sees it.

    Examples
    --------
    >>> shown_item.__name__
    'shown_item'
    """
    said = connection.execute(
        _ANSWERS + "WHERE answer.item = ? AND answer.annotator = ?", (row["item"], annotator)
    ).fetchone()
    flagged = connection.execute(
        "SELECT action FROM journal WHERE item = ? AND annotator = ? AND action IN ('flag', 'unflag') "
        "ORDER BY seq DESC LIMIT 1",
        (row["item"], annotator),
    ).fetchone()
    return Item(
        id=row["id"],
        position=row["item"],
        payload=json.loads(row["payload"]),
        sides=sides(question, row["id"], annotator, str(setting(connection, "id"))),
        answer=None if said is None else answer(said),
        flagged=flagged is not None and flagged["action"] == "flag",
    )


def item_row(connection: sqlite3.Connection, item: int) -> Any:
    """Return an item's row by its number.

    Examples
    --------
    >>> item_row.__name__
    'item_row'
    """
    return connection.execute("SELECT item, id, payload FROM item WHERE item = ?", (item,)).fetchone()


def given_row(connection: sqlite3.Connection, annotator: str, id: str) -> Any:  # noqa: A002
    """Return the row of an item that an annotator was given.

    Examples
    --------
    >>> given_row.__name__
    'given_row'
    """
    row = connection.execute(
        "SELECT item, id, payload FROM item JOIN given USING (item) WHERE id = ? AND annotator = ?",
        (id, annotator),
    ).fetchone()
    if row is None:
        raise StudyError(
            f"{annotator!r} was not given an item {id[:60]!r}", kind=MISSING, action="Reload the page."
        )
    return row


def sides(question: Question, id: str, annotator: str, study: str) -> tuple[str, str] | None:  # noqa: A002
    """Return the columns of a pair in the order shown: at random, the same whenever the item is shown again.

    Examples
    --------
    >>> question = Question.of_pair("Which is better?", "a", "b")
    >>> sorted(sides(question, "item 1", "ann", "study"))
    ['a', 'b']
    """
    if question.pair is None:
        return None
    first, second = question.pair
    digest = hashlib.md5(f"sides:{study}:{annotator}:{id}".encode(), usedforsecurity=False).digest()
    return (first, second) if digest[0] % 2 else (second, first)


def answer(row: Any) -> Answer:
    """Return a row of `_ANSWERS` as an answer.

    Examples
    --------
    >>> answer.__name__
    'answer'
    """
    return Answer(
        seq=row["seq"], item=row["id"], annotator=row["annotator"], status=row["status"],
        value=row["value"], note=row["note"], at=row["at"], seconds=row["seconds"],
    )  # fmt: skip


def history(
    connection: sqlite3.Connection, annotator: str, before: int | None, limit: int
) -> tuple[Answer, ...]:
    """Return an annotator's present answers, newest first.

    Examples
    --------
    >>> history.__name__
    'history'
    """
    rows = connection.execute(
        _ANSWERS + "WHERE answer.annotator = ? AND answer.seq < ? ORDER BY answer.seq DESC LIMIT ?",
        (annotator, before if before is not None else 2**62, max(0, min(limit, 1000))),
    ).fetchall()
    return tuple(answer(row) for row in rows)


def disagreements(connection: sqlite3.Connection, limit: int, *, decided: bool) -> tuple[Disagreement, ...]:
    """Return items of which annotators say different things, in the study's order.

    Examples
    --------
    >>> disagreements.__name__
    'disagreements'
    """
    only = "" if decided else "AND decision IS NULL"
    rows = connection.execute(
        f"SELECT item, id, payload, decision FROM item WHERE apart = 1 {only} ORDER BY item LIMIT ?",
        (max(0, min(limit, 1000)),),
    ).fetchall()
    return tuple(_disagreement(connection, row) for row in rows)


def progress(connection: sqlite3.Connection, annotator: str, now: float) -> Progress:
    """Return how far the study is, for one annotator.

    Examples
    --------
    >>> progress.__name__
    'progress'
    """
    own = connection.execute("SELECT * FROM annotator WHERE name = ?", (annotator,)).fetchone()
    tally = connection.execute("SELECT total, done, undecided FROM tally").fetchone()
    pace = _pace(connection, annotator)
    left = tally["total"] - tally["done"]
    return Progress(
        submitted=own["submitted"],
        skipped=own["skipped"],
        open=left,
        done=tally["done"],
        total=tally["total"],
        seconds_per_item=pace,
        seconds_left=None if pace is None else pace * left / at_work(connection, now, annotator),
        disagreements=tally["undecided"],
        enough=setting(connection, "enough") == "yes",
        message=_message(connection, now, aside=bool(own["aside"])),
    )


def seconds_of(at: str) -> float:
    """Return a time of the journal in seconds since 1970.

    Examples
    --------
    >>> seconds_of("1970-01-01T00:01:00.500Z")
    60.5
    """
    return datetime.fromisoformat(at).timestamp()


def length_of_time(seconds: float) -> str:
    """Return a length of time in words.

    Examples
    --------
    >>> length_of_time(45), length_of_time(600), length_of_time(10_000), length_of_time(200_000)
    ('45 seconds', '10 minutes', '2.8 hours', '2.3 days')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 129_600 else f"{seconds / 86_400:.1f} days"


def _pace(connection: sqlite3.Connection, annotator: str) -> float | None:
    rows = connection.execute(
        "SELECT seconds FROM journal WHERE annotator = ? AND action IN ('submit', 'skip') "
        "AND seconds IS NOT NULL ORDER BY seq DESC LIMIT ?",
        (annotator, RECENT),
    ).fetchall()
    return float(median(row["seconds"] for row in rows)) if rows else None


def at_work(connection: sqlite3.Connection, now: float, annotator: str | None = None) -> int:
    """Return how many annotators have saved something lately, `annotator` among them.

    Examples
    --------
    >>> at_work.__name__
    'at_work'
    """
    rows = connection.execute(
        "SELECT name, (SELECT at FROM journal WHERE journal.annotator = name ORDER BY seq DESC LIMIT 1) "
        "AS at FROM annotator WHERE aside = 0"
    ).fetchall()
    working = {r["name"] for r in rows if r["at"] is not None and abs(now - seconds_of(r["at"])) < AT_WORK}
    return len(working | ({annotator} if annotator is not None else set()))


def _message(connection: sqlite3.Connection, now: float, *, aside: bool) -> str:
    if aside:
        return "Your labels were set aside. They are kept; ask whoever runs the study."
    behind = clock_behind(connection, now)
    if behind <= SLACK:
        return ""
    return (
        f"This computer's clock is {length_of_time(behind)} behind labels that were saved before. Labels are "
        "kept in their order; only the times are wrong. Set the clock."
    )


def clock_behind(connection: sqlite3.Connection, now: float) -> float:
    """Return by how many seconds the clock is behind the latest of the journal's last lines, 0 if it is not.

    Not behind the last line alone, which may have been written by the wrong clock; nor behind all of them,
    one of which may be from the future for good.

    Examples
    --------
    >>> clock_behind.__name__
    'clock_behind'
    """
    latest = connection.execute(
        "SELECT max(at) AS at FROM (SELECT at FROM journal ORDER BY seq DESC LIMIT ?)", (RECENT,)
    ).fetchone()["at"]
    return 0.0 if latest is None else max(0.0, seconds_of(latest) - now)


def _disagreement(connection: sqlite3.Connection, row: Any) -> Disagreement:
    said = connection.execute(
        _ANSWERS + "JOIN annotator ON name = answer.annotator "
        "WHERE answer.item = ? AND status = 'submitted' AND aside = 0 ORDER BY journal.seq",
        (row["item"],),
    ).fetchall()
    decision = None
    if row["decision"] is not None:
        found = connection.execute(
            "SELECT *, 'submitted' AS status, ? AS id FROM journal WHERE seq = ?",
            (row["id"], row["decision"]),
        ).fetchone()
        decision = answer(found)
    item = Item(id=row["id"], position=row["item"], payload=json.loads(row["payload"]), answer=decision)
    return Disagreement(item=item, answers=tuple(answer(entry) for entry in said))
