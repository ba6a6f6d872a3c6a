"""Poisson sampling: every unit is drawn or not, independently, so that the number drawn is random."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stratal.arrays import BoolArray
from stratal.designs.asked import require_column_name
from stratal.designs.drawing import sample_of
from stratal.designs.inclusion import inclusion_scale, measure, refuse_nonpositive, responding
from stratal.designs.poisson_weighting import PoissonWeighting
from stratal.designs.sample import Design, Sample
from stratal.errors import InputError
from stratal.population.population import Population, require_population
from stratal.population.size_measures import Size
from stratal.randomness import check_seed
from stratal.strata.integers import check_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson(Design):
    """Poisson sampling: a unit is drawn when its permanent random number u is below its π.

    Inclusion probabilities are exact, the number of units is not: on average it is Σ π. Nested: larger
    probabilities with the same seed keep every unit.

    Parameters
    ----------
    probability : str or float, optional
        π itself: the name of a proxy or feature column, or one number for all units; above 0, at most 1.
    budget : int, optional
        Units expected, instead of `probability`: π = min(1, c x) for the size measure x.
    size : str
        x for a `budget`: `equal`, `sqrt-variance` or a column; see `ProportionalToSize`.
    proxy : str, optional
        The proxy of `sqrt-variance`; the first unless named.

    Raises
    ------
    InputError
        If not exactly one of `probability` and `budget` is given; on drawing, for a π outside (0, 1].

    Notes
    -----
    Särndal, Swensson & Wretman (1992), 3.5. The variance Σ (1 − π) (y/π)² / N² is unbiased.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9, 0.7])
    >>> sample = Poisson(budget=3, size="sqrt-variance").draw(population, seed=7)
    >>> sample.inclusion_probability.round(2)
    array([0.81, 0.65, 0.86])
    """

    kind: ClassVar[str] = "poisson"
    probability: str | float | None = None
    budget: int | None = None
    size: str = "equal"
    proxy: str | None = None

    def __post_init__(self) -> None:
        if (self.probability is None) == (self.budget is None):
            raise InputError(
                "give either probabilities or a budget",
                given=f"probability={self.probability}, budget={self.budget}",
                action="Give each unit's probability, or the number of labels.",
            )
        if self.probability is not None and not isinstance(self.probability, numbers.Real):
            require_column_name(self.probability, "probability")
        elif self.probability is not None and not 0 < float(self.probability) <= 1:
            raise InputError(
                "a probability is out of range", given=self.probability, allowed="above 0, at most 1"
            )

    def draw(self, population: Population, seed: int) -> Sample:
        """Draw every unit with u < π."""
        population, seed = require_population(population, "draw"), check_seed(seed)
        measured, limit = self._measure(population)
        found = population.below(measured, limit, seed)
        probabilities = np.minimum(1.0, limit * found.size)
        return sample_of(self, population, seed, found.drawn, probabilities)

    def _measure(self, population: Population) -> tuple[Size, float]:
        """Return x and the c of π = min(1, c x)."""
        if self.budget is not None:
            check_budget(self.budget, population.size)
            measured = measure(population, self.size, self.proxy)
            profile = population.size_profile(measured, self.budget)
            return measured, inclusion_scale(profile, self.budget, f"size '{self.size}'")
        if not isinstance(self.probability, str):
            return Size(kind="equal"), float(self.probability or 0.0)
        measured = Size(kind="column", column=self.probability)
        profile = population.size_profile(measured, 1)
        refuse_nonpositive(profile, f"column '{self.probability}'")
        if profile.high > 1:
            raise InputError(
                f"column '{self.probability}' holds a probability above 1",
                given=f"{profile.high:g}",
                allowed="above 0, at most 1",
                action="Give it as a size: Poisson(budget=…, size=…) makes large units certain.",
            )
        return measured, 1.0

    def weighting(self, sample: Sample, labelled: BoolArray) -> PoissonWeighting:
        """Return 1 / (N π); nonresponse is taken to be at random and scales π by the response rate."""
        return responding(sample, labelled, fixed_size=False)
