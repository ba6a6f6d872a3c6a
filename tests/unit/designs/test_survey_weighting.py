from __future__ import annotations

import numpy as np
import pytest

from stratal import InputError
from stratal.designs import StratifiedWeighting, WithReplacementWeighting


@pytest.fixture
def units():
    rng = np.random.default_rng(3)
    return rng.normal(size=(12, 2)), rng.uniform(1, 4, 12)


def test_units_one_by_one_in_one_stratum_are_independent_draws(units):
    variables, weights = units
    survey = WithReplacementWeighting(
        design_weight=weights, primary=np.zeros(12, dtype=int), cluster=np.arange(12), size=weights.sum()
    )
    plain = WithReplacementWeighting(design_weight=weights, size=weights.sum())
    assert survey.covariance(variables) == pytest.approx(plain.covariance(variables))
    assert survey.unit_clusters is None
    assert survey.degrees_of_freedom(variables[:, 0]) == 11


def test_known_sizes_without_clusters_are_stratified_sampling_with_replacement(units):
    variables, _ = units
    stratum, sizes = np.repeat([0, 1], [5, 7]), np.array([40, 20])
    survey = WithReplacementWeighting(
        design_weight=(sizes / [5, 7])[stratum],
        primary=stratum,
        cluster=np.arange(12),
        size=60,
        sizes_known=True,
    )
    plain = StratifiedWeighting(stratum=stratum, sizes=sizes, with_replacement=True)
    assert survey.covariance(variables) == pytest.approx(plain.covariance(variables))
    assert survey.mean(variables) == pytest.approx(plain.mean(variables))


def test_clusters_of_equal_units_are_worth_their_number(units):
    totals = np.repeat(units[0][:4], 3, axis=0)
    survey = WithReplacementWeighting(
        design_weight=np.ones(12),
        primary=np.zeros(12, dtype=int),
        cluster=np.repeat(np.arange(4), 3),
        size=12,
    )
    alone = WithReplacementWeighting(design_weight=np.ones(4), size=4)
    assert survey.covariance(totals) == pytest.approx(alone.covariance(units[0][:4]))
    assert survey.unit_clusters is not None
    assert survey.draws == 4


def test_one_cluster_tells_nothing():
    survey = WithReplacementWeighting(
        design_weight=np.ones(3), primary=np.zeros(3, dtype=int), cluster=np.zeros(3, dtype=int), size=3
    )
    assert np.all(np.isnan(survey.covariance(np.ones((3, 1)))))
    assert survey.degrees_of_freedom(np.ones(3)) == 1


@pytest.mark.parametrize("odd", [0.0, -1.0, np.nan, np.inf])
def test_weights_must_be_positive_numbers(odd):
    with pytest.raises(
        InputError, match=r"every weight must be positive|design_weight .*nan|design_weight .*inf|position 2"
    ):
        WithReplacementWeighting(design_weight=np.array([1.0, 2.0, odd]), size=10)
