"""Dataframes and Ibis tables as sources: dataframes through the Arrow interface, tables in their engine."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence

from stratal.arrays import text_of_value
from stratal.errors import InputError, lone_surrogate_error
from stratal.protocols import (
    ArrowStream,
    Foreign,
    HuggingFaceDataset,
    IbisTable,
    LazyFrame,
    PandasFrame,
    SparkFrame,
    WithSchema,
)
from stratal.tables.engine import duckdb_connection
from stratal.tables.number_columns import with_shares
from stratal.tables.parquet import add_nested_columns, arrow_field_paths
from stratal.tables.row_index import index_name, row_index
from stratal.tables.source import ColumnSelection, Rows, Source, Table, translate_engine_errors
from stratal.tables.spark_files import ibis_table

# Name of a table in memory in messages; that of a file is its path.
DEFAULT_TABLE_NAME = "the table"


def frame_table(table: object) -> Table:
    """Return a dataframe or an Ibis table as a table."""
    backend = None
    if isinstance(table, SparkFrame):
        table, backend = ibis_table(table)
    if isinstance(table, IbisTable):
        backend = backend or table.get_backend()
        table, columns = add_nested_columns(table)
        source = Source(
            table_name=DEFAULT_TABLE_NAME, backend=backend, table=table, columns=columns, ordered=False
        )
        return Table(
            table_name=DEFAULT_TABLE_NAME, names=tuple(columns), read_columns=lambda selection: source
        )
    return with_shares(arrow_table(duckdb_connection(), table, DEFAULT_TABLE_NAME))


def arrow_table(connection: object, table: object, table_name: str) -> Table:
    """Return a dataframe as a table that DuckDB queries."""
    names, read_arrow_columns = frame_columns(table)

    def read_columns(selection: ColumnSelection) -> Rows:
        columns = read_arrow_columns(selection.existing_columns(names))
        return register_columns(connection, columns, table_name)

    return Table(table_name=table_name, names=tuple(names), index=row_index(table), read_columns=read_columns)


def register_columns(connection: Foreign, columns: Mapping[str, Foreign], table_name: str) -> Rows:
    """Register Arrow columns with a connection to DuckDB, and return them as rows."""
    import pyarrow as pa

    readable_columns = [_readable_column(name, column, table_name) for name, column in columns.items()]
    view_name = f"registered_{uuid.uuid4().hex}"
    internal_names = {name: f"c{number}" for number, name in enumerate(columns)}
    with translate_engine_errors(table_name):
        connection.register(view_name, pa.table(readable_columns, names=list(internal_names.values())))
    return Rows(table_name=table_name, connection=connection, from_clause=view_name, columns=internal_names)


def frame_columns(
    table: object, *, mixed_as_text: bool = False
) -> tuple[list[str], Callable[[Sequence[str]], dict[str, Foreign]]]:
    """Return the names of a dataframe's columns, and a function that reads some as Arrow columns by name.

    With `mixed_as_text`, numbers and texts in one column of pandas are texts, as in a file; otherwise, they
    raise an error.

    The function can be called only once for a stream. pandas is converted without the Arrow interface, whose
    conversion replaces NaN by null, turns any index into a column, and fails for duplicate names. An index
    that identifies rows is the last column.
    """
    # The columns of a query are unknown until it is run.
    action = conversion_action(table)
    if action is not None:
        raise _unreadable_table_error(table, action)
    if isinstance(table, PandasFrame):
        names = [name if isinstance(name, str) else repr(name) for name in table.columns]
        index = row_index(table)
        if index is not None and index.nlevels == 1:
            names.append(index_name(index, names))

        def read_pandas(selected: Sequence[str]) -> dict[str, Foreign]:
            positions = {name: names.index(name) for name in selected}
            return _pandas_columns(table, positions, mixed_as_text=mixed_as_text)

        return names, read_pandas
    reader = _arrow_reader(table)
    top_names = reader.schema.names
    # If a name occurs twice, structs are not searched. Reading this column raises the error.
    if len(set(top_names)) == len(top_names):
        paths = arrow_field_paths(reader.schema)
    else:
        paths = {name: (name,) for name in top_names}

    def read_arrow(selected: Sequence[str]) -> dict[str, Foreign]:
        return _arrow_columns(reader, {name: paths[name] for name in selected})

    return [*top_names, *(name for name in paths if name not in top_names)], read_arrow


def _unreadable_table_error(table: object, action: str) -> InputError:
    """Return the error for an object that is not a table, with the next step."""
    return InputError(
        "this kind of table cannot be read",
        given=f"{type(table).__module__}.{type(table).__qualname__}",
        allowed="pandas, Polars, PyArrow or any dataframe with the Arrow interface, or an Ibis table",
        action=action,
    )


def conversion_action(table: object) -> str | None:
    """Return how to convert a query or a list of records to a table; None for other objects."""
    if isinstance(table, LazyFrame) and not isinstance(table, ArrowStream):
        return "Collect the table first: .collect()."
    if isinstance(table, list | tuple) and table and all(isinstance(record, Mapping) for record in table):
        return "Convert the records to a table first: pandas.json_normalize(records)."
    return None


def _arrow_reader(table: object) -> Foreign:
    """Return a dataframe as a PyArrow reader of record batches."""
    import pyarrow as pa

    if isinstance(table, HuggingFaceDataset):
        if isinstance(table.column_names, Mapping):
            splits = ", ".join(map(repr, table.column_names))
            action = "Give one of the splits: dataset['test']."
            raise InputError("the data set contains several splits", given=splits, action=action)
        table = table.with_format("arrow")[:]
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, ArrowStream):
        raise _unreadable_table_error(
            table, "Files are read by Population.read, arrays by Population.from_arrays."
        )
    column_types: Iterable[tuple[Foreign, Foreign]] = ()
    if isinstance(table, WithSchema) and isinstance(table.schema, Mapping):
        column_types = table.schema.items()
    object_columns = [name for name, kind in column_types if str(kind) == "Object"]
    if object_columns:
        names = ", ".join(map(repr, object_columns))
        raise InputError(
            f"{DEFAULT_TABLE_NAME} has a column of Python objects, which the Arrow interface cannot transfer",
            given=names,
            action=f"Leave the column out, .drop({names}), or convert it to numbers or text.",
        )
    try:
        return pa.RecordBatchReader.from_stream(table)
    except (pa.ArrowException, OSError, RuntimeError) as error:
        raise InputError(
            f"{DEFAULT_TABLE_NAME} cannot be read through the Arrow interface",
            given=str(error),
            action="Convert the table first, for example with .to_pandas(), or write it to a Parquet file.",
        ) from error


def _arrow_columns(reader: Foreign, paths: Mapping[str, tuple[str, ...]]) -> dict[str, Foreign]:
    """Return the columns at the paths by name; other columns are dropped batch by batch to save memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    top_names = list(dict.fromkeys(path[0] for path in paths.values()))
    schema = pa.schema([reader.schema.field(name) for name in top_names])
    selected = pa.Table.from_batches([batch.select(top_names) for batch in reader], schema)
    return {
        name: pc.struct_field(selected[top], inner) if inner else selected[top]
        for name, (top, *inner) in paths.items()
    }


