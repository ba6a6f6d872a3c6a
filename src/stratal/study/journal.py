"""The journal of a study: an append-only log in which each line has a hash of itself and all previous lines.

The module also has the tables of the database. They are created by numbered migrations: each converts a study
to the next version, in one transaction.
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

# Largest number of characters of a note or an answer: far above real ones, and small enough for one request.
MAX_NOTE_CHARACTERS = 10_000

# Largest number of characters of an id, which may be a path or an address.
MAX_ID_CHARACTERS = 10_000

# Largest number of characters of a request, which is the random id of a page and a number.
MAX_REQUEST_CHARACTERS = 200

# Largest number of seconds for an item: after more than a day, the time depends on other things.
MAX_SECONDS_PER_ITEM = 86_400.0

# Actions that a line of the journal can store. `set-aside` excludes the labels of an annotator, and
# `take-back` includes them again.
Action = Literal[
    "submit", "change", "skip", "undo", "flag", "unflag", "note", "adjudicate", "set-aside", "take-back",
    "rubric", "round", "setting",
]  # fmt: skip


class ActionDetails(TypedDict, total=False):
    """Details of an action, without the item and the answer."""

    note: str
    seconds: float | None
    request: str | None


# Columns of a line that enter its hash.
_HASHED_COLUMNS = (
    "seq", "at", "annotator", "action", "id", "value", "note", "seconds", "rubric", "shown", "target",
    "request",
)  # fmt: skip


class Entry(Struct, frozen=True, kw_only=True):
    """A line of the journal before it is added.

    Parameters
    ----------
    annotator, action : str
    item : int, optional
        Number of the item.
    id : str, optional
        Id of the item, which enters the hash.
    value : str, optional
    note : str
    seconds : float, optional
    shown : str, optional
        Columns of a pair in display order, such as `b|a`. For a round, the digest of its items; for a rubric
        or a setting, the digest of all settings.
    target : int, optional
        Number of the line that this one undoes or replaces.
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
        require_storable("the note", self.note, MAX_NOTE_CHARACTERS)
        require_storable("the request", self.request or "", MAX_REQUEST_CHARACTERS)
        require_storable("the answer", self.value or "", MAX_NOTE_CHARACTERS)
        require_storable("the id", self.id or "", MAX_ID_CHARACTERS)


def require_storable(name: str, text: str, max_characters: int) -> None:
    """Refuse a text that is too long, or has characters that a database or a page cannot store."""
    if len(text) > max_characters:
        given = f"{len(text):,} characters"
        raise InputError(f"{name} is too long", given=given, allowed=f"{max_characters:,}")
    if "\0" in text or any("\ud800" <= mark <= "\udfff" for mark in text):
        raise InputError(f"{name} contains an invalid character", allowed="Unicode text")


def append(connection: Connection, entry: Entry) -> int:
    """Add a line to the journal; return its number."""
    last_line = connection.one("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1")
    if last_line:
        seq = last_line["seq"] + 1
        previous_hash = last_line["hash"]
    else:
        seq = 1
        previous_hash = chain_origin(connection)
    row = {"seq": seq, "at": connection.timestamp, "rubric": int(connection.setting("rubric_version") or 1)}
    row |= structs.asdict(entry)
    if entry.seconds is not None:
        # An impossible time, such as NaN or that of a wrong clock, is saved as unknown.
        is_possible = 0 <= entry.seconds <= MAX_SECONDS_PER_ITEM
        row["seconds"] = float(entry.seconds) if is_possible else None
    connection.execute(
        "INSERT INTO journal VALUES (:seq, :at, :annotator, :action, :item, :value, :note, :seconds, "
        ":rubric, :shown, :target, :request, :hash)",
        {**row, "hash": line_hash(previous_hash, row)},
    )
    return int(seq)


def saved_receipt(connection: Connection, entry: Entry) -> Receipt | None:
    """Return the receipt of the same request, if it was saved before; refuse it for another action."""
    if entry.request is None:
        return None
    row = connection.one(
        "SELECT seq, action, value, note, item.id AS id FROM journal LEFT JOIN item USING (item) "
        "WHERE annotator = ? AND request = ?",
        entry.annotator, entry.request,
    )  # fmt: skip
    if row is None:
        return None
    # A submission that replaced an earlier answer was saved as a change.
    if row["action"] == "change":
        action = "submit"
    else:
        action = row["action"]
    is_same = (action, row["value"], row["note"]) == (entry.action, entry.value, entry.note)
    if not is_same or (entry.id is not None and row["id"] != entry.id):
        problem = "this request was already used for another action"
        requested = f"{entry.action} of {entry.id!r}"
        allowed = f"{row['action']} of {row['id']!r}"
        raise StudyError(problem, kind="refused", given=requested, allowed=allowed, action="Reload the page.")
    return Receipt(seq=row["seq"], action=row["action"], item=row["id"], repeated=True)


