"""`LabelsSoFar`: what the labels of a sample say of its strata and of the rounds to come.

For any estimand, and for several at once: where a round helps most, how wide intervals are now, and how wide
they are expected to be with more units. For the mean of one outcome the interval is worked out on likely
labels of the units to come. Otherwise a half-width is, to first order, a constant times the root of
Σ W_h² (1/n_h − 1/N_h) S_h², so that labels in each stratum make it narrower by a known share.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.designs import Stratified
from stratal.designs.sample import Sample
from stratal.designs.stratum_moments import stratum_counts, stratum_covariances, stratum_kurtoses
from stratal.errors import InputError, StratalWarning
from stratal.estimation.calibrated import Calibrating, calibrated_proxy
from stratal.estimation.estimand import Estimand, influences_of
from stratal.estimation.estimate import Estimate
from stratal.estimation.respondents import Respondents
from stratal.intervals.proportion import student_quantile
from stratal.labels.labels import join
from stratal.planning.widths import (
    expected_half_width,
    expected_of_counts,
    half_width_of_counts,
    likely_means,
)
from stratal.population.influence import influence_moments
from stratal.population.rules.possible import cells_of
from stratal.strata import Everything, Strata, allocate_several, neyman
from stratal.strata.integers import Bounds, optimal_integers
from stratal.strata.moments import expected_variance, of_sizes
from stratal.strata.rates import smoothed_standard_deviations

DEVIATIONS = ("recalibrated", "raw")

STRENGTH = 16.0
"""Labels' worth of what the predictions themselves say of a stratum's residuals."""

POOLED = 0.2
"""Share of the pooled residual variance in that: no stratum is believed to be settled."""


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
        The proxy recalibrated on the labels and smoothed (`stratal.strata.rates`), or the sample's own
        (Kumar & Raj 2016, eq. 3), which are 0 where a stratum's labels all agree.
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
    >>> strata = stratal.stratify(population, n_strata=2)
    >>> z, h = np.array([0.0, 0, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
    >>> estimated_deviations(strata, z, h).round(2)
    array([0.31, 0.41])
    >>> estimated_deviations(strata, z, h, deviations="raw").round(2)
    array([0.  , 0.58])
    """
    if deviations not in DEVIATIONS:
        raise InputError(
            "no such kind of deviations", given=repr(deviations), allowed=", ".join(map(repr, DEVIATIONS))
        )
    n_strata = strata.n_strata
    if deviations == "raw":
        return raw_deviations(z, stratum, n_strata)
    binary, limits = _outcome_of(strata, z, bounds)
    return smoothed_standard_deviations(
        strata.sizes,
        stratum_counts(stratum, n_strata),
        np.bincount(stratum, z, minlength=n_strata),
        None if binary else np.bincount(stratum, z**2, minlength=n_strata),
        proxy_means=strata.proxy_means,
        proxy_variances=strata.proxy_variances,
        conditional_variances=strata.conditional_variances,
        kurtoses=None if np.isfinite(limits[1] - limits[0]) else stratum_kurtoses(z, stratum, n_strata),
        bounds=limits,
        scaled=strata.scaled,
    )


