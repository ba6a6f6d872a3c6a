"""`stratify`: one verb for every way of dividing a population.

Strata are intervals of a proxy, categories, a category crossed with intervals, clusters by k-means on feature
columns, or intervals of what an estimand's influence is expected to be.
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
from stratal.strata import boundaries as cutting
from stratal.strata.strata import (
    Moments,
    Strata,
    expected_deviations,
    join_moments,
    of_bins,
    of_level_distributions,
    of_sizes,
    refuse_widest,
)
from stratal.strata.whole_number_k_means import coordinate_bits, whole_number_k_means

# Strata of a proxy unless another number is asked for; plans and simulations of means use the same one. Plans
# of other estimands have `most_strata` of `stratal.estimation.anticipated`.
DEFAULT_STRATA = 10

# More strata than this are never chosen, though they can be asked for.
MOST_STRATA = 50

# Numbers that are tried where each needs a run of its own.
NUMBERS_TRIED = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, MOST_STRATA)

# Strata are added as long as all together they shorten the squared interval by more than this share.
WORTHWHILE = 0.005

# Correlation with the outcome that is assumed of a proxy whose scale is unknown.
MARGIN_CORRELATION = 0.5


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
    """
    # SciPy's special functions are imported only if the number of strata is searched for.
    from scipy.special import stdtrit

    draws = _proportional_draws(moments.sizes, budget, minimum)
    if draws is None:
        return float("inf")
    if moments.scaled:
        unit_variances = expected_deviations(moments) ** 2
    else:
        between = (moments.proxy_means - moments.weights @ moments.proxy_means) ** 2
        total = float(moments.weights @ (moments.proxy_variances + between))
        if total > 0:
            share = moments.proxy_variances / total
        else:
            share = np.zeros(len(between))
        unit_variances = 1.0 - MARGIN_CORRELATION**2 + MARGIN_CORRELATION**2 * share
    variance = float(np.sum(moments.weights**2 * (1.0 / draws - 1.0 / moments.sizes) * unit_variances))
    quantile = float(stdtrit(max(budget - len(draws), 1), 0.975))  # of an interval of 95%
    return max(quantile**2 * variance, 0.0)


def _proportional_draws(sizes: IntArray, budget: int, minimum: int) -> FloatArray | None:
    """Return real-valued proportional draws, bounded below, that sum to `budget`; `None` if impossible."""
    lower = np.minimum(minimum, sizes).astype(np.float64)
    if lower.sum() > budget or budget > sizes.sum():
        return None
    is_bounded = np.zeros(len(sizes), bool)
    while True:
        free = sizes[~is_bounded].sum()
        if free:
            rate = (budget - lower[is_bounded].sum()) / free
        else:
            rate = 0.0
        short = ~is_bounded & (sizes * rate < lower)
        if not short.any():
            return np.asarray(np.where(is_bounded, lower, sizes * rate))
        is_bounded |= short


