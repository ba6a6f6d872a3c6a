"""Two models on the same labelled units: the difference, the win rate and the ratio of their outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, Record
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate
from stratal.estimation.lam import ProxyMoments
from stratal.estimation.linearisation import (
    Linearised,
    linearised_estimate,
    of_variable,
    ratio_of_means,
    undefined_estimate,
)
from stratal.estimation.mean import MINIMUM_FOR_FITTING, MeanEstimate, mean_estimate
from stratal.estimation.outcome_means import estimate_mean
from stratal.estimation.respondents import Respondents
from stratal.intervals.evidence import design_effect
from stratal.intervals.limits import Limits, Margins, Student, Sum, Term, nothing_varies
from stratal.intervals.proportion import student_quantile
from stratal.population.expressions import Agree
from stratal.population.rules.derived import Derived
from stratal.population.summary import StratumSummary
from stratal.sampling.sample import Sample
from stratal.weighting import Weighting
from stratal.weighting.stratum_moments import stratum_means

_STEPS = 50
"""Most steps of Newton's method from the labels' ratio to that with proxies; some five are enough."""

_SOLVED = 1e-13
"""Relative step at which it ends: the ratio of the swapped models is then the reciprocal, with its limits."""

_SIGNIFICANT = 2.0
"""Standard errors from 0 at which a correlation counts as one."""

_MEANINGLESS = 1e6
"""A limit that many times the ratio says only that there is none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelPair(Record):
    """The outcomes of two models on the same labelled units.

    Parameters
    ----------
    sample : Sample
    frame : Respondents
        Of the units that count: where two models answer alike, their difference is known.
    labelled : bool (n,)
    first, second : float (m,)
        Outcomes of the labelled units.
    models : (str, str)
    target : {"population", "superpopulation"}
    bounds : (float, float), optional
        Of the outcomes.
    slopes : float (2, k), optional
        What of the sample's proxies predicts either model's outcome; None for none.
    fitting : mapping
        How λ is found for a contrast, where that is not as usual: `estimator`, `lam`, `clip`, `folds`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 50)
    >>> sample = stratal.SimpleRandom(budget=5).draw(population, seed=7)
    >>> everyone = np.ones(5, dtype=bool)
    >>> pair = ModelPair(sample=sample, frame=Respondents.of(sample, everyone), labelled=everyone,
    ...                  first=np.array([1.0, 1, 1, 1, 0]), second=np.array([1.0, 1, 1, 0, 0]), bounds=(0, 1))
    >>> pair.difference().value, pair.win_rate().value, round(pair.ratio().value, 2)
    (0.2, 0.6, 1.33)
    """

    sample: Sample
    frame: Respondents
    labelled: BoolArray
    first: FloatArray
    second: FloatArray
    models: tuple[str, str] = ("first", "second")
    target: str = "population"
    bounds: tuple[float, float] | None = None
    slopes: FloatArray | None = None
    fitting: Mapping[str, Any] = field(default_factory=dict)

    def difference(self) -> Estimate:
        """Return the mean of the first less the second."""
        most = None if self.bounds is None else float(self.bounds[1] - self.bounds[0])
        ends = None if most is None else (-most, most)
        slopes = self._usable(1.0)
        proxy = None if slopes is None else contrast_proxy(self, slopes[0] - slopes[1])
        net_wins = 0.0 if proxy is None and self.right_or_wrong else None
        return replace(self._mean_of(self.first - self.second, ends, proxy, net_wins), null=0.0)

    def win_rate(self) -> Estimate:
        """Return the share of units on which the first is better; a tie counts half."""
        slopes = self._usable(1.0)
        proxy = None if slopes is None else contrast_proxy(self, 0.5 * (slopes[0] - slopes[1]), 0.5)
        wins = 0.5 + 0.5 * np.sign(self.first - self.second)
        return self._mean_of(wins, (0.0, 1.0), proxy, 0.5 if proxy is None else None)

    def ratio(self) -> Estimate:
        """Return the ratio of the means."""
        weighting, first, second = self.frame.weighting, self.first, self.second
        plain = ratio_of_means(first, second, weighting, self.target)
        if not (np.isfinite(plain.value) and plain.value > 0):
            why = "the mean outcome of a model is 0"
            return undefined_estimate(weighting, len(first), (0.0, np.inf), why, target=self.target)
        slopes = self._usable(self._ratio_of_proxies)
        result = plain if slopes is None else _tuned_ratio(self, plain, slopes)
        # Proxies move the ratio from the labels'. Both means are then moved by one factor, in opposite
        # directions, so that the limits of the swapped models' ratio are the reciprocals.
        means = weighting.mean(np.column_stack([first, second]))
        hidden = self._unseen_of_ratio(result.value, float(np.sqrt(means[0] * means[1] / result.value)))
        freedom = np.inf if weighting.census else max(result.degrees_of_freedom, 1.0)
        limits = _RatioLimits(
            value=result.value,
            bounds=(0.0, np.inf),
            error=float(np.sqrt(max(result.variance, 0.0) + hidden)),
            degrees_of_freedom=freedom,
            means=None if self.bounds is None else (self.mean(first), self.mean(second)),
        )
        return linearised_estimate(
            result,
            weighting,
            limits=limits,
            bounds=(0.0, np.inf),
            target=self.target,
            degrees_of_freedom=freedom,
        )

    @property
    def alone(self) -> bool:
        """Whether one unit is labelled, of outcomes without bounds: no error of their means is known."""
        return self.bounds is None and len(self.first) == 1

    @property
    def right_or_wrong(self) -> bool:
        """Every outcome is 0 or 1."""
        z = np.column_stack([self.first, self.second])
        return self.bounds is not None and tuple(self.bounds) == (0, 1) and bool(np.all((z == 0) | (z == 1)))

    @property
    def _ratio_of_proxies(self) -> float:
        """The ratio that the proxies predict."""
        if self.slopes is None:
            return 1.0
        first, second = self.slopes @ self.frame.summary.overall_means
        return float(first / second) if second > 0 else 1.0

    def _usable(self, share_of_second: float) -> FloatArray | None:
        """Return the slopes where there are labels to fit λ by, and strata leave something to explain."""
        if self.slopes is None or (len(self.first) < MINIMUM_FOR_FITTING and not self.fitting):
            return None
        lean = self.slopes[0] - share_of_second * self.slopes[1]
        pays = bool(self.fitting) or _left_by_strata(self, lean)
        return self.slopes if np.any(lean) and pays else None

    def mean(self, z: FloatArray, **options: Any) -> Estimate:
        """Return the mean of a column of the labelled units, without a proxy."""
        return estimate_mean(
            z,
            np.zeros((len(z), 0)),
            self.frame.weighting,
            None,
            stratum=self.frame.stratum,
            **{"target": self.target, "bounds": self.bounds, "design": self.sample.design.kind, **options},
        )

    def _mean_of(
        self,
        z: FloatArray,
        bounds: tuple[float, float] | None,
        proxy: tuple[FloatArray, StratumSummary] | None,
        net_wins: float | None,
    ) -> Estimate:
        """Return the mean of a contrast z within `bounds` over all units, with an interval of its own.

        Units that have no label as the contrast is known there are in the middle of the bounds. `net_wins`
        is the value of a tie where the interval is made of those of wins and losses.
        """
        frame, sample = self.frame, self.sample
        if self.alone:
            single = of_variable(float(z[0]), np.zeros(1), frame.weighting, self.target)
            return frame.complete(linearised_estimate(single, frame.weighting, target=self.target), sample)
        if self.target != "population" and frame.share < 1:
            raise InputError(
                "strata without labels are known for these units, not for others",
                given=f"target={self.target!r}",
                allowed="'population'",
            )
        left_out = 0.0 if bounds is None else (bounds[0] + bounds[1]) / 2.0
        known = (1.0 - frame.share) * left_out
        values, summary = (
            (np.zeros((len(z), 0)), None) if proxy is None else _scaled(*proxy, frame.share, known)
        )
        ends = None if bounds is None else tuple(known + frame.share * end for end in bounds)
        found = estimate_mean(
            known + frame.share * z,
            values,
            frame.weighting,
            summary,
            stratum=frame.stratum,
            **{
                "estimator": "auto" if proxy is None else "ppi++",
                "target": self.target,
                "bounds": ends,
                "outcome": "unbounded" if bounds is None else "bounded",
                "design": sample.design.kind,
                "stratum_names": frame.names,
                "drawn": sample.size,
                "notes": frame.notes,
                **self.fitting,
            },
        )
        limits = contrast_limits(found) if net_wins is None else self._net_wins(found, net_wins)
        found = replace(found, evidence=replace(found.evidence, own=limits))
        if frame.share == 1:
            return found
        square = frame.share * float(frame.weighting.mean(z[:, None] ** 2)[0]) + known * left_out
        spread = max(square - found.value**2, 0.0)
        effect, effective = design_effect(found.standard_error**2, spread, len(z), sample.population_size)
        return replace(
            found,
            population_size=sample.population_size,
            design_effect=effect,
            effective_sample_size=effective,
        )

    def _net_wins(self, found: Estimate, tie: float) -> Limits:
        """Return the limits of wins less losses, made of those of these two shares."""
        frame, sides = self.frame, (self.first > self.second, self.first < self.second)
        terms = tuple(self.mean(side.astype(np.float64), outcome="binary", bounds=None) for side in sides)
        covariance = frame.weighting.covariance(np.column_stack(sides).astype(np.float64))
        own = np.diag(covariance)
        shared = covariance[0, 1] / np.sqrt(own[0] * own[1]) if np.all(own > 0) else 0.0
        reach = (1.0 - tie) * frame.share
        return Sum(
            value=found.value,
            bounds=found.bounds,
            terms=terms,
            coefficients=np.array([reach, -reach]),
            correlation=np.array([[1.0, shared], [shared, 1.0]]),
        )

    def _unseen_of_ratio(self, value: float, below: float) -> float:
        """Return the variance of a ratio due to units that are unlike any labelled one.

        Where the strata know in which units both models answer alike, only the others can differ.
        """
        if self.bounds is None:
            return 0.0
        low, high = self.bounds
        weighting, contrast = self.frame.weighting, self.first - self.second
        ends = np.array([high - value * low, low - value * high]) / below
        rule = getattr(getattr(self.sample.design, "strata", None), "rule", None)
        same = Agree(names=tuple(sorted(self.models)))
        if isinstance(rule, Derived) and same in rule.cells.tests:
            groups = {name: self.sample.groups[name][self.labelled] for name in self.models}
            differ = np.asarray(same.of(groups) == 0)
            among = weighting.whole_strata(differ)
            if among is not None:
                share = among.population_size / weighting.population_size
                return unseen_pair(contrast[differ], among, ends * share)
        return unseen_pair(contrast, weighting, ends)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RatioLimits(Margins):
    """Limits of a ratio of two positive means: Student's t on the logarithm.

    With few labels the exponential of t · SE grows beyond all meaning (to 6e33). A limit is therefore no
    farther than the ratio of the two means' own limits, each with half the error (Bonferroni), which is
    finite where the outcome has bounds; without bounds it is infinite from a million times the ratio on.
    """

    error: float
    degrees_of_freedom: float
    means: tuple[Term, Term] | None

    @property
    def method(self) -> str:
        """The name of the method."""
        return "log-t"

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the ratio."""
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
    low, high = mean.confidence_interval(1.0 - error / 2.0, alternative=alternative)
    return max(low, 0.0) if alternative == "greater" else high


def contrast_limits(found: Estimate) -> Student:
    """Return Student's limits of a mean contrast, guarded against pairs that no label was like."""
    seen, weighting = found.evidence, found.evidence.weighting
    variance = float(weighting.covariance(seen.residuals[:, None])[0, 0])
    if found.target == "superpopulation":
        variance += float(weighting.population_covariance(seen.z[:, None])[0, 0])
    census = len(weighting.weights) >= weighting.population_size and variance == 0
    if found.bounds is not None and not census:
        low, high = found.bounds
        reach = (high - low) / 2.0
        hidden = unseen_pair(seen.z, weighting, np.array([reach, -reach]))
        variance = (variance if np.isfinite(variance) else reach**2) + hidden
    return Student(
        value=found.value,
        bounds=found.bounds,
        standard_error=float(np.sqrt(max(variance, 0.0))),
        degrees_of_freedom=np.inf if census else max(weighting.degrees_of_freedom(seen.residuals), 1.0),
    )


