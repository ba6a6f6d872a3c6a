"""The rectified loss of one estimation: its data, checked once, and its value at any θ and λ.

Σ_h W_h [ λ_h mean_{U_h} ℓ(x, f) + mean_{S_h} (ℓ(x, y) − λ_h ℓ(x, f)) ]   (Fisch et al. 2024, eq. 8–9)

The design enters through a `Weighting` alone: its weights form the means over S, its covariance the variance.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs import Weighting
from stratal.errors import InputError
from stratal.regression import data_checks as checks
from stratal.regression.losses import Loss, LossSums
from stratal.regression.options import Options, require_one_per
from stratal.regression.solver import Solution, newton, require_inverse
from stratal.regression.unlabelled import ArrayUnlabelled, Unlabelled, feature_matrix, finite_array


class RectifiedLoss:
    """Labelled units, weights and population side of one estimation, and the loss that they form together.

    Parameters
    ----------
    loss : Loss
    outcome : array-like (n,) or (n, q)
    weighting : Weighting
        Without finite population correction where the unlabelled units are a sample of their own.
    features : array-like (n, p), optional
    proxy : array-like like `outcome`, optional
    unlabelled : Unlabelled, optional
        Given together with `proxy`, or neither is.
    names : sequence of str (d,), optional

    Raises
    ------
    InputError
        For data that do not fit together, collinear features, too few labels, unusable numbers.

    Examples
    --------
    >>> from stratal.regression.losses import MeanLoss
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(2, int), sizes=np.array([10]))
    >>> RectifiedLoss(MeanLoss(), [1.0, 3.0], weighting).evaluate(np.zeros(1), np.zeros(1)).gradient
    array([-2.])
    """

    def __init__(
        self,
        loss: Loss,
        outcome: Any,
        weighting: Weighting,
        features: Any = None,
        proxy: Any = None,
        unlabelled: Unlabelled | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.loss, self.unlabelled = loss, unlabelled
        self._constant: FloatArray | None = None
        self.weighting = weighting.independent() if self.separate else weighting
        self.outcome = finite_array("outcome", outcome)
        n = len(self.outcome)
        self.features = np.empty((n, 0)) if features is None else feature_matrix("features", features)
        self.proxy = None if proxy is None else finite_array("proxy", proxy)
        self.weights = np.asarray(weighting.weights)
        self.n_parameters = loss.n_parameters(self.features, self.outcome)
        self.names = _coefficient_names(names, self.n_parameters, self.features.shape[1])
        self.stratum, self.shares, self.counts = weighting.stratum, weighting.shares, weighting.counts
        self._check_labelled(n)
        if self.unlabelled is not None:
            self._check_unlabelled(self.unlabelled)

    def _check_labelled(self, n: int) -> None:
        if self.n_parameters == 0:
            raise InputError(
                f"the {self.loss.name} loss has no coefficient: there are no features",
                action="Give features (a column of ones for the mean alone), or take the mean.",
            )
        for name, array in (("features", self.features), ("proxy", self.proxy), ("weights", self.weights)):
            if array is not None:
                require_one_per("labelled unit", name, array, n)
        checks.refuse_few_labels(
            self.weighting, n, self.n_parameters if self.features.shape[1] else min(self.n_parameters, 1)
        )
        if self.features.shape[1]:
            checks.refuse_collinear(self.features, self.weights, self.names)
        self.loss.check(self.outcome, "outcome")
        checks.refuse_wrong_shapes(self.loss, self.features, self.outcome, self.n_parameters)
        if (self.proxy is None) != (self.unlabelled is None):
            raise InputError(
                "proxy= (labelled units) and unlabelled= (population) must be given together",
                action="Give both, or neither for the classical estimate.",
            )

    def _check_unlabelled(self, units: Unlabelled) -> None:
        proxy, _ = self.proxied()
        self.loss.check(proxy, "proxy")
        if proxy.shape[1:] != self.outcome.shape[1:]:
            raise InputError(
                "proxy and outcome must have the same shape",
                given=f"{proxy.shape} and {self.outcome.shape}",
                action="Give one prediction per labelled unit.",
            )
        width = self.features.shape[1]
        if width and isinstance(units, ArrayUnlabelled) and units.features.shape[1] != width:
            raise InputError(
                "labelled and unlabelled units have different numbers of features",
                given=f"{width} and {units.features.shape[1]}",
                allowed="the same columns in both (features=, population_features=)",
            )
        if units.n_strata != len(self.shares):
            raise InputError(
                "labelled and unlabelled units have different strata",
                given=f"{len(self.shares)} and {units.n_strata}",
                action="Give unlabelled units the design's stratum codes (none for a design without strata).",
            )
        if units.separate or not self.weighting.random_within_strata:
            return
        if not np.array_equal(units.counts, self.weighting.sizes):
            raise InputError(
                "the unlabelled units are not the population of the design",
                given=f"{units.counts.tolist()[:5]} units per stratum",
                allowed=f"{np.asarray(self.weighting.sizes).tolist()[:5]}",
                action="Give all N units, labelled ones included, or say separate=True.",
            )

    def proxied(self) -> tuple[FloatArray, Unlabelled]:
        """Return the labelled units' proxy and the population side, or raise where there is none."""
        if self.proxy is None or self.unlabelled is None:
            raise InputError(
                "λ needs a proxy",
                given="no proxy",
                action="Give proxy= and unlabelled=, or estimator='classical'.",
            )
        return self.proxy, self.unlabelled

    @property
    def separate(self) -> bool:
        """Whether the unlabelled units are a sample of their own."""
        return self.unlabelled is not None and self.unlabelled.separate

    @property
    def population_size(self) -> float:
        """N, or the size of the separate unlabelled sample."""
        return float(self.weighting.population_size if self.unlabelled is None else self.unlabelled.size)

    def require_target(self, options: Options) -> None:
        """Raise an `InputError` where the population side cannot answer for the target."""
        if self.separate and options.target == "population":
            raise InputError(
                "a separate unlabelled sample says nothing of one finite population",
                given="target='population'",
                allowed="target='superpopulation'",
            )

    def per_unit(self, lam: FloatArray) -> FloatArray:
        """λ of each labelled unit (n,)."""
        return np.asarray(lam[self.stratum])

    def evaluate(self, theta: FloatArray, lam: FloatArray, *, curvature: bool = True) -> LossSums:
        """Return the rectified loss at θ: value, gradient and Hessian."""
        loss, features, outcome, weights = self.loss, self.features, self.outcome, self.weights
        if self.proxy is None or self.unlabelled is None or not np.any(lam):
            return loss.summed(theta, features, outcome, weights, curvature=curvature)
        labelled = loss.rectified(
            theta, features, outcome, self.proxy, weights, self.per_unit(lam), curvature=curvature
        )
        return labelled.plus(self.unlabelled.summed(loss, theta, self.shares * lam, curvature=curvature))

    def labelled_inverse(self, theta: FloatArray) -> FloatArray:
        """Return the inverse of the labelled units' own Hessian (d, d); of a quadratic loss it is kept."""
        if self._constant is not None:
            return self._constant
        found = require_inverse(self.loss.hessian(theta, self.features, self.outcome, self.weights))
        self._constant = found if self.loss.quadratic else None
        return found

    def with_proxy(self, proxy: FloatArray, unlabelled: Unlabelled) -> RectifiedLoss:
        """Return the loss with another proxy of the same units."""
        found = copy.copy(self)
        found.proxy, found.unlabelled = proxy, unlabelled
        return found

    def residual_gradients(self, theta: FloatArray, lam: FloatArray) -> FloatArray:
        """Return ∇ℓ(x, y) − λ∇ℓ(x, f) of the labelled units (n, d)."""
        residual = self.loss.gradients(theta, self.features, self.outcome)
        if not np.any(lam):
            return residual
        proxy, _ = self.proxied()
        return residual - self.per_unit(lam)[:, None] * self.loss.gradients(theta, self.features, proxy)

    def solve(self, lam: FloatArray, start: FloatArray, options: Options) -> Solution:
        """Minimise the rectified loss at a given λ."""
        if options.form == "fits" and np.any(lam):
            return self._two_fits(lam)
        return newton(
            lambda theta, curvature: self.evaluate(theta, lam, curvature=curvature),
            start,
            quadratic=self.loss.quadratic,
            tolerance=options.tolerance,
            max_iterations=options.max_iterations,
        )

    def _two_fits(self, lam: FloatArray) -> Solution:
        """Return the fit of λf on the population plus the fit of y − λf on the labels (quadratic losses)."""
        _, units = self.proxied()
        zero = np.zeros(self.n_parameters)
        population = units.summed(self.loss, zero, self.shares)
        predicted = units.summed(self.loss, zero, self.shares * lam, curvature=False)
        labels = self.evaluate(zero, np.zeros_like(lam))
        rectifier = self.evaluate(zero, lam, curvature=False).gradient - predicted.gradient
        theta = -require_inverse(population.hessian) @ predicted.gradient
        theta = theta - require_inverse(labels.hessian) @ rectifier
        return Solution(theta=theta, hessian=labels.hessian, iterations=1, status="converged")

    def failure(self, solution: Solution, lam: FloatArray) -> InputError | None:
        """Return what is wrong with a solution, or `None` if it is a proper minimum."""
        gram = None
        if self.features.shape[1]:
            gram = self.features.T @ (self.features * self.weights[:, None])
        return checks.minimum_failure(solution, self.loss, self.outcome, gram, rectified=bool(np.any(lam)))

    def require_solution(self, lam: FloatArray, start: FloatArray, options: Options) -> Solution:
        """Return the minimum of the rectified loss, or raise where there is none."""
        solution = self.solve(lam, start, options)
        failure = self.failure(solution, lam)
        if failure is not None:
            raise failure
        return solution


def _coefficient_names(names: Sequence[str] | None, d: int, n_features: int) -> tuple[str, ...]:
    if names is None:
        prefix = "x" if n_features else "y"
        return ("mean",) if d == 1 and not n_features else tuple(f"{prefix}{j}" for j in range(d))
    require_one_per("coefficient", "names", names, d)
    return tuple(str(name) for name in names)
