"""Losses of M-estimation, the base class for custom losses, and the unlabelled units with a proxy.

The estimand is θ* = argmin E ℓ_θ(x, y). A loss returns the gradient of ℓ for each unit and the weighted sum
of the Hessians. Rectification by a proxy, the solver, λ and the sandwich covariance use only these two.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from stratal.arrays import FloatArray, IntArray, code_count, numeric_array, refuse_nonfinite, same_length
from stratal.errors import InputError

# Two arrays: of the outcome and its proxy, or sums and sums of products.
Pair: TypeAlias = tuple[FloatArray, FloatArray]

# Features, outcomes and weights of units.
WeightedRows: TypeAlias = tuple[FloatArray, FloatArray, FloatArray | None]


class LossSums(NamedTuple):
    """Weighted sums of a loss over units at one θ.

    Parameters
    ----------
    gradient : float (d,)
        Σ w ∇ℓ.
    hessian : float (d, d)
        Σ w ∇²ℓ; zeros if it was not requested.
    """

    gradient: FloatArray
    hessian: FloatArray

    def plus(self, other: LossSums) -> LossSums:
        """Return these sums plus the other ones."""
        return LossSums(self.gradient + other.gradient, self.hessian + other.hessian)


class Loss(ABC):
    """A convex loss ℓ_θ(x, y) that is twice differentiable in θ. Subclass it for another estimand.

    A subclass defines `gradients` and `hessian`. Outcomes outside `outcome_range` raise an error.
    `convex_range` is the range of λ in which the rectified loss is convex for all data; a fitted λ is clipped
    to it. `grows` is True if the mean grows exponentially with the features, so units with extreme
    features can dominate a fit.

    Examples
    --------
    The loss log cosh(θ − y), which is less sensitive to outliers than the square:

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
    outcome_range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    quadratic: ClassVar[bool] = False
    grows: ClassVar[bool] = False

    def n_parameters(self, features: FloatArray, outcome: FloatArray) -> int:
        """Return d, the length of θ; by default the number of features."""
        return int(features.shape[1])

    @abstractmethod
    def gradients(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray:
        """Return ∇ℓ of each unit (n, d), at θ (d,), features (n, p) and outcome (n,) or (n, q)."""

    @abstractmethod
    def hessian(
        self, theta: FloatArray, features: FloatArray, outcome: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return Σ w ∇²ℓ (d, d); weights (n,) may be negative."""

    def check(self, outcome: FloatArray, role: str) -> None:
        """Raise an `InputError` for outcomes outside `outcome_range`; `role` is their name in the error."""
        low, high = self.outcome_range
        # Most losses accept every number, and the search for the extremes reads all units.
        has_bounds = np.isfinite(low) or np.isfinite(high)
        if has_bounds and outcome.size and (outcome.min() < low or outcome.max() > high):
            raise InputError(
                f"{role} of a {self.name} regression is out of range",
                given=f"{outcome.min():g} to {outcome.max():g}",
                allowed=f"{low:g} to {high:g}",
            )

    def leverages(self, theta: FloatArray, features: FloatArray, bread: FloatArray) -> FloatArray | None:
        """Return tr(A⁻¹ ∇²ℓ_i) of each unit (n,), for the leverage correction.

        With None, the correction is by degrees of freedom (HC1).
        """
        return None

    def typical_curvature(self, outcome: FloatArray) -> float | None:
        """Return a typical second derivative by the linear predictor, for the detection of a flat loss.

        It is None for a loss without a linear predictor.
        """
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
        """Return Σ w ∇ℓ and Σ w ∇²ℓ."""
        gradient = weights @ self.gradients(theta, features, outcome)
        if curvature:
            hessian = self.hessian(theta, features, outcome, weights)
        else:
            hessian = np.zeros((len(theta), len(theta)))
        return LossSums(gradient=gradient, hessian=hessian)

    def rectified(
        self, theta: FloatArray, features: FloatArray, outcomes: Pair, weights: Pair, *, curvature: bool
    ) -> LossSums:
        """Return the sums of ℓ(x, y) minus those of ℓ(x, f); outcome and proxy have separate weights."""
        outcome_sums = self.summed(theta, features, outcomes[0], weights[0], curvature=curvature)
        return outcome_sums.plus(self.summed(theta, features, outcomes[1], -weights[1], curvature=curvature))

    def moments(self, theta: FloatArray, rows: WeightedRows, centre: FloatArray | None = None) -> Pair:
        """Return Σ v (d,) and Σ v vᵀ (d, d) of v = w ∇ℓ − `centre` (d,); w is 1 without weights."""
        features, outcome, weights = rows
        v = self.gradients(theta, features, outcome)
        if weights is not None:
            v = v * weights[:, None]
        if centre is not None:
            v = v - centre
        return v.sum(axis=0), v.T @ v


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
        """Return d, the number of outcomes."""
        return 1 if outcome.ndim == 1 else outcome.shape[1]

    def gradients(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray:
        """Return θ − y."""
        return np.asarray(theta - outcome.reshape(len(outcome), -1))

    def hessian(
        self, theta: FloatArray, features: FloatArray, outcome: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return Σ w times the identity matrix."""
        return np.eye(len(theta)) * float(np.sum(weights))

    def leverages(self, theta: FloatArray, features: FloatArray, bread: FloatArray) -> FloatArray | None:
        """Return zeros: the divisor n_h − 1 of the design's variance already corrects for the mean."""
        return np.zeros(len(features))


class GeneralisedLinear(Loss):
    """b(xθ) − y·xθ, the negative log-likelihood of a canonical generalised linear model.

    A subclass defines the `mean`, the first derivative of the cumulant function b at the linear predictor
    η = xθ, and the `variance`, the second derivative as a function of the first. The Hessian Σ w b''(η) x xᵀ
    does not depend on the outcome, so that the rectified loss is convex for λ in [0, 1].
    """

    @abstractmethod
    def mean(self, eta: FloatArray) -> FloatArray:
        """Return b'(η), the conditional mean."""

    def variance(self, mean: FloatArray) -> FloatArray:
        """Return b''(η) at this mean, Var(y | x) up to a dispersion factor; by default 1 (a scalar array)."""
        return np.ones(())

    def gradients(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray:
        """Return (b'(η) − y) x."""
        return np.asarray((self.mean(features @ theta) - outcome)[:, None] * features)

    def hessian(
        self, theta: FloatArray, features: FloatArray, outcome: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return Σ w b''(η) x xᵀ."""
        weighted_variances = weights * self.variance(self.mean(features @ theta))
        return np.asarray(features.T @ (features * weighted_variances[:, None]))

    def leverages(self, theta: FloatArray, features: FloatArray, bread: FloatArray) -> FloatArray | None:
        """Return b''(η) x A⁻¹ xᵀ."""
        variances = self.variance(self.mean(features @ theta))
        return np.asarray(variances * np.einsum("nd,nd->n", times(features, bread), features))

    def typical_curvature(self, outcome: FloatArray) -> float | None:
        """Return b''(η) at the mean outcome; 1 if the mean is at an end of its range."""
        return float(self.variance(np.asarray(outcome.mean()))) or 1.0

    def summed(
        self,
        theta: FloatArray,
        features: FloatArray,
        outcome: FloatArray,
        weights: FloatArray,
        *,
        curvature: bool = True,
    ) -> LossSums:
        """Return the sums from η, without an (n, d) array of gradients."""
        return self._sums(theta, features, weights, weights * outcome, curvature=curvature)

    def rectified(
        self, theta: FloatArray, features: FloatArray, outcomes: Pair, weights: Pair, *, curvature: bool
    ) -> LossSums:
        """Return the sums of ℓ(x, y) minus those of ℓ(x, f); the mean at θ is computed once for both."""
        weighted_outcomes = weights[0] * outcomes[0] - weights[1] * outcomes[1]
        return self._sums(theta, features, weights[0] - weights[1], weighted_outcomes, curvature=curvature)

    def _sums(
        self,
        theta: FloatArray,
        x: FloatArray,
        weights: FloatArray,
        weighted_outcomes: FloatArray,
        *,
        curvature: bool,
    ) -> LossSums:
        """Return Σ (w b'(η) − w y) x and Σ w b''(η) x xᵀ, with w y the weighted outcomes (n,)."""
        mean = self.mean(x @ theta)
        gradient = (weights * mean - weighted_outcomes) @ x
        if not curvature:
            return LossSums(gradient=gradient, hessian=np.zeros((len(theta), len(theta))))
        weighted_variances = weights * self.variance(mean)
        return LossSums(gradient=gradient, hessian=x.T @ (x * weighted_variances[:, None]))

    def moments(self, theta: FloatArray, rows: WeightedRows, centre: FloatArray | None = None) -> Pair:
        """Return Σ v and Σ v vᵀ; without a centre, no (n, d) array of gradients is needed."""
        if centre is not None:
            return super().moments(theta, rows, centre)
        features, outcome, weights = rows
        residual = self.mean(features @ theta) - outcome
        if weights is not None:
            residual = residual * weights
        return residual @ features, features.T @ (features * (residual * residual)[:, None])


class LinearLoss(GeneralisedLinear):
    """Least squares: ½ (y − xθ)², without the constant ½ y².

    Examples
    --------
    >>> LinearLoss().mean(np.array([0.5]))
    array([0.5])
    """

    name: ClassVar[str] = "linear"
    quadratic: ClassVar[bool] = True

    def mean(self, eta: FloatArray) -> FloatArray:
        """Return η."""
        return eta


class LogisticLoss(GeneralisedLinear):
    """log(1 + exp(xθ)) − y·xθ: logistic regression, outcomes and proxies in [0, 1].

    Examples
    --------
    >>> LogisticLoss().mean(np.array([0.0]))
    array([0.5])
    """

    name: ClassVar[str] = "logistic"
    outcome_range: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def mean(self, eta: FloatArray) -> FloatArray:
        """Return 1 / (1 + exp(−η))."""
        with np.errstate(over="ignore"):  # exp(−η) overflows if the mean is 0
            return np.asarray(1.0 / (1.0 + np.exp(-eta)))

    def variance(self, mean: FloatArray) -> FloatArray:
        """Return μ (1 − μ)."""
        return np.asarray(mean * (1.0 - mean))


class PoissonLoss(GeneralisedLinear):
    """exp(xθ) − y·xθ: Poisson regression, with nonnegative outcomes and proxies.

    Examples
    --------
    >>> PoissonLoss().variance(np.array([2.0]))
    array([2.])
    """

    name: ClassVar[str] = "poisson"
    outcome_range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    grows: ClassVar[bool] = True

    def mean(self, eta: FloatArray) -> FloatArray:
        """Return exp(η)."""
        # exp(710) is infinite in double precision.
        return np.exp(np.minimum(eta, 700.0))

    def variance(self, mean: FloatArray) -> FloatArray:
        """Return μ."""
        return mean


# Losses by the name that `regress` and `Coefficient` accept as `family`.
FAMILIES: dict[str, type[Loss]] = {loss.name: loss for loss in (LinearLoss, LogisticLoss, PoissonLoss)}


def times(variables: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return the product of variables (n, d) and a matrix (d, k), in column-major order."""
    return np.asarray((matrix.T @ variables.T).T)


# If a variance is below this share of the mean square, it is computed again from deviations from the mean,
# because the difference of sums has lost too many digits.
_MIN_VARIANCE_SHARE = 1e-4

# Number of feature values in a block: arrays of this size fit in the cache of the processor.
_BLOCK_VALUES = 25_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of consecutive units.

    Parameters
    ----------
    features : float (m, p)
        p may be 0, for a mean.
    proxy : float (m,) or (m, q)
        Predictions of the outcome.
    stratum : int (m,)
    weights : float (m,), optional
        Sampling weights of a separate, weighted unlabelled sample.

    Examples
    --------
    >>> Block(features=np.ones((1, 1)), proxy=np.ones(1), stratum=np.zeros(1, int)).weights is None
    True
    """

    features: FloatArray
    proxy: FloatArray
    stratum: IntArray
    weights: FloatArray | None = None

    def weighted(self, factors: FloatArray) -> FloatArray:
        """Return the factor of each unit's stratum times its weight (m,); `factors` is (H,)."""
        if len(factors) == 1:
            unit_factors = np.full(len(self.proxy), factors[0])
        else:
            unit_factors = factors[self.stratum]
        if self.weights is None:
            return unit_factors
        return unit_factors * self.weights


class Unlabelled:
    """The units with a proxy, which are read in batches in each pass.

    They are all N units of the population including the labelled ones (`separate=False`), or a separate
    sample without the labelled units (`separate=True`, the setting of PPI).

    Parameters
    ----------
    batches : callable
        Returns an iterable of `Block`. It is called in each pass, and must return the same units each time.
    n_strata : int
        H.
    separate : bool
        Whether the labelled units are not included.

    Raises
    ------
    InputError
        For numbers that are not finite, invalid codes of strata, and a stratum without units.

    Examples
    --------
    >>> def batches():
    ...     for start in (0.0, 2.0):
    ...         yield Block(features=np.ones((2, 1)), proxy=start + np.arange(2.0), stratum=np.zeros(2, int))
    >>> Unlabelled(batches, n_strata=1).size
    4
    """

    def __init__(
        self, batches: Callable[[], Iterable[Block]], *, n_strata: int, separate: bool = False
    ) -> None:
        self.separate = separate
        self._batches = batches
        # Number of units and sum of their weights by stratum (H,).
        self.counts = np.zeros(n_strata, dtype=np.int64)
        self.weight_sums = np.zeros(n_strata)
        self.n_features = 0
        for block in batches():
            refuse_nonfinite("proxy", block.proxy)
            refuse_nonfinite("features", block.features)
            first = block.stratum.min()
            last = block.stratum.max()
            if first < 0 or last >= n_strata:
                problem = "a stratum code is out of range"
                raise InputError(problem, given=f"{first} to {last}", allowed=f"0 to {n_strata - 1}")
            counts = np.bincount(block.stratum, minlength=n_strata) if n_strata > 1 else len(block.stratum)
            self.counts += counts
            if block.weights is None:
                self.weight_sums += counts
            else:
                self.weight_sums += np.bincount(block.stratum, block.weights, n_strata)
            self.n_features = block.features.shape[1]
        if not self.counts.all():
            raise InputError(
                f"stratum {int(np.argmin(self.counts))} has no unlabelled unit",
                allowed="at least one in every stratum",
            )

    def blocks(self) -> Iterator[Block]:
        """Return the blocks of a new pass over all units, in a fixed order."""
        return iter(self._batches())

    def with_corrected_proxy(self, scale: float, shift: FloatArray) -> Unlabelled:
        """Return the units with proxy scale · f + x'shift."""
        copied = copy.copy(self)
        copied._batches = partial(_correct_batches, self._batches, scale, shift)
        return copied

    @property
    def n_strata(self) -> int:
        """H."""
        return len(self.counts)

    @property
    def size(self) -> int:
        """Number of units."""
        return int(self.counts.sum())

    def summed(
        self, loss: Loss, theta: FloatArray, factors: FloatArray, *, curvature: bool = True
    ) -> LossSums:
        """Return Σ_h factor_h · (mean over U_h) of gradient and Hessian at the proxy; factors are (H,)."""
        d = len(theta)
        per_unit = factors / self.weight_sums
        total = LossSums(gradient=np.zeros(d), hessian=np.zeros((d, d)))
        for block in self.blocks():
            weights = block.weighted(per_unit)
            sums = loss.summed(theta, block.features, block.proxy, weights, curvature=curvature)
            total = total.plus(sums)
        return total

    def covariances(self, loss: Loss, theta: FloatArray) -> FloatArray:
        """Return the covariances (H, d, d) of the proxy gradients within strata.

        The divisor is N_h − 1; the covariances of a stratum of one unit are zeros.
        """
        sums, products = self._moments(loss, theta)
        means = sums / self.counts[:, None]
        centred_products = products - sums[:, :, None] * means[:, None, :]
        centred_squares = centred_products.diagonal(axis1=1, axis2=2)
        squares = products.diagonal(axis1=1, axis2=2)
        if (centred_squares < _MIN_VARIANCE_SHARE * squares).any():
            _, centred_products = self._moments(loss, theta, means)
        return np.asarray(centred_products / np.maximum(self.counts - 1, 1)[:, None, None])

    def _moments(self, loss: Loss, theta: FloatArray, means: FloatArray | None = None) -> Pair:
        """Return sums (H, d) and sums of products (H, d, d) of the proxy gradients minus `means` (H, d).

        Weights are scaled to a mean of 1 within strata.
        """
        d = len(theta)
        n_strata = self.n_strata
        scale = self.counts / self.weight_sums
        sums = np.zeros((n_strata, d))
        products = np.zeros((n_strata, d, d))
        for block in self.blocks():
            weights = None
            if block.weights is not None:
                weights = block.weighted(scale)
            for h in (0,) if n_strata == 1 else np.flatnonzero(np.bincount(block.stratum)):
                # A slice avoids copies of the arrays.
                members = slice(None) if n_strata == 1 else block.stratum == h
                member_weights = None if weights is None else weights[members]
                rows = block.features[members], block.proxy[members], member_weights
                block_sum, block_product = loss.moments(theta, rows, None if means is None else means[h])
                sums[h] += block_sum
                products[h] += block_product
        return sums, products


def _correct_batches(
    batches: Callable[[], Iterable[Block]], scale: float, shift: FloatArray
) -> Iterator[Block]:
    """Yield the blocks with the proxy scale · f + x'shift."""
    for block in batches():
        yield replace(block, proxy=scale * block.proxy + block.features @ shift)


class ArrayUnlabelled(Unlabelled):
    """Unlabelled units in memory.

    Parameters
    ----------
    proxy : array-like (N,) or (N, q)
        Predictions of the outcome.
    features : array-like (N, p), optional
        Not used for a mean or a quantile.
    stratum : int (N,), optional
        0 … H − 1. Default: one stratum.
    weights : array-like (N,), optional
        Sampling weights, for a separate weighted sample.
    separate : bool
        Whether the labelled units are not included.

    Raises
    ------
    InputError
        For different lengths, numbers that are not finite, and a stratum without units.

    Examples
    --------
    >>> units = ArrayUnlabelled(proxy=[1.0, 2.0, 4.0], stratum=np.array([0, 1, 1]))
    >>> units.counts
    array([1, 2])
    """

    def __init__(
        self,
        *,
        proxy: object,
        features: object = None,
        stratum: object = None,
        weights: object = None,
        separate: bool = False,
    ) -> None:
        self.proxy = _vector_or_matrix("proxy", proxy)
        n = len(self.proxy)
        if features is None:
            self.features = np.empty((n, 0))
        else:
            self.features = _column_major(_vector_or_matrix("features", features))
        if stratum is None:
            self.stratum = np.zeros(n, dtype=np.int64)
        else:
            self.stratum = np.asarray(stratum, dtype=np.int64)
        if weights is None:
            self.weights = None
        else:
            self.weights = finite_array("weights", weights)
        columns = {"proxy": self.proxy, "features": self.features, "stratum": self.stratum}
        if self.weights is not None:
            columns["weights"] = self.weights
        if same_length(**columns) == 0:
            raise InputError("there is no unlabelled unit", allowed="at least 1")
        # The checks read all units as one block.
        all_units = self._block(slice(None))
        super().__init__(lambda: [all_units], n_strata=max(code_count(self.stratum), 1), separate=separate)
        self._blocks = self._split_into_blocks()

    def _block(self, units: slice) -> Block:
        """Return a block of consecutive units."""
        return Block(
            features=self.features[units],
            proxy=self.proxy[units],
            stratum=self.stratum[units],
            weights=None if self.weights is None else self.weights[units],
        )

    def _split_into_blocks(self) -> list[Block]:
        """Return the units in blocks that fit in the cache."""
        # At least 512 units, so that there are few blocks even with many features.
        n_units = max(_BLOCK_VALUES // max(self.features.shape[1], 1), 512)
        return [self._block(slice(start, start + n_units)) for start in range(0, len(self.proxy), n_units)]

    def blocks(self) -> Iterator[Block]:
        """Return the blocks of a new pass over all units."""
        return iter(self._blocks)

    def with_corrected_proxy(self, scale: float, shift: FloatArray) -> ArrayUnlabelled:
        """Return the units with proxy scale · f + x'shift."""
        copied = copy.copy(self)
        copied.proxy = self.features @ shift
        copied.proxy += scale * self.proxy
        copied._blocks = copied._split_into_blocks()
        return copied


def with_intercept(features: FloatArray) -> FloatArray:
    """Return the features with a first column of ones."""
    return np.concatenate([np.ones((len(features), 1)), features], axis=1)


def finite_array(name: str, values: object) -> FloatArray:
    """Return `values` as finite float64 of shape (n,) or (n, q)."""
    array = _vector_or_matrix(name, values)
    refuse_nonfinite(name, array)
    return array


def _vector_or_matrix(name: str, values: object) -> FloatArray:
    """Return `values` as float64 of shape (n,) or (n, d); they may be infinite or NaN."""
    array = numeric_array(name, values)
    if array.ndim not in (1, 2):
        problem = f"{name} must be a vector or a matrix"
        raise InputError(problem, given=f"shape {array.shape}", allowed="(n,) or (n, d)")
    return array


def _column_major(array: FloatArray) -> FloatArray:
    """Return a matrix (n, p) in column-major order, in which products with weights of units are faster."""
    return np.asfortranarray(array if array.ndim == 2 else array[:, None])


def feature_matrix(name: str, values: object) -> FloatArray:
    """Return `values` as a finite matrix (n, p) in column-major order; a vector becomes one column."""
    return _column_major(finite_array(name, values))
