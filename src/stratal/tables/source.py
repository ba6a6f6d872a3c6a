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
    """A selection of columns to read from a table."""

    @property
    def id(self) -> str:
        """The column of ids."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns to read as numbers."""

    def among(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the selected columns among the names of a table's columns."""


class EveryColumn:
    """Selects every column of a table whose name is unique."""

    id = ""
    numbers = ()

    def __init__(self, names: Sequence[str]) -> None:
        self._counts = Counter(names)

    def among(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the selected columns among the names of a table's columns."""
        return tuple(name for name in dict.fromkeys(names) if self._counts[name] == 1)


# Engines that read files.
DUCKDB = "duckdb"
SPARK = "spark"

_MEMORY_AMOUNT = re.compile(r"\d+(\.\d+)? ?(KB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.IGNORECASE)


class FileReading(TypedDict, total=False):
    """Options of `Population.read` that describe the file and not its columns."""

    delimiter: str | None
    format: str | None
    directory: bool
    remote: bool
    engine: str
    master: str | None
    threads: int | None
    memory: str | None


def check_reading(reading: FileReading) -> FileReading:
    """Return the options of reading a file, refusing invalid values and options of another engine."""
    engine = reading.get("engine", DUCKDB)
    threads = reading.get("threads")
    memory = reading.get("memory")
    check_choice("engine", engine, (DUCKDB, SPARK))
    for name, option_engine in (("master", SPARK), ("threads", DUCKDB), ("memory", DUCKDB)):
        if reading.get(name) is not None and engine != option_engine:
            raise InputError(
                f"{name} is an option of engine={option_engine!r} (--engine {option_engine}) only",
                given=f"engine {engine!r}",
                action="Spark has its own: master='local[2]', or spark.executor.memory.",
            )
    if threads is not None:
        checked_threads(threads)
    if memory is not None and not _MEMORY_AMOUNT.fullmatch(memory):
        raise InputError("memory must be an amount with a unit", given=repr(memory), allowed="500MB, 2GB")
    return reading


# Name in error messages of each library that raises its own exceptions.
_DRIVER_NAMES = {"psycopg": "PostgreSQL", "py4j": "Spark", "pyarrow": "PyArrow", "pyspark": "Spark"}
_DRIVER_NAMES |= {"sqlite3": "SQLite"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A table on an engine, whose rows are not read yet.

    Parameters
    ----------
    label : str
        Name in error messages: a file's name, or `the table`.
    backend : Ibis backend
        Runs the queries.
    table : Ibis table
        The rows.
    columns : mapping of str to str
        The user's names to the internal names of the table.
    text : bool
        Whether every value is text that the declaration of columns converts (CSV, JSON Lines).
    ordered : bool
        Whether rows have a number, so that an error can name the first invalid row.
    locate : callable, optional
        Returns the position of a row number (from 0) as text, such as `line 17`; row numbers if left out.
    notes : tuple of str
        Notes about reading the rows, such as blank rows and the sheet.
    lock
        Lock of a query: a connection runs one query at a time.
    """

    label: str
    backend: Foreign
    table: Foreign
    columns: Mapping[str, str]
    text: bool = False
    ordered: bool = True
    locate: Callable[[int], str] | None = None
    notes: tuple[str, ...] = ()
    lock: Foreign = field(default_factory=threading.RLock)

    def is_text(self, name: str) -> bool:
        """Return whether the values of a column are text to convert."""
        return self.text and bool(self.column(name).type().is_string())

    def column(self, name: str) -> Foreign:
        """Return the Ibis column that the user calls `name`."""
        return self.table[self.columns[name]]

    def run(self, expression: object) -> Foreign:
        """Return the small result of a query as a PyArrow table."""
        with self.lock, translate_engine_errors(self.label):
            return run_query(self.backend, expression)

    def first(self, expression: object) -> dict[str, Foreign]:
        """Return the first row of a query's result by column."""
        return dict(self.run(expression).to_pylist()[0])

    def batches(self, expression: object, size: int) -> Iterator[Foreign]:
        """Yield a query's result as PyArrow record batches of up to `size` rows."""
        with self.lock, translate_engine_errors(self.label):
            yield from record_batches(self.backend, expression, size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table(Record):
    """A table whose column names are known, and whose rows are not read yet.

    Parameters
    ----------
    label : str
        Name in error messages.
    names : tuple of str
        Names of the columns; the first of several columns with one name is read.
    take : callable
        Returns the selected columns as `Rows`, or as a `Source` on another engine.
    values : callable, optional
        For JSON, whose values may be nested: returns all columns as lists, and the line of each row.
    log : Log, optional
        The evaluation log, if the file is one.
    below : callable, optional
        For JSON, whose values are slow to convert column by column: returns the values of several columns as
        `Rows` with the `column` (its position among the names) and the `text`.
    index : pandas Index, optional
        Index of a dataframe that identifies its rows; it has the ids unless a column is named.
    """

    label: str
    names: tuple[str, ...]
    take: Callable[[ColumnSelection], Foreign]
    values: Callable[[], tuple[dict[str, list[Foreign]], list[int]]] | None = None
    log: Log | None = None
    below: Callable[[Sequence[str]], Rows] | None = None
    index: Foreign = None


@contextmanager
def translate_engine_errors(label: str) -> Iterator[None]:
    """Translate the errors of an engine that reads a file into an `InputError`."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        # The user pressed Ctrl-C: the file is not at fault.
        raise
    except duckdb.Error as error:
        _translate_memory_error(label, error)
        if isinstance(error, duckdb.OutOfMemoryException):
            raise
        if "state machine" not in str(error):
            raise unreadable_file_error(label, ValueError(_short_message(str(error)))) from error
        action = "It mixes CRLF and LF line endings: save it again with only one kind."
        raise InputError(
            f"{label} cannot be read", given=_short_message(str(error)), action=action
        ) from error
    except Exception as error:
        # An exception of Ibis, which is recognised by its name because importing Ibis takes time.
        if type(error).__name__ == "OperationNotDefinedError":
            raise InputError(
                f"{label}: its engine lacks a required operation",
                given=str(error).splitlines()[0],
                allowed="DuckDB, PostgreSQL, Spark",
                action="Write the columns to a Parquet file and read that.",
            ) from error
        engine = type(error).__module__.split(".")[0]
        if engine not in _DRIVER_NAMES or isinstance(error, MemoryError):
            raise
        raise InputError(
            f"{label}: {_DRIVER_NAMES[engine]} could not run the query",
            given=_short_message(str(error)),
            action="Check the table and the engine's message, or write the columns to a Parquet file.",
        ) from error


def _translate_memory_error(label: str, error: Exception) -> None:
    """Raise an `InputError` if the disk or the memory limit does not suffice for the data."""
    message = str(error)
    reason = _short_message(message.splitlines()[0]).removeprefix("Out of Memory Error: ")
    if "duckdb_temp_" in message or "max_temp_directory_size" in message:
        raise InputError(
            f"{label}: the disk has no room for the data that does not fit in memory",
            given=f"{tempfile.gettempdir()}: {reason}",
            action="Set TMPDIR to a folder with more space, or allow more memory: memory= (--memory).",
        ) from error
    if " used)" in message:
        raise InputError(
            f"{label}: the memory limit is too low",
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


# Limits of reading into memory: an engine hashes more rows faster, and more bytes are copied too often.
MAX_MEMORY_ROWS = 500_000

# Bytes of text that are read into memory; more stays in the engine.
MAX_MEMORY_BYTES = 2**28

# Text files of up to this many bytes are parsed once and stored; each query parses larger ones again.
STORE_LIMIT = 256 * 2**20

# Rows of a batch: DuckDB copies a text for each row that contains it.
_BATCH_ROWS = 2_048

# Columns of one query: DuckDB needs 100 kB for each during the query.
_MAX_QUERY_COLUMNS = 2_000

# Names of numeric types in DuckDB.
INTEGER_TYPES = ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint")
_REAL_TYPES = ("float", "double")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows(Record):
    """The selected columns of a table, in a connection to DuckDB.

    Parameters
    ----------
    label : str
        Name of the table in error messages.
    connection : duckdb.DuckDBPyConnection
    origin : str
        SQL of the table, after FROM.
    columns : mapping of str to str
        The user's names to SQL expressions.
    text : bool
        Whether every value is text that the declaration of columns converts.
    stored : bool
        Whether rows that do not fit in memory are copied into DuckDB's storage instead of read by each query.
    notes, locate
        As in `Source`.
    ambiguous : mapping of str to str
        Columns of numbers with two interpretations, with an example: see `number_format`.
    """

    label: str
    connection: Foreign
    origin: str
    columns: Mapping[str, str]
    text: bool = False
    stored: bool = False
    notes: tuple[str, ...] = ()
    locate: Callable[[int], str] | None = None
    ambiguous: Mapping[str, str] = field(default_factory=dict)

    def sql(self, *expressions: str, end: str = "") -> str:
        """Return the query of expressions of the columns."""
        listed = ", ".join(f"{expression} AS c{number}" for number, expression in enumerate(expressions))
        return f"SELECT {listed} FROM {self.origin}{end}"

    def types(self) -> dict[str, str]:
        """Return DuckDB's types of the columns, by the user's names."""
        with translate_engine_errors(self.label):
            types = [
                kind.id
                for names in _column_groups(list(self.columns.values()))
                for kind in self.connection.sql(self.sql(*names)).types
            ]
        return dict(zip(self.columns, types, strict=True))

    def head(self, names: Sequence[str], rows: int) -> dict[str, list[Foreign]]:
        """Return the first rows of some columns."""
        columns = self._read([self.columns[name] for name in names], f" LIMIT {rows}", rows)
        if columns is None:
            return {}
        return dict(zip(names, (column.to_pylist() for column in columns), strict=True))

    def query_row(self, *expressions: str) -> tuple[Foreign, ...]:
        """Return the row of a query with one row."""
        with translate_engine_errors(self.label):
            return tuple(self.connection.execute(self.sql(*expressions)).fetchall()[0])

    def totals(self, names: Sequence[str]) -> dict[str, Foreign]:
        """Return the number `n` of complete rows, the `least` value, and the largest error `off` of a sum."""
        types = self.types()
        values = f"[{', '.join(str(self.as_number(name, types[name])) for name in names)}]"
        facts = ("count(*)", f"min(list_min({values}))", f"max(abs(list_sum({values}) - 1))")
        complete_rows = f"FILTER (NOT isnan(list_sum({values})) AND list_count({values}) = {len(names)})"
        return dict(
            zip(
                ("n", "least", "off"),
                self.query_row(*(f"{fact} {complete_rows}" for fact in facts)),
                strict=True,
            )
        )

    def arrow(self, *expressions: str, max_rows: int | None = None) -> list[Foreign] | None:
        """Return expressions of the columns as PyArrow columns, None if they do not fit in memory."""
        return self._read(expressions, "", MAX_MEMORY_ROWS if max_rows is None else max_rows)

    def _read(self, expressions: Sequence[str], end: str, max_rows: int) -> list[Foreign] | None:
        import pyarrow as pa

        columns: list[Foreign] = []
        total_bytes = 0
        for group in _column_groups(expressions):
            batches: list[Foreign] = []
            rows = 0
            with translate_engine_errors(self.label):
                reader = arrow_reader(self.connection.sql(self.sql(*group, end=end)), _BATCH_ROWS)
                for batch in _record_batches(reader):
                    batches.append(batch)
                    total_bytes = total_bytes + batch.nbytes
                    rows = rows + batch.num_rows
                    if total_bytes > MAX_MEMORY_BYTES or rows > max_rows:
                        reader.close()
                        return None
                columns += pa.Table.from_batches(batches, reader.schema).columns
        return columns

    def source(self) -> Source:
        """Return the rows as a table that Ibis queries."""
        import ibis

        backend = ibis.duckdb.from_connection(self.connection)
        name = f"rows_{uuid.uuid4().hex}"
        # A query needs a column, also if rows are only counted.
        columns = self.columns or {"": "0"}
        kind = "TABLE" if self.stored else "VIEW"
        with translate_engine_errors(self.label):
            self.connection.execute(f"CREATE TEMP {kind} {name} AS {self.sql(*columns.values())}").fetchall()
        try:
            table = backend.table(name)
        # Ibis raises several exceptions for an unknown type, and also passes on those of sqlglot.
        except Exception as error:
            raise InputError(
                f"{self.label}: a column has a type that no engine can read",
                given=", ".join(columns),
                action="Convert it to text or numbers.",
            ) from error
        return Source(
            label=self.label,
            backend=backend,
            table=table,
            columns={name: f"c{number}" for number, name in enumerate(self.columns)},
            text=self.text,
            notes=self.notes,
            locate=self.locate,
        )

    def as_number(self, name: str, kind: str) -> str | None:
        """Return the SQL of a column as numbers, null where text is none; None where its type has none.

        Text such as `1_0`, which engines and Python read as 10, is none; `true` is 1 and `false` is 0.
        """
        column = self.columns[name]
        if self.text and kind == "varchar":
            number = f"CASE WHEN contains({column}, '_') THEN NULL ELSE TRY_CAST({column} AS DOUBLE) END"
            # As truth values of Parquet, which the cast below turns into 1 and 0.
            truth = f"CASE lower(trim({column})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
            return f"coalesce({number}, {truth})"
        numeric = kind in (*INTEGER_TYPES, *_REAL_TYPES, "decimal", "boolean")
        if numeric:
            return f"CAST({column} AS DOUBLE)"
        return None

    def as_category(self, name: str, kind: str) -> str | None:
        """Return the SQL of a column as the text of categories, None where its type has none."""
        column = self.columns[name]
        if kind == "boolean":
            return f"CASE WHEN {column} THEN 'True' WHEN NOT {column} THEN 'False' END"
        if kind in (*INTEGER_TYPES, "varchar", "date", "enum"):
            return f"CAST({column} AS VARCHAR)"
        return None


# Expressions in one list: DuckDB takes several times as long for each value of a list of 500.
_ROWS_IN_A_LIST = 50


def stack_columns(origin: str, *lists: Sequence[str]) -> str:
    """Return the query of lists of expressions below each other, `c1`, …, with their position, `c0`."""
    starts = range(0, len(lists[0]), _ROWS_IN_A_LIST)
    parts = [
        ", ".join(f"[{', '.join(column[start : start + _ROWS_IN_A_LIST])}]" for start in starts)
        for column in lists
    ]
    lists_of_parts = ", ".join(f"unnest([{part}]) AS c{number}" for number, part in enumerate(parts, start=1))
    entries = ", ".join(f"unnest(c{number}) AS c{number}" for number in range(1, len(parts) + 1))
    position = f"c0 + unnest(range({_ROWS_IN_A_LIST})) AS c0"
    lists_query = f"SELECT unnest({[*starts]}) AS c0, {lists_of_parts} FROM {origin}"
    return f"SELECT {position}, {entries} FROM ({lists_query})"


def _column_groups(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + _MAX_QUERY_COLUMNS] for start in range(0, len(names), _MAX_QUERY_COLUMNS))


def _record_batches(reader: Foreign) -> Iterator[Foreign]:
    """Yield the batches of a DuckDB reader, with the errors of DuckDB, which PyArrow replaces by its own."""
    import duckdb
    import pyarrow as pa

    try:
        yield from reader
    except (OSError, pa.ArrowException) as error:
        interrupted = str(error).startswith("INTERRUPT")
        raise (duckdb.InterruptException if interrupted else duckdb.Error)(str(error)) from error
