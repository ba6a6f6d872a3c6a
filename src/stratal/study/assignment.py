"""Who gets which item: in the study's random order, no two people on one item unless it is asked of several.

An item has places: as many as people are to label it (`copies`). A place is taken by a submitted answer, and
while somebody holds the item. `wanted` is the number of free places. An item that one annotator skipped is
offered to another; where several people are to label it and nobody else is left for its place, it is offered
once more to whoever skipped it, after everything else. What somebody was given and left lying for long is
offered to others once nothing else is left; a late answer is still kept.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from stratal.study.faults import MISSING, StudyError
from stratal.study.journal import Transaction

LEFT_LYING = 1800.0
"""Seconds after which an item that was given, but not answered, may go to somebody else."""


def held(connection: sqlite3.Connection, annotator: str) -> int | None:
    """Return the number of the item that an annotator holds, the one given last; None for none.

    Whose labels are set aside holds nothing until they are taken back.

    Examples
    --------
    >>> held.__name__
    'held'
    """
    row = connection.execute(
        "SELECT item FROM given JOIN annotator ON annotator = name WHERE name = ? AND live = 1 AND aside = 0 "
        "ORDER BY turn DESC, item LIMIT 1",
        (annotator,),
    ).fetchone()
    return None if row is None else int(row["item"])


def give_next(transaction: Transaction, annotator: str) -> int | None:
    """Give an annotator the next item that has a free place; return its number, None if there is none.

    Examples
    --------
    >>> give_next.__name__
    'give_next'
    """
    already = held(transaction.connection, annotator)
    if already is not None:
        return already
    item = _free(transaction, annotator)
    if item is None:
        item = _left_lying(transaction, annotator)
    if item is None:
        item = _needed_again(transaction, annotator)
    if item is not None:
        give(transaction, annotator, item)
    return item


def give(transaction: Transaction, annotator: str, item: int, *, kept: bool = False) -> None:
    """Give an item to an annotator, to be answered next; `kept` ones are never offered to others.

    Examples
    --------
    >>> give.__name__
    'give'
    """
    turn = transaction.one("SELECT coalesce(max(seq), 0) AS turn FROM journal")["turn"]
    transaction.run(
        "INSERT INTO given VALUES (?, ?, ?, ?, 1, ?) ON CONFLICT (item, annotator) DO UPDATE SET "
        "since = excluded.since, turn = excluded.turn, live = 1, held = max(held, excluded.held)",
        *(item, annotator, transaction.now, turn, int(kept)),
    )
    recount(transaction, item)


def block(transaction: Transaction, annotator: str, wanted: int | None) -> list[int]:
    """Give an annotator up to `wanted` items to keep until they are answered; all that are free if None.

    Examples
    --------
    >>> block.__name__
    'block'
    """
    rows = transaction.connection.execute(
        "SELECT item FROM given WHERE annotator = ? AND live = 1 ORDER BY item", (annotator,)
    ).fetchall()
    items = [int(row["item"]) for row in rows][:wanted]
    while wanted is None or len(items) < wanted:
        item = _free(transaction, annotator)
        if item is None:
            break
        give(transaction, annotator, item, kept=True)
        items.append(item)
    for item in items:
        transaction.run("UPDATE given SET held = 1 WHERE item = ? AND annotator = ?", item, annotator)
    return sorted(items)


def release(transaction: Transaction, annotator: str, item: int) -> None:
    """Take an item out of an annotator's hands, since it was answered or goes to somebody else.

    Examples
    --------
    >>> release.__name__
    'release'
    """
    transaction.run("UPDATE given SET live = 0 WHERE item = ? AND annotator = ?", item, annotator)


def given_item(transaction: Transaction, annotator: str, id: str) -> Any:  # noqa: A002
    """Return the row of an item that an annotator was given once, with `since`, refusing any other.

    Examples
    --------
    >>> given_item.__name__
    'given_item'
    """
    row = transaction.one(
        "SELECT item.*, given.since FROM item JOIN given USING (item) WHERE id = ? AND annotator = ?",
        id, annotator,
    )  # fmt: skip
    if row is None:
        raise StudyError(
            f"{annotator!r} was not given an item {id[:60]!r}",
            kind=MISSING,
            allowed="items that this annotator was given",
            action="Reload the page.",
        )
    return row


def recount(transaction: Transaction, item: int) -> None:
    """Count an item's answers and free places again, after anything about it has changed.

    Examples
    --------
    >>> recount.__name__
    'recount'
    """
    before = transaction.one("SELECT * FROM item WHERE item = ?", item)
    said = transaction.one(
        "SELECT count(*) AS answers, count(DISTINCT value) AS values_ FROM answer JOIN annotator "
        "ON annotator = name WHERE item = ? AND status = 'submitted' AND aside = 0", item,
    )  # fmt: skip
    holding = transaction.one(
        "SELECT count(*) AS people FROM given JOIN annotator ON annotator = name "
        "WHERE item = ? AND live = 1 AND aside = 0 AND NOT EXISTS (SELECT 1 FROM answer WHERE "
        "answer.item = given.item AND answer.annotator = given.annotator AND status = 'submitted')", item,
    )["people"]  # fmt: skip
    copies, answers = before["copies"], said["answers"]
    wanted = max(0, copies - answers - holding)
    transaction.run(
        "UPDATE item SET wanted = ?, answers = ?, apart = ? WHERE item = ?",
        wanted, answers, int(said["values_"] > 1), item,
    )  # fmt: skip
    gained = min(answers, copies) - min(before["answers"], copies)
    apart = (int(said["values_"] > 1) - before["apart"]) * (before["decision"] is None)
    if gained or apart:
        transaction.run("UPDATE tally SET done = done + ?, undecided = undecided + ?", gained, apart)
    if wanted > before["wanted"]:
        transaction.run("UPDATE annotator SET cursor = ? WHERE cursor > ?", item, item)


def _free(transaction: Transaction, annotator: str) -> int | None:
    """Return the first item with a free place that this annotator has not answered yet.

    No such item lies before the annotator's cursor, so that the search does not grow with the study.
    """
    start = transaction.one("SELECT cursor FROM annotator WHERE name = ?", annotator)["cursor"]
    row = transaction.one(
        "SELECT item FROM item WHERE item >= ? AND wanted > 0 AND NOT EXISTS ("
        "SELECT 1 FROM answer WHERE answer.item = item.item AND annotator = ?) AND NOT EXISTS ("
        "SELECT 1 FROM given WHERE given.item = item.item AND annotator = ? AND live = 1) "
        "ORDER BY item LIMIT 1",
        start, annotator, annotator,
    )  # fmt: skip
    found = None if row is None else int(row["item"])
    last = transaction.one("SELECT coalesce(max(item), 0) AS last FROM item")["last"]
    transaction.run(
        "UPDATE annotator SET cursor = ? WHERE name = ?", last + 1 if found is None else found, annotator
    )
    return found


def _left_lying(transaction: Transaction, annotator: str) -> int | None:
    """Take back an item that lay unanswered for too long; a clock that went back counts as long ago."""
    row = transaction.one(
        "SELECT item, annotator FROM given WHERE live = 1 AND held = 0 AND annotator <> ? "
        "AND NOT (since BETWEEN ? AND ?) AND NOT EXISTS ("
        "SELECT 1 FROM answer WHERE answer.item = given.item AND answer.annotator = ?) "
        "ORDER BY since LIMIT 1",
        annotator, transaction.now - LEFT_LYING, transaction.now, annotator,
    )  # fmt: skip
    if row is None:
        return None
    release(transaction, row["annotator"], row["item"])
    recount(transaction, row["item"])
    return int(row["item"])


def _needed_again(transaction: Transaction, annotator: str) -> int | None:
    """Return an item of several people that this annotator skipped once and that nobody else can complete."""
    if not transaction.one("SELECT skipped FROM annotator WHERE name = ?", annotator)["skipped"]:
        return None
    row = transaction.one(
        "SELECT item FROM answer JOIN item USING (item) WHERE annotator = ? AND status = 'skipped' "
        "AND copies > 1 AND wanted > 0 AND decision IS NULL AND NOT EXISTS (SELECT 1 FROM annotator AS other "
        "WHERE role = 'annotator' AND aside = 0 AND name <> ? AND NOT EXISTS ("
        "SELECT 1 FROM answer AS said WHERE said.item = item.item AND said.annotator = other.name)) "
        "AND (SELECT count(*) FROM journal WHERE journal.item = item.item AND journal.annotator = ? "
        "AND action = 'skip') = 1 ORDER BY item LIMIT 1",
        annotator, annotator, annotator,
    )  # fmt: skip
    return None if row is None else int(row["item"])
