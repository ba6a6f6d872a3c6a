"""The losses: what an M-estimate minimises, one small class each, and the base class for your own.

θ* = argmin E ℓ_θ(x, y). A loss gives the gradient of ℓ per unit and the weighted sum of its Hessians;
everything else (rectification by a proxy, the solver, λ, the sandwich) is built from these two.
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
    """A convex loss ℓ_θ(x, y), twice differentiable in θ. Subclass it to estimate something of your own.

    `gradients` and `hessian` are required; outcomes outside `outcome_range` are refused. `convex_range` is
    the range of λ for which the rectified loss stays convex whatever the data: a fitted λ is clipped to it.
    `grows` says that the mean grows exponentially with the features, so that units far out can decide a fit.

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
    outcome_range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
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

    def check(self, outcome: FloatArray, role: str) -> None:
        """Raise an `InputError` for outcomes outside the loss's range; `role` says what they are."""
        low, high = self.outcome_range
        # Most losses accept every number, and the search for the extremes reads all units.
        bounded = np.isfinite(low) or np.isfinite(high)
        if bounded and outcome.size and (outcome.min() < low or outcome.max() > high):
            raise InputError(
                f"{role} of a {self.name} regression is out of range",
                given=f"{outcome.min():g} to {outcome.max():g}",
                allowed=f"{low:g} to {high:g}",
            )

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
        """Return Σ w ∇ℓ and Σ w ∇²ℓ."""
        d = len(theta)
        return LossSums(
            gradient=weights @ self.gradients(theta, features, outcome),
            hessian=self.hessian(theta, features, outcome, weights) if curvature else np.zeros((d, d)),
        )

    def rectified(
        self, theta: FloatArray, features: FloatArray, outcomes: Pair, weights: Pair, *, curvature: bool
    ) -> LossSums:
        """Return the sums of ℓ(x, y) less those of ℓ(x, f), outcome and proxy each with its weights."""
        outcome_sums = self.summed(theta, features, outcomes[0], weights[0], curvature=curvature)
        return outcome_sums.plus(self.summed(theta, features, outcomes[1], -weights[1], curvature=curvature))

    def moments(self, theta: FloatArray, part: WeightedRows, centre: FloatArray | None = None) -> Pair:
        """Return Σ v (d,) and Σ v vᵀ (d, d) of v = w ∇ℓ less a `centre` (d,), w being 1 unless given."""
        features, outcome, weights = part
        v = self.gradients(theta, features, outcome)
        v = v if weights is None else v * weights[:, None]
        v = v if centre is None else v - centre
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

    def leverages(self, theta: FloatArray, features: FloatArray, bread: FloatArray) -> FloatArray | None:
        """Zeros: the divisor n_h − 1 of the design's variance already accounts for the mean."""
        return np.zeros(len(features))


