"""Rights of a study's files, its secrets, rounds that two draw at once, and received studies."""

from __future__ import annotations

import json
import os
import shutil
import threading

import pytest
from tests.unit.study.conftest import answer_all, population_of

from stratal import InputError, LabelError, next_round
from stratal.study import StudyError, backup_study, check_study, extend_study, open_study
from stratal.study.interim import add_round
from stratal.study.web.content import is_picture_link, read_display, save_display

pytestmark = pytest.mark.skipif(os.name == "nt", reason="rights of POSIX, symbolic links")


def mode(path):
    return path.stat().st_mode & 0o777


def test_only_the_owner_can_read_a_study_and_its_copy(make_study, tmp_path):
    study = make_study(pseudonyms=True, annotators=["ada", "bob"])
    study.submit("annotator-1", study.next_item("annotator-1").id, "Pass")
    backup_study(study, tmp_path / "copy")

    for folder in (study.folder, tmp_path / "copy"):
        assert mode(folder) == 0o700
        files = [path for path in folder.iterdir() if path.is_file()]
        assert {path.name for path in files} >= {"study.sqlite", "sample-1.parquet", "annotators.json"}
        assert {path.name: mode(path) for path in files if mode(path) != 0o600} == {}


def test_of_two_rounds_that_are_drawn_at_once_one_is_there_and_the_other_is_told(study):
    population, barrier, ends = population_of(300), threading.Barrier(2), []

    def extend(additional):
        with open_study(study.folder) as opened:
            sample = opened.sample()  # both see the study before either writes
            barrier.wait()
            try:
                extend_study(opened, additional, population=population, by_labels=False)
                ends.append(sample.size + additional)
            except (StudyError, InputError) as error:
                ends.append(str(error))

    threads = [threading.Thread(target=extend, args=(number,)) for number in (5, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    told = [end for end in ends if isinstance(end, str)]
    sizes = [end for end in ends if not isinstance(end, str)]
    assert check_study(study).problems == ()
    assert study.sample().size == (max(sizes) if not told else sizes[0])
    assert all("another round was drawn meanwhile" in text for text in told)


def test_a_round_that_was_drawn_before_another_one_was_saved_is_refused(study):
    population = population_of(300)
    earlier = next_round(study.sample(), additional=9, population=population)
    extend_study(study, 5, population=population, by_labels=False)

    with pytest.raises(StudyError, match="another round was drawn meanwhile"):
        add_round(study, earlier)


def test_the_file_of_a_round_is_never_overwritten(study):
    from stratal.planning import next_round
    from stratal.study.interim import add_round

    one, other = (
        next_round(study.sample(), additional=number, population=population_of(300)) for number in (5, 9)
    )
    add_round(study, one)
    before = (study.folder / "sample-2.parquet").read_bytes()

    with pytest.raises((StudyError, InputError)):
        add_round(study, other)
    assert (study.folder / "sample-2.parquet").read_bytes() == before
    assert check_study(study).sound


def test_a_file_that_a_killed_extend_left_is_no_round(study):
    (study.folder / "sample-2.parquet").write_bytes(b"half")
    extend_study(study, 5, population=population_of(300), by_labels=False)
    assert check_study(study).sound


@pytest.mark.parametrize("content", [None, "", '{"annotator-1": "a', "{}", "[1]", "null"])
def test_without_the_file_of_names_nobody_is_added(make_study, content):
    """A truncated file was read as no names, and the next real name entered the journal."""
    study = make_study(pseudonyms=True, annotators=["ada", "bob"])
    names = study.folder / "annotators.json"
    names.unlink() if content is None else names.write_text(content)

    with pytest.raises(StudyError, match=r"annotators\.json"):
        study.add_annotator("carol")
    assert study.annotators == ("annotator-1", "annotator-2")


def test_names_are_replaced_whole_or_not_at_all(make_study, monkeypatch):
    study = make_study(pseudonyms=True, annotators=["ada", "bob"])
    before = (study.folder / "annotators.json").read_bytes()

    def full(path, *_, **__):
        with path.open("w") as file:
            file.write("{")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.write_text", full)
        with pytest.raises((OSError, InputError)):
            study.add_annotator("carol")
    assert (study.folder / "annotators.json").read_bytes() == before
    assert study.add_annotator("carol") == "annotator-3"
    assert study.names["annotator-3"] == "carol"


def forged(study, **changes):
    item = study.history("bob")[0].item
    file = {
        "format": "stratal-actions", "version": 1, "study": study.id, "annotator": "bob",
        "actions": [{"action": "submit", "request": "r", "item": item, "value": "Fail"}],
    }  # fmt: skip
    return json.dumps(file | changes)


def test_a_returned_file_counts_only_as_the_person_whose_page_saved_it(study):
    answer_all(study, "bob")
    before = study.history("bob")
    for key in ("", "0" * 64, study.page_key("ann"), "é"):
        with pytest.raises(LabelError, match="contains no proof"):
            study.import_actions(forged(study, key=key))
    with pytest.raises(LabelError, match="another annotator"):
        study.import_actions(forged(study), annotator="ann")
    assert study.history("bob") == before

    found = study.import_actions(forged(study, key=study.page_key("bob")), dry_run=True)
    assert found["changed_answers"] == {"bob": 1}
    assert study.import_actions(forged(study), annotator="bob")["changed_answers"] == {"bob": 1}


def test_a_backup_has_no_secret(study, tmp_path):
    study.page_key("ann")
    secret = study.setting("page_file_secret")
    backup_study(study, tmp_path / "copy")
    assert secret.encode() not in (tmp_path / "copy/study.sqlite").read_bytes()


def test_an_export_that_fails_keeps_no_items_and_leaves_no_file(study, tmp_path, monkeypatch):
    """An export to a full disk left a cut page, and its items were kept for the annotator."""
    from stratal.study.web.page_file import write_page

    def full(*_):
        raise OSError(28, "No space left on device")

    free = study.progress("bob").total
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.write_bytes", full)
        with pytest.raises(InputError, match=r"ann\.html cannot be written"):
            write_page(study, tmp_path / "ann.html", "ann")
    assert os.listdir(tmp_path) == [study.folder.name]
    assert len(answer_all(study, "bob")) >= 40
    assert free == study.progress("bob").total


def test_media_of_a_received_study_stay_in_its_folder(study, tmp_path):
    """A study that was copied here names a folder of this computer, whose pictures would be shown."""
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "cat.png").write_bytes(b"png")
    save_display(study, media=pictures)
    assert read_display(study, str).media == pictures.resolve()

    shutil.copytree(study.folder, tmp_path / "received")
    with open_study(tmp_path / "received") as received:
        assert read_display(received, str).media == received.media


def test_a_module_in_the_current_folder_is_not_run_by_the_owners_page(study, tmp_path, monkeypatch):
    from stratal.study.web.server import public_status

    for name in ("random", "numpy", "stratal"):
        (tmp_path / f"{name}.py").write_text("open('was-run', 'w')\nraise SystemExit(7)")
    monkeypatch.chdir(tmp_path)

    assert public_status(study.folder)["study"] == study.id
    assert not (tmp_path / "was-run").exists()


def test_the_address_of_a_picture_is_told_as_before():
    assert is_picture_link("https://example.org/a/cat.PNG")
    assert not is_picture_link("http://example.org/cat.png")
    assert not is_picture_link("https://example.org/cat.png and more")
