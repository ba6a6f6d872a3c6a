"""Parts of a directory: each must hold the columns that are read, of one kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from stratal.errors import InputError


def with_nested(table: Any, columns: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """Return an Ibis table with the fields of its structs as columns, and the names of all columns.

    Parameters
    ----------
    table : Ibis table
    columns : dict of str to str
        The user's names to the table's own.

    Examples
    --------
    >>> import ibis, pyarrow as pa
    >>> table = ibis.memtable(pa.table({"judge": [{"score": 0.5}]}))
    >>> with_nested(table, {"judge": "judge"})[1]
    {'judge': 'judge', 'judge.score': 'nested0'}
    """
    fields: dict[str, Any] = {}
    types = table.schema()
    for name, column in columns.items():
        if types[column].is_struct():
            fields |= _fields(name, table[column])
    fields = {name: field for name, field in fields.items() if name not in columns}
    if not fields:
        return table, columns
    added = {name: f"nested{number}" for number, name in enumerate(fields)}
    return table.mutate(**{added[name]: field for name, field in fields.items()}), columns | added


def _fields(name: str, column: Any) -> dict[str, Any]:
    kind = column.type()
    if not kind.is_struct():
        return {}
    found: dict[str, Any] = {}
    for inner in kind.names:
        found |= {f"{name}.{inner}": column[inner], **_fields(f"{name}.{inner}", column[inner])}
    return found


def arrow_names(schema: Any) -> dict[str, tuple[str, ...]]:
    """Return the columns of an Arrow schema and the fields of its structs, by the path to each.

    Examples
    --------
    >>> import pyarrow as pa
    >>> arrow_names(pa.schema({"id": pa.int64(), "judge": pa.struct({"score": pa.float64()})}))
    {'id': ('id',), 'judge': ('judge',), 'judge.score': ('judge', 'score')}
    """
    import pyarrow as pa

    found: dict[str, tuple[str, ...]] = {field.name: (field.name,) for field in schema}
    for field in schema:
        if pa.types.is_struct(field.type):
            inner = arrow_names(pa.schema(list(field.type)))
            found |= {
                f"{field.name}.{name}": (field.name, *path)
                for name, path in inner.items()
                if f"{field.name}.{name}" not in found
            }
    return found


SAMPLE_KEY = b"stratal"
"""Metadata key by which a sample file is known."""

_WHOLE, _NUMBER = "whole numbers", "numbers"
_ONE_TYPE = "Write all parts of a directory with one type."


def refuse_unlike_parts(parts: Sequence[Path], used: Sequence[str], keys: Mapping[str, Path]) -> None:
    """Refuse parts that an engine would read by casting one to another, or a folder over a file's column.

    Whole numbers and others may stand side by side, read as the wider type, where none is rounded by that.

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

    Examples
    --------
    >>> refuse_unlike_parts([], ["id"], {})
    """
    if len(parts) < 2 and not keys:
        return
    schemas = {part: _schema(part) for part in parts}
    _refuse_other_letters(schemas)
    _refuse_both(schemas, used, keys)
    read = [name for name in used if name not in keys]
    held = {part: _held(part, schema, read) for part, schema in schemas.items()}
    for name in read:
        kinds = {part: types[name] for part, types in held.items()}
        _refuse_unlike(name, kinds)
        _refuse_rounded(name, kinds)


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


def _folder_names(part: Path) -> list[str]:
    return [folder.partition("=")[0].lower() for folder in part.parts[:-1] if "=" in folder]


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


def _refuse_other_letters(schemas: Mapping[Path, Any]) -> None:
    """Refuse `P` beside `p` unless all parts have the same columns: an engine tells them by their order."""
    names = {part: list(schema.names) for part, schema in schemas.items()}
    if len({tuple(columns) for columns in names.values()}) == 1:
        return
    for part, columns in names.items():
        counts = Counter(map(str.lower, columns))
        same = [name for name in columns if counts[name.lower()] > 1]
        if same:
            raise InputError(
                f"{part}: an engine takes columns {same[0]!r} and {same[1]!r} for one",
                allowed="names that differ in more than capital letters, "
                "or the same columns in the same order in every part",
                action="Rename or drop one of them.",
            )


def _refuse_both(schemas: Mapping[Path, Any], used: Sequence[str], keys: Mapping[str, Path]) -> None:
    """Refuse a column that is in a folder's name and in a part too: an engine takes the folder's."""
    requested = {name.lower() for name in used}
    for key, where in keys.items():
        if _folder_names(where).count(key.lower()) > 1:
            raise InputError(
                f"{where}: two folders give {key!r}", allowed="one", action="Rename one of them."
            )
        for part, schema in schemas.items():
            if key.lower() in requested.intersection(map(str.lower, schema.names)):
                raise InputError(
                    f"{part}: column {key!r} is in the file and in the folder's name",
                    allowed="one of them",
                    action="Rename the folders, or write the parts without the column.",
                )


def _refuse_unlike(name: str, kinds: Mapping[Path, Any]) -> None:
    where, other = next(iter(kinds)), _kind(next(iter(kinds.values())))
    for part, kind in ((part, _kind(kind)) for part, kind in kinds.items()):
        if kind != other and {kind, other} != {_WHOLE, _NUMBER}:
            raise InputError(
                f"{part}: column {name!r} holds {kind}",
                allowed=f"{other}, as in {where.name}",
                action=_ONE_TYPE,
            )


def _refuse_rounded(name: str, kinds: Mapping[Path, Any]) -> None:
    """Refuse numbers that an engine would round because another part holds floating-point numbers.

    Whole numbers are looked up in the files' own statistics.
    """
    import pyarrow as pa

    floats = {part: kind for part, kind in kinds.items() if pa.types.is_floating(kind)}
    if not floats or len(floats) == len(kinds):
        return
    # Bits of the significand of a double, and of a float of 32 bits.
    digits = 53 if any(kind.bit_width == 64 for kind in floats.values()) else 24
    for part, kind in kinds.items():
        if part not in floats and not _fits(part, name, kind, digits):
            raise InputError(
                f"{part}: column {name!r} holds {kind}, which would be rounded",
                allowed=f"whole numbers up to 2**{digits} next to {next(iter(floats.values()))}, "
                f"as in {next(iter(floats)).name}",
                action=_ONE_TYPE,
            )


def _fits(part: Path, name: str, kind: Any, digits: int) -> bool:
    """Return whether floating-point numbers of so many binary digits hold a column's numbers."""
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return digits == 53 and (kind.scale > 0 or kind.precision <= 15)
    if not pa.types.is_integer(kind) or kind.bit_width < digits:
        return True
    return all(abs(value) <= 2**digits for value in _extremes(part, name))


