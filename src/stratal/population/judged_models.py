"""Long tables: a row for each item and model, of which a plan takes one model at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stratal.tables.logs.log import ID_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MODEL_NAMES = ("model", "model_name", "model_id", "system", "system_name")
"""How a column is called that names the model of each row, best first."""


def judged_models(
    columns: Sequence[Mapping[str, Any]], rows: int, first: Callable[[str], str]
) -> dict[str, Any] | None:
    """Return what a long table says of its models, None for a table of one row per item.

    Parameters
    ----------
    columns : sequence of mapping
        As `describe_columns` describes them.
    rows : int
    first : callable
        Returns the first of a column's values in their order.

    Returns
    -------
    dict or None
        `column`, which names the models; `count`; `first`, a model's name; `id`, the column whose values
        stand once for each model, None if there is none.
    """
    named = {row["name"].casefold(): row for row in columns}
    found = next((named[name] for name in MODEL_NAMES if name in named), None)
    if found is None or found["missing"] or not 1 < found["distinct"] <= rows // 2:
        return None
    if any(row["distinct"] == rows and row["kind"] == "text" for row in columns):
        return None
    each = [row for row in columns if row["distinct"] * found["distinct"] == rows and not row["missing"]]
    names = [row["name"] for row in each if row is not found and _may_be_id(row)]
    return {
        "column": found["name"],
        "count": found["distinct"],
        "first": first(found["name"]),
        "id": next((name for name in names if name.lower() in ID_NAMES), names[0] if names else None),
    }


def _may_be_id(row: Mapping[str, Any]) -> bool:
    return row["kind"] == "text" or "id" in row["name"].lower()
