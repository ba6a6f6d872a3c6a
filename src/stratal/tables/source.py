"""Sources of rows: tables that Ibis queries on any engine, and columns that DuckDB reads into memory."""

from __future__ import annotations

import re
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypedDict

from stratal.arrays import Record, checked_threads
from stratal.errors import InputError, check_choice, unreadable_file_error
from stratal.protocols import Foreign
from stratal.tables.engine import arrow_reader, record_batches, run_query
from stratal.tables.logs.log import Log


class ColumnSelection(Protocol):
    """The columns to read from a table, such as a `Declaration` or `EveryColumn`."""

    @property
    def id(self) -> str:
        """The column of ids."""

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Columns to read as numbers."""

    @property
    def softmax(self) -> tuple[str, ...]:
        """Columns of probabilities, from which other columns are computed."""

    def existing_columns(self, table_columns: Iterable[str]) -> tuple[str, ...]:
        """Return the selected columns that a table has."""


class EveryColumn:
    """Selects every column of a table whose name is unique."""

    id = ""
    number_columns = ()
    softmax = ()

    def __init__(self, names: Sequence[str]) -> None:
        self._counts = Counter(names)

    def existing_columns(self, table_columns: Iterable[str]) -> tuple[str, ...]:
        """Return the selected columns that a table has."""
        return tuple(name for name in dict.fromkeys(table_columns) if self._counts[name] == 1)


# Engines that read files.
DUCKDB = "duckdb"
SPARK = "spark"

# A memory limit with its unit, in the form that DuckDB accepts for `memory_limit`.
_MEMORY_AMOUNT = re.compile(r"\d+(\.\d+)? ?(KB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.IGNORECASE)


class ReadOptions(TypedDict, total=False):
    """Options of `Population.read` that describe the file and not its columns."""

    delimiter: str | None
    format: str | None
    directory: bool
    remote: bool
    engine: str
    master: str | None
    threads: int | None
    memory: str | None


def check_read_options(options: ReadOptions) -> ReadOptions:
    """Return the options unchanged; raise an error for invalid values and for options of another engine."""
    engine = options.get("engine", DUCKDB)
    threads = options.get("threads")
    memory = options.get("memory")
    check_choice("engine", engine, (DUCKDB, SPARK))
    for name, option_engine in (("master", SPARK), ("threads", DUCKDB), ("memory", DUCKDB)):
        if options.get(name) is not None and engine != option_engine:
            raise InputError(
                f"{name} is an option of engine={option_engine!r} (--engine {option_engine}) only",
                given=f"engine {engine!r}",
                action="Use the settings of Spark instead: master='local[2]', or spark.executor.memory.",
            )
    if threads is not None:
        checked_threads(threads)
    if memory is not None and not _MEMORY_AMOUNT.fullmatch(memory):
        raise InputError("memory must be an amount with a unit", given=repr(memory), allowed="500MB, 2GB")
    return options


# Name in error messages of each engine, by the top module of its exceptions.
_DRIVER_NAMES = {"psycopg": "PostgreSQL", "py4j": "Spark", "pyarrow": "PyArrow", "pyspark": "Spark"}
_DRIVER_NAMES |= {"sqlite3": "SQLite"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A table on an engine, whose rows are not read yet.

    Parameters
    ----------
    table_name : str
        Name in error messages: the path of a file, or `the table`.
    backend : Ibis backend
        Runs the queries.
    table : Ibis table
        The rows.
    columns : mapping of str to str
        Column names in `table` by the user's column names.
    all_text : bool
        Whether all columns are text without types (CSV, JSON Lines); the declared roles of the columns
        determine which of them are converted to numbers.
    ordered : bool
        Whether rows have a number, so that an error can name the first invalid row.
    row_location : callable, optional
        Returns the position of a row number (from 0) as text, such as `line 17`. Default: the row number.
    notes : tuple of str
        Notes about reading the rows, such as omitted blank rows and the selected sheet.
    lock : threading.RLock
        Held during a query, because a connection runs one query at a time.
    """

    table_name: str
    backend: Foreign
    table: Foreign
    columns: Mapping[str, str]
    all_text: bool = False
    ordered: bool = True
    row_location: Callable[[int], str] | None = None
    notes: tuple[str, ...] = ()
    lock: Foreign = field(default_factory=threading.RLock)

    def is_text(self, name: str) -> bool:
        """Return whether the values of a column are text to convert."""
        return self.all_text and bool(self.column(name).type().is_string())

    def column(self, name: str) -> Foreign:
        """Return the Ibis column with the user's column name `name`."""
        return self.table[self.columns[name]]

    def run(self, expression: object) -> Foreign:
        """Return the small result of a query as a PyArrow table."""
        with self.lock, translate_engine_errors(self.table_name):
            return run_query(self.backend, expression)

    def first_row(self, expression: object) -> dict[str, Foreign]:
        """Return the first row of a query's result as a dict by column."""
        return dict(self.run(expression).to_pylist()[0])

    def batches(self, expression: object, size: int) -> Iterator[Foreign]:
        """Yield a query's result as PyArrow record batches of up to `size` rows."""
        with self.lock, translate_engine_errors(self.table_name):
            yield from record_batches(self.backend, expression, size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table(Record):
    """A table whose column names are known, and whose rows are not read yet.

    Parameters
    ----------
    table_name : str
        Name in error messages.
    names : tuple of str
        Names of the columns. If a name occurs several times, its first column is read.
    read_columns : callable
        `read_columns(selection)` returns the selected columns as `Rows`, or as a `Source` on another engine.
    read_values : callable, optional
        For JSON, whose values may be nested: returns all columns as lists of Python values by name, and the
        line number of each row.
    log : Log, optional
        The evaluation log, if the file is one.
    read_long_format : callable, optional
        For JSON, whose values are slow to convert column by column: returns some columns in long format, as
        `Rows` with one row per value: the `column` (its position among the names) and the `text`.
    index : pandas Index, optional
        Index of a dataframe that identifies its rows; it has the ids unless a column is named.
    """

    table_name: str
    names: tuple[str, ...]
    read_columns: Callable[[ColumnSelection], Foreign]
    read_values: Callable[[], tuple[dict[str, list[Foreign]], list[int]]] | None = None
    log: Log | None = None
    read_long_format: Callable[[Sequence[str]], Rows] | None = None
    index: Foreign = None


@contextmanager
def translate_engine_errors(table_name: str) -> Iterator[None]:
    """Translate the exceptions of an engine that reads `table_name` into an `InputError`."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        # The user pressed Ctrl-C: the file is not at fault.
        raise
    except duckdb.Error as error:
        _translate_memory_error(table_name, error)
        if isinstance(error, duckdb.OutOfMemoryException):
            raise
        # DuckDB reports mixed line endings as an invalid state of the state machine that parses CSV.
        if "state machine" not in str(error):
            raise unreadable_file_error(table_name, ValueError(_short_message(str(error)))) from error
        action = "The file mixes CRLF and LF line endings: save it again with only one kind of line ending."
        raise InputError(
            f"{table_name} cannot be read", given=_short_message(str(error)), action=action
        ) from error
    except Exception as error:
        # An exception of Ibis, which is recognised by its name because importing Ibis takes time.
        if type(error).__name__ == "OperationNotDefinedError":
            raise InputError(
                f"{table_name}: the engine of this table lacks a required operation",
                given=str(error).splitlines()[0],
                allowed="DuckDB, PostgreSQL, Spark",
                action="Write the columns to a Parquet file, and read this file.",
            ) from error
        engine = type(error).__module__.split(".")[0]
        if engine not in _DRIVER_NAMES or isinstance(error, MemoryError):
            raise
        raise InputError(
            f"{table_name}: {_DRIVER_NAMES[engine]} could not run the query",
            given=_short_message(str(error)),
            action="Check the table and the engine's message, or write the columns to a Parquet file.",
        ) from error


def _translate_memory_error(table_name: str, error: Exception) -> None:
    """Raise an `InputError` if the disk or the memory limit does not suffice for the data."""
    message = str(error)
    reason = _short_message(message.splitlines()[0]).removeprefix("Out of Memory Error: ")
    # The exception has one class for both cases, which only its text distinguishes.
    if "duckdb_temp_" in message or "max_temp_directory_size" in message:
        raise InputError(
            f"{table_name}: the disk has no room for the data that does not fit in memory",
            given=f"{tempfile.gettempdir()}: {reason}",
            action="Set TMPDIR to a folder with more space, or allow more memory: memory= (--memory).",
        ) from error
    if " used)" in message:
        raise InputError(
            f"{table_name}: the memory limit is too low",
            given=reason,
            action="Allow more memory, such as memory='2GB' (--memory 2GB), or use fewer threads.",
        ) from error


def _short_message(message: str) -> str:
    """Return the first informative lines of an engine's message."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    informative_lines = []
    for line in lines:
        if line.startswith(("Possible", "*", "file =", "LINE ", "This can happen")):
            break
        informative_lines.append(line)
    reason = "; ".join(informative_lines[:4]).removeprefix("Invalid Input Error: ").removeprefix("IO Error: ")
    # The messages of engines may contain the whole query.
    if len(reason) <= 300:
        return reason
    return reason[:297] + "…"


# Largest table in rows that is read into memory. For more rows, the hashes of the engine are faster than
# those of Python.
MAX_MEMORY_ROWS = 500_000

# Largest table in bytes that is read into memory. More bytes would be copied several times.
MAX_MEMORY_BYTES = 2**28

# Text files of up to this number of bytes are parsed once and stored in the engine. Each query parses a
# larger file again, which needs no storage.
MAX_STORED_BYTES = 256 * 2**20

# Number of rows per batch of a result. DuckDB copies a text for each row that contains it, so that a larger
# batch of long texts could exceed the memory limit.
_BATCH_ROWS = 2_048

# Largest number of columns in one query: DuckDB needs 100 kB for each column during the query.
_MAX_QUERY_COLUMNS = 2_000

# Names of numeric types in DuckDB.
INTEGER_TYPES = ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint")
_REAL_TYPES = ("float", "double")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows(Record):
    """The selected columns of a table, in a connection to DuckDB.

    Parameters
    ----------
    table_name : str
        Name of the table in error messages.
    connection : duckdb.DuckDBPyConnection
    from_clause : str
        SQL of the table after FROM.
    columns : mapping of str to str
        SQL expressions by the user's column names.
    all_text, notes, row_location
        As in `Source`.
    materialise : bool
        Whether rows that do not fit in memory are copied into DuckDB's storage once. Otherwise, each query
        reads the file again.
    ambiguous : mapping of str to str
        An example entry for each column of numbers with two interpretations; see `number_format`.
    """

    table_name: str
    connection: Foreign
    from_clause: str
    columns: Mapping[str, str]
    all_text: bool = False
    materialise: bool = False
    notes: tuple[str, ...] = ()
    row_location: Callable[[int], str] | None = None
    ambiguous: Mapping[str, str] = field(default_factory=dict)

    def sql(self, *expressions: str, end: str = "") -> str:
        """Return the query that selects expressions as columns `c0`, `c1`, …, followed by `end`."""
        select_list = ", ".join(f"{expression} AS c{number}" for number, expression in enumerate(expressions))
        return f"SELECT {select_list} FROM {self.from_clause}{end}"

    def types(self) -> dict[str, str]:
        """Return DuckDB's types of the columns, by the user's names."""
        with translate_engine_errors(self.table_name):
            types = [
                column_type.id
                for expressions in _column_groups(list(self.columns.values()))
                for column_type in self.connection.sql(self.sql(*expressions)).types
            ]
        return dict(zip(self.columns, types, strict=True))

    def head(self, names: Sequence[str], rows: int) -> dict[str, list[Foreign]]:
        """Return the first `rows` entries of some columns by name; empty if they do not fit in memory."""
        columns = self._read_arrow([self.columns[name] for name in names], f" LIMIT {rows}", rows)
        if columns is None:
            return {}
        return dict(zip(names, (column.to_pylist() for column in columns), strict=True))

    def query_row(self, *expressions: str) -> tuple[Foreign, ...]:
        """Return the values of aggregate expressions over all rows."""
        with translate_engine_errors(self.table_name):
            return tuple(self.connection.execute(self.sql(*expressions)).fetchall()[0])

    def row_sum_facts(self, names: Sequence[str]) -> dict[str, Foreign]:
        """Return facts by which columns are recognised as a softmax.

        They are the number of complete rows `n_rows`, the smallest value `minimum`, and the largest distance
        of the sum of a row from 1, `max_deviation`.
        """
        types = self.types()
        values = f"[{', '.join(str(self.as_number(name, types[name])) for name in names)}]"
        aggregates = ("count(*)", f"min(list_min({values}))", f"max(abs(list_sum({values}) - 1))")
        complete_rows = f"FILTER (NOT isnan(list_sum({values})) AND list_count({values}) = {len(names)})"
        row = self.query_row(*(f"{aggregate} {complete_rows}" for aggregate in aggregates))
        return dict(zip(("n_rows", "minimum", "max_deviation"), row, strict=True))

    def arrow(self, *expressions: str, max_rows: int | None = None) -> list[Foreign] | None:
        """Return expressions of the columns as PyArrow columns, None if they do not fit in memory."""
        return self._read_arrow(expressions, "", MAX_MEMORY_ROWS if max_rows is None else max_rows)

    def _read_arrow(self, expressions: Sequence[str], end: str, max_rows: int) -> list[Foreign] | None:
        """Return expressions as PyArrow columns, None for more than `max_rows` or `MAX_MEMORY_BYTES`."""
        import pyarrow as pa

        columns: list[Foreign] = []
        total_bytes = 0
        for group in _column_groups(expressions):
            batches: list[Foreign] = []
            n_rows = 0
            with translate_engine_errors(self.table_name):
                reader = arrow_reader(self.connection.sql(self.sql(*group, end=end)), _BATCH_ROWS)
                for batch in _record_batches(reader):
                    batches.append(batch)
                    total_bytes = total_bytes + batch.nbytes
                    n_rows = n_rows + batch.num_rows
                    if total_bytes > MAX_MEMORY_BYTES or n_rows > max_rows:
                        reader.close()
                        return None
                columns += pa.Table.from_batches(batches, reader.schema).columns
        return columns

    def to_source(self) -> Source:
        """Return the rows as a source, whose table Ibis queries."""
        import ibis

        backend = ibis.duckdb.from_connection(self.connection)
        name = f"rows_{uuid.uuid4().hex}"
        # A query needs a column, also if rows are only counted.
        columns = self.columns or {"": "0"}
        relation_type = "TABLE" if self.materialise else "VIEW"
        create = f"CREATE TEMP {relation_type} {name} AS {self.sql(*columns.values())}"
        with translate_engine_errors(self.table_name):
            self.connection.execute(create).fetchall()
        try:
            table = backend.table(name)
        # Ibis raises several exceptions for an unknown type, and also passes on those of sqlglot.
        except Exception as error:
            raise InputError(
                f"{self.table_name}: a column has a type that no engine can read",
                given=", ".join(columns),
                action="Convert the column to text or numbers.",
            ) from error
        return Source(
            table_name=self.table_name,
            backend=backend,
            table=table,
            columns={name: f"c{number}" for number, name in enumerate(self.columns)},
            all_text=self.all_text,
            notes=self.notes,
            row_location=self.row_location,
        )

    def as_number(self, name: str, type_name: str) -> str | None:
        """Return the SQL of a column as numbers; None if its DuckDB type `type_name` is not numeric.

        Text that is not a number becomes null. Text such as `1_0` is not a number here, although engines and
        Python read it as 10. `true` is 1 and `false` is 0.
        """
        column = self.columns[name]
        if self.all_text and type_name == "varchar":
            number = f"CASE WHEN contains({column}, '_') THEN NULL ELSE TRY_CAST({column} AS DOUBLE) END"
            # Boolean columns of Parquet become 1 and 0 by the cast below, so that text must as well.
            truth_value = f"CASE lower(trim({column})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
            return f"coalesce({number}, {truth_value})"
        if type_name in (*INTEGER_TYPES, *_REAL_TYPES, "decimal", "boolean"):
            return f"CAST({column} AS DOUBLE)"
        return None

    def as_category(self, name: str, type_name: str) -> str | None:
        """Return the SQL of a column as the text of categories; None if its type cannot be categories."""
        column = self.columns[name]
        if type_name == "boolean":
            return f"CASE WHEN {column} THEN 'True' WHEN NOT {column} THEN 'False' END"
        if type_name in (*INTEGER_TYPES, "varchar", "date", "enum"):
            return f"CAST({column} AS VARCHAR)"
        return None


# Largest number of expressions in one SQL list: for each value of a list of 500, DuckDB takes several times
# as long.
_MAX_LIST_LENGTH = 50


def stack_columns(from_clause: str, *columns: Sequence[str]) -> str:
    """Return the query of columns in long format.

    Each of `columns` is a list of k expressions. The result has a row for each row of the table and each of
    the k positions: `c0` is the position (from 0), and `c1`, `c2`, … are the values of the expressions at
    this position in the first list, the second list, ….
    """
    starts = range(0, len(columns[0]), _MAX_LIST_LENGTH)
    sublists = [
        ", ".join(f"[{', '.join(column[start : start + _MAX_LIST_LENGTH])}]" for start in starts)
        for column in columns
    ]
    unnested_sublists = ", ".join(
        f"unnest([{sublist}]) AS c{number}" for number, sublist in enumerate(sublists, start=1)
    )
    entries = ", ".join(f"unnest(c{number}) AS c{number}" for number in range(1, len(sublists) + 1))
    position = f"c0 + unnest(range({_MAX_LIST_LENGTH})) AS c0"
    sublists_query = f"SELECT unnest({[*starts]}) AS c0, {unnested_sublists} FROM {from_clause}"
    return f"SELECT {position}, {entries} FROM ({sublists_query})"


def _column_groups(expressions: Sequence[str]) -> Iterator[Sequence[str]]:
    """Return the expressions in groups for one query each."""
    starts = range(0, len(expressions), _MAX_QUERY_COLUMNS)
    return (expressions[start : start + _MAX_QUERY_COLUMNS] for start in starts)


def _record_batches(reader: Foreign) -> Iterator[Foreign]:
    """Yield the record batches of a DuckDB reader; PyArrow's exceptions are translated back to DuckDB's."""
    import duckdb
    import pyarrow as pa

    try:
        yield from reader
    except (OSError, pa.ArrowException) as error:
        if str(error).startswith("INTERRUPT"):
            raise duckdb.InterruptException(str(error)) from error
        raise duckdb.Error(str(error)) from error
