"""The count that stands for a sum: a binomial is itself, and the saddlepoint is near the incomplete beta."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from stratal.intervals.tail import Count


def count_of(reached, mean, variance, third, rest=None) -> Count:
    """Return the count of a sum that moves in whole steps."""
    mean, variance, third = (np.atleast_1d(np.asarray(part, dtype=float)) for part in (mean, variance, third))
    rest = np.full_like(mean, 1e6) if rest is None else np.atleast_1d(np.asarray(rest, dtype=float))
    return Count.of(np.atleast_1d(np.asarray(reached, float)), mean, rest, variance, third, np.full(1, 0.5))


@pytest.mark.parametrize(("n", "p"), [(12, 0.3), (60, 0.05), (400, 0.5)])
def test_a_binomial_sum_is_that_binomial(n, p):
    k = np.arange(1, n)
    mean, variance = n * p, n * p * (1 - p)
    found = Count.of(
        k.astype(float),
        np.full(n - 1, mean),
        np.full(n - 1, n - mean),
        np.full(n - 1, variance),
        np.full(n - 1, variance * (1 - 2 * p)),
        np.full(n - 1, 0.5),
    )
    expected = stats.norm.ppf(np.clip(stats.binom(n, p).sf(k - 1), 1e-300, 1 - 1e-16))
    inside = np.abs(expected) < 6

    assert found.quantile[inside] == pytest.approx(expected[inside], abs=1e-6)


def test_a_variance_above_the_mean_is_a_negative_binomial():
    size, chance = 3.0, 0.4
    law = stats.nbinom(size, chance)
    mean, variance = law.stats(moments="mv")
    third = law.stats(moments="s") * variance**1.5
    found = count_of(9.0, mean, variance, third)

    assert stats.norm.cdf(found.quantile[0]) == pytest.approx(law.sf(8), abs=1e-9)


@pytest.mark.parametrize("p", [0.02, 0.3, 0.7])
def test_the_saddlepoint_is_near(p):
    n = 40
    k = np.array([k for k in range(1, n) if 1e-4 < stats.binom(n, p).sf(k - 1) < 0.3], dtype=float)
    mean, variance = np.full(len(k), n * p), np.full(len(k), n * p * (1 - p))
    found = Count.of(k, mean, n - mean, variance, variance * (1 - 2 * p), np.full(len(k), 0.5))

    assert found.nearly == pytest.approx(found.quantile, abs=0.02)
    assert np.max(np.abs(found.nearly - found.quantile)) > 0
