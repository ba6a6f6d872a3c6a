"""A new study: its folder, its database, and the items of its sample's rounds."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import IntArray
from stratal.designs.handover import empty_folder
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.randomness import id_texts, keys_of_ids, shown_order
from stratal.study.database import DATABASE, Database
from stratal.study.disk import journal_for
from stratal.study.journal import Entry, Transaction, append, append_setting, items_digest, keep_setting
from stratal.study.migrations import migrate
from stratal.study.question import Question
from stratal.study.records import ROUND, RUBRIC
from stratal.study.team import Team, add_people, write_names

MEDIA = "media"
_CHUNK = 1 << 20


def make_folder(
    folder: Path,
    sample: Sample,
    question: Question,
    team: Team,
    *,
    journal: str,
    settings: Mapping[str, str],
    now: float,
) -> None:
    """Write a whole study folder, or nothing.

    Examples
    --------
    >>> make_folder.__name__
    'make_folder'
    """
    payloads(sample, question)
    with new_folder(folder) as partial:
        (partial / MEDIA).mkdir()
        if team.names:
            write_names(partial, team.names)
        _fill(partial, sample, question, team, journal_for(folder.parent, journal), settings, now)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder whose files are put into `folder` when the block ends without an error.

    Raises
    ------
    InputError
        If `folder` holds anything, or cannot be written to.

    Examples
    --------
    >>> place = Path(tempfile.mkdtemp()) / "new"
    >>> with new_folder(place) as partial:
    ...     _ = (partial / "note.txt").write_text("whole")
    >>> (place / "note.txt").read_text()
    'whole'
    """
    empty_folder(folder)
    there = folder.is_dir()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=folder if there else folder.parent, prefix=".new."))
    except OSError as error:
        raise InputError(
            f"{folder}: cannot write here ({error.strerror})", action="Choose another folder."
        ) from None
    try:
        yield partial
        if not there:
            partial.rename(folder)
            return
        # The database comes last: without it there is no study yet.
        for path in sorted(partial.iterdir(), key=lambda path: path.name == DATABASE):
            path.rename(folder / path.name)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot write here ({error.strerror or error})", action="Choose another directory."
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def add_items(transaction: Transaction, folder: Path, sample: Sample, number: int) -> int:
    """Add the sample's round `number` to a study, its file beside the database; return how many items.

    Examples
    --------
    >>> add_items.__name__
    'add_items'
    """
    connection = transaction.connection
    question = Question.from_dict(json.loads(_setting(transaction, "question")))
    share, copies = float(_setting(transaction, "overlap")), int(_setting(transaction, "copies"))
    path = sample.write(folder / f"sample-{number}.parquet")
    rows = _new_rows(sample, number)
    texts, shown = id_texts(sample.ids), payloads(sample, question)
    several = overlapping([texts[row] for row in rows], sample.seed, share)
    people = [copies if wanted else 1 for wanted in several]
    start = transaction.one("SELECT coalesce(max(item), 0) AS last FROM item")["last"]
    connection.execute(
        "INSERT INTO round VALUES (?, ?, ?, ?)", (number, path.name, digest_of(path), len(rows))
    )
    connection.executemany(
        "INSERT INTO item (item, id, round, stratum, copies, payload, wanted) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (start + place, texts[row], number, int(sample.stratum[row]), k, shown[row], k)
            for place, (row, k) in enumerate(zip(rows, people, strict=True), start=1)
        ),
    )
    transaction.run("UPDATE tally SET total = total + ?", sum(people))
    append(transaction, Entry(
        annotator="", action=ROUND, value=str(number), note=f"{path.name} {digest_of(path)}",
        shown=items_digest(connection, number),
    ))  # fmt: skip
    return len(rows)


def overlapping(texts: list[str], seed: int, share: float) -> list[bool]:
    """Return which items several people label: a share of them, at random, the same whenever it is asked.

    Examples
    --------
    >>> sum(overlapping(["a", "b", "c", "d"], 7, 0.5))
    2
    """
    keys = keys_of_ids(texts, seed, "overlap:")
    chosen = set(np.argsort(keys, kind="stable")[: math.ceil(share * len(texts))].tolist())
    return [place in chosen for place in range(len(texts))]


def payloads(sample: Sample, question: Question) -> list[str]:
    """Return what annotators see of each unit, as JSON; refuses what would lead them.

    Examples
    --------
    >>> payloads.__name__
    'payloads'
    """
    leading = {*sample.proxy_names, *([sample.predicted] if sample.predicted else [])} & set(sample.shown)
    if leading:
        raise InputError(
            f"column '{min(leading)}' would lead the annotators",
            allowed="shown columns that are neither a proxy nor the model's answer",
        )
    missing = [name for name in question.pair or () if name not in sample.shown]
    if missing:
        raise InputError(f"column '{missing[0]}' is not shown", action="Draw the sample with it (--show).")
    columns = {name: values.tolist() for name, values in sample.shown.items()}
    if not columns:
        columns = {sample.id_name: id_texts(sample.ids)}
    return [
        payload_text({name: column[row] for name, column in columns.items()}) for row in range(sample.size)
    ]


def payload_text(payload: Any) -> str:
    """Return a payload as JSON that every page can read: what is not a number is null.

    Examples
    --------
    >>> payload_text({"text": "a", "score": float("nan")})
    '{"text": "a", "score": null}'
    """
    try:
        return json.dumps(payload, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_finite(payload), ensure_ascii=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def digest_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal.

    Examples
    --------
    >>> place = Path(tempfile.mkdtemp()) / "empty"
    >>> _ = place.write_bytes(b"")
    >>> digest_of(place)[:8]
    'e3b0c442'
    """
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _new_rows(sample: Sample, number: int) -> list[int]:
    """Return the rows of a round in the order in which they are shown: random across strata."""
    order: IntArray = shown_order(sample.ids, sample.seed)
    return [int(row) for row in order if sample.round[row] == number]


def _fill(
    partial: Path,
    sample: Sample,
    question: Question,
    team: Team,
    journal: str,
    settings: Mapping[str, str],
    now: float,
) -> None:
    database = Database.make(partial / DATABASE, journal)
    kept = {
        "id": secrets.token_hex(16),
        "question": json.dumps(question.to_dict(), ensure_ascii=False),
        "rubric_version": str(question.rubric_version),
        "overlap": repr(team.overlap),
        "copies": str(team.copies),
        **settings,
    }
    try:
        with database.write() as connection:
            migrate(connection, partial)
            transaction = Transaction(connection, now)
            for name, value in kept.items():
                keep_setting(connection, name, value)
            add_people(transaction, team)
            append_setting(transaction, str(question.rubric_version), question.rubric, RUBRIC)
            for number in range(1, int(sample.round.max(initial=1)) + 1):
                add_items(transaction, partial, sample, number)
    finally:
        database.close()


def _setting(transaction: Transaction, name: str) -> str:
    return str(transaction.one("SELECT value FROM setting WHERE name = ?", name)["value"])
