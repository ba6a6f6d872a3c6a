"""Decimal commas, as a spreadsheet writes them where columns are delimited by another character."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stratal.tables.source import Chosen, Source

_NUMBER = r"^\s*[-+]?[0-9]+(,[0-9]+)?([eE][-+]?[0-9]+)?\s*$"
_THOUSANDS = r"^\s*[-+]?[1-9][0-9]{0,2},[0-9]{3}\s*$"
_HEAD = 1_000
"""Rows of a large file that are looked at."""


def with_points(
    lists: Mapping[str, list[Any]], left: Sequence[str] = ()
) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    """Return columns of text with a point in numbers that have a decimal comma, and what is said of it.

    A column is changed where every entry is such a number, a whole one or blank. Ids are left as they are:
    columns in `left`, and those that are called so. Since commas may group digits, as in 1,234, one of
    the numbers must be none of those.

    Examples
    --------
    >>> with_points({"id": ["1,2"], "score": ["0,5"]})
    ({'id': ['1,2'], 'score': ['0.5']}, ("'score' is written with a decimal comma: '0,5' is read as 0.5",))
    """
    found = {
        name: next(entry for entry in entries if entry and "," in entry)
        for name, entries in lists.items()
        if name not in left and not _is_id(name) and _all_with_commas(entries)
    }
    changed = {
        name: [entry and entry.replace(",", ".") for entry in entries] if name in found else entries
        for name, entries in lists.items()
    }
    return changed, _notes(found)


def source_with_points(source: Source, declared: Chosen) -> Source:
    """Return a source of text with a point in numbers that have a decimal comma; see `with_points`.

    The first rows decide, and later ones that are no such numbers stay as they are.
    """
    import ibis

    names = [name for name in source.columns if name != declared.id and not _is_id(name)]
    if not names:
        return source
    head = source.run(source.table.limit(_HEAD).select(*{source.columns[name] for name in names}))
    texts = {name: [entry or "" for entry in head[source.columns[name]].to_pylist()] for name in names}
    found = {
        name: next(entry for entry in entries if "," in entry)
        for name, entries in texts.items()
        if _all_with_commas(entries)
    }
    if not found:
        return source
    changed = {}
    for name in found:
        column = source.column(name)
        fits = column.re_search(_NUMBER)
        changed[source.columns[name]] = ibis.ifelse(fits, column.replace(",", "."), column)
    notes = (*source.notes, *_notes(found))
    return replace(source, table=source.table.mutate(**changed), notes=notes)


def _all_with_commas(entries: Sequence[str | None]) -> bool:
    """Return whether all entries are numbers or blank, and some have a comma that groups no digits."""
    there = [entry for entry in entries if entry and entry.strip()]
    return any("," in entry and not re.match(_THOUSANDS, entry) for entry in there) and all(
        re.match(_NUMBER, entry) for entry in there
    )


def _is_id(name: str) -> bool:
    return re.search(r"(^|[^a-z])ids?([^a-z]|$)", name.lower()) is not None


def _notes(found: Mapping[str, str]) -> tuple[str, ...]:
    """Return one note for all columns, with the first number."""
    if not found:
        return ()
    names = ", ".join(repr(name) for name in found)
    first = next(iter(found.values())).strip()
    are = "are" if len(found) > 1 else "is"
    return (f"{names} {are} written with a decimal comma: {first!r} is read as {first.replace(',', '.')}",)
