"""The journal: lines that are only added, each sealed with the hash of all before it; and its tables.

The tables are made by numbered steps: each version of a study becomes the next, in one transaction.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypedDict

from msgspec import Struct, structs

from stratal.errors import InputError
from stratal.study.database import PRIVATE_FILE, Connection, StudyError
from stratal.study.question import Receipt

# Characters: far above any note or answer, and small enough for one request.
LONGEST_NOTE = 10_000

# Characters, as of a note: an id may be a path or an address.
LONGEST_ID = 10_000

# Largest number of characters of a request, which is the random id of a page and a number.
LONGEST_REQUEST = 200
# Largest number of seconds for an item: after more than a day, the time depends on other things.
LONGEST_TIME = 86_400.0

# What a line of the journal can say.
Action = Literal[
    "submit", "change", "skip", "undo", "flag", "unflag", "note", "adjudicate", "set-aside", "take-back",
    "rubric", "round", "setting",
]  # fmt: skip


class ActionDetails(TypedDict, total=False):
    """Details of an action, without the item and the answer."""

    note: str
    seconds: float | None
    request: str | None


# What the seal of a line covers.
_SEALED = (
    "seq", "at", "annotator", "action", "id", "value", "note", "seconds", "rubric", "shown", "target",
    "request",
)  # fmt: skip


class Entry(Struct, frozen=True, kw_only=True):
    """A line to be added.

    Parameters
    ----------
    annotator, action : str
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
    """

    annotator: str
    action: Action
    item: int | None = None
    id: str | None = None
    value: str | None = None
    note: str = ""
    seconds: float | None = None
    shown: str | None = None
    target: int | None = None
    request: str | None = None

    def __post_init__(self) -> None:
        require_storable("the note", self.note, LONGEST_NOTE)
        require_storable("the request", self.request or "", LONGEST_REQUEST)
        require_storable("the answer", self.value or "", LONGEST_NOTE)
        require_storable("the id", self.id or "", LONGEST_ID)


def require_storable(name: str, text: str, longest: int) -> None:
    """Refuse a text that is too long, or that a database or a page cannot hold."""
    if len(text) > longest:
        raise InputError(f"{name} is too long", given=f"{len(text):,} characters", allowed=f"{longest:,}")
    if "\0" in text or any("\ud800" <= mark <= "\udfff" for mark in text):
        raise InputError(f"{name} contains an invalid character", allowed="Unicode text")


def append(connection: Connection, entry: Entry) -> int:
    """Add a line; return its number."""
    last = connection.one("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1")
    if last:
        seq = last["seq"] + 1
        before = last["hash"]
    else:
        seq = 1
        before = chain_origin(connection)
    row = {"seq": seq, "at": connection.at, "rubric": int(connection.setting("rubric_version") or 1)}
    row |= structs.asdict(entry)
    # An impossible time, such as NaN or that of a wrong clock, is saved as unknown.
    if entry.seconds is not None:
        if 0 <= entry.seconds <= LONGEST_TIME:
            row["seconds"] = float(entry.seconds)
        else:
            row["seconds"] = None
    connection.execute(
        "INSERT INTO journal VALUES (:seq, :at, :annotator, :action, :item, :value, :note, :seconds, "
        ":rubric, :shown, :target, :request, :hash)",
        {**row, "hash": seal(before, row)},
    )
    return int(seq)


def saved_receipt(connection: Connection, entry: Entry) -> Receipt | None:
    """Return the receipt of the same request, if it was saved before; refuse one that was something else."""
    if entry.request is None:
        return None
    row = connection.one(
        "SELECT seq, action, value, note, item.id AS id FROM journal LEFT JOIN item USING (item) "
        "WHERE annotator = ? AND request = ?",
        entry.annotator, entry.request,
    )  # fmt: skip
    if row is None:
        return None
    # An answer that was saved as a change is the same request as when it came as a submission.
    if row["action"] == "change":
        action = "submit"
    else:
        action = row["action"]
    same = (action, row["value"], row["note"]) == (entry.action, entry.value, entry.note)
    if not same or (entry.id is not None and row["id"] != entry.id):
        problem = "this request was already used for another action"
        requested = f"{entry.action} of {entry.id!r}"
        allowed = f"{row['action']} of {row['id']!r}"
        raise StudyError(problem, kind="refused", given=requested, allowed=allowed, action="Reload the page.")
    return Receipt(seq=row["seq"], action=row["action"], item=row["id"], repeated=True)


def superseded(connection: Connection, entry: Entry, item: int) -> Receipt | None:
    """Return the receipt of a later request of the same page on an item, if that arrived before this one.

    A page numbers its requests (`PAGE-3`). A delayed answer must not replace a later one of the same page.
    """
    page, number = _numbered(entry.request)
    if number is None:
        return None
    for row in connection.execute(
        "SELECT seq, action, request FROM journal WHERE item = ? AND annotator = ? ORDER BY seq DESC",
        (item, entry.annotator),
    ):
        other, later = _numbered(row["request"])
        if other == page and later is not None and later > number:
            return Receipt(seq=row["seq"], action=row["action"], item=entry.id, repeated=True)
    return None


def _numbered(request: str | None) -> tuple[str, int | None]:
    """Return the page of a request and its number there, None for requests of another form."""
    page, _, number = (request or "").rpartition("-")
    return page, int(number) if page and number.isascii() and number.isdigit() else None


def seal(before: bytes, row: Any) -> bytes:
    """Return the hash of a line and all before it."""
    # `repr`, because a damaged file may contain bytes in place of text.
    values = [row[name] for name in _SEALED]
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=repr)
    return hashlib.sha256(before + text.encode("utf-8", "surrogatepass")).digest()


def chain_origin(connection: Connection) -> bytes:
    """Return the start of the chain of hashes, which is the study's own id."""
    return hashlib.sha256(f"stratal study {connection.setting('id')}".encode()).digest()


