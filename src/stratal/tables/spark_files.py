"""Files as Spark reads them, where its workers are; only counts and the units that were drawn come back."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import Any

from stratal.errors import InputError, installed
from stratal.tables import files
from stratal.tables.parquet import parquet_names, partition_keys, parts_of, refuse_unlike_parts, with_nested
from stratal.tables.source import Chosen, FileReading, Source, Table, readable

# Where Spark runs if nobody says.
EVERY_CORE = "local[*]"

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:/")

_SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}


def read_on_spark(path: str | os.PathLike[str], reading: FileReading) -> Table:
    """Return a file or a directory that Spark reads as a table.

    A path of this machine must be one of the workers' machines too. An address such as `hdfs://…` or
    `s3a://…`, and a path that is not on this machine, goes to Spark as it is.
    """
    text = os.fspath(path)
    if not _ADDRESS.match(text) and Path(text).exists():
        here = Path(text)
    else:
        here = None
    kind = _kind(text, here, reading)
    parts: list[Path] = []  # on this machine; a sample that was drawn is refused
    if here is not None and kind == "parquet":
        parts = parts_of(here) if reading.get("directory") else [here]
        parquet_names(parts[0], 0)
    session = session_at(reading.get("master"))
    with readable(text):
        frame = _frame(kind, session.read, _literal(text, here), text, reading)
        table, backend = table_of(frame)
    table, columns = with_nested(table)
    source = Source(
        label=text, backend=backend, table=table, columns=columns, text=kind == "csv", ordered=False
    )

    def take(chosen: Chosen) -> Source:
        if here is not None and reading.get("directory"):
            keys = {key: part for part in parts for key in partition_keys(part.relative_to(here))}
            refuse_unlike_parts(parts, chosen.among(columns), keys)
        return source

    return Table(label=text, names=tuple(columns), take=take)


def table_of(frame: Any) -> tuple[Any, Any]:
    """Return a Spark dataframe as an Ibis table, and the Ibis connection to its session.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    """
    import ibis

    backend = ibis.pyspark.connect(frame.sparkSession)
    view = f"stratal_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(view)
    return backend.table(view), backend


def session_at(master: str | None) -> Any:
    """Return a Spark session of our own, in the Spark that runs already or in one that is started.

    Parameters
    ----------
    master : str, optional
        `local[2]`, `spark://host:7077`; the Spark that runs, or else all cores of this machine, if left out.

    Raises
    ------
    MissingExtraError
        Without PySpark.
    InputError
        Without Java, where another Spark runs already, or if the master cannot be reached.
    """
    with installed("PySpark", extra="spark"):
        from pyspark.sql import SparkSession
    running = SparkSession.getActiveSession()
    if running is None:
        running = _started(SparkSession.builder, master or EVERY_CORE)
    elif master not in (None, running.conf.get("spark.master")):
        raise InputError(
            "another Spark runs in this process already",
            given=f"master {master!r}",
            allowed=f"master {running.conf.get('spark.master')!r}, or none",
            action="Stop that session first.",
        )
    session = running.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


def _started(builder: Any, master: str) -> Any:
    for name, value in _QUIET.items():
        builder = builder.config(name, value)
    try:
        return builder.appName("stratal").master(master).getOrCreate()
    except Exception as error:  # of Py4J, of Spark, or of Python where Java did not start
        raise InputError(
            f"Spark at {master} did not start",
            given=str(error).splitlines()[0][:300],
            action="Install Java 17 or 21, and check that the master runs and can be reached from here.",
        ) from error


def _kind(text: str, here: Path | None, reading: FileReading) -> str:
    kind = reading.get("format")
    if here is not None and here.is_dir() and reading.get("directory"):
        return "parquet"
    if here is None:
        kind = kind or files.format_of(Path(text))
    else:
        kind = files.kind_of(here, kind)
    if kind not in _FORMATS:
        raise InputError(
            f"{text}: Spark does not read this format",
            given=kind,
            allowed=", ".join(_FORMATS),
            action="Leave out engine='spark' (--engine spark), or write a Parquet file.",
        )
    return kind


def _literal(text: str, here: Path | None) -> str:
    """Return a path in which no character is a wildcard to Spark."""
    escaped = re.sub(r"([\[\]{}*?\\])", r"\\\1", text if here is None else str(here.absolute()))
    return escaped if here is None else f"file:{escaped}"


def _frame(kind: str, reader: Any, address: str, text: str, reading: FileReading) -> Any:
    if kind == "parquet":
        return reader.parquet(address)
    if kind == "jsonl":
        return reader.json(address, mode="FAILFAST")
    how: dict[str, Any] = {"sep": reading.get("delimiter") or ("\t" if ".tsv" in text.lower() else ",")}
    if address.startswith("file:"):  # else Spark looks at all of it to learn the names in its first line
        how["sep"], _, names = files.csv_header(Path(text), reading.get("delimiter"))
        how["schema"] = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in names or ())
    return reader.csv(address, **how, header=True, multiLine=True, escape='"', mode="FAILFAST")


_FORMATS = ("parquet", "csv", "jsonl")
