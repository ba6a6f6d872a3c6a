"""Assignment of items to annotators, their actions on items, and the records of items that a page shows.

Items are assigned in the study's random order. Each item requires `copies` answers, from different
annotators. A submitted answer, or an annotator to whom the item is assigned, takes one of these places;
`wanted` is the number of free places. If an annotator skips an item, it is assigned to another. If it
requires several answers and no other annotator is left, it is assigned once more to the annotator who skipped
it, after all other items. An item that was assigned but not answered for `ABANDONED_SECONDS` is assigned to
others when no other item is left. A late answer is still saved.

The file `tables.sql` explains the tables and their columns.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from datetime import datetime
from statistics import median
from typing import Any

from msgspec import structs

from stratal.report.pages import duration
from stratal.study.database import Connection, StudyError
from stratal.study.journal import (
    MAX_ID_CHARACTERS,
    Entry,
    append,
    receipt_of_later_request,
    require_storable,
    saved_receipt,
)
from stratal.study.permissions import StudyRole, require_allowed
from stratal.study.question import Answer, Disagreement, Form, Item, Progress, Receipt

# Seconds after which an assigned item without an answer may be assigned to another annotator.
ABANDONED_SECONDS = 1800.0

# Number of last lines of the journal from which the median time is computed, and with which the clock is
# compared.
RECENT_LINES = 50

# Seconds since the last answer within which an annotator counts as working.
ACTIVE_SECONDS = 3600.0

# Largest difference of a clock in seconds that is not reported.
CLOCK_TOLERANCE = 1.0

# Query of the current answers, with the times and notes of their lines in the journal.
_ANSWERS = (
    "SELECT journal.seq, at, answer.annotator, item.id AS item, status, answer.value, note, seconds "
    "FROM answer JOIN journal USING (seq) JOIN item ON item.item = answer.item "
)


# Number of items that a page has in addition to the one that it shows, so that labelling continues if the
# connection to the server is lost.
ITEMS_AHEAD = 2

# Items are assigned ahead only while the number of missing answers is more than this multiple of the number
# of items that all pages could hold: near the end, an item that is held ahead would make others wait.
MISSING_ANSWERS_FACTOR = 4


def assigned_items(connection: Connection, annotator: str, limit: int = 1) -> list[int]:
    """Return the numbers of up to `limit` items assigned to an annotator: the current one, then those ahead.

    An annotator whose labels are set aside has none.
    """
    rows = connection.all(
        "SELECT item FROM given JOIN annotator ON annotator = name WHERE name = ? AND live = 1 AND aside = 0 "
        "ORDER BY turn DESC, item LIMIT ?",
        annotator, limit,
    )  # fmt: skip
    return [int(row["item"]) for row in rows]


def max_assigned_items(connection: Connection, ahead: int) -> int:
    """Return the number of items that may be assigned to an annotator: 1 near the end of a study."""
    total, done = connection.one("SELECT total, done FROM tally")
    max_items_on_pages = (1 + ITEMS_AHEAD) * _annotators_with_free_items(connection)
    if total - done > MISSING_ANSWERS_FACTOR * max_items_on_pages:
        return 1 + ahead
    return 1


def _annotators_with_free_items(connection: Connection) -> int:
    """Return the number of annotators for whom free items are left."""
    (annotator_count,) = connection.one(
        "SELECT count(*) FROM annotator WHERE role = 'annotator' AND aside = 0 "
        "AND cursor <= (SELECT max(item) FROM item)"
    )
    return int(annotator_count)


def may_get_items(connection: Connection, annotator: str) -> bool:
    """Return whether an annotator gets items: not if set aside, and not if the interval is narrow enough."""
    row = connection.one("SELECT role, aside FROM annotator WHERE name = ?", annotator)
    return row["role"] == "annotator" and not row["aside"] and connection.setting("enough") != "yes"


def assign_next(connection: Connection, annotator: str, ahead: int = 0) -> list[int]:
    """Assign the next items with a free place to an annotator; return the numbers of all assigned items."""
    assigned = assigned_items(connection, annotator, 1 + ahead)
    limit = max_assigned_items(connection, ahead)
    while len(assigned) < limit:
        item = _free_item(connection, annotator)
        # Abandoned and skipped items are urgent, and are never assigned ahead.
        if item is None and not assigned:
            item = _abandoned_item(connection, annotator) or _item_to_repeat(connection, annotator)
        if item is None:
            break
        assign(connection, annotator, item, ahead=bool(assigned))
        assigned.append(item)
    return assigned


def assign(connection: Connection, annotator: str, item: int, *, ahead: bool = False) -> None:
    """Assign an item to an annotator, as the current one or `ahead`.

    The annotator's current item is the one with the largest `turn`, the number of the journal's last line.
    """
    if ahead:
        turn = 0
    else:
        turn = connection.one("SELECT coalesce(max(seq), 0) FROM journal")[0]
    connection.execute(
        "INSERT INTO given (item, annotator, since, turn, live) VALUES (?, ?, ?, ?, 1) ON CONFLICT DO UPDATE "
        "SET since = excluded.since, turn = excluded.turn, live = 1",
        (item, annotator, connection.now, turn),
    )
    update_item_counts(connection, item)


def reserve_items(connection: Connection, annotator: str, limit: int | None) -> list[int]:
    """Reserve up to `limit` items (all free ones for None) for an annotator until they are answered."""
    rows = connection.all("SELECT item FROM given WHERE annotator = ? AND live = 1 ORDER BY item", annotator)
    items = [int(row["item"]) for row in rows][:limit]
    while (limit is None or len(items) < limit) and (item := _free_item(connection, annotator)) is not None:
        assign(connection, annotator, item)
        items.append(item)
    query = "UPDATE given SET held = 1 WHERE item = ? AND annotator = ?"
    connection.executemany(query, [(item, annotator) for item in items])
    return sorted(items)


def find_assigned_item(connection: Connection, annotator: str, id: str) -> Any:  # noqa: A002
    """Return the row of an item that was assigned to an annotator, with the time `since`.

    Any other item is an error.
    """
    require_storable("the id", id, MAX_ID_CHARACTERS)
    require_allowed(connection, "item", annotator, id)
    return connection.one(
        "SELECT item.*, given.since FROM item JOIN given USING (item) WHERE id = ? AND annotator = ?",
        id, annotator,
    )  # fmt: skip


# Query of the counts of each item, from its answers and its assignments. The table `item` stores them for
# speed.
ITEM_COUNTS = """
SELECT item, copies, answers, max(0, copies - answers - holding) AS wanted FROM (
    SELECT item, copies, (
        SELECT count(*) FROM answer JOIN annotator ON annotator = name
        WHERE answer.item = item.item AND status = 'submitted' AND aside = 0
    ) AS answers, (
        SELECT count(*) FROM given JOIN annotator ON annotator = name
        WHERE given.item = item.item AND live = 1 AND aside = 0 AND NOT EXISTS (SELECT 1 FROM answer
            WHERE answer.item = given.item AND answer.annotator = given.annotator AND status = 'submitted')
    ) AS holding FROM item
)
"""


def read_form(connection: Connection) -> Form:
    """Return the questions of a study."""
    return Form.decode(connection.setting("question") or "{}")


def update_item_counts(connection: Connection, item: int) -> None:
    """Update the stored numbers of answers and free places of an item after a change."""
    before = connection.one("SELECT * FROM item WHERE item = ?", item)
    _, copies, answers, free_places = connection.one(f"{ITEM_COUNTS} WHERE item = ?", item)
    answered = connection.all(
        "SELECT value FROM answer JOIN annotator ON annotator = name "
        "WHERE item = ? AND status = 'submitted' AND aside = 0",
        item,
    )
    is_disputed = answers > 1 and read_form(connection).differ([row["value"] for row in answered])
    connection.execute(
        "UPDATE item SET wanted = ?, answers = ?, apart = ? WHERE item = ?",
        (free_places, answers, is_disputed, item),
    )
    # Answers beyond the required number do not count.
    additional_answers = min(answers, copies) - min(before["answers"], copies)
    additional_undecided = (is_disputed - before["apart"]) * (before["decision"] is None)
    if additional_answers or additional_undecided:
        connection.execute(
            "UPDATE tally SET done = done + ?, undecided = undecided + ?",
            (additional_answers, additional_undecided),
        )
    # A place became free, so that no annotator's search may start after this item.
    if free_places > before["wanted"]:
        connection.execute("UPDATE annotator SET cursor = ? WHERE cursor > ?", (item, item))


def _free_item(connection: Connection, annotator: str) -> int | None:
    """Return the first item with a free place that this annotator has not answered yet.

    The search starts at the annotator's cursor, before which there is no such item. Its duration therefore
    does not grow with the study.
    """
    start = connection.one("SELECT cursor FROM annotator WHERE name = ?", annotator)["cursor"]
    row = connection.one(
        "SELECT item FROM item WHERE item >= ? AND wanted > 0 AND NOT EXISTS ("
        "SELECT 1 FROM answer WHERE answer.item = item.item AND annotator = ?) AND NOT EXISTS ("
        "SELECT 1 FROM given WHERE given.item = item.item AND annotator = ? AND live = 1) "
        "ORDER BY item LIMIT 1",
        start, annotator, annotator,
    )  # fmt: skip
    free_item = None if row is None else int(row["item"])
    # Without a free item, the next search starts after the last item, where a further round begins.
    last_item = connection.one("SELECT coalesce(max(item), 0) FROM item")[0]
    cursor = last_item + 1 if free_item is None else free_item
    connection.execute("UPDATE annotator SET cursor = ? WHERE name = ?", (cursor, annotator))
    return free_item


# Statement that ends an assignment: the item was answered, or is assigned to another annotator.
_END_ASSIGNMENT = "UPDATE given SET live = 0 WHERE item = ? AND annotator = ?"


def _abandoned_item(connection: Connection, annotator: str) -> int | None:
    """End an assignment that is too old, or in the future because a clock was wrong; return its item."""
    row = connection.one(
        "SELECT item, annotator FROM given WHERE live = 1 AND held = 0 AND annotator <> ? "
        "AND NOT (since BETWEEN ? AND ?) AND NOT EXISTS ("
        "SELECT 1 FROM answer WHERE answer.item = given.item AND answer.annotator = ?) "
        "ORDER BY since LIMIT 1",
        annotator, connection.now - ABANDONED_SECONDS, connection.now, annotator,
    )  # fmt: skip
    if row is None:
        return None
    connection.execute(_END_ASSIGNMENT, (row["item"], row["annotator"]))
    update_item_counts(connection, row["item"])
    return int(row["item"])


def _item_to_repeat(connection: Connection, annotator: str) -> int | None:
    """Return an item with several answers that this annotator skipped once and no other can still answer."""
    if not connection.one("SELECT skipped FROM annotator WHERE name = ?", annotator)["skipped"]:
        return None
    row = connection.one(
        "SELECT item FROM answer JOIN item USING (item) WHERE annotator = ? AND status = 'skipped' "
        "AND copies > 1 AND wanted > 0 AND decision IS NULL AND NOT EXISTS (SELECT 1 FROM annotator AS other "
        "WHERE role = 'annotator' AND aside = 0 AND name <> ? AND NOT EXISTS ("
        "SELECT 1 FROM answer AS own WHERE own.item = item.item AND own.annotator = other.name)) "
        "AND (SELECT count(*) FROM journal WHERE journal.item = item.item AND journal.annotator = ? "
        "AND action = 'skip') = 1 ORDER BY item LIMIT 1",
        annotator, annotator, annotator,
    )  # fmt: skip
    if row is None:
        return None
    return int(row["item"])


def save(connection: Connection, entry: Entry, roles: frozenset[StudyRole] | None = None) -> Receipt:
    """Save an action of an annotator; return the earlier receipt if the same request was saved before.

    `roles` are those of the acting person. Default: those of the annotator.
    """
    earlier_receipt = saved_receipt(connection, entry)
    if earlier_receipt is not None:
        return earlier_receipt
    activity: Any = "submit" if entry.action == "change" else entry.action
    require_allowed(connection, activity, entry.annotator, entry.id, roles)
    if entry.action in ("submit", "skip"):
        return _save_answer(connection, entry)
    if entry.action == "undo":
        return _undo_last(connection, entry)
    if entry.action == "adjudicate":
        return _save_decision(connection, entry)
    if entry.action in ("set-aside", "take-back"):
        return _save_exclusion(connection, entry)
    # A flag or a note changes only the journal.
    row = find_assigned_item(connection, entry.annotator, entry.id or "")
    seq = append(connection, structs.replace(entry, item=row["item"]))
    return Receipt(seq=seq, action=entry.action, item=entry.id)


def _save_exclusion(connection: Connection, entry: Entry) -> Receipt:
    """Exclude the labels of an annotator (`set-aside`) or include them again; update the counts of items."""
    seq = append(connection, entry)
    aside = int(entry.action == "set-aside")
    connection.execute("UPDATE annotator SET aside = ? WHERE name = ?", (aside, entry.annotator))
    for row in connection.all(
        "SELECT item FROM answer WHERE annotator = ? UNION SELECT item FROM given WHERE annotator = ?",
        entry.annotator, entry.annotator,
    ):  # fmt: skip
        update_item_counts(connection, row["item"])
    return Receipt(seq=seq, action=entry.action, item=None)


def _save_answer(connection: Connection, entry: Entry) -> Receipt:
    """Save an answer or a skip of an item that was assigned to the annotator."""
    row = find_assigned_item(connection, entry.annotator, entry.id or "")
    later_receipt = receipt_of_later_request(connection, entry, row["item"])
    if later_receipt is not None:
        return later_receipt
    earlier_answer = connection.one(
        "SELECT seq FROM answer WHERE item = ? AND annotator = ?", row["item"], entry.annotator
    )
    entry = structs.replace(entry, item=row["item"])
    if earlier_answer:
        entry = structs.replace(entry, target=earlier_answer["seq"])
        if entry.action == "submit":
            entry = structs.replace(entry, action="change")
    elif entry.seconds is None:
        # For a changed answer, the time since the assignment would not be the working time.
        entry = structs.replace(entry, seconds=connection.now - row["since"])
    seq = append(connection, entry)
    connection.execute(_END_ASSIGNMENT, (row["item"], entry.annotator))
    _update_stored_answer(connection, entry.annotator, row["item"])
    return Receipt(seq=seq, action=entry.action, item=entry.id)


def _undo_last(connection: Connection, entry: Entry) -> Receipt:
    """Undo the annotator's last answer or skip; an earlier answer to the item is valid again."""
    last = connection.one(
        "SELECT seq, item, item.id AS id FROM journal JOIN item USING (item) WHERE annotator = ? "
        "AND action IN ('submit', 'change', 'skip') AND NOT EXISTS ("
        "SELECT 1 FROM journal AS u WHERE u.action = 'undo' AND u.target = journal.seq) "
        "ORDER BY seq DESC LIMIT 1",
        entry.annotator,
    )
    if last is None:
        action = "Only your own last answer can be undone."
        raise StudyError("there is no action to undo", kind="refused", action=action)
    seq = append(connection, structs.replace(entry, item=last["item"], id=last["id"], target=last["seq"]))
    _update_stored_answer(connection, entry.annotator, last["item"])
    assign(connection, entry.annotator, last["item"])
    return Receipt(seq=seq, action=entry.action, item=last["id"])


