"""A copy while people go on labelling."""

from __future__ import annotations

import threading

import pytest
from click.testing import CliRunner
from tests.unit.study.conftest import answer_all

from stratal.cli.application import app
from stratal.errors import InputError
from stratal.study import backup_study, open_study
from stratal.study.web.server import tokens

PEOPLE = ("ann", "bob", "carol", "dan")


def test_backup_while_four_people_save(make_study, tmp_path):
    study = make_study(annotators=PEOPLE)
    threads = [threading.Thread(target=answer_all, args=(study, who)) for who in PEOPLE]
    for thread in threads:
        thread.start()
    check = backup_study(study, tmp_path / "backup")
    for thread in threads:
        thread.join()

    assert check.sound
    with open_study(tmp_path / "backup") as copied:
        labels, now = copied.labels(), study.labels()
        assert set(zip(labels.ids, labels.values, strict=True)) <= set(zip(now.ids, now.values, strict=True))
        assert copied.sample() == study.sample()
        assert study.progress("ann").done == 40
    with pytest.raises(InputError, match="is not empty"):
        backup_study(study, tmp_path / "backup")


def test_a_copy_has_no_working_links(make_study, tmp_path):
    study = make_study()
    links = tokens(study)
    secret = study.setting("page_secret")
    backup_study(study, tmp_path / "backup")

    assert secret.encode() not in b"".join(path.read_bytes() for path in (tmp_path / "backup").glob("*.*"))
    assert tokens(study) == links
    with open_study(tmp_path / "backup") as copied:
        assert not set(tokens(copied).values()) & set(links.values())


def test_a_copy_with_problems_ends_with_status_3(make_study, tmp_path):
    study = make_study()
    sample = study.folder / "sample-1.parquet"
    sample.write_bytes(sample.read_bytes() + b"x")
    for number, json in enumerate(([], ["--json"])):
        copy = str(tmp_path / f"backup-{number}")
        found = CliRunner().invoke(app, ["study", "backup", str(study.folder), "--output", copy, *json])
        assert found.exit_code == 3
        assert "was changed after round 1 was drawn" in found.output


def test_a_copy_of_a_study_that_lost_lines_is_not_sound(make_study, tmp_path):
    study = make_study()
    answer_all(study, "ann")
    noted = study.folder / "journal.head"
    assert backup_study(study, tmp_path / "sound").sound

    noted.write_bytes(noted.read_bytes().replace(b"0", b"1", 1))  # as if later lines had been saved
    assert not backup_study(study, tmp_path / "copy").sound
