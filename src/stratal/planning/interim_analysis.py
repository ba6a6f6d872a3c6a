"""`InterimAnalysis`: the allocation of the next round, and the expected widths with more units.

For the mean of one outcome, the expected interval is computed from simulated labels of further units. For
other estimands, the half-width is to first order proportional to √(Σ W_h² (1/n_h − 1/N_h) S_h²), where S_h is
the standard deviation of the influence.

A *one-round allocation* of a number of units follows the rule of the plan, without use of the labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property

import numpy as np

from stratal.arrays import NO_DIVISOR, BoolArray, FloatArray, IntArray
from stratal.designs.sample import Sample
from stratal.errors import StratalWarning
from stratal.estimation.calibrated import CalibrationOptions
from stratal.estimation.entry_points import estimate
from stratal.estimation.estimand import Estimand, as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.intervals.proportion import student_quantile
from stratal.labels.joined_labels import JoinedLabels, join_labels
from stratal.planning.interim_widths import ExpectedMeanWidths
from stratal.planning.joint_plan import influence_deviations
from stratal.planning.next_allocation import next_allocation
from stratal.planning.repeated_labels import RepeatedLabelWidths, half_width_of
from stratal.planning.stratum_deviations import estimated_deviations, residual_deviations
from stratal.planning.stratum_minimums import stratum_minimums
from stratal.strata import Strata, allocate_several
from stratal.strata.allocation import ALLOCATION_METHODS, LABEL_BASED_METHODS
from stratal.strata.strata import expected_variance, one_stratum

# Weights of the one-round allocation in the compared mixtures with Neyman's allocation. Three are enough
# because the width changes little between them.
_ONE_ROUND_WEIGHTS = (0.0, 0.5, 1.0)

# Errors with a smaller relative difference differ only by the rounding of their sums.
_ROUNDING = 1e-9

# Weight of the planned variances of an influence in the allocation of a round. With the variances of few
# labels alone, strata in which these labels agree would get no units, and the estimate would be biased.
PLANNED_SHARE = 0.5


class InterimAnalysis:
    """The current labels for J estimands in H strata, and the intervals that are expected with more units.

    Parameters
    ----------
    sample : Sample
        With its population if the estimand needs one.
    labels : see `stratal.estimate`
    confidence_level : float
    options : mapping
        Options of `stratal.estimate`.
    requested : Estimand, optional
        By default the estimand for which the sample was planned.
    estimates : Estimate or Estimates, optional
        The estimate of these labels, if it exists already.
    labelled : bool (n,), optional
        Which drawn units have a label that counts; by default all that are labelled.
    interval : str
        Method of the intervals.
    deviations : {"recalibrated", "raw"}
        See `estimated_deviations`.
    learner : CalibrationOptions, optional
        The learner of the final estimate. The deviations are then those of its residuals.
    quiet : bool
        Whether warnings of the estimate are suppressed, because no interval is requested.

    Attributes
    ----------
    strata : Strata
        One stratum of all units for a simple random sample.
    drawn, labelled : int (H,)
        Number of drawn units, and of labelled ones.
    deviations : float (J, H)
        S_h for the allocation of a round. With several estimands they are on the scale of their half-widths.
    label_deviations : float (J, H)
        S_h estimated from the labels alone.
    planned_deviations : float (J, H)
        S_h that the plan expects; not set for the mean of one outcome.
    max_n_h : int (H,)
        Number of units that may be drawn.
    label_based : bool
        Whether the numbers of drawn units depend on labels.
    note : str
        Name of the deviations, for the notes of a design.
    refuted : tuple of str
        Notes on assumptions of the plan that the labels contradict.
    outcomes : LabelledOutcomes, optional
        The labels of a mean of one outcome.
    one_round_allocation : callable, optional
        Maps a total to the n_h (H,) of its one-round allocation. No planned allocation is less precise.
    """

    def __init__(
        self,
        sample: Sample,
        labels: object,
        confidence_level: float = 0.95,
        options: Mapping[str, object] | None = None,
        *,
        requested: Estimand | None = None,
        estimates: Estimate | Estimates | None = None,
        labelled: BoolArray | None = None,
        interval: str = "auto",
        deviations: str = "recalibrated",
        learner: CalibrationOptions | None = None,
        quiet: bool = False,
    ) -> None:
        if requested is None:
            requested = as_estimand(sample.question.estimand)
        if estimates is None:
            if not requested.label_columns(sample):
                labels = join_labels(sample, labels)
            with warnings.catch_warnings():
                if quiet:
                    warnings.simplefilter("ignore", StratalWarning)
                estimates = estimate(sample, labels, estimand=requested, **(options or {}))
        pairs = list(requested.parts_with_labels(labels, sample.population))
        if labelled is None:
            labelled = join_labels(sample, pairs[0][1]).labelled
        self.parts = tuple(part for part, _ in pairs)
        self.estimates = [estimates] if isinstance(estimates, Estimate) else estimates
        self.confidence_level = confidence_level
        self.interval = interval
        self.strata = sample.design.strata or one_stratum(sample.population_size, scaled=False)
        self.drawn = sample.n_h
        self.labelled = np.bincount(sample.stratum[labelled], minlength=self.strata.n_strata)
        # No more units are drawn from strata in which the influence is known by construction.
        self.max_n_h = np.where(self.strata.is_known, self.drawn, self.strata.sizes)
        allocation = sample.design.allocation
        self.label_based = allocation is not None and allocation.method in LABEL_BASED_METHODS
        self.outcomes = requested.labelled_outcomes(estimates, labelled)
        if isinstance(estimates, Estimate) and self.outcomes is not None:
            refuted = estimates.refuted
        else:
            refuted = ()
        self.refuted = (*_unlabelled_round_notes(sample, labelled), *refuted)
        self.one_round_allocation: Callable[[int], IntArray] | None = None
        self._one_round_by_total: dict[int, IntArray] = {}
        if deviations == "recalibrated" and learner is None and self.strata.n_strata > 1:
            self.one_round_allocation = _one_round_allocation(sample)
        self.mean_widths: ExpectedMeanWidths | None = None
        self.metric_widths: RepeatedLabelWidths | None = None
        if self.outcomes is None:
            with warnings.catch_warnings(action="ignore", category=StratalWarning):  # the estimate has warned
                self._set_influence_deviations(requested, pairs, sample)
            for joined in [column for _, column in pairs if isinstance(column, JoinedLabels)]:
                joined.cache.clear()  # the estimate stores these labels, but must not store the sample
            self.metric_widths = RepeatedLabelWidths.of(requested, sample, labels, labelled, confidence_level)
        else:
            self._set_outcome_deviations(sample, labelled, deviations, learner)

    def _set_outcome_deviations(
        self, sample: Sample, labelled: BoolArray, deviations: str, learner: CalibrationOptions | None
    ) -> None:
        """Set the deviations of the outcome of a mean, and the model of its interval's width."""
        assert self.outcomes is not None
        z = self.outcomes.z
        bounds = self.outcomes.bounds
        stratum = sample.stratum[labelled]
        estimated = estimated_deviations(self.strata, z, stratum, bounds=bounds)
        self.mean_widths = ExpectedMeanWidths.of(
            self.strata, self.outcomes, stratum, estimated, self.confidence_level
        )
        self.note = f"{deviations} deviations"
        if learner is not None:
            (result,) = self.estimates
            learner = replace(learner, outcome=result.outcome, bounds=result.bounds)
            estimated, self.note = residual_deviations(sample, labelled, z, learner)
        elif deviations != "recalibrated":
            estimated = estimated_deviations(self.strata, z, stratum, deviations=deviations, bounds=bounds)
        self.label_deviations = estimated[None]
        self.deviations = self.label_deviations

    def _set_influence_deviations(
        self, requested: Estimand, pairs: Sequence[tuple[Estimand, object]], sample: Sample
    ) -> None:
        """Set the deviations of the influences: by the plan, by the labels, and for the next round."""
        self.note = "influence's deviations"
        strata = self.strata
        is_joint = len(pairs) > 1
        self.planned_deviations = strata.standard_deviations[None]
        is_known = strata.is_known[None]
        has_width = bool(np.all(self._is_reducible))
        if sample.population is not None and (is_joint or (strata.n_strata == 1 and not has_width)):
            influences = list(requested.influences(sample.population))
            self.planned_deviations, _, is_known = influence_deviations(sample.population, strata, influences)
        estimated = np.ones(self.planned_deviations.shape)
        if strata.n_strata > 1:
            for j, (part, part_labels) in enumerate(pairs):
                if is_joint:
                    planned = self.planned_deviations[j]
                else:
                    planned = None
                estimated[j] = part.learned_deviations(sample, part_labels, strata, planned)
        # Only the ratios of the strata are compared and mixed.
        estimated_ratios = _with_mean_one(estimated, strata)
        planned_ratios = _with_mean_one(self.planned_deviations, strata)
        mixed = np.sqrt(PLANNED_SHARE * planned_ratios**2 + (1.0 - PLANNED_SHARE) * estimated_ratios**2)
        self.label_deviations = np.where(is_known, 0.0, estimated_ratios)
        self.deviations = np.where(is_known, 0.0, mixed)
        if is_joint:  # a single estimand needs no scale, nor the interval that determines it
            errors = _standard_errors(strata, self.labelled, self.deviations)
            scale = np.divide(self.reference_half_widths, errors, out=np.ones_like(errors), where=errors > 0)
            self.deviations *= scale[:, None]

    @cached_property
    def half_widths(self) -> FloatArray:
        """Current half-widths (J,); infinite if there is no interval yet."""
        widths = [half_width_of(row, self.confidence_level, self.interval) for row in self.estimates]
        return np.array((widths + [np.inf] * len(self.parts))[: len(self.parts)])

    @cached_property
    def scale(self) -> FloatArray:
        """Factors (J,) on modelled half-widths that make those of the existing labels the current ones."""
        if self.mean_widths is None:
            return np.where(self.half_widths == 0, 0.0, self.reference_half_widths)
        modelled = self.mean_widths.half_widths(self.labelled, label_based=self.label_based)
        if np.isfinite(self.half_widths[0]) and modelled > 0:
            return np.asarray(self.half_widths / modelled)
        return np.ones(1)

    @property
    def _is_reducible(self) -> BoolArray:
        """Which current half-widths (J,) are finite and above 0, so that more labels can reduce them."""
        return np.isfinite(self.half_widths) & (self.half_widths > 0)

    @cached_property
    def reference_half_widths(self) -> FloatArray:
        """Current half-widths (J,), or those that the plan expects if there is no interval yet."""
        normal_quantile = -float(student_quantile((1.0 - self.confidence_level) / 2.0, np.inf))
        planned = normal_quantile * _standard_errors(self.strata, self.labelled, self.planned_deviations)
        return np.where(self._is_reducible, self.half_widths, planned)

    @property
    def names(self) -> tuple[str, ...]:
        """The text forms of the estimands (J,)."""
        return tuple(part.text for part in self.parts)

    def allocation(
        self,
        total: int,
        target_half_widths: FloatArray | None = None,
        *,
        allocation_of: str = "total",
        stopping: bool = False,
    ) -> IntArray:
        """Return n_h (H,) with this total, which includes all drawn units.

        For one estimand, choose the narrowest expected interval among mixtures of Neyman's allocation, which
        has the smallest standard error, and the one-round allocation, whose interval needs no correction for
        the use of labels. The standard error is never larger than that of the latter. With several estimands,
        minimise the largest half-width relative to its target (J,); by default all targets are equal.
        `stopping` states whether the total depends on labels as well.
        """
        if total == self.drawn.sum():
            return self.drawn
        if allocation_of != "total" or self.one_round_allocation is None or len(self.parts) > 1:
            return self._allocate(total, self.deviations, target_half_widths, allocation_of)
        distinct: dict[bytes, IntArray] = {}
        for weight in _ONE_ROUND_WEIGHTS:
            n_h = self._mixed_allocation(total, weight)
            distinct.setdefault(n_h.tobytes(), n_h)
        candidates = np.array(list(distinct.values()))
        errors = _standard_errors(self.strata, self.labels_of(candidates), self.label_deviations[0])
        # The one-round allocation comes last.
        candidates = candidates[errors <= errors[-1] * (1.0 + _ROUNDING)]
        if len(candidates) == 1:
            return np.asarray(candidates[0])
        widths = self._relative_widths(candidates, label_based=stopping)
        return np.asarray(candidates[int(np.argmin(widths))])

    def _mixed_allocation(self, total: int, weight: float) -> IntArray:
        """Return n_h (H,) between Neyman's (weight 0) and the one-round allocation (weight 1)."""
        assert self.one_round_allocation is not None
        if weight == 1.0 and total in self._one_round_by_total:
            return self._one_round_by_total[total]
        deviations = self.deviations[0]
        sizes = self.strata.sizes
        # Deviations for which Neyman's rule gives the one-round allocation: its sampling fractions.
        fractions = np.where(self.max_n_h > 0, self.one_round_allocation(total) / np.maximum(sizes, 1), 0.0)
        if weight == 1.0:  # without scaling, whose rounding depends on the order of the rows
            n_h = self._allocate(total, fractions[None])
            self._one_round_by_total[total] = n_h
            return n_h
        scaled_fractions = fractions * float(deviations @ sizes) / max(float(fractions @ sizes), NO_DIVISOR)
        return self._allocate(total, (weight * scaled_fractions + (1.0 - weight) * deviations)[None])

    def _relative_widths(self, n_h: IntArray, *, label_based: bool) -> FloatArray:
        """Return numbers (m,) that are proportional to the expected widths of one estimand's interval.

        The n_h (m, H) depend on labels, except the last row if `label_based` is false.
        """
        is_label_based = np.arange(len(n_h)) < len(n_h) - 1
        is_label_based |= label_based or self.label_based
        if self.metric_widths is not None:
            rows = zip(n_h, is_label_based.tolist(), strict=True)
            return np.array(
                [
                    self.metric_widths.half_width(row, label_based=depends_on_labels)
                    for row, depends_on_labels in rows
                ]
            )
        if self.mean_widths is None:
            return np.array([self.expected(row)[0] for row in n_h])
        return self.mean_widths.half_widths(self.labels_of(n_h), label_based=is_label_based)

    def follows_labels(self, n_h: IntArray) -> bool:
        """Return whether n_h (H,) depends on labels: false if it equals the one-round allocation."""
        if self.one_round_allocation is None or self.label_based or len(self.parts) > 1:
            return True
        return not np.array_equal(n_h, self._mixed_allocation(int(n_h.sum()), 1.0))

    def _allocate(
        self,
        total: int,
        deviations: FloatArray,
        target_half_widths: FloatArray | None = None,
        allocation_of: str = "total",
    ) -> IntArray:
        """Return n_h (H,) by deviations (J, H), with the minimums of `stratum_minimums`."""
        n_h = self._allocate_above(self.drawn, total, deviations, target_half_widths, allocation_of)
        if not any(part.by_answer for part in self.parts):
            return n_h
        minimums = stratum_minimums(self.strata, n_h, self.drawn)
        if minimums is None:
            return n_h
        return self._allocate_above(minimums, total, deviations, target_half_widths, allocation_of)

    def _allocate_above(
        self,
        minimums: IntArray,
        total: int,
        deviations: FloatArray,
        target_half_widths: FloatArray | None,
        allocation_of: str,
    ) -> IntArray:
        """Return n_h (H,) by deviations (J, H), but at least the minimums (H,)."""
        if len(self.parts) == 1:
            return next_allocation(
                self.max_n_h,
                self.drawn,
                deviations[0],
                total - int(self.drawn.sum()),
                allocation_of=allocation_of,
                minimums=np.minimum(minimums, self.max_n_h),
            )
        if target_half_widths is None:
            target_half_widths = np.ones(len(self.parts))
        return allocate_several(
            self.strata.sizes,
            deviations,
            total,
            standard_errors=target_half_widths,
            minimum=minimums,
            known_strata=self.strata.is_known & (self.drawn == 0),
            names=self.names,
        ).n_h

    def labels_of(self, n_h: IntArray) -> IntArray:
        """Return the labels (H,) of n_h drawn units with the response rate of the existing units."""
        rate = int(self.labelled.sum()) / int(self.drawn.sum())
        return np.asarray(self.labelled + np.round(rate * (n_h - self.drawn)).astype(np.int64))

    def expected(self, n_h: IntArray) -> FloatArray:
        """Return half the expected widths (J,) of the intervals with n_h (H,) drawn units.

        For an influence, the width is proportional to the standard error, either by the deviations of the
        labels or by those of the allocation. The larger width is returned, so that the plan's expectations
        cannot make it too optimistic.
        """
        labels = self.labels_of(n_h)
        if self.mean_widths is not None:
            return np.asarray(self.scale * self.mean_widths.half_widths(labels))
        ratios = [
            self._error_ratios(labels, deviations) for deviations in (self.label_deviations, self.deviations)
        ]
        return np.asarray(self.scale * np.maximum(*ratios))

    def _error_ratios(self, labels: IntArray, deviations: FloatArray) -> FloatArray:
        """Return the standard errors (J,) with these labels (H,) over those with the existing labels."""
        current = _standard_errors(self.strata, self.labelled, deviations)
        future = _standard_errors(self.strata, labels, deviations)
        return np.divide(future, current, out=np.zeros_like(current), where=current > 0)


