from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.estimation.regression import regress


@pytest.fixture
def rare():
    """3 % positives and a good judge, of which the sandwich once covered .26 and half the error's size."""
    rng = np.random.default_rng(0)
    z = (rng.random(20_000) < 0.03) * 1.0
    judge = np.where(z == 1, rng.beta(8, 2, 20_000), rng.beta(1, 20, 20_000))
    return z, stratal.Population.from_arrays(proxy=judge, ids=np.arange(20_000))


@pytest.mark.parametrize("asked", [{}, {"estimator": "ppi++"}, {"lam": 1.0}, {"target": "superpopulation"}])
def test_a_mean_is_that_of_estimate(rare, asked):
    z, population = rare
    sample = stratal.SimpleRandom(budget=60).draw(population, seed=1)
    found = regress(sample, z[sample.ids], family="mean", **asked)

    assert found == stratal.estimate(sample, z[sample.ids], **asked)
    assert found.confidence_interval().method == "clopper-pearson"


def test_rare_outcomes_cover(rare):
    z, population = rare
    inside = []
    for seed in range(250):
        sample = stratal.SimpleRandom(budget=50).draw(population, seed=seed)
        low, high = regress(sample, z[sample.ids], family="mean").confidence_interval()
        inside.append(low <= z.mean() <= high)
    assert np.mean(inside) > 0.94 - 3 * np.sqrt(0.06 * 0.94 / 250)


def test_the_sandwich_is_the_loss_s(rare):
    z, population = rare
    plan = stratal.plan(population, budget=80).draw(seed=3)
    sandwich = regress(plan, z[plan.ids], family=stratal.regression.MeanLoss(), correction="none")
    assert sandwich[0].confidence_interval().method == "skewness-corrected"
