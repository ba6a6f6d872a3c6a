"""Variance formulas: collapsed strata, degrees of freedom, and the designs' special cases."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.designs import PoissonWeighting, StratifiedWeighting, WithReplacementWeighting
from stratal.designs.poisson import fixed_size, poisson
from stratal.designs.stratum_moments import collapse_singletons, satterthwaite, stratum_covariances


def test_collapsed_strata_join_the_nearest():
    assert collapse_singletons(np.array([1, 5, 1, 1]), np.array([9, 9, 9, 9])).tolist() == [
        1,
        1,
        1,
        1,
    ]
    assert collapse_singletons(np.array([1, 5]), np.array([1, 9])).tolist() == [0, 1]
    assert collapse_singletons(np.array([1]), np.array([9])).tolist() == [0]


def test_satterthwaite_lies_between_the_least_and_the_sum():
    rng = np.random.default_rng(1)
    for _ in range(50):
        parts, freedom = rng.random(4), rng.integers(1, 30, 4).astype(float)
        result = satterthwaite(parts, freedom)
        assert freedom.min() <= result <= freedom.sum() + 1e-9
    assert satterthwaite(np.zeros(2), np.array([3.0, 4.0])) == 7
    assert satterthwaite(np.array([1e200, 1e200]), np.array([4.0, 4.0])) == pytest.approx(8)


def test_one_stratum_is_a_simple_random_sample():
    y = np.array([1.0, 4.0, 2.0, 7.0])
    weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([10]))

    assert 0.6 * y.var(ddof=1) / 4 == pytest.approx(weighting.covariance(y[:, None])[0, 0])
    assert weighting.degrees_of_freedom(y) == pytest.approx(3)


def test_labels_that_are_all_one_average_to_one():
    sizes = np.array([7, 11, 3])
    weighting = StratifiedWeighting(stratum=np.array([0, 0, 0, 1, 1, 2]), sizes=sizes)

    assert weighting.mean(np.ones((6, 1)))[0] == 1.0


def test_certain_units_have_no_variance():
    y = np.array([[1.0], [5.0]])
    assert poisson(y, np.ones(2), 2)[0, 0] == 0
    assert fixed_size(y, np.ones(2), 2)[0, 0] == 0


def test_equal_weights_with_replacement_are_the_textbook():
    y = np.array([1.0, 4.0, 2.0, 7.0])
    weighting = WithReplacementWeighting(design_weight=np.full(4, 25.0), size=100)

    assert y.var(ddof=1) / 4 == pytest.approx(weighting.covariance(y[:, None])[0, 0])


def test_covariance_of_several_variables_is_bilinear():
    rng = np.random.default_rng(2)
    y = rng.normal(size=(12, 2))
    stratum = np.repeat([0, 1, 2], 4)
    for weighting in (
        StratifiedWeighting(stratum=stratum, sizes=np.array([9, 20, 8])),
        PoissonWeighting(inclusion_probability=rng.uniform(0.1, 1, 12), size=40.0),
    ):
        joint = weighting.covariance(y)
        total = weighting.covariance(y.sum(axis=1, keepdims=True))[0, 0]
        assert total == pytest.approx(joint.sum())
        spread = weighting.population_covariance(y)
        assert np.all(np.linalg.eigvalsh(spread) >= -1e-15)


@pytest.mark.parametrize("q", [1, 2, 3, 5])
def test_stratum_covariances_are_numpy_s_however_many_variables(q):
    random = np.random.default_rng(q)
    variables, stratum = random.normal(size=(30, q)), random.integers(0, 2, size=30)
    stratum[stratum == 1] = np.where(np.arange(np.sum(stratum == 1)) > 4, 0, 1)

    found = stratum_covariances(variables, stratum, 2)

    for h in range(2):
        expected = np.cov(variables[stratum == h], rowvar=False).reshape(q, q)
        assert found[h] == pytest.approx(expected)
    assert np.all(np.isnan(stratum_covariances(variables[:2], np.array([0, 1]), 2)))


def test_factors_of_strata_by_hand():
    """Cochran's W_h² (1 − f_h)/n_h over the strata with labels: of one unit, of one label, without any."""
    stratum = np.array([0, 1, 2, 2])
    drawn = StratifiedWeighting(stratum=stratum, sizes=np.array([1, 4, 5, 90]))
    again = StratifiedWeighting(stratum=stratum, sizes=np.array([1, 4, 5, 90]), with_replacement=True)

    np.testing.assert_allclose(drawn.sampled_fractions, [1, 1 / 4, 2 / 5, 0])
    np.testing.assert_allclose(drawn.variance_factors, [0, 0.4**2 * 0.75, 0.5**2 * 0.6 / 2, 0])
    np.testing.assert_allclose(again.variance_factors, [0.1**2, 0.4**2, 0.5**2 / 2, 0])
    np.testing.assert_allclose(again.sampled_fractions, 0)


def test_a_stratum_without_labels_leaves_the_mean_to_the_others():
    weighting = StratifiedWeighting(stratum=np.array([0, 0, 1]), sizes=np.array([30, 10, 60]))

    assert weighting.mean(np.array([[1.0], [3.0], [6.0]])) == pytest.approx((30 * 2 + 10 * 6) / 40)


def test_a_census_has_every_unit_and_was_not_drawn_with_replacement():
    stratum, sizes = np.array([0, 0, 1]), np.array([2, 1])

    assert StratifiedWeighting(stratum=stratum, sizes=sizes).census
    assert not StratifiedWeighting(stratum=stratum, sizes=sizes, with_replacement=True).census
    assert not StratifiedWeighting(stratum=stratum, sizes=np.array([3, 1])).census