def _unlabelled_round_notes(sample: Sample, labelled: BoolArray) -> Iterator[str]:
    """Yield a note for each round of which no unit is labelled."""
    for number in sorted(set(sample.round.tolist()) - set(sample.round[labelled].tolist())):
        yield f"no unit of round {number} has a label; give the labels of all rounds"


def _one_round_allocation(sample: Sample) -> Callable[[int], IntArray]:
    """Return a function from a total to the n_h (H,) of its one-round allocation.

    If the rule of the plan is unknown, the result has the proportions of the first round: the rule used
    columns that the sample does not store, or later rounds depend on labels.
    """
    allocation = sample.design.allocation
    if allocation is None or allocation.method not in ALLOCATION_METHODS:
        first_round = np.bincount(sample.stratum[sample.round == 1], minlength=len(sample.n_h))
        return lambda total: first_round

    def n_h_of(total: int) -> IntArray:
        larger = sample.design.larger_design(sample, total - sample.size).allocation
        assert larger is not None
        return larger.n_h

    return cache(n_h_of)


def _with_mean_one(deviations: FloatArray, strata: Strata) -> FloatArray:
    """Return deviations (J, H) divided by their mean over the units; all 1 if that mean is 0."""
    means = (deviations @ strata.weights)[:, None]
    equal = np.where(strata.is_known, 0.0, 1.0)
    return np.asarray(np.where(means > 0, deviations / np.where(means > 0, means, 1.0), equal))


def _standard_errors(strata: Strata, labels: IntArray, deviations: FloatArray) -> FloatArray:
    """Return the standard errors (J,) of means with deviations (J, H) and this number of labels (H,)."""
    variances = np.where(strata.is_known, 0.0, deviations) ** 2
    return np.asarray(np.sqrt(expected_variance(strata.sizes, np.maximum(labels, 1), variances)))
