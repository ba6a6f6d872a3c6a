"""Parts of a directory: each must hold the columns that are read, of one kind."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from stratal.errors import InputError, unreadable
from stratal.tables.files import MOST_BYTES


def nested_names(
    kinds: Mapping[str, Any], fields: Callable[[Any], Mapping[str, Any]]
) -> dict[str, tuple[str, ...]]:
    """Return columns, then the fields of their structs under dotted names, with the path to each.

    Parameters
    ----------
    kinds : mapping of str to type
        The columns' types, as an engine has them.
    fields : callable
        Returns the types of a struct's fields by name, nothing of another type.

    Examples
    --------
    >>> nested_names({"id": {}, "judge": {"score": {}}}, lambda kind: kind)
    {'id': ('id',), 'judge': ('judge',), 'judge.score': ('judge', 'score')}
    """
    found: dict[str, tuple[str, ...]] = {name: (name,) for name in kinds}
    for name, kind in kinds.items():
        for inner, path in nested_names(fields(kind), fields).items():
            found.setdefault(f"{name}.{inner}", (name, *path))
    return found


def with_nested(table: Any) -> tuple[Any, dict[str, str]]:
    """Return an Ibis table with the fields of its structs as columns, and its own names of all columns.

    Examples
    --------
    >>> import ibis, pyarrow as pa
    >>> table = ibis.memtable(pa.table({"judge": [{"score": 0.5}]}))
    >>> with_nested(table)[1]
    {'judge': 'judge', 'judge.score': 'nested0'}
    """
    kinds = dict(table.schema().items())
    paths = nested_names(kinds, lambda kind: dict(kind.fields) if kind.is_struct() else {})
    added = {name: f"nested{number}" for number, name in enumerate(list(paths)[len(kinds) :])}
    fields = {own: reduce(getitem, paths[name], table) for name, own in added.items()}
    return table.mutate(**fields) if fields else table, {name: name for name in kinds} | added


def arrow_names(schema: Any) -> dict[str, tuple[str, ...]]:
    """Return the columns of an Arrow schema and the fields of its structs, by the path to each.

    Examples
    --------
    >>> import pyarrow as pa
    >>> arrow_names(pa.schema({"id": pa.int64(), "judge": pa.struct({"score": pa.float64()})}))
    {'id': ('id',), 'judge': ('judge',), 'judge.score': ('judge', 'score')}
    """
    import pyarrow as pa

    return nested_names(
        {field.name: field.type for field in schema},
        lambda kind: {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {},
    )


# Metadata key by which a sample file is known.
SAMPLE_KEY = b"stratal"


def refuse_unlike_parts(parts: Sequence[Path], used: Sequence[str], keys: Mapping[str, Path]) -> None:
    """Refuse parts that an engine would read by casting one to another, or a folder over a file's column.

    Whole numbers of several widths may stand side by side, and floating-point numbers.

    Parameters
    ----------
    parts : sequence of Path
        Parquet files.
    used : sequence of str
        The columns that are read.
    keys : mapping of str to Path
        Columns that the folders' names give, as in `language=de/0.parquet`, and a part in such a folder.

    Raises
    ------
    InputError
        Naming the part and the column.
    """
    if len(parts) < 2 and not keys:
        return
    schemas = {part: _schema(part) for part in parts}
    if len({tuple(schema.names) for schema in schemas.values()}) > 1:
        for part, schema in schemas.items():  # engines tell `P` from `p` by the order of columns alone
            counts = Counter(map(str.lower, schema.names))
            same = [name for name in schema.names if counts[name.lower()] > 1]
            if same:
                what = f"{part}: an engine takes columns {same[0]!r} and {same[1]!r} for one"
                action = "Rename or drop one of them, or give every part the same columns in the same order."
                raise InputError(what, action=action)
    requested = {name.lower() for name in used}
    for key, where in keys.items():  # of a column in a folder's name and in a part an engine takes the former
        if str(where).lower().count(f"{key.lower()}=") > 1:
            raise InputError(f"{where}: two folders give {key!r}", action="Rename one of them.")
        for part, schema in schemas.items():
            if key.lower() in requested.intersection(map(str.lower, schema.names)):
                raise InputError(
                    f"{part}: column {key!r} is in the file and in the folder's name",
                    action="Rename the folders, or write the parts without the column.",
                )
    read = [name for name in used if name not in keys]
    first, *others = ((part, _held(part, schema, read)) for part, schema in schemas.items())
    for part, kinds in others:
        for name, kind in kinds.items():
            if kind != first[1][name]:
                raise InputError(
                    f"{part}: column {name!r} holds {kind}",
                    allowed=f"{first[1][name]}, as in {first[0].name}",
                    action="Write all parts of a directory with one type.",
                )


def parts_of(folder: Path) -> list[Path]:
    """Return a directory's Parquet files, sorted, but those hidden by `_` or `.`.

    Raises
    ------
    InputError
        If there are none.

    Examples
    --------
    >>> parts_of(Path("nowhere-at-all"))
    Traceback (most recent call last):
    stratal.errors.InputError: nowhere-at-all is not a directory...
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a directory", action="Leave out directory=True to read one file.")
    found = sorted(
        part
        for part in folder.rglob("*.parquet")
        if not any(name.startswith(("_", ".")) for name in part.relative_to(folder).parts)
    )
    if not found:
        raise InputError(f"{folder} holds no Parquet file", allowed="files called *.parquet")
    return found


