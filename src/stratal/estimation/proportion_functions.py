"""Intervals of functions of a few shares of the population that have their own intervals.

The limits are the smallest and the largest value of the function on an ellipsoid around the estimated shares
("MOVER", Zou & Donner 2008): x_j + Δ_j d_j with d'R⁻¹d = 1. R is the correlation of the estimates, and Δ_j
the distance from a share to its limit on the side of d_j. The limits of the shares account for skewness,
small counts, the design, rounds and the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Number, Record
from stratal.designs import StratifiedWeighting, Weighting
from stratal.designs.group_clusters import GroupClusters
from stratal.designs.sample import Sample
from stratal.estimation.estimate import Estimate, correlation_from, linearised_estimate, undefined_estimate
from stratal.estimation.linearised import Linearised, ratio_of_means
from stratal.estimation.outcome_means import plain_mean
from stratal.estimation.respondents import Respondents
from stratal.intervals.evidence import Evidence
from stratal.intervals.interval import Interval, tail_shares
from stratal.intervals.interval_types import (
    BinomialInterval,
    OffsetInterval,
    StudentInterval,
    SumInterval,
    Term,
    UndefinedInterval,
)
from stratal.intervals.methods import interval_of
from stratal.intervals.smoothed_moments import LABELS_AT_THE_BOUNDS, remaining_share
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson
from stratal.population.rules import possible_levels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Smoothing(Record):
    """Labels of strata, each mixed with one label of a pooled distribution.

    Parameters
    ----------
    weighting : Weighting
    pooled : float (n + J, 1 or H)
        The pooled distribution over the n labelled units and J pseudo-labels: one for all strata, or one for
        each stratum with the values that are possible there.
    weights : float (n + J,)
        Smoothed weights; their sum is that of the design's weights.
    """

    weighting: Weighting
    pooled: FloatArray
    weights: FloatArray

    def variance(self, variable: FloatArray) -> float:
        """Return the smoothed variance of the weighted mean of a variable (n + J,)."""
        weighting = self.weighting
        variances = self._stratum_mean(variable**2) - self._stratum_mean(variable) ** 2
        return float(weighting.variance_factors @ np.maximum(variances, 0.0)) * weighting.total**2

    def _stratum_mean(self, variable: FloatArray) -> FloatArray:
        """Return the mean (H,) of a variable (n + J,) in each stratum, with one label of the pooled mean."""
        counts = _counts_at_random(self.weighting)
        labelled_variable = variable[: len(self.weighting.weights)]
        sums = np.bincount(self.weighting.stratum, labelled_variable, minlength=len(counts)) * (counts > 0)
        return np.asarray((sums + variable @ self.pooled) / (counts + 1.0))


def smoothed(
    weighting: Weighting,
    pseudo_shares: FloatArray,
    counted: FloatArray | None = None,
    possible: BoolArray | None = None,
) -> Smoothing:
    """Return the labels smoothed with pseudo-labels of these shares (J,) of the population.

    `counted` (n,) is 1 for the units that the statistic counts, such as the positives for a recall. Half of
    the pooled label is then one of these, because a large stratum without a counted label may contain counted
    units. `possible` (n + J, H) is true for the units and pseudo-labels whose values are possible in a
    stratum. Default: all.
    """
    weights = weighting.weights
    total = weighting.total
    shares = np.concatenate([weights, pseudo_shares]) / (total + float(pseudo_shares.sum()))
    has_several_strata = np.sum(weighting.counts > 0) > 1
    is_counted = np.zeros(len(shares))
    if counted is not None and has_several_strata:
        is_counted[: len(weights)] = counted
        is_counted[len(weights) :] = 1.0
    if possible is None:
        possible = np.ones((len(shares), 1), dtype=bool)
    possible_share = shares @ possible
    counted_share = (shares * is_counted) @ possible
    # A stratum without possible counted values gets no share of them; the divisors of 0 are then unused.
    counted_half = np.where(counted_share > 0, 0.5, 0.0)
    factor = (1.0 - counted_half) / np.where(possible_share > 0, possible_share, 1.0)
    counted_factor = counted_half / np.where(counted_share > 0, counted_share, 1.0)
    pooled = shares[:, None] * possible * (factor + is_counted[:, None] * counted_factor)
    label_counts = _counts_at_random(weighting)
    weight_per_label = weighting.shares * total / (label_counts + 1.0)
    if pooled.shape[1] > 1:
        smoothed_weights = pooled @ weight_per_label
    else:
        smoothed_weights = pooled @ weight_per_label.sum(keepdims=True)
    smoothed_weights[: len(weights)] += (weight_per_label * (label_counts > 0))[weighting.stratum]
    return Smoothing(weighting=weighting, pooled=pooled, weights=smoothed_weights)


def _counts_at_random(weighting: Weighting) -> IntArray:
    """Return the numbers of labels (H,) that represent their stratum; 0 if not drawn at random within it."""
    return np.asarray(weighting.counts * weighting.random_within_strata)


class TwoShareFunction(Protocol):
    """A metric of one class as a function of three shares of the units."""

    def __call__(self, hits: FloatArray, misses: FloatArray, answered: Number) -> FloatArray:
        """Return the metric at shares (…,) of hits, of misses, and of answers with the class."""

    def slopes(self, hits: Number, misses: Number, answered: Number) -> tuple[FloatArray, FloatArray]:
        """Return its slopes (…,) with respect to the hits and to the misses."""


@dataclass(frozen=True, slots=True)
class FirstShare:
    """The first share."""

    def __call__(self, shares: FloatArray) -> FloatArray:
        """Return the first of shares (1, …)."""
        return np.asarray(shares[0])[()]


@dataclass(frozen=True, slots=True)
class FirstOfTwo:
    """The first of two shares over their sum."""

    def __call__(self, shares: FloatArray) -> FloatArray:
        """Return the first of shares (2, …) divided by their sum; NaN if both are 0."""
        total = shares[0] + shares[1]
        return np.asarray(np.where(total > 0, shares[0] / np.where(total > 0, total, 1.0), np.nan))


def rates_of_sides(rates: FloatArray, needs: tuple[bool, bool]) -> list[FloatArray]:
    """Return the rates (…,) of hits and of misses from rates (d, …); 0 where a metric needs none."""
    remaining_rates = iter(rates)
    return [next(remaining_rates) if is_needed else np.zeros(rates.shape[1:]) for is_needed in needs]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesOfClass:
    """A metric of a class as a function of two rates of the class: among units answered with it, and others.

    Parameters
    ----------
    metric : TwoShareFunction
    needs : (bool, bool)
        Whether the metric depends on hits and on misses; only these rates are arguments.
    answered : float
        The share of units that are answered with the class, unless it is a third argument.
    """

    metric: TwoShareFunction
    needs: tuple[bool, bool]
    answered: float

    def __call__(self, rates: FloatArray) -> FloatArray:
        """Return the metric at rates (d, …)."""
        hit, missed = rates_of_sides(rates, self.needs)
        if len(rates) > sum(self.needs):
            answered = rates[-1]
        else:
            answered = np.full(rates.shape[1:], self.answered)
        return self.metric(hit * answered, missed * (1.0 - answered), answered)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsOfClass:
    """A metric of two classes as a function of the three smaller cells of the confusion matrix.

    Parameters
    ----------
    metric : TwoShareFunction
    largest : int
        The number of the largest cell among hits, misses, false alarms and correct rejections.
    """

    metric: TwoShareFunction
    largest: int

    def __call__(self, shares: FloatArray) -> FloatArray:
        """Return the metric at shares (3, …)."""
        largest_share = np.maximum(1.0 - shares.sum(axis=0), 0.0)
        # Limits of the shares may add up to more than 1.
        cells = np.insert(shares, self.largest, largest_share, axis=0) / (shares.sum(axis=0) + largest_share)
        return self.metric(cells[0], cells[1], cells[0] + cells[2])


# A function of shares (d, …) with values (…), NaN where it is undefined. Each kind is a record, so that an
# interval can be stored and compared.
ShareFunction = FirstShare | FirstOfTwo | RatesOfClass | CellsOfClass

# Number of directions for two shares: more directions change a limit by less than 1e-4 of its distance.
_N_DIRECTIONS_OF_TWO = 256

# Distance of a limit from its share that is rounding: the share is known, as every unit is labelled.
_ROUNDING = 1e-12

# Number of directions for three shares: neighbours are within .06 radians, which changes a limit by less
# than .2 %.
_N_DIRECTIONS_OF_THREE = 1500


def directions(correlation: FloatArray) -> FloatArray:
    """Return directions (d, m) over the ellipsoid of d = 1, 2 or 3 shares with a correlation (d, d)."""
    d = len(correlation)
    if d == 1:
        return np.array([[-1.0, 1.0]])
    if d == 2:
        angles = np.arange(_N_DIRECTIONS_OF_TWO) * (2.0 * np.pi / _N_DIRECTIONS_OF_TWO)
        sphere = np.stack([np.cos(angles), np.sin(angles)])
    else:
        # Fibonacci's lattice covers the sphere evenly. The axes contain the limits of single shares.
        rank = np.arange(_N_DIRECTIONS_OF_THREE) + 0.5
        height = 1.0 - 2.0 * rank / _N_DIRECTIONS_OF_THREE
        angles = rank * np.pi * (3.0 - np.sqrt(5.0))
        ring = np.sqrt(1.0 - height**2)
        lattice = np.stack([ring * np.cos(angles), ring * np.sin(angles), height])
        sphere = np.concatenate([lattice, np.eye(3), -np.eye(3)], axis=1)
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T @ sphere)


def ends_over(
    function: Callable[[FloatArray], FloatArray],
    centre: FloatArray,
    low: FloatArray,
    high: FloatArray,
    around: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value (…) on the ellipsoid; replicate axes may follow the shares.

    Parameters
    ----------
    function : callable
    centre, low, high : float (d, …)
        The shares and their limits.
    around : float (d, m)
        See `directions`.
    """
    step = around.reshape(*around.shape, *(1,) * (centre.ndim - 1))
    reach = np.where(step > 0, (high - centre)[:, None], (centre - low)[:, None])
    values = function(np.clip(centre[:, None] + reach * step, 0.0, 1.0))
    is_finite = np.isfinite(values)
    smallest = np.min(np.where(is_finite, values, np.inf), axis=0)
    largest = np.max(np.where(is_finite, values, -np.inf), axis=0)
    # If the function is undefined on the whole ellipsoid, every value is possible.
    is_defined = is_finite.any(axis=0)
    return np.where(is_defined, smallest, -np.inf), np.where(is_defined, largest, np.inf)


