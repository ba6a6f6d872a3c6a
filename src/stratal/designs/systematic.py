"""Systematic sampling: every (N/n)-th unit in the order of the proxy, from a random start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.drawing import sample_of
from stratal.designs.sample import Design, Sample
from stratal.designs.systematic_weighting import SystematicWeighting
from stratal.errors import InputError
from stratal.population.population import Population, require_population
from stratal.randomness import check_seed, keys_of_ids, uniforms
from stratal.strata.integers import check_budget

_STARTS = 2.0**24


@dataclass(frozen=True, slots=True, kw_only=True)
class Systematic(Design):
    """Systematic sampling: units are sorted by the proxy, and every (N/n)-th is drawn from a random start.

    Every unit has π = n/N exactly, and the sample follows the proxy as closely as n strata of one draw each.
    Two prices: the variance can only be approximated (by successive differences), and the sample is not
    nested: another budget is another draw, so there is no next round.

    Parameters
    ----------
    budget : int
        Units to draw, from 1 to N.
    order : str, optional
        The proxy to sort by; the first unless named. Ties are in random order.

    Notes
    -----
    Fractional intervals: Särndal, Swensson & Wretman (1992), 3.4.2. Variance: Wolter (2007), "Introduction to
    variance estimation", estimator v₂, chapter 8.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.9, 0.2, 0.8])
    >>> sorted(Systematic(budget=2).draw(population, seed=7).proxies[:, 0].round().tolist())
    [0.0, 1.0]
    """

    kind: ClassVar[str] = "systematic"
    budget: int
    order: str | None = None

    def draw(self, population: Population, seed: int) -> Sample:
        """Draw `budget` units."""
        population, seed = require_population(population, "draw"), check_seed(seed)
        check_budget(self.budget, population.size)
        column = population.proxy_info(self.order).name
        start = float(uniforms(keys_of_ids(["start"], seed, "systematic:"))[0])
        ranks = systematic_ranks(population.size, self.budget, start)
        drawn = population.at_ranks(column, ranks, seed)
        probabilities = np.full(self.budget, self.budget / population.size)
        realised = Systematic(budget=self.budget, order=column)
        return sample_of(realised, population, seed, drawn, probabilities)

    def weighting(self, sample: Sample, labelled: BoolArray) -> SystematicWeighting:
        """Return equal weights and the order; nonresponse is taken to be at random."""
        return SystematicWeighting(
            order=np.argsort(_order_values(sample, self.order)[labelled], kind="stable"),
            size=sample.population_size,
        )


def systematic_ranks(size: int, budget: int, start: float) -> IntArray:
    """Return the ranks (n,) drawn: ⌊(i + start) N/n⌋, so that each rank has probability n/N.

    Parameters
    ----------
    size, budget : int
        N and n.
    start : float
        In [0, 1).

    Examples
    --------
    >>> systematic_ranks(10, 4, 0.5)
    array([1, 3, 6, 8])
    """
    start = np.floor(start * _STARTS) / _STARTS  # whole bits, so that i + start is exact
    ranks = np.floor((np.arange(budget) + start) * (size / budget)).astype(np.int64)
    return np.asarray(np.minimum(ranks, size - 1), dtype=np.int64)


def _order_values(sample: Sample, column: str | None) -> FloatArray:
    names = sample.proxy_names
    if column not in names:
        raise InputError(
            f"the sample does not hold the column that it was sorted by: {column!r}",
            allowed=", ".join(map(repr, names)),
        )
    return np.asarray(sample.proxies[:, names.index(column)])
