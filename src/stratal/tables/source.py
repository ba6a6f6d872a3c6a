"""Where a table's rows are: as Ibis queries them on any engine, or as DuckDB reads them into memory."""

from __future__ import annotations

import re
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

from stratal.arrays import Record, checked_threads
from stratal.errors import InputError, refuse_unknown, unreadable
from stratal.tables.engine import answer, reader_of, record_batches
from stratal.tables.logs import Log


class Chosen(Protocol):
    """The columns of a table that are read."""

    @property
    def id(self) -> str:
        """The column of ids."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """Those that are read as numbers."""

    def among(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of a table with these columns."""


class EveryColumn:
    """Chooses every column of a table that has its name alone."""

    id = ""
    numbers = ()

    def __init__(self, names: Sequence[str]) -> None:
        self._counts = Counter(names)

    def among(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of a table with these columns."""
        return tuple(name for name in dict.fromkeys(names) if self._counts[name] == 1)


DUCKDB = "duckdb"
SPARK = "spark"

_MEMORY_AMOUNT = re.compile(r"\d+(\.\d+)? ?(KB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.IGNORECASE)


class FileReading(TypedDict, total=False):
    """How `Population.read` is to read a file: the keywords that are of no column."""

    delimiter: str | None
    format: str | None
    directory: bool
    remote: bool
    engine: str
    master: str | None
    threads: int | None
    memory: str | None


def checked_reading(given: FileReading) -> FileReading:
    """Return how a file is to be read, refusing what cannot be, and options of another engine.

    Examples
    --------
    >>> checked_reading({"engine": "duckdb", "threads": 2})
    {'engine': 'duckdb', 'threads': 2}
    """
    engine = given.get("engine", DUCKDB)
    threads = given.get("threads")
    memory = given.get("memory")
    refuse_unknown("engine", engine, (DUCKDB, SPARK))
    for name, own in (("master", SPARK), ("threads", DUCKDB), ("memory", DUCKDB)):
        if given.get(name) is not None and engine != own:
            raise InputError(
                f"{name} is of engine={own!r} (--engine {own}) alone",
                given=f"engine {engine!r}",
                action="Spark has its own: master='local[2]', or spark.executor.memory.",
            )
    if threads is not None:
        checked_threads(threads)
    if memory is not None and not _MEMORY_AMOUNT.fullmatch(memory):
        raise InputError("memory must be an amount with a unit", given=repr(memory), allowed="500MB, 2GB")
    return given


_DRIVERS = {"psycopg": "PostgreSQL", "py4j": "Spark", "pyarrow": "PyArrow", "pyspark": "Spark"}
_DRIVERS |= {"sqlite3": "SQLite"}
"""What raises errors of its own, and how it is called."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A table somewhere, not yet looked at.

    Parameters
    ----------
    label : str
        What it is called in errors: a file's name, or `the table`.
    backend : Ibis backend
        Runs the queries.
    table : Ibis table
        The rows.
    columns : mapping of str to str
        The user's names to the table's own.
    text : bool
        Whether every value is text, to be converted by declaration (CSV, JSON Lines).
    ordered : bool
        Whether rows have a number, so that an error can name the first bad one.
    locate : callable, optional
        Row number (from 0) to words such as `line 17`; row numbers if left out.
    notes : tuple of str
        What was done to read the rows: blank ones left out, a sheet chosen.
    lock
        Held by a query: a connection answers one at a time.
    """

    label: str
    backend: Any
    table: Any
    columns: Mapping[str, str]
    text: bool = False
    ordered: bool = True
    locate: Callable[[int], str] | None = None
    notes: tuple[str, ...] = ()
    lock: Any = field(default_factory=threading.RLock)

    def is_text(self, name: str) -> bool:
        """Return whether a column's values are text that is to be converted."""
        return self.text and bool(self.column(name).type().is_string())

    def column(self, name: str) -> Any:
        """Return the Ibis column that the user calls `name`."""
        return self.table[self.columns[name]]

    def run(self, expression: Any) -> Any:
        """Return the small result of a query as a PyArrow table."""
        with self.lock, readable(self.label):
            return answer(self.backend, expression)

    def first(self, expression: Any) -> dict[str, Any]:
        """Return the first row of a query's result by column."""
        return dict(self.run(expression).to_pylist()[0])

    def batches(self, expression: Any, size: int) -> Iterator[Any]:
        """Yield a query's result as PyArrow record batches of up to `size` rows."""
        with self.lock, readable(self.label):
            yield from record_batches(self.backend, expression, size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table(Record):
    """A table whose columns are known by name, and not read yet.

    Parameters
    ----------
    label : str
        What it is called in errors.
    names : tuple of str
        Its columns; of two with one name the first is read.
    take : callable
        Returns the columns that were chosen: as `Rows`, or as a `Source` on an engine of its own.
    values : callable, optional
        Of JSON, whose cells may be more than text: returns all columns as lists, and the line of each row.
    log : Log, optional
        The evaluation tool's log that it is of.
    below : callable, optional
        Of JSON, whose values take long to write as text key by key: returns columns below each other, as
        `Rows` of the `column`, by its place among the names, and the `text`.
    index : pandas Index, optional
        That of a dataframe, where it identifies rows: the ids, unless others are named.
    """

    label: str
    names: tuple[str, ...]
    take: Callable[[Chosen], Any]
    values: Callable[[], tuple[dict[str, list[Any]], list[int]]] | None = None
    log: Log | None = None
    below: Callable[[Sequence[str]], Rows] | None = None
    index: Any = None


@contextmanager
def readable(label: str) -> Iterator[None]:
    """Turn what an engine says of a file that it cannot read into one `InputError`."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        _refuse_spilling(label, error)
        if isinstance(error, duckdb.OutOfMemoryException):
            raise
        if "state machine" not in str(error):
            raise unreadable(label, ValueError(_reason(str(error)))) from error
        action = "Its line ends differ (CRLF and LF): save it again with one kind."
        raise InputError(f"{label} cannot be read", given=_reason(str(error)), action=action) from error
    except Exception as error:
        if type(error).__name__ == "OperationNotDefinedError":  # of Ibis, which loads slowly
            raise InputError(
                f"{label}: the engine that holds it lacks an operation",
                given=str(error).splitlines()[0],
                allowed="DuckDB, PostgreSQL, Spark",
                action="Write the columns to a Parquet file and read that.",
            ) from error
        engine = type(error).__module__.split(".")[0]
        if engine not in _DRIVERS or isinstance(error, MemoryError):
            raise
        raise InputError(
            f"{label}: {_DRIVERS[engine]} could not answer",
            given=_reason(str(error)),
            action="Check the table and the engine's message, or write the columns to a Parquet file.",
        ) from error


def _refuse_spilling(label: str, error: Exception) -> None:
    """Say it if what does not fit in memory has no room on the disk, or may not use the memory it needs."""
    message = str(error)
    first = _reason(message.splitlines()[0]).removeprefix("Out of Memory Error: ")
    if "duckdb_temp_" in message or "max_temp_directory_size" in message:
        raise InputError(
            f"{label}: the disk has no room for the data that does not fit in memory",
            given=f"{tempfile.gettempdir()}: {first}",
            action="Set TMPDIR to a folder with more room, or let more stay in memory: memory= (--memory).",
        ) from error
    if " used)" in message:
        raise InputError(
            f"{label}: the memory that may be used does not suffice",
            given=first,
            action="Allow more, memory='2GB' (--memory 2GB), or fewer threads.",
        ) from error


def _reason(message: str) -> str:
    """Return the first telling lines of an engine's message."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    kept = []
    for line in lines:
        if line.startswith(("Possible", "*", "file =", "LINE ", "This can happen")):
            break
        kept.append(line)
    reason = "; ".join(kept[:4]).removeprefix("Invalid Input Error: ").removeprefix("IO Error: ")
    return reason if len(reason) <= 300 else reason[:297] + "…"


# What fits in memory: more rows are hashed faster where they are, more bytes are copied too often.
MOST_ROWS = 500_000
MOST_BYTES = 2**28

# Text files of up to this many bytes are parsed once and kept; larger ones are parsed by each query.
STORE_LIMIT = 256 * 2**20

# Rows that come at once: DuckDB writes a text out for each row that it stands in.
_BATCH = 2_048

# Columns of one query: each takes DuckDB 100 kB meanwhile.
_AT_ONCE = 2_000

WHOLE = ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint")
_REAL = ("float", "double")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows(Record):
    """The columns of a table that were chosen, in a connection to DuckDB.

    Parameters
    ----------
    label : str
        What the table is called in errors.
    connection : duckdb.DuckDBPyConnection
    origin : str
        What stands behind FROM.
    columns : mapping of str to str
        The user's names to SQL.
    text : bool
        Whether every value is text, to be converted by declaration.
    stored : bool
        Whether rows that do not fit in memory are copied into DuckDB's storage, not read by each query.
    notes, locate
        As of `Source`.
    ambiguous : mapping of str to str
        Columns of numbers that may be read in two ways, with an entry: see `number_format`.
    """

    label: str
    connection: Any
    origin: str
    columns: Mapping[str, str]
    text: bool = False
    stored: bool = False
    notes: tuple[str, ...] = ()
    locate: Callable[[int], str] | None = None
    ambiguous: Mapping[str, str] = field(default_factory=dict)

    def sql(self, *expressions: str, end: str = "") -> str:
        """Return the query of some expressions of the columns."""
        listed = ", ".join(f"{expression} AS c{at}" for at, expression in enumerate(expressions))
        return f"SELECT {listed} FROM {self.origin}{end}"

    def types(self) -> dict[str, str]:
        """Return DuckDB's types of the columns, by the user's names."""
        with readable(self.label):
            found = [
                kind.id
                for names in _groups(list(self.columns.values()))
                for kind in self.connection.sql(self.sql(*names)).types
            ]
        return dict(zip(self.columns, found, strict=True))

    def head(self, names: Sequence[str], rows: int) -> dict[str, list[Any]]:
        """Return the first rows of some columns."""
        found = self._read([self.columns[name] for name in names], f" LIMIT {rows}", rows)
        if found is None:
            return {}
        return dict(zip(names, (column.to_pylist() for column in found), strict=True))

    def one(self, *expressions: str) -> tuple[Any, ...]:
        """Return the answer of a query of one row."""
        with readable(self.label):
            return tuple(self.connection.execute(self.sql(*expressions)).fetchall()[0])

    def totals(self, names: Sequence[str]) -> dict[str, Any]:
        """Return `n` rows with all values, the `least` value, how far they are `off` from adding to 1."""
        types = self.types()
        values = f"[{', '.join(str(self.as_number(name, types[name])) for name in names)}]"
        facts = ("count(*)", f"min(list_min({values}))", f"max(abs(list_sum({values}) - 1))")
        whole = f"FILTER (NOT isnan(list_sum({values})) AND list_count({values}) = {len(names)})"
        return dict(zip(("n", "least", "off"), self.one(*(f"{fact} {whole}" for fact in facts)), strict=True))

    def arrow(self, *expressions: str, most: int | None = None) -> list[Any] | None:
        """Return expressions of the columns as PyArrow columns, None where they do not fit in memory."""
        return self._read(expressions, "", MOST_ROWS if most is None else most)

    def _read(self, expressions: Sequence[str], end: str, most: int) -> list[Any] | None:
        import pyarrow as pa

        found: list[Any] = []
        held = 0
        for group in _groups(expressions):
            batches: list[Any] = []
            rows = 0
            with readable(self.label):
                reader = reader_of(self.connection.sql(self.sql(*group, end=end)), _BATCH)
                for batch in _batches(reader):
                    batches.append(batch)
                    held = held + batch.nbytes
                    rows = rows + batch.num_rows
                    if held > MOST_BYTES or rows > most:
                        reader.close()
                        return None
                found += pa.Table.from_batches(batches, reader.schema).columns
        return found

    def source(self) -> Source:
        """Return the rows as a table that Ibis queries."""
        import ibis

        backend = ibis.duckdb.from_connection(self.connection)
        name = f"rows_{uuid.uuid4().hex}"
        columns = self.columns or {"": "0"}  # rows of which no column is used are counted all the same
        kind = "TABLE" if self.stored else "VIEW"
        with readable(self.label):
            self.connection.execute(f"CREATE TEMP {kind} {name} AS {self.sql(*columns.values())}").fetchall()
        try:
            table = backend.table(name)
        except Exception as error:  # of sqlglot, of Ibis
            raise InputError(
                f"{self.label}: a column has a type that no engine reads",
                given=", ".join(columns),
                action="Make it text or numbers.",
            ) from error
        return Source(
            label=self.label,
            backend=backend,
            table=table,
            columns={name: f"c{at}" for at, name in enumerate(self.columns)},
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
            # Truth values are 1 and 0, as those of Parquet are.
            truth = f"CASE lower(trim({column})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
            return f"coalesce({number}, {truth})"
        numeric = kind in (*WHOLE, *_REAL, "decimal", "boolean")
        return f"CAST({column} AS DOUBLE)" if numeric else None

    def as_category(self, name: str, kind: str) -> str | None:
        """Return the SQL of a column as the text of categories, None where its type has none."""
        column = self.columns[name]
        if kind == "boolean":
            return f"CASE WHEN {column} THEN 'True' WHEN NOT {column} THEN 'False' END"
        if kind in (*WHOLE, "varchar", "date", "enum"):
            return f"CAST({column} AS VARCHAR)"
        return None


# Expressions in one list: DuckDB takes several times as long for each value of a list of 500.
_IN_A_LIST = 50


def below_each_other(origin: str, *lists: Sequence[str]) -> str:
    """Return the query of lists of expressions below each other, `c1`, …, beside their place, `c0`.

    Examples
    --------
    >>> import duckdb
    >>> duckdb.sql(below_each_other("(SELECT 7 AS a, 8 AS b)", ["a", "b"])).fetchall()[:2]
    [(0, 7), (1, 8)]
    """
    starts = range(0, len(lists[0]), _IN_A_LIST)
    parts = [", ".join(f"[{', '.join(each[at : at + _IN_A_LIST])}]" for at in starts) for each in lists]
    nested = ", ".join(f"unnest([{part}]) AS c{at}" for at, part in enumerate(parts, start=1))
    within = ", ".join(f"unnest(c{at}) AS c{at}" for at in range(1, len(parts) + 1))
    place = f"c0 + unnest(range({_IN_A_LIST})) AS c0"
    return f"SELECT {place}, {within} FROM (SELECT unnest({[*starts]}) AS c0, {nested} FROM {origin})"


def _groups(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE))


def _batches(reader: Any) -> Iterator[Any]:
    """Yield what a reader of DuckDB's gives, with DuckDB's errors, which PyArrow makes its own."""
    import duckdb
    import pyarrow as pa

    try:
        yield from reader
    except (OSError, pa.ArrowException) as error:
        interrupted = str(error).startswith("INTERRUPT")
        raise (duckdb.InterruptException if interrupted else duckdb.Error)(str(error)) from error
