"""Where a table's rows are: an Ibis table, the engine that holds it, and what its rows are called."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from stratal.errors import InputError
from stratal.population.logs.log import Log
from stratal.population.tables.engine import answer, read_columns, record_batches, share_done
from stratal.population.tables.watching import scanning, watched

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
    log : Log, optional
        The evaluation tool's log that the rows are of.
    rows : int, optional
        How many there are, once that is known: for those who watch.
    """

    label: str
    backend: Any
    table: Any
    columns: Mapping[str, str]
    text: bool = False
    ordered: bool = True
    locate: Callable[[int], str] | None = None
    notes: tuple[str, ...] = ()
    log: Log | None = None
    rows: int | None = None

    def counted(self) -> Source:
        """Return the source with its number of rows, where somebody watches and it costs no scan."""
        if not watched() or self.text or self.backend.name != "duckdb":
            return self
        return replace(self, rows=int(self.first(self.table.aggregate(n=self.table.count()))["n"]))

    def is_text(self, name: str) -> bool:
        """Return whether a column's values are text that is to be converted."""
        return self.text and bool(self.column(name).type().is_string())

    def column(self, name: str) -> Any:
        """Return the Ibis column that the user calls `name`."""
        return self.table[self.columns[name]]

    def run(self, expression: Any) -> Any:
        """Return the small result of a query as a PyArrow table."""
        with readable(self.label), self._scanning():
            return answer(self.backend, expression)

    def read(self, names: Sequence[str]) -> Any:
        """Return some columns of a small table as a PyArrow table, under the table's own names."""
        with readable(self.label), self._scanning():
            return read_columns(self.backend, self.table, [self.columns[name] for name in names])

    def first(self, expression: Any) -> dict[str, Any]:
        """Return the first row of a query's result by column."""
        row: dict[str, Any] = self.run(expression).to_pylist()[0]
        return row

    def batches(self, expression: Any, size: int) -> Iterator[Any]:
        """Yield a query's result as PyArrow record batches of up to `size` rows."""
        with readable(self.label), self._scanning():
            yield from record_batches(self.backend, expression, size)

    def _scanning(self) -> AbstractContextManager[None]:
        return scanning(self.label, self.rows, lambda: share_done(self.backend))

    def place(self, row: int) -> str:
        """Return how the row with this number (from 0) is called."""
        return self.locate(row) if self.locate is not None else f"row {row + 1}"


@contextmanager
def readable(label: str) -> Iterator[None]:
    """Turn what an engine says of a file that it cannot read into one `InputError`.

    Examples
    --------
    >>> with readable("predictions.csv"):
    ...     pass
    """
    import duckdb
    from ibis.common.exceptions import OperationNotDefinedError

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
            action="Check that the file is whole and of the format that its name says.",
        ) from error
    except OperationNotDefinedError as error:
        raise InputError(
            f"{label}: the engine that holds it lacks an operation",
            given=str(error).splitlines()[0],
            allowed="DuckDB, PostgreSQL, Spark",
            action="Write the columns to a Parquet file and read that.",
        ) from error
    except Exception as error:
        engine = type(error).__module__.split(".")[0]
        if engine not in _DRIVERS or isinstance(error, MemoryError):
            raise
        raise InputError(
            f"{label}: {_DRIVERS[engine]} could not answer",
            given=_reason(str(error)),
            action="Check the table and what its engine says, or write the columns to a Parquet file.",
        ) from error


def _refuse_spilling(label: str, error: Exception) -> None:
    """Say it if what does not fit in memory has no room on the disk, or may not use the memory it needs."""
    message = str(error)
    first = _reason(message.splitlines()[0]).removeprefix("Out of Memory Error: ")
    if "duckdb_temp_" in message or "max_temp_directory_size" in message:
        raise InputError(
            f"{label}: the disk has no room for what does not fit in memory",
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
