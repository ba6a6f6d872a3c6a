"""How large a table may be that is read as a whole (labels, samples): a small file may stand for much."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from stratal.errors import InputError, unreadable

MOST_ROWS, MOST_BYTES = 2_000_000, 2**28
"""What a table of labels may have; larger ones are no answers of people, but a population or an attack."""

MOST_AT_ONCE, ROWS_AT_ONCE = 2**29, 2048
"""Bytes that an engine may need to write one column out of a Parquet file of units, and for how many rows."""

_TIMES_WRITTEN = 8
"""How often a column may take what it is unpacked: true texts of such a length stand in few rows each."""

_INSPECTED = 2**28
"""Bytes of a Parquet file above which it is not looked into: each row group costs some milliseconds."""

_UNPACKED, _TIMES = 2**28, 200
"""Bytes of a column in one row group, and how often what is stored: no true texts pack so well."""

_NUMBERS = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE")
"""Physical types of a fixed width, which cannot unpack to more than the file says."""

Entry = TypeVar("Entry")


def limited(
    records: Iterable[Entry],
    size: Callable[[Entry], int],
    path: Path | str,
    rows: int = MOST_ROWS,
    characters: int = MOST_BYTES,
) -> Iterator[Entry]:
    """Yield records, refusing to go on after so many of them, or so many characters.

    Raises
    ------
    InputError
        Where there are more.

    Examples
    --------
    >>> list(limited(["a", "b"], len, Path("labels.csv"), rows=1))
    Traceback (most recent call last):
    stratal.errors.InputError: labels.csv: is too large for a table of labels (allowed: up to 1 rows and ...
    """
    held = 0
    for number, record in enumerate(records, start=1):
        held += size(record)
        if number > rows or held > characters:
            raise too_large(path, rows, characters)
        yield record


def too_large(path: Path | str, rows: int = MOST_ROWS, characters: int = MOST_BYTES) -> InputError:
    """Return the error of a table of labels that is too large."""
    return InputError(
        f"{path}: is too large for a table of labels",
        allowed=f"up to {rows:,} rows and {characters // 2**20:,} MiB of text",
        action="Keep the labelled units and the columns that are needed.",
    )


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
        held, rows = 0, max(1, min(2**16, largest // 8 // max(_largest_row(file, groups), 1)))
        for batch in file.iter_batches(batch_size=rows):
            batches.append(batch)
            held += batch.nbytes
            if held > largest:
                break
    if held > largest:
        raise ValueError(f"its rows take more than {largest // 2**20:,} MiB of memory")
    return pa.Table.from_batches(batches) if batches else file.schema_arrow.empty_table()


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
        texts = {c.path for c in columns if c.path in used and c.physical_type == "BYTE_ARRAY"}
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
    name, unpacked, packed = chunk.path_in_schema, chunk.total_uncompressed_size, chunk.total_compressed_size
    if unpacked > _UNPACKED and unpacked > _TIMES * max(packed, 1):
        raise InputError(
            f"{part}: column {name!r} unpacks to far more than is stored",
            given=f"{packed:,} bytes that stand for {unpacked:,}",
            action="Leave the column out of the file.",
        )
    if unpacked > MOST_AT_ONCE // ROWS_AT_ONCE and chunk.has_dictionary_page:  # its first page is read
        for batch in itertools.islice(file.iter_batches(1, row_groups=[group], columns=[name]), 1):
            refuse_long(part, name, batch.column(0), chunk.num_values, unpacked)


def refuse_long(path: Path, name: str, column: Any, count: int, unpacked: int = 0) -> None:
    """Refuse a column of Arrow with a category that is too long to be written out for so many rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else None
    if kind not in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return
    pieces, rows = getattr(column, "chunks", [column]), min(count, ROWS_AT_ONCE)
    longest = max((pc.max(pc.binary_length(piece.dictionary)).as_py() or 0 for piece in pieces), default=0)
    if longest * rows > max(MOST_AT_ONCE, _TIMES_WRITTEN * unpacked):
        raise InputError(
            f"{path}: a text in column {name!r} is too long to stand in many rows",
            given=f"{longest:,} bytes, {rows:,} rows at once",
            action="Leave the column out of the file, or shorten its texts.",
        )
