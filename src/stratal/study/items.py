"""Who gets which item, what annotators do to it, and what of it a page shows.

Items come in the study's random order, no two people on one item unless it is asked of several. An item has
places: as many as people are to label it (`copies`). A place is taken by a submitted answer, and while
somebody holds the item. `wanted` is the number of free places. An item that one annotator skipped is offered
to another; where several people are to label it and nobody else is left for its place, it is offered once
more to whoever skipped it, after everything else. What somebody was given and left lying for long is offered
to others once nothing else is left; a late answer is still kept.
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
from stratal.study.journal import LONGEST_ID, Entry, append, require_storable, saved_receipt, superseded
from stratal.study.permissions import StudyRole, require_allowed
from stratal.study.question import Answer, Disagreement, Form, Item, Progress, Receipt

# Seconds after which an item that was given, but not answered, may go to somebody else.
ABANDONED_AFTER = 1800.0

# Number of last answers whose times give the pace, and of last lines with which the clock is compared.
RECENT = 50

# Seconds since the last answer within which an annotator counts as working.
ACTIVE_WITHIN = 3600.0

# Seconds by which a clock may differ without being mentioned.
CLOCK_TOLERANCE = 1.0

# Present answers, with the times and notes of their lines in the journal.
_ANSWERS = (
    "SELECT journal.seq, at, answer.annotator, item.id AS item, status, answer.value, note, seconds "
    "FROM answer JOIN journal USING (seq) JOIN item ON item.item = answer.item "
)


# Number of items that a page has in addition to the one that it shows, so that labelling continues if the
# connection to the server is lost.
AHEAD = 2

# Items are assigned ahead as long as this multiple of the answers that all pages could hold is required.
PLENTY = 4


def held_items(connection: Connection, annotator: str, limit: int = 1) -> list[int]:
    """Return the numbers of up to `limit` items that an annotator holds: the last one, then those ahead.

    An annotator whose labels are set aside holds none.
    """
    rows = connection.all(
        "SELECT item FROM given JOIN annotator ON annotator = name WHERE name = ? AND live = 1 AND aside = 0 "
        "ORDER BY turn DESC, item LIMIT ?",
        annotator, limit,
    )  # fmt: skip
    return [int(row["item"]) for row in rows]


def most_held(connection: Connection, ahead: int) -> int:
    """Return how many items an annotator may hold: a single one near the end, when others wait for them."""
    total, done = connection.one("SELECT total, done FROM tally")
    ample = total - done > PLENTY * (1 + AHEAD) * _working(connection)
    if ample:
        return 1 + ahead
    return 1


def _working(connection: Connection) -> int:
    """Return how many annotators still have free items."""
    (working,) = connection.one(
        "SELECT count(*) FROM annotator WHERE role = 'annotator' AND aside = 0 "
        "AND cursor <= (SELECT max(item) FROM item)"
    )
    return int(working)


def gets_items(connection: Connection, annotator: str) -> bool:
    """Return whether an annotator gets items: not if set aside, nor once the interval is narrow."""
    row = connection.one("SELECT role, aside FROM annotator WHERE name = ?", annotator)
    return row["role"] == "annotator" and not row["aside"] and connection.setting("enough") != "yes"


def assign_next(connection: Connection, annotator: str, ahead: int = 0) -> list[int]:
    """Give an annotator the next items that have a free place; return the numbers of all that one holds."""
    assigned = held_items(connection, annotator, 1 + ahead)
    limit = most_held(connection, ahead)
    while len(assigned) < limit:
        # Abandoned and skipped items are urgent, and are never assigned ahead.
        finders = (_free_item, _abandoned_item, _item_to_repeat) if not assigned else (_free_item,)
        item = next(filter(None, (find(connection, annotator) for find in finders)), None)
        if item is None:
            break
        assign(connection, annotator, item, ahead=bool(assigned))
        assigned.append(item)
    return assigned


def assign(connection: Connection, annotator: str, item: int, *, ahead: bool = False) -> None:
    """Give an item to an annotator, to be answered next, or `ahead`."""
    if ahead:
        turn = 0
    else:
        turn = connection.one("SELECT coalesce(max(seq), 0) FROM journal")[0]
    connection.execute(
        "INSERT INTO given (item, annotator, since, turn, live) VALUES (?, ?, ?, ?, 1) ON CONFLICT DO UPDATE "
        "SET since = excluded.since, turn = excluded.turn, live = 1",
        (item, annotator, connection.now, turn),
    )
    recount(connection, item)


def reserve_items(connection: Connection, annotator: str, limit: int | None) -> list[int]:
    """Reserve up to `limit` items for an annotator until they are answered; all free items if None."""
    rows = connection.all("SELECT item FROM given WHERE annotator = ? AND live = 1 ORDER BY item", annotator)
    items = [int(row["item"]) for row in rows][:limit]
    while (limit is None or len(items) < limit) and (item := _free_item(connection, annotator)) is not None:
        assign(connection, annotator, item)
        items.append(item)
    query = "UPDATE given SET held = 1 WHERE item = ? AND annotator = ?"
    connection.executemany(query, [(item, annotator) for item in items])
    return sorted(items)


def find_assigned_item(connection: Connection, annotator: str, id: str) -> Any:  # noqa: A002
    """Return the row of an item that an annotator was given once, with `since`, refusing any other."""
    require_storable("the id", id, LONGEST_ID)
    require_allowed(connection, "item", annotator, id)
    return connection.one(
        "SELECT item.*, given.since FROM item JOIN given USING (item) WHERE id = ? AND annotator = ?",
        id, annotator,
    )  # fmt: skip


# The counts of each item from its answers and its holders. The table `item` stores them for speed.
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


def recount(connection: Connection, item: int) -> None:
    """Count an item's answers and free places again, after anything about it has changed."""
    before = connection.one("SELECT * FROM item WHERE item = ?", item)
    _, copies, answers, n_required = connection.one(f"{ITEM_COUNTS} WHERE item = ?", item)
    answered = connection.all(
        "SELECT value FROM answer JOIN annotator ON annotator = name "
        "WHERE item = ? AND status = 'submitted' AND aside = 0",
        item,
    )
    is_disputed = answers > 1 and read_form(connection).differ([row["value"] for row in answered])
    connection.execute(
        "UPDATE item SET wanted = ?, answers = ?, apart = ? WHERE item = ?",
        (n_required, answers, is_disputed, item),
    )
    gained = min(answers, copies) - min(before["answers"], copies)
    undecided = (is_disputed - before["apart"]) * (before["decision"] is None)
    if gained or undecided:
        connection.execute("UPDATE tally SET done = done + ?, undecided = undecided + ?", (gained, undecided))
    # A place became free: nobody's search may start behind this item.
    if n_required > before["wanted"]:
        connection.execute("UPDATE annotator SET cursor = ? WHERE cursor > ?", (item, item))


