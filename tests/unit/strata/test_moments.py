from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.planning.design_precision import FORECAST_ESTIMATORS
from stratal.strata.strata import CALIBRATION_SLOPE, expected_variance, scenarios


@pytest.fixture
def strata():
    proxy = np.random.default_rng(0).beta(2, 1, 2000)
    return stratal.strata.stratify(stratal.Population.from_arrays(proxy=proxy), n_strata=6)


def test_the_formula_is_the_variance_over_draws_of_an_outcome_that_follows_the_assumption():
    """Draw z with slope 0.8 on the proxy; the stratified mean then varies as expected."""
    generator = np.random.default_rng(3)
    proxy = generator.beta(2, 1, 1000)
    population = stratal.Population.from_arrays(proxy=proxy)
    strata = stratal.strata.stratify(population, n_strata=4)
    allocation = stratal.strata.allocate(strata, 80)
    rate = proxy.mean() + CALIBRATION_SLOPE * (proxy - proxy.mean())
    variances = []
    for _ in range(400):
        z = (generator.random(1000) < rate).astype(float)
        spread = np.array([z[strata.codes == h].var() for h in range(4)])
        variances.append(expected_variance(strata.sizes, allocation.n_h, spread))

    planned = expected_variance(strata.sizes, allocation.n_h, scenarios(strata).variances[0])
    assert planned == pytest.approx(np.mean(variances), rel=4 * np.std(variances) / np.mean(variances) / 20)


def test_a_fitted_lambda_is_never_worse_than_a_given_one_or_none(strata):
    ways, n_h = scenarios(strata), stratal.strata.allocate(strata, 100).n_h

    plain, given, fitted = (ways.standard_errors(strata, n_h, name) for name in FORECAST_ESTIMATORS)

    assert plain.shape == (13,)
    assert np.all(fitted <= given + 1e-15)
    assert np.all(fitted <= plain)


def test_ways_in_arrays_are_the_ways_one_by_one(strata):
    ways, n_h = scenarios(strata), stratal.strata.allocate(strata, 100).n_h

    together = ways.standard_errors(strata, n_h, "ppi++")
    one_by_one = [float(ways.select(k).standard_errors(strata, n_h, "ppi++")) for k in range(len(together))]

    assert together.tolist() == pytest.approx(one_by_one, rel=1e-12)


def test_one_stratum_keeps_its_plug_in():
    whole = stratal.strata.stratify(stratal.Population.from_arrays(proxy=[0.2, 0.9]), "none")

    assert scenarios(whole).variances[0] == pytest.approx(whole.standard_deviations**2)


def test_a_census_has_no_variance(strata):
    everything = stratal.strata.allocate(strata, 2000)

    assert not expected_variance(strata.sizes, everything.n_h, scenarios(strata).variances).any()
