"""Editing while server, kernel or the browser's storage fail: what is stored is what was entered last."""

from __future__ import annotations

import json

import pytest

from stratal.study import check_study

pytest.importorskip("playwright")
pytest.importorskip("starlette")
pytest.importorskip("anywidget")

from tests.browser import served
from tests.e2e.test_annotation_page import browser, opened, press, said, settled, study_in
from tests.e2e.test_notebook_page import press_all, shown
from tests.e2e.test_offline_page import downloaded
from tests.tiers import cells

from stratal.study.web.notebook import write_page

__all__ = ["browser", "opened"]

ENTERED = "window.localStorage.length"


class Network:
    """What happens to a page's answers: they pass, they are lost, or the reply to them is."""

    def __init__(self, window):
        self.mode, self.sent = "up", []
        window.route("**/api/act", self.handle)

    def handle(self, route):
        self.sent.append(route.request.post_data_json)
        if self.mode == "up":
            route.continue_()
            return
        if self.mode == "reply lost":
            route.fetch()
        route.abort()


def fail(window, *keys):
    """Press keys, of which the last saves, and wait until the page says that it could not."""
    for key in keys:
        window.keyboard.press(key)
    window.wait_for_selector(".banner:not([hidden])", timeout=15_000)
    window.wait_for_selector("#root:not([aria-busy]), .stratal:not([aria-busy])")


def write(window, text):
    """Put a text in the place of the note."""
    window.focus("textarea")
    window.keyboard.press("Control+A")
    window.keyboard.type(text)
    window.keyboard.press("Escape")


def stored(study, item, annotator="ann"):
    answer = study.item(annotator, item).answer
    return None if answer is None else (answer.value, answer.note)


def acts(study, item):
    """Return what the journal says of an item."""
    with study.verified() as connection:
        rows = connection.execute(
            "SELECT action FROM journal JOIN item USING (item) WHERE id = ? ORDER BY seq", (item,)
        ).fetchall()
    return [row["action"] for row in rows]


OUTAGES = cells([("down", ["submit"]), ("reply lost", ["submit", "change"])], fast=("reply lost",))


@pytest.mark.parametrize(("mode", "journal"), OUTAGES)
def test_an_answer_that_was_edited_during_an_outage_is_stored_as_edited(tmp_path, opened, mode, journal):
    # The old request was sent again, and then the note was deleted.
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        network = Network(window)
        press(window, "1", "Enter")
        assert said(window) == "Saved."
        item = study.next_item("ann").id
        write(window, "first")
        network.mode = mode
        fail(window, "1", "Enter")
        assert said(window) == ""
        assert len({entry["request"] for entry in network.sent[1:]}) == 1
        window.keyboard.press("2")
        write(window, "second")
        network.mode = "up"
        press(window, "Enter")

        assert stored(study, item) == ("Fail", "second")
        assert acts(study, item) == journal
        assert said(window) == "Saved."
        assert window.is_hidden(".banner")
        assert window.input_value("textarea") == ""
        assert window.evaluate(ENTERED) == 0
        assert study.next_item("ann").id != item
        assert check_study(study).problems == ()


@pytest.mark.parametrize("mode", cells(["down", "reply lost"], fast=("down",)))
def test_a_note_alone_that_was_edited_is_stored_and_an_unedited_answer_once(tmp_path, opened, mode):
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        network = Network(window)
        first = study.next_item("ann").id
        network.mode = mode
        fail(window, "1", "Enter")
        network.mode = "up"
        press(window, "Enter")
        assert acts(study, first) == ["submit"]
        second = study.next_item("ann").id
        network.mode = mode
        fail(window, "2", "Enter")
        write(window, "only now")
        network.mode = "up"
        window.click(".banner button")
        settled(window)

        assert stored(study, first) == ("Pass", "")
        assert stored(study, second) == ("Fail", "only now")


def test_a_skip_that_failed_gives_way_to_an_answer(tmp_path, opened):
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        network = Network(window)
        items = []
        for edit in ((), ("1",)):
            items.append(study.next_item("ann").id)
            network.mode = "down"
            fail(window, "s")
            network.mode = "up"
            press(window, *edit, "Enter")
        network.mode = "down"
        fail(window, "u")
        network.mode = "up"
        press(window, "Enter")

        assert acts(study, items[0]) == ["skip"]
        assert acts(study, items[1]) == ["submit", "undo"]


@pytest.mark.parametrize("mode", cells(["down", "reply lost"], fast=("down",)))
def test_a_reload_during_the_outage_shows_what_was_entered(tmp_path, opened, mode):
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        network = Network(window)
        item = study.next_item("ann").id
        write(window, "first")
        network.mode = mode
        fail(window, "1", "Enter")
        window.keyboard.press("2")
        write(window, "second")
        window.reload()
        settled(window)
        assert said(window) == "What you entered here was not saved yet."
        assert window.is_checked("input[value=Fail]")
        assert window.input_value("textarea") == "second"
        network.mode = "up"
        press(window, "Enter")

        assert stored(study, item) == ("Fail", "second")
        window.reload()
        settled(window)
        assert window.locator("input[type=radio]:checked").count() == 0
        assert window.evaluate(ENTERED) == 0


