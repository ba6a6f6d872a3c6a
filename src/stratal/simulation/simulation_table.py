"""`SimulationTable`: one row per design, estimator, interval, budget; `CellStore`: rows of finished cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stratal.arrays import AnyArray, FloatArray, frozen
from stratal.designs.files import replacing
from stratal.errors import InputError, refuse_unknown
from stratal.report.pages import simulation_page
from stratal.report.text import Page, Printed, plain_dict
from stratal.simulation.replicates import Settings
from stratal.tables.files import existing_file
from stratal.tables.spilling import locked

Collected = dict[tuple[int, str, str], list[FloatArray]]
"""(budget, estimator, what) → batches of replicates."""

Row = dict[str, Any]

_ROUNDING = 1e-12
"""A truth that is no farther outside counts as covered: the interval of a census is one rounded number."""


class Yardstick(NamedTuple):
    """What the replicates are measured against, at one budget.

    Parameters
    ----------
    truth : float
        What is estimated.
    random_variance : float
        Variance of the HT mean of a simple random sample of the same size, exact; NaN where it is no mean.
    population_variance : float
        S²; NaN where it is no mean.
    size : int
        N.
    closed_form : float
        The design's variance by formula; NaN where there is none.
    target_variance : float
        The same as `random_variance` for the target whose variance is estimated.

    Examples
    --------
    >>> yardstick = Yardstick(
    ...     truth=0.5, random_variance=0.02, population_variance=0.25, size=100, closed_form=0.01)
    >>> summarise(np.array([0.4, 0.6]), np.array([0.01, 0.01]), yardstick)["relative_efficiency"]
    2.0
    """

    truth: float
    random_variance: float = float("nan")
    population_variance: float = float("nan")
    size: int = 1
    closed_form: float = float("nan")
    target_variance: float = float("nan")


def mean_and_error(values: FloatArray) -> tuple[float, float]:
    """Return the mean of replicates and its Monte Carlo standard error.

    Examples
    --------
    >>> mean_and_error(np.array([1.0, 3.0]))
    (2.0, 1.0)
    """
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def summarise(values: FloatArray, variances: FloatArray, yardstick: Yardstick) -> dict[str, Any]:
    """Return bias, MSE, mean absolute error, efficiencies and variance ratio of R replicates.

    Parameters
    ----------
    values, variances : float (R,)
        Estimates and estimated variances.
    yardstick : Yardstick

    Examples
    --------
    >>> yardstick = Yardstick(
    ...     truth=0.5, random_variance=0.02, population_variance=0.25, size=100, target_variance=0.02)
    >>> summarise(np.array([0.4, 0.7]), np.array([0.01, 0.01]), yardstick)["mvr"]
    0.5
    """
    errors = values - yardstick.truth
    found: dict[str, Any] = {"closed_form_mse": yardstick.closed_form}
    for name, each in {"bias": errors, "mse": errors**2, "mae": np.abs(errors)}.items():
        found[name], found[f"{name}_se"] = mean_and_error(each)
    mse, mse_se = found["mse"], found["mse_se"]
    estimated, estimated_se = mean_and_error(variances)
    expected = yardstick.target_variance
    efficiency = _ratio(yardstick.random_variance, mse)
    whole = mse + yardstick.population_variance / yardstick.size
    effective = _ratio(yardstick.population_variance, whole)
    return found | {
        "relative_efficiency": _rounded(efficiency),
        "relative_efficiency_se": efficiency * (mse_se / mse if mse > 0 else 0.0),
        "estimated_variance": estimated,
        "mvr": _rounded(_ratio(estimated, expected)),
        "mvr_se": _ratio(estimated_se, expected),
        "effective_sample_size": effective,
        "effective_sample_size_se": effective * _ratio(mse_se, whole),
    }


def summarise_interval(low: FloatArray, high: FloatArray, truth: float) -> dict[str, float]:
    """Return coverage and width, and the 16 % and 84 % quantiles of the width.

    Examples
    --------
    >>> found = summarise_interval(np.array([0.0, 0.2]), np.array([0.4, 0.8]), 0.1)
    >>> found["coverage"], round(found["width"], 6)
    (0.5, 0.5)
    """
    share = float(np.mean((low <= truth + _ROUNDING) & (truth <= high + _ROUNDING)))
    spread = float(np.sqrt(share * (1.0 - share) / len(low)))
    quantiles = np.quantile(high - low, [0.16, 0.84]).tolist()
    return dict(zip(_OF_INTERVALS, (share, spread, *mean_and_error(high - low), *quantiles), strict=True))


_OF_INTERVALS = ("coverage", "coverage_se", "width", "width_se", "width_16", "width_84")


def rows_of(
    design: str,
    n_strata: int,
    collected: Collected,
    settings: Settings,
    yardstick: Callable[[int, str], Yardstick],
) -> list[Row]:
    """Return a cell's rows from what its replicates gave; those without a value are left out.

    Parameters
    ----------
    design : str
    n_strata : int
    collected : dict of (budget, estimator, what) to batches of replicates
    settings : Settings
    yardstick : callable
        Budget and estimator to what they are measured against.

    Raises
    ------
    InputError
        Where fewer than two replicates have a value.
    """
    rows = []
    for budget, estimator in product(settings.budgets, settings.estimators):
        parts = {
            what: np.concatenate(batches)
            for (*of, what), batches in collected.items()
            if of == [budget, estimator]
        }
        defined = np.isfinite(parts["values"])
        if defined.sum() < 2:
            raise InputError(
                f"{estimator} has no value in the samples of {design}",
                given=f"{int(defined.sum())} of {len(defined)} with one, of {budget} labels",
                action="Use a larger budget.",
            )
        kept = {what: part[defined] for what, part in parts.items()}
        measured = yardstick(budget, estimator)
        shared = {
            "design": design,
            "estimator": estimator,
            "budget": budget,
            "replicates": int(defined.sum()),
            "n_strata": n_strata,
            "truth": measured.truth,
            **summarise(kept["values"], kept["variances"], measured),
        }
        for interval in settings.intervals or ("",):
            found: dict[str, float] = dict.fromkeys(_OF_INTERVALS, float("nan"))
            if interval:
                ends = kept[f"{interval} low"], kept[f"{interval} high"]
                found = summarise_interval(*ends, measured.truth)
            rows.append({**shared, "interval": interval, **found})
    return rows


def relative_to_random(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows, their efficiency by the simulated simple random sample where no formula gives it.

    Examples
    --------
    >>> row = {"estimator": "f1", "interval": "auto", "budget": 50, "mse_se": 0.0,
    ...        "relative_efficiency": float("nan")}
    >>> two = [row | {"design": "simple-random", "mse": 0.5}, row | {"design": "planned", "mse": 0.25}]
    >>> [found["relative_efficiency"] for found in relative_to_random(two)]
    [1.0, 2.0]
    """
    kept, same = list(rows), itemgetter("estimator", "interval", "budget")
    random = {same(row): row for row in kept if row["design"] == "simple-random"}
    for row in kept:
        base = random.get(same(row))
        if base is None or not np.isnan(row["relative_efficiency"]) or not row["mse"] > 0:
            yield row
            continue
        gain = base["mse"] / row["mse"]
        errors = [one["mse_se"] / one["mse"] if one["mse"] > 0 else 0.0 for one in (row, base)]
        error = 0.0 if row is base else gain * math.hypot(*errors)
        yield row | {"relative_efficiency": gain, "relative_efficiency_se": error}


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
    x, y = np.log(budgets[after - 1 : after + 1]), np.log(maes[after - 1 : after + 1])
    slope = (y[1] - y[0]) / (x[1] - x[0])
    share = (np.log(wanted) - y[0]) / (y[1] - y[0])
    labels = float(np.exp(x[0] + share * (x[1] - x[0])))
    relative = (1 - share) * errors[after - 1] / maes[after - 1] + share * errors[after] / maes[after]
    return labels, float(labels * relative / -slope)


def _ratio(above: float, below: float) -> float:
    if np.isnan(above) or np.isnan(below):
        return float("nan")
    return above / below if below > 0 else float("inf") if above > 0 else 1.0


def _rounded(value: float) -> float:
    """Return the value without a division's rounding error."""
    return float(f"{value:.15g}")


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
            maes, errors = kept["mae"][first], kept["mae_se"][first]
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
        raise InputError(
            f"{path}: already exists, and is not {what} of a simulation",
            action="Give a path that does not exist yet; nothing is overwritten that simulate did not write.",
        )
    rows: list[Row] = table.to_pylist()
    return rows


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
