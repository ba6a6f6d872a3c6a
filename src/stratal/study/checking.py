"""`check_study`: whether everything that was saved is there, unchanged, and belongs together."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from stratal.errors import InputError
from stratal.population.same_value import same_value
from stratal.randomness import id_texts
from stratal.sampling import Sample
from stratal.sampling.same_population import require_same_draw
from stratal.study.creating import digest_of
from stratal.study.journal import broken_seals, head
from stratal.study.migrations import migrate
from stratal.study.question import Question
from stratal.study.records import Plain
from stratal.study.study import Study

_MOST = 20
"""Problems of one kind that are listed."""


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


def check_study(study: Study, *, known_head: str | None = None) -> Check:
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
        problems = [
            *_database(connection),
            *_first_of(broken_seals(connection)),
            *_schema(connection),
            *_samples(connection, study.folder),
            *_first_of(_counts(connection)),
            *_first_of(_values(connection, study.question)),
            *_noted(connection, known_head),
        ]
        return Check(
            problems=tuple(problems),
            notes=tuple(_odd_times(connection)),
            items=connection.execute("SELECT count(*) FROM item").fetchone()[0],
            lines=connection.execute("SELECT count(*) FROM journal").fetchone()[0],
            head=head(connection),
        )


def _first_of(problems: Iterator[str]) -> Iterator[str]:
    """Yield the first problems of a kind, and how many more there are."""
    more = 0
    for number, problem in enumerate(problems):
        if number < _MOST:
            yield problem
        more += number >= _MOST
    if more:
        yield f"and {more} more of this kind"


def _database(connection: sqlite3.Connection) -> Iterator[str]:
    rows = connection.execute(f"PRAGMA integrity_check({_MOST})").fetchall()
    yield from (f"the database is damaged: {row[0]}" for row in rows if row[0] != "ok")
    broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    if broken:
        yield f"{len(broken)} rows name an item, a round or an annotator that is not there"


def _schema(connection: sqlite3.Connection) -> Iterator[str]:
    """Compare tables, views and triggers (which keep the journal's lines) with those of a new study."""
    query = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh, Path())
        found, wanted = (dict(tuple(row) for row in db.execute(query)) for db in (connection, fresh))
    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) != wanted.get(name):
            yield f"'{name}' of the database is not as stratal made it"


def _samples(connection: sqlite3.Connection, folder: Path) -> Iterator[str]:
    rounds = connection.execute("SELECT * FROM round ORDER BY number").fetchall()
    sound = True
    for row in rounds:
        path = folder / row["file"]
        if not path.is_file():
            sound = False
            yield f"{path}: is missing"
        elif digest_of(path) != row["digest"]:
            sound = False
            yield f"{path}: was changed after round {row['number']} was drawn"
    if not rounds or not sound:
        return
    try:
        samples = [Sample.read(folder / row["file"]) for row in rounds]
    except InputError as error:
        if isinstance(error.__context__, MemoryError):  # which tells nothing of the file
            raise
        yield str(error)
        return
    sample = samples[-1]
    for number, (earlier, later) in enumerate(pairwise(samples), start=2):
        try:
            require_same_draw(earlier, later)
        except InputError as error:
            yield f"round {number}: {error}"
    yield from _first_of(_payloads(connection, sample))
    drawn = set(id_texts(sample.ids))
    here = {row["id"] for row in connection.execute("SELECT id FROM item")}
    for ids, what in ((here - drawn, "are not in the sample"), (drawn - here, "of the sample are missing")):
        if ids:
            yield f"{len(ids)} items {what} (first: {min(ids)!r})"


def _payloads(connection: sqlite3.Connection, sample: Sample) -> Iterator[str]:
    """Compare what annotators see of each item with what the sample says."""
    place = {text: row for row, text in enumerate(id_texts(sample.ids))}
    for item in connection.execute("SELECT id, payload FROM item"):
        if item["id"] not in place or not sample.shown:
            continue
        payload, row = json.loads(item["payload"]), place[item["id"]]
        for name, values in sample.shown.items():
            if name not in payload or not same_value(payload[name], values[row]):
                yield f"column {name!r} of item {item['id']!r} is not shown as the sample has it"


def _counts(connection: sqlite3.Connection) -> Iterator[str]:
    """Compare what is counted with what the journal says."""
    current = "SELECT item, annotator, seq, status, value FROM current"
    answer = "SELECT item, annotator, seq, status, value FROM answer"
    for one, other in ((current, answer), (answer, current)):
        for row in connection.execute(f"{one} EXCEPT {other}"):
            yield f"the answer of {row['annotator']!r} to item {row['item']} is not what the journal says"
    for row in connection.execute(
        "SELECT name FROM annotator JOIN standing ON annotator = name WHERE annotator.aside <> standing.aside"
        " OR submitted <> (SELECT count(*) FROM answer WHERE answer.annotator = name AND status='submitted')"
        " OR skipped <> (SELECT count(*) FROM answer WHERE answer.annotator = name AND status = 'skipped')"
    ):
        yield f"the labels of {row['name']!r} are counted wrongly"
    for row in connection.execute(_MISCOUNTED):
        yield f"answers to item {row['item']} are counted wrongly"
    for row in connection.execute(
        "SELECT item FROM item LEFT JOIN decision USING (item) WHERE item.decision IS NOT decision.seq"
    ):
        yield f"the decision on item {row['item']} is not what the journal says"
    tally = connection.execute("SELECT total, done, undecided FROM tally").fetchall()
    real = connection.execute(
        "SELECT sum(copies), sum(min(answers, copies)), sum(apart AND decision IS NULL) FROM item"
    ).fetchone()
    if [tuple(row) for row in tally] != [tuple(real)]:
        yield "the number of answers that are wanted or given is wrong"


_MISCOUNTED = """
WITH said AS (
    SELECT answer.item AS item, count(*) AS answers, count(DISTINCT value) > 1 AS apart
    FROM answer JOIN annotator ON annotator = name
    WHERE status = 'submitted' AND aside = 0 GROUP BY answer.item
), holding AS (
    SELECT item, count(*) AS people FROM given JOIN annotator ON annotator = name
    WHERE live = 1 AND aside = 0 AND NOT EXISTS (SELECT 1 FROM answer WHERE answer.item = given.item
        AND answer.annotator = given.annotator AND status = 'submitted') GROUP BY item
)
SELECT item.item AS item FROM item LEFT JOIN said USING (item) LEFT JOIN holding USING (item)
WHERE item.answers <> coalesce(said.answers, 0) OR item.apart <> coalesce(said.apart, 0)
    OR item.wanted <> max(0, item.copies - coalesce(said.answers, 0) - coalesce(holding.people, 0))
"""


def _values(connection: sqlite3.Connection, question: Question) -> Iterator[str]:
    rows = connection.execute(
        "SELECT DISTINCT value FROM journal WHERE action IN ('submit', 'change', 'adjudicate') "
        "AND value IS NOT NULL"
    )
    for row in rows:
        try:
            question.answer(row["value"])
        except InputError:
            yield f"the question does not take the answer {row['value'][:60]!r}"


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
