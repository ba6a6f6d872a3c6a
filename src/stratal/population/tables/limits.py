"""How large a table may be that is read as a whole (labels, samples): a small file may stand for much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from stratal.errors import InputError

MOST_ROWS, MOST_BYTES = 2_000_000, 2**28
"""What a table of labels may have; larger ones are no answers of people, but a population or an attack."""

Entry = TypeVar("Entry")


def limited(
    records: Iterable[Entry],
    size: Callable[[Entry], int],
    path: Path,
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
            raise InputError(
                f"{path}: is too large for a table of labels",
                allowed=f"up to {rows:,} rows and {characters // 2**20:,} MiB of text",
                action="Keep the labelled units and the columns that are needed.",
            )
        yield record


def bounded_table(file: Any, largest: int = MOST_BYTES) -> Any:
    """Return a Parquet file's rows, written out, refusing to go on where they take more memory.

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
    import pyarrow as pa  # arrays need neither

    batches = list(_written_out(file, largest))
    if batches:
        return pa.Table.from_batches(batches)
    return file.schema_arrow.empty_table()


def _written_out(file: Any, largest: int) -> Iterator[Any]:
    import pyarrow as pa

    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    stored = sum(group.total_byte_size for group in groups)
    rows = max(1, min(2**16, largest // 16 // max(stored, 1)))  # each value at most what all are stored in
    held = 0
    for batch in file.iter_batches(batch_size=rows) if stored <= largest else ():
        columns = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for column in batch.columns
        ]
        held += sum(column.nbytes for column in columns)
        if held > largest:
            break
        yield pa.RecordBatch.from_arrays(columns, batch.schema.names)
    if stored > largest or held > largest:
        raise ValueError(f"its rows take more than {largest // 2**20:,} MiB of memory")
