"""Sets of tags: the conversion of cells to one text for each set.

The text of a set is a sorted JSON list of its tags without duplicates. Two sets are equal exactly if their
texts are equal, so that code that compares answers and labels as texts also works for sets.
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

# Formats of sets in cells: lists or JSON lists, or texts with a separator between the tags.
JSON_LISTS = "json"
SEPARATORS = (";", "|", ",")
# Maximum number of characters of a list as Python prints it; longer texts are not lists of labels.
_MAX_PRINTED_LIST = 10_000
# Declares that cells are not sets, although they look like JSON lists.
NO_SETS = "none"
TAG_FORMATS = (JSON_LISTS, *SEPARATORS, NO_SETS)


def checked_format(tag_format: str | None) -> str | None:
    """Return a declared format of sets in cells, refusing unknown ones; None if nothing is declared."""
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
    """Return the tags in the text of a set, sorted."""
    return tuple(json.loads(text))


def read_set(cell: object, separator: str | None = None) -> str | None:
    """Return the text of the set in a cell, None if it contains no set.

    Parameters
    ----------
    cell : str, list, tuple, set or array
        A text may be a JSON list.
    separator : str, optional
        Separator of the tags in any other text.
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
    """Return the entries of a list in JSON, or as Python or NumPy print it; None for other texts.

    CSV files contain lists as they are printed: `['a', None]`, `[1 0 1]`.
    """
    entries = _json_list(text)
    stripped = text.strip()
    is_short = len(stripped) <= _MAX_PRINTED_LIST
    may_be_list = is_short and stripped.startswith("[") and stripped.endswith("]")
    if entries is not None or not may_be_list:
        return entries
    words = stripped[1:-1].split()
    if "," not in stripped and len(words) > 1:
        return _printed_array(words)
    try:
        values = ast.literal_eval(stripped)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        # A text in brackets may be anything, such as a very deeply nested list.
        return None
    return values if isinstance(values, list) else None


def _printed_array(words: Sequence[str]) -> list[Any] | None:
    """Return the numbers, or the quoted words, that NumPy printed as an array; None for other words."""
    if all(math.isfinite(number_of_text(word)) for word in words):
        return [number_of_text(word) for word in words]
    if all(len(word) > 1 and word[0] == word[-1] == "'" for word in words):
        return [word[1:-1] for word in words]
    return None


def _json_list(text: str) -> list[Any] | None:
    """Return the entries of a JSON list, None for other texts."""
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return None
    try:
        entries = json.loads(stripped)
    except ValueError:
        return None
    if isinstance(entries, list):
        return entries
    return None


def read_sets(cells: Sequence[str], tag_format: str | None) -> tuple[list[str] | None, int | None]:
    """Return the texts of the sets in a column, and the position of the first cell that is not a set.

    Parameters
    ----------
    cells : sequence of str (n,)
    tag_format : str, optional
        The declared format, one of `TAG_FORMATS`. Default: cells that are lists are sets.

    Returns
    -------
    (list of str (n,), None)
        If every cell is a set.
    (None, int)
        If some cells are sets, or sets are declared, and this cell is not a set.
    (None, None)
        If no cell is a set, or `none` is declared.
    """
    if tag_format == NO_SETS:
        return None, None
    separator = tag_format if tag_format in SEPARATORS else None
    text_of_cell = {cell: read_set(cell, separator) for cell in dict.fromkeys(cells)}
    if tag_format is None and all(text is None for text in text_of_cell.values()):
        return None, None
    for position, cell in enumerate(cells):
        if text_of_cell[cell] is None:
            return None, position
    return [str(text_of_cell[cell]) for cell in cells], None


def is_set(text: object) -> bool:
    """Return whether a value is the text of a set of tags."""
    return isinstance(text, str) and _json_list(text) is not None


def tags_of_sets(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct tags in the texts of several sets, sorted."""
    return tuple(sorted({tag for text in set(texts) for tag in tags_of(text)}))


def how_to_write(tag_format: str, tags: Sequence[str]) -> str:
    """Return a description of the format of sets, with the first two tags as an example."""
    example_tags = list(tags[:2]) if len(tags) > 1 else ["a", "b"]
    if tag_format == JSON_LISTS:
        example = set_text(example_tags)
    else:
        example = tag_format.join(example_tags)
    return f"sets of tags such as {example}, or [] for no tags"
