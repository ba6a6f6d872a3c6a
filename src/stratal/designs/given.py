"""Designs of samples that were drawn elsewhere: only their weights, or their strata's, are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.poisson_weighting import PoissonWeighting
from stratal.designs.replacement_weighting import WithReplacementWeighting
from stratal.designs.sample import Design, Sample
from stratal.designs.survey_weighting import SurveyWeighting
from stratal.designs.weighting import StratifiedWeighting, Weighting
from stratal.errors import InputError
from stratal.population.population import Population

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
    stratum, cluster : str, optional
        Group columns: the strata that units were drawn in, and the clusters within them that were drawn.
    sizes_known : bool
        Whether the weights were made of the strata's sizes, N_h / n_h.

    Examples
    --------
    >>> Design.from_dict(GivenWeights(cluster="school").to_dict()) == GivenWeights(cluster="school")
    True
    """

    kind: ClassVar[str] = "given-weights"
    scale: float = 1.0
    mechanism: str = "with-replacement"
    known_size: bool = False
    stratum: str | None = None
    cluster: str | None = None
    sizes_known: bool = False

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise InputError(
                "unknown sampling mechanism", given=repr(self.mechanism), allowed=", ".join(MECHANISMS)
            )

    def draw(self, population: Population, seed: int) -> Sample:
        """Refuse: the sample already exists."""
        raise _no_draw()

    def weighting(self, sample: Sample, labelled: BoolArray) -> Weighting:
        """Return the weights of the labelled units, raised where others of their stratum did not answer."""
        everyone = self.scale / sample.inclusion_probability
        strata = self._codes(sample, self.stratum)
        answering = everyone[labelled]
        whole = np.bincount(strata, everyone, minlength=1)
        own = np.bincount(strata[labelled], answering, minlength=len(whole))
        raised = answering * (whole.sum() / own.sum() * np.ones(len(own)))[strata[labelled]]
        if np.all(own > 0):
            raised = answering * (whole / own)[strata[labelled]]
        size = float(sample.population_size) if self.known_size else float(everyone.sum())
        if self.mechanism == "poisson":
            return PoissonWeighting(inclusion_probability=np.minimum(1.0 / raised, 1.0), size=size)
        if self.stratum is None and self.cluster is None:
            return WithReplacementWeighting(design_weight=raised, size=size)
        primary = np.unique(strata[labelled], return_inverse=True)[1]
        clusters = np.arange(len(raised))
        if self.cluster is not None:
            names = np.unique(sample.groups[self.cluster][labelled], return_inverse=True)[1]
            clusters = np.unique(primary * (names.max(initial=0) + 1) + names, return_inverse=True)[1]
        return SurveyWeighting(
            design_weight=raised,
            primary=primary.astype(np.int64),
            cluster=clusters.astype(np.int64),
            size=size,
            sizes_known=self.sizes_known,
        )

    def _codes(self, sample: Sample, column: str | None) -> IntArray:
        """Return a code (n,) of each level of a group column; 0 for all where there is none."""
        if column is None:
            return np.zeros(sample.size, dtype=np.int64)
        return np.unique(sample.groups[column], return_inverse=True)[1].astype(np.int64)


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
