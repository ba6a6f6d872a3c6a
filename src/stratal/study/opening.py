"""Making a study folder, and opening one."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratal.errors import not_positive
from stratal.study.creating import make_folder
from stratal.study.database import DATABASE, Access, Database, set_journal
from stratal.study.disk import PRAGMA, WAL, journal_for
from stratal.study.faults import DAMAGED, MISSING, StudyError, plainly
from stratal.study.folder import Clock
from stratal.study.migrations import STEPS, migrate, refuse_newer, version
from stratal.study.question import Question
from stratal.study.study import Study
from stratal.study.team import Team

if TYPE_CHECKING:
    from stratal.designs import Sample


def create_study(
    folder: str | Path,
    sample: Sample,
    question: Question,
    *,
    annotators: Iterable[str],
    adjudicators: Iterable[str] = (),
    overlap: float = 0.0,
    copies: int = 2,
    pseudonyms: bool = False,
    half_width: float | None = None,
    reading: Mapping[str, Any] | None = None,
    journal: str = "auto",
    clock: Clock = time.time,
) -> Study:
    """Make the folder in which annotators label a sample.

    Parameters
    ----------
    folder : str or Path
        New or empty.
    sample : Sample
        Its shown columns are what annotators see; proxies and predictions are never shown.
    question : Question
    annotators : iterable of str
    adjudicators : iterable of str
        Who decides disagreements; every annotator may unless some are named.
    overlap : float
        Share of the items that several people label, for agreement.
    copies : int
        How many people that is.
    pseudonyms : bool
        Whether `annotator-1`, … stand in the journal; who they are is kept in `annotators.json` alone.
    half_width : float, optional
        Labelling ends when the anytime-valid interval is as narrow as this.
    reading : mapping, optional
        How the population was read, for whoever draws another round.
    journal : {"auto", "wal", "rollback"}
        What SQLite keeps; `auto` is a write-ahead log, and a rollback journal on a network disk.
    clock : callable
        Returns seconds since 1970.

    Returns
    -------
    Study

    Raises
    ------
    InputError
        For a folder that holds anything, columns that would lead the annotators, and names that repeat.

    Examples
    --------
    >>> import stratal, tempfile
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=["a", "b", "c"])
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> question = Question.of_choices("Is the answer correct?", ["Pass", "Fail"])
    >>> with create_study(tempfile.mkdtemp() + "/audit", sample, question, annotators=["ann"]) as study:
    ...     item = study.next_item("ann")
    ...     study.submit("ann", item.id, "Pass").action
    'submit'
    """
    team = Team.of(annotators, adjudicators, overlap=overlap, copies=copies, pseudonyms=pseudonyms)
    settings = {"half_width": "" if half_width is None else repr(_width(half_width))}
    settings["reading"] = json.dumps(dict(reading or {}), ensure_ascii=False)
    make_folder(Path(folder), sample, question, team, journal=journal, settings=settings, now=clock())
    return open_study(folder, clock=clock)


def open_study(
    folder: str | Path,
    *,
    clock: Clock = time.time,
    patience: float = 5.0,
    pragmas: tuple[str, ...] = (),
    reading: bool = False,
) -> Study:
    """Open a study folder.

    Parameters
    ----------
    folder : str or Path
    clock : callable
        Returns seconds since 1970.
    patience : float
        Seconds to wait for another process that writes, before a `StudyError` of kind `locked`.
    pragmas : tuple of str
        Further SQLite settings of each connection, such as `max_page_count=1000`.
    reading : bool
        Whether nothing is to be written, for a folder that one may only read.

    Raises
    ------
    StudyError
        If there is no study, a newer stratal made it, or it cannot be opened.

    Examples
    --------
    >>> open_study("nowhere")
    Traceback (most recent call last):
    stratal.study.faults.StudyError: nowhere: there is no study here...
    """
    place = Path(folder)
    path = place / DATABASE
    if not path.is_file():
        raise StudyError(
            f"{place}: there is no study here",
            kind=MISSING,
            action="Give the folder that `stratal init` made.",
        )
    database = Database(path, Access(patience=patience, pragmas=pragmas, reading=reading))
    try:
        _prepare(database, place, reading=reading)
        return Study(place, database, clock)
    except BaseException:
        database.close()
        raise


def _prepare(database: Database, place: Path, *, reading: bool) -> None:
    """Bring a database to this version, and its journal to what its disk can do."""
    with database.read() as connection:
        found = version(connection)
        journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    refuse_newer(found, place)
    if found == 0:
        raise StudyError(
            f"{place}: its database is empty",
            kind=DAMAGED,
            action="Go back to a backup (stratal backup), or make the study again.",
        )
    if reading:
        return
    if journal == PRAGMA[WAL] and journal_for(place) != WAL:
        with plainly(place), database.alone() as connection:
            set_journal(connection, journal_for(place), place)
    if found < len(STEPS):
        with database.write() as connection:
            migrate(connection, place)


def _width(half_width: float) -> float:
    if not (isinstance(half_width, int | float) and math.isfinite(half_width) and half_width > 0):
        raise not_positive("half_width", half_width)
    return float(half_width)
