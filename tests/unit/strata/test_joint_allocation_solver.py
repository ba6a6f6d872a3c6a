from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from stratal.strata.joint_allocation import (
    Constraints,
    budget_limited_constraints,
    minimise_cost,
    minimise_level,
    unsatisfied_constraints,
)


def random_constraints(seed, count, n_strata, overlap=1.0):
    """Estimands that vary in different strata, so that several constraints bind."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(50, 5000, n_strata).astype(float)
    weights = sizes / sizes.sum()
    deviations = rng.uniform(0.1, 1.0, (count, n_strata)) * (rng.random((count, n_strata)) < overlap)
    deviations[:, rng.integers(n_strata)] += 0.1
    variances = (weights * deviations) ** 2
    target_variances = variances @ (1 / np.minimum(sizes, 30)) * rng.uniform(0.7, 1.3, count)
    coefficients = variances / target_variances[:, None]
    return Constraints(
        coefficients=coefficients,
        correction=(coefficients / sizes).sum(axis=1),
        lower=np.full(n_strata, 2.0),
        upper=sizes,
    )


def scipy_optimum(constraints):
    """The same optimum by sequential quadratic programming in log n_h, from a feasible start."""
    start = np.log(np.minimum(constraints.upper, 200.0))
    solution = minimize(
        lambda x: constraints.cost(np.exp(x)),
        start,
        jac=lambda x: np.exp(x),
        bounds=list(zip(np.log(constraints.lower), np.log(constraints.upper), strict=True)),
        constraints={
            "type": "ineq",
            "fun": lambda x: constraints.limits - constraints.sums(np.exp(x)),
            "jac": lambda x: constraints.coefficients * np.exp(-x),
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert solution.success or solution.status == 8  # 8: no step improves any more
    return np.exp(solution.x)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # of SciPy 1.13's own steps
@pytest.mark.parametrize(("seed", "count"), [(s, c) for s in range(6) for c in (2, 3, 5)])
def test_agrees_with_scipys_solver_where_several_constraints_bind(seed, count):
    constraints = random_constraints(seed, count, 12, overlap=0.5)

    optimum = minimise_cost(constraints)

    expected = scipy_optimum(constraints)
    assert constraints.cost(optimum.n_h) <= constraints.cost(expected) * (1 + 1e-8)
    assert optimum.n_h == pytest.approx(expected, rel=1e-3, abs=1e-3)
    assert np.all(constraints.sums(optimum.n_h) <= constraints.limits * (1 + 1e-10))


def test_the_generated_cases_have_two_and_more_binding_constraints():
    binding = [
        int((minimise_cost(random_constraints(seed, count, 12, overlap=0.5)).multipliers > 0).sum())
        for seed in range(6)
        for count in (2, 3, 5)
    ]

    assert max(binding) >= 4
    assert sum(b >= 2 for b in binding) >= 12


@pytest.mark.parametrize("shape", [(2, 10), (10, 200), (50, 2000)])
@pytest.mark.parametrize("seed", range(3))
def test_the_gap_certifies_the_optimum(seed, shape):
    constraints = random_constraints(seed, shape[0], shape[1], overlap=0.2)

    optimum = minimise_cost(constraints)

    assert constraints.cost(optimum.n_h) - optimum.bound <= 1e-9 * optimum.bound
    assert np.all(constraints.sums(optimum.n_h) <= constraints.limits * (1 + 1e-10))


@pytest.mark.parametrize("seed", range(5))
def test_the_dual_of_any_multipliers_is_a_lower_bound_on_the_cost(seed):
    constraints = random_constraints(seed, 4, 20)
    best = constraints.cost(minimise_cost(constraints).n_h)
    rng = np.random.default_rng(seed)

    for _ in range(50):
        assert constraints.dual(rng.lognormal(3, 3, 4))[1] <= best * (1 + 1e-12)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_level_for_a_cost_has_this_cost(seed, share):
    constraints = random_constraints(seed, 5, 30, overlap=0.4)
    max_n_h = np.where(np.any(constraints.coefficients > 0, axis=0), constraints.upper, constraints.lower)
    max_cost = (1 - share) * constraints.cost(constraints.lower) + share * constraints.cost(max_n_h)

    optimum = minimise_level(constraints, max_cost)

    level = constraints.levels(optimum.n_h).max()
    assert constraints.cost(optimum.n_h) == pytest.approx(max_cost, rel=1e-8)
    assert level == pytest.approx(optimum.bound, rel=1e-6)
    assert minimise_cost(replace(constraints, level=level)).bound == pytest.approx(max_cost, rel=1e-6)


def test_one_constraint_is_neymans_closed_form():
    constraints = Constraints(
        coefficients=np.array([[4.0, 1.0, 9.0]]),
        correction=np.zeros(1),
        lower=np.ones(3),
        upper=np.full(3, 1e6),
    )

    optimum = minimise_cost(constraints)

    roots = np.sqrt(constraints.coefficients[0])
    expected = roots * roots.sum()
    assert optimum.n_h == pytest.approx(expected, rel=1e-9)


def test_an_estimand_that_needs_all_labels_gets_them():
    constraints = Constraints(
        coefficients=np.array([[8.0, 0.0], [0.0, 3.0]]),
        correction=np.zeros(2),
        lower=np.ones(2),
        upper=np.array([8.0, 50.0]),
    )

    remaining, is_active = unsatisfied_constraints(constraints)

    assert is_active.tolist() == [False, True]
    assert remaining.lower.tolist() == [8, 1]
    assert minimise_cost(constraints).n_h == pytest.approx([8, 3])


def test_budget_beyond_the_minimum_level_of_one_estimand_goes_to_the_other():
    constraints = Constraints(
        coefficients=np.array([[8.0, 0.0], [0.0, 3.0]]),
        correction=np.zeros(2),
        lower=np.ones(2),
        upper=np.array([4.0, 50.0]),
    )

    remaining, is_active = budget_limited_constraints(constraints, 20.0)

    assert is_active.tolist() == [False, True]
    assert minimise_level(remaining, 20.0).n_h == pytest.approx([4, 16])


def test_estimands_that_share_no_stratum_are_each_neymans_closed_form():
    """Sixty levels of four strata each: the second derivatives are then a sparse product."""
    rng = np.random.default_rng(7)
    coefficients = np.zeros((60, 240))
    coefficients[np.repeat(np.arange(60), 4), np.arange(240)] = rng.uniform(1.0, 9.0, 240)
    one = np.ones(240)
    constraints = Constraints(
        coefficients=coefficients, correction=np.zeros(60), lower=0.01 * one, upper=1e6 * one
    )
    optimum = minimise_cost(constraints)
    roots = np.sqrt(coefficients.sum(axis=0)).reshape(60, 4)

    np.testing.assert_allclose(optimum.n_h.reshape(60, 4), roots * roots.sum(axis=1)[:, None], rtol=1e-6)
