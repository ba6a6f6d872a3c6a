"""Small tables that a user hands over (labels, sizes, moments): columns by name, the place of each row."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, is_null, number_of_text
from stratal.errors import InputError, MissingColumnError, near_names, same_name, unreadable
from stratal.tables import files
from stratal.tables.frames import frame_columns
from stratal.tables.logs import Log
from stratal.tables.number_format import ambiguous_number
from stratal.tables.readers import blank_note, open_table
from stratal.tables.row_index import row_index
from stratal.tables.source import EveryColumn, Table


@dataclass(frozen=True, slots=True)
class SmallTable:
    """A small table as lists by column name.

    Parameters
    ----------
    label : str
        What it is called in errors.
    lists : mapping of column to list (m,)
    places : tuple of str (m,)
        Where each row stands: `line 7` of a text file, else `row 7`.
    repeated : mapping of column to int
        Columns whose name occurs more than once, and how often.
    notes : tuple of str
        What was done to read it: blank rows left out, a sheet chosen.
    log : Log, optional
        The evaluation tool's log that it is of, with every unit that was scored.
    ambiguous : mapping of str to str
        Columns of numbers that may be read in two ways, with an entry.
    index : pandas Index, optional
        That of a dataframe, where it identifies rows: its last column, and its ids unless others are named.
    single : mapping of column to list (m,)
        Columns of lists of one value each, or none, as they were read; `lists` has these values.

    Examples
    --------
    >>> SmallTable.of({"size": ["3", 4]}, "sizes").numbers("size")
    array([3., 4.])
    """

    label: str
    lists: Mapping[str, list[Any]]
    places: tuple[str, ...]
    repeated: Mapping[str, int]
    notes: tuple[str, ...] = ()
    log: Log | None = None
    ambiguous: Mapping[str, str] = field(default_factory=dict)
    index: Any = None
    single: Mapping[str, list[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Any, label: str, wanted: Sequence[str] = ()) -> SmallTable:
        """Return a path, a mapping of columns or a dataframe as a small table.

        Of a workbook with several sheets the one is read that has the `wanted` columns.

        Raises
        ------
        InputError
            For a file that cannot be read, an empty table, and anything else.
        """
        if isinstance(table, str | Path):
            return _read(Path(table), wanted)
        if isinstance(table, Mapping):
            lists = {str(name): np.asarray(column, dtype=object).tolist() for name, column in table.items()}
        elif hasattr(table, "__arrow_c_stream__") or hasattr(table, "with_format"):
            names, read = frame_columns(table)
            lists = {name: column.to_pylist() for name, column in read(names).items()}
        else:
            raise InputError(
                f"{label} cannot be read",
                given=type(table).__name__,
                allowed="a path, a mapping of columns, or a dataframe",
            )
        lengths = {len(column) if isinstance(column, list) else 0 for column in lists.values()}
        if len(lengths) != 1 or lengths == {0}:
            raise InputError(
                f"{label}: columns must have the same length, at least 1",
                action="Check the lengths of the lists.",
            )
        places = tuple(f"row {row + 1}" for row in range(lengths.pop()))
        return cls(label, lists, places, {}, index=row_index(table))

    def __len__(self) -> int:
        return len(self.places)

    def only(self, rows: Sequence[int]) -> SmallTable:
        """Return some of the rows, in this order."""
        lists = {name: [column[row] for row in rows] for name, column in self.lists.items()}
        single = {name: [column[row] for row in rows] for name, column in self.single.items()}
        return replace(self, lists=lists, single=single, places=tuple(self.places[row] for row in rows))

    def answers(self, name: str, action: str | None = None) -> list[Any]:
        """Return a column of labels or answers, of which lists of one value stay lists: they may be sets."""
        values = self.values(name, action)
        return self.single.get(self.find(name) or name, values)

    def find(self, *names: str) -> str | None:
        """Return the first of these columns that is there, without regard to case where that is unique."""
        found = (same_name(name, self.lists) for name in names)
        return next((name for name in found if name is not None), None)

    def failed(self, name: str) -> tuple[bool, ...] | None:
        """Return which rows (m,) are of an answer that failed; None of a column that is no log's metric."""
        column = self.find(name)
        if self.log is None or column is None or column not in self.log.failed:
            return None
        units = set(self.log.failed[column])
        return tuple(unit in units for unit in self.lists["id"])

    def distinct_texts(self, most_each: int) -> dict[str, set[str]]:
        """Return the entries, as text, of the columns in which none need stand in more rows than that."""
        texts = {name: set(map(plain_text, entries)) - {None} for name, entries in self.lists.items()}
        columns = {name: {str(text) for text in found} for name, found in texts.items()}
        return {name: entries for name, entries in columns.items() if most_each * len(entries) > len(self)}

    def values(self, name: str, action: str | None = None) -> list[Any]:
        """Return a column as it is, refusing one that is not there or there more than once."""
        found = self.find(name)
        if found is None:
            raise MissingColumnError(
                f"{self.label}: no column {name!r}",
                column=name,
                allowed=near_names(name, self.lists),
                action=action,
            )
        name = found
        if name in self.repeated:
            raise InputError(
                f"{self.label}: {self.repeated[name]} columns are called {name!r}",
                action="Rename or drop the others.",
            )
        if name in self.ambiguous:
            raise ambiguous_number(self.label, name, self.ambiguous[name])
        return self.lists[name]

    def texts(self, name: str, *, sets: bool = False) -> AnyArray:
        """Return a column as text, whole numbers without a point, refusing what is missing.

        Lists are JSON if they are `sets` of tags.
        """
        entries = self.answers(name) if sets else self.values(name)
        found = [json.dumps(entry) if isinstance(entry, list) else plain_text(entry) for entry in entries]
        if None in found:
            raise InputError(
                f"{self.label}: column {name!r} is empty in {self.places[found.index(None)]}",
                action="Fill it in, or leave the row out.",
            )
        return np.array(found, dtype=np.str_)

    def numbers(self, name: str, *, positive: bool = False, whole: bool = False) -> FloatArray:
        """Return a column as finite numbers."""
        entries = self.values(name)
        result = np.array([_number(entry) for entry in entries])
        bad = ~np.isfinite(result) | (positive & (result <= 0)) | (whole & (result != np.floor(result)))
        for row in np.flatnonzero(bad)[:1].tolist():
            kind = "whole numbers of units" if whole else "finite numbers"
            raise InputError(
                f"{self.label}: column {name!r}, {self.places[row]} is not usable",
                given=repr(entries[row]),
                allowed=f"{kind} above 0" if positive else kind,
            )
        return result


