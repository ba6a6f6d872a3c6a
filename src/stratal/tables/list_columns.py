"""Lists in the cells of a table, such as passages that a search returned: as rows, or as one number each."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stratal.arrays import number_of_text
from stratal.errors import InputError, LabelError
from stratal.protocols import Cell, WithDimensions
from stratal.question.decoding import TRUTH_VALUES
from stratal.question.facts import verdict_numbers
from stratal.question.tags import list_of_text
from stratal.tables.small_table import SmallTable, is_missing, plain_text

# Kinds of rules: a row for each entry, or one number for each list; see `ListRule`.
ROWS = "rows"
MEAN = "mean"
PRECISION = "precision"
HIT = "hit"
# The rules in error messages.
LIST_RULES = "rows, mean, precision@K, hit@K"

# Texts of entries that are labels. Other words may be tags: a list of tags is one label, a set of names.
_ZERO_OR_ONE = frozenset({"0", "1"})

# Columns of a table with a row for each entry of a list.
ENTRY = "entry"
RANK = "rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRule:
    """The columns into which the lists of a table are converted.

    Parameters
    ----------
    kind : {"rows", "mean", "precision", "hit"}
        A row for each entry; the mean of each list; the sum of its first `depth` entries divided by `depth`;
        or the maximum of its first `depth` entries.
    depth : int, optional
    """

    kind: str
    depth: int | None = None

    @classmethod
    def parse(cls, text: str) -> ListRule:
        """Return the rule that a text states.

        Raises an `InputError` if the text is not a known rule.
        """
        match = re.fullmatch(r"(rows|mean)|(precision|hit)@([1-9]\d*)", text.strip())
        if match is None:
            raise InputError("unknown value of lists= (--lists)", given=repr(text), allowed=LIST_RULES)
        if match[1]:
            return cls(kind=match[1])
        return cls(kind=match[2], depth=int(match[3]))

    @property
    def requires_binary(self) -> bool:
        """Whether the entries must be 0 or 1."""
        return self.kind in (PRECISION, HIT)

    @property
    def description(self) -> str:
        """The value of a list, in words."""
        if self.kind == ROWS:
            return "a row for each of its entries"
        if self.kind == MEAN:
            return "the mean of its entries"
        if self.depth == 1:
            return "its first entry"
        if self.kind == HIT:
            return f"1 if any of its first {self.depth} entries is 1, else 0"
        return f"the sum of its first {self.depth} entries, divided by {self.depth}"

    def reduce(self, entries: Sequence[float]) -> float | None:
        """Return the number of one list; None for the mean of an empty list."""
        if self.kind == MEAN:
            return sum(entries) / len(entries) if entries else None
        assert self.depth is not None
        first_entries = entries[: self.depth]
        if self.kind == HIT:
            return max(first_entries, default=0.0)
        return sum(first_entries) / self.depth


def list_columns(rows: SmallTable, *, is_stated: bool = False) -> dict[str, list[list[Cell] | None]]:
    """Return the columns of lists: each cell a list or None; lists of objects become a column per key.

    Raises an `InputError` if the user stated that the table has lists, and some cells of a column of lists
    are not lists.
    """
    columns: dict[str, list[list[Cell] | None]] = {}
    for name, entries in rows.columns.items():
        # If the first entry is no list, the others need not be parsed.
        first = next((entry for entry in entries if not _is_absent(entry)), None)
        if _parse_list(first) is None:
            continue
        cells = [None if _is_absent(entry) else _parse_list(entry) for entry in entries]
        invalid_rows = [
            row for row, entry in enumerate(entries) if cells[row] is None and not _is_absent(entry)
        ]
        if invalid_rows and is_stated:
            raise InputError(
                f"{rows.table_name}, {rows.places[invalid_rows[0]]}: the entry of {name!r} is not a list",
                given=repr(entries[invalid_rows[0]]),
                allowed="a list such as [1, 0, 0] or an empty cell; or a table without this column",
            )
        # Free text may begin with a bracket: the column is then no column of lists.
        if invalid_rows:
            continue
        objects = [entry for cell in cells for entry in cell or ()]
        if objects and all(isinstance(entry, dict) for entry in objects):
            for key in dict.fromkeys(key for entry in objects for key in entry):
                cells_of_key = [
                    None if cell is None else [entry.get(key) for entry in cell] for cell in cells
                ]
                columns[f"{name}.{key}"] = cells_of_key
        else:
            columns[name] = cells
    return columns


def label_list_columns(rows: SmallTable, *, includes_words: bool = False) -> tuple[str, ...]:
    """Return the columns of lists of 0 and 1, which are labels or verdicts (right or wrong), not tags.

    Words, such as yes and no, may be tags; these columns are included only with `includes_words`.
    """
    names = []
    for name, cells in list_columns(rows).items():
        entries = {plain_text(entry) for cell in cells for entry in cell or ()} - {None}
        has_words = not all(TRUTH_VALUES.get(str(entry), entry) in _ZERO_OR_ONE for entry in entries)
        if has_words and not includes_words:
            continue
        if _are_binary(_distinct_numbers(_parse_numbers(cells))):
            names.append(name)
    return tuple(names)


def explode_lists(rows: SmallTable, unit: str | None) -> tuple[SmallTable, str]:
    """Return a table with a row for each entry of the lists, and the column of the units with a list each.

    Parameters
    ----------
    rows : SmallTable
    unit : str, optional
        The column of the units' ids; rows are numbered if there is none.

    Returns
    -------
    SmallTable
        With an id in `entry`, and the position in the list, from 1, in `rank`.
    str
        The column of the units.
    """
    columns = _list_columns_of_equal_length(rows)
    lengths = [
        max((len(cells[row] or ()) for cells in columns.values()), default=0) for row in range(len(rows))
    ]
    source_rows = [row for row, length in enumerate(lengths) for _ in range(length)]
    ranks = [rank for length in lengths for rank in range(1, length + 1)]
    rows_without_list = [
        row for row in range(len(rows)) if all(cells[row] is None for cells in columns.values())
    ]
    if rows_without_list or not source_rows:
        place = rows.places[next(iter(rows_without_list), 0)]
        raise InputError(
            f"{rows.table_name}, {place}: the number of entries of this unit is unknown",
            given=f"no list in {', '.join(columns)}",
            allowed="a list for each unit, such as its passages or scores, even without labels",
            action="Add such a column, or use a rule with one number for each unit: mean, precision@K, "
            "hit@K.",
        )
    list_names = {_source_column(rows, name) for name in columns}
    other_columns = {name: entries for name, entries in rows.columns.items() if name not in list_names}
    unit = unit or "unit"
    units = other_columns.get(unit, [str(row + 1) for row in range(len(rows))])
    if len(set(map(str, units))) < len(units):
        raise InputError(
            f"{rows.table_name}: column {unit!r} contains an id twice", allowed="one row for each unit"
        )
    exploded: dict[str, list[Cell]] = {unit: [units[row] for row in source_rows]}
    exploded |= {name: [entries[row] for row in source_rows] for name, entries in other_columns.items()}
    exploded |= {name: _explode_column(cells, lengths) for name, cells in columns.items()}
    # A column of this name may state other ranks, such as those before a reranking.
    exploded.setdefault(RANK, ranks)
    exploded[ENTRY] = [f"{units[row]}:{rank}" for row, rank in zip(source_rows, ranks, strict=True)]
    places = tuple(rows.places[row] for row in source_rows)
    return replace(SmallTable.of(exploded, rows.table_name), places=places), unit


def reduce_lists(rows: SmallTable, rule: ListRule) -> SmallTable:
    """Return the table with a number in place of each list of numbers; other lists are left out.

    A list without labels gives None; a partly labelled list raises an error.
    """
    columns = _list_columns_of_equal_length(rows)
    list_names = {_source_column(rows, name) for name in columns}
    reduced = {name: entries for name, entries in rows.columns.items() if name not in list_names}
    for name, cells in columns.items():
        numbers = _parse_numbers(cells)
        if numbers is None:
            continue
        reduced[name] = [
            None if entries is None else _reduce_list(f"{rows.table_name}, {place}", name, entries, rule)
            for place, entries in zip(rows.places, numbers, strict=True)
        ]
    return rows.with_columns(reduced)


def has_binary_lists(rows: SmallTable, column: str, rule: ListRule) -> bool:
    """Return whether the lists of a column contain only 0 and 1, or verdicts that count as these.

    Raises a `LabelError` for other numbers if the rule counts ones.
    """
    cells = list_columns(rows).get(column)
    if cells is None:
        return False
    numbers = _distinct_numbers(_parse_numbers(cells))
    if _are_binary(numbers):
        return True
    if rule.requires_binary:
        examples = ", ".join(f"{number:g}" for number in sorted(numbers)[:5]) or "no numbers"
        raise LabelError(
            f"{rows.table_name}: {rule.kind}@{rule.depth} requires labels of 0 and 1",
            given=f"{examples} in {column!r}",
            allowed="labels 0 and 1 in the lists; or lists='mean' (--lists mean)",
        )
    return False


# ---- cells


def _source_column(rows: SmallTable, name: str) -> str:
    """Return the column `a` of the table for a column of lists `a` or `a.key`."""
    while name not in rows.columns:
        name = name.rpartition(".")[0]
    return name


def _is_absent(entry: Cell) -> bool:
    """Return whether a cell has no list."""
    return not isinstance(entry, list | tuple | WithDimensions) and is_missing(entry)


def _parse_list(entry: Cell) -> list[Cell] | None:
    """Return a cell as a list, from JSON if it is text; None if it is not a list."""
    if isinstance(entry, list | tuple):
        return list(entry)
    if isinstance(entry, WithDimensions) and entry.ndim == 1:
        return list(entry.tolist())
    return list_of_text(entry) if isinstance(entry, str) else None


def _list_columns_of_equal_length(rows: SmallTable) -> dict[str, list[list[Cell] | None]]:
    """Return the columns of lists; lists of different lengths in one row raise an error."""
    columns = list_columns(rows, is_stated=True)
    if not columns:
        raise InputError(
            f"{rows.table_name}: no column contains lists",
            given="lists= (--lists)",
            allowed="a list in each cell of a column",
        )
    for row in range(len(rows)):
        lengths = {name: len(cells[row] or ()) for name, cells in columns.items() if cells[row] is not None}
        if len(set(lengths.values())) > 1:
            given_text = ", ".join(f"{length} in {name!r}" for name, length in lengths.items())
            raise InputError(
                f"{rows.table_name}, {rows.places[row]}: lists of different lengths",
                given=given_text,
                allowed="lists of equal length in each row; or a table without the other columns of lists",
            )
    return columns


def _explode_column(cells: Sequence[list[Cell] | None], lengths: Sequence[int]) -> list[Cell]:
    """Return the entries of all lists of a column; a missing list has None for each entry of its row."""
    return [
        entry
        for cell, length in zip(cells, lengths, strict=True)
        for entry in (cell if cell is not None else [None] * length)
    ]


def _parse_numbers(cells: Sequence[list[Cell] | None]) -> list[list[float | None] | None] | None:
    """Return the entries of lists as numbers, missing ones as None; None if any entry is not a number.

    Verdicts in words, such as yes and no, count as their numbers.
    """
    texts = [str(text) for text in {plain_text(entry) for cell in cells for entry in cell or ()} - {None}]
    numbers: Mapping[str, float] | None = {text: number_of_text(text) for text in texts}
    if not all(math.isfinite(number_of_text(text)) for text in texts):
        numbers = verdict_numbers(texts)
    if numbers is None:
        return None
    return [
        None if cell is None else [numbers.get(plain_text(entry) or "") for entry in cell] for cell in cells
    ]


def _distinct_numbers(numbers: Sequence[Sequence[float | None] | None] | None) -> set[float]:
    """Return the distinct numbers of lists; none if entries are not numbers or all are missing."""
    return {number for cell in numbers or () for number in cell or () if number is not None}


def _reduce_list(place: str, name: str, numbers: Sequence[float | None], rule: ListRule) -> float | None:
    """Return the number of one list; None if none of the entries that count has a label."""
    counted_numbers = numbers[: rule.depth]
    labelled_numbers = [number for number in counted_numbers if number is not None]
    if len(labelled_numbers) == len(counted_numbers):
        return rule.reduce(labelled_numbers)
    if not labelled_numbers:
        return None
    raise LabelError(
        f"{place}: the list in {name!r} has labels for only some of its entries",
        given=f"{len(labelled_numbers)} of {len(counted_numbers)} entries",
        allowed="labels for all entries that count, or for none",
        action="Label the other entries too, or count only the first ones: precision@K, hit@K.",
    )


def _are_binary(numbers: set[float]) -> bool:
    """Return whether there are numbers, and all are 0 or 1."""
    return bool(numbers) and numbers <= {0.0, 1.0}
