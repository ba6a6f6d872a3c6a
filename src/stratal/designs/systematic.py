"""Systematic sampling: every (N/n)-th unit in the order of the proxy, from a random start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.sample import Design, Sample
from stratal.designs.weighting import Weighting
from stratal.population.drawn_units import DrawnUnits
from stratal.population.population import Population
from stratal.randomness import keys_of_ids, uniforms
from stratal.strata.arguments import check_budget


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SystematicWeighting(Weighting):
    """Weights and variance of a realised systematic sample.

    Parameters
    ----------
    order : int (n,)
        Indices that sort the labelled units in the order of the draw.
    size : int
        N.
    """

    order: IntArray
    size: float

    @property
    def weights(self) -> FloatArray:
        """1/n per unit (n,)."""
        n = len(self.order)
        return np.full(n, 1.0 / n)

    def covariance(self, variables: FloatArray) -> FloatArray:
        """See `successive_differences`."""
        return successive_differences(variables[self.order], self.size)

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Degrees of freedom of von Neumann's successive differences, 2 (n − 1)² / (3n − 4), at least 1."""
        n = len(self.order)
        if n > 1:
            return max(2.0 * (n - 1) ** 2 / (3 * n - 4), 1.0)
        return 1.0


def successive_differences(variables: FloatArray, population_size: float) -> FloatArray:
    """Return the approximate covariance of the mean of a systematic sample.

    It is (1 − n/N) Σ (y_i − y_(i−1))² / (2 n (n − 1)) over units in the order of the draw, as if each pair of
    neighbours were two draws from one stratum. It slightly overestimates the variance if the mean changes
    along the order, and can be very wrong if the order has a period near N/n (Wolter 2007, eq. 8.2.4).
    `variables` (n, q) are in the order of the draw. The result is (q, q).
    """
    n, q = variables.shape
    # A census has no sampling error.
    if n >= population_size:
        return np.zeros((q, q))
    # One of several units shows no difference between units.
    if n < 2:
        return np.full((q, q), np.nan)
    steps = np.diff(variables, axis=0)
    return np.asarray((1.0 - n / population_size) / (2.0 * n * (n - 1)) * steps.T @ steps)


# The random start is a multiple of 2⁻²⁴, so that i + start is exact for up to 2²⁹ units of a sample.
_N_STARTS = 2.0**24


@dataclass(frozen=True, slots=True, kw_only=True)
class Systematic(Design):
    """Systematic sampling: units are sorted by the proxy, and every (N/n)-th is drawn from a random start.

    Every unit has π = n/N exactly, and the sample represents the distribution of the proxy as well as n
    strata with one draw each. There are two disadvantages: the variance can only be approximated (by
    successive differences), and samples are not nested, so there is no next round.

    Parameters
    ----------
    budget : int
        Units to draw, from 1 to N.
    order : str, optional
        The proxy to sort by; by default the first. Ties are in random order.

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

    kind = "systematic"
    report_description = (
        "a systematic sample along the proxy, with its variance approximated by successive differences",
        "cochran",
    )
    assumption = "The variance is the approximate variance of the design."
    budget: int
    order: str | None = None

    def select(self, population: Population, seed: int) -> tuple[Design, DrawnUnits, FloatArray, None]:
        """Draw `budget` units."""
        check_budget(self.budget, population.size)
        column = population.proxy_info(self.order).name
        start = float(uniforms(keys_of_ids(["start"], seed, "systematic:"))[0])
        ranks = systematic_ranks(population.size, self.budget, start)
        drawn = population.at_ranks(column, ranks, seed)
        probabilities = np.full(self.budget, self.budget / population.size)
        return Systematic(budget=self.budget, order=column), drawn, probabilities, None

    @classmethod
    def from_options(cls, budget: int, size: str, cluster: str | None, proxy: str | None = None) -> Self:
        """Return the design of a budget along a proxy."""
        return cls(budget=budget, order=proxy)

    def weighting(self, sample: Sample, labelled: BoolArray) -> SystematicWeighting:
        """Return equal weights and the order, under the assumption that labels are missing at random."""
        names: tuple[str | None, ...] = sample.proxy_names
        values = sample.proxies[labelled, names.index(self.order)]
        return SystematicWeighting(order=np.argsort(values, kind="stable"), size=sample.population_size)


def systematic_ranks(size: int, budget: int, start: float) -> IntArray:
    """Return the ranks (n,) of the drawn units, ⌊(i + start) N/n⌋: each rank has the probability n/N.

    `size` is N, `budget` is n, and `start` is in [0, 1).
    """
    start = np.floor(start * _N_STARTS) / _N_STARTS
    ranks = np.floor((np.arange(budget) + start) * (size / budget)).astype(np.int64)
    return np.asarray(np.minimum(ranks, size - 1), dtype=np.int64)
