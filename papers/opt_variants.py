"""Variants of OPT-A1 and OPT-A2 [K]: which of them gives the figures that the paper prints.

Binary outcomes in strata are drawn as counts, so that a variant costs milliseconds. [K] leaves open what
happens to a stratum whose first labels are all correct: its rule to the letter gives it S_k = 0 and no
further label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.simulation.summaries import mean_and_error
from stratal.strata.integer_allocation import AllocationBounds, nearest_integers, optimal_integers

Deviations = Callable[[IntArray, IntArray], FloatArray]
"""(correct, labelled), each (R, K) → S_k (R, K)."""


def _raw(good: IntArray, n: IntArray) -> FloatArray:
    rate = good / n
    return np.asarray(np.sqrt(rate * (1 - rate) * n / np.maximum(n - 1, 1)))


def _smoothed(good: IntArray, n: IntArray) -> FloatArray:
    rate = (good + 1) / (n + 2)
    return np.asarray(np.sqrt(rate * (1 - rate)))


def _one_wrong(good: IntArray, n: IntArray) -> FloatArray:
    return _raw(np.clip(good, 1, n - 1), n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One reading of OPT-A1.

    Parameters
    ----------
    deviations : callable
        S_k from a stratum's labels, for sharing the labels out.
    total : bool
        Neyman's rule for all n labels with the pilot as lower bound, not for the remainder alone.
    least : float
        What every stratum gets at least, as a share of its proportional n_k.
    replacement : bool
    smoothed_variance : bool
        Whether the estimated variance uses smoothed S_k too.

    Examples
    --------
    >>> VARIANTS["to the letter"].total
    False
    """

    deviations: Deviations = _raw
    total: bool = False
    least: float = 0.0
    replacement: bool = True
    smoothed_variance: bool = False


VARIANTS = {
    "to the letter": Variant(),
    "without replacement": Variant(replacement=False),
    "Neyman for the total, not the remainder": Variant(total=True),
    "S_k never 0: one label counted as the other kind": Variant(deviations=_one_wrong),
    "S_k smoothed, (x + 1)/(n + 2)": Variant(deviations=_smoothed),
    "S_k smoothed, Neyman for the total": Variant(deviations=_smoothed, total=True),
    "at least half of proportional": Variant(total=True, least=0.5),
    "S_k smoothed, also in the estimated variance": Variant(deviations=_smoothed, smoothed_variance=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a variant gives at one budget, each with its Monte Carlo standard error.

    Parameters
    ----------
    estimated, true : (float, float)
        Estimated variance, and mean squared error, over that of a simple random sample.
    absolute : (float, float)
        Mean absolute error.

    Examples
    --------
    >>> Found(estimated=(0.4, 0.01), true=(1.2, 0.02), absolute=(0.01, 0.001)).true[0]
    1.2
    """

    estimated: tuple[float, float]
    true: tuple[float, float]
    absolute: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The sizes of an adaptive draw.

    Parameters
    ----------
    n, pilot : int
        Labels in all, and per stratum at first.
    step : int, optional
        Labels between two looks, OPT-A2; all the rest at once if left out, OPT-A1.

    Examples
    --------
    >>> Rounds(n=300, pilot=10).step is None
    True
    """

    n: int
    pilot: int
    step: int | None = None


def run_variant(
    variant: Variant, good: IntArray, sizes: IntArray, rounds: Rounds, *, replicates: int, seed: int
) -> Found:
    """Draw a variant many times.

    Parameters
    ----------
    variant : Variant
    good, sizes : int (K,)
        Correct units, and units, of each stratum.
    rounds : Rounds
    replicates, seed : int

    Examples
    --------
    >>> found = run_variant(VARIANTS["to the letter"], np.array([500, 500]), np.array([1000, 1000]),
    ...                     Rounds(n=100, pilot=10), replicates=2000, seed=1)
    >>> abs(found.true[0] - 1) < 5 * found.true[1]
    True
    """
    rng = np.random.default_rng(seed)
    weights, rate = sizes / sizes.sum(), good.sum() / sizes.sum()
    counts = np.full((replicates, len(sizes)), rounds.pilot)
    right = _draw(rng, variant, good, sizes, counts)
    while (left := rounds.n - int(counts[0].sum())) > 0:
        more = _more(variant, right, counts, sizes, left if rounds.step is None else min(rounds.step, left))
        gone = (0, 0) if variant.replacement else (right, counts)
        right = right + _draw(rng, variant, good - gone[0], sizes - gone[1], more)
        counts = counts + more
    value = right / counts @ weights
    spread = (_smoothed if variant.smoothed_variance else _raw)(right, counts)
    estimated = (weights**2 * spread**2 / counts).sum(axis=1)
    random = rate * (1 - rate) / rounds.n
    scaled = [mean_and_error(x / random) for x in (estimated, (value - rate) ** 2)]
    return Found(estimated=scaled[0], true=scaled[1], absolute=mean_and_error(np.abs(value - rate)))


def _draw(
    rng: np.random.Generator, variant: Variant, good: IntArray, sizes: IntArray, counts: IntArray
) -> IntArray:
    if variant.replacement:
        return rng.binomial(counts, good / sizes)
    shape = counts.shape
    return rng.hypergeometric(np.broadcast_to(good, shape), np.broadcast_to(sizes - good, shape), counts)


def _more(variant: Variant, right: IntArray, counts: IntArray, sizes: IntArray, more: int) -> IntArray:
    """Return the next labels (R, K) of each stratum."""
    weights = sizes / sizes.sum()
    importance = weights * variant.deviations(right, counts)
    if not variant.total:
        return nearest_integers(importance, sizes, more)
    n = int(counts[0].sum()) + more
    lower = np.maximum(counts, np.floor(variant.least * n * weights).astype(np.int64))
    bounds = AllocationBounds(sizes=sizes, lower=lower, upper=sizes)
    return np.asarray(optimal_integers(importance, bounds, n)) - counts
