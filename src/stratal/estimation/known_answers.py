"""Metrics of a class where every stratum is answered with this class, or with none but others.

Hits then lie in the strata so answered and misses in the others, two independent samples, and the share
answered so is known. A metric is a function of these two shares. Each has the interval that a mean over its
strata has; the metric's runs over all pairs no further from the estimate, in the two together, than these
ends are alone, as in "MOVER" (Zou & Donner 2008). Where only the hits matter, as for precision, it is the
hits' own interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate_mean
from stratal.estimation.metric_functions import ClassRatio
from stratal.estimation.quantity import Reach
from stratal.estimation.respondents import Respondents
from stratal.population.rules.possible import possible_levels
from stratal.sampling.sample import Sample
from stratal.weighting import StratifiedWeighting, Weighting

_ANGLES = np.linspace(0.0, np.pi / 2.0, 129)


def possible_answers(
    sample: Sample, frame: Respondents, column: str | None, levels: list[str], predicted: IntArray
) -> BoolArray | None:
    """Return which answers each stratum of the labelled units can have, by its rule (H, K + 1).

    None where no rule says anything of the answers, or what it says is not so of those `predicted` (m,).
    The last column stands for all but the K levels.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(ids=range(4), groups={"answer": ["a", "a", "b", "b"]})
    >>> sample = stratal.plan(population, budget=4, by="answer").draw(seed=7)
    >>> frame = Respondents.of(sample, np.ones(4, dtype=bool))
    >>> possible_answers(sample, frame, "answer", ["a", "b"], sample.stratum).tolist()
    [[True, False, False], [False, True, False]]
    """
    strata = getattr(sample.design, "strata", None)
    if strata is None or column is None or not frame.weighting.random_within_strata:
        return None
    found = possible_levels(strata.rule, column, tuple(levels))
    if np.all(found):
        return None
    if frame.kept is not None:
        found = found[frame.kept]
    if frame.codes is not None:
        merged = np.zeros((int(frame.codes.max()) + 1, found.shape[1]), dtype=bool)
        np.logical_or.at(merged, frame.codes, found)
        found = merged
    fits = len(found) == len(frame.weighting.sizes) and bool(np.all(found[frame.stratum, predicted]))
    return found if fits else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HitsAndMisses(Reach):
    """A metric as a function of two independent shares of the population.

    Parameters
    ----------
    function : callable
        Returns the metric (…,) of the shares of hits and of misses (…,).
    shares : (float, float)
        Shares of the population that are answered with the class, and that are not.
    rates : (Estimate, Estimate)
        Share of the class in either.

    Examples
    --------
    >>> weighting = StratifiedWeighting(stratum=np.repeat([0, 1], 4), sizes=np.array([20, 80]))
    >>> recall = ClassRatio(np.array([1.0, 0, 0, 0]), np.array([0.0, 0, 1, 0]), 1)
    >>> hits_and_misses(
    ...     recall, np.array([1, 1, 1, 0, 0, 0, 0, 1]), np.array([True, False]), weighting
    ... ).shares
    (0.2, 0.8)
    """

    function: Callable[[FloatArray, FloatArray], FloatArray]
    shares: tuple[float, float]
    rates: tuple[Estimate, Estimate]

    def _reach(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the metric, `error` being left out on either side."""
        level = max(1.0 - 2.0 * error, 1e-12)
        centre = [share * rate.value for share, rate in zip(self.shares, self.rates, strict=True)]
        hits, misses = (
            [share * end - middle for end in (*rate.confidence_interval(level),)]
            for share, rate, middle in zip(self.shares, self.rates, centre, strict=True)
        )
        around = np.concatenate(
            [
                self.function(centre[0] + side * np.cos(_ANGLES), centre[1] + other * np.sin(_ANGLES))
                for side in hits
                for other in misses
            ]
        )
        value = float(self.function(np.array(centre[0]), np.array(centre[1])))
        return value - float(np.nanmin(around)), float(np.nanmax(around)) - value


def hits_and_misses(
    ratio: ClassRatio, is_class: AnyArray, answered: BoolArray, weighting: Weighting
) -> HitsAndMisses:
    """Return a metric of a class as a function of its hits and misses.

    Parameters
    ----------
    ratio : ClassRatio
    is_class : (n,)
        Whether the labelled units are of the class.
    answered : bool (H,)
        Which strata are answered with the class; the others hold none that is.
    weighting : Weighting
        Of strata whose labels stand for their own stratum.

    Examples
    --------
    >>> weighting = StratifiedWeighting(stratum=np.repeat([0, 1], 4), sizes=np.array([20, 80]))
    >>> precision = ClassRatio(np.array([1.0, 0, 0, 0]), np.array([0.0, 1, 0, 0]), 1)
    >>> is_class, answered = np.array([1, 1, 1, 0, 0, 0, 0, 1]), np.array([True, False])
    >>> low, high = hits_and_misses(precision, is_class, answered, weighting).ends(0.75, 0.95, "two-sided")
    >>> round(low, 2), round(high, 2)
    (0.25, 0.95)
    """
    sides = (answered, ~answered)
    used = weighting.counts > 0
    total = float(np.sum(weighting.sizes[used]))
    shares = [float(np.sum(weighting.sizes[side & used])) / total for side in sides]
    rates = [_rate(np.asarray(is_class, np.float64), side & used, weighting) for side in sides]

    def function(hits: FloatArray, misses: FloatArray) -> FloatArray:
        forms = np.array([hits, shares[0] + 0.0 * hits, hits + misses, 1.0 + 0.0 * hits])
        above, below = (np.tensordot(form, forms, axes=1) for form in (ratio.above, ratio.below))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(below > 0, np.clip(above / below, 0.0, 1.0), np.nan))

    return HitsAndMisses(function=function, shares=(shares[0], shares[1]), rates=(rates[0], rates[1]))


def _rate(is_class: FloatArray, side: BoolArray, weighting: Weighting) -> Estimate:
    """Return the mean over some of the strata, as a sample of these alone gives it."""
    inside = side[weighting.stratum]
    stratum: IntArray = (np.cumsum(side) - 1)[weighting.stratum[inside]]
    own = StratifiedWeighting(
        stratum=stratum,
        sizes=weighting.sizes[side],
        with_replacement=bool(getattr(weighting, "with_replacement", False)),
    )
    z = is_class[inside]
    return estimate_mean(z, np.zeros((len(z), 0)), own, None, stratum=stratum, outcome="binary")
