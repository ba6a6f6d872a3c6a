"""What breaks other tools: every hard population goes the whole way, whatever the method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiers import sized

import stratal
from stratal.errors import BudgetError, InputError

GENERATOR = np.random.default_rng(0)

HARD = {
    "constant": np.full(60, 0.7),
    "two distinct values": np.repeat([0.2, 0.9], [50, 10]),
    "one unit far away": np.append(GENERATOR.random(59), 1e9),
    "an offset of 1e8": GENERATOR.random(60) + 1e8,
    "all but one at one": np.append(np.ones(59), 0.0),
    "tiny differences": 0.5 + np.arange(60) * 1e-15,
    "nearly all mass in one bin": np.append(1 - GENERATOR.random(55) * 1e-7, GENERATOR.random(5)),
    "every value its own": np.linspace(0, 1, 60),
    "huge": GENERATOR.normal(size=60) * 1e90,
    "negative": -GENERATOR.random(60),
}
METHODS = (
    "k-means", "equal-size", "equal-width", "cum-sqrt-f", "cum-cbrt-f", "weighted-mean", "gaussian-mixture",
)  # fmt: skip


def whole_trip(population, strata, budget, method):
    allocation = stratal.strata.allocate(strata, budget, method)
    sample = stratal.designs.Stratified(strata=strata, allocation=allocation).draw(population, seed=3)
    labels = (GENERATOR.random(sample.size) < 0.8).astype(float)
    return sample, stratal.estimate(sample, labels, target="population")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", HARD)
def test_hard_populations_go_the_whole_way(name, method):
    population = stratal.Population.from_arrays(proxy=HARD[name])
    strata = stratal.strata.stratify(population, method, 5)

    assert strata.sizes.sum() == 60
    assert np.bincount(strata.codes, minlength=strata.n_strata).tolist() == strata.sizes.tolist()
    for rule in ("proportional", "equal", "neyman", "robust"):
        sample, estimate = whole_trip(population, strata, 30, rule)
        low, high = estimate.confidence_interval()
        assert sample.size == 30
        assert 0 <= low <= estimate.value <= high <= 1
        assert low < high


@pytest.mark.parametrize("name", HARD)
def test_neyman_cuts_of_hard_populations(name):
    population = stratal.Population.from_arrays(proxy=HARD[name])
    if not population.proxies[0].scaled:
        with pytest.raises(InputError, match="variance of the outcome around"):
            stratal.strata.stratify(population, "neyman", 5)
        return
    strata = stratal.strata.stratify(population, "neyman", 5)
    assert whole_trip(population, strata, 30, "robust")[0].size == 30


def test_a_budget_of_one_per_stratum_needs_a_minimum_of_one():
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 60))
    strata = stratal.strata.stratify(population, n_strata=6)

    with pytest.raises(BudgetError, match="minimum=1"):
        stratal.strata.allocate(strata, 6)
    assert stratal.strata.allocate(strata, 6, minimum=1).n_h.tolist() == [1] * 6
    sample = stratal.designs.Stratified(
        strata=strata, allocation=stratal.strata.allocate(strata, 6, minimum=1)
    ).draw(population, seed=1)
    low, high = stratal.estimate(sample, [1, 0, 1, 1, 0, 1]).confidence_interval()
    assert 0 <= low < high <= 1


def test_proxies_too_large_to_be_squared_are_refused_before_any_label_is_bought():
    with pytest.raises(InputError, match="too large"):
        stratal.Population.from_arrays(proxy=[1e150, 0.0])


def test_a_census_is_certain():
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 60))
    strata = stratal.strata.stratify(population, n_strata=6)
    sample, estimate = whole_trip(population, strata, 60, "robust")

    assert sorted(sample.ids.tolist()) == list(range(60))
    assert estimate.standard_error == pytest.approx(0, abs=1e-12)
    assert estimate.effective_sample_size == pytest.approx(60)


def test_strata_of_one_unit():
    population = stratal.Population.from_arrays(
        proxy=np.linspace(0, 1, 30), groups={"g": ["a", *["b"] * 28, "c"]}
    )
    strata = stratal.strata.stratify(population, "category", by="g")
    allocation = stratal.strata.allocate(strata, 10)

    assert dict(zip(strata.names, allocation.n_h.tolist(), strict=True)) == {
        "g = a": 1, "g = b": 8, "g = c": 1,
    }  # fmt: skip


def test_zero_variance_strata_share_what_is_left():
    population = stratal.Population.from_arrays(proxy=np.repeat([0.0, 1.0], 50))
    strata = stratal.strata.stratify(population, n_strata=2)

    for rule in ("neyman", "robust", "proportional"):
        assert stratal.strata.allocate(strata, 30, rule).n_h.sum() == 30


@settings(max_examples=sized(8, 200), deadline=None)
@given(
    values=st.lists(st.floats(0, 1), min_size=1, max_size=80),
    data=st.data(),
)
def test_any_population_can_be_planned_drawn_and_estimated(values, data):
    population = stratal.Population.from_arrays(proxy=values)
    budget = data.draw(st.integers(1, len(values)))
    share = data.draw(st.sampled_from([0.0, 0.5, 0.9, 1.0]))
    sample = stratal.plan(population, budget).draw(seed=data.draw(st.integers(0, 1000)))
    labels = (np.random.default_rng(1).random(budget) < share).astype(float)

    estimate = stratal.estimate(sample, labels, target="population")
    low, high = estimate.confidence_interval()

    assert sample.size == budget
    assert 0 <= low <= estimate.value <= high <= 1
    assert (low < high) == (budget < len(values))
