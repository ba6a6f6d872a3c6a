"""Paired differences of several models on one labelled sample, with simultaneous intervals and ranks.

The design's covariance of the models' means gives that of all differences. Simultaneous intervals take the
quantile of the largest |t| among them, simulated from the multivariate t with their correlation (Hothorn,
Bretz & Westfall 2008), and adjusted p-values come from the same draws, so that they cannot contradict the
intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, Record
from stratal.errors import InputError
from stratal.intervals.simultaneous import Family
from stratal.weighting import Weighting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Differences(Record):
    """Differences of means of pairs of models, with what their intervals need.

    Parameters
    ----------
    values : float (m,)
    standard_errors : float (m,)
        By the design's variance estimate.
    interval_errors : float (m,)
        Not below what labels that all agree may hide; NaN where nothing can be said (one label).
    degrees_of_freedom : float (m,)
    correlation : float (m, m)
    bound : float, optional
        The largest difference that there can be.
    census : bool
        Whether every unit is labelled, so that nothing is uncertain.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([40]))
    >>> paired_differences(np.array([[1.0], [0.0], [0.0], [1.0]]), weighting, bound=1.0).values
    array([0.5])
    """

    values: FloatArray
    standard_errors: FloatArray
    interval_errors: FloatArray
    degrees_of_freedom: FloatArray
    correlation: FloatArray
    bound: float | None
    census: bool

    def statistics(self) -> FloatArray:
        """Return t = difference / standard error (m,); 0 where both are 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = self.values / self.interval_errors
        return np.asarray(np.where((self.interval_errors == 0) & (self.values == 0), 0.0, ratio))

    def family(self, alternative: str = "two-sided", *, simultaneous: bool = True, seed: int = 0) -> Family:
        """Return how the intervals of all hold together, which means nothing for one."""
        together = "max-t" if simultaneous else None
        return Family.of(self.degrees_of_freedom, self.correlation, alternative, together, seed)

    def intervals(
        self, critical: FloatArray | float, alternative: str = "two-sided"
    ) -> tuple[FloatArray, FloatArray]:
        """Return difference ∓ critical value × standard error, cut at what is possible, (m,) each."""
        reach = np.where(self.interval_errors == 0, 0.0, critical * self.interval_errors)
        limit = np.inf if self.bound is None else self.bound
        low = self.values - reach if alternative != "less" else np.full(len(reach), -limit)
        high = self.values + reach if alternative != "greater" else np.full(len(reach), limit)
        return np.maximum(low, -limit), np.minimum(high, limit)


def paired_differences(
    contrasts: FloatArray,
    weighting: Weighting,
    *,
    residuals: FloatArray | None = None,
    known: FloatArray | None = None,
    bound: float | None = None,
    target: str = "population",
) -> Differences:
    """Return the weighted means of differences between pairs of models.

    Parameters
    ----------
    contrasts : float (n, m)
        z_a − z_b of each pair on the labelled units.
    weighting : Weighting
    residuals : float (n, m), optional
        What is left of them after a proxy of the difference; the contrasts themselves if not given.
    known : float (m,), optional
        What is added to the weighted means of the residuals.
    bound : float, optional
        The range of the outcomes, so that no difference is larger; None if they have none.
    target : {"population", "superpopulation"}

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(3, dtype=int), sizes=np.array([30]))
    >>> same = paired_differences(np.zeros((3, 1)), weighting, bound=1.0)
    >>> float(same.standard_errors[0]), float(same.interval_errors[0]) > 0
    (0.0, True)
    """
    left = contrasts if residuals is None else residuals
    values = weighting.mean(left) + (0.0 if known is None else known)
    covariance = weighting.covariance(left)
    if target == "superpopulation":
        covariance = covariance + weighting.population_covariance(contrasts)
    own = np.diag(covariance)
    census = len(weighting.weights) >= weighting.population_size and bool(np.all(own == 0))
    guarded = own.copy()
    if bound is not None and not census:
        ends = np.array([bound, -bound])
        hidden = np.array([unseen_pair(column, weighting, ends) for column in contrasts.T])
        guarded = np.where(np.isfinite(own), own, bound**2) + hidden
    spread = np.sqrt(np.where(own > 0, own, 1.0))
    correlation = np.where((own > 0)[:, None] & (own > 0), covariance / np.outer(spread, spread), 0.0)
    np.fill_diagonal(correlation, 1.0)
    freedom = np.array([weighting.degrees_of_freedom(column) for column in left.T])
    errors = np.sqrt(np.maximum(np.where(np.isfinite(own), own, guarded), 0.0))
    return Differences(
        values=np.asarray(values if bound is None else np.clip(values, -bound, bound)),
        standard_errors=np.asarray(errors),
        interval_errors=np.asarray(np.sqrt(np.maximum(guarded, 0.0))),
        degrees_of_freedom=np.maximum(freedom, 1.0),
        correlation=correlation,
        bound=bound,
        census=census,
    )


