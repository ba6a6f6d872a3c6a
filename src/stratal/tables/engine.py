"""Differences between engines: settings, hashes, the order of text and small tables. Ibis covers the rest."""

from __future__ import annotations

import inspect
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, reduce
from pathlib import Path

from stratal.protocols import Foreign, Keywords
from stratal.tables.spilling import private_folder

# Smallest memory limit of DuckDB, and memory for the buffers of each thread. With less, a group-by fails
# instead of spilling to disk (measured).
_MIN_MEMORY_MB = 700
_MEMORY_MB_PER_THREAD = 250

# Names of the Ibis backends that accept tables in memory, order text by its bytes, and aggregate structs.
ANALYTIC_ENGINES = ("duckdb", "pyspark")


def memory_limit(threads: int | None = None) -> str:
    """Return the memory limit of DuckDB, beyond which it spills to disk.

    Some buffers of DuckDB, and Python, need memory in addition.
    """
    count = threads or os.cpu_count() or 1
    return f"{max(_MIN_MEMORY_MB, _MEMORY_MB_PER_THREAD * count)}MB"


def duckdb_connection(
    threads: int | None = None, memory: str | None = None, *, shared: bool = True
) -> Foreign:
    """Return a connection to a private DuckDB database in memory, which spills to the temporary folder.

    Connections with the same settings share a database and its memory limit. Registered and temporary tables
    belong to one connection.

    Parameters
    ----------
    threads : int, optional
        Number of threads; all cores if left out.
    memory : str, optional
        Memory limit, such as `2GB`; `memory_limit` if left out.
    shared : bool
        False for a separate database, for example with another filesystem.
    """
    # A process that was forked cannot use the threads of its parent's database.
    open_database = _shared_database if shared else _database
    return open_database(os.getpid(), private_folder(), threads, memory).cursor()


def _database(process: int, folder: Path, threads: int | None, memory: str | None) -> Foreign:
    """Return a connection to a new database, which spills to a subfolder of `folder`.

    `process` is part of the key of the cache: a process that was forked has its own database.
    """
    import duckdb

    spill = folder / uuid.uuid4().hex
    settings: Keywords = {"memory_limit": memory or memory_limit(threads), "temp_directory": str(spill)}
    settings |= {"autoinstall_known_extensions": False}
    return duckdb.connect(config=settings | ({} if threads is None else {"threads": threads}))


# A database starts in 14 ms, a connection to it in .1 ms (measured).
_shared_database = cache(_database)


def arrow_reader(relation: Foreign, rows: int) -> Foreign:
    """Return a relation of DuckDB as a PyArrow reader; versions of DuckDB name the method differently."""
    return (getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader)(rows)


def duplicate_key(backend: Foreign, column: Foreign) -> Foreign:
    """Return a grouping key that is cheaper than a text: equal for equal ids, rarely equal for others."""
    if backend.name == "duckdb" and column.type().is_string():
        return column.hash()
    return column


def run_query(backend: Foreign, expression: Foreign) -> Foreign:
    """Return a query's result as a PyArrow table.

    DuckDB is queried directly, because Ibis imports pandas for results, which takes longer than most queries.
    """
    if backend.name != "duckdb" or any(kind.is_null() for kind in expression.schema().types):
        return backend.to_pyarrow(expression)
    return expression.__pyarrow_result__(_duckdb_relation(backend, expression).to_arrow_table())


def record_batches(backend: Foreign, expression: Foreign, size: int) -> Iterator[Foreign]:
    """Yield a query's result as PyArrow record batches of `size` rows; the last one may be shorter.

    Engines return batches of other sizes (Spark 10,000 rows), and a fit in batches must not depend on them.
    DuckDB is queried directly, because Ibis 12 calls a method that DuckDB 1.5 deprecates.
    """
    is_duckdb = backend.name == "duckdb" and hasattr(backend.con, "to_arrow_reader")
    if is_duckdb:
        reader = arrow_reader(_duckdb_relation(backend, expression), size)
    else:
        reader = None
    yield from resize_batches(reader or backend.to_pyarrow_batches(expression, chunk_size=size), size)


def _duckdb_relation(backend: Foreign, expression: Foreign) -> Foreign:
    """Return a query as a relation of DuckDB."""
    backend._run_pre_execute_hooks(expression)  # registers tables in memory, as Ibis does
    return backend.con.sql(backend.compile(expression))


def resize_batches(batches: Iterable[Foreign], size: int) -> Iterator[Foreign]:
    """Yield the rows of record batches in batches of `size` rows; the last one may be shorter."""
    import pyarrow as pa

    pieces: list[Foreign] = []
    rows = 0
    for batch in batches:
        while batch.num_rows:
            pieces.append(batch.slice(0, size - rows))
            rows += pieces[-1].num_rows
            batch = batch.slice(pieces[-1].num_rows)
            if rows == size:
                yield from pa.Table.from_batches(pieces).combine_chunks().to_batches()
                pieces = []
                rows = 0
    if pieces:
        yield from pa.Table.from_batches(pieces).combine_chunks().to_batches()


