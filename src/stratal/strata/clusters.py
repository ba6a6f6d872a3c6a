"""Strata from k-means on feature columns, over the whole population or within each category."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import AnyArray, IntArray
from stratal.errors import InputError, near_names
from stratal.population.rules.centres import NearestCentre
from stratal.population.rules.crossed import Crossed
from stratal.population.rules.rule import Everything, Rule
from stratal.strata.categories import Groups, pooled_groups
from stratal.strata.features import Batches, fit_centres, fit_clusterer
from stratal.strata.moments import Moments, of_sizes
from stratal.strata.number import NUMBERS_TRIED, choose_number
from stratal.strata.stratification import StratificationDraft, StratificationRequest

if TYPE_CHECKING:
    from stratal.population.population import Population

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering:
    """How k-means on features is fitted.

    Parameters
    ----------
    names : tuple of str
        Feature columns.
    seed : int
    standardise : bool
    clusterer : object, optional
        A scikit-learn clusterer to use instead of k-means, with its own number of clusters.
    """

    names: tuple[str, ...]
    seed: int
    standardise: bool
    clusterer: Any = None

    def fit(self, batches: Batches, n_strata: int) -> NearestCentre:
        """Return the fitted rule."""
        if self.clusterer is not None:
            return fit_clusterer(batches, self.names, self.clusterer, standardise=self.standardise)
        return fit_centres(batches, self.names, n_strata, seed=self.seed, standardise=self.standardise)


def cluster_draft(
    population: Population, by: str | None, how: Clustering, proxy: str | None, request: StratificationRequest
) -> StratificationDraft:
    """Return clusters of the population, in the order of their mean proxies, or within each level of `by`."""
    if by is not None:
        return _crossed_clusters(population, by, how, proxy, request)

    def batches() -> Iterator[dict[str, AnyArray]]:
        return population.batches(how.names)

    if how.clusterer is not None:
        rule = how.fit(batches, 0)
        return _settled(population, rule, proxy, rule.n_strata, request.min_size)
    drafts = [
        _settled(population, how.fit(batches, number), proxy, number, request.min_size)
        for number in _numbers(request)
    ]
    return _chosen(population, proxy, drafts, request)


def _crossed_clusters(
    population: Population, by: str, how: Clustering, proxy: str | None, request: StratificationRequest
) -> StratificationDraft:
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
        for level, within in _levels_apart(population, by, sizes, how.names):
            inner[wanted[level]] = how.fit(within, most[wanted[level]])
        rule = Crossed(categories=groups.rule, inner=tuple(inner))
        drafts.append(_settled_groups(population, rule, groups, proxy, request.min_size))
    return _chosen(population, proxy, drafts, request)


def _numbers(request: StratificationRequest) -> list[int]:
    if request.n_strata is not None:
        return [request.n_strata]
    return [number for number in NUMBERS_TRIED if number <= request.most()]


def _chosen(
    population: Population,
    proxy: str | None,
    drafts: list[StratificationDraft],
    request: StratificationRequest,
) -> StratificationDraft:
    """Return the draft to take, with a note where there was a choice."""
    if request.n_strata is not None or request.budget is None:
        return drafts[0]
    scaled = bool(population.proxies) and population.proxy_info(proxy).scaled
    moments = [draft.moments for draft in drafts]
    best = drafts[
        choose_number(moments, request.budget, minimum=request.minimum, scaled=scaled, bounds=request.bounds)
    ]
    note = f"{len(best.names)} strata were chosen for a budget of {request.budget}."
    return replace(best, notes=(*best.notes, note))


def _settled_groups(
    population: Population, rule: Crossed, groups: Groups, proxy: str | None, min_size: int
) -> StratificationDraft:
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
    return StratificationDraft(rule=rule, names=tuple(labels), moments=moments, notes=groups.notes + notes)


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
    population: Population, rule: NearestCentre, proxy: str | None, asked: int, min_size: int
) -> StratificationDraft:
    """Return the draft of a clustering without its too small clusters, whose units join the next nearest."""
    notes: tuple[str, ...] = ()
    if rule.n_strata < asked:
        notes = (f"{asked} strata were asked for and {rule.n_strata} made: too few units differ.",)
    moments = moments_by_pass(population, rule, proxy)
    while rule.n_strata > 1 and int(moments.sizes.min()) < max(min_size, 1):
        gone = int(moments.sizes.argmin())
        rule = NearestCentre(
            names=rule.names, centres=np.delete(rule.centres, gone, axis=0), scale=rule.scale
        )
        notes += (f"A cluster of {moments.sizes[gone]} units was dissolved into its neighbours.",)
        moments = moments_by_pass(population, rule, proxy)
    order = np.argsort(moments.proxy_means, kind="stable")
    return StratificationDraft(
        rule=NearestCentre(names=rule.names, centres=rule.centres[order], scale=rule.scale),
        names=tuple(f"cluster {number + 1}" for number in range(len(order))),
        moments=Moments(**{name: getattr(moments, name)[order] for name in Moments.__slots__}),
        notes=notes,
    )


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
    known = np.sort(np.array(levels))
    numbers: list[AnyArray] = []
    kept: list[list[AnyArray]] = []
    for batch in population.batches((by, *names)):
        text = np.asarray(batch[by]).astype(str)
        number = np.minimum(np.searchsorted(known, text), len(known) - 1)
        rows = np.flatnonzero(known[number] == text)
        numbers.append(number[rows])
        kept.append([np.asarray(batch[name])[rows] for name in names])
    number = np.concatenate(numbers)
    order = np.argsort(number, kind="stable")
    columns = [np.concatenate(parts)[order] for parts in zip(*kept, strict=True)]
    starts = np.searchsorted(number[order], np.arange(len(known) + 1))
    for place, level in enumerate(known.tolist()):
        here = slice(starts[place], starts[place + 1])
        one = {name: column[here] for name, column in zip(names, columns, strict=True)}
        yield level, partial(_only, one)


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
                yield {name: np.concatenate([part[name] for part in held]) for name in names}
                held = []
        if sum(len(part[names[0]]) for part in held):
            yield {name: np.concatenate([part[name] for part in held]) for name in names}

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
        inner.append(NearestCentre(names=entry.names, centres=centres, scale=entry.scale))
    return Crossed(categories=rule.categories, inner=tuple(inner))