def _save_decision(connection: Connection, entry: Entry) -> Receipt:
    """Save a decision on an item with different answers; without a value, it removes the earlier decision."""
    row = connection.one("SELECT item, apart, decision FROM item WHERE id = ?", entry.id)
    later_receipt = receipt_of_later_request(connection, entry, row["item"])
    if later_receipt is not None:
        return later_receipt
    seq = append(connection, structs.replace(entry, item=row["item"]))
    decision = None if entry.value is None else seq
    connection.execute("UPDATE item SET decision = ? WHERE item = ?", (decision, row["item"]))
    # A second decision on an item does not change the number of undecided items.
    newly_decided = row["apart"] * (int(decision is not None) - int(row["decision"] is not None))
    connection.execute("UPDATE tally SET undecided = undecided - ?", (newly_decided,))
    return Receipt(seq=seq, action=entry.action, item=entry.id)


def _update_stored_answer(connection: Connection, annotator: str, item: int) -> None:
    """Update the stored answer of an annotator to an item, and the counts of both, from the journal."""
    condition = "WHERE item = ? AND annotator = ?"
    columns = "item, annotator, seq, status, value"
    stored = connection.one(f"SELECT status FROM answer {condition}", item, annotator)
    current = connection.one(f"SELECT {columns} FROM current {condition}", item, annotator)
    connection.execute(f"DELETE FROM answer {condition}", (item, annotator))
    if current is not None:
        connection.execute("INSERT INTO answer VALUES (?, ?, ?, ?, ?)", tuple(current))
    for row, increment in ((stored, -1), (current, 1)):
        if row is not None:
            # The columns of counts have the names of the statuses: submitted and skipped.
            column = row["status"]
            query = f"UPDATE annotator SET {column} = {column} + ? WHERE name = ?"
            connection.execute(query, (increment, annotator))
    update_item_counts(connection, item)


