"""Intervals of functions of a few shares of the population, each of which has an interval of its own.

The ends are the least and the largest value of the function over all shares that together lie no further from
the estimates than the end of any one of them does alone ("MOVER", Zou & Donner 2008): on the ellipsoid
x_j + Δ_j d_j, d'R⁻¹d = 1, with R the correlation of the estimates and Δ_j the distance of a limit on the side
to which d_j points. Everything comes from labels: skewness, small counts, the design, rounds and the target
are matters of the shares' own limits.
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
    """Labels of which each stratum's are mixed with one label of a pooled distribution.

    Parameters
    ----------
    weighting : Weighting
    borrowed : float (n + J, 1 or H)
        The distribution that strata borrow from, all of them alike or each what is possible there, over the n
        labelled units and J pseudo-labels.
    weights : float (n + J,)
        Smoothed; they sum to what the design's weights sum to.
    """

    weighting: Weighting
    borrowed: FloatArray
    weights: FloatArray

    def variance(self, variable: FloatArray) -> float:
        """Return the variance of the weighted mean of a variable (n + J,), smoothed."""
        weighting = self.weighting
        counts = _own_counts(self.weighting)
        labelled_variable = variable[: len(weighting.weights)]
        mean, square = (
            (
                np.bincount(weighting.stratum, labelled_variable**power, minlength=len(counts)) * (counts > 0)
                + variable**power @ self.borrowed
            )
            / (counts + 1.0)
            for power in (1, 2)
        )
        return float(weighting.variance_factors @ np.maximum(square - mean**2, 0.0)) * weighting.total**2


def smoothed(
    weighting: Weighting,
    pseudo_shares: FloatArray,
    counted: FloatArray | None = None,
    possible: BoolArray | None = None,
) -> Smoothing:
    """Return the smoothed weights under pseudo-labels of given shares (J,) of the population.

    `counted` (n,) is 1 for the units that the statistic counts, such as the positives for a recall. Half of
    the borrowed label is then one of these: a large stratum in which none was seen may hold some.
    `possible` (n + J, H) says which units and pseudo-labels have their like in which strata; all in all
    unless given.
    """
    weights = weighting.weights
    total = weighting.total
    shares = np.concatenate([weights, pseudo_shares]) / (total + float(pseudo_shares.sum()))
    several = np.sum(weighting.counts > 0) > 1
    if counted is None or not several:
        every = np.zeros(len(shares))
    else:
        every = np.ones(len(shares))
    every[: len(weights)] *= 0.0 if counted is None else counted
    if possible is None:
        possible = np.ones((len(shares), 1), dtype=bool)
    mass = shares @ possible
    inside = (shares * every) @ possible
    half = np.where(inside > 0, 0.5, 0.0)
    plain = (1.0 - half) / np.where(mass > 0, mass, 1.0)
    extra = half / np.where(inside > 0, inside, 1.0)
    borrowed = shares[:, None] * possible * (plain + every[:, None] * extra)
    label_counts = _own_counts(weighting)
    per_label = weighting.shares * total / (label_counts + 1.0)
    mixed = borrowed @ (per_label if borrowed.shape[1] > 1 else per_label.sum(keepdims=True))
    mixed[: len(weights)] += (per_label * (label_counts > 0))[weighting.stratum]
    return Smoothing(weighting=weighting, borrowed=borrowed, weights=mixed)


def _own_counts(weighting: Weighting) -> IntArray:
    """Return the labels (H,) that speak for their own stratum; none where they were not drawn at random."""
    return np.asarray(weighting.counts * weighting.random_within_strata)


class TwoShareFunction(Protocol):
    """A metric of one class as a function of three shares of the units."""

    def __call__(self, hits: FloatArray, misses: FloatArray, answered: Number) -> FloatArray:
        """Return the metric at shares (…,) of hits, of misses, and of answers with the class."""

    def slopes(self, hits: Number, misses: Number, answered: Number) -> tuple[FloatArray, FloatArray]:
        """Return its slopes (…,) with respect to the hits and to the misses."""


@dataclass(frozen=True, slots=True)
class FirstShare:
    """The first share itself."""

    def __call__(self, shares: FloatArray) -> FloatArray:
        """Return it from shares (1, …)."""
        return np.asarray(shares[0])[()]


@dataclass(frozen=True, slots=True)
class FirstOfTwo:
    """The first of two shares over their sum."""

    def __call__(self, shares: FloatArray) -> FloatArray:
        """Return it from shares (2, …); NaN where both are 0."""
        both = shares[0] + shares[1]
        return np.asarray(np.where(both > 0, shares[0] / np.where(both > 0, both, 1.0), np.nan))


def rates_of_sides(rates: FloatArray, needs: tuple[bool, bool]) -> list[FloatArray]:
    """Return the rates (…,) of hits and of misses from rates (d, …); 0 where a metric needs none."""
    remaining_rates = iter(rates)
    return [next(remaining_rates) if is_needed else np.zeros(rates.shape[1:]) for is_needed in needs]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesOfClass:
    """A metric of a class as a function of the rates of the class where it is answered and elsewhere.

    Parameters
    ----------
    metric : TwoShareFunction
    needs : (bool, bool)
        Whether the metric depends on hits and on misses; a rate that it does not depend on is left out.
    answered : float
        The share of units with the answer, if it is no further rate.
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
    """A metric of two classes as a function of the shares of all cells of its confusion but the largest.

    Parameters
    ----------
    metric : TwoShareFunction
    largest : int
        The number of the cell that is left out: hits, misses, false alarms, and the others.
    """

    metric: TwoShareFunction
    largest: int

    def __call__(self, shares: FloatArray) -> FloatArray:
        """Return the metric at shares (3, …)."""
        rest = np.maximum(1.0 - shares.sum(axis=0), 0.0)
        every = np.insert(shares, self.largest, rest, axis=0) / (shares.sum(axis=0) + rest)
        return self.metric(every[0], every[1], every[0] + every[2])


