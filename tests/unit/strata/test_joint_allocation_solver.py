from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from stratal.strata.joint_allocation import Demands, cheapest, most_precise, without_floors, without_settled


def demands(seed, count, n_strata, overlap=1.0):
    """Estimands that vary in different strata, so that several constraints bind."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(50, 5000, n_strata).astype(float)
    weights = sizes / sizes.sum()
    deviations = rng.uniform(0.1, 1.0, (count, n_strata)) * (rng.random((count, n_strata)) < overlap)
    deviations[:, rng.integers(n_strata)] += 0.1
    spread = (weights * deviations) ** 2
    wanted = spread @ (1 / np.minimum(sizes, 30)) * rng.uniform(0.7, 1.3, count)
    spread = spread / wanted[:, None]
    return Demands(
        spread=spread,
        slack=(spread / sizes).sum(axis=1),
        lower=np.full(n_strata, 2.0),
        upper=sizes,
    )


def by_scipy(given):
    """The same optimum by sequential quadratic programming in log n_h, from a feasible start."""
    start = np.log(np.minimum(given.upper, 200.0))
    found = minimize(
        lambda x: given.cost(np.exp(x)),
        start,
        jac=lambda x: np.exp(x),
        bounds=list(zip(np.log(given.lower), np.log(given.upper), strict=True)),
        constraints={
            "type": "ineq",
            "fun": lambda x: given.allowed - given.used(np.exp(x)),
            "jac": lambda x: given.spread * np.exp(-x),
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success or found.status == 8  # 8: no step improves any more
    return np.exp(found.x)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # of SciPy 1.13's own steps
@pytest.mark.parametrize(("seed", "count"), [(s, c) for s in range(6) for c in (2, 3, 5)])
def test_agrees_with_scipys_solver_where_several_constraints_bind(seed, count):
    given = demands(seed, count, 12, overlap=0.5)

    found = cheapest(given)

    expected = by_scipy(given)
    assert given.cost(found.n_h) <= given.cost(expected) * (1 + 1e-8)
    assert found.n_h == pytest.approx(expected, rel=1e-3, abs=1e-3)
    assert np.all(given.used(found.n_h) <= given.allowed * (1 + 1e-10))


def test_the_generated_cases_have_two_and_more_binding_constraints():
    binding = [
        int((cheapest(demands(seed, count, 12, overlap=0.5)).multipliers > 0).sum())
        for seed in range(6)
        for count in (2, 3, 5)
    ]

    assert max(binding) >= 4
    assert sum(b >= 2 for b in binding) >= 12


@pytest.mark.parametrize("shape", [(2, 10), (10, 200), (50, 2000)])
@pytest.mark.parametrize("seed", range(3))
def test_the_gap_certifies_the_optimum(seed, shape):
    given = demands(seed, shape[0], shape[1], overlap=0.2)

    found = cheapest(given)

    assert given.cost(found.n_h) - found.bound <= 1e-9 * found.bound
    assert np.all(given.used(found.n_h) <= given.allowed * (1 + 1e-10))


@pytest.mark.parametrize("seed", range(5))
def test_any_prices_bound_the_cost_from_below(seed):
    given = demands(seed, 4, 20)
    best = given.cost(cheapest(given).n_h)
    rng = np.random.default_rng(seed)

    for _ in range(50):
        assert given.at(rng.lognormal(3, 3, 4))[1] <= best * (1 + 1e-12)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_the_level_that_money_buys_costs_that_money(seed, share):
    given = demands(seed, 5, 30, overlap=0.4)
    most = np.where(np.any(given.spread > 0, axis=0), given.upper, given.lower)
    money = (1 - share) * given.cost(given.lower) + share * given.cost(most)

    found = most_precise(given, money)

    level = given.levels(found.n_h).max()
    assert given.cost(found.n_h) == pytest.approx(money, rel=1e-8)
    assert level == pytest.approx(found.bound, rel=1e-6)
    assert cheapest(replace(given, level=level)).bound == pytest.approx(money, rel=1e-6)


def test_one_constraint_is_neymans_closed_form():
    given = Demands(
        spread=np.array([[4.0, 1.0, 9.0]]),
        slack=np.zeros(1),
        lower=np.ones(3),
        upper=np.full(3, 1e6),
    )

    found = cheapest(given)

    roots = np.sqrt(given.spread[0])
    expected = roots * roots.sum()
    assert found.n_h == pytest.approx(expected, rel=1e-9)


def test_an_estimand_that_needs_every_label_has_them():
    given = Demands(
        spread=np.array([[8.0, 0.0], [0.0, 3.0]]),
        slack=np.zeros(2),
        lower=np.ones(2),
        upper=np.array([8.0, 50.0]),
    )

    kept, open_ = without_settled(given)

    assert open_.tolist() == [False, True]
    assert kept.lower.tolist() == [8, 1]
    assert cheapest(given).n_h == pytest.approx([8, 3])


def test_money_beyond_the_floor_of_one_goes_to_the_other():
    given = Demands(
        spread=np.array([[8.0, 0.0], [0.0, 3.0]]),
        slack=np.zeros(2),
        lower=np.ones(2),
        upper=np.array([4.0, 50.0]),
    )

    kept, open_ = without_floors(given, 20.0)

    assert open_.tolist() == [False, True]
    assert most_precise(kept, 20.0).n_h == pytest.approx([4, 16])


def test_estimands_that_share_no_stratum_are_each_neymans_closed_form():
    """Sixty levels of four strata each: the second derivatives are then a sparse product."""
    rng = np.random.default_rng(7)
    spread = np.zeros((60, 240))
    spread[np.repeat(np.arange(60), 4), np.arange(240)] = rng.uniform(1.0, 9.0, 240)
    one = np.ones(240)
    demands = Demands(spread=spread, slack=np.zeros(60), lower=0.01 * one, upper=1e6 * one)
    found = cheapest(demands)
    roots = np.sqrt(spread.sum(axis=0)).reshape(60, 4)

    np.testing.assert_allclose(found.n_h.reshape(60, 4), roots * roots.sum(axis=1)[:, None], rtol=1e-6)
