"""Small tables (labels, sizes, moments): columns as lists, with the position of each row in its source."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, is_null, number_of_text, text_of_value
from stratal.errors import InputError, MissingColumnError, same_name, suggest_names, unreadable_file_error
from stratal.names import split_names
from stratal.protocols import ArrowStream, Cell, Foreign, HuggingFaceDataset
from stratal.tables import files
from stratal.tables.csv_files import blank_note
from stratal.tables.frames import conversion_action, frame_columns
from stratal.tables.logs.log import Log
from stratal.tables.number_format import (
    HEAD_ROWS,
    FormatCounts,
    ambiguous_number_error,
    count_formats,
    is_percentage,
    percentage_notes,
    share_of_percentage,
)
from stratal.tables.readers import open_table
from stratal.tables.row_index import row_index
from stratal.tables.source import EveryColumn, Table


@dataclass(frozen=True, slots=True)
class SmallTable:
    """A small table as lists by column name.

    Parameters
    ----------
    table_name : str
        Name in error messages.
    columns : mapping of column to list (m,)
        The entries of each column.
    places : tuple of str (m,)
        Position of each row: `line 7` of a text file, else `row 7`.
    repeated : mapping of column to int
        Number of columns with the same name, for each name that occurs more than once.
    notes : tuple of str
        Notes about reading the table, such as blank rows and the sheet.
    log : Log, optional
        The evaluation log with all units, if the file is one.
    ambiguous : mapping of str to str
        Columns of numbers with two interpretations, with an example.
    index : pandas Index, optional
        Index of a dataframe that identifies its rows; it is the last column, and the default column of ids.
    single : mapping of column to list (m,)
        Columns in which each entry is a list of at most one value; `columns` has the values.
    joined : mapping of column to tuple of str
        Columns that the source does not have, with the columns that they were computed from.
    shares : mapping of column to list (m,)
        The numbers of columns of percentages that are read as shares; see `with_shares`.
    """

    table_name: str
    columns: Mapping[str, list[Cell]]
    places: tuple[str, ...]
    repeated: Mapping[str, int]
    notes: tuple[str, ...] = ()
    log: Log | None = None
    ambiguous: Mapping[str, str] = field(default_factory=dict)
    index: Foreign = None
    single: Mapping[str, list[Cell]] = field(default_factory=dict)
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shares: Mapping[str, list[float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, table: object, table_name: str, required_columns: Sequence[str] = (), *, has_any: bool = False
    ) -> SmallTable:
        """Return a path, a mapping of columns or a dataframe as a small table; a small table is unchanged.

        If a workbook has several sheets, the one with all `required_columns` is read, or, if `has_any`, the
        one with any of them.

        Raises an `InputError` for a file that cannot be read, an empty table, and other types.
        """
        if isinstance(table, SmallTable):
            return table
        if isinstance(table, str | Path):
            return _read_file(Path(table), required_columns, any if has_any else all)
        repeated: Mapping[str, int] = {}
        if isinstance(table, Mapping):
            lists = {str(name): np.asarray(column, dtype=object).tolist() for name, column in table.items()}
        elif isinstance(table, ArrowStream | HuggingFaceDataset):
            names, read_columns = frame_columns(table, mixed_as_text=True)
            repeated = _repeated_names(names)
            lists = {name: column.to_pylist() for name, column in read_columns(names).items()}
            lists |= {name: [None] * len(lists[name]) for name in repeated}
        else:
            raise InputError(
                f"{table_name} cannot be read",
                given=type(table).__name__,
                allowed="a path, a mapping from column names to values, or a dataframe",
                action=conversion_action(table),
            )
        lengths = {len(column) if isinstance(column, list) else 0 for column in lists.values()}
        if lengths == {0}:
            raise InputError(f"{table_name} contains no row", allowed="one row per unit")
        if len(lengths) != 1:
            raise InputError(
                f"{table_name}: columns must have the same length",
                action="Check the lengths of the lists.",
            )
        places = tuple(f"row {row + 1}" for row in range(lengths.pop()))
        return cls(table_name, lists, places, repeated, index=row_index(table))

    def __len__(self) -> int:
        return len(self.places)

    def only(self, rows: Sequence[int]) -> SmallTable:
        """Return the rows at these positions, in this order."""

        def select(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
            return {name: [column[row] for row in rows] for name, column in columns.items()}

        return replace(
            self,
            columns=select(self.columns),
            single=select(self.single),
            shares=select(self.shares),
            places=tuple(self.places[row] for row in rows),
        )

    def with_columns(self, columns: Mapping[str, list[Cell]]) -> SmallTable:
        """Return the same rows with other columns."""
        return replace(self, columns=dict(columns), single={}, shares={}, repeated={}, ambiguous={})

    def answers(self, name: str, action: str | None = None) -> list[Cell]:
        """Return a column of labels or answers; lists of one value stay lists, as they may be sets."""
        values = self.values(name, action)
        return self.single.get(self.find(name) or name, values)

    @property
    def names(self) -> list[str]:
        """The columns of the source, for error messages."""
        return [name for name in self.columns if name not in self.joined]

    def find(self, *names: str) -> str | None:
        """Return the first existing column of the names, without regard to case if that is unambiguous."""
        matches = (same_name(name, self.columns) for name in names)
        return next((name for name in matches if name is not None), None)

    def failed_answer_mask(self, name: str) -> tuple[bool, ...] | None:
        """Return in which rows (m,) the model's answer failed; None if the column is no metric of a log."""
        column = self.find(name)
        if self.log is None or column is None or column not in self.log.failed:
            return None
        failed_units = set(self.log.failed[column])
        return tuple(unit in failed_units for unit in self.columns["id"])

    def distinct_texts(self, max_rows_each: int) -> dict[str, set[str]]:
        """Return the distinct texts of columns with fewer than `max_rows_each` rows per text on average."""
        texts = {name: set(map(plain_text, entries)) - {None} for name, entries in self.columns.items()}
        columns = {name: {str(text) for text in distinct} for name, distinct in texts.items()}
        return {
            name: entries for name, entries in columns.items() if max_rows_each * len(entries) > len(self)
        }

    def values(self, name: str, action: str | None = None) -> list[Cell]:
        """Return the entries of a column; raise an error for an unknown or duplicate column."""
        column = self.find(name)
        if column is None:
            # In Python, a text is one name, except for labels; the command separates names by commas.
            split = split_names(name)
            if len(split) > 1 and all(self.find(part) is not None for part in split):
                action = f"Name one column; where an option accepts several, give a list: {[*split]}."
            raise MissingColumnError(
                f"{self.table_name}: no column {name!r}",
                column=name,
                allowed=suggest_names(name, self.names),
                action=action,
            )
        self.refuse_repeated(column)
        # Points in such a column may separate thousands or decimals.
        if column in self.ambiguous:
            raise ambiguous_number_error(self.table_name, column, self.ambiguous[column])
        return self.columns[column]

    def refuse_repeated(self, *names: str) -> None:
        """Raise an error for a name that several columns have."""
        for name in names:
            if name in self.repeated:
                raise InputError(
                    f"{self.table_name}: {self.repeated[name]} columns are called {name!r}",
                    action="Rename or drop the others.",
                )

    @property
    def notes_on_repeated(self) -> tuple[str, ...]:
        """The notes that columns with a common name are not used."""
        return tuple(
            f"{count} columns are called {name!r} and are not used; rename or drop the others"
            for name, count in self.repeated.items()
        )

    def texts(self, name: str, *, sets: bool = False) -> AnyArray:
        """Return a column as text, whole numbers without a point; missing entries raise an error.

        Lists are JSON if they are `sets` of tags.
        """
        if sets:
            entries = self.answers(name)
        else:
            entries = self.values(name)
        texts = [json.dumps(entry) if isinstance(entry, list) else plain_text(entry) for entry in entries]
        if sets and not any(isinstance(entry, list) for entry in entries):
            # In separated texts, an empty text is the empty set.
            texts = ["[]" if text is None else text for text in texts]
        if None in texts:
            raise InputError(
                f"{self.table_name}: column {name!r} is empty in {self.places[texts.index(None)]}",
                action="Fill in the column for every row, or name another column.",
            )
        return np.array(texts, dtype=np.str_)

    def is_numeric(self, name: str) -> bool:
        """Return whether the table has a column with a finite number in every row."""
        column = self.find(name)
        if column is None:
            return False
        return bool(np.isfinite(self.numbers_or_nan(column)).all())

    def with_shares(self, names: Sequence[str | None]) -> SmallTable:
        """Return the table in which `numbers` reads percentages in some columns as shares, with a note.

        The entries remain text, because percentages may also be the names of groups.
        """
        shares = dict(self.shares)
        counts = {}
        for name in filter(None, (self.find(name) for name in names if name is not None)):
            entries = self.columns[name]
            formats = formats_with_percentages(entries)
            if name in shares or formats is None or formats.percent_mark is None:
                continue
            counts[name] = formats
            mark = formats.percent_mark
            shares[name] = [share_of_percentage(plain_text(entry) or "", mark) for entry in entries]
        return replace(self, shares=shares, notes=(*self.notes, *percentage_notes(counts)))

    def numbers_or_nan(self, name: str) -> FloatArray:
        """Return a column as numbers, and NaN for other entries."""
        entries = self.values(name)
        shares = self.shares.get(self.find(name) or name)
        return np.array(shares or [_to_number(entry) for entry in entries])

    def numbers(self, name: str, *, positive: bool = False, whole_numbers: bool = False) -> FloatArray:
        """Return a column as finite numbers (m,); `positive` and `whole_numbers` require such numbers."""
        entries = self.values(name)
        numbers = self.numbers_or_nan(name)
        is_invalid = ~np.isfinite(numbers)
        if positive:
            is_invalid |= numbers <= 0
        if whole_numbers:
            is_invalid |= numbers != np.floor(numbers)
        if is_invalid.any():
            row = int(np.argmax(is_invalid))
            kind = "finite numbers"
            if whole_numbers:
                kind = "whole numbers of units"
            if positive:
                kind = f"{kind} above 0"
            if is_missing(entries[row]):
                raise InputError(
                    f"{self.table_name}: column {name!r} holds {sum(map(is_missing, entries)):,} missing "
                    "values",
                    given=f"the first in {self.places[row]}",
                    allowed=kind,
                    action=f"Fill or drop these rows, or do not use {name!r}.",
                )
            raise InputError(
                f"{self.table_name}: column {name!r}, {self.places[row]} is not usable",
                given=repr(entries[row]),
                allowed=kind,
                action="Write numbers with a decimal point (0.976), and a judge's words as 1 and 0; or do "
                f"not use {name!r}.",
            )
        return numbers