# Shares (d, …) to values (…); NaN where there is none. One record for each kind, so that an interval can be
# stored and compared.
ShareFunction = FirstShare | FirstOfTwo | RatesOfClass | CellsOfClass

# Directions of two shares: what lies between them changes an end by under 1e-4 of its distance.
_CIRCLE = 256

# A limit no further from its share is the share itself: every unit is labelled.
_ROUNDING = 1e-12

# Directions of three shares: the next one is within .06 radians, which changes an end by under .2%.
_SPHERE = 1500


def directions(correlation: FloatArray) -> FloatArray:
    """Return directions (d, m) over the ellipsoid of d = 1, 2 or 3 shares with a correlation (d, d)."""
    d = len(correlation)
    if d == 1:
        return np.array([[-1.0, 1.0]])
    if d == 2:
        angles = np.arange(_CIRCLE) * (2.0 * np.pi / _CIRCLE)
        sphere = np.stack([np.cos(angles), np.sin(angles)])
    else:
        # Fibonacci's lattice is even over the sphere; the axes are where a single share's limit lies.
        rank = np.arange(_SPHERE) + 0.5
        height = 1.0 - 2.0 * rank / _SPHERE
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
    """Return the least and the largest value (…) over the ellipsoid; replicate axes may follow the shares.

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
    # Where nothing is defined around the estimate, anything is possible.
    is_finite = np.isfinite(values)
    least = np.min(np.where(is_finite, values, np.inf), axis=0)
    most = np.max(np.where(is_finite, values, -np.inf), axis=0)
    return np.where(is_finite.any(axis=0), least, -np.inf), np.where(is_finite.any(axis=0), most, np.inf)


def between_units(
    centre: FloatArray, low: FloatArray, high: FloatArray, units: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return limits (d, …) of shares moved outwards by half of one of their units (d, …).

    Limits of a share of few units may fall on whole units, and the truth on the same one. That is enough for
    the share alone, but a function's end there just misses its true value, the other shares being inexact.
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
        Of the estimates.
    units : float (d,)
        How many units each is a share of; infinite where it is not a count. See `between_units`.
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
        """Return the limits around the function's value at the estimated shares, unrelated unless given."""
        return cls(
            value=float(function(np.array([rate.value for rate in rates]))),
            function=function,
            rates=tuple(rates),
            correlation=np.eye(len(rates)) if correlation is None else correlation,
            units=np.broadcast_to(units, len(rates)),
        )

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the value, `error` being left out on either side."""
        level = max(1.0 - 2.0 * error, 1e-12)  # at an error of one half the value is the end
        ends = [rate.confidence_interval(level) for rate in self.rates]
        centre = np.array([rate.value for rate in self.rates])
        low = np.array([end.low for end in ends])
        high = np.array([end.high for end in ends])
        # As far from the function of these shares: what is estimated may differ, as where weights vary.
        value = float(self.function(centre))
        least, most = ends_of_function(self.function, centre, low, high, self.units, self.correlation)
        return value - min(float(least), value), max(float(most), value) - value


def possible_answers(
    sample: Sample, frame: Respondents, column: str | None, levels: list[str], predicted: IntArray
) -> BoolArray | None:
    """Return which answers each stratum of the labelled units can have, by its rule (H, K + 1).

    None where no rule says anything of the answers, or what it says is not so of those `predicted` (m,).
    The last column stands for all but the K levels.
    """
    strata = sample.design.strata
    if strata is None or column is None or not frame.weighting.random_within_strata:
        return None
    possible = possible_levels(strata.rule, column, tuple(levels))
    return possible_in(frame, possible, predicted)


def possible_in(frame: Respondents, possible: BoolArray, predicted: IntArray) -> BoolArray | None:
    """Return which answers (H, K + 1) are possible in the strata that respondents have.

    None if every answer is, or if it is not so of those `predicted` (m,).
    """
    if np.all(possible):
        return None
    if frame.kept_strata is not None:
        possible = possible[frame.kept_strata]
    if frame.codes is not None:
        merged = np.zeros((int(frame.codes.max()) + 1, possible.shape[1]), dtype=bool)
        np.logical_or.at(merged, frame.codes, possible)
        possible = merged
    fits = len(possible) == len(frame.weighting.sizes) and bool(np.all(possible[frame.stratum, predicted]))
    if fits:
        return possible
    return None


def hits_and_misses(
    metric: TwoShareFunction,
    is_class: AnyArray,
    answered: BoolArray,
    weighting: Weighting,
    target: str = "population",
    needs: tuple[bool, bool] = (True, True),
) -> ShareFunctionInterval:
    """Return a metric of a class as a function of the rates of the class where it is answered and elsewhere.

    Parameters
    ----------
    metric : TwoShareFunction
        See `confusion.of_two_shares`.
    is_class : (n,)
        Whether the labelled units are of the class.
    answered : bool (H,)
        Which strata are answered with the class; the others hold none that is.
    weighting : Weighting
        Of strata whose labels stand for their own stratum.
    target : {"population", "superpopulation"}
        Of a superpopulation the share of answers is chance, too.
    needs : (bool, bool)
        Whether the metric depends on hits and on misses; precision is a matter of hits alone.
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
        # The share of the N units, as an estimate of that of the distribution that they came from.
        rates.append(BinomialInterval(value=share, trials=sum(sizes)))

    units = np.array([size for size, is_needed in zip(sizes, needs, strict=True) if is_needed])
    is_finite_population = target == "population" and not weighting.with_replacement
    of_rates = RatesOfClass(metric=metric, needs=needs, answered=share)
    return ShareFunctionInterval.of(of_rates, rates, units=units if is_finite_population else np.inf)


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
    """Return the mean over some of the strata, as a sample of these alone gives it."""
    inside = side[weighting.stratum]
    stratum = (np.cumsum(side) - 1)[weighting.stratum[inside]]
    assert isinstance(weighting, StratifiedWeighting)
    weighting_of_side = replace(weighting, stratum=stratum, sizes=weighting.sizes[side])
    return plain_mean(is_class[inside], weighting_of_side, outcome="binary", target=target)


