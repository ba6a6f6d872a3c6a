"""Pictures of the labelling page in every size and light: `python -m tests.tools.page_pictures FOLDER`.

Also prints where the bar's submit button stands, which must be the same on every item of a study and size.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.browser import browser_open, served
from tests.e2e.test_annotation_page import CHAT, EVIL, HEBREW, PIXEL, column

import stratal
from stratal.study import Form, StudyQuestion, create_study
from stratal.study.web.content import save_display
from stratal.study.web.server import owner_link

SIZES = {"1440x900": (1440, 900), "1366x650": (1366, 650), "820x1180": (820, 1180), "390x844": (390, 844)}
LONG = (
    "# Answer\n\nIt **depends**. First, a quote:\n\n> Nothing is lost.\n\n"
    + "A paragraph of a long answer, as models write them, with several sentences. " * 12
    + "\n\n```python\ndef mean(values: list[float]) -> float:"
    + "  # a line that is too long and scrolls sideways\n"
    + "    return sum(values) / len(values)\n```\n\n"
    + "| n | width | covered |\n|---|---|---|\n| 100 | .12 | .95 |\n\n"
    + "More of it, to the end. " * 150
)
ITEMS = {
    "short": "Paris.", "long": LONG, "code": "```js\nconst x = 1;\n```",
    "table": "| a | b |\n|---|---|\n| 1 | 2 |",
    "chat": json.dumps(CHAT), "json": json.dumps({"tool": "search", "arguments": {"q": "x" * 120}}),
    "hebrew": HEBREW, "picture": "cat.png", "sound": "dog.wav", "evil": EVIL,
}  # fmt: skip
"""Ten kinds of item."""


def questions() -> list[StudyQuestion]:
    """Return questions of every kind that fit in one form."""
    right = replace(
        StudyQuestion.of_choices("Is the answer correct?", ["Pass", "Fail", "Unsure="]), name="right"
    )
    modes = StudyQuestion.of_several("What is wrong?", ["Invented", "Incomplete", "Off topic"])
    tone = StudyQuestion.of_scale("How helpful is it?", 1, 7, ends=("useless", "perfect"))
    return [right, replace(modes, name="modes", when=("right", "Fail")), replace(tone, name="tone")]


def study_of(folder: Path, form: Form, show: dict, people: tuple[str, ...] = ("Ann", "Bob")):
    """Return a study of ten kinds of item, with media."""
    size = len(next(iter(show.values())))
    # Twice the items, of which half are drawn: of a census the interval has no width, and labelling ends.
    population = stratal.Population.from_arrays(
        proxy=[0.1 + 0.4 * k / size for k in range(2 * size)],
        ids=[f"u{k}" for k in range(2 * size)],
        show={name: [*values, *values] for name, values in show.items()},
    )
    sample = stratal.designs.SimpleRandom(budget=size).draw(population, seed=7)
    study = create_study(folder, sample, form, annotators=people, overlap=1.0, half_width=0.001)
    save_display(study, {"answer": "markdown"} if "answer" in show else {})
    (study.media / "cat.png").write_bytes(PIXEL)
    (study.media / "dog.wav").write_bytes(b"RIFF")
    return study


def settled(window) -> None:
    window.wait_for_selector("#root:not([aria-busy]) .item > *")


def main(folder: Path) -> None:
    """Make all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = list(ITEMS.values()) * 3
    prose = [text if text in kinds[:4] else None for text in kinds]
    other = [None if text in kinds[:4] else text for text in kinds]
    items = {"answer": column(prose.__getitem__, 30), "attachment": column(other.__getitem__, 30)}
    asked = {"question": column("What is the answer to question {}?".format, 30)}
    sides = {"a": column(lambda k: LONG[: 200 + 40 * k], 30), "b": column("Short {}.".format, 30)}
    shows = {"form": asked | items, "one": items, "pair": asked | sides}
    one = StudyQuestion.of_choices(
        "Is the answer correct?", ["Pass", "Fail"], rubric="## How to judge\n\n*Be* strict."
    )
    forms = {
        "form": questions(),
        "one": one,
        "pair": StudyQuestion.of_pair("Which answer is better?", "a", "b"),
    }
    with browser_open() as browser:
        for kind, asked in forms.items():
            with (
                tempfile.TemporaryDirectory() as place,
                study_of(Path(place) / "s", Form.of(asked), shows[kind]) as study,
                served(study) as links,
            ):
                for size, (width, height) in SIZES.items():
                    for scheme in ("light", "dark"):
                        touch = width < 900
                        context = browser.new_context(
                            viewport={"width": width, "height": height},
                            color_scheme=scheme,
                            has_touch=touch,
                            is_mobile=touch,
                        )
                        window = context.new_page()
                        window.goto(links["Ann"])
                        settled(window)
                        window.screenshot(path=str(folder / f"{kind}-{size}-{scheme}-first.png"))
                        if kind == "one":
                            window.click(".foldrubric")
                        places = set()
                        for k in range(10 if scheme == "light" else 1):
                            settled(window)
                            box = window.locator(".submit").bounding_box()
                            first = window.locator(".choice").first.bounding_box()
                            places.add(
                                (round(box["x"]), round(box["y"]), round(first["x"]), round(first["y"]))
                            )
                            window.screenshot(path=str(folder / f"{kind}-{size}-{scheme}-{k}.png"))
                            window.click(".skip")
                            window.wait_for_timeout(100)
                        print(kind, size, scheme, "bar at", places)
                        for _ in range(10 if scheme == "light" else 1):
                            study.undo("Ann")
                        context.close()
                if kind == "form":
                    decide_and_watch(browser, study, links, folder)


