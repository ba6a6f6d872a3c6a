"""Building a population from a file, a dataframe or a table: in memory where it fits, else where it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, frozen
from stratal.errors import InputError
from stratal.population.declaration import (
    ROW,
    Declaration,
    FileKeywords,
    TableKeywords,
    declaration_of,
    is_softmax_of,
    with_log,
)
from stratal.population.in_memory import ArrayPopulation, ArrayUnits
from stratal.population.population import Population
from stratal.tables.frames import frame_table
from stratal.tables.readers import open_table
from stratal.tables.rows import MOST_BYTES, WHOLE, Rows
from stratal.tables.source import FileReading, Table


def read(path: str | os.PathLike[str], given: FileKeywords) -> Population:
    """Build a population from a file; see `Population.read`."""
    columns: Any = dict(given)
    names = (entry.name for entry in fields(FileReading))
    reading = FileReading(**{name: columns.pop(name) for name in names if name in columns})

    def fits(names: Sequence[str]) -> bool:
        try:
            declaration_of(columns, names, str(path))
        except InputError:
            return False
        return True

    return _of_table(open_table(path, reading, fits), columns, reading.threads)


def from_table(table: Any, given: TableKeywords) -> Population:
    """Build a population from a dataframe or an Ibis table; see `Population.from_table`."""
    return _of_table(frame_table(table), given)


Population.makers |= {"file": read, "table": from_table}


def _of_table(table: Table, given: TableKeywords, threads: int | None = None) -> Population:
    given = given if table.log is None else with_log(given, table.log)
    declared = declaration_of(given, table.names, table.label)
    taken = table.take(declared)
    if isinstance(taken, Rows):
        try:
            return _in_memory(taken, declared, threads)
        except _NotInMemoryError:
            taken = taken.source()
    from stratal.population.queries.derived import prepared  # these load Ibis, which takes long
    from stratal.population.queries.table import table_population

    return table_population(*prepared(taken, declared))


class _NotInMemoryError(Exception):
    """What does not fit in memory, or is refused or derived by queries, which name the row."""


def _in_memory(rows: Rows, declared: Declaration, threads: int | None) -> ArrayPopulation:
    """Return units as arrays."""
    types = rows.types()
    numbered = declared.id == ROW and ROW not in types
    asked = [
        *([] if numbered else [rows.columns[declared.id]]),
        *(rows.as_number(name, types[name]) for name in declared.numbers),
        *(rows.as_category(name, types[name]) for name in declared.groups),
        *(rows.columns[name] if types[name] in _SHOWN else None for name in declared.shown),
    ]
    if declared.softmax or None in asked or not asked:
        raise _NotInMemoryError
    found = rows.arrow(*map(str, asked))
    if not found or not len(found[0]):
        raise _NotInMemoryError
    size, remaining = len(found[0]), iter(found)
    ids = np.arange(1, size + 1) if numbered else _ids(next(remaining))
    order = np.argsort(ids.astype(np.str_), kind="stable")  # as the batches of a table
    ids = frozen(ids[order])
    numbers = {name: frozen(_numbers(next(remaining))[order]) for name in declared.numbers}
    groups = {name: frozen(_texts(next(remaining))[order]) for name in declared.groups}
    shown = {name: frozen(_objects(next(remaining))[order]) for name in declared.shown}
    told = declared.bounds is not None or declared.scaled is not None or declared.second_moments
    values = {name: numbers[name] for name in declared.proxies}
    if len(values) > 1 and not told and is_softmax_of(list(values.values())):
        raise _NotInMemoryError
    infos = declared.proxy_infos({name: (float(v.min()), float(v.max())) for name, v in values.items()})
    second = {info.name: numbers[info.second_moment] if info.second_moment else None for info in infos}
    units = ArrayUnits(
        values=values,
        second=second,
        ids=ids,
        groups=groups,
        features={name: numbers[name] for name in declared.features},
        shown=shown,
    )
    return ArrayPopulation.of(
        units,
        size=size,
        proxies=infos,
        id_name=declared.id,
        predicted=declared.predicted,
        notes=rows.notes,
        threads=threads,
    )


_SHOWN = (*WHOLE, "varchar", "double", "float", "boolean", "date")


def _ids(column: Any) -> AnyArray:
    """Return ids, of which none is missing or stands twice, as integers where they are, else as text."""
    if column.null_count:
        raise _NotInMemoryError
    if str(column.type) == "string":
        texts = _texts(column)
        if np.any(np.char.strip(texts) == "") or len(set(column.to_pylist())) < len(texts):
            raise _NotInMemoryError
        return texts
    values = column.to_numpy()
    whole = values.dtype.kind in "iu" and values.max() < 2**63
    if not whole and not (
        values.dtype.kind == "f" and np.all(values == np.floor(values)) and np.all(np.abs(values) < 2.0**53)
    ):
        raise _NotInMemoryError
    ids: AnyArray = values.astype(np.int64)
    if len(np.unique(ids)) < len(ids):
        raise _NotInMemoryError
    return ids


def _numbers(column: Any) -> FloatArray:
    """Return numbers, of which each is finite."""
    values: FloatArray = column.to_numpy()
    if column.null_count or not np.all(np.isfinite(values)):
        raise _NotInMemoryError
    return values


def _texts(column: Any) -> AnyArray:
    """Return texts as NumPy has them: as long as the longest, and without NUL at the end."""
    texts = column.to_pylist()
    if column.null_count or 4 * len(texts) * max(map(len, texts)) > MOST_BYTES:
        raise _NotInMemoryError
    if any("\0" in text for text in set(texts)):
        raise _NotInMemoryError
    return np.array(texts, dtype=np.str_)


def _objects(column: Any) -> AnyArray:
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return values