def partition_keys(part: Path) -> list[str]:
    """Return the columns that the folders of a part's path name, as in `language=de/0.parquet`.

    Examples
    --------
    >>> partition_keys(Path("language=de/0.parquet"))
    ['language']
    """
    given = [folder.partition("=")[0] for folder in part.parts[:-1] if "=" in folder]
    return list(dict.fromkeys(name for key in given for name in (unquote(key), key)))


def parquet_names(part: Path, count: int) -> list[str]:
    """Return the columns as the file has them: an engine that ignores case renames `ID` beside `id`.

    Raises
    ------
    InputError
        For a sample that was drawn, and a file that cannot be read.

    Examples
    --------
    >>> parquet_names(Path("nowhere-at-all.parquet"), 3)
    Traceback (most recent call last):
    stratal.errors.InputError: nowhere-at-all.parquet cannot be read (given: ...
    """
    schema = _schema(part)
    if SAMPLE_KEY in (schema.metadata or {}):
        raise InputError(
            f"{part} is a sample that was drawn, and not a file of predictions or labels",
            action="Give the file that it was drawn from; the sample itself goes to `stratal estimate`.",
        )
    names = list(schema.names)
    return names if len(names) <= count else []


def _held(part: Path, schema: Any, used: Sequence[str]) -> dict[str, str]:
    """Return what a part's columns hold that are read, and the fields of its structs that are."""
    paths = arrow_names(schema)
    found = {}
    for name in used:
        if name not in paths:
            raise InputError(
                f"{part}: no column {name!r}", allowed="the same columns in every part of a directory"
            )
        kind = schema.field(paths[name][0]).type
        for step in paths[name][1:]:
            kind = kind.field(step).type
        found[name] = _kind(kind)
    return found


def parquet_columns(file: Path) -> int:
    """Return the number of columns of a Parquet file, as its footer has them; 0 if that cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return int(pyarrow.parquet.read_metadata(file).num_columns)
    except (OSError, ValueError, pa.ArrowException):
        return 0


def parquet_cells(file: Path) -> int:
    """Return rows times columns of a Parquet file, as its footer has them; 0 for any other file.

    Examples
    --------
    >>> parquet_cells(Path("nowhere-at-all.csv"))
    0
    """
    if file.suffix != ".parquet":
        return 0
    import pyarrow as pa
    import pyarrow.parquet

    try:
        footer = pyarrow.parquet.read_metadata(file)
    except (OSError, ValueError, pa.ArrowException):  # who reads the file says what is wrong with it
        return 0
    return int(footer.num_rows * footer.num_columns)


def _schema(part: Path) -> Any:
    """Return what PyArrow makes of a Parquet file's columns; an engine may take more than it does."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_schema(part)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(part, error) from None


