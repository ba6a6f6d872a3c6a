"""Print results of commands: pages, one JSON object, and the progress of what takes over a second."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from textwrap import indent, wrap
from time import monotonic
from typing import TYPE_CHECKING, Any

from stratal.cli.standard_input import READING_COMMANDS, hide_stored_path, reads_standard_input
from stratal.errors import QUOTED
from stratal.protocols import JsonDict

if TYPE_CHECKING:
    from stratal.report.text import Page, ReportTable


_COMMANDING = "\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_IN_JSON = re.compile(f"[{_COMMANDING}]")
# What moves a cursor, ends a line or turns the direction of text; JSON escapes some of it.
_IN_TEXT = re.compile(f"[\x00-\x09\x0b-\x1f\ud800-\udfff{_COMMANDING}]")

# Lines that were printed.
SHOWN: list[str] = []

# Columns of a terminal below which sentences are not broken further.
_NARROWEST = 40

# Seconds before the progress of a command is printed, and from one time to the next.
PATIENCE = 1.0


class Result:
    """The result of a command: its JSON object, the text without --json, and the exit status.

    Parameters
    ----------
    described : dict
        The JSON object.
    parts
        A line of text, a tuple with the words of the next command, a page, a list of these, or a function of
        `described` that returns one.
    status : int
    """

    def __init__(self, described: JsonDict, *parts: object, status: int = 0) -> None:
        self.described = described
        self.parts = parts
        self.status = status

    def show(self, *, as_json: bool) -> None:
        """Print it, and end with its exit status if that is not 0."""
        try:
            if as_json:
                print_json(self.described)
            else:
                self._print(list(self.parts))
        except BrokenPipeError:
            # The reader left before the end, as `head` does: a verdict is the exit status all the same.
            if not self.status:
                raise
        if self.status:
            raise SystemExit(self.status)

    def _print(self, part: Any) -> None:
        if isinstance(part, list):
            for one in part:
                self._print(one)
        elif isinstance(part, str):
            print_text(part)
        elif isinstance(part, tuple):
            line = shlex.join(["stratal", *map(str, part)])
            if not reads_standard_input(part):
                print_text("", f"Next: {line}")
            elif part[0] in READING_COMMANDS:
                # It does not run as it is, since its input has been read.
                print_text("", f"With the same input again: {line}")
        elif callable(part):
            self._print(part(self.described))
        elif part is not None:
            print_sentences(part.lines)
            for table in part.tables:
                print_table(table)
            if part.notes:
                print_text("")
                print_sentences([in_options(note) for note in part.notes])


def print_json(result: JsonDict) -> None:
    """Print one JSON object."""
    plain = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
    text = hide_stored_path(json.dumps(result, indent=2, ensure_ascii=plain, allow_nan=False))
    print(_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def printable(stream: object) -> None:
    """Let a stream write what its encoding lacks as escapes, instead of failing."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def visible(text: str) -> str:
    r"""Return a text with control characters escaped, so that data cannot move the cursor of a terminal."""
    shown = hide_stored_path(text)
    return _IN_TEXT.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), shown)


def in_options(message: str, options: Collection[str] = ()) -> str:
    """Return a message with the options of commands where the library speaks of Python's keywords.

    What stands in quotes is the user's, and stays as it is.

    Parameters
    ----------
    message : str
        In which `id='row' (--id row)` says both.
    options : collection of str
        All that any command has, for keywords alone.
    """

    def in_words_of_the_command(match: re.Match[str]) -> str:
        if match["option"] is not None:
            return match["option"]
        if match["keywords"] is None:  # a text in quotes
            return match[0]
        if match["options"] is not None:
            return match["options"]
        keywords = list(_KEYWORD.finditer(match["keywords"]))
        if match["comma"] is not None:  # `keyword=, --option`: the option says it all
            return match["keywords"][: keywords[-1].start()]
        if match["end"] is not None:
            return "".join(map(one_keyword, keywords))
        return match[0]

    def one_keyword(match: re.Match[str]) -> str:
        option = "--" + match["name"].replace("_", "-")
        if match["value"] == "=(lowest, highest)" and match["name"] == "bounds":
            return f"{match['between']}--bounds LOW,HIGH"
        is_alone = not match["value"].strip("=.:")
        ending = match["value"].removeprefix("=")
        if is_alone and option in options:
            return f"{match['between']}{option}{ending}"
        return match[0]

    return _MESSAGE.sub(in_words_of_the_command, message)


