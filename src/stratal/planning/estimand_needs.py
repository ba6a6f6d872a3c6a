"""How many more labels an estimand needs, or each of several, until intervals are as narrow as wanted.

As for the mean (`narrowing`), the labels so far say how wide the intervals are and where the influences vary;
only the last round's number depends on them. To first order a half-width is a constant times the root of
Σ W_h² (1/n_h − 1/N_h) S_h², so that labels in each stratum make it narrower by a known share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.allocation import allocate_several
from stratal.arrays import FloatArray, IntArray, Record
from stratal.estimation.estimand import Estimand, Several
from stratal.intervals.proportion import student_quantile
from stratal.planning.estimand_rounds import influence_deviations
from stratal.planning.narrowing import Narrowing, half_width_of, taken_now
from stratal.planning.plan import checked_half_widths
from stratal.planning.planner import Planner
from stratal.planning.within_answers import with_floor
from stratal.population.population import Population
from stratal.sampling import Stratified
from stratal.sampling.sample import Sample
from stratal.strata import Strata
from stratal.strata.moments import expected_variance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InfluencesSoFar(Record):
    """What labels say of J estimands in H strata.

    Parameters
    ----------
    parts : tuple of Estimand (J,)
    half_widths : float (J,)
        Of the intervals now; infinite where there is none yet.
    deviations : float (J, H)
        How much each influence varies, on the scale on which expected half-widths are those of now.
    strata : Strata
    drawn, labelled : int (H,)
        Units drawn so far, and those that have a label.

    Examples
    --------
    >>> import stratal
    >>> population = Population.from_arrays(groups={"new": ["a", "b"] * 50, "old": ["a"] * 100})
    >>> sample = stratal.plan(population, budget=10, estimand="difference:new,old").draw(seed=1)
    >>> asked = Estimand.parse_text("difference:new,old")
    >>> seen = InfluencesSoFar.of(sample, ["a", "b"] * 5, asked, population, 0.95)
    >>> seen.names, seen.deviations[0] > 0
    (('difference:new,old',), array([ True, False]))
    """

    parts: tuple[Estimand, ...]
    half_widths: FloatArray
    deviations: FloatArray
    strata: Strata
    drawn: IntArray
    labelled: IntArray

    @classmethod
    def of(
        cls, sample: Sample, labels: Any, estimand: Estimand, population: Population, confidence_level: float
    ) -> InfluencesSoFar:
        """Return what the labels say of an estimand, or of each of several."""
        planner = Planner(population=population, estimand=estimand)
        sample = replace(sample, population=population)
        strata = sample.design.strata if isinstance(sample.design, Stratified) else planner.whole
        planned = planner.moments(strata).deviations
        pairs = list(_parts_with_labels(estimand, labels, population))
        units = pairs[0][0].labelled_influence(sample, pairs[0][1]).labelled
        labelled = np.bincount(sample.stratum[units], minlength=strata.n_strata)
        found = [
            influence_deviations(part, sample, own, strata, population, planned=planned[j])
            for j, (part, own) in enumerate(pairs)
        ]
        learned = np.where(planner.needless(strata), 0.0, np.array(found))
        now = _half_widths(estimand, sample, labels, len(pairs), confidence_level)
        error, expected = errors_of(strata, labelled, learned), errors_of(strata, labelled, planned)
        normal = -float(student_quantile((1.0 - confidence_level) / 2.0, np.inf))
        reached = np.where(np.isfinite(now) & (now > 0), now, normal * expected)
        scale = np.divide(reached, error, out=np.ones_like(error), where=error > 0)
        return cls(
            parts=tuple(part for part, _ in pairs),
            half_widths=now,
            deviations=learned * scale[:, None],
            strata=strata,
            drawn=sample.n_h,
            labelled=labelled,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The text forms of the estimands (J,)."""
        return tuple(part.text for part in self.parts)

    def enough(self, wanted: FloatArray) -> IntArray:
        """Return n_h (H,) of units drawn with which every half-width is expected to be as wanted (J,)."""
        answered = int(self.labelled.sum()) / max(int(self.drawn.sum()), 1)

        def allocated(least: IntArray) -> IntArray:
            return allocate_several(
                self.strata.sizes,
                self.deviations,
                standard_errors=wanted,
                minimum=least,
                known=self.strata.is_known,
                names=self.names,
            ).n_h

        n_h = with_floor(self.strata, self.parts, allocated(self.labelled), self.labelled, allocated)
        more = np.ceil((n_h - self.labelled) / answered - 1e-9).astype(np.int64)
        return np.asarray(np.minimum(self.drawn + np.maximum(more, 0), self.most))

    def shared(self, total: int, wanted: FloatArray) -> IntArray:
        """Return n_h (H,) of so many units in all, whose largest half-width over the wanted is smallest."""

        def allocated(least: IntArray) -> IntArray:
            return allocate_several(
                self.strata.sizes,
                self.deviations,
                total,
                standard_errors=wanted,
                minimum=least,
                known=self.strata.is_known & (self.drawn == 0),
                names=self.names,
            ).n_h

        return with_floor(self.strata, self.parts, allocated(self.drawn), self.drawn, allocated)

    @property
    def most(self) -> IntArray:
        """The units (H,) that may be drawn: no more where nothing varies by construction."""
        return np.where(self.strata.is_known, self.drawn, self.strata.sizes)


