"""Columns of structs: their fields as columns of their own, under dotted names."""

from __future__ import annotations

from typing import Any


def with_nested(table: Any, columns: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """Return an Ibis table with the fields of its structs as columns, and the names of all columns.

    Parameters
    ----------
    table : Ibis table
    columns : dict of str to str
        The user's names to the table's own.

    Examples
    --------
    >>> import ibis, pyarrow as pa
    >>> table = ibis.memtable(pa.table({"judge": [{"score": 0.5}]}))
    >>> with_nested(table, {"judge": "judge"})[1]
    {'judge': 'judge', 'judge.score': 'nested0'}
    """
    fields: dict[str, Any] = {}
    types = table.schema()
    for name, column in columns.items():
        if types[column].is_struct():
            fields |= _fields(name, table[column])
    fields = {name: field for name, field in fields.items() if name not in columns}
    if not fields:
        return table, columns
    added = {name: f"nested{number}" for number, name in enumerate(fields)}
    return table.mutate(**{added[name]: field for name, field in fields.items()}), columns | added


def _fields(name: str, column: Any) -> dict[str, Any]:
    kind = column.type()
    if not kind.is_struct():
        return {}
    found: dict[str, Any] = {}
    for inner in kind.names:
        found |= {f"{name}.{inner}": column[inner], **_fields(f"{name}.{inner}", column[inner])}
    return found


def arrow_names(schema: Any) -> dict[str, tuple[str, ...]]:
    """Return the columns of an Arrow schema and the fields of its structs, by the path to each.

    Examples
    --------
    >>> import pyarrow as pa
    >>> arrow_names(pa.schema({"id": pa.int64(), "judge": pa.struct({"score": pa.float64()})}))
    {'id': ('id',), 'judge': ('judge',), 'judge.score': ('judge', 'score')}
    """
    import pyarrow as pa

    found: dict[str, tuple[str, ...]] = {field.name: (field.name,) for field in schema}
    for field in schema:
        if pa.types.is_struct(field.type):
            inner = arrow_names(pa.schema(list(field.type)))
            found |= {
                f"{field.name}.{name}": (field.name, *path)
                for name, path in inner.items()
                if f"{field.name}.{name}" not in found
            }
    return found
