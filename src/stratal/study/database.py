"""The SQLite file of a study: its connections and transactions, its errors, and the lock of its server.

Many threads can read, and one at a time writes. A transaction is saved completely or not at all.
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

# Permissions of a study's folder: only its owner has access. The database contains the
# secret of all annotators' links, so that its readers could label as anybody.
PRIVATE_FOLDER = 0o700

# Only the owner reads and writes.
PRIVATE_FILE = 0o600

# The labelling page reacts differently to each kind: it tries again (`locked`), asks people to inform the
# owner of the study (`disk-full`, `read-only`, `disk`, `damaged`), or shows the error of a second server
# (`served`), of an action that is not allowed (`refused`), or of an unknown item (`missing`).
StudyErrorKind = Literal[
    "disk-full", "locked", "read-only", "disk", "damaged", "served", "refused", "missing"
]


class StudyError(StratalError):
    """An action that failed. Nothing was saved, and everything that was saved before is still there.

    Parameters
    ----------
    problem : str
    kind : str
        One of `stratal.study.database.StudyErrorKind`.
    given, allowed, action
        As in `StratalError`.

    Examples
    --------
    >>> print(StudyError("the disk is full", kind="disk-full", action="Free some space, then try again."))
    the disk is full. Free some space, then try again.
    """

    def __init__(self, problem: str, *, kind: StudyErrorKind, **details: Any) -> None:
        self.kind = kind
        super().__init__(problem, **details)


# Action for errors of permissions.
_ALLOW_WRITING = "Give the user who runs this command write permission for the folder and its files."
# Kind, problem and action of each error, by the first two words of its name in SQLite. The further words
# distinguish causes that have the same remedy.
_SQLITE_ERRORS: dict[str, tuple[StudyErrorKind, str, str]] = {
    "SQLITE_FULL": ("disk-full", "the disk is full, so this was not saved",
                    "Free some space, then try again."),
    "SQLITE_BUSY": ("locked", "another program is writing to the study, so this was not saved",
                    "Try again in a moment; close programs that have the database open."),
    "SQLITE_LOCKED": ("locked", "the study is locked, so this was not saved", "Try again in a moment."),
    "SQLITE_READONLY": ("read-only", "the study cannot be written to", _ALLOW_WRITING),
    "SQLITE_PERM": ("read-only", "the study cannot be written to", _ALLOW_WRITING),
    "SQLITE_CANTOPEN": ("read-only", "the study's database cannot be opened", _ALLOW_WRITING),
    "SQLITE_IOERR": ("disk", "the disk reported an error", "Check the disk; then try again."),
    "SQLITE_CORRUPT": ("damaged", "the study's database is damaged",
                       "Restore a backup (stratal study backup)."),
    "SQLITE_NOTADB": ("damaged", "this is not a study's database",
                      "Give the folder that `stratal study new` created."),
}  # fmt: skip


@contextmanager
def translate_database_errors(folder: Path) -> Iterator[None]:
    """Translate the errors of SQLite in the database of a study's folder into a `StudyError`."""
    try:
        yield
    except sqlite3.IntegrityError:
        # A violated constraint is an error of the program, not of the file.
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        # Text that cannot be decoded is a damaged file, but has no name in SQLite.
        is_undecodable = isinstance(error, UnicodeDecodeError)
        name = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT" if is_undecodable else "SQLITE_IOERR")
        first_words = "_".join(name.split("_")[:2])
        kind, problem, action = _SQLITE_ERRORS.get(first_words, _SQLITE_ERRORS["SQLITE_IOERR"])
        # Other messages of SQLite may quote bytes of a damaged file.
        detail = f" ({error})" if kind == "disk" else ""
        raise StudyError(f"{folder}: {problem}{detail}", kind=kind, action=action) from error


# SQLite's journal mode by the name of the option. With a write-ahead log, readers never wait. It requires
# memory that all processes share: a folder to which several computers write over a network needs `rollback`.
JOURNAL_MODES = {"auto": "wal", "rollback": "delete"}


class Connection(sqlite3.Connection):
    """A connection to a study's file, and the time that its journal lines get.

    The study sets `now` (seconds since 1970) from its clock before it writes.
    """

    now = 0.0

    @property
    def timestamp(self) -> str:
        """The time of the next line of the journal."""
        return format_time(self.now)

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


