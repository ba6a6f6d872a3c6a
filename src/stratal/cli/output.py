"""What subcommands print: pages, one JSON object, a progress bar for what takes over a second."""

from __future__ import annotations

import json
import re
import shlex
import sys
import threading
import unicodedata
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from textwrap import indent
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from stratal.report.text import Page, Table


_COMMANDING = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What JSON does not escape though it moves a cursor, ends a line or turns the direction of text."""

PATIENCE = 1.0
"""Seconds before a progress bar is shown."""


class Result:
    """What a command found: its JSON object, what is printed without --json, and the exit status.

    Parameters
    ----------
    found : dict
    parts
        A line of text, a tuple of the words of the command to type next, a page, several of these in a list,
        or what makes one of `found`.
    status : int

    Examples
    --------
    >>> Result({"n": 3}, "3 units", ("plan", "p.csv")).show(as_json=False)
    3 units
    <BLANKLINE>
    Next: stratal plan p.csv
    """

    def __init__(self, found: dict[str, Any], *parts: Any, status: int = 0) -> None:
        self.found, self.parts, self.status = found, parts, status

    def show(self, *, as_json: bool) -> None:
        """Print it, and end with its exit status if that is not 0."""
        if as_json:
            print_json(self.found)
        else:
            self._print(list(self.parts))
        if self.status:
            raise SystemExit(self.status)

    def _print(self, part: Any) -> None:
        if isinstance(part, list):
            for one in part:
                self._print(one)
        elif isinstance(part, str):
            print_text(part)
        elif isinstance(part, tuple):
            print_text("", "Next: " + shlex.join(["stratal", *map(str, part)]))
        elif callable(part):
            self._print(part(self.found))
        elif part is not None:
            print_page(part)


def print_json(result: dict[str, Any]) -> None:
    """Print one JSON object.

    Examples
    --------
    >>> print_json({"n": 3})
    {
      "n": 3
    }
    """
    text = json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(result, indent=2, allow_nan=False)
    print("".join(map(_in_json, text)) if _COMMANDING.search(text) else text)


def _in_json(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if _COMMANDING.match(letter) else letter


def printable(stream: Any) -> None:
    """Let a stream write what its encoding lacks as escapes, instead of failing.

    Examples
    --------
    >>> import io
    >>> stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    >>> printable(stream)
    >>> stream.write("λ")
    1
    """
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")


def visible(text: str) -> str:
    r"""Return a text with control characters as escapes, so that no data moves the cursor or rings the bell.

    Examples
    --------
    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(_escaped(letter) if _is_command(letter) else letter for letter in text)


def in_options(message: str, options: Collection[str] = ()) -> str:
    """Return a message with the options of commands where the library speaks of Python's keywords.

    Parameters
    ----------
    message : str
        In which `id='row' (--id row)` says both.
    options : collection of str
        All that any command has, for keywords alone.

    Examples
    --------
    >>> in_options("Draw with groups= or show=.", {"--groups", "--show"})
    'Draw with --groups or --show.'
    >>> in_options("Give bounds=(0, 100) (--bounds 0,100), or n_strata=, by= (--strata, --by).")
    'Give --bounds 0,100, or --strata, --by.'
    >>> in_options("Map it: --map unsure= (mapping={'unsure': None}) for no answer.")
    'Map it: --map unsure= for no answer.'
    >>> in_options("recall:x,predicted=COL or data=", {"--predicted"})
    'recall:x,predicted=COL or data='
    """

    def option(found: re.Match[str]) -> str:
        name = "--" + found[1].replace("_", "-")
        return name if name in options else found[0]

    for both in _BOTH:
        message = both.sub(r"\1", message)
    message = message.replace("bounds=(lowest, highest)", "--bounds LOW,HIGH")
    return _KEYWORD.sub(option, message)


_GIVEN = r"\b[a-z_]+=(?:\([^()]*\)|\{[^{}]*\}|'[^']*'|[^\s,;()]*)"
"""A keyword of Python with its value."""

_BOTH = (
    re.compile(rf"(?:{_GIVEN}(?:, | or | and ))*{_GIVEN} \((--[^)]*)\)"),
    re.compile(rf"{_GIVEN}, (?=--)()"),
    re.compile(r"(--[a-z-]+ [^\s()]+) \([a-z_]+=[^()]*\)"),
)
_KEYWORD = re.compile(r"(?<![\w'\"-])([a-z_]+)=(?=[\s.,;:)]|$)")


def _is_command(letter: str) -> bool:
    control = unicodedata.category(letter) in ("Cc", "Cs") and letter != "\n"
    return control or _COMMANDING.match(letter) is not None


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def print_page(page: Page) -> None:
    """Print a page: its sentences, its tables, its notes.

    Examples
    --------
    >>> from stratal.report.text import Page, Table
    >>> print_page(Page(lines=["2 strata"], tables=[Table(header=["stratum", "units"], rows=[["low", 12]])]))
    2 strata
    <BLANKLINE>
     stratum  units
     low         12
    """
    print_text(*page.lines)
    for table in page.tables:
        print_table(table)
    if page.notes:
        print_text("", *page.notes)


def print_table(table: Table) -> None:
    """Print a table: text to the left, numbers to the right.

    Examples
    --------
    >>> from stratal.report.text import Table
    >>> print_table(Table(title="Strata", header=["stratum", "units"], rows=[["low", 12]]))
    <BLANKLINE>
    Strata
     stratum  units
     low         12
    """
    from stratal.report.text import table_text

    print("", *([visible(table.title)] if table.title else []), sep="\n")
    print(indent(visible(table_text(replace(table, title=""))), " "))


def print_text(*lines: str) -> None:
    """Print lines as they are.

    Examples
    --------
    >>> print_text("done")
    done
    """
    for line in lines:
        print(visible(in_options(line)))


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show a bar on standard error, if that is a terminal, once the block has taken over a second.

    Examples
    --------
    >>> with progress("reading"):
    ...     pass
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import TextColumn

    from stratal.tables.source import running_scan

    with _bar(what, TextColumn("{task.fields[rate]}")) as bar:

        def show() -> None:
            if bar is None:
                return
            bar.start()
            while not finished.wait(0.5):
                scan = running_scan()
                rate = None if scan is None else scan.rate()
                bar.update(bar.task_ids[0], rate="" if rate is None else _speed(rate))

        finished = threading.Event()
        timer = threading.Timer(PATIENCE, show)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            finished.set()
            timer.join()


def _speed(rate: float) -> str:
    return f"{rate / 1e6:.1f} million rows/s" if rate >= 1e5 else f"{rate:,.0f} rows/s"


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar of finished parts on standard error, if that is a terminal.

    Examples
    --------
    >>> with counting("simulating") as advance:
    ...     advance is None or callable(advance)
    True
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import MofNCompleteColumn

    with _bar(what, MofNCompleteColumn()) as bar:
        if bar is None:
            yield None
            return
        bar.start()
        yield lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total)


@contextmanager
def _bar(what: str, *more: ProgressColumn) -> Iterator[Progress | None]:
    """Make a bar that has not started; None where standard error is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    errors = Console(stderr=True)
    if not errors.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), *more, TimeElapsedColumn())
    bar = Progress(*columns, console=errors, transient=True)
    bar.add_task(what, total=None, rate="")
    try:
        yield bar
    finally:
        bar.stop()