def is_missing(entry: object) -> bool:
    """Return whether an entry is None, NaN (of any kind), masked or blank."""
    if isinstance(entry, str):
        return not entry.strip()
    # Nearly all other entries are of these types, and tables have millions.
    if entry is None:
        return True
    if type(entry) in (int, bool):
        return False
    if type(entry) is float:
        return math.isnan(entry)
    if is_null(entry):
        return True
    # Comparing containers compares their entries, and comparing a signalling NaN raises an error.
    if isinstance(entry, Decimal):
        return entry.is_nan()
    return isinstance(entry, Number | np.generic) and bool(entry != entry)


def plain_text(entry: object) -> str | None:
    """Return an entry as text, whole numbers without a point; None if it is missing."""
    if is_missing(entry):
        return None
    return text_of_value(entry)


def formats_with_percentages(entries: Sequence[object]) -> FormatCounts | None:
    """Return the counts of number formats of a column with percentages; None for other columns."""
    head = (entry for entry in entries[:HEAD_ROWS] if isinstance(entry, str))
    if not any(map(is_percentage, head)):
        return None
    return count_formats(list(map(plain_text, entries)))


def _to_number(entry: Cell) -> float:
    """Return an entry as a number, NaN if it is not one."""
    try:
        if isinstance(entry, str):
            truth_value = {"true": 1.0, "false": 0.0}.get(entry.strip().casefold())
            if truth_value is None:
                return number_of_text(entry)
            return truth_value
        return float(entry)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _repeated_names(names: Sequence[str]) -> dict[str, int]:
    """Return how many columns have each name that is not unique."""
    return {name: count for name, count in Counter(names).items() if count > 1}