def decide_and_watch(browser, study, links, folder: Path) -> None:
    """Show an adjudicator's page and the owner's."""
    for who, right, tone in (("Ann", "Pass", 6), ("Bob", "Fail", 3)):
        while (item := study.next_item(who)) is not None:
            study.submit(
                who, item.id, {"right": right, "modes": ["Invented"], "tone": tone}, note=f"{who} thinks so"
            )
    address = links["Ann"].split("/a/")[0]
    for size, (width, height) in SIZES.items():
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            window = context.new_page()
            window.goto(links["Ann"])
            settled(window)
            window.screenshot(path=str(folder / f"decide-{size}-{scheme}.png"))
            window.goto(owner_link(study, address))
            window.wait_for_selector("section")
            window.screenshot(path=str(folder / f"owner-{size}-{scheme}.png"), full_page=True)
            window.goto(address + "/a/nobody/")
            window.screenshot(path=str(folder / f"dead-{size}-{scheme}.png"))
            context.close()


def for_the_tutorial(figures: Path) -> None:
    """Make the pictures of the tutorial, of the study that it makes (`--docs`)."""
    page = (ROOT / "docs/tutorials/study-with-a-team.md").read_text()
    sys.path.insert(0, str(ROOT / "docs"))
    from run_pages import rerun

    from stratal.study import open_study

    with tempfile.TemporaryDirectory() as place, browser_open() as browser:
        folder = Path(place)
        rerun(page.partition("## Let them label")[0], folder)
        with open_study(folder / "audit") as study:
            save_display(study, {"answer": "markdown"})
        with open_study(folder / "audit") as study, served(study) as links:

            def shown(name: str, link: str, width: int, height: int, wait: str, *keys: str) -> None:
                touch = width < 500
                context = browser.new_context(
                    viewport={"width": width, "height": height}, has_touch=touch, is_mobile=touch
                )
                window = context.new_page()
                window.goto(link)
                window.wait_for_selector(wait)
                for key in keys:
                    window.keyboard.press(key)
                window.wait_for_timeout(300)
                window.screenshot(path=str(figures / f"page-{name}.png"))
                context.close()

            shown("item", links["ann"], 1100, 640, ".item > *", "2", "4", "Shift+Tab")
            shown("phone", links["ann"], 390, 700, ".item > *")
            for turn in range(60):
                for k, name in enumerate(study.annotators):
                    if (item := study.next_item(name)) is not None:
                        right = "Pass" if (len(item.id) + turn + k) % 5 else "Fail"
                        given = {"correct": right, "clear": 3 + (turn + k) % 3, "mistake": ["Something else"]}
                        study.submit(
                            name, item.id, given, note="see the steps" if turn % 9 == 0 else "", seconds=6
                        )
                if turn == 12:
                    address = links["ann"].split("/a/")[0]
                    shown("owner", owner_link(study, address), 1100, 900, "section")
            deciding = next(name for name in study.adjudicators if study.assigned_disagreements(name)[0])
            shown("decide", links[deciding], 1100, 640, ".item > *")


ROOT = Path(__file__).parents[2]

if __name__ == "__main__":
    if sys.argv[1:] == ["--docs"]:
        for_the_tutorial(ROOT / "docs/figures")
    else:
        main(Path(sys.argv[1]))
