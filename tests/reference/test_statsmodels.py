"""Simple random samples of large populations give the numbers of statsmodels and SciPy."""

from __future__ import annotations

import numpy as np
import pytest

import stratal

proportion = pytest.importorskip("statsmodels.stats.proportion")
weightstats = pytest.importorskip("statsmodels.stats.weightstats")
stats = pytest.importorskip("scipy.stats")

HUGE = 10**13
"""So large a population that the finite population correction is below the tolerance."""


def sampled(values, weights=None):
    """Return an estimate from a simple random sample of a population without end, or from given weights."""
    table = {"value": values} if weights is None else {"value": values, "weight": weights}
    known = {"population_size": HUGE} if weights is None else {"weight": "weight"}
    sample, labels = stratal.Sample.from_labelled(table, value="value", **known)
    return sample, labels


@pytest.mark.parametrize(("right", "n"), [(1, 20), (27, 30), (30, 30), (0, 50), (48, 97)])
@pytest.mark.parametrize("method", ["auto", "clopper-pearson"])
def test_exact_intervals_of_a_proportion(right, n, method):
    estimate = stratal.estimate(*sampled([1] * right + [0] * (n - right)))

    expected = proportion.proportion_confint(right, n, alpha=0.05, method="beta")

    assert tuple(estimate.confidence_interval(method=method)) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("alternative", ["two-sided", "larger", "smaller"])
def test_mean_standard_error_interval_and_p_value(level, alternative):
    values = np.random.default_rng(1).normal(2.0, 3.0, 35)
    estimate = stratal.estimate(*sampled(values), outcome="unbounded")
    theirs = weightstats.DescrStatsW(values)
    ours = {"two-sided": "two-sided", "larger": "greater", "smaller": "less"}[alternative]

    low, high = estimate.confidence_interval(level, method="t", alternative=ours)

    assert estimate.value == pytest.approx(theirs.mean, abs=1e-12)
    assert estimate.standard_error == pytest.approx(theirs.std_mean, rel=1e-9)
    assert (low, high) == pytest.approx(theirs.tconfint_mean(1 - level, alternative), rel=1e-9)


@pytest.mark.parametrize("null", [1.5, 4.0])
def test_p_value_of_the_t_test(null):
    values = np.random.default_rng(2).normal(2.0, 3.0, 35)
    estimate = stratal.estimate(*sampled(values), outcome="unbounded")

    expected = stats.ttest_1samp(values, null).pvalue

    assert estimate.p_value(null, method="t") == pytest.approx(expected, rel=1e-6)


def test_paired_differences_of_graded_outcomes():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=60), rng.normal(size=60) + 0.2
    sample, _ = sampled(a)

    pair = stratal.compare(sample, {"a": a, "b": b})[0]
    expected = stats.ttest_rel(a, b)

    assert pair.value == pytest.approx(np.mean(a - b))
    assert pair.p_value(0.0) == pytest.approx(expected.pvalue, rel=1e-6)
    interval = expected.confidence_interval(0.95)
    assert tuple(pair.confidence_interval()) == pytest.approx((interval.low, interval.high), rel=1e-6)


def test_weighted_means_drawn_with_replacement():
    """Hájek's mean and its variance are those of least squares with HC0, up to n / (n − 1)."""
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(4)
    values, weights = rng.normal(size=80), rng.integers(5, 50, 80).astype(float)
    estimate = stratal.estimate(*sampled(values, weights), outcome="unbounded")

    fit = sm.WLS(values, np.ones(80), weights=weights).fit(cov_type="HC0")

    assert estimate.value == pytest.approx(fit.params[0], abs=1e-12)
    assert estimate.standard_error**2 * 79 / 80 == pytest.approx(fit.cov_params()[0, 0], rel=1e-9)