def sides(form: Form, id: str, annotator: str, study: str) -> tuple[str, str] | None:  # noqa: A002
    """Return the columns of a pair in display order, which is random for each annotator and item."""
    if form.pair is None:
        return None
    first, second = form.pair
    digest = hashlib.md5(f"sides:{study}:{annotator}:{id}".encode(), usedforsecurity=False).digest()
    if digest[0] % 2:
        return (first, second)
    return (second, first)


def shown_item(connection: Connection, annotator: str, item: int) -> Item:
    """Return the item with this number as an annotator sees it."""
    row = connection.one("SELECT item, id, payload FROM item WHERE item = ?", item)
    row_of_answer = connection.one(
        f"{_ANSWERS} WHERE answer.item = ? AND answer.annotator = ?", item, annotator
    )
    answer = None if row_of_answer is None else Answer(**dict(row_of_answer))
    flag_line = connection.one(
        "SELECT action FROM journal WHERE item = ? AND annotator = ? AND action IN ('flag', 'unflag') "
        "ORDER BY seq DESC LIMIT 1",
        item, annotator,
    )  # fmt: skip
    displayed_sides = sides(read_form(connection), row["id"], annotator, str(connection.setting("id")))
    is_flagged = flag_line is not None and flag_line["action"] == "flag"
    return _item_record(row, answer=answer, sides=displayed_sides, flagged=is_flagged)


