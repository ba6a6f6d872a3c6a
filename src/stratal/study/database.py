"""The study's SQLite file: where it lies, what goes wrong with it, its transactions, and who serves it.

Many threads read, one writes at a time; what is written is on disk whole or not at all.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from stratal.errors import InputError, StratalError

# The file by which a folder is recognised as a study.
DATABASE = "study.sqlite"

# File that a server locks, so that no second server can serve the study.
LOCK = "server.lock"

# Permissions of a study's folder: only its owner. From the database, all links can be computed.
PRIVATE_FOLDER = 0o700

# Only the owner reads and writes.
PRIVATE_FILE = 0o600

# What a page needs to tell apart: wait and try again (`locked`), call the person who runs the study
# (`disk-full`, `read-only`, `disk`, `damaged`), a second server (`served`), something not allowed
# (`refused`), no such thing (`missing`).
Kind = Literal["disk-full", "locked", "read-only", "disk", "damaged", "served", "refused", "missing"]


class StudyError(StratalError):
    """A failed operation of a study; nothing was saved, and nothing that was saved before is lost.

    Parameters
    ----------
    what : str
    kind : str
        One of `stratal.study.database.Kind`.
    given, allowed, action
        As in `StratalError`.

    Examples
    --------
    >>> print(StudyError("the disk is full", kind="disk-full", action="Free some space, then try again."))
    the disk is full. Free some space, then try again.
    """

    def __init__(self, problem: str, *, kind: Kind, **parts: Any) -> None:
        self.kind = kind
        super().__init__(problem, **parts)


# Remedy of several errors.
_WRITABLE = "Give the user who runs this command write permission for the folder and its files."
# SQLite's name of an error (its first two words) → kind, what is wrong, what to do.
_FAULTS: dict[str, tuple[Kind, str, str]] = {
    "SQLITE_FULL": ("disk-full", "the disk is full, so this was not saved",
                    "Free some space, then try again."),
    "SQLITE_BUSY": ("locked", "another program is writing to the study, so this was not saved",
                    "Try again in a moment; close programs that have the database open."),
    "SQLITE_LOCKED": ("locked", "the study is locked, so this was not saved", "Try again in a moment."),
    "SQLITE_READONLY": ("read-only", "the study cannot be written to", _WRITABLE),
    "SQLITE_PERM": ("read-only", "the study cannot be written to", _WRITABLE),
    "SQLITE_CANTOPEN": ("read-only", "the study's database cannot be opened", _WRITABLE),
    "SQLITE_IOERR": ("disk", "the disk reported an error", "Check the disk; then try again."),
    "SQLITE_CORRUPT": ("damaged", "the study's database is damaged",
                       "Restore a backup (stratal study backup)."),
    "SQLITE_NOTADB": ("damaged", "this is not a study's database",
                      "Give the folder that `stratal study new` created."),
}  # fmt: skip


@contextmanager
def database_errors(place: Path) -> Iterator[None]:
    """Translate the errors of SQLite into a `StudyError`."""
    try:
        yield
    except sqlite3.IntegrityError:
        # A violated constraint is an error of the program, not of the file.
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        # SQLite's own message of text that cannot be decoded quotes bytes of a damaged file.
        unreadable = isinstance(error, UnicodeDecodeError)
        name = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT" if unreadable else "SQLITE_IOERR")
        short = "_".join(name.split("_")[:2])
        kind, problem, action = _FAULTS.get(short, _FAULTS["SQLITE_IOERR"])
        detail = f" ({error})" if kind == "disk" else ""
        raise StudyError(f"{place}: {problem}{detail}", kind=kind, action=action) from error


# Name of a journal → SQLite's mode. With a write-ahead log readers never wait; it needs memory that all
# processes share, so that a folder that several computers write to over a network needs a rollback journal.
JOURNALS = {"auto": "wal", "rollback": "delete"}


class Connection(sqlite3.Connection):
    """A connection to a study's file, and the time at which it writes."""

    now = 0.0

    @property
    def at(self) -> str:
        """The time as it is written."""
        return written_time(self.now)

    def one(self, query: str, *values: object) -> Any:
        """Return the first row of a query, or None."""
        return self.execute(query, values).fetchone()

    def all(self, query: str, *values: object) -> list[Any]:
        """Return the rows of a query."""
        return self.execute(query, values).fetchall()

    def setting(self, name: str) -> str | None:
        """Return a setting of the study."""
        row = self.one("SELECT value FROM setting WHERE name = ?", name)
        if row is None:
            return None
        return str(row[0])

    def save_settings(self, **settings: str) -> None:
        """Save settings of the study."""
        self.executemany("INSERT OR REPLACE INTO setting VALUES (?, ?)", settings.items())


