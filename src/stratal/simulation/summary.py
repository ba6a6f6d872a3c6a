"""From the replicates of one cell to one row per interval: figures of merit with their Monte Carlo errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.simulation.simulated_design import Settings

Collected = dict[tuple[int, str, str], list[FloatArray]]
"""(budget, estimator, what) → batches of replicates."""

Row = dict[str, Any]

_ROUNDING = 1e-12
"""A truth that is no farther outside counts as covered: the interval of a census is one rounded number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
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
    target_variance : float, optional
        The same as `random_variance` for the target whose variance is estimated, if that is another.

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
    target_variance: float | None = None


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
    ...     truth=0.5, random_variance=0.02, population_variance=0.25, size=100, closed_form=0.01)
    >>> summarise(np.array([0.4, 0.7]), np.array([0.01, 0.01]), yardstick)["mvr"]
    0.5
    """
    errors = values - yardstick.truth
    found: dict[str, Any] = {"closed_form_mse": yardstick.closed_form}
    for name, each in {"bias": errors, "mse": errors**2, "mae": np.abs(errors)}.items():
        found[name], found[f"{name}_se"] = mean_and_error(each)
    mse, mse_se = found["mse"], found["mse_se"]
    estimated, estimated_se = mean_and_error(variances)
    expected = yardstick.random_variance if yardstick.target_variance is None else yardstick.target_variance
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
    covered = (low <= truth + _ROUNDING) & (truth <= high + _ROUNDING)
    width, width_se = mean_and_error(high - low)
    share = float(covered.mean())
    narrow, wide = np.quantile(high - low, [0.16, 0.84])
    return {
        "coverage": share,
        "coverage_se": float(np.sqrt(share * (1.0 - share) / len(low))),
        "width": width,
        "width_se": width_se,
        "width_16": float(narrow),
        "width_84": float(wide),
    }


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
    for budget in settings.budgets:
        for estimator in settings.estimators:
            values = np.concatenate(collected[budget, estimator, "values"])
            defined = np.isfinite(values)
            if defined.sum() < 2:
                raise InputError(
                    f"{estimator} has no value in the samples of {design}",
                    given=f"{int(defined.sum())} of {len(values)} with one, of {budget} labels",
                    action="Use a larger budget.",
                )

            def kept(what: str, of: tuple[int, str] = (budget, estimator), mask: Any = defined) -> FloatArray:
                return np.asarray(np.concatenate(collected[(*of, what)])[mask])

            measured = yardstick(budget, estimator)
            shared = {
                "design": design,
                "estimator": estimator,
                "budget": budget,
                "replicates": int(defined.sum()),
                "n_strata": n_strata,
                "truth": measured.truth,
                **summarise(values[defined], kept("variances"), measured),
            }
            for interval in settings.intervals or ("",):
                found = _NO_INTERVAL
                if interval:
                    ends = kept(f"{interval} low"), kept(f"{interval} high")
                    found = summarise_interval(*ends, measured.truth)
                rows.append({**shared, "interval": interval, **found})
    return rows


_NO_INTERVAL = dict.fromkeys(
    ("coverage", "coverage_se", "width", "width_se", "width_16", "width_84"), float("nan")
)


def beside_random(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows, their efficiency by the simulated simple random sample where no formula gives it.

    Examples
    --------
    >>> row = {"estimator": "f1", "interval": "auto", "budget": 50, "mse_se": 0.0,
    ...        "relative_efficiency": float("nan")}
    >>> two = [row | {"design": "simple-random", "mse": 0.5}, row | {"design": "planned", "mse": 0.25}]
    >>> [found["relative_efficiency"] for found in beside_random(two)]
    [1.0, 2.0]
    """
    kept = list(rows)
    same = ("estimator", "interval", "budget")
    random = {tuple(row[name] for name in same): row for row in kept if row["design"] == "simple-random"}
    for row in kept:
        base = random.get(tuple(row[name] for name in same))
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
    below = np.flatnonzero(maes <= wanted)
    if len(below) == 0 or below[0] == 0 or np.any(maes <= 0):
        return float("nan"), float("nan")
    after = int(below[0])
    x, y = np.log(budgets[after - 1 : after + 1]), np.log(maes[after - 1 : after + 1])
    slope = (y[1] - y[0]) / (x[1] - x[0])
    if slope >= 0:
        return float("nan"), float("nan")
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