def unseen_pair(contrast: FloatArray, weighting: Weighting, ends: FloatArray) -> float:
    """Return the variance of one pair won and one lost that were not seen, as Bonett & Price (2012) add.

    It counts as far as the differences agree (ties, as a rule); where they vary by themselves there is none.
    `ends` (2,) is what either pair adds to the variable whose mean is estimated.
    """
    weights = weighting.weights
    label = float(np.sum(weights**2) / np.sum(weights))
    _, which = np.unique(contrast, return_inverse=True)
    agreeing = float(np.max(np.bincount(which, weights)) / np.sum(weights))
    unlabelled = max(1.0 - len(weights) / weighting.population_size, 0.0)
    return float(np.sum(ends**2)) * label**2 * agreeing * unlabelled


def contrast_proxy(
    pair: ModelPair, slopes: FloatArray, constant: float = 0.0
) -> tuple[FloatArray, StratumSummary]:
    """Return a linear combination of the proxies: of the labelled units (m, 1), and of each stratum."""
    whole = pair.frame.summary
    return constant + (pair.sample.proxies[pair.labelled] @ slopes)[:, None], StratumSummary(
        sizes=whole.sizes,
        proxy_means=constant + (whole.proxy_means @ slopes)[:, None],
        proxy_covariances=np.einsum("i,hij,j->h", slopes, whole.proxy_covariances, slopes)[:, None, None],
    )