def raw_deviations(z: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the sample's s_h (H,) with divisor n_h − 1; the pooled one below two labels.

    Examples
    --------
    >>> raw_deviations(np.array([0.0, 1.0, 1.0, 1.0]), np.array([0, 0, 1, 1]), 2).round(3)
    array([0.707, 0.   ])
    """
    own = stratum_covariances(z[:, None], stratum, n_strata)[:, 0, 0]
    free = np.maximum(stratum_counts(stratum, n_strata) - 1, 0)
    pooled = float(np.nansum(own * free)) / max(int(free.sum()), 1)
    return np.asarray(np.sqrt(np.where(np.isnan(own), pooled, own)))


def _outcome_of(
    strata: Strata, z: FloatArray, bounds: tuple[float, float] | None
) -> tuple[bool, tuple[float, float]]:
    """Return whether the outcome takes only the values of its bounds, and the bounds."""
    limits = strata.bounds if bounds is None else bounds
    if not np.all(np.isfinite(limits)) and (bounds is not None or strata.scaled):
        return False, (-np.inf, np.inf)
    binary = bool(np.all((z == 0) | (z == 1)))
    finite = bool(np.isfinite(limits[0]) and np.isfinite(limits[1]))
    if binary and (not finite or tuple(limits) == (0.0, 1.0)):
        return True, (0.0, 1.0)
    if finite and bool(np.all((z >= limits[0]) & (z <= limits[1]))):
        return False, (float(limits[0]), float(limits[1]))
    if bounds is not None:
        raise InputError(
            "a label lies outside the bounds", given=f"{z.min():g} to {z.max():g}", allowed=f"{bounds}"
        )
    return False, (-np.inf, np.inf)


def residual_deviations(
    sample: Sample, labelled: BoolArray, z: FloatArray, how: Calibrating
) -> tuple[FloatArray, str]:
    """Return the standard deviation of z − φ(x) in each stratum (H,), smoothed, and what is to be said of φ.

    Parameters
    ----------
    sample : Sample
    labelled : bool (n,)
    z : float (m,)
        Outcomes of the labelled units.
    how : Calibrating
        The learner and what it learns from.

    Notes
    -----
    φ is cross-fitted and chosen as `estimate(…, calibration=learner)` does it, so residuals are of labels
    that φ has not seen. A stratum's own are mixed with what φ's mean m_h and variance V_h over the stratum
    lead one to expect, (m_h − low)(high − m_h) − V_h, scaled to the residuals of all strata.

    Examples
    --------
    >>> import stratal
    >>> x = np.linspace(0, 1, 200)
    >>> population = stratal.Population.from_arrays(proxy=x)
    >>> sample = stratal.plan(population, budget=60).draw(seed=7)
    >>> z = (np.abs(sample.proxies[:, 0] - 0.5) < 0.2) * 1.0
    >>> how = Calibrating(column=[0], method="ridge")
    >>> residual_deviations(sample, np.ones(60, dtype=bool), z, how)[1].split(":")[0]
    'deviations of residuals; ridge learned from proxy'
    """
    frame = Respondents.of(sample, labelled)
    found = calibrated_proxy(sample, labelled, frame, z, how)
    sizes, stratum = found.summary.sizes, frame.stratum
    squares = (z - found.values[:, 0]) ** 2
    expected = _awaited(found.summary.proxy_means[:, 0], found.summary.proxy_covariances[:, 0, 0], how.bounds)
    deviations = _smoothed(squares, stratum, sizes, expected)
    note = f"deviations of residuals; {found.note}"
    return (deviations if frame.codes is None else deviations[frame.codes]), note


def _awaited(means: FloatArray, variances: FloatArray, bounds: tuple[float, float] | None) -> FloatArray:
    """Return what predictions lead one to expect of the residuals' variance (H,), up to a factor."""
    if bounds is None or not np.all(np.isfinite(bounds)):
        return np.ones(len(means))
    low, high = bounds
    return np.asarray(np.maximum((means - low) * (high - means) - variances, 0.0))


def _smoothed(squares: FloatArray, stratum: IntArray, sizes: IntArray, expected: FloatArray) -> FloatArray:
    """Return standard deviations (H,) from squared residuals (m,), mixed with what is expected.

    Examples
    --------
    >>> _smoothed(np.full(4, 0.25), np.array([0, 0, 1, 1]), np.array([50, 50]), np.ones(2))
    array([0.5, 0.5])
    """
    counts = np.bincount(stratum, minlength=len(sizes))
    sums = np.bincount(stratum, squares, minlength=len(sizes))
    pooled = float(sizes @ (sums / np.maximum(counts, 1)) / sizes[counts > 0].sum())
    awaited = float(counts @ expected)
    factor = sums.sum() / awaited if awaited > 0 else 0.0
    prior = POOLED * pooled + (1 - POOLED) * factor * expected
    return np.asarray(np.sqrt((STRENGTH * prior + sums) / (STRENGTH + counts)))


LEAST_SHARE = 0.5
"""Of the proportional share of a stratum among those of its answer."""

_HALVINGS = 20


def with_floor(
    strata: Strata,
    estimands: Iterable[Estimand],
    n_h: IntArray,
    drawn: IntArray,
    again: Callable[[IntArray], IntArray],
) -> IntArray:
    """Return an allocation made again with the floor under it; as it is where no metric is planned.

    Parameters
    ----------
    strata : Strata
    estimands : iterable of Estimand
        The single ones that are planned for.
    n_h : int (H,)
        The allocation.
    drawn : int (H,)
        What it cannot be less than, such as units drawn already.
    again : callable
        From such minima (H,) to the allocation.

    Examples
    --------
    >>> import stratal
    >>> strata = stratal.stratify(stratal.Population.from_arrays(proxy=[0.5, 0.7]), "none")
    >>> with_floor(strata, [], np.array([2]), np.array([0]), lambda minima: minima)
    array([2])
    """
    cells = cells_of(strata.rule)
    if cells is None or not any(part.by_answer for part in estimands):
        return n_h
    return again(floored(strata.sizes, cells, n_h, drawn, strata.is_known))


def floored(sizes: IntArray, cells: IntArray, n_h: IntArray, drawn: IntArray, known: BoolArray) -> IntArray:
    """Return the minima (H,) that give each stratum half of its share among those of its cell.

    Less than half where units drawn already leave too few labels for all strata.

    Examples
    --------
    >>> sizes, cells, known = np.array([900, 100, 500]), np.array([0, 0, 1]), np.zeros(3, dtype=bool)
    >>> floored(sizes, cells, np.array([10, 40, 50]), np.array([2, 2, 2]), known)
    array([23,  3, 25])
    """
    n_cell, size = (np.bincount(cells, values * ~known) for values in (n_h, sizes))
    share = LEAST_SHARE * (n_cell / np.maximum(size, 1))[cells] * np.where(known, 0, sizes)
    total, part = int(n_h.sum()), 1.0
    step = 0.5
    for _ in range(_HALVINGS):
        minima = np.minimum(np.maximum(np.ceil(part * share - 1e-9).astype(np.int64), drawn), sizes)
        fits = int(minima.sum()) <= total
        if fits and part == 1.0:
            return minima
        part, step = (part + step if fits else part - step), step / 2.0
    return minima if fits else drawn


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
