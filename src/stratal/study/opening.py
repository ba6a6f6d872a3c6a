"""Create the folder of a study, open it, check it and back it up."""

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
    translate_database_errors,
)
from stratal.study.integrity import find_problems
from stratal.study.interim import half_width_setting
from stratal.study.journal import (
    HEAD,
    MIGRATIONS,
    PAGE_FILE_SECRET,
    PAGE_SECRET,
    append_setting,
    database_version,
    journal_head,
    migrate,
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
        Annotators see its shown columns; proxies and predictions are never shown.
    question : StudyQuestion, or several
    annotators : iterable of str
    adjudicators : iterable of str
        People who decide disagreements. By default, every annotator can.
    overlap : float
        Share of the items that several people label, to measure agreement.
    copies : int
        Number of people who label each of these items.
    pseudonyms : bool
        Whether the journal contains `annotator-1`, … instead of names. Only `annotators.json` has the names.
    half_width : float, optional
        Labelling ends when the half-width of the anytime-valid interval is at most this.
    reading : mapping, optional
        Options with which the population was read; a later round reads it in the same way.
    journal : {"auto", "rollback"}
        SQLite's journal; `auto` is a write-ahead log if the file system supports it. Use `rollback` if
        several computers write to the folder over a network.
    clock : callable
        Returns seconds since 1970.

    Returns
    -------
    Study

    Raises
    ------
    InputError
        If the folder is not empty, if a shown column would influence the annotators, and for duplicate names.

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
    folder = Path(folder)
    form = Form.of(question).with_tags_of(sample.question.outcome)
    creating.refuse_ambiguous_form(sample, form)
    annotator_names, adjudicator_names = creating.validated_team(annotators, adjudicators, overlap, copies)
    people = list(dict.fromkeys((*annotator_names, *adjudicator_names)))
    # Name → name in the journal.
    journal_names = {name: name for name in people}
    if pseudonyms:
        journal_names = {
            name: f"{creating.PSEUDONYM_PREFIX}{number}" for number, name in enumerate(people, start=1)
        }
    settings = {
        "id": secrets.token_hex(16),
        "question": form.encode(),
        "rubric_version": str(form.first.rubric_version),
        "overlap": repr(overlap),
        "copies": str(copies),
        "half_width": half_width_setting(half_width),
        "reading": json.dumps(dict(reading or {}), ensure_ascii=False),
        "adjudicators": json.dumps([journal_names[name] for name in adjudicator_names], ensure_ascii=False),
    }
    if pseudonyms:
        settings[creating.PSEUDONYMS_SETTING] = "yes"
    with create_folder(folder, DATABASE) as new_folder:
        new_folder.chmod(PRIVATE_FOLDER)
        (new_folder / creating.MEDIA_FOLDER).mkdir()
        if pseudonyms:
            creating.write_names(new_folder, {pseudonym: name for name, pseudonym in journal_names.items()})
        database = Database.create(new_folder / DATABASE, journal)
        with closing(database), database.write() as connection:
            connection.now = clock()
            migrate(connection, new_folder)
            connection.save_settings(**settings)
            roles = [(journal_names[name], "annotator") for name in annotator_names]
            roles += [(journal_names[name], "adjudicator") for name in adjudicator_names]
            # An annotator who also decides disagreements has one row.
            query = "INSERT INTO annotator (name, role) VALUES (?, ?) ON CONFLICT DO NOTHING"
            connection.executemany(query, roles)
            append_setting(connection, settings["rubric_version"], form.first.rubric, "rubric")
            for number in range(1, int(sample.round.max(initial=1)) + 1):
                creating.insert_round(connection, new_folder, sample, number)
    _make_private(folder)
    return open_study(folder, clock=clock)


# Files of a study that commands write to, in addition to those of the sample's rounds.
_WRITTEN_FILES = (DATABASE, HEAD, LOCK, creating.NAMES_FILE)


def open_study(
    folder: str | Path,
    *,
    clock: Clock = time.time,
    timeout: float = 5.0,
    pragmas: tuple[str, ...] = (),
    read_only: bool = False,
) -> Study:
    """Open a study folder.

    Parameters
    ----------
    folder : str or Path
    clock : callable
        Returns seconds since 1970.
    timeout : float
        Seconds to wait for another process that writes, before a `StudyError` of kind `locked`.
    pragmas : tuple of str
        Further SQLite settings of each connection, such as `max_page_count=1000`.
    read_only : bool
        Whether writing is an error. The folder may then be read-only.

    Raises
    ------
    StudyError
        If the folder contains no study, if a newer version created it, or if it cannot be opened.

    Examples
    --------
    >>> open_study("nowhere")
    Traceback (most recent call last):
    stratal.study.database.StudyError: nowhere is not a study...
    """
    folder = Path(folder)
    if not (folder / DATABASE).is_file():
        action = "Give the folder that `stratal study new` created."
        raise StudyError(f"{folder} is not a study", kind="missing", action=action)
    # Writing to a link of a received study could change any file.
    for name in (*_WRITTEN_FILES, *(f"{DATABASE}{ending}" for ending in ("-wal", "-shm", "-journal"))):
        refuse_leaving_link(folder, folder / name)
    database = Database(folder / DATABASE, timeout=timeout, pragmas=pragmas, read_only=read_only)
    try:
        with database.read() as connection:
            stored_version = database_version(connection, folder)
        if stored_version == 0:
            action = "Restore a backup (stratal study backup), or create the study again."
            raise StudyError(f"{folder}: its database is empty", kind="damaged", action=action)
        if stored_version < len(MIGRATIONS) and not read_only:
            with database.write() as connection:
                migrate(connection, folder)
        return Study(folder, database, clock)
    except BaseException:
        # Open connections would keep the files of the study locked.
        database.close()
        raise


class Check(JsonRecord, frozen=True, kw_only=True):
    """The result of a check.

    Parameters
    ----------
    problems : tuple of str
        Problems that make the labels unusable; empty for an intact study.
    notes : tuple of str
        Unusual facts that are no problem: a clock that went back.
    items, lines : int
        Numbers of items of the sample and of lines of the journal.
    head : str
        The last hash of the journal. A copy of it outside of the study proves later that no earlier line was
        changed.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    items: int
    lines: int
    head: str

    @property
    def sound(self) -> bool:
        """Whether there are no problems."""
        return not self.problems


def check_study(study: Study, *, known_head: str | None = None) -> Check:
    """Check the database of a study, the hashes of its journal, its ids and its counts.

    Parameters
    ----------
    study : Study
    known_head : str, optional
        The head of an earlier check, which the journal must contain.
    """
    if known_head is not None and not re.fullmatch("[0-9a-fA-F]{64}", known_head.strip()):
        problem = "the head must be a hash that an earlier check printed"
        raise InputError(problem, given=known_head[:80], allowed="64 hexadecimal digits")
    with study.database.read() as connection:
        problems = [*find_problems(connection, study.folder)]
        query = "SELECT 1 FROM journal WHERE lower(hex(hash)) = ?"
        if known_head is not None and connection.one(query, known_head.strip().lower()) is None:
            missing_line = f"the journal contains no line with hash {known_head[:16]}…"
            problems.append(f"{missing_line}: it was rewritten, or belongs to another study")
        setback_count, first_line = connection.one(
            "SELECT count(*), min(seq) FROM "
            "(SELECT seq, at, lag(at) OVER (ORDER BY seq) AS before FROM journal) WHERE at < before"
        )
        (item_count,) = connection.one("SELECT count(*) FROM item")
        (line_count,) = connection.one("SELECT count(*) FROM journal")
        clock_note = f"the clock went back {setback_count} times (first at line {first_line} of the journal)"
        return Check(
            problems=tuple(problems),
            notes=(clock_note,) if setback_count else (),
            items=item_count,
            lines=line_count,
            head=journal_head(connection),
        )


def backup_study(study: Study, folder: str | Path) -> Check:
    """Copy a study into a new folder, and check the copy. After an error, the folder does not exist.

    The copy has no secret for links, so that a person with the backup cannot label as somebody else. A server
    of the copy creates new links.

    Parameters
    ----------
    study : Study
        A server may continue to write to it.
    folder : str or Path
        New or empty; it becomes the folder of a study.

    Returns
    -------
    Check
        The check of the copy.
    """
    # Symbolic links of a received study may point to any file, and the copy would contain that file.
    refuse_leaving_links(study.folder, study.media)
    with create_folder(Path(folder), DATABASE) as new_folder:
        new_folder.chmod(PRIVATE_FOLDER)
        # The file of the head is copied before the database: the database then contains at least its lines.
        _copy_files(study, new_folder, HEAD)
        (new_folder / DATABASE).touch(mode=PRIVATE_FILE)
        with translate_database_errors(new_folder), closing(sqlite3.connect(new_folder / DATABASE)) as target:
            with study.database.read() as source:
                source.backup(target)
            # Without this setting, the deleted secrets would remain in the free space of the file.
            target.execute("PRAGMA secure_delete = ON")
            target.execute("DELETE FROM setting WHERE name IN (?, ?)", (PAGE_SECRET, PAGE_FILE_SECRET))
            target.commit()
            rows = target.execute("SELECT number, file FROM round ORDER BY number").fetchall()
        # The database of a received study may name any file; `round_file` rejects other names.
        rounds = [creating.round_file(study.folder, *row).name for row in rows]
        _copy_files(study, new_folder, *rounds, creating.NAMES_FILE)
        if study.media.is_dir():
            shutil.copytree(study.media, new_folder / creating.MEDIA_FOLDER)
        with open_study(new_folder, clock=study.clock) as copy:
            check = check_study(copy)
    _make_private(Path(folder))
    return check


def _make_private(folder: Path) -> None:
    """Allow only the owner to read a study in a folder that may have existed before."""
    # The file system may have no permissions, or the folder may belong to somebody else.
    with suppress(OSError):
        folder.chmod(PRIVATE_FOLDER)


def _copy_files(study: Study, target: Path, *names: str) -> None:
    """Copy the files of a study that exist to a folder, readable only by the owner."""
    for name in names:
        if (study.folder / name).is_file():
            shutil.copy2(study.folder / name, target / name)
            (target / name).chmod(PRIVATE_FILE)