def _kind(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_integer(kind):
        return "whole numbers"
    if pa.types.is_floating(kind):
        return "floating-point numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    return str(kind)


# ---- how much may be read: a small file may stand for much


# Bytes that an engine may need to write one column out of a Parquet file of units, and for how many rows.
MOST_AT_ONCE = 2**29
ROWS_AT_ONCE = 2048

# How often a column may take what it is unpacked: true texts of such a length stand in few rows each.
_TIMES_WRITTEN = 8

# Bytes of a Parquet file above which it is not looked into: each row group costs some milliseconds.
_INSPECTED = 2**28

# Bytes of a column in one row group, and how often what is stored: no true texts pack so well.
_UNPACKED = 2**28
_TIMES = 200

# Physical types of a fixed width, which cannot unpack to more than the file says.
_NUMBERS = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE")


def bounded_table(file: Any, largest: int = MOST_BYTES) -> Any:
    """Return a Parquet file's rows, refusing to go on where they take more memory.

    Raises
    ------
    ValueError
        Where they do.

    Examples
    --------
    >>> import io, pyarrow as pa, pyarrow.parquet
    >>> held = io.BytesIO()
    >>> pyarrow.parquet.write_table(pa.table({"id": ["a" * 100] * 10_000}), held)
    >>> len(bounded_table(pyarrow.parquet.ParquetFile(held))), held.tell() < 2_000
    (10000, True)
    >>> bounded_table(pyarrow.parquet.ParquetFile(held), 500_000)
    Traceback (most recent call last):
    ValueError: its rows take more than 0 MiB of memory
    """
    import pyarrow as pa

    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    held = sum(group.total_byte_size for group in groups)
    batches: list[Any] = []
    if held <= largest:
        held = 0
        rows = max(1, min(2**16, largest // 8 // max(_largest_row(file, groups), 1)))
        for batch in file.iter_batches(batch_size=rows):
            batches.append(batch)
            held += batch.nbytes
            if held > largest:
                break
    if held > largest:
        raise ValueError(f"its rows take more than {largest // 2**20:,} MiB of memory")
    if batches:
        return pa.Table.from_batches(batches)
    return file.schema_arrow.empty_table()


def _largest_row(file: Any, groups: Sequence[Any]) -> int:
    """Return the most bytes that a row may take: a text, or a list, at most what all of its column do."""
    columns = [file.schema.column(place) for place in range(len(file.schema))]
    numbers = [column.physical_type in _NUMBERS and column.max_repetition_level == 0 for column in columns]
    return sum(
        16 if number else group.column(place).total_uncompressed_size
        for group in groups
        for place, number in enumerate(numbers)
    )


def refuse_exploding(part: Path, used: Sequence[str]) -> None:
    """Refuse a Parquet file of units in which a small part stands for much in a column that is read.

    A text that stands in many rows is stored once, and written out for some thousand of them by an engine
    whose limit of memory does not count it.

    Raises
    ------
    InputError
        Naming the column.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet
    >>> path = Path(tempfile.mkdtemp()) / "units.parquet"
    >>> once = pa.DictionaryArray.from_arrays(pa.array([0] * 2048), ["a" * 2**19])
    >>> pyarrow.parquet.write_table(pa.table({"id": once}), path)
    >>> refuse_exploding(path, ["id"])
    Traceback (most recent call last):
    stratal.errors.InputError: ...units.parquet: a text in column 'id' is too long to ...
    """
    import pyarrow as pa
    import pyarrow.parquet

    if part.stat().st_size > _INSPECTED:
        return
    try:
        metadata = pyarrow.parquet.read_metadata(part)
        columns = [metadata.schema.column(place) for place in range(metadata.num_columns)]
        texts = {c.path for c in columns if c.physical_type == "BYTE_ARRAY"}.intersection(used)
        with pyarrow.parquet.ParquetFile(part, metadata=metadata, read_dictionary=sorted(texts)) as file:
            for number in range(metadata.num_row_groups if texts else 0):
                group = metadata.row_group(number)
                for place, column in enumerate(columns):
                    if column.path in texts:
                        _refuse_chunk(part, file, number, group.column(place))
    except InputError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(part, error) from None


def _refuse_chunk(part: Path, file: Any, group: int, chunk: Any) -> None:
    """Refuse a column of text in a row group that stands for much more than is stored."""
    name = chunk.path_in_schema
    unpacked = chunk.total_uncompressed_size
    packed = chunk.total_compressed_size
    if unpacked > _UNPACKED and unpacked > _TIMES * max(packed, 1):
        raise InputError(
            f"{part}: column {name!r} unpacks to far more than is stored",
            given=f"{packed:,} bytes that stand for {unpacked:,}",
            allowed=f"up to {_TIMES} times as much",
            action="Leave the column out of the file.",
        )
    if unpacked > MOST_AT_ONCE // ROWS_AT_ONCE and chunk.has_dictionary_page:  # its first page is read
        for batch in itertools.islice(file.iter_batches(1, row_groups=[group], columns=[name]), 1):
            refuse_long(part, name, batch.column(0), chunk.num_values, unpacked)


def refuse_long(path: Path, name: str, column: Any, count: int, unpacked: int = 0) -> None:
    """Refuse a column of Arrow with a category that is too long to be written out for so many rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        kind = column.type.value_type
    else:
        kind = None
    if kind not in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return
    pieces = getattr(column, "chunks", [column])
    rows = min(count, ROWS_AT_ONCE)
    longest = max((pc.max(pc.binary_length(piece.dictionary)).as_py() or 0 for piece in pieces), default=0)
    if longest * rows > max(MOST_AT_ONCE, _TIMES_WRITTEN * unpacked):
        raise InputError(
            f"{path}: a text in column {name!r} is too long to stand in many rows",
            given=f"{longest:,} bytes, {rows:,} rows at once",
            action="Leave the column out of the file, or shorten its texts.",
        )
