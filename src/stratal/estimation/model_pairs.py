"""Difference, ratio and win rate of two models' outcomes on the same units, honest where few labels differ.

Two models that mostly tie leave little to see: a few wins, a loss or none. The win rate is ½ + ½ (share of
wins − share of losses), and its interval is made of those of the two shares ("MOVER", Zou & Donner 2008;
Newcombe 1998 for paired proportions), so that a loss which no label showed still counts. The difference of
right and wrong is the share of wins less that of losses, with the same interval; any other has Student's t
(`paired_differences`). The ratio's interval is Student's t on the logarithm, its variance with one unseen
unit for either model, as Bonett & Price (2012) add to a difference; no end lies beyond the ratio of the
means' own limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from stratal.arrays import FloatArray, Record
from stratal.estimation.evaluation import estimate_mean
from stratal.estimation.linearisation import Linearised, of_variable, ratio_of_means
from stratal.estimation.paired import Differences, paired_differences, unseen_pair
from stratal.estimation.quantity import Parts, Quantity, Reach, Term, nothing_varies
from stratal.estimation.respondents import Respondents
from stratal.intervals.proportion import student_quantile
from stratal.intervals.simultaneous import Family
from stratal.sampling.sample import Sample

_MEANINGLESS = 1e6
"""An end that many times the ratio tells nothing but that there is none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatioReach(Reach):
    """How far the interval of a ratio of two positive means reaches: Student's t on the logarithm.

    With few labels the exponential of t · SE grows beyond all meaning (to 6e33). An end is therefore no
    farther than the ratio of the two means' own limits, each with half the error (Bonferroni), which is
    finite where the outcome has bounds; else it is infinite from a million times the ratio on.

    Parameters
    ----------
    value : float
    error : float
        Standard error of the ratio.
    degrees_of_freedom : float
    means : (Term, Term), optional
        Of numerator and denominator, where the outcome has bounds.

    Examples
    --------
    >>> mean = Quantity(value=0.2, standard_error=0.1, degrees_of_freedom=4, n=5, trials=5)
    >>> reach = RatioReach(value=1.0, error=30.0, degrees_of_freedom=4, means=(mean, mean))
    >>> [round(end, 3) for end in reach.ends(1.0, 0.95, "two-sided")]
    [0.003, 304.231]
    """

    method: ClassVar[str] = "log-t"
    value: float
    error: float
    degrees_of_freedom: float
    means: tuple[Term, Term] | None

    def _reach(self, error: float, alternative: str) -> tuple[float, float]:
        if self.error == 0:
            if np.isfinite(self.degrees_of_freedom):
                raise nothing_varies()
            return 0.0, 0.0
        quantile = -float(student_quantile(error, self.degrees_of_freedom))
        with np.errstate(over="ignore"):
            factor = float(np.exp(quantile * self.error / self.value))
        factor = factor if factor < _MEANINGLESS else np.inf
        low, high = self.value / factor, self.value * factor
        if self.means is not None:
            first, second = self.means
            low = max(low, _limit(first, "greater", error) / _limit(second, "less", error))
            least = _limit(second, "greater", error)
            high = min(high, _limit(first, "less", error) / least) if least > 0 else high
        return self.value - min(low, self.value), max(high, self.value) - self.value


