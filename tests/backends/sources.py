"""One population in every form that stratal reads, each with its rows in another order."""

from __future__ import annotations

import csv
import gzip
import io
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from stratal.population import Population
from stratal.proxy import Proxy


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Columns by name, and what they are."""

    ids: np.ndarray
    proxies: dict[str, np.ndarray]
    second_moment: np.ndarray | None = None
    groups: dict[str, np.ndarray] = field(default_factory=dict)
    bounds: tuple[float, float] | None = None

    def columns(self, seed: int) -> dict[str, np.ndarray]:
        """Return all columns, rows shuffled by `seed`."""
        order = np.random.default_rng(seed).permutation(len(self.ids))
        columns = {"item_id": self.ids, **self.proxies, **self.groups}
        if self.second_moment is not None:
            columns["second"] = self.second_moment
        return {name: values[order] for name, values in columns.items()}

    @property
    def keywords(self) -> dict[str, Any]:
        """What `Population.read` is told of the columns."""
        given: dict[str, Any] = {
            "proxy": list(self.proxies),
            "groups": list(self.groups),
            "bounds": self.bounds,
        }
        if self.second_moment is not None:
            given["second_moment"] = {next(iter(self.proxies)): "second"}
        return given


def from_arrays(rows: Rows, folder: Path) -> Population:
    columns = rows.columns(0)
    proxies: dict[str, Any] = {name: columns[name] for name in rows.proxies}
    if rows.second_moment is not None:
        first = next(iter(proxies))
        proxies[first] = Proxy(
            name=first,
            values=np.asarray(proxies[first], np.float64),
            second_moments=np.asarray(columns["second"], np.float64),
            scaled=True,
            bounds=rows.bounds or (0.0, 1.0),
        )
    return Population.from_arrays(
        proxy=proxies,
        ids=columns["item_id"],
        groups={name: columns[name] for name in rows.groups},
        bounds=rows.bounds,
        id_name="item_id",
    )


def _texts(values: np.ndarray) -> list[str]:
    if values.dtype.kind == "f":
        return [repr(float(value)) for value in values]
    return [str(value) for value in values.tolist()]


def _write_csv(path: Path, columns: dict[str, np.ndarray], delimiter: str = ",") -> Path:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(columns)
    writer.writerows(zip(*map(_texts, columns.values()), strict=True))
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


def from_csv(rows: Rows, folder: Path) -> Population:
    return Population.read(_write_csv(folder / "rows.csv", rows.columns(1)), **rows.keywords)


def from_semicolons(rows: Rows, folder: Path) -> Population:
    path = _write_csv(folder / "rows.txt", rows.columns(2), ";")
    return Population.read(path, format="csv", delimiter=";", **rows.keywords)


def from_tsv_gz(rows: Rows, folder: Path) -> Population:
    return Population.read(_write_csv(folder / "rows.tsv.gz", rows.columns(3), "\t"), **rows.keywords)


def from_json_lines(rows: Rows, folder: Path) -> Population:
    return Population.read(_write_json_lines(folder / "rows.jsonl", rows.columns(4)), **rows.keywords)


def _write_json_lines(path: Path, columns: dict[str, np.ndarray]) -> Path:
    lists = [
        (values.astype(np.float64) if values.dtype.kind == "f" else values).tolist()
        for values in columns.values()
    ]
    records = (json.dumps(dict(zip(columns, row, strict=True))) for row in zip(*lists, strict=True))
    path.write_text("\n".join(records) + "\n")
    return path


def _arrow(rows: Rows, seed: int) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array(values) for name, values in rows.columns(seed).items()})


def from_parquet(rows: Rows, folder: Path) -> Population:
    import pyarrow.parquet as pq

    pq.write_table(_arrow(rows, 5), folder / "rows[1]*.parquet", row_group_size=1000)
    return Population.read(folder / "rows[1]*.parquet", **rows.keywords)


def from_parquet_parts(rows: Rows, folder: Path) -> Population:
    import pyarrow.parquet as pq

    table = _arrow(rows, 6)
    parts = folder / "parts"
    parts.mkdir()
    half = len(table) // 2
    pq.write_table(table.slice(0, half), parts / "part-0.parquet")
    pq.write_table(table.slice(half), parts / "part-1.parquet")
    (parts / "_SUCCESS").touch()
    return Population.read(parts, directory=True, **rows.keywords)


def from_pandas(rows: Rows, folder: Path) -> Population:
    import pandas as pd

    columns = rows.columns(7)
    # The index has the ids in another order, so the column of ids must be named.
    frame = pd.DataFrame(columns, index=columns["item_id"][::-1])
    if rows.ids.dtype.kind == "i":
        frame["item_id"] = frame["item_id"].astype("float64")
    for name in rows.groups:
        frame[name] = frame[name].astype("category")
    return Population.from_table(frame, id="item_id", **rows.keywords)


def from_polars(rows: Rows, folder: Path) -> Population:
    import polars as pl

    return Population.from_table(pl.DataFrame(rows.columns(8)), **rows.keywords)


def from_arrow(rows: Rows, folder: Path) -> Population:
    return Population.from_table(_arrow(rows, 9), **rows.keywords)


def from_stream(rows: Rows, folder: Path) -> Population:
    return Population.from_table(_arrow(rows, 10).to_reader(max_chunksize=777), **rows.keywords)


class Capsule:
    """A dataframe of an unknown library."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def from_capsule(rows: Rows, folder: Path) -> Population:
    return Population.from_table(Capsule(_arrow(rows, 11)), **rows.keywords)