def written_time(now: float) -> str:
    """Return a time in seconds since 1970 as the journal has it."""
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Database:
    """A pool of connections to one file.

    Parameters
    ----------
    path : Path
        An existing file, but for `make`.
    patience : float
        Seconds to wait for another process that writes.
    pragmas : tuple of str
        Further settings of each connection, such as `max_page_count=1000`, which bounds the file's size.
    reading : bool
        Whether nothing may be written.
    """

    def __init__(
        self, path: Path, *, patience: float = 5.0, pragmas: tuple[str, ...] = (), reading: bool = False
    ) -> None:
        self.path = path
        self.reading = reading
        self._patience = patience
        self._pragmas = pragmas
        self._free: list[Connection] = []
        self._writing = threading.Lock()

    @classmethod
    def make(cls, path: Path, journal: str) -> Database:
        """Return the database of a file that is made now, with its journal of kind `journal`."""
        if journal not in JOURNALS:
            raise InputError("unknown journal mode", given=repr(journal), allowed=", ".join(JOURNALS))
        path.touch(mode=PRIVATE_FILE)
        with database_errors(path.parent), closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode={JOURNALS[journal]}").fetchone()
        return cls(path)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees the study as it was at one moment."""
        with database_errors(self.path.parent), self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Connection]:
        """Give a connection whose changes are all on disk when the block ends, or none after an error.

        Unless `durable`, changes may be lost when the power fails (never when a process is killed),
        but nothing that came before it.
        """
        folder = self.path.parent
        if not self._writing.acquire(timeout=self._patience):
            problem = f"{folder}: too many changes are being saved at the same time, so this was not saved"
            raise StudyError(problem, kind="locked", action="Try again in a moment.")
        try:
            synchronous = f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}"
            with database_errors(folder), self._transaction(synchronous, "BEGIN IMMEDIATE") as connection:
                yield connection
                # Without effect if the block only previewed its changes, and rolled them back.
                connection.commit()
        finally:
            self._writing.release()

    @contextmanager
    def _transaction(self, *beginning: str) -> Iterator[Connection]:
        """Give a connection in a transaction, which is rolled back unless the block commits it."""
        with self.connection() as connection:
            for statement in beginning:
                connection.execute(statement)
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    with suppress(sqlite3.DatabaseError):
                        connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._free:
            self._free.pop().close()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Give a connection outside of any transaction."""
        try:
            connection = self._free.pop()
        except IndexError:
            # All connections are in use; another thread may have taken the last one.
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            # An interrupted connection may be in the middle of a statement, and is not used again.
            connection.close()
            raise
        self._free.append(connection)

    def _connect(self) -> Connection:
        mode = "mode=ro" if self.reading else "mode=rw"
        written = self.path.with_name(self.path.name + "-wal").exists()
        # SQLite would create files next to the database, which a read-only folder does not allow. Without a
        # write-ahead log, nobody is writing, and none are needed.
        is_immutable = self.reading and not written and not os.access(self.path.parent, os.W_OK)
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?{mode}{'&immutable=1' if is_immutable else ''}",
            uri=True, timeout=self._patience, isolation_level=None, check_same_thread=False,
            factory=Connection,
        )  # fmt: skip
        connection.row_factory = sqlite3.Row
        try:
            for setting in (*(() if self.reading else ("foreign_keys=ON",)), *self._pragmas):
                connection.execute(f"PRAGMA {setting}").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def serving(folder: Path, address: str) -> Iterator[None]:
    """Reserve a study for one server by a lock, which the system releases however the server ends.

    `address` is that of the server that may have the lock.
    """
    path = folder / LOCK
    # If the file cannot be created, SQLite raises the error, with its kind.
    with suppress(OSError):
        path.touch(mode=PRIVATE_FILE)
    with (
        database_errors(folder),
        # A server holds its lock all the time; waiting longer would not help.
        closing(sqlite3.connect(path, timeout=0.2, isolation_level=None, check_same_thread=False)) as lock,
    ):
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY":
                raise
            problem = f"{folder}: another server is already serving this study"
            action = "Use the links of that server, or stop it first."
            raise StudyError(problem, kind="served", given=address, action=action) from None
        yield
