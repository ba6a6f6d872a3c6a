"""Several models together: family-wise error, and what a census leaves for the superpopulation."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.family_wise import CELLS, MODELS, drawn, outcomes, rates
from tests.tiers import sized

from stratal.designs import StratifiedWeighting
from stratal.designs.clusters import ClusterWeighting
from stratal.estimation.linearised import target_covariance, target_df
from stratal.metrics.comparison import ModelOutcomes

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(("name", "size", "count", "clusters"), CELLS[:: sized(3, 1)])
def test_six_equal_models_are_rarely_told_apart(name, size, count, clusters):
    """With all of 200 units labelled the family-wise error was .25."""
    draws = sized(40, 400)
    error, _, _ = rates(drawn(size, count, clusters), draws)

    assert error <= 0.06 + 3 * np.sqrt(0.05 * 0.95 / draws)


def test_in_a_census_the_covariance_is_that_of_the_labels():
    z = outcomes(drawn(200, 200, False), RNG)
    weighting = StratifiedWeighting(stratum=np.zeros(200, dtype=np.int64), sizes=np.array([200]))

    assert np.all(target_covariance(z, weighting, "population") == 0)
    assert target_covariance(z, weighting, "superpopulation") == pytest.approx(np.cov(z.T) / 200)
    assert target_df(0.0, z[:, 0], weighting, 0.0, 0.1) == 199
    assert target_df(99.0, z[:, 0], weighting, 0.1, 0.0) == 99


def test_in_a_census_of_clusters_it_is_that_between_clusters():
    cluster = np.repeat(np.arange(20), 5)
    z = RNG.normal(size=(20, 2))[cluster] + 0.1 * RNG.normal(size=(100, 2))
    weighting = ClusterWeighting(cluster=cluster, drawn=np.full(20, 5), clusters=20, size=100)
    means = z.reshape(20, 5, 2).mean(axis=1)

    assert target_covariance(z, weighting, "superpopulation") == pytest.approx(np.cov(means.T) / 20)


def test_a_census_has_the_freedom_and_the_correlation_of_its_labels():
    sample = drawn(200, 200, False)
    z = outcomes(sample, RNG)
    names = tuple("abcdef"[:MODELS])
    everyone = np.ones(200, dtype=bool)
    models = ModelOutcomes.of(sample, z, everyone, names, bounds=(0.0, 1.0), target="superpopulation")
    difference = models.pair(0, 1).difference()
    gap = z[:, 0] - z[:, 1]

    assert difference.degrees_of_freedom == pytest.approx(199)
    assert difference.standard_error == pytest.approx(gap.std(ddof=1) / np.sqrt(200))
    wins, losses = (gap > 0).mean(), (gap < 0).mean()
    expected = -np.sqrt(wins * losses / ((1 - wins) * (1 - losses)))
    assert difference.evidence.interval.correlation[0, 1] == pytest.approx(expected)
