"""Strata that are intervals of a proxy, for all units or within each level of a group column.

A boundary b is the index of a bin of the proxy's distribution: it lies between the bins b − 1 and b. The
corresponding cut is the value of the proxy at which the bin b begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import InputError
from stratal.population import rules
from stratal.population.distribution import Distribution, LevelDistributions
from stratal.population.population import Population
from stratal.strata import classical_boundaries, optimal_boundaries
from stratal.strata.level_groups import category_strata, pooled_groups
from stratal.strata.mixture_boundaries import mixture_boundaries
from stratal.strata.number_of_strata import CANDIDATE_NUMBERS, MAX_AUTOMATIC_STRATA, StratificationRequest
from stratal.strata.strata import (
    Moments,
    Strata,
    check_proxy_range,
    join_moments,
    moments_of_bins,
    moments_of_levels,
)

# Methods that return the boundaries of 1, 2, …, H strata in one run.
METHODS_FOR_ALL_NUMBERS: dict[str, Callable[[Distribution, int], list[IntArray]]] = {
    "k-means": optimal_boundaries.k_means_boundaries,
    "neyman": optimal_boundaries.neyman_boundaries,
    "robust-neyman": optimal_boundaries.robust_neyman_boundaries,
}

# Methods that return the boundaries for one number of strata.
METHODS_FOR_ONE_NUMBER: dict[str, Callable[[Distribution, int], IntArray]] = {
    "equal-size": classical_boundaries.equal_size,
    "equal-width": classical_boundaries.equal_width,
    "cum-sqrt-f": partial(classical_boundaries.cumulative_root, power=1 / 2),
    "cum-cbrt-f": partial(classical_boundaries.cumulative_root, power=1 / 3),
    "weighted-mean": classical_boundaries.weighted_mean,
    "gaussian-mixture": mixture_boundaries,
}

# Stratifications by cuts of one proxy.
CUT_METHODS = (*METHODS_FOR_ALL_NUMBERS, *METHODS_FOR_ONE_NUMBER)

# The boundaries of a single stratum.
NO_BOUNDARIES = np.empty(0, np.int64)


def interval_strata(distribution: Distribution, column: str, request: StratificationRequest) -> Strata:
    """Return strata that are intervals of one column."""
    notes: tuple[str, ...] = ()
    if request.n_strata is None:
        candidates = candidate_boundaries(distribution, request.method, request.max_strata())
        best, note = request.choose([moments_of_bins(distribution, boundaries) for boundaries in candidates])
        boundaries = candidates[best]
        notes = (note,)
    else:
        boundaries = find_boundaries(distribution, request.method, request.n_strata)
        if len(boundaries) + 1 < request.n_strata:
            notes = (_fewer_strata_note(distribution, request.n_strata, len(boundaries) + 1),)
    rule = rules.CutPoints(column=column, cuts=_cuts_at(distribution, boundaries))
    names = interval_names(column, rule.cuts)
    return Strata.from_moments(moments_of_bins(distribution, boundaries), rule, names, notes=notes)


def _fewer_strata_note(distribution: Distribution, requested: int, formed: int) -> str:
    """Return a note on the reason why fewer strata were formed than requested."""
    n_bins = len(distribution.values)
    reason = "the others would be empty, because equal values are not split"
    if distribution.exact and n_bins < requested:
        reason = f"the proxy has only {n_bins} distinct value{'s' if n_bins > 1 else ''}"
    return f"{requested} strata were requested and {formed} formed: {reason}."


def _cuts_at(distribution: Distribution, boundaries: IntArray) -> FloatArray:
    """Return the values of the proxy (H − 1,) at the boundaries (H − 1,)."""
    # `cuts` has no entry for the first bin, at which no boundary can be.
    return np.asarray(distribution.cuts[boundaries - 1])


# A part of the population that is divided separately (a level, or the pool of small levels): its
# distribution, None if it cannot be divided, and its moments as one stratum.
PopulationPart = tuple[Distribution | None, Moments]


def boundaries_of_parts(
    parts: Sequence[PopulationPart], request: StratificationRequest
) -> tuple[list[IntArray], Moments, tuple[str, ...]]:
    """Return the boundaries within each part, the moments of all strata, and notes.

    If the number of strata is "auto", it is the same in every part, up to the maximum of the part.
    """
    total = sum(int(moments_of_part.sizes[0]) for _, moments_of_part in parts)
    boundaries_by_part = []
    for distribution, moments_of_part in parts:
        max_strata = request.max_strata(int(moments_of_part.sizes[0]) / total)
        if distribution is None or max_strata == 1:
            boundaries_by_part.append([NO_BOUNDARIES])
        elif request.n_strata is None:
            boundaries_by_part.append(candidate_boundaries(distribution, request.method, max_strata))
        else:
            boundaries_by_part.append([find_boundaries(distribution, request.method, max_strata)])
    # A candidate has the boundaries of one number of strata in each part; a part with fewer boundaries than
    # others repeats its last ones.
    n_candidates = max(len(boundaries) for boundaries in boundaries_by_part)
    candidates = [
        [boundaries[min(index, len(boundaries) - 1)] for boundaries in boundaries_by_part]
        for index in range(n_candidates)
    ]
    candidate_moments = [_moments_of_parts(parts, candidate) for candidate in candidates]
    if request.n_strata is None:
        best, note = request.choose(candidate_moments)
        return candidates[best], candidate_moments[best], (note,)
    notes: tuple[str, ...] = ()
    n_incomplete = sum(len(boundaries) + 1 < request.n_strata for boundaries in candidates[0])
    if n_incomplete:
        notes = (f"{n_incomplete} of {len(parts)} groups have fewer than {request.n_strata} strata.",)
    return candidates[0], candidate_moments[0], notes


def _moments_of_parts(parts: Sequence[PopulationPart], boundaries: Sequence[IntArray]) -> Moments:
    """Return the moments of the strata between the boundaries of each part, in the order of the parts."""
    moments = []
    for (distribution, moments_of_part), part_boundaries in zip(parts, boundaries, strict=True):
        if distribution is None or len(part_boundaries) == 0:
            moments.append(moments_of_part)
        else:
            moments.append(moments_of_bins(distribution, part_boundaries))
    return join_moments(moments)


def check_proxy(distribution: Distribution, method: str) -> None:
    """Raise an error if a method cannot divide a proxy.

    Raises
    ------
    InputError
        For Neyman boundaries of a proxy that does not imply S_h, and for a proxy with too large a range.
    """
    check_proxy_range(distribution)
    if method == "neyman":
        implies_deviations = distribution.second_moments is not None
        allowed = "a proxy on the outcome's scale, with bounds or second moments"
    elif method == "robust-neyman":
        implies_deviations = distribution.bounds is not None
        allowed = "a proxy on the scale of an outcome with bounds"
    else:
        return
    if not (distribution.scaled and implies_deviations):
        raise InputError(
            "Neyman cuts require the variance of the outcome around the proxy",
            given=f"method={method!r}",
            allowed=allowed,
            action="Use method='k-means', or calibrate the proxy first.",
        )


def find_boundaries(distribution: Distribution, method: str, n_strata: int) -> IntArray:
    """Return the boundaries of at most `n_strata` strata; see `check_proxy` for errors."""
    check_proxy(distribution, method)
    if n_strata == 1:
        return NO_BOUNDARIES
    if method in METHODS_FOR_ONE_NUMBER:
        return METHODS_FOR_ONE_NUMBER[method](distribution, n_strata)
    if n_strata >= len(distribution.values):
        return np.arange(1, len(distribution.values))
    # These functions find the boundaries of one number in less time than those of all numbers.
    if method == "k-means":
        return optimal_boundaries.k_means_boundaries_for_number(distribution, n_strata)
    if method == "neyman":
        return optimal_boundaries.neyman_boundaries_for_number(distribution, n_strata)
    return METHODS_FOR_ALL_NUMBERS[method](distribution, n_strata)[-1]


def candidate_boundaries(distribution: Distribution, method: str, max_strata: int) -> list[IntArray]:
    """Return the boundaries for each candidate number of strata, in increasing order of the number.

    The numbers are 1, …, `max_strata` for `METHODS_FOR_ALL_NUMBERS`, otherwise those of `CANDIDATE_NUMBERS`.
    """
    if method in METHODS_FOR_ALL_NUMBERS:
        check_proxy(distribution, method)
        return METHODS_FOR_ALL_NUMBERS[method](distribution, min(max_strata, MAX_AUTOMATIC_STRATA))
    return [
        find_boundaries(distribution, method, number) for number in CANDIDATE_NUMBERS if number <= max_strata
    ]


def interval_names(column: str, cuts: FloatArray) -> tuple[str, ...]:
    """Return a name for each interval between `cuts` (H − 1,), with the fewest distinguishing digits."""
    if len(cuts) == 0:
        return (f"all {column}",)
    digits = 4
    while len({f"{cut:.{digits}g}" for cut in cuts}) < len(cuts) and digits < 17:
        digits += 1
    texts = [f"{cut:.{digits}g}" for cut in cuts]
    between = [f"{column} in [{low}, {high})" for low, high in pairwise(texts)]
    return (f"{column} < {texts[0]}", *between, f"{column} >= {texts[-1]}")


def crossed_strata(population: Population, by: str, column: str, request: StratificationRequest) -> Strata:
    """Return the levels of `by` crossed with intervals of a proxy; a pool of levels is divided as one."""
    distributions = population.distributions(by, column)
    if request.n_strata == 1:
        # A single interval needs no boundaries, but the method must fit the proxy.
        check_proxy(next(iter(distributions.values())), request.method)
        return category_strata(population, by, request, distributions)
    groups = pooled_groups(distributions.sizes, by, request)
    all_moments = moments_of_levels(distributions)
    parts: list[PopulationPart] = []
    for members in groups.members():
        moments_of_members = all_moments.select(np.array(members))
        if len(members) != 1:
            moments_of_members = moments_of_members.pool(np.zeros(len(members), np.int64))
        parts.append((pooled_distribution(distributions, np.array(members)), moments_of_members))
    boundaries, moments, notes = boundaries_of_parts(parts, request)
    inner: list[rules.CutPoints] = []
    names: list[str] = []
    for (distribution, _), part_boundaries, group_name in zip(parts, boundaries, groups.names(), strict=True):
        cuts = np.empty(0)
        if distribution is not None:
            cuts = _cuts_at(distribution, part_boundaries)
        inner.append(rules.CutPoints(column=column, cuts=cuts))
        if len(cuts):
            names.extend(f"{group_name}, {interval}" for interval in interval_names(column, cuts))
        else:
            names.append(group_name)
    return Strata.from_moments(
        moments,
        rules.Crossed(categories=groups.rule, inner=tuple(inner)),
        tuple(names),
        notes=groups.notes + notes,
    )


def pooled_distribution(distributions: LevelDistributions, members: IntArray) -> Distribution | None:
    """Return the joint distribution of the levels with the indices `members`.

    It is None for several levels if the distribution of one of them is approximate, because the bins of
    histograms have no common cuts.
    """
    if len(members) == 1:
        return distributions[distributions.bins.names[members[0]]]
    if np.isin(distributions.approximate_levels, members).any():
        return None
    bins = distributions.bins
    rows = np.flatnonzero(np.isin(bins.level, members))
    weights = bins.counts[rows]
    values, value_codes = np.unique(bins.values[rows], return_inverse=True)
    counts = np.bincount(value_codes, weights).astype(np.int64)
    second_moments = None
    if bins.second_moments is not None:
        second_moments = np.bincount(value_codes, weights * bins.second_moments[rows]) / counts
    return Distribution(
        values=values,
        counts=counts,
        cuts=values[1:],
        second_moments=second_moments,
        scaled=distributions.scaled,
        bounds=distributions.bounds,
    )
