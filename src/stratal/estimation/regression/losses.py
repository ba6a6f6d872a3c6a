"""The losses: what an M-estimate minimises, one small class each, and the base class for your own.

θ* = argmin E ℓ_θ(x, y). A loss gives the gradient of ℓ per unit and the weighted sum of its Hessians;
everything else (rectification by a proxy, the solver, λ, the sandwich) is built from these two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from stratal.arrays import FloatArray
from stratal.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSums:
    """Weighted sums of a loss over units at one θ.

    Parameters
    ----------
    value : float
        Σ w ℓ, up to a term that does not depend on θ; NaN where the loss gives no values.
    gradient : float (d,)
        Σ w ∇ℓ.
    hessian : float (d, d)
        Σ w ∇²ℓ; zeros if it was not asked for.

    Examples
    --------
    >>> one = LossSums(value=1.0, gradient=np.ones(1), hessian=np.ones((1, 1)))
    >>> one.plus(one, -2.0).value
    -1.0
    """

    value: float
    gradient: FloatArray
    hessian: FloatArray

    def plus(self, other: LossSums, factor: float = 1.0) -> LossSums:
        """Return these sums plus `factor` times the other ones."""
        return LossSums(
            value=self.value + factor * other.value,
            gradient=self.gradient + factor * other.gradient,
            hessian=self.hessian + factor * other.hessian,
        )


class Loss(ABC):
    """A convex loss ℓ_θ(x, y), twice differentiable in θ. Subclass it to estimate something of your own.

    `gradients` and `hessian` are required. `values` makes the line search safer; `check` refuses outcomes
    that the loss cannot take. `convex_range` is the range of λ for which the rectified loss stays convex
    whatever the data: the fitted λ is clipped to it unless told otherwise. `grows` says that the mean grows
    exponentially with the features, so that units far out can decide a fit.

    Examples
    --------
    A smooth loss that is less drawn by outliers than the square, log cosh(θ − y):

    >>> class LogCosh(Loss):
    ...     name = "log-cosh"
    ...     def n_parameters(self, features, outcome):
    ...         return 1
    ...     def gradients(self, theta, features, outcome):
    ...         return np.tanh(theta[0] - outcome)[:, None]
    ...     def hessian(self, theta, features, outcome, weights):
    ...         return np.sum(weights / np.cosh(theta[0] - outcome) ** 2).reshape(1, 1)
    >>> LogCosh().summed(np.zeros(1), np.empty((1, 0)), np.array([0.0]), np.ones(1)).hessian
    array([[1.]])
    """

    name: ClassVar[str] = "custom"
    convex_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    quadratic: ClassVar[bool] = False
    grows: ClassVar[bool] = False

    def n_parameters(self, features: FloatArray, outcome: FloatArray) -> int:
        """d, the length of θ: the number of features unless the loss says otherwise."""
        return int(features.shape[1])

    @abstractmethod
    def gradients(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray:
        """∇ℓ per unit (n, d), at θ (d,), features (n, p) and outcome (n,) or (n, q)."""

    @abstractmethod
    def hessian(
        self, theta: FloatArray, features: FloatArray, outcome: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Σ w ∇²ℓ (d, d); weights (n,) may be negative."""

    def values(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray | None:
        """ℓ per unit (n,), up to a term free of θ; `None` makes the solver watch the gradient instead."""
        return None

    def check(self, outcome: FloatArray, role: str) -> None:  # noqa: B027
        """Raise an `InputError` if the loss cannot take these outcomes; `role` says what they are."""

    def leverages(self, theta: FloatArray, features: FloatArray, bread: FloatArray) -> FloatArray | None:
        """tr(A⁻¹ ∇²ℓ_i) per unit (n,), for the leverage correction; `None` corrects by degrees of freedom."""
        return None

    def typical_curvature(self, outcome: FloatArray) -> float | None:
        """Second derivative in the linear predictor where the loss is not flat; `None` if there is none."""
        return None

    def summed(
        self,
        theta: FloatArray,
        features: FloatArray,
        outcome: FloatArray,
        weights: FloatArray,
        *,
        curvature: bool = True,
    ) -> LossSums:
        """Return Σ w ℓ, Σ w ∇ℓ and Σ w ∇²ℓ."""
        values = self.values(theta, features, outcome)
        gradient = weights @ self.gradients(theta, features, outcome)
        d = len(theta)
        return LossSums(
            value=float("nan") if values is None else float(weights @ values),
            gradient=gradient,
            hessian=self.hessian(theta, features, outcome, weights) if curvature else np.zeros((d, d)),
        )

    def rectified(
        self,
        theta: FloatArray,
        features: FloatArray,
        outcome: FloatArray,
        proxy: FloatArray,
        weights: FloatArray,
        lam: FloatArray,
        *,
        curvature: bool = True,
    ) -> LossSums:
        """Return the sums of w (ℓ(x, y) − λ ℓ(x, f)), and of its gradient and Hessian; λ is (n,)."""
        own = self.summed(theta, features, outcome, weights, curvature=curvature)
        return own.plus(self.summed(theta, features, proxy, weights * lam, curvature=curvature), -1.0)


class MeanLoss(Loss):
    """½ ‖y − θ‖², the mean of an outcome (n,) or of a vector of outcomes (n, d). Convex for every λ.

    Examples
    --------
    >>> MeanLoss().gradients(np.array([1.0]), np.empty((2, 0)), np.array([0.0, 3.0])).ravel()
    array([ 1., -2.])
    """

    name: ClassVar[str] = "mean"
    convex_range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    quadratic: ClassVar[bool] = True

    def n_parameters(self, features: FloatArray, outcome: FloatArray) -> int:
        """d, the number of outcomes."""
        return 1 if outcome.ndim == 1 else outcome.shape[1]

    def gradients(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray:
        """Return θ − y."""
        return np.asarray(theta - outcome.reshape(len(outcome), -1))

    def hessian(
        self, theta: FloatArray, features: FloatArray, outcome: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Σ w times the identity."""
        return np.eye(len(theta)) * float(np.sum(weights))

    def values(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray | None:
        """½ ‖y − θ‖²."""
        return np.asarray(0.5 * np.sum((theta - outcome.reshape(len(outcome), -1)) ** 2, axis=1))

    def leverages(self, theta: FloatArray, features: FloatArray, bread: FloatArray) -> FloatArray | None:
        """Zeros: the divisor n_h − 1 of the design's variance already accounts for the mean."""
        return np.zeros(len(features))


class GeneralisedLinear(Loss):
    """b(xθ) − y·xθ, the negative log-likelihood of a canonical generalised linear model.

    A subclass gives the cumulant function b and its two derivatives in the linear predictor η = xθ. The
    Hessian Σ w b''(η) x xᵀ does not depend on the outcome, so the rectified loss is convex for λ in [0, 1].

    Examples
    --------
    >>> x = np.array([[1.0, 2.0]])
    >>> LinearLoss().gradients(np.array([1.0, 1.0]), x, np.array([2.0]))
    array([[1., 2.]])
    """

    @abstractmethod
    def cumulant_and_mean(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """b(η) and b'(η), the conditional mean: together they can share the exponential."""

    def mean(self, eta: FloatArray) -> FloatArray:
        """b'(η) alone."""
        return self.cumulant_and_mean(eta)[1]

    @abstractmethod
    def variance(self, mean: FloatArray) -> FloatArray:
        """b''(η) as a function of the mean: the conditional variance up to a dispersion."""

    def gradients(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray:
        """(b'(η) − y) x."""
        return np.asarray((self.mean(features @ theta) - outcome)[:, None] * features)

    def hessian(
        self, theta: FloatArray, features: FloatArray, outcome: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Σ w b''(η) x xᵀ."""
        return np.asarray(
            features.T @ (features * (weights * self.variance(self.mean(features @ theta)))[:, None])
        )

    def values(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray | None:
        """b(η) − y η."""
        eta = features @ theta
        return np.asarray(self.cumulant_and_mean(eta)[0] - outcome * eta)

    def leverages(self, theta: FloatArray, features: FloatArray, bread: FloatArray) -> FloatArray | None:
        """b''(η) x A⁻¹ xᵀ."""
        return np.asarray(
            self.variance(self.mean(features @ theta)) * np.sum((features @ bread) * features, axis=1)
        )

    def summed(
        self,
        theta: FloatArray,
        features: FloatArray,
        outcome: FloatArray,
        weights: FloatArray,
        *,
        curvature: bool = True,
    ) -> LossSums:
        """Return the sums with one pass over η and none over an (n, d) array of gradients."""
        return self._sums(theta, features, weights, weights * outcome, curvature)

    def rectified(
        self,
        theta: FloatArray,
        features: FloatArray,
        outcome: FloatArray,
        proxy: FloatArray,
        weights: FloatArray,
        lam: FloatArray,
        *,
        curvature: bool = True,
    ) -> LossSums:
        """Return the sums in one pass: outcomes enter linearly, so that b(η) is weighted by w (1 − λ)."""
        return self._sums(
            theta, features, weights * (1.0 - lam), weights * (outcome - lam * proxy), curvature
        )

    def _sums(
        self,
        theta: FloatArray,
        features: FloatArray,
        weights: FloatArray,
        linear: FloatArray,
        curvature: bool,
    ) -> LossSums:
        """Return Σ w b(η) − linear·η, and its gradient and Hessian."""
        eta = features @ theta
        cumulant, mean = self.cumulant_and_mean(eta)
        d = len(theta)
        hessian = np.zeros((d, d))
        if curvature:
            hessian = features.T @ (features * (weights * self.variance(mean))[:, None])
        return LossSums(
            value=float(weights @ cumulant - linear @ eta),
            gradient=(weights * mean - linear) @ features,
            hessian=hessian,
        )


class LinearLoss(GeneralisedLinear):
    """½ (y − xθ)² up to ½ y²: least squares.

    Examples
    --------
    >>> LinearLoss().mean(np.array([0.5]))
    array([0.5])
    """

    name: ClassVar[str] = "linear"
    quadratic: ClassVar[bool] = True

    def cumulant_and_mean(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """½ η² and the linear predictor itself."""
        return 0.5 * eta**2, eta

    def variance(self, mean: FloatArray) -> FloatArray:
        """One."""
        return np.ones_like(mean)


class LogisticLoss(GeneralisedLinear):
    """log(1 + exp(xθ)) − y·xθ: logistic regression, outcomes and proxies in [0, 1].

    Examples
    --------
    >>> LogisticLoss().mean(np.array([0.0]))
    array([0.5])
    """

    name: ClassVar[str] = "logistic"

    def mean(self, eta: FloatArray) -> FloatArray:
        """1 / (1 + exp(−η))."""
        return np.asarray(expit(eta))

    def cumulant_and_mean(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both from one exponential, log(1 + e) being exact enough for a sum of such terms."""
        small = np.exp(-np.abs(eta))
        whole = 1.0 + small
        positive = eta > 0
        return np.log(whole) + eta * positive, np.where(positive, 1.0, small) / whole

    def variance(self, mean: FloatArray) -> FloatArray:
        """μ (1 − μ)."""
        return np.asarray(mean * (1.0 - mean))

    def check(self, outcome: FloatArray, role: str) -> None:
        """Refuse numbers outside [0, 1]."""
        if outcome.size and (outcome.min() < 0 or outcome.max() > 1):
            raise InputError(
                f"{role} of a logistic regression must be between 0 and 1",
                given=f"{outcome.min():g} to {outcome.max():g}",
                action="Give 0/1 (or probabilities), or use linear_regression.",
            )

    def typical_curvature(self, outcome: FloatArray) -> float | None:
        """A quarter, that of η = 0."""
        return 0.25


class PoissonLoss(GeneralisedLinear):
    """exp(xθ) − y·xθ: Poisson regression, outcomes and proxies that are not negative.

    Examples
    --------
    >>> PoissonLoss().variance(np.array([2.0]))
    array([2.])
    """

    name: ClassVar[str] = "poisson"
    grows: ClassVar[bool] = True

    def cumulant_and_mean(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both are exp η."""
        mean = np.exp(np.minimum(eta, 700.0))
        return mean, mean

    def variance(self, mean: FloatArray) -> FloatArray:
        """μ."""
        return mean

    def check(self, outcome: FloatArray, role: str) -> None:
        """Refuse negative numbers."""
        if outcome.size and outcome.min() < 0:
            raise InputError(
                f"{role} of a Poisson regression must not be negative",
                given=f"{outcome.min():g} at the lowest",
                action="Give counts, or use linear_regression.",
            )

    def typical_curvature(self, outcome: FloatArray) -> float | None:
        """The mean outcome; 1 where all are 0."""
        return float(np.mean(outcome)) or 1.0
