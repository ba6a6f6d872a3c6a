"""Newton's method with a line search, on any function that gives value, gradient and Hessian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.regression.losses import LossSums

_ROUGH = 1e-6
"""With a tolerance above this the rounding of one exact step needs no correction."""

Status = Literal["converged", "indefinite", "diverged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Where Newton's method stopped.

    Parameters
    ----------
    theta : float (d,)
    hessian : float (d, d)
        At `theta`.
    iterations : int
    status : str
        "converged"; "indefinite" if the Hessian was not positive definite; "diverged" if no step helped or
        the iterations ran out.

    Examples
    --------
    >>> Solution(theta=np.zeros(1), hessian=np.eye(1), iterations=1, status="converged").status
    'converged'
    """

    theta: FloatArray
    hessian: FloatArray
    iterations: int
    status: Status


def newton(
    evaluate: Callable[[FloatArray, bool], LossSums],
    start: FloatArray,
    *,
    quadratic: bool = False,
    tolerance: float = 1e-9,
    max_iterations: int = 100,
) -> Solution:
    """Minimise a convex function.

    Parameters
    ----------
    evaluate : callable
        θ (d,) and whether the Hessian is wanted → value, gradient, Hessian.
    start : float (d,)
    quadratic : bool
        Whether the Hessian is constant: one step and one correction of rounding then suffice.
    tolerance : float
        The last step, in units of the Hessian's diagonal, relative to θ. Newton's steps square their error,
        so that 1e-9 leaves rounding alone.
    max_iterations : int

    Returns
    -------
    Solution

    Examples
    --------
    >>> def parabola(theta, curvature):
    ...     return LossSums(value=float((theta[0] - 3) ** 2), gradient=2 * (theta - 3), hessian=2 * np.eye(1))
    >>> newton(parabola, np.zeros(1)).theta
    array([3.])
    """
    theta, sums, first = np.array(start, dtype=np.float64), evaluate(start, True), 0.0
    status: Status = "diverged"
    iteration = 0
    while iteration < max_iterations:
        iteration += 1
        inverse = positive_inverse(sums.hessian)
        if inverse is None:
            status = "indefinite"
            break
        step = -inverse @ sums.gradient
        if quadratic:
            theta, status = theta + step, "converged"
            if tolerance < _ROUGH:
                theta = theta - inverse @ evaluate(theta, False).gradient
            break
        scale = np.sqrt(np.diag(sums.hessian))
        length = float(np.max(np.abs(step) * scale))
        first = first or length
        accepted = _line_search(evaluate, theta, sums, step)
        theta, sums = accepted or (theta, sums)
        close = 1e-6 if accepted is None else tolerance
        if length <= close * max(first, float(np.max(np.abs(theta) * scale))):
            status = "converged"
        if accepted is None or status == "converged":
            break
    return Solution(theta=theta, hessian=sums.hessian, iterations=iteration, status=status)


def positive_inverse(matrix: FloatArray) -> FloatArray | None:
    """Return the inverse of a positive definite matrix, or `None` if it is not one.

    Examples
    --------
    >>> positive_inverse(np.array([[-1.0]])) is None
    True
    """
    diagonal = np.diag(matrix)
    if not np.all(np.isfinite(matrix)) or np.any(diagonal <= 0):
        return None
    scale = 1.0 / np.sqrt(diagonal)
    try:
        root = np.linalg.cholesky(matrix * scale[:, None] * scale)
    except np.linalg.LinAlgError:
        return None
    half = np.linalg.solve(root, np.diag(scale))
    return np.asarray(half.T @ half)


def require_inverse(hessian: FloatArray) -> FloatArray:
    """Return the inverse of a Hessian, or raise an `InputError` that says what to do.

    Examples
    --------
    >>> require_inverse(np.array([[2.0]]))
    array([[0.5]])
    """
    inverse = positive_inverse(hessian)
    if inverse is None:
        raise InputError(
            "the Hessian is not positive definite at the estimate",
            action="Give a smaller lam=, use hessian='labelled', or label more units.",
        )
    return inverse


def _line_search(
    evaluate: Callable[[FloatArray, bool], LossSums], theta: FloatArray, sums: LossSums, step: FloatArray
) -> tuple[FloatArray, LossSums] | None:
    """Halve the step until the value falls (Armijo), or the gradient's length where there is no value."""
    slope = float(sums.gradient @ step)
    length = 1.0
    for _ in range(40):
        trial = theta + length * step
        found = evaluate(trial, True)
        if _improves(sums, found, length * slope):
            return trial, found
        length *= 0.5
    return None


def _improves(before: LossSums, after: LossSums, expected: float) -> bool:
    if not np.all(np.isfinite(after.gradient)):
        return False
    if np.isfinite(before.value) and np.isfinite(after.value):
        rounding = 1e-14 * (1.0 + abs(before.value))
        return after.value <= before.value + 1e-4 * expected + rounding
    if np.isfinite(before.value):
        return False
    scale = 1.0 / np.sqrt(np.maximum(np.diag(before.hessian), 1e-300))
    return bool(
        np.linalg.norm(after.gradient * scale) <= np.linalg.norm(before.gradient * scale) * (1 + 1e-12)
    )
