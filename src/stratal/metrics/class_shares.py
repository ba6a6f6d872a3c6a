"""Intervals of metrics of a class from a few shares: two rates, or three cells of the confusion matrix.

Answers are those of the model. If every stratum has only units that are answered with the class, or none,
the shares are two rates of the class (`rates_interval`). Otherwise they are cells (`cells_interval`). The
strata may also exclude answers (`possible_answers`), and the counted answers bound a metric
(`CountedAnswersInterval`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record, code_count
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.mover import ShareFunctionInterval, limits_of_function
from stratal.estimation.respondents import Respondents
from stratal.estimation.share_estimates import cell_correlation, share_estimate, share_in_strata
from stratal.estimation.share_functions import CellsOfClass, MetricOfShares, RatesOfClass, split_rates
from stratal.intervals.interval import Interval, error_probabilities
from stratal.intervals.interval_types import BinomialInterval, Term
from stratal.population.rules import possible_levels


def rates_interval(
    metric: MetricOfShares,
    is_class: AnyArray,
    answered_strata: BoolArray,
    weighting: Weighting,
    target: str = "population",
    needs: tuple[bool, bool] = (True, True),
) -> ShareFunctionInterval:
    """Return the interval of a metric that depends on two rates of a class: of its answers, and of others.

    Parameters
    ----------
    metric : MetricOfShares
        A function of the shares of hits, of misses and of answers with the class.
    is_class : (n,)
        Whether the labelled units are of the class.
    answered_strata : bool (H,)
        Strata in which all units are answered with the class. In other strata, no unit is.
    weighting : Weighting
        The weighting of labels that are drawn at random within strata.
    target : {"population", "superpopulation"}
        For a superpopulation, the share of answers is also estimated.
    needs : (bool, bool)
        Whether the metric depends on hits and on misses; precision depends only on hits.
    """
    is_labelled = weighting.counts > 0
    strata_of_rates = [strata & is_labelled for strata in (answered_strata, ~answered_strata)]
    sizes = [float(np.sum(weighting.sizes[strata])) for strata in strata_of_rates]
    answered_share = sizes[0] / sum(sizes)
    indicator = np.asarray(is_class, np.float64)
    rates: list[Term] = [
        share_in_strata(indicator, strata, weighting, target)
        for strata, is_needed in zip(strata_of_rates, needs, strict=True)
        if is_needed
    ]
    if target == "superpopulation" and all(needs):
        # The N units are a sample of the superpopulation, and their share of answers is an estimate.
        rates.append(BinomialInterval(value=answered_share, trials=sum(sizes)))
    # Numbers of units of which the rates are shares. Limits of a rate that are whole numbers of units are
    # moved outwards by half a unit (`move_limits_outwards`). The limits for a superpopulation, and those with
    # replacement, are no whole numbers and stay as they are: for them, the number of units is infinite.
    units: FloatArray | float = np.inf
    if target == "population" and not weighting.with_replacement:
        units = np.array([size for size, is_needed in zip(sizes, needs, strict=True) if is_needed])
    function = RatesOfClass(metric=metric, needs=needs, answered=answered_share)
    return ShareFunctionInterval.of(function, rates, units=units)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatesInStrata(Record):
    """A metric of a class, which in every sample from the same strata is a function of rates of the class.

    d is the number of rates, and R that of simulated samples.

    Parameters
    ----------
    metric : MetricOfShares
    is_class : bool (N,)
        Whether the units are of the class.
    answered_strata, needs
        As for `rates_interval`.
    """

    metric: MetricOfShares
    is_class: BoolArray
    answered_strata: BoolArray
    needs: tuple[bool, bool]

    @property
    def sides(self) -> tuple[BoolArray, ...]:
        """The strata (H,) of each rate that the metric depends on."""
        strata_of_rates = (self.answered_strata, ~self.answered_strata)
        return tuple(
            strata for strata, is_needed in zip(strata_of_rates, self.needs, strict=True) if is_needed
        )

    def value_and_slopes(self, rates: FloatArray, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the metric (R,) and its slopes (d, R) at rates (d, R), in strata of these sizes (H,)."""
        share = self._answered_share(sizes)
        hits, misses = split_rates(rates, self.needs)
        cells = (hits * share, misses * (1.0 - share), share)
        hit_slope, miss_slope = self.metric.slopes(*cells)
        slopes_of_rates = (hit_slope * share, miss_slope * (1.0 - share))
        slopes = [slope for slope, is_needed in zip(slopes_of_rates, self.needs, strict=True) if is_needed]
        return np.asarray(self.metric(*cells)), np.stack(slopes)

    def ends(
        self, rates: FloatArray, low: FloatArray, high: FloatArray, sizes: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends (R,) of the metric's interval, from the rates and their limits (d, R)."""
        function = RatesOfClass(metric=self.metric, needs=self.needs, answered=self._answered_share(sizes))
        units = np.array([[float(sizes[side].sum())] for side in self.sides])
        return limits_of_function(function, rates, low, high, units, np.eye(len(rates)))

    def _answered_share(self, sizes: IntArray) -> float:
        """Return the share of units that are answered with the class."""
        return float(sizes[self.answered_strata].sum() / sizes.sum())


def cells_interval(
    metric: MetricOfShares,
    is_class: BoolArray,
    is_answered: BoolArray,
    weighting: Weighting,
    target: str = "population",
    member: BoolArray | None = None,
) -> ShareFunctionInterval:
    """Return the interval of a metric of two classes from the three rarest cells of the confusion matrix.

    The share of the largest cell is 1 minus those of the others. For a rare class these are hits, misses and
    false alarms: three small counts, which are nearly independent.

    Parameters
    ----------
    metric : MetricOfShares
        As for `rates_interval`.
    is_class, is_answered : bool (n,)
        Whether the labelled units are of the class, and whether they are answered with it.
    weighting : Weighting
    target : {"population", "superpopulation"}
    member : bool (n,), optional
        The units of a domain, of which the cells are shares. Default: all units.
    """
    hits = is_class & is_answered
    misses = is_class & ~is_answered
    false_alarms = ~is_class & is_answered
    cells = np.stack([hits, misses, false_alarms, ~is_class & ~is_answered]).astype(float)
    inside = np.ones(len(is_class)) if member is None else member.astype(float)
    largest = int(np.argmax(cells * inside @ weighting.weights))
    others = [j for j in range(4) if j != largest]
    if member is None:
        shares = [share_estimate(cells[j], weighting, target) for j in others]
    else:
        shares = [domain_mean(cells[j], member, weighting, bounds=(0.0, 1.0), target=target) for j in others]
    # Limits are moved outwards as in `rates_interval`, but also with replacement, where this is not needed
    # and makes the interval slightly wider.
    units = np.inf
    if target == "population":
        units = weighting.population_size * float(inside @ weighting.weights) / weighting.total
    function = CellsOfClass(metric=metric, largest=largest)
    correlation = cell_correlation(cells[others] * inside, weighting, target)
    return ShareFunctionInterval.of(function, shares, correlation, units)


# Number of points between the limits of a share at which a metric is computed.
_N_GRID_POINTS = 33


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedAnswersInterval(Interval):
    """A metric of two classes, limited to the values that are possible with a known share of an answer.

    The share of misses is within its interval. The share of hits is at least its lower limit. It is at most
    the share of the answer minus the lower limit of the false alarms. This is used instead of its upper
    limit, which is far from the estimate if many strata have no label of a rare cell.

    Parameters
    ----------
    inner : Interval
    metric : MetricOfShares
    hits, false_alarms : Term
        Estimated shares, with intervals, of units with the answer that are of the class, and that are not.
    misses : Term
        Share of units of the class that have the other answer.
    answered : float
        Share of the population's units with the answer.
    """

    inner: Interval
    metric: MetricOfShares
    hits: Term
    false_alarms: Term
    misses: Term
    answered: float

    @property
    def method(self) -> str:
        """The name of the method of the inner interval."""
        return self.inner.method

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        low, high = self.inner.ends(confidence_level, alternative)
        # On each side, the limits of a cell use half of the error probability, in addition to the inner
        # interval, which uses all of it. The coverage was nevertheless 0.94 or more in the most difficult
        # populations (docs/decisions/0011).
        level = 1.0 - max(error_probabilities(confidence_level, alternative))
        miss_limits = self.misses.confidence_interval(level)
        misses = np.linspace(miss_limits.low, min(miss_limits.high, 1.0 - self.answered), _N_GRID_POINTS)
        fewest_hits = min(self.hits.confidence_interval(level).low, self.answered)
        most_hits = self.answered - min(self.false_alarms.confidence_interval(level).low, self.answered)
        # The lower limits may add up to more units than have the answer, so that no hits are between the
        # limits. The range therefore always contains the expected hits. Because these do not depend on the
        # level, the interval of a higher level contains that of a lower level, as p-values require.
        expected_hits = self._expected_hits
        hits = np.linspace(min(fewest_hits, expected_hits), max(most_hits, expected_hits), _N_GRID_POINTS)
        possible_values = self.metric(hits[:, None], misses[None], self.answered)
        if not np.all(np.isfinite(possible_values)):
            return low, high
        low = max(low, float(possible_values.min()))
        high = min(high, float(possible_values.max()))
        return min(low, float(self.value)), max(high, float(self.value))

    @property
    def _expected_hits(self) -> float:
        """The share of hits if the units with the answer are hits as often as their labels."""
        labelled_answers = self.hits.value + self.false_alarms.value
        # Without such labels, every share is possible.
        precision = self.hits.value / labelled_answers if labelled_answers > 0 else 0.5
        return float(self.answered * precision)


def possible_answers(
    sample: Sample, respondents: Respondents, column: str | None, levels: list[str], predicted: IntArray
) -> BoolArray | None:
    """Return which answers are possible in each stratum of the labelled units (H, K + 1) by its rule.

    The last column is for answers that are not among the K levels. None if the rule allows every answer, or
    if the answers `predicted` (m,) contradict it.
    """
    strata = sample.design.strata
    if strata is None or column is None or not respondents.weighting.random_within_strata:
        return None
    possible = possible_levels(strata.rule, column, tuple(levels))
    return possible_in_strata_of(respondents, possible, predicted)


def possible_in_strata_of(
    respondents: Respondents, possible: BoolArray, predicted: IntArray
) -> BoolArray | None:
    """Return which answers (H, K + 1) are possible in the strata of the respondents, which may be merged.

    None if every answer is possible, or if the answers `predicted` (m,) contradict it.
    """
    if np.all(possible):
        return None
    if respondents.kept_strata is not None:
        possible = possible[respondents.kept_strata]
    # `codes` has the merged stratum of each stratum. It has every answer that one of its strata has.
    if respondents.codes is not None:
        merged = np.zeros((code_count(respondents.codes), possible.shape[1]), dtype=bool)
        np.logical_or.at(merged, respondents.codes, possible)
        possible = merged
    if len(possible) != len(respondents.weighting.sizes) or not np.all(
        possible[respondents.stratum, predicted]
    ):
        return None
    return possible
