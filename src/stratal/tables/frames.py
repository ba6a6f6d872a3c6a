"""Dataframes and Ibis tables as sources: any dataframe through the Arrow interface, a table where it is."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stratal.errors import InputError, lone_surrogate
from stratal.tables.engine import duckdb_connection
from stratal.tables.parquet import arrow_names, with_nested
from stratal.tables.row_index import index_name, row_index
from stratal.tables.source import Rows, Source, Table, readable
from stratal.tables.spark_files import table_of

LABEL = "the table"

# Types of PyArrow's that DuckDB reads as something else, or not at all.
_NO_ENGINES = ("is_interval", "is_union", "is_list_view", "is_large_list_view")


def frame_table(table: Any) -> Table:
    """Return a dataframe or an Ibis table as a table."""
    backend = None
    if hasattr(table, "createOrReplaceTempView"):
        table, backend = table_of(table)
    if hasattr(table, "get_backend"):
        backend = backend or table.get_backend()
        table, columns = with_nested(table)
        source = Source(label=LABEL, backend=backend, table=table, columns=columns, ordered=False)
        return Table(label=LABEL, names=tuple(columns), take=lambda chosen: source)
    return arrow_table(duckdb_connection(), table, LABEL)


def arrow_table(connection: Any, table: Any, label: str) -> Table:
    """Return a dataframe as a table of a connection to DuckDB."""
    names, read = frame_columns(table)
    return Table(
        label=label,
        names=tuple(names),
        index=row_index(table),
        take=lambda chosen: registered(connection, read(chosen.among(names)), label),
    )


def registered(connection: Any, columns: Mapping[str, Any], label: str) -> Rows:
    """Return Arrow columns by name as rows of a connection to DuckDB, called `label` in errors.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from stratal.tables.engine import duckdb_connection
    >>> registered(duckdb_connection(), {"id": pa.chunked_array([[1, 2]])}, "the table").label
    'the table'
    """
    import pyarrow as pa

    plain = [_engines(name, column, label) for name, column in columns.items()]
    name = f"held_{uuid.uuid4().hex}"
    with readable(label):
        connection.register(name, pa.table({f"c{at}": column for at, column in enumerate(plain)}))
    internal = {name: f"c{at}" for at, name in enumerate(columns)}
    return Rows(label=label, connection=connection, origin=name, columns=internal)


def frame_columns(table: Any) -> tuple[list[str], Callable[[Sequence[str]], dict[str, Any]]]:
    """Return the names of a dataframe's columns, and what reads some of them as Arrow columns by name.

    Through the Arrow interface, but for pandas: its own conversion makes null of NaN, a column of any index,
    and fails where two columns have one name. An index that identifies rows is the last column.

    Examples
    --------
    >>> import pyarrow as pa
    >>> names, read = frame_columns(pa.table({"a": [1], "b": [2]}))
    >>> names, list(read(["b"]))
    (['a', 'b'], ['b'])
    """
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        names = [name if isinstance(name, str) else repr(name) for name in table.columns]
        index = row_index(table)
        if index is not None and index.nlevels == 1:
            names.append(index_name(index, names))
        return names, lambda used: _pandas_columns(table, {name: names.index(name) for name in used})
    reader = _reader(table)
    names = reader.schema.names
    if len(set(names)) == len(names):
        paths = arrow_names(reader.schema)
    else:
        paths = {name: (name,) for name in names}
    return [*names, *(name for name in paths if name not in names)], lambda used: _arrow_columns(
        reader, {name: paths[name] for name in used}
    )


def _reader(table: Any) -> Any:
    import pyarrow as pa

    if hasattr(table, "with_format") and hasattr(table, "column_names"):
        if isinstance(table.column_names, Mapping):
            given = ", ".join(map(repr, table.column_names))
            action = "Give one of them: dataset['test']."
            raise InputError("this holds several splits", given=given, action=action)
        table = table.with_format("arrow")[:]
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not hasattr(table, "__arrow_c_stream__"):
        if hasattr(table, "collect"):
            lazy = "Collect it first: .collect()."
        else:
            lazy = None
        raise InputError(
            "the table is of a kind that cannot be read",
            given=f"{type(table).__module__}.{type(table).__qualname__}",
            allowed="pandas, Polars, PyArrow or any dataframe with the Arrow interface, or an Ibis table",
            action=lazy or "Files are read by Population.read, arrays by Population.from_arrays.",
        )
    schema = getattr(table, "schema", None)
    kinds = schema.items() if isinstance(schema, Mapping) else ()
    objects = [name for name, kind in kinds if str(kind) == "Object"]
    if objects:
        raise InputError(
            f"{LABEL} has a column of Python objects, which the Arrow interface cannot hand over",
            given=", ".join(map(repr, objects)),
            action=f"Leave it out, .drop({', '.join(map(repr, objects))}), or turn it into numbers or texts.",
        )
    try:
        return pa.RecordBatchReader.from_stream(table)
    except (pa.ArrowException, OSError, RuntimeError) as error:
        raise InputError(
            f"{LABEL} cannot be read through the Arrow interface",
            given=str(error),
            action="Convert it first, such as by .to_pandas(), or write it to a Parquet file.",
        ) from error


def _arrow_columns(reader: Any, paths: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the named columns by the paths to them, the others left behind batch by batch."""
    import pyarrow as pa
    import pyarrow.compute as pc

    tops = list(dict.fromkeys(path[0] for path in paths.values()))
    schema = pa.schema([reader.schema.field(name) for name in tops])
    whole = pa.Table.from_batches([batch.select(tops) for batch in reader], schema)
    return {
        name: pc.struct_field(whole[top], inner) if inner else whole[top]
        for name, (top, *inner) in paths.items()
    }


