"""JSON Lines of very many keys: which keys there are, and all their values in one pass over the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import IntArray
from stratal.tables.duckdb_files import json_objects, read_json_texts, turned_texts
from stratal.tables.files import LONGEST, flat

MANY_KEYS = 200
"""Keys of an object from which on a file is read by what is here."""

_MOST_KEYS = 2**22
"""Keys of all objects that differ in their keys, at most; of more the objects are read one by one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WideLines:
    """What keys the objects of a JSON Lines file have.

    Parameters
    ----------
    numbers : mapping of str to int
        The keys by first appearance.
    looked_at : int
        How many of them stand in the first objects, which tell the columns.
    kinds : sequence of (keys, rows)
        For each list of keys that some objects have, their numbers, in order (k,), and the objects' (r,).
    nested : bool
        Whether a value within these is an object itself.
    """

    numbers: Mapping[str, int]
    looked_at: int
    kinds: Sequence[tuple[IntArray, IntArray]]
    nested: bool

    @property
    def rows(self) -> int:
        """The number of objects."""
        return sum(len(rows) for _, rows in self.kinds)

    def among_values(self, names: Sequence[str], starts: IntArray) -> IntArray:
        """Return where the values of some keys stand among all values, −1 where an object lacks the key.

        Parameters
        ----------
        names : sequence of str, length k
        starts : IntArray (rows,)
            Where each object's values start.

        Returns
        -------
        IntArray (k, rows)
        """
        wanted = np.array([self.numbers.get(name, -1) for name in names], dtype=np.int64)
        found = np.full((len(names), self.rows), -1)
        for keys, rows in self.kinds:
            within = np.full(len(self.numbers) + 1, -1)
            within[keys] = np.arange(len(keys))
            place = within[wanted][:, None]
            found[:, rows] = np.where(place < 0, -1, starts[rows] + place)
        return found


def wide_lines(backend: Any, path: str, most: int) -> WideLines | None:
    """Return what keys the objects of a file have, None of one that is to be read one by one.

    Parameters
    ----------
    backend : Ibis backend
        Of DuckDB.
    path : str
    most : int
        Objects whose keys are the file's columns.
    """
    import duckdb

    nests = "list_contains(json_type(json, '$.*'), 'OBJECT')"
    objects = (
        "SELECT json_keys(json) AS keys, json_type(json) AS kind, row_number() OVER () - 1 AS number, json "
        f"FROM {json_objects(path, LONGEST)}"
    )
    asked = (
        f"SELECT keys, list(number) AS numbers, bool_or(number < {most} AND {nests}) AS nested, "
        f"bool_and(kind = 'OBJECT') AS objects FROM ({objects}) GROUP BY keys ORDER BY min(number)"
    )
    try:
        found = backend.con.sql(asked).to_arrow_table().combine_chunks()
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # what is wrong with the file is told by what reads it one by one
        return None
    if not all(found["objects"].to_pylist()) or len(found["keys"].chunk(0).values) > _MOST_KEYS:
        return None
    return _told(found, most)


def _told(found: Any, most: int) -> WideLines | None:
    """Return what a query found of the keys; None where an object has a key twice."""
    numbers: dict[str, int] = {}
    kinds, looked_at = [], 0
    for keys, rows in zip(found["keys"].to_pylist(), found["numbers"].to_pylist(), strict=True):
        if len(set(keys)) < len(keys):
            return None
        codes = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
        kinds.append((codes, np.array(rows, dtype=np.int64)))
        looked_at = len(numbers) if min(rows) < most else looked_at
    nested = any(found["nested"].to_pylist())
    return WideLines(numbers=numbers, looked_at=looked_at, kinds=kinds, nested=nested)


def names_of_keys(
    wide: WideLines | None, records: Iterable[Mapping[str, Any]]
) -> tuple[list[str], list[str]]:
    """Return the keys of objects, and these with the dotted names of what is nested in them after them.

    Examples
    --------
    >>> names_of_keys(None, [{"id": 1}, {"judge": {"score": 0.5}}])
    (['id', 'judge'], ['id', 'judge', 'judge.score'])
    """
    if wide is not None and not wide.nested:
        keys = list(wide.numbers)[: wide.looked_at]
        return keys, keys
    names: dict[str, None] = {}
    nested: dict[str, None] = {}
    for record in records:
        names |= dict.fromkeys(record)
        if dict in map(type, record.values()):
            nested |= dict.fromkeys(flat(dict(record)))
    return list(names), list(names | nested)


def place_of(name: str, keys: Mapping[str, int]) -> tuple[str, ...]:
    """Return the key of an object, and those within it, that a dotted name stands for.

    Examples
    --------
    >>> place_of("judge.score", {"id": 0, "judge": 1}), place_of("id", {"id": 0})
    (('judge', 'score'), ('id',))
    """
    if name in keys:
        return (name,)
    parts = name.split(".")
    above = (".".join(parts[:count]) for count in range(1, len(parts)))
    top = min((key for key in above if key in keys), key=keys.__getitem__)
    return (top, *name.removeprefix(f"{top}.").split("."))


def read_wide(
    backend: Any, path: str, wide: WideLines | None, numbers: Mapping[tuple[str, ...], bool], at_once: int
) -> list[Any]:
    """Return columns of a file as PyArrow arrays of text, as a view of few keys has them.

    Parameters
    ----------
    backend : Ibis backend
        Of DuckDB.
    path : str
    wide : WideLines, optional
        Of a file that is parsed once for the values of all keys. Of others, and for what is nested, the
        engine looks up each key of each object, as often as it has memory for some of the columns alone.
    numbers : mapping of place to bool
        The columns, and whether each is a number.
    at_once : int
        Columns for which there is memory.
    """
    import duckdb

    keys = {place[0]: number for place, number in numbers.items() if wide is not None and len(place) == 1}
    found: dict[tuple[str, ...], Any] = {}
    try:
        if wide is not None:
            read = _values(backend, path, wide, keys, at_once)
            found = {(name,): column for name, column in zip(keys, read, strict=True)}
    except duckdb.OutOfMemoryException:  # for all values of some objects; there may be for some columns
        pass
    others = [place for place in numbers if place not in found]
    for start in range(0, len(others), at_once):
        group = {place: numbers[place] for place in others[start : start + at_once]}
        found |= zip(group, read_json_texts(backend, path, group, LONGEST), strict=True)
    return [found[place] for place in numbers]


def _values(backend: Any, path: str, wide: WideLines, numbers: Mapping[str, bool], at_once: int) -> list[Any]:
    """Return the values of keys, a column for each."""
    import pyarrow as pa

    lists, kinds = (
        backend.con.sql(f"SELECT {asked}(json, '$.*') AS found FROM {json_objects(path, LONGEST)}")
        .to_arrow_table()["found"]
        .combine_chunks()
        for asked in ("json_extract_string", "json_type")
    )
    starts = np.asarray(lists.offsets)[:-1] - lists.offsets[0].as_py()
    texts, kinds, names = lists.flatten(), kinds.flatten(), list(numbers)
    columns: list[Any] = []
    for start in range(0, len(names), at_once):
        group = names[start : start + at_once]
        places = wide.among_values(group, starts).ravel()
        chosen = pa.array(places, mask=places < 0)
        are_numbers = np.repeat([numbers[name] for name in group], wide.rows)
        turned = turned_texts(backend, texts.take(chosen), kinds.take(chosen), are_numbers)
        columns += [turned.slice(k * wide.rows, wide.rows) for k in range(len(group))]
    return columns
