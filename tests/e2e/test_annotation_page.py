"""The page in a real browser: two annotators, by keyboard alone; light, dark, phone, right to left."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.browser import browser_open, served
from tests.tiers import cells, sized

import stratal
from stratal.study import StudyQuestion, check_study, create_study

pytest.importorskip("playwright")
pytest.importorskip("starlette")


SHOTS = os.environ.get("STRATAL_SCREENSHOTS")
"""A folder: every state that these tests reach is saved there, to be looked at."""

LOOKS: dict[str, Any] = {
    "light": {"viewport": {"width": 1100, "height": 800}},
    "dark": {"viewport": {"width": 1100, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 320, "height": 640}, "has_touch": True},
}
ITEMS = sized(24, 60)
HASTE = (
    "const wait = setTimeout; setTimeout = (then, time) => wait(then, time / 20);"
    "AbortSignal.timeout = () => new AbortController().signal;"
)
"""Requests that fail are sent again after pauses, here a twentieth of what people wait. None fails because
the machine is busy: a test that holds an answer back would otherwise see an outage after 8 s."""
HEBREW = "שלום עולם, זו תשובה בעברית עם English באמצע."
CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "<b>Hi</b>"}]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
EVIL = (
    "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script><a href='javascript:hack()'>x</a>"
)


def column(make, size=300):
    return np.array([*map(make, range(size)), None], dtype=object)[:-1]


def study_in(folder, question=None, columns=None, overlap=0.2, budget=ITEMS, size=300):
    show = {name: column(make, size) for name, make in (columns or {"answer": "It is {}.".format}).items()}
    population = stratal.Population.from_arrays(
        proxy=np.random.default_rng(0).beta(3, 1, size), ids=[f"unit-{k}" for k in range(size)], show=show
    )
    asked = question or StudyQuestion.of_choices(
        "Is the answer correct?", ["Pass", "Fail"], rubric="*Be* strict."
    )
    sample = stratal.plan(population, budget).draw(seed=7)
    return create_study(folder, sample, asked, annotators=["ann", "bob"], overlap=overlap)


@pytest.fixture(scope="module")
def browser():
    with browser_open() as opened:
        yield opened


@pytest.fixture
def opened(browser):
    """Return a function that opens a link in a window of its own and fails on any error of the page's."""
    contexts, errors = [], []

    def open_link(link, selector="#root:not([aria-busy]) .item > *", timeout=30_000, **options):
        context = browser.new_context(**{**LOOKS["light"], **options})
        context.add_init_script(HASTE)
        contexts.append(context)
        window = context.new_page()
        window.on("pageerror", lambda error: errors.append(str(error)))
        window.goto(link)
        window.wait_for_selector(selector, timeout=timeout)
        window.wait_for_timeout(50)  # a page that shows its first item may become busy once more
        window.wait_for_selector(selector, timeout=timeout)
        return window

    yield open_link
    for context in contexts:
        context.close()
    assert errors == []


def settled(window):
    window.wait_for_selector("#root:not([aria-busy]) .item > *")


def press(window, *keys):
    for key in keys:
        settled(window)
        window.keyboard.press(key)
        window.wait_for_timeout(10)
        settled(window)


def said(window):
    return window.inner_text(".said")