def critical_values(
    differences: Differences,
    confidence_level: float,
    alternative: str = "two-sided",
    *,
    simultaneous: bool = True,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Return the critical values (m,) and p-values (m,) of no difference of their `Family`.

    Examples
    --------
    >>> one = Differences(values=np.array([0.2]), standard_errors=np.array([0.1]), bound=None, census=False,
    ...     interval_errors=np.array([0.1]), degrees_of_freedom=np.array([20.0]), correlation=np.eye(1))
    >>> [round(float(entry[0]), 3) for entry in critical_values(one, 0.95)]
    [2.086, 0.059]
    """
    family = differences.family(alternative, simultaneous=simultaneous, seed=seed)
    return family.critical(confidence_level), family.p_values(differences.statistics())


def rank_sets(low: FloatArray, high: FloatArray, pairs: Sequence[tuple[int, int]], k: int) -> list[list[int]]:
    """Return for each of k models the ranks (first, last) that simultaneous intervals leave open.

    A model is certainly worse than those whose difference to it is above 0 throughout (Klein, Wright &
    Wieczorek 2020). Rank 1 is the highest mean.

    Examples
    --------
    >>> rank_sets(np.array([0.1, 0.2, -0.1]), np.array([0.3, 0.4, 0.1]), [(0, 1), (0, 2), (1, 2)], 3)
    [[1, 1], [2, 3], [2, 3]]
    """
    better, worse = np.zeros(k, np.int64), np.zeros(k, np.int64)
    for (a, b), below, above in zip(pairs, low, high, strict=True):
        if below > 0:
            better[b] += 1
            worse[a] += 1
        elif above < 0:
            better[a] += 1
            worse[b] += 1
    return [[1 + int(better[j]), k - int(worse[j])] for j in range(k)]


def unseen_pair(contrast: FloatArray, weighting: Weighting, ends: FloatArray) -> float:
    """Return the variance of one pair won and one lost that were not seen, as Bonett & Price (2012) add.

    It counts as far as the differences agree (ties, as a rule); where they vary by themselves there is none.

    Parameters
    ----------
    contrast : float (n,)
        Differences of the two outcomes.
    weighting : Weighting
    ends : float (2,)
        What either pair adds to the variable whose mean is estimated.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([8]))
    >>> unseen_pair(np.zeros(4), weighting, np.array([1.0, -1.0]))
    0.0625
    """
    weights = weighting.weights
    label = float(np.sum(weights**2) / np.sum(weights))
    _, which = np.unique(contrast, return_inverse=True)
    agreeing = float(np.max(np.bincount(which, weights)) / np.sum(weights))
    unlabelled = max(1.0 - len(weights) / weighting.population_size, 0.0)
    return float(np.sum(ends**2)) * label**2 * agreeing * unlabelled


def check_models(count: int) -> None:
    """Raise an `InputError` unless there are two models or more.

    Examples
    --------
    >>> check_models(1)
    Traceback (most recent call last):
    stratal.errors.InputError: a comparison needs two models (given: 1; allowed: 2 or more).
    """
    if count < 2:
        raise InputError("a comparison needs two models", given=count, allowed="2 or more")