def test_two_windows_of_one_annotator_keep_apart_what_they_did_not_save(tmp_path, opened):
    with study_in(tmp_path / "study") as study, served(study) as links:
        one = opened(links["ann"])
        item = study.next_item("ann").id
        network = Network(one)
        network.mode = "down"
        fail(one, "1", "Enter")
        other = one.context.new_page()
        other.goto(links["ann"])
        settled(other)
        write(other, "from the other window")
        press(other, "2", "Enter")
        assert stored(study, item) == ("Fail", "from the other window")
        later = study.next_item("ann").id
        other.keyboard.press("n")
        other.keyboard.type("half a thought")
        network.mode = "up"
        write(one, "mine")
        press(one, "Enter")
        other.reload()
        settled(other)

        assert stored(study, item) == ("Pass", "mine")
        assert acts(study, item) == ["submit", "change"]
        assert study.next_item("ann").id == later
        assert other.input_value("textarea") == "half a thought"


@pytest.mark.parametrize("enter", [False, True])
def test_what_is_entered_while_an_answer_is_on_its_way_is_not_lost(tmp_path, opened, enter):
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        held = []
        window.route("**/api/act", lambda route: route.continue_() if held else held.append(route))
        item = study.next_item("ann").id
        window.keyboard.press("1")
        window.keyboard.press("Enter")
        window.wait_for_selector("[aria-busy]")
        for _ in range(500):
            if not held:
                window.wait_for_timeout(10)
        window.keyboard.press("2")
        write(window, "second")
        if enter:
            window.keyboard.press("Enter")
        held[0].continue_()
        if not enter:
            window.wait_for_selector(".said:has-text('Saved as it was sent')")
            assert stored(study, item) == ("Pass", "")
            assert window.is_checked("input[value=Fail]")
            press(window, "Enter")
        window.wait_for_selector(".said:text-is('Saved.')")

        assert stored(study, item) == ("Fail", "second")
        assert study.next_item("ann").id != item


def test_after_an_earlier_answer_is_changed_the_next_later_one_is_shown(tmp_path, opened):
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        press(window, "1", "Enter", "1", "Enter", "1", "Enter", "ArrowLeft", "ArrowLeft")
        before = window.inner_text(".item")
        press(window, "2", "Enter")

        assert window.inner_text(".item") != before
        assert "You answered: Pass." in window.inner_text(".item")
        assert said(window) == "Saved."


@pytest.mark.parametrize(
    ("mode", "journal"),
    cells([("down", ["submit"]), ("reply lost", ["submit", "change"])], fast=("reply lost",)),
)
def test_the_notebook_stores_what_was_edited(tmp_path, browser, monkeypatch, mode, journal):
    from stratal.study.web import notebook

    real, kernel = notebook.answer, {"mode": "up"}

    def answering(study, annotator, look, message):
        if kernel["mode"] == "up" or message["what"] != "act":
            return real(study, annotator, look, message)
        if kernel["mode"] == "reply lost":
            real(study, annotator, look, message)
        return {"id": "nobody's"}

    monkeypatch.setattr("tests.e2e.test_notebook_page.answer", answering)
    monkeypatch.setattr(notebook, "joined", lambda *names: _impatient(names))
    with study_in(tmp_path / "study") as study:
        window = shown(browser, tmp_path, study)
        window.focus(".stratal")
        press_all(window, "1", "Enter")
        item = study.next_item("ann").id
        write(window, "first")
        kernel["mode"] = mode
        fail(window, "1", "Enter")
        assert window.inner_text(".said") == ""
        window.keyboard.press("2")
        write(window, "second")
        kernel["mode"] = "up"
        press_all(window, "Enter")

        assert stored(study, item) == ("Fail", "second")
        assert acts(study, item) == journal
        window.context.close()


def _impatient(names):
    from stratal.study.web.content import joined

    text = joined(*names)
    assert text.count("PATIENCE = 15000") == 1
    return text.replace("PATIENCE = 15000", "PATIENCE = 2000")


def test_the_page_in_one_file_stores_what_was_edited(tmp_path, opened):
    full = """(on) => { window.real ??= Storage.prototype.setItem;
        Storage.prototype.setItem = on ? () => { throw new Error("full"); } : window.real; }"""
    with study_in(tmp_path / "study", overlap=0.0) as study:
        write_page(study, tmp_path / "ann.html", "ann", items=5)
        window = opened(f"file://{tmp_path}/ann.html", offline=True)
        press(window, "1", "Enter")
        item = study.next_item("ann")
        write(window, "first")
        window.evaluate(full, True)
        fail(window, "1", "Enter")
        assert said(window) == ""
        assert "its storage is full" in window.inner_text(".banner")
        window.keyboard.press("2")
        write(window, "second")
        window.evaluate(full, False)
        press(window, "Enter")
        window.keyboard.press("2")
        write(window, "third")
        window.reload()
        settled(window)
        assert window.input_value("textarea") == "third"
        assert window.is_checked("input[value=Fail]")
        text = downloaded(window, tmp_path / "labels.json")

        actions = json.loads(text)["actions"]
        assert [(entry["value"], entry["note"]) for entry in actions] == [("Pass", ""), ("Fail", "second")]
        study.take_in(text)
        assert stored(study, actions[1]["item"]) == ("Fail", "second")
        assert item is not None
