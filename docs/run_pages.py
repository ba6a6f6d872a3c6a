"""Runs the tutorials and the pages of docs/alternatives, and writes what they print into them again.

`python docs/run_pages.py [PAGE…]`. On a page a block `python` is run, and the block `text` right after it is what it
printed; in a block `console` each line `$ stratal …` is run, and what follows it is what it printed. A line `…`
stands for lines left out, and stays. Steps with tabs (`=== "Command"`, `=== "Python"`, their blocks indented by four
spaces) can be followed in either way: the page is run once for each, without the tabs of the other, in a folder of its
own. A test fails if a page does not print what it says.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = re.compile(
    r"^(?P<indent>(?: {4})?)```(?P<kind>python|console)\n(?P<source>.*?)^(?P=indent)```\n"
    r"(?:\n(?P=indent)```text\n(?P<printed>.*?)^(?P=indent)```\n)?",
    re.MULTILINE | re.DOTALL,
)
TAB_NAME = re.compile(r'^=== "([^"]*)"$', re.MULTILINE)
TABS = re.compile(r'^=== "(?P<name>[^"]*)"\n\n(?P<content>(?: {4}.*\n|\n(?= {4}|\n))*)', re.MULTILINE)
WIDTH = "92"

# Exit statuses of FAIL or ALARM, and of UNDECIDED.
VERDICTS = (4, 5)


def rerun(page: str, folder: Path) -> str:
    """Return a page with the outputs that its blocks have when run, one after another, in a folder.

    The first way through tabs is run in the folder itself, every other in a folder of its name in it.
    """
    ways = list(dict.fromkeys(found["name"] for found in TABS.finditer(page))) or [""]
    for way in ways:
        place = folder if way == ways[0] else folder / way
        place.mkdir(exist_ok=True)
        page = run_way(page, place, way)
    return page


def run_way(page: str, folder: Path, way: str) -> str:
    """Return a page after its blocks were run, except those in tabs of another name."""
    namespace: dict[str, Any] = {"__name__": "__main__"}

    def run(found: re.Match[str]) -> str:
        names = re.findall(TAB_NAME, page[: found.start()]) if found["indent"] else []
        if names and names[-1] != way:
            return found[0]
        return run_block(found, namespace)

    with inside(folder):
        return BLOCK.sub(run, page)


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, printing to a terminal of a fixed width without colours."""
    before, kept = Path.cwd(), dict(os.environ)
    os.environ |= {"COLUMNS": WIDTH, "LINES": "40", "NO_COLOR": "1", "TERM": "dumb"}
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(kept)


def run_block(found: re.Match[str], namespace: dict[str, Any]) -> str:
    """Return one block with what it prints, indented as it is."""
    indent = found["indent"]
    source = without(indent, found["source"])
    printed = None if found["printed"] is None else without(indent, found["printed"])
    if found["kind"] == "console":
        parts = [part for part in re.split(r"^(?=\$ )", source, flags=re.MULTILINE) if part]
        block = "```console\n" + "".join(map(run_command, parts)) + "```\n" + trailing(printed)
    else:
        said = capture(lambda: exec(compile(source, "<page>", "exec"), namespace))
        shown = trailing(shortened(said, printed or "") if said else printed)
        block = f"```python\n{source}```\n" + shown
    return textwrap.indent(block, indent)


def without(indent: str, text: str) -> str:
    """Return a text without the indentation of its tab."""
    return re.sub(f"^{indent}", "", text, flags=re.MULTILINE)


def trailing(printed: str | None) -> str:
    """Return the block of text with what was printed; nothing if there is none."""
    return "" if printed is None else f"\n```text\n{printed}```\n"


def run_command(part: str) -> str:
    """Return one command with what it prints; other commands than ours are left as they are."""
    lines = part.splitlines(keepends=True)
    last = next(number for number, line in enumerate(lines) if not line.rstrip().endswith("\\"))
    typed = "".join(lines[: last + 1])
    words = shlex.split(typed.removeprefix("$ ").replace("\\\n", " "), comments=True)
    if words[:1] != ["stratal"]:
        return part
    return typed + shortened(capture(lambda: run_stratal(words[1:])), "".join(lines[last + 1 :]))


def run_stratal(arguments: list[str]) -> None:
    """Run the command in this process and print what it says; a mistake ends the run, a verdict does not."""
    from click.testing import CliRunner

    from stratal.cli.application import app

    done = CliRunner().invoke(app, arguments)
    if done.exit_code not in (0, *VERDICTS):
        raise RuntimeError(f"stratal {shlex.join(arguments)}: {done.output}") from done.exception
    print(done.output, end="")


def capture(action: Any) -> str:
    """Return what an action prints, without spaces at the ends of lines."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        action()
    said = "".join(line.rstrip() + "\n" for line in stream.getvalue().splitlines())
    return said.strip("\n") + "\n" if said.strip() else ""


def shortened(said: str, shown: str) -> str:
    """Return what the page shows if that is `said` with lines left out where it has `…`, else all that was said."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line) + r"\n" for line in shown.splitlines()
    )
    return shown if shown and re.fullmatch(pattern, said) else said


def tab_sets(page: str) -> list[dict[str, str]]:
    """Return the tabs of a page, name to content, of each place where tabs follow each other."""
    sets: list[dict[str, str]] = []
    end = None
    for found in TABS.finditer(page):
        if found.start() != end:
            sets.append({})
        if found["name"] in sets[-1]:
            raise ValueError(f"tabs that follow each other are one set: put text before the second {found['name']!r}")
        sets[-1][found["name"]] = without(" " * 4, found["content"])
        end = found.end() + len(re.match(r"\n*", page[found.end() :])[0])
    return sets


def one_way(page: str, way: str) -> str:
    """Return a page with the blocks of one way only, without tabs."""
    return TABS.sub(lambda found: without(" " * 4, found["content"]) if found["name"] == way else "", page)


def main(arguments: list[str]) -> None:
    """Write the pages again."""
    docs = Path(__file__).parent
    pages = [Path(argument) for argument in arguments] or run_pages(docs)
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            again = rerun(page.read_text(), Path(folder))
        print("changed " if again != page.read_text() else "the same", page)
        page.write_text(again)


def run_pages(docs: Path) -> list[Path]:
    """Return the pages whose printed outputs are kept true."""
    return [*sorted(docs.glob("tutorials/*.md")), *sorted(docs.glob("alternatives/*.md")), docs / "start" / "first-estimate.md"]


if __name__ == "__main__":
    main(sys.argv[1:])
