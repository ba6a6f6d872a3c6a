"""Strata from an existing category, alone or crossed with intervals of a proxy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratal.arrays import IntArray
from stratal.population.distribution import Distribution, Pictures
from stratal.population.rules import Categories, Crossed, CutPoints
from stratal.strata.moments import Moments, joined, of_pictures, of_sizes
from stratal.strata.proxy_intervals import (
    Part,
    StratificationRequest,
    boundaries_of,
    interval_names,
    part_boundaries,
)
from stratal.strata.strata import Strata

if TYPE_CHECKING:
    from stratal.population.population import Population


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

    rule: Categories
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

    Examples
    --------
    >>> request = StratificationRequest(method="category", n_strata=None, budget=20, minimum=2)
    >>> pooled_groups({"de": 90, "en": 5, "fr": 5}, "language", request).rule.codes
    array([0, 1, 1])
    """
    sizes = np.array(list(levels.values()), np.int64)
    codes = np.arange(len(sizes))
    if request.budget is not None:
        codes = levels_within_budget(sizes, request.budget, request.minimum)
    rule = Categories(column=column, levels=tuple(levels), codes=codes)
    n_pooled = len(sizes) - int(codes.max())
    notes = (f"{n_pooled} small categories of '{column}' were pooled into one.",) if n_pooled > 1 else ()
    return Groups(rule=rule, sizes=sizes, notes=notes)


def category_strata(
    population: Population, by: str, proxy: str | None, request: StratificationRequest
) -> Strata:
    """Return the strata of an existing category, with the moments of the proxy where there is one."""
    if population.proxies:
        pictures = population.distributions(by, proxy)
        return _of_groups(pooled_groups(pictures.sizes, by, request), of_pictures(pictures))
    groups = pooled_groups(population.levels(by), by, request)
    return _of_groups(groups, of_sizes(groups.sizes))


def _of_groups(groups: Groups, moments: Moments) -> Strata:
    """Return each group as one stratum, from the moments of the levels (L,)."""
    codes = groups.rule.codes
    alone = np.array_equal(codes, np.arange(len(codes)))
    found = moments if alone else moments.pooled(codes)
    return Strata.of(found, groups.rule, tuple(groups.names()), notes=groups.notes)


def crossed_strata(population: Population, by: str, column: str, request: StratificationRequest) -> Strata:
    """Return a category crossed with intervals of a proxy; a pool of small categories is cut as one."""
    pictures = population.distributions(by, column)
    if request.n_strata == 1:
        boundaries_of(next(iter(pictures.values())), request.method, 1)
        return category_strata(population, by, column, request)
    groups = pooled_groups(pictures.sizes, by, request)
    whole = of_pictures(pictures)
    parts = [_part_of(pictures, members, whole.part(np.array(members))) for members in groups.members()]
    boundaries, notes = part_boundaries(parts, request, crossed=True)
    inner: list[CutPoints] = []
    names: list[str] = []
    for part, cut, group_name in zip(parts, boundaries, groups.names(), strict=True):
        rule = CutPoints(column=column, cuts=part.picture.cuts[cut - 1])
        inner.append(rule)
        pieces = interval_names(column, rule.cuts) if len(rule.cuts) else ("",)
        names.extend(f"{group_name}, {piece}" if piece else group_name for piece in pieces)
    return Strata.of(
        joined([part.moments(cut) for part, cut in zip(parts, boundaries, strict=True)]),
        Crossed(categories=groups.rule, inner=tuple(inner)),
        tuple(names),
        notes=groups.notes + notes,
    )


def _part_of(pictures: Pictures, members: list[int], moments: Moments) -> Part:
    """Return a level, or a pool of several, as a part that is divided on its own."""
    first = pictures[pictures.bins.names[members[0]]]
    if len(members) == 1:
        return Part(picture=first, divisible=True, whole=moments)
    pool = pooled_picture(pictures, np.array(members))
    return Part(
        picture=first if pool is None else pool,
        divisible=pool is not None,
        whole=moments.pooled(np.zeros(len(members), np.int64)),
    )


def pooled_picture(pictures: Pictures, members: IntArray) -> Distribution | None:
    """Return the distribution of several categories together; `None` if one of them is a histogram.

    `members` are the categories' numbers.

    Examples
    --------
    >>> from stratal.population import Population
    >>> population = Population.from_arrays(proxy=[0.1, 0.4, 0.4, 0.9], groups={"language": list("abbc")})
    >>> pooled_picture(population.distributions("language"), np.array([0, 1])).counts
    array([1, 2])
    """
    if np.isin(pictures.histograms, members).any():
        return None
    bins = pictures.bins
    rows = np.flatnonzero(np.isin(bins.level, members))
    weights = bins.counts[rows]
    values, place = np.unique(bins.values[rows], return_inverse=True)
    counts = np.bincount(place, weights).astype(np.int64)
    second = None
    if bins.second is not None:
        second = np.bincount(place, weights * bins.second[rows]) / counts
    return Distribution(
        values=values, counts=counts, cuts=values[1:], second_moments=second, scaled=pictures.scaled
    )


def level_name(column: str, levels: Sequence[str]) -> str:
    """Return a name for a stratum of one or several levels of a group column.

    Examples
    --------
    >>> level_name("language", ["de"])
    'language = de'
    >>> level_name("language", ["de", "en", "fr", "it", "nl"])
    'language in {de, en, fr, and 2 more}'
    """
    if len(levels) == 1:
        return f"{column} = {levels[0]}"
    shown = list(levels[:_SHOWN_LEVELS])
    if len(levels) > len(shown):
        shown.append(f"and {len(levels) - len(shown)} more")
    return f"{column} in {{{', '.join(shown)}}}"


def levels_within_budget(sizes: IntArray, budget: int, minimum: int) -> IntArray:
    """Return the stratum of each level (L,), small ones pooled until proportional draws reach `minimum`.

    The pool is the last stratum. Where it stays too small itself, the next smallest level joins it.

    Examples
    --------
    >>> levels_within_budget(np.array([500, 480, 10, 10]), 100, 2)
    array([0, 1, 2, 2])
    >>> levels_within_budget(np.array([100, 50, 3]), 100, 4)
    array([0, 1, 1])
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
    """Return how many groups levels (L,) make: fewer than L if the budget falls short of their minimum.

    Examples
    --------
    >>> sizes = np.array([500, 480, 10, 10])
    >>> groups_that_fit(sizes, 8, 2), groups_that_fit(sizes, 7, 2)
    (4, 2)
    """
    if int(np.minimum(minimum, sizes).sum()) <= budget:
        return len(sizes)
    return int(levels_within_budget(sizes, budget, minimum).max()) + 1
