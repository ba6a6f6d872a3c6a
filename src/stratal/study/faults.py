"""What goes wrong with a study while people work: said in words that a page can show."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stratal.errors import StratalError

DISK_FULL, LOCKED, READ_ONLY, DISK = "disk-full", "locked", "read-only", "disk"
DAMAGED, SERVED, REFUSED, MISSING = "damaged", "served", "refused", "missing"
KINDS = (DISK_FULL, LOCKED, READ_ONLY, DISK, DAMAGED, SERVED, REFUSED, MISSING)
"""What a page needs to tell apart: wait and try again (`locked`), call whoever runs the study (`disk-full`,
`read-only`, `disk`, `damaged`), a second server (`served`), something not allowed (`refused`), no such thing
(`missing`)."""


class StudyError(StratalError):
    """Something that a study could not do; nothing was saved, and nothing that was saved before is lost.

    Parameters
    ----------
    what, given, allowed, action
        As in `StratalError`.
    kind : str
        One of `stratal.study.faults.KINDS`.

    Examples
    --------
    >>> print(StudyError("the disk is full", kind="disk-full", action="Free some space, then try again."))
    the disk is full. Free some space, then try again.
    """

    def __init__(
        self,
        what: str,
        *,
        kind: str,
        given: object = None,
        allowed: str | None = None,
        action: str | None = None,
    ) -> None:
        self.kind = kind
        super().__init__(what, given=given, allowed=allowed, action=action)


_SAID = {
    "SQLITE_FULL": (DISK_FULL, "the disk is full, so this was not saved", "Free some space, then try again."),
    "SQLITE_BUSY": (
        LOCKED,
        "another program is writing to the study, so this was not saved",
        "Try again in a moment; close programs that have the database open.",
    ),
    "SQLITE_LOCKED": (LOCKED, "the study is locked, so this was not saved", "Try again in a moment."),
    "SQLITE_READONLY": (
        READ_ONLY,
        "the study cannot be written to",
        "Give whoever runs this command the right to write to the folder and its files.",
    ),
    "SQLITE_PERM": (READ_ONLY, "the study cannot be written to", "Give the right to write to the folder."),
    "SQLITE_CANTOPEN": (
        READ_ONLY,
        "the study's database cannot be opened",
        "Give whoever runs this command the right to write to the folder and its files.",
    ),
    "SQLITE_IOERR": (DISK, "the disk did not do what it was asked to", "Check the disk; then try again."),
    "SQLITE_CORRUPT": (DAMAGED, "the study's database is damaged", "Go back to a backup (stratal backup)."),
    "SQLITE_NOTADB": (DAMAGED, "this is not a study's database", "Give the folder that `stratal init` made."),
}
"""SQLite's name of an error (its first two words) → kind, what is wrong, what to do."""


@contextmanager
def plainly(place: Path) -> Iterator[None]:
    """Turn what SQLite says of a database into one `StudyError`.

    Examples
    --------
    >>> with plainly(Path("study")):
    ...     raise sqlite3.OperationalError("database or disk is full")
    Traceback (most recent call last):
    stratal.study.faults.StudyError: study: the disk did not do what it was asked to (database or disk is
    full)...
    """
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        raise fault(error, place) from error
    except UnicodeDecodeError as error:  # SQLite's own message quotes bytes of a damaged file
        kind, what, action = _SAID["SQLITE_CORRUPT"]
        raise StudyError(f"{place}: {what}", kind=kind, action=action) from error


def fault(error: sqlite3.DatabaseError, place: Path) -> StudyError:
    """Return the `StudyError` for an error of SQLite's.

    Examples
    --------
    >>> fault(sqlite3.OperationalError("no such table: item"), Path("study")).kind
    'disk'
    """
    name = "_".join(getattr(error, "sqlite_errorname", "SQLITE_IOERR").split("_")[:2])
    kind, what, action = _SAID.get(name, _SAID["SQLITE_IOERR"])
    detail = f" ({error})" if kind == DISK else ""
    return StudyError(f"{place}: {what}{detail}", kind=kind, action=action)
