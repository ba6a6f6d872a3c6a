"""The difference of two models' outcomes with the proxies of both: λ fitted to the difference of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.estimation.estimate import Estimate
from stratal.estimation.model_pairs import ModelPair, quantity_of
from stratal.estimation.paired import paired_differences, unseen_pair
from stratal.estimation.quantity import Quantity
from stratal.estimation.respondents import Respondents
from stratal.population.expressions import Agree
from stratal.population.rules.derived import Derived
from stratal.population.summary import StratumSummary
from stratal.sampling.sample import Sample


def contrast_proxy(
    sample: Sample, frame: Respondents, labelled: BoolArray, slopes: FloatArray
) -> tuple[FloatArray, StratumSummary]:
    """Return a linear combination of the proxies: of the labelled units (m, 1), and of each stratum.

    Parameters
    ----------
    sample : Sample
    frame : Respondents
    labelled : bool (n,)
    slopes : float (k,)
        What it takes of each proxy: 1 and −1 for a difference.

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
    return (sample.proxies[labelled] @ slopes)[:, None], StratumSummary(
        sizes=whole.sizes,
        proxy_means=(whole.proxy_means @ slopes)[:, None],
        proxy_covariances=np.einsum("i,hij,j->h", slopes, whole.proxy_covariances, slopes)[:, None, None],
    )


def slopes_of(names: Sequence[str], proxies: Sequence[str]) -> FloatArray:
    """Return 1 for the first of two proxies and −1 for the second, among the names of all (k,).

    Examples
    --------
    >>> slopes_of(["p", "q", "r"], ["r", "p"])
    array([-1.,  0.,  1.])
    """
    first, second = proxies
    return np.array([float(name == first) - float(name == second) for name in names])


def scaled(values: FloatArray, summary: StratumSummary, share: float) -> tuple[FloatArray, StratumSummary]:
    """Return a proxy (m, 1) and its summary times a share.

    Examples
    --------
    >>> one = StratumSummary(
    ...     sizes=np.array([2]), proxy_means=np.ones((1, 1)), proxy_covariances=np.ones((1, 1, 1)))
    >>> scaled(np.ones((1, 1)), one, 0.5)[1].proxy_covariances.tolist()
    [[[0.25]]]
    """
    return share * values, replace(
        summary,
        proxy_means=share * summary.proxy_means,
        proxy_covariances=share**2 * summary.proxy_covariances,
    )


def contrast_interval(found: Estimate, frame: Respondents, target: str) -> Quantity:
    """Return what makes the interval of a difference estimated with a proxy: as that of `compare`.

    Parameters
    ----------
    found : Estimate
        Of the difference, with its bounds on either side of 0.
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
    seen, bounds = found.evidence, found.bounds
    made = paired_differences(
        seen.z[:, None],
        frame.weighting,
        residuals=seen.residuals[:, None],
        known=np.array([seen.known]),
        bound=None if bounds is None else bounds[1],
        target=target,
    )
    return quantity_of(made, found.n)


def ratio_of_pair(sample: Sample, pair: ModelPair, models: Sequence[str], labelled: BoolArray) -> Quantity:
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
    found, strata = pair.ratio(), getattr(sample.design, "strata", None)
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
    below = float(weighting.mean(pair.second[:, None])[0]) * weighting.population_size
    hidden = unseen_pair((pair.first - pair.second)[differ], among, ends / below)
    return replace(found, interval_error=math.sqrt(found.standard_error**2 + hidden))