def _moments(pair: ModelPair, slopes: FloatArray) -> ProxyMoments:
    values, summary = contrast_proxy(pair, slopes)
    return ProxyMoments(
        values=values,
        stratum=pair.frame.stratum,
        sizes=summary.sizes,
        means=summary.proxy_means,
        covariances=summary.proxy_covariances,
    )


def _left_by_strata(pair: ModelPair, slopes: FloatArray) -> bool:
    """Return whether strata leave enough of the proxies' variance for a fitted λ to pay."""
    sample, weighting, summary = pair.sample, pair.frame.weighting, pair.frame.summary
    used = np.flatnonzero(slopes)
    bounds = [sample.proxy_info[k].bounds for k in used]
    n_strata = len(summary.sizes)
    if n_strata == 1 or not bounds or None in bounds or not weighting.random_within_strata:
        return True
    values = sample.proxies[pair.labelled][:, used]
    low, high = np.array(bounds, dtype=np.float64).T
    unknown = ((values - low) * (high - values)) @ slopes[used] ** 2
    factors, moments = weighting.variance_factors, _moments(pair, slopes)
    explained = float(factors @ moments.unbiased_covariances[:, 0, 0])
    stratum = pair.frame.stratum
    unexplained = float(factors @ stratum_means(unknown[:, None], stratum, n_strata)[:, 0])
    share = explained / (explained + unexplained) if explained > 0 else 0.0
    return share * (len(unknown) - n_strata - 1) > _SIGNIFICANT**2


