"""What is particular to one engine: its settings, hash, order of text and small tables. All else is Ibis."""

from __future__ import annotations

import inspect
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, reduce
from pathlib import Path
from typing import Any

from stratal.tables.spilling import private_folder

# MB
_LEAST_MEMORY = 700
_MEMORY_PER_THREAD = 250
# Engines that take small tables, order text by its bytes, and hand on rows as structs beside sums.
ANALYTIC = ("duckdb", "pyspark")


def memory_limit(threads: int | None = None) -> str:
    """Return what DuckDB may hold before it spills to disk; some buffers, and Python, come on top.

    A group-by needs some for every thread, or it fails instead of spilling.

    Examples
    --------
    >>> memory_limit(2), memory_limit(4)
    ('700MB', '1000MB')
    """
    count = threads or os.cpu_count() or 1
    return f"{max(_LEAST_MEMORY, _MEMORY_PER_THREAD * count)}MB"


def duckdb_connection(threads: int | None = None, memory: str | None = None, *, shared: bool = True) -> Any:
    """Return a connection to a DuckDB of our own, in memory, that spills into the temporary folder.

    Connections of the same settings share one database: what is registered or temporary belongs to a
    connection, the memory that may be used is that of all together.

    Parameters
    ----------
    threads : int, optional
        How many it may use; all cores if left out.
    memory : str, optional
        What it may hold before it spills; `memory_limit` if left out.
    shared : bool
        False for a database of its own, which may have a filesystem of its own.

    Examples
    --------
    >>> duckdb_connection().execute("SELECT 1").fetchall()
    [(1,)]
    """
    # A process that was forked cannot use the threads of its parent's database.
    open_database = _shared_database if shared else _database
    return open_database(os.getpid(), private_folder(), threads, memory).cursor()


def _database(process: int, folder: Path, threads: int | None, memory: str | None) -> Any:
    """Return a new database of a process, which may spill into its folder."""
    import duckdb

    spill = folder / uuid.uuid4().hex
    settings: dict[str, Any] = {"memory_limit": memory or memory_limit(threads), "temp_directory": str(spill)}
    settings |= {"autoinstall_known_extensions": False}
    return duckdb.connect(config=settings | ({} if threads is None else {"threads": threads}))


# A database takes some 14 ms to start, a connection to it .1 ms.
_shared_database = cache(_database)


def reader_of(relation: Any, rows: int) -> Any:
    """Return a relation of DuckDB as a PyArrow reader, by the name that its version has for it."""
    return (getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader)(rows)


def duplicate_key(backend: Any, column: Any) -> Any:
    """Return something cheaper to group by than a text: equal where the ids are, seldom equal elsewhere.

    Examples
    --------
    >>> import ibis
    >>> duplicate_key(ibis.duckdb.connect(), ibis.literal("a")).type().is_integer()
    True
    """
    if backend.name == "duckdb" and column.type().is_string():
        return column.hash()
    return column


def answer(backend: Any, expression: Any) -> Any:
    """Return a query's result as a PyArrow table.

    DuckDB is asked here: Ibis loads pandas to hand on an answer, which takes longer than most questions.

    Examples
    --------
    >>> import ibis
    >>> answer(ibis.duckdb.connect(), ibis.range(3).unnest().name("row").as_table()).num_rows
    3
    """
    if backend.name != "duckdb" or any(kind.is_null() for kind in expression.schema().types):
        return backend.to_pyarrow(expression)
    return expression.__pyarrow_result__(_requested(backend, expression).to_arrow_table())


def record_batches(backend: Any, expression: Any, size: int) -> Iterator[Any]:
    """Yield a query's result as PyArrow record batches of `size` rows, the last of what is left.

    Engines hand on fewer at a time (Spark 10,000), and what is fitted in batches must not depend on it.
    Ibis 12 asks DuckDB by a name that DuckDB 1.5 warns of and DuckDB 2 no longer has, so DuckDB is asked
    here, by the name that both have.

    Examples
    --------
    >>> import ibis
    >>> three = ibis.range(3).unnest().as_table()
    >>> [batch.num_rows for batch in record_batches(ibis.duckdb.connect(), three, 10)]
    [3]
    """
    own = backend.name == "duckdb" and hasattr(backend.con, "to_arrow_reader")
    if own:
        found = reader_of(_requested(backend, expression), size)
    else:
        found = None
    yield from of_size(found or backend.to_pyarrow_batches(expression, chunk_size=size), size)


def _requested(backend: Any, expression: Any) -> Any:
    """Return a query to DuckDB as its own relation."""
    backend._run_pre_execute_hooks(expression)  # what Ibis does first: it registers tables in memory
    return backend.con.sql(backend.compile(expression))