def is_missing(entry: Any) -> bool:
    """Return whether an entry is None, NaN (of any kind), masked or blank.

    Examples
    --------
    >>> is_missing(" "), is_missing(0), is_missing(np.ma.masked)
    (True, False, True)
    """
    if isinstance(entry, str):
        return not entry.strip()
    if is_null(entry):
        return True
    # Containers would compare their entries, and a signalling NaN refuses to be compared.
    if isinstance(entry, Decimal):
        return entry.is_nan()
    return isinstance(entry, Number | np.generic) and bool(entry != entry)


def plain_text(entry: Any) -> str | None:
    """Return an entry as text, whole numbers without a point, None where it is missing.

    Examples
    --------
    >>> plain_text(3.0), plain_text(" a "), plain_text(float("nan"))
    ('3', 'a', None)
    """
    if is_missing(entry):
        return None
    if isinstance(entry, float) and entry.is_integer():
        return str(int(entry))
    return str(entry).strip()


def _number(entry: Any) -> float:
    try:
        if isinstance(entry, str):
            truth = {"true": 1.0, "false": 0.0}.get(entry.strip().casefold())
            return number_of_text(entry) if truth is None else truth
        return float(entry)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _read(path: Path, wanted: Sequence[str]) -> SmallTable:
    """Return a small file as a table: text is never taken for anything else, and JSON keeps its values."""
    path = files.local_path(path)
    files.existing_file(path)
    try:
        table = open_table(path, fits=lambda names: all(same_name(name, names) for name in wanted))
        if table.log is not None:
            places = tuple(f"unit {unit!r}" for unit in table.log.columns["id"])
            return SmallTable(str(path), dict(table.log.columns), places, {}, table.log.notes, table.log)
        found = _file_columns(table, path)
    except files.UNREADABLE as error:
        raise unreadable(path, error) from None
    if not len(found):
        raise InputError(f"{path}: holds no row", allowed="a header and one row per unit")
    return found


