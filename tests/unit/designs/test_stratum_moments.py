from __future__ import annotations

import numpy as np
import pytest

from stratal.designs import PoissonWeighting, StratifiedWeighting
from stratal.designs.stratum_moments import stratum_means, stratum_moments


def test_means_of_one_stratum_are_those_of_two_alike_to_the_bit():
    variables = np.random.default_rng(5).normal(size=(999, 3))
    nowhere = np.zeros(999, int)

    one, two = stratum_means(variables, nowhere, 1), stratum_means(variables, nowhere, 2)

    assert one[0].tolist() == two[0].tolist()
    assert stratum_means(np.ones((7, 2)), np.zeros(7, int), 1).tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("n_strata", [1, 3])
def test_moments_of_several_outcomes_are_the_sums_of_those_of_each(n_strata):
    random = np.random.default_rng(2)
    z, proxies = random.normal(size=(30, 4)), random.normal(size=(30, 4, 2))
    stratum = np.arange(30) % n_strata
    found = stratum_moments(z, proxies, stratum, n_strata)
    each = [stratum_moments(z[:, j], proxies[:, j], stratum, n_strata) for j in range(4)]
    for name in (
        "outcome_means",
        "proxy_means",
        "outcome_variances",
        "cross_covariances",
        "proxy_covariances",
    ):
        assert getattr(found, name) == pytest.approx(sum(getattr(one, name) for one in each), rel=1e-12)
    assert each[0].outcome_variances == pytest.approx(
        [np.var(z[stratum == h, 0], ddof=1) for h in range(n_strata)], rel=1e-12
    )


@pytest.mark.parametrize("n_strata", [1, 3])
def test_degrees_of_freedom_of_several_variables_are_those_of_each(n_strata):
    variables = np.random.default_rng(3).normal(size=(30, 4)) ** 3
    sizes = np.array([100, 40, 10])[:n_strata]
    weighting = StratifiedWeighting(stratum=np.arange(30) % n_strata, sizes=sizes)
    expected = [weighting.degrees_of_freedom(column) for column in variables.T]
    assert weighting.dfs(variables) == pytest.approx(expected, rel=1e-12)
    drawn = PoissonWeighting(inclusion_probability=np.linspace(0.1, 0.5, 30), size=90)
    expected = [drawn.degrees_of_freedom(column) for column in variables.T]
    assert drawn.dfs(variables).tolist() == expected
