"""Sequential Poisson sampling: a fixed number of units, with probability proportional to a size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs.poisson import UnequalProbabilities, inclusion_scale, measure, sequential_poisson
from stratal.designs.sample import Design
from stratal.population.population import Population
from stratal.population.summary import Drawn
from stratal.strata.integers import check_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class ProportionalToSize(UnequalProbabilities):
    """Sequential Poisson sampling: the n units with the smallest u/π, π ∝ size, u permanent random numbers.

    Exactly `budget` units. Units whose π would exceed one are certain. Their π is exact; the others' is
    approximate: the realised frequencies are up to 22 % off at N = 10, n = 3, and 3 % at N = 100, n = 10.
    Nested in the budget, but for the rare unit that is displaced when another becomes certain.

    Parameters
    ----------
    budget : int
        Units to draw, from 1 to N.
    size : str
        `sqrt-variance`: √((ẑ' − low)(high − ẑ')) with ẑ' the proxy moved a fifth of the way to its overall
        mean, so that no unit of a flat 0 or 1 is out of reach (with second moments: √ of the plug-in variance
        moved a fifth of the way to its mean). Otherwise the name of a proxy or feature column of positive
        numbers, or `equal`.
    proxy : str, optional
        The proxy of `sqrt-variance`; the first unless named.

    Notes
    -----
    Ohlsson (1995, 1998), "Sequential Poisson sampling". The variance is Hájek's approximation with a fixed n
    (`stratal.designs.poisson.fixed_size`).

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.0, 0.5, 1.0, 0.9])
    >>> ProportionalToSize(budget=2).draw(population, seed=7).size
    2
    """

    kind: ClassVar[str] = "proportional-to-size"
    words: ClassVar[tuple[str, ...]] = (
        "a sequential Poisson sample with inclusion probabilities proportional to size",
        "ohlsson",
    )
    assumption: ClassVar[str] = "The variance is the design's approximate one."
    fixed_size: ClassVar[bool] = True
    budget: int
    size: str = "sqrt-variance"
    proxy: str | None = None

    def select(self, population: Population, seed: int) -> tuple[Design, Drawn, FloatArray, None]:
        """Draw `budget` units."""
        check_budget(self.budget, population.size)
        measured = measure(population, self.size, self.proxy)
        profile = population.size_profile(measured, self.budget)
        scale = inclusion_scale(profile, self.budget, f"size '{self.size}'")
        found, first = sequential_poisson(population, measured, scale, self.budget, seed)
        kept = np.sort(first)
        return self, found.drawn.only(kept), np.minimum(1.0, scale * found.size[kept]), None
