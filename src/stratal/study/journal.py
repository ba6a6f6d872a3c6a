"""The journal: lines that are only added, each sealed with the hash of all before it."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stratal.errors import InputError
from stratal.study.faults import REFUSED, StudyError
from stratal.study.records import CHANGE, SETTING, SUBMIT, Receipt

LONGEST_NOTE = 10_000
LONGEST_REQUEST = 200
LONGEST_TIME = 86_400.0
"""Seconds; what is said to have taken longer says nothing."""

_SEALED = (
    *("seq", "at", "annotator", "action", "id", "value", "note"),
    *("seconds", "rubric", "shown", "target", "request"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line to be added.

    Parameters
    ----------
    annotator : str
    action : str
    item : int, optional
        Number of the item.
    id : str, optional
        Its id, which is what the seal covers.
    value : str, optional
    note : str
    seconds : float, optional
    shown : str, optional
        Sides of a pair as they were shown: `b|a`. Of a round the digest of its items, of a rubric or a
        setting the digest of all settings.
    target : int, optional
        The line that this one undoes or replaces.
    request : str, optional

    Examples
    --------
    >>> Entry(annotator="ann", action="skip", item=3, id="c").note
    ''
    """

    annotator: str
    action: str
    item: int | None = None
    id: str | None = None
    value: str | None = None
    note: str = ""
    seconds: float | None = None
    shown: str | None = None
    target: int | None = None
    request: str | None = None

    def checked(self) -> Entry:
        """Return the entry with odd times dropped, refusing text that cannot be kept."""
        for name, text, longest in (
            ("the note", self.note, LONGEST_NOTE),
            ("the request", self.request or "", LONGEST_REQUEST),
            ("the answer", self.value or "", LONGEST_NOTE),
        ):
            _keepable(name, text, longest)
        taken = self.seconds
        usable = isinstance(taken, int | float) and math.isfinite(taken) and 0 <= taken <= LONGEST_TIME
        return replace(self, seconds=float(taken) if usable and taken is not None else None)


@dataclass(frozen=True, slots=True)
class Transaction:
    """A connection that is writing, and the time at which it does.

    Examples
    --------
    >>> connection = sqlite3.connect(":memory:")
    >>> Transaction(connection, 0.0).at
    '1970-01-01T00:00:00.000Z'
    >>> connection.close()
    """

    connection: sqlite3.Connection
    now: float

    @property
    def at(self) -> str:
        """The time as it is written."""
        return written_time(self.now)

    def one(self, query: str, *values: Any) -> Any:
        """Return the first row of a query, or None."""
        return self.connection.execute(query, values).fetchone()

    def run(self, statement: str, *values: Any) -> None:
        """Run a statement."""
        self.connection.execute(statement, values)


