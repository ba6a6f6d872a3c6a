"""Strata from k-means on feature columns, over the whole population or within each category."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError, MissingExtraError, near_names
from stratal.population.rules import Crossed, Everything, NearestCentre, Rule, feature_rows
from stratal.strata.proxy_intervals import NUMBERS_TRIED, Groups, StratificationRequest, pooled_groups
from stratal.strata.strata import Moments, Strata, of_sizes

if TYPE_CHECKING:
    from stratal.population.population import Population


# Fits rows (n, d) of feature columns to at most so many clusters.
Fit = Callable[[FloatArray, tuple[str, ...], int], NearestCentre]

# Rows that clusters are fitted on at most, evenly spaced where there are more.
ROWS = 262_144

# Columns that rows are ordered by: more than eight that agree are equal rows, or no matter.
_SORT_KEYS = 8


def fit_centres(
    rows: FloatArray,
    names: tuple[str, ...],
    n_strata: int,
    *,
    clusterer: Any = None,
    seed: int = 0,
    standardise: bool = True,
) -> NearestCentre:
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
    MissingExtraError
        If scikit-learn is not installed.

    Examples
    --------
    >>> fit_centres(np.array([[0.0], [0.1], [5.0], [5.1]]), ("x",), 2).centres.round(2)
    array([[0.05],
           [5.05]])
    """
    scale = np.ones(len(names))
    if standardise:
        spread, tiny = rows.std(axis=0), 1e-12 * np.abs(rows - rows[0]).max(axis=0)
        scale = np.where(spread > tiny, spread, 1.0)
    scaled = rows / scale
    if clusterer is None:
        try:
            from sklearn.cluster import KMeans
        except ImportError:
            raise MissingExtraError("scikit-learn", extra="learn") from None
        # Large tables are spared the sort that counts distinct rows.
        distinct = len(np.unique(scaled, axis=0)) if len(rows) <= 4096 else n_strata
        model = KMeans(n_clusters=min(n_strata, distinct, len(rows)), n_init=4, random_state=seed)
        with warnings.catch_warnings(action="ignore"):  # fewer distinct points than centres
            centres = np.asarray(model.fit(scaled).cluster_centers_)
    else:
        if not hasattr(clusterer, "fit_predict"):
            raise InputError("this clusterer cannot be fitted", allowed="scikit-learn's fit_predict")
        labels = np.asarray(copy.deepcopy(clusterer).fit_predict(scaled))
        found = [label for label in np.unique(labels) if label >= 0]
        if labels.shape != (len(rows),) or not found:
            raise InputError("the clusterer found no cluster", action="Change its settings.")
        centres = np.stack([scaled[labels == label].mean(axis=0) for label in found])
    return NearestCentre(names=names, centres=np.unique(centres, axis=0) * scale, scale=scale)