def mean_of(unit: FloatArray, weighting: Weighting, target: str = "population") -> Estimate:
    """Return the mean of an indicator, or of a variable from 0 to 1, as `estimate` gives it."""
    binary = bool(np.all(np.isin(unit, (0.0, 1.0))))
    outcome = "binary" if binary else "bounded"
    # Where the sizes of clusters, or how many units were drawn, are chance, they are none of the share's.
    if weighting.random_within_strata:
        estimator = "auto"
    else:
        estimator = "hajek"
    return plain_mean(unit, weighting, estimator=estimator, outcome=outcome, bounds=(0.0, 1.0), target=target)


def four_cells(
    metric: TwoShareFunction,
    true: BoolArray,
    answered: BoolArray,
    weighting: Weighting,
    target: str = "population",
    member: BoolArray | None = None,
) -> ShareFunctionInterval:
    """Return a metric of two classes as a function of the three rarest cells of their confusion.

    The largest cell is what the others leave: where a class is rare these are hits, misses and false alarms,
    all three small counts, whose limits are those of a count and nearly independent.

    Parameters
    ----------
    metric : TwoShareFunction
        As for `hits_and_misses`.
    true, answered : bool (n,)
        Whether the labelled units are of the class, and answered so.
    weighting : Weighting
    target : {"population", "superpopulation"}
    member : bool (n,), optional
        Of a domain: which units are in it. Cells are then shares of the domain.
    """
    cells = np.stack([true & answered, true & ~answered, ~true & answered, ~true & ~answered]).astype(float)
    if member is None:
        inside = np.ones(len(true))
    else:
        inside = member.astype(float)
    largest = int(np.argmax(cells * inside @ weighting.weights))
    others = [j for j in range(4) if j != largest]

    rates = [
        mean_of(cells[j], weighting, target)
        if member is None
        else domain_mean(cells[j], member, weighting, bounds=(0.0, 1.0), target=target)
        for j in others
    ]
    domain_units = weighting.population_size * float(inside @ weighting.weights) / weighting.total
    units = domain_units if target == "population" else np.inf
    of_cells = CellsOfClass(metric=metric, largest=largest)
    return ShareFunctionInterval.of(
        of_cells, rates, cell_correlation(cells[others] * inside, weighting, target), units
    )