def _read_file(
    path: Path, required_columns: Sequence[str], are_enough: Callable[[Iterable[bool]], bool]
) -> SmallTable:
    """Return a small file as a table: text is not converted, and JSON has Python values.

    A sheet of a workbook is read if `are_enough` (`any` or `all`) of the required columns are in it.
    """
    path = files.local_path(path)
    files.existing_file(path)
    try:
        table = open_table(
            path,
            is_wanted_sheet=lambda names: are_enough(
                same_name(name, names) is not None for name in required_columns
            ),
        )
        if table.log is not None:
            places = tuple(f"unit {unit!r}" for unit in table.log.columns["id"])
            return SmallTable(str(path), dict(table.log.columns), places, {}, table.log.notes, table.log)
        small_table = _file_columns(table, path)
    except files.READ_ERRORS as error:
        raise unreadable_file_error(path, error) from None
    if not len(small_table):
        raise InputError(f"{path} contains no row", allowed="a header and one row per unit")
    return small_table


def _file_columns(table: Table, path: Path) -> SmallTable:
    """Return all columns of a file without its blank rows."""
    file_format = files.format_of(path)
    notes: tuple[str, ...] = ()
    ambiguous: Mapping[str, str] = {}
    lists: dict[str, list[Cell]]
    if table.read_values is not None:
        lists, lines = table.read_values()
        names = list(lists)
        unit = "line" if file_format == "jsonl" else "row"
        places = [f"{unit} {line}" for line in lines]
    else:
        places = _csv_row_places(path) if file_format == "csv" else []
        rows = table.read_columns(EveryColumn(table.names))
        arrow_columns = rows.arrow(*rows.columns.values(), max_rows=files.MAX_TABLE_ROWS)
        if arrow_columns is None:
            raise files.too_large_error(path)
        lists = {name: column.to_pylist() for name, column in zip(rows.columns, arrow_columns, strict=True)}
        names = list(table.names)
        notes = rows.notes
        ambiguous = rows.ambiguous
        # A table without columns has no rows that could be counted.
        count = len(arrow_columns[0]) if arrow_columns else 0
        places = places or list(map(rows.row_location or (lambda row: f"row {row + 1}"), range(count)))
    # An apostrophe in front of a text prevents that a spreadsheet runs it as a formula.
    if file_format in ("csv", "xlsx"):
        names = list(map(files.unquote_cell, names))
        lists = {
            files.unquote_cell(name): [entry and files.unquote_cell(entry) for entry in entries]
            for name, entries in lists.items()
        }
    repeated = _repeated_names(names)
    lists |= {name: [None] * len(places) for name in repeated if name not in lists}
    columns = {name: _single_entries(entries) for name, entries in lists.items()}
    single = {name: entries for name, entries in lists.items() if columns[name] is not entries}
    small_table = SmallTable(
        str(path), columns, tuple(places), repeated, notes, ambiguous=ambiguous, single=single
    )
    entries_by_row = zip(*columns.values(), strict=True) if columns else ()
    filled_rows = [row for row, entries in enumerate(entries_by_row) if not all(map(is_missing, entries))]
    notes_on_blank_rows = blank_note(str(path), len(places) - len(filled_rows))
    if notes_on_blank_rows:
        return replace(small_table.only(filled_rows), notes=(*notes, *notes_on_blank_rows))
    return small_table


def _single_entries(entries: list[Cell]) -> list[Cell]:
    """Return the values of a column of lists of at most one value each; other columns are unchanged.

    Annotation tools that allow several labels write single labels as lists.
    """
    present_entries = [entry for entry in entries if entry is not None]
    have_one_value = all(
        isinstance(entry, list) and len(entry) <= 1 and not isinstance(next(iter(entry), 0), list | dict)
        for entry in present_entries
    )
    if not present_entries or not have_one_value:
        return entries
    return [entry[0] if entry else None for entry in entries]


def _csv_row_places(path: Path) -> list[str]:
    """Return the first line of each row of a CSV file; raise an error for a wrong number of columns."""
    delimiter, _, header = files.csv_header(path)
    with closing(files.open_text(path)) as text:
        records = itertools.islice(files.csv_records(text, delimiter), 1, None)
        places = []
        # A cell may contain line breaks, so that rows and lines differ.
        for line, fields in files.limit_records(records, lambda record: sum(map(len, record[1])), path):
            if len(fields) != len(header or ()):
                raise InputError(
                    f"{path}, line {line}: wrong number of columns",
                    given=len(fields),
                    allowed=str(len(header or ())),
                )
            if any(field.strip() for field in fields):
                places.append(f"line {line}")
    return places
