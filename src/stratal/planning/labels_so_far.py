"""`LabelsSoFar`: what the labels of a sample say of its strata and of the rounds to come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.allocation import neyman
from stratal.allocation.rates import smoothed_standard_deviations
from stratal.arrays import FloatArray, IntArray, Record
from stratal.estimation.estimate import Estimate
from stratal.estimation.respondents import outcomes
from stratal.labels.labels import join
from stratal.planning.counts_so_far import CountsSoFar
from stratal.planning.deviations import estimated_deviations
from stratal.planning.widths import expected_half_width
from stratal.sampling import Stratified
from stratal.sampling.sample import Sample


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelsSoFar(Record):
    """What the labels of a sample say of its strata, and of the intervals that more of them would give.

    Parameters
    ----------
    sizes, drawn : int (H,)
        N_h, and units drawn; one stratum for a simple random sample.
    deviations, means : float (H,)
        S_h and the mean of each stratum, smoothed.
    z : float (m,)
    stratum : int (m,)
        Of the labelled units.
    bounds : (float, float)
        Of the outcome; infinite where it has none.
    looked : bool
        Whether labels decided how many units were drawn so far.
    counts : CountsSoFar, optional
        The same for labels of 0 and 1 in several strata.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 400)
    >>> sample = stratal.SimpleRandom(budget=100).draw(population, seed=7)
    >>> labels = [0.0, 1.0] * 50
    >>> seen = LabelsSoFar.of(sample, labels, stratal.estimate(sample, labels))
    >>> round(seen.width(200, 0.95), 2)
    0.05
    """

    sizes: IntArray
    drawn: IntArray
    deviations: FloatArray
    means: FloatArray
    z: FloatArray
    stratum: IntArray
    bounds: tuple[float, float]
    looked: bool = False
    counts: CountsSoFar | None = None

    @classmethod
    def of(cls, sample: Sample, labels: Any, found: Estimate, predicted: bool | str = False) -> LabelsSoFar:
        """Return what the labels say; `found` is the estimate that they give."""
        joined = join(sample, labels)
        z = outcomes(sample, joined, predicted)
        stratum = sample.stratum[joined.labelled]
        bounds = (-math.inf, math.inf) if found.bounds is None else found.bounds
        counts, looked = None, False
        if isinstance(sample.design, Stratified):
            strata = sample.design.strata
            deviations = estimated_deviations(strata, z, stratum, bounds=bounds)
            sizes, looked = strata.sizes, found.evidence.weighting.sizes_follow_labels
            if found.outcome == "binary" and strata.n_strata > 1:
                counted = [np.bincount(stratum, part, minlength=len(sizes)) for part in (None, z)]
                answered, ones = (np.rint(part).astype(np.int64) for part in counted)
                counts = CountsSoFar.of(strata, sample.n_h, answered, ones, looked=looked)
        else:
            sizes = np.array([sample.population_size])
            squares = None if found.outcome == "binary" else [float(z @ z)]
            deviations = smoothed_standard_deviations(
                sizes, [len(z)], [float(z.sum())], squares, bounds=bounds
            )
        return cls(
            sizes=sizes,
            drawn=sample.n_h,
            deviations=deviations,
            means=_means(z, stratum, deviations, bounds),
            z=z,
            stratum=stratum,
            bounds=bounds,
            looked=looked,
            counts=counts,
        )

    @property
    def answered(self) -> IntArray:
        """Labels of each stratum (H,)."""
        return np.bincount(self.stratum, minlength=len(self.sizes)).astype(np.int64)

    def allocation(self, total: int) -> IntArray:
        """Return n_h (H,) with so many units drawn in all: Neyman's, none of them taken back."""
        extra = total - int(self.drawn.sum())
        if extra == 0:
            return self.drawn
        return next_allocation(self.sizes, self.drawn, self.deviations, extra)

    def labels_of(self, n_h: IntArray) -> IntArray:
        """Return the labels (H,) that n_h drawn units bring if as many as so far are answered."""
        rate = len(self.z) / int(self.drawn.sum())
        return np.asarray(self.answered + np.round(rate * (n_h - self.drawn)).astype(np.int64))

    def width(self, total: int, confidence_level: float) -> float:
        """Return half the expected width of the interval with so many units drawn in all."""
        more = total > int(self.drawn.sum())
        if self.counts is not None:
            known = self.counts
            found = (
                known.expected_half_width(np.array(total), confidence_level)
                if more
                else known.half_width(confidence_level)
            )
            return float(found)
        return expected_half_width(
            self.sizes,
            self.labels_of(self.allocation(total)),
            self.means,
            self.deviations**2,
            bounds=self.bounds,
            confidence_level=confidence_level,
            seen=(self.z, self.stratum, more or self.looked),
        )


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