def receipt_of_later_request(connection: Connection, entry: Entry, item: int) -> Receipt | None:
    """Return the receipt of a later request of the same page for an item, if it arrived before this one.

    A page numbers its requests (`PAGE-3`). A delayed answer must not replace a later one of the same page.
    """
    page, number = _page_and_number(entry.request)
    if number is None:
        return None
    for row in connection.execute(
        "SELECT seq, action, request FROM journal WHERE item = ? AND annotator = ? ORDER BY seq DESC",
        (item, entry.annotator),
    ):
        other_page, other_number = _page_and_number(row["request"])
        if other_page == page and other_number is not None and other_number > number:
            return Receipt(seq=row["seq"], action=row["action"], item=entry.id, repeated=True)
    return None


def _page_and_number(request: str | None) -> tuple[str, int | None]:
    """Return the page and the number of a request such as `PAGE-3`; the number is None for other requests."""
    page, _, number = (request or "").rpartition("-")
    if page and number.isascii() and number.isdigit():
        return page, int(number)
    return page, None


def line_hash(previous_hash: bytes, row: Any) -> bytes:
    """Return the hash of a line and, through the hash of the previous line, of all lines before it."""
    # `repr` is needed, because a damaged file may contain bytes in place of text.
    values = [row[name] for name in _HASHED_COLUMNS]
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=repr)
    return hashlib.sha256(previous_hash + text.encode("utf-8", "surrogatepass")).digest()


def chain_origin(connection: Connection) -> bytes:
    """Return the hash that precedes the first line: the digest of the study's id."""
    return hashlib.sha256(f"stratal study {connection.setting('id')}".encode()).digest()


def find_chain_problems(connection: Connection) -> Iterator[str]:
    """Yield the problems of the chain of hashes: lines that are missing, changed or out of order."""
    previous_hash = chain_origin(connection)
    expected_seq = 1
    for row in connection.execute(
        "SELECT journal.*, item.id AS id FROM journal LEFT JOIN item USING (item) ORDER BY seq"
    ):
        if row["seq"] != expected_seq:
            yield f"lines {expected_seq} to {row['seq'] - 1} of the journal are missing"
        elif line_hash(previous_hash, row) != row["hash"]:
            yield f"line {row['seq']} of the journal was changed after it was written ({row['at']})"
        # In a damaged file, the hash may be a text.
        previous_hash = row["hash"] if isinstance(row["hash"], bytes) else b""
        expected_seq = row["seq"] + 1


def journal_head(connection: Connection) -> str:
    """Return the hash of the last line in hexadecimal, which identifies the state of the whole journal."""
    last = connection.one("SELECT hash FROM journal ORDER BY seq DESC LIMIT 1")
    return bytes(last["hash"] if last else chain_origin(connection)).hex()


# File next to the database: number and hash of the last line that was saved. SQLite reads a write-ahead log
# only up to the first damaged page. Damage there removes the last lines, but the chain of the others stays
# valid.
HEAD = "journal.head"


