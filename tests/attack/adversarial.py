"""Text that users write, against every regular expression and everything that prints or rewrites text.

A regular expression that looks at a text again and again takes exponential or quadratic time: a label of 154
characters made `estimate` hang. Every one is tried with 10,000 characters that are made of its own pieces.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from tests.attack.damage import Findings

import stratal
from stratal.errors import MissingExtraError

LENGTH = 10_000
SECONDS = 0.1
"""Characters of a text, and seconds of the processor that it may take."""

PIECES = (
    "a='x', ", "a=", "a=(", "a={", "--a ", "--", " (--", "=, --", "'", '"', "\\", "\\'", "(", ")", "[", "{",
    "<", "&", "`", "*", "_", "#", "|", "~", " ", "\t", "\n", "\r\n", "0", "1", "9", "-", "+", ".", ",", ":",
    ";", "=", ">=", "é", "中", "\u202e", "\x1b[2J", "\ud800", "a", "A", "https://x.png", ".png?", "e+1",
    "T00:00", "=1+1;", "{{", "%s", "$", "1,000", "00:00", "/", "\\x", "id ", "(--a", " or ", " and ", "1e",
    "f1",
)  # fmt: skip

METHODS = {"match", "fullmatch", "search", "findall", "finditer", "sub", "split"}


def expressions() -> dict[str, Applied]:
    """Return every regular expression of the package as the package applies it, by name and method."""
    found: dict[str, Applied] = {}
    for info in pkgutil.walk_packages(stratal.__path__, "stratal."):
        if info.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except MissingExtraError:
            continue  # a client of a platform that is not installed here
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        for owner, method, pattern in _applied(tree):
            compiled = vars(module).get(owner) if pattern is None else re.compile(pattern)
            if isinstance(compiled, re.Pattern) and isinstance(compiled.pattern, str):
                found[f"{info.name}: {pattern or owner} ({method})"] = Applied(compiled, method)
    return found


class Applied:
    """A regular expression with the method by which it is applied."""

    def __init__(self, pattern: re.Pattern[str], method: str) -> None:
        self.pattern, self.method = pattern, method

    def __call__(self, text: str) -> object:
        """Apply it to a text, to its end."""
        if self.method == "sub":
            return self.pattern.sub("", text)
        found = getattr(self.pattern, self.method)(text)
        return list(found) if self.method == "finditer" else found


def _applied(tree: ast.AST) -> Iterator[tuple[str, str, str | None]]:
    """Yield the name of a pattern and its method, or `re`, the method and the pattern in the call."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner, method = getattr(node.func.value, "id", ""), node.func.attr
        if method not in METHODS:
            continue
        first = node.args[0] if node.args else None
        if owner != "re":
            yield owner, method, None
        elif isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield owner, method, first.value


def texts(pieces: tuple[str, ...], rng: np.random.Generator) -> Iterator[str]:
    """Yield long texts without end: one or two pieces again and again, behind a start and before an end."""
    while True:
        number = int(rng.integers(1, 4))
        start, unit, end = (
            "".join(pieces[int(k)] for k in rng.integers(len(pieces), size=size))
            for size in (int(rng.integers(0, 2)), number, int(rng.integers(0, 2)))
        )
        middle = unit * (LENGTH // max(1, len(unit)) + 1)
        yield (start + middle)[: LENGTH - len(end)] + end


def functions() -> dict[str, Callable[[str], object]]:
    """Return what prints, rewrites or reads text of users, by name."""
    from stratal.cli.output import escape_control_characters, keywords_to_options
    from stratal.errors import InputError, suggest_names, without_options
    from stratal.labels import label_values, spreadsheet_ids
    from stratal.report import document
    from stratal.report.text import ReportTable, table_text
    from stratal.study.web import content
    from stratal.tables.files import csv_line, unquote_cell

    def raised(text: str) -> str:
        error = InputError(
            f"{text}: no such file", given=repr(text), allowed=text, action=f"Name it: {text}."
        )
        return str(error) + error.message(keywords_to_options)

    return {
        "keywords_to_options": keywords_to_options,
        "keywords_to_options of known options": lambda text: keywords_to_options(text, {"--a", "--id"}),
        "without_options": without_options,
        "a message": raised,
        "visible": escape_control_characters,
        "suggest_names": lambda text: suggest_names(text, [text[:100], "a", "b"]),
        "table_text": lambda text: table_text(ReportTable(header=[text], rows=[[text]])),
        "csv_line": lambda text: csv_line([text]),
        "text_of_cell": unquote_cell,
        "is_picture_link": content.is_picture_link,
        "markdown of a report": lambda text: document._MARKDOWN.sub(r"\\\1", text),
        "matched ids": lambda text: spreadsheet_ids.restore_spreadsheet_ids([text], None, {"u1", "u2"}),
        "meaning of an answer": lambda text: label_values.are_numeric_labels([text]),
    }


def slow_texts(tries: int, seed: int) -> Findings:
    """Give texts to every regular expression and every function; none may take a tenth of a second."""
    rng, found = np.random.default_rng(seed), Findings()
    named: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
        name: (run, PIECES) for name, run in functions().items()
    }
    for name, applied in expressions().items():
        own = tuple(re.findall(r"[A-Za-z0-9,.:;=<>_/ '\"-]", applied.pattern.pattern)) or ("a",)
        named[name] = applied, (*PIECES, *own, *own, *own)
    for name, (run, pieces) in named.items():
        source = texts(pieces, rng)
        for _ in range(tries):
            text = next(source)
            found.tries += 1
            seconds = _seconds(run, text)
            if seconds > SECONDS and min(_seconds(run, text) for _ in range(3)) > SECONDS:
                found.wrong.append(f"{name}: {seconds:.2f} s for {text[:60]!r}…{text[-5:]!r}")
                break
    return found


def _seconds(run: Callable[[str], object], text: str) -> float:
    """Return how many seconds of the processor a call takes; what it raises is its own affair."""
    start = time.process_time()
    with contextlib.suppress(ValueError, stratal.StratalError):
        run(text)
    return time.process_time() - start
