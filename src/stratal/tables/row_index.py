"""The index of a pandas object as the ids of its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from stratal.errors import InputError
from stratal.protocols import Foreign, PandasObject

# Name of an index without a name, as in `reset_index` of pandas.
UNNAMED_INDEX = "index"


def row_index(rows: object) -> Foreign | None:
    """Return the index of a pandas DataFrame or Series, None without one and if it only numbers the rows.

    Parameters
    ----------
    rows : pandas DataFrame or Series, or anything else
    """
    if not isinstance(rows, PandasObject):
        return None
    index = rows.index
    may_be_row_numbers = index.nlevels == 1 and index.name is None and index.dtype.kind in "iu"
    if may_be_row_numbers and np.array_equal(index.to_numpy(), np.arange(len(index))):
        return None
    return index


def index_name(index: Foreign, columns: Collection[Foreign] = ()) -> str:
    """Return a name for a pandas index that no column has."""
    if index.name is None:
        name = UNNAMED_INDEX
    else:
        name = str(index.name)
    if name in columns:
        name = UNNAMED_INDEX
    while name in columns:
        name = f"{name}_"
    return name


def require_unique_index(index: Foreign, table_name: str) -> Foreign:
    """Return an index unchanged if it identifies rows, else raise an error.

    Raises an `InputError` for an index of several levels, and for one with duplicates.
    """
    action = "Name a column of unique ids, or drop the index: reset_index(drop=True)."
    if index.nlevels > 1:
        problem = f"{table_name}: an index with several levels cannot be used as ids"
        raise InputError(problem, given=", ".join(map(str, index.names)), allowed="one level", action=action)
    duplicates = index[index.duplicated()]
    if len(duplicates):
        problem = f"{table_name}: the index contains duplicates (first: {duplicates[:1].tolist()[0]!r})"
        raise InputError(problem, allowed="one unit per id", action=action)
    return index


def shared_index(columns: Mapping[str, Foreign]) -> Foreign | None:
    """Return the common index of the pandas objects among columns, None if no index identifies rows.

    Raises an `InputError` for an index that cannot serve as the ids, and if two objects have different ones:
    their rows may be in different orders.
    """
    indexes = {name: row_index(values) for name, values in columns.items()}
    first_name = next((name for name, index in indexes.items() if index is not None), None)
    if first_name is None:
        return None
    index = require_unique_index(indexes[first_name], first_name)
    for name, values in columns.items():
        if isinstance(values, PandasObject) and not values.index.equals(index):
            raise InputError(
                f"the indexes of {first_name!r} and {name!r} differ",
                given=f"{index[:1].tolist()[0]!r}, … and {values.index[:1].tolist()[0]!r}, …",
                allowed="the same index, in the same order",
                action="Align the indexes (reindex), or give ids= and arrays in the order of the ids "
                "(to_numpy()).",
            )
    return index


def refuse_two_ids(index: str, columns: Sequence[str], table_name: str, keyword: str = "id") -> None:
    """Raise an error if `columns` may have the ids as well as the index, of which neither was named."""
    if columns:
        raise InputError(
            f"{table_name}: the index {index!r} and the column {columns[0]!r} may both contain the ids",
            allowed="one column of ids",
            action=f"Name the column of the ids: {keyword}=…; reset_index(drop=True) drops the index.",
        )
