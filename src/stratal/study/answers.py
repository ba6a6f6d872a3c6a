"""What annotators do to an item: answer it, skip it, take that back, flag it, write a note, decide it."""

from __future__ import annotations

from dataclasses import replace

from stratal.study.assignment import give, given_item, recount, release
from stratal.study.faults import MISSING, REFUSED, StudyError
from stratal.study.journal import Entry, Transaction, append, repeated, superseded
from stratal.study.records import ADJUDICATE, CHANGE, SKIP, SUBMIT, UNDO, Receipt

_ANSWERS = f"('{SUBMIT}', '{CHANGE}', '{SKIP}')"


def save_answer(transaction: Transaction, entry: Entry) -> Receipt:
    """Save an answer or a skip of an item that the annotator was given.

    Examples
    --------
    >>> save_answer.__name__
    'save_answer'
    """
    earlier = repeated(transaction, entry)
    if earlier is not None:
        return earlier
    row = given_item(transaction, entry.annotator, entry.id or "")
    later = superseded(transaction, entry, row["item"])
    if later is not None:
        return later
    said = transaction.one(
        "SELECT seq FROM answer WHERE item = ? AND annotator = ?", row["item"], entry.annotator
    )
    taken = entry.seconds if entry.seconds is not None or said else transaction.now - row["since"]
    entry = replace(entry, item=row["item"], seconds=taken, target=said["seq"] if said else None)
    if said and entry.action == SUBMIT:
        entry = replace(entry, action=CHANGE)
    seq = append(transaction, entry)
    release(transaction, entry.annotator, row["item"])
    settle(transaction, entry.annotator, row["item"])
    return Receipt(seq=seq, action=entry.action, item=entry.id)


def undo_last(transaction: Transaction, entry: Entry) -> Receipt:
    """Take back the annotator's last answer or skip; what was said before that counts again, if anything.

    Examples
    --------
    >>> undo_last.__name__
    'undo_last'
    """
    earlier = repeated(transaction, entry)
    if earlier is not None:
        return earlier
    last = transaction.one(
        f"SELECT seq, item, item.id AS id FROM journal JOIN item USING (item) WHERE annotator = ? "
        f"AND action IN {_ANSWERS} AND NOT EXISTS ("
        f"SELECT 1 FROM journal AS u WHERE u.action = '{UNDO}' AND u.target = journal.seq) "
        f"ORDER BY seq DESC LIMIT 1",
        entry.annotator,
    )
    if last is None:
        raise StudyError(
            "there is nothing to take back",
            kind=REFUSED,
            action="Only your own last answer can be taken back.",
        )
    seq = append(transaction, replace(entry, item=last["item"], id=last["id"], target=last["seq"]))
    settle(transaction, entry.annotator, last["item"])
    give(transaction, entry.annotator, last["item"])
    return Receipt(seq=seq, action=UNDO, item=last["id"])


def save_mark(transaction: Transaction, entry: Entry) -> Receipt:
    """Save a flag or a note on an item that the annotator was given.

    Examples
    --------
    >>> save_mark.__name__
    'save_mark'
    """
    earlier = repeated(transaction, entry)
    if earlier is not None:
        return earlier
    row = given_item(transaction, entry.annotator, entry.id or "")
    return Receipt(
        seq=append(transaction, replace(entry, item=row["item"])), action=entry.action, item=entry.id
    )


def save_decision(transaction: Transaction, entry: Entry) -> Receipt:
    """Save a decision on any item that has answers; no value takes the decision back.

    Examples
    --------
    >>> save_decision.__name__
    'save_decision'
    """
    earlier = repeated(transaction, entry)
    if earlier is not None:
        return earlier
    row = transaction.one("SELECT item, answers, apart, decision FROM item WHERE id = ?", entry.id)
    if row is None:
        raise StudyError(f"there is no item {str(entry.id)[:60]!r}", kind=MISSING, action="Reload the page.")
    later = superseded(transaction, entry, row["item"])
    if later is not None:
        return later
    if not row["answers"]:
        raise StudyError(
            f"item {str(entry.id)[:60]!r} has no answer to decide between",
            kind=REFUSED,
            action="Decide once an annotator has answered it.",
        )
    seq = append(transaction, replace(entry, item=row["item"]))
    decided = None if entry.value is None else seq
    transaction.run("UPDATE item SET decision = ? WHERE item = ?", decided, row["item"])
    fewer = row["apart"] * (int(decided is not None) - int(row["decision"] is not None))
    transaction.run("UPDATE tally SET undecided = undecided - ?", fewer)
    return Receipt(seq=seq, action=ADJUDICATE, item=entry.id)


def settle(transaction: Transaction, annotator: str, item: int) -> None:
    """Bring what is counted of an annotator's answer up to what the journal says.

    Examples
    --------
    >>> settle.__name__
    'settle'
    """
    before = transaction.one("SELECT status FROM answer WHERE item = ? AND annotator = ?", item, annotator)
    now = transaction.one(
        "SELECT seq, status, value FROM current WHERE item = ? AND annotator = ?", item, annotator
    )
    if now is None:
        transaction.run("DELETE FROM answer WHERE item = ? AND annotator = ?", item, annotator)
    else:
        transaction.run(
            "INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?, ?)",
            item, annotator, now["seq"], now["status"], now["value"],
        )  # fmt: skip
    for row, change in ((before, -1), (now, 1)):
        if row is not None:
            column = row["status"]
            assert column in ("submitted", "skipped")
            transaction.run(f"UPDATE annotator SET {column} = {column} + ? WHERE name = ?", change, annotator)
    recount(transaction, item)


def set_standing(transaction: Transaction, entry: Entry, *, aside: bool) -> Receipt:
    """Set all labels of an annotator aside, or take them back; none is deleted.

    Examples
    --------
    >>> set_standing.__name__
    'set_standing'
    """
    seq = append(transaction, entry)
    transaction.run("UPDATE annotator SET aside = ? WHERE name = ?", int(aside), entry.annotator)
    rows = transaction.connection.execute(
        "SELECT item FROM answer WHERE annotator = ? UNION SELECT item FROM given WHERE annotator = ?",
        (entry.annotator, entry.annotator),
    ).fetchall()
    for row in rows:
        recount(transaction, row["item"])
    return Receipt(seq=seq, action=entry.action, item=None)