def _extremes(part: Path, name: str) -> Iterator[float]:
    """Yield the least and largest values of a column, infinity where its file does not tell them."""
    import pyarrow.parquet

    found = pyarrow.parquet.read_metadata(part)
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    for group in groups:
        pieces = (group.column(place) for place in range(group.num_columns))
        piece = next(piece for piece in pieces if piece.path_in_schema == name)
        column_statistics = piece.statistics
        if column_statistics is None or not column_statistics.has_min_max:
            yield (
                0
                if column_statistics is not None and column_statistics.null_count == piece.num_values
                else math.inf
            )
        else:
            yield from (column_statistics.min, column_statistics.max)


def _held(part: Path, schema: Any, used: Sequence[str]) -> dict[str, Any]:
    """Return the types of a part's columns that are read, and of fields of its structs that are."""
    paths = arrow_names(schema)
    found = {}
    for name in used:
        if name not in paths:
            raise InputError(
                f"{part}: no column {name!r}", allowed="the same columns in every part of a directory"
            )
        kind = reduce(
            lambda outer, step: outer.field(step).type, paths[name][1:], schema.field(paths[name][0]).type
        )
        found[name] = kind.value_type if _is_dictionary(kind) else kind
    return found


def _is_dictionary(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(kind))


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
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(
            f"{part} cannot be read",
            given=reason,
            action="Check that the file is whole and of the format that its name says.",
        ) from None


def _kind(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return _WHOLE
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _NUMBER
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    return str(kind)
