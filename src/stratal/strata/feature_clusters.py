"""Strata from feature columns: clusters of all units, or of the units of each level of a group column."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import InputError, suggest_names
from stratal.population import rules
from stratal.population.population import Population
from stratal.strata.level_groups import LevelGroups, pooled_groups
from stratal.strata.number_of_strata import CANDIDATE_NUMBERS, StratificationRequest
from stratal.strata.strata import Moments, Strata, moments_of_sizes
from stratal.strata.whole_number_k_means import coordinate_bits, whole_number_k_means

# Fits at most the given number of clusters to rows (n, d) of the feature columns with these names.
ClusterFit = Callable[[FloatArray, tuple[str, ...], int], rules.NearestCentre]

# Maximum number of rows to which clusters are fitted; of more rows, evenly spaced ones are used.
MAX_FITTED_ROWS = 262_144

# Number of columns that one sort compares. Most rows differ in these, so that further columns are not sorted.
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
    """Fit k-means or another clusterer to rows (n, d); the rule assigns a unit to the nearest cluster mean.

    The rule can be evaluated in a query. It reproduces the clusters of k-means, and those of other clusterers
    if they are approximately spherical and of equal size. Rows with the cluster label −1 (noise) belong to no
    cluster in the fit.

    Parameters
    ----------
    rows : float (n, d)
    names : tuple of str (d,)
    n_strata : int
        Maximum number of centres of k-means; there are fewer if there are fewer distinct rows.
    clusterer, seed, standardise
        As in `stratify`. The clusterer is copied.

    Raises
    ------
    InputError
        If the clusterer cannot be fitted, or finds no cluster.
    """
    low = rows.min(axis=0)
    high = rows.max(axis=0)
    if standardise:
        scale = rules.exact_deviations(rows, high - low)
    else:
        scale = np.ones(len(names))
    if clusterer is None:
        # On a grid of whole numbers, k-means has the same result on every computer.
        grid = rules.IntegerGrid.of(low, high, scale, coordinate_bits(*rows.shape))
        centres = grid.values(whole_number_k_means(grid.coordinates(rows), n_strata, seed))
    else:
        centres = _cluster_means(rows / scale, clusterer) * scale
    return rules.NearestCentre(names=names, centres=centres, scale=scale)


def _cluster_means(rows: FloatArray, clusterer: object) -> FloatArray:
    """Return the distinct means (K, d) of the clusters that a clusterer finds in rows (n, d)."""
    if not hasattr(clusterer, "fit_predict"):
        raise InputError(
            "this clusterer cannot be fitted",
            allowed="a clusterer with the method fit_predict, as in scikit-learn",
        )
    labels = np.asarray(copy.deepcopy(clusterer).fit_predict(rows))
    cluster_labels = [label for label in np.unique(labels) if label >= 0]
    if labels.shape != (len(rows),) or not cluster_labels:
        raise InputError("the clusterer found no cluster", action="Change the settings of the clusterer.")
    means = np.stack([rows[labels == label].mean(axis=0) for label in cluster_labels])
    return np.unique(means, axis=0)


def rows_of_levels(
    population: Population, by: str | None, sizes: Mapping[str, int], names: tuple[str, ...]
) -> dict[str, FloatArray]:
    """Return the feature rows (n, d) of each level of the group column `by`, sorted by their values.

    The order of the rows of the population therefore does not affect clusters. Without `by`, all units have
    the level "". If there are more than `MAX_FITTED_ROWS` units, evenly spaced rows of each level are
    returned. `sizes` are the numbers of units by level, and `names` (d,) the feature columns.
    """
    strides = dict.fromkeys(sizes, 1)
    if sum(sizes.values()) > MAX_FITTED_ROWS:
        # At most MAX_FITTED_ROWS / L rows of each level: size · L / MAX_FITTED_ROWS, rounded up.
        strides = {level: -(-size * len(sizes) // MAX_FITTED_ROWS) for level, size in sizes.items()}
    counts_so_far = dict.fromkeys(sizes, 0)
    rows_by_level: dict[str, list[FloatArray]] = {level: [] for level in sizes}
    for batch in population.batches(names if by is None else (by, *names)):
        matrix = rules.feature_rows(batch, names)
        _refuse_nonfinite_features(matrix, names)
        if by is None:
            levels = np.full(len(matrix), "")
        else:
            levels = np.asarray(batch[by]).astype(str)
        levels_present, codes = np.unique(levels, return_inverse=True)
        level_ends = np.cumsum(np.bincount(codes))
        rows = np.split(np.argsort(codes, kind="stable"), level_ends[:-1])
        for level, level_rows in zip(levels_present.tolist(), rows, strict=True):
            if level in rows_by_level:
                # Every stride-th row of the level is selected, also across batches.
                first = -counts_so_far[level] % strides[level]
                rows_by_level[level].append(matrix[level_rows[first :: strides[level]]])
                counts_so_far[level] += len(level_rows)
    joined_rows = {level: np.concatenate(batches) for level, batches in rows_by_level.items()}
    return {level: rows[row_order(rows)] for level, rows in joined_rows.items()}


def _refuse_nonfinite_features(matrix: FloatArray, names: tuple[str, ...]) -> None:
    """Raise an error if a feature column (n, d) contains a value that is not a finite number."""
    is_invalid = ~np.isfinite(matrix).all(axis=0)
    if is_invalid.any():
        column = names[int(np.argmax(is_invalid))]
        problem = f"feature column '{column}' contains values that are not finite numbers"
        action = "Fill in the missing values, or leave the column out of features=."
        raise InputError(problem, action=action)


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
    if not names:
        raise InputError("no feature column was named", allowed=suggest_names("", population.feature_names))
    for name in names:
        if name not in population.feature_names:
            raise InputError(
                f"unknown feature column: {name!r}", allowed=suggest_names(name, population.feature_names)
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
    # Only groups of a single level are divided; a pool of small levels is one stratum.
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
    sizes = np.zeros(n_strata, np.int64)
    sums = np.zeros(n_strata)
    square_sums = np.zeros(n_strata)
    variance_sums = np.zeros(n_strata)
    for batch in population.batches(tuple(dict.fromkeys((*rule.columns, name)))):
        codes = rule.assign(batch)
        values = np.asarray(batch[name], np.float64)
        centred = values - centre
        bin_of_unit = np.searchsorted(distribution.cuts, values, side="right")
        sizes += np.bincount(codes, minlength=n_strata)
        sums += np.bincount(codes, centred, minlength=n_strata)
        square_sums += np.bincount(codes, centred**2, minlength=n_strata)
        variance_sums += np.bincount(
            codes, distribution.conditional_variances[bin_of_unit], minlength=n_strata
        )
    divisors = np.maximum(sizes, 1)
    means = sums / divisors
    return Moments(
        sizes=sizes,
        proxy_means=means + centre,
        proxy_variances=np.maximum(square_sums / divisors - means**2, 0.0),
        conditional_variances=variance_sums / divisors,
    )


def _clusters_as_strata(
    population: Population, rule: rules.NearestCentre, proxy: str | None, requested: int
) -> Strata:
    """Return the nonempty clusters as strata, in the order of their mean proxies."""
    notes: tuple[str, ...] = ()
    if rule.n_strata < requested:
        notes = (f"{requested} strata were requested and {rule.n_strata} formed: too few units differ.",)
    moments = moments_by_rule(population, rule, proxy)
    # Rounded means have the same order for any division into batches, which changes the last digits of sums.
    order = np.argsort(rules.round_to_digits(moments.proxy_means), kind="stable")
    order = order[moments.sizes[order] > 0]
    names = tuple(f"cluster {number}" for number in range(1, len(order) + 1))
    return Strata.from_moments(
        moments.select(order), replace(rule, centres=rule.centres[order]), names, notes=notes
    )


def _crossed_clusters_as_strata(
    population: Population, rule: rules.Crossed, groups: LevelGroups, proxy: str | None
) -> Strata:
    """Return the nonempty clusters within groups as strata."""
    moments = moments_by_rule(population, rule, proxy)
    is_nonempty = moments.sizes > 0
    inner: list[rules.Rule] = []
    names: list[str] = []
    for name, group_rule, offset in zip(groups.names(), rule.inner, rule.offsets.tolist(), strict=True):
        nonempty_rule = group_rule
        if isinstance(group_rule, rules.NearestCentre):
            is_nonempty_cluster = is_nonempty[offset : offset + group_rule.n_strata]
            nonempty_rule = replace(group_rule, centres=group_rule.centres[is_nonempty_cluster])
        inner.append(nonempty_rule)
        if nonempty_rule.n_strata > 1:
            names += [f"{name}, cluster {number}" for number in range(1, nonempty_rule.n_strata + 1)]
        else:
            names.append(name)
    crossed_rule = replace(rule, inner=tuple(inner))
    nonempty_moments = moments.select(np.flatnonzero(is_nonempty))
    return Strata.from_moments(nonempty_moments, crossed_rule, tuple(names), notes=groups.notes)
