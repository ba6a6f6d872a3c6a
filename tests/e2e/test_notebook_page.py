"""The notebook's widget in a browser: its own script, its own messages, a study behind it."""

from __future__ import annotations

import pytest
from tests.tiers import cells

import stratal
from stratal import InputError

pytest.importorskip("playwright")
pytest.importorskip("anywidget")

from tests.e2e.test_annotation_page import LOOKS, browser, serious, shot, study_in

from stratal.study.web.content import read_display
from stratal.study.web.notebook import annotate, reply_to_message

__all__ = ["browser"]

HOST = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<title>Notebook</title><style>{css}</style>
</head><body><h2>A notebook</h2><input id="cell" aria-label="cell"><div id="root"></div><script type="module">
const listeners = [];
window.outside = [];
document.addEventListener("keydown", (event) => window.outside.push(event.key));
const model = {{
  on: (_, listener) => listeners.push(listener), off: () => {{}},
  send: async (message) => {{
    const said = await window.kernel(message);
    listeners.forEach((one) => one(said));
  }},
}};
const widget = await import(URL.createObjectURL(new Blob([{esm}], {{ type: "text/javascript" }})));
widget.default.render({{ model, el: document.getElementById("root") }});
</script></body></html>"""


def shown(browser, tmp_path, study, **options):
    """Show a study's widget in a page that stands for the notebook."""
    import json

    widget = annotate(study, annotator="ann")
    page = tmp_path / "host.html"
    page.write_text(HOST.format(css=widget._css, esm=json.dumps(widget._esm).replace("</", "<\\/")))
    context = browser.new_context(**{**LOOKS["light"], **options})
    window = context.new_page()
    look = read_display(study, str)
    window.expose_function("kernel", lambda message: reply_to_message(study, "ann", look, message))
    window.goto(f"file://{page}")
    window.wait_for_selector(".item > *")
    return window


def press_all(window, *keys):
    for key in keys:
        window.keyboard.press(key)
        window.wait_for_timeout(30)
        window.wait_for_selector(".stratal:not([aria-busy]) .item > *")


@pytest.mark.parametrize("look", cells(LOOKS, fast=("phone",)))
def test_the_same_keys_save_to_the_same_study(tmp_path, browser, look):
    with study_in(tmp_path / "study") as study:
        window = shown(browser, tmp_path, study, **LOOKS[look])
        window.focus("#cell")
        window.keyboard.press("1")
        assert study.progress("ann").submitted == 0
        assert window.locator("input[type=radio]:checked").count() == 0
        window.evaluate("window.outside.length = 0")
        window.focus(".stratal")
        press_all(window, "1", "Enter", "s", "u", "2", "Enter", "ArrowLeft")
        shot(window, f"{look}-notebook")
        assert serious(window, ".stratal") == []
        assert window.evaluate("window.outside") == []
        assert [entry.value for entry in study.history("ann")] == ["Fail", "Pass"]
        press_all(window, "1", "Enter")
        assert study.history("ann")[0].value == "Pass"
        assert window.evaluate("document.title") == "Notebook"
        window.context.close()


def test_trouble_is_shown(tmp_path, browser):
    with study_in(tmp_path / "study") as study:
        window = shown(browser, tmp_path, study)
        window.focus(".stratal")
        press_all(window, "u")
        assert "no action to undo" in window.inner_text(".banner")
        window.context.close()


def test_a_sample_gets_its_folder_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=["a", "b", "c"])
    sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    first = stratal.study.annotate(sample)
    item = first.study.next_item("me")
    first.study.submit("me", item.id, "Pass")
    first.study.close()
    again = stratal.study.annotate(sample, annotator="eve")

    assert again.study.annotators == ("eve", "me")
    assert stratal.estimate(sample, again.labels()).n == 1
    other = stratal.designs.SimpleRandom(budget=3).draw(population, seed=8)
    with pytest.raises(InputError, match="another sample"):
        stratal.study.annotate(other)
    with pytest.raises(InputError, match="annotate takes a Sample"):
        stratal.study.annotate(population, study="new")
    assert stratal.study.annotate("study", annotator="me").study.progress("me").submitted == 1