def of_size(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """Yield the rows of record batches in batches of `size` rows, the last of what is left.

    Examples
    --------
    >>> import pyarrow as pa
    >>> pieces = [pa.record_batch({"a": range(start, start + 3)}) for start in (0, 3, 6)]
    >>> [batch.column("a").to_pylist() for batch in of_size(pieces, 5)]
    [[0, 1, 2, 3, 4], [5, 6, 7, 8]]
    """
    import pyarrow as pa

    held: list[Any] = []
    rows = 0
    for batch in batches:
        while batch.num_rows:
            held.append(batch.slice(0, size - rows))
            rows += held[-1].num_rows
            batch = batch.slice(held[-1].num_rows)
            if rows == size:
                yield from pa.Table.from_batches(held).combine_chunks().to_batches()
                held = []
                rows = 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def digest(backend: Any, text: Any) -> Any:
    """Return the MD5 digest of a text in hexadecimal, as an Ibis expression.

    Examples
    --------
    >>> import ibis
    >>> digest(ibis.duckdb.connect(), ibis.literal("7:a")).type().is_string()
    True
    """
    import ibis.expr.operations as ops

    if backend.has_operation(ops.HexDigest):
        return text.hexdigest("md5")
    return _function("md5")(text)


def key_bits(backend: Any, text: Any) -> Any:
    """Return the first 32 bits of a text's MD5 digest as an integer, as an Ibis expression.

    Examples
    --------
    >>> import ibis
    >>> key_bits(ibis.duckdb.connect(), ibis.literal("7:a")).type().is_integer()
    True
    """
    import ibis

    if backend.name == "duckdb":  # whose number of the digest, cheaper than its text, has its first byte last
        low = (_function("md5_number")(text) & ibis.literal(0xFFFFFFFF, "uint64")).cast("int64")
        return ((low & 0xFF) << 24) | ((low & 0xFF00) << 8) | ((low >> 8) & 0xFF00) | (low >> 24)
    hexadecimal = digest(backend, text).substr(0, 8)
    if backend.name == "pyspark":
        return _function("conv")(hexadecimal, 16, 10).cast("int64")
    four = _function("decode")(hexadecimal, "hex")
    return reduce(lambda found, at: found * 256 + _function("get_byte")(four, at).cast("int64"), range(4), 0)


def in_byte_order(backend: Any, text: Any) -> Any:
    """Return what to order a text by, so that its order is that of its bytes, whatever the collation.

    Examples
    --------
    >>> import ibis
    >>> in_byte_order(ibis.duckdb.connect(), ibis.literal("a")).type().is_string()
    True
    """
    if backend.name in ANALYTIC:
        return text
    return _function("convert_to")(text, "UTF8")


def moment_text(moment: Any) -> Any:
    """Return moments as text; those with a time zone in UTC, whatever zone the engine prints them in.

    Examples
    --------
    >>> import ibis
    >>> moment_text(ibis.timestamp("2026-03-29T02:30:00")).type().is_string()
    True
    """
    import ibis

    if moment.get_backend().name == "pyspark":  # Ibis sets its zone to UTC, and takes both kinds for one
        zoned = _function("typeof")(moment) == "timestamp"
        return moment.cast("string") + ibis.ifelse(zoned, "+00:00", "")
    if moment.type().timezone is None:
        return moment.cast("string")
    return _function("timezone")("UTC", moment.cast("timestamp('UTC')")).cast("string") + "+00:00"


# Functions of engines that Ibis has no name for: the types of what they take and of what they return.
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
def _function(name: str) -> Any:
    """Return one of these functions for Ibis expressions."""
    import ibis

    *taken, returned = _FUNCTIONS[name]

    def call() -> None: ...

    kind = inspect.Parameter.POSITIONAL_ONLY
    parameters = [inspect.Parameter(f"value{at}", kind) for at in range(len(taken))]
    vars(call)["__signature__"] = inspect.Signature(parameters)
    return ibis.udf.scalar.builtin(call, name=name, signature=(tuple(taken), returned))


def double(value: float) -> Any:
    """Return a number as an Ibis literal that every engine parses to the very same double.

    Engines may take `0.1` in a query as a decimal and round it twice on its way to a double; text, once.

    Examples
    --------
    >>> double(0.1).type().is_floating()
    True
    """
    import ibis

    return ibis.literal(repr(float(value))).cast("float64")


def small_table(columns: Mapping[str, Any], backend: Any) -> Any:
    """Return a small table to join with, from arrays by column name.

    Engines that would write a temporary table for it get a list of texts for each column: the right to
    read is enough.

    Examples
    --------
    >>> import ibis
    >>> small_table({"code": [0, 1]}, ibis.duckdb.connect()).columns
    ('code',)
    """
    import ibis
    import pyarrow as pa
    from ibis.expr.datatypes import DataType

    arrays = {name: pa.array(values) for name, values in columns.items()}
    if backend.name in ANALYTIC:
        return ibis.memtable(pa.table(arrays))
    columns = {}
    for name, array in arrays.items():
        texts = [repr(value) if isinstance(value, float) else str(value) for value in array.to_pylist()]
        columns[name] = ibis.literal(texts, "array<string>").unnest()
    taken = ibis.literal(0).name("one").as_table().select(**columns)
    return taken.select(
        **{name: taken[name].cast(DataType.from_pyarrow(array.type)) for name, array in arrays.items()}
    )


def stored(backend: Any, table: Any) -> Any:
    """Return the table copied into the storage of a connection to DuckDB, which spills to disk.

    Examples
    --------
    >>> import ibis
    >>> stored(ibis.duckdb.connect(), ibis.range(3).unnest().name("row").as_table()).columns
    ('row',)
    """
    name = f"stored_{uuid.uuid4().hex}"
    backend._run_pre_execute_hooks(table)  # what Ibis does first: it registers tables in memory
    backend.raw_sql(f"CREATE TEMP TABLE {name} AS {backend.compile(table)}").fetchall()
    return backend.table(name)
