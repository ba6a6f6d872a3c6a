"""What is found wrong with a study is wrong with it, and not with the machine."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.tiers import SLOW
from tests.unit.study.conftest import answer_all

import stratal
from stratal.errors import InputError
from stratal.study import (
    StudyError,
    StudyQuestion,
    check_study,
    create_study,
    estimate_study,
    open_study,
    study_status,
)
from stratal.study.interim import add_round, anytime_interval, extend_study, set_half_width


def test_exhausted_memory_is_no_damage_of_the_study(make_study, monkeypatch):
    study = make_study()

    def read(path):
        raise MemoryError

    monkeypatch.setattr("stratal.designs.sample_file._read_parquet", read)
    with pytest.raises(InputError, match="not a sample file") as raised:
        check_study(study)
    assert isinstance(raised.value.__context__, MemoryError)


def test_a_thread_for_which_there_is_no_memory_is_no_damage(make_study, monkeypatch):
    study = make_study()

    def read(path):
        raise pa.ArrowException("Unknown error: Failed to launch worker thread: Resource unavailable")

    monkeypatch.setattr("stratal.designs.sample_file._read_parquet", read)
    with pytest.raises(MemoryError, match="worker thread"):
        check_study(study)


def test_a_sample_that_cannot_be_read_is_damage_of_the_study(make_study, monkeypatch):
    study = make_study()

    def read(path):
        raise ValueError("no rows")

    monkeypatch.setattr("stratal.designs.sample_file._read_parquet", read)

    assert any("not a sample file (no rows)" in problem for problem in check_study(study).problems)


def changed(study, statement):
    """Change a study's database behind its back, triggers and all."""
    with closing(sqlite3.connect(study.folder / "study.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)


CHANGES = {
    "an answer of the journal": "UPDATE journal SET value = 'Pass' WHERE seq = (SELECT max(seq) FROM journal "
    "WHERE value = 'Fail')",
    "an answer as it is counted": "UPDATE answer SET value = 'Pass' WHERE value = 'Fail'",
    "the last line": "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal)",
    "whose labels are set aside": "UPDATE annotator SET aside = 1 WHERE name = 'bob'",
    "what a choice counts as": """UPDATE setting SET value = replace(value, '"value": 0.0', '"value": 0.5')
        WHERE name = 'question'""",
    "who labels": "UPDATE annotator SET role = 'adjudicator' WHERE name = 'bob'",
    "when to stop": "UPDATE setting SET value = '0.5' WHERE name = 'half_width'",
    "an item's stratum": "UPDATE item SET stratum = stratum + 1 WHERE item = 3",
    "what annotators see": "UPDATE item SET payload = '{}' WHERE item = 3",
    "the sample that is read": "UPDATE round SET file = 'sample-2.parquet'",
    "a view": "DROP VIEW decision",
}
READERS = {
    "labels": lambda study: study.labels(),
    "estimate": estimate_study,
    "status": study_status,
    "anytime interval": anytime_interval,
    "export": lambda study: study.tasks(),
    "a page in one file": lambda study: study.reserve_for_page_file("ann"),
    "import": lambda study: study.import_actions('{"format": "stratal-actions", "version": 1, "study": "x"}'),
}


@pytest.fixture(scope="module")
def answered(tmp_path_factory, drawn, question):
    """The folder of a study of which every item is labelled."""
    folder = tmp_path_factory.mktemp("answered") / "study"
    people = {"annotators": ["ann", "bob"], "overlap": 0.25}
    with create_study(folder, drawn, question, **people, half_width=0.01) as study:
        answer_all(study, "ann", lambda item: "Fail" if item.position % 3 else "Pass")
        answer_all(study, "bob", lambda item: "Fail" if item.position % 2 else "Pass")
        estimate_study(study)
    return folder


@pytest.mark.parametrize("what", CHANGES)
def test_no_number_and_no_export_is_made_of_a_study_that_was_changed(answered, tmp_path, what):
    # One flipped bit made .795 of .696: what was counted was read without a look at the journal's seals.
    study = open_study(shutil.copytree(answered, tmp_path / "study"))
    changed(study, CHANGES[what])

    assert check_study(study).problems
    # Each reader checks the study itself; the fast tier asks two of them of each change, and all of one.
    asked = READERS if SLOW or what == "an answer of the journal" else ("labels", "export")
    for read in (READERS[name] for name in asked):
        with pytest.raises(StudyError, match="was changed") as raised:
            read(study)
        assert raised.value.kind == "damaged"
    study.close()


def test_every_change_that_a_study_makes_itself_leaves_it_sound(make_study, drawn):
    study = make_study()
    study.set_rubric("Be strict.")
    study.add_annotator("carol")
    set_half_width(study, 0.05)
    answer_all(study, "carol")
    study.set_aside("carol")
    study.take_back("carol")
    extend_study(study, 3, population=_population(), by_labels=False)
    study.save_settings(page_formats="{}")

    assert check_study(study).problems == ()
    with open_study(study.folder, read_only=True) as again:
        assert again.labels().answered == 40


def _population():
    from tests.unit.study.conftest import population_of

    return population_of(300)


def test_another_sample_in_the_place_of_the_studys_is_refused(make_study, drawn):
    study = make_study()
    other = stratal.designs.SimpleRandom(budget=40).draw(_population(), seed=7)
    other.write(study.folder / "sample-1.parquet")

    with pytest.raises(StudyError, match="was changed after it was drawn"):
        study.sample()


def test_choices_of_a_study_that_was_made_keep_their_numbers(make_study):
    question = StudyQuestion.of_choices("How good?", ["good=1", "fair=0.5", "bad=0"])
    study = make_study(question=question)
    answer_all(study, "ann", lambda item: "fair")
    changed(study, "UPDATE setting SET value = replace(value, '0.5', '1.0') WHERE name = 'question'")

    with pytest.raises(StudyError, match="the settings"):
        estimate_study(study)


def test_what_an_annotator_sees_is_what_the_sample_says(make_study):
    units = stratal.Population.from_arrays(ids=["a", "b", "c"], show={"text": ["one", None, "three"]})
    study = make_study(sample=stratal.designs.SimpleRandom(budget=2).draw(units, seed=7))
    assert check_study(study).sound
    with study.database.write() as connection:
        row = connection.execute("SELECT id, payload FROM item LIMIT 1").fetchone()
        payload = dict.fromkeys(json.loads(row["payload"]), "another text")
        connection.execute("UPDATE item SET payload = ? WHERE id = ?", (json.dumps(payload), row["id"]))

    problem = f"the items of round 1 were changed after it was drawn: {row['id']!r}"
    assert problem in check_study(study).problems


def test_changed_items_are_named_by_the_first_few(make_study):
    study = make_study()
    with study.database.write() as connection:
        connection.execute("UPDATE item SET stratum = stratum + 7 WHERE item > 1")
        ids = sorted(repr(row["id"]) for row in connection.execute("SELECT id FROM item WHERE item > 1"))

    (problem,) = (entry for entry in check_study(study).problems if "items of round" in entry)
    named = problem.partition("drawn: ")[2]
    assert named == f"{', '.join(ids[:5])} and {len(ids) - 5:,} more"


def test_a_round_of_another_population_is_refused(make_study, drawn):
    study = make_study()
    larger = stratal.next_round(drawn, additional=5)
    other = replace(larger, proxies=larger.proxies[::-1])
    with pytest.raises(InputError, match="not the population from which the sample was drawn"):
        add_round(study, other)


def test_a_flipped_bit_in_the_write_ahead_log_takes_no_answers_away_unseen(make_study, tmp_path):
    # SQLite reads the log up to the first damaged page: the last answers were gone, and the chain was whole.
    study = make_study()
    answer_all(study, "ann")
    live = tmp_path / "live"
    shutil.copytree(study.folder, live)
    log = (live / "study.sqlite-wal").read_bytes()
    with open_study(shutil.copytree(live, tmp_path / "copy"), read_only=True) as copied:
        assert copied.labels().answered == study.labels().answered
    refused = 0
    for number, place in enumerate(range(2000, len(log), len(log) // 8)):
        damaged = shutil.copytree(live, tmp_path / f"damaged-{number}")
        (damaged / "study.sqlite-wal").write_bytes(log[:place] + bytes([log[place] ^ 4]) + log[place + 1 :])
        for reading in (True, False):
            with open_study(damaged, read_only=reading) as found:
                problems = check_study(found).problems
                if not problems:  # what was lost gave out an item, and no answer
                    assert found.labels().values == study.labels().values
                    continue
                with pytest.raises(StudyError, match="had been saved"):
                    found.labels()
                refused += 1
    assert refused >= 8


def test_the_note_of_the_last_line_may_be_missing_or_old_but_not_another(make_study):
    study = make_study()
    answer_all(study, "ann")
    path = study.folder / "journal.head"
    noted = path.read_bytes()
    for content in (b"", bytes(len(noted)), None):
        path.unlink() if content is None else path.write_bytes(content)
        assert check_study(study).problems == ()
    for content in (b"x" + noted[1:], noted[:-3] + b"g\n", noted[:20], noted.replace(b"0", b"1", 1)):
        path.write_bytes(content)
        assert len(check_study(study).problems) == 1
    path.write_bytes(noted)
    study.submit("ann", study.history("ann")[0].item, "Fail")
    assert path.read_bytes() != noted
    path.write_bytes(noted)
    assert check_study(study).problems == ()
