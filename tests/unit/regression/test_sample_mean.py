from __future__ import annotations

import json

import numpy as np
import pytest

import stratal
from stratal.regression import regress


@pytest.fixture
def rare():
    """3 % positives and a good judge, of which the sandwich once covered .26 and half the error's size."""
    rng = np.random.default_rng(0)
    z = (rng.random(20_000) < 0.03) * 1.0
    judge = np.where(z == 1, rng.beta(8, 2, 20_000), rng.beta(1, 20, 20_000))
    return z, stratal.Population.from_arrays(proxy=judge, ids=np.arange(20_000))


@pytest.mark.parametrize(("asked", "own"), [({}, "ppi++"), ({"estimator": "classical"}, "horvitz-thompson")])
def test_a_mean_is_the_mean_of_estimate(rare, asked, own):
    z, population = rare
    sample = stratal.SimpleRandom(budget=60).draw(population, seed=1)
    found = regress(sample, z[sample.ids], family="mean", **asked)
    mean = stratal.estimate(sample, z[sample.ids], estimator=own)

    assert found.coefficients[0] == mean.value
    assert found.standard_errors[0] == pytest.approx(mean.standard_error)
    for level, alternative in ((0.95, "two-sided"), (0.8, "less")):
        low, high = found.confidence_interval(level, alternative=alternative)
        assert (low[0], high[0]) == (*mean.confidence_interval(level, alternative=alternative),)
    assert found.p_values(0.05)[0] == mean.p_value(0.05)
    assert json.loads(json.dumps(found.to_dict()))["interval_method"] == "clopper-pearson"
    assert "mean, " in str(found)


def test_rare_outcomes_cover(rare):
    z, population = rare
    inside = []
    for seed in range(250):
        sample = stratal.SimpleRandom(budget=50).draw(population, seed=seed)
        low, high = regress(sample, z[sample.ids], family="mean").confidence_interval()
        inside.append(low[0] <= z.mean() <= high[0])
    assert np.mean(inside) > 0.94 - 3 * np.sqrt(0.06 * 0.94 / 250)


def test_other_designs_given_lam_and_the_sandwich(rare):
    z, population = rare
    plan = stratal.plan(population, budget=80).draw(seed=3)
    by_stratum = regress(plan, z[plan.ids], family="mean", estimator="stratppi")
    assert by_stratum.lam.shape == (len(plan.design.stratum_names),)
    assert by_stratum.proxy_covariances.shape == by_stratum.residual_covariances.shape
    given = regress(plan, z[plan.ids], family="mean", lam=1.0)
    assert given.estimator == "given λ"
    assert given.coefficients[0] == stratal.estimate(plan, z[plan.ids], estimator="difference").value
    unequal = stratal.Poisson(budget=60, size="sqrt-variance").draw(population, seed=2)
    found = regress(unequal, z[unequal.ids], family="mean", estimator="classical")
    assert found.coefficients[0] == stratal.estimate(unequal, z[unequal.ids], estimator="hajek").value
    sandwich = regress(plan, z[plan.ids], family="mean", correction="none")
    assert sandwich.confidence_interval().method == "skewness-corrected"


def test_one_coefficient_has_one_null(rare):
    z, population = rare
    sample = stratal.SimpleRandom(budget=20).draw(population, seed=1)
    with pytest.raises(stratal.InputError, match="one coefficient"):
        regress(sample, z[sample.ids], family="mean").p_values([0.1, 0.2])
