"""Means of domains: the whole design is kept, and the outcome is zeroed outside.

The mean of a domain is the ratio of two means over the whole population, of d·z and of d, since the number
of its units in the sample is chance too (Särndal, Swensson & Wretman 1992, section 10.3; Lohr, section 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs import Weighting
from stratal.estimation.estimate import Estimate
from stratal.estimation.linearisation import (
    linearised_estimate,
    ratio_of_means,
    undefined_estimate,
)
from stratal.estimation.shares import OfShares, cell_correlation, mean_of, smoothed
from stratal.intervals.evidence import Evidence
from stratal.intervals.interval import tail_shares
from stratal.intervals.limits import BinomialLimits, Limits, StudentLimits
from stratal.intervals.methods import interval_of
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _OfWholeStrata(Limits):
    """The interval of a domain that is whole strata: that of the mean of these strata alone."""

    evidence: Evidence

    @property
    def method(self) -> str:
        """The name of the method."""
        return "stratified-clopper-pearson"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        found = interval_of(self.evidence, confidence_level, "auto", alternative)
        return self.within(found.low, found.high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _OfFewUnits(Limits):
    """The interval of a domain on effective trials of which some units are left, as of one stratum."""

    rates: StratumRates
    of_shares: OfShares | None

    @property
    def method(self) -> str:
        """The name of the method."""
        return "clopper-pearson"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        lowest, highest = self.bounds or (0.0, 1.0)
        scale = highest - lowest
        ends = stratified_clopper_pearson(self.rates, *tail_shares(confidence_level, alternative))
        low, high = (lowest + scale * float(end) for end in ends)
        if self.of_shares is not None:
            other = self.of_shares.ends(confidence_level, alternative)
            low, high = min(low, lowest + scale * other[0]), max(high, lowest + scale * other[1])
        return self.within(min(low, self.value), max(high, self.value))


def domain_mean(
    z: FloatArray,
    member: BoolArray,
    weighting: Weighting,
    *,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
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

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([40]))
    >>> member = np.array([True, True, True, False])
    >>> found = domain_mean(np.array([1.0, 1.0, 1.0, 0.0]), member, weighting, bounds=(0, 1))
    >>> found.value, found.n, round(found.confidence_interval().low, 2)
    (1.0, 3, 0.3)
    """
    inside = member.astype(np.float64)
    n = int(member.sum())
    result = ratio_of_means(inside * z, inside, weighting, target)
    if n == 0:
        return undefined_estimate(weighting, 0, bounds, "no labelled unit", target=target)
    lost = n / (n - 1) if n > 1 else np.inf
    variance = result.design_variance
    known = variance if np.isfinite(variance) else np.nan
    shown = float(np.sqrt(max(known + result.population_variance, 0.0)))
    freedom = max(min(result.degrees_of_freedom, n - 1.0 if bounds is None else float(n)), 1.0)
    value = float(result.value if bounds is None else np.clip(result.value, *bounds))
    limits: Limits
    if bounds is None:
        wider = variance * lost + result.population_variance if variance > 0 else result.variance
        error = float(np.sqrt(wider)) if n > 1 else np.nan
        limits = StudentLimits(value=value, standard_error=error, degrees_of_freedom=freedom)
    elif (whole := _whole(member, weighting)) is not None:
        evidence = _evidence(z[member], whole, bounds, target)
        limits = _OfWholeStrata(value=value, bounds=bounds, evidence=evidence)
        shown = float(np.sqrt(evidence.reported_variance))
    else:
        binary = bool(np.all(np.isin(z[member], bounds)))
        trials, hidden = domain_trials(z, inside, weighting, bounds, variance if binary else variance * lost)
        drawn = target == "superpopulation"
        if drawn:
            # The domain's own units are as many draws; that all of them agree does not make them more.
            of_domain = float(weighting.weights @ inside) / weighting.total * weighting.population_size
            trials = 1.0 / (1.0 / trials + 1.0 / of_domain)
        if not drawn and np.isfinite(trials) and weighting.random_within_strata:
            limits = _of_few_units(value, z, inside, weighting, trials, bounds)
        else:
            limits = BinomialLimits(value=value, bounds=bounds, trials=trials)
        shown = shown if shown > 0 else float(np.sqrt(hidden))
    return linearised_estimate(
        replace(result, value=value),
        weighting,
        limits=limits,
        bounds=bounds,
        target=target,
        n=n,
        standard_error=shown,
        degrees_of_freedom=freedom,
    )


def _whole(member: BoolArray, weighting: Weighting) -> Weighting | None:
    """Return the weighting of the domain's units alone, where these are all the units of their strata."""
    if not weighting.random_within_strata:
        return None
    return weighting if np.all(member) else weighting.whole_strata(member)


