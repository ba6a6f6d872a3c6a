"""Editing while server, kernel or the browser's storage fail: what is stored is what was entered last."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.browser import served
from tests.e2e.test_annotation_page import browser, opened, press, said, settled, study_in
from tests.e2e.test_notebook_page import press_all, shown
from tests.e2e.test_offline_page import downloaded
from tests.tiers import cells, sized

from stratal.study import check_study
from stratal.study.web.page_file import write_page

pytest.importorskip("playwright")
pytest.importorskip("starlette")
pytest.importorskip("anywidget")


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


IDLE = "#root:not([aria-busy]), .stratal:not([aria-busy])"


def press_idle(window, *keys):
    """Press keys, each on an idle page: a busy page ignores keys, and a new one may become busy."""
    for key in keys:
        window.wait_for_timeout(20)
        window.wait_for_selector(IDLE)
        window.keyboard.press(key)


def fail(window, *keys):
    """Press keys, of which the last saves, and wait until the page says that it could not."""
    press_idle(window, *keys)
    window.wait_for_selector(".banner:not([hidden])", timeout=60_000)
    window.wait_for_selector(IDLE)


def recovered(window):
    """Wait until nothing waits for the server any more."""
    window.wait_for_selector(".waiting[hidden]", state="attached", timeout=60_000)
    window.wait_for_selector(".stratal:not([aria-busy])")


def write(window, text):
    """Put a text in the place of the note."""
    window.keyboard.press("n")
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


@pytest.mark.parametrize(
    ("mode", "reload"),
    [
        ("down", True),
        ("reply lost", False),
        pytest.param("down", False, marks=pytest.mark.slow),
        pytest.param("reply lost", True, marks=pytest.mark.slow),
    ],
)
def test_an_answer_that_was_edited_during_an_outage_is_stored_as_edited(tmp_path, opened, mode, reload):
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        network = Network(window)
        press(window, "1", "Enter")
        assert said(window) == "Saved."
        item = study.next_item("ann").id
        write(window, "first")
        network.mode = mode
        fail(window, "1", "Enter")
        assert window.inner_text(".waiting") == "1 answer waiting"
        if reload:
            window.reload()
            settled(window)
        if mode == "down" or not reload:
            press(window, "ArrowLeft")
            assert "You answered: Pass." in window.inner_text(".item")
            press(window, "2")
            write(window, "second")
            press(window, "Enter")
            assert window.inner_text(".waiting") == "2 answers waiting"
        network.mode = "up"
        recovered(window)

        edited = mode == "down" or not reload
        assert stored(study, item) == (("Fail", "second") if edited else ("Pass", "first"))
        assert acts(study, item) == (["submit", "change"] if edited else ["submit"])
        assert window.is_hidden(".banner")
        assert window.evaluate(ENTERED) == 0
        assert study.next_item("ann").id != item
        assert check_study(study).problems == ()


def test_items_given_ahead_are_labelled_without_the_server_until_there_are_none(tmp_path, opened):
    with study_in(tmp_path / "study", overlap=0.0, budget=60) as study, served(study) as links:
        window = opened(links["ann"])
        network = Network(window)
        network.mode = "down"
        fail(window, "1", "Enter")
        press(window, "2", "Enter", "s")
        assert "Waiting for the server" in window.inner_text(".item")
        assert window.inner_text(".waiting") == "3 answers waiting"
        press(window, "u")
        assert window.inner_text(".waiting") == "2 answers waiting"
        press(window, "1", "Enter")
        network.mode = "up"
        recovered(window)
        window.wait_for_selector(".choice:visible")

        assert [answer.value for answer in study.history("ann")] == ["Pass", "Fail", "Pass"]
        assert check_study(study).problems == ()


def test_two_windows_of_one_annotator_lose_nothing(tmp_path, opened):
    with study_in(tmp_path / "study") as study, served(study) as links:
        one = opened(links["ann"])
        item = study.next_item("ann").id
        network = Network(one)
        network.mode = "down"
        fail(one, "1", "Enter")
        other = one.context.new_page()
        other.goto(links["ann"])
        settled(other)
        assert stored(study, item) == ("Pass", ""), "whichever window can sends what waits"
        press(other, "2", "Enter")
        later = study.next_item("ann").id
        other.keyboard.press("n")
        other.keyboard.type("half a thought")
        network.mode = "up"
        recovered(one)
        other.reload()
        settled(other)

        assert acts(study, item) == ["submit"]
        assert study.next_item("ann").id == later
        assert other.input_value("textarea") == "half a thought"


def test_a_window_that_saw_another_ones_answer_wait_learns_that_it_was_sent(tmp_path, opened):
    with study_in(tmp_path / "study") as study, served(study) as links:
        one, looks, answers = opened(links["ann"]), [], []
        one.route("**/api/state", lambda route: looks.append(route))
        network = Network(one)
        network.mode = "down"
        fail(one, "1", "Enter")
        other = one.context.new_page()
        other.goto(links["ann"])
        settled(other)
        while not looks:  # the other window sent it, so that this one asks where it is
            one.wait_for_timeout(10)
        other.route("**/api/act", lambda route: answers.append(route))
        other.keyboard.press("2")
        other.keyboard.press("Enter")
        while not answers:
            other.wait_for_timeout(10)
        looks[0].continue_()
        one.wait_for_selector(".said:text-is('The server is available again. All answers are saved.')")
        answers[0].continue_()
        recovered(one)

        assert study.progress("ann").submitted == 2


def test_while_an_answer_is_on_its_way_nothing_else_is_entered(tmp_path, opened):
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        held = []
        window.route("**/api/act", lambda route: route.continue_() if held else held.append(route))
        item = study.next_item("ann").id
        press_idle(window, "1", "Enter")
        window.wait_for_selector(".said:text-is('Working …')")
        window.keyboard.press("2")
        window.keyboard.press("Enter")
        while not held:  # the page says that it sends before the browser hands the request over
            window.wait_for_timeout(10)
        held[0].continue_()
        window.wait_for_selector(".said:text-is('Saved.')")

        assert stored(study, item) == ("Pass", "")
        assert study.progress("ann").submitted == 1
        assert window.locator(".questions input:checked").count() == 0


ANSWERS = sized(16, 2000)


def test_nothing_is_lost_and_nothing_invented_by_any_kind_of_trouble(tmp_path, opened, monkeypatch):
    """Outages, lost replies, edits during them, reloads, two windows, a full disk, a clock that jumps."""
    from stratal.study import Study, StudyError

    chance, real = random.Random(34), Study.save_action
    state: dict[str, Any] = {"full": False}

    def acting(self, *given, **named):
        if state["full"]:
            raise StudyError("the disk is full", kind="disk-full", action="Free some space.")
        return real(self, *given, **named)

    monkeypatch.setattr(Study, "save_action", acting)
    given = {}
    with study_in(tmp_path / "study", overlap=0.0, budget=ANSWERS, size=ANSWERS + 10) as study:
        clock = study.clock
        with served(study) as links:
            windows = [opened(links["ann"])]
            windows.append(windows[0].context.new_page())
            windows[1].goto(links["ann"])
            settled(windows[1])
            networks = [Network(window) for window in windows]
            while len(given) < ANSWERS:
                event = chance.random()
                for network in networks:
                    network.mode = "up"
                state["full"] = False
                study.clock = clock
                if event < 0.3:
                    networks[0].mode = chance.choice(["down", "reply lost"])
                elif event < 0.4:
                    state["full"] = True
                elif event < 0.5:
                    jump = chance.choice([-86_400, 86_400])
                    study.clock = lambda jump=jump: clock() + jump
                k = int(chance.random() < 0.2)
                if k != state.get("last", 0):  # whoever changes windows looks at what is there now
                    for window in windows:
                        recovered(window)
                    windows[k].reload()
                    settled(windows[k])
                state["last"], window = k, windows[k]
                for _ in range(chance.randint(1, 3)):
                    if not label_one(window, given, chance):
                        break
                    if chance.random() < 0.2:
                        press(window, "ArrowLeft")
                        label_one(window, given, chance)
                if chance.random() < 0.1:
                    window.reload()
                    settled(window)
                for network in networks:
                    network.mode = "up"
                state["full"] = False
                recovered(window)
            for window in windows:
                recovered(window)
        study.clock = clock
        saved = {a.item: (a.value, a.note) for a in study.history("ann", limit=10**6)}
        while len(saved) < study.progress("ann").submitted:
            last = min(a.seq for a in study.history("ann", before=state.get("seq"), limit=1000))
            state["seq"] = last
            saved |= {a.item: (a.value, a.note) for a in study.history("ann", before=last, limit=1000)}
        assert saved == given
        assert check_study(study).problems == ()


def label_one(window, given, chance):
    """Answer the item that is shown, and note what was entered; False where none is shown."""
    shown = window.locator(".item .text")
    if shown.count() == 0:
        return False
    item = f"unit-{shown.first.inner_text().removeprefix('It is ').removesuffix('.')}"
    key, text = chance.choice("12"), f"note {chance.random()}"
    press(window, key)
    write(window, text)
    press(window, "Enter")
    given[item] = ({"1": "Pass", "2": "Fail"}[key], text)
    return True


def test_after_an_earlier_answer_is_changed_the_next_later_one_is_shown(tmp_path, opened):
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        press(window, "1", "Enter", "1", "Enter", "1", "Enter", "ArrowLeft", "ArrowLeft")
        before = window.inner_text(".item")
        press(window, "2", "Enter")

        assert window.inner_text(".item") != before
        assert "You answered: Pass." in window.inner_text(".item")
        assert said(window) == "Saved."


@pytest.mark.parametrize("mode", cells(["down", "reply lost"], fast=("reply lost",)))
def test_the_notebook_stores_what_was_edited(tmp_path, browser, monkeypatch, mode):
    from stratal.study.web import notebook

    real, kernel = notebook.reply_to_message, {"mode": "up"}

    def answering(study, annotator, look, message):
        if kernel["mode"] == "up" or message["what"] != "act":
            return real(study, annotator, look, message)
        if kernel["mode"] == "reply lost":
            real(study, annotator, look, message)
        return {"id": "nobody's"}

    monkeypatch.setattr("tests.e2e.test_notebook_page.reply_to_message", answering)
    join_scripts = notebook.content.join_scripts
    monkeypatch.setattr(notebook.content, "join_scripts", lambda *names: _impatient(join_scripts(*names)))
    with study_in(tmp_path / "study") as study:
        window = shown(browser, tmp_path, study)
        window.focus(".stratal")
        press_all(window, "1", "Enter")
        item = study.next_item("ann").id
        write(window, "first")
        kernel["mode"] = mode
        fail(window, "1", "Enter")
        press_all(window, "ArrowLeft", "2")
        write(window, "second")
        press_all(window, "Enter")
        kernel["mode"] = "up"
        recovered(window)

        assert stored(study, item) == ("Fail", "second")
        assert acts(study, item) == ["submit", "change"]
        window.context.close()


def _impatient(text):
    assert text.count("PATIENCE = 8000") == 1
    return text.replace("PATIENCE = 8000", "PATIENCE = 1000")


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
        assert [(entry["value"][""], entry["note"]) for entry in actions] == [
            ("Pass", ""),
            ("Fail", "second"),
        ]
        study.import_actions(text)
        assert stored(study, actions[1]["item"]) == ("Fail", "second")
        assert item is not None
