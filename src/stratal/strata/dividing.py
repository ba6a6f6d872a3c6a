"""`stratify`: division of a population into strata, by any method.

Strata are intervals of a proxy, categories, a category crossed with intervals, clusters by k-means on feature
columns, or intervals of the expected influence of an estimand.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np

from stratal.arrays import FloatArray, IntArray, code_count
from stratal.errors import BudgetError, InputError, check_choice, suggest_names
from stratal.population import rules
from stratal.population.distribution import Distribution, LevelDistributions
from stratal.population.expressions import Expression
from stratal.population.influence import Influence
from stratal.population.population import Population, require_population
from stratal.protocols import Keywords
from stratal.strata import classical_boundaries, optimal_boundaries
from stratal.strata.mixture_boundaries import mixture_boundaries
from stratal.strata.strata import (
    Moments,
    Strata,
    check_proxy_range,
    expected_deviations,
    join_moments,
    moments_of_bins,
    moments_of_levels,
    moments_of_sizes,
)
from stratal.strata.whole_number_k_means import coordinate_bits, whole_number_k_means

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

    n_h = _real_proportional_allocation(moments.sizes, budget, minimum)
    if n_h is None:
        return float("inf")
    if moments.scaled:
        unit_variances = expected_deviations(moments) ** 2
    else:
        between = (moments.proxy_means - moments.weights @ moments.proxy_means) ** 2
        total = float(moments.weights @ (moments.proxy_variances + between))
        variance_shares = np.zeros(len(between))
        if total > 0:
            variance_shares = moments.proxy_variances / total
        # In units of the outcome's variance: the strata reduce only the part that the proxy explains.
        unit_variances = 1.0 - ASSUMED_CORRELATION**2 + ASSUMED_CORRELATION**2 * variance_shares
    variance = float(np.sum(moments.weights**2 * (1.0 / n_h - 1.0 / moments.sizes) * unit_variances))
    quantile = float(stdtrit(max(budget - len(n_h), 1), 0.975))  # of a 95% confidence interval
    return max(quantile**2 * variance, 0.0)


def _real_proportional_allocation(sizes: IntArray, budget: int, minimum: int) -> FloatArray | None:
    """Return the real-valued proportional n_h (H,) with a minimum; None if the budget does not allow it."""
    lower = np.minimum(minimum, sizes).astype(np.float64)
    if lower.sum() > budget or budget > sizes.sum():
        return None
    is_at_minimum = np.zeros(len(sizes), bool)
    while True:
        free_size = sizes[~is_at_minimum].sum()
        sampling_fraction = 0.0
        if free_size:
            sampling_fraction = (budget - lower[is_at_minimum].sum()) / free_size
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
    widths = np.array(
        [expected_squared_half_width(moments, budget, minimum=minimum) for moments in candidates]
    )
    if not np.isfinite(widths).any():
        min_budget = min(int(np.minimum(minimum, moments.sizes).sum()) for moments in candidates)
        allowed = f"{min_budget} to {candidates[0].size}"
        raise BudgetError(
            "the budget is too small for the minimum of draws per stratum", given=budget, allowed=allowed
        )
    return int(np.flatnonzero(widths <= widths.min() * (1.0 + WIDTH_TOLERANCE))[0])


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
        Minimum number of labels per stratum, if the number of strata depends on the budget.
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
        """Return the maximum number of strata, by the request and the budget.

        `share` is the share of the units that is divided.
        """
        if self.budget is None:
            assert self.n_strata is not None
            return self.n_strata
        max_within_budget = max(1, int(share * self.budget) // max(self.minimum, 1))
        if self.n_strata is None:
            return max_within_budget
        return min(self.n_strata, max_within_budget)

    def choose(self, candidates: Sequence[Moments]) -> tuple[int, str]:
        """Return the index of the best candidate for the budget, and a note."""
        assert self.budget is not None
        scaled_candidates = [
            replace(moments, scaled=self.scaled, bounds=self.bounds) for moments in candidates
        ]
        best = choose_candidate(scaled_candidates, self.budget, minimum=self.minimum)
        return best, f"{candidates[best].n_strata} strata were chosen for a budget of {self.budget}."


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

_NO_BOUNDARIES = np.empty(0, np.int64)
# Stratifications by cuts of one proxy.
CUT_METHODS = (*METHODS_FOR_ALL_NUMBERS, *METHODS_FOR_ONE_NUMBER)


def interval_strata(distribution: Distribution, column: str, request: StratificationRequest) -> Strata:
    """Return strata that are intervals of one column."""
    notes: tuple[str, ...] = ()
    if request.n_strata is None:
        candidates = candidate_boundaries(distribution, request.method, request.max_strata())
        best, note = request.choose([moments_of_bins(distribution, cut) for cut in candidates])
        boundaries = candidates[best]
        notes = (note,)
    else:
        boundaries = find_boundaries(distribution, request.method, request.n_strata)
        if len(boundaries) + 1 < request.n_strata:
            n_bins = len(distribution.values)
            count = len(boundaries) + 1
            reason = "the others would be empty, because equal values are not split"
            if distribution.exact and n_bins < request.n_strata:
                reason = f"the proxy has only {n_bins} distinct value{'s' if n_bins > 1 else ''}"
            notes = (f"{request.n_strata} strata were requested and {count} formed: {reason}.",)
    rule = rules.CutPoints(column=column, cuts=distribution.cuts[boundaries - 1])
    names = interval_names(column, rule.cuts)
    return Strata.from_moments(moments_of_bins(distribution, boundaries), rule, names, notes=notes)


# A part of the population that is divided separately (a level, or the pool of small levels): its
# distribution, None if it cannot be divided, and its moments as one stratum.
PopulationPart = tuple[Distribution | None, Moments]


def part_boundaries(
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
            boundaries_by_part.append([_NO_BOUNDARIES])
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
    for (distribution, moments_of_part), part_cuts in zip(parts, boundaries, strict=True):
        if distribution is None or len(part_cuts) == 0:
            moments.append(moments_of_part)
        else:
            moments.append(moments_of_bins(distribution, part_cuts))
    return join_moments(moments)


def find_boundaries(distribution: Distribution, method: str, n_strata: int) -> IntArray:
    """Return the boundaries of at most `n_strata` strata.

    Raises
    ------
    InputError
        For Neyman boundaries of a proxy that does not imply S_h.
    """
    check_proxy_range(distribution)
    if method == "neyman":
        implies_deviations = distribution.second_moments is not None
        allowed = "a proxy on the outcome's scale, with bounds or second moments"
    else:
        implies_deviations = method != "robust-neyman" or distribution.bounds is not None
        allowed = "a proxy on the scale of an outcome with bounds"
    if method in ("neyman", "robust-neyman") and not (distribution.scaled and implies_deviations):
        raise InputError(
            "Neyman cuts require the variance of the outcome around the proxy",
            given=f"method={method!r}",
            allowed=allowed,
            action="Use method='k-means', or calibrate the proxy first.",
        )
    if n_strata == 1:
        return np.empty(0, np.int64)
    if method in METHODS_FOR_ALL_NUMBERS:
        if n_strata >= len(distribution.values):
            return np.arange(1, len(distribution.values))
        if method == "k-means":  # the same boundaries as of the general function, in less time
            return optimal_boundaries.k_means_boundaries_for_number(distribution, n_strata)
        return METHODS_FOR_ALL_NUMBERS[method](distribution, n_strata)[-1]
    return METHODS_FOR_ONE_NUMBER[method](distribution, n_strata)


def candidate_boundaries(distribution: Distribution, method: str, max_strata: int) -> list[IntArray]:
    """Return the boundaries for each candidate number of strata, in increasing order of the number.

    The numbers are 1, …, `max_strata` for `METHODS_FOR_ALL_NUMBERS`, otherwise those of `CANDIDATE_NUMBERS`.
    """
    if method in METHODS_FOR_ALL_NUMBERS:
        # Called only for its validation.
        find_boundaries(distribution, method, 1)
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


# Maximum number of levels in the name of a pooled stratum; the number of the others follows.
_MAX_NAMED_LEVELS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """G groups of the L levels of a group column: each level, or several small levels as one pool.

    Parameters
    ----------
    rule : Categories
        Assigns the levels to the groups.
    sizes : int (L,)
        Units in each level.
    notes : tuple of str
    """

    rule: rules.Categories
    sizes: IntArray
    notes: tuple[str, ...]

    def members(self) -> list[list[int]]:
        """Return the indices of the levels in each of the G groups."""
        indices: list[list[int]] = [[] for _ in range(self.rule.n_strata)]
        for level_index, code in enumerate(self.rule.codes.tolist()):
            indices[code].append(level_index)
        return indices

    def names(self) -> list[str]:
        """Return a readable name of each group."""
        levels = self.rule.levels
        return [level_name(self.rule.column, [levels[i] for i in members]) for members in self.members()]


def pooled_groups(levels: dict[str, int], column: str, request: StratificationRequest) -> Groups:
    """Return the groups of a column. Levels with too small a share of the budget are pooled.

    Without a budget, no level is pooled. `levels` maps each level to its number of units.
    """
    sizes = np.array(list(levels.values()), np.int64)
    codes = np.arange(len(sizes))
    if request.budget is not None:
        codes = pool_small_levels(sizes, request.budget, request.minimum)
    rule = rules.Categories(column=column, levels=tuple(levels), codes=codes)
    n_pooled = len(sizes) - int(codes.max())
    notes = (f"{n_pooled} small categories of '{column}' were pooled into one.",) if n_pooled > 1 else ()
    return Groups(rule=rule, sizes=sizes, notes=notes)


def category_strata(
    population: Population, by: str, request: StratificationRequest, distributions: LevelDistributions | None
) -> Strata:
    """Return the levels of the column `by` as strata. Without a proxy, `distributions` is None."""
    if distributions is None:
        groups = pooled_groups(population.levels(by), by, request)
        moments = moments_of_sizes(groups.sizes)
    else:
        groups = pooled_groups(distributions.sizes, by, request)
        moments = moments_of_levels(distributions)
    codes = groups.rule.codes
    if not np.array_equal(codes, np.arange(len(codes))):
        moments = moments.pool(codes)
    return Strata.from_moments(moments, groups.rule, tuple(groups.names()), notes=groups.notes)


def crossed_strata(population: Population, by: str, column: str, request: StratificationRequest) -> Strata:
    """Return the levels of `by` crossed with intervals of a proxy; a pool of levels is divided as one."""
    distributions = population.distributions(by, column)
    if request.n_strata == 1:
        # Called only for its validation.
        find_boundaries(next(iter(distributions.values())), request.method, 1)
        return category_strata(population, by, request, distributions)
    groups = pooled_groups(distributions.sizes, by, request)
    all_moments = moments_of_levels(distributions)
    parts: list[PopulationPart] = []
    for members in groups.members():
        moments_of_members = all_moments.select(np.array(members))
        if len(members) != 1:
            moments_of_members = moments_of_members.pool(np.zeros(len(members), np.int64))
        parts.append((pooled_distribution(distributions, np.array(members)), moments_of_members))
    boundaries, moments, notes = part_boundaries(parts, request)
    inner: list[rules.CutPoints] = []
    names: list[str] = []
    for (distribution, _), part_cuts, group_name in zip(parts, boundaries, groups.names(), strict=True):
        cuts = np.empty(0)
        if distribution is not None:
            cuts = distribution.cuts[part_cuts - 1]
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

    It is None for several levels if one of them is a histogram, because bins of different widths have no
    common cuts.
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


def level_name(column: str, levels: Sequence[str]) -> str:
    """Return a name for a stratum of one or several levels of a group column."""
    if len(levels) == 1:
        return f"{column} = {levels[0]}"
    named_levels = list(levels[:_MAX_NAMED_LEVELS])
    if len(levels) > len(named_levels):
        named_levels.append(f"and {len(levels) - len(named_levels)} more")
    return f"{column} in {{{', '.join(named_levels)}}}"


def pool_small_levels(sizes: IntArray, budget: int, minimum: int) -> IntArray:
    """Return the group of each level (L,). Levels with a proportional n_h below `minimum` are pooled.

    The pool is the last group. While its own proportional n_h is below `minimum`, the next smallest level is
    added.
    """
    min_size = int(np.ceil(minimum * sizes.sum() / budget))
    n_small = int(np.sum(sizes < min_size))
    if n_small == 0:
        return np.arange(len(sizes))
    order = np.argsort(sizes, kind="stable")
    is_large_enough = np.cumsum(sizes[order]) >= min_size
    if is_large_enough.any():
        n_pooled = max(n_small, int(np.argmax(is_large_enough)) + 1)
    else:
        n_pooled = len(sizes)
    is_pooled = np.zeros(len(sizes), bool)
    is_pooled[order[:n_pooled]] = True
    return np.asarray(np.where(is_pooled, np.sum(~is_pooled), np.cumsum(~is_pooled) - 1))


def count_groups(sizes: IntArray, budget: int, minimum: int) -> int:
    """Return the number of groups of L levels: fewer than L only if the budget is below their minima."""
    if int(np.minimum(minimum, sizes).sum()) <= budget:
        return len(sizes)
    return code_count(pool_small_levels(sizes, budget, minimum))


# Fits at most the given number of clusters to rows (n, d) of the feature columns with these names.
ClusterFit = Callable[[FloatArray, tuple[str, ...], int], rules.NearestCentre]

# Maximum number of rows to which clusters are fitted; of more rows, evenly spaced ones are used.
MAX_FITTED_ROWS = 262_144

# Number of columns that one sort compares.
_SORT_KEYS = 8


def fit_centres(
    rows: FloatArray,
    names: tuple[str, ...],
    n_strata: int,
    *,
    clusterer: object = None,
    seed: int = 0,
    standardise: bool = True,
) -> rules.NearestCentre:
    """Fit k-means or another clusterer to rows; the rule assigns every unit to the nearest cluster mean.

    The rule can be evaluated in a query. It reproduces the clusters of k-means, and those of other clusterers
    if they are approximately spherical and of equal size. Rows with the cluster label −1 (noise) belong to no
    cluster in the fit.

    Parameters
    ----------
    rows : float (n, d)
    names : tuple of str (d,)
    n_strata : int
        Maximum number of centres of k-means; there are fewer if there are fewer distinct rows.
    clusterer : object, optional
        An object with scikit-learn's `fit_predict`, which determines the number of clusters. It is copied.
    seed : int
        Seed of the initial centres of k-means.
    standardise : bool
        Whether each column is divided by its standard deviation first. Set it to False for embeddings.

    Raises
    ------
    InputError
        If the clusterer cannot be fitted, or finds no cluster.
    """
    spans = rows.max(axis=0) - rows.min(axis=0)
    if standardise:
        scale = rules.exact_deviations(rows, spans)
    else:
        scale = np.ones(len(names))
    if clusterer is None:
        grid = rules.IntegerGrid.of(rows.min(axis=0), rows.max(axis=0), scale, coordinate_bits(*rows.shape))
        centres = grid.values(whole_number_k_means(grid.coordinates(rows), n_strata, seed))
        return rules.NearestCentre(names=names, centres=centres, scale=scale)
    if not hasattr(clusterer, "fit_predict"):
        raise InputError(
            "this clusterer cannot be fitted",
            allowed="a clusterer with the method fit_predict, as in scikit-learn",
        )
    scaled = rows / scale
    labels = np.asarray(copy.deepcopy(clusterer).fit_predict(scaled))
    cluster_labels = [label for label in np.unique(labels) if label >= 0]
    if labels.shape != (len(rows),) or not cluster_labels:
        raise InputError("the clusterer found no cluster", action="Change the settings of the clusterer.")
    centres = np.stack([scaled[labels == label].mean(axis=0) for label in cluster_labels])
    return rules.NearestCentre(names=names, centres=np.unique(centres, axis=0) * scale, scale=scale)


def rows_of_levels(
    population: Population, by: str | None, sizes: Mapping[str, int], names: tuple[str, ...]
) -> dict[str, FloatArray]:
    """Return the feature rows (n, d) of each level, sorted by their values, in one pass over the population.

    The order of the rows of the population therefore does not affect clusters. Without `by`, all units have
    the level "". If there are more than `MAX_FITTED_ROWS` units, evenly spaced rows of each level are
    returned.

    Parameters
    ----------
    population : Population
    by : str, optional
        Group column.
    sizes : mapping of level to int
        Number of units in each level.
    names : tuple of str (d,)
        Feature columns.
    """
    strides = dict.fromkeys(sizes, 1)
    if sum(sizes.values()) > MAX_FITTED_ROWS:
        strides = {level: -(-size * len(sizes) // MAX_FITTED_ROWS) for level, size in sizes.items()}
    counts_so_far = dict.fromkeys(sizes, 0)
    rows_by_level: dict[str, list[FloatArray]] = {level: [] for level in sizes}
    for batch in population.batches(names if by is None else (by, *names)):
        matrix = rules.feature_rows(batch, names)
        if not np.isfinite(matrix).all():
            column = names[int(np.flatnonzero(~np.isfinite(matrix).all(axis=0))[0])]
            problem = f"feature column '{column}' contains values that are not finite numbers"
            raise InputError(
                problem, action="Fill in the missing values, or leave the column out of features=."
            )
        if by is None:
            levels = np.full(len(matrix), "")
        else:
            levels = np.asarray(batch[by]).astype(str)
        levels_present, codes = np.unique(levels, return_inverse=True)
        rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        for level, level_rows in zip(levels_present.tolist(), rows, strict=True):
            if level in rows_by_level:
                selected_rows = level_rows[-counts_so_far[level] % strides[level] :: strides[level]]
                rows_by_level[level].append(matrix[selected_rows])
                counts_so_far[level] += len(level_rows)
    rows_joined = {level: np.concatenate(parts) for level, parts in rows_by_level.items()}
    return {level: rows[row_order(rows)] for level, rows in rows_joined.items()}


def row_order(rows: FloatArray) -> IntArray:
    """Return the lexicographic order (n,) of rows (n, d): by the first column, then the second, and so on."""
    order = np.lexsort(rows.T[:_SORT_KEYS][::-1])
    # Most rows differ in the first columns. Only rows with ties there are compared by the next columns.
    for start in range(_SORT_KEYS, rows.shape[1], _SORT_KEYS):
        differs_from_previous = np.any(np.diff(rows[order, :start], axis=0) != 0, axis=1)
        group = np.concatenate([[0], np.cumsum(differs_from_previous)])
        tied = np.flatnonzero(np.bincount(group)[group] > 1)
        if len(tied) == 0:
            break
        keys = rows[order[tied], start : start + _SORT_KEYS].T[::-1]
        order[tied] = order[tied][np.lexsort([*keys, group[tied]])]
    return order


def cluster_columns(population: Population, features: Sequence[str] | None) -> tuple[str, ...]:
    """Return the feature columns for clustering: `features`, or all.

    Raises
    ------
    InputError
        If there are none, or a name is unknown.
    """
    if not population.feature_names:
        raise InputError(
            "this population has no feature columns",
            action="Name the columns in features= (--features COL,…).",
        )
    names = tuple(population.feature_names if features is None else features)
    unknown = [name for name in names if name not in population.feature_names]
    if unknown or not names:
        if unknown:
            problem = f"no such feature column: {unknown[0]!r}"
        else:
            problem = "no feature column was named"
        raise InputError(
            problem, allowed=suggest_names(unknown[0] if unknown else "", population.feature_names)
        )
    return names


def cluster_strata(
    population: Population,
    by: str | None,
    names: tuple[str, ...],
    fit: ClusterFit,
    proxy: str | None,
    request: StratificationRequest,
) -> Strata:
    """Return clusters of all units, or of each level of `by`, in the order of their mean proxies."""
    if by is None:
        rows = rows_of_levels(population, None, {"": population.size}, names)[""]

        def make_clusters(number: int) -> Strata:
            return _clusters_as_strata(population, fit(rows, names, number), proxy, number)

        return _choose_strata(make_clusters, request)
    # A pool of small levels is one stratum.
    groups = pooled_groups(population.levels(by), by, request)
    group_of_single_level = {
        groups.rule.levels[members[0]]: group
        for group, members in enumerate(groups.members())
        if len(members) == 1
    }
    sizes = dict(zip(groups.rule.levels, groups.sizes.tolist(), strict=True))
    sizes_of_single_levels = {level: sizes[level] for level in group_of_single_level}
    rows_by_level = rows_of_levels(population, by, sizes_of_single_levels, names)

    def make_clusters_by_level(number: int) -> Strata:
        inner: list[rules.Rule] = [rules.Everything()] * groups.rule.n_strata
        for level, group in group_of_single_level.items():
            n_clusters = min(number, request.max_strata(sizes[level] / population.size), sizes[level])
            if n_clusters > 1:
                inner[group] = fit(rows_by_level[level], names, n_clusters)
        rule = rules.Crossed(categories=groups.rule, inner=tuple(inner))
        return _crossed_clusters_as_strata(population, rule, groups, proxy)

    return _choose_strata(make_clusters_by_level, request)


def _choose_strata(make_strata: Callable[[int], Strata], request: StratificationRequest) -> Strata:
    """Return the strata of the requested number, or of the best number for the budget, with a note.

    `make_strata` returns the strata for a number of strata.
    """
    if request.n_strata is not None:
        return make_strata(request.n_strata)
    candidates = [make_strata(number) for number in CANDIDATE_NUMBERS if number <= request.max_strata()]
    best, note = request.choose(candidates)
    return replace(candidates[best], notes=(*candidates[best].notes, note))


def moments_by_rule(population: Population, rule: rules.Rule, proxy: str | None) -> Moments:
    """Return the moments of the strata of any rule, in one pass over the population. Sizes may be zero."""
    n_strata = rule.n_strata
    if not population.proxies:
        return moments_of_sizes(population.summarise(rule).sizes)
    name = population.proxy_info(proxy).name
    distribution = population.distribution(name)
    # Differences from the mean keep more digits of the variances.
    centre = distribution.mean
    sums = np.zeros((4, n_strata))  # of 1, ẑ − centre, (ẑ − centre)² and Var(z | x)
    for batch in population.batches(tuple(dict.fromkeys((*rule.columns, name)))):
        codes = rule.assign(batch)
        values = np.asarray(batch[name], np.float64)
        shifted = values - centre
        bin_of_unit = np.searchsorted(distribution.cuts, values, side="right")
        conditional_variances = distribution.conditional_variances[bin_of_unit]
        for row, terms in enumerate((None, shifted, shifted**2, conditional_variances)):
            sums[row] += np.bincount(codes, terms, minlength=n_strata)
    counts = np.maximum(sums[0], 1.0)
    means = sums[1] / counts
    return Moments(
        sizes=sums[0].astype(np.int64),
        proxy_means=means + centre,
        proxy_variances=np.maximum(sums[2] / counts - means**2, 0.0),
        conditional_variances=sums[3] / counts,
    )


def _clusters_as_strata(
    population: Population, rule: rules.NearestCentre, proxy: str | None, requested: int
) -> Strata:
    """Return the nonempty clusters as strata, in the order of their mean proxies."""
    notes: tuple[str, ...] = ()
    if rule.n_strata < requested:
        notes = (f"{requested} strata were requested and {rule.n_strata} formed: too few units differ.",)
    moments = moments_by_rule(population, rule, proxy)
    # Means are rounded before they are sorted, because the last digits of sums depend on the batches.
    order = np.argsort(rules.round_to_digits(moments.proxy_means), kind="stable")
    order = order[moments.sizes[order] > 0]
    names = tuple(f"cluster {number + 1}" for number in range(len(order)))
    return Strata.from_moments(
        moments.select(order), replace(rule, centres=rule.centres[order]), names, notes=notes
    )


def _crossed_clusters_as_strata(
    population: Population, rule: rules.Crossed, groups: Groups, proxy: str | None
) -> Strata:
    """Return the nonempty clusters within groups as strata."""
    moments = moments_by_rule(population, rule, proxy)
    is_nonempty = moments.sizes > 0
    inner: list[rules.Rule] = []
    names: list[str] = []
    for name, group_rule, offset in zip(groups.names(), rule.inner, rule.offsets.tolist(), strict=True):
        nonempty_rule = group_rule
        if isinstance(group_rule, rules.NearestCentre):
            is_retained = is_nonempty[offset : offset + group_rule.n_strata]
            nonempty_rule = replace(group_rule, centres=group_rule.centres[is_retained])
        inner.append(nonempty_rule)
        if nonempty_rule.n_strata > 1:
            names += [f"{name}, cluster {number + 1}" for number in range(nonempty_rule.n_strata)]
        else:
            names.append(name)
    crossed_rule = replace(rule, inner=tuple(inner))
    nonempty_moments = moments.select(np.flatnonzero(is_nonempty))
    return Strata.from_moments(nonempty_moments, crossed_rule, tuple(names), notes=groups.notes)


# Values of `method` in `stratify`.
STRATIFICATION_METHODS = (*CUT_METHODS, "category", "features", "none")


def stratify(
    population: Population,
    method: str = "k-means",
    n_strata: int | Literal["auto"] = DEFAULT_STRATA,
    *,
    by: str | None = None,
    proxy: str | None = None,
    features: Sequence[str] | None = None,
    clusterer: object = None,
    budget: int | None = None,
    minimum: int = 2,
    standardise: bool = True,
    seed: int = 0,
    influence: Influence | None = None,
) -> Strata:
    """Divide a population into strata.

    Parameters
    ----------
    population : Population
        N units.
    method : str
        Intervals of the proxy: `"k-means"` (exact; optimal for proportional allocation), `"neyman"` (exact;
        optimal for Neyman allocation), `"robust-neyman"` (for Neyman allocation with a proxy that may be
        miscalibrated), `"equal-size"`, `"equal-width"`, `"cum-sqrt-f"`, `"cum-cbrt-f"`,
        `"weighted-mean"`, `"gaussian-mixture"`. Otherwise `"features"` (k-means on feature columns),
        `"category"` (the levels of `by`), or `"none"` (one stratum).
    n_strata : int or "auto"
        Number of strata (within each level, if crossed), or `"auto"` for the number with the shortest
        expected interval for `budget`.
    by : str, optional
        A group column. With any method but `"category"`, each of its levels is divided separately.
    proxy : str, optional
        Name of the proxy. Default: the first proxy of the population.
    features : sequence of str, optional
        Feature columns for `method="features"`. Default: all.
    clusterer : object, optional
        For `method="features"`: a scikit-learn clusterer, or an object with its `fit_predict`, instead of
        k-means. It determines the number of clusters, and each unit is assigned to the nearest cluster mean.
    budget : int, optional
        Labelling budget (number of labels); required for `"auto"`. With `by`, levels whose proportional share
        of it is below `minimum` are pooled into one, and the share limits the number of strata of a level.
    minimum : int
        Minimum number of labels per stratum, for the choice of the number of strata and for pooling.
    standardise : bool
        Whether features are divided by their standard deviations. Set it to False for embeddings.
    seed : int
        Seed of k-means on features. The other methods use no random numbers.
    influence : Influence, optional
        Divide by the influence of an estimand, `estimand.influence(population)`, instead of a proxy. Strata
        are intervals of E[u | x] within its cells. Strata in which u is known need no label.

    Returns
    -------
    Strata
        There are fewer than requested if there are fewer distinct values; `notes` then contains a note.

    Raises
    ------
    InputError
        For an unknown method or column, a missing proxy, or Neyman boundaries of a proxy that is not on the
        outcome's scale.
    BudgetError
        If the budget is below the minimum of a single stratum.

    Examples
    --------
    >>> from stratal.population import Population
    >>> population = Population.from_arrays(proxy=[0.1, 0.2, 0.8, 0.9])
    >>> strata = stratify(population, "k-means", 2)
    >>> strata.names, strata.sizes
    (('proxy < 0.8', 'proxy >= 0.8'), array([2, 2]))
    """
    population = require_population(population, "stratify")
    if influence is not None:
        options = {"method": method, "n_strata": n_strata, "budget": budget, "minimum": minimum}
        return _stratify_by_influence(population, influence, options)
    info = None
    # Without a proxy, only a declaration of the labels determines the bounds.
    declared_bounds = population.label_outcome.bounds
    if population.proxies:
        info = population.proxy_info(proxy)
        declared_bounds = info.bounds
    bounds = (-math.inf, math.inf) if declared_bounds is None else declared_bounds
    check_choice("stratification", method, STRATIFICATION_METHODS)
    is_whole_number = (
        isinstance(n_strata, int | np.integer) and not isinstance(n_strata, bool) and n_strata >= 1
    )
    if n_strata != "auto" and not is_whole_number:
        raise InputError("n_strata is invalid", given=repr(n_strata), allowed="1, 2, … or 'auto'")
    if not is_whole_number and budget is None and method not in ("none", "category"):
        raise InputError("n_strata='auto' requires a budget", action="Give budget=, or a number of strata.")
    for name, value in (("budget", budget), ("minimum", minimum)):
        if value is not None and value < 1:
            raise InputError(f"{name} is too small", given=value, allowed="1 or more")
    request = StratificationRequest(
        method=method,
        n_strata=int(n_strata) if is_whole_number else None,
        budget=budget,
        minimum=minimum,
        scaled=info is not None and info.scaled,
        bounds=bounds,
    )
    if (method == "category" and by is None) or (method == "none" and by is not None):
        raise InputError(f"method={method!r} with by={by!r}", action="Give by= (--by COL) for 'category'.")
    if by is not None:
        population.require_group(by)
    if clusterer is not None and method != "features":
        problem = "a clusterer can only be used with method='features'"
        raise InputError(problem, given=f"method={method!r}", action="Leave clusterer= out.")
    if method == "features":
        names = cluster_columns(population, features)
        fit = partial(fit_centres, clusterer=clusterer, seed=seed, standardise=standardise)
        if clusterer is not None and by is None:  # the clusterer determines the number of clusters
            request = replace(request, n_strata=1)
        strata = cluster_strata(population, by, names, fit, proxy, request)
    elif method == "none" and not population.proxies:
        strata = Strata.from_moments(moments_of_sizes(np.array([population.size])))
    elif method == "none":
        strata = Strata.from_moments(moments_of_bins(population.distribution(proxy), np.empty(0, np.int64)))
    elif method == "category":
        if population.proxies:
            distributions = population.distributions(by or "", proxy)
        else:
            distributions = None
        strata = category_strata(population, by or "", request, distributions)
    else:
        column = population.proxy_info(proxy).name
        if by is None:
            strata = interval_strata(population.distribution(column), column, request)
        else:
            strata = crossed_strata(population, by, column, request)
    return replace(
        strata,
        scaled=request.scaled,
        bounds=bounds,
        method=method if by is None or method == "category" else f"{method} by {by}",
        population=population,
    )


def _stratify_by_influence(population: Population, influence: Influence, options: Keywords) -> Strata:
    """Return strata that are intervals of the expected influence within its cells.

    The rule of the strata is a formula of the columns of the population.
    """
    method = options["method"]
    if method not in (*CUT_METHODS, "none"):
        problem = "an influence can only be divided into intervals"
        raise InputError(problem, given=f"method={method!r}", allowed="an interval method")
    view = influence.to_population(population)
    has_cells = len(view.levels(rules.CELL)) > 1 and method != "none"
    strata = stratify(view, by=rules.CELL if has_cells else None, proxy=rules.INFLUENCE, **options)
    known_tests: tuple[Expression | None, ...] = ()
    if influence.known_cells and method != "none":
        cells = list(view.levels(rules.CELL)) * strata.n_strata
        if isinstance(strata.rule, rules.Categories):
            cells = list(strata.rule.levels)
        if isinstance(strata.rule, rules.Crossed):
            counts = [cell_rule.n_strata for cell_rule in strata.rule.inner]
            cells = np.repeat(strata.rule.categories.levels, counts).tolist()
        known_tests = tuple(influence.cells.test_of(c) if c in influence.known_cells else None for c in cells)
    (values,) = (batch[rules.INFLUENCE] for batch in view.batches((rules.INFLUENCE,), view.size))
    inner = rules.cut_between(strata.rule, np.unique(values))
    rule = rules.Derived(inner=inner, cells=influence.cells, influence=influence.mean)
    return replace(
        strata,
        rule=rule if strata.n_strata > 1 else rules.Everything(),
        names=tuple(name.removeprefix(f"{rules.CELL} = ") for name in strata.names),
        known_influences=known_tests,
        population=population,
    )
