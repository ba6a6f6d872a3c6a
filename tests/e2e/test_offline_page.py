"""A page in one file: labelled in a browser without a network, taken back into the study."""

from __future__ import annotations

import json
import re

import pytest

from stratal import InputError, LabelError
from stratal.study import StudyQuestion, check_study

pytest.importorskip("playwright")
pytest.importorskip("starlette")

from tests.e2e.test_annotation_page import (
    CONTENT,
    EVIL,
    LOOKS,
    PIXEL,
    browser,
    opened,
    press,
    said,
    serious,
    settled,
    shot,
    study_in,
)

from stratal.study.web.content import save_display
from stratal.study.web.page_file import write_page

__all__ = ["browser", "opened"]


def downloaded(window, path):
    with window.expect_download() as waiting:
        window.click(".download")
    waiting.value.save_as(path)
    return path.read_text()


def test_labels_go_out_and_come_back_once(tmp_path, opened):
    with study_in(tmp_path / "study", overlap=0.0) as study:
        write_page(study, tmp_path / "ann.html", "ann", items=12)
        window = opened(f"file://{tmp_path}/ann.html", offline=True)
        press(window, "1", "Enter", "s", "u", "2", "Enter", "f", "n")
        window.keyboard.type("a note")
        press(window, "Escape", "1", "Enter", "ArrowLeft", "2", "Enter")
        assert window.inner_text(".count").startswith("3 of your 12")
        first = downloaded(window, tmp_path / "first.json")
        window.reload()
        settled(window)
        window.wait_for_timeout(50)
        assert window.inner_text(".count").startswith("3 of your 12")
        for _ in range(9):
            press(window, "1", "Enter")
        assert "All done" in window.inner_text(".item")
        shot(window, "light-offline-done")
        assert serious(window) == []
        second = downloaded(window, tmp_path / "second.json")

        assert study.import_actions(first)["repeated"] == 0
        again = study.import_actions(second)
        assert (again["repeated"], again["saved"]) == (len(json.loads(first)["actions"]), 9)
        assert study.import_actions(second)["saved"] == 0
        assert study.progress("ann").submitted == 12
        assert "a note" in [answer.note for answer in study.history("ann")]
        values = [answer.value for answer in reversed(study.history("ann"))]
        assert sorted(values) == ["Fail"] * 2 + ["Pass"] * 10
        assert check_study(study).problems == ()
        items = {answer.item for answer in study.history("ann")}
        while (item := study.next_item("bob")) is not None:
            assert item.id not in items
            study.submit("bob", item.id, "Pass")


def test_pairs_come_back_as_columns(tmp_path, opened):
    question = StudyQuestion.of_pair("Which is better?", "gpt", "llama")
    columns = {"gpt": "text one {}".format, "llama": "text two {}".format}
    with study_in(tmp_path / "study", question, columns, overlap=0.0) as study:
        write_page(study, tmp_path / "ann.html", "ann", items=8)
        window = opened(f"file://{tmp_path}/ann.html", offline=True)
        for _ in range(8):
            sides = window.locator(".sides .field")
            key = "1" if "one" in sides.nth(0).inner_text() else "2"
            press(window, key, "Enter")
        study.import_actions(downloaded(window, tmp_path / "labels.json"))

        assert [answer.value for answer in study.history("ann")] == ["gpt"] * 8


def test_nothing_in_the_file_runs_or_asks_the_network(tmp_path, opened):
    with study_in(tmp_path / "study", columns=CONTENT, budget=10) as study:
        save_display(study, {"evil html": "html"})
        (study.media / "cat.png").write_bytes(PIXEL)
        study.set_rubric("</script><script>window.hacked=1</script>" + EVIL)
        write_page(study, tmp_path / "ann.html", "ann")
        text = (tmp_path / "ann.html").read_text()
        window = opened(f"file://{tmp_path}/ann.html", **LOOKS["phone"])
        press(window, "?")

        assert window.evaluate("window.hacked") is None
        assert window.evaluate("document.querySelector('.field img').naturalWidth") == 1
        assert text.count("<script") == text.count("</script>") == 2
        assert not re.search(r"(src|href)=.https?:", text.split('id="study"')[0])
        blocked = window.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => String(error))")
        assert "Failed to fetch" in blocked


def test_there_is_nothing_to_take_back_at_first(tmp_path, opened):
    with study_in(tmp_path / "study") as study:
        write_page(study, tmp_path / "ann.html", "ann")
        window = opened(f"file://{tmp_path}/ann.html")
        press(window, "u")

        assert "no action to undo" in window.inner_text(".banner")
        assert said(window) == ""


def test_a_file_is_never_written_over(tmp_path):
    with study_in(tmp_path / "study") as study:
        (tmp_path / "ann.html").write_text("mine")
        with pytest.raises(InputError, match="already exists"):
            write_page(study, tmp_path / "ann.html", "ann")
        with pytest.raises(InputError, match="unknown annotator"):
            write_page(study, tmp_path / "eve.html", "eve")

        assert (tmp_path / "ann.html").read_text() == "mine"
        assert not (tmp_path / "eve.html").exists()


def test_another_studys_labels_are_refused(tmp_path):
    file = {"format": "stratal-actions", "version": 1, "study": "other", "annotator": "ann", "actions": []}
    with study_in(tmp_path / "study") as study, pytest.raises(LabelError, match="another study"):
        study.import_actions(json.dumps(file))
