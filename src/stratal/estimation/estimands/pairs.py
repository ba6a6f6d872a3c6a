"""The differences of all pairs of several models as an estimand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from stratal.estimation.comparison import Comparisons, comparisons
from stratal.estimation.estimand import Estimand, LabelledInfluence, Several
from stratal.estimation.estimands.models import Difference, OfModels, agreement_cells
from stratal.estimation.model_pairs import bounds_of_outcomes
from stratal.estimation.request import PLAIN, Request
from stratal.estimation.together import together
from stratal.population.influence import Influence
from stratal.population.population import Population
from stratal.sampling.sample import Sample


@dataclass(frozen=True, slots=True)
class Differences(OfModels, Several):
    """The differences of all pairs of several models.

    Parameters
    ----------
    models, proxies
        As for `Difference`, of any number of models.

    Examples
    --------
    >>> [part.text for part in Differences(("a", "b", "c")).parts]
    ['difference:a,b', 'difference:a,c', 'difference:b,c']
    """

    kind: ClassVar[str] = "differences"
    models: tuple[str, ...]
    proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check()

    def parts_in(self, population: Population) -> tuple[Estimand, ...]:
        """Return the difference of each pair."""
        return self.parts

    def influence(self, population: Population) -> Influence:
        """Return the moments of all differences as one; none matters where all models answer the same."""
        found = together([part.influence(population) for part in self.parts], population)
        cells, known = agreement_cells(self, population)
        return replace(found, cells=cells, known=known)

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return how far the models' outcomes lie apart on the labelled units."""
        z, labelled, _ = self.outcomes(sample, labels, self.same)
        apart = np.sqrt(np.sum((z - z.mean(axis=1, keepdims=True)) ** 2, axis=1))
        return LabelledInfluence(u=np.where(z[:, 0] < z[:, -1], -apart, apart), labelled=labelled)

    @property
    def parts(self) -> tuple[Difference, ...]:
        """The difference of each pair."""
        chosen = combinations(range(len(self.models)), 2)
        return tuple(
            Difference(
                (self.models[a], self.models[b]), (self.proxies[a], self.proxies[b]) if self.proxies else ()
            )
            for a, b in chosen
        )

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Comparisons:
        """Return the differences of all pairs, with intervals that hold together."""
        z, labelled, frame = self.outcomes(sample, labels, self.same)
        return comparisons(
            sample,
            frame,
            labelled,
            z,
            names=self.models,
            pairs=list(combinations(range(len(self.models)), 2)),
            slopes=self.slopes(sample),
            bounds=bounds_of_outcomes(sample, z),
            target=request.target,
        )
