"""Tutorials as notebooks: a page's code becomes cells, its commands too, and what is printed their outputs."""

from __future__ import annotations

import re

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from run_pages import one_way

BLOCK = re.compile(r"^```(python|console|text|sh)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)


def notebook(page: str) -> str:
    """Return a page of Markdown as the text of a notebook.

    A block `python` is a cell and the block `text` after it what the cell prints; a line `$ …` of a block
    `console` is a cell `!…`. Of steps in tabs, the notebook has
    the Python way.
    """
    page = one_way(page, "Python")
    cells, end = [], 0
    for found in BLOCK.finditer(page):
        words = page[end : found.start()].strip()
        cells += [new_markdown_cell(words)] if words else []
        cells = add(cells, found[1], found[2])
        end = found.end()
    rest = page[end:].strip()
    cells += [new_markdown_cell(rest)] if rest else []
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)]
    made = new_notebook(cells=[nbformat.from_dict(cell) for cell in cells], metadata=kernel)
    nbformat.validate(made)
    return nbformat.writes(made) + "\n"


def add(cells: list, kind: str, text: str) -> list:
    """Return the cells with those of one more block."""
    if kind == "text" and cells and cells[-1]["cell_type"] == "code":
        cells[-1]["outputs"] = [new_output("stream", name="stdout", text=text)]
        return cells
    if kind == "python":
        return [*cells, new_code_cell(text.rstrip())]
    if kind == "console":
        return [
            *cells,
            *(command_cell(part) for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE) if part),
        ]
    return [*cells, new_markdown_cell(f"```{kind}\n{text}```")]


def command_cell(text: str) -> dict:
    """Return the cell of one command with what it printed; a line that ends in \\ goes on in the next."""
    lines = text.removeprefix("$ ").splitlines(keepends=True)
    last = next(
        (number for number, line in enumerate(lines) if not line.rstrip().endswith("\\")), len(lines) - 1
    )
    printed = "".join(lines[last + 1 :])
    outputs = [new_output("stream", name="stdout", text=printed)] if printed else []
    return new_code_cell("!" + "".join(lines[: last + 1]).rstrip(), outputs=outputs)