def from_ibis(rows: Rows, folder: Path) -> Population:
    import ibis

    connection = ibis.duckdb.connect(folder / "own.duckdb")
    table = connection.create_table("predictions", ibis.memtable(_arrow(rows, 12)))
    population = Population.from_table(table.mutate(unused=1), **rows.keywords)
    assert population.source.backend is connection
    return population


# ---- engines that other processes are


def _written_parquet(rows: Rows, folder: Path, seed: int) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(_arrow(rows, seed), folder / "rows.parquet", row_group_size=1000)
    return folder / "rows.parquet"


def on_postgres(server: Any, rows: Rows, folder: Path) -> Population:
    name = f"rows_{uuid.uuid4().hex}"
    server.connect().create_table(name, _arrow(rows, 13))
    return Population.from_table(server.connect(server.reader).table(name), **rows.keywords)


def on_spark(session: Any, rows: Rows, folder: Path) -> Population:
    return Population.read(_written_parquet(rows, folder, 14), engine="spark", **rows.keywords)


def on_spark_dataframe(session: Any, rows: Rows, folder: Path) -> Population:
    frame = session.read.parquet(f"file:{_written_parquet(rows, folder, 15)}")
    return Population.from_table(frame, **rows.keywords)


def on_spark_csv(session: Any, rows: Rows, folder: Path) -> Population:
    path = _write_csv(folder / "rows[1]*.csv", rows.columns(16))
    return Population.read(path, engine="spark", **rows.keywords)


def on_spark_json_lines(session: Any, rows: Rows, folder: Path) -> Population:
    path = _write_json_lines(folder / "rows.jsonl", rows.columns(17))
    return Population.read(path, engine="spark", **rows.keywords)


ENGINES: dict[str, tuple[str, Callable[[Any, Rows, Path], Population]]] = {
    "postgres": ("postgres", on_postgres),
    "spark": ("spark", on_spark),
    "spark dataframe": ("spark", on_spark_dataframe),
    "spark csv": ("spark", on_spark_csv),
    "spark json lines": ("spark", on_spark_json_lines),
}
"""The fixture with the running engine, and what puts rows there and makes a population of them."""

READERS: dict[str, Callable[[Rows, Path], Population]] = {
    "csv": from_csv,
    "semicolons": from_semicolons,
    "tsv.gz": from_tsv_gz,
    "json lines": from_json_lines,
    "parquet": from_parquet,
    "parquet parts": from_parquet_parts,
    "pandas": from_pandas,
    "polars": from_polars,
    "arrow": from_arrow,
    "arrow stream": from_stream,
    "capsule": from_capsule,
    "ibis": from_ibis,
}


def queried(read: Callable[[Rows, Path], Population]) -> Callable[[Rows, Path], Population]:
    """Return a reader that has nothing in memory, as of a larger file."""

    def read_as_table(rows: Rows, folder: Path) -> Population:
        with mock.patch("stratal.tables.source.MAX_MEMORY_ROWS", 0):
            return read(rows, folder)

    return read_as_table


READERS |= {
    f"{name}, queried": queried(READERS[name])
    for name in ("csv", "semicolons", "json lines", "parquet", "parquet parts", "pandas")
}