def _free_item(connection: Connection, annotator: str) -> int | None:
    """Return the first item with a free place that this annotator has not answered yet.

    No such item lies before the annotator's cursor, so that the search does not grow with the study.
    """
    start = connection.one("SELECT cursor FROM annotator WHERE name = ?", annotator)["cursor"]
    row = connection.one(
        "SELECT item FROM item WHERE item >= ? AND wanted > 0 AND NOT EXISTS ("
        "SELECT 1 FROM answer WHERE answer.item = item.item AND annotator = ?) AND NOT EXISTS ("
        "SELECT 1 FROM given WHERE given.item = item.item AND annotator = ? AND live = 1) "
        "ORDER BY item LIMIT 1",
        start, annotator, annotator,
    )  # fmt: skip
    free = None if row is None else int(row["item"])
    last = connection.one("SELECT coalesce(max(item), 0) FROM item")[0]
    cursor = last + 1 if free is None else free
    connection.execute("UPDATE annotator SET cursor = ? WHERE name = ?", (cursor, annotator))
    return free


# Releases an item, because it was answered or is assigned to somebody else.
_RELEASE = "UPDATE given SET live = 0 WHERE item = ? AND annotator = ?"


def _abandoned_item(connection: Connection, annotator: str) -> int | None:
    """Release and return an item that was unanswered for too long; a future time counts as long ago."""
    row = connection.one(
        "SELECT item, annotator FROM given WHERE live = 1 AND held = 0 AND annotator <> ? "
        "AND NOT (since BETWEEN ? AND ?) AND NOT EXISTS ("
        "SELECT 1 FROM answer WHERE answer.item = given.item AND answer.annotator = ?) "
        "ORDER BY since LIMIT 1",
        annotator, connection.now - ABANDONED_AFTER, connection.now, annotator,
    )  # fmt: skip
    if row is None:
        return None
    connection.execute(_RELEASE, (row["item"], row["annotator"]))
    recount(connection, row["item"])
    return int(row["item"])


