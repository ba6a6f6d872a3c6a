"""Parts of a directory: each must hold the columns that are read, of one kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from stratal.errors import InputError

SAMPLE_KEY = b"stratal"
"""Metadata key by which a sample file is known."""

_WHOLE, _NUMBER = "whole numbers", "numbers"


def refuse_unlike_parts(parts: Sequence[Path], used: Sequence[str], keys: Mapping[str, Path]) -> None:
    """Refuse parts that an engine would read by casting one to another, or a folder over a file's column.

    Whole numbers and others may stand side by side: they are read as the wider type.

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
    first: dict[str, tuple[str, Path]] = {}
    for part in parts:
        kinds = _kinds(part)
        for name in used:
            if name in keys:
                _refuse_both(part, name, name in kinds)
            elif name not in kinds:
                raise InputError(
                    f"{part}: no column {name!r}", allowed="the same columns in every part of a directory"
                )
            else:
                kind, where = first.setdefault(name, (kinds[name], part))
                _refuse_unlike(part, name, kinds[name], kind, where)


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
    return [unquote(folder.partition("=")[0]) for folder in part.parts[:-1] if "=" in folder]


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
            f"{part} is a sample that was drawn, and not a file of predictions",
            action="Give the file that it was drawn from; the sample itself goes to `stratal estimate`.",
        )
    names = list(schema.names)
    return names if len(names) <= count else []


def _refuse_both(part: Path, name: str, held: bool) -> None:
    if held:
        raise InputError(
            f"{part}: column {name!r} is in the file and in the folder's name",
            allowed="one of them",
            action="Rename the folders, or write the parts without the column.",
        )


def _refuse_unlike(part: Path, name: str, kind: str, other: str, where: Path) -> None:
    if kind != other and {kind, other} != {_WHOLE, _NUMBER}:
        raise InputError(
            f"{part}: column {name!r} holds {kind}",
            allowed=f"{other}, as in {where.name}",
            action="Write all parts of a directory with one type.",
        )


def _kinds(part: Path) -> dict[str, str]:
    """Return what each column of a Parquet file holds."""
    return {field.name: _kind(field.type) for field in _schema(part)}


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

    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_integer(kind):
        return _WHOLE
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _NUMBER
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    return str(kind)
