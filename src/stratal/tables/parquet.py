"""Parquet files: nested columns, the parts of a directory, and limits of their size."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from urllib.parse import unquote

from stratal.errors import InputError, unreadable_file_error
from stratal.protocols import Foreign
from stratal.tables.files import MAX_TABLE_BYTES


def field_paths(
    column_types: Mapping[str, object], fields: Callable[[Foreign], Mapping[str, Foreign]]
) -> dict[str, tuple[str, ...]]:
    """Return the path to each column, and to each field of a struct under its dotted name.

    Parameters
    ----------
    column_types : mapping of str to type
        Types of the columns in an engine.
    fields : callable
        Returns the types of a struct's fields by name, empty for other types.
    """
    paths: dict[str, tuple[str, ...]] = {name: (name,) for name in column_types}
    for name, column_type in column_types.items():
        for inner, path in field_paths(fields(column_type), fields).items():
            paths.setdefault(f"{name}.{inner}", (name, *path))
    return paths


def add_nested_columns(table: Foreign) -> tuple[Foreign, dict[str, str]]:
    """Return an Ibis table with the fields of structs as columns, and the internal names of all columns."""
    column_types = dict(table.schema().items())
    paths = field_paths(
        column_types, lambda column_type: dict(column_type.fields) if column_type.is_struct() else {}
    )
    nested_columns = {name: f"nested{number}" for number, name in enumerate(list(paths)[len(column_types) :])}
    fields = {
        internal_name: reduce(getitem, paths[name], table) for name, internal_name in nested_columns.items()
    }
    return table.mutate(**fields) if fields else table, {name: name for name in column_types} | nested_columns


def arrow_field_paths(schema: Foreign) -> dict[str, tuple[str, ...]]:
    """Return the paths to the columns of an Arrow schema and to the fields of its structs."""
    import pyarrow as pa

    return field_paths(
        {field.name: field.type for field in schema},
        lambda kind: {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {},
    )


# Metadata key that identifies a sample file.
SAMPLE_KEY = b"stratal"


def refuse_unlike_parts(
    parts: Sequence[Path], used_columns: Sequence[str], folder_columns: Mapping[str, Path]
) -> None:
    """Raise an error for parts with different types, or with columns that are also in the names of folders.

    Integers of several widths are compatible, and so are floating-point numbers.

    Parameters
    ----------
    parts : sequence of Path
        Parquet files.
    used_columns : sequence of str
        Columns to read.
    folder_columns : mapping of str to Path
        Columns in the names of folders, as in `language=de/0.parquet`, with a part in such a folder.
    """
    if len(parts) < 2 and not folder_columns:
        return
    schemas = {part: _read_schema(part) for part in parts}
    if len({tuple(schema.names) for schema in schemas.values()}) > 1:
        _refuse_names_that_differ_by_case(schemas)
    _refuse_columns_in_folders_and_files(schemas, used_columns, folder_columns)
    file_columns = [name for name in used_columns if name not in folder_columns]
    first_part, *other_parts = (
        (part, _column_kinds(part, schema, file_columns)) for part, schema in schemas.items()
    )
    for part, column_kinds in other_parts:
        for name, kind in column_kinds.items():
            if kind != first_part[1][name]:
                raise InputError(
                    f"{part}: column {name!r} holds {kind}",
                    allowed=f"{first_part[1][name]}, as in {first_part[0].name}",
                    action="Write the column with the same type in all parts of the directory.",
                )


def _refuse_names_that_differ_by_case(schemas: Mapping[Path, Foreign]) -> None:
    """Raise an error if two columns of a part differ only in case.

    Engines ignore case, and distinguish `P` and `p` only by position, which differs between the parts.
    """
    for part, schema in schemas.items():
        counts = Counter(map(str.lower, schema.names))
        clashing_names = [name for name in schema.names if counts[name.lower()] > 1]
        if clashing_names:
            names = f"{clashing_names[0]!r} and {clashing_names[1]!r}"
            problem = f"{part}: an engine cannot distinguish the columns {names}"
            action = "Rename or drop one of them, or give every part the same columns in the same order."
            raise InputError(problem, action=action)


def _refuse_columns_in_folders_and_files(
    schemas: Mapping[Path, Foreign], used_columns: Sequence[str], folder_columns: Mapping[str, Path]
) -> None:
    """Raise an error for a column in two folder names, and for one that is also in a file.

    Engines prefer the name of the folder to the column of a part.
    """
    lowercase_names = {name.lower() for name in used_columns}
    for column, example_part in folder_columns.items():
        if str(example_part).lower().count(f"{column.lower()}=") > 1:
            raise InputError(
                f"{example_part}: two folder names contain {column!r}", action="Rename one of them."
            )
        for part, schema in schemas.items():
            if column.lower() in lowercase_names.intersection(map(str.lower, schema.names)):
                raise InputError(
                    f"{part}: column {column!r} occurs both in the file and in the name of its folder",
                    action="Rename the folders, or write the parts without the column.",
                )


def find_part_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a directory in sorted order, without names that begin with `_` or `.`.

    Raises
    ------
    InputError
        If there is none.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a directory", action="Leave out directory=True to read one file.")
    parts = sorted(
        part
        for part in folder.rglob("*.parquet")
        if not any(name.startswith(("_", ".")) for name in part.relative_to(folder).parts)
    )
    if not parts:
        raise InputError(f"{folder} contains no Parquet file", allowed="files called *.parquet")
    return parts


def partition_keys(part: Path) -> list[str]:
    """Return the columns in the folder names of a path, as in `language=de/0.parquet`."""
    encoded_keys = [folder.partition("=")[0] for folder in part.parts[:-1] if "=" in folder]
    return list(dict.fromkeys(name for key in encoded_keys for name in (unquote(key), key)))


def parquet_column_names(part: Path, max_count: int) -> list[str]:
    """Return the column names in the file, because an engine that ignores case renames `ID` next to `id`.

    The result is empty for more than `max_count` names.

    Raises an `InputError` for a sample file, and for a file that cannot be read.
    """
    schema = _read_schema(part)
    if SAMPLE_KEY in (schema.metadata or {}):
        raise InputError(
            f"{part} is a drawn sample, not a file of predictions or labels",
            action="Give the file from which the sample was drawn; pass the sample itself to `stratal "
            "estimate`.",
        )
    names = list(schema.names)
    if len(names) <= max_count:
        return names
    return []


def _column_kinds(part: Path, schema: Foreign, used_columns: Sequence[str]) -> dict[str, str]:
    """Return the names of the types, in error messages, of the columns and struct fields to read."""
    paths = arrow_field_paths(schema)
    kinds = {}
    for name in used_columns:
        if name not in paths:
            raise InputError(
                f"{part}: no column {name!r}", allowed="the same columns in every part of a directory"
            )
        kind = schema.field(paths[name][0]).type
        for step in paths[name][1:]:
            kind = kind.field(step).type
        kinds[name] = _type_name(kind)
    return kinds


def parquet_columns(file: Path) -> int:
    """Return the number of columns in the footer of a Parquet file, 0 if it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return int(pyarrow.parquet.read_metadata(file).num_columns)
    except (OSError, ValueError, pa.ArrowException):
        # The reader, which is called next, has the message.
        return 0


