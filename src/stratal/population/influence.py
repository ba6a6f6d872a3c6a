"""`Influence`: what the per-unit variable of an estimand may be, before any label, as formulas of columns.

An estimand that is a smooth function of means has, to first order, the error of the mean of one variable u.
Labels decide u; a proxy says what it may be. Its conditional moments E[u | x] and E[u² | x] are a proxy with
second moments, and strata, allocations and designs are made of it as of any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, FloatArray, Record
from stratal.population.expressions import ArrayEvaluator, ByLevel, Cells, Expression, total
from stratal.population.population import Population
from stratal.population.rules import CELL, INFLUENCE, Everything, Rule, round_to_digits
from stratal.proxy.proxy import Proxy


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence(Record):
    """The conditional moments of an estimand's influence u.

    Parameters
    ----------
    value : float
        Expected value of the estimand; NaN for several estimands.
    mean : Expression
        E[u | x].
    square : Expression
        E[u² | x], over the ways in which the proxy may be wrong.
    cells : Cells
        Parts of the population within which the strata are made.
    known_cells : tuple of str
        Cells in which u is known by construction, so that they need no label.
    levels : ByLevel, optional
        The number of each unit's level, L at any other, where this stands for the influences of L levels,
        each u in its level and 0 elsewhere.
    """

    value: float
    mean: Expression
    square: Expression
    cells: Cells
    known_cells: tuple[str, ...] = ()
    levels: ByLevel | None = None

    def moments(self, population: Population) -> tuple[FloatArray, FloatArray, AnyArray]:
        """Return E[u | x] (N,), E[u² | x] (N,) and the cells (N,) of all units."""
        columns = (*self.mean.columns, *self.square.columns, *self.cells.columns)
        batches = []
        for batch in population.batches(tuple(dict.fromkeys(columns))):
            size = len(next(iter(batch.values())))
            mean = np.broadcast_to(self.mean.evaluate(batch), (size,))
            square = np.maximum(np.broadcast_to(self.square.evaluate(batch), (size,)), mean**2)
            batches.append((mean, square, self.cells.assign(batch)))
        mean, square, cells = (np.concatenate(part) for part in zip(*batches, strict=True))
        return mean, square, cells

    @property
    def irrelevant(self) -> Expression:
        """The formula that is 1 for the units in whose cells u is known, else 0."""
        return total([test for name in self.known_cells if (test := self.cells.test_of(name)) is not None])

    def to_population(self, population: Population) -> Population:
        """Return the population with u as its proxy and the cells as its groups, for a plan."""
        mean, square, cells = self.moments(population)
        mean = round_to_digits(mean)
        proxy = Proxy(values=mean, second_moments=np.maximum(square, mean**2), bounds=None, name=INFLUENCE)
        return Population.from_arrays(proxy=proxy, groups={CELL: cells})


def averages(population: Population, formulas: list[Expression]) -> FloatArray:
    """Return the population means (q,) of formulas, rounded to nine digits, as engines add in any order."""
    columns = tuple(dict.fromkeys(name for formula in formulas for name in formula.columns))
    if not columns:
        return np.array([float(formula.evaluate({})) for formula in formulas])
    return np.array([float(f"{value:.9g}") for value in population.means_of(formulas)])


def stratum_averages(population: Population, rule: Rule, formulas: list[Expression]) -> FloatArray:
    """Return the means (H, q) of formulas in each stratum of a rule."""
    if isinstance(rule, Everything):
        return averages(population, formulas)[None, :]
    sums, counts = _stratum_sums(population, rule, formulas)
    return np.asarray(sums / np.maximum(counts, 1.0)[:, None])


def _stratum_sums(
    population: Population, rule: Rule, formulas: list[Expression], level: ByLevel | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return sums (K, q) of formulas and numbers of units (K,): of each stratum, or of its levels.

    Levels follow one another within a stratum; a unit at none of them counts as one more.
    """
    columns = dict.fromkeys(name for formula in formulas for name in formula.columns)
    columns |= dict.fromkeys(rule.columns) | dict.fromkeys(() if level is None else level.columns)
    parts_per_stratum = 1 if level is None else len(level.levels) + 1
    n_parts = rule.n_strata * parts_per_stratum
    sums = np.zeros((n_parts, len(formulas)))
    counts = np.zeros(n_parts)
    # Codes in memory have the order of the batches.
    stored_codes = population.codes(rule)
    start = 0
    for batch in population.batches(tuple(columns)):
        part = slice(start, start + len(next(iter(batch.values()))))
        evaluator = ArrayEvaluator(batch, population.known_level_codes(columns, part))
        start = part.stop
        stratum = rule.assign(batch) if stored_codes is None else stored_codes[part]
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
    """Return E[u], E[u]² and E[u²] on average over each stratum, and 1 where all is known (4, L, H)."""
    formulas = [influence.mean, influence.mean * influence.mean, influence.square]
    sums, counts = _stratum_sums(population, rule, formulas, levels)
    shape = (rule.n_strata, len(levels.levels) + 1)
    sizes = np.maximum(counts.reshape(shape).sum(axis=1), 1.0)
    shares_of = (sums.reshape(*shape, 3) / sizes[:, None, None])[:, :-1]
    irrelevant = (counts.reshape(shape)[:, :-1] == 0).astype(np.float64)
    return np.concatenate([np.moveaxis(shares_of, (0, 1, 2), (2, 1, 0)), irrelevant.T[None]])


def influence_moments(population: Population, rule: Rule, influences: Sequence[Influence]) -> FloatArray:
    """Return E[u], E[u]² and E[u²] of J influences on average over strata, and where all is known.

    Returns
    -------
    float (4, J, H)
        The last is the share of the units that are known without a label.
    """
    single = [part for part in influences if part.levels is None]
    formulas = [
        formula
        for part in single
        for formula in (part.mean, part.mean * part.mean, part.square, part.irrelevant)
    ]
    if single:
        averages = stratum_averages(population, rule, formulas)
    else:
        averages = np.empty((rule.n_strata, 0))
    plain = iter(np.moveaxis(averages.reshape(rule.n_strata, len(single), 4), 0, 2))
    parts = [
        next(plain).reshape(4, 1, -1)
        if part.levels is None
        else _moments_of_levels(population, rule, part, part.levels)
        for part in influences
    ]
    return np.concatenate(parts, axis=1)
