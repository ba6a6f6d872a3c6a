"""Lists in the cells of a table, such as the passages of a question: as rows, or as one number per list."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stratal.errors import InputError, LabelError
from stratal.tables.small_table import SmallTable, is_missing

ROWS = "rows"
MEAN = "mean"
PRECISION = "precision"
HIT = "hit"
FORMS = "rows, mean, precision@K, hit@K"

# Columns of a table with a row for each entry of a list.
ENTRY = "entry"
RANK = "rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRule:
    """What the lists of a table become.

    Parameters
    ----------
    kind : {"rows", "mean", "precision", "hit"}
        A row for each entry; the mean of each list; the sum of its first `depth` entries over `depth`; or the
        largest of these.
    depth : int, optional
    """

    kind: str
    depth: int | None = None

    @classmethod
    def parse(cls, text: str) -> ListRule:
        """Return the rule that a text states.

        Raises
        ------
        InputError
            For another text.
        """
        match = re.fullmatch(r"(rows|mean)|(precision|hit)@([1-9]\d*)", text.strip())
        if match is None:
            raise InputError("unknown use of lists: lists= (--lists)", given=repr(text), allowed=FORMS)
        if match[1]:
            return cls(kind=match[1])
        return cls(kind=match[2], depth=int(match[3]))

    @property
    def text(self) -> str:
        """What a list counts as, in words."""
        if self.kind == ROWS:
            return "a row for each of its entries"
        if self.kind == MEAN:
            return "the mean of its entries"
        if self.kind == HIT:
            return f"a hit if any of its first {self.depth} entries is one"
        return f"the share of its first {self.depth} entries"

    def number(self, entries: Sequence[float]) -> float | None:
        """Return the number of one list; None for the mean of an empty list."""
        if self.kind == MEAN:
            return sum(entries) / len(entries) if entries else None
        assert self.depth is not None
        first = entries[: self.depth]
        if self.kind == HIT:
            return max(first, default=0.0)
        return sum(first) / self.depth


def list_columns(rows: SmallTable) -> dict[str, list[list[Any] | None]]:
    """Return the columns of lists: each cell a list or None; lists of objects become a column per name."""
    columns: dict[str, list[list[Any] | None]] = {}
    for name, entries in rows.lists.items():
        first = next((entry for entry in entries if not is_missing(entry)), None)
        if _list_of(first) is None:
            continue
        cells = [_list_of(entry) for entry in entries]
        is_list = [cell is not None for cell in cells]
        is_absent = [is_missing(entry) for entry in entries]
        if not any(is_list) or not all(a or b for a, b in zip(is_list, is_absent, strict=True)):
            continue
        objects = [entry for cell in cells for entry in cell or ()]
        if objects and all(isinstance(entry, dict) for entry in objects):
            for key in dict.fromkeys(key for entry in objects for key in entry):
                of_key = [None if cell is None else [entry.get(key) for entry in cell] for cell in cells]
                columns[f"{name}.{key}"] = of_key
        else:
            columns[name] = cells
    return columns


def lists_of_labels(rows: SmallTable) -> tuple[str, ...]:
    """Return the columns of lists of 0 and 1, which are labels or verdicts of each entry and no tags."""
    names = []
    for name, cells in list_columns(rows).items():
        words = {str(entry) for cell in cells for entry in cell or () if not is_missing(entry)}
        if words and words <= {"0", "1", "0.0", "1.0", "True", "False"}:
            names.append(name)
    return tuple(names)


def with_rows_of_lists(rows: SmallTable, unit: str | None) -> tuple[SmallTable, str]:
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
    columns = _with_equal_lengths(rows)
    lengths = [
        max((len(cells[row] or ()) for cells in columns.values()), default=0) for row in range(len(rows))
    ]
    sources = [row for row, length in enumerate(lengths) for _ in range(length)]
    ranks = [rank for length in lengths for rank in range(1, length + 1)]
    absent = [row for row in range(len(rows)) if all(cells[row] is None for cells in columns.values())]
    if absent or not sources:
        place = rows.places[next(iter(absent), 0)]
        raise InputError(
            f"{rows.label}, {place}: how many entries the unit has is not known",
            given=f"no list in {', '.join(columns)}",
            allowed="a list of each unit, such as its passages or scores, also without labels",
            action="Add such a column, or count one number for each unit: mean, precision@K, hit@K.",
        )
    nested = {name.partition(".")[0] for name in columns}
    plain = {name: entries for name, entries in rows.lists.items() if name not in nested}
    unit = unit or "unit"
    units = plain.get(unit, [str(row + 1) for row in range(len(rows))])
    if len(set(map(str, units))) < len(units):
        raise InputError(f"{rows.label}: column {unit!r} has an id twice", allowed="one row for each unit")
    lists: dict[str, list[Any]] = {unit: [units[row] for row in sources]}
    lists |= {name: [entries[row] for row in sources] for name, entries in plain.items()}
    for name, cells in columns.items():
        lists[name] = [None if cells[row] is None else entry for row, entry in _entries(cells, lengths)]
    lists.setdefault(RANK, ranks)
    lists[ENTRY] = [f"{units[row]}:{rank}" for row, rank in zip(sources, ranks, strict=True)]
    return SmallTable.of(lists, rows.label), unit


def with_numbers_of_lists(rows: SmallTable, rule: ListRule) -> SmallTable:
    """Return the table with a number in place of each list of numbers; other lists are left out.

    A list without any label has none; a list that has labels in part is refused.
    """
    columns = _with_equal_lengths(rows)
    nested = {name.partition(".")[0] for name in columns}
    lists = {name: entries for name, entries in rows.lists.items() if name not in nested}
    for name, cells in columns.items():
        numbers = [None if cell is None else _numbers_of(cell) for cell in cells]
        if all((cell is None) == (entries is None) for cell, entries in zip(cells, numbers, strict=True)):
            lists[name] = [
                None if entries is None else _number_of_list(f"{rows.label}, {place}", name, entries, rule)
                for place, entries in zip(rows.places, numbers, strict=True)
            ]
    return SmallTable.of(lists, rows.label)


# ---- cells


def _list_of(entry: Any) -> list[Any] | None:
    """Return a cell as a list, from JSON if it is text; None if it is no list."""
    if isinstance(entry, list | tuple):
        return list(entry)
    if isinstance(entry, str) and entry.lstrip().startswith("["):
        try:
            value = json.loads(entry)
        except ValueError:
            return None
        return value if isinstance(value, list) else None
    return None


def _with_equal_lengths(rows: SmallTable) -> dict[str, list[list[Any] | None]]:
    """Return the columns of lists, refusing lists of different lengths in one row."""
    columns = list_columns(rows)
    if not columns:
        raise InputError(
            f"{rows.label}: no column has lists",
            given="lists= (--lists)",
            allowed="a list in each cell of a column",
        )
    for row in range(len(rows)):
        lengths = {name: len(cells[row] or ()) for name, cells in columns.items() if cells[row] is not None}
        if len(set(lengths.values())) > 1:
            given = ", ".join(f"{length} in {name!r}" for name, length in lengths.items())
            raise InputError(
                f"{rows.label}, {rows.places[row]}: lists of different lengths",
                given=given,
                allowed="one entry for each item in every list; other columns of lists left out",
            )
    return columns


def _entries(cells: Sequence[list[Any] | None], lengths: Sequence[int]) -> list[tuple[int, Any]]:
    """Return the row and the entry of each place of a column of lists."""
    return [
        (row, entry)
        for row, (cell, length) in enumerate(zip(cells, lengths, strict=True))
        for entry in (cell if cell is not None else [None] * length)
    ]


def _numbers_of(cell: Sequence[Any]) -> list[float | None] | None:
    """Return the entries as numbers, missing ones as None; None if any is no number."""
    numbers: list[float | None] = []
    for entry in cell:
        if is_missing(entry):
            numbers.append(None)
        elif isinstance(entry, bool | int | float):
            numbers.append(float(entry))
        else:
            return None
    return numbers


def _number_of_list(place: str, name: str, numbers: Sequence[float | None], rule: ListRule) -> float | None:
    """Return the number of one list; None where none of the entries that count has a label."""
    used = numbers[: rule.depth]
    present = [number for number in used if number is not None]
    if len(present) == len(used):
        return rule.number(present)
    if not present:
        return None
    raise LabelError(
        f"{place}: the list in {name!r} has labels in part",
        given=f"{len(present)} of {len(used)} entries",
        allowed="labels of all entries that count, or of none",
        action="Label the other entries too, or count only the first ones: precision@K, hit@K.",
    )
