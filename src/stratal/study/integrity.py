"""Checks of a study's files. `stratal study check` lists all problems.

Every result and every export calls `require_integrity` first, so that none comes from a study with a problem.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from stratal.designs import Sample
from stratal.errors import InputError, StratalError, list_first
from stratal.randomness import id_texts
from stratal.study import journal
from stratal.study.creating import digest_of, item_rows_of_round, round_file
from stratal.study.database import Connection, StudyError
from stratal.study.items import ITEM_COUNTS, read_form
from stratal.study.question import Form

# Largest number of problems of one kind that are listed.
_MAX_PROBLEMS_PER_KIND = 20

# Largest number of changed items of a round that are listed.
_MAX_ITEMS_LISTED = 5


def require_integrity(connection: Connection, folder: Path) -> None:
    """Refuse a study with a problem, before results are computed or exported from it."""
    for problem in find_problems(connection, folder):
        problem_text = f"{folder}: the study was changed or damaged after it was written ({problem})"
        action = "List all problems with `stratal study check`, and restore a backup (stratal study backup)."
        raise StudyError(problem_text, kind="damaged", action=action)


def find_problems(connection: Connection, folder: Path) -> Iterator[str]:
    """Yield the problems of a study, one kind after another."""
    # The file is read before the first query, which begins a consistent view of the database. The database
    # then includes the line in the file.
    try:
        head_content = (folder / journal.HEAD).read_bytes()
    except OSError:
        # Without this file, all other problems can still be found.
        head_content = b""
    yield from _database_problems(connection)
    yield from _first_problems(journal.find_chain_problems(connection))
    yield from journal.find_missing_lines(connection, head_content)
    yield from _schema_problems(connection)
    views = "SELECT count(*) FROM sqlite_master WHERE name IN ('current', 'decision', 'standing')"
    # The other checks read these views.
    if connection.one(views)[0] < 3:
        return
    # The journal of version 1 has no digests of settings and rounds. They are added when the study is first
    # opened to write.
    if journal.database_version(connection) > 1:
        yield from _settings_problems(connection)
        yield from _first_problems(_round_problems(connection, folder))
    yield from _sample_problems(connection, folder)
    yield from _first_problems(_count_problems(connection))
    yield from _first_problems(_answer_problems(connection))


def _first_problems(problems: Iterator[str]) -> Iterator[str]:
    """Yield the first problems of a kind, and how many more there are."""
    all_problems = list(problems)
    yield from all_problems[:_MAX_PROBLEMS_PER_KIND]
    if len(all_problems) > _MAX_PROBLEMS_PER_KIND:
        yield f"and {len(all_problems) - _MAX_PROBLEMS_PER_KIND} more of this kind"


def _database_problems(connection: Connection) -> Iterator[str]:
    """Yield the problems that SQLite finds in the file and in the references between its tables."""
    messages = connection.all(f"PRAGMA integrity_check({_MAX_PROBLEMS_PER_KIND})")
    yield from (f"the database is damaged: {row[0]}" for row in messages if row[0] != "ok")
    dangling_rows = connection.all("PRAGMA foreign_key_check")
    if dangling_rows:
        yield f"{len(dangling_rows)} rows refer to an item, a round or an annotator that does not exist"


def _schema_problems(connection: Connection) -> Iterator[str]:
    """Compare tables, views and triggers (which keep the journal's lines) with those of a new study."""
    query = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
    with closing(sqlite3.connect(":memory:", isolation_level=None, factory=Connection)) as new_database:
        journal.create_tables(new_database)
        expected = dict(tuple(row) for row in new_database.execute(query))
    stored = dict(tuple(row) for row in connection.execute(query))
    for name in sorted(stored.keys() | expected.keys()):
        if stored.get(name) != expected.get(name):
            yield f"the definition of '{name}' in the database was changed"


def _settings_problems(connection: Connection) -> Iterator[str]:
    """Compare the settings and the people with the last digest of them in the journal."""
    last_line = connection.one(
        "SELECT shown FROM journal WHERE action IN ('rubric', 'setting') ORDER BY seq DESC LIMIT 1"
    )
    if last_line is None or last_line["shown"] != journal.settings_digest(connection):
        yield "the settings (question, annotators, …) differ from those that are recorded in the journal"


def _round_problems(connection: Connection, folder: Path) -> Iterator[str]:
    """Compare the rounds and their items with the lines of the rounds in the journal."""
    rounds = {str(row["number"]): row for row in connection.execute("SELECT * FROM round")}
    query = "SELECT value, note, shown FROM journal WHERE action = 'round'"
    lines = {row["value"]: row for row in connection.execute(query)}
    for number in sorted(rounds.keys() | lines.keys()):
        row = rounds.get(number)
        line = lines.get(number)
        if row is None or line is None or line["note"] != f"{row['file']} {row['digest']}":
            yield f"round {number} differs from its entry in the journal"
        elif line["shown"] != journal.items_digest(connection, row["number"]):
            items_text = _changed_items_text(connection, folder, row)
            yield f"the items of round {number} were changed after it was drawn{items_text}"


def _changed_items_text(connection: Connection, folder: Path, round_row: Any) -> str:
    """Return the first items of a round that differ from its sample as text; empty if all or none differ."""
    try:
        path = round_file(folder, round_row["number"], round_row["file"])
        if digest_of(path) != round_row["digest"]:
            return ""
        expected_items = set(item_rows_of_round(connection, Sample.read(path), round_row["number"]))
    except (StratalError, OSError, ValueError, TypeError):
        # Another check reports the problem of the sample file.
        return ""
    query = "SELECT item, id, round, stratum, copies, payload FROM item WHERE round = ?"
    stored_items = {tuple(row) for row in connection.execute(query, (round_row["number"],))}
    ids = sorted({repr(row[1]) for row in stored_items ^ expected_items})
    if stored_items & expected_items:
        return f": {list_first(ids, _MAX_ITEMS_LISTED)}"
    return ""


def _sample_problems(connection: Connection, folder: Path) -> Iterator[str]:
    """Compare the sample files with their digests, and the ids of the items with those of the newest sample.

    The other columns of the items need no comparison: they were checked when the round was added, and the
    journal has a digest of them.
    """
    path = None
    for row in connection.all("SELECT * FROM round ORDER BY number"):
        try:
            path = round_file(folder, row["number"], row["file"])
        except StudyError as error:
            yield error.what
            return
        if not path.is_file():
            yield f"{path} is missing"
            return
        if digest_of(path) != row["digest"]:
            yield f"{path} was changed after round {row['number']} was drawn"
            return
    if path is None:
        return
    try:
        sample_ids = set(id_texts(Sample.read(path).ids))
    except InputError as error:
        # If the memory is too small, the file may still be intact.
        if isinstance(error.__context__, MemoryError):
            raise
        yield str(error)
        return
    item_ids = {row["id"] for row in connection.execute("SELECT id FROM item")}
    for ids, difference in (
        (item_ids - sample_ids, "are not in the sample"),
        (sample_ids - item_ids, "of the sample are missing"),
    ):
        if ids:
            yield f"{len(ids)} items {difference} (first: {min(ids)!r})"


# Columns in which the table `answer` must equal the view `current`, which is computed from the journal.
_ANSWER = "item, annotator, seq, status, value"
# Problem → query of the rows whose stored values differ from those in the journal. The columns of a row fill
# the braces. The views `standing` (whose labels are set aside) and `decision` are computed from the journal.
_COUNT_QUERIES = {
    "the answer of {1!r} to item {0} differs from the journal": (
        f"SELECT {_ANSWER} FROM (SELECT {_ANSWER} FROM current EXCEPT SELECT {_ANSWER} FROM answer) UNION "
        f"SELECT {_ANSWER} FROM (SELECT {_ANSWER} FROM answer EXCEPT SELECT {_ANSWER} FROM current)"
    ),
    "the labels of {!r} are counted incorrectly": (
        "SELECT name FROM annotator JOIN standing ON annotator = name WHERE annotator.aside <> standing.aside"
        " OR submitted <> (SELECT count(*) FROM answer WHERE annotator = name AND status = 'submitted')"
        " OR skipped <> (SELECT count(*) FROM answer WHERE annotator = name AND status = 'skipped')"
    ),
    "answers to item {} are counted incorrectly": (
        f"SELECT item, copies, answers, wanted FROM item EXCEPT {ITEM_COUNTS}"
    ),
    "the decision on item {} differs from the journal": (
        "SELECT item FROM item LEFT JOIN decision USING (item) WHERE item.decision IS NOT decision.seq"
    ),
    "the number of requested or given answers is wrong": (
        "SELECT 1 WHERE (SELECT total, done, undecided FROM tally) IS NOT "
        "(SELECT sum(copies), sum(min(answers, copies)), sum(apart AND decision IS NULL) FROM item)"
    ),
}


def _count_problems(connection: Connection) -> Iterator[str]:
    """Compare the stored answers, counts and decisions with those in the journal."""
    for problem, query in _COUNT_QUERIES.items():
        for row in connection.execute(query):
            yield problem.format(*row)


def _answer_problems(connection: Connection) -> Iterator[str]:
    """Yield the problems of the question, the stored answers and the marks of disagreements."""
    try:
        form = read_form(connection)
    except (ValueError, KeyError, TypeError, StratalError) as error:
        yield f"the question cannot be read ({error!r})"
        return
    rows = connection.execute(
        "SELECT DISTINCT value FROM journal WHERE action IN ('submit', 'change', 'adjudicate') "
        "AND value IS NOT NULL"
    )
    for row in rows:
        try:
            form.answer(row["value"])
        except InputError:
            yield f"the question does not accept the answer {row['value'][:60]!r}"
    # The problem of an invalid answer was reported above.
    with suppress(InputError):
        yield from _disagreement_problems(connection, form)


def _disagreement_problems(connection: Connection, form: Form) -> Iterator[str]:
    """Compare the stored marks of disputed items with the answers; refuse an invalid answer."""
    answers_by_item: dict[int, list[str]] = {}
    for row in connection.execute(
        "SELECT item, value FROM answer JOIN item USING (item) JOIN annotator ON annotator = name "
        "WHERE answers > 1 AND status = 'submitted' AND aside = 0"
    ):
        answers_by_item.setdefault(row["item"], []).append(row["value"])
    disputed_items = {item for item, answers in answers_by_item.items() if form.differ(answers)}
    marked_items = {row["item"] for row in connection.execute("SELECT item FROM item WHERE apart = 1")}
    for item in sorted(disputed_items ^ marked_items):
        yield f"the record of whether answers to item {item} differ is wrong"
