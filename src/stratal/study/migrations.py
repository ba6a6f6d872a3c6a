"""The database's tables, as numbered steps: each version of a study becomes the next, in one transaction.

The journal is the truth, and is only ever added to. `current` is what it says now, as a view; `answer`, the
counts of `item`, `annotator` and `tally` are the same, kept up to date for speed, and `stratal check`
compares them.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from stratal.study.faults import DAMAGED, StudyError
from stratal.study.journal import Entry, Transaction, append, append_setting, items_digest
from stratal.study.records import ROUND

Step = Callable[[sqlite3.Connection], None]

_FIRST = """
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE round (
    number INTEGER PRIMARY KEY, file TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL
);
CREATE TABLE annotator (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('annotator', 'adjudicator')),
    aside INTEGER NOT NULL DEFAULT 0,
    cursor INTEGER NOT NULL DEFAULT 0,
    submitted INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE item (
    item INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    round INTEGER NOT NULL REFERENCES round,
    stratum INTEGER NOT NULL,
    copies INTEGER NOT NULL CHECK (copies > 0),
    payload TEXT NOT NULL,
    wanted INTEGER NOT NULL,
    answers INTEGER NOT NULL DEFAULT 0,
    apart INTEGER NOT NULL DEFAULT 0,
    decision INTEGER
);
CREATE INDEX item_wanted ON item (item) WHERE wanted > 0;
CREATE INDEX item_apart ON item (item) WHERE apart = 1;
CREATE INDEX item_undecided ON item (item) WHERE apart = 1 AND decision IS NULL;
CREATE TABLE tally (total INTEGER NOT NULL, done INTEGER NOT NULL, undecided INTEGER NOT NULL);
INSERT INTO tally VALUES (0, 0, 0);
CREATE TABLE given (
    item INTEGER NOT NULL REFERENCES item,
    annotator TEXT NOT NULL REFERENCES annotator,
    since REAL NOT NULL,
    turn INTEGER NOT NULL,
    live INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (item, annotator)
) WITHOUT ROWID;
CREATE INDEX given_live ON given (annotator, turn) WHERE live = 1;
CREATE TABLE answer (
    item INTEGER NOT NULL REFERENCES item,
    annotator TEXT NOT NULL REFERENCES annotator,
    seq INTEGER NOT NULL,
    status TEXT NOT NULL,
    value TEXT,
    PRIMARY KEY (item, annotator)
) WITHOUT ROWID;
CREATE INDEX answer_seq ON answer (annotator, seq);
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    annotator TEXT NOT NULL,
    action TEXT NOT NULL,
    item INTEGER REFERENCES item,
    value TEXT,
    note TEXT NOT NULL DEFAULT '',
    seconds REAL,
    rubric INTEGER NOT NULL,
    shown TEXT,
    target INTEGER,
    request TEXT,
    hash BLOB NOT NULL
);
CREATE INDEX journal_item ON journal (item, annotator, seq);
CREATE INDEX journal_annotator ON journal (annotator, seq);
CREATE INDEX journal_undone ON journal (target) WHERE action = 'undo';
CREATE UNIQUE INDEX journal_request ON journal (annotator, request) WHERE request IS NOT NULL;
CREATE TRIGGER journal_keeps_rows BEFORE DELETE ON journal
    BEGIN SELECT RAISE(ABORT, 'the journal is only added to'); END;
CREATE TRIGGER journal_keeps_values BEFORE UPDATE ON journal
    BEGIN SELECT RAISE(ABORT, 'the journal is only added to'); END;