def history(connection: Connection, annotator: str, before: int | None, limit: int) -> tuple[Answer, ...]:
    """Return an annotator's current answers, newest first."""
    rows = connection.all(
        f"{_ANSWERS} WHERE answer.annotator = ? AND answer.seq < ? ORDER BY answer.seq DESC LIMIT ?",
        # Without `before`, any number above all lines. A page may request any limit.
        annotator, before if before is not None else 2**62, max(0, min(limit, 1000)),
    )  # fmt: skip
    return tuple(Answer(**dict(row)) for row in rows)


def disagreements(connection: Connection, limit: int) -> tuple[Disagreement, ...]:
    """Return the undecided items with different answers, in the study's order."""
    rows = connection.all(
        "SELECT item, id, payload FROM item WHERE apart = 1 AND decision IS NULL ORDER BY item LIMIT ?", limit
    )
    query = (
        f"{_ANSWERS} JOIN annotator ON name = answer.annotator "
        "WHERE answer.item = ? AND status = 'submitted' AND aside = 0 ORDER BY journal.seq"
    )
    open_disagreements = []
    for row in rows:
        answers = tuple(Answer(**dict(answer)) for answer in connection.all(query, row["item"]))
        open_disagreements.append(Disagreement(item=_item_record(row), answers=answers))
    return tuple(open_disagreements)


