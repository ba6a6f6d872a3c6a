"""Systematic sampling on the sorted proxy."""

import numpy as np
import pytest

import stratal
from stratal.designs.systematic import SystematicWeighting, successive_differences, systematic_ranks
from stratal.errors import BudgetError, InputError


def test_every_rank_has_the_same_chance():
    starts = (np.arange(20_000) + 0.5) / 20_000
    hits = np.zeros(11)
    for start in starts:
        hits[systematic_ranks(11, 4, start)] += 1

    np.testing.assert_allclose(hits / len(starts), 4 / 11, atol=2e-4)


@pytest.mark.parametrize(("size", "budget"), [(10, 10), (10, 1), (7, 3), (1000, 999)])
def test_ranks_are_distinct_and_inside(size, budget):
    for start in (0.0, 0.5, np.nextafter(1.0, 0)):
        ranks = systematic_ranks(size, budget, start)
        assert len(set(ranks.tolist())) == budget
        assert ranks.min() >= 0
        assert ranks.max() < size


def test_the_sample_is_spread_along_the_proxy():
    proxy = np.random.default_rng(0).random(1000)
    sample = stratal.designs.Systematic(budget=100).draw(stratal.Population.from_arrays(proxy=proxy), seed=3)

    ranks = np.sort(np.argsort(np.argsort(proxy))[sample.ids])
    assert np.all(np.diff(ranks) == 10)
    assert set(sample.inclusion_probability) == {0.1}


def test_rows_may_come_in_any_order():
    rng = np.random.default_rng(0)
    ids, proxy, order = np.arange(500), np.round(rng.random(500), 1), rng.permutation(500)
    design = stratal.designs.Systematic(budget=20)

    one = design.draw(stratal.Population.from_arrays(proxy=proxy, ids=ids), seed=3)
    other = design.draw(stratal.Population.from_arrays(proxy=proxy[order], ids=ids[order]), seed=3)

    np.testing.assert_array_equal(one.ids, other.ids)


def test_a_proxy_is_needed_and_may_be_named():
    with pytest.raises(InputError, match="no proxy"):
        stratal.designs.Systematic(budget=2).draw(stratal.Population.from_arrays(ids=[1, 2, 3]), seed=1)
    two = stratal.Population.from_arrays(proxy={"a": [0.1, 0.2, 0.3, 0.4], "b": [0.4, 0.1, 0.3, 0.2]})
    sample = stratal.designs.Systematic(budget=2, order="b").draw(two, seed=1)
    assert sample.design.order == "b"
    assert (sample.proxies[:, 1] <= 0.2).sum() == 1


def test_too_large_a_budget_is_refused():
    with pytest.raises(BudgetError):
        stratal.designs.Systematic(budget=9).draw(stratal.Population.from_arrays(proxy=[0.1, 0.2]), seed=1)


def test_differences_of_neighbours_ignore_a_trend():
    trend = np.linspace(0, 1, 50)[:, None]

    assert successive_differences(trend, 5000)[0, 0] < 0.01 * trend.var() / 50


def test_of_random_order_the_variance_is_that_of_a_random_sample():
    y = np.random.default_rng(1).normal(size=(2000, 1))

    assert successive_differences(y, 10**9)[0, 0] == pytest.approx(y.var() / 2000, rel=0.1)


def test_a_census_has_no_variance_and_one_unit_none_that_can_be_estimated():
    assert successive_differences(np.ones((3, 2)), 3).tolist() == [[0, 0], [0, 0]]
    assert np.isnan(successive_differences(np.ones((1, 1)), 3)).all()
    assert SystematicWeighting(order=np.array([0]), size=3).degrees_of_freedom(np.ones(1)) == 1


def test_there_is_no_next_round():
    sample = stratal.designs.Systematic(budget=4).draw(
        stratal.Population.from_arrays(proxy=np.ones(9) / 2), seed=1
    )

    with pytest.raises(InputError, match="'systematic' has no next round"):
        stratal.next_round(sample, [1, 0, 1, 1], additional=2)
