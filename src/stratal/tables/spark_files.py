"""Files that Spark reads on its workers; only counts and the drawn units are transferred."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path

from stratal.errors import InputError, optional_import
from stratal.protocols import Foreign, Keywords
from stratal.tables import files
from stratal.tables.parquet import (
    add_nested_columns,
    find_parts,
    parquet_column_names,
    partition_keys,
    refuse_unlike_parts,
)
from stratal.tables.source import ColumnSelection, FileReading, Source, Table, translate_engine_errors

# Default master: all cores of this machine.
EVERY_CORE = "local[*]"

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:/")

# Settings that make Spark read as the other engines do.
_SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
_QUIET_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def read_on_spark(path: str | os.PathLike[str], reading: FileReading) -> Table:
    """Return a file or a directory that Spark reads as a table.

    A local path must exist on the workers' machines too. An address such as `hdfs://…` or
    `s3a://…`, and a path that is not on this machine, is passed to Spark unchanged.
    """
    text = os.fspath(path)
    if not _ADDRESS.match(text) and Path(text).exists():
        local_path = Path(text)
    else:
        local_path = None
    kind = _spark_format(text, local_path, reading)
    parts: list[Path] = []  # local files only; a sample file is refused
    if local_path is not None and kind == "parquet":
        if reading.get("directory"):
            parts = find_parts(local_path)
        else:
            parts = [local_path]
        parquet_column_names(parts[0], 0)
    session = session_at(reading.get("master"))
    with translate_engine_errors(text):
        frame = _read_frame(kind, session.read, _escape_wildcards(text, local_path), text, reading)
        table, backend = ibis_table(frame)
    table, columns = add_nested_columns(table)
    source = Source(
        label=text, backend=backend, table=table, columns=columns, text=kind == "csv", ordered=False
    )

    def take(chosen: ColumnSelection) -> Source:
        if local_path is not None and reading.get("directory"):
            keys = {key: part for part in parts for key in partition_keys(part.relative_to(local_path))}
            refuse_unlike_parts(parts, chosen.among(columns), keys)
        return source

    return Table(label=text, names=tuple(columns), take=take)


def ibis_table(frame: Foreign) -> tuple[Foreign, Foreign]:
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


def session_at(master: str | None) -> Foreign:
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
    with optional_import("PySpark", extra="spark"):
        from pyspark.sql import SparkSession
    active_session = SparkSession.getActiveSession()
    if active_session is None:
        active_session = _start_session(SparkSession.builder, master or EVERY_CORE)
    elif master not in (None, active_session.conf.get("spark.master")):
        raise InputError(
            "another Spark session is already running in this process",
            given=f"master {master!r}",
            allowed=f"master {active_session.conf.get('spark.master')!r}, or none",
            action="Stop that session first.",
        )
    session = active_session.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


def _start_session(builder: Foreign, master: str) -> Foreign:
    for name, value in _QUIET_SETTINGS.items():
        builder = builder.config(name, value)
    try:
        return builder.appName("stratal").master(master).getOrCreate()
    except Exception as error:  # of Py4J, of Spark, or of Python where Java did not start
        raise InputError(
            f"Spark at {master} did not start",
            given=str(error).splitlines()[0][:300],
            action="Install Java 17 or 21, and check that the master runs and can be reached from this "
            "machine.",
        ) from error


def _spark_format(text: str, local_path: Path | None, reading: FileReading) -> str:
    kind = reading.get("format")
    if local_path is not None and local_path.is_dir() and reading.get("directory"):
        return "parquet"
    if local_path is None:
        kind = kind or files.format_of(Path(text))
    else:
        kind = files.format_of_file(local_path, kind)
    if kind not in _FORMATS:
        raise InputError(
            f"{text}: Spark cannot read this format",
            given=kind,
            allowed=", ".join(_FORMATS),
            action="Leave out engine='spark' (--engine spark), or write a Parquet file.",
        )
    return kind


def _escape_wildcards(text: str, local_path: Path | None) -> str:
    """Return a path in which Spark finds no wildcard."""
    escaped = re.sub(r"([\[\]{}*?\\])", r"\\\1", text if local_path is None else str(local_path.absolute()))
    if local_path is None:
        return escaped
    return f"file:{escaped}"


def _read_frame(kind: str, reader: Foreign, address: str, text: str, reading: FileReading) -> Foreign:
    if kind == "parquet":
        return reader.parquet(address)
    if kind == "jsonl":
        return reader.json(address, mode="FAILFAST")
    options: Keywords = {"sep": reading.get("delimiter") or ("\t" if ".tsv" in text.lower() else ",")}
    if address.startswith("file:"):  # otherwise Spark would scan the file for the names in its first line
        options["sep"], _, names = files.csv_header(Path(text), reading.get("delimiter"))
        options["schema"] = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in names or ())
    return reader.csv(address, **options, header=True, multiLine=True, escape='"', mode="FAILFAST")


_FORMATS = ("parquet", "csv", "jsonl")