def _item_to_repeat(connection: Connection, annotator: str) -> int | None:
    """Return an item of several people that this annotator skipped once and that nobody else can complete."""
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

    `roles` are those of the person who acts, if that is not the annotator.
    """
    earlier = saved_receipt(connection, entry)
    if earlier is not None:
        return earlier
    activity: Any
    if entry.action == "change":
        activity = "submit"
    else:
        activity = entry.action
    require_allowed(connection, activity, entry.annotator, entry.id, roles)
    if entry.action in ("submit", "skip"):
        return _save_answer(connection, entry)
    if entry.action == "undo":
        return _undo_last(connection, entry)
    if entry.action == "adjudicate":
        return _save_decision(connection, entry)
    if entry.action in ("set-aside", "take-back"):
        seq = append(connection, entry)
        aside = int(entry.action == "set-aside")
        connection.execute("UPDATE annotator SET aside = ? WHERE name = ?", (aside, entry.annotator))
        for row in connection.all(
            "SELECT item FROM answer WHERE annotator = ? UNION SELECT item FROM given WHERE annotator = ?",
            entry.annotator, entry.annotator,
        ):  # fmt: skip
            recount(connection, row["item"])
        return Receipt(seq=seq, action=entry.action, item=None)
    row = find_assigned_item(connection, entry.annotator, entry.id or "")
    return Receipt(
        seq=append(connection, structs.replace(entry, item=row["item"])), action=entry.action, item=entry.id
    )


def _save_answer(connection: Connection, entry: Entry) -> Receipt:
    """Save an answer or a skip of an item that the annotator was given."""
    row = find_assigned_item(connection, entry.annotator, entry.id or "")
    later = superseded(connection, entry, row["item"])
    if later is not None:
        return later
    earlier = connection.one(
        "SELECT seq FROM answer WHERE item = ? AND annotator = ?", row["item"], entry.annotator
    )
    if entry.seconds is not None or earlier:
        seconds = entry.seconds
    else:
        seconds = connection.now - row["since"]
    entry = structs.replace(
        entry, item=row["item"], seconds=seconds, target=earlier["seq"] if earlier else None
    )
    if earlier and entry.action == "submit":
        entry = structs.replace(entry, action="change")
    seq = append(connection, entry)
    connection.execute(_RELEASE, (row["item"], entry.annotator))
    _settle(connection, entry.annotator, row["item"])
    return Receipt(seq=seq, action=entry.action, item=entry.id)


def _undo_last(connection: Connection, entry: Entry) -> Receipt:
    """Take back the annotator's last answer or skip; the answer before that counts again, if anything."""
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
    _settle(connection, entry.annotator, last["item"])
    assign(connection, entry.annotator, last["item"])
    return Receipt(seq=seq, action=entry.action, item=last["id"])


def _save_decision(connection: Connection, entry: Entry) -> Receipt:
    """Save a decision on an item on which annotators differ; no value takes the decision back."""
    row = connection.one("SELECT item, apart, decision FROM item WHERE id = ?", entry.id)
    later = superseded(connection, entry, row["item"])
    if later is not None:
        return later
    seq = append(connection, structs.replace(entry, item=row["item"]))
    decided = None if entry.value is None else seq
    connection.execute("UPDATE item SET decision = ? WHERE item = ?", (decided, row["item"]))
    # A second decision on an item does not change the number of undecided ones.
    newly_decided = row["apart"] * (int(decided is not None) - int(row["decision"] is not None))
    connection.execute("UPDATE tally SET undecided = undecided - ?", (newly_decided,))
    return Receipt(seq=seq, action=entry.action, item=entry.id)


def _settle(connection: Connection, annotator: str, item: int) -> None:
    """Update the stored answer of an annotator, and its counts, to the state of the journal."""
    condition = "WHERE item = ? AND annotator = ?"
    columns = "item, annotator, seq, status, value"
    stored = connection.one(f"SELECT status FROM answer {condition}", item, annotator)
    current = connection.one(f"SELECT {columns} FROM current {condition}", item, annotator)
    connection.execute(f"DELETE FROM answer {condition}", (item, annotator))
    if current is not None:
        connection.execute("INSERT INTO answer VALUES (?, ?, ?, ?, ?)", tuple(current))
    for row, change in ((stored, -1), (current, 1)):
        if row is not None:
            # The columns of counts are called as the statuses: submitted and skipped.
            column = row["status"]
            query = f"UPDATE annotator SET {column} = {column} + ? WHERE name = ?"
            connection.execute(query, (change, annotator))
    recount(connection, item)


def sides(form: Form, id: str, annotator: str, study: str) -> tuple[str, str] | None:  # noqa: A002
    """Return the columns of a pair in display order: random, but fixed for each item."""
    if form.pair is None:
        return None
    first, second = form.pair
    digest = hashlib.md5(f"sides:{study}:{annotator}:{id}".encode(), usedforsecurity=False).digest()
    if digest[0] % 2:
        return (first, second)
    return (second, first)


def shown_item(connection: Connection, annotator: str, item: int) -> Item:
    """Return an item, by its number, as an annotator sees it."""
    row = connection.one("SELECT item, id, payload FROM item WHERE item = ?", item)
    answer = connection.one(f"{_ANSWERS} WHERE answer.item = ? AND answer.annotator = ?", item, annotator)
    flagged = connection.one(
        "SELECT action FROM journal WHERE item = ? AND annotator = ? AND action IN ('flag', 'unflag') "
        "ORDER BY seq DESC LIMIT 1",
        item, annotator,
    )  # fmt: skip
    order = sides(read_form(connection), row["id"], annotator, str(connection.setting("id")))
    return _item(row, answer, sides=order, flagged=flagged is not None and flagged["action"] == "flag")


