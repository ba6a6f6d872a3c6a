"""Strata from k-means on feature columns, over the whole population or within each category."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.errors import InputError, MissingExtraError, near_names
from stratal.population.rules import Crossed, Everything, NearestCentre, Rule, feature_rows
from stratal.strata.categories import Groups, pooled_groups
from stratal.strata.moments import Moments, of_sizes
from stratal.strata.proxy_intervals import NUMBERS_TRIED, StratificationRequest
from stratal.strata.strata import Strata

if TYPE_CHECKING:
    from stratal.population.population import Population


Batches = Callable[[], Iterator[dict[str, AnyArray]]]
"""Starts a pass over the population: columns by name, some units at a time."""

Fit = Callable[[Batches, tuple[str, ...], int], NearestCentre]
"""Fits feature columns of a pass to at most so many clusters."""

PASSES = 3
"""Passes of mini-batch k-means over a population that does not fit into one batch."""

ROWS = 50_000
"""Rows that a clusterer of the user's own is fitted on, at most twice as many."""

_SORT_KEYS = 8
"""Columns that rows are ordered by: more than eight that agree are equal rows, or no matter."""


def fit_centres(
    batches: Batches, names: tuple[str, ...], n_strata: int, *, seed: int = 0, standardise: bool = True
) -> NearestCentre:
    """Fit k-means to feature columns, in one piece where the population is one batch, else by mini-batches.

    In one piece the order of the rows is irrelevant; mini-batches depend on it.

    Parameters
    ----------
    batches : callable
        Starts a pass over the population.
    names : tuple of str (d,)
        Numeric columns without missing values.
    n_strata : int
        Most centres; there are fewer where fewer units differ.
    seed : int
        Of the starting centres.
    standardise : bool
        Whether each column is divided by its standard deviation first. Turn it off for embeddings.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.

    Examples
    --------
    >>> columns = {"a": np.array([0.0, 0.1, 9.0, 9.1])}
    >>> fit_centres(lambda: iter([columns]), ("a",), 2).n_strata
    2
    """
    pieces = batches()
    first = next(pieces)
    if next(pieces, None) is None:
        first = _in_one_order(first, names)
        scale = _column_scales(lambda: iter([first]), names, standardise)
        centres = _in_one_piece(feature_rows(first, names) / scale, n_strata, seed)
    else:
        scale = _column_scales(batches, names, standardise)
        centres = _by_batches(batches, names, scale, n_strata, seed)
    return NearestCentre(names=names, centres=np.unique(centres, axis=0) * scale, scale=scale)


def fit_clusterer(
    batches: Batches, names: tuple[str, ...], n_strata: int = 0, *, clusterer: Any, standardise: bool = True
) -> NearestCentre:
    """Fit a clusterer to evenly spaced rows; every unit then belongs to the cluster with the nearest mean.

    So any clusterer gives a rule that a table can follow. k-means keeps its clusters as they are; others keep
    them where they are about round and of one size. Rows that it calls noise (−1) make no cluster.

    Parameters
    ----------
    batches : callable
        Starts a pass over the population.
    names : tuple of str (d,)
        Numeric columns without missing values.
    n_strata : int
        Not used: the clusterer brings its own number.
    clusterer : object
        With scikit-learn's `fit_predict`, or `fit` and `predict`. It is copied, not changed.
    standardise : bool
        As in `fit_centres`.

    Raises
    ------
    InputError
        If the clusterer has neither, or finds no cluster.

    Examples
    --------
    >>> class Halves:
    ...     def fit_predict(self, rows):
    ...         return (rows[:, 0] > rows[:, 0].mean()).astype(int)
    >>> columns = {"a": np.array([0.0, 0.2, 9.0, 9.2])}
    >>> fit_clusterer(lambda: iter([columns]), ("a",), clusterer=Halves()).centres.round(1).tolist()
    [[0.1], [9.1]]
    """
    scale = _column_scales(batches, names, standardise)
    rows = _spaced_rows(batches, names) / scale
    model = copy.deepcopy(clusterer)
    if hasattr(model, "fit_predict"):
        labels = model.fit_predict(rows)
    elif hasattr(model, "fit") and hasattr(model, "predict"):
        labels = model.fit(rows).predict(rows)
    else:
        raise InputError(
            "this clusterer cannot be fitted",
            given=type(clusterer).__name__,
            allowed="scikit-learn's fit_predict, or fit and predict",
        )
    labels = np.asarray(labels)
    found = [label for label in np.unique(labels) if label >= 0]
    if labels.shape != (len(rows),) or not found:
        raise InputError("the clusterer found no cluster", action="Change its settings.")
    centres = np.stack([rows[labels == label].mean(axis=0) for label in found])
    return NearestCentre(names=names, centres=np.unique(centres, axis=0) * scale, scale=scale)


