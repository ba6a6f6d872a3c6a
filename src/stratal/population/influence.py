"""`Influence`: what the per-unit variable of an estimand may be, before any label, as formulas of columns.

An estimand that is a smooth function of means has, to first order, the error of the mean of one variable u.
Labels decide u; a proxy says what it may be. Its conditional moments E[u | x] and E[u² | x] are a proxy with
second moments, and strata, allocations and designs are made of it as of any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, FloatArray, Record
from stratal.errors import InputError
from stratal.population.cells import Cells
from stratal.population.expressions import Expression
from stratal.population.population import Population
from stratal.population.rules.derived import CELL, INFLUENCE
from stratal.population.rules.rule import Everything, Rule
from stratal.proxy.proxy import Proxy


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence(Record):
    """The conditional moments of an estimand's influence u.

    Parameters
    ----------
    value : float
        What the estimand is expected to be.
    mean : Expression
        E[u | x].
    square : Expression
        E[u² | x], over the ways in which the proxy may be off.
    cells : Cells
        Parts of the population within which the strata are made.
    known : tuple of str
        Cells in which u is known by construction, so that they need no label.

    Examples
    --------
    >>> from stratal.population.expressions import Number
    >>> p = Number(name="p")
    >>> influence = Influence(value=0.5, mean=p - 0.5, square=p * 0.0 + 0.25, cells=Cells(names=("all",)))
    >>> population = Population.from_arrays(proxy={"p": [0.25, 0.75]})
    >>> influence.seen_in(population).proxy_names
    ('influence',)
    """

    value: float
    mean: Expression
    square: Expression
    cells: Cells
    known: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        strange = set(self.known) - set(self.cells.names)
        if strange:
            raise InputError(
                "known cells must be cells", given=sorted(strange), allowed=", ".join(self.cells.names)
            )

    def moments(self, population: Population) -> tuple[FloatArray, FloatArray, AnyArray]:
        """Return E[u | x] (N,), E[u² | x] (N,) and the cells (N,) of all units."""
        columns = (*self.mean.columns, *self.square.columns, *self.cells.columns)
        found = []
        for batch in population.batches(tuple(dict.fromkeys(columns))):
            size = len(next(iter(batch.values())))
            mean = np.broadcast_to(self.mean.of(batch), (size,))
            square = np.maximum(np.broadcast_to(self.square.of(batch), (size,)), mean**2)
            found.append((mean, square, self.cells.of(batch)))
        mean, square, cells = (np.concatenate(part) for part in zip(*found, strict=True))
        return mean, square, cells

    def seen_in(self, population: Population) -> Population:
        """Return the population as a plan for the estimand sees it: u is its proxy, the cells its groups."""
        mean, square, cells = self.moments(population)
        proxy = Proxy(values=mean, second_moments=square, bounds=None, name=INFLUENCE)
        return Population.from_arrays(proxy=proxy, groups={CELL: cells})


def averages(population: Population, formulas: list[Expression]) -> FloatArray:
    """Return the population means (q,) of formulas, rounded to nine digits, as engines add in any order.

    Examples
    --------
    >>> from stratal.population.expressions import Number
    >>> population = Population.from_arrays(proxy={"p": [0.25, 0.75]})
    >>> averages(population, [Number(name="p"), Number(name="p") * 2.0]).tolist()
    [0.5, 1.0]
    """
    columns = tuple(dict.fromkeys(name for formula in formulas for name in formula.columns))
    if not columns:
        return np.array([float(formula.of({})) for formula in formulas])
    return np.array([float(f"{value:.9g}") for value in population.means_of(formulas)])


def stratum_averages(population: Population, rule: Rule, formulas: list[Expression]) -> FloatArray:
    """Return the means (H, q) of formulas in each stratum of a rule.

    Examples
    --------
    >>> from stratal.population.expressions import Number
    >>> from stratal.population.rules.rule import CutPoints
    >>> population = Population.from_arrays(proxy={"p": [0.25, 0.75, 0.5]})
    >>> halves = CutPoints(column="p", cuts=np.array([0.5]))
    >>> stratum_averages(population, halves, [Number(name="p")]).ravel()
    array([0.25 , 0.625])
    """
    if isinstance(rule, Everything):
        return averages(population, formulas)[None, :]
    columns = dict.fromkeys(name for formula in formulas for name in formula.columns)
    sums = np.zeros((rule.n_strata, len(formulas)))
    counts = np.zeros(rule.n_strata)
    for batch in population.batches(tuple(columns | dict.fromkeys(rule.columns))):
        codes = rule.assign(batch)
        counts += np.bincount(codes, minlength=rule.n_strata)
        for j, formula in enumerate(formulas):
            values = np.broadcast_to(formula.of(batch), codes.shape)
            sums[:, j] += np.bincount(codes, values, minlength=rule.n_strata)
    return np.asarray(sums / np.maximum(counts, 1.0)[:, None])