def shares_above(
    values: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    weighting: Weighting,
    target: str = "population",
) -> SumInterval | None:
    """Return the mean of a variable of few values as a sum of shares, each with the interval of a mean.

    That is Σ (v_j − v_{j−1}) times the share of units at v_j or above. A value that no label showed is a
    share of 0 or 1, whose limits know how many labels that rests on; a variance of the labels knows nothing
    of it. None where the variable cannot differ.

    Parameters
    ----------
    values : float (n,)
        Of the labelled units.
    lowest, highest : float (H,)
        The smallest and the largest value that is possible in each stratum.
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
    # Who is at the higher value is at the lower one, too.
    joint = np.minimum(rows[:, None], rows[None]) - rows[:, None] * rows[None]
    correlation = correlation_from(joint @ _factors(weighting, target))
    value = float(weighting.weights @ values / weighting.total)
    return SumInterval(value=value, terms=tuple(terms), coefficients=np.array(steps), correlation=correlation)


# Cells whose values agree to so many decimals have one value: they differ by rounding.
_DIGITS = 12


# Graded labels at which their own products of cells count half; twice as many count for four fifths. Slices
# of plans then have 1.02 times the width of those of random samples (300 labels); labels of which 97% are
# alike cover .94 to 1.00, and without it .83.
_ENOUGH_GRADED = 12.0


def cell_correlation(cells: FloatArray, weighting: Weighting, target: str = "population") -> FloatArray:
    """Return the correlation (d, d) of the means of cells, or of other variables from 0 to 1 (d, n).

    Each stratum's moments are mixed with one label of all strata's: few labels would show chance alone. For
    the same reason few graded labels count in part as if each were wholly in one cell or another: labels that
    are all alike would otherwise leave an interval without width.
    """
    n_inside = int(np.sum(cells.sum(axis=0) > 0))
    own_share = n_inside**2 / (n_inside**2 + _ENOUGH_GRADED**2)
    exclusive = cells[:, None] * np.eye(len(cells))[:, :, None]
    products = own_share * cells[:, None] * cells[None] + (1.0 - own_share) * exclusive
    means = _stratum_shares(cells, weighting)
    squares = _stratum_shares(products.reshape(-1, cells.shape[1]), weighting).reshape(
        *products.shape[:2], -1
    )
    within = squares - means[:, None] * means[None]
    return correlation_from(within @ _factors(weighting, target))


def _factors(weighting: Weighting, target: str) -> FloatArray:
    """Return what variances within strata (H,) count by; whole strata count for the superpopulation too."""
    if target == "population":
        counted = weighting
    else:
        counted = weighting.independent()
    return counted.variance_factors


def _stratum_shares(cells: FloatArray, weighting: Weighting) -> FloatArray:
    """Return the shares (d, H) of cells (d, n) in each stratum, mixed with one label of all strata's."""
    overall = (cells @ weighting.weights / weighting.total)[:, None]
    if not weighting.random_within_strata:
        return np.asarray(overall)
    counts = weighting.counts
    sums = np.stack([np.bincount(weighting.stratum, row, minlength=len(counts)) for row in cells])
    return np.asarray((sums + overall) / (counts + 1.0))


