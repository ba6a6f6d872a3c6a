"""Newton's method: converges, and says how it failed."""

import numpy as np
import pytest

from stratal.errors import InputError
from stratal.regression.losses import LossSums
from stratal.regression.rectified_loss import newton, positive_inverse, require_inverse


def quartic(theta, curvature):
    return LossSums(gradient=theta**3 - 1, hessian=np.array([[3 * theta[0] ** 2 + 1e-9]]))


def test_it_converges_from_far_away():
    solution = newton(quartic, np.array([50.0]))

    assert not solution.failed
    assert solution.theta[0] == pytest.approx(1.0, abs=1e-9)


def test_steps_that_overshoot_are_halved():
    def kinked(theta, curvature):
        t = theta[0]
        root = np.sqrt(1 + t * t)
        return LossSums(gradient=np.array([t / root]), hessian=np.array([[root**-3]]))

    solution = newton(kinked, np.array([5.0]))

    assert not solution.failed
    assert abs(solution.theta[0]) < 1e-8


def test_a_concave_function_is_indefinite():
    def concave(theta, curvature):
        return LossSums(gradient=-2 * theta, hessian=-2 * np.eye(1))

    assert "not positive definite" in newton(concave, np.ones(1)).failed


def test_a_wrong_gradient_is_divergence():
    def wrong(theta, curvature):
        return LossSums(gradient=-2 * theta - 5, hessian=2 * np.eye(1))

    assert newton(wrong, np.ones(1)).failed == "no step reduces the gradient"


def test_a_quadratic_takes_one_step():
    def parabola(theta, curvature):
        return LossSums(gradient=4 * (theta - 3), hessian=4 * np.eye(2))

    solution = newton(parabola, np.zeros(2), quadratic=True)

    assert solution.theta == pytest.approx([3.0, 3.0])


def test_scales_do_not_matter():
    matrix = np.diag([1e-20, 1e20])

    assert positive_inverse(matrix) == pytest.approx(np.diag([1e20, 1e-20]))
    assert positive_inverse(np.array([[np.nan]])) is None


def test_an_indefinite_hessian_is_an_input_error():
    with pytest.raises(InputError, match="not positive definite"):
        require_inverse(np.array([[1.0, 2.0], [2.0, 1.0]]))
