"""Opening what is a study, and what is none."""

from __future__ import annotations

import pytest

from stratal.errors import InputError
from stratal.study import StudyError, open_study
from stratal.study.database import DATABASE


@pytest.mark.parametrize(("journal", "kept"), [("auto", "wal"), ("rollback", "delete")])
def test_a_study_keeps_the_journal_that_it_was_made_with(make_study, journal, kept):
    study = make_study(annotators=["ann"], journal=journal)

    with study.database.read() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == kept


def test_a_journal_that_does_not_exist_is_refused(make_study):
    with pytest.raises(InputError, match="unknown journal"):
        make_study(journal="none")


def test_no_study_here(tmp_path):
    with pytest.raises(StudyError, match="is not a study"):
        open_study(tmp_path)
    (tmp_path / DATABASE).write_text("this is not a database, but it is long enough to look like one " * 100)
    with pytest.raises(StudyError, match="not a study's database") as caught:
        open_study(tmp_path)
    assert caught.value.kind == "damaged"


def test_an_empty_database_is_no_study(study):
    study.close()
    for path in study.folder.glob("study.sqlite*"):
        path.unlink()
    (study.folder / DATABASE).touch()

    with pytest.raises(StudyError, match="its database is empty"):
        open_study(study.folder)
