"""Tutorials and the first estimate print what they say, by command and in Python, and are notebooks."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def load(name):
    """A module of the documentation, which is not a package."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS))


run_pages = load("run_pages")
PAGES = run_pages.run_pages(DOCS)
GUIDED = [page for page in PAGES if page.parent.name in ("tutorials", "start") and page.stem != "index"]
"""Pages whose steps are shown in both ways; those of docs/alternatives are about packages of Python."""

COMMAND_ONLY = {
    "demo": "writes the files of the demonstration",
    "doctor": "looks at a file before anything is typed",
    "plan --select": "computes the number of labels; in Python, `select` is the first round itself",
}
"""Commands outside of tabs, and why there is no other way to show their step."""

LONG = ("models", "history", "trust-a-judge")
"""Pages that take seconds to print what nearly the same commands print on the others."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.stem in LONG else []) for page in PAGES],
    ids=lambda page: page.stem,
)
def test_a_page_prints_what_it_says(page, tmp_path):
    text = page.read_text()

    remedy = f"run: python docs/run_pages.py {page.relative_to(DOCS.parent)}"
    assert run_pages.rerun(text, tmp_path) == text, remedy


def test_a_changed_number_is_seen(tmp_path):
    command = "stratal plan --population-size 1000 --rate 0.9 --budget 100"
    page = f"```console\n$ {command}\n…\nNo such line\n…\n```\n"

    assert "No such line" not in run_pages.rerun(page, tmp_path)
    assert run_pages.rerun("```python\nprint(2 + 2)\n```\n\n```text\n5\n```\n", tmp_path) == (
        "```python\nprint(2 + 2)\n```\n\n```text\n4\n```\n"
    )


def test_lines_left_out_stay_left_out(tmp_path):
    page = "```python\nprint('one', 'two', 'three', sep=chr(10))\n```\n\n```text\none\n…\nthree\n```\n"

    assert run_pages.rerun(page, tmp_path) == page


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "index"], ids=lambda page: page.stem)
def test_a_page_is_a_notebook(page):
    nbformat = pytest.importorskip("nbformat")

    notebooks = load("notebooks")
    made = nbformat.reads(notebooks.notebook(page.read_text()), as_version=4)
    text = run_pages.one_way(page.read_text(), "Python")
    code = [cell.source for cell in made.cells if cell.cell_type == "code"]
    assert '=== "' not in text
    assert sum(cell.startswith("!stratal ") for cell in code) == text.count("\n$ stratal ")
    assert [cell for cell in code if not cell.startswith("!")] == [
        block.rstrip() for kind, block in notebooks.BLOCK.findall(text) if kind == "python"
    ]


TABBED = """\
```python
from pathlib import Path

print(sorted(path.name for path in Path().iterdir()))
```

=== "Command"

    ```python
    Path("by-command").touch()
    ```

=== "Python"

    ```python
    Path("in-python").touch()
    print("written")
    ```

    ```text
    not written
    ```

After.

```python
assert len(list(Path().glob("*-*"))) == 1
```
"""


def test_each_way_through_tabs_is_run_without_the_other(tmp_path):
    page = run_pages.rerun(TABBED, tmp_path)

    assert page == TABBED.replace("iterdir()))\n```\n", "iterdir()))\n```\n\n```text\n[]\n```\n").replace(
        "    not written", "    written"
    )
    assert (tmp_path / "by-command").exists()
    assert (tmp_path / "Python" / "in-python").exists()


def test_tabs_that_follow_each_other_are_one_set():
    page = f"{TABBED}\n{TABBED}"
    tabs = '=== "Command"\n\n    a\n\n=== "Python"\n\n    b\n'

    assert [list(tabs) for tabs in run_pages.tab_sets(page)] == [["Command", "Python"]] * 2
    assert run_pages.tab_sets(page)[0]["Command"].startswith("```python\nPath(")
    with pytest.raises(ValueError, match="put text before the second 'Command'"):
        run_pages.tab_sets(f"{tabs}\n{tabs}")


def commands_of(text):
    """The commands of stratal in a page, with a line that goes on in the next as one."""
    lines = re.findall(r"^\$ stratal (.*)$", text.replace("\\\n", " "), re.MULTILINE)
    return [line.split() for line in lines]


@pytest.mark.parametrize("page", GUIDED, ids=lambda page: page.stem)
def test_a_step_is_shown_by_command_and_in_python(page):
    text = page.read_text()
    tab_sets = run_pages.tab_sets(text)

    assert any(list(tabs) == ["Command", "Python"] for tabs in tab_sets)
    for tabs in tab_sets:
        assert list(tabs) in (["Command", "Python"], ["Python"])
    for words in commands_of(run_pages.TABS.sub("", text)):
        name = f"{words[0]} --select" if "--select" in words else words[0]
        assert name in COMMAND_ONLY, f"stratal {' '.join(words)}: show it in tabs"


def output_of(content):
    """What the blocks of a tab print."""
    consoles = re.findall(r"^```console\n(.*?)^```", content, re.MULTILINE | re.DOTALL)
    texts = re.findall(r"^```text\n(.*?)^```", content, re.MULTILINE | re.DOTALL)
    printed = [re.sub(r"^\$ (?:.*\\\n)*.*\n|^Next: .*\n", "", part, flags=re.MULTILINE) for part in consoles]
    return "".join([*printed, *texts])


def numbers_of(text):
    """The numbers that a text contains."""
    return set(re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text))


@pytest.mark.parametrize("page", GUIDED, ids=lambda page: page.stem)
def test_python_prints_the_numbers_of_the_command(page):
    compared = 0
    for tabs in run_pages.tab_sets(page.read_text()):
        if "Command" in tabs:
            python = numbers_of(output_of(tabs["Python"]))
            missing = python - numbers_of(output_of(tabs["Command"]))
            assert missing == set(), output_of(tabs["Python"])
            compared += len(python)

    assert compared >= 10


def test_a_number_that_differs_between_the_ways_is_seen():
    typed = "$ stratal estimate a.csv 7 \\\n    --level 8\n"
    content = f"```console\n{typed}94.7% of 1,497\n\nNext: stratal report 9\n```\n"

    assert numbers_of(output_of(content)) == {"94.7", "1,497"}
    assert numbers_of(output_of("```python\nprint(3)\n```\n\n```text\n94.8% of 1,497\n```\n")) == {
        "94.8",
        "1,497",
    }


def test_every_tutorial_is_on_the_list():
    listed = (DOCS / "tutorials" / "index.md").read_text()
    pages = {page.name for page in DOCS.glob("tutorials/*.md")} - {"index.md"}

    assert {name for name in pages if f"({name})" not in listed} == set()
