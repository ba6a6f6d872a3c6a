"""Making a study folder, opening one, checking it, copying it, and finding it by the ids of its items."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path

from stratal.designs import Sample
from stratal.designs.labelling_files import create_folder
from stratal.errors import InputError
from stratal.study import creating
from stratal.study.database import (
    DATABASE,
    LOCK,
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    Database,
    StudyError,
    database_errors,
)
from stratal.study.integrity import find_problems
from stratal.study.interim import half_width_setting
from stratal.study.journal import (
    HEAD,
    MIGRATIONS,
    PAGE_FILE_SECRET,
    PAGE_SECRET,
    append_setting,
    head,
    migrate,
    version,
)
from stratal.study.question import Form, JsonRecord, StudyQuestion
from stratal.study.study import Clock, Study
from stratal.tables.untrusted import refuse_leaving_link, refuse_leaving_links


def create_study(
    folder: str | Path,
    sample: Sample,
    question: StudyQuestion | Iterable[StudyQuestion] | Form,
    *,
    annotators: Iterable[str],
    adjudicators: Iterable[str] = (),
    overlap: float = 0.0,
    copies: int = 2,
    pseudonyms: bool = False,
    half_width: float | None = None,
    reading: Mapping[str, object] | None = None,
    journal: str = "auto",
    clock: Clock = time.time,
) -> Study:
    """Create the folder in which annotators label a sample.

    Parameters
    ----------
    folder : str or Path
        New or empty folder.
    sample : Sample
        The annotators see its shown columns, but never proxies and predictions.
    question : StudyQuestion, or several
    annotators : iterable of str
    adjudicators : iterable of str
        People who decide disagreements. Default: every annotator.
    overlap : float
        Share of the items that several annotators label, to measure agreement.
    copies : int
        Number of annotators for each of these items.
    pseudonyms : bool
        Whether the journal contains `annotator-1`, … instead of names, which are stored only in
        `annotators.json`.
    half_width : float, optional
        Labelling ends when the half-width of the anytime-valid interval is at most this.
    reading : mapping, optional
        How the population was read; required for drawing another round.
    journal : {"auto", "rollback"}
        Journal mode of SQLite; `auto` is a write-ahead log if SQLite supports it for the folder. If several
        computers write over a network, use `rollback`.
    clock : callable
        Returns seconds since 1970.

    Returns
    -------
    Study

    Raises
    ------
    InputError
        For a folder that is not empty, columns that would influence the annotators, and duplicate names.

    Examples
    --------
    >>> import stratal, tempfile
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=["a", "b", "c"])
    >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    >>> question = StudyQuestion.of_choices("Is the answer correct?", ["Pass", "Fail"])
    >>> with create_study(tempfile.mkdtemp() + "/audit", sample, question, annotators=["ann"]) as study:
    ...     item = study.next_item("ann")
    ...     study.submit("ann", item.id, "Pass").action
    'submit'
    """
    place = Path(folder)
    form = Form.of(question).with_tags_of(sample.question.outcome)
    creating.refuse_ambiguous_form(sample, form)
    people, judges = creating.validated_team(annotators, adjudicators, overlap, copies)
    everyone = enumerate(dict.fromkeys((*people, *judges)), start=1)
    code = {name: f"{creating.PSEUDONYM}{number}" if pseudonyms else name for number, name in everyone}
    settings = {
        "id": secrets.token_hex(16),
        "question": form.encode(),
        "rubric_version": str(form.first.rubric_version),
        "overlap": repr(overlap),
        "copies": str(copies),
        "half_width": half_width_setting(half_width),
        "reading": json.dumps(dict(reading or {}), ensure_ascii=False),
        "adjudicators": json.dumps([code[name] for name in judges], ensure_ascii=False),
    }
    if pseudonyms:
        settings[creating.PSEUDONYMS] = "yes"
    with create_folder(place, DATABASE) as partial:
        partial.chmod(PRIVATE_FOLDER)
        (partial / creating.MEDIA).mkdir()
        if pseudonyms:
            creating.write_names(partial, {study: name for name, study in code.items()})
        database = Database.make(partial / DATABASE, journal)
        with closing(database), database.write() as connection:
            connection.now = clock()
            migrate(connection, partial)
            connection.save_settings(**settings)
            roles = [(code[name], "annotator") for name in people]
            roles += [(code[name], "adjudicator") for name in judges]
            # An annotator who also decides disagreements has one row.
            query = "INSERT INTO annotator (name, role) VALUES (?, ?) ON CONFLICT DO NOTHING"
            connection.executemany(query, roles)
            append_setting(connection, settings["rubric_version"], form.first.rubric, "rubric")
            for number in range(1, int(sample.round.max(initial=1)) + 1):
                creating.add_items(connection, partial, sample, number)
    _make_private(place)
    return open_study(folder, clock=clock)


# Files of a study that commands write to.
_WRITTEN_FILES = (DATABASE, HEAD, LOCK, creating.NAMES)


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
        Seconds to wait for another process that writes, before a `StudyError` of kind `locked` is raised.
    pragmas : tuple of str
        Further SQLite settings of each connection, such as `max_page_count=1000`.
    reading : bool
        Whether the study is opened without writing, for a read-only folder.

    Raises
    ------
    StudyError
        If there is no study, if a newer version of stratal created it, or if it cannot be opened.

    Examples
    --------
    >>> open_study("nowhere")
    Traceback (most recent call last):
    stratal.study.database.StudyError: nowhere is not a study...
    """
    place = Path(folder)
    if not (place / DATABASE).is_file():
        action = "Give the folder that `stratal study new` created."
        raise StudyError(f"{place} is not a study", kind="missing", action=action)
    # Writing to a link of a received study could change any file.
    for name in (*_WRITTEN_FILES, *(f"{DATABASE}{ending}" for ending in ("-wal", "-shm", "-journal"))):
        refuse_leaving_link(place, place / name)
    database = Database(place / DATABASE, patience=patience, pragmas=pragmas, reading=reading)
    try:
        with database.read() as connection:
            stored_version = version(connection, place)
        if stored_version == 0:
            action = "Restore a backup (stratal study backup), or create the study again."
            raise StudyError(f"{place}: its database is empty", kind="damaged", action=action)
        if stored_version < len(MIGRATIONS) and not reading:
            with database.write() as connection:
                migrate(connection, place)
        return Study(place, database, clock)
    except BaseException:
        # Open connections would keep the files of the study locked.
        database.close()
        raise


