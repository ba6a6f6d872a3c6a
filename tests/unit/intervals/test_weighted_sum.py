"""The count that stands for a sum, and the steps in which the sum moves.

A binomial is itself, the saddlepoint near the incomplete beta; very many strata take time in proportion.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from stratal.intervals import weighted_sum
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson
from stratal.intervals.weighted_sum import count_quantile, step_smoothing


def quantile_of(reached, mean, variance, third, rest=None):
    """Return the quantile of a sum that moves in whole steps."""
    mean, variance, third = (np.atleast_1d(np.asarray(part, dtype=float)) for part in (mean, variance, third))
    rest = np.full_like(mean, 1e6) if rest is None else np.atleast_1d(np.asarray(rest, dtype=float))
    return count_quantile(
        np.atleast_1d(np.asarray(reached, float)), mean, rest, variance, third, np.full(1, 0.5)
    )


@pytest.mark.parametrize(("n", "p"), [(12, 0.3), (60, 0.05), (400, 0.5)])
def test_a_binomial_sum_is_that_binomial(n, p):
    k = np.arange(1, n)
    mean, variance = n * p, n * p * (1 - p)
    found = count_quantile(
        k.astype(float),
        np.full(n - 1, mean),
        np.full(n - 1, n - mean),
        np.full(n - 1, variance),
        np.full(n - 1, variance * (1 - 2 * p)),
        np.full(n - 1, 0.5),
    )
    expected = stats.norm.ppf(np.clip(stats.binom(n, p).sf(k - 1), 1e-300, 1 - 1e-16))
    inside = np.abs(expected) < 6

    assert found[inside] == pytest.approx(expected[inside], abs=1e-6)


def test_a_variance_above_the_mean_is_a_negative_binomial():
    size, chance = 3.0, 0.4
    law = stats.nbinom(size, chance)
    mean, variance = law.stats(moments="mv")
    third = law.stats(moments="s") * variance**1.5
    found = quantile_of(9.0, mean, variance, third)

    assert stats.norm.cdf(found[0]) == pytest.approx(law.sf(8), abs=1e-9)


@pytest.mark.parametrize("p", [0.02, 0.3, 0.7])
def test_the_saddlepoint_is_near(p):
    n = 40
    k = np.array([k for k in range(1, n) if 1e-4 < stats.binom(n, p).sf(k - 1) < 0.3], dtype=float)
    mean, variance = np.full(len(k), n * p), np.full(len(k), n * p * (1 - p))
    of_sum = k, mean, n - mean, variance, variance * (1 - 2 * p), np.full(len(k), 0.5)
    nearly, exact = (count_quantile(*of_sum, exact=exact) for exact in (False, True))

    assert nearly == pytest.approx(exact, abs=0.02)
    assert np.max(np.abs(nearly - exact)) > 0


def by_the_formula(sizes, pull, apart, share):
    """Return max over h of s_h · share_h · e^(−Σ_k c_k a_k (1 − cos 2π s_k/s_h)), one by one."""
    left = [
        sum(
            c * a * (1 - np.cos(2 * np.pi * other / own))
            for c, a, other in zip(pull, apart, sizes, strict=True)
        )
        for own in sizes
    ]
    return max(s * part * np.exp(-lost) for s, part, lost in zip(sizes, share, left, strict=True))


def drawn(n_strata, different):
    random = np.random.default_rng(n_strata)
    sizes = random.choice(random.random(different) + 0.01, n_strata)
    pull, apart = random.random(n_strata) + 1, 0.02 * random.random((2, n_strata))
    return sizes, pull, apart, random.random((2, n_strata))


def largest_step(sizes, pull, apart, share):
    """Return what is left of the largest step (R,) by the index and the matrix."""
    largest, blur = step_smoothing(sizes[:, None], pull[:, None])
    return np.max(sizes[largest][:, None] * share.T[largest] * np.exp(-blur @ apart.T), axis=0)


@pytest.mark.parametrize(("n_strata", "different"), [(3, 3), (99, 5), (150, 150), (200, 1)])
def test_the_formula_of_the_largest_step_holds(n_strata, different):
    sizes, pull, apart, share = drawn(n_strata, different)
    expected = [by_the_formula(sizes, pull, apart[row], share[row]) for row in range(2)]

    assert largest_step(sizes, pull, apart, share) == pytest.approx(expected, rel=1e-12)


def test_a_stratum_that_does_not_move_has_no_step():
    sizes = np.concatenate([np.zeros(60), np.full(60, 0.01)])

    found = largest_step(sizes, np.ones(120), np.full((1, 120), 0.2), np.ones((1, 120)))

    assert found == pytest.approx([0.01])


def test_of_too_many_steps_the_largest_are_looked_at(monkeypatch):
    sizes, pull, apart, share = drawn(200, 200)
    whole = largest_step(sizes, pull, apart, share)
    monkeypatch.setattr(weighted_sum, "_MAX_PAIRS", 60 * 200)

    assert step_smoothing(sizes[:, None], pull[:, None])[1].shape == (60, 200)
    assert np.all(largest_step(sizes, pull, apart, share) <= whole)


def of_strata(random, n_strata):
    sizes = random.integers(20, 100 * n_strata, n_strata)  # steps almost all different
    labels = random.integers(2, 8, n_strata).astype(float)
    ones = random.binomial(labels.astype(int), 0.9)
    shares = sizes / sizes.sum()
    return StratumRates(
        value=np.sum(shares * ones / labels), rates=ones / labels, counts=labels,
        trials=labels / (1 - labels / sizes), shares=shares,
    )  # fmt: skip


def test_the_largest_steps_give_the_limits_of_all(monkeypatch):
    found = of_strata(np.random.default_rng(0), 1500)
    whole = stratified_clopper_pearson(found, 0.025, 0.025)
    monkeypatch.setattr(weighted_sum, "_MAX_PAIRS", 100_000)

    assert np.ravel(stratified_clopper_pearson(found, 0.025, 0.025)) == pytest.approx(
        np.ravel(whole), abs=1e-12
    )


def test_memory_grows_with_the_strata_not_their_square():
    found = of_strata(np.random.default_rng(0), 20_000)
    tracemalloc.start()
    low, high = stratified_clopper_pearson(found, 0.025, 0.025)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert low < found.value < high
    assert peak < 150e6  # a matrix of all pairs: 3.2 GB
