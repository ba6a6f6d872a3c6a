"""`SimulationTable`: one row per design, estimator, interval, budget; `CellStore`: rows of finished cells."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from stratal.arrays import AnyArray, FloatArray
from stratal.designs.files import replacing
from stratal.errors import InputError, near_names
from stratal.report import Page, Printed, plain_dict, simulation_page
from stratal.simulation.summary import labels_for_error
from stratal.tables.files import existing_file
from stratal.tables.spilling import locked

TEXT_COLUMNS = ("design", "estimator", "interval")
WHOLE_COLUMNS = ("budget", "replicates", "n_strata")
FLOAT_COLUMNS = (
    "truth",
    *("bias", "bias_se", "mse", "mse_se", "closed_form_mse", "mae", "mae_se"),
    *("relative_efficiency", "relative_efficiency_se", "estimated_variance", "mvr", "mvr_se"),
    *("effective_sample_size", "effective_sample_size_se"),
    *("coverage", "coverage_se", "width", "width_se", "width_16", "width_84"),
)
COLUMNS = (*TEXT_COLUMNS, *WHOLE_COLUMNS, *FLOAT_COLUMNS)
"""Every column; `…_se` is the Monte Carlo standard error of the column before it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationTable(Printed):
    """The outcome of a simulation, column by column.

    Parameters
    ----------
    columns : mapping of name to (R,) array
        `COLUMNS`, in that order.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.2] * 50 + [0.9] * 50)
    >>> z = [0.0] * 40 + [1.0] * 60
    >>> table = stratal.simulate(population, z, designs=["simple-random"], budgets=[20], replicates=500)
    >>> len(table), table["design"][0], round(float(table["truth"][0]), 2)
    (1, 'simple-random', 0.6)
    """

    columns: Mapping[str, AnyArray]

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> SimulationTable:
        """Return the table of rows, each with a value for every column."""
        kept = list(rows)
        columns: dict[str, AnyArray] = {}
        for names, dtype in ((TEXT_COLUMNS, object), (WHOLE_COLUMNS, np.int64), (FLOAT_COLUMNS, np.float64)):
            for name in names:
                column = np.array([row[name] for row in kept], dtype=dtype)
                column.flags.writeable = False
                columns[name] = column
        return cls(columns=columns)

    def __len__(self) -> int:
        return len(self.columns["budget"])

    def __getitem__(self, name: str) -> AnyArray:
        if name not in self.columns:
            raise InputError(f"no such column: {name!r}", allowed=near_names(name, self.columns))
        return self.columns[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SimulationTable):
            return NotImplemented
        return all(
            np.array_equal(self[name], other[name], equal_nan=name in FLOAT_COLUMNS) for name in COLUMNS
        )

    __hash__ = None  # type: ignore[assignment]

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per row."""
        lists = {name: column.tolist() for name, column in self.columns.items()}
        return [{name: lists[name][i] for name in lists} for i in range(len(self))]

    def where(self, **wanted: Any) -> SimulationTable:
        """Return the rows whose columns equal the given values.

        Examples
        --------
        >>> SimulationTable.from_rows([]).where(budget=50).rows()
        []
        """
        mask = np.ones(len(self), dtype=bool)
        for name, value in wanted.items():
            mask &= self[name] == value
        return SimulationTable(columns={name: column[mask] for name, column in self.columns.items()})

    def series(self, y: str, x: str = "budget", **wanted: Any) -> tuple[FloatArray, FloatArray]:
        """Return two columns of the rows chosen, sorted by the first."""
        kept = self.where(**wanted)
        order = np.argsort(kept[x], kind="stable")
        return kept[x][order].astype(np.float64), kept[y][order].astype(np.float64)

    def labels_to_reach(self, mean_absolute_error: float) -> list[dict[str, Any]]:
        """Return, per design and estimator, the labels at which the mean absolute error falls to a value.

        [K]'s second measure. Interpolated between the budgets, with a Monte Carlo standard error; NaN where
        the budgets do not reach it.

        Parameters
        ----------
        mean_absolute_error : float
            In the outcome's units: 0.01 for one point of accuracy.
        """
        if not (math.isfinite(mean_absolute_error) and mean_absolute_error > 0):
            raise InputError(
                "mean_absolute_error must be positive",
                given=mean_absolute_error,
                allowed="above 0, in the outcome's units, such as 0.01",
            )
        result = []
        pairs = zip(self["design"].tolist(), self["estimator"].tolist(), strict=True)
        for design, estimator in dict.fromkeys(pairs):
            kept = self.where(design=design, estimator=estimator)
            budgets, first = np.unique(kept["budget"], return_index=True)
            labels, error = labels_for_error(
                budgets.astype(np.float64), kept["mae"][first], kept["mae_se"][first], mean_absolute_error
            )
            result.append({"design": design, "estimator": estimator, "labels": labels, "labels_se": error})
        return result

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table`."""
        import pyarrow as pa

        kinds = dict.fromkeys(TEXT_COLUMNS, pa.string()) | dict.fromkeys(WHOLE_COLUMNS, pa.int64())
        schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in COLUMNS])
        return pa.Table.from_pylist(self.rows(), schema=schema)

    def to_parquet(self, path: str | Path) -> Path:
        """Write the table to a Parquet file, whole or not at all, and return its path."""
        import pyarrow.parquet as pq

        with replacing(Path(path)) as partial:
            pq.write_table(self.to_arrow(), partial)
        return Path(path)

    @classmethod
    def from_parquet(cls, path: str | Path) -> SimulationTable:
        """Read what `to_parquet` wrote."""
        table = read_own_parquet(Path(path), COLUMNS, "is no simulation table")
        return cls.from_rows(table.select(list(COLUMNS)).to_pylist())

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON twin; NaN and infinity become null."""
        return plain_dict({"columns": COLUMNS, "rows": self.rows()})

    def _page(self) -> Page:
        return simulation_page(self.to_dict())


def read_own_parquet(path: Path, wanted: Sequence[str], otherwise: str) -> Any:
    """Return a Parquet file that a simulation wrote, with the `wanted` columns, as a PyArrow table.

    Examples
    --------
    >>> read_own_parquet(Path("/nowhere.parquet"), COLUMNS, "is no simulation table")
    Traceback (most recent call last):
    stratal.errors.InputError: /nowhere.parquet: no such file...
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    existing_file(path)
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is not a Parquet file: {reason}", action="Give another path.") from None
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise InputError(
            f"{path} {otherwise}",
            given=f"without column {missing[0]!r}",
            action="Give a path that does not exist yet.",
        )
    return table