def most_unseen(sizes: AnyArray, counts: AnyArray, error: float = 0.025) -> float:
    """Return how many units at most may have a property that no label showed: no valid limit is less.

    The largest Σ N_h p_h with Π (1 − p_h)^n_h ≥ `error`: p_h = 1 − min(1, μ n_h / N_h), since a label of a
    stratum excludes the more, the fewer units it stands for.

    Parameters
    ----------
    sizes, counts : int (H,)
        N_h, and n_h of at least 1.
    """
    density = counts / sizes
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
    """The interval of a domain that is a sample of its own, such as whole strata: that of its mean alone."""

    evidence: Evidence

    method = "stratified-clopper-pearson"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        interval = interval_of(self.evidence, confidence_level, "auto", alternative)
        return self.within(interval.low, interval.high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _FewUnitsInterval(Interval):
    """The interval of a domain on effective trials of which some units are left, as of one stratum."""

    trials: float
    labelled: int
    units: float
    of_shares: ShareFunctionInterval | None
    left: float

    method = "clopper-pearson"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        lowest, highest = bounds = self.bounds or (0.0, 1.0)
        scale = highest - lowest
        trials = np.array([self.trials])
        unit = np.clip(unit_scale(np.asarray(self.value), bounds), 0.0, 1.0)
        rates = StratumRates(
            value=unit,
            rates=unit[None],
            counts=trials * max(1.0 - self.labelled / self.units, 1.0 / self.units),
            trials=trials,
            shares=np.ones(1),
            units=self.units,
        )
        ends = stratified_clopper_pearson(rates, *tail_shares(confidence_level, alternative))
        low, high = (lowest + scale * float(end) for end in ends)
        if self.of_shares is not None:
            other = self.of_shares.ends(confidence_level, alternative)
            part = scale * math.sqrt(self.left)
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
        Of z; the interval of a domain that is whole strata is then that of their mean, of any other
        Clopper–Pearson's on the effective number of trials, which no agreement of a few labels can make
        infinite. Without bounds it is Student's t with at most one degree of
        freedom less than the domain has labels.
    target : {"population", "superpopulation"}
    assisted : (float (n,), float), optional
        Residuals whose mean over the domain is that of z, and what fitting them multiplies their variance
        by; see `slice_residuals`. What they leave of the variance of z is measured on the domain's own labels
        and shrunk to all of it where these are few.
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
        return _in_too_few_clusters(result, clusters, weighting, member, bounds, target)
    # One label has no variance of its own that residuals could explain.
    if n == 1:
        assisted = None
    residual_share = 1.0
    if assisted is not None:
        draws = n if clusters is None else clusters.count
        result, residual_share = _assisted(result, assisted, z, member, weighting, target, bounds, draws)
    variance = result.design_variance
    df = max(min(result.degrees_of_freedom, n - 1.0 if bounds is None else float(n)), 1.0)
    # What the variance lacks: the estimated mean in units' deviations from it, and few clusters.
    correction = n / (n - 1) if n > 1 else np.inf
    if clusters is not None:
        correction = weighting.few_clusters_factor(result.variable, member)
        df = clusters.degrees_of_freedom
    value = float(result.value if bounds is None else np.clip(result.value, *bounds))
    binary = bounds is not None and bool(np.all(np.isin(z[member], bounds)))
    domain_weighting = _weighting_of_domain(member, weighting, binary=binary)
    reported_error = float(np.sqrt(max(variance + result.population_variance, 0.0)))
    interval: Interval
    if bounds is None:
        corrected = result.variance
        if variance > 0:
            corrected = variance * correction + result.population_variance
        error = float(np.sqrt(corrected)) if n > 1 else np.nan
        interval = StudentInterval(value=value, standard_error=error, degrees_of_freedom=df)
    elif domain_weighting is not None:
        if binary and bounds == (0.0, 1.0):
            outcome = "binary"
        else:
            outcome = "bounded"
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
        plain = variance / residual_share * (1.0 if binary and clusters is None else correction)
        trials, hidden = domain_trials(z, inside, weighting, bounds, plain)
        interval = _trials_interval(
            value, z, inside, weighting, target, bounds, clusters, trials / residual_share, residual_share
        )
        if not (reported_error > 0):
            reported_error = float(np.sqrt(hidden * residual_share))
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
    """Return the mean of a domain by its residuals, and which share of the variance of z these leave.

    The residuals carry the error; what is reported of its size is no less than their own labels show.
    """
    residuals, fitting = assisted
    inside = member.astype(np.float64)
    of_residuals = ratio_of_means(inside * residuals, inside, weighting, target, member)
    share = _left_by(of_residuals.design_variance * fitting, result, z[member], bounds, draws)
    by_residuals = replace(
        of_residuals,
        population_variance=result.population_variance,
        design_variance=share * result.design_variance,
    )
    return by_residuals, share


def _weighting_of_domain(member: BoolArray, weighting: Weighting, *, binary: bool) -> Weighting | None:
    """Return the weighting under which a domain's labels are a sample of their own; None if they are not."""
    if not weighting.random_within_strata:
        return None
    if np.all(member):
        return weighting
    of_strata = weighting.whole_strata(member)
    if of_strata is None and not binary:
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
    """Return the limits of a domain's mean on so many effective binary trials."""
    units = float(weighting.weights @ inside) / weighting.total * weighting.population_size
    if target == "superpopulation":
        # The domain's own units are as many draws; that all of them agree does not make them more.
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
        # A whole number of units that rounding left just above is not rounded up to the next.
        units=float(np.ceil(units - 1e-9)),
        of_shares=of_shares,
        left=residual_share,
    )


