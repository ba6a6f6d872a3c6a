"""The number of strata: the request of a user, and the best number for a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import BudgetError
from stratal.strata.strata import Moments, expected_deviations

# Default number of strata of a proxy, also in plans and simulations of means. The default in plans of other
# estimands is `most_strata` in `stratal.estimation.anticipated`.
DEFAULT_STRATA = 10

# Largest number of strata that "auto" chooses. Users may request more.
MAX_AUTOMATIC_STRATA = 50

# Numbers of strata that "auto" compares if the method needs a separate run for each number.
CANDIDATE_NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, MAX_AUTOMATIC_STRATA)

# "auto" chooses the smallest number of strata whose expected squared half-width exceeds the minimum by at
# most this share.
WIDTH_TOLERANCE = 0.005

# Assumed correlation with the outcome of a proxy whose scale is unknown.
ASSUMED_CORRELATION = 0.5

# Probability of the quantile for a 95% confidence interval.
_UPPER_PROBABILITY = 0.975


def expected_squared_half_width(moments: Moments, budget: int, *, minimum: int = 2) -> float:
    """Return t² Σ W_h² (1/n_h − 1/N_h) S_h², with n_h proportional but at least `minimum`.

    t is the quantile of Student's distribution with n − H degrees of freedom, which penalises more strata.
    S_h² is averaged over possible miscalibrations of the proxy, as in robust allocation: with its plug-in
    values, an overconfident proxy leads to far too many strata (n / 2 of them on one of the tested data
    sets). For a proxy that is not on the outcome's scale, the correlation `ASSUMED_CORRELATION` is assumed.

    Parameters
    ----------
    moments : Moments
        Moments of H strata.
    budget : int
        n, at least `minimum` for each stratum.
    minimum : int
        Minimum n_h; a smaller stratum is sampled completely.

    Returns
    -------
    float
        Infinite if the budget is below the sum of the minima.
    """
    # SciPy's special functions are imported only if the number of strata is searched for.
    from scipy.special import stdtrit

    n_h = _fractional_proportional_allocation(moments.sizes, budget, minimum)
    if n_h is None:
        return float("inf")
    if moments.scaled:
        variances = expected_deviations(moments) ** 2
    else:
        variances = _relative_variances(moments)
    squared_error = float(np.sum(moments.weights**2 * (1.0 / n_h - 1.0 / moments.sizes) * variances))
    # With one label in each stratum, no degree of freedom is left. One is then assumed.
    degrees_of_freedom = max(budget - len(n_h), 1)
    quantile = float(stdtrit(degrees_of_freedom, _UPPER_PROBABILITY))
    return max(quantile**2 * squared_error, 0.0)


def _relative_variances(moments: Moments) -> FloatArray:
    """Return S_h² (H,) in units of the variance of the outcome, for a proxy that is not on its scale.

    The proxy explains the share `ASSUMED_CORRELATION`² of the variance. Only this share is smaller within
    strata than in the population, in the same ratio as the variance of the proxy.
    """
    squares_between = (moments.proxy_means - moments.weights @ moments.proxy_means) ** 2
    proxy_variance = float(moments.weights @ (moments.proxy_variances + squares_between))
    shares_within = np.zeros(len(squares_between))
    if proxy_variance > 0:
        shares_within = moments.proxy_variances / proxy_variance
    return np.asarray(1.0 - ASSUMED_CORRELATION**2 + ASSUMED_CORRELATION**2 * shares_within)


def _fractional_proportional_allocation(sizes: IntArray, budget: int, minimum: int) -> FloatArray | None:
    """Return the proportional n_h (H,) with a minimum, not rounded; None if the budget is too small or large.

    Strata below the minimum get it. The others share the rest of the budget, until none is below.
    """
    lower = np.minimum(minimum, sizes).astype(np.float64)
    if lower.sum() > budget or budget > sizes.sum():
        return None
    is_at_minimum = np.zeros(len(sizes), bool)
    while True:
        remaining_size = sizes[~is_at_minimum].sum()
        sampling_fraction = 0.0
        if remaining_size:
            sampling_fraction = (budget - lower[is_at_minimum].sum()) / remaining_size
        is_below_minimum = ~is_at_minimum & (sizes * sampling_fraction < lower)
        if not is_below_minimum.any():
            return np.asarray(np.where(is_at_minimum, lower, sizes * sampling_fraction))
        is_at_minimum |= is_below_minimum


def choose_candidate(candidates: Sequence[Moments], budget: int, *, minimum: int = 2) -> int:
    """Return the index of the first candidate whose expected interval is nearly the shortest.

    Its expected squared half-width exceeds the minimum by at most the share `WIDTH_TOLERANCE`.

    Parameters
    ----------
    candidates : sequence of Moments
        Moments of the strata, in increasing order of their number.
    budget, minimum : int
        As in `expected_squared_half_width`.

    Raises
    ------
    BudgetError
        If the budget is below the sum of the minima of every candidate.
    """
    squared_widths = np.array(
        [expected_squared_half_width(moments, budget, minimum=minimum) for moments in candidates]
    )
    if not np.isfinite(squared_widths).any():
        min_budget = min(int(np.minimum(minimum, moments.sizes).sum()) for moments in candidates)
        allowed = f"{min_budget} to {candidates[0].size}"
        raise BudgetError(
            "the budget is too small for the minimum of draws per stratum", given=budget, allowed=allowed
        )
    is_nearly_shortest = squared_widths <= squared_widths.min() * (1.0 + WIDTH_TOLERANCE)
    return int(np.argmax(is_nearly_shortest))


@dataclass(frozen=True, slots=True, kw_only=True)
class StratificationRequest:
    """The validated options of a stratification.

    Parameters
    ----------
    method : str
    n_strata : int, optional
        `None` ("auto") to choose it by the budget.
    budget : int, optional
    minimum : int
        Minimum number of labels per stratum, at least 1, if the number of strata depends on the budget.
    scaled : bool
        Whether the proxy is on the outcome's scale.
    bounds : (float, float)
        Bounds of the outcome; infinite if it has none.
    """

    method: str
    n_strata: int | None
    budget: int | None
    minimum: int
    scaled: bool = True
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def max_strata(self, share: float = 1.0) -> int:
        """Return the maximum number of strata for a share of the units, by the request and the budget.

        The units get the same share of the budget, and each stratum requires the minimum of labels.
        """
        if self.budget is None:
            # `stratify` requires a budget for "auto".
            assert self.n_strata is not None
            return self.n_strata
        max_within_budget = max(1, int(share * self.budget) // self.minimum)
        if self.n_strata is None:
            return max_within_budget
        return min(self.n_strata, max_within_budget)

    def choose(self, candidates: Sequence[Moments]) -> tuple[int, str]:
        """Return the index of the best candidate for the budget, and a note, if `n_strata` is "auto"."""
        assert self.budget is not None
        scaled_candidates = [
            replace(moments, scaled=self.scaled, bounds=self.bounds) for moments in candidates
        ]
        best = choose_candidate(scaled_candidates, self.budget, minimum=self.minimum)
        return best, f"{candidates[best].n_strata} strata were chosen for a budget of {self.budget}."
