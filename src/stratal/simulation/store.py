"""Finished cells in a Parquet file: a run that was killed goes on where it stopped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stratal.errors import InputError


class CellStore:
    """The rows of finished cells by the cells' keys; written anew, whole, after every cell.

    A key says all that a cell depends on: the data, the seed, the design and everything asked of it. A file
    of other settings is therefore never mistaken for this run's; its cells simply do not match.

    Parameters
    ----------
    path : path, optional
        Parquet file; nothing is kept without one.

    Examples
    --------
    >>> store = CellStore(None)
    >>> store.add("a", [{"budget": 50}])
    >>> store.get("a"), store.get("b")
    ([{'budget': 50}], None)
    """

    def __init__(self, path: str | Path | None) -> None:
        self._path = None if path is None else Path(path)
        self._cells: dict[str, list[dict[str, Any]]] = {}
        if self._path is None:
            return
        if not self._path.parent.is_dir():
            raise InputError(
                f"{self._path}: there is no directory {self._path.parent}", action="Make it first."
            )
        if self._path.is_dir():
            raise InputError(f"{self._path}: is a directory", allowed="a file")
        if self._path.exists():
            self._read(self._path)

    def get(self, key: str) -> list[dict[str, Any]] | None:
        """Return the rows of a finished cell, or None."""
        return self._cells.get(key)

    def add(self, key: str, rows: list[dict[str, Any]]) -> None:
        """Keep the rows of a cell, and write the file."""
        self._cells[key] = rows
        if self._path is not None:
            self._write(self._path)

    def _read(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
        except pa.ArrowInvalid as error:
            raise InputError(f"{path} is no Parquet file: {error}", action="Give another path.") from None
        if "cell" not in table.column_names:
            raise InputError(
                f"{path} holds no cells of a simulation", action="Give a path that does not exist yet."
            )
        for row in table.to_pylist():
            self._cells.setdefault(row.pop("cell"), []).append(row)

    def _write(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = [{"cell": key, **row} for key, kept in self._cells.items() for row in kept]
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        pq.write_table(pa.Table.from_pylist(rows), part)
        os.replace(part, path)  # whole or not at all, whenever the run is killed