def between_units(
    centre: FloatArray, low: FloatArray, high: FloatArray, units: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return limits (d, …) of shares of `units` (d, …), moved outwards by half a unit.

    A limit of a share of few units may equal the true share, which still covers it. A function of this limit
    and of other, inexact shares would just miss the true value.
    """
    half = 0.5 / units
    return (
        np.where(centre - low > _ROUNDING, np.maximum(low - half, 0.0), low),
        np.where(high - centre > _ROUNDING, np.minimum(high + half, 1.0), high),
    )


def ends_of_function(
    function: Callable[[FloatArray], FloatArray],
    centre: FloatArray,
    low: FloatArray,
    high: FloatArray,
    units: FloatArray,
    correlation: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the ends (…) of the interval of a function of shares with limits, all (d, …).

    `units` (d, …) are those of `between_units`, and `correlation` (d, d) is that of the shares.
    """
    if len(centre) > 1:
        low, high = between_units(centre, low, high, units)
    return ends_over(function, centre, low, high, directions(correlation))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShareFunctionInterval(OffsetInterval):
    """A function of estimated shares.

    Parameters
    ----------
    function : ShareFunction
    rates : tuple of Term (d,)
        The shares, at most three.
    correlation : float (d, d)
        Correlation of the estimates.
    units : float (d,)
        Number of units of which each is a share; infinite if the share is not a count. See `between_units`.
    """

    function: ShareFunction
    rates: tuple[Term, ...]
    correlation: FloatArray
    units: FloatArray

    method = "mover"

    @classmethod
    def of(
        cls,
        function: ShareFunction,
        rates: Sequence[Term],
        correlation: FloatArray | None = None,
        units: FloatArray | float = np.inf,
    ) -> ShareFunctionInterval:
        """Return the interval around the function of the estimated shares; by default uncorrelated."""
        return cls(
            value=float(function(np.array([rate.value for rate in rates]))),
            function=function,
            rates=tuple(rates),
            correlation=np.eye(len(rates)) if correlation is None else correlation,
            units=np.broadcast_to(units, len(rates)),
        )

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits below and above the value, with `error` on each side."""
        level = max(1.0 - 2.0 * error, 1e-12)  # at an error of one half, the value is the limit
        ends = [rate.confidence_interval(level) for rate in self.rates]
        centre = np.array([rate.value for rate in self.rates])
        low = np.array([end.low for end in ends])
        high = np.array([end.high for end in ends])
        # Distances are from the function of these shares, which may differ from the estimate if weights vary.
        value = float(self.function(centre))
        smallest, largest = ends_of_function(self.function, centre, low, high, self.units, self.correlation)
        return value - min(float(smallest), value), max(float(largest), value) - value


# Values of the share of misses, and of that of hits, between their limits.
_STEPS = 33


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedAnswersInterval(Interval):
    """A metric of two classes within the values that are possible if an answer is as frequent as counted.

    The hits of the answer are none to all of its units, and its misses lie within their own limits.

    Parameters
    ----------
    inner : Interval
    metric : TwoShareFunction
    misses : Term
        Share of units of the class that have the other answer.
    answered : float
        Share of the population's units with the answer.
    """

    inner: Interval
    metric: TwoShareFunction
    misses: Term
    answered: float

    @property
    def method(self) -> str:
        """The name of the method of the inner interval."""
        return self.inner.method

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        low, high = self.inner.ends(confidence_level, alternative)
        # Each limit of the misses has half of the error of a side. The inner interval keeps all of its own:
        # coverage is .976 to .996 in the hardest populations (decision 11).
        limits = self.misses.confidence_interval(1.0 - max(tail_shares(confidence_level, alternative)))
        misses = np.linspace(limits.low, min(limits.high, 1.0 - self.answered), _STEPS)
        hits = np.linspace(0.0, self.answered, _STEPS)
        possible = self.metric(hits[:, None], misses[None], self.answered)
        if not np.all(np.isfinite(possible)):
            return low, high
        value = float(self.value)
        return min(max(low, float(possible.min())), value), max(min(high, float(possible.max())), value)


def possible_answers(
    sample: Sample, respondents: Respondents, column: str | None, levels: list[str], predicted: IntArray
) -> BoolArray | None:
    """Return which answers are possible in each stratum of the labelled units by its rule (H, K + 1).

    None if no rule determines the answers, or if the answers `predicted` (m,) contradict it. The last column
    is for all answers that are not among the K levels.
    """
    strata = sample.design.strata
    if strata is None or column is None or not respondents.weighting.random_within_strata:
        return None
    possible = possible_levels(strata.rule, column, tuple(levels))
    return possible_in(respondents, possible, predicted)


def possible_in(respondents: Respondents, possible: BoolArray, predicted: IntArray) -> BoolArray | None:
    """Return which answers (H, K + 1) are possible in the strata that respondents have.

    None if every answer is possible, or if the answers `predicted` (m,) contradict it.
    """
    if np.all(possible):
        return None
    if respondents.kept_strata is not None:
        possible = possible[respondents.kept_strata]
    if respondents.codes is not None:
        merged = np.zeros((int(respondents.codes.max()) + 1, possible.shape[1]), dtype=bool)
        np.logical_or.at(merged, respondents.codes, possible)
        possible = merged
    if len(possible) != len(respondents.weighting.sizes) or not np.all(
        possible[respondents.stratum, predicted]
    ):
        return None
    return possible


def hits_and_misses(
    metric: TwoShareFunction,
    is_class: AnyArray,
    answered: BoolArray,
    weighting: Weighting,
    target: str = "population",
    needs: tuple[bool, bool] = (True, True),
) -> ShareFunctionInterval:
    """Return a metric as a function of two rates of a class: among units answered with it, and others.

    Parameters
    ----------
    metric : TwoShareFunction
        See `confusion.of_two_shares`.
    is_class : (n,)
        Whether the labelled units are of the class.
    answered : bool (H,)
        The strata whose units are all answered with the class; in the others, no unit is.
    weighting : Weighting
        Of labels that are drawn at random within strata.
    target : {"population", "superpopulation"}
        For a superpopulation, the share of answers is also estimated.
    needs : (bool, bool)
        Whether the metric depends on hits and on misses; precision depends only on hits.
    """
    used = weighting.counts > 0
    sides = [side & used for side in (answered, ~answered)]
    sizes = [float(np.sum(weighting.sizes[side])) for side in sides]
    share = sizes[0] / sum(sizes)
    rates: list[Term] = [
        _rate(np.asarray(is_class, np.float64), side, weighting, target)
        for side, is_needed in zip(sides, needs, strict=True)
        if is_needed
    ]
    if target == "superpopulation" and all(needs):
        # The N units are a sample of the superpopulation, and their share of answers is an estimate.
        rates.append(BinomialInterval(value=share, trials=sum(sizes)))

    units: FloatArray | float = np.inf
    if target == "population" and not weighting.with_replacement:
        units = np.array([size for size, is_needed in zip(sizes, needs, strict=True) if is_needed])
    function = RatesOfClass(metric=metric, needs=needs, answered=share)
    return ShareFunctionInterval.of(function, rates, units=units)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatesInStrata(Record):
    """A metric of a class, which in every sample from the same strata is a function of rates of the class.

    Parameters
    ----------
    metric : TwoShareFunction
    is_class : bool (N,)
        Whether the units are of the class.
    answered : bool (H,)
        As for `hits_and_misses`.
    needs : (bool, bool)
    """

    metric: TwoShareFunction
    is_class: BoolArray
    answered: BoolArray
    needs: tuple[bool, bool]

    @property
    def sides(self) -> tuple[BoolArray, ...]:
        """The strata (H,) of each rate that the metric depends on."""
        both = (self.answered, ~self.answered)
        return tuple(side for side, is_needed in zip(both, self.needs, strict=True) if is_needed)

    def value_and_slopes(self, rates: FloatArray, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the metric (R,) and its slopes (d, R) at rates (d, R), in strata of these sizes (H,)."""
        share = self._answered_share(sizes)
        hits, misses = rates_of_sides(rates, self.needs)
        cells = (hits * share, misses * (1.0 - share), share)
        of_hits, of_misses = self.metric.slopes(*cells)
        both = (of_hits * share, of_misses * (1.0 - share))
        slopes = [slope for slope, is_needed in zip(both, self.needs, strict=True) if is_needed]
        return np.asarray(self.metric(*cells)), np.stack(slopes)

    def ends(
        self, rates: FloatArray, low: FloatArray, high: FloatArray, sizes: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends (R,) of the metric's interval, from the rates and their limits (d, R)."""
        function = RatesOfClass(metric=self.metric, needs=self.needs, answered=self._answered_share(sizes))
        units = np.array([[float(sizes[side].sum())] for side in self.sides])
        return ends_of_function(function, rates, low, high, units, np.eye(len(rates)))

    def _answered_share(self, sizes: IntArray) -> float:
        """Return the share of units that are answered with the class."""
        return float(sizes[self.answered].sum() / sizes.sum())


def _rate(is_class: FloatArray, side: BoolArray, weighting: Weighting, target: str) -> Estimate:
    """Return the mean over some of the strata (H,), whose labels are a sample of their own."""
    inside = side[weighting.stratum]
    stratum = (np.cumsum(side) - 1)[weighting.stratum[inside]]
    assert isinstance(weighting, StratifiedWeighting)
    weighting_of_side = replace(weighting, stratum=stratum, sizes=weighting.sizes[side])
    return plain_mean(is_class[inside], weighting_of_side, outcome="binary", target=target)


def mean_of(unit: FloatArray, weighting: Weighting, target: str = "population") -> Estimate:
    """Return the mean of an indicator, or of a variable from 0 to 1, by the estimator of `estimate`."""
    is_binary = bool(np.all(np.isin(unit, (0.0, 1.0))))
    outcome = "binary" if is_binary else "bounded"
    # Hájek's estimator is not affected by the random size of a sample of clusters or of a Poisson sample.
    estimator = "auto" if weighting.random_within_strata else "hajek"
    return plain_mean(unit, weighting, estimator=estimator, outcome=outcome, bounds=(0.0, 1.0), target=target)


def four_cells(
    metric: TwoShareFunction,
    true: BoolArray,
    answered: BoolArray,
    weighting: Weighting,
    target: str = "population",
    member: BoolArray | None = None,
) -> ShareFunctionInterval:
    """Return a metric of two classes as a function of the three rarest cells of the confusion matrix.

    The share of the largest cell is 1 minus those of the others. For a rare class these are hits, misses and
    false alarms: three small counts, which are nearly independent.

    Parameters
    ----------
    metric : TwoShareFunction
        As for `hits_and_misses`.
    true, answered : bool (n,)
        Whether the labelled units are of the class, and whether they are answered with it.
    weighting : Weighting
    target : {"population", "superpopulation"}
    member : bool (n,), optional
        The units of a domain, of which the cells are shares. Default: all units.
    """
    cells = np.stack([true & answered, true & ~answered, ~true & answered, ~true & ~answered]).astype(float)
    inside = np.ones(len(true)) if member is None else member.astype(float)
    largest = int(np.argmax(cells * inside @ weighting.weights))
    others = [j for j in range(4) if j != largest]
    if member is None:
        rates = [mean_of(cells[j], weighting, target) for j in others]
    else:
        rates = [domain_mean(cells[j], member, weighting, bounds=(0.0, 1.0), target=target) for j in others]
    units = np.inf
    if target == "population":
        units = weighting.population_size * float(inside @ weighting.weights) / weighting.total
    function = CellsOfClass(metric=metric, largest=largest)
    correlation = cell_correlation(cells[others] * inside, weighting, target)
    return ShareFunctionInterval.of(function, rates, correlation, units)


def shares_above(
    values: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    weighting: Weighting,
    target: str = "population",
) -> SumInterval | None:
    """Return the mean of a variable with few values as a sum of shares, each with the interval of a mean.

    It is Σ (v_j − v_{j−1}) times the share of units at v_j or above. A value without a label is a share of 0
    or 1, whose interval depends on the number of labels; it has no effect on the variance of the labels.
    None if all possible values are equal.

    Parameters
    ----------
    values : float (n,)
        Of the labelled units.
    lowest, highest : float (H,)
        The smallest and the largest possible value in each stratum.
    weighting : Weighting
    target : {"population", "superpopulation"}
    """
    used = weighting.counts > 0
    stands_for_stratum = weighting.random_within_strata
    values, lowest, highest = (np.round(part, _DIGITS) for part in (values, lowest, highest))
    edges = np.unique([*values, lowest[used].min(), highest[used].max()])
    terms: list[Term] = []
    steps = []
    indicators = []
    for below, above in pairwise(edges.tolist()):
        reached = (values >= above).astype(np.float64)
        side = used & (lowest < above) & (highest > below)
        part = 1.0
        if stands_for_stratum and target == "population" and np.any(side < used):
            terms.append(_rate(reached, side, weighting, target))
            part = float(np.sum(weighting.sizes[side]) / np.sum(weighting.sizes[used]))
        else:
            terms.append(mean_of(reached, weighting, target))
        steps.append((above - below) * part)
        indicators.append(reached)
    if not terms:
        return None
    rows = _stratum_shares(np.array(indicators), weighting)
    # A unit at the higher value also counts at the lower one: the product of two indicators is the smaller.
    joint = np.minimum(rows[:, None], rows[None]) - rows[:, None] * rows[None]
    correlation = correlation_from(joint @ _factors(weighting, target))
    value = float(weighting.weights @ values / weighting.total)
    return SumInterval(value=value, terms=tuple(terms), coefficients=np.array(steps), correlation=correlation)


# Number of decimals of the values of cells: further decimals are rounding errors.
_DIGITS = 12


# Graded labels at which their own products of cells count half; twice as many count for four fifths. Slices
# of plans then have 1.02 times the width of those of random samples (300 labels); labels of which 97% are
# alike cover .94 to 1.00, and without it .83.
_ENOUGH_GRADED = 12.0


def cell_correlation(cells: FloatArray, weighting: Weighting, target: str = "population") -> FloatArray:
    """Return the correlation (d, d) of the means of cells, or of other variables from 0 to 1 (d, n).

    The moments of each stratum are mixed with one label of the overall moments, because those of few labels
    are mostly noise. For the same reason, few graded labels count in part as if each were in only one cell:
    labels that are all equal would otherwise give an interval without width.
    """
    n_inside = int(np.sum(cells.sum(axis=0) > 0))
    graded_share = n_inside**2 / (n_inside**2 + _ENOUGH_GRADED**2)
    exclusive = cells[:, None] * np.eye(len(cells))[:, :, None]
    products = graded_share * cells[:, None] * cells[None] + (1.0 - graded_share) * exclusive
    means = _stratum_shares(cells, weighting)
    squares = _stratum_shares(products.reshape(-1, cells.shape[1]), weighting).reshape(
        *products.shape[:2], -1
    )
    within = squares - means[:, None] * means[None]
    return correlation_from(within @ _factors(weighting, target))


def _factors(weighting: Weighting, target: str) -> FloatArray:
    """Return the factors (H,) of the variances within strata in that of the mean."""
    if target == "population":
        return weighting.variance_factors
    # Completely labelled strata have a variance for the superpopulation.
    return weighting.independent().variance_factors


def _stratum_shares(cells: FloatArray, weighting: Weighting) -> FloatArray:
    """Return the shares (d, H) of cells (d, n) by stratum, mixed with one label of the overall shares."""
    overall = (cells @ weighting.weights / weighting.total)[:, None]
    if not weighting.random_within_strata:
        return np.asarray(overall)
    counts = weighting.counts
    sums = np.stack([np.bincount(weighting.stratum, row, minlength=len(counts)) for row in cells])
    return np.asarray((sums + overall) / (counts + 1.0))


def max_unseen_units(sizes: AnyArray, counts: AnyArray, error: float = 0.025) -> float:
    """Return the largest number of units with a property that no label has; no valid limit is smaller.

    It is the largest Σ N_h p_h with Π (1 − p_h)^n_h ≥ `error`, at p_h = 1 − min(1, μ n_h / N_h).

    Parameters
    ----------
    sizes, counts : int (H,)
        N_h, and n_h of at least 1.
    """
    density = counts / sizes
    # Bisection on log μ. exp(−800) is 0 in double precision, and 100 halvings reach rounding.
    low = -800.0
    high = float(-np.log(density.min()))
    for _ in range(100):
        middle = (low + high) / 2.0
        likelihood = float(counts @ np.minimum(0.0, middle + np.log(density)))
        if likelihood < np.log(error):
            low = middle
        else:
            high = middle
    excluded_share = np.minimum(1.0, np.exp(high) * density)
    return float(np.sum(np.where(counts >= sizes, 0.0, sizes * (1.0 - excluded_share))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _DomainSampleInterval(Interval):
    """The interval of a domain whose labels are a sample of their own, such as those of whole strata."""

    evidence: Evidence

    method = "stratified-clopper-pearson"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        interval = interval_of(self.evidence, confidence_level, "auto", alternative)
        return self.within(interval.low, interval.high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _FewUnitsInterval(Interval):
    """The interval of a domain on effective trials, with the correction for a finite number of units."""

    trials: float
    labelled: int
    units: float
    of_shares: ShareFunctionInterval | None
    residual_share: float

    method = "clopper-pearson"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        lowest, highest = bounds = self.bounds or (0.0, 1.0)
        scale = highest - lowest
        trials = np.array([self.trials])
        # At least one unit, so that a completely labelled domain still has trials.
        unlabelled_share = max(1.0 - self.labelled / self.units, 1.0 / self.units)
        unit = np.clip(unit_scale(np.asarray(self.value), bounds), 0.0, 1.0)
        rates = StratumRates(
            value=unit,
            rates=unit[None],
            counts=trials * unlabelled_share,
            trials=trials,
            shares=np.ones(1),
            units=self.units,
        )
        ends = stratified_clopper_pearson(rates, *tail_shares(confidence_level, alternative))
        low, high = (lowest + scale * float(end) for end in ends)
        if self.of_shares is not None:
            other = self.of_shares.ends(confidence_level, alternative)
            # That interval is without the proxy, which leaves this share of the variance.
            part = scale * math.sqrt(self.residual_share)
            low = min(low, self.value - part * (self.of_shares.value - other[0]))
            high = max(high, self.value + part * (other[1] - self.of_shares.value))
        return self.within(min(low, self.value), max(high, self.value))


def domain_mean(
    z: FloatArray,
    member: BoolArray,
    weighting: Weighting,
    *,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
    assisted: tuple[FloatArray, float] | None = None,
) -> Estimate:
    """Return the mean of z over the units of one domain.

    Parameters
    ----------
    z : float (n,)
    member : bool (n,)
    weighting : Weighting
        Of all labelled units.
    bounds : (float, float), optional
        Bounds of z. The interval of a domain of whole strata is then that of their mean, and that of other
        domains is Clopper–Pearson's on an effective number of trials, which is finite even if all labels are
        equal. Without bounds it is Student's t, with a df of at most the number of labels minus one.
    target : {"population", "superpopulation"}
    assisted : (float (n,), float), optional
        Residuals whose mean over the domain is that of z, and the factor by which fitting them increases
        their variance; see `slice_residuals`. The share of the variance of z that they leave is estimated
        from the domain's labels, and shrunk towards 1 if these are few.
    """
    inside = member.astype(np.float64)
    n = int(member.sum())
    if n == 0:
        return undefined_estimate(weighting, 0, bounds, "no labelled unit", target=target)
    if weighting.census:
        clusters = None
    else:
        clusters = weighting.group_clusters(member)
    result = ratio_of_means(inside * z, inside, weighting, target, member)
    if clusters is not None and clusters.degrees_of_freedom == 0.0:
        unknown = replace(result, design_variance=np.nan)
        return estimate_without_interval(unknown, clusters, weighting, member, bounds, target)
    # One label has no variance that residuals could explain.
    if n == 1:
        assisted = None
    residual_share = 1.0
    if assisted is not None:
        draws = n if clusters is None else clusters.count
        result, residual_share = _assisted(result, assisted, z, member, weighting, target, bounds, draws)
    variance = result.design_variance
    max_df = n - 1.0 if bounds is None else float(n)
    df = max(min(result.degrees_of_freedom, max_df), 1.0)
    # The deviations are from the estimated mean, which makes the variance of n labels too small.
    correction = n / (n - 1) if n > 1 else np.inf
    if clusters is not None:
        correction = weighting.few_clusters_factor(result.variable, member)
        df = clusters.degrees_of_freedom
    value = float(result.value if bounds is None else np.clip(result.value, *bounds))
    is_binary = bounds is not None and bool(np.all(np.isin(z[member], bounds)))
    domain_weighting = _weighting_of_domain(member, weighting, is_binary=is_binary)
    reported_error = float(np.sqrt(max(variance + result.population_variance, 0.0)))
    interval: Interval
    if bounds is None:
        corrected = result.variance
        if variance > 0:
            corrected = variance * correction + result.population_variance
        error = float(np.sqrt(corrected)) if n > 1 else np.nan
        interval = StudentInterval(value=value, standard_error=error, degrees_of_freedom=df)
    elif domain_weighting is not None:
        outcome = "binary" if is_binary and bounds == (0.0, 1.0) else "bounded"
        evidence = plain_mean(
            z[member], domain_weighting, outcome=outcome, bounds=bounds, target=target
        ).evidence
        if assisted is not None:
            design_variance = residual_share * (evidence.variance - evidence.population_part)
            evidence = replace(
                evidence,
                value=value,
                variance=design_variance + evidence.population_part,
                residuals=assisted[0][member],
                uses_proxy=True,
            )
        interval = _DomainSampleInterval(value=value, bounds=bounds, evidence=evidence)
        reported_error = float(np.sqrt(evidence.reported_variance))
    else:
        variance_of_labels = variance / residual_share
        # Trials of a binary outcome are exact without the correction.
        if not is_binary or clusters is not None:
            variance_of_labels *= correction
        trials, smoothed_variance = domain_trials(z, inside, weighting, bounds, variance_of_labels)
        interval = _trials_interval(
            value, z, inside, weighting, target, bounds, clusters, trials / residual_share, residual_share
        )
        if not (reported_error > 0):
            reported_error = float(np.sqrt(smoothed_variance * residual_share))
    return linearised_estimate(
        replace(result, value=value),
        weighting,
        interval=interval,
        target=target,
        n=n,
        member=member,
        standard_error=reported_error,
        degrees_of_freedom=df,
    )


def _assisted(
    result: Linearised,
    assisted: tuple[FloatArray, float],
    z: FloatArray,
    member: BoolArray,
    weighting: Weighting,
    target: str,
    bounds: tuple[float, float] | None,
    draws: int,
) -> tuple[Linearised, float]:
    """Return the mean of a domain by its residuals, and the share of the variance of z that these leave."""
    residuals, fitting = assisted
    inside = member.astype(np.float64)
    of_residuals = ratio_of_means(inside * residuals, inside, weighting, target, member)
    share = _residual_share(of_residuals.design_variance * fitting, result, z[member], bounds, draws)
    by_residuals = replace(
        of_residuals,
        population_variance=result.population_variance,
        design_variance=share * result.design_variance,
    )
    return by_residuals, share


def _weighting_of_domain(member: BoolArray, weighting: Weighting, *, is_binary: bool) -> Weighting | None:
    """Return the weighting under which a domain's labels are a sample of their own; None if they are not."""
    if not weighting.random_within_strata:
        return None
    if np.all(member):
        return weighting
    of_strata = weighting.whole_strata(member)
    if of_strata is None and not is_binary:
        return _simple_random_part(member, weighting)
    return of_strata


def _trials_interval(
    value: float,
    z: FloatArray,
    inside: FloatArray,
    weighting: Weighting,
    target: str,
    bounds: tuple[float, float],
    clusters: GroupClusters | None,
    trials: float,
    residual_share: float,
) -> Interval:
    """Return the interval of a domain's mean on a number of effective binary trials."""
    units = float(weighting.weights @ inside) / weighting.total * weighting.population_size
    if target == "superpopulation":
        # A domain has at most as many trials as units, even if all of them are equal.
        trials = 1.0 / (1.0 / trials + 1.0 / units)
    interval = BinomialInterval(value=value, bounds=bounds, trials=trials)
    if clusters is not None:
        interval = clustered(interval, clusters)
    if target != "population" or not np.isfinite(trials) or not weighting.random_within_strata:
        return interval
    of_shares = None
    if np.sum(weighting.counts > 0) > 1:
        of_shares = of_two_sums(unit_scale(z, bounds), inside, weighting)
    return _FewUnitsInterval(
        value=value,
        bounds=bounds,
        trials=trials,
        labelled=int(inside.sum()),
        # A rounding error just above a whole number must not add a unit.
        units=float(np.ceil(units - 1e-9)),
        of_shares=of_shares,
        residual_share=residual_share,
    )


def _simple_random_part(member: BoolArray, weighting: Weighting) -> StratifiedWeighting | None:
    """Return the weighting of a domain of a simple random sample: a simple random sample of the domain.

    The size of the domain is estimated from its share of the labels. None if several strata have labels.
    """
    if not isinstance(weighting, StratifiedWeighting) or np.sum(weighting.counts > 0) > 1:
        return None
    labelled = int(member.sum())
    units = np.ceil(weighting.population_size * labelled / len(member) - 1e-9)
    sizes = np.array([max(int(units), labelled)])
    return replace(weighting, stratum=np.zeros(labelled, dtype=np.int64), sizes=sizes)


def estimate_without_interval(
    result: Linearised,
    clusters: GroupClusters,
    weighting: Weighting,
    member: BoolArray,
    bounds: tuple[float, float] | None,
    target: str,
) -> Estimate:
    """Return the estimate of a group (n,) in too few clusters: no stratum has two of them to compare."""
    return linearised_estimate(
        result,
        weighting,
        interval=UndefinedInterval(value=result.value, bounds=bounds),
        target=target,
        n=int(member.sum()),
        member=member,
        standard_error=float("nan"),
        degrees_of_freedom=0.0,
        remarks=(_no_interval_note(clusters),),
    )


def _no_interval_note(clusters: GroupClusters) -> str:
    """Return why there is no interval for a group in these clusters."""
    where = "1 cluster"
    if clusters.count > 1:
        where = f"{clusters.count} clusters, each in a stratum of its own"
    return f"no interval: the labels that count are in {where}, so they do not show how clusters differ"


# Number of prior clusters, each worth one unit, in the estimated similarity of units within clusters. With
# none, 30 clusters of a rate of .97 covered .86; with half a one .99.
_PRIOR_CLUSTERS = 0.5


def clustered(interval: BinomialInterval, clusters: GroupClusters) -> BinomialInterval:
    """Return the interval of a share in few clusters: on fewer trials, with the df of the clusters.

    Clusters with (nearly) equal labels provide little information on the similarity of units within clusters.
    A cluster therefore counts by 4 p (1 − p). In the worst case a cluster is worth one unit.
    """
    low, high = interval.bounds or (0.0, 1.0)
    unit = float(np.clip((interval.value - low) / (high - low), 0.0, 1.0))
    information = 4.0 * (clusters.count - 1.0) * unit * (1.0 - unit)
    prior = _PRIOR_CLUSTERS / clusters.unequal_draws
    trials = (information + _PRIOR_CLUSTERS) / (information / interval.trials + prior)
    return replace(interval, trials=trials, degrees_of_freedom=clusters.degrees_of_freedom)


def _residual_share(
    residual: float,
    plain: Linearised,
    z: FloatArray,
    bounds: tuple[float, float] | None,
    draws: int,
) -> float:
    """Return the share of a domain's variance that the proxy leaves, from the domain's labels (m,).

    `draws` is the number of labels, or of clusters if clusters were drawn.
    """
    if bounds is None:
        return float(remaining_share(plain.design_variance, residual, float(draws)))
    mean = float(np.mean(unit_scale(z, bounds)))
    n = draws
    scale = bounds[1] - bounds[0]
    smooth = (n * mean + LABELS_AT_THE_BOUNDS) / (n + 2.0 * LABELS_AT_THE_BOUNDS)
    smooth_variance = smooth * (1.0 - smooth) / n * scale**2
    # Labels count as in `clustered`: the more they vary, the more they show of the variance.
    informative_draws = 4.0 * n * mean * (1.0 - mean)
    return float(remaining_share(plain.design_variance, residual, informative_draws, smooth_variance))


def of_two_sums(
    unit: FloatArray, inside: FloatArray, weighting: Weighting, target: str = "population"
) -> ShareFunctionInterval:
    """Return the mean u / (u + v) as a function of two sums over a domain: the outcome u, and 1 minus it, v.

    The effective trials are of all strata together. They do not account for a stratum with few unlabelled
    units whose labels are all equal: 95% intervals covered .80.
    """
    sums = np.stack([inside * unit, inside * (1.0 - unit)])
    rates = [mean_of(row, weighting, target) for row in sums]
    units = weighting.population_size if target == "population" else np.inf
    return ShareFunctionInterval.of(FirstOfTwo(), rates, cell_correlation(sums, weighting, target), units)


def unit_scale(z: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Return an outcome between bounds on the scale from 0 to 1."""
    return (z - bounds[0]) / (bounds[1] - bounds[0])


def domain_trials(
    z: FloatArray, inside: FloatArray, weighting: Weighting, bounds: tuple[float, float], variance: float
) -> tuple[float, float]:
    """Return the number of independent trials with the variance of the domain's mean, and this variance.

    `inside` (n,) is 1 for the units of the domain. The variance is the larger one of `variance` and that of
    labels smoothed with half a label at each bound.
    """
    weights = weighting.weights * inside
    label_weight = float(np.sum(weights**2) / np.sum(weights))
    smoothing = smoothed(weighting, np.full(2, label_weight / 2), inside)
    outcomes = np.append(unit_scale(z, bounds), [0.0, 1.0])
    counted = np.append(inside, [1.0, 1.0])
    domain_weight = float(smoothing.weights @ counted)
    value = float(smoothing.weights @ (counted * outcomes)) / domain_weight
    smoothed_variance = smoothing.variance(counted * (outcomes - value) / domain_weight)
    # Pooled labels must not make the domain larger than the labels show.
    smoothed_variance *= max(domain_weight / float(np.sum(weights)), 1.0) ** 2
    scale = (bounds[1] - bounds[0]) ** 2
    largest = smoothed_variance
    if np.isfinite(variance):
        largest = max(largest, variance / scale)
    if largest > 0:
        return value * (1.0 - value) / largest, largest * scale
    return np.inf, 0.0
