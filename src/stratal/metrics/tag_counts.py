"""Precision, recall and related metrics of sets of tags, from the tags of each label and each answer.

A metric of one tag is that of two classes: a unit has the tag or not (`Confusion`). A micro average is a
ratio of means of counts: Σ hits over Σ answered tags for precision. A macro average is the mean over tags.
Jaccard's index and the Hamming loss are means of a number of each unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray, Record, divide
from stratal.designs import Weighting
from stratal.errors import InputError, check_choice
from stratal.estimation.domain_means import (
    adjust_for_few_clusters,
    domain_trials,
    estimate_without_interval,
    two_sum_interval,
)
from stratal.estimation.estimate import Estimate, correlation_from, linearised_estimate, undefined_estimate
from stratal.estimation.linearised import of_variable, ratio_of_means, target_covariance
from stratal.estimation.mover import ShareFunctionInterval
from stratal.intervals.interval import Interval
from stratal.intervals.interval_types import BinomialInterval, OuterInterval, SumInterval
from stratal.metrics.class_functions import linear_forms, metric_function
from stratal.metrics.confusion import MIN_KISH_SHARE, ONE_STANDARD_ERROR, Confusion, macro_with_unseen_classes

# Averages over the tags.
SET_AVERAGES = ("macro", "micro")


def jaccard_indices(true: BoolArray, predicted: BoolArray) -> FloatArray:
    """Return Jaccard's index of each unit's sets (m,): tags in both over tags in either.

    It is 1 for two empty sets, because Jaccard's distance, 1 − index, is a metric of sets (Levandowsky &
    Winter 1971) and therefore 0 between equal sets. scikit-learn calls this `zero_division=1`.
    """
    union = (true | predicted).sum(axis=1)
    intersection = (true & predicted).sum(axis=1)
    return np.asarray(np.where(union > 0, intersection / np.maximum(union, 1), 1.0))


def hamming_losses(true: BoolArray, predicted: BoolArray) -> FloatArray:
    """Return the share of the tags (m,) on which each unit's sets differ."""
    return np.asarray((true != predicted).mean(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TagCounts(Record):
    """The tags of the labels and of the answers of the labelled units, with their weights.

    Parameters
    ----------
    true, predicted : bool (m, T)
        Whether the label, and the answer, of a unit has a tag.
    weighting : Weighting
    """

    true: BoolArray
    predicted: BoolArray
    weighting: Weighting

    @property
    def n_tags(self) -> int:
        """T."""
        return int(self.true.shape[1])

    def confusion(self, tag: int) -> Confusion:
        """Return the confusion of units with a tag, class 1, and units without it, class 0."""
        true = self.true[:, tag].astype(np.int64)
        predicted = self.predicted[:, tag].astype(np.int64)
        return Confusion(true=true, predicted=predicted, n_classes=2, weighting=self.weighting)

    def metric(
        self,
        name: str,
        class_or_average: int | str,
        target: str = "population",
        member: BoolArray | None = None,
    ) -> Estimate:
        """Return a metric of a tag, or its average over the tags.

        Parameters
        ----------
        name : str
            One of `class_functions.CLASS_METRICS`, or F_β.
        class_or_average : int or {"macro", "micro"}
        target : {"population", "superpopulation"}
        member : bool (m,), optional
            The units of a group, if it is the metric of one.
        """
        if isinstance(class_or_average, int):
            confusion = self.confusion(class_or_average)
            if member is None:
                return confusion.metric(name, 1, target)
            return confusion.metric_in_domain(member, name, 1, target)
        check_choice("average over tags", class_or_average, SET_AVERAGES)
        if class_or_average == "micro":
            return self._micro(name, target, member)
        return self._macro(name, target, member)

    def restricted(self, tags: Sequence[int]) -> TagCounts:
        """Return the counts of some of the tags."""
        return replace(self, true=self.true[:, tags], predicted=self.predicted[:, tags])

    def influence(self, name: str, class_or_average: str) -> FloatArray:
        """Return the linearised variable of an average over the tags (m,), at the estimated shares."""
        if class_or_average == "micro":
            numerator, denominator = self._sums(name)
            mean_denominator = float(self.weighting.weights @ denominator)
            # The average is undefined.
            if mean_denominator <= 0:
                return np.zeros(len(numerator))
            ratio = float(self.weighting.weights @ numerator) / mean_denominator
            return np.asarray((numerator - ratio * denominator) / mean_denominator)
        all_units = np.ones(len(self.true), dtype=bool)
        return np.asarray(self._variables(name, all_units).mean(axis=1))

    def _sums(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Return the numerator and the denominator of each unit (m,), summed over all tags."""
        hits = (self.true & self.predicted).sum(axis=1)
        predicted = self.predicted.sum(axis=1)
        true = self.true.sum(axis=1)
        counts = np.stack([hits, predicted, true, np.full(len(hits), self.n_tags)])
        numerator, denominator = (np.asarray(form, np.float64) @ counts for form in linear_forms(name))
        return numerator, denominator

    def _micro(self, name: str, target: str, member: BoolArray | None) -> Estimate:
        """Return the micro average over the tags."""
        numerator, denominator = self._sums(name)
        # The numerator of F1 is not a part of its denominator, but F1 is a function of Jaccard's index.
        jaccard_counts = self._sums("jaccard") if name == "f1" else None
        return ratio_of_counts(numerator, denominator, self.weighting, target, member, jaccard_counts)

    def _variables(self, name: str, member: BoolArray) -> FloatArray:
        """Return the linearised variable of each tag's metric (m, T) in a group; 0 where it is undefined."""
        variables = np.zeros(self.true.shape)
        for tag in range(self.n_tags):
            confusion = self.confusion(tag)
            _, slopes, _ = metric_function(name, 1, 2)(confusion.shares(member))
            # Without a unit in the denominator, the slopes are undefined or 0.
            if np.all(np.isfinite(slopes.hits)) and np.any(slopes.hits + slopes.predicted + slopes.true):
                variables[:, tag] = member * slopes.per_unit(confusion.true, confusion.predicted)
        return variables

    def _macro(self, name: str, target: str, member: BoolArray | None) -> Estimate:
        """Return the macro average over the tags."""
        member_mask = np.ones(len(self.true), dtype=bool) if member is None else member
        n = int(member_mask.sum())
        terms = [self.metric(name, tag, target, member) for tag in range(self.n_tags)]
        # For a few tags without a unit in the denominator, the interval allows for any value of their metric.
        # With more of them, the average is undefined.
        if not all(np.isfinite(term.value) for term in terms):
            estimate = macro_with_unseen_classes(
                name, terms, lambda tags: self.restricted(tags).metric(name, "macro", target, member), "tags"
            )
            missing = sum(not np.isfinite(term.value) for term in terms)
            note = f"{missing} of {self.n_tags} tags have no unit in the denominator"
            return estimate or undefined_estimate(self.weighting, n, (0.0, 1.0), note, target=target)
        variables = self._variables(name, member_mask)
        covariance = target_covariance(variables, self.weighting, target)
        value = float(np.mean([term.value for term in terms]))
        interval = SumInterval(
            value=value,
            bounds=(0.0, 1.0),
            terms=tuple(terms),
            coefficients=np.full(self.n_tags, 1.0 / self.n_tags),
            correlation=correlation_from(covariance),
        )
        result = of_variable(value, variables.mean(axis=1), self.weighting, target, member_mask)
        # Half the width of an interval at the level of one standard error.
        below, above = interval.offsets(ONE_STANDARD_ERROR, "two-sided")
        error = result.standard_error
        if not error > 0 or any(not term.evidence.variance > 0 for term in terms):
            # Equal labels of a tag show no variance, but the interval of the tag depends on their number.
            error = max(error, (below + above) / 2.0)
        return linearised_estimate(
            result,
            self.weighting,
            interval=interval,
            target=target,
            n=n,
            member=member,
            standard_error=error,
        )


def ratio_of_counts(
    numerator: FloatArray,
    denominator: FloatArray,
    weighting: Weighting,
    target: str = "population",
    member: BoolArray | None = None,
    jaccard_counts: tuple[FloatArray, FloatArray] | None = None,
) -> Estimate:
    """Return the ratio of the means of two counts, such as hits of answered tags.

    The interval is Clopper–Pearson's on the effective number of trials (Korn & Graubard 1998), with the
    degrees of freedom of the linearised variable. With very unequal weights, it contains the interval from
    the means of the numerator and of the rest of the denominator.

    Parameters
    ----------
    numerator, denominator : float (m,)
        Counts of the labelled units, 0 ≤ numerator ≤ denominator.
    weighting : Weighting
    target : {"population", "superpopulation"}
    member : bool (m,), optional
        The units of a group. Default: all.
    jaccard_counts : (float (m,), float (m,)), optional
        The counts of Jaccard's index j, if the ratio is F1, which is 2 j / (1 + j). The trials are then those
        of j.

    Raises
    ------
    InputError
        If a numerator exceeds its denominator.
    """
    if np.any(numerator > denominator) or np.any(numerator < 0):
        allowed = "0 ≤ numerator ≤ denominator"
        raise InputError("a numerator is not part of its denominator", allowed=allowed)
    inside = np.ones(len(numerator), dtype=bool) if member is None else member
    counted = inside & (denominator > 0)
    n = int(counted.sum())
    bounds = (0.0, 1.0)
    result = ratio_of_means(inside * numerator, inside * denominator, weighting, target, counted)
    if not np.isfinite(result.value):
        note = "no labelled unit counts towards its denominator"
        return undefined_estimate(weighting, n, bounds, note, target=target)
    clusters = weighting.sampled_clusters(counted)
    if clusters is not None and clusters.degrees_of_freedom == 0.0:
        return estimate_without_interval(result, clusters, weighting, counted, bounds, target)
    of_trials, smoothed_variance = _interval_of_trials(numerator, denominator, inside, weighting, target)
    scale = "identity"
    if jaccard_counts is not None:
        scale = "dice"
        of_trials, _ = _interval_of_trials(*jaccard_counts, inside, weighting, target)
        of_trials = replace(of_trials, value=result.value)
    interval: Interval = replace(of_trials, scale=scale)
    if clusters is not None:
        trials = of_trials.trials / weighting.few_clusters_factor(result.variable, counted)
        interval = adjust_for_few_clusters(replace(of_trials, trials=trials, scale=scale), clusters)
    if weighting.effective_draws < MIN_KISH_SHARE * weighting.draws:
        # Effective trials are those of all strata, and do not account for a large stratum with few labels.
        of_sums = _interval_of_sums(numerator, denominator, inside, weighting, target)
        of_sums = replace(of_sums, value=result.value)
        interval = OuterInterval(value=result.value, bounds=bounds, first=interval, second=of_sums)
    standard_error = result.standard_error
    if not standard_error > 0:
        standard_error = float(np.sqrt(smoothed_variance))
    return linearised_estimate(
        result,
        weighting,
        interval=interval,
        target=target,
        n=n,
        member=counted,
        standard_error=standard_error,
    )


def _interval_of_trials(
    numerator: FloatArray, denominator: FloatArray, inside: BoolArray, weighting: Weighting, target: str
) -> tuple[BinomialInterval, float]:
    """Return a ratio's interval on its effective number of trials, and the variance that these trials have.

    `inside` (m,) are the units of a group.
    """
    counted = inside & (denominator > 0)
    share = divide(numerator, denominator, where=counted, otherwise=0.0)
    # The variance is at least that with half a label added at 0 and at 1. Each of these pseudo-labels has the
    # size 1, so sizes are divided by their mean.
    size = inside * denominator / float(denominator[counted].mean())
    result = ratio_of_means(inside * numerator, inside * denominator, weighting, target, counted)
    if target == "superpopulation":
        weighting = weighting.as_independent_draws()
    trials, smoothed_variance = domain_trials(share, size, weighting, (0.0, 1.0), result.variance)
    interval = BinomialInterval(
        value=float(np.clip(result.value, 0.0, 1.0)),
        bounds=(0.0, 1.0),
        trials=trials,
        degrees_of_freedom=result.degrees_of_freedom,
    )
    return interval, smoothed_variance


def _interval_of_sums(
    numerator: FloatArray, denominator: FloatArray, inside: BoolArray, weighting: Weighting, target: str
) -> ShareFunctionInterval:
    """Return a ratio's interval from the means of the numerator and of the rest of the denominator."""
    counted = inside & (denominator > 0)
    share = divide(numerator, denominator, where=counted, otherwise=0.0)
    size = inside * denominator / float(denominator[counted].max())
    return replace(two_sum_interval(share, size, weighting, target), bounds=(0.0, 1.0))