def _spaced_rows(batches: Batches, names: tuple[str, ...]) -> FloatArray:
    """Return at most 2 `ROWS` evenly spaced rows; those of a single batch in an order of their own."""
    pieces = batches()
    first = next(pieces)
    second = next(pieces, None)
    if second is None:
        first = _in_one_order(first, names)
    held, stride, seen = np.empty((0, len(names))), 1, 0
    for batch in (first, *(() if second is None else (second,)), *pieces):
        matrix = feature_rows(batch, names)
        held = np.concatenate([held, matrix[-seen % stride :: stride]])
        seen += len(matrix)
        while len(held) > 2 * ROWS:
            held, stride = held[::2], 2 * stride
    return held


def _in_one_order(columns: Mapping[str, AnyArray], names: tuple[str, ...]) -> dict[str, AnyArray]:
    """Return the columns with their rows sorted, so that the order of the population's rows is irrelevant."""
    order = np.lexsort([np.asarray(columns[name]) for name in reversed(names[:_SORT_KEYS])])
    return {name: np.asarray(columns[name])[order] for name in names}


def _column_scales(batches: Batches, names: tuple[str, ...], standardise: bool) -> FloatArray:
    """Return the standard deviation of each column (d,), ones where zero or not wanted; one pass, centred."""
    count, shift = 0, None
    firsts = squares = np.zeros(len(names))
    for batch in batches():
        matrix = feature_rows(batch, names)
        if not np.isfinite(matrix).all():
            bad = names[int(np.flatnonzero(~np.isfinite(matrix).all(axis=0))[0])]
            raise InputError(
                f"feature column '{bad}' holds values that are not finite numbers",
                action="Fill the gaps in, or leave the column out of features=.",
            )
        shift = matrix[0] if shift is None else shift
        matrix -= shift
        count += len(matrix)
        firsts = firsts + matrix.sum(axis=0)
        squares = squares + np.einsum("nd,nd->d", matrix, matrix)
    if not standardise:
        return np.ones(len(names))
    variances = np.maximum(squares / count - (firsts / count) ** 2, 0.0)
    tiny = variances <= 1e-24 * np.maximum(squares / count, 1e-300)
    return np.asarray(np.where(tiny, 1.0, np.sqrt(variances)))