def written_time(now: float) -> str:
    """Return a time as the journal has it.

    Examples
    --------
    >>> written_time(60.5)
    '1970-01-01T00:01:00.500Z'
    """
    moment = datetime.fromtimestamp(now, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def append(transaction: Transaction, entry: Entry) -> int:
    """Add a line; return its number.

    Examples
    --------
    >>> append.__name__
    'append'
    """
    entry = entry.checked()
    last = transaction.one("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1")
    seq, before = (last["seq"] + 1, last["hash"]) if last else (1, origin(transaction.connection))
    rubric = int(setting(transaction.connection, "rubric_version") or 1)
    row = {
        "seq": seq, "at": transaction.at, "annotator": entry.annotator, "action": entry.action,
        "id": entry.id, "value": entry.value, "note": entry.note, "seconds": entry.seconds,
        "rubric": rubric, "shown": entry.shown, "target": entry.target, "request": entry.request,
    }  # fmt: skip
    transaction.run(
        "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(seq, row["at"], entry.annotator, entry.action, entry.item, entry.value, entry.note),
        *(entry.seconds, rubric, entry.shown, entry.target, entry.request, seal(before, row)),
    )
    return seq


def repeated(transaction: Transaction, entry: Entry) -> Receipt | None:
    """Return the receipt of the same request, if it was saved before.

    Raises
    ------
    StudyError
        If the request was something else.

    Examples
    --------
    >>> repeated.__name__
    'repeated'
    """
    if entry.request is None:
        return None
    found = transaction.one(
        "SELECT seq, action, value, note, item.id AS id FROM journal LEFT JOIN item USING (item) "
        "WHERE annotator = ? AND request = ?",
        entry.annotator, entry.request,
    )  # fmt: skip
    if found is None:
        return None
    was, now = (_family(found["action"]), found["value"]), (_family(entry.action), entry.value)
    same = was == now and found["note"] == entry.note
    if not same or (entry.id is not None and found["id"] != entry.id):
        raise StudyError(
            "this request was used before, for something else",
            kind=REFUSED,
            given=f"{entry.action} of {entry.id!r}",
            allowed=f"{found['action']} of {found['id']!r}",
            action="Reload the page.",
        )
    return Receipt(seq=found["seq"], action=found["action"], item=found["id"], repeated=True)


def superseded(transaction: Transaction, entry: Entry, item: int) -> Receipt | None:
    """Return the receipt of a later request of the same page on an item, if that arrived before this one.

    A page numbers its requests (`PAGE-3`). An answer that was held up on its way, and was edited and sent
    anew meanwhile, must not take the place of the edited one.

    Examples
    --------
    >>> superseded.__name__
    'superseded'
    """
    page, number = _numbered(entry.request)
    if number is None:
        return None
    rows = transaction.connection.execute(
        "SELECT seq, action, request FROM journal WHERE item = ? AND annotator = ? ORDER BY seq DESC",
        (item, entry.annotator),
    )
    for row in rows:
        other, later = _numbered(row["request"])
        if other == page and later is not None and later > number:
            return Receipt(seq=row["seq"], action=row["action"], item=entry.id, repeated=True)
    return None


def _numbered(request: str | None) -> tuple[str, int | None]:
    """Return the page of a request and its number there, None for requests of another form."""
    page, _, number = (request or "").rpartition("-")
    return page, int(number) if page and number.isascii() and number.isdigit() else None


def seal(before: bytes, row: Any) -> bytes:
    """Return the hash of a line and all before it.

    Examples
    --------
    >>> row = dict.fromkeys(_SEALED)
    >>> seal(b"", row) == seal(b"", row), seal(b"", row) == seal(b"", row | {"value": "Pass"})
    (True, False)
    """
    # repr: a damaged file may hold bytes where text was
    values = [row[name] for name in _SEALED]
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=repr)
    return hashlib.sha256(before + text.encode("utf-8", "surrogatepass")).digest()


def origin(connection: sqlite3.Connection) -> bytes:
    """Return what the first line's hash starts from: the study's own id.

    Examples
    --------
    >>> origin.__name__
    'origin'
    """
    return hashlib.sha256(f"stratal study {setting(connection, 'id')}".encode()).digest()


