"""Takes the pictures of the product: `python docs/screenshots.py`, with Chromium and the extras demo, web and report.

In an empty folder it types the lines of the README, opens the page that annotators see and the report, and saves what a
person sees: terminal, page and report, in the width of a phone, light and dark, for the home page, and at a desk, next to
each other, for the README.
"""

from __future__ import annotations

import html
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser import browser_open, served  # noqa: E402

from stratal.study import open_study  # noqa: E402

PLACE = ROOT / "docs" / "figures"
PHONE, DESK = {"width": 390, "height": 560}, {"width": 1000, "height": 640}
NAMES = ("terminal", "labelling", "report")
STUDY = "stratal study new audit/ --output study/ --question 'Is the answer right?' --choices Right,Wrong --annotators ann"
LINES = (
    "stratal demo --output demo/",
    "stratal plan demo/predictions.parquet --proxy confidence --predicts right --budget 100 --output plan.json",
    "stratal draw plan.json --seed 7 --show image,predicted --output audit/",
    "stratal demo --label audit/to_label.csv",
    "stratal estimate audit/sample.parquet audit/to_label.csv",
    "stratal report audit/sample.parquet audit/to_label.csv --output report.html",
)
SHOWN = {1: 4, 4: 3}
"""Lines of the terminal that are shown with what they print, and how much of it."""

CAPTIONS = ("Plan and draw", "Label", "Read the answer")

STYLE = """
:root { --paper: #fff; --ink: #1d2433; --faint: #5d667a; --key: #0b6e63; --edge: #d5dae3 }
:root.dark { --paper: #14181f; --ink: #e6e9ef; --faint: #9aa4b5; --key: #5fd1c1; --edge: #2b3340 }
body { margin: 0; background: var(--paper); color: var(--ink); font: 19px/1.5 "DejaVu Sans Mono", monospace }
pre { margin: 0; padding: 32px 36px; font: inherit; white-space: pre-wrap } b { color: var(--key) } i { color: var(--faint); font-style: normal }
@media (max-width: 500px) { body { font-size: 12.5px } pre { padding: 18px 16px } }
.row { display: flex; gap: 28px; padding: 24px; width: 2352px; background: #fff } figure { margin: 0; flex: 1; font: 600 34px/1.3 "DejaVu Sans", sans-serif }
img { width: 100%; margin-top: 14px; border: 2px solid var(--edge); border-radius: 14px; display: block }
"""


def run(words: str, folder: Path) -> str:
    """Type one line in a folder and return what it prints."""
    command = [sys.executable, "-m", *shlex.split(words)]
    environment = os.environ | {"COLUMNS": "74"}
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def terminal(printed: list[str]) -> str:
    """Return the terminal as HTML: each line, and the first lines of what it printed."""
    parts = []
    for number, (words, text) in enumerate(zip(LINES, printed, strict=True)):
        parts.append(f"<i>$</i> <b>{html.escape(words)}</b>")
        if number in SHOWN:
            shown = [line for line in text.splitlines() if line][: SHOWN[number]]
            parts.append(html.escape("\n".join(shown)) + "\n")
    return f"<pre>{chr(10).join(parts[:-1])}</pre>"


def page(body: str, dark: bool = False) -> str:
    """Return a whole page."""
    return f"<!doctype html><html class={'dark' if dark else 'light'}><meta charset=utf-8><style>{STYLE}</style>{body}"


def main() -> None:
    """Type, label, and take every picture."""
    folder = Path(tempfile.mkdtemp())
    printed = [run(words, folder) for words in LINES]
    run(STUDY, folder)
    with browser_open() as browser, open_study(folder / "study") as study, served(study) as links:

        def take(size: dict[str, int], scheme: str, target: Path, ending: str) -> None:
            window = browser.new_page(viewport=size, color_scheme=scheme, device_scale_factor=2)
            window.set_content(page(terminal(printed), dark=scheme == "dark"))
            window.screenshot(path=str(target / f"terminal{ending}.png"))
            window.goto(links["ann"])
            window.wait_for_selector("#root:not([aria-busy]) .item > *")
            window.screenshot(path=str(target / f"labelling{ending}.png"))
            window.goto((folder / "report.html").as_uri())
            window.screenshot(path=str(target / f"report{ending}.png"))

        take(PHONE, "light", PLACE, "-light")
        take(PHONE, "dark", PLACE, "-dark")
        take(DESK, "light", folder, "")
        names = [(folder / f"{name}.png").as_uri() for name in NAMES]
        figures = zip(names, CAPTIONS, strict=True)
        row = "".join(f"<figure>{number}. {words}<img src='{name}'></figure>" for number, (name, words) in enumerate(figures, 1))
        (folder / "row.html").write_text(page(f"<div class=row>{row}</div>"))
        window = browser.new_page(viewport={"width": 2400, "height": 600})
        window.goto((folder / "row.html").as_uri())
        window.locator(".row").screenshot(path=str(PLACE / "product.png"))


if __name__ == "__main__":
    main()
