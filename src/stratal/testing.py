"""Assertions for tests: requirements of an estimate; properties of a design, an estimand or an engine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import stratal
from stratal.designs.sample import Design, Sample
from stratal.errors import InputError, RequirementError, StratalError, type_text
from stratal.estimation.estimand import Estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.requirement import assess_requirements
from stratal.population.drawn_units import DrawnUnits
from stratal.population.population import Population
from stratal.population.rules import Rule
from stratal.randomness import id_texts
from stratal.report.estimates import requirement_text, value_with_interval
from stratal.report.verdicts import PASS

__all__ = ["assert_requirement", "check_design", "check_engine", "check_estimand", "same_draw"]

# Tolerance of the checks with random draws, in standard errors: a correct design fails once in 16,000 checks.
_TOLERANCE_IN_STANDARD_ERRORS = 4.0


def assert_requirement(
    estimate: Estimate | Estimates, *requirements: str, confidence_level: float = 0.95, method: str = "auto"
) -> None:
    """Check that the whole interval of an estimate satisfies every requirement.

    The whole interval is compared with the limit, not only the value. Therefore a model never passes because
    there are few labels.

    Parameters
    ----------
    estimate : Estimate or Estimates
    *requirements : str
        Requirements such as `"value>=.9"`; for several estimates, with the name of one: `"kappa>=.6"`,
        `"recall:cat>=.8"`, `"value@de>=.7"`.
    confidence_level : float
        Between 0 and 1.
    method : str
        Interval method of `Estimate.confidence_interval`.

    Raises
    ------
    RequirementError
        An AssertionError. Its text is the verdict: FAIL, or UNDECIDED with the number of labels that would
        decide, the estimate with its interval, and the number of labels.
    InputError
        If no requirement is given, or if every or no value within the bounds of the estimand satisfies it.

    Examples
    --------
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 400)
    >>> sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
    >>> estimate = stratal.estimate(sample, [1.0] * 95 + [0.0] * 5)
    >>> assert_requirement(estimate, "value>=.85")
    >>> assert_requirement(estimate, "value>=.9")
    Traceback (most recent call last):
    stratal.errors.RequirementError: value>=0.9: UNDECIDED; about 8 more labels would decide it if the
    estimate stays the same (given: 95.0% (95% interval 89.8% to 98.0%), from 100 labels)...
    """
    __tracebackhide__ = True  # pytest shows the test, not this function
    if not isinstance(estimate, Estimate | Estimates):
        raise InputError(
            "assert_requirement takes an Estimate or Estimates",
            given=type_text(estimate),
            action="Compute an estimate first: stratal.estimate(sample, labels).",
        )
    if not requirements:
        example = "such as assert_requirement(estimate, 'value>=.9')"
        raise InputError("no requirement is given", allowed=example)
    verdicts = assess_requirements(estimate, requirements, confidence_level=confidence_level, method=method)
    violations = [
        entry | {"confidence_level": confidence_level} for entry in verdicts if entry["verdict"] != PASS
    ]
    if not violations:
        return
    if isinstance(estimate, Estimate):
        label_count = estimate.labels
    else:
        label_count = max(row.labels for row in estimate)
    intervals = "; ".join(map(value_with_interval, violations))
    figures = f"{intervals}, from {label_count:,} labels"
    action = "More labels make the interval narrower; a better model changes the estimate."
    raise RequirementError("; ".join(map(requirement_text, violations)), given=figures, action=action)


def check_design(
    design: Design, population: Population, outcomes: object, *, draws: int = 400, variance_error: float = 0.0
) -> None:
    """Check that draws are reproducible, that files store them, and that means and variances are unbiased.

    Parameters
    ----------
    design : Design
    population : Population
        A population of arrays without ids, so that the id of a unit is its row number.
    outcomes : float (N,)
        The outcome of every unit.
    draws : int
        Number of samples, with the seeds 0, 1, …; the bias must be within four standard errors.
    variance_error : float
        Known relative error of the variance that is allowed if its formula is an approximation.

    Raises
    ------
    AssertionError
        The message names the property that does not hold.

    Examples
    --------
    >>> population = stratal.Population.from_arrays(proxy=np.linspace(0.1, 0.9, 50))
    >>> check_design(stratal.designs.SimpleRandom(budget=10), population, np.arange(50) % 3, draws=100)
    """
    z = np.asarray(outcomes, dtype=np.float64)
    means_and_variances = []
    for seed in range(draws):
        sample = design.draw(population, seed)
        probability = sample.inclusion_probability
        assert len(set(sample.ids.tolist())) == sample.size, "a unit is drawn twice"
        assert np.all((probability > 0) & (probability <= 1)), "a probability is not in (0, 1]"
        weighting = sample.weighting()
        variables = z[sample.ids, None]
        means_and_variances.append((weighting.mean(variables)[0], weighting.covariance(variables)[0, 0]))
    _check_equal_samples(design.draw(population, 0), design.draw(population, 0), "the same seed")
    with tempfile.TemporaryDirectory() as folder:
        stored_sample = Sample.read(design.draw(population, 0).write(Path(folder) / "sample.parquet"))
    _check_equal_samples(stored_sample, design.draw(population, 0), "a file")
    try:
        larger_design = design.larger_design(stored_sample, max(stored_sample.size // 4, 1))
        larger_sample = larger_design.draw(population, 0)
    except StratalError:  # the design cannot be extended
        larger_sample = stored_sample
    assert set(stored_sample.ids.tolist()) <= set(larger_sample.ids.tolist()), (
        "a larger draw leaves a unit out"
    )
    means, variances = np.array(means_and_variances).T
    # Their mean is the sample variance of the means.
    squared_deviations = (means - means.mean()) ** 2 * draws / (draws - 1)
    for quantity, errors, allowed in (
        ("the mean", means - z.mean(), 0.0),
        (
            "the estimated variance",
            variances - squared_deviations,
            variance_error * float(squared_deviations.mean()),
        ),
    ):
        # A design without variance, such as a census, leaves rounding errors.
        limit = _TOLERANCE_IN_STANDARD_ERRORS * float(errors.std()) / draws**0.5 + allowed + 1e-12
        problem = f"{quantity} is off by {errors.mean():.3g}; chance allows {limit:.3g}"
        assert abs(errors.mean()) <= limit, problem


def _check_equal_samples(sample: Sample, other: Sample, origin: str) -> None:
    """Check that two samples are equal; `origin` is what both have in common."""
    assert sample.ids.tolist() == other.ids.tolist(), f"{origin} gives other units"
    assert sample.design.to_dict() == other.design.to_dict(), f"{origin} gives another design"
    np.testing.assert_array_equal(sample.inclusion_probability, other.inclusion_probability)


def check_estimand(estimand: Estimand, sample: Sample, labels: dict[Any, Any]) -> None:
    """Check the text and dict forms of an estimand, and that its intervals are nested around the value.

    Examples
    --------
    >>> population = stratal.Population.from_arrays(proxy=np.linspace(0.1, 0.9, 50))
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    >>> check_estimand(stratal.estimands.Mean(), sample, {unit: unit % 2 for unit in sample.ids.tolist()})
    """
    assert Estimand.from_dict(estimand.to_dict()) == estimand, "its dict does not give it back"
    assert Estimand.parse_text(estimand.text) == estimand, f"{estimand.text!r} does not give it back"
    estimate = stratal.estimate(sample, dict(labels), estimand=estimand)
    reversed_labels = dict(reversed(labels.items()))
    other = stratal.estimate(sample, reversed_labels, estimand=estimand)
    are_equal = (estimate.value, estimate.standard_error) == (other.value, other.standard_error)
    assert are_equal, "the order of labels counts"
    assert np.isfinite([estimate.value, estimate.standard_error]).all(), "the estimate is not finite"
    inner = estimate.confidence_interval(0.8)
    outer = estimate.confidence_interval(0.95)
    limits = [outer.low, inner.low, estimate.value, inner.high, outer.high]
    assert limits == sorted(limits), f"limits of 95%, 80% and the value are not in order: {limits}"


def check_engine(population: Population, expected: Population, rules: Iterable[Rule], seed: int = 7) -> None:
    """Check that a population gives the same results as the one in memory.

    Means and covariances in strata may differ by rounding errors, because engines add in different orders.
    All other results are equal to the last bit.

    Examples
    --------
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=list("abc"))
    >>> check_engine(population, population, [stratal.strata.Everything()])
    """
    assert (population.size, population.proxy_names) == (expected.size, expected.proxy_names)
    assert population.proxies == expected.proxies
    for group in expected.group_names:
        assert population.levels(group) == expected.levels(group)
        assert list(population.levels(group)) == list(expected.levels(group))
        for proxy in expected.proxy_names:
            assert population.distributions(group, proxy) == expected.distributions(group, proxy)
    for proxy in expected.proxy_names:
        assert population.distribution(proxy) == expected.distribution(proxy)
    for rule in rules:
        summary = population.summarise(rule)
        expected_summary = expected.summarise(rule)
        np.testing.assert_array_equal(summary.sizes, expected_summary.sizes)
        np.testing.assert_allclose(summary.proxy_means, expected_summary.proxy_means, rtol=1e-12)
        np.testing.assert_allclose(
            summary.proxy_covariances, expected_summary.proxy_covariances, rtol=1e-12, atol=1e-13
        )
        # Different numbers of units, including none.
        counts = np.minimum(expected_summary.sizes, np.resize([40, 1, 0, 25, 3, 8], rule.n_strata))
        same_draw(
            population.units_with_smallest_keys(rule, counts, seed),
            expected.units_with_smallest_keys(rule, counts, seed),
        )
    assert population.digest(seed) == expected.digest(seed)


def same_draw(one: DrawnUnits, other: DrawnUnits) -> None:
    """Check that two draws contain the same units, with the same strata, proxies and groups.

    Examples
    --------
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9])
    >>> drawn = population.units_with_smallest_keys(stratal.strata.Everything(), np.array([2]), 7)
    >>> same_draw(drawn, drawn)
    """
    assert id_texts(one.ids) == id_texts(other.ids)
    np.testing.assert_array_equal(one.stratum, other.stratum)
    np.testing.assert_array_equal(one.proxies, other.proxies)
    assert one.groups.keys() == other.groups.keys()
    for name, values in one.groups.items():
        np.testing.assert_array_equal(values, other.groups[name])
