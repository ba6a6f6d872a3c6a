"""Summarise the current labels for an estimand: where a round helps most, and how wide intervals will be.

`InterimAnalysis` does this for one estimand or several: current interval widths, and the widths that are
expected with more units. For the mean of one outcome, the interval is computed on likely labels of future
units. Otherwise a half-width is, to first order, a constant times the root of
Σ W_h² (1/n_h − 1/N_h) S_h², so that labels in each stratum make it narrower by a known share.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs import Stratified
from stratal.designs.extending import last_round
from stratal.designs.sample import Design, Sample
from stratal.designs.stratum_moments import stratum_counts, stratum_covariances, stratum_kurtoses
from stratal.errors import InputError, StratalWarning, refuse_unknown
from stratal.estimation.calibrated import Calibrating, calibrated_proxy
from stratal.estimation.entry_points import estimate
from stratal.estimation.estimand import Estimand, LabelledOutcomes, Several, as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.resolve import class_column
from stratal.estimation.respondents import Respondents
from stratal.intervals.proportion import student_quantile
from stratal.labels.label_values import LabelMapping
from stratal.labels.labels import JoinedLabels, join_labels
from stratal.planning.interim_widths import expected_of_counts, interim_half_width, likely_means
from stratal.planning.plan import floor_of
from stratal.planning.planner import influence_spreads, one_stratum
from stratal.strata import Allocation, Strata, allocate_several
from stratal.strata.allocation import FROM_LABELS, METHODS, Bounds, importance_of, optimal_integers
from stratal.strata.smoothed_variances import smoothed_standard_deviations
from stratal.strata.strata import expected_variance

# Shares of what no label decides in the deviations that are tried: the width is flat there.
_MIXTURES = (0.0, 0.5, 1.0)

# Errors that differ by less differ by the rounding of their sums alone.
_ROUNDING = 1e-9

# Labels' worth of what the predictions themselves say of a stratum's residuals.
STRENGTH = 16.0

# Share of the pooled residual variance in that: no stratum is believed to be settled.
POOLED = 0.2


def estimated_deviations(
    strata: Strata,
    z: FloatArray,
    stratum: IntArray,
    *,
    deviations: str = "recalibrated",
    bounds: tuple[float, float] | None = None,
) -> FloatArray:
    """Return S_h (H,) from labelled units.

    Parameters
    ----------
    strata : Strata
    z : float (n,)
        Outcome of the labelled units.
    stratum : int (n,)
        Stratum of each.
    deviations : {"recalibrated", "raw"}
        The proxy recalibrated on the labels and smoothed (`stratal.strata.smoothed_variances`), or the
        sample's own (Kumar & Raj 2016, eq. 3), which are 0 where a stratum's labels all agree.
    bounds : (float, float), optional
        Of the outcome, infinite where it has none. Those of the proxy if left out and all labels lie within;
        0 and 1 if there are none and all labels are 0 or 1.

    Raises
    ------
    InputError
        For an unknown kind.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 50 + [0.9] * 50)
    >>> strata = stratal.strata.stratify(population, n_strata=2)
    >>> z, h = np.array([0.0, 0, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
    >>> estimated_deviations(strata, z, h).round(2)
    array([0.31, 0.41])
    >>> estimated_deviations(strata, z, h, deviations="raw").round(2)
    array([0.  , 0.58])
    """
    refuse_unknown("kind of deviations", deviations, ("recalibrated", "raw"))
    n_strata = strata.n_strata
    if deviations == "raw":
        return raw_deviations(z, stratum, n_strata)
    low, high = strata.bounds if bounds is None else bounds
    zeros_and_ones = bool(np.all((z == 0) | (z == 1)))
    if zeros_and_ones and bounds is None and not strata.scaled and not np.isfinite(high - low):
        low = 0.0
        high = 1.0
    elif np.any((z < low) | (z > high)):
        if bounds is not None:
            raise InputError("a label lies outside the bounds", given=f"{z.max():g}", allowed=f"{bounds}")
        low = -np.inf
        high = np.inf
    binary = zeros_and_ones and (low, high) == (0.0, 1.0)
    unbounded = not np.isfinite(high - low)
    return smoothed_standard_deviations(
        strata,
        stratum_counts(stratum, n_strata),
        np.bincount(stratum, z, minlength=n_strata),
        None if binary else np.bincount(stratum, z**2, minlength=n_strata),
        kurtoses=stratum_kurtoses(z, stratum, n_strata) if unbounded else None,
        bounds=(-np.inf, np.inf) if unbounded else (float(low), float(high)),
    )


def raw_deviations(z: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the sample's s_h (H,) with divisor n_h − 1; the pooled one below two labels."""
    variances = stratum_covariances(z[:, None], stratum, n_strata)[:, 0, 0]
    free = np.maximum(stratum_counts(stratum, n_strata) - 1, 0)
    pooled = float(np.nansum(variances * free)) / max(int(free.sum()), 1)
    return np.asarray(np.sqrt(np.where(np.isnan(variances), pooled, variances)))


def residual_deviations(
    sample: Sample, labelled: BoolArray, z: FloatArray, options: Calibrating
) -> tuple[FloatArray, str]:
    """Return the standard deviation of z − φ(x) in each stratum (H,), smoothed, and a note on φ.

    Parameters
    ----------
    sample : Sample
    labelled : bool (n,)
    z : float (m,)
        Outcomes of the labelled units.
    options : Calibrating
        The learner and what it learns from.

    Notes
    -----
    φ is cross-fitted and chosen as `estimate(…, calibration=learner)` does it, so residuals are of labels
    that φ has not seen. A stratum's own are mixed with what φ's mean m_h and variance V_h over the stratum
    lead one to expect, (m_h − low)(high − m_h) − V_h, scaled to the residuals of all strata.
    """
    frame = Respondents.of(sample, labelled)
    calibration = calibrated_proxy(sample, labelled, frame, z, options)
    sizes = calibration.summary.sizes
    stratum = frame.stratum
    means = calibration.summary.proxy_means[:, 0]
    expected = np.ones(len(sizes))
    if options.bounds is not None and np.all(np.isfinite(options.bounds)):
        low, high = options.bounds
        unexplained = (means - low) * (high - means) - calibration.summary.proxy_covariances[:, 0, 0]
        expected = np.maximum(unexplained, 0.0)
    counts = np.bincount(stratum, minlength=len(sizes))
    sums = np.bincount(stratum, (z - calibration.values[:, 0]) ** 2, minlength=len(sizes))
    pooled = float(sizes @ (sums / np.maximum(counts, 1)) / sizes[counts > 0].sum())
    total = float(counts @ expected)
    factor = sums.sum() / total if total > 0 else 0.0
    prior = POOLED * pooled + (1 - POOLED) * factor * expected
    deviations = np.sqrt((STRENGTH * prior + sums) / (STRENGTH + counts))
    if frame.codes is not None:
        deviations = deviations[frame.codes]
    return np.asarray(deviations), f"deviations of residuals; {calibration.note}"


# Share of the plan's own variances of an influence in those that a round goes by: sizes that depend on few
# labels alone leave strata in which these saw nothing without more, and bias the estimate.
PLANNED = 0.5


def half_width_of(estimate: Any, confidence_level: float, method: str = "auto") -> float:
    """Return half the width of the interval; infinite where there is none yet."""
    try:
        method_option = {} if method == "auto" else {"method": method}  # only means have several methods
        width = estimate.confidence_interval(confidence_level, **method_option).width / 2.0
    except InputError:  # labels of an unbounded outcome that all agree
        return math.inf
    return width if math.isfinite(width) else math.inf


def _of_outcomes(
    strata: Strata, outcomes: LabelledOutcomes, stratum: IntArray
) -> tuple[FloatArray, Callable[..., Any]]:
    """Return S_h (H,) of the labelled outcomes, and half the width to expect of more labels.

    The width (…,) is a function of labels (…, H), those so far included, of `confidence_level`, and of
    `label_driven`, one or (…,): whether labels decided how many there are.
    """
    z = outcomes.z
    bounds = outcomes.bounds
    n_strata = strata.n_strata
    counts = np.bincount(stratum, minlength=n_strata)
    sums = np.bincount(stratum, z, minlength=n_strata)
    deviations = estimated_deviations(strata, z, stratum, bounds=bounds)
    if outcomes.binary and n_strata > 1:
        observed_counts = (counts, np.rint(sums).astype(np.int64))
        expected_means = likely_means(counts, sums, deviations)

        return deviations, partial(
            expected_of_counts, strata.sizes, means=expected_means, seen=observed_counts
        )
    # A stratum's mean is that of its labels, moved to where the smoothed deviation is possible.
    means = np.where(counts > 0, sums / np.maximum(counts, 1), z.mean())
    low, high = bounds
    if math.isfinite(high - low):
        root = np.sqrt(np.maximum(1.0 - 4.0 * (deviations / (high - low)) ** 2, 0.0))
        unit = np.clip((means - low) / (high - low), (1.0 - root) / 2.0, (1.0 + root) / 2.0)
        means = low + (high - low) * unit

    def width(labels: IntArray, *, confidence_level: float, label_driven: Any = True) -> FloatArray:
        is_label_driven = np.broadcast_to(label_driven, labels.shape[:-1])
        widths = [
            interim_half_width(
                strata.sizes,
                n_h,
                means,
                deviations**2,
                labelled=(z, stratum),
                bounds=bounds,
                confidence_level=confidence_level,
                label_driven=bool(driven_by_labels),
            )
            for n_h, driven_by_labels in zip(
                labels.reshape(-1, n_strata), is_label_driven.ravel(), strict=True
            )
        ]
        return np.reshape(widths, labels.shape[:-1])

    return deviations, width


class InterimAnalysis:
    """What the labels of a sample say of J estimands in H strata, and of the intervals that more would give.

    Parameters
    ----------
    sample : Sample
        With its population, where one is needed.
    labels : see `stratal.estimate`
    confidence_level : float
    options : mapping
        Of `stratal.estimate`.
    requested : Estimand, optional
        What the sample was planned for unless given.
    found : Estimate, optional
        What the labels give, if that is known already; of several estimands that of each.
    labelled : bool (n,), optional
        Which drawn units have a label that counts; those that are labelled unless given.
    interval : str
        Method of the intervals.
    deviations : {"recalibrated", "raw"}
    learner : Calibrating, optional
        What will be learned with: the deviations are then those of what it leaves open.
    quiet : bool
        Whether the estimate warns of nothing: where no interval is asked for.

    Attributes
    ----------
    strata : Strata
        One stratum of all units for a simple random sample.
    drawn, labelled : int (H,)
        Units drawn so far, and those that have a label.
    deviations : float (J, H)
        S_h by which a round is shared out; of several estimands on the scale of their half-widths.
    learned : float (J, H)
        S_h as the labels have them, before the plan's own are mixed in.
    most : int (H,)
        Units that may be drawn.
    label_driven : bool
        Whether labels decided how many units were drawn so far.
    note : str
        What the deviations are.
    refuted : tuple of str
        What the plan took for granted and the labels refute.
    known : LabelledOutcomes, optional
        Of an estimand that is the mean of one outcome.
    unread : callable, optional
        A total to the n_h (H,) of one round that reads no label, which what is planned never falls behind.
    """

    def __init__(
        self,
        sample: Sample,
        labels: Any,
        confidence_level: float = 0.95,
        options: Mapping[str, Any] | None = None,
        *,
        requested: Estimand | None = None,
        found: Any = None,
        labelled: BoolArray | None = None,
        interval: str = "auto",
        deviations: str = "recalibrated",
        learner: Calibrating | None = None,
        quiet: bool = False,
    ) -> None:
        if requested is None:
            requested = as_estimand(sample.question.estimand)
        if found is None:
            with warnings.catch_warnings():
                if quiet:
                    warnings.simplefilter("ignore", StratalWarning)
                if not requested.label_columns(sample):
                    labels = join_labels(sample, labels)
                found = estimate(sample, labels, estimand=requested, **(options or {}))
        pairs = list(requested.parts_with_labels(labels, sample.population))
        if labelled is None:
            labelled = join_labels(sample, pairs[0][1]).labelled
        self.parts = tuple(part for part, _ in pairs)
        self.confidence_level = confidence_level
        self.strata = sample.design.strata or one_stratum(sample.population_size, scaled=False)
        stratum = sample.stratum[labelled]
        n_strata = self.strata.n_strata
        self.drawn, self.labelled = sample.n_h, np.bincount(stratum, minlength=n_strata)
        # No more are drawn where nothing varies by construction.
        self.most = np.where(self.strata.is_known, self.drawn, self.strata.sizes)
        shared = sample.design.allocation
        self.label_driven = shared is not None and shared.method in FROM_LABELS
        self.found = [found] if isinstance(found, Estimate) else found
        self.interval = interval
        forgotten = (
            f"no unit of round {number} has a label; give the labels of all rounds"
            for number in sorted(set(sample.round.tolist()) - set(sample.round[labelled].tolist()))
        )
        self.known = requested.labelled_outcomes(found, labelled)
        self.refuted = (*forgotten, *(() if self.known is None else found.refuted))
        self.unread: Callable[[int], IntArray] | None = None
        self._one_round: dict[int, IntArray] = {}  # its n_h (H,) by total
        if deviations == "recalibrated" and learner is None and n_strata > 1:
            self.unread = _unread(sample)
        self.width: Callable[..., Any] | None = None  # half the expected width, of labels (…, H)
        self.repeated: Callable[[IntArray, bool], float] | None = None
        if self.known is None:
            self.note = "influence's deviations"
            with warnings.catch_warnings(action="ignore", category=StratalWarning):  # the estimate has warned
                self._learn_from_influences(requested, pairs, sample)
            for joined in [column for _, column in pairs if isinstance(column, JoinedLabels)]:
                joined.cache.clear()  # the estimate holds these labels, and is not to hold the sample
            self.repeated = _repeating(requested, sample, labels, labelled, confidence_level)
            return
        deviations_of_labels, width = _of_outcomes(self.strata, self.known, stratum)
        self.width = partial(width, confidence_level=confidence_level)
        self.note = f"{deviations} deviations"
        if learner is not None:
            calibration_options = replace(learner, outcome=found.outcome, bounds=found.bounds)
            deviations_of_labels, self.note = residual_deviations(
                sample, labelled, self.known.z, calibration_options
            )
        elif deviations != "recalibrated":
            z = self.known.z
            bounds = self.known.bounds
            deviations_of_labels = estimated_deviations(
                self.strata, z, stratum, deviations=deviations, bounds=bounds
            )
        self.learned = self.deviations = deviations_of_labels[None]

    @cached_property
    def half_widths(self) -> FloatArray:
        """Those (J,) of the intervals now; infinite where there is none yet."""
        widths = [half_width_of(row, self.confidence_level, self.interval) for row in self.found]
        return np.array((widths + [np.inf] * len(self.parts))[: len(self.parts)])

    @cached_property
    def scale(self) -> FloatArray:
        """What expected half-widths (J,) are multiplied by: those with the labels so far are those of now."""
        if self.width is None:
            return np.where(self.half_widths == 0, 0.0, self.reached)
        now = self.width(self.labelled, label_driven=self.label_driven)
        if np.isfinite(self.half_widths[0]) and now > 0:
            return np.asarray(self.half_widths / now)
        return np.ones(1)

    def _learn_from_influences(
        self, requested: Estimand, pairs: Sequence[tuple[Estimand, Any]], sample: Sample
    ) -> None:
        """Find the deviations learned from the labels, those of the next round, and half-widths now.

        Where there is no interval yet, the half-width is the one that the plan expects.
        """
        strata = self.strata
        several = len(pairs) > 1
        planned = strata.standard_deviations[None]
        needless = strata.is_known[None]
        if sample.population is not None and (several or (strata.n_strata == 1 and not np.all(self._usable))):
            influences = list(requested.influences(sample.population))
            planned, _, needless = influence_spreads(sample.population, strata, influences)
        learned = np.ones(planned.shape)
        for j, (part, part_labels) in enumerate(pairs if strata.n_strata > 1 else ()):
            learned[j] = part.learned_deviations(sample, part_labels, strata, planned[j] if several else None)
        learned = _relative(learned, strata)
        expected = _relative(planned, strata)
        shared = np.sqrt(PLANNED * expected**2 + (1.0 - PLANNED) * learned**2)
        self.planned = planned
        self.learned, self.deviations = np.where(needless, 0.0, learned), np.where(needless, 0.0, shared)
        if several:  # one alone needs no scale, nor the interval that would set it
            error = _errors(strata, self.labelled, self.deviations)
            self.deviations *= np.divide(self.reached, error, out=np.ones_like(error), where=error > 0)[
                :, None
            ]

    @property
    def _usable(self) -> BoolArray:
        """Which half-widths (J,) now are numbers that more labels can make smaller."""
        return np.isfinite(self.half_widths) & (self.half_widths > 0)

    @cached_property
    def reached(self) -> FloatArray:
        """Half-widths (J,) of now, or those that the plan expects where there is none yet."""
        normal = -float(student_quantile((1.0 - self.confidence_level) / 2.0, np.inf))
        expected = normal * _errors(self.strata, self.labelled, self.planned)
        return np.where(self._usable, self.half_widths, expected)

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
        """Return n_h (H,) with so many units drawn in all, none of them taken back.

        For one estimand between Neyman's, which has the least error, and one round that reads no label, where
        the interval is expected to be narrowest; never less precise than the latter. Of several the largest
        half-width over the wanted (J,), which are alike unless given, is smallest. `stopping` is whether
        labels decide the total as well.
        """
        if total == self.drawn.sum():
            return self.drawn
        if allocation_of != "total" or self.unread is None or len(self.parts) > 1:
            return self._allocated(total, self.deviations, target_half_widths, allocation_of)
        tried: dict[bytes, IntArray] = {}
        for part in _MIXTURES:
            n_h = self._between(total, part)
            tried.setdefault(n_h.tobytes(), n_h)
        candidates = np.array(list(tried.values()))
        errors = _errors(self.strata, self.labels_of(candidates), self.learned[0])
        # The round that reads no label comes last.
        candidates = candidates[errors <= errors[-1] * (1.0 + _ROUNDING)]
        if len(candidates) == 1:
            return np.asarray(candidates[0])
        widths = self._widths(candidates, label_driven=stopping)
        return np.asarray(candidates[int(np.argmin(widths))])

    def _between(self, total: int, part: float) -> IntArray:
        """Return n_h (H,) between Neyman's (0) and those of one round that reads no label (1)."""
        assert self.unread is not None
        if part == 1.0 and total in self._one_round:
            return self._one_round[total]
        deviations = self.deviations[0]
        sizes = self.strata.sizes
        mixed = first = np.where(self.most > 0, self.unread(total) / np.maximum(sizes, 1), 0.0)
        if part < 1.0:  # alone it is kept free of what rounds in another order of the rows
            first = first * float(deviations @ sizes) / max(float(first @ sizes), 1e-300)
            mixed = part * first + (1.0 - part) * deviations
        n_h = self._allocated(total, mixed[None])
        if part == 1.0:
            self._one_round[total] = n_h
        return n_h

    def _widths(self, n_h: IntArray, *, label_driven: bool) -> FloatArray:
        """Return what half the expected widths of one estimand's interval are proportional to, (m,).

        Labels decide n_h (m, H), but for the last where `label_driven` is false.
        """
        is_label_driven = np.arange(len(n_h)) + 1 < len(n_h)
        is_label_driven |= label_driven or self.label_driven
        if self.repeated is not None:
            return np.array(
                [
                    self.repeated(row, bool(driven_by_labels))
                    for row, driven_by_labels in zip(n_h, is_label_driven, strict=True)
                ]
            )
        if self.width is None:
            return np.array([self.expected(row)[0] for row in n_h])
        return np.asarray(self.width(self.labels_of(n_h), label_driven=is_label_driven))

    def follows_labels(self, n_h: IntArray) -> bool:
        """Return whether labels decided on n_h (H,): not where one round that reads none has the same."""
        if self.unread is None or self.label_driven or len(self.parts) > 1:
            return True
        return not np.array_equal(n_h, self._between(int(n_h.sum()), 1.0))

    def _allocated(
        self,
        total: int,
        deviations: FloatArray,
        target_half_widths: FloatArray | None = None,
        allocation_of: str = "total",
        least: IntArray | None = None,
    ) -> IntArray:
        """Return n_h (H,) by deviations (J, H): no less than `least` or, of cells, half of a share."""
        lower = self.drawn if least is None else least
        several = len(self.parts) > 1
        if several:
            if target_half_widths is None:
                target_half_widths = np.ones(len(self.parts))
            n_h = allocate_several(
                self.strata.sizes,
                deviations,
                total,
                standard_errors=target_half_widths,
                minimum=lower,
                known=self.strata.is_known & (self.drawn == 0),
                names=self.names,
            ).n_h
        else:
            n_h = next_allocation(
                self.most,
                self.drawn,
                deviations[0],
                total - int(self.drawn.sum()),
                allocation_of=allocation_of,
                least=np.minimum(lower, self.most),
            )
        if least is not None or not any(part.by_answer for part in self.parts):
            return n_h
        floors = floor_of(self.strata, n_h, self.drawn)
        if floors is None:
            return n_h
        return self._allocated(total, deviations, target_half_widths, allocation_of, floors)

    def labels_of(self, n_h: IntArray) -> IntArray:
        """Return the labels (H,) that n_h drawn units bring if as many as so far are answered."""
        rate = int(self.labelled.sum()) / int(self.drawn.sum())
        return np.asarray(self.labelled + np.round(rate * (n_h - self.drawn)).astype(np.int64))

    def expected(self, n_h: IntArray) -> FloatArray:
        """Return half the expected widths (J,) of the intervals with n_h (H,) units drawn in all.

        Those of influences narrow as the deviations do that were learned from the labels, or as those by
        which the round is shared out if that is less: the plan's share in these may widen what is expected,
        and never narrow it.
        """
        labels = self.labels_of(n_h)
        if self.width is not None:
            return np.asarray(self.scale * self.width(labels))
        shares = []
        for deviations in (self.learned, self.deviations):
            current_errors, future_errors = (
                _errors(self.strata, n, deviations) for n in (self.labelled, labels)
            )
            shares.append(
                np.divide(
                    future_errors, current_errors, out=np.zeros_like(current_errors), where=current_errors > 0
                )
            )
        return np.asarray(self.scale * np.maximum(*shares))


def _unread(sample: Sample) -> Callable[[int], IntArray]:
    """Return what gives the n_h (H,) of a total that is shared out by the plan's rule and reads no label.

    In the first round's proportions where that rule is gone: it took what the sample does not hold, or labels
    have decided since.
    """
    allocation = sample.design.allocation
    if allocation is None or allocation.method not in METHODS:
        first = np.bincount(sample.stratum[sample.round == 1], minlength=len(sample.n_h))
        return lambda total: first

    def shared(total: int) -> IntArray:
        larger = sample.design.larger(sample, total - sample.size).allocation
        assert larger is not None
        return larger.n_h

    return cache(shared)


def _repeating(
    requested: Estimand, sample: Sample, labels: Any, labelled: BoolArray, confidence_level: float
) -> Callable[[IntArray, bool], float] | None:
    """Return half the width of a metric's interval if each stratum's labels were repeated up to n_h (H,).

    None of estimands whose labels are no classes, and of several.
    """
    if isinstance(requested, Several) or not requested.by_answer or sample.design.strata is None:
        return None
    classes = class_column(sample, labels, "labels")
    labelled_rows = np.flatnonzero(labelled)
    every = np.arange(sample.size)
    answered = np.array([entry is not None for entry in classes])
    # A stratum that nobody answered in yet stays so.
    of_stratum = [
        rows if len(rows := labelled_rows[sample.stratum[labelled_rows] == h]) else every[sample.stratum == h]
        for h in range(len(sample.n_h))
    ]

    def half_width(n_h: IntArray, label_driven: bool) -> float:
        parts = [np.resize(rows, n) for rows, n in zip(of_stratum, n_h.tolist(), strict=True) if len(rows)]
        rows = np.concatenate(parts)
        counts = np.bincount(sample.stratum[rows], minlength=len(n_h))
        repeated_sample = sample.of_rows(
            rows,
            ids=np.arange(len(rows)),
            inclusion_probability=(counts / sample.summary.sizes)[sample.stratum[rows]],
            round=np.ones(len(rows), np.int64),
            design=design_with_counts(sample, counts, "expected", follows=label_driven),
            looks=None,
        )
        is_answered = answered[rows]
        joined_columns: dict[str, Any] = {
            "unit": np.flatnonzero(is_answered),
            "answers": classes[rows[is_answered]],
        }
        repeated = JoinedLabels(
            **joined_columns, labelled=is_answered, label_mapping=LabelMapping(), ids=repeated_sample.ids
        )
        with warnings.catch_warnings(action="ignore", category=StratalWarning):
            return half_width_of(requested.estimate(repeated_sample, repeated), confidence_level)

    return half_width


def _relative(deviations: FloatArray, strata: Strata) -> FloatArray:
    """Return deviations (J, H) whose weighted mean is 1; alike where none varies."""
    totals = (deviations @ strata.weights)[:, None]
    flat = np.where(strata.is_known, 0.0, 1.0)
    return np.asarray(np.where(totals > 0, deviations / np.where(totals > 0, totals, 1.0), flat))


def _errors(strata: Strata, labelled: Any, deviations: FloatArray) -> FloatArray:
    """Return the standard errors (J,) of means that vary so (J, H), with so many labels (H,)."""
    variances = np.where(strata.is_known, 0.0, deviations) ** 2
    return np.asarray(np.sqrt(expected_variance(strata.sizes, np.maximum(labelled, 1), variances)))


def next_allocation(
    sizes: IntArray,
    drawn: IntArray,
    deviations: FloatArray,
    additional: int,
    *,
    allocation_of: str = "total",
    least: IntArray | None = None,
) -> IntArray:
    """Return the total n_h (H,) after another round by Neyman's rule.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    drawn : int (H,)
        Units drawn so far.
    deviations : float (H,)
        S_h.
    additional : int
        Units to add.
    allocation_of : {"total", "remainder"}
        See `next_round`.
    least : int (H,), optional
        n_h at least, where that is more than is drawn.
    """
    weights = importance_of(sizes, "deviations", deviations)
    least = drawn if least is None else np.maximum(drawn, least)
    if allocation_of == "total":
        bounds = Bounds(sizes=sizes, lower=least, upper=sizes)
        return optimal_integers(weights, bounds, int(drawn.sum()) + additional)
    bounds = Bounds(sizes=sizes, lower=least - drawn, upper=sizes - drawn)
    return drawn + optimal_integers(weights, bounds, additional)


def design_with_counts(
    sample: Sample, n_h: IntArray, rule_text: str, *, follows: bool, known: LabelledOutcomes | None = None
) -> Design:
    """Return the design of n_h (H,) units of the sample's strata, which `follows` labels or not."""
    strata = sample.design.strata
    total = int(n_h.sum())
    if strata is None:
        return sample.design.following(sample, total - sample.size, known)
    assert sample.design.allocation is not None
    rule = "opt-a1" if last_round(sample) == 1 else "opt-a2"
    allocation = Allocation(
        n_h=n_h,
        method=rule if follows else sample.design.allocation.method,
        budget=total,
        minimum=sample.n_h,
        maximum=strata.sizes,
        notes=(f"Round {last_round(sample) + 1}: {rule_text}.",),
    )
    return Stratified(strata=strata, allocation=allocation)
