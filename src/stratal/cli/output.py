"""Print results of commands: pages, one JSON object, and the progress of activities of over a second."""

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


# Characters that move the cursor, end a line or change the direction of text, and that JSON does not escape.
_CONTROL_CHARACTERS = "\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_ESCAPED_IN_JSON = re.compile(f"[{_CONTROL_CHARACTERS}]")
# All control characters except line ends, and lone surrogates, which cannot be encoded.
_ESCAPED_IN_TEXT = re.compile(f"[\x00-\x09\x0b-\x1f\ud800-\udfff{_CONTROL_CHARACTERS}]")

# Lines that the command has printed.
PRINTED_LINES: list[str] = []

# Minimum width of wrapped sentences, in characters.
_MIN_WIDTH = 40

# Seconds before the progress of a command is printed, and between updates.
PROGRESS_SECONDS = 1.0


class Result:
    """The result of a command: its JSON object, the text without --json, and the exit status.

    Parameters
    ----------
    described : dict
        The JSON object.
    parts
        A line of text, a tuple with the words of the next command (printed as `Next: stratal …`), a page
        (`report.text.Page`), None, a list of these, or a function of `described` that returns one.
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
            # A reader such as `head` may close the pipe early. The exit status of a verdict is kept.
            if not self.status:
                raise
        if self.status:
            raise SystemExit(self.status)

    def _print(self, part: Any) -> None:
        """Print a part of the result; see the parameter `parts`."""
        if isinstance(part, list):
            for entry in part:
                self._print(entry)
        elif isinstance(part, str):
            print_text(part)
        elif isinstance(part, tuple):
            line = shlex.join(["stratal", *map(str, part)])
            if not reads_standard_input(part):
                print_text("", f"Next: {line}")
            elif part[0] in READING_COMMANDS:
                # Standard input has been read, so that the command needs it again.
                print_text("", f"Next, with the same input: {line}")
        elif callable(part):
            self._print(part(self.described))
        elif part is not None:
            print_sentences([keywords_to_options(line) for line in part.lines])
            for table in part.tables:
                print_table(table)
            if part.notes:
                print_text("")
                print_sentences([keywords_to_options(note) for note in part.notes])


def print_json(result: JsonDict) -> None:
    """Print one JSON object."""
    is_utf8 = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    # Some terminals of Windows cannot print all characters.
    text = hide_stored_path(json.dumps(result, indent=2, ensure_ascii=not is_utf8, allow_nan=False))
    print(_ESCAPED_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def escape_unencodable(stream: object) -> None:
    """Make a stream write characters that its encoding lacks as escapes, instead of raising an error."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def escape_control_characters(text: str) -> str:
    r"""Return a text with control characters escaped, so that data cannot move the cursor of a terminal."""
    shown = hide_stored_path(text)
    return _ESCAPED_IN_TEXT.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), shown)


def keywords_to_options(message: str, options: Collection[str] = ()) -> str:
    """Return a message of the library in which options of the command replace keywords of Python.

    Text in quotes comes from the user and is unchanged.

    Parameters
    ----------
    message : str
        It contains keywords with their option, such as `id='row' (--id row)`, or keywords alone.
    options : collection of str
        The options of all commands, which replace keywords alone.
    """

    def replacement(match: re.Match[str]) -> str:
        # `--option VALUE (keyword=…)`
        if match["option"] is not None:
            return match["option"]
        # A text in quotes.
        if match["keywords"] is None:
            return match[0]
        # `keyword=value (--option VALUE)`
        if match["options"] is not None:
            return match["options"]
        keywords = list(_KEYWORD.finditer(match["keywords"]))
        # `keyword=, --option`: the option is sufficient.
        if match["comma"] is not None:
            return match["keywords"][: keywords[-1].start()]
        # `keyword=value` without an option.
        if match["end"] is not None:
            return "".join(map(keyword_as_option, keywords))
        return match[0]

    def keyword_as_option(match: re.Match[str]) -> str:
        option = "--" + match["name"].replace("_", "-")
        if match["value"] == "=(lowest, highest)" and match["name"] == "bounds":
            return f"{match['between']}--bounds LOW,HIGH"
        # The value is at most the punctuation of the sentence, such as `keyword=.`
        has_no_value = not match["value"].strip("=.:")
        ending = match["value"].removeprefix("=")
        if has_no_value and option in options:
            return f"{match['between']}{option}{ending}"
        return match[0]

    return _MESSAGE.sub(replacement, message)


# A keyword of Python with its value, and the parts of a message that are rewritten. Every part is possessive
# or excludes its own end, so that the time is linear in the length of the text, which may contain a text of
# the user.
_NAME = r"[a-z_]++"
_VALUE = r"=(?>\([^()]*+\)|\[[^\[\]]*+\]|\{[^{}]*+\}|'[^']*+'|[^\s,;()]*+)"
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
    """Return the result of `estimate` as Markdown; sentences and notes name options instead of keywords."""
    from stratal.report.document import answer_markdown

    lines = [keywords_to_options(line) for line in page.lines]
    notes = [keywords_to_options(note) for note in page.notes]
    return answer_markdown(result, replace(page, lines=lines, notes=notes))


def print_table(table: ReportTable) -> None:
    """Print a table after an empty line: text to the left, numbers to the right."""
    from stratal.report.text import table_text

    print("", *([escape_control_characters(table.title)] if table.title else []), sep="\n")
    print(indent(escape_control_characters(table_text(replace(table, title=""))), " "))


def print_sentences(lines: Sequence[str]) -> None:
    """Print sentences; a terminal gets lines of its width, broken between words."""
    if not sys.stdout.isatty():
        print_text(*lines)
        return
    width = max(get_terminal_size().columns, _MIN_WIDTH)
    for line in lines:
        PRINTED_LINES.append(line)
        if len(line) > width:
            line = "\n".join(wrap(line, width, break_long_words=False, break_on_hyphens=False))
        print(escape_control_characters(line))


def print_text(*lines: str) -> None:
    """Print lines, with control characters escaped."""
    for line in lines:
        PRINTED_LINES.append(line)
        print(escape_control_characters(line))


@contextmanager
def show_progress(activity: str) -> Iterator[Callable[[int, int], None] | None]:
    """Print the progress of an activity of over a second on standard error, if that is a terminal.

    Yield the function that receives the number of finished parts and the number of all parts.
    """
    if not sys.stderr.isatty():
        yield None
        return
    start = monotonic()
    text = activity
    ended = threading.Event()

    def advance(done: int, total: int) -> None:
        nonlocal text
        text = f"{activity} {done / max(total, 1):.0%}"

    def show() -> None:
        line = ""
        with suppress(OSError, ValueError):  # a terminal that was closed
            while not ended.wait(PROGRESS_SECONDS):
                line = f"{text}, {monotonic() - start:.0f} s"
                print(f"\r{line}", end="", file=sys.stderr, flush=True)
            print(f"\r{' ' * len(line)}\r" if line else "", end="", file=sys.stderr, flush=True)

    printer = threading.Thread(target=show, daemon=True)
    printer.start()
    try:
        yield advance
    finally:
        ended.set()
        printer.join()


def new_folder_name(name: str) -> str:
    """Return the name of a folder that does not exist or is empty: `audit`, `audit-2`, …"""
    number = 1
    folder = Path(name)
    while folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        number += 1
        folder = Path(f"{name}-{number}")
    return f"{folder}/"