class Check(JsonRecord, frozen=True, kw_only=True):
    """The result of a check.

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


def check_study(study: Study, *, known_head: str | None = None) -> Check:
    """Check a study: the database, the hash chain of the journal, the ids of the sample, and counts.

    Parameters
    ----------
    study : Study
    known_head : str, optional
        The head that an earlier check returned; the journal must still contain it.
    """
    if known_head is not None and not re.fullmatch("[0-9a-fA-F]{64}", known_head.strip()):
        problem = "the head must be a hash that an earlier check printed"
        raise InputError(problem, given=known_head[:80], allowed="64 hexadecimal digits")
    with study.database.read() as connection:
        problems = [*find_problems(connection, study.folder)]
        query = "SELECT 1 FROM journal WHERE lower(hex(hash)) = ?"
        if known_head is not None and connection.one(query, known_head.strip().lower()) is None:
            lost = f"the journal contains no line with hash {known_head[:16]}…"
            problems.append(f"{lost}: it was rewritten, or belongs to another study")
        times, first = connection.one(
            "SELECT count(*), min(seq) FROM "
            "(SELECT seq, at, lag(at) OVER (ORDER BY seq) AS before FROM journal) WHERE at < before"
        )
        back = f"the clock went back {times} times (first at line {first} of the journal)"
        return Check(
            problems=tuple(problems),
            notes=(back,) if times else (),
            items=connection.one("SELECT count(*) FROM item")[0],
            lines=connection.one("SELECT count(*) FROM journal")[0],
            head=head(connection),
        )


def backup_study(study: Study, folder: str | Path) -> Check:
    """Copy a study completely into a new folder, or not at all, and check the copy.

    The copy contains no links, so a reader of a backup cannot label as another person. A server creates new
    links.

    Parameters
    ----------
    study : Study
        A server may continue to write to it.
    folder : str or Path
        New or empty folder; the copy can be opened with `open_study`.

    Returns
    -------
    Check
        The result for the copy.
    """
    # The links of a received study may lead anywhere, and copying would follow them.
    refuse_leaving_links(study.folder, study.media)
    with create_folder(Path(folder), DATABASE) as partial:
        partial.chmod(PRIVATE_FOLDER)
        # Before the database, which then has at least the lines of the note.
        _copy_files(study, partial, HEAD)
        (partial / DATABASE).touch(mode=PRIVATE_FILE)
        with database_errors(partial), closing(sqlite3.connect(partial / DATABASE)) as target:
            with study.database.read() as source:
                source.backup(target)
            # Otherwise the deleted secrets would remain in the free space of the file.
            target.execute("PRAGMA secure_delete = ON")
            target.execute("DELETE FROM setting WHERE name IN (?, ?)", (PAGE_SECRET, PAGE_FILE_SECRET))
            target.commit()
            rows = target.execute("SELECT number, file FROM round ORDER BY number").fetchall()
        # The database of a received study may name any file.
        rounds = [creating.round_file(study.folder, *row).name for row in rows]
        _copy_files(study, partial, *rounds, creating.NAMES)
        if study.media.is_dir():
            shutil.copytree(study.media, partial / creating.MEDIA)
        with open_study(partial, clock=study.clock) as copied:
            check = check_study(copied)
    _make_private(Path(folder))
    return check


def _make_private(folder: Path) -> None:
    """Allow only the owner to read a study in a folder that existed before."""
    # The file system may have no permissions, or the folder may belong to somebody else.
    with suppress(OSError):
        folder.chmod(PRIVATE_FOLDER)


def _copy_files(study: Study, target: Path, *names: str) -> None:
    for name in names:
        if (study.folder / name).is_file():
            shutil.copy2(study.folder / name, target / name)
            (target / name).chmod(PRIVATE_FILE)
