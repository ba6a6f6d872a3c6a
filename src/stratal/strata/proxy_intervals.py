"""Strata that are intervals of a proxy, by any of the one-dimensional methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import BudgetError, InputError
from stratal.population.distribution import Distribution
from stratal.population.rules import CutPoints
from stratal.strata.classical import (
    cumulative_root,
    equal_size,
    equal_width,
    mixture_boundaries,
    weighted_mean,
)
from stratal.strata.moments import Moments, expected_deviations, joined, of_bins, refuse_widest
from stratal.strata.optimal import MANY_BINS, k_means_boundaries, k_means_cuts, neyman_boundaries
from stratal.strata.strata import Strata

MOST_STRATA = 50
"""More strata than this are never chosen, though they can be asked for."""

NUMBERS_TRIED = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, MOST_STRATA)
"""Numbers that are tried where each needs a run of its own."""

WORTHWHILE = 0.005
"""Strata are added as long as all together they shorten the squared interval by more than this share."""

MARGIN_CORRELATION = 0.5
"""Correlation with the outcome that is assumed of a proxy whose scale is unknown."""


def expected_squared_half_width(moments: Moments, budget: int, *, minimum: int = 2) -> float:
    """Return t² Σ W_h² (1/n_h − 1/N_h) S_h², with n_h proportional but at least `minimum`.

    t is Student's quantile on n − H degrees of freedom: the price of more strata. S_h² is the mean over the
    ways in which the proxy may be off, as in robust allocation: taken at its word, an overconfident proxy
    asks for far too many strata (n / 2 of them on one of the data sets that were tried). For a proxy that
    only orders, a correlation of `MARGIN_CORRELATION` is assumed.

    Parameters
    ----------
    moments : Moments
        Of H strata.
    budget : int
        n, at least `minimum` for each stratum.
    minimum : int
        Draws that each stratum keeps (all of its units where it has fewer).

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

    draws = _proportional_draws(moments.sizes, budget, minimum)
    if draws is None:
        return float("inf")
    unit_variances = _unit_variances(moments)
    variance = float(np.sum(moments.weights**2 * (1.0 / draws - 1.0 / moments.sizes) * unit_variances))
    quantile = float(stdtrit(max(budget - len(draws), 1), 0.975))  # of an interval of 95 %
    return max(quantile**2 * variance, 0.0)


def _unit_variances(moments: Moments) -> FloatArray:
    if moments.scaled:
        return expected_deviations(moments) ** 2
    weights = moments.weights
    between = (moments.proxy_means - weights @ moments.proxy_means) ** 2
    total = float(weights @ (moments.proxy_variances + between))
    explained = MARGIN_CORRELATION**2
    share = moments.proxy_variances / total if total > 0 else np.zeros(len(weights))
    return np.asarray(1.0 - explained + explained * share)


def _proportional_draws(sizes: IntArray, budget: int, minimum: int) -> FloatArray | None:
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


