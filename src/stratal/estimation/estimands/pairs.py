"""The differences of all pairs of several models as an estimand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from stratal.estimation.estimand import Estimand, LabelledInfluence, Several
from stratal.estimation.estimands.models import (
    Difference,
    OfModels,
    agreement_cells,
    pair_of,
)
from stratal.estimation.estimands.pair_means import refuse_other_target
from stratal.estimation.estimate_table import EstimateTable, title_of
from stratal.estimation.model_pairs import differences_in_family, never_between
from stratal.estimation.paired import paired_differences
from stratal.estimation.together import together
from stratal.population.influence import Influence
from stratal.population.population import Population
from stratal.report import plain
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

    def estimate(
        self, sample: Sample, labels: Any, target: str = "population", confidence_level: float = 0.95
    ) -> EstimateTable:
        """Return all differences with simultaneous intervals, and the ranks that they leave open."""
        z, _, frame = self.outcomes(sample, labels, self.same)
        refuse_other_target(frame, target)
        pairs = list(combinations(range(len(self.models)), 2))
        contrasts = frame.share * np.column_stack([z[:, a] - z[:, b] for a, b in pairs])
        found = paired_differences(contrasts, frame.weighting, bound=frame.share, target=target)
        family = found.family()
        low, high = found.intervals(family.critical(confidence_level))
        p_values = family.p_values(found.statistics())
        if never_between(z, (0.0, 1.0)):
            both = [pair_of(sample, z[:, [a, b]], frame, target) for a, b in pairs]
            low, high, p_values = differences_in_family(both, family, confidence_level)
        rows = tuple(
            {
                "a": self.models[a],
                "b": self.models[b],
                "difference": float(found.values[i]),
                "standard_error": plain(found.standard_errors[i]),
                "confidence_interval": plain([low[i], high[i]]),
                "p_value": plain(p_values[i]),
                "n": len(z),
            }
            for i, (a, b) in enumerate(pairs)
        )
        return EstimateTable(
            kind="comparisons",
            title=title_of(sample, len(z), target, ", paired", ", simultaneous"),
            rows=rows,
            confidence_level=confidence_level,
            notes=frame.notes,
        )
