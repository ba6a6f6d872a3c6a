"""Strata from an existing category, alone or crossed with intervals of a proxy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratal.arrays import IntArray
from stratal.distribution import Distribution
from stratal.strata.crossed import Crossed
from stratal.strata.draft import Draft, Wish
from stratal.strata.intervals import boundaries_of, candidate_boundaries, merged_boundaries
from stratal.strata.merging import levels_within_budget, pool_levels
from stratal.strata.moments import Moments, joined, of_bins, of_sizes
from stratal.strata.naming import interval_names, level_name
from stratal.strata.number import choose_number
from stratal.strata.rule import Categories, CutPoints

if TYPE_CHECKING:
    from stratal.population.base import Population

_NO_BOUNDARIES = np.empty(0, np.int64)


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


def pooled_groups(levels: dict[str, int], column: str, wish: Wish) -> Groups:
    """Return the groups of a column: its levels, those too small for their draws (or for `min_size`) in one
    pool.

    Examples
    --------
    >>> wish = Wish(method="category", n_strata=None, budget=20, minimum=2, min_size=1)
    >>> pooled_groups({"de": 90, "en": 5, "fr": 5}, "language", wish).rule.codes
    array([0, 1, 1])
    """
    sizes = np.array(list(levels.values()), np.int64)
    codes = pool_levels(sizes, wish.min_size)
    if wish.n_strata is None and wish.budget is not None:
        tight = levels_within_budget(sizes, wish.budget, wish.minimum)
        codes = tight if tight.max() < codes.max() else codes
    rule = Categories(column=column, levels=tuple(levels), codes=codes)
    n_pooled = len(sizes) - int(codes.max())
    notes = (
        (f"{n_pooled} small categories of '{column}' were pooled into one stratum.",) if n_pooled > 1 else ()
    )
    return Groups(rule=rule, sizes=sizes, notes=notes)


def category_draft(population: Population, by: str, proxy: str | None, wish: Wish) -> Draft:
    """Return the strata of an existing category, with the moments of the proxy where there is one."""
    if population.proxies:
        pictures = population.distributions(by, proxy)
        levels = {level: picture.size for level, picture in pictures.items()}
        moments = joined([of_bins(picture, _NO_BOUNDARIES) for picture in pictures.values()])
    else:
        levels = population.levels(by)
        moments = of_sizes(np.array(list(levels.values()), np.int64))
    groups = pooled_groups(levels, by, wish)
    return Draft(
        rule=groups.rule,
        names=tuple(groups.names()),
        moments=moments.pooled(groups.rule.codes),
        notes=groups.notes,
    )


def crossed_draft(population: Population, by: str, column: str, wish: Wish) -> Draft:
    """Return a category crossed with intervals of a proxy; a pool of small categories is not cut."""
    pictures = population.distributions(by, column)
    groups = pooled_groups({level: picture.size for level, picture in pictures.items()}, by, wish)
    ordered = list(pictures.values())
    whole = [[ordered[i] for i in members] for members in groups.members()]
    boundaries, notes = _group_boundaries(whole, wish)
    inner: list[CutPoints] = []
    names: list[str] = []
    moments: list[Moments] = []
    merged = 0
    for group, (parts, group_name) in enumerate(zip(whole, groups.names(), strict=True)):
        cut, went = merged_boundaries(parts[0], boundaries[group], wish.min_size)
        merged += went
        rule = CutPoints(column=column, cuts=parts[0].cuts[cut - 1])
        inner.append(rule)
        pieces = interval_names(column, rule.cuts) if len(rule.cuts) else ("",)
        names.extend(f"{group_name}, {piece}" if piece else group_name for piece in pieces)
        moments.append(_moments(parts, cut))
    if merged:
        notes += (f"{merged} strata with fewer than {wish.min_size} units were merged into a neighbour.",)
    return Draft(
        rule=Crossed(categories=groups.rule, inner=tuple(inner)),
        names=tuple(names),
        moments=joined(moments),
        notes=groups.notes + notes,
    )


def _moments(parts: list[Distribution], boundaries: IntArray) -> Moments:
    if len(parts) == 1:
        return of_bins(parts[0], boundaries)
    return joined([of_bins(part, _NO_BOUNDARIES) for part in parts]).pooled(np.zeros(len(parts), np.int64))


def _group_boundaries(groups: list[list[Distribution]], wish: Wish) -> tuple[list[IntArray], tuple[str, ...]]:
    """Return the boundaries within each group, and notes."""
    if wish.n_strata is None:
        return _chosen(groups, wish)
    asked = wish.n_strata
    found = [
        boundaries_of(parts[0], wish.method, asked) if len(parts) == 1 else _NO_BOUNDARIES for parts in groups
    ]
    short = sum(len(entry) + 1 < asked for entry in found)
    if not short:
        return found, ()
    return found, (f"{short} of {len(groups)} groups have fewer than the {asked} strata asked for in each.",)


def _chosen(groups: list[list[Distribution]], wish: Wish) -> tuple[list[IntArray], tuple[str, ...]]:
    """Choose one number of strata for every group; a group has fewer if its draws do not suffice."""
    assert wish.budget is not None
    total = sum(part.size for parts in groups for part in parts)
    tables = []
    for parts in groups:
        most = wish.most(sum(part.size for part in parts) / total)
        single = len(parts) == 1 and most > 1
        tables.append(candidate_boundaries(parts[0], wish.method, most) if single else [_NO_BOUNDARIES])
    numbers = range(max(len(table) for table in tables))
    picks = [[table[min(number, len(table) - 1)] for table in tables] for number in numbers]
    candidates = [
        joined([_moments(parts, cut) for parts, cut in zip(groups, pick, strict=True)]) for pick in picks
    ]
    best = choose_number(
        candidates, wish.budget, minimum=wish.minimum, scaled=groups[0][0].scaled, bounds=wish.bounds
    )
    n_strata = len(candidates[best].sizes)
    return picks[best], (f"{n_strata} strata in all were chosen for a budget of {wish.budget}.",)
