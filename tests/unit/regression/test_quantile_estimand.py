"""A quantile: planned near the place where it may be, with Woodruff's interval at any level."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.estimands import Quantile
from stratal.regression.quantiles import weighted_quantile_estimate


@pytest.fixture
def population():
    rng = np.random.default_rng(4)
    return stratal.Population.from_arrays(proxy={"guess": rng.normal(0, 2, 2000)}, scaled=True)


def test_labels_are_sent_where_the_quantile_may_be(population):
    influence = Quantile(0.9).influence(population)
    strata = stratal.strata.stratify(population, "neyman", 8, influence=influence)
    n_h = stratal.strata.allocate(strata, 100, "neyman").n_h
    columns = next(population.batches(("guess",)))
    z = columns["guess"]
    middle = np.array([z[strata.codes == h].mean() for h in range(strata.n_strata)])
    rates = n_h / strata.sizes
    near = np.abs(middle - np.quantile(z, 0.9))

    assert influence.value == pytest.approx(np.quantile(z, 0.9), abs=0.05)
    assert rates[np.argmin(near)] > 3 * rates[np.argmax(near)]


def test_the_estimate_is_the_quantile_of_the_labels_at_any_level(population):
    sample = stratal.designs.SimpleRandom(budget=80).draw(population, seed=2)
    labels = np.random.default_rng(1).normal(size=80)
    estimate = stratal.estimate(sample, labels, estimand="quantile:.5")
    plain = weighted_quantile_estimate(labels, 0.5, sample.weighting())
    for level in (0.8, 0.95):
        assert estimate.value == plain.value
        assert [*estimate.confidence_interval(level)] == [*plain.confidence_interval(level)]
    assert estimate.confidence_interval().method == "woodruff"
    assert set(np.unique(Quantile(0.5).labelled_influence(sample, labels).u)) == {-0.5, 0.5}


def test_what_a_quantile_cannot_do_is_refused(population):
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=2)
    with pytest.raises(InputError, match="a weighted quantile always refers to the population"):
        stratal.estimate(sample, np.ones(20), estimand="quantile:.5", target="superpopulation")
    ordering = stratal.Population.from_arrays(proxy=[3.0, 9.0, -4.0])
    with pytest.raises(InputError, match="on the outcome's scale"):
        Quantile(0.5).influence(ordering)