def _parts_with_labels(
    estimand: Estimand, labels: Any, population: Population
) -> Iterator[tuple[Estimand, Any]]:
    """Yield the single estimands that are asked for, each with its labels."""
    if not isinstance(estimand, Several):
        yield estimand, labels
        return
    parts = estimand.parts_in(population)
    for part, own in zip(parts, estimand.labels_of_parts(labels, len(parts)), strict=True):
        yield from _parts_with_labels(part, own, population)


def errors_of(strata: Strata, labelled: Any, deviations: FloatArray) -> FloatArray:
    """Return the standard errors (J,) of means that vary so (J, H), with so many labels (H,).

    Examples
    --------
    >>> import stratal
    >>> strata = stratal.stratify(Population.from_arrays(proxy=[0.5] * 101), "none")
    >>> errors_of(strata, np.array([1]), np.ones((1, 1))).round(3)
    array([1.])
    """
    variances = np.where(strata.is_known, 0.0, deviations) ** 2
    return np.asarray(np.sqrt(expected_variance(strata.sizes, np.maximum(labelled, 1), variances)))


def _half_widths(
    estimand: Estimand, sample: Sample, labels: Any, count: int, confidence_level: float
) -> FloatArray:
    """Return half the widths of the intervals that are reported now (J,); infinite where there is none."""
    if not isinstance(estimand, Several):
        found = half_width_of(estimand.estimate(sample, labels), confidence_level)
        return np.array([found if math.isfinite(found) else np.inf])
    table = estimand.estimate(sample, labels, confidence_level=confidence_level)
    widths = [_half_width(row["confidence_interval"]) for row in table.rows]
    return np.array((widths + [np.inf] * count)[:count])


def _half_width(ends: Any) -> float:
    return np.inf if ends is None or None in ends else float(ends[1] - ends[0]) / 2.0


def estimand_needs(
    sample: Sample,
    labels: Any,
    estimand: Estimand,
    population: Population,
    half_width: Any,
    confidence_level: float,
) -> tuple[Narrowing, IntArray]:
    """Return how many units to draw now, until half-widths are as wanted, and n_h (H,) with them.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    estimand : Estimand
    population : Population
    half_width : float or (J,)
        One for all, or one for each of several.
    confidence_level : float

    Examples
    --------
    >>> import stratal
    >>> population = Population.from_arrays(groups={"new": ["a", "b"] * 50, "old": ["a"] * 100})
    >>> sample = stratal.plan(population, budget=20, estimand="difference:new,old").draw(seed=1)
    >>> asked = Estimand.parse_text("difference:new,old")
    >>> needed, n_h = estimand_needs(sample, ["a", "b"] * 10, asked, population, 0.1, 0.95)
    >>> bool(n_h.sum() == 20 + needed.additional)
    True
    """
    seen = InfluencesSoFar.of(sample, labels, estimand, population, confidence_level)
    wanted = checked_half_widths(half_width, len(seen.names))
    furthest = int(np.argmax(seen.half_widths / wanted))
    drawn, n_h = sample.size, seen.drawn
    total = drawn
    if np.any(seen.half_widths > wanted) and drawn < int(seen.most.sum()):
        n_h = seen.enough(wanted)
        total = int(n_h.sum())
        if total == drawn:  # the intervals are wider than the influences say: a tenth more at least
            total = min(drawn + max(drawn // 10, 1), int(seen.most.sum()))
        extra = int(taken_now(drawn, total))
        if drawn + extra != int(n_h.sum()):
            n_h = seen.shared(drawn + extra, wanted)
    found = Narrowing(
        wanted=float(wanted[furthest]),
        half_width=float(seen.half_widths[furthest]),
        additional=int(n_h.sum()) - drawn,
        expected_total=total,
        estimand=seen.names[furthest],
    )
    return found, n_h