def _scaled(
    values: FloatArray, summary: StratumSummary, share: float, known: float
) -> tuple[FloatArray, StratumSummary]:
    """Return a proxy over the units that count as one over all: a share of it, and what is known."""
    return known + share * values, replace(
        summary,
        proxy_means=known + share * summary.proxy_means,
        proxy_covariances=share**2 * summary.proxy_covariances,
    )


def _tuned_ratio(pair: ModelPair, plain: Linearised, slopes: FloatArray) -> Linearised:
    """Return the ratio at which the mean of first − ratio · second, with the proxies' help, is 0."""
    frame = pair.frame

    def mean(z: FloatArray, slope: FloatArray, lam: FloatArray | None = None) -> MeanEstimate:
        return mean_estimate(
            z,
            _moments(pair, slope),
            weighting=frame.weighting,
            estimator="ppi++",
            lam=lam,
            target=pair.target,
        )

    found = plain
    for _ in range(_STEPS):
        if not 0 < found.value < math.inf:
            return plain
        gap = mean(pair.first - found.value * pair.second, slopes[0] - found.value * slopes[1])
        below = mean(pair.second, slopes[1], gap.lam).value
        if below <= 0:
            return plain
        step = gap.value / below
        found = Linearised(
            value=found.value + step,
            variable=gap.residuals / below,
            design_variance=gap.design_variance / below**2,
            population_variance=gap.population_variance / below**2,
            degrees_of_freedom=gap.degrees_of_freedom,
        )
        if abs(step) <= _SOLVED * found.value:
            break
    return found if found.value > 0 else plain


def bounds_of_outcomes(sample: Sample, z: FloatArray) -> tuple[float, float] | None:
    """Return the bounds of models' outcomes: the sample's, or 0 to 1 where all are 0, ½ or 1."""
    known = sample.bounds
    if known is not None and np.all((z >= known[0]) & (z <= known[1])):
        return known
    halves = bool(np.all(np.isin(z, (0.0, 0.5, 1.0))))
    return (0.0, 1.0) if halves and sample.outcome != "unbounded" else None
