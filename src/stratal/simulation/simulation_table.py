"""`SimulationTable`: one row per design, estimator, interval and budget; `CellStore`: finished cells."""

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
from stratal.errors import InputError, check_choice
from stratal.protocols import JsonDict
from stratal.report.pages import simulation_page
from stratal.report.text import Page, PageDisplay, json_dict
from stratal.tables.files import existing_file
from stratal.tables.spilling import lock_file

SimulationRow = dict[str, Any]


def labels_for_error(
    budgets: FloatArray, mean_absolute_errors: FloatArray, monte_carlo_errors: FloatArray, target: float
) -> tuple[float, float]:
    """Return the number of labels whose mean absolute error is `target`, and its Monte Carlo standard error.

    The number is interpolated between increasing budgets (B,) on logarithmic scales, on which the curve of
    the mean absolute errors (B,) is almost straight. Outside the budgets it is NaN.
    """
    # The first budget that reaches the target, and the one before it.
    upper = int(np.argmax(mean_absolute_errors <= target))
    if upper == 0 or np.any(mean_absolute_errors <= 0):
        return float("nan"), float("nan")
    lower = upper - 1
    log_budgets = np.log(budgets[lower : upper + 1])
    log_errors = np.log(mean_absolute_errors[lower : upper + 1])
    slope = (log_errors[1] - log_errors[0]) / (log_budgets[1] - log_budgets[0])
    share = (np.log(target) - log_errors[0]) / (log_errors[1] - log_errors[0])
    labels = float(np.exp(log_budgets[0] + share * (log_budgets[1] - log_budgets[0])))
    # Delta method: relative error of the interpolated mean absolute error, divided by the slope.
    relative_errors = monte_carlo_errors / mean_absolute_errors
    relative_error = (1 - share) * relative_errors[lower] + share * relative_errors[upper]
    return labels, float(labels * relative_error / -slope)


