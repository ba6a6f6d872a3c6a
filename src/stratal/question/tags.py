"""Sets of tags: how a cell is read as one, and the one text that stands for it.

A set is held as a JSON list of its tags, each once and in their order, so that two cells hold the same set
exactly if their texts are equal. All else that compares answers and labels needs to know nothing of sets.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from stratal.arrays import number_of_text, text_of_value
from stratal.errors import InputError
from stratal.protocols import WithDimensions

# How cells hold sets: lists or JSON lists, or texts with this character between tags.
JSON_LISTS = "json"
SEPARATORS = (";", "|", ",")
# Characters of a list as Python prints it; longer texts are not lists of labels.
_MAX_PRINTED_LIST = 10_000
# Declares that cells hold no sets, though they look like JSON lists.
NO_SETS = "none"
TAG_FORMATS = (JSON_LISTS, *SEPARATORS, NO_SETS)


def checked_format(tag_format: str | None) -> str | None:
    """Return how cells hold sets of tags, as it was declared; None if nothing was."""
    if tag_format is not None and tag_format not in TAG_FORMATS:
        allowed = "json, none, or the separator: ';' '|' ','"
        raise InputError(
            "tags= (--tags) must state how sets of tags are written in a cell",
            given=repr(tag_format),
            allowed=allowed,
        )
    return tag_format


def set_text(tags: Iterable[str]) -> str:
    """Return the text of a set of tags."""
    return json.dumps(sorted(set(tags)), ensure_ascii=False)


def tags_of(text: str) -> tuple[str, ...]:
    """Return the tags of the text of a set."""
    return tuple(json.loads(text))


def read_set(cell: object, separator: str | None = None) -> str | None:
    """Return the text of the set that a cell holds; None if it holds none.

    Parameters
    ----------
    cell : str, list, tuple, set or array
        A JSON list is read as text too.
    separator : str, optional
        What separates the tags of any other text.
    """
    if isinstance(cell, str):
        entries = list_of_text(cell)
        if entries is None and separator is not None:
            entries = cell.split(separator)
    elif isinstance(cell, list | tuple | set | frozenset):
        entries = list(cell)
    elif isinstance(cell, WithDimensions) and cell.ndim == 1:
        entries = cell.tolist()
    else:
        entries = None
    if entries is None or any(isinstance(entry, list | dict | tuple) or entry is None for entry in entries):
        return None
    tags = (text_of_value(entry) for entry in entries)
    return set_text(tag for tag in tags if tag)


def list_of_text(text: str) -> list[Any] | None:
    """Return the entries of a list in JSON, or as Python or NumPy print it; None of other texts.

    Tables that were saved as CSV files have lists as they are printed: `['a', None]`, `[1 0 1]`.
    """
    entries = _json_list(text)
    plain = text.strip()
    may_be_list = plain.startswith("[") and plain.endswith("]") and len(plain) <= _MAX_PRINTED_LIST
    if entries is not None or not may_be_list:
        return entries
    words = plain[1:-1].split()
    if "," not in plain and len(words) > 1:
        return _printed_array(words)
    try:
        values = ast.literal_eval(plain)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        # A text in brackets may be anything, such as a very deeply nested list.
        return None
    return values if isinstance(values, list) else None


def _printed_array(words: Sequence[str]) -> list[Any] | None:
    """Return the numbers, or the quoted words, that NumPy printed as an array; None of other words."""
    if all(math.isfinite(number_of_text(word)) for word in words):
        return [number_of_text(word) for word in words]
    if all(len(word) > 1 and word[0] == word[-1] == "'" for word in words):
        return [word[1:-1] for word in words]
    return None


def _json_list(text: str) -> list[Any] | None:
    """Return the entries of a JSON list; None if the text is none."""
    plain = text.strip()
    if not (plain.startswith("[") and plain.endswith("]")):
        return None
    try:
        entries = json.loads(plain)
    except ValueError:
        return None
    if isinstance(entries, list):
        return entries
    return None


def read_sets(cells: Sequence[str], tag_format: str | None) -> tuple[list[str] | None, int | None]:
    """Return the texts of the sets of a column, and the position of the first cell that holds none.

    Parameters
    ----------
    cells : sequence of str (n,)
    tag_format : str, optional
        As declared: one of `FORMATS`.

    Returns
    -------
    (list of str (n,), None)
        If every cell holds a set.
    (None, int)
        If some cells hold a set, or sets were declared, and this cell holds none.
    (None, None)
        If no cell holds a set, or none was declared.
    """
    if tag_format == NO_SETS:
        return None, None
    separator = tag_format if tag_format in SEPARATORS else None
    read = {cell: read_set(cell, separator) for cell in dict.fromkeys(cells)}
    if tag_format is None and not any(text is not None for text in read.values()):
        return None, None
    for position, cell in enumerate(cells):
        if read[cell] is None:
            return None, position
    return [str(read[cell]) for cell in cells], None


def is_set(text: object) -> bool:
    """Return whether a value is the text of a set of tags."""
    return isinstance(text, str) and _json_list(text) is not None


def tags_of_sets(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the tags of the texts of sets, in their order."""
    return tuple(sorted({tag for text in set(texts) for tag in tags_of(text)}))


def how_to_write(tag_format: str, tags: Sequence[str]) -> str:
    """Return how a label that is a set of tags is written."""
    first = list(tags[:2]) if len(tags) > 1 else ["a", "b"]
    if tag_format == JSON_LISTS:
        example = set_text(first)
    else:
        example = tag_format.join(first)
    return f"sets of tags such as {example}, or [] for no tags"
