"""Summaries of replicates: errors, efficiency and coverage with their Monte Carlo standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import InputError
from stratal.protocols import JsonDict
from stratal.simulation.library_replicates import ReplicateBatches
from stratal.simulation.replicates import Settings
from stratal.simulation.simulation_table import SimulationRow

# A true value that is less than this outside an interval counts as covered: both limits of a census are the
# estimate, which has a rounding error.
_COVERAGE_TOLERANCE = 1e-12

# Quantiles of the width of intervals. Those of a normal distribution are one standard deviation from its
# mean.
_WIDTH_QUANTILES = (0.16, 0.84)

INTERVAL_COLUMNS = ("coverage", "coverage_se", "width", "width_se", "width_16", "width_84")


class TrueValues(NamedTuple):
    """True values that the replicates are compared with at one budget.

    Parameters
    ----------
    value : float
        Value of the estimand.
    random_variance : float
        Exact variance of the mean of a simple random sample of the same size; NaN for other estimands.
    population_variance : float
        S²; NaN for estimands other than means.
    size : int
        N.
    closed_form : float
        Variance of the design by formula; NaN without a formula.
    target_variance : float
        `random_variance` for the target of the estimated variance.
    """

    value: float
    random_variance: float = float("nan")
    population_variance: float = float("nan")
    size: int = 1
    closed_form: float = float("nan")
    target_variance: float = float("nan")


def exact_variance(
    sizes: FloatArray | IntArray,
    variances: FloatArray,
    counts: FloatArray | IntArray,
    *,
    with_replacement: bool,
) -> float:
    """Return Σ W_h² (1 − f_h) S_h²/n_h (Cochran 1977, eq. 5.6); with replacement 1 − f_h is 1 − 1/N_h."""
    if with_replacement:
        correction = 1.0 - 1.0 / sizes
    else:
        correction = 1.0 - counts / sizes
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (sizes / sizes.sum()) ** 2 * correction * variances / counts
    # A stratum whose outcomes are equal needs no label.
    return float(np.where(variances > 0, terms, 0.0).sum())


def mean_and_error(values: FloatArray) -> tuple[float, float]:
    """Return the mean of replicates and its Monte Carlo standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def summarise_interval(low: FloatArray, high: FloatArray, true_value: float) -> dict[str, float]:
    """Return the `INTERVAL_COLUMNS` of the limits (R,) of replicates, by name."""
    is_above_low = low <= true_value + _COVERAGE_TOLERANCE
    is_covered = is_above_low & (true_value <= high + _COVERAGE_TOLERANCE)
    coverage = float(np.mean(is_covered))
    coverage_error = float(np.sqrt(coverage * (1.0 - coverage) / len(low)))
    width, width_error = mean_and_error(high - low)
    quantiles = np.quantile(high - low, _WIDTH_QUANTILES).tolist()
    values = (coverage, coverage_error, width, width_error, *quantiles)
    return dict(zip(INTERVAL_COLUMNS, values, strict=True))


def summarise(values: FloatArray, variances: FloatArray, true_values: TrueValues) -> JsonDict:
    """Return the columns of a table that concern the estimates, such as `mse` and `relative_efficiency`.

    `values` and `variances` are the estimates and their estimated variances (R,).
    """
    errors = values - true_values.value
    summary: JsonDict = {"closed_form_mse": true_values.closed_form}
    for name, losses in {"bias": errors, "mse": errors**2, "mae": np.abs(errors)}.items():
        summary[name], summary[f"{name}_se"] = mean_and_error(losses)
    mse = summary["mse"]
    mse_error = summary["mse_se"]
    mean_variance, mean_variance_error = mean_and_error(variances)
    efficiency = _ratio(true_values.random_variance, mse)
    # A simple random sample of n units has variance S² (1/n − 1/N): n = S² / (MSE + S²/N).
    infinite_population_mse = mse + true_values.population_variance / true_values.size
    effective_size = _ratio(true_values.population_variance, infinite_population_mse)
    return summary | {
        "relative_efficiency": _round_to_15_digits(efficiency),
        "relative_efficiency_se": efficiency * (mse_error / mse if mse > 0 else 0.0),
        "estimated_variance": mean_variance,
        "mvr": _round_to_15_digits(_ratio(mean_variance, true_values.target_variance)),
        "mvr_se": _ratio(mean_variance_error, true_values.target_variance),
        "effective_sample_size": effective_size,
        "effective_sample_size_se": effective_size * _ratio(mse_error, infinite_population_mse),
    }