# A keyword of Python with its value. Every part is possessive or excludes its own end, so that the time
# is linear in the length of the text, whatever users wrote into it.
_NAME = r"[a-z_]++"
_VALUE = r"=(?>\([^()]*+\)|\{[^{}]*+\}|'[^']*+'|[^\s,;()]*+)"
_BETWEEN = r"(?:, | or | and )"
_KEYWORD = re.compile(rf"(?P<between>{_BETWEEN}?)(?<![a-z_])(?P<name>{_NAME})(?P<value>{_VALUE})")
_MESSAGE = re.compile(
    rf"{QUOTED}"
    r"|(?<![-\w])(?P<option>--[a-z][a-z-]*+ [^\s()]++) \([a-z_]++=[^()]*+\)"
    rf"|(?<![\w'\"-])(?P<keywords>{_NAME}{_VALUE}(?:{_BETWEEN}{_NAME}{_VALUE})*+)"
    r"(?: \((?P<options>--[^()]*+)\)|(?P<comma>, (?=--))|(?P<end>(?!\()))?",
    re.DOTALL,
)


def markdown_text(result: JsonDict, page: Page) -> str:
    """Return an answer as Markdown; its notes have the names of options."""
    from stratal.report.document import answer_markdown

    return answer_markdown(result, replace(page, notes=[in_options(note) for note in page.notes]))


def print_table(table: ReportTable) -> None:
    """Print a table: text to the left, numbers to the right."""
    from stratal.report.text import table_text

    print("", *([visible(table.title)] if table.title else []), sep="\n")
    print(indent(visible(table_text(replace(table, title=""))), " "))


def print_sentences(lines: Sequence[str]) -> None:
    """Print sentences; a terminal gets lines of its width, broken between words."""
    if not sys.stdout.isatty():
        print_text(*lines)
        return
    width = max(get_terminal_size().columns, _NARROWEST)
    for line in lines:
        SHOWN.append(line)
        if len(line) > width:
            line = "\n".join(wrap(line, width, break_long_words=False, break_on_hyphens=False))
        print(visible(line))


def print_text(*lines: str) -> None:
    """Print lines as they are, but for what moves the cursor."""
    for line in lines:
        SHOWN.append(line)
        print(visible(line))


@contextmanager
def show_progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Say on standard error, if it is a terminal, what takes over a second, how much is done, and since when.

    What it yields is told how many parts are finished, and of how many.
    """
    if not sys.stderr.isatty():
        yield None
        return
    start = monotonic()
    progress_text = [what]
    ended = threading.Event()

    def advance(done: int, total: int) -> None:
        progress_text[0] = f"{what} {done / max(total, 1):.0%}"

    def show() -> None:
        line = ""
        with suppress(OSError, ValueError):  # a terminal that was closed
            while not ended.wait(PATIENCE):
                line = f"{progress_text[0]}, {monotonic() - start:.0f} s"
                print(f"\r{line}", end="", file=sys.stderr, flush=True)
            print(f"\r{' ' * len(line)}\r" if line else "", end="", file=sys.stderr, flush=True)

    teller = threading.Thread(target=show, daemon=True)
    teller.start()
    try:
        yield advance
    finally:
        ended.set()
        teller.join()


def new_folder_name(name: str) -> str:
    """Return the name of a folder that does not exist or is empty: `audit`, `audit-2`, …"""
    number = 1
    folder = Path(name)
    while folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        number += 1
        folder = Path(f"{name}-{number}")
    return f"{folder}/"