CREATE VIEW current AS
    SELECT seq, at, annotator, item, CASE action WHEN 'skip' THEN 'skipped' ELSE 'submitted' END AS status,
        value, note, seconds, rubric, shown
    FROM journal AS said
    WHERE action IN ('submit', 'change', 'skip')
        AND NOT EXISTS (SELECT 1 FROM journal AS u WHERE u.action = 'undo' AND u.target = said.seq)
        AND NOT EXISTS (
            SELECT 1 FROM journal AS later
            WHERE later.item = said.item AND later.annotator = said.annotator AND later.seq > said.seq
                AND later.action IN ('submit', 'change', 'skip')
                AND NOT EXISTS (SELECT 1 FROM journal AS u WHERE u.action = 'undo' AND u.target = later.seq)
        );
CREATE VIEW decision AS
    SELECT seq, at, annotator, item, value, note FROM journal AS said
    WHERE action = 'adjudicate' AND seq = (
        SELECT max(seq) FROM journal AS other WHERE other.item = said.item AND other.action = 'adjudicate'
    ) AND value IS NOT NULL;
CREATE VIEW standing AS
    SELECT name AS annotator, coalesce((
        SELECT action = 'set-aside' FROM journal AS said
        WHERE said.annotator = name AND action IN ('set-aside', 'take-back') ORDER BY seq DESC LIMIT 1
    ), 0) AS aside FROM annotator;
"""


def first(connection: sqlite3.Connection) -> None:
    """Make the tables of version 1.

    Examples
    --------
    >>> connection = sqlite3.connect(":memory:")
    >>> first(connection)
    >>> connection.execute("SELECT count(*) FROM current").fetchone()
    (0,)
    >>> connection.close()
    """
    statement = ""
    for line in _FIRST.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def sealed(connection: sqlite3.Connection) -> None:
    """Seal the settings and each round's items of a study of version 1, as they are when it is first opened.

    What was changed before cannot be told any more; from then on every change is seen.

    Examples
    --------
    >>> connection = sqlite3.connect(":memory:")
    >>> first(connection)
    >>> sealed(connection)  # a new study seals what it is made of
    >>> connection.execute("SELECT count(*) FROM journal").fetchone()
    (0,)
    >>> connection.close()
    """
    rounds = connection.execute("SELECT number, file, digest FROM round ORDER BY number").fetchall()
    if not rounds:
        return
    transaction = Transaction(connection, time.time())
    for number, file, digest in rounds:
        append(transaction, Entry(
            annotator="", action=ROUND, value=str(number), note=f"{file} {digest}",
            shown=items_digest(connection, number),
        ))  # fmt: skip
    append_setting(transaction, "version", "2")


STEPS: tuple[Step, ...] = (first, sealed)
"""Steps in their order; step i makes version i + 1. Only ever added to."""


def version(connection: sqlite3.Connection) -> int:
    """Return the version of a database; 0 for an empty one.

    Examples
    --------
    >>> connection = sqlite3.connect(":memory:")
    >>> version(connection)
    0
    >>> connection.close()
    """
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, place: Path, steps: Sequence[Step] = STEPS) -> int:
    """Take the steps that a database has not taken yet, inside the transaction that is open; return how many.

    Raises
    ------
    StudyError
        If a newer stratal made the database.

    Examples
    --------
    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> migrate(connection, Path("study")), migrate(connection, Path("study"))
    (2, 0)
    >>> connection.close()
    """
    found = version(connection)
    refuse_newer(found, place, len(steps))
    for number, step in enumerate(steps[found:], start=found + 1):
        step(connection)
        connection.execute(f"PRAGMA user_version = {number}")
    return len(steps) - found


def refuse_newer(found: int, place: Path, known: int = len(STEPS)) -> None:
    """Refuse a database of a version that this stratal does not know.

    Examples
    --------
    >>> refuse_newer(99, Path("study"))
    Traceback (most recent call last):
    stratal.study.faults.StudyError: study: was made by a newer stratal (given: version 99; allowed: up to
    version 2)...
    """
    if found > known:
        raise StudyError(
            f"{place}: was made by a newer stratal",
            kind=DAMAGED,
            given=f"version {found}",
            allowed=f"up to version {known}",
            action="Run: pip install --upgrade stratal",
        )