def assigned_adjudicator(disagreement: Disagreement, adjudicators: Sequence[str]) -> str:
    """Return the adjudicator whom an item's id determines; if possible, one who did not answer the item."""
    answering_annotators = {answer.annotator for answer in disagreement.answers}
    candidates = [name for name in adjudicators if name not in answering_annotators] or adjudicators
    digest = hashlib.md5(f"adjudicator:{disagreement.item.id}".encode(), usedforsecurity=False).digest()
    return candidates[digest[0] % len(candidates)]


def _item_record(row: Any, **fields: Any) -> Item:
    """Return the record of an item from its row; `fields` are those that depend on the annotator."""
    return Item(id=row["id"], position=row["item"], payload=json.loads(row["payload"]), **fields)


def annotator_progress(connection: Connection, annotator: str, now: float) -> Progress:
    """Return the progress of the study, for one annotator."""
    person = connection.one("SELECT * FROM annotator WHERE name = ?", annotator)
    total, done, undecided = connection.one("SELECT total, done, undecided FROM tally")
    delay = clock_delay(connection, now)
    message = ""
    if person["aside"]:
        message = "Your labels were set aside, but they are kept. Contact the person who runs the study."
    elif delay > CLOCK_TOLERANCE:
        message = (
            f"This computer's clock is {duration(delay)} behind the times of earlier labels. The order of "
            "the labels is kept, and only their times are wrong. Set the clock."
        )
    missing_answers = total - done
    seconds = median_seconds(connection, annotator)
    if seconds is None:
        seconds_left = None
    else:
        seconds_left = seconds * missing_answers / active_annotators(connection, now, annotator)
    # The annotators with free items are expected to answer the rest in equal numbers.
    further_items = math.ceil(missing_answers / max(1, _annotators_with_free_items(connection)))
    return Progress(
        submitted=person["submitted"],
        skipped=person["skipped"],
        share=person["submitted"] + further_items,
        done=done,
        total=total,
        seconds_left=seconds_left,
        disagreements=undecided,
        enough=connection.setting("enough") == "yes",
        message=message,
    )