def shot(window, name):
    if SHOTS:
        window.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def serious(window, within=None):
    """Return what axe-core finds wrong, whatever it calls it."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(window, context=within).response["violations"]
    return [(entry["id"], entry["nodes"][0]["html"]) for entry in found]


def test_two_annotators_label_by_keyboard_skip_undo_change_resume_and_adjudicate(tmp_path, opened):
    with study_in(tmp_path / "study", overlap=0.3) as study, served(study) as links:
        ann, bob = opened(links["ann"]), opened(links["bob"])
        press(ann, "Enter")
        assert said(ann) == "Choose an answer first."
        press(ann, "1", "Enter", "s", "2", "Enter")
        assert study.progress("ann").submitted == 2
        assert study.progress("ann").skipped == 1
        press(ann, "u")
        assert said(ann) == "Undone."
        assert study.progress("ann").submitted == 1
        press(ann, "2", "Enter", "ArrowLeft", "ArrowLeft", "ArrowLeft")
        assert "You answered: Pass." in ann.inner_text(".item")
        press(ann, "2", "Enter")
        changed = study.history("ann")[0]
        assert changed.value == "Fail"
        press(ann, "ArrowRight", "ArrowRight", "f")
        assert study.next_item("ann").flagged
        press(ann, "n")
        ann.keyboard.type("odd one, s u f 1 2")
        press(ann, "Escape", "ArrowDown", "ArrowDown", "Enter")
        assert (study.history("ann")[0].value, study.history("ann")[0].note) == ("Fail", "odd one, s u f 1 2")

        before = study.next_item("ann").id
        ann.keyboard.press("1")
        ann.context.close()
        ann = opened(links["ann"])
        assert study.next_item("ann").id == before
        turns = 0
        while study.next_item("ann") is not None or study.next_item("bob") is not None:
            for who, window, key in (("ann", ann, "1"), ("bob", bob, "2")):
                if study.next_item(who) is not None:
                    if window.locator(".rest").count():
                        press(window, "Enter")
                    press(window, key, "Enter")
            turns += 1
            assert turns < 200
        # What ann skipped came back at the end, since nobody else could complete it.
        assert study.progress("ann").skipped == 0

        bob.reload()
        settled(bob)
        apart = study.progress("bob").disagreements
        assert apart > 3
        mine = study.assigned_disagreements("bob")[0]
        assert 0 < mine < apart
        assert bob.inner_text(".count") == f"Decision 1 of {mine}"
        assert "1 gave this answer" in bob.inner_text(".questions")
        press(bob, "1", "Enter")
        assert said(bob) == "Decided."
        assert study.progress("bob").disagreements == apart - 1
        press(bob, "u")
        assert study.progress("bob").disagreements == apart
        bob.reload()
        settled(bob)
        for _ in range(mine):
            press(bob, "1", "Enter")
        assert said(bob) == "You have made all your decisions. The remaining ones are for others."
        bob.click(".judge")
        settled(bob)
        assert bob.inner_text(".count") == f"Decision 1 of {apart - mine}"
        for _ in range(apart - mine):
            press(bob, "1", "Enter")
        assert said(bob) == "There are no more disagreements."
        assert study.progress("bob").disagreements == 0
        assert check_study(study).problems == ()
        values = [value for value in study.labels().values if value is not None]
        assert len(set(study.labels().ids)) == ITEMS
        assert set(values) == {0.0, 1.0}


CONTENT = {
    "question": "Frage {}".format,
    "answer": lambda k: (
        f"It is **{k}**, since\n\n| a | b |\n|---|---|\n| 1 | {k} |\n\n[a link](https://example.org)"
    ),
    "trace": lambda k: json.dumps({"step": k, "tool": "x" * 90}),
    "context": lambda k: "A long text. " * 400,
    "hebrew": lambda k: HEBREW,
    "chat": lambda k: CHAT,
    "picture": lambda k: "cat.png",
    "sound": lambda k: "dog.wav",
    "evil": lambda k: EVIL,
    "evil html": lambda k: EVIL + "<p style='position:fixed' id=root onclick='x()'>kept</p>",
}


@pytest.mark.parametrize("look", cells(LOOKS, fast=("phone",)))
def test_every_state_is_readable_and_accessible(tmp_path, opened, look):
    from stratal.study.web.content import save_display

    with study_in(tmp_path / "study", columns=CONTENT, overlap=0.5, budget=20) as study:
        save_display(study, {"answer": "markdown", "evil html": "html"})
        (study.media / "cat.png").write_bytes(PIXEL)
        (study.media / "dog.wav").write_bytes(b"RIFF")
        with served(study) as links:
            window = opened(links["ann"], **LOOKS[look])
            bar = window.locator(".submit").bounding_box()
            states = {
                "first": [],
                "unfolded": ["."],
                "chosen": ["1"],
                "note": ["n", "Escape"],
                "help": ["?"],
                "changing": ["Escape", "Enter", "ArrowLeft"],
            }
            for name, keys in states.items():
                press(window, *keys)
                shot(window, f"{look}-{name}")
                assert window.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
                assert window.locator(".submit").bounding_box() == bar, name
                assert serious(window) == [], name
            assert window.evaluate("window.hacked") is None
            assert window.evaluate("document.querySelector('.field img').naturalWidth") == 1
            assert (
                window.evaluate("getComputedStyle(document.querySelectorAll('.text')[2]).direction") == "rtl"
            )
            for who, value in (("ann", "Pass"), ("bob", "Fail")):
                while (item := study.next_item(who)) is not None:
                    study.submit(who, item.id, value)
            window.reload()
            settled(window)
            assert window.inner_text(".count").startswith("Decision 1 of ")
            shot(window, f"{look}-deciding")
            assert serious(window) == []
            assert window.evaluate("document.documentElement.scrollWidth <= innerWidth")
            press(window, "Escape")
            shot(window, f"{look}-done")
            assert "All done" in window.inner_text(".item")
            assert serious(window) == []


@pytest.mark.parametrize("look", cells(LOOKS, fast=("phone",)))
def test_pairs_stand_side_by_side_without_their_names(tmp_path, opened, look):
    question = StudyQuestion.of_pair("Which answer is better?", "gpt", "llama")
    columns = {"prompt": "Say {}".format, "gpt": "text one {}".format, "llama": "text two {}".format}
    with study_in(tmp_path / "study", question, columns) as study, served(study) as links:
        window = opened(links["ann"], **LOOKS[look])
        shot(window, f"{look}-pair")
        assert serious(window) == []
        assert "gpt" not in window.content()
        first = study.next_item("ann")
        press(window, "2", "Enter")
        assert study.history("ann")[0].value == first.sides[1]
        press(window, "3", "Enter")
        assert study.history("ann")[0].value == "tie"


@pytest.mark.parametrize("look", cells(LOOKS, fast=("light",)))
def test_scales_and_classes_of_ones_own(tmp_path, opened, look):
    with (
        study_in(tmp_path / "a", StudyQuestion.of_scale("How helpful?", 1, 7)) as study,
        served(study) as links,
    ):
        window = opened(links["ann"], **LOOKS[look])
        shot(window, f"{look}-scale")
        press(window, "5", "Enter")
        assert study.history("ann")[0].value == "5"
    question = StudyQuestion.of_classes("Which animal?", ["cat", "dog"])
    with study_in(tmp_path / "b", question) as study, served(study) as links:
        window = opened(links["ann"], **LOOKS[look])
        press(window, "/")
        window.keyboard.type("sea lion")
        shot(window, f"{look}-classes")
        assert serious(window) == []
        press(window, "Enter")
        assert study.history("ann")[0].value == "sea lion"
        press(window, "1", "Enter")
        assert study.history("ann")[0].value == "cat"


def form_of_two():
    right = replace(StudyQuestion.of_choices("Is it right?", ["Pass", "Fail", "Unsure="]), name="right")
    why = replace(
        StudyQuestion.of_choices("Why not?", ["Invented", "Incomplete"]), name="why", when=("right", "Fail")
    )
    return [
        right,
        why,
        replace(StudyQuestion.of_scale("How kind?", 1, 5, ends=("rude", "kind")), name="tone"),
    ]


def test_sixty_items_with_two_questions_and_a_condition_by_keyboard_alone(tmp_path, opened):
    with study_in(tmp_path / "study", form_of_two(), overlap=0.0) as study, served(study) as links:
        window = opened(links["ann"])
        press(window, "Enter")
        assert said(window) == "Answer “Is it right?” first."
        given, turn = [], 0
        while (item := study.next_item("ann")) is not None:
            right, tone = ("Pass", "Fail", "Unsure")[turn % 3], str(1 + turn % 5)
            keys = [str(1 + turn % 3), *(["2"] if right == "Fail" else []), tone]
            press(window, *keys, "Enter")
            given.append((item.id, right, tone))
            turn += 1
        assert turn == ITEMS
        saved = {answer.item: json.loads(answer.value) for answer in study.history("ann", limit=1000)}
        for item, right, tone in given:
            why = {"why": "Incomplete"} if right == "Fail" else {}
            assert saved[item] == {"right": right, "tone": tone} | why
        labels = study.labels("right").values
        assert labels.count(None) == sum(right == "Unsure" for _, right, _ in given)
        assert check_study(study).problems == ()


def test_with_submit_on_choice_one_key_answers_a_binary_question(tmp_path, opened):
    with study_in(tmp_path / "study") as study, served(study) as links:
        study.save_settings(page_submit_on_choice="yes")
        window = opened(links["ann"])
        press(window, "1", "2")
        window.click(".choice:has(input[value=Pass])")
        settled(window)
        assert [answer.value for answer in study.history("ann")] == ["Pass", "Fail", "Pass"]
        press(window, "ArrowLeft", "2")
        assert study.history("ann")[0].value == "Pass", "an answer that is there changes by Enter alone"
        press(window, "Enter")
        assert study.history("ann")[0].value == "Fail"


def test_the_owner_watches_without_a_reload_and_annotators_cannot(tmp_path, opened, monkeypatch):
    from stratal.study import study_status
    from stratal.study.web import server
    from stratal.study.web.server import owner_link

    monkeypatch.setattr(
        server, "STATUS_COST_FACTOR", 0.0
    )  # counted again at once, however busy the machine is
    with study_in(tmp_path / "study", overlap=0.5) as study, served(study) as links:
        address = links["ann"].split("/a/")[0]
        window = opened(owner_link(study, address), selector="section", timeout=90_000)
        assert "0 of " in window.inner_text("#root")
        assert serious(window) == []
        for who, value in (("ann", "Pass"), ("bob", "Fail")):
            for _ in range(8):
                study.submit(who, study.next_item(who).id, value, note="<b>odd</b>")
        window.wait_for_selector("#root:has-text('16 of ')", timeout=90_000)
        found = study_status(study)
        assert f"{100 * found['estimate']['estimate']:.1f}%" in window.inner_text("#root")
        assert window.locator("svg.picture").count() == 2
        assert "Interval by number of labels" in window.inner_text("#root")
        assert "<b>odd</b>" in window.inner_text("#root")
        shot(window, "light-owner")
        report = window.request.get(f"{owner_link(study, address)}report")
        assert report.status == 200
        assert "95% interval" in report.text()
        assert serious(window) == []
        dead = opened(f"{address}/a/nobody/", selector="h1")
        assert "No such page" in dead.inner_text("#root")
        assert serious(dead) == []


def test_trouble_is_shown_and_the_answer_is_sent_once_it_is_over(tmp_path, opened, monkeypatch):
    from stratal.study import Study, StudyError

    real = Study.save_action

    def fails(self, *given, **named):
        raise StudyError(f"{self.folder}: the disk is full", kind="disk-full", action="Free some space.")

    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        items = [study.next_item("ann").id]
        monkeypatch.setattr(Study, "save_action", fails)
        press(window, "1", "Enter", "2", "Enter")
        assert "the disk is full. Free some space." in window.inner_text(".banner")
        assert window.inner_text(".waiting") == "2 answers waiting"
        assert str(tmp_path) not in window.content()
        shot(window, "light-disk-full")
        assert serious(window) == []
        monkeypatch.setattr(Study, "save_action", real)
        window.wait_for_selector(".waiting[hidden]", state="attached", timeout=15_000)
        assert window.is_hidden(".banner")
        assert [answer.value for answer in study.history("ann")] == ["Fail", "Pass"]
        assert study.history("ann")[1].item == items[0]


def test_answers_of_an_outage_survive_a_reload_and_are_sent(tmp_path, opened):
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        first = study.next_item("ann").id
        window.route("**/api/act", lambda route: route.abort())
        press(window, "1", "Enter")
        assert "does not respond" in window.inner_text(".banner")
        assert window.inner_text(".waiting") == "1 answer waiting"
        assert window.locator(".questions input:checked").count() == 0
        shot(window, "light-no-server")
        window.unroute("**/api/act")
        window.reload()
        settled(window)
        assert [(answer.item, answer.value) for answer in study.history("ann")] == [(first, "Pass")]
        assert window.is_hidden(".waiting")


def test_a_note_survives_closing_the_window(tmp_path, opened):
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"])
        press(window, "n")
        window.keyboard.type("half a thought")
        window.reload()
        settled(window)
        assert window.input_value("textarea") == "half a thought"
        press(window, "1", "Enter")
        assert window.input_value("textarea") == ""
        assert study.history("ann")[0].note == "half a thought"


def test_it_works_by_touch_alone(tmp_path, opened):
    with study_in(tmp_path / "study") as study, served(study) as links:
        window = opened(links["ann"], **LOOKS["phone"])
        for name in ("Pass", "Fail"):
            window.tap(f".choice:has(input[value={name}])")
            window.tap(".submit")
            settled(window)
        window.tap(".skip")
        settled(window)
        window.tap(".undo")
        settled(window)

        assert [answer.value for answer in study.history("ann")] == ["Fail", "Pass"]
