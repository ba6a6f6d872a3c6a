from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from stratal.population.distribution import Distribution
from stratal.strata.classical_boundaries import (
    cumulative_root,
    equal_size,
    equal_width,
    kernel_density,
    weighted_mean,
)
from stratal.strata.strata import moments_of_bins


def picture(values, counts=None):
    values = np.asarray(values, float)
    counts = np.ones(len(values), int) if counts is None else np.asarray(counts)
    return Distribution(values=values, counts=counts, cuts=values[1:])


METHODS = {
    "equal size": equal_size,
    "equal width": equal_width,
    "weighted mean": weighted_mean,
    "cum √f": lambda d, h: cumulative_root(d, h, power=1 / 2),
    "cum ∛f": lambda d, h: cumulative_root(d, h, power=1 / 3),
}

DEGENERATE = {
    "constant": ([0.4], [9]),
    "two values": ([0.0, 1.0], [5, 5]),
    "one far unit": ([0.0, 0.1, 0.2, 1e12], [10, 10, 10, 1]),
    "nearly all in one": ([0.0, 0.5, 1.0], [1, 10**9, 1]),
    "negative": ([-3.0, -2.0, -1.0], [1, 2, 3]),
    "all zero but one": ([0.0, 1.0], [99, 1]),
    "subnormal range": ([0.0, 5e-324], [1, 1]),
    "widest range": ([-5e139, 0.0, 4e139], [1, 1, 1]),
}


def test_equal_size_on_distinct_values_is_even():
    sizes = moments_of_bins(picture(np.arange(100)), equal_size(picture(np.arange(100)), 8)).sizes

    assert sizes.sum() == 100
    assert set(sizes.tolist()) <= {12, 13}


def test_equal_size_never_splits_a_value():
    assert equal_size(picture([0.0, 1.0, 2.0], [1, 50, 1]), 4).tolist() == [1, 2]


def test_equal_width_cuts_at_the_papers_points():
    values = np.array([0.0, 0.1, 0.3, 0.6, 1.0])

    assert equal_width(picture(values), 4).tolist() == [2, 3, 4]


def test_equal_width_leaves_empty_intervals_out():
    assert equal_width(picture([0.0, 0.1, 10.0]), 10).tolist() == [2]


def test_weighted_mean_equalises_the_sums():
    rng = np.random.default_rng(1)
    distribution = picture(np.unique(rng.gamma(2.0, size=4000)))

    strata = moments_of_bins(distribution, weighted_mean(distribution, 6))

    sums = strata.sizes * strata.proxy_means
    assert np.ptp(sums) < 2 * distribution.values.max()


def test_weighted_mean_of_negative_values_starts_from_the_smallest():
    values = np.arange(10.0)

    assert weighted_mean(picture(values - 9.0), 3).tolist() == weighted_mean(picture(values), 3).tolist()


def test_root_of_a_flat_density_cuts_evenly():
    distribution = picture(np.linspace(0, 1, 5001))

    for power in (1 / 2, 1 / 3):
        cuts = distribution.cuts[cumulative_root(distribution, 5, power=power) - 1]
        assert cuts == pytest.approx([0.2, 0.4, 0.6, 0.8], abs=2e-3)


def test_root_lies_between_equal_width_and_equal_size():
    values = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    distribution = picture(values)

    outer = {name: float(distribution.cuts[cut(distribution, 6)[-1] - 1]) for name, cut in METHODS.items()}

    assert outer["equal size"] < outer["cum √f"] < outer["cum ∛f"] < outer["equal width"]


def test_kernel_density_matches_the_direct_sum():
    rng = np.random.default_rng(7)
    values = np.unique(rng.normal(size=800))
    edges, density = kernel_density(picture(values))
    share = (np.arange(800) + 0.5) / 800
    spread = min(values.std(), np.diff(np.interp([0.25, 0.75], share, values))[0] / 1.34)
    bandwidth = 0.9 * spread * 800**-0.2
    middle = 0.5 * (edges[1:] + edges[:-1])
    mirrored = np.concatenate([values, 2 * values[0] - values, 2 * values[-1] - values])

    direct = np.array([stats.norm.pdf(x, mirrored, bandwidth).sum() / 800 for x in middle[::64]])

    assert density[::64] == pytest.approx(direct, abs=2e-3)
    assert density @ np.diff(edges) == pytest.approx(1.0)


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("case", DEGENERATE, ids=str)
@pytest.mark.parametrize("n_strata", [1, 2, 10])
def test_degenerate_inputs_give_increasing_inner_boundaries(method, case, n_strata):
    values, counts = DEGENERATE[case]

    boundaries = METHODS[method](picture(values, counts), n_strata)

    assert np.all(np.diff(np.concatenate([[0], boundaries, [len(values)]])) > 0)
    assert len(boundaries) < n_strata