def _ratio(numerator: float, denominator: float) -> float:
    """Return the ratio of two variances; 0/0 is 1, since two exact estimators are equally precise."""
    if np.isnan(numerator) or np.isnan(denominator):
        return float("nan")
    if denominator > 0:
        return numerator / denominator
    if numerator > 0:
        return float("inf")
    return 1.0


def _round_to_15_digits(value: float) -> float:
    """Return the value with 15 significant digits, so that equal variances have the ratio 1."""
    return float(f"{value:.15g}")


def cell_rows(
    design: str,
    n_strata: int,
    replicates: ReplicateBatches,
    settings: Settings,
    true_values_of: Callable[[int, str], TrueValues],
) -> list[SimulationRow]:
    """Return the rows of a design, with one row per budget, estimator and interval.

    `true_values_of` returns the true values for a budget and an estimator. Replicates without a value are
    excluded.
    """
    rows = []
    for budget, estimator in product(settings.budgets, settings.estimators):
        quantities = _defined_replicates(design, budget, estimator, replicates)
        true_values = true_values_of(budget, estimator)
        shared_columns = {
            "design": design,
            "estimator": estimator,
            "budget": budget,
            "replicates": len(quantities["values"]),
            "n_strata": n_strata,
            "truth": true_values.value,
            **summarise(quantities["values"], quantities["variances"], true_values),
        }
        # Without intervals, the estimator has one row whose interval columns are NaN.
        for interval in settings.intervals or ("",):
            interval_columns: dict[str, float] = dict.fromkeys(INTERVAL_COLUMNS, float("nan"))
            if interval:
                low = quantities[f"{interval} low"]
                high = quantities[f"{interval} high"]
                interval_columns = summarise_interval(low, high, true_values.value)
            rows.append({**shared_columns, "interval": interval, **interval_columns})
    return rows


def _defined_replicates(
    design: str, budget: int, estimator: str, replicates: ReplicateBatches
) -> dict[str, FloatArray]:
    """Return the quantities (R,) of replicates with a value; raise `InputError` for fewer than two."""
    quantities = {
        quantity: np.concatenate(batches)
        for (batch_budget, batch_estimator, quantity), batches in replicates.items()
        if (batch_budget, batch_estimator) == (budget, estimator)
    }
    is_defined = np.isfinite(quantities["values"])
    n_defined = int(is_defined.sum())
    # A Monte Carlo standard error needs two replicates.
    if n_defined < 2:
        raise InputError(
            f"{estimator} has no value in the samples of {design}",
            given=f"a value in {n_defined} of {len(is_defined)} samples of {budget} labels",
            action="Use a larger budget.",
        )
    return {quantity: values[is_defined] for quantity, values in quantities.items()}


def fill_relative_efficiency(rows: Iterable[SimulationRow]) -> Iterator[SimulationRow]:
    """Yield the rows; a missing efficiency is relative to the simulated simple random sample."""
    all_rows = list(rows)
    comparison_key = itemgetter("estimator", "interval", "budget")
    random_rows = {comparison_key(row): row for row in all_rows if row["design"] == "simple-random"}
    for row in all_rows:
        random_row = random_rows.get(comparison_key(row))
        if random_row is None or not np.isnan(row["relative_efficiency"]) or not row["mse"] > 0:
            yield row
            continue
        efficiency = random_row["mse"] / row["mse"]
        error = 0.0
        if row is not random_row:
            # Both MSEs have independent Monte Carlo errors.
            error = efficiency * math.hypot(_relative_mse_error(row), _relative_mse_error(random_row))
        yield row | {"relative_efficiency": efficiency, "relative_efficiency_se": error}


def _relative_mse_error(row: SimulationRow) -> float:
    """Return the Monte Carlo standard error of an MSE divided by the MSE, 0 if the MSE is 0."""
    mse = float(row["mse"])
    if mse > 0:
        return float(row["mse_se"]) / mse
    return 0.0
