"""The papers' closed forms against moments worked out by hand, and against each other."""

import itertools

import numpy as np
import pytest
from tests.reference import paper_formulas as formulas

from stratal.simulation.draws import Truth


@pytest.fixture
def units():
    rng = np.random.default_rng(2)
    codes = np.repeat([0, 1, 2], [40, 30, 50])
    proxy = rng.random(120)
    z = (rng.random(120) < 0.2 + 0.25 * codes).astype(float)
    return z, proxy, codes


def test_random_and_stratified_variances_by_enumeration():
    z, codes = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0]), np.array([0, 0, 0, 1, 1, 1])
    truth = Truth.of(z, None, codes, 2)
    means = [np.mean(z[list(s)]) for s in itertools.combinations(range(6), 3)]
    left = [np.mean(z[list(s)]) for s in itertools.combinations([0, 1, 2], 2)]
    right = [z[s] for s in (3, 4, 5)]
    stratified = [(a + b) / 2 for a in left for b in right]

    assert formulas.simple_random(truth.population_variance, 3, 6) == pytest.approx(np.var(means))
    assert formulas.stratified(truth.sizes, truth.variances, np.array([2, 1])) == pytest.approx(
        np.var(stratified)
    )


def test_with_replacement_by_enumeration():
    z, codes = np.array([0.0, 1.0, 1.0, 0.0]), np.array([0, 0, 0, 1])
    truth = Truth.of(z, None, codes, 2)
    found = formulas.stratified(truth.sizes, truth.variances, np.array([2, 1]), with_replacement=True)
    pairs = [np.mean(pair) for pair in itertools.product(z[:3], repeat=2)]

    assert found == pytest.approx(0.75**2 * np.var(pairs))


def test_neyman_is_never_above_proportional_is_never_above_random(units):
    z, _, codes = units
    truth = Truth.of(z, None, codes, 3)
    n = 24
    optimal = formulas.neyman(truth.sizes, truth.variances, n)
    even = formulas.proportional(truth.sizes, truth.variances, n)
    random = formulas.simple_random(truth.population_variance, n, truth.size)

    assert optimal <= even <= random
    assert even == pytest.approx(formulas.stratified(truth.sizes, truth.variances, truth.sizes // 5))


def test_equation_7_is_equation_4_up_to_the_divisor(units):
    z, proxy, codes = units
    truth = Truth.of(z, proxy, codes, 3)
    divided = truth.variances * (truth.sizes - 1) / truth.sizes

    assert formulas.proportional_from_proxy(z, proxy, codes, 24) == pytest.approx(
        formulas.proportional(truth.sizes, divided, 24)
    )


def test_difference_formulas_are_those_of_the_residual(units):
    z, proxy, codes = units
    truth = Truth.of(z - proxy, None, codes, 3)
    divided = truth.variances * (truth.sizes - 1) / truth.sizes
    exact = formulas.simple_random(truth.population_variance, 24, 120)

    assert formulas.difference(z, proxy, 24) == pytest.approx(exact * 119 / 120)
    assert formulas.difference_proportional(z, proxy, codes, 24) == pytest.approx(
        formulas.proportional(truth.sizes, divided, 24)
    )


def test_equation_9_is_the_ratio_for_a_calibrated_proxy():
    proxy = np.repeat([0.2, 0.7], 500)
    z = np.r_[np.ones(100), np.zeros(400), np.ones(350), np.zeros(150)]
    ratio = formulas.difference(z, proxy, 10) / (formulas.simple_random(z.var(), 10, 1000))

    assert formulas.calibrated_ratio(proxy * (1 - proxy), float(z.var())) == pytest.approx(ratio)


def test_kumar_raj_formulas_agree_with_each_other(units):
    z, _, codes = units
    truth = Truth.of(z, None, codes, 3)
    rates, sizes, n = truth.means, truth.sizes, 24
    weights = sizes / sizes.sum()
    spread = np.sqrt(formulas.accuracy_variances(rates, sizes))
    optimal = n * weights * spread / (weights @ spread)

    assert formulas.accuracy_variances(rates, sizes) == pytest.approx(truth.variances)
    assert formulas.accuracy_random(truth.value, 120, n) == pytest.approx(truth.population_variance / n)
    for printed, counts in (
        (formulas.accuracy_proportional(rates, sizes, n), n * weights),
        (formulas.accuracy_equal(rates, sizes, n), np.full(3, n / 3)),
        (formulas.accuracy_optimal(rates, sizes, n), optimal),
    ):
        assert printed == pytest.approx(formulas.accuracy_stratified(rates, sizes, counts))


def test_theorem_2_is_this_packages_variance_in_other_words():
    """λ' = λ (N_h − n_h)/N_h on the unlabelled units' mean is λ on all units' mean."""
    rng = np.random.default_rng(3)
    sizes, counts = np.array([400, 600]), np.array([30, 50])
    v_z, v_f = rng.random(2) + 0.5, rng.random(2) + 0.5
    covariance = 0.6 * np.sqrt(v_z * v_f)
    lam = covariance / v_f
    weights, unlabelled = sizes / 1000, sizes - counts
    theirs = formulas.best_stratified_lam(covariance, v_f, counts, unlabelled)
    residual = v_z - 2 * theirs * covariance + theirs**2 * v_f
    own = v_z - 2 * lam * covariance + lam**2 * v_f
    expected = np.sum(weights**2 * ((1 - counts / sizes) * own / counts + v_z / sizes))

    assert theirs == pytest.approx(lam * unlabelled / sizes)
    assert formulas.stratified_ppi(weights, theirs, v_f, residual, counts, unlabelled) == pytest.approx(
        expected
    )
    assert formulas.best_stratified_lam(np.zeros(1), np.zeros(1), np.ones(1), np.ones(1))[0] == 0