def md5_digest(backend: Foreign, text: Foreign) -> Foreign:
    """Return the MD5 digest of a text in hexadecimal, as an Ibis expression."""
    import ibis.expr.operations as ops

    if backend.has_operation(ops.HexDigest):
        return text.hexdigest("md5")
    return _builtin_function("md5")(text)


def key_bits(backend: Foreign, text: Foreign) -> Foreign:
    """Return the first 32 bits of a text's MD5 digest as an integer, in the functions of each engine."""
    import ibis

    # DuckDB has the digest as a number, which is cheaper than its text; its bytes are reversed.
    if backend.name == "duckdb":
        low = (_builtin_function("md5_number")(text) & ibis.literal(0xFFFFFFFF, "uint64")).cast("int64")
        return ((low & 0xFF) << 24) | ((low & 0xFF00) << 8) | ((low >> 8) & 0xFF00) | (low >> 24)
    hexadecimal = md5_digest(backend, text).substr(0, 8)
    if backend.name == "pyspark":
        return _builtin_function("conv")(hexadecimal, 16, 10).cast("int64")
    key_bytes = _builtin_function("decode")(hexadecimal, "hex")
    return reduce(
        lambda bits, position: bits * 256 + _builtin_function("get_byte")(key_bytes, position).cast("int64"),
        range(4),
        0,
    )


def byte_order_key(backend: Foreign, text: Foreign) -> Foreign:
    """Return the sort key of a text by its bytes, independent of the collation."""
    if backend.name in ANALYTIC_ENGINES:
        return text
    return _builtin_function("convert_to")(text, "UTF8")


def timestamp_text(timestamps: Foreign) -> Foreign:
    """Return timestamps as text; those with a time zone are in UTC and end with `+00:00`."""
    import ibis

    # Ibis sets the zone of Spark to UTC, and does not distinguish timestamps with and without a zone.
    if timestamps.get_backend().name == "pyspark":
        zoned = _builtin_function("typeof")(timestamps) == "timestamp"
        return timestamps.cast("string") + ibis.ifelse(zoned, "+00:00", "")
    if timestamps.type().timezone is None:
        return timestamps.cast("string")
    return _builtin_function("timezone")("UTC", timestamps.cast("timestamp('UTC')")).cast("string") + "+00:00"


# Functions of engines that Ibis lacks: the types of the parameters, then the type of the result.
_FUNCTIONS = {
    "md5": ("string", "string"),
    "convert_to": ("string", "string", "binary"),
    "timezone": ("string", "timestamp('UTC')", "timestamp"),
    "typeof": ("timestamp", "string"),
    "md5_number": ("string", "uint64"),  # of 128 bits, a type that Ibis lacks
    "conv": ("string", "int32", "int32", "string"),
    "decode": ("string", "string", "binary"),
    "get_byte": ("binary", "int32", "int32"),
}


@cache
def _builtin_function(name: str) -> Foreign:
    """Return a function of an engine for Ibis expressions."""
    import ibis

    *parameter_types, return_type = _FUNCTIONS[name]

    def call() -> None: ...

    position_only = inspect.Parameter.POSITIONAL_ONLY
    parameters = [
        inspect.Parameter(f"value{number}", position_only) for number in range(len(parameter_types))
    ]
    vars(call)["__signature__"] = inspect.Signature(parameters)
    return ibis.udf.scalar.builtin(call, name=name, signature=(tuple(parameter_types), return_type))


def double(value: float) -> Foreign:
    """Return a number as an Ibis literal that every engine parses to the same double.

    Engines may parse `0.1` as a decimal and round it twice; text is rounded once.
    """
    import ibis

    return ibis.literal(repr(float(value))).cast("float64")


def literal_table(columns: Mapping[str, Foreign], backend: Foreign) -> Foreign:
    """Return a small table to join with, from arrays by column name.

    Engines that would write a temporary table get a list of texts for each column, so that read permission
    is sufficient.
    """
    import ibis
    import pyarrow as pa
    from ibis.expr.datatypes import DataType

    arrays = {name: pa.array(values) for name, values in columns.items()}
    if backend.name in ANALYTIC_ENGINES:
        return ibis.memtable(pa.table(arrays))
    columns = {}
    for name, array in arrays.items():
        texts = [repr(value) if isinstance(value, float) else str(value) for value in array.to_pylist()]
        columns[name] = ibis.literal(texts, "array<string>").unnest()
    unnested = ibis.literal(0).name("one").as_table().select(**columns)
    return unnested.select(
        **{name: unnested[name].cast(DataType.from_pyarrow(array.type)) for name, array in arrays.items()}
    )


def store_table(backend: Foreign, table: Foreign) -> Foreign:
    """Return a copy of a table in the storage of a DuckDB connection, which spills to disk."""
    name = f"stored_{uuid.uuid4().hex}"
    backend._run_pre_execute_hooks(table)  # registers tables in memory, as Ibis does
    backend.raw_sql(f"CREATE TEMP TABLE {name} AS {backend.compile(table)}").fetchall()
    return backend.table(name)
