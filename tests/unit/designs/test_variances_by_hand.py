"""Variances and degrees of freedom of designs, worked out by hand on a few units."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.designs import Poisson, PoissonWeighting, SimpleRandom, StratifiedWeighting
from stratal.designs.clusters import between_cluster_covariance
from stratal.designs.poisson import fixed_size, size_measure
from stratal.designs.systematic import SystematicWeighting
from stratal.errors import BudgetError, InputError


def test_two_draws_of_unequal_probability():
    """y/(Nπ) = .5 and 2, A = (.25 + 1.5)/1.25 = 1.4: 2 (.5 · .9² + .75 · .6²) = 1.35; one draw has none."""
    found = fixed_size(np.array([[1.0], [2.0]]), np.array([0.5, 0.25]), 4)

    assert found == pytest.approx(np.array([[1.35]]))
    assert np.isnan(fixed_size(np.array([[1.0]]), np.array([0.5]), 4)).all()


def test_a_systematic_sample_has_von_neumanns_degrees_of_freedom():
    for n, expected in ((10, 2 * 81 / 26), (2, 1.0), (1, 1.0)):
        weighting = SystematicWeighting(order=np.arange(n), size=100)
        assert weighting.degrees_of_freedom(np.arange(n)) == pytest.approx(expected)


def test_one_cluster_shows_no_variance_between_clusters():
    parts = np.ones((2, 2))

    assert np.isnan(between_cluster_covariance(parts, np.array([0, 0]), 4)).all()
    assert between_cluster_covariance(parts, np.array([0, 1]), 2).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("counts", "sizes"), [([1, 1], [1, 2]), ([2, 3], [2, 9]), ([3, 1], [9, 5]), ([1, 3], [4, 5])]
)
def test_unlabelled_units_of_other_strata_may_be_of_the_kind(counts, sizes):
    """The interval of such a group had no width, or its strata stood for a sample of the group."""
    weighting = StratifiedWeighting(stratum=np.repeat([0, 1], counts), sizes=np.array(sizes))

    assert weighting.complete_strata_weighting(weighting.stratum == 0) is None


def test_whole_strata_are_a_sample_of_their_own():
    weighting = StratifiedWeighting(stratum=np.array([0, 0, 1, 1, 2]), sizes=np.array([4, 4, 1]))
    found = weighting.complete_strata_weighting(np.array([True, True, False, False, True]))

    assert (found.stratum.tolist(), found.sizes.tolist()) == ([0, 0, 1], [4, 1])
    # Half a stratum and all strata are not some strata.
    for member in ([0, 0, 1, 0, 0], [1, 0, 0, 0, 1], [1, 1, 1, 1, 1]):
        assert weighting.complete_strata_weighting(np.array(member, dtype=bool)) is None


def test_a_poisson_sample_is_post_stratified_where_all_chances_are_equal():
    stratum, sizes = np.array([0, 1]), np.array([5, 5])
    equal = PoissonWeighting(inclusion_probability=np.full(2, 0.2), size=10)
    unequal = PoissonWeighting(inclusion_probability=np.array([0.2, 0.7]), size=10)

    assert isinstance(equal.post_stratified(stratum, sizes), StratifiedWeighting)
    with pytest.raises(InputError):
        unequal.post_stratified(stratum, sizes)


def test_the_command_s_options_make_the_design():
    made = Poisson.from_options(budget=30, size="sqrt-variance", cluster=None, proxy="judge")

    assert made == Poisson(budget=30, size="sqrt-variance", proxy="judge")


def test_a_budget_above_the_population_is_refused_and_a_census_is_not():
    population = stratal.Population.from_arrays(proxy=np.linspace(0.1, 0.9, 5))

    assert SimpleRandom(budget=5).draw(population, seed=1).size == 5
    with pytest.raises(BudgetError, match="given: 6; allowed: 1 to 5"):
        SimpleRandom(budget=6).draw(population, seed=1)


def test_the_measure_of_size_is_of_the_proxy_that_is_named():
    proxies = {"one": [0.1, 0.5, 0.9], "other": [0.4, 0.6, 0.5]}
    population = stratal.Population.from_arrays(proxy=proxies)
    alone = stratal.Population.from_arrays(proxy={"other": proxies["other"]})

    assert size_measure(population, "sqrt-variance", "other") == size_measure(alone, "sqrt-variance", "other")
