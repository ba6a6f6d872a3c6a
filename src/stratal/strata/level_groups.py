"""Strata that are the levels of a group column. Small levels are pooled, so that strata get enough labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stratal.arrays import IntArray, code_count
from stratal.population import rules
from stratal.population.distribution import LevelDistributions
from stratal.population.population import Population
from stratal.strata.number_of_strata import StratificationRequest
from stratal.strata.strata import Strata, moments_of_levels, moments_of_sizes

# Maximum number of levels that the name of a pooled stratum lists. The others are counted: "and 5 more".
_MAX_NAMED_LEVELS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelGroups:
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


def pooled_groups(levels: dict[str, int], column: str, request: StratificationRequest) -> LevelGroups:
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
    return LevelGroups(rule=rule, sizes=sizes, notes=notes)


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
    codes_of_others = np.cumsum(~is_pooled) - 1
    n_others = len(sizes) - n_pooled
    return np.asarray(np.where(is_pooled, n_others, codes_of_others))


def count_groups(sizes: IntArray, budget: int, minimum: int) -> int:
    """Return the number of groups of L levels: L, unless the budget is below the sum of their minima.

    Only then are small levels pooled.
    """
    if int(np.minimum(minimum, sizes).sum()) <= budget:
        return len(sizes)
    return code_count(pool_small_levels(sizes, budget, minimum))
