"""Figure 1 of Fisch et al. (2024): two strata of normal outcomes, and an autorater with bias and noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, FloatArray
from stratal.intervals.proportion import student_quantile
from stratal.simulation.summaries import mean_and_error, summarise_interval

ARMS = ("classical", "PPI++", "StratPPI proportional", "StratPPI optimal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """f = Y + μ_k + σ_k ε with Y, ε ~ N(0, 1), in two strata of equal mass.

    Parameters
    ----------
    biases, noises : (float, float)
        μ_k and σ_k.

    Examples
    --------
    >>> Scenario(biases=(0, 0), noises=(1, 1)).optimal_shares
    array([0.5, 0.5])
    """

    biases: tuple[float, float]
    noises: tuple[float, float]

    @property
    def optimal_shares(self) -> FloatArray:
        """ρ_k ∝ the standard deviation of y − λ_k f at the best λ_k ([S] eq. 18), σ_k/√(1 + σ_k²)."""
        noise = np.array(self.noises)
        deviation = noise / np.sqrt(1.0 + noise**2)
        return np.asarray(deviation / deviation.sum())


SCENARIOS = {
    "homogeneous": Scenario(biases=(0.0, 0.0), noises=(1.0, 1.0)),
    "different biases": Scenario(biases=(-2.0, 2.0), noises=(0.5, 0.5)),
    "different noises": Scenario(biases=(0.0, 0.0), noises=(0.2, 3.0)),
}

UNLABELLED = 10_000
"""N, half in each stratum."""


def run_scenario(
    scenario: Scenario, sizes: tuple[int, ...], *, trials: int, seed: int, confidence_level: float = 0.9
) -> dict[str, dict[str, FloatArray]]:
    """Return coverage, width, its 16 % and 84 % quantiles, and RMSE of every arm at every n, with errors.

    Parameters
    ----------
    scenario : Scenario
    sizes : tuple of int
        n, the labelled units in all.
    trials : int
    seed : int
    confidence_level : float

    Examples
    --------
    >>> found = run_scenario(SCENARIOS["homogeneous"], (100,), trials=200, seed=1)
    >>> bool(found["PPI++"]["width"][0] < found["classical"]["width"][0])
    True
    """
    rng = np.random.default_rng(seed)
    quantile = float(-student_quantile((1.0 - confidence_level) / 2.0, np.inf))
    keys = ("coverage", "coverage_se", "width", "width_se", "width_16", "width_84", "rmse", "rmse_se")
    result: dict[str, dict[str, list[float]]] = {arm: {key: [] for key in keys} for arm in ARMS}
    for n in sizes:
        for arm in ARMS:
            value, variance = _estimates(arm, scenario, n, trials, rng)
            half = quantile * np.sqrt(variance)
            found = summarise_interval(value - half, value + half, 0.0)
            squared, squared_se = mean_and_error(value**2)
            found |= {"rmse": np.sqrt(squared), "rmse_se": squared_se / (2 * np.sqrt(squared))}
            for key in keys:
                result[arm][key].append(float(found[key]))
    return {arm: {key: np.array(values) for key, values in rows.items()} for arm, rows in result.items()}


def _estimates(
    arm: str, scenario: Scenario, n: int, trials: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return estimates of E[Y] = 0 and their estimated variances, each (trials,)."""
    if arm in ("classical", "PPI++"):
        stratum = rng.integers(0, 2, size=(trials, n))
        y, f = _labelled(scenario, stratum, rng)
        if arm == "classical":
            return y.mean(axis=1), y.var(axis=1, ddof=1) / n
        means, variances = zip(*(_unlabelled(scenario, k, trials, rng) for k in (0, 1)), strict=True)
        mean = (means[0] + means[1]) / 2
        variance = (variances[0] + variances[1]) / 2 + (means[0] - means[1]) ** 2 / 4
        return _powered(y, f, mean, variance, UNLABELLED)
    shares = np.array([0.5, 0.5]) if arm.endswith("proportional") else scenario.optimal_shares
    first = int(np.clip(round(n * shares[0]), 2, n - 2))
    value, variance = np.zeros(trials), np.zeros(trials)
    for k, n_k in enumerate((first, n - first)):
        y, f = _labelled(scenario, np.full((trials, n_k), k), rng)
        own, error = _powered(y, f, *_unlabelled(scenario, k, trials, rng), UNLABELLED // 2)
        value, variance = value + own / 2, variance + error / 4
    return value, variance


def _labelled(
    scenario: Scenario, stratum: AnyArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    y = rng.standard_normal(stratum.shape)
    bias, noise = np.array(scenario.biases)[stratum], np.array(scenario.noises)[stratum]
    return y, y + bias + noise * rng.standard_normal(stratum.shape)


def _unlabelled(
    scenario: Scenario, k: int, trials: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of f over the stratum's unlabelled units: both have known distributions."""
    size, variance = UNLABELLED // 2, 1.0 + scenario.noises[k] ** 2
    means = scenario.biases[k] + np.sqrt(variance / size) * rng.standard_normal(trials)
    return means, variance * rng.chisquare(size - 1, trials) / (size - 1)


def _powered(
    y: FloatArray, f: FloatArray, mean: FloatArray, variance: FloatArray, unlabelled: int
) -> tuple[FloatArray, FloatArray]:
    """Return PPI++'s estimate and variance with the λ of [S] eq. 17, one row per trial."""
    n = y.shape[1]
    centred = f - f.mean(axis=1, keepdims=True)
    cross = (centred * (y - y.mean(axis=1, keepdims=True))).sum(axis=1) / (n - 1)
    lam = cross / ((1.0 + n / unlabelled) * variance)
    residual = y - lam[:, None] * f
    value = lam * mean + residual.mean(axis=1)
    return value, lam**2 * variance / unlabelled + residual.var(axis=1, ddof=1) / n