def _simple_random_part(member: BoolArray, weighting: Weighting) -> StratifiedWeighting | None:
    """Return the weighting of a domain of a simple random sample, which is one of the domain's units.

    Its size is the number of units that the domain is likely to have. None where several strata are labelled.
    """
    if not isinstance(weighting, StratifiedWeighting) or np.sum(weighting.counts > 0) > 1:
        return None
    labelled = int(member.sum())
    units = np.ceil(weighting.population_size * labelled / len(member) - 1e-9)
    sizes = np.array([max(int(units), labelled)])
    return replace(weighting, stratum=np.zeros(labelled, dtype=np.int64), sizes=sizes)


def _in_too_few_clusters(
    result: Linearised,
    clusters: GroupClusters,
    weighting: Weighting,
    member: BoolArray,
    bounds: tuple[float, float] | None,
    target: str,
) -> Estimate:
    """Return the mean of a group without an interval: no clusters of a stratum can be compared."""
    return linearised_estimate(
        replace(result, design_variance=np.nan),
        weighting,
        interval=UndefinedInterval(value=result.value, bounds=bounds),
        target=target,
        n=int(member.sum()),
        member=member,
        standard_error=float("nan"),
        degrees_of_freedom=0.0,
        remarks=(no_interval_note(clusters),),
    )