def parquet_cells(file: Path) -> int:
    """Return the number of cells by the footer of a Parquet file, 0 for any other file."""
    if file.suffix != ".parquet":
        return 0
    import pyarrow as pa
    import pyarrow.parquet

    try:
        footer = pyarrow.parquet.read_metadata(file)
    except (OSError, ValueError, pa.ArrowException):
        # Reading the file later raises the error with its name.
        return 0
    return int(footer.num_rows * footer.num_columns)


def _read_schema(part: Path) -> Foreign:
    """Return the PyArrow schema of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_schema(part)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable_file_error(part, error) from None


def _type_name(kind: Foreign) -> str:
    """Return the name of a PyArrow type in error messages, which is the same for compatible types."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _type_name(kind.value_type)
    if pa.types.is_integer(kind):
        return "whole numbers"
    if pa.types.is_floating(kind):
        return "floating-point numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    return str(kind)


# ---- size limits: a small file may expand to a large table


# Largest memory in bytes for one decoded column, and the number of rows that an engine decodes at once.
MAX_BATCH_BYTES = 2**29
BATCH_ROWS = 2048

# Largest ratio of decoded to uncompressed size: genuine long texts occur in few rows each.
_MAX_EXPANSION = 8

# Larger Parquet files (in bytes) are not inspected: each row group costs some milliseconds.
_MAX_INSPECTED_BYTES = 2**28

# A column of a row group with more uncompressed bytes and a higher ratio of compression is not genuine text.
_MIN_SUSPICIOUS_BYTES = 2**28
_MAX_COMPRESSION_RATIO = 200

# Largest number of rows that are read at once from a file with a size limit.
_MAX_ROWS_PER_BATCH = 2**16

# Physical types of fixed width.
_FIXED_WIDTH_TYPES = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE")