def choose_number(candidates: Sequence[Moments], budget: int, *, minimum: int = 2) -> int:
    """Return the first candidate whose expected interval is within `WORTHWHILE` of the shortest.

    Raises
    ------
    BudgetError
        If the budget gives no candidate its minimum.
    """
    scores = np.array([expected_squared_half_width(entry, budget, minimum=minimum) for entry in candidates])
    if not np.isfinite(scores).any():
        needed = min(int(np.minimum(minimum, entry.sizes).sum()) for entry in candidates)
        allowed = f"{needed} to {candidates[0].size}"
        raise BudgetError(
            "the budget is too small for the minimum of draws per stratum", given=budget, allowed=allowed
        )
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

    def most(self, share: float = 1.0) -> int:
        """Return the most strata of a part with this share of the units: as asked, as the budget bears."""
        if self.budget is None:
            assert self.n_strata is not None
            return self.n_strata
        bearable = max(1, int(share * self.budget) // max(self.minimum, 1))
        if self.n_strata is None:
            return bearable
        return min(self.n_strata, bearable)

    def chosen(self, candidates: Sequence[Moments]) -> tuple[int, str]:
        """Return the number of the candidate to take at the budget, and a note."""
        assert self.budget is not None
        scaled_candidates = [replace(entry, scaled=self.scaled, bounds=self.bounds) for entry in candidates]
        best = choose_number(scaled_candidates, self.budget, minimum=self.minimum)
        return best, f"{candidates[best].n_strata} strata were chosen for a budget of {self.budget}."


# Methods that find the boundaries of 1, 2, …, H strata in one run.
ALL_AT_ONCE: dict[str, Callable[[Distribution, int], list[IntArray]]] = {
    "k-means": cutting.k_means_boundaries,
    "neyman": cutting.neyman_boundaries,
    "robust-neyman": cutting.robust_neyman_boundaries,
}

# Methods that find the boundaries of a given number of strata.
ONE_BY_ONE: dict[str, Callable[[Distribution, int], IntArray]] = {
    "equal-size": cutting.equal_size,
    "equal-width": cutting.equal_width,
    "cum-sqrt-f": partial(cutting.cumulative_root, power=1 / 2),
    "cum-cbrt-f": partial(cutting.cumulative_root, power=1 / 3),
    "weighted-mean": cutting.weighted_mean,
    "gaussian-mixture": cutting.mixture_boundaries,
}

_NO_BOUNDARIES = np.empty(0, np.int64)
INTERVAL_METHODS = (*ALL_AT_ONCE, *ONE_BY_ONE)


def interval_strata(distribution: Distribution, column: str, request: StratificationRequest) -> Strata:
    """Return strata that are intervals of one column."""
    notes: tuple[str, ...] = ()
    if request.n_strata is None:
        table = candidate_boundaries(distribution, request.method, request.most())
        best, note = request.chosen([of_bins(distribution, boundaries) for boundaries in table])
        boundaries = table[best]
        notes = (note,)
    else:
        boundaries = boundaries_of(distribution, request.method, request.n_strata)
        if len(boundaries) + 1 < request.n_strata:
            n_bins = len(distribution.values)
            count = len(boundaries) + 1
            reason = "the others would be empty, because equal values are not split"
            if distribution.exact and n_bins < request.n_strata:
                reason = f"the proxy has only {n_bins} distinct value{'s' if n_bins > 1 else ''}"
            notes = (f"{request.n_strata} strata were requested and {count} formed: {reason}.",)
    rule = rules.CutPoints(column=column, cuts=distribution.cuts[boundaries - 1])
    names = interval_names(column, rule.cuts)
    return Strata.of(of_bins(distribution, boundaries), rule, names, notes=notes)


# A part of a population that is divided on its own, a level or a pool of small ones: its distribution, None
# if it cannot be cut, and its moments as one stratum.
PopulationPart = tuple[Distribution | None, Moments]


def part_boundaries(
    parts: Sequence[PopulationPart], request: StratificationRequest
) -> tuple[list[IntArray], Moments, tuple[str, ...]]:
    """Return the boundaries within each part, the moments of all strata, and notes.

    An open number of strata is the same for every part, as far as its draws suffice.
    """
    total = sum(int(moments_of_part.sizes[0]) for _, moments_of_part in parts)
    tables = []
    for distribution, moments_of_part in parts:
        most = request.most(int(moments_of_part.sizes[0]) / total)
        if distribution is None or most == 1:
            tables.append([_NO_BOUNDARIES])
        elif request.n_strata is None:
            tables.append(candidate_boundaries(distribution, request.method, most))
        else:
            tables.append([boundaries_of(distribution, request.method, most)])
    numbers = range(max(len(table) for table in tables))
    picks = [[table[min(number, len(table) - 1)] for table in tables] for number in numbers]
    candidates = [
        join_moments(
            [
                of_bins(distribution, cut) if distribution is not None and len(cut) else moments_of_part
                for (distribution, moments_of_part), cut in zip(parts, pick, strict=True)
            ]
        )
        for pick in picks
    ]
    if request.n_strata is None:
        best, note = request.chosen(candidates)
        return picks[best], candidates[best], (note,)
    short = sum(len(entry) + 1 < request.n_strata for entry in picks[0])
    few = f"{short} of {len(parts)} groups have fewer than {request.n_strata} strata."
    return picks[0], candidates[0], (few,) if short else ()


def boundaries_of(distribution: Distribution, method: str, n_strata: int) -> IntArray:
    """Return the boundaries of at most `n_strata` strata.

    Raises
    ------
    InputError
        If Neyman cuts are asked of a proxy without a plug-in for S_h.
    """
    refuse_widest(distribution)
    if method == "neyman":
        has_spread = distribution.second_moments is not None
        allowed = "a proxy on the outcome's scale, with bounds or second moments"
    else:
        has_spread = method != "robust-neyman" or distribution.bounds is not None
        allowed = "a proxy on the scale of an outcome with bounds"
    if method in ("neyman", "robust-neyman") and not (distribution.scaled and has_spread):
        raise InputError(
            "Neyman cuts require the variance of the outcome around the proxy",
            given=f"method={method!r}",
            allowed=allowed,
            action="Use method='k-means', or calibrate the proxy first.",
        )
    if n_strata == 1:
        return np.empty(0, np.int64)
    if method in ALL_AT_ONCE:
        if n_strata >= len(distribution.values):
            return np.arange(1, len(distribution.values))
        if method == "k-means":
            return cutting.k_means_cuts(distribution, n_strata)
        return ALL_AT_ONCE[method](distribution, n_strata)[-1]
    return ONE_BY_ONE[method](distribution, n_strata)


def candidate_boundaries(distribution: Distribution, method: str, most: int) -> list[IntArray]:
    """Return the boundaries to choose from when the number of strata is open, the fewest first.

    Every number up to `most` for methods that find all at once, else those of `NUMBERS_TRIED`.
    """
    if method in ALL_AT_ONCE:
        boundaries_of(distribution, method, 1)
        return ALL_AT_ONCE[method](distribution, min(most, MOST_STRATA))
    return [boundaries_of(distribution, method, number) for number in NUMBERS_TRIED if number <= most]


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


# Levels that the name of a pooled stratum lists; the others are counted.
_SHOWN_LEVELS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The levels of a group column, small ones possibly pooled.

    Parameters
    ----------
    rule : Categories
    sizes : int (L,)
        Units in each level.
    notes : tuple of str
    """

    rule: rules.Categories
    sizes: IntArray
    notes: tuple[str, ...]

    def members(self) -> list[list[int]]:
        """Return the positions of the levels in each of the G groups."""
        result: list[list[int]] = [[] for _ in range(self.rule.n_strata)]
        for position, code in enumerate(self.rule.codes.tolist()):
            result[code].append(position)
        return result

    def names(self) -> list[str]:
        """Return a readable name of each group."""
        levels = self.rule.levels
        return [level_name(self.rule.column, [levels[i] for i in members]) for members in self.members()]


def pooled_groups(levels: dict[str, int], column: str, request: StratificationRequest) -> Groups:
    """Return the groups of a column: its levels, those too small for their draws in one pool.

    What a level's draws are follows from the budget; without one nothing is too small.
    """
    sizes = np.array(list(levels.values()), np.int64)
    codes = np.arange(len(sizes))
    if request.budget is not None:
        codes = levels_within_budget(sizes, request.budget, request.minimum)
    rule = rules.Categories(column=column, levels=tuple(levels), codes=codes)
    n_pooled = len(sizes) - int(codes.max())
    notes = (f"{n_pooled} small categories of '{column}' were pooled into one.",) if n_pooled > 1 else ()
    return Groups(rule=rule, sizes=sizes, notes=notes)


def category_strata(
    population: Population, by: str, request: StratificationRequest, distributions: LevelDistributions | None
) -> Strata:
    """Return the strata of an existing category, with the moments of the proxy where there is one."""
    if distributions is None:
        groups = pooled_groups(population.levels(by), by, request)
        moments = of_sizes(groups.sizes)
    else:
        groups = pooled_groups(distributions.sizes, by, request)
        moments = of_level_distributions(distributions)
    codes = groups.rule.codes
    if np.array_equal(codes, np.arange(len(codes))):
        pooled = moments
    else:
        pooled = moments.pooled(codes)
    return Strata.of(pooled, groups.rule, tuple(groups.names()), notes=groups.notes)


def crossed_strata(population: Population, by: str, column: str, request: StratificationRequest) -> Strata:
    """Return a category crossed with intervals of a proxy; a pool of small categories is cut as one."""
    distributions = population.distributions(by, column)
    if request.n_strata == 1:
        boundaries_of(next(iter(distributions.values())), request.method, 1)
        return category_strata(population, by, request, distributions)
    groups = pooled_groups(distributions.sizes, by, request)
    all_moments = of_level_distributions(distributions)
    parts: list[PopulationPart] = []
    for members in groups.members():
        moments_of_members = all_moments.part(np.array(members))
        if len(members) != 1:
            moments_of_members = moments_of_members.pooled(np.zeros(len(members), np.int64))
        parts.append((pooled_distribution(distributions, np.array(members)), moments_of_members))
    boundaries, moments, notes = part_boundaries(parts, request)
    inner: list[rules.CutPoints] = []
    names: list[str] = []
    for (distribution, _), cut, group_name in zip(parts, boundaries, groups.names(), strict=True):
        rule = rules.CutPoints(
            column=column, cuts=np.empty(0) if distribution is None else distribution.cuts[cut - 1]
        )
        inner.append(rule)
        if len(rule.cuts):
            pieces = interval_names(column, rule.cuts)
        else:
            pieces = ("",)
        names.extend(f"{group_name}, {piece}" if piece else group_name for piece in pieces)
    return Strata.of(
        moments,
        rules.Crossed(categories=groups.rule, inner=tuple(inner)),
        tuple(names),
        notes=groups.notes + notes,
    )


def pooled_distribution(distributions: LevelDistributions, members: IntArray) -> Distribution | None:
    """Return the distribution of several categories together; `None` if one of them is a histogram.

    `members` are the categories' numbers.
    """
    if len(members) == 1:
        return distributions[distributions.bins.names[members[0]]]
    if np.isin(distributions.histograms, members).any():
        return None
    bins = distributions.bins
    rows = np.flatnonzero(np.isin(bins.level, members))
    weights = bins.counts[rows]
    values, place = np.unique(bins.values[rows], return_inverse=True)
    counts = np.bincount(place, weights).astype(np.int64)
    second = None
    if bins.second_moments is not None:
        second = np.bincount(place, weights * bins.second_moments[rows]) / counts
    return Distribution(
        values=values,
        counts=counts,
        cuts=values[1:],
        second_moments=second,
        scaled=distributions.scaled,
        bounds=distributions.bounds,
    )


def level_name(column: str, levels: Sequence[str]) -> str:
    """Return a name for a stratum of one or several levels of a group column."""
    if len(levels) == 1:
        return f"{column} = {levels[0]}"
    shown = list(levels[:_SHOWN_LEVELS])
    if len(levels) > len(shown):
        shown.append(f"and {len(levels) - len(shown)} more")
    return f"{column} in {{{', '.join(shown)}}}"


def levels_within_budget(sizes: IntArray, budget: int, minimum: int) -> IntArray:
    """Return the stratum of each level (L,), small ones pooled until proportional draws reach `minimum`.

    The pool is the last stratum. Where it stays too small itself, the next smallest level joins it.
    """
    least = int(np.ceil(minimum * sizes.sum() / budget))
    n_small = int(np.sum(sizes < least))
    if n_small == 0:
        return np.arange(len(sizes))
    order = np.argsort(sizes, kind="stable")
    enough = np.flatnonzero(np.cumsum(sizes[order]) >= least)
    n_pooled = max(n_small, int(enough[0]) + 1 if len(enough) else len(sizes))
    pooled = np.zeros(len(sizes), bool)
    pooled[order[:n_pooled]] = True
    return np.asarray(np.where(pooled, np.sum(~pooled), np.cumsum(~pooled) - 1))


def groups_that_fit(sizes: IntArray, budget: int, minimum: int) -> int:
    """Return how many groups levels (L,) make: fewer than L if the budget falls short of their minimum."""
    if int(np.minimum(minimum, sizes).sum()) <= budget:
        return len(sizes)
    return code_count(levels_within_budget(sizes, budget, minimum))


# Fits rows (n, d) of feature columns to at most so many clusters.
ClusterFit = Callable[[FloatArray, tuple[str, ...], int], rules.NearestCentre]

# Rows that clusters are fitted on at most, evenly spaced where there are more.
ROWS = 262_144

# Columns that rows are ordered by at once.
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
    """Fit k-means, or a clusterer of the user's, to rows; every unit then belongs to the nearest mean.

    So any clusterer gives a rule that a table can follow. k-means keeps its clusters as they are; others keep
    them where they are about round and of one size. Rows that it calls noise (−1) make no cluster.

    Parameters
    ----------
    rows : float (n, d)
    names : tuple of str (d,)
    n_strata : int
        Most centres of k-means; there are fewer where fewer units differ.
    clusterer : object, optional
        With scikit-learn's `fit_predict`; it brings its own number of clusters. It is copied, not changed.
    seed : int
        Of the starting centres of k-means.
    standardise : bool
        Whether each column is divided by its standard deviation first. Turn it off for embeddings.

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
    """Return the feature rows (n, d) of each level, in an order of their own, by one pass.

    Without `by` all units are of one level "". Where there are more than `ROWS` of all levels together, each
    has evenly spaced ones.
    """
    thinned = sum(sizes.values()) > ROWS
    strides = {level: -(-size * len(sizes) // ROWS) if thinned else 1 for level, size in sizes.items()}
    counts_so_far = dict.fromkeys(sizes, 0)
    rows_by_level: dict[str, list[FloatArray]] = {level: [] for level in sizes}
    for batch in population.batches(names if by is None else (by, *names)):
        matrix = rules.feature_rows(batch, names)
        if not np.isfinite(matrix).all():
            bad = names[int(np.flatnonzero(~np.isfinite(matrix).all(axis=0))[0])]
            problem = f"feature column '{bad}' contains values that are not finite numbers"
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
                thinned_rows = level_rows[-counts_so_far[level] % strides[level] :: strides[level]]
                rows_by_level[level].append(matrix[thinned_rows])
                counts_so_far[level] += len(level_rows)
    rows_joined = {level: np.concatenate(parts) for level, parts in rows_by_level.items()}
    return {level: rows[row_order(rows)] for level, rows in rows_joined.items()}


def row_order(rows: FloatArray) -> IntArray:
    """Return the order (n,) of rows (n, d) by their columns from left to right; only equal rows may tie."""
    order = np.lexsort(rows.T[:_SORT_KEYS][::-1])
    # Most rows differ in the first columns. Only those that do not are compared in the next ones.
    for start in range(_SORT_KEYS, rows.shape[1], _SORT_KEYS):
        differ = np.any(np.diff(rows[order, :start], axis=0) != 0, axis=1)
        group = np.concatenate([[0], np.cumsum(differ)])
        tied = np.flatnonzero(np.bincount(group)[group] > 1)
        if len(tied) == 0:
            break
        keys = rows[order[tied], start : start + _SORT_KEYS].T[::-1]
        order[tied] = order[tied][np.lexsort([*keys, group[tied]])]
    return order


def cluster_columns(population: Population, features: Sequence[str] | None) -> tuple[str, ...]:
    """Return the feature columns to cluster on: those named, or all.

    Raises
    ------
    InputError
        If there are none, or a name is unknown.
    """
    if not population.feature_names:
        raise InputError(
            "this population has no feature columns", action="Name them in features= (--features COL,…)."
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
    """Return clusters of the population, in the order of their mean proxies, or within each level of `by`."""
    if by is None:
        rows = rows_of_levels(population, None, {"": population.size}, names)[""]

        def divide(number: int) -> Strata:
            return _settled(population, fit(rows, names, number), proxy, number)

        return _chosen(divide, request)
    # A pool of small categories is one stratum.
    groups = pooled_groups(population.levels(by), by, request)
    group_of_single_level = {
        groups.rule.levels[m[0]]: g for g, m in enumerate(groups.members()) if len(m) == 1
    }
    sizes = dict(zip(groups.rule.levels, groups.sizes.tolist(), strict=True))
    of_level = rows_of_levels(population, by, {level: sizes[level] for level in group_of_single_level}, names)

    def draft(number: int) -> Strata:
        inner: list[rules.Rule] = [rules.Everything()] * groups.rule.n_strata
        for level, g in group_of_single_level.items():
            most = min(number, request.most(sizes[level] / population.size), sizes[level])
            if most > 1:
                inner[g] = fit(of_level[level], names, most)
        rule = rules.Crossed(categories=groups.rule, inner=tuple(inner))
        return _settled_groups(population, rule, groups, proxy)

    return _chosen(draft, request)


def _chosen(draft: Callable[[int], Strata], request: StratificationRequest) -> Strata:
    """Return the draft of the number asked for, or of the one that suits the budget, with a note."""
    if request.n_strata is not None:
        return draft(request.n_strata)
    drafts = [draft(number) for number in NUMBERS_TRIED if number <= request.most()]
    best, note = request.chosen(drafts)
    return replace(drafts[best], notes=(*drafts[best].notes, note))


def moments_by_pass(population: Population, rule: rules.Rule, proxy: str | None) -> Moments:
    """Return the moments of any rule's strata, by one pass over the population; sizes may be zero."""
    n_strata = rule.n_strata
    if not population.proxies:
        return of_sizes(population.summarise(rule).sizes)
    name = population.proxy_info(proxy).name
    distribution = population.distribution(name)
    centre = distribution.mean
    inside = distribution.conditional_variances
    sums = np.zeros((4, n_strata))
    for batch in population.batches(tuple(dict.fromkeys((*rule.columns, name)))):
        codes = rule.assign(batch)
        values = np.asarray(batch[name], np.float64)
        shifted = values - centre
        conditional = inside[np.searchsorted(distribution.cuts, values, side="right")]
        for row, terms in enumerate((None, shifted, shifted**2, conditional)):
            sums[row] += np.bincount(codes, terms, minlength=n_strata)
    counts = np.maximum(sums[0], 1.0)
    means = sums[1] / counts
    return Moments(
        sizes=sums[0].astype(np.int64),
        proxy_means=means + centre,
        proxy_variances=np.maximum(sums[2] / counts - means**2, 0.0),
        conditional_variances=sums[3] / counts,
    )


def _settled(population: Population, rule: rules.NearestCentre, proxy: str | None, requested: int) -> Strata:
    """Return the draft of a clustering: clusters that have units, in the order of their mean proxies."""
    notes: tuple[str, ...] = ()
    if rule.n_strata < requested:
        notes = (f"{requested} strata were requested and {rule.n_strata} formed: too few units differ.",)
    moments = moments_by_pass(population, rule, proxy)
    # Means that differ in their last digits are equal: sums over batches depend on the batches.
    order = np.argsort(rules.round_to_digits(moments.proxy_means), kind="stable")
    order = order[moments.sizes[order] > 0]
    names = tuple(f"cluster {number + 1}" for number in range(len(order)))
    return Strata.of(moments.part(order), replace(rule, centres=rule.centres[order]), names, notes=notes)


def _settled_groups(population: Population, rule: rules.Crossed, groups: Groups, proxy: str | None) -> Strata:
    """Return the draft of clusters within groups, those that have units."""
    moments = moments_by_pass(population, rule, proxy)
    filled = moments.sizes > 0
    inner: list[rules.Rule] = []
    names: list[str] = []
    for name, entry, offset in zip(groups.names(), rule.inner, rule.offsets.tolist(), strict=True):
        settled_rule = entry
        if isinstance(entry, rules.NearestCentre):
            settled_rule = replace(entry, centres=entry.centres[filled[offset : offset + entry.n_strata]])
        inner.append(settled_rule)
        several = settled_rule.n_strata > 1
        names += [f"{name}, cluster {k + 1}" if several else name for k in range(settled_rule.n_strata)]
    settled = replace(rule, inner=tuple(inner))
    return Strata.of(moments.part(np.flatnonzero(filled)), settled, tuple(names), notes=groups.notes)


# Every method that `stratify` knows.
STRATIFICATION_METHODS = (*INTERVAL_METHODS, "category", "features", "none")


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
        Intervals of the proxy: `"k-means"` (exact; best for proportional allocation), `"neyman"` (exact; best
        for Neyman allocation), `"robust-neyman"` (for Neyman allocation with a proxy that may be
        miscalibrated), `"equal-size"`, `"equal-width"`, `"cum-sqrt-f"`, `"cum-cbrt-f"`,
        `"weighted-mean"`, `"gaussian-mixture"`. Otherwise `"features"` (k-means on feature columns),
        `"category"` (the levels of `by`), or `"none"` (one stratum).
    n_strata : int or "auto"
        Strata wanted (within each category, if crossed), or `"auto"` for the number with the shortest
        expected interval at `budget`.
    by : str, optional
        A group column. With any method but `"category"`, each of its levels is divided on its own.
    proxy : str, optional
        The proxy to divide by; the population's first unless named.
    features : sequence of str, optional
        Feature columns for `method="features"`; all of them unless named.
    clusterer : object, optional
        For `method="features"`: a scikit-learn clusterer, or anything with its `fit_predict`, instead of
        k-means; it brings its own number of clusters, and each unit joins the cluster whose mean is nearest.
    budget : int, optional
        Labels that can be bought; needed for `"auto"`. With `by`, categories whose share of it is too small
        for `minimum` draws are pooled into one, and each has no more strata than its share bears.
    minimum : int
        Draws that each stratum keeps when their number is chosen, or categories are pooled.
    standardise : bool
        Whether features are divided by their standard deviations. Turn it off for embeddings.
    seed : int
        Of k-means on features; the other methods use no randomness.
    influence : Influence, optional
        Divide by the influence of an estimand, `estimand.influence(population)`, instead of a proxy: strata
        are intervals of E[u | x] within its cells. Those in which u is known need no label (`known`).

    Returns
    -------
    Strata
        Fewer than asked for where fewer distinct values exist; its `notes` say so.

    Raises
    ------
    InputError
        For an unknown method or column, a missing proxy, or Neyman cuts of a proxy that only orders.
    BudgetError
        If the budget gives not even one stratum its minimum.

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
        return _by_influence(population, influence, options)
    if population.proxies:
        info = population.proxy_info(proxy)
    else:
        info = None
    # Without a proxy only what was declared of the labels is known.
    if info is None:
        limits = population.label_outcome.bounds
    else:
        limits = info.bounds
    bounds = (-math.inf, math.inf) if limits is None else limits
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
        if clusterer is not None and by is None:  # it brings its own number of clusters
            request = replace(request, n_strata=1)
        strata = cluster_strata(population, by, names, fit, proxy, request)
    elif method == "none" and not population.proxies:
        strata = Strata.of(of_sizes(np.array([population.size])))
    elif method == "none":
        strata = Strata.of(of_bins(population.distribution(proxy), np.empty(0, np.int64)))
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


def _by_influence(population: Population, influence: Influence, options: Keywords) -> Strata:
    """Return the strata of the population as the influence sees it, with a rule of the columns that exist."""
    method = options["method"]
    if method not in (*INTERVAL_METHODS, "none"):
        problem = "an influence can only be divided into intervals"
        raise InputError(problem, given=f"method={method!r}", allowed="an interval method")
    view = influence.seen_in(population)
    several = len(view.levels(rules.CELL)) > 1 and method != "none"
    strata = stratify(view, by=rules.CELL if several else None, proxy=rules.INFLUENCE, **options)
    known_tests: tuple[Expression | None, ...] = ()
    if influence.known_cells and method != "none":
        cells = list(view.levels(rules.CELL)) * strata.n_strata
        if isinstance(strata.rule, rules.Categories):
            cells = list(strata.rule.levels)
        if isinstance(strata.rule, rules.Crossed):
            counts = [part.n_strata for part in strata.rule.inner]
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