def history(connection: Connection, annotator: str, before: int | None, limit: int) -> tuple[Answer, ...]:
    """Return an annotator's present answers, newest first."""
    rows = connection.all(
        f"{_ANSWERS} WHERE answer.annotator = ? AND answer.seq < ? ORDER BY answer.seq DESC LIMIT ?",
        annotator, before if before is not None else 2**62, max(0, min(limit, 1000)),
    )  # fmt: skip
    return tuple(Answer(**dict(row)) for row in rows)


def disagreements(connection: Connection, limit: int) -> tuple[Disagreement, ...]:
    """Return items on which annotators differ and nobody has decided, in the study's order."""
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
        open_disagreements.append(Disagreement(item=_item(row, None), answers=answers))
    return tuple(open_disagreements)


def assigned_to(entry: Disagreement, adjudicators: Sequence[str]) -> str:
    """Return who decides a disagreement, by its id: if possible, an adjudicator who did not answer it."""
    people = {answer.annotator for answer in entry.answers}
    candidates = [name for name in adjudicators if name not in people] or adjudicators
    digest = hashlib.md5(f"adjudicator:{entry.item.id}".encode(), usedforsecurity=False).digest()
    return candidates[digest[0] % len(candidates)]


def _item(row: Any, answer: Any, **shown: Any) -> Item:
    """Return an item of its row and the row of its answer, if it has one."""
    if answer is not None:
        shown["answer"] = Answer(**dict(answer))
    return Item(id=row["id"], position=row["item"], payload=json.loads(row["payload"]), **shown)


def annotator_progress(connection: Connection, annotator: str, now: float) -> Progress:
    """Return how far the study is, for one annotator."""
    person = connection.one("SELECT * FROM annotator WHERE name = ?", annotator)
    total, done, undecided = connection.one("SELECT total, done, undecided FROM tally")
    behind = clock_behind(connection, now)
    message = ""
    if person["aside"]:
        message = "Your labels were set aside, but they are kept. Contact the person who runs the study."
    elif behind > CLOCK_TOLERANCE:
        message = (
            f"This computer's clock is {duration(behind)} behind the times of earlier labels. The order of "
            "the labels is kept, and only their times are wrong. Set the clock."
        )
    seconds = pace(connection, annotator)
    if seconds is None:
        seconds_left = None
    else:
        seconds_left = seconds * (total - done) / active_annotators(connection, now, annotator)
    return Progress(
        submitted=person["submitted"],
        skipped=person["skipped"],
        share=person["submitted"] + math.ceil((total - done) / max(1, _working(connection))),
        done=done,
        total=total,
        seconds_left=seconds_left,
        disagreements=undecided,
        enough=connection.setting("enough") == "yes",
        message=message,
    )


def pace(connection: Connection, annotator: str | None = None, limit: int = RECENT) -> float | None:
    """Return the median of the seconds that the last answers took: an annotator's, or everybody's."""
    condition = "" if annotator is None else "annotator = ? AND "
    rows = connection.all(
        f"SELECT seconds FROM journal WHERE {condition}action IN ('submit', 'skip') AND seconds IS NOT NULL "
        "ORDER BY seq DESC LIMIT ?",
        *(() if annotator is None else (annotator,)), limit,
    )  # fmt: skip
    if rows:
        return float(median(row["seconds"] for row in rows))
    return None


def seconds_of(at: str) -> float:
    """Return a time of the journal in seconds since 1970."""
    return datetime.fromisoformat(at).timestamp()


def active_annotators(connection: Connection, now: float, annotator: str | None = None) -> int:
    """Return how many annotators have saved something lately, `annotator` among them."""
    rows = connection.all(
        "SELECT name, (SELECT at FROM journal WHERE journal.annotator = name ORDER BY seq DESC LIMIT 1) "
        "AS at FROM annotator WHERE aside = 0"
    )
    working = {
        r["name"] for r in rows if r["at"] is not None and abs(now - seconds_of(r["at"])) < ACTIVE_WITHIN
    }
    return len(working | ({annotator} if annotator is not None else set()))


def clock_behind(connection: Connection, now: float) -> float:
    """Return by how many seconds the clock is behind the latest of the journal's last lines, 0 if it is not.

    A wrong clock may have written the last line, so that it is not sufficient. Among all lines, one may be
    far in the future forever.
    """
    latest = connection.one(
        "SELECT max(at) AS at FROM (SELECT at FROM journal ORDER BY seq DESC LIMIT ?)", RECENT
    )["at"]
    if latest is None:
        return 0.0
    return max(0.0, seconds_of(latest) - now)
