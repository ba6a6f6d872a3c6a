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
    find_part_files,
    parquet_column_names,
    partition_keys,
    refuse_unlike_parts,
)
from stratal.tables.source import ColumnSelection, ReadOptions, Source, Table, translate_engine_errors

# Default master: all cores of this machine.
EVERY_CORE = "local[*]"

# Formats that Spark reads here.
_FORMATS = ("parquet", "csv", "jsonl")

# Start of an address such as `hdfs://…`, in contrast to a path.
_ADDRESS_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:/")

# Settings with which Spark interprets files as the other engines do: names differ by case, the values in
# folder names are text, and timestamps are in UTC.
_SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}

# Settings of a new Spark process: no web page, no progress bar, and errors only.
# Without them, Spark opens a port for its page and writes progress between the lines of an answer.
_QUIET_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def read_on_spark(path: str | os.PathLike[str], options: ReadOptions) -> Table:
    """Return a file or a directory that Spark reads as a table.

    A local path must exist on the workers' machines too. An address such as `hdfs://…` or
    `s3a://…`, and a path that is not on this machine, is passed to Spark unchanged.
    """
    path_text = os.fspath(path)
    if not _ADDRESS_SCHEME.match(path_text) and Path(path_text).exists():
        local_path = Path(path_text)
    else:
        local_path = None
    file_format = _spark_format(path_text, local_path, options)
    part_files: list[Path] = []
    if local_path is not None and file_format == "parquet":
        if options.get("directory"):
            part_files = find_part_files(local_path)
        else:
            part_files = [local_path]
        # Raises the error for a sample file; the names are read by Spark.
        parquet_column_names(part_files[0], 0)
    session = session_at(options.get("master"))
    with translate_engine_errors(path_text):
        address = _escape_wildcards(path_text, local_path)
        frame = _read_frame(file_format, session.read, address, path_text, options)
        table, backend = ibis_table(frame)
    table, columns = add_nested_columns(table)
    source = Source(
        table_name=path_text,
        backend=backend,
        table=table,
        columns=columns,
        all_text=file_format == "csv",
        ordered=False,
    )

    def read_columns(selection: ColumnSelection) -> Source:
        if local_path is not None and options.get("directory"):
            partition_parts = {
                key: part for part in part_files for key in partition_keys(part.relative_to(local_path))
            }
            refuse_unlike_parts(part_files, selection.existing_columns(columns), partition_parts)
        return source

    return Table(table_name=path_text, names=tuple(columns), read_columns=read_columns)


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
    """Return a new Spark session with the settings of stratal, in the running Spark process or a new one.

    Parameters
    ----------
    master : str, optional
        `local[2]`, `spark://host:7077`. Default: the running Spark process, else all cores of this machine.

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
    """Start a Spark process without its web page and progress bar, and return its session."""
    for name, value in _QUIET_SETTINGS.items():
        builder = builder.config(name, value)
    try:
        return builder.appName("stratal").master(master).getOrCreate()
    # Py4J and Spark raise exceptions of their own, and Python another one if Java did not start.
    except Exception as error:
        raise InputError(
            f"Spark at {master} did not start",
            given=str(error).splitlines()[0][:300],
            action="Install Java 17 or 21, and check that the master runs and can be reached from this "
            "machine.",
        ) from error


def _spark_format(path: str, local_path: Path | None, options: ReadOptions) -> str:
    """Return the format of a file; raise an error for a format that Spark does not read here."""
    stated_format = options.get("format")
    if local_path is not None and local_path.is_dir() and options.get("directory"):
        return "parquet"
    if local_path is None:
        file_format = stated_format or files.format_of(Path(path))
    else:
        file_format = files.format_of_file(local_path, stated_format)
    if file_format not in _FORMATS:
        raise InputError(
            f"{path}: Spark cannot read this format",
            given=file_format,
            allowed=", ".join(_FORMATS),
            action="Leave out engine='spark' (--engine spark), or write a Parquet file.",
        )
    return file_format


def _escape_wildcards(path: str, local_path: Path | None) -> str:
    """Return the address of a file with escaped wildcards, because Spark expands them."""
    full_path = path if local_path is None else str(local_path.absolute())
    escaped = re.sub(r"([\[\]{}*?\\])", r"\\\1", full_path)
    if local_path is None:
        return escaped
    return f"file:{escaped}"


def _read_frame(file_format: str, reader: Foreign, address: str, path: str, options: ReadOptions) -> Foreign:
    """Return the Spark dataframe of a file; damaged rows are errors instead of missing values (FAILFAST)."""
    if file_format == "parquet":
        return reader.parquet(address)
    if file_format == "jsonl":
        return reader.json(address, mode="FAILFAST")
    csv_options: Keywords = {"sep": options.get("delimiter") or ("\t" if ".tsv" in path.lower() else ",")}
    # With the names of the columns, Spark need not scan the file for them.
    if address.startswith("file:"):
        csv_options["sep"], _, names = files.csv_header(Path(path), options.get("delimiter"))
        csv_options["schema"] = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in names or ())
    return reader.csv(address, **csv_options, header=True, multiLine=True, escape='"', mode="FAILFAST")
