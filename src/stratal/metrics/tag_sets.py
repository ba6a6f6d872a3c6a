"""Means over units whose labels and answers are sets of tags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.estimand import ACCURACY_OPTIONS, DEFAULT_REQUEST, Estimand, Request
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.means import Mean
from stratal.metrics.labelled_tag_sets import LabelledTagSets, compares_sets, labelled_tag_sets
from stratal.metrics.tag_counts import hamming_losses, jaccard_indices
from stratal.population.influence import Influence
from stratal.population.population import Population
from stratal.question.question import NUMBER


class MeanOfSets(Estimand):
    """The mean of a measure from 0 to 1 that compares the sets of tags of label and answer."""

    __slots__ = ()
    # Labels are true answers (here sets of tags), not outcomes.
    of_classes = True
    # Column of the model's answers. It is part of the text form `mean_jaccard:COLUMN`: `listed` is the field
    # after the colon, and `shown` its value in the example that messages show.
    predicted: str | None
    # Options that `estimate` and `by` support.
    takes: ClassVar[tuple[str, ...]] = tuple(
        name for name in ACCURACY_OPTIONS if name not in ("outcome", "bounds", "limits", "combine")
    )
    takes_by_group: ClassVar[tuple[str, ...]] = ("target", "estimator", "population")

    def unit_values(self, sets: LabelledTagSets) -> FloatArray:
        """Return the measure of each labelled unit (m,)."""
        raise NotImplementedError

    def _as_mean(
        self, sample: Sample, labels: object, request: Request
    ) -> tuple[Sample, FloatArray, Request]:
        """Return the arguments of a mean: sample, measure of each drawn unit (n,), and request."""
        if not compares_sets(sample, labels, self.predicted):
            raise InputError(
                f"{self.kind!r} compares sets of tags, but the answers are not sets",
                action="Draw with predicted= (--predicted) and tags= (--tags), or request the accuracy.",
            )
        sets = labelled_tag_sets(sample, labels, self.predicted)
        outcomes = np.full(sample.size, np.nan)
        outcomes[sets.labelled] = self.unit_values(sets)
        question = sample.question.with_outcome(
            decoding=NUMBER, scale=None, bounds=None, tag_format=None, tags=()
        )
        # The outcomes are numbers already, so that the mean must not compare them with the answers.
        mean_request = replace(request, outcome="bounded", bounds=(0.0, 1.0), predicted=False)
        # A proxy that predicts whether a set is right is on another scale than these measures.
        info = tuple(replace(proxy, scaled=False, bounds=None) for proxy in sample.proxy_info)
        return replace(sample, question=question, proxy_info=info), outcomes, mean_request

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the mean."""
        return replace(Mean().estimate(*self._as_mean(sample, labels, request)), label=self.label)

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return the mean of each group."""
        sample, outcomes, request = self._as_mean(sample, labels, request)
        return Mean().by(sample, outcomes, group, request)

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        return labelled_tag_sets(sample, labels, self.predicted).labelled


@dataclass(frozen=True, slots=True)
class MeanJaccard(MeanOfSets, kind="mean_jaccard", listed_field="predicted", listed_example="answer"):
    """The mean over units of Jaccard's index: the tags in both sets divided by the tags in either.

    The index of two empty sets is 1: Jaccard's distance is a metric (Levandowsky & Winter 1971), and
    therefore 0 between equal sets. It is scikit-learn's `jaccard_score(average="samples", zero_division=1)`.

    Parameters
    ----------
    predicted : str, optional
        The group column of the model's answers. Default: that of the population.

    Examples
    --------
    >>> import stratal
    >>> answers = {"answer": [["a"], ["a", "b"]]}
    >>> population = stratal.Population.from_arrays(groups=answers, predicted="answer")
    >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    >>> stratal.estimate(sample, {0: ["a", "b"], 1: ["b", "a"]}, estimand="mean_jaccard").value
    0.75
    """

    predicted: str | None = None

    def unit_values(self, sets: LabelledTagSets) -> FloatArray:
        """Return Jaccard's indices (m,)."""
        return jaccard_indices(sets.counts.true, sets.counts.predicted)

    def influence(self, population: Population) -> Influence:
        """Return the influence of a plan, which expects an index of 1 for right answers and 0 for others."""
        return Mean().influence(population)


@dataclass(frozen=True, slots=True)
class HammingLoss(MeanOfSets, kind="hamming_loss", listed_field="predicted", listed_example="answer"):
    """The mean over units of the share of the tags on which both sets differ.

    The tags are those of all answers and labels: tags that no unit has would reduce the loss.

    Parameters
    ----------
    predicted : str, optional
        As for `MeanJaccard`.

    Examples
    --------
    >>> HammingLoss().text
    'hamming_loss'
    """

    predicted: str | None = None

    def unit_values(self, sets: LabelledTagSets) -> FloatArray:
        """Return the losses (m,)."""
        return hamming_losses(sets.counts.true, sets.counts.predicted)
