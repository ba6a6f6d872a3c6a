"""`StudyFolder`: what lies in a study's folder, whoever works with it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from stratal.designs import Sample
from stratal.labels import Labels
from stratal.study import team
from stratal.study.creating import MEDIA, digest_of
from stratal.study.database import Database
from stratal.study.faults import DAMAGED, StudyError
from stratal.study.journal import Transaction, keep_head, keep_setting, setting, written_time
from stratal.study.labelling import present_labels
from stratal.study.question import Question
from stratal.study.serving import serving
from stratal.study.soundness import require_sound

Clock = Callable[[], float]
"""Returns seconds since 1970, as `time.time`."""


class StudyFolder:
    """A folder that is open: its question, people, sample and labels.

    Parameters
    ----------
    folder : Path
    database : Database
    clock : callable

    Examples
    --------
    >>> StudyFolder.__name__
    'StudyFolder'
    """

    def __init__(self, folder: Path, database: Database, clock: Clock) -> None:
        self.folder, self.media = folder, folder / MEDIA
        self.database, self.clock = database, clock
        self.id = self.setting("id") or ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    @property
    def question(self) -> Question:
        """What is asked, with the rubric's present version."""
        return Question.from_dict(json.loads(self.setting("question") or "{}"))

    @property
    def annotators(self) -> tuple[str, ...]:
        """Who labels: names as they stand in the journal, pseudonyms where those were asked for."""
        with self.database.read() as connection:
            return team.people(connection)

    @property
    def adjudicators(self) -> tuple[str, ...]:
        """Who decides disagreements: those named for it, or all annotators."""
        return tuple(json.loads(self.setting("adjudicators") or "[]")) or self.annotators

    @property
    def names(self) -> dict[str, str]:
        """Pseudonym → name, as far as the file of names is there."""
        return team.read_names(self.folder)

    def aside(self) -> list[str]:
        """Return whose labels are set aside."""
        with self.database.read() as connection:
            rows = connection.execute("SELECT name FROM annotator WHERE aside = 1 ORDER BY name").fetchall()
        return [row["name"] for row in rows]

    def setting(self, name: str) -> str | None:
        """Return a setting that is kept in the study, such as the secret of a page's tokens."""
        with self.database.read() as connection:
            return setting(connection, name)

    def keep(self, name: str, value: str) -> None:
        """Save a setting."""
        with self.database.write() as connection:
            keep_setting(connection, name, value)

    @contextmanager
    def verified(self) -> Iterator[sqlite3.Connection]:
        """Give a connection that sees the study at one moment, once `check_study` finds no problem in it.

        Raises
        ------
        StudyError
            Of kind `damaged`, with the first problem.
        """
        with self.database.read() as connection:
            require_sound(connection, self.folder)
            yield connection

    def labels(self) -> Labels:
        """Return the present labels, as `stratal.estimate(study.sample(), study.labels())` takes them.

        Raises `StudyError` of kind `damaged` where the journal or anything that belongs to it was changed.
        """
        with self.verified() as connection:
            return present_labels(connection, self.question, str(self.folder))

    def sample(self) -> Sample:
        """Return the sample with all rounds; raises `StudyError` for another file than was drawn."""
        with self.database.read() as connection:
            row = connection.execute("SELECT file, digest FROM round ORDER BY number DESC LIMIT 1").fetchone()
        path = self.folder / row["file"]
        if not path.is_file() or digest_of(path) != row["digest"]:
            raise StudyError(
                f"{path}: is missing, or was changed after it was drawn",
                kind=DAMAGED,
                action="Go back to a backup (stratal backup).",
            )
        return Sample.read(path)

    @contextmanager
    def serving(self, address: str) -> Iterator[None]:
        """Hold the study for one server; a second one gets a `StudyError` of kind `served` that names it."""
        with serving(self.folder, address, written_time(self.clock())):
            yield

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    @contextmanager
    def saving(self, *, durable: bool = True) -> Iterator[Transaction]:
        """Give a transaction: all that is saved in it, or nothing; see `Database.write`."""
        with self.database.write(durable=durable) as connection:
            yield Transaction(connection, self.clock())
            last = connection.execute("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1").fetchone()
        if durable and last is not None:
            keep_head(self.folder, last["seq"], last["hash"])

    def known(self, annotator: str) -> str:
        """Return an annotator's name, refusing one that is not of this study."""
        with self.database.read() as connection:
            return team.known(connection, annotator)
