"""`check_study`: whether everything that was saved is there, unchanged, and belongs together."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from stratal.errors import InputError
from stratal.study.folder import StudyFolder
from stratal.study.journal import head
from stratal.study.records import Plain
from stratal.study.soundness import problems_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Check(Plain):
    """What a check found.

    Parameters
    ----------
    problems : tuple of str
        What is wrong; empty for a sound study.
    notes : tuple of str
        What is not wrong, but odd: a clock that went back.
    items, lines : int
        Items of the sample, lines of the journal.
    head : str
        The journal's last hash. Written down elsewhere, it proves later that nothing before it was changed.

    Examples
    --------
    >>> Check(problems=(), notes=(), items=3, lines=2, head="ab").sound
    True
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    items: int
    lines: int
    head: str

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def check_study(study: StudyFolder, *, known_head: str | None = None) -> Check:
    """Check a study: its database, the journal's chain of hashes, ids against the sample, counts.

    Parameters
    ----------
    study : Study
    known_head : str, optional
        A head that an earlier check gave; the journal must still hold it.

    Examples
    --------
    >>> check_study.__name__
    'check_study'
    """
    with study.database.read() as connection:
        return Check(
            problems=(*problems_of(connection, study.folder), *_noted(connection, known_head)),
            notes=tuple(_odd_times(connection)),
            items=connection.execute("SELECT count(*) FROM item").fetchone()[0],
            lines=connection.execute("SELECT count(*) FROM journal").fetchone()[0],
            head=head(connection),
        )


def _noted(connection: sqlite3.Connection, known_head: str | None) -> Iterator[str]:
    if known_head is None:
        return
    try:
        wanted = bytes.fromhex(known_head)
    except ValueError:
        raise InputError(
            "--head must be a hash that check printed",
            given=repr(known_head[:80]),
            action="Copy the head that an earlier `stratal check` printed, or leave --head out.",
        ) from None
    if connection.execute("SELECT 1 FROM journal WHERE hash = ?", (wanted,)).fetchone() is None:
        yield f"the journal no longer holds the line with hash {known_head[:16]}…: it was written anew"


def _odd_times(connection: sqlite3.Connection) -> Iterator[str]:
    rows = connection.execute(
        "SELECT count(*) AS times, min(seq) AS first FROM (SELECT seq, at, lag(at) OVER (ORDER BY seq) AS "
        "before FROM journal) WHERE at < before"
    ).fetchone()
    if rows["times"]:
        yield f"the clock went back {rows['times']} times (first at line {rows['first']} of the journal)"