def _limit(mean: Term, alternative: str, error: float) -> float:
    """Return one limit of a mean that is not negative, with half the error."""
    low, high = mean.confidence_interval(1.0 - error / 2.0, alternative=alternative)
    return max(low, 0.0) if alternative == "greater" else high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelPair(Record):
    """Two models' outcomes on the same labelled units.

    Parameters
    ----------
    first, second : float (n,)
    frame : Respondents
        The units that have both; in the units outside it the models do not differ.
    design : str
        Kind of the design.
    target : {"population", "superpopulation"}
    bounds : (float, float), optional
        What the outcomes cannot leave; without them nothing is known of a unit that was not seen.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=8).draw(stratal.Population.from_arrays(proxy=[0.5] * 99), seed=7)
    >>> new, old = [1, 1, 1, 1, 0, 1, 1, 1], [1, 1, 1, 0, 0, 1, 1, 1]
    >>> frame = Respondents.of(sample, np.ones(8, dtype=bool))
    >>> pair = ModelPair(first=new, second=old, frame=frame, bounds=(0, 1))
    >>> pair.difference().value, [round(end, 2) for end in pair.difference().confidence_interval()]
    (0.125, [-0.25, 0.51])
    """

    first: FloatArray
    second: FloatArray
    frame: Respondents
    design: str = "simple-random"
    target: str = "population"
    bounds: tuple[float, float] | None = None

    @property
    def right_or_wrong(self) -> bool:
        """Whether every outcome is 0 or 1: the difference is the share of wins less that of losses."""
        return never_between(np.column_stack([self.first, self.second]), self.bounds)

    def difference(self) -> Quantity:
        """Return the difference of the mean outcomes over the whole population."""
        if self.right_or_wrong:
            return self._net_wins(0.0, 1.0)
        bounds, frame = self.bounds, self.frame
        most = None if bounds is None else frame.share * float(bounds[1] - bounds[0])
        contrast = frame.share * (self.first - self.second)
        found = paired_differences(contrast[:, None], frame.weighting, bound=most, target=self.target)
        return replace(quantity_of(found, len(self.first)), notes=frame.notes)

    def ratio(self, made: Linearised | None = None) -> Quantity:
        """Return the ratio of the mean outcomes; undefined where a mean is not positive.

        It is the ratio of the labels' means, or what was made of it with proxies.

        Examples
        --------
        >>> import stratal
        >>> units = stratal.Population.from_arrays(proxy=[0.5] * 99)
        >>> frame = Respondents.of(stratal.SimpleRandom(budget=5).draw(units, seed=7), np.ones(5, dtype=bool))
        >>> pair = ModelPair(first=[1, 1, 1, 1, 0], second=[1, 1, 1, 0, 0], frame=frame, bounds=(0, 1))
        >>> [round(end, 2) for end in pair.ratio().confidence_interval()]
        [0.35, 5.06]
        """
        weighting, first, second = self.frame.weighting, self.first, self.second
        result = ratio_of_means(first, second, weighting, self.target) if made is None else made
        if not (np.isfinite(result.value) and result.value > 0):
            return Quantity.undefined(len(first), None, "the mean outcome of a model is 0")
        hidden = 0.0
        if self.bounds is not None:
            low, high = self.bounds
            ends = np.array([high - result.value * low, low - result.value * high])
            hidden = unseen_pair(first - second, weighting, ends / float(weighting.mean(second[:, None])[0]))
        freedom = np.inf if weighting.census else max(result.degrees_of_freedom, 1.0)
        error = float(np.sqrt(max(result.variance, 0.0) + hidden))
        return Quantity(
            value=result.value,
            standard_error=result.standard_error,
            interval_error=error,
            degrees_of_freedom=freedom,
            n=len(first),
            bounds=(0.0, np.inf),
            parts=RatioReach(
                value=result.value,
                error=error,
                degrees_of_freedom=freedom,
                means=None if self.bounds is None else (self._mean(first), self._mean(second)),
            ),
            notes=self.frame.notes,
        )

    def _mean(self, z: FloatArray) -> Term:
        """Return the mean of one model's outcomes, which have bounds."""
        return estimate_mean(
            z,
            np.zeros((len(z), 0)),
            self.frame.weighting,
            None,
            stratum=self.frame.stratum,
            target=self.target,
            bounds=self.bounds,
            design=self.design,
        )

    def win_rate(self) -> Quantity:
        """Return the share of units on which the first outcome is larger, ties counting one half.

        Examples
        --------
        >>> import stratal
        >>> units = stratal.Population.from_arrays(proxy=[0.5] * 99)
        >>> frame = Respondents.of(stratal.SimpleRandom(budget=5).draw(units, seed=7), np.ones(5, dtype=bool))
        >>> pair = ModelPair(first=[1, 1, 1, 1, 0], second=[1, 1, 1, 0, 0], frame=frame)
        >>> pair.win_rate().value
        0.6
        """
        return self._net_wins(0.5, 0.5)

    def _net_wins(self, tie: float, scale: float) -> Quantity:
        """Return tie + scale × (share of wins − share of losses)."""
        frame, sides = self.frame, (self.first > self.second, self.first < self.second)
        wins, losses = (
            estimate_mean(
                side.astype(np.float64),
                np.zeros((len(side), 0)),
                frame.weighting,
                None,
                stratum=frame.stratum,
                target=self.target,
                outcome="binary",
                design=self.design,
            )
            for side in sides
        )
        reach = scale * frame.share
        value = tie + reach * (wins.value - losses.value)
        whole = of_variable(value, reach * (sides[0] - 1.0 * sides[1]), frame.weighting, self.target)
        covariance = frame.weighting.covariance(np.column_stack(sides).astype(np.float64))
        own = np.diag(covariance)
        together = covariance[0, 1] / np.sqrt(own[0] * own[1]) if np.all(own > 0) else 0.0
        return Quantity(
            value=value,
            standard_error=whole.standard_error,
            degrees_of_freedom=max(whole.degrees_of_freedom, 1.0),
            n=len(self.first),
            bounds=(tie - reach, tie + reach),
            parts=Parts(
                terms=(wins, losses),
                coefficients=np.array([reach, -reach]),
                correlation=np.array([[1.0, together], [together, 1.0]]),
            ),
            notes=frame.notes,
        )


