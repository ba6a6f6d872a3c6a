"""Rows as DuckDB reads them, a column by an SQL expression each: into memory, or for Ibis to query."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stratal.arrays import Record
from stratal.errors import InputError
from stratal.tables.engine import reader_of
from stratal.tables.source import Source, readable

MOST_ROWS, MOST_BYTES = 500_000, 2**28
"""What fits in memory: more rows are hashed faster where they are, more bytes are copied too often."""

STORE_LIMIT = 256 * 2**20
"""Text files of up to this many bytes are parsed once and kept; larger ones are parsed by each query."""

_BATCH = 2_048
"""Rows that come at once: DuckDB writes a text out for each row that it stands in."""

_AT_ONCE = 2_000
"""Columns of one query: each takes DuckDB 100 kB meanwhile."""

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
    """

    label: str
    connection: Any
    origin: str
    columns: Mapping[str, str]
    text: bool = False
    stored: bool = False
    notes: tuple[str, ...] = ()
    locate: Callable[[int], str] | None = None

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
        return (
            {} if found is None else dict(zip(names, (column.to_pylist() for column in found), strict=True))
        )

    def one(self, *expressions: str) -> tuple[Any, ...]:
        """Return the answer of a query of one row."""
        with readable(self.label):
            row: tuple[Any, ...] = self.connection.execute(self.sql(*expressions)).fetchall()[0]
        return row

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
        found: list[Any] = []
        held = 0
        for group in _groups(expressions):
            batches: list[Any] = []
            rows = 0
            with readable(self.label):
                reader = reader_of(self.connection.sql(self.sql(*group, end=end)), _BATCH)
                for batch in _batches(reader):
                    batches.append(batch)
                    held, rows = held + batch.nbytes, rows + batch.num_rows
                    if held > MOST_BYTES or rows > most:
                        reader.close()
                        return None
                found += _columns(batches, reader.schema)
        return found

    def source(self) -> Source:
        """Return the rows as a table that Ibis queries."""
        import ibis

        backend, name = ibis.duckdb.from_connection(self.connection), f"rows_{uuid.uuid4().hex}"
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

        Text such as `1_0`, which engines and Python read as 10, is none.
        """
        column = self.columns[name]
        if self.text and kind == "varchar":
            return f"CASE WHEN contains({column}, '_') THEN NULL ELSE TRY_CAST({column} AS DOUBLE) END"
        numeric = kind in (*WHOLE, *_REAL, "decimal", "boolean")
        return f"CAST({column} AS DOUBLE)" if numeric else None

    def as_category(self, name: str, kind: str) -> str | None:
        """Return the SQL of a column as the text of categories, None where its type has none."""
        column = self.columns[name]
        if kind == "boolean":
            return f"CASE WHEN {column} THEN 'True' WHEN NOT {column} THEN 'False' END"
        return f"CAST({column} AS VARCHAR)" if kind in (*WHOLE, "varchar", "date", "enum") else None


def _groups(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE))


def _columns(batches: Sequence[Any], schema: Any) -> list[Any]:
    import pyarrow as pa

    return list(pa.Table.from_batches(batches, schema).columns)


def _batches(reader: Any) -> Iterator[Any]:
    """Yield what a reader of DuckDB's gives, with DuckDB's errors, which PyArrow makes its own."""
    import duckdb
    import pyarrow as pa

    try:
        yield from reader
    except (OSError, pa.ArrowException) as error:
        interrupted = str(error).startswith("INTERRUPT")
        raise (duckdb.InterruptException if interrupted else duckdb.Error)(str(error)) from error