def _pandas_columns(
    frame: Foreign, positions: Mapping[str, int], *, mixed_as_text: bool
) -> dict[str, Foreign]:
    """Return the columns at positions by name; the position after the last column is the index."""
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
            raise lone_surrogate_error(f"{DEFAULT_TABLE_NAME}: column {name!r}", error.object) from None
        except (pa.ArrowException, TypeError, OverflowError) as error:
            texts = _texts_of_scalars(series) if mixed_as_text else None
            if texts is not None:
                columns[name] = pa.array(texts, pa.string())
                continue
            raise InputError(
                f"{DEFAULT_TABLE_NAME}: column {name!r} contains values of different types",
                given=str(error),
                allowed="one kind",
            ) from None
    return columns


def _texts_of_scalars(series: Foreign) -> list[str | None] | None:
    """Return the entries of a column of texts, numbers and truth values as texts; None for other entries."""
    is_missing = series.isna().tolist()
    entries = series.tolist()
    texts: list[str | None] = []
    for entry, is_empty in zip(entries, is_missing, strict=True):
        if not is_empty and not isinstance(entry, str | int | float):
            return None
        texts.append(None if is_empty else text_of_value(entry))
    return texts


def _pandas_array(series: Foreign) -> Foreign:
    """Return a pandas column as an Arrow array, which distinguishes NaN and null if pandas does."""
    import pyarrow as pa

    if type(series.dtype).__name__ == "CategoricalDtype":
        value_type = series.dtype.categories.dtype
    else:
        value_type = series.dtype
    # PyArrow would convert periods and intervals to extension types, which no engine reads.
    if type(value_type).__name__ in ("PeriodDtype", "IntervalDtype"):
        texts = [
            None if is_missing else str(value)
            for value, is_missing in zip(series, series.isna(), strict=True)
        ]
        return pa.array(texts, pa.string())
    if type(series.dtype).__name__ == "SparseDtype":
        series = series.sparse.to_dense()
    if not type(series.dtype).__module__.startswith("numpy"):
        return pa.array(series, from_pandas=True)
    values = series.to_numpy()
    # `from_pandas` converts NaN to null. Columns of floats and of objects may contain both, which must
    # differ.
    try:
        return pa.array(values, from_pandas=values.dtype.kind not in "fO")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Columns of text in older versions of pandas have NaN for missing entries.
        return pa.array(values, from_pandas=True)


