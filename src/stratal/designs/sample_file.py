"""The sample file: one table of drawn units, with everything else as JSON in its metadata.

Columns are called `id`, `stratum`, `inclusion_probability`, `round`, `proxy.NAME`, `group.NAME`, `show.NAME`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.designs.files import replacing
from stratal.errors import InputError, lone_surrogate_error
from stratal.protocols import JsonDict
from stratal.randomness import id_texts
from stratal.tables.arrow_arrays import arrow_array, numpy_array, text_array
from stratal.tables.files import csv_header, existing_file
from stratal.tables.parquet import SAMPLE_KEY as _KEY
from stratal.tables.parquet import read_bounded_table

# Version of the format. Version 2 has a digest of the description and the rows.
FORMAT = 2

# Versions that can be read.
_READABLE_FORMATS = (1, FORMAT)

# Maximum size of the rows of a sample in memory, in bytes. A larger file is damaged, or an attack.
_MAX_BYTES = 2**30

# Remedy for files that are no samples.
_WRITTEN_BY_DRAW = (
    "The sample comes first: give the file that `stratal draw` wrote, not predictions or labels. "
    "A table with labels in some rows is used without a sample: stratal estimate FILE. For any other file, "
    "stratal doctor FILE suggests a command."
)


def write_parts(path: Path, columns: Mapping[str, AnyArray], description: Mapping[str, object]) -> Path:
    """Write columns and description to `path` (.parquet, or .csv with a .json file next to it)."""
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"{path}: unknown kind of sample file", allowed=".parquet or .csv")
    is_csv = path.suffix == ".csv"
    encoded = [name for name, values in columns.items() if is_csv and not _is_text(name, values)]
    metadata: JsonDict = {"format": FORMAT, **description}
    if is_csv:
        metadata["encoded"] = [name.removeprefix("show.") for name in encoded]
    try:
        table = pa.table({name: _arrow(name, values, name in encoded) for name, values in columns.items()})
        metadata["digest"] = _digest(table, metadata)
        metadata_text = json.dumps(metadata, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        raise lone_surrogate_error(f"{path}: the sample", error.object) from None
    if is_csv:
        with replacing(path) as partial, replacing(path.with_suffix(".json")) as metadata_file:
            pyarrow.csv.write_csv(table, partial)
            metadata_file.write_bytes(metadata_text + b"\n")
    else:
        with replacing(path) as partial:
            table_with_metadata = table.replace_schema_metadata({_KEY: metadata_text})
            pyarrow.parquet.write_table(table_with_metadata, partial, write_page_checksum=True)
    return path


def sample_digest(sample: Any) -> str:
    """Return the SHA-256 of the contents of a sample, as its Parquet file stores it."""
    columns = {name: _arrow(name, values, False) for name, values in sample._columns().items()}
    return _digest(pa.table(columns), {"format": FORMAT, **sample._description()})


def _digest(table: pa.Table, description: Mapping[str, object]) -> str:
    """Return the SHA-256 of the contents of a sample file, which does not depend on their encoding."""
    digest = hashlib.sha256()
    digested = {name: value for name, value in description.items() if name != "digest"}
    digest.update(json.dumps(digested, sort_keys=True).encode())
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            if pa.types.is_floating(column.type):
                kind = "<f8"
            else:
                kind = "<i8"
            if not column.null_count:
                values = numpy_array(column).astype(kind).tobytes()
            else:
                values = _texts(column)
        else:
            values = _texts(column)
        digest.update(f"{len(name)}:{name}:{len(values)}:".encode())
        digest.update(values)
    return digest.hexdigest()


def _texts(column: pa.ChunkedArray) -> bytes:
    """Return the entries of a column as JSON, for the digest."""
    return json.dumps(column.to_pylist(), default=str).encode()


def _is_text(name: str, values: AnyArray) -> bool:
    """Return whether a CSV file stores these values as text; only shown columns may have other types."""
    return not name.startswith("show.") or all(isinstance(value, str) for value in values.tolist())


def _arrow(name: str, values: AnyArray, encoded: bool) -> pa.Array:
    """Return a column as an Arrow array; `encoded` values are JSON texts."""
    if name.startswith("group."):
        return text_array(values.tolist())
    if not name.startswith("show."):
        return arrow_array(values)
    entries = values.tolist()
    if encoded:
        return text_array([json.dumps(value, ensure_ascii=False, default=str) for value in entries])
    if entries and all(isinstance(value, str) for value in entries):
        return text_array(entries)
    try:
        return pa.array(entries)
    except (pa.ArrowException, OverflowError):
        # Arrow columns have one type: mixed entries, which are only shown, are stored as text.
        return text_array([None if value is None else str(value) for value in entries])


# Columns that every sample file has.
_REQUIRED_COLUMNS = {"stratum", "inclusion_probability", "round"}


def is_sample_file(path: Path) -> bool:
    """Return whether a file is a sample, which may be damaged: by its metadata or its columns."""
    if path.suffix not in (".parquet", ".csv") or not path.is_file():
        return False
    try:
        if path.suffix == ".csv":
            return set(csv_header(path)[2] or ()) >= _REQUIRED_COLUMNS
        schema = pyarrow.parquet.read_schema(path)
    except (InputError, *_UNREADABLE):
        # A damaged file has no columns by which it could be recognised as a sample.
        return False
    return _KEY in (schema.metadata or {}) or set(schema.names) >= _REQUIRED_COLUMNS


def read_parts(path: Path) -> tuple[dict[str, AnyArray], JsonDict]:
    """Return the columns and the description that `write_parts` wrote."""
    existing_file(path)
    try:
        table, description = (_read_parquet if path.suffix == ".parquet" else _read_csv)(path)
        description = _check_description(path, table, description)
        # A CSV file contains values other than text as JSON.
        for name in description.get("encoded", ()):
            index = table.column_names.index(f"show.{name}")
            values = [json.loads(value) for value in table.column(index).to_pylist()]
            table = table.set_column(index, f"show.{name}", pa.array(values))
        return {name: _array(name, table[name]) for name in table.column_names}, description
    except InputError:
        raise
    except _UNREADABLE as error:
        if _NO_THREAD in str(error):
            raise MemoryError(str(error)) from error
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        action = (
            f"{_WRITTEN_BY_DRAW} If `draw` wrote this file, it was damaged later: restore it from a copy."
        )
        raise InputError(f"{path}: not a sample file ({reason[:300]})", action=action) from None


def _check_description(path: Path, table: pa.Table, description: object) -> JsonDict:
    """Return the description; raise an error if there is none, or for another format or a wrong digest."""
    if not isinstance(description, dict):
        raise InputError(f"{path}: not a sample file (it contains no design)", action=_WRITTEN_BY_DRAW)
    if description.get("format") not in _READABLE_FORMATS:
        action = "Read the file with the version of stratal that wrote it."
        raise InputError(
            f"{path}: the sample file has the format of another version of stratal",
            given=description.get("format"),
            action=action,
        )
    has_digest = "digest" in description or description["format"] > 1
    if has_digest and not hmac.compare_digest(str(description.get("digest")), _digest(table, description)):
        problem = f"{path}: the sample file was changed after it was written (its digest does not match)"
        raise InputError(problem, action=_ANOTHER_COPY)
    return description


# Remedy for damaged and changed samples.
_ANOTHER_COPY = "Restore the original file from a copy or from version control."


def damaged(path: str | Path, reason: str) -> InputError:
    """Return the error for a sample file with contradictory contents."""
    return InputError(f"{path}: the sample file is damaged ({reason})", action=_ANOTHER_COPY)


# Exceptions that a damaged file may raise in Arrow, or when its description is read.
_UNREADABLE = (
    *(pa.ArrowException, OSError, UnicodeDecodeError, json.JSONDecodeError),
    *(ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError, MemoryError),
)

# Message of Arrow if there is not enough memory for a thread, which is not an error in the file.
_NO_THREAD = "Failed to launch worker thread"


def _read_parquet(path: Path) -> tuple[pa.Table, JsonDict | None]:
    """Return the table and the description of a Parquet file; None if it has no description."""
    with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        metadata = file.schema_arrow.metadata or {}
        if _KEY not in metadata:
            return pa.table({}), None
        # In these types, a few bytes may expand to many.
        for field in file.schema_arrow:
            if any(word in str(field.type) for word in ("dictionary", "run_end", "view")):
                raise ValueError(f"column {field.name!r} is of a type that stratal does not write")
        table = read_bounded_table(file, _MAX_BYTES)
    return table.replace_schema_metadata(None), json.loads(metadata[_KEY])


def _read_csv(path: Path) -> tuple[pa.Table, JsonDict | None]:
    """Return the table of a CSV file and the description next to it; None if there is no description."""
    description_file = path.with_suffix(".json")
    if not description_file.exists():
        return pa.table({}), None
    if description_file.stat().st_size > _MAX_BYTES or path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"it is larger than {_MAX_BYTES // 2**20:,} MiB")
    description = json.loads(description_file.read_text(encoding="utf-8"))
    if not isinstance(description, dict):
        return pa.table({}), None
    column_types = {"stratum": pa.int64(), "inclusion_probability": pa.float64(), "round": pa.int64()}
    if description.get("ids") == "integer":
        column_types["id"] = pa.int64()
    else:
        column_types["id"] = pa.string()
    column_types |= {f"proxy.{entry['name']}": pa.float64() for entry in description.get("proxies", ())}
    column_types |= {f"group.{name}": pa.string() for name in description.get("groups", ())}
    column_types |= {f"show.{name}": pa.string() for name in description.get("shown", ())}
    options = pyarrow.csv.ConvertOptions(column_types=column_types, strings_can_be_null=False)
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
    return pyarrow.csv.read_csv(path, convert_options=options, parse_options=parsing), description


def _array(name: str, column: pa.ChunkedArray) -> AnyArray:
    """Return a column (n,) of a sample file as an array; shown columns may have values of any type."""
    if name.startswith("show."):
        entries = np.empty(len(column), dtype=object)
        entries[:] = column.to_pylist()
        return entries
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.array(column.to_pylist(), dtype=np.str_)
    return numpy_array(column)


def check_drawn_units(
    ids: AnyArray, probabilities: FloatArray, stratum: IntArray, sizes: IntArray, counts: IntArray | None
) -> None:
    """Raise an error for units (n,) that a design with these counts (H,) in strata of sizes (H,) cannot draw.

    Raises
    ------
    InputError
        If a unit occurs twice, or counts or probabilities are not those of the design.
    """
    if len(set(id_texts(ids))) < len(ids):
        raise InputError("a unit occurs twice")
    if counts is None:
        return
    n_h = np.bincount(stratum, minlength=len(sizes))
    if not np.array_equal(n_h, counts):
        stored_n_h = n_h.tolist()[:5]
        allowed = str(np.asarray(counts).tolist()[:5])
        raise InputError(
            "its rows differ from those that its design draws", given=stored_n_h, allowed=allowed
        )
    if not np.allclose(probabilities, (n_h / sizes)[stratum], rtol=1e-9):
        raise InputError("its inclusion probabilities differ from those of its design")
