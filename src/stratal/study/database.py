"""The study's SQLite file: connections for all threads, one writer at a time, whole transactions or none."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from stratal.study.disk import PRAGMA, WAL
from stratal.study.faults import LOCKED, READ_ONLY, StudyError, plainly

DATABASE = "study.sqlite"


@dataclass(frozen=True, slots=True)
class Access:
    """How a database is opened.

    Parameters
    ----------
    patience : float
        Seconds to wait for another process that writes.
    pragmas : tuple of str
        Further settings of each connection, such as `max_page_count=1000`, which bounds the file's size.
    reading : bool
        Whether nothing may be written.

    Examples
    --------
    >>> Access().patience
    5.0
    """

    patience: float = 5.0
    pragmas: tuple[str, ...] = ()
    reading: bool = False


class Database:
    """A pool of connections to one file.

    Parameters
    ----------
    path : Path
        An existing file.
    access : Access

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "study.sqlite"
    >>> database = Database.make(path, "wal")
    >>> with database.write() as connection:
    ...     _ = connection.execute("CREATE TABLE item (id TEXT)")
    >>> with database.read() as connection:
    ...     connection.execute("SELECT count(*) FROM item").fetchone()[0]
    0
    >>> database.close()
    """

    def __init__(self, path: Path, access: Access | None = None) -> None:
        self.path, self.access = path, access or Access()
        self._free: list[sqlite3.Connection] = []
        self._pool, self._writing = threading.Lock(), threading.Lock()

    @classmethod
    def make(cls, path: Path, journal: str) -> Database:
        """Return the database of a file that is made now, with its journal of kind `journal`."""
        with plainly(path.parent):
            connection = sqlite3.connect(path)
            try:
                set_journal(connection, journal, path.parent)
            finally:
                connection.close()
        return cls(path)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Give a connection that sees the study as it was at one moment."""
        with plainly(self.path.parent), self._connection() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                _end(connection, "ROLLBACK")

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Give a connection whose changes are all on disk when the block ends, or none after an error.

        Unless `durable`, changes may be lost when the power fails (never when a process is killed),
        but nothing that came before it.
        """
        if self.access.reading:
            raise StudyError(
                f"{self.path.parent}: is open for reading only",
                kind=READ_ONLY,
                action="Open the study where its folder can be written to.",
            )
        if not self._writing.acquire(timeout=self.access.patience):
            raise StudyError(
                f"{self.path.parent}: too many are saving at once, so this was not saved",
                kind=LOCKED,
                action="Try again in a moment.",
            )
        try:
            with plainly(self.path.parent), self._connection() as connection:
                connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                finally:
                    _end(connection, "ROLLBACK")
        finally:
            self._writing.release()

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """Give the only connection of this object, outside of any transaction."""
        self.close()
        with self._connection() as connection:
            yield connection

    def close(self) -> None:
        """Close the connections that are not in use."""
        with self._pool:
            while self._free:
                self._free.pop().close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._pool:
            connection = self._free.pop() if self._free else None
        connection = connection or self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        else:
            with self._pool:
                self._free.append(connection)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?{self._mode()}",
            uri=True,
            timeout=self.access.patience,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.row_factory = sqlite3.Row
        try:
            settings = () if self.access.reading else ("foreign_keys=ON",)
            for setting in (*settings, *self.access.pragmas):
                connection.execute(f"PRAGMA {setting}").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _mode(self) -> str:
        """Return how the file is opened.

        In a folder that may only be read it needs no files beside it, as long as nobody writes to it.
        """
        if not self.access.reading:
            return "mode=rw"
        written = self.path.with_name(self.path.name + "-wal").exists()
        alone = not written and not os.access(self.path.parent, os.W_OK)
        return "mode=ro&immutable=1" if alone else "mode=ro"


def set_journal(connection: sqlite3.Connection, journal: str, folder: Path) -> None:
    """Set which journal SQLite keeps, refusing a disk that cannot.

    Examples
    --------
    >>> from contextlib import closing
    >>> with closing(sqlite3.connect(":memory:")) as connection:
    ...     set_journal(connection, "wal", Path("study"))
    Traceback (most recent call last):
    stratal.study.faults.StudyError: study: SQLite keeps no journal 'wal' here (given: memory)...
    """
    kept = connection.execute(f"PRAGMA journal_mode={PRAGMA[journal]}").fetchone()[0]
    if kept != PRAGMA[journal]:
        raise StudyError(
            f"{folder}: SQLite keeps no journal '{journal}' here",
            kind=READ_ONLY,
            given=kept,
            action="Put the study on this computer's own disk"
            + (", or ask for the journal 'rollback'." if journal == WAL else "."),
        )


def _end(connection: sqlite3.Connection, how: str) -> None:
    if connection.in_transaction:
        with suppress(sqlite3.DatabaseError):
            connection.execute(how)
