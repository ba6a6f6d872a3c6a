"""Designs of samples that were drawn elsewhere: only their weights, or their strata's, are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.errors import InputError
from stratal.population.population import Population
from stratal.sampling.sample import Design, Sample
from stratal.weighting import (
    PoissonWeighting,
    StratifiedWeighting,
    Weighting,
    WithReplacementWeighting,
)

MECHANISMS = ("with-replacement", "poisson")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenWeights(Design):
    """Units that came with weights. The weights say what each stands for, not how they were drawn.

    Parameters
    ----------
    scale : float
        Weight of a unit times its inclusion probability in the sample, the same for all: 1, or less where
        the weights are relative.
    mechanism : {"with-replacement", "poisson"}
        What the variance assumes: independent draws, as R's `survey` does (cautious for draws without
        replacement), or a Poisson sample.
    known_size : bool
        Whether the number of units in the population was given; if not, it is the sum of the weights.

    Examples
    --------
    >>> Design.from_dict(GivenWeights(known_size=True).to_dict())
    GivenWeights(scale=1.0, mechanism='with-replacement', known_size=True)
    """

    kind: ClassVar[str] = "given-weights"
    scale: float = 1.0
    mechanism: str = "with-replacement"
    known_size: bool = False

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise InputError(
                "unknown sampling mechanism", given=repr(self.mechanism), allowed=", ".join(MECHANISMS)
            )

    def draw(self, population: Population, seed: int) -> Sample:
        """Refuse: the sample already exists."""
        raise _no_draw()

    def weighting(self, sample: Sample, labelled: BoolArray) -> Weighting:
        """Return the weights of the labelled units, raised where others did not answer."""
        probabilities = sample.inclusion_probability
        everyone = self.scale / probabilities
        answering = everyone[labelled]
        raised = answering * (float(everyone.sum()) / float(answering.sum())) if len(answering) else answering
        size = float(sample.population_size) if self.known_size else float(everyone.sum())
        if self.mechanism == "poisson":
            return PoissonWeighting(inclusion_probability=np.minimum(1.0 / raised, 1.0), size=size)
        return WithReplacementWeighting(design_weight=raised, size=size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeparateSamples(Design):
    """A labelled and a separate unlabelled sample of one source, with strata weights from elsewhere.

    The setting of Fisch et al. (2024): the target is the superpopulation.

    Parameters
    ----------
    names : tuple of str (H,)
    shares : float (H,)
        w_h; they sum to 1.
    counts : int (H,)
        Unlabelled units per stratum.
    means : float (H,)
        Mean of the proxy over them.
    variances : float (H,)
        Its variance, divisor count − 1.

    Examples
    --------
    >>> design = SeparateSamples(
    ...     names=("a",), shares=[1.0], counts=[50], means=[0.4], variances=[0.1])
    >>> Design.from_dict(design.to_dict()) == design
    True
    """

    kind: ClassVar[str] = "separate-samples"
    names: tuple[str, ...]
    shares: FloatArray
    counts: IntArray
    means: FloatArray
    variances: FloatArray

    def __post_init__(self) -> None:
        self._freeze()
        self._set(names=tuple(self.names))

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """Names of the strata (H,)."""
        return self.names

    def draw(self, population: Population, seed: int) -> Sample:
        """Refuse: the sample already exists."""
        raise _no_draw()

    def weighting(self, sample: Sample, labelled: BoolArray) -> StratifiedWeighting:
        """Return w_h / n_h, without a finite population correction."""
        return StratifiedWeighting(
            stratum=sample.stratum[labelled], sizes=sample.summary.sizes, with_replacement=True
        )


def _no_draw() -> InputError:
    return InputError(
        "this design only describes a sample that was drawn elsewhere",
        action="Draw with stratal.plan, or with another design.",
    )
