"""Parts of a directory: each must hold the columns that are read, of one kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from stratal.errors import InputError, unreadable


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
    >>> nested_names({"id": 0, "judge": {"score": 0.5}}, lambda kind: kind or {})
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


SAMPLE_KEY = b"stratal"
"""Metadata key by which a sample file is known."""


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
        if str(where).lower().count(f"{key.lower()}=") > 1:
            raise InputError(f"{where}: two folders give {key!r}", action="Rename one of them.")
        for part, schema in schemas.items():
            if key.lower() in requested.intersection(map(str.lower, schema.names)):
                raise InputError(
                    f"{part}: column {key!r} is in the file and in the folder's name",
                    allowed="one of them",
                    action="Rename the folders, or write the parts without the column.",
                )


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
