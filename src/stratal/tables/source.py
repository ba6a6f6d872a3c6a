"""Where a table's rows are: an Ibis table, the engine that holds it, and what its rows are called."""

from __future__ import annotations

import re
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from stratal.arrays import Record, checked_threads
from stratal.errors import InputError
from stratal.tables.engine import answer, record_batches
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


DUCKDB, SPARK = "duckdb", "spark"
ENGINES = (DUCKDB, SPARK)

_MEMORY_AMOUNT = re.compile(r"\d+(\.\d+)? ?(KB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading(Record):
    """How `Population.read` is to read a file.

    Parameters
    ----------
    delimiter, format : str, optional
    directory, remote : bool
        As in `Population.read`.
    engine : {"duckdb", "spark"}
    master : str, optional
        Where Spark runs: `local[2]`, `spark://host:7077`, `yarn`.
    threads : int, optional
        How many DuckDB may use; all cores if left out.
    memory : str, optional
        How much DuckDB may hold before it spills to disk, such as `2GB`.

    Examples
    --------
    >>> FileReading(engine="duckdb", threads=2).threads
    2
    """

    delimiter: str | None = None
    format: str | None = None
    directory: bool = False
    remote: bool = False
    engine: str = DUCKDB
    master: str | None = None
    threads: int | None = None
    memory: str | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError("no such engine", given=repr(self.engine), allowed=", ".join(ENGINES))
        if self.master is not None and self.engine != SPARK:
            raise InputError(
                "a master is where Spark runs",
                given=f"master {self.master!r} with engine {self.engine!r}",
                action="Add engine='spark' (--engine spark).",
            )
        for name in ("threads", "memory"):
            if getattr(self, name) is not None and self.engine == SPARK:
                raise InputError(
                    f"{name} is of DuckDB",
                    given=f"{name} with engine 'spark'",
                    action="Spark has its own: master='local[2]', or spark.executor.memory.",
                )
        if self.threads is not None:
            checked_threads(self.threads)
        if self.memory is not None and not _MEMORY_AMOUNT.fullmatch(self.memory):
            raise InputError(
                "memory must be an amount with a unit", given=repr(self.memory), allowed="such as 500MB, 2GB"
            )


_DRIVERS = {
    "psycopg": "PostgreSQL",
    "py4j": "Spark",
    "pyarrow": "PyArrow",
    "pyspark": "Spark",
    "sqlite3": "SQLite",
}
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
        row: dict[str, Any] = self.run(expression).to_pylist()[0]
        return row

    def batches(self, expression: Any, size: int) -> Iterator[Any]:
        """Yield a query's result as PyArrow record batches of up to `size` rows."""
        with self.lock, readable(self.label):
            yield from record_batches(self.backend, expression, size)

    def place(self, row: int) -> str:
        """Return how the row with this number (from 0) is called."""
        return self.locate(row) if self.locate is not None else f"row {row + 1}"


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
    """

    label: str
    names: tuple[str, ...]
    take: Callable[[Chosen], Any]
    values: Callable[[], tuple[dict[str, list[Any]], list[int]]] | None = None
    log: Log | None = None


@contextmanager
def readable(label: str) -> Iterator[None]:
    """Turn what an engine says of a file that it cannot read into one `InputError`.

    Examples
    --------
    >>> with readable("predictions.csv"):
    ...     pass
    """
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        _refuse_spilling(label, error)
        if isinstance(error, duckdb.OutOfMemoryException):
            raise
        raise InputError(
            f"{label} cannot be read",
            given=_reason(str(error)),
            action="Its line ends differ (CRLF and LF): save it again with one kind."
            if "state machine" in str(error)
            else "Check that the file is whole and of the format that its name says.",
        ) from error
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
