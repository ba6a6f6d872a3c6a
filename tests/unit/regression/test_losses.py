"""Losses: analytic derivatives are the numerical ones, outcomes are checked."""

import numpy as np
import pytest

from stratal.errors import InputError
from stratal.regression.losses import (
    LinearLoss,
    LogisticLoss,
    Loss,
    LossSums,
    MeanLoss,
    PoissonLoss,
)

LOSSES = {"mean": MeanLoss(), "linear": LinearLoss(), "logistic": LogisticLoss(), "poisson": PoissonLoss()}


VALUES = {
    "mean": lambda at, x, y: np.sum((at - y) ** 2, axis=1) / 2,
    "linear": lambda at, x, y: (y - x @ at) ** 2 / 2,
    "logistic": lambda at, x, y: np.logaddexp(0, x @ at) - y * (x @ at),
    "poisson": lambda at, x, y: np.exp(x @ at) - y * (x @ at),
}


def units(name, n=7, d=3):
    random = np.random.default_rng(4)
    outcome = random.uniform(size=n) if name != "mean" else random.normal(size=(n, d))
    features = np.empty((n, 0)) if name == "mean" else random.normal(size=(n, d))
    return features, outcome, random.normal(size=n), random.normal(size=d)


def numerical(function, theta, step=1e-6):
    columns = []
    for j in range(len(theta)):
        ahead, behind = theta.copy(), theta.copy()
        ahead[j] += step
        behind[j] -= step
        columns.append((function(ahead) - function(behind)) / (2 * step))
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("name", list(LOSSES))
def test_the_gradient_is_the_derivative_of_the_value(name):
    loss, (features, outcome, _, theta) = LOSSES[name], units(name)

    expected = numerical(lambda at: VALUES[name](at, features, outcome), theta)

    assert loss.gradients(theta, features, outcome) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("name", list(LOSSES))
def test_the_hessian_is_the_derivative_of_the_gradient(name):
    loss, (features, outcome, weights, theta) = LOSSES[name], units(name)

    expected = numerical(lambda at: weights @ loss.gradients(at, features, outcome), theta)

    assert loss.hessian(theta, features, outcome, weights) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("name", list(LOSSES))
def test_the_sums_are_those_of_the_parts(name):
    loss, (features, outcome, weights, theta) = LOSSES[name], units(name)

    fast = loss.summed(theta, features, outcome, weights)
    slow = Loss.summed(loss, theta, features, outcome, weights)

    assert fast.gradient == pytest.approx(slow.gradient)
    assert fast.hessian == pytest.approx(slow.hessian)


@pytest.mark.parametrize("name", ["linear", "logistic", "poisson"])
def test_leverages_add_up_to_the_number_of_coefficients(name):
    loss, (features, outcome, _, theta) = LOSSES[name], units(name)
    weights = np.full(len(outcome), 1 / len(outcome))
    bread = np.linalg.inv(loss.hessian(theta, features, outcome, weights))

    assert np.sum(weights * loss.leverages(theta, features, bread)) == pytest.approx(3)


def test_large_linear_predictors_do_not_overflow():
    eta = np.array([-800.0, 800.0])

    assert LogisticLoss().mean(eta) == pytest.approx([0.0, 1.0])
    assert np.all(np.isfinite(PoissonLoss().mean(eta)))


@pytest.mark.parametrize(("loss", "outcome"), [(LogisticLoss(), [0.5, 1.2]), (PoissonLoss(), [1.0, -1.0])])
def test_impossible_outcomes_are_refused(loss, outcome):
    with pytest.raises(InputError, match=r"proxy of a .* regression is out of range"):
        loss.check(np.array(outcome), "proxy")


def test_curvature_can_be_left_out():
    sums = LinearLoss().summed(np.zeros(1), np.ones((2, 1)), np.ones(2), np.ones(2), curvature=False)

    assert isinstance(sums, LossSums)
    assert np.all(sums.hessian == 0)


def test_a_loss_of_one_s_own_has_defaults():
    class Square(Loss):
        def gradients(self, theta, features, outcome):
            return (features @ theta - outcome)[:, None] * features

        def hessian(self, theta, features, outcome, weights):
            return features.T @ (features * weights[:, None])

    loss, x = Square(), np.ones((2, 1))

    assert loss.n_parameters(x, np.ones(2)) == 1
    assert loss.leverages(np.zeros(1), x, np.eye(1)) is None
    assert loss.typical_curvature(np.ones(2)) is None
    loss.check(np.ones(2), "outcome")
    assert loss.summed(np.zeros(1), x, np.ones(2), np.ones(2)).gradient == pytest.approx([-2.0])