def read_bounded_table(file: Foreign, max_bytes: int = MAX_TABLE_BYTES) -> Foreign:
    """Return the rows of a Parquet file if they need at most `max_bytes` of memory.

    Raises
    ------
    ValueError
        If they need more.
    """
    import pyarrow as pa

    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    total_bytes = sum(group.total_byte_size for group in groups)
    batches: list[Foreign] = []
    if total_bytes <= max_bytes:
        total_bytes = 0
        # A batch needs at most an eighth of the limit, even if all rows are as large as the largest can be.
        rows = max(1, min(_MAX_ROWS_PER_BATCH, max_bytes // 8 // max(_max_row_bytes(file, groups), 1)))
        for batch in file.iter_batches(batch_size=rows):
            batches.append(batch)
            total_bytes += batch.nbytes
            if total_bytes > max_bytes:
                break
    if total_bytes > max_bytes:
        raise ValueError(f"its rows require more than {max_bytes // 2**20:,} MiB of memory")
    if batches:
        return pa.Table.from_batches(batches)
    return file.schema_arrow.empty_table()


def _max_row_bytes(file: Foreign, groups: Sequence[Foreign]) -> int:
    """Return an upper bound of the bytes of a row: a text or list needs at most the size of its column."""
    columns = [file.schema.column(position) for position in range(len(file.schema))]
    are_fixed_width = [
        column.physical_type in _FIXED_WIDTH_TYPES and column.max_repetition_level == 0 for column in columns
    ]
    return sum(
        # The largest type of fixed width has 16 bytes.
        16 if is_fixed_width else group.column(position).total_uncompressed_size
        for group in groups
        for position, is_fixed_width in enumerate(are_fixed_width)
    )


def refuse_expanding_columns(part: Path, used_columns: Sequence[str]) -> None:
    """Raise an error for a Parquet file in which a column to read expands to a multiple of its stored size.

    A text that occurs in many rows is stored once. An engine decodes it for thousands of rows, outside its
    memory limit.
    """
    import pyarrow as pa
    import pyarrow.parquet

    if part.stat().st_size > _MAX_INSPECTED_BYTES:
        return
    try:
        metadata = pyarrow.parquet.read_metadata(part)
        columns = [metadata.schema.column(position) for position in range(metadata.num_columns)]
        text_columns = {column.path for column in columns if column.physical_type == "BYTE_ARRAY"}
        texts = text_columns.intersection(used_columns)
        with pyarrow.parquet.ParquetFile(part, metadata=metadata, read_dictionary=sorted(texts)) as file:
            for number in range(metadata.num_row_groups if texts else 0):
                group = metadata.row_group(number)
                for position, column in enumerate(columns):
                    if column.path in texts:
                        _refuse_expanding_chunk(part, file, number, group.column(position))
    except InputError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable_file_error(part, error) from None


def _refuse_expanding_chunk(part: Path, file: Foreign, group: int, chunk: Foreign) -> None:
    """Raise an error for a text column of a row group that expands to a multiple of its stored size.

    `chunk` is the metadata of this column in the row group with number `group`.
    """
    name = chunk.path_in_schema
    unpacked = chunk.total_uncompressed_size
    packed = chunk.total_compressed_size
    if unpacked > _MIN_SUSPICIOUS_BYTES and unpacked > _MAX_COMPRESSION_RATIO * max(packed, 1):
        raise InputError(
            f"{part}: column {name!r} is compressed to an implausibly small size",
            given=f"{packed:,} bytes that unpack to {unpacked:,}",
            allowed=f"up to {_MAX_COMPRESSION_RATIO} times as much",
            action="Leave the column out of the file.",
        )
    # A smaller column cannot hold a text that is too long. Reading one row reads the dictionary of all texts.
    if unpacked > MAX_BATCH_BYTES // BATCH_ROWS and chunk.has_dictionary_page:
        for batch in itertools.islice(file.iter_batches(1, row_groups=[group], columns=[name]), 1):
            refuse_long_categories(part, name, batch.column(0), chunk.num_values, unpacked)


def refuse_long_categories(
    path: Path, name: str, column: Foreign, n_rows: int, uncompressed_bytes: int = 0
) -> None:
    """Raise an error for an Arrow column of categories with one that is too long to occur in `n_rows` rows.

    `uncompressed_bytes` is the uncompressed size of the column in a Parquet file.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        kind = column.type.value_type
    else:
        kind = None
    if kind not in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return
    if isinstance(column, pa.ChunkedArray):
        chunks = column.chunks
    else:
        chunks = [column]
    rows = min(n_rows, BATCH_ROWS)
    longest = max((pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0 for chunk in chunks), default=0)
    if longest * rows > max(MAX_BATCH_BYTES, _MAX_EXPANSION * uncompressed_bytes):
        raise InputError(
            f"{path}: a string in column {name!r} is too long to occur in many rows",
            given=f"{longest:,} bytes, {rows:,} rows at once",
            action="Leave the column out of the file, or shorten its strings.",
        )