def choose_number(candidates: Sequence[Moments], budget: int, *, minimum: int = 2) -> int:
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
    scores = np.array([expected_squared_half_width(entry, budget, minimum=minimum) for entry in candidates])
    if not np.isfinite(scores).any():
        needed = min(int(np.minimum(minimum, entry.sizes).sum()) for entry in candidates)
        allowed = f"{needed} to {candidates[0].size}"
        raise BudgetError("the budget leaves a stratum short of draws", given=budget, allowed=allowed)
    return int(np.flatnonzero(scores <= scores.min() * (1.0 + WORTHWHILE))[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class StratificationRequest:
    """How many strata are wanted, checked.

    Parameters
    ----------
    method : str
    n_strata : int, optional
        `None` to choose from the budget.
    budget : int, optional
    minimum : int
        Draws that each stratum keeps when the number is chosen.
    scaled : bool
        Whether the proxy is on the outcome's scale.
    bounds : (float, float)
        Bounds of the outcome, infinite where it has none.
    """

    method: str
    n_strata: int | None
    budget: int | None
    minimum: int
    scaled: bool = True
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        for name in ("budget", "minimum"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is too small", given=value, allowed="1 or more")

    def most(self, share: float = 1.0) -> int:
        """Return the most strata of a part with this share of the units: as asked, as the budget bears."""
        if self.budget is None:
            assert self.n_strata is not None
            return self.n_strata
        bearable = max(1, int(share * self.budget) // max(self.minimum, 1))
        return bearable if self.n_strata is None else min(self.n_strata, bearable)

    def chosen(self, candidates: Sequence[Moments]) -> tuple[int, str]:
        """Return the number of the candidate to take at the budget, and a note."""
        assert self.budget is not None
        known = [replace(entry, scaled=self.scaled, bounds=self.bounds) for entry in candidates]
        best = choose_number(known, self.budget, minimum=self.minimum)
        return best, f"{candidates[best].n_strata} strata were chosen for a budget of {self.budget}."


ALL_AT_ONCE: dict[str, Callable[[Distribution, int], list[IntArray]]] = {
    "k-means": k_means_boundaries,
    "neyman": neyman_boundaries,
}
"""Methods that find the boundaries of 1, 2, …, H strata in one run."""

ONE_BY_ONE: dict[str, Callable[[Distribution, int], IntArray]] = {
    "equal-size": equal_size,
    "equal-width": equal_width,
    "cum-sqrt-f": partial(cumulative_root, power=1 / 2),
    "cum-cbrt-f": partial(cumulative_root, power=1 / 3),
    "weighted-mean": weighted_mean,
    "gaussian-mixture": mixture_boundaries,
}
"""Methods that find the boundaries of a given number of strata."""

_NO_BOUNDARIES = np.empty(0, np.int64)
INTERVAL_METHODS = (*ALL_AT_ONCE, *ONE_BY_ONE)


def interval_strata(distribution: Distribution, column: str, request: StratificationRequest) -> Strata:
    """Return strata that are intervals of one column.

    Examples
    --------
    >>> values = np.array([0.1, 0.2, 0.9])
    >>> picture = Distribution(values=values, counts=np.array([5, 5, 1]), cuts=values[1:])
    >>> request = StratificationRequest(method="equal-size", n_strata=2, budget=None, minimum=2)
    >>> interval_strata(picture, "proxy", request).names
    ('proxy < 0.2', 'proxy >= 0.2')
    """
    whole = Part(picture=distribution, divisible=True, whole=of_bins(distribution, _NO_BOUNDARIES))
    (boundaries,), notes = part_boundaries([whole], request, crossed=False)
    rule = CutPoints(column=column, cuts=distribution.cuts[boundaries - 1])
    return Strata.of(whole.moments(boundaries), rule, interval_names(column, rule.cuts), notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a population that is divided on its own: all of it, a level, or a pool of small ones."""

    picture: Distribution
    divisible: bool
    whole: Moments

    @property
    def size(self) -> int:
        """Units."""
        return int(self.whole.sizes[0])

    def moments(self, boundaries: IntArray) -> Moments:
        """Return the moments of its strata."""
        return of_bins(self.picture, boundaries) if len(boundaries) else self.whole


def part_boundaries(
    parts: Sequence[Part], request: StratificationRequest, *, crossed: bool
) -> tuple[list[IntArray], tuple[str, ...]]:
    """Return the boundaries within each part, and notes.

    An open number of strata is the same for every part, as far as its draws suffice.
    """
    total, requested = sum(part.size for part in parts), request.n_strata
    tables = []
    for part in parts:
        most = requested if requested and not crossed else request.most(part.size / total)
        if not part.divisible or (crossed and most == 1):
            tables.append([_NO_BOUNDARIES])
        elif requested is None:
            tables.append(candidate_boundaries(part.picture, request.method, most))
        else:
            tables.append([boundaries_of(part.picture, request.method, most)])
    if requested is None:
        numbers = range(max(len(table) for table in tables))
        picks = [[table[min(number, len(table) - 1)] for table in tables] for number in numbers]
        candidates = [
            joined([part.moments(cut) for part, cut in zip(parts, pick, strict=True)]) for pick in picks
        ]
        best, note = request.chosen(candidates)
        return picks[best], (note,)
    found = [table[0] for table in tables]
    short = sum(len(entry) + 1 < requested for entry in found)
    if short and not crossed:
        return found, _fewer(parts[0].picture, requested, len(found[0]) + 1)
    notes = (f"{short} of {len(parts)} groups have fewer than {requested} strata.",) if short else ()
    return found, notes


def boundaries_of(distribution: Distribution, method: str, n_strata: int) -> IntArray:
    """Return the boundaries of at most `n_strata` strata.

    Raises
    ------
    InputError
        If Neyman cuts are asked of a proxy without a plug-in for S_h.

    Examples
    --------
    >>> values = np.array([0.1, 0.2, 0.9])
    >>> picture = Distribution(values=values, counts=np.array([5, 5, 1]), cuts=values[1:])
    >>> boundaries_of(picture, "k-means", 2)
    array([2])
    """
    refuse_widest(distribution)
    if method == "neyman" and (not distribution.scaled or distribution.second_moments is None):
        raise InputError(
            "Neyman cuts need to know how the outcome spreads around the proxy",
            allowed="a proxy on the outcome's scale, with bounds or second moments",
            action="Use method='k-means', or calibrate the proxy first.",
        )
    if n_strata == 1:
        return np.empty(0, np.int64)
    if method in ALL_AT_ONCE:
        if n_strata >= len(distribution.values):
            return np.arange(1, len(distribution.values))
        if method == "k-means" and len(distribution.values) >= MANY_BINS:
            return k_means_cuts(distribution, n_strata)
        return ALL_AT_ONCE[method](distribution, n_strata)[-1]
    return ONE_BY_ONE[method](distribution, n_strata)


def candidate_boundaries(distribution: Distribution, method: str, most: int) -> list[IntArray]:
    """Return the boundaries to choose from when the number of strata is open, the fewest first.

    Every number up to `most` for methods that find all at once, else those of `NUMBERS_TRIED`.

    Examples
    --------
    >>> values = np.array([0.1, 0.2, 0.9])
    >>> picture = Distribution(values=values, counts=np.array([5, 5, 1]), cuts=values[1:])
    >>> [len(entry) + 1 for entry in candidate_boundaries(picture, "equal-width", 8)]
    [1, 2, 2, 2, 2, 2, 2, 3]
    """
    if method in ALL_AT_ONCE:
        boundaries_of(distribution, method, 1)
        return ALL_AT_ONCE[method](distribution, min(most, MOST_STRATA))
    return [boundaries_of(distribution, method, number) for number in NUMBERS_TRIED if number <= most]


def interval_names(column: str, cuts: FloatArray) -> tuple[str, ...]:
    """Return a name for each interval that `cuts` (H − 1,) make, with the fewest digits that tell them apart.

    Examples
    --------
    >>> interval_names("proxy", np.array([0.5, 0.9]))
    ('proxy < 0.5', 'proxy in [0.5, 0.9)', 'proxy >= 0.9')
    """
    if len(cuts) == 0:
        return (f"all {column}",)
    digits = 4
    while len({f"{cut:.{digits}g}" for cut in cuts}) < len(cuts) and digits < 17:
        digits += 1
    texts = [f"{cut:.{digits}g}" for cut in cuts]
    between = [f"{column} in [{low}, {high})" for low, high in pairwise(texts)]
    return (f"{column} < {texts[0]}", *between, f"{column} >= {texts[-1]}")


def _fewer(distribution: Distribution, requested: int, made: int) -> tuple[str, ...]:
    n_bins = len(distribution.values)
    if distribution.exact and n_bins < requested:
        reason = f"the proxy has only {n_bins} distinct value{'s' if n_bins > 1 else ''}"
    else:
        reason = "the others would hold no unit, as equal values are not split"
    return (f"{requested} strata were asked for and {made} made: {reason}.",)
