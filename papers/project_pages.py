"""The part of a docs page that a reproduction writes: claims, the tables that matter, and a gallery."""

from __future__ import annotations

import shutil
from itertools import zip_longest
from pathlib import Path
from typing import Any

from papers.page import Page, digest, file_name, libraries, write_numbers

MARK = "<!-- Below this line the page is written by `make papers`. -->"

TABLES = {
    "fogliato": ("Table 1",),
    "kumar-raj": ("Populations", "Readings of OPT-A1"),
    "stratppi": ("Figure 1 at", "galaxies:", "pandalm_pairwise: %", "On equal terms"),
    "open-questions": ("",),
}
"""Paper → beginnings of the titles of the tables that its docs page shows."""

FIGURES = {
    "stratppi": ("figure_1", "figure_2_galaxies", "figure_2_pandalm", "figure_2_gsm8k", "figure_2_frank")
}
"""Paper → beginnings of the figures that its gallery shows, where it is not all of them."""


STORED = "numbers"
"""Folder beside the pages that has the numbers of each, and those of its quick run."""


def write_project_page(page: Page, quick: Page, paper: str, folder: Path) -> Path:
    """Replace what follows the mark in `folder/PAPER.md`, the figures, and the numbers that are stored.

    Parameters
    ----------
    page : Page
        Written already.
    quick : Page
        The quick run with the same seed and data, which the tests repeat.
    paper : str
    folder : path
        `docs/papers`.

    Returns
    -------
    path
        The page.
    """
    target = folder / f"{paper}.md"
    head = target.read_text(encoding="utf-8").split(MARK)[0].rstrip()
    stored = store_quick(quick, paper, folder)
    write_numbers(stored.with_name(f"{paper}.json"), page.numbers())
    stamp = f"{page.stamp()} Quick run, repeated by the tests: `{digest(quick.numbers())}`."
    parts = [head, MARK, *page.opening, stamp]
    if page.claims:
        parts += ["## The paper says, we get", LEGEND, page.claims_table()]
    parts += [section for section in page.sections if _wanted(section, TABLES[paper])]
    parts += ["## Gallery", *_gallery(page, paper, folder / "figures")]
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return target


def store_quick(quick: Page, paper: str, folder: Path) -> Path:
    """Store the numbers of a quick run, with its seed and libraries, and return their file."""
    path = folder / STORED / f"{paper}-quick.json"
    path.parent.mkdir(exist_ok=True)
    return write_numbers(path, {"seed": quick.seed, "libraries": libraries(), **quick.numbers()})


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return which claims and tables of two runs differ.

    Draws follow from the seed and sums are rounded to ten digits, so that two machines with the same
    libraries write the same numbers.

    Examples
    --------
    >>> old = {"claims": [{"where": "§1", "values": [[1.0, 0.1]]}], "tables": {"t": [["0.50"]]}}
    >>> new = {"claims": [{"where": "§1", "values": [[1.01, 0.1]]}], "tables": {"t": [["0.51"]]}}
    >>> differences(old, new)
    ["{'where': '§1', 'values': [[1.0, 0.1]]} → {'where': '§1', 'values': [[1.01, 0.1]]}", 'table t']
    """
    claims = zip_longest(old["claims"], new["claims"])
    found = [f"{one} → {other}" for one, other in claims if one != other]
    names = dict.fromkeys([*old["tables"], *new["tables"]])
    return found + [f"table {n}" for n in names if old["tables"].get(n) != new["tables"].get(n)]


LEGEND = (
    "Off by: the distance of our number from the printed range or, inside a one-sided range, the remaining "
    "room. ±: its Monte Carlo standard error. Allowed: the tolerance, which is the precision of the printed "
    "number. If a number exceeds the tolerance by less than two standard errors, the verdict is open."
)


def _wanted(section: str, starts: tuple[str, ...]) -> bool:
    title = section.removeprefix("## ")
    return "![" not in section and any(title.startswith(start) for start in starts)


def _gallery(page: Page, paper: str, figures: Path) -> list[str]:
    figures.mkdir(exist_ok=True)
    shown = []
    for section in page.sections:
        if "![" not in section:
            continue
        title = section.splitlines()[0].removeprefix("## ")
        name = section.split("](")[1].split(")")[0]
        if not any(name.startswith(start) for start in FIGURES.get(paper, ("",))):
            continue
        copy = f"{paper}-{file_name(Path(name).stem)}.png"
        shutil.copyfile(page.directory / name, figures / copy)
        words = section.split(")", 1)[1].strip() if section.rstrip()[-1] != ")" else ""
        shown.append(f"### {title}\n\n![{title}](figures/{copy})" + (f"\n\n{words}" if words else ""))
    return shown
