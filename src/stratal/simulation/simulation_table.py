"""`SimulationTable`: one row per design, estimator, interval, budget; `CellStore`: rows of finished cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, frozen
from stratal.designs.files import replacing
from stratal.errors import InputError, refuse_unknown
from stratal.report.pages import simulation_page
from stratal.report.text import Page, Printed, plain_dict
from stratal.tables.files import existing_file
from stratal.tables.spilling import locked

Row = dict[str, Any]


def labels_for_error(
    budgets: FloatArray, maes: FloatArray, errors: FloatArray, wanted: float
) -> tuple[float, float]:
    """Return the labels at which the mean absolute error falls to `wanted`, and their Monte Carlo error.

    Interpolated between budgets on logarithmic scales, where the curve is nearly straight; NaN outside them.

    Parameters
    ----------
    budgets : float (B,)
        Increasing.
    maes, errors : float (B,)
        Mean absolute errors and their Monte Carlo errors.
    wanted : float

    Examples
    --------
    >>> found = labels_for_error(np.array([100.0, 400.0]), np.array([0.02, 0.01]), np.zeros(2), 0.0125)
    >>> round(found[0], 1), found[1]
    (256.0, 0.0)
    """
    after = int(np.argmax(maes <= wanted))
    if after == 0 or np.any(maes <= 0):
        return float("nan"), float("nan")
    x = np.log(budgets[after - 1 : after + 1])
    y = np.log(maes[after - 1 : after + 1])
    slope = (y[1] - y[0]) / (x[1] - x[0])
    share = (np.log(wanted) - y[0]) / (y[1] - y[0])
    labels = float(np.exp(x[0] + share * (x[1] - x[0])))
    relative = (1 - share) * errors[after - 1] / maes[after - 1] + share * errors[after] / maes[after]
    return labels, float(labels * relative / -slope)


TEXT_COLUMNS = ("design", "estimator", "interval")
WHOLE_COLUMNS = ("budget", "replicates", "n_strata")
FLOAT_COLUMNS = (
    "truth",
    *("bias", "bias_se", "mse", "mse_se", "closed_form_mse", "mae", "mae_se"),
    *("relative_efficiency", "relative_efficiency_se", "estimated_variance", "mvr", "mvr_se"),
    *("effective_sample_size", "effective_sample_size_se"),
    *("coverage", "coverage_se", "width", "width_se", "width_16", "width_84"),
)
# Every column; `…_se` is the Monte Carlo standard error of the column before it.
COLUMNS = (*TEXT_COLUMNS, *WHOLE_COLUMNS, *FLOAT_COLUMNS)


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
        kinds = dict.fromkeys(TEXT_COLUMNS, object) | dict.fromkeys(WHOLE_COLUMNS, np.int64)
        return cls(
            columns={
                name: frozen(np.array([row[name] for row in kept], dtype=kinds.get(name, np.float64)))
                for name in COLUMNS
            }
        )

    def __len__(self) -> int:
        return len(self.columns["budget"])

    def __getitem__(self, name: str) -> AnyArray:
        refuse_unknown("column", name, self.columns)
        return self.columns[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimulationTable) and all(
            np.array_equal(self[name], other[name], equal_nan=name in FLOAT_COLUMNS) for name in COLUMNS
        )

    __hash__ = None  # type: ignore[assignment]

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per row."""
        lists = (column.tolist() for column in self.columns.values())
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*lists, strict=True)]

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
            what = "mean_absolute_error must be positive"
            allowed = "above 0, in the outcome's units, such as 0.01"
            raise InputError(what, given=mean_absolute_error, allowed=allowed)
        result = []
        pairs = zip(self["design"].tolist(), self["estimator"].tolist(), strict=True)
        for design, estimator in dict.fromkeys(pairs):
            kept = self.where(design=design, estimator=estimator)
            budgets, first = np.unique(kept["budget"], return_index=True)
            maes = kept["mae"][first]
            errors = kept["mae_se"][first]
            labels, error = labels_for_error(budgets.astype(np.float64), maes, errors, mean_absolute_error)
            result.append({"design": design, "estimator": estimator, "labels": labels, "labels_se": error})
        return result

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table`."""
        import pyarrow as pa

        return pa.table(dict(self.columns))

    def to_parquet(self, path: str | Path) -> Path:
        """Write the table to a Parquet file, whole or not at all, and return its path."""
        import pyarrow.parquet as pq

        with replacing(Path(path)) as partial:
            pq.write_table(self.to_arrow(), partial)
        return Path(path)

    @classmethod
    def from_parquet(cls, path: str | Path) -> SimulationTable:
        """Read what `to_parquet` wrote."""
        return cls.from_rows(read_own_parquet(Path(path), COLUMNS))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict; NaN and infinity become null."""
        return plain_dict({"columns": COLUMNS, "rows": self.rows()})

    def _page(self) -> Page:
        return simulation_page(self.to_dict())


def read_own_parquet(path: Path, wanted: Sequence[str]) -> list[Row]:
    """Return the rows of a Parquet file that a simulation wrote, with the `wanted` columns.

    Examples
    --------
    >>> read_own_parquet(Path("/nowhere.parquet"), COLUMNS)
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
    if {*table.column_names} != {*wanted}:
        what = "cells" if "cell" in wanted else "the table"
        action = "Give a path that does not exist yet; nothing is overwritten that simulate did not write."
        raise InputError(f"{path}: already exists, and is not {what} of a simulation", action=action)
    return list(table.to_pylist())


@dataclass(slots=True, eq=False)
class CellStore:
    """The rows of finished cells by the cells' keys; written anew, whole, after every cell.

    A key says all that a cell depends on: the data, the seed, the design and all settings. A file
    of other settings is therefore never mistaken for this run's; its cells simply do not match.

    Parameters
    ----------
    path : path, optional
        Parquet file; nothing is kept without one.
    cells : dict of key to rows

    Examples
    --------
    >>> with CellStore.kept(None) as store:
    ...     store.add("a", [{"budget": 50}])
    >>> store.cells
    {'a': [{'budget': 50}]}
    """

    path: Path | None
    cells: dict[str, list[Row]]

    @classmethod
    @contextmanager
    def kept(cls, file: str | Path | None) -> Iterator[CellStore]:
        """Keep the file to this run alone, with what it holds.

        Raises
        ------
        InputError
            While another run keeps it, and for a file that holds no cells.
        """
        if file is None:
            yield cls(None, {})
            return
        path = Path(file)
        if not path.parent.is_dir():
            raise InputError(f"{path}: there is no directory {path.parent}", action="Make it first.")
        lock = path.with_name(f".{path.name}.lock")
        release = locked(lock)
        if release is None:
            raise InputError(
                f"{path}: another run is adding to it", action="Wait for its end, or give another file."
            )
        try:
            store = cls(path, {})
            for row in read_own_parquet(path, ("cell", *COLUMNS)) if path.exists() else ():
                store.cells.setdefault(row.pop("cell"), []).append(row)
            yield store
        finally:
            lock.unlink(missing_ok=True)
            release()

    def add(self, key: str, rows: list[Row]) -> None:
        """Keep the rows of a cell, and write the file."""
        self.cells[key] = rows
        if self.path is None:
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(
            [{"cell": key, **row} for key, kept in self.cells.items() for row in kept]
        )
        with replacing(self.path) as partial:  # whole or not at all, whenever the run is killed
            pq.write_table(table, partial)
