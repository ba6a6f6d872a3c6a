"""Allocations over generated strata: budget, bounds, optimality by brute force, nesting, order."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.real_optimum import real_optimum
from tests.tiers import sized

from stratal import strata as allocation
from stratal.strata.strata import Moments, moments_of_sizes


@st.composite
def problems(draw, most_strata=6, largest=40):
    n_strata = draw(st.integers(1, most_strata))

    def per_stratum(elements):
        return np.array(draw(st.lists(elements, min_size=n_strata, max_size=n_strata)))

    sizes = per_stratum(st.integers(1, largest))
    deviations = per_stratum(st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 1.0, 7.0]))
    minimum = np.minimum(per_stratum(st.integers(1, 3)), sizes)
    maximum = np.minimum(np.maximum(per_stratum(st.integers(1, largest)), minimum), sizes)
    budget = draw(st.integers(int(minimum.sum()), int(maximum.sum())))
    return sizes, deviations, budget, minimum, maximum


def variance(sizes, deviations, n_h):
    return float((sizes**2 * deviations**2 / n_h).sum())


def every_allocation(budget, minimum, maximum):
    ranges = [range(low, high + 1) for low, high in zip(minimum, maximum, strict=True)]
    for head in itertools.product(*ranges[:-1]):
        last = budget - sum(head)
        if minimum[-1] <= last <= maximum[-1]:
            yield np.array([*head, last])


RULES = {"proportional": {}, "equal": {}, "neyman": {}, "power": {}, "robust": {}, "stratppi": {"lam": 0.7}}


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=sized(8, 200), deadline=None)
@given(problem=problems())
def test_budget_bounds_and_nesting(rule, problem):
    sizes, deviations, budget, minimum, maximum = problem
    strata = Moments(
        sizes=sizes,
        proxy_means=np.linspace(0.05, 0.95, len(sizes)),
        proxy_variances=deviations**2 * 0.3,
        conditional_variances=deviations**2 * 0.7,
    )

    def share(budget):
        return allocation.allocate(strata, budget, rule, minimum, maximum, **RULES[rule]).n_h

    n_h = share(budget)

    assert n_h.sum() == budget
    assert np.all(n_h >= minimum)
    assert np.all(n_h <= maximum)
    if budget < maximum.sum():
        assert np.all(share(budget + 1) >= n_h)


@settings(max_examples=sized(8, 200), deadline=None)
@given(problem=problems(most_strata=4, largest=12))
def test_neyman_is_optimal_among_all_integers(problem):
    sizes, deviations, budget, minimum, maximum = problem

    found = variance(sizes, deviations, allocation.neyman(sizes, deviations, budget, minimum, maximum))

    best = min(variance(sizes, deviations, n_h) for n_h in every_allocation(budget, minimum, maximum))
    assert found <= best * (1 + 1e-12)


@settings(max_examples=sized(8, 200), deadline=None)
@given(problem=problems(most_strata=5, largest=10_000), scale=st.sampled_from([1e-200, 1.0, 1e200]))
def test_the_quick_start_gives_exactly_what_one_unit_at_a_time_gives(problem, scale):
    sizes, deviations, budget, minimum, maximum = problem
    deviations = np.where(deviations == 0, 0.2, deviations)
    budget = min(budget, int(minimum.sum()) + 300)
    n_h, importance = minimum.copy(), sizes * (deviations / deviations.max())
    for _ in range(budget - int(minimum.sum())):
        value = np.where(n_h < maximum, importance / np.sqrt(n_h * (n_h + 1.0)), -1.0)
        n_h[np.argmax(value)] += 1

    found = allocation.neyman(sizes, deviations * scale, budget, minimum, maximum)

    assert variance(sizes, deviations, found) == pytest.approx(variance(sizes, deviations, n_h), rel=1e-12)
    assert np.all(np.abs(found - n_h) <= 1)  # ties may fall the other way once scaled


@settings(max_examples=sized(8, 200), deadline=None)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_the_order_of_strata_matters_for_ties_alone(problem, seed):
    sizes, deviations, budget, minimum, maximum = problem
    order = np.random.default_rng(seed).permutation(len(sizes))
    straight = allocation.neyman(sizes, deviations, budget, minimum, maximum)
    mixed = allocation.neyman(sizes[order], deviations[order], budget, minimum[order], maximum[order])
    restored = np.empty_like(mixed)
    restored[order] = mixed

    assert variance(sizes, deviations, restored) == pytest.approx(
        variance(sizes, deviations, straight), rel=1e-12
    )
    values = {sizes[h] * deviations[h] for h in range(len(sizes))}
    if len(values) == len(sizes) and np.all(deviations > 0):
        importance = sizes * deviations
        ties = {
            round(importance[h] / np.sqrt(n * (n + 1)), 9) for h in range(len(sizes)) for n in range(1, 41)
        }
        if len(ties) == 40 * len(sizes):
            assert np.array_equal(restored, straight)


@settings(max_examples=sized(8, 200), deadline=None)
@given(problem=problems())
def test_real_numbers_are_within_bounds_and_never_worse_than_integers(problem):
    sizes, deviations, budget, minimum, maximum = problem

    real = real_optimum(sizes, deviations, budget, minimum, maximum)

    assert real.sum() == pytest.approx(budget)
    assert np.all(real >= minimum - 1e-9)
    assert np.all(real <= maximum + 1e-9)
    whole = allocation.neyman(sizes, deviations, budget, minimum, maximum)
    assert variance(sizes, deviations, real) <= variance(sizes, deviations, whole) * (1 + 1e-12)


@settings(max_examples=sized(8, 200), deadline=None)
@given(problem=problems(most_strata=3, largest=12), data=st.data())
def test_cost_optimal_stays_within_the_money_and_is_the_best_but_for_a_label(problem, data):
    sizes, deviations, _, minimum, maximum = problem
    prices = st.lists(st.sampled_from([1.0, 1.5, 2.0, 5.0, 7.3]), min_size=len(sizes), max_size=len(sizes))
    costs = np.array(data.draw(prices))
    money = data.draw(st.floats(float(costs @ minimum), float(costs @ maximum) + 1.0))

    how = {"standard_deviations": deviations, "costs": costs, "cost_budget": money}
    n_h = allocation.allocate(moments_of_sizes(sizes), None, "cost-optimal", minimum, maximum, **how).n_h

    assert costs @ n_h <= money * (1 + 1e-9)
    assert np.all(n_h >= minimum)
    assert np.all(n_h <= maximum)
    ranges = [range(low, high + 1) for low, high in zip(minimum, maximum, strict=True)]
    less = money - costs.max()
    affordable = (np.array(each) for each in itertools.product(*ranges) if costs @ each <= less)
    best = min((variance(sizes, deviations, each) for each in affordable), default=np.inf)
    assert variance(sizes, deviations, n_h) <= best * (1 + 2e-6)