def median_seconds(
    connection: Connection, annotator: str | None = None, *, limit: int | None = RECENT_LINES
) -> float | None:
    """Return the median working time in seconds of the last `limit` answers, of one annotator or of all."""
    condition = ""
    parameters: tuple[object, ...] = ()
    if annotator is not None:
        condition = "annotator = ? AND "
        parameters = (annotator,)
    rows = connection.all(
        f"SELECT seconds FROM journal WHERE {condition}action IN ('submit', 'skip') AND seconds IS NOT NULL "
        "ORDER BY seq DESC LIMIT ?",
        *parameters,
        # In SQLite, a negative limit means no limit.
        -1 if limit is None else limit,
    )
    if rows:
        return float(median(row["seconds"] for row in rows))
    return None


def seconds_of(at: str) -> float:
    """Return a time of the journal in seconds since 1970."""
    return datetime.fromisoformat(at).timestamp()


def active_annotators(connection: Connection, now: float, annotator: str | None = None) -> int:
    """Return the number of people with an action in the last `ACTIVE_SECONDS`; `annotator` always counts."""
    rows = connection.all(
        "SELECT name, (SELECT at FROM journal WHERE journal.annotator = name ORDER BY seq DESC LIMIT 1) "
        "AS at FROM annotator WHERE aside = 0"
    )
    active = {
        row["name"]
        for row in rows
        if row["at"] is not None and abs(now - seconds_of(row["at"])) < ACTIVE_SECONDS
    }
    if annotator is not None:
        active.add(annotator)
    return len(active)


def clock_delay(connection: Connection, now: float) -> float:
    """Return by how many seconds the clock is behind the latest time in the journal's last lines, at least 0.

    The last line alone is not sufficient, because a wrong clock may have written it. All lines would be too
    many, because a single wrong time far in the future would be reported forever.
    """
    latest = connection.one(
        "SELECT max(at) AS at FROM (SELECT at FROM journal ORDER BY seq DESC LIMIT ?)", RECENT_LINES
    )["at"]
    if latest is None:
        return 0.0
    return max(0.0, seconds_of(latest) - now)