def quantity_of(found: Differences, n: int) -> Quantity:
    """Return one difference, estimated from n labelled units, as a quantity.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([40]))
    >>> found = paired_differences(np.array([[1.0], [0.0], [0.5], [1.0]]), weighting, bound=1.0)
    >>> [round(end, 2) for end in quantity_of(found, 4).confidence_interval()]
    [-0.42, 1.0]
    """
    bound = found.bound
    return Quantity(
        value=float(found.values[0]),
        standard_error=float(found.standard_errors[0]),
        interval_error=float(found.interval_errors[0]),
        degrees_of_freedom=np.inf if found.census else float(found.degrees_of_freedom[0]),
        n=n,
        bounds=None if bound is None else (-bound, bound),
    )


def differences_in_family(
    pairs: Sequence[ModelPair], family: Family, confidence_level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return both ends of each difference, and its p-value of no difference, (m,) each, for right and wrong.

    Examples
    --------
    >>> import stratal
    >>> units = stratal.Population.from_arrays(proxy=[0.5] * 99)
    >>> frame = Respondents.of(stratal.SimpleRandom(budget=5).draw(units, seed=7), np.ones(5, dtype=bool))
    >>> pair = ModelPair(first=[1, 1, 1, 1, 0], second=[1, 1, 1, 0, 0], frame=frame, bounds=(0, 1))
    >>> low, high, p = differences_in_family([pair], Family(side="two-sided", freedom=[4.0]), 0.95)
    >>> low.round(2), p.round(2)
    (array([-0.34]), array([0.76]))
    """
    level, found = family.level(confidence_level), [pair.difference() for pair in pairs]
    ends = np.array([[*one.confidence_interval(level, family.side)] for one in found])
    p_values = np.array([one.p_value(0.0, family.side) for one in found])
    return ends[:, 0], ends[:, 1], family.adjusted(p_values)


def never_between(z: FloatArray, bounds: tuple[float, float] | None) -> bool:
    """Return whether outcomes are right or wrong: in bounds of 0 and 1, and never between.

    Examples
    --------
    >>> never_between(np.array([0.0, 1.0]), (0, 1)), never_between(np.array([0.5]), (0, 1))
    (True, False)
    """
    return bounds is not None and tuple(bounds) == (0, 1) and bool(np.all((z == 0) | (z == 1)))


def bounds_of_outcomes(sample: Sample, z: FloatArray) -> tuple[float, float] | None:
    """Return what the sample knows of the outcomes (n, k), if no label denies it; else 0 and 1 if all fit.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=2).draw(stratal.Population.from_arrays(ids=range(9)), seed=7)
    >>> bounds_of_outcomes(sample, np.array([[0.0, 1.0], [0.5, 1.0]]))
    (0.0, 1.0)
    """
    known = sample.bounds
    if known is not None and np.all((z >= known[0]) & (z <= known[1])):
        return known
    halves = bool(np.all(np.isin(z, (0.0, 0.5, 1.0))))
    return (0.0, 1.0) if halves and sample.outcome != "unbounded" else None
