"""Adaptive designs: what decides who gets the next labels."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.population import Population
from stratal.simulation.adaptive_allocation import adaptive_sums, allocate_remainder, replicate_deviations
from stratal.simulation.draws import BinaryDraws, StratumSums, Truth
from stratal.simulation.simulated_design import SimulatedDesign
from stratal.strata import stratify

SIZES = (600, 300, 100)


@pytest.fixture
def nearly_perfect():
    proxy = np.repeat([0.2, 0.5, 0.8], SIZES)
    strata = stratify(Population.from_arrays(proxy=proxy), n_strata=3)
    z = np.ones(len(proxy))
    z[[7, 650, 950]] = 0.0
    return strata, Truth.of(z, None, np.asarray(strata.codes), 3)


@pytest.mark.parametrize("labels", [2, 3, 7, 19, 50])
def test_deviations_of_labels_that_agree_are_nought_and_of_others_those_of_a_rate(nearly_perfect, labels):
    _, truth = nearly_perfect

    sums = BinaryDraws(truth, 500, np.random.default_rng(1)).sums(np.full(3, labels))

    rate = np.rint(sums.z + truth.centre * sums.counts) / labels
    assert np.any(rate == 1.0)
    np.testing.assert_allclose(
        replicate_deviations(sums), np.sqrt(rate * (1 - rate) * labels / (labels - 1)), atol=1e-12, rtol=1e-9
    )


@pytest.mark.parametrize("allocation", ["opt-a1:5", "opt-a2:5:10"])
def test_where_all_labels_agree_the_rest_goes_by_the_sizes(nearly_perfect, allocation):
    strata, truth = nearly_perfect
    design = SimulatedDesign.parse(f"k-means:3:{allocation}")

    (found,) = adaptive_sums(
        design, strata, truth, (45,), lambda: BinaryDraws(truth, 200, np.random.default_rng(2))
    )

    agree = np.all(np.rint(found.z + truth.centre * found.counts) == found.counts, axis=1)
    assert agree.sum() > 100
    more = found.counts[agree] - 5
    share = more / more.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(share, [[0.6, 0.3, 0.1]] * len(more), atol=0.034)


def test_a_stratum_that_is_nearly_used_up_does_not_change_the_shares_of_the_others():
    """Then the labels of before counted too, in all strata of all replicates."""
    strata = stratify(Population.from_arrays(proxy=np.repeat([0.2, 0.5, 0.8], (600, 300, 8))), n_strata=3)
    ones = np.array([[2.0, 2.0, 2.0], [2.0, 2.0, 0.0]])
    sums = StratumSums(counts=np.full((2, 3), 5.0), z=ones, zz=ones)

    more = allocate_remainder(sums, strata, np.array([5, 5, 5]), 30)

    assert more.tolist() == [[20, 10, 0], [20, 10, 0]]


def test_what_the_strata_that_differ_cannot_hold_goes_to_the_others():
    strata = stratify(Population.from_arrays(proxy=np.repeat([0.2, 0.5, 0.8], (60, 30, 10))), n_strata=3)
    ones = np.array([[0.0, 0.0, 2.0]])
    sums = StratumSums(counts=np.full((1, 3), 5.0), z=ones, zz=ones)

    more = allocate_remainder(sums, strata, np.array([5, 5, 5]), 25)

    assert more[0, 2] == 5
    assert more.sum() == 25