def no_interval_note(clusters: GroupClusters) -> str:
    """Return why there is no interval for a group in these clusters."""
    where = "1 cluster"
    if clusters.count > 1:
        where = f"{clusters.count} clusters, each in a stratum of its own"
    return f"no interval: the labels that count are in {where}, which does not show how clusters differ"


# Clusters, each worth one unit, that are set against what a group's clusters show of how units of a cluster
# resemble each other. With none, 30 clusters of a rate of .97 covered .86; with half a one .99.
_CLUSTERS_AGAINST = 0.5


def clustered(interval: BinomialInterval, clusters: GroupClusters) -> BinomialInterval:
    """Return the limits of a share in few clusters: on fewer trials, and with the clusters' freedom.

    Clusters that (nearly) all agree say little of how much their units resemble each other, so that a cluster
    counts as informative only by 4 p (1 − p). At worst it is worth one unit.
    """
    low, high = interval.bounds or (0.0, 1.0)
    unit = float(np.clip((interval.value - low) / (high - low), 0.0, 1.0))
    information = 4.0 * (clusters.count - 1.0) * unit * (1.0 - unit)
    against = _CLUSTERS_AGAINST / clusters.unequal_draws
    trials = (information + _CLUSTERS_AGAINST) / (information / interval.trials + against)
    return replace(interval, trials=trials, degrees_of_freedom=clusters.degrees_of_freedom)


def _left_by(
    residual: float,
    plain: Linearised,
    z: FloatArray,
    bounds: tuple[float, float] | None,
    draws: int,
) -> float:
    """Return the share of a domain's variance that the proxy leaves, as its own labels (m,) have it.

    `draws` counts labels, or clusters where these were drawn.
    """
    if bounds is None:
        return float(remaining_share(plain.design_variance, residual, float(draws)))
    mean = float(np.mean(unit_scale(z, bounds)))
    n = draws
    scale = bounds[1] - bounds[0]
    smooth = (n * mean + LABELS_AT_THE_BOUNDS) / (n + 2.0 * LABELS_AT_THE_BOUNDS)
    possible = smooth * (1.0 - smooth) / n * scale**2
    return float(remaining_share(plain.design_variance, residual, 4.0 * n * mean * (1.0 - mean), possible))


def of_two_sums(
    unit: FloatArray, inside: FloatArray, weighting: Weighting, target: str = "population"
) -> ShareFunctionInterval:
    """Return the mean as a function of what the domain has of the outcome, and what it lacks.

    Trials that are those of all strata know little of one of which a few units are left, and whose labels
    agree: 95% intervals covered .80.
    """
    sums = np.stack([inside * unit, inside * (1.0 - unit)])

    rates = [mean_of(row, weighting, target) for row in sums]
    if target == "population":
        units = weighting.population_size
    else:
        units = np.inf
    return ShareFunctionInterval.of(FirstOfTwo(), rates, cell_correlation(sums, weighting, target), units)


def unit_scale(z: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Return an outcome between bounds on the scale from 0 to 1."""
    return (z - bounds[0]) / (bounds[1] - bounds[0])


def domain_trials(
    z: FloatArray, inside: FloatArray, weighting: Weighting, bounds: tuple[float, float], variance: float
) -> tuple[float, float]:
    """Return the number of independent trials as informative as the domain's labels, and their variance.

    `inside` (n,) is 1 for the units of the domain, and `variance` that of its mean.
    """
    weights = weighting.weights * inside
    label = float(np.sum(weights**2) / np.sum(weights))
    smoothing = smoothed(weighting, np.full(2, label / 2), inside)
    unit = unit_scale(z, bounds)
    both = np.append(unit, [0.0, 1.0])
    counts = np.append(inside, [1.0, 1.0])
    below = float(smoothing.weights @ counts)
    value = float(smoothing.weights @ (counts * both)) / below
    # Borrowed labels must not make the domain look larger than it was found to be.
    hidden = smoothing.variance(counts * (both - value) / below)
    hidden *= max(below / float(np.sum(weights)), 1.0) ** 2
    scale = (bounds[1] - bounds[0]) ** 2
    largest = max(hidden, variance / scale if np.isfinite(variance) else 0.0)
    return value * (1.0 - value) / largest if largest > 0 else np.inf, largest * scale
