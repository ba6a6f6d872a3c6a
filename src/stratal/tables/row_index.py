"""The index of a pandas object as the ids of its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from stratal.errors import InputError

# What an index without a name is called, as in pandas' `reset_index`.
UNNAMED_INDEX = "index"


def row_index(rows: Any) -> Any | None:
    """Return the index of a pandas DataFrame or Series, None where there is none or it only numbers the rows.

    Parameters
    ----------
    rows : pandas DataFrame or Series, or anything else

    Examples
    --------
    >>> import pandas as pd
    >>> row_index(pd.Series([0.5, 0.2], index=["a", "b"])).tolist()
    ['a', 'b']
    >>> row_index(pd.Series([0.5, 0.2])) is None
    True
    """
    if not hasattr(rows, "iloc") or not hasattr(rows, "index"):
        return None
    index = rows.index
    numbered = index.nlevels == 1 and index.name is None and index.dtype.kind in "iu"
    if numbered and np.array_equal(index.to_numpy(), np.arange(len(index))):
        return None
    return index


def index_name(index: Any, columns: Collection[Any] = ()) -> str:
    """Return the name of a pandas index among columns, none of which is called so.

    Examples
    --------
    >>> import pandas as pd
    >>> index_name(pd.Index(["a"], name="key")), index_name(pd.Index(["a"], name="key"), ["key"])
    ('key', 'index')
    """
    name = UNNAMED_INDEX if index.name is None else str(index.name)
    if name in columns:
        name = UNNAMED_INDEX
    while name in columns:
        name = f"{name}_"
    return name


def require_ids(index: Any, label: str) -> Any:
    """Return an index that identifies rows.

    Raises
    ------
    InputError
        For an index of several levels, and for one with duplicates.
    """
    action = "Name a column of unique ids, or drop the index: reset_index(drop=True)."
    if index.nlevels > 1:
        what = f"{label}: an index of several levels cannot be the ids"
        raise InputError(what, given=", ".join(map(str, index.names)), allowed="one level", action=action)
    again = index[index.duplicated()]
    if len(again):
        what = f"{label}: the index holds duplicates (first: {again[:1].tolist()[0]!r})"
        raise InputError(what, allowed="one unit per id", action=action)
    return index


def shared_index(columns: Mapping[str, Any]) -> Any | None:
    """Return the index that identifies the rows of all pandas objects among columns, None if none does.

    Raises
    ------
    InputError
        For an index that cannot be the ids, and if two objects have different ones: their rows may be in
        different orders.

    Examples
    --------
    >>> import pandas as pd
    >>> proxy = pd.Series([0.5, 0.2], index=["a", "b"])
    >>> shared_index({"proxy": proxy, "language": ["de", "en"]}).tolist()
    ['a', 'b']
    """
    found = {name: row_index(values) for name, values in columns.items()}
    first = next((name for name, index in found.items() if index is not None), None)
    if first is None:
        return None
    index = require_ids(found[first], first)
    for name, values in columns.items():
        if hasattr(values, "iloc") and not values.index.equals(index):
            raise InputError(
                f"the indexes of {first!r} and {name!r} differ",
                given=f"{index[:1].tolist()[0]!r}, … and {values.index[:1].tolist()[0]!r}, …",
                allowed="one index, in one order",
                action="Align them (reindex), or give ids=, and arrays in their order (to_numpy()).",
            )
    return index


def refuse_two_ids(index: str, columns: Sequence[str], label: str, keyword: str = "id") -> None:
    """Refuse a table whose index and one of `columns` may both be the ids, where nobody named either."""
    if columns:
        raise InputError(
            f"{label}: the index {index!r} and the column {columns[0]!r} may both be the ids",
            allowed="one column of ids",
            action=f"Name the one to use, {keyword}=…; reset_index(drop=True) drops the index.",
        )