def refuse_others_file(path: Path) -> None:
    """Refuse to write over a file that is no simulation table.

    Examples
    --------
    >>> refuse_others_file(Path("/nowhere.parquet"))
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        return
    try:
        own = tuple(pq.read_schema(path).names) == COLUMNS
    except (pa.ArrowException, OSError, ValueError):
        own = False
    if not own:
        raise InputError(
            f"{path}: already exists, and is not a table of a simulation",
            action="Choose another --output; nothing is overwritten that simulate did not write.",
        )


_DIGEST = b"stratal.cells"


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
        self._release: Callable[[], None] | None = None
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

    def __len__(self) -> int:
        return len(self._cells)

    def __enter__(self) -> Self:
        """Keep the file to this run alone, and read what another has added since.

        Raises
        ------
        InputError
            While another run keeps it.
        """
        if self._path is not None:
            self._release = locked(self._lock)
            if self._release is None:
                raise InputError(
                    f"{self._path}: another run is adding to it",
                    action="Wait for its end, or give another file.",
                )
            if self._path.exists():
                self._read(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        if self._release is not None:
            self._lock.unlink(missing_ok=True)
            self._release()

    @property
    def _lock(self) -> Path:
        path = Path(self._path or "")
        return path.with_name(f".{path.name}.lock")

    def get(self, key: str) -> list[dict[str, Any]] | None:
        """Return the rows of a finished cell, or None."""
        return self._cells.get(key)

    def add(self, key: str, rows: list[dict[str, Any]]) -> None:
        """Keep the rows of a cell, and write the file."""
        self._cells[key] = rows
        if self._path is not None:
            self._write(self._path)

    def _read(self, path: Path) -> None:
        table = read_own_parquet(path, ("cell", *COLUMNS), "holds no cells of a simulation")
        metadata = table.schema.metadata or {}
        if _DIGEST in metadata and metadata[_DIGEST].decode("ascii", "replace") != _digest(table):
            raise InputError(
                f"{path}: the file was changed after it was written (its digest does not fit)",
                action="Take it from a copy, or begin anew with another file.",
            )
        self._cells = {}
        for row in table.to_pylist():
            self._cells.setdefault(row.pop("cell"), []).append(row)

    def _write(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = [{"cell": key, **row} for key, kept in self._cells.items() for row in kept]
        table = pa.Table.from_pylist(rows)
        with replacing(path) as partial:  # whole or not at all, whenever the run is killed
            pq.write_table(table.replace_schema_metadata({_DIGEST: _digest(table)}), partial)


def _digest(table: Any) -> str:
    return hashlib.sha256(json.dumps(table.to_pylist(), sort_keys=True).encode()).hexdigest()
