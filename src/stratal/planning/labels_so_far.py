"""`LabelsSoFar`: what the labels of a sample say of its strata and of the rounds to come.

For any estimand, and for several at once: where a round helps most, how wide intervals are now, and how wide
they are expected to be with more units. For the mean of one outcome the interval is worked out on likely
labels of the units to come. Otherwise a half-width is, to first order, a constant times the root of
Σ W_h² (1/n_h − 1/N_h) S_h², so that labels in each stratum make it narrower by a known share.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.designs import Stratified
from stratal.designs.sample import Sample
from stratal.errors import InputError, StratalWarning
from stratal.estimation.calibrated import Calibrating
from stratal.estimation.estimand import Estimand, influences_of
from stratal.estimation.estimate import Estimate
from stratal.intervals.proportion import student_quantile
from stratal.labels.labels import join
from stratal.planning.deviations import estimated_deviations, residual_deviations
from stratal.planning.widths import (
    expected_half_width,
    expected_of_counts,
    half_width_of_counts,
    likely_means,
)
from stratal.planning.within_answers import with_floor
from stratal.population.influence import influence_moments
from stratal.strata import Everything, Strata, allocate_several, neyman
from stratal.strata.integers import Bounds, optimal_integers
from stratal.strata.moments import expected_variance, of_sizes
from stratal.strata.rates import smoothed_standard_deviations

PLANNED = 0.5
"""Share of the plan's own variances of an influence in those that a round goes by: sizes that depend on few
labels alone leave strata in which these saw nothing without more, and bias the estimate."""


def half_width_of(found: Estimate, confidence_level: float, method: str = "auto") -> float:
    """Return half the width of the interval; infinite where there is none yet.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 400)
    >>> sample = stratal.SimpleRandom(budget=100).draw(population, seed=7)
    >>> round(half_width_of(stratal.estimate(sample, [0.0, 1.0] * 50), 0.95), 2)
    0.09
    """
    try:
        given = {} if method == "auto" else {"method": method}  # only means have several methods
        width = found.confidence_interval(confidence_level, **given).width / 2.0
    except InputError:  # labels of an unbounded outcome that all agree
        return math.inf
    return width if math.isfinite(width) else math.inf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutcomesSoFar(Record):
    """Outcomes of the labelled units, and what they say of each stratum.

    Parameters
    ----------
    z : float (m,)
    stratum : int (m,)
    sizes : int (H,)
        N_h.
    deviations, means : float (H,)
        S_h and the mean of each stratum, smoothed.
    bounds : (float, float)
        Infinite where the outcome has none.
    counted : bool
        Whether outcomes are 0 or 1 in several strata: the labels of a stratum are then two numbers.
    looked : bool
        Whether labels decided how many units were drawn so far.

    Examples
    --------
    >>> whole = {"sizes": np.array([400]), "deviations": np.array([0.5]), "means": np.array([0.5])}
    >>> seen = OutcomesSoFar(z=[0.0, 1.0] * 50, stratum=[0] * 100, bounds=(0.0, 1.0), **whole)
    >>> round(seen.half_width(np.array([200]), 0.95), 2)
    0.05
    """

    z: FloatArray
    stratum: IntArray
    sizes: IntArray
    deviations: FloatArray
    means: FloatArray
    bounds: tuple[float, float]
    counted: bool = False
    looked: bool = False

    @classmethod
    def of(
        cls, strata: Strata, z: FloatArray, stratum: IntArray, bounds: tuple[float, float], *, binary: bool
    ) -> OutcomesSoFar:
        """Return what the outcomes say, the strata's proxy recalibrated on them."""
        deviations = estimated_deviations(strata, z, stratum, bounds=bounds)
        counted = binary and strata.n_strata > 1
        if counted:
            counts, ones = _counts(stratum, z, strata.n_strata)
            means = likely_means(counts, ones, deviations)
        else:
            means = _means(z, stratum, deviations, bounds)
        return cls(
            z=z,
            stratum=stratum,
            sizes=strata.sizes,
            deviations=deviations,
            means=means,
            bounds=bounds,
            counted=counted,
        )

    def half_width(self, labels: IntArray, confidence_level: float, *, looked: bool = True) -> float:
        """Return half the expected width of the interval with so many labels (H,), those so far included.

        `looked` is whether labels decided how many these are.
        """
        if not self.counted:
            return expected_half_width(
                self.sizes,
                labels,
                self.means,
                self.deviations**2,
                bounds=self.bounds,
                confidence_level=confidence_level,
                seen=(self.z, self.stratum, looked),
            )
        counts, ones = _counts(self.stratum, self.z, len(self.sizes))
        if int(labels.sum()) == len(self.z):
            return float(half_width_of_counts(self.sizes, counts, ones, confidence_level, looked=looked))
        return float(
            expected_of_counts(self.sizes, labels, self.means, confidence_level, seen=(counts, ones))
        )


