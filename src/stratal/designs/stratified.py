"""Simple random and stratified sampling without replacement, by permanent random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from stratal.arrays import BoolArray, IntArray
from stratal.designs.drawing import sample_of
from stratal.designs.sample import Design, Sample
from stratal.designs.weighting import StratifiedWeighting
from stratal.errors import BudgetError, InputError
from stratal.population.population import Population, require_population
from stratal.population.rules.rule import Rule
from stratal.randomness import check_seed
from stratal.strata import Allocation, Everything, Strata
from stratal.strata.allocation import FROM_LABELS
from stratal.strata.integers import check_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleRandom(Design):
    """A simple random sample without replacement: the units with the smallest permanent random numbers.

    Nested: a larger budget with the same seed contains the smaller one's units.

    Parameters
    ----------
    budget : int
        Units to draw, from 1 to N.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9])
    >>> SimpleRandom(budget=2).draw(population, seed=7).size
    2
    """

    kind: ClassVar[str] = "simple-random"
    budget: int

    def __post_init__(self) -> None:
        check_budget(self.budget)

    @property
    def counts(self) -> IntArray:
        """The budget, of the one stratum."""
        return np.array([self.budget])

    def draw(self, population: Population, seed: int) -> Sample:
        """Draw `budget` units."""
        population, seed = require_population(population, "draw"), check_seed(seed)
        check_budget(self.budget, population.size)
        drawn = population.smallest(Everything(), np.array([self.budget]), seed)
        probabilities = np.full(self.budget, self.budget / population.size)
        return sample_of(self, population, seed, drawn, probabilities)

    def weighting(self, sample: Sample, labelled: BoolArray) -> StratifiedWeighting:
        """Return equal weights; nonresponse is taken to be at random."""
        return StratifiedWeighting(stratum=sample.stratum[labelled], sizes=sample.summary.sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratified(Design):
    """Stratified simple random sampling: of each stratum the n_h smallest permanent random numbers.

    Nested: a larger allocation in the same strata contains the smaller one's units.

    Parameters
    ----------
    strata : Strata
        From `stratal.stratify`.
    allocation : Allocation
        From `stratal.allocate`.

    Raises
    ------
    InputError
        If strata and allocation do not fit together.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.2, 0.8, 0.9])
    >>> strata = stratal.stratify(population, n_strata=2)
    >>> design = Stratified(strata=strata, allocation=stratal.allocate(strata, budget=2, minimum=1))
    >>> sorted(design.draw(population, seed=7).stratum.tolist())
    [0, 1]
    """

    kind: ClassVar[str] = "stratified"
    strata: Strata
    allocation: Allocation

    def __post_init__(self) -> None:
        if not isinstance(self.strata, Strata) or not isinstance(self.allocation, Allocation):
            raise InputError(
                "Stratified takes strata and an allocation",
                given=f"{type(self.strata).__name__} and {type(self.allocation).__name__}",
                action="Make them by stratal.stratify(population) and stratal.allocate(strata, budget).",
            )
        n_h = self.allocation.n_h
        if n_h.shape != self.strata.sizes.shape:
            raise InputError(
                "the allocation is not for these strata",
                given=f"{len(n_h)} and {self.strata.n_strata} strata",
                action="Make it by stratal.allocate(strata, budget).",
            )
        if np.any(n_h > self.strata.sizes):
            h = int(np.argmax(n_h > self.strata.sizes))
            raise BudgetError(
                f"stratum '{self.strata.names[h]}' has fewer units than it was allocated",
                given=int(n_h[h]),
                allowed=f"0 to {self.strata.sizes[h]}",
            )

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """Names of the strata (H,)."""
        return self.strata.names

    @property
    def counts(self) -> IntArray:
        """n_h (H,) of the allocation."""
        return self.allocation.n_h

    @property
    def rule(self) -> Rule:
        """That of the strata."""
        return self.strata.rule

    def draw(self, population: Population, seed: int) -> Sample:
        """Draw n_h units of each stratum."""
        population, seed = require_population(population, "draw"), check_seed(seed)
        strata = self.strata
        summary = population.summarise(strata.rule, strata.codes)
        if not np.array_equal(summary.sizes, strata.sizes):
            raise InputError(
                "these strata were made from another population",
                given=f"sizes {summary.sizes.tolist()[:5]}",
                allowed=f"sizes {strata.sizes.tolist()[:5]}",
                action="Stratify this population, or give the one that the strata came from.",
            )
        drawn = population.smallest(strata.rule, self.allocation.n_h, seed, strata.codes)
        compact = Stratified(strata=strata.without_codes(), allocation=self.allocation)
        probabilities = (self.allocation.n_h / summary.sizes)[drawn.stratum]
        return sample_of(compact, population, seed, drawn, probabilities, summary)

    def weighting(self, sample: Sample, labelled: BoolArray) -> StratifiedWeighting:
        """Return W_h / n_h with the realised n_h: nonresponse is taken to be at random within strata."""
        return StratifiedWeighting(
            stratum=sample.stratum[labelled],
            sizes=sample.summary.sizes,
            sizes_follow_labels=self.allocation.method in FROM_LABELS,
        )

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Self:
        """Return the design from the fields of `to_dict` but `kind`."""
        return cls(
            strata=Strata.from_dict(fields["strata"]), allocation=Allocation.from_dict(fields["allocation"])
        )
