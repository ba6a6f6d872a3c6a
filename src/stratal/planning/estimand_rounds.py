"""The next round for any estimand: where its influence varies, as the labels so far have it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from stratal.allocation.rates import smoothed_standard_deviations
from stratal.arrays import FloatArray
from stratal.estimation.estimand import Estimand, LabelledInfluence
from stratal.estimation.estimands.classification import Classification
from stratal.population.influence import stratum_averages
from stratal.population.population import Population
from stratal.sampling.sample import Sample
from stratal.strata import Strata
from stratal.weighting.stratum_moments import stratum_kurtoses

PLANNED = 0.5
"""Share of the plan's own variances in those that a round goes by: sizes that depend on few labels alone
leave strata in which these saw nothing without more, and bias the estimate."""


def influence_deviations(
    estimand: Estimand,
    sample: Sample,
    labels: Any,
    strata: Strata,
    population: Population | None,
    *,
    planned: FloatArray | None = None,
) -> FloatArray:
    """Return how much the influence varies in each stratum (H,), on a scale of its own.

    For a metric of one class, u has two values in a stratum and what is unknown is the rate of the class: the
    probabilities are recalibrated on the labels so far, and smoothed, as those of a mean are. Otherwise the
    variances of u among the labels so far are smoothed towards the plan's. Either is then mixed with the
    plan's own, half and half.

    Parameters
    ----------
    estimand : Estimand
    sample : Sample
        Stratified by `strata`.
    labels : see `stratal.estimate`
    strata : Strata
    population : Population, optional
        Without it the probabilities of a class are not recalibrated.
    planned : float (H,), optional
        What the plan has of this estimand where the strata were made for several.

    Examples
    --------
    >>> import stratal
    >>> population = Population.from_arrays(groups={"new": ["a", "b"] * 50, "old": ["a"] * 100})
    >>> plan = stratal.plan(population, budget=10, estimand="difference:new,old")
    >>> sample, asked = plan.draw(seed=1), Estimand.parse_text("difference:new,old")
    >>> influence_deviations(asked, sample, ["a", "b"] * 5, plan.strata, population) > 0
    array([ True, False])
    """
    sample, learned = replace(sample, population=population), None
    if isinstance(estimand, Classification) and population is not None:
        learned = _of_rates(estimand, sample, labels, strata, population)
    if learned is None:
        learned = _of_influence(estimand, sample, labels, strata, planned)
    planned = strata.standard_deviations if planned is None else planned
    mixed = PLANNED * _relative(planned, strata) ** 2 + (1.0 - PLANNED) * _relative(learned, strata) ** 2
    return np.asarray(np.where(strata.is_known, 0.0, np.sqrt(mixed)))


def deviations_of_labels(
    estimand: Estimand, sample: Sample, labels: Any, strata: Strata
) -> FloatArray | None:
    """Return how much the influence varies in each stratum (H,), as labels alone have it; None without any.

    Few labels of a stratum are smoothed towards all strata's, never towards what the plan or a score expects:
    a forecast that a plan cannot make narrower takes the wider of these and of `influence_deviations`.

    Examples
    --------
    >>> import stratal
    >>> population = Population.from_arrays(groups={"new": ["a", "b"] * 50, "old": ["a"] * 100})
    >>> plan = stratal.plan(population, budget=10, estimand="difference:new,old")
    >>> sample, asked = plan.draw(seed=1), Estimand.parse_text("difference:new,old")
    >>> deviations_of_labels(asked, sample, ["a", "b"] * 5, plan.strata) > 0
    array([ True, False])
    """
    found = estimand.labelled_influence(sample, labels)
    if len(found.u) == 0:
        return None
    deviations = _smoothed(found, sample, strata)
    return np.asarray(np.where(strata.is_known, 0.0, deviations))


def _relative(deviations: FloatArray, strata: Strata) -> FloatArray:
    total = float(strata.weights @ deviations)
    return np.asarray(deviations / total) if total > 0 else np.ones(len(deviations))


def _of_rates(
    estimand: Classification, sample: Sample, labels: Any, strata: Strata, population: Population
) -> FloatArray | None:
    """Return √E[r (1 − r)] times the gap between the influence's two values (H,); None of several classes."""
    rates = estimand.labelled_rates(sample, labels)
    if rates is None:
        return None
    stratum, n_strata = sample.stratum[rates.labelled], strata.n_strata
    counts = np.bincount(stratum, minlength=n_strata)
    gap = np.bincount(stratum, rates.gap, minlength=n_strata) / np.maximum(counts, 1)
    gap = np.where(counts > 0, gap, rates.gap.mean())
    chances = stratum_averages(population, strata.rule, [estimand.chance(population)])[:, 0]
    deviations = smoothed_standard_deviations(
        strata.sizes,
        counts,
        np.bincount(stratum, rates.is_class, minlength=n_strata),
        proxy_means=np.clip(chances, 0.0, 1.0),
    )
    return np.asarray(np.where(strata.is_known, 0.0, deviations * gap))


def _of_influence(
    estimand: Estimand, sample: Sample, labels: Any, strata: Strata, planned: FloatArray | None
) -> FloatArray:
    """Return the deviations of the labelled units' influence (H,), smoothed towards the plan's."""
    found = estimand.labelled_influence(sample, labels)
    if len(found.u) == 0:
        return strata.standard_deviations if planned is None else planned
    return _smoothed(
        found,
        sample,
        strata,
        proxy_means=strata.proxy_means,
        proxy_variances=strata.proxy_variances if planned is None else np.zeros(strata.n_strata),
        conditional_variances=strata.conditional_variances if planned is None else planned**2,
    )


def _smoothed(found: LabelledInfluence, sample: Sample, strata: Strata, **expected: Any) -> FloatArray:
    """Return the labelled units' deviations (H,), smoothed towards what is expected, or all strata's."""
    stratum, n_strata = found.stratum(sample.stratum), strata.n_strata
    return smoothed_standard_deviations(
        strata.sizes,
        np.bincount(stratum, minlength=n_strata),
        np.bincount(stratum, found.u, minlength=n_strata),
        np.bincount(stratum, found.u**2, minlength=n_strata),
        kurtoses=stratum_kurtoses(found.u, stratum, n_strata),
        bounds=(-np.inf, np.inf),
        **expected,
    )