def _in_one_piece(matrix: FloatArray, n_strata: int, seed: int) -> FloatArray:
    # Large tables are spared the sort that counts distinct rows.
    distinct = len(np.unique(matrix, axis=0)) if len(matrix) <= 4096 else n_strata
    model = _clusterer("KMeans")(n_clusters=min(n_strata, distinct, len(matrix)), n_init=4, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # fewer distinct points than centres: duplicates are dropped by the caller
        return np.asarray(model.fit(matrix).cluster_centers_)


def _by_batches(
    batches: Batches, names: tuple[str, ...], scale: FloatArray, n_strata: int, seed: int
) -> FloatArray:
    model = _clusterer("MiniBatchKMeans")(n_clusters=n_strata, n_init=4, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(PASSES):
            for batch in batches():
                matrix = feature_rows(batch, names) / scale
                if len(matrix) >= n_strata:
                    model.partial_fit(matrix)
    return np.asarray(model.cluster_centers_)


def _clusterer(name: str) -> Any:
    try:
        import sklearn.cluster
    except ImportError:
        raise MissingExtraError("scikit-learn", extra="learn") from None
    return getattr(sklearn.cluster, name)


FULL_BATCH = 262_144
"""Units of one batch: a level of no more is clustered in one piece."""

_TOGETHER = 1 << 24
"""Numbers of small levels that are held at once: 128 MB."""


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
    if by is not None:
        return _crossed_clusters(population, by, names, fit, proxy, request)
    batches = partial(population.batches, names)
    drafts = [
        _settled(population, fit(batches, names, number), proxy, number, request.min_size)
        for number in _numbers(request)
    ]
    return _chosen(drafts, request)


def _crossed_clusters(
    population: Population,
    by: str,
    names: tuple[str, ...],
    fit: Fit,
    proxy: str | None,
    request: StratificationRequest,
) -> Strata:
    """Return clusters within each level of a category; a pool of small categories is one stratum."""
    groups = pooled_groups(population.levels(by), by, request)
    shares = groups.sizes / groups.sizes.sum()
    drafts = []
    members = list(groups.members())
    for number in _numbers(request):
        most = [
            min(number, request.most(float(shares[m].sum())), int(groups.sizes[m].sum()))
            if len(m) == 1
            else 1
            for m in members
        ]
        inner: list[Rule] = [Everything()] * len(members)
        wanted = {groups.rule.levels[m[0]]: g for g, m in enumerate(members) if most[g] > 1}
        sizes = {level: int(groups.sizes[members[g][0]]) for level, g in wanted.items()}
        for level, within in _levels_apart(population, by, sizes, names):
            inner[wanted[level]] = fit(within, names, most[wanted[level]])
        rule = Crossed(categories=groups.rule, inner=tuple(inner))
        drafts.append(_settled_groups(population, rule, groups, proxy, request.min_size))
    return _chosen(drafts, request)


def _numbers(request: StratificationRequest) -> list[int]:
    if request.n_strata is not None:
        return [request.n_strata]
    return [number for number in NUMBERS_TRIED if number <= request.most()]


def _chosen(drafts: list[Strata], request: StratificationRequest) -> Strata:
    """Return the draft to take, with a note where there was a choice."""
    if request.n_strata is not None or request.budget is None:
        return drafts[0]
    best, note = request.chosen(drafts)
    return replace(drafts[best], notes=(*drafts[best].notes, note))


def _settled_groups(
    population: Population, rule: Crossed, groups: Groups, proxy: str | None, min_size: int
) -> Strata:
    """Return the draft of clusters within groups, without those that are too small."""
    moments = moments_by_pass(population, rule, proxy)
    settled = _without_small(rule, moments.sizes, max(min_size, 1))
    gone = rule.n_strata - settled.n_strata
    if gone:
        rule, moments = settled, moments_by_pass(population, settled, proxy)
    notes = (f"{gone} small clusters were dissolved into their neighbours.",) if gone else ()
    labels = [
        f"{name}, cluster {number + 1}" if entry.n_strata > 1 else name
        for name, entry in zip(groups.names(), rule.inner, strict=True)
        for number in range(entry.n_strata)
    ]
    return Strata.of(moments, rule, tuple(labels), notes=groups.notes + notes)


def moments_by_pass(population: Population, rule: Rule, proxy: str | None) -> Moments:
    """Return the moments of any rule's strata, by one pass over the population; sizes may be zero."""
    n_strata = rule.n_strata
    if not population.proxies:
        sizes = np.zeros(n_strata, np.int64)
        for batch in population.batches(rule.columns):
            sizes += np.bincount(rule.assign(batch), minlength=n_strata)
        return of_sizes(sizes)
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


def _settled(
    population: Population, rule: NearestCentre, proxy: str | None, requested: int, min_size: int
) -> Strata:
    """Return the draft of a clustering without its too small clusters, whose units join the next nearest."""
    notes: tuple[str, ...] = ()
    if rule.n_strata < requested:
        notes = (f"{requested} strata were asked for and {rule.n_strata} made: too few units differ.",)
    moments = moments_by_pass(population, rule, proxy)
    while rule.n_strata > 1 and int(moments.sizes.min()) < max(min_size, 1):
        gone = int(moments.sizes.argmin())
        rule = replace(rule, centres=np.delete(rule.centres, gone, axis=0))
        notes += (f"A cluster of {moments.sizes[gone]} units was dissolved into its neighbours.",)
        moments = moments_by_pass(population, rule, proxy)
    order = np.argsort(moments.proxy_means, kind="stable")
    names = tuple(f"cluster {number + 1}" for number in range(len(order)))
    return Strata.of(moments.part(order), replace(rule, centres=rule.centres[order]), names, notes=notes)


def _levels_apart(
    population: Population, by: str, sizes: dict[str, int], names: tuple[str, ...]
) -> Iterator[tuple[str, Batches]]:
    """Yield each level with what starts a pass over its units: of small levels many are read in one pass."""
    most = _TOGETHER // len(names)
    run: list[str] = []
    held = 0
    for level, size in sizes.items():
        if size > min(FULL_BATCH, most):
            yield level, _within(population, by, level, names)
            continue
        if held + size > most:
            yield from _read_together(population, by, run, names)
            run, held = [], 0
        run.append(level)
        held += size
    if run:
        yield from _read_together(population, by, run, names)


def _read_together(
    population: Population, by: str, levels: list[str], names: tuple[str, ...]
) -> Iterator[tuple[str, Batches]]:
    """Yield each of some levels with the one batch of its units, from one pass over the population."""
    kept: dict[str, list[dict[str, AnyArray]]] = {level: [] for level in levels}
    for batch in population.batches((by, *names)):
        found, codes = np.unique(np.asarray(batch[by]).astype(str), return_inverse=True)
        rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        for level, here in zip(found.tolist(), rows, strict=True):
            if level in kept:
                kept[level].append({name: np.asarray(batch[name])[here] for name in names})
    for level, parts in kept.items():
        yield level, partial(_only, _joined(parts))


def _joined(parts: Sequence[Mapping[str, AnyArray]]) -> dict[str, AnyArray]:
    """Return batches one after the other as one."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _only(batch: dict[str, AnyArray]) -> Iterator[dict[str, AnyArray]]:
    return iter([batch])


def _within(population: Population, by: str, level: str, names: tuple[str, ...]) -> Batches:
    """Return what starts a pass over the units of one level, in batches of full length."""

    def batches() -> Iterator[dict[str, AnyArray]]:
        held: list[dict[str, AnyArray]] = []
        for batch in population.batches((by, *names)):
            rows = np.flatnonzero(np.asarray(batch[by]).astype(str) == level)
            held.append({name: np.asarray(batch[name])[rows] for name in names})
            if sum(len(part[names[0]]) for part in held) >= FULL_BATCH:
                yield _joined(held)
                held = []
        if sum(len(part[names[0]]) for part in held):
            yield _joined(held)

    return batches


def _without_small(rule: Crossed, sizes: IntArray, least: int) -> Crossed:
    """Return the rule without centres of fewer than `least` units; each group keeps one."""
    inner: list[Rule] = []
    for entry, offset in zip(rule.inner, rule.offsets.tolist(), strict=True):
        if not isinstance(entry, NearestCentre):
            inner.append(entry)
            continue
        here = sizes[offset : offset + entry.n_strata]
        centres = entry.centres[here >= min(least, int(here.max()))]
        inner.append(replace(entry, centres=centres))
    return replace(rule, inner=tuple(inner))