class GeneralisedLinear(Loss):
    """b(xθ) − y·xθ, the negative log-likelihood of a canonical generalised linear model.

    A subclass gives the `mean`, the first derivative of the cumulant function b in the linear predictor
    η = xθ, and `variance`, the second derivative as a function of the first. The Hessian Σ w b''(η) x xᵀ does
    not depend on the outcome, so the rectified loss is convex for λ in [0, 1].
    """

    @abstractmethod
    def mean(self, eta: FloatArray) -> FloatArray:
        """b'(η), the conditional mean."""

    def variance(self, mean: FloatArray) -> FloatArray:
        """Return b''(η) at this mean, Var(y | x) up to a dispersion: one number, the same everywhere."""
        return np.ones(())

    def gradients(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray:
        """(b'(η) − y) x."""
        return np.asarray((self.mean(features @ theta) - outcome)[:, None] * features)

    def hessian(
        self, theta: FloatArray, features: FloatArray, outcome: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Σ w b''(η) x xᵀ."""
        spread = weights * self.variance(self.mean(features @ theta))
        return np.asarray(features.T @ (features * spread[:, None]))

    def leverages(self, theta: FloatArray, features: FloatArray, bread: FloatArray) -> FloatArray | None:
        """b''(η) x A⁻¹ xᵀ."""
        spread = self.variance(self.mean(features @ theta))
        return np.asarray(spread * np.einsum("nd,nd->n", times(features, bread), features))

    def typical_curvature(self, outcome: FloatArray) -> float | None:
        """That of the mean outcome; 1 where it is at an end of its range."""
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
        """Return the sums with one pass over η and none over an (n, d) array of gradients."""
        return self._sums(theta, features, weights, weights * outcome, curvature=curvature)

    def rectified(
        self, theta: FloatArray, features: FloatArray, outcomes: Pair, weights: Pair, *, curvature: bool
    ) -> LossSums:
        """Return the sums of ℓ(x, y) less those of ℓ(x, f): both share the mean at θ."""
        total = weights[0] * outcomes[0] - weights[1] * outcomes[1]
        return self._sums(theta, features, weights[0] - weights[1], total, curvature=curvature)

    def _sums(
        self, theta: FloatArray, x: FloatArray, weights: FloatArray, total: FloatArray, *, curvature: bool
    ) -> LossSums:
        """Return Σ (w b'(η) − t) x and Σ w b''(η) x xᵀ, t being the weighted outcomes."""
        mean = self.mean(x @ theta)
        gradient = (weights * mean - total) @ x
        if not curvature:
            return LossSums(gradient=gradient, hessian=np.zeros((len(theta), len(theta))))
        return LossSums(gradient=gradient, hessian=x.T @ (x * (weights * self.variance(mean))[:, None]))

    def moments(self, theta: FloatArray, part: WeightedRows, centre: FloatArray | None = None) -> Pair:
        """Return Σ v and Σ v vᵀ, about 0 without an (n, d) array of gradients."""
        if centre is not None:
            return super().moments(theta, part, centre)
        features, outcome, weights = part
        residual = self.mean(features @ theta) - outcome
        if weights is not None:
            residual = residual * weights
        return residual @ features, features.T @ (features * (residual * residual)[:, None])


class LinearLoss(GeneralisedLinear):
    """½ (y − xθ)² up to ½ y²: least squares.

    Examples
    --------
    >>> LinearLoss().mean(np.array([0.5]))
    array([0.5])
    """

    name: ClassVar[str] = "linear"
    quadratic: ClassVar[bool] = True

    def mean(self, eta: FloatArray) -> FloatArray:
        """η, the linear predictor itself."""
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
        """1 / (1 + exp(−η))."""
        with np.errstate(over="ignore"):  # of exp(−η) where μ is 0
            return np.asarray(1.0 / (1.0 + np.exp(-eta)))

    def variance(self, mean: FloatArray) -> FloatArray:
        """μ (1 − μ)."""
        return np.asarray(mean * (1.0 - mean))


class PoissonLoss(GeneralisedLinear):
    """exp(xθ) − y·xθ: Poisson regression, outcomes and proxies that are not negative.

    Examples
    --------
    >>> PoissonLoss().variance(np.array([2.0]))
    array([2.])
    """

    name: ClassVar[str] = "poisson"
    outcome_range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    grows: ClassVar[bool] = True

    def mean(self, eta: FloatArray) -> FloatArray:
        """Exp η."""
        # exp(710) is infinite in double precision.
        return np.exp(np.minimum(eta, 700.0))

    def variance(self, mean: FloatArray) -> FloatArray:
        """μ."""
        return mean


def times(variables: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return the product of variables (n, d) and a matrix (d, k), column after column as `feature_matrix`."""
    return np.asarray((matrix.T @ variables.T).T)


# Share of a mean square below which a variance is taken about the mean itself: too few digits are left.
_DIGITS_LOST = 1e-4

# Numbers in a block's features, so that arrays of their size stay in the cache and the allocator's pool.
_CHUNK = 25_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A run of units.

    Parameters
    ----------
    features : float (m, p)
        p may be 0, for a mean.
    proxy : float (m,) or (m, q)
        Predictions of the outcome.
    stratum : int (m,)
    weights : float (m,), optional
        Sampling weights of an unlabelled sample that is itself weighted.

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
        """Return the factor (H,) of each unit's stratum, times the unit's weight if it has one (m,)."""
        if len(factors) == 1:
            unit_factors = np.full(len(self.proxy), factors[0])
        else:
            unit_factors = factors[self.stratum]
        if self.weights is None:
            return unit_factors
        return unit_factors * self.weights


class Unlabelled:
    """The units with a proxy, as an estimator sees them: read in batches, each pass anew.

    Either all N units of the population, the labelled ones included (`separate` false: the usual case,
    proxies are known everywhere), or a sample of its own without the labelled units (`separate` true: the
    setting of PPI).

    Parameters
    ----------
    batches : callable
        Returns an iterable of `Block`; called once per pass, it must yield the same units each time.
    n_strata : int
        H.
    separate : bool
        Whether the labelled units are not among these.

    Raises
    ------
    InputError
        For numbers that are not finite, codes that do not exist, a stratum without units.

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
        self.counts, self.totals, self.width = np.zeros(n_strata, dtype=np.int64), np.zeros(n_strata), 0
        for block in batches():
            refuse_nonfinite("proxy", block.proxy)
            refuse_nonfinite("features", block.features)
            codes = block.stratum.min(), block.stratum.max()
            if codes[0] < 0 or codes[1] >= n_strata:
                problem = "a stratum code is out of range"
                raise InputError(problem, given=f"{codes[0]} to {codes[1]}", allowed=f"0 to {n_strata - 1}")
            counts = np.bincount(block.stratum, minlength=n_strata) if n_strata > 1 else len(block.stratum)
            self.counts += counts
            weights = block.weights
            self.totals += counts if weights is None else np.bincount(block.stratum, weights, n_strata)
            self.width = block.features.shape[1]
        if not self.counts.all():
            raise InputError(
                f"stratum {int(np.argmin(self.counts))} has no unlabelled unit",
                allowed="at least one in every stratum",
            )

    def blocks(self) -> Iterator[Block]:
        """Start a new pass over all units, in runs, in a fixed order."""
        return iter(self._batches())

    def moved(self, stretch: float, shift: FloatArray) -> Unlabelled:
        """Return the units with proxy stretch · f + x'shift."""
        copied = copy.copy(self)
        copied._batches = partial(_moved, self._batches, stretch, shift)
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
        """Return Σ_h factors_h · (mean over U_h) of loss, gradient and Hessian at the proxy; factors (H,)."""
        d = len(theta)
        per_unit = factors / self.totals
        total = LossSums(gradient=np.zeros(d), hessian=np.zeros((d, d)))
        for block in self.blocks():
            weights = block.weighted(per_unit)
            sums = loss.summed(theta, block.features, block.proxy, weights, curvature=curvature)
            total = total.plus(sums)
        return total

    def covariances(self, loss: Loss, theta: FloatArray) -> FloatArray:
        """Return the proxy gradients' covariances (H, d, d) within strata.

        The divisor is N_h − 1; a stratum of one unit has zeros.
        """
        totals, squares = self._moments(loss, theta)
        means = totals / self.counts[:, None]
        spread = squares - totals[:, :, None] * means[:, None, :]
        variances = spread.diagonal(axis1=1, axis2=2)
        size = squares.diagonal(axis1=1, axis2=2)
        if (variances < _DIGITS_LOST * size).any():
            spread = self._moments(loss, theta, means)[1]
        return np.asarray(spread / np.maximum(self.counts - 1, 1)[:, None, None])

    def _moments(self, loss: Loss, theta: FloatArray, means: FloatArray | None = None) -> Pair:
        """Return the sums (H, d) of the proxy gradients, weighted, and of their squares about `means`."""
        d = len(theta)
        n_strata = self.n_strata
        scale = self.counts / self.totals
        totals = np.zeros((n_strata, d))
        squares = np.zeros((n_strata, d, d))
        for block in self.blocks():
            if block.weights is None:
                scaled = None
            else:
                scaled = block.weighted(scale)
            for h in (0,) if n_strata == 1 else np.flatnonzero(np.bincount(block.stratum)):
                if n_strata == 1:
                    rows = slice(None)
                else:
                    rows = block.stratum == h
                part = block.features[rows], block.proxy[rows], None if scaled is None else scaled[rows]
                total, square = loss.moments(theta, part, None if means is None else means[h])
                totals[h] += total
                squares[h] += square
        return totals, squares


def _moved(batches: Callable[[], Iterable[Block]], stretch: float, shift: FloatArray) -> Iterator[Block]:
    for block in batches():
        yield replace(block, proxy=stretch * block.proxy + block.features @ shift)


class ArrayUnlabelled(Unlabelled):
    """Units held in memory.

    Parameters
    ----------
    proxy : array-like (N,) or (N, q)
        Predictions of the outcome.
    features : array-like (N, p), optional
        Left out for a mean or a quantile.
    stratum : int (N,), optional
        0 … H − 1; all in one stratum if left out.
    weights : array-like (N,), optional
        Sampling weights, for a separate weighted sample.
    separate : bool
        Whether the labelled units are not among these.

    Raises
    ------
    InputError
        For lengths that differ, numbers that are not finite, a stratum without units.

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
        self.proxy = _shaped("proxy", proxy)
        n = len(self.proxy)
        if features is None:
            self.features = np.empty((n, 0))
        else:
            self.features = _columns(_shaped("features", features))
        if stratum is None:
            self.stratum = np.zeros(n, dtype=np.int64)
        else:
            self.stratum = np.asarray(stratum, dtype=np.int64)
        if weights is None:
            self.weights = None
        else:
            self.weights = finite_array("weights", weights)
        optional_columns = {"features": self.features, "stratum": self.stratum, "weights": self.weights}
        if (
            same_length(
                proxy=self.proxy, **{name: x for name, x in optional_columns.items() if x is not None}
            )
            == 0
        ):
            raise InputError("there is no unlabelled unit", allowed="at least 1")
        all_rows = self._rows(slice(None))  # checked at once
        super().__init__(lambda: [all_rows], n_strata=max(code_count(self.stratum), 1), separate=separate)
        self._runs = self._cut()

    def _rows(self, rows: slice) -> Block:
        return Block(
            features=self.features[rows],
            proxy=self.proxy[rows],
            stratum=self.stratum[rows],
            weights=None if self.weights is None else self.weights[rows],
        )

    def _cut(self) -> list[Block]:
        """Return the units in runs short enough for the cache."""
        # At least 512 rows, so that there are few runs even with many features.
        run = max(_CHUNK // max(self.features.shape[1], 1), 512)
        return [self._rows(slice(start, start + run)) for start in range(0, len(self.proxy), run)]

    def blocks(self) -> Iterator[Block]:
        """Start a new pass over all units, in runs."""
        return iter(self._runs)

    def moved(self, stretch: float, shift: FloatArray) -> ArrayUnlabelled:
        """Return the units with proxy stretch · f + x'shift."""
        copied = copy.copy(self)
        copied.proxy = self.features @ shift
        copied.proxy += stretch * self.proxy
        copied._runs = copied._cut()
        return copied


def with_intercept(features: FloatArray) -> FloatArray:
    """Return the features with a column of ones before them."""
    return np.concatenate([np.ones((len(features), 1)), features], axis=1)


def finite_array(name: str, values: object) -> FloatArray:
    """Return `values` as finite float64 of shape (n,) or (n, q)."""
    array = _shaped(name, values)
    refuse_nonfinite(name, array)
    return array


def _shaped(name: str, values: object) -> FloatArray:
    array = numeric_array(name, values)
    if array.ndim not in (1, 2):
        problem = f"{name} must be a vector or a matrix"
        raise InputError(problem, given=f"shape {array.shape}", allowed="(n,) or (n, d)")
    return array


def _columns(array: FloatArray) -> FloatArray:
    """Return a matrix column after column: what multiplies a unit's features meets one run of each."""
    return np.asfortranarray(array if array.ndim == 2 else array[:, None])


def feature_matrix(name: str, values: object) -> FloatArray:
    """Return `values` as a finite float64 matrix (n, p), column after column; a vector becomes one column."""
    return _columns(finite_array(name, values))