def _evidence(z: FloatArray, weighting: Weighting, bounds: tuple[float, float], target: str) -> Evidence:
    """Return what the interval methods see of the mean of whole strata, λ = 0."""
    extra = 0.0
    if target == "superpopulation":
        extra = float(weighting.population_covariance(z[:, None])[0, 0])
    return Evidence(
        value=float(np.clip(weighting.mean(z[:, None])[0], *bounds)),
        variance=float(weighting.covariance(z[:, None])[0, 0]) + extra,
        population_part=extra,
        degrees_of_freedom=weighting.degrees_of_freedom(z),
        outcome="binary" if bounds == (0.0, 1.0) and bool(np.all(np.isin(z, bounds))) else "bounded",
        bounds=bounds,
        z=z,
        residuals=z,
        known=0.0,
        weighting=weighting,
        tuned=False,
        superpopulation=target == "superpopulation",
    )


def _of_few_units(
    value: float,
    z: FloatArray,
    inside: FloatArray,
    weighting: Weighting,
    trials: float,
    bounds: tuple[float, float],
) -> _OfFewUnits:
    """Return the interval on so many trials, among as many units as the domain is likely to have."""
    of_domain = float(weighting.weights @ inside) / weighting.total
    units = float(np.ceil(weighting.population_size * of_domain - 1e-9))
    left = max(1.0 - float(inside.sum()) / units, 1.0 / units)
    unit = np.clip(unit_scale(np.asarray(value), bounds), 0.0, 1.0)
    rates = StratumRates(
        value=np.asarray(unit),
        rates=np.array([unit]),
        counts=np.array([trials * left]),
        trials=np.array([trials]),
        shares=np.ones(1),
        units=units,
    )
    several = np.sum(weighting.counts > 0) > 1
    of_shares = _of_two_sums(unit_scale(z, bounds), inside, weighting) if several else None
    return _OfFewUnits(value=value, bounds=bounds, rates=rates, of_shares=of_shares)


def _of_two_sums(unit: FloatArray, inside: FloatArray, weighting: Weighting) -> OfShares:
    """Return the mean as a function of what the domain has of the outcome, and what it lacks.

    Trials that are those of all strata know little of one of which a few units are left, and whose labels
    agree: 95 % intervals covered .80.
    """
    sums = np.stack([inside * unit, inside * (1.0 - unit)])

    def of_sums(shares: FloatArray) -> FloatArray:
        both = shares[0] + shares[1]
        return np.asarray(np.where(both > 0, shares[0] / np.where(both > 0, both, 1.0), np.nan))

    rates = [mean_of(row, weighting) for row in sums]
    return OfShares.of(
        of_sums, rates, cell_correlation(sums, weighting), np.full(2, weighting.population_size)
    )


def unit_scale(z: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Return an outcome between bounds on the scale from 0 to 1.

    Examples
    --------
    >>> unit_scale(np.array([1.0, 3.0, 5.0]), (1.0, 5.0)).tolist()
    [0.0, 0.5, 1.0]
    """
    return (z - bounds[0]) / (bounds[1] - bounds[0])


def domain_trials(
    z: FloatArray, inside: FloatArray, weighting: Weighting, bounds: tuple[float, float], variance: float
) -> tuple[float, float]:
    """Return the number of independent trials as informative as the domain's labels, and their variance.

    `inside` (n,) is 1 for the units of the domain, and `variance` that of its mean.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([400]))
    >>> domain_trials(np.array([0.0, 1, 1, 1]), np.ones(4), weighting, (0.0, 1.0), 0.0625)[0] < 4
    True
    """
    weights = weighting.weights * inside
    label = float(np.sum(weights**2) / np.sum(weights))
    smoothing = smoothed(weighting, np.full(2, label / 2), inside)
    unit = unit_scale(z, bounds)
    units, pseudo = smoothing.unit_weights * inside, smoothing.pseudo_weights
    below = float(units.sum() + pseudo.sum())
    value = float(units @ unit + pseudo @ np.array([0.0, 1.0])) / below
    hidden = smoothing.variance(inside * (unit - value) / below, (np.array([0.0, 1.0]) - value) / below)
    # Borrowed labels must not make the domain look larger than it was found to be.
    hidden *= max(below / float(np.sum(weights)), 1.0) ** 2
    scale = (bounds[1] - bounds[0]) ** 2
    largest = max(hidden, variance / scale if np.isfinite(variance) else 0.0)
    return value * (1.0 - value) / largest if largest > 0 else np.inf, largest * scale