def rows_of_levels(
    population: Population, by: str | None, sizes: Mapping[str, int], names: tuple[str, ...]
) -> dict[str, FloatArray]:
    """Return the feature rows (n, d) of each level, in an order of their own, by one pass.

    Without `by` all units are of one level "". Where there are more than `ROWS` of all levels together, each
    has evenly spaced ones.
    """
    thinned = sum(sizes.values()) > ROWS
    strides = {level: -(-size * len(sizes) // ROWS) if thinned else 1 for level, size in sizes.items()}
    seen = dict.fromkeys(sizes, 0)
    held: dict[str, list[FloatArray]] = {level: [] for level in sizes}
    for batch in population.batches(names if by is None else (by, *names)):
        matrix = feature_rows(batch, names)
        if not np.isfinite(matrix).all():
            bad = names[int(np.flatnonzero(~np.isfinite(matrix).all(axis=0))[0])]
            raise InputError(
                f"feature column '{bad}' holds values that are not finite numbers",
                action="Fill the gaps in, or leave the column out of features=.",
            )
        levels = np.full(len(matrix), "") if by is None else np.asarray(batch[by]).astype(str)
        found, codes = np.unique(levels, return_inverse=True)
        rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        for level, here in zip(found.tolist(), rows, strict=True):
            if level in held:
                kept = here[-seen[level] % strides[level] :: strides[level]]
                held[level].append(matrix[kept])
                seen[level] += len(here)
    joined = {level: np.concatenate(parts) for level, parts in held.items()}
    return {level: rows[np.lexsort(rows.T[:_SORT_KEYS][::-1])] for level, rows in joined.items()}


def feature_columns(population: Population, features: Sequence[str] | None) -> tuple[str, ...]:
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
        raise InputError(
            f"no such feature column: {unknown[0]!r}" if unknown else "no feature column was named",
            allowed=near_names(unknown[0] if unknown else "", population.feature_names),
        )
    return names


def cluster_strata(
    population: Population,
    by: str | None,
    names: tuple[str, ...],
    fit: Fit,
    proxy: str | None,
    request: StratificationRequest,
) -> Strata:
    """Return clusters of the population, in the order of their mean proxies, or within each level of `by`."""
    if by is None:
        rows = rows_of_levels(population, None, {"": population.size}, names)[""]

        def whole(number: int) -> Strata:
            return _settled(population, fit(rows, names, number), proxy, number)

        return _chosen(whole, request)
    # A pool of small categories is one stratum.
    groups = pooled_groups(population.levels(by), by, request)
    alone = {groups.rule.levels[m[0]]: g for g, m in enumerate(groups.members()) if len(m) == 1}
    sizes = dict(zip(groups.rule.levels, groups.sizes.tolist(), strict=True))
    of_level = rows_of_levels(population, by, {level: sizes[level] for level in alone}, names)

    def draft(number: int) -> Strata:
        inner: list[Rule] = [Everything()] * groups.rule.n_strata
        for level, g in alone.items():
            most = min(number, request.most(sizes[level] / population.size), sizes[level])
            if most > 1:
                inner[g] = fit(of_level[level], names, most)
        rule = Crossed(categories=groups.rule, inner=tuple(inner))
        return _settled_groups(population, rule, groups, proxy)

    return _chosen(draft, request)


def _chosen(draft: Callable[[int], Strata], request: StratificationRequest) -> Strata:
    """Return the draft of the number asked for, or of the one that suits the budget, with a note."""
    if request.n_strata is not None:
        return draft(request.n_strata)
    drafts = [draft(number) for number in NUMBERS_TRIED if number <= request.most()]
    best, note = request.chosen(drafts)
    return replace(drafts[best], notes=(*drafts[best].notes, note))


def moments_by_pass(population: Population, rule: Rule, proxy: str | None) -> Moments:
    """Return the moments of any rule's strata, by one pass over the population; sizes may be zero."""
    n_strata = rule.n_strata
    if not population.proxies:
        return of_sizes(population.summarise(rule).sizes)
    name = population.proxy_info(proxy).name
    picture = population.distribution(name)
    centre, inside = picture.mean, picture.conditional_variances
    sums = np.zeros((4, n_strata))
    for batch in population.batches(tuple(dict.fromkeys((*rule.columns, name)))):
        codes, values = rule.assign(batch), np.asarray(batch[name], np.float64)
        shifted = values - centre
        conditional = inside[np.searchsorted(picture.cuts, values, side="right")]
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


def _settled(population: Population, rule: NearestCentre, proxy: str | None, requested: int) -> Strata:
    """Return the draft of a clustering: clusters that have units, in the order of their mean proxies."""
    notes: tuple[str, ...] = ()
    if rule.n_strata < requested:
        notes = (f"{requested} strata were asked for and {rule.n_strata} made: too few units differ.",)
    moments = moments_by_pass(population, rule, proxy)
    order = np.argsort(moments.proxy_means, kind="stable")
    order = order[moments.sizes[order] > 0]
    names = tuple(f"cluster {number + 1}" for number in range(len(order)))
    return Strata.of(moments.part(order), replace(rule, centres=rule.centres[order]), names, notes=notes)


def _settled_groups(population: Population, rule: Crossed, groups: Groups, proxy: str | None) -> Strata:
    """Return the draft of clusters within groups, those that have units."""
    moments = moments_by_pass(population, rule, proxy)
    filled = moments.sizes > 0
    inner: list[Rule] = []
    names: list[str] = []
    for name, entry, offset in zip(groups.names(), rule.inner, rule.offsets.tolist(), strict=True):
        kept = entry
        if isinstance(entry, NearestCentre):
            kept = replace(entry, centres=entry.centres[filled[offset : offset + entry.n_strata]])
        inner.append(kept)
        several = kept.n_strata > 1
        names += [f"{name}, cluster {k + 1}" if several else name for k in range(kept.n_strata)]
    settled = replace(rule, inner=tuple(inner))
    return Strata.of(moments.part(np.flatnonzero(filled)), settled, tuple(names), notes=groups.notes)
