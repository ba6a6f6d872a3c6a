"""Sizes of strata as a user hands them over: by name, or in a column beside the units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, number_of_text
from stratal.errors import InputError
from stratal.tables.logs.log import ID_NAMES
from stratal.tables.small_table import SmallTable, plain_text

SIZE_NAMES = ("size", "sizes", "N_h", "N", "count", "population_size")
"""Columns that hold the sizes of strata, the first that is there."""


def sizes_of(given: Any, stratum: str | None) -> dict[str, int] | None:
    """Return sizes by stratum from a mapping or a table, in which a stratum may stand in several rows.

    Examples
    --------
    >>> sizes_of({"stratum": ["a", "a", "b"], "size": [30, 30, 5]}, None)
    {'a': 30, 'b': 5}
    """
    if given is None:
        return None
    if isinstance(given, Mapping) and not all(isinstance(v, list | np.ndarray) for v in given.values()):
        given = {"stratum": list(given), "size": list(given.values())}
    columns = SmallTable.of(given, "sizes")
    size = columns.find(*SIZE_NAMES) or SIZE_NAMES[0]
    numbers = columns.numbers(size, positive=True, whole=True)
    names = columns.texts(columns.find("stratum", stratum or "stratum") or "stratum").tolist()
    found = dict(zip(names, numbers.astype(np.int64).tolist(), strict=True))
    wrong = [name for name, number in zip(names, numbers.tolist(), strict=True) if found[name] != number]
    if wrong:
        raise InputError(
            f"{columns.label}: a stratum occurs twice, with different sizes",
            given=repr(wrong[0]),
            action="Keep the row with the size of the whole population.",
        )
    return found


def sized_strata(table: SmallTable) -> tuple[str, str, list[str]] | None:
    """Return the columns of strata, of their sizes and of measurements, None where no such sizes are there.

    Sizes are whole numbers in a column called so, the same in all rows of a stratum, and no fewer
    than these.

    Examples
    --------
    >>> rows = {"region": ["a", "a", "b", "b"], "N_h": [30, 30, 5, 5], "income": [1.5, 2, 3, 4]}
    >>> sized_strata(SmallTable.of(rows, "rows"))
    ('region', 'N_h', ['income'])
    """
    texts = {name: [plain_text(entry) for entry in entries] for name, entries in table.lists.items()}
    levels = {name: set(found) for name, found in texts.items()}
    few = [name for name in texts if None not in levels[name] and 1 < len(levels[name]) <= len(table) / 2]
    size = table.find(*SIZE_NAMES)
    if size not in few:
        return None
    numbers = {name: _all_numbers(entries) for name, entries in table.lists.items()}
    sizes = numbers[size]
    strata = [
        name
        for name in few
        if name != size and len(set(zip(texts[name], texts[size], strict=True))) == len(levels[name])
    ]
    if sizes is None or not strata or np.any(sizes != np.floor(sizes)):
        return None
    rows = Counter(texts[strata[0]])
    if any(rows[name] > number for name, number in zip(texts[strata[0]], sizes.tolist(), strict=True)):
        return None
    ids = table.find(*ID_NAMES)
    others = [
        name for name, found in numbers.items() if found is not None and name not in (size, *strata, ids)
    ]
    measured = [name for name in others if len(levels[name]) < len(table) or not _counts_rows(numbers[name])]
    return (strata[0], size, measured) if measured else None


def _all_numbers(entries: list[Any]) -> FloatArray | None:
    """Return the numbers of a column that holds nothing else."""
    numbers = np.array([number_of_text(entry) if isinstance(entry, str) else entry for entry in entries])
    return numbers if numbers.dtype.kind in "if" and np.all(np.isfinite(numbers)) else None


def _counts_rows(numbers: FloatArray | None) -> bool:
    """Return whether a column only numbers the rows."""
    return numbers is not None and bool(np.all(np.abs(np.diff(numbers)) == 1))
