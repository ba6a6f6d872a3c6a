from __future__ import annotations

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


def test_the_sandwich_is_the_loss_s(rare):
    z, population = rare
    plan = stratal.plan(population, budget=200, method="k-means").draw(seed=3)
    sandwich = regress(plan, z[plan.ids], family=stratal.regression.MeanLoss(), correction="none")
    assert sandwich[0].confidence_interval().method == "skewness-corrected"
