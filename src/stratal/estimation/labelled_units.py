"""`resolve`: the labelled units of a sample as arrays, with the outcomes that a question defines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from stratal.arrays import BoolArray, FloatArray, Record
from stratal.designs.sample import Sample
from stratal.estimation.resolve import LabelOutcomes, outcomes
from stratal.estimation.respondents import Respondents
from stratal.population.expressions import Expression
from stratal.question import Question


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledUnits(Record):
    """The labelled units of a sample (m of n) with everything that an estimator of a mean reads.

    Parameters
    ----------
    outcomes : LabelOutcomes
        The outcomes z (m,) and their bounds.
    respondents : Respondents
        Strata, weights and population summaries. Strata without a label are merged into a neighbour.
    proxies : float (m, k)
    """

    outcomes: LabelOutcomes
    respondents: Respondents
    proxies: FloatArray

    @property
    def z(self) -> FloatArray:
        """The outcomes (m,)."""
        return self.outcomes.z

    @property
    def labelled(self) -> BoolArray:
        """Which drawn units (n,) are labelled."""
        return self.outcomes.labelled

    def with_outcomes(self, z: FloatArray) -> Self:
        """Return the same units with other outcomes (m,)."""
        return replace(self, outcomes=replace(self.outcomes, z=z))


def resolve(
    question: Question,
    sample: Sample,
    labels: object,
    *,
    combine: str = "mean",
    irrelevant: Expression | None = None,
) -> LabelledUnits:
    """Return the labelled units of a sample as arrays.

    Parameters
    ----------
    question : Question
        Determines how labels become numbers: the question of the sample, or a refined one.
    sample : Sample
    labels : see `stratal.estimate`
    combine : {"mean", "majority"}
        How several answers for one unit are combined.
    irrelevant : Expression, optional
        1 for units that need no label. Strata of such units without labels are left out.

    Raises
    ------
    LabelError
        If there is no label, and for labels that the question cannot decode.
    """
    if question is sample.question:
        sample_of_question = sample
    else:
        sample_of_question = replace(sample, question=question)
    observed = outcomes(sample_of_question, labels, combine=combine)
    labelled = observed.labelled
    return LabelledUnits(
        outcomes=observed,
        respondents=Respondents.of(sample, labelled, irrelevant),
        proxies=sample.proxies[labelled],
    )