def _counts(stratum: IntArray, z: FloatArray, n_strata: int) -> tuple[IntArray, IntArray]:
    """Return the labels of each stratum (H,), and those of them that are 1."""
    found = [np.bincount(stratum, part, minlength=n_strata) for part in (None, z)]
    return np.asarray(found[0], np.int64), np.rint(found[1]).astype(np.int64)


def _means(
    z: FloatArray, stratum: IntArray, deviations: FloatArray, bounds: tuple[float, float]
) -> FloatArray:
    """Return each stratum's mean (H,): its labels', moved to where the smoothed deviation is possible."""
    n_strata = len(deviations)
    counts = np.bincount(stratum, minlength=n_strata)
    own = np.bincount(stratum, z, minlength=n_strata) / np.maximum(counts, 1)
    means = np.where(counts > 0, own, z.mean())
    low, high = bounds
    if not math.isfinite(high - low):
        return np.asarray(means)
    unit = (means - low) / (high - low)
    root = np.sqrt(np.maximum(1.0 - 4.0 * (deviations / (high - low)) ** 2, 0.0))
    return np.asarray(low + (high - low) * np.clip(unit, (1.0 - root) / 2.0, (1.0 + root) / 2.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelsSoFar(Record):
    """What the labels of a sample say of J estimands in H strata, and of the intervals that more would give.

    Parameters
    ----------
    parts : tuple of Estimand (J,)
    strata : Strata
        One stratum of all units for a simple random sample.
    drawn, labelled : int (H,)
        Units drawn so far, and those that have a label.
    deviations : float (J, H)
        S_h by which a round is shared out; of several estimands on the scale of their half-widths.
    learned : float (J, H)
        S_h as the labels have them, before the plan's own are mixed in.
    half_widths : float (J,)
        Of the intervals now; infinite where there is none yet.
    scale : float (J,)
        What expected half-widths are multiplied by, so that those with the labels so far are those of now.
    confidence_level : float
    looked : bool
        Whether labels decided how many units were drawn so far.
    outcomes : OutcomesSoFar, optional
        Of an estimand that is the mean of one outcome.
    note : str
        What the deviations are.
    refuted : tuple of str
        What the plan took for granted and the labels refute.

    Examples
    --------
    >>> import stratal
    >>> from stratal.estimation.estimand import as_estimand
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 400)
    >>> sample = stratal.SimpleRandom(budget=100).draw(population, seed=7)
    >>> labels = [0.0, 1.0] * 50
    >>> seen = LabelsSoFar.of(as_estimand(None), sample, labels, stratal.estimate(sample, labels))
    >>> seen.expected(seen.allocation(200)).round(2)
    array([0.05])
    >>> groups = {"new": ["a", "b"] * 50, "old": ["a"] * 100}
    >>> population = stratal.Population.from_arrays(groups=groups)
    >>> sample = stratal.plan(population, budget=10, estimand="difference:new,old").draw(seed=1)
    >>> labels = ["a", "b"] * 5
    >>> seen = LabelsSoFar.of(as_estimand(sample.estimand), sample, labels, stratal.estimate(sample, labels))
    >>> seen.names, seen.deviations[0] > 0
    (('difference:new,old',), array([ True, False]))
    """

    parts: tuple[Estimand, ...]
    strata: Strata
    drawn: IntArray
    labelled: IntArray
    deviations: FloatArray
    learned: FloatArray
    half_widths: FloatArray
    scale: FloatArray
    confidence_level: float
    looked: bool
    outcomes: OutcomesSoFar | None
    note: str
    refuted: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        asked: Estimand,
        sample: Sample,
        labels: Any,
        found: Any,
        *,
        labelled: BoolArray | None = None,
        confidence_level: float = 0.95,
        interval: str = "auto",
        deviations: str = "recalibrated",
        learner: Calibrating | None = None,
    ) -> LabelsSoFar:
        """Return what the labels say of an estimand, or of each of several.

        Parameters
        ----------
        asked : Estimand
        sample : Sample
            With its population, where that is at hand.
        labels : see `stratal.estimate`
        found : Estimate
            What they give; of several estimands that of each.
        labelled : bool (n,), optional
            Which drawn units have a label that counts; those that are labelled unless given.
        confidence_level, interval
            Level and method of the intervals.
        deviations : {"recalibrated", "raw"}
        learner : Calibrating, optional
            What will be learned with: the deviations are then those of what it leaves open.
        """
        pairs = list(asked.parts_with_labels(labels, sample.population))
        if labelled is None:
            labelled = join(sample, pairs[0][1]).labelled
        strata, stratum = _strata_of(sample), sample.stratum[labelled]
        counts = np.bincount(stratum, minlength=strata.n_strata)
        looked = sample.weighting(labelled).sizes_follow_labels
        half_widths = _half_widths(found, len(pairs), confidence_level, interval)
        outcomes, note = None, "influence's deviations"
        known = asked.labelled_outcomes(found, labelled)
        if known is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", StratalWarning)  # the estimate has warned of the same
                learned, shared, scale = _of_influences(
                    asked, pairs, sample, strata, counts, half_widths, confidence_level
                )
        else:
            outcomes = OutcomesSoFar.of(strata, known.z, stratum, known.bounds, binary=known.binary)
            note = f"{deviations} deviations"
            found_deviations = outcomes.deviations
            if learner is not None:
                how = replace(learner, outcome=found.outcome, bounds=found.bounds)
                found_deviations, note = residual_deviations(sample, labelled, known.z, how)
            elif deviations != "recalibrated":
                found_deviations = estimated_deviations(
                    strata, known.z, stratum, deviations=deviations, bounds=known.bounds
                )
            learned = shared = found_deviations[None]
            now = outcomes.half_width(counts, confidence_level, looked=looked)
            usable = math.isfinite(half_widths[0]) and now > 0
            scale = half_widths / now if usable else np.ones(1)
        return cls(
            parts=tuple(part for part, _ in pairs),
            strata=strata,
            drawn=sample.n_h,
            labelled=counts,
            deviations=shared,
            learned=learned,
            half_widths=half_widths,
            scale=scale,
            confidence_level=confidence_level,
            looked=looked,
            outcomes=outcomes,
            note=note,
            refuted=() if known is None else found.refuted,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The text forms of the estimands (J,)."""
        return tuple(part.text for part in self.parts)

    @property
    def most(self) -> IntArray:
        """The units (H,) that may be drawn: no more where nothing varies by construction."""
        return np.where(self.strata.is_known, self.drawn, self.strata.sizes)

    def allocation(
        self, total: int, wanted: FloatArray | None = None, *, allocation_of: str = "total"
    ) -> IntArray:
        """Return n_h (H,) with so many units drawn in all, none of them taken back.

        Neyman's for one estimand; of several the largest half-width over the wanted (J,), which are alike
        unless given, is smallest.
        """
        extra = total - int(self.drawn.sum())
        if extra == 0:
            return self.drawn

        def allocated(least: IntArray) -> IntArray:
            if len(self.parts) == 1:
                least = np.minimum(least, self.most)
                own = self.deviations[0]
                return next_allocation(
                    self.most, self.drawn, own, extra, allocation_of=allocation_of, least=least
                )
            return allocate_several(
                self.strata.sizes,
                self.deviations,
                total,
                standard_errors=np.ones(len(self.parts)) if wanted is None else wanted,
                minimum=least,
                known=self.strata.is_known & (self.drawn == 0),
                names=self.names,
            ).n_h

        return with_floor(self.strata, self.parts, allocated(self.drawn), self.drawn, allocated)

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
        if self.outcomes is not None:
            return self.scale * self.outcomes.half_width(labels, self.confidence_level)
        shares = []
        for deviations in (self.learned, self.deviations):
            now, then = (_errors(self.strata, n, deviations) for n in (self.labelled, labels))
            shares.append(np.divide(then, now, out=np.zeros_like(now), where=now > 0))
        return np.asarray(self.scale * np.maximum(*shares))


def _strata_of(sample: Sample) -> Strata:
    """Return the strata that a sample was drawn from; all units as one, of unknown moments, if from none."""
    if isinstance(sample.design, Stratified):
        return sample.design.strata
    moments = of_sizes(np.array([sample.population_size]))
    return Strata(
        rule=Everything(),
        names=("all",),
        sizes=moments.sizes,
        proxy_means=moments.proxy_means,
        proxy_variances=moments.proxy_variances,
        conditional_variances=moments.conditional_variances,
        scaled=False,
    )


def _half_widths(found: Any, count: int, confidence_level: float, interval: str) -> FloatArray:
    """Return half the widths of the intervals that are reported now (J,); infinite where there is none."""
    each = [found] if isinstance(found, Estimate) else found
    widths = [half_width_of(row, confidence_level, interval) for row in each]
    return np.array((widths + [np.inf] * count)[:count])


def _of_influences(
    asked: Estimand,
    pairs: Sequence[tuple[Estimand, Any]],
    sample: Sample,
    strata: Strata,
    labelled: IntArray,
    half_widths: FloatArray,
    confidence_level: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return deviations (J, H) learned from the labels and of the next round, and half-widths (J,) now.

    Where there is no interval yet, the half-width is the one that the plan expects.
    """
    usable, several = np.isfinite(half_widths) & (half_widths > 0), len(pairs) > 1
    planned, needless = strata.standard_deviations[None], strata.is_known[None]
    if several or (not np.all(usable) and strata.n_strata == 1):
        planned, needless = _planned(asked, sample, strata)
    learned = np.ones(planned.shape)
    for j, (part, own) in enumerate(pairs if strata.n_strata > 1 else ()):
        learned[j] = part.learned_deviations(sample, own, strata, planned[j] if several else None)
    learned, expected = _relative(learned, strata), _relative(planned, strata)
    shared = np.sqrt(PLANNED * expected**2 + (1.0 - PLANNED) * learned**2)
    learned, shared = np.where(needless, 0.0, learned), np.where(needless, 0.0, shared)
    normal = -float(student_quantile((1.0 - confidence_level) / 2.0, np.inf))
    reached = np.where(usable, half_widths, normal * _errors(strata, labelled, planned))
    error = _errors(strata, labelled, shared)
    shared *= np.divide(reached, error, out=np.ones_like(error), where=error > 0)[:, None]
    return learned, shared, np.where(half_widths == 0, 0.0, reached)


def _planned(asked: Estimand, sample: Sample, strata: Strata) -> tuple[FloatArray, BoolArray]:
    """Return the deviations that were expected of each influence (J, H), and where it is known (J, H)."""
    assert sample.population is not None
    influences = list(influences_of(asked, sample.population))
    means, own, squares, known = influence_moments(sample.population, strata.rule, influences)
    return np.sqrt(np.maximum(np.maximum(squares, own) - means**2, 0.0)), known > 1.0 - 1e-9


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

    Examples
    --------
    >>> import numpy as np
    >>> sizes, drawn, s = np.array([100, 100]), np.array([10, 10]), np.array([0.1, 0.4])
    >>> next_allocation(sizes, drawn, s, 20), next_allocation(sizes, drawn, s, 20, allocation_of="remainder")
    (array([10, 30]), array([14, 26]))
    """
    if allocation_of == "total":
        minimum = drawn if least is None else np.maximum(drawn, least)
        return neyman(sizes, deviations, int(drawn.sum()) + additional, minimum=minimum)
    more = 0 if least is None else np.maximum(least - drawn, 0)
    return drawn + neyman(sizes, deviations, additional, minimum=more, maximum=sizes - drawn)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountsSoFar(Record):
    """Labels of 0 and 1 in several strata, of each replicate: the rule that ends a study, simulated.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    drawn, ones : int (R, H)
        Units drawn, which are all labelled, and those labelled 1.
    deviations, means : float (R, H)
        S_h and the rate of each stratum, smoothed.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.2] * 500 + [0.9] * 500)
    >>> strata = stratal.stratify(population, n_strata=2)
    >>> seen = CountsSoFar.of(strata, np.array([[50, 50]]), np.array([[10, 45]]))
    >>> seen.expected_half_width(np.array([400]), 0.95).round(3)
    array([0.027])
    """

    sizes: IntArray
    drawn: IntArray
    ones: IntArray
    deviations: FloatArray
    means: FloatArray

    @classmethod
    def of(cls, strata: Strata, drawn: IntArray, ones: IntArray) -> CountsSoFar:
        """Return what the counts say, the strata's proxy recalibrated on them."""
        deviations = smoothed_standard_deviations(
            strata.sizes,
            drawn,
            ones,
            proxy_means=strata.proxy_means,
            proxy_variances=strata.proxy_variances,
            conditional_variances=strata.conditional_variances,
            scaled=strata.scaled,
        )
        means = likely_means(drawn, ones, deviations)
        return cls(sizes=strata.sizes, drawn=drawn, ones=ones, deviations=deviations, means=means)

    def part(self, rows: IntArray | BoolArray) -> CountsSoFar:
        """Return some of the replicates."""
        moved = ("drawn", "ones", "deviations", "means")
        return replace(self, **{name: getattr(self, name)[rows] for name in moved})

    def allocation(self, total: IntArray) -> IntArray:
        """Return n_h (R, H) with `total` (R,) units drawn in all: Neyman's, none of them taken back."""
        bounds = Bounds(sizes=self.sizes, lower=self.drawn, upper=self.sizes)
        return optimal_integers(self.sizes * self.deviations, bounds, np.asarray(total)[..., None])

    def expected_half_width(self, total: IntArray, confidence_level: float) -> FloatArray:
        """Return half the expected width (R,) of the interval after a round to `total` (R,) units."""
        return expected_of_counts(
            self.sizes, self.allocation(total), self.means, confidence_level, seen=(self.drawn, self.ones)
        )
