"""The journal is only added to, a change shows, and counts say what the journal says."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.tiers import sized
from tests.unit.study.conftest import answer_all

from stratal.study import StudyError, check_study, open_study
from stratal.study.database import DATABASE, Connection
from stratal.study.journal import MIGRATIONS, database_version, migrate


@pytest.fixture
def labelled(make_study):
    study = make_study(overlap=0.5)
    answer_all(study, "ann")
    answer_all(study, "bob", lambda item: "Fail" if item.position % 3 else "Pass")
    study.adjudicate("ann", study.disagreements()[0].item.id, "Pass")
    return study


def tamper(study, *statements):
    study.close()
    with closing(sqlite3.connect(study.folder / DATABASE)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_a_sound_study_has_no_problems(labelled):
    check = check_study(labelled)

    assert check.problems == ()
    assert check.items == 40
    assert check.lines == 2 + 60 + 1


@pytest.mark.parametrize(
    "statement", ["UPDATE journal SET value = 'Fail' WHERE seq = 5", "DELETE FROM journal WHERE seq = 5"]
)
def test_lines_are_neither_changed_nor_deleted(labelled, statement):
    with pytest.raises(sqlite3.IntegrityError, match="only added to"):
        tamper(labelled, statement)


FREE = "DROP TRIGGER journal_keeps_rows", "DROP TRIGGER journal_keeps_values"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE journal SET value = 'Fail' WHERE seq = 5", "line 5 of the journal was changed"),
        ("UPDATE journal SET at = '2000-01-01T00:00:00.000Z' WHERE seq = 5", "line 5 of the journal was"),
        ("UPDATE journal SET annotator = 'bob' WHERE seq = 5", "line 5 of the journal was changed"),
        ("UPDATE journal SET note = 'x' WHERE seq = 63", "line 63 of the journal was changed"),
        ("DELETE FROM journal WHERE seq = 5", "lines 5 to 5 of the journal are missing"),
        ("UPDATE item SET id = 'other' WHERE item = 1", "1 items are not in the sample (first: 'other')"),
        ("UPDATE answer SET value = 'Fail' WHERE item = 1", "differs from the journal"),
        ("DELETE FROM answer WHERE item = 2", "differs from the journal"),
        ("UPDATE item SET wanted = 7 WHERE item = 3", "answers to item 3 are counted incorrectly"),
        ("UPDATE item SET decision = NULL", "the decision on item"),
        ("UPDATE annotator SET submitted = 0 WHERE name = 'ann'", "labels of 'ann' are counted incorrectly"),
        ("UPDATE annotator SET aside = 1 WHERE name = 'ann'", "labels of 'ann' are counted incorrectly"),
        ("UPDATE tally SET done = 0", "number of requested or given answers"),
        ("DROP VIEW standing", "the definition of 'standing' in the database was changed"),
    ],
)
def test_every_manual_change_is_detected(labelled, statement, problem):
    tamper(labelled, *FREE, statement)

    with open_study(labelled.folder) as study:
        problems = check_study(study).problems
    assert any(problem in entry for entry in problems)
    assert any("journal_keeps_rows" in entry for entry in problems)


def test_a_journal_that_was_written_anew_no_longer_holds_the_head_that_was_noted(labelled, make_study):
    noted = check_study(labelled).head
    assert check_study(labelled, known_head=noted).sound
    other = make_study()

    assert "contains no line with hash" in check_study(other, known_head=noted).problems[0]


def test_a_changed_sample_file_is_detected(labelled):
    path = labelled.folder / "sample-1.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"x")
    assert "was changed after round 1" in check_study(labelled).problems[0]
    path.unlink()

    assert "is missing" in check_study(labelled).problems[0]


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "carol"]),
        st.sampled_from(["submit", "submit", "fail", "skip", "undo", "change", "wait", "aside", "decide"]),
    ),
    max_size=40,
)


@example([("ann", "submit"), ("ann", "undo"), ("ann", "aside"), ("ann", "submit")])
@given(ACTS)
@settings(
    max_examples=sized(6, 40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_counts_say_what_the_journal_says_whatever_people_do(make_study, clock, acts):
    study = make_study(annotators=["ann", "bob", "carol"], overlap=0.5)
    aside = set()
    for who, act in acts:
        if act == "wait":
            clock.now += 2000
        elif act == "aside":
            (study.take_back if who in aside else study.set_aside)(who)
            aside ^= {who}
        elif act == "undo":
            try:
                study.undo(who)
            except StudyError:
                assert not study.history(who)
        elif act == "change" and study.history(who):
            study.submit(who, study.history(who)[-1].item, "Fail")
        elif act == "decide" and study.disagreements():
            try:
                study.adjudicate(who, study.disagreements()[0].item.id, "Pass")
            except StudyError:
                assert who in aside
        elif (item := study.next_item(who)) is not None:
            assert who not in aside
            if act == "skip":
                study.skip(who, item.id)
            else:
                study.submit(who, item.id, "Fail" if act == "fail" else "Pass")

    check = check_study(study)
    assert check.sound, check.problems
    if not aside:
        finish(study)


def finish(study):
    """Everybody goes on to the end: every place is filled, or only people who skipped the item are left."""
    for _ in range(3):
        for who in ("ann", "bob", "carol"):
            answer_all(study, who)
    found = study.progress("ann")
    with study.database.read() as connection:
        lacking = connection.execute(
            "SELECT count(*) FROM item WHERE wanted > 0 AND (SELECT count(*) FROM answer "
            "WHERE answer.item = item.item) < 3"
        ).fetchone()[0]
    assert lacking == 0
    assert found.done <= found.total


def test_migrations_are_taken_once_and_whole(tmp_path, monkeypatch):
    connection = sqlite3.connect(tmp_path / "db", isolation_level=None, factory=Connection)

    def second(database):
        database.execute("CREATE TABLE more (name TEXT)")
        if broken:
            raise RuntimeError("half way")

    connection.execute("BEGIN")
    migrate(connection, tmp_path)
    connection.execute("COMMIT")
    before = len(MIGRATIONS)
    monkeypatch.setattr("stratal.study.journal.MIGRATIONS", (*MIGRATIONS, second))
    broken = True
    connection.execute("BEGIN")
    with pytest.raises(RuntimeError):
        migrate(connection, tmp_path)
    connection.execute("ROLLBACK")
    assert database_version(connection) == before
    assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'more'").fetchone() is None
    broken = False
    for _ in range(2):
        migrate(connection, tmp_path)
        assert database_version(connection) == before + 1
    connection.close()


def test_a_study_of_a_newer_stratal_is_refused(labelled):
    tamper(labelled, "PRAGMA user_version = 99")

    with pytest.raises(StudyError, match="newer version of stratal"):
        open_study(labelled.folder)


def test_an_open_study_still_refuses_to_change_the_journal(labelled):
    with pytest.raises(sqlite3.IntegrityError), labelled.database.write() as connection:
        connection.execute("DELETE FROM journal")
    assert check_study(labelled).sound