def _file_columns(table: Table, path: Path) -> SmallTable:
    """Return all columns of a file without its blank rows."""
    kind = files.format_of(path)
    notes: tuple[str, ...] = ()
    ambiguous: Mapping[str, str] = {}
    lists: dict[str, list[Any]]
    if table.values is not None:
        lists, lines = table.values()
        names = list(lists)
        places = [f"{'line' if kind == 'jsonl' else 'row'} {line}" for line in lines]
    else:
        places = _csv_lines(path) if kind == "csv" else []
        rows = table.take(EveryColumn(table.names))
        found = rows.arrow(*rows.columns.values(), most=files.MOST_ROWS)
        if found is None:
            raise files.too_large(path)
        lists = {name: column.to_pylist() for name, column in zip(rows.columns, found, strict=True)}
        names = list(table.names)
        notes = rows.notes
        ambiguous = rows.ambiguous
        count = len(found[0]) if found else 0
        places = places or list(map(rows.locate or (lambda row: f"row {row + 1}"), range(count)))
    if kind in ("csv", "xlsx"):  # an apostrophe keeps a spreadsheet from running the text behind it
        names = list(map(files.text_of_cell, names))
        lists = {
            files.text_of_cell(name): [files.text_of_cell(entry) if entry else entry for entry in entries]
            for name, entries in lists.items()
        }
    repeated = {name: names.count(name) for name in names if names.count(name) > 1}
    lists |= {name: [None] * len(places) for name in repeated if name not in lists}
    plain = {name: _single_entries(entries) for name, entries in lists.items()}
    single = {name: entries for name, entries in lists.items() if plain[name] is not entries}
    lists = plain
    whole = SmallTable(str(path), lists, tuple(places), repeated, notes, ambiguous=ambiguous, single=single)
    rows_of = zip(*lists.values(), strict=True) if lists else ()
    full = [row for row, entries in enumerate(rows_of) if not all(map(is_missing, entries))]
    blank = blank_note(str(path), len(places) - len(full))
    if blank:
        return replace(whole.only(full), notes=(*notes, *blank))
    return whole


def _single_entries(entries: list[Any]) -> list[Any]:
    """Return a column of lists of one value each as these values, and any other as it is.

    So annotation tools write a label that could be several.
    """
    there = [entry for entry in entries if entry is not None]
    single = all(
        isinstance(e, list) and len(e) <= 1 and not isinstance(next(iter(e), 0), list | dict) for e in there
    )
    if not there or not single:
        return entries
    return [entry[0] if entry else None for entry in entries]


def _csv_lines(path: Path) -> list[str]:
    """Return where each row of a CSV file begins, refusing one of more or fewer columns than the header."""
    delimiter, _, header = files.csv_header(path)
    with closing(files.opened(path)) as text:
        records = itertools.islice(files.csv_records(text, delimiter), 1, None)
        found = []
        for line, fields in files.limited(records, lambda record: sum(map(len, record[1])), path):
            if len(fields) != len(header or ()):
                raise InputError(
                    f"{path}, line {line}: wrong number of columns",
                    given=len(fields),
                    allowed=str(len(header or ())),
                )
            if any(field.strip() for field in fields):
                found.append(f"line {line}")
    return found