def _readable_column(name: str, column: Foreign, table_name: str) -> Foreign:
    """Return a column in a type that every engine reads; an error names the column and the table."""
    import pyarrow as pa

    try:
        standard_column = _standard_column(column)
        if _is_unsupported(standard_column.type):
            raise KeyError(standard_column.type)
        return standard_column
    except (KeyError, ValueError, pa.ArrowException):
        raise InputError(
            f"{table_name}: column {name!r} has a type that no engine can read",
            given=str(column.type),
            action="Convert the column to text or numbers.",
        ) from None


def _is_unsupported(column_type: Foreign) -> bool:
    """Return whether DuckDB reads a type of PyArrow incorrectly or not at all."""
    import pyarrow as pa

    is_list_view = pa.types.is_list_view(column_type) or pa.types.is_large_list_view(column_type)
    return bool(is_list_view or pa.types.is_union(column_type) or pa.types.is_interval(column_type))


def _standard_column(column: Foreign) -> Foreign:
    """Return a column in a type that DuckDB has, such as text for UUIDs and durations."""
    import pyarrow as pa

    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    column_type = column.type
    if isinstance(column_type, pa.UuidType):
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts)])
    if isinstance(column_type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in column.chunks]
        return _standard_column(pa.chunked_array(chunks, type=column_type.storage_type))
    if pa.types.is_dictionary(column_type):
        # Categories stay categories: DuckDB decodes them batch by batch.
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices, _standard_column(chunk.dictionary).combine_chunks())
            for chunk in column.chunks
        ]
        return pa.chunked_array(
            chunks, None if chunks else _standard_column(pa.array([], column_type.value_type)).type
        )
    # Engines would round durations to microseconds.
    if pa.types.is_duration(column_type):
        texts = column.to_numpy().astype(str)
        return pa.chunked_array([pa.array(texts, mask=column.is_null().to_numpy())])
    if pa.types.is_decimal256(column_type):
        # The decimal numbers of DuckDB have at most 38 digits.
        return column.cast(pa.decimal128(38, column_type.scale))
    if pa.types.is_float16(column_type):
        return column.cast(pa.float32())
    return column