def format_time(now: float) -> str:
    """Return a time in seconds since 1970 in the form of the journal: ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Database:
    """A pool of connections to one file.

    Parameters
    ----------
    path : Path
        An existing file.
    timeout : float
        Seconds to wait for another process that writes.
    pragmas : tuple of str
        Further settings of each connection, such as `max_page_count=1000`, which limits the size of the file.
    read_only : bool
        Whether writing is an error.
    """

    def __init__(
        self, path: Path, *, timeout: float = 5.0, pragmas: tuple[str, ...] = (), read_only: bool = False
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._timeout = timeout
        self._pragmas = pragmas
        self._idle_connections: list[Connection] = []
        self._write_lock = threading.Lock()

    @classmethod
    def create(cls, path: Path, journal: str) -> Database:
        """Create an empty file, with a journal of one of the `JOURNAL_MODES`."""
        if journal not in JOURNAL_MODES:
            raise InputError("unknown journal mode", given=repr(journal), allowed=", ".join(JOURNAL_MODES))
        path.touch(mode=PRIVATE_FILE)
        with translate_database_errors(path.parent), closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode={JOURNAL_MODES[journal]}").fetchone()
        return cls(path)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection that reads the study as it was at one time, even while others write."""
        with translate_database_errors(self.path.parent), self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Connection]:
        """Yield a connection whose changes are saved at the end of the block, or none of them after an error.

        If not `durable`, the changes may be lost if the power fails, but not if the process is killed.
        """
        folder = self.path.parent
        if not self._write_lock.acquire(timeout=self._timeout):
            problem = f"{folder}: too many changes are being saved at the same time, so this was not saved"
            raise StudyError(problem, kind="locked", action="Try again in a moment.")
        try:
            synchronous = f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}"
            with (
                translate_database_errors(folder),
                self._transaction(synchronous, "BEGIN IMMEDIATE") as connection,
            ):
                yield connection
                # Without effect if the block only previewed its changes, and rolled them back.
                connection.commit()
        finally:
            self._write_lock.release()

    @contextmanager
    def _transaction(self, *statements: str) -> Iterator[Connection]:
        """Yield a connection in a transaction that `statements` begin; roll back unless the block commits."""
        with self.connection() as connection:
            for statement in statements:
                connection.execute(statement)
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    with suppress(sqlite3.DatabaseError):
                        connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle_connections:
            self._idle_connections.pop().close()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Yield a connection outside of any transaction."""
        try:
            connection = self._idle_connections.pop()
        except IndexError:
            # All connections are in use. A check before `pop` would be wrong if another thread took the last.
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            # The connection may be in the middle of a statement, so it is not used again.
            connection.close()
            raise
        self._idle_connections.append(connection)

    def _connect(self) -> Connection:
        """Return a new connection to the file, with its settings."""
        options = "mode=rw"
        pragmas = ("foreign_keys=ON", *self._pragmas)
        if self.read_only:
            options = "mode=ro"
            pragmas = self._pragmas
            has_write_ahead_log = self.path.with_name(self.path.name + "-wal").exists()
            # SQLite would create files next to the database, which a read-only folder does not allow. Without
            # a write-ahead log, no process is writing, so SQLite needs no such files.
            if not has_write_ahead_log and not os.access(self.path.parent, os.W_OK):
                options = "mode=ro&immutable=1"
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?{options}",
            uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False,
            factory=Connection,
        )  # fmt: skip
        connection.row_factory = sqlite3.Row
        try:
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def server_lock(folder: Path, last_server: str) -> Iterator[None]:
    """Reserve a study for one server by a lock, which the system releases even if the server is killed.

    `last_server` describes the server that had the lock last; it is named in the error if the lock is taken.
    """
    path = folder / LOCK
    # If the file cannot be created, SQLite raises an error, which has a kind.
    with suppress(OSError):
        path.touch(mode=PRIVATE_FILE)
    with (
        translate_database_errors(folder),
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
            raise StudyError(problem, kind="served", given=last_server, action=action) from None
        yield