def broken_seals(connection: Connection) -> Iterator[str]:
    """Yield the problems of the chain: lines that are missing, changed or out of order."""
    before = chain_origin(connection)
    expected = 1
    for row in connection.execute(
        "SELECT journal.*, item.id AS id FROM journal LEFT JOIN item USING (item) ORDER BY seq"
    ):
        if row["seq"] != expected:
            yield f"lines {expected} to {row['seq'] - 1} of the journal are missing"
        elif seal(before, row) != row["hash"]:
            yield f"line {row['seq']} of the journal was changed after it was written ({row['at']})"
        # In a damaged file, the hash may be a text.
        before = row["hash"] if isinstance(row["hash"], bytes) else b""
        expected = row["seq"] + 1


def head(connection: Connection) -> str:
    """Return the last line's hash in hexadecimal, which stands for the whole journal."""
    last = connection.one("SELECT hash FROM journal ORDER BY seq DESC LIMIT 1")
    return bytes(last["hash"] if last else chain_origin(connection)).hex()


# File next to the database: number and hash of the last line that was saved. SQLite reads a write-ahead log
# up to the first damaged page, so that a flipped bit there takes the last lines away with a whole chain.
HEAD = "journal.head"


def write_head(folder: Path, seq: int, hash_: bytes) -> None:
    """Note the last line next to the database, once it is saved; a failure to write the note is ignored."""
    # The file is overwritten, since its length never changes; truncating it first would take milliseconds.
    with suppress(OSError):
        handle = os.open(folder / HEAD, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            file.write(f"{seq:020d} {hash_.hex()}\n".encode())


def missing_lines(connection: Connection, noted: bytes) -> Iterator[str]:
    """Yield a problem if a saved line is missing, by the note next to the database."""
    # A new study, a copy, or a computer that lost power, which may leave a file of zeros.
    if not noted.strip(b"\0"):
        return
    number, _, digest = noted.decode("ascii", "replace").rstrip("\n").partition(" ")
    # The number has a fixed width, so that a note that was cut off is recognised.
    if len(number) != 20 or not (number.isascii() and number.isdigit()):
        yield f"{HEAD} cannot be read"
        return
    row = connection.one("SELECT hash FROM journal WHERE seq = ?", int(number) % 2**63)
    if row is None:
        yield f"line {int(number)} of the journal had been saved ({HEAD}) and is missing, perhaps with others"
    elif not isinstance(row["hash"], bytes) or row["hash"].hex() != digest:
        yield f"line {int(number)} of the journal differs from the one that had been saved ({HEAD})"


# Setting of the study from which its links come.
PAGE_SECRET = "page_secret"
# Setting of the study from which the keys of its pages in one file come.
PAGE_FILE_SECRET = "page_file_secret"

# Settings on which the numbers of a study depend: the values of choices, who labels what, and when to stop.
# Not sealed are the look of the page, the secret of its links, and the time of the next evaluation.
SEALED_SETTINGS = ("question", "rubric_version", "overlap", "copies", "half_width", "reading", "adjudicators")


def settings_digest(connection: Connection) -> str:
    """Return the SHA-256 of the sealed settings and of who labels, as lines of the journal keep it."""
    settings = [connection.setting(name) for name in SEALED_SETTINGS]
    people = [list(row) for row in connection.execute("SELECT name, role FROM annotator ORDER BY name")]
    return hashlib.sha256(json.dumps([settings, people], default=repr).encode()).hexdigest()


def append_setting(connection: Connection, value: str, note: str = "", action: Action = "setting") -> None:
    """Add a line that seals the settings as they are now; `value` and `note` say what changed."""
    digest = settings_digest(connection)
    append(connection, Entry(annotator="", action=action, value=value, note=note, shown=digest))


def items_digest(connection: Connection, number: int) -> str:
    """Return the SHA-256 of a round's items as annotators see them, which the line of the round keeps."""
    digest = hashlib.sha256()
    for row in connection.execute(
        "SELECT item, id, stratum, copies, payload FROM item WHERE round = ? ORDER BY item", (number,)
    ):
        digest.update(json.dumps(list(row), default=repr).encode())
    return digest.hexdigest()


def append_round(connection: Connection, number: int, file: str, digest: str) -> None:
    """Add the line of a round, which seals its sample's file and its items."""
    items = items_digest(connection, number)
    append(connection, Entry(
        annotator="", action="round", value=str(number), note=f"{file} {digest}", shown=items
    ))  # fmt: skip


def first(connection: Connection) -> None:
    """Make the tables of version 1."""
    statement = ""
    for line in Path(__file__).with_name("tables.sql").read_text(encoding="utf-8").splitlines(keepends=True):
        statement += "" if line.startswith("--") else line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def sealed(connection: Connection) -> None:
    """Seal the settings and each round's items of a study of version 1, as they are when it is first opened.

    What was changed before cannot be detected any more; from then on every change is seen. A new study, which
    has no rounds yet, seals what it is made of.
    """
    rounds = connection.all("SELECT number, file, digest FROM round ORDER BY number")
    if not rounds:
        return
    connection.now = time.time()
    for row in rounds:
        append_round(connection, *row)
    append_setting(connection, "version", "2")


# Steps in their order; step i makes version i + 1. Only ever added to.
MIGRATIONS = (first, sealed)


def version(connection: Connection, place: Path | str = "the study") -> int:
    """Return the version of a database, 0 for an empty one; raise an error for a later version."""
    number = int(connection.one("PRAGMA user_version")[0])
    if number > len(MIGRATIONS):
        stated_version = f"version {number}"
        action = "Run: pip install --upgrade stratal"
        raise StudyError(
            f"{place} was written by a newer version of stratal",
            kind="damaged",
            given=stated_version,
            action=action,
        )
    return number


def migrate(connection: Connection, place: Path) -> None:
    """Take the steps that a database has not taken yet, inside the transaction that is open."""
    current = version(connection, place)
    for number, step in enumerate(MIGRATIONS[current:], start=current + 1):
        step(connection)
        connection.execute(f"PRAGMA user_version = {number}")