def broken_seals(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield what is wrong with the chain: lines that are missing, changed or out of order.

    Examples
    --------
    >>> broken_seals.__name__
    'broken_seals'
    """
    before, expected = origin(connection), 1
    rows = connection.execute(
        "SELECT journal.*, item.id AS id FROM journal LEFT JOIN item USING (item) ORDER BY seq"
    )
    for row in rows:
        if row["seq"] != expected:
            yield f"lines {expected} to {row['seq'] - 1} of the journal are missing"
        elif seal(before, row) != row["hash"]:
            yield f"line {row['seq']} of the journal was changed after it was written ({row['at']})"
        before = row["hash"] if isinstance(row["hash"], bytes) else b""  # text, in a damaged file
        expected = row["seq"] + 1


def head(connection: sqlite3.Connection) -> str:
    """Return the last line's hash in hexadecimal, which stands for the whole journal.

    Examples
    --------
    >>> head.__name__
    'head'
    """
    last = connection.execute("SELECT hash FROM journal ORDER BY seq DESC LIMIT 1").fetchone()
    return (last["hash"] if last else origin(connection)).hex()


HEAD = "journal.head"
"""File beside the database: number and hash of the last line that was saved. SQLite reads a write-ahead log
up to the first damaged page, so that a flipped bit there takes the last lines away with a whole chain."""


def keep_head(folder: Path, seq: int, hash_: bytes) -> None:
    """Note the last line beside the database, once it is saved; a note that cannot be written is none.

    Examples
    --------
    >>> keep_head(Path("/nowhere"), 3, b"")
    """
    with suppress(OSError):
        (folder / HEAD).write_text(f"{seq:020d} {hash_.hex()}\n", encoding="ascii")


def missing_lines(connection: sqlite3.Connection, noted: bytes) -> Iterator[str]:
    """Yield that lines are missing which had been saved, by what the file beside the database said before.

    Examples
    --------
    >>> missing_lines.__name__
    'missing_lines'
    """
    if not noted.strip(b"\0"):  # a new study, a copy, or a computer that lost power
        return
    number, _, digest = noted.decode("ascii", "replace").rstrip("\n").partition(" ")
    if len(number) != 20 or not (number.isascii() and number.isdigit()):
        yield f"{HEAD} cannot be read"
        return
    row = connection.execute("SELECT hash FROM journal WHERE seq = ?", (int(number) % 2**63,)).fetchone()
    if row is None:
        yield f"the journal lacks line {int(number)}, which had been saved ({HEAD}), and perhaps others"
    elif not isinstance(row["hash"], bytes) or row["hash"].hex() != digest:
        yield f"line {int(number)} of the journal is not the one that had been saved ({HEAD})"


def setting(connection: sqlite3.Connection, name: str) -> str | None:
    """Return a setting.

    Examples
    --------
    >>> setting.__name__
    'setting'
    """
    found = connection.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
    return None if found is None else str(found["value"])


PAGE_SECRET = "page_secret"
"""Setting of the study from which its links come."""

SEALED_SETTINGS = ("question", "rubric_version", "overlap", "copies", "half_width", "reading", "adjudicators")
"""What every number of a study depends on besides its answers: what a choice counts as, who labels what, when
to stop. Not sealed: how a page looks, its links' secret, and when the interval is looked at next."""


def settings_digest(connection: sqlite3.Connection) -> str:
    """Return the SHA-256 of the sealed settings and of who labels, as lines of the journal keep it.

    Examples
    --------
    >>> settings_digest.__name__
    'settings_digest'
    """
    kept = [setting(connection, name) for name in SEALED_SETTINGS]
    people = [list(row) for row in connection.execute("SELECT name, role FROM annotator ORDER BY name")]
    return hashlib.sha256(json.dumps([kept, people], default=repr).encode()).hexdigest()


def items_digest(connection: sqlite3.Connection, number: int) -> str:
    """Return the SHA-256 of a round's items as annotators see them, which the line of the round keeps.

    Examples
    --------
    >>> items_digest.__name__
    'items_digest'
    """
    digest = hashlib.sha256()
    for row in connection.execute(
        "SELECT item, id, stratum, copies, payload FROM item WHERE round = ? ORDER BY item", (number,)
    ):
        digest.update(json.dumps(list(row), default=repr).encode())
    return digest.hexdigest()


def append_setting(transaction: Transaction, value: str, note: str = "", action: str = SETTING) -> int:
    """Add a line that seals the settings as they are now; `value` and `note` say what changed.

    Examples
    --------
    >>> append_setting.__name__
    'append_setting'
    """
    digest = settings_digest(transaction.connection)
    return append(transaction, Entry(annotator="", action=action, value=value, note=note, shown=digest))


def keep_setting(connection: sqlite3.Connection, name: str, value: str) -> None:
    """Save a setting.

    Examples
    --------
    >>> keep_setting.__name__
    'keep_setting'
    """
    connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))


def _family(action: str) -> str:
    return SUBMIT if action == CHANGE else action


def _keepable(name: str, text: str, longest: int) -> None:
    if len(text) > longest:
        raise InputError(f"{name} is too long", given=f"{len(text):,} characters", allowed=f"{longest:,}")
    if "\0" in text or any("\ud800" <= mark <= "\udfff" for mark in text):
        raise InputError(f"{name} holds a character that is not text", allowed="Unicode text")
