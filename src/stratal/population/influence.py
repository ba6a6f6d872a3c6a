"""`Influence`: the expected influence of each unit on an estimand before any label, as formulas of columns.

If an estimand is a smooth function of means, its error is, to first order, that of the mean of one variable,
the influence u. The label of a unit determines its u; the proxy predicts it. The conditional moments E[u | x]
and E[u² | x] are therefore a proxy with second moments, from which strata and allocations are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, FloatArray, Record
from stratal.population.expressions import (
    ALL_UNITS,
    ArrayEvaluator,
    ByLevel,
    Cells,
    Expression,
    columns_read,
    sum_of,
)
from stratal.population.population import Population
from stratal.population.rules import CELL, INFLUENCE, Everything, Rule, round_to_digits
from stratal.proxy.proxy import Proxy


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence(Record):
    """The conditional moments of an estimand's influence u, given the columns x of a unit.

    Parameters
    ----------
    value : float
        Expected value of the estimand; NaN for several estimands.
    mean : Expression
        E[u | x].
    square : Expression
        E[u² | x], where the expectation takes into account that the proxy may be wrong.
    cells : Cells
        Parts of the population that are stratified separately. Default: none.
    known_cells : tuple of str
        Cells in which u does not depend on labels, so that their units need no label.
    levels : ByLevel, optional
        For an object that represents the influences of L estimands, one for each level of a group: the number
        of the level of each unit, and L for units of other levels. The influence of a level is u for its
        units and 0 for others.
    """

    value: float
    mean: Expression
    square: Expression
    cells: Cells = ALL_UNITS
    known_cells: tuple[str, ...] = ()
    levels: ByLevel | None = None

    def moments(self, population: Population) -> tuple[FloatArray, FloatArray, AnyArray]:
        """Return E[u | x] (N,), E[u² | x] (N,) and the cells (N,) of all units."""
        columns = columns_read((self.mean, self.square, *self.cells.tests))
        batches = []
        for batch in population.batches(columns):
            size = len(next(iter(batch.values())))
            mean = np.broadcast_to(self.mean.evaluate(batch), (size,))
            square = np.maximum(np.broadcast_to(self.square.evaluate(batch), (size,)), mean**2)
            batches.append((mean, square, self.cells.assign(batch)))
        mean, square, cells = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
        return mean, square, cells

    @property
    def is_known(self) -> Expression:
        """The formula that is 1 for units in `known_cells`, and 0 for others."""
        tests = [self.cells.test_of(name) for name in self.known_cells]
        # The last cell has no test; its units count as not known.
        return sum_of([test for test in tests if test is not None])

    def to_population(self, population: Population) -> Population:
        """Return the population with u as its proxy and the cells as its groups, for a plan."""
        mean, square, cells = self.moments(population)
        mean = round_to_digits(mean)
        proxy = Proxy(values=mean, second_moments=np.maximum(square, mean**2), bounds=None, name=INFLUENCE)
        return Population.from_arrays(proxy=proxy, groups={CELL: cells})


def population_means(population: Population, formulas: list[Expression]) -> FloatArray:
    """Return the population means (q,) of formulas.

    They are rounded to nine digits, because engines add numbers in any order.
    """
    if not columns_read(formulas):
        return np.array([float(formula.evaluate({})) for formula in formulas])
    return np.array([float(f"{value:.9g}") for value in population.means_of(formulas)])


def stratum_averages(population: Population, rule: Rule, formulas: list[Expression]) -> FloatArray:
    """Return the means (H, q) of formulas in each stratum of a rule."""
    if isinstance(rule, Everything):
        return population_means(population, formulas)[None, :]
    sums, counts = _stratum_sums(population, rule, formulas)
    return np.asarray(sums / np.maximum(counts, 1.0)[:, None])


def _stratum_sums(
    population: Population, rule: Rule, formulas: list[Expression], level: ByLevel | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return sums (K, q) of formulas and numbers of units (K,) in the strata, or in their levels.

    Without `level`, K is the number of strata. With L levels, each stratum is divided into L + 1 parts: its
    units of each level, and those of other levels.
    """
    columns = [*columns_read(formulas), *rule.columns]
    parts_per_stratum = 1
    if level is not None:
        columns += level.columns
        parts_per_stratum = len(level.levels) + 1
    n_parts = rule.n_strata * parts_per_stratum
    sums = np.zeros((n_parts, len(formulas)))
    counts = np.zeros(n_parts)
    # Stratum codes that are in memory; they have the order of the batches.
    stored_codes = population.codes(rule)
    start = 0
    for batch in population.batches(tuple(dict.fromkeys(columns))):
        rows = slice(start, start + len(next(iter(batch.values()))))
        evaluator = ArrayEvaluator(batch, population.known_level_codes(columns, rows))
        start = rows.stop
        stratum = rule.assign(batch) if stored_codes is None else stored_codes[rows]
        codes = stratum.astype(np.int64) * parts_per_stratum
        if level is not None:
            codes = codes + level.evaluate(evaluator).astype(np.int64)
        counts += np.bincount(codes, minlength=n_parts)
        for j, formula in enumerate(formulas):
            values = np.broadcast_to(formula.evaluate(evaluator), codes.shape)
            sums[:, j] += np.bincount(codes, values, minlength=n_parts)
    return sums, counts


def _moments_of_levels(
    population: Population, rule: Rule, influence: Influence, levels: ByLevel
) -> FloatArray:
    """Return the moments (4, L, H) of the influences of L levels; see `influence_moments`.

    `influence` is for the units of all levels, and `levels` assigns each unit the number of its level.
    """
    formulas = [influence.mean, influence.mean * influence.mean, influence.square]
    sums, counts = _stratum_sums(population, rule, formulas, levels)
    shape = (rule.n_strata, len(levels.levels) + 1)
    sizes = np.maximum(counts.reshape(shape).sum(axis=1), 1.0)
    # Without the last part of each stratum, the units of other levels.
    moments = (sums.reshape(*shape, 3) / sizes[:, None, None])[:, :-1]
    # The influence of a level is 0 in strata without units of this level.
    is_known = (counts.reshape(shape)[:, :-1] == 0).astype(np.float64)
    return np.concatenate([np.moveaxis(moments, (0, 1, 2), (2, 1, 0)), is_known.T[None]])


def influence_moments(population: Population, rule: Rule, influences: Sequence[Influence]) -> FloatArray:
    """Return the average moments of J influences in each stratum.

    Returns
    -------
    float (4, J, H)
        The averages of E[u | x], E[u | x]² and E[u² | x], and the share of units whose u is known without a
        label.
    """
    without_levels = [influence for influence in influences if influence.levels is None]
    formulas = []
    for influence in without_levels:
        mean = influence.mean
        formulas += [mean, mean * mean, influence.square, influence.is_known]
    # One pass over the population for all of them.
    if without_levels:
        means = stratum_averages(population, rule, formulas)
    else:
        means = np.empty((rule.n_strata, 0))
    # The moments (4, H) of each influence without levels, in their order.
    moments_without_levels = iter(np.moveaxis(means.reshape(rule.n_strata, len(without_levels), 4), 0, 2))
    moments = []
    for influence in influences:
        if influence.levels is None:
            moments.append(next(moments_without_levels)[:, None, :])
        else:
            moments.append(_moments_of_levels(population, rule, influence, influence.levels))
    return np.concatenate(moments, axis=1)
