"""The difference of two models' outcomes with the proxies of both: λ fitted to the difference of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.estimation.estimate import Estimate
from stratal.estimation.lam import ProxyMoments
from stratal.estimation.linearisation import Linearised, ratio_of_means
from stratal.estimation.mean import MeanEstimate, mean_estimate
from stratal.estimation.model_pairs import ModelPair, RatioReach, quantity_of
from stratal.estimation.paired import paired_differences, unseen_pair
from stratal.estimation.quantity import Quantity
from stratal.estimation.respondents import Respondents
from stratal.population.expressions import Agree
from stratal.population.rules.derived import Derived
from stratal.population.summary import StratumSummary
from stratal.sampling.sample import Sample
from stratal.weighting.stratum_moments import stratum_means

_STEPS = 50
"""Most steps of Newton's method from the labels' ratio to that with proxies; some five are enough."""

_SOLVED = 1e-13
"""Relative step at which it ends: the ratio of the swapped models is then the reciprocal, with its limits."""

_TOLD = 2.0
"""Standard errors from 0 at which a correlation is told from none."""


def contrast_proxy(
    sample: Sample, frame: Respondents, labelled: BoolArray, slopes: FloatArray, constant: float = 0.0
) -> tuple[FloatArray, StratumSummary]:
    """Return a linear combination of the proxies: of the labelled units (m, 1), and of each stratum.

    Parameters
    ----------
    sample : Sample
    frame : Respondents
    labelled : bool (n,)
    slopes : float (k,)
        What it takes of each proxy: 1 and −1 for a difference.
    constant : float
        What it is where the proxies are 0.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy={"p": [0.5, 0.75], "q": [0.25, 0.25]})
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> everyone = np.ones(2, dtype=bool)
    >>> frame = Respondents.of(sample, everyone)
    >>> values, summary = contrast_proxy(sample, frame, everyone, np.array([1.0, -1.0]))
    >>> sorted(values.ravel().tolist()), summary.proxy_means.tolist()
    ([0.25, 0.5], [[0.375]])
    """
    whole = frame.summary
    return constant + (sample.proxies[labelled] @ slopes)[:, None], StratumSummary(
        sizes=whole.sizes,
        proxy_means=constant + (whole.proxy_means @ slopes)[:, None],
        proxy_covariances=np.einsum("i,hij,j->h", slopes, whole.proxy_covariances, slopes)[:, None, None],
    )


def contrast_moments(
    sample: Sample, frame: Respondents, labelled: BoolArray, slopes: FloatArray
) -> ProxyMoments:
    """Return a linear combination of the proxies as estimators of a mean take it; see `contrast_proxy`."""
    values, summary = contrast_proxy(sample, frame, labelled, slopes)
    return ProxyMoments(
        values=values,
        stratum=frame.stratum,
        sizes=summary.sizes,
        means=summary.proxy_means,
        covariances=summary.proxy_covariances,
    )


def left_by_strata(sample: Sample, frame: Respondents, labelled: BoolArray, slopes: FloatArray) -> bool:
    """Return whether the strata leave enough of a combination of the proxies for a fitted λ to pay.

    Within H strata it takes a correlation with the outcome that n labels can tell from 0: above twice
    1/√(n − H − 1). Here it is that of proxies which are right, so that no label decides; strata that were
    made of the proxies leave less. In one stratum, and where nothing bounds what a proxy predicts, λ is
    fitted.

    Parameters
    ----------
    sample, frame, labelled, slopes
        As for `contrast_proxy`.

    Examples
    --------
    >>> import stratal
    >>> chances = np.linspace(0, 1, 1000)
    >>> population = stratal.Population.from_arrays(proxy=chances, groups={"half": ["a", "b"] * 500})
    >>> def left(sample):
    ...     everyone = np.ones(sample.size, dtype=bool)
    ...     return left_by_strata(sample, Respondents.of(sample, everyone), everyone, np.ones(1))
    >>> left(stratal.plan(population, 60).draw(seed=7))
    False
    >>> left(stratal.plan(population, 60, method="category", by="half").draw(seed=7))
    True
    """
    weighting, summary = frame.weighting, frame.summary
    used = np.flatnonzero(slopes)
    bounds = [sample.proxy_info[k].bounds for k in used]
    n_strata = len(summary.sizes)
    if n_strata == 1 or not bounds or None in bounds or not weighting.random_within_strata:
        return True
    values = sample.proxies[labelled][:, used]
    low, high = np.array(bounds, dtype=np.float64).T
    unknown = ((values - low) * (high - values)) @ slopes[used] ** 2
    factors, moments = weighting.variance_factors, contrast_moments(sample, frame, labelled, slopes)
    explained = float(factors @ moments.unbiased_covariances[:, 0, 0])
    unexplained = float(factors @ stratum_means(unknown[:, None], frame.stratum, n_strata)[:, 0])
    told = explained / (explained + unexplained) if explained > 0 else 0.0
    return told * (len(unknown) - n_strata - 1) > _TOLD**2


def scaled(
    values: FloatArray, summary: StratumSummary, share: float, known: float = 0.0
) -> tuple[FloatArray, StratumSummary]:
    """Return a proxy (m, 1) and its summary times a share, beside what is known of the rest.

    Examples
    --------
    >>> one = StratumSummary(
    ...     sizes=np.array([2]), proxy_means=np.ones((1, 1)), proxy_covariances=np.ones((1, 1, 1)))
    >>> scaled(np.ones((1, 1)), one, 0.5)[1].proxy_covariances.tolist()
    [[[0.25]]]
    """
    return known + share * values, replace(
        summary,
        proxy_means=known + share * summary.proxy_means,
        proxy_covariances=share**2 * summary.proxy_covariances,
    )


def contrast_interval(found: Estimate, frame: Respondents, target: str) -> Quantity:
    """Return what makes the interval of a difference or win rate with a proxy: as that of `compare`.

    Parameters
    ----------
    found : Estimate
        Of the difference, or of wins of which a tie is in the middle of the bounds.
    frame : Respondents
    target : {"population", "superpopulation"}

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.2] * 50 + [0.8] * 50)
    >>> sample = stratal.SimpleRandom(budget=6).draw(population, seed=7)
    >>> gaps = [0.1, 0.6, 0.2, 0.9, 0.7, 0.3]
    >>> found = stratal.estimate(sample, gaps, estimator="ppi++", outcome="bounded", bounds=(-1, 1))
    >>> frame = Respondents.of(sample, np.ones(6, dtype=bool))
    >>> [round(end, 2) for end in contrast_interval(found, frame, "population").confidence_interval()]
    [0.11, 0.94]
    """
    seen, (low, high) = found.evidence, found.bounds or (-math.inf, math.inf)
    tie = 0.0 if found.bounds is None else (low + high) / 2.0
    made = paired_differences(
        seen.z[:, None],
        frame.weighting,
        residuals=seen.residuals[:, None],
        known=np.array([seen.known - tie]),
        bound=None if found.bounds is None else high - tie,
        target=target,
    )
    own = quantity_of(made, found.n)
    return replace(own, value=own.value + tie, bounds=found.bounds)


def ratio_of_pair(
    sample: Sample,
    pair: ModelPair,
    models: Sequence[str],
    labelled: BoolArray,
    slopes: FloatArray | None = None,
) -> Quantity:
    """Return the ratio of two models' mean outcomes.

    Where the sample's strata were made of units that both answer alike and of others, a pair can have been
    won or lost unseen among the others alone.

    Parameters
    ----------
    sample : Sample
    pair : ModelPair
        Of all labelled units.
    models : sequence of str
        What the two are called; their answers are columns of the same names.
    labelled : bool (n,)
        Which of the drawn units these are.
    slopes : float (2, k), optional
        Which of the sample's proxies is each model's, to be taken off with a fitted λ.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=5).draw(stratal.Population.from_arrays(proxy=[0.5] * 99), seed=7)
    >>> everyone = np.ones(5, dtype=bool)
    >>> frame = Respondents.of(sample, everyone)
    >>> pair = ModelPair(first=[1, 1, 1, 1, 0], second=[1, 1, 1, 0, 0], frame=frame, bounds=(0, 1))
    >>> round(ratio_of_pair(sample, pair, ("new", "old"), everyone).value, 3)
    1.333
    """
    made = None if slopes is None else _tuned_ratio(sample, pair, labelled, slopes)
    found, strata = pair.ratio(made), getattr(sample.design, "strata", None)
    rule, same = getattr(strata, "rule", None), Agree(names=tuple(sorted(models)))
    if not found.defined or not isinstance(rule, Derived) or same not in rule.cells.tests:
        return found
    weighting = pair.frame.weighting
    differ = same.of({name: sample.groups[name][labelled] for name in models}) == 0
    among = weighting.whole_strata(np.asarray(differ))
    if among is None or pair.bounds is None:
        return found
    low, high = pair.bounds
    ends = np.array([high - found.value * low, low - found.value * high]) * among.population_size
    below = pair.denominator(found.value) * weighting.population_size
    hidden = unseen_pair((pair.first - pair.second)[differ], among, ends / below)
    error = math.sqrt(found.standard_error**2 + hidden)
    assert isinstance(found.parts, RatioReach)
    return replace(found, interval_error=error, parts=replace(found.parts, error=error))


def _tuned_ratio(sample: Sample, pair: ModelPair, labelled: BoolArray, slopes: FloatArray) -> Linearised:
    """Return the ratio R at which the mean of a − R b is 0, less λ (p_a − R p_b) of their proxies.

    Where the proxies leave nothing of either mean it is the ratio without them.
    """
    frame, target = pair.frame, pair.target

    def mean(z: FloatArray, slope: FloatArray, lam: FloatArray | None = None) -> MeanEstimate:
        proxy = contrast_moments(sample, frame, labelled, slope)
        return mean_estimate(z, proxy, weighting=frame.weighting, estimator="ppi++", lam=lam, target=target)

    plain = found = ratio_of_means(pair.first, pair.second, frame.weighting, target)
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