TEXT_COLUMNS = ("design", "estimator", "interval")
INTEGER_COLUMNS = ("budget", "replicates", "n_strata")
FLOAT_COLUMNS = (
    "truth",
    *("bias", "bias_se", "mse", "mse_se", "closed_form_mse", "mae", "mae_se"),
    *("relative_efficiency", "relative_efficiency_se", "estimated_variance", "mvr", "mvr_se"),
    *("effective_sample_size", "effective_sample_size_se"),
    *("coverage", "coverage_se", "width", "width_se", "width_16", "width_84"),
)
# All columns. `X_se` is the Monte Carlo standard error of X.
COLUMNS = (*TEXT_COLUMNS, *INTEGER_COLUMNS, *FLOAT_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SimulationTable(PageDisplay):
    """Result of a simulation, stored by column.

    Parameters
    ----------
    columns : mapping of name to (R,) array
        All `COLUMNS`, in their order.

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
    def from_rows(cls, rows: Iterable[Mapping[str, object]]) -> SimulationTable:
        """Return the table of rows, each with a value for every column."""
        all_rows = list(rows)
        types = dict.fromkeys(TEXT_COLUMNS, object) | dict.fromkeys(INTEGER_COLUMNS, np.int64)
        return cls(
            columns={
                name: frozen(np.array([row[name] for row in all_rows], dtype=types.get(name, np.float64)))
                for name in COLUMNS
            }
        )

    def __len__(self) -> int:
        return len(self.columns["budget"])

    def __getitem__(self, name: str) -> AnyArray:
        check_choice("column", name, self.columns)
        return self.columns[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimulationTable) and all(
            np.array_equal(self[name], other[name], equal_nan=name in FLOAT_COLUMNS) for name in COLUMNS
        )

    __hash__ = None  # type: ignore[assignment]

    def rows(self) -> list[JsonDict]:
        """Return one dict per row."""
        lists = (column.tolist() for column in self.columns.values())
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*lists, strict=True)]

    def where(self, **values: object) -> SimulationTable:
        """Return the rows whose columns have the given values.

        Examples
        --------
        >>> SimulationTable.from_rows([]).where(budget=50).rows()
        []
        """
        mask = np.ones(len(self), dtype=bool)
        for name, value in values.items():
            mask &= self[name] == value
        return SimulationTable(columns={name: column[mask] for name, column in self.columns.items()})

    def labels_to_reach(self, mean_absolute_error: float) -> list[JsonDict]:
        """Return the number of labels with a given mean absolute error for each design and estimator.

        This measure is from Kumar & Raj (2016). It is interpolated between the budgets and has a Monte Carlo
        standard error. It is NaN if no interval of the budgets contains it.

        Parameters
        ----------
        mean_absolute_error : float
            In the units of the outcome: 0.01 for one percentage point of accuracy.
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
            table = self.where(design=design, estimator=estimator)
            # The rows of the intervals of one budget have the same errors.
            budgets, rows = np.unique(table["budget"], return_index=True)
            labels, error = labels_for_error(
                budgets.astype(np.float64), table["mae"][rows], table["mae_se"][rows], mean_absolute_error
            )
            result.append({"design": design, "estimator": estimator, "labels": labels, "labels_se": error})
        return result

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table`."""
        import pyarrow as pa

        return pa.table(dict(self.columns))

    def to_parquet(self, path: str | Path) -> Path:
        """Write the table to a Parquet file and return its path; after an error, no partial file remains."""
        import pyarrow.parquet as pq

        with replacing(Path(path)) as partial:
            pq.write_table(self.to_arrow(), partial)
        return Path(path)

    @classmethod
    def from_parquet(cls, path: str | Path) -> SimulationTable:
        """Read a table that `to_parquet` wrote."""
        return cls.from_rows(_read_rows(Path(path), COLUMNS))

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict; NaN and infinity become null."""
        return json_dict({"columns": COLUMNS, "rows": self.rows()})

    def _page(self) -> Page:
        return simulation_page(self.to_dict())


def _read_rows(path: Path, columns: Sequence[str]) -> list[SimulationRow]:
    """Return the rows of a Parquet file that a simulation wrote; raise `InputError` for other columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    existing_file(path)
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is not a Parquet file: {reason}", action="Give another path.") from None
    if set(table.column_names) != set(columns):
        contents = "cells" if "cell" in columns else "the table"
        raise InputError(
            f"{path}: the file exists and does not contain {contents} of a simulation",
            given=table.column_names,
            allowed=f"a file with the columns {', '.join(columns)}",
            action="Give the path of a new file: a simulation overwrites only its own files.",
        )
    return list(table.to_pylist())


@dataclass(slots=True, eq=False)
class CellStore:
    """Rows of finished cells by key. The file is replaced after every cell.

    A key depends on everything that determines a cell: the data, the seed, the design and all settings. The
    cells of a file from other settings have other keys and are therefore never used.

    Parameters
    ----------
    path : path, optional
        Parquet file. Without a path, the rows are only in memory.
    cells : dict of key to rows
    """

    path: Path | None
    cells: dict[str, list[SimulationRow]]

    @classmethod
    @contextmanager
    def open(cls, file: str | Path | None) -> Iterator[CellStore]:
        """Lock the file and read its cells.

        Raises
        ------
        InputError
            If another run has locked the file, and if it does not contain cells.
        """
        if file is None:
            yield cls(None, {})
            return
        path = Path(file)
        if not path.parent.is_dir():
            raise InputError(f"{path}: there is no directory {path.parent}", action="Create it first.")
        lock = path.with_name(f".{path.name}.lock")
        release = lock_file(lock)
        if release is None:
            raise InputError(
                f"{path}: another run is writing to this file",
                action="Wait until it ends, or give another file.",
            )
        try:
            store = cls(path, {})
            if path.exists():
                for row in _read_rows(path, ("cell", *COLUMNS)):
                    store.cells.setdefault(row.pop("cell"), []).append(row)
            yield store
        finally:
            lock.unlink(missing_ok=True)
            release()

    def add(self, key: str, rows: list[SimulationRow]) -> None:
        """Store the rows of a cell and write the file."""
        self.cells[key] = rows
        if self.path is None:
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(
            [{"cell": cell_key, **row} for cell_key, cell_rows in self.cells.items() for row in cell_rows]
        )
        # An interrupted run leaves the previous file unchanged.
        with replacing(self.path) as partial:
            pq.write_table(table, partial)
