"""How many strata: the fewest whose expected interval at the budget is about the shortest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import BudgetError
from stratal.strata.moments import Moments, expected_deviations

MOST_STRATA = 50
"""More strata than this are never chosen, though they can be asked for."""

NUMBERS_TRIED = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, MOST_STRATA)
"""Numbers that are tried where each needs a run of its own."""

WORTHWHILE = 0.005
"""Strata are added as long as all together they shorten the squared interval by more than this share."""

MARGIN_CORRELATION = 0.5
"""Correlation with the outcome that is assumed of a proxy whose scale is unknown."""


def expected_squared_half_width(
    moments: Moments,
    budget: int,
    *,
    minimum: int = 2,
    scaled: bool = True,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> float:
    """Return t² Σ W_h² (1/n_h − 1/N_h) S_h², with n_h proportional but at least `minimum`.

    t is Student's quantile on n − H degrees of freedom: the price of more strata. S_h² is the mean over the
    ways in which the proxy may be off, as in robust allocation: taken at its word, an overconfident proxy
    asks for far too many strata (n / 2 of them on one of the data sets that were tried).

    Parameters
    ----------
    moments : Moments
        Of H strata.
    budget : int
        n, at least `minimum` for each stratum.
    minimum : int
        Draws that each stratum keeps (all of its units where it has fewer).
    scaled : bool
        Whether the proxy is on the outcome's scale; if not, a correlation of `MARGIN_CORRELATION` is assumed.
    bounds : (float, float)
        Bounds of the outcome, infinite where it has none.

    Returns
    -------
    float
        Infinite where the budget does not suffice.

    Examples
    --------
    >>> one = Moments(sizes=np.array([100]), proxy_means=np.array([0.5]),
    ...               proxy_variances=np.array([0.0]), conditional_variances=np.array([0.25]))
    >>> round(expected_squared_half_width(one, 50), 4)
    0.0101
    """
    from scipy.special import stdtrit

    draws = _proportional(moments.sizes, budget, minimum)
    if draws is None:
        return float("inf")
    weights = moments.sizes / moments.sizes.sum()
    unit_variances = _unit_variances(moments, scaled, bounds)
    variance = float(np.sum(weights**2 * (1.0 / draws - 1.0 / moments.sizes) * unit_variances))
    quantile = float(stdtrit(max(budget - len(draws), 1), 0.975))
    return max(quantile**2 * variance, 0.0)


def _unit_variances(moments: Moments, scaled: bool, bounds: tuple[float, float]) -> FloatArray:
    weights = moments.sizes / moments.sizes.sum()
    if scaled:
        variances = moments.proxy_variances + moments.conditional_variances
        return expected_deviations(weights, moments.proxy_means, variances, bounds) ** 2
    between = (moments.proxy_means - weights @ moments.proxy_means) ** 2
    total = float(weights @ (moments.proxy_variances + between))
    explained = MARGIN_CORRELATION**2
    share = moments.proxy_variances / total if total > 0 else np.zeros(len(weights))
    return np.asarray(1.0 - explained + explained * share)


def _proportional(sizes: IntArray, budget: int, minimum: int) -> FloatArray | None:
    """Return real-valued proportional draws, bounded below, that sum to `budget`; `None` if impossible."""
    lower = np.minimum(minimum, sizes).astype(np.float64)
    if lower.sum() > budget or budget > sizes.sum():
        return None
    held = np.zeros(len(sizes), bool)
    while True:
        free = sizes[~held].sum()
        rate = (budget - lower[held].sum()) / free if free else 0.0
        short = ~held & (sizes * rate < lower)
        if not short.any():
            return np.asarray(np.where(held, lower, sizes * rate))
        held |= short


def choose_number(
    candidates: Sequence[Moments],
    budget: int,
    *,
    minimum: int = 2,
    scaled: bool = True,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> int:
    """Return the first candidate whose expected interval is within `WORTHWHILE` of the shortest.

    Raises
    ------
    BudgetError
        If the budget gives no candidate its minimum.

    Examples
    --------
    >>> def halves(low, high):
    ...     means = np.array([low, high])
    ...     return Moments(sizes=np.array([50, 50]), proxy_means=means,
    ...                    proxy_variances=np.zeros(2), conditional_variances=means * (1 - means))
    >>> choose_number([halves(0.5, 0.5), halves(0.2, 0.8), halves(0.1999, 0.8)], 20)
    1
    """
    scores = np.array(
        [
            expected_squared_half_width(entry, budget, minimum=minimum, scaled=scaled, bounds=bounds)
            for entry in candidates
        ]
    )
    if not np.isfinite(scores).any():
        needed = min(int(np.minimum(minimum, entry.sizes).sum()) for entry in candidates)
        size = int(candidates[0].sizes.sum())
        raise BudgetError(
            "the budget exceeds the population"
            if budget > size
            else "the budget leaves a stratum short of draws",
            given=budget,
            allowed=f"{needed} to {size}",
        )
    return int(np.flatnonzero(scores <= scores.min() * (1.0 + WORTHWHILE))[0])