def _pandas_columns(frame: Any, positions: Mapping[str, int]) -> dict[str, Any]:
    """Return the columns at these positions by name; the index stands behind the last column."""
    import pyarrow as pa

    columns = {}
    for name, position in positions.items():
        is_index = position == len(frame.columns)
        if is_index:
            series = frame.index.to_series()
        else:
            series = frame.iloc[:, position]
        try:
            columns[name] = _pandas_array(series)
        except UnicodeEncodeError as error:
            raise lone_surrogate(f"{LABEL}: column {name!r}", error.object) from None
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise InputError(
                f"{LABEL}: column {name!r} mixes kinds of values", given=str(error), allowed="one kind"
            ) from None
    return columns


def _pandas_array(series: Any) -> Any:
    """Return a column with NaN kept apart from null, where pandas does."""
    import pyarrow as pa

    kind = getattr(series.dtype, "categories", series).dtype
    if type(kind).__name__ in ("PeriodDtype", "IntervalDtype"):
        texts = [None if gone else str(value) for value, gone in zip(series, series.isna(), strict=True)]
        return pa.array(texts, pa.string())
    if type(series.dtype).__name__ == "SparseDtype":
        series = series.sparse.to_dense()
    if not type(series.dtype).__module__.startswith("numpy"):
        return pa.array(series, from_pandas=True)
    values = series.to_numpy()
    try:
        return pa.array(values, from_pandas=values.dtype.kind not in "fO")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(values, from_pandas=True)


def _engines(name: str, column: Any, label: str) -> Any:
    """Return a column in a type that every engine reads, or refuse it by name."""
    import pyarrow as pa

    try:
        plain = _plain(column)
        if any(getattr(pa.types, kind)(plain.type) for kind in _NO_ENGINES):
            raise KeyError(plain.type)
        return plain
    except (KeyError, ValueError, pa.ArrowException):
        raise InputError(
            f"{label}: column {name!r} has a type that no engine reads",
            given=str(column.type),
            action="Make it text or numbers.",
        ) from None


def _plain(column: Any) -> Any:
    """Return the column without extensions, half floats and the like; durations are text."""
    import pyarrow as pa

    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    kind = column.type
    if isinstance(kind, pa.UuidType):
        return pa.chunked_array([pa.array([None if v is None else str(v) for v in column.to_pylist()])])
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(pa.chunked_array([chunk.storage for chunk in column.chunks], type=kind.storage_type))
    if pa.types.is_dictionary(kind):
        parts = [  # DuckDB writes them out batch by batch
            pa.DictionaryArray.from_arrays(chunk.indices, _plain(chunk.dictionary).combine_chunks())
            for chunk in column.chunks
        ]
        return pa.chunked_array(parts, None if parts else _plain(pa.array([], kind.value_type)).type)
    if pa.types.is_duration(kind):  # engines keep microseconds
        texts = column.to_numpy().astype(str)
        return pa.chunked_array([pa.array(texts, mask=column.is_null().to_numpy())])
    if pa.types.is_decimal256(kind):
        return column.cast(pa.decimal128(38, kind.scale))
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    return column