def write_head(folder: Path, seq: int, hash_: bytes) -> None:
    """Write number and hash of the last line to `HEAD`, after it was saved; a failure is ignored."""
    # The file is overwritten without truncating it, which would take milliseconds: its length never changes.
    with suppress(OSError):
        handle = os.open(folder / HEAD, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            file.write(f"{seq:020d} {hash_.hex()}\n".encode())


def find_missing_lines(connection: Connection, head_content: bytes) -> Iterator[str]:
    """Yield a problem if a saved line is missing or differs, according to the content of the file `HEAD`."""
    # The file is empty for a new study or a copy, and may consist of zeros after a power failure.
    if not head_content.strip(b"\0"):
        return
    number, _, digest = head_content.decode("ascii", "replace").rstrip("\n").partition(" ")
    # The number has a fixed width, so that a truncated file is recognised.
    if len(number) != 20 or not (number.isascii() and number.isdigit()):
        yield f"{HEAD} cannot be read"
        return
    # A damaged file may contain a number that is too large for an integer of SQLite.
    row = connection.one("SELECT hash FROM journal WHERE seq = ?", int(number) % 2**63)
    if row is None:
        yield f"line {int(number)} of the journal had been saved ({HEAD}) and is missing, perhaps with others"
    elif not isinstance(row["hash"], bytes) or row["hash"].hex() != digest:
        yield f"line {int(number)} of the journal differs from the one that had been saved ({HEAD})"


# Setting with the secret from which the links of a study are computed.
PAGE_SECRET = "page_secret"
# Setting with the secret from which the keys of pages in one file are computed.
PAGE_FILE_SECRET = "page_file_secret"

# Settings on which the results of a study depend: the values of choices, the assignment of items, and the
# stopping rule. Their digest is part of the journal. The other settings are the appearance of the page, the
# secrets of links, and the time of the next evaluation of the stopping rule.
# `reading` are the options with which the population was read. The order is part of the digest.
HASHED_SETTINGS = ("question", "rubric_version", "overlap", "copies", "half_width", "reading", "adjudicators")


def settings_digest(connection: Connection) -> str:
    """Return the SHA-256 of `HASHED_SETTINGS` and of all annotators with their roles."""
    settings = [connection.setting(name) for name in HASHED_SETTINGS]
    people = [list(row) for row in connection.execute("SELECT name, role FROM annotator ORDER BY name")]
    return hashlib.sha256(json.dumps([settings, people], default=repr).encode()).hexdigest()


def append_setting(connection: Connection, value: str, note: str = "", action: Action = "setting") -> None:
    """Add a line with the digest of the current settings; `value` and `note` describe the change."""
    digest = settings_digest(connection)
    append(connection, Entry(annotator="", action=action, value=value, note=note, shown=digest))


def items_digest(connection: Connection, number: int) -> str:
    """Return the SHA-256 of a round's items as annotators see them, which the line of the round stores."""
    digest = hashlib.sha256()
    for row in connection.execute(
        "SELECT item, id, stratum, copies, payload FROM item WHERE round = ? ORDER BY item", (number,)
    ):
        digest.update(json.dumps(list(row), default=repr).encode())
    return digest.hexdigest()


def append_round(connection: Connection, number: int, file: str, digest: str) -> None:
    """Add the line of a round, with the digests of its sample's file and of its items."""
    items = items_digest(connection, number)
    append(connection, Entry(
        annotator="", action="round", value=str(number), note=f"{file} {digest}", shown=items
    ))  # fmt: skip


def create_tables(connection: Connection) -> None:
    """Create the tables of version 1."""
    statement = ""
    script = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8")
    for line in script.splitlines(keepends=True):
        # SQLite would store the comments with the tables.
        statement += "" if line.startswith("--") else line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def record_existing_state(connection: Connection) -> None:
    """Add the digests of the settings and of each round's items to the journal of a study of version 1.

    Changes before this migration cannot be detected, all later ones can. A new study has no rounds yet: the
    functions that create it add the digests.
    """
    rounds = connection.all("SELECT number, file, digest FROM round ORDER BY number")
    if not rounds:
        return
    connection.now = time.time()
    for row in rounds:
        append_round(connection, *row)
    append_setting(connection, "version", "2")


# Migrations in their order: the one at index i creates version i + 1. Add new ones; never change these.
MIGRATIONS = (create_tables, record_existing_state)


def database_version(connection: Connection, name: Path | str = "the study") -> int:
    """Return the version of a database, 0 for an empty one; refuse a newer one, with `name` in the error."""
    number = int(connection.one("PRAGMA user_version")[0])
    if number > len(MIGRATIONS):
        problem = f"{name} was written by a newer version of stratal"
        action = "Run: pip install --upgrade stratal"
        raise StudyError(problem, kind="damaged", given=f"version {number}", action=action)
    return number


def migrate(connection: Connection, name: Path) -> None:
    """Run the migrations that a database still needs, inside the transaction that is open."""
    current_version = database_version(connection, name)
    for number, migration in enumerate(MIGRATIONS[current_version:], start=current_version + 1):
        migration(connection)
        connection.execute(f"PRAGMA user_version = {number}")
