"""Weights fitted to known totals: post-stratification, raking and the regression estimator, on any design."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs.weighting import Weighting
from stratal.errors import InputError

METHODS = ("raking", "regression")
_STEPS = 100
_CLOSE = 1e-10
_HALVINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibratedWeighting(Weighting):
    """The weights of another design, each multiplied so that known population means come out exactly.

    The variance is that which the design gives the residuals g·(y − x'B), with B the weighted regression of y
    on what is known (Särndal, Swensson & Wretman 1992, result 6.6.1). All distances between old and new
    weights have it to first order (Deville & Särndal 1992, result 5), so that raking is treated as the
    regression estimator.

    Parameters
    ----------
    base : Weighting
        Of the design.
    auxiliary : float (n, p)
        x of the labelled units, a column of ones among them.
    ratio : float (n,)
        g, see `fitted_ratios`.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> base = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([100]))
    >>> x = np.array([[1.0, 0], [1, 0], [1, 0], [1, 1]])
    >>> found = CalibratedWeighting.of(base, x, np.array([1.0, 0.4]))
    >>> found.weights.round(6), float(found.covariance(x)[1, 1].round(9))
    (array([0.2, 0.2, 0.2, 0.4]), 0.0)
    """

    base: Weighting
    auxiliary: FloatArray
    ratio: FloatArray

    @classmethod
    def of(
        cls, base: Weighting, auxiliary: FloatArray, means: FloatArray, method: str = "raking"
    ) -> CalibratedWeighting:
        """Return the weighting whose weighted means of x (n, p) are `means` (p,)."""
        return cls(
            base=base, auxiliary=auxiliary, ratio=fitted_ratios(base.weights, auxiliary, means, method)
        )

    @property
    def weights(self) -> FloatArray:
        """The ratio g times the design's weight (n,)."""
        return np.asarray(self.ratio * self.base.weights)

    @property
    def population_size(self) -> float:
        """N."""
        return self.base.population_size

    @property
    def draws(self) -> int:
        """Independent draws behind the units, as the design has them."""
        return self.base.draws

    @property
    def groups(self) -> IntArray | None:
        """The groups that units were drawn in."""
        return self.base.groups

    @property
    def census(self) -> bool:
        """Whether every unit is labelled."""
        return self.base.census

    def covariance(self, variables: FloatArray) -> FloatArray:
        """Return the design's covariance of the residuals, g-weighted."""
        return self.base.covariance(self._residuals(variables))

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Return those of the residuals' variance, less one for each total that was fitted."""
        own = self.base.degrees_of_freedom(self._residuals(variable[:, None])[:, 0])
        return float(max(own - (self.auxiliary.shape[1] - 1), 1.0))

    def unexplained(self, variables: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the residuals of the regression on what is known: its totals are exact already."""
        # By √w on both sides: the normal equations would square the rounding error of a variable that is
        # among the totals, whose residuals must come out as 0.
        root = np.sqrt(weights)[:, None]
        slopes = np.linalg.lstsq(root * self.auxiliary, root * variables, rcond=None)[0]
        return np.asarray(variables - self.auxiliary @ slopes)

    def _residuals(self, variables: FloatArray) -> FloatArray:
        return self.unexplained(variables, self.base.weights) * self.ratio[:, None]


def fitted_ratios(
    weights: FloatArray, auxiliary: FloatArray, means: FloatArray, method: str = "raking"
) -> FloatArray:
    """Return g (n,): what weights are multiplied by so that Σ w g x are the known means.

    Parameters
    ----------
    weights : float (n,)
        Positive.
    auxiliary : float (n, p)
    means : float (p,)
    method : {"raking", "regression"}
        g = exp(x'λ), always positive, found by Newton's method; or g = 1 + x'λ, in one step and perhaps
        negative (Deville & Särndal 1992, cases 2 and 1).

    Raises
    ------
    InputError
        If no such weights exist, or Newton's method does not find them.

    Examples
    --------
    >>> x = np.array([[1.0, 0], [1, 0], [1, 1]])
    >>> fitted_ratios(np.full(3, 1 / 3), x, np.array([1.0, 0.5])).round(6)
    array([0.75, 0.75, 1.5 ])
    """
    lam = np.zeros(auxiliary.shape[1])
    ratio = np.ones(len(weights))
    missed = means - auxiliary.T @ (weights * ratio)
    for _ in range(_STEPS):
        if np.max(np.abs(missed)) < _CLOSE:
            return ratio
        slope = ratio if method == "raking" else 1.0
        matrix = (auxiliary * (weights * slope)[:, None]).T @ auxiliary
        step = np.asarray(np.linalg.lstsq(matrix, missed, rcond=None)[0], dtype=np.float64)
        lam, ratio, better = _nearer(weights, auxiliary, means, lam, step, missed, method)
        if better is None:
            break
        missed = better
    if np.max(np.abs(missed)) < np.sqrt(_CLOSE):
        return ratio
    raise InputError(
        "no weights of these labels reach the known totals",
        given=f"off by {np.max(np.abs(missed)):.2g} of the population",
        action="Fewer or coarser margins, or method='regression', which allows negative weights."
        if method == "raking"
        else "Totals contradict each other among the labelled units: give fewer or coarser ones.",
    )


def _nearer(
    weights: FloatArray,
    auxiliary: FloatArray,
    means: FloatArray,
    lam: FloatArray,
    step: FloatArray,
    missed: FloatArray,
    method: str,
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return λ, g and what is missed after a step, halved until it is nearer; None where no step is."""
    for _ in range(_HALVINGS):
        with np.errstate(over="ignore", invalid="ignore"):
            power = auxiliary @ (lam + step)
            ratio = np.exp(power) if method == "raking" else 1.0 + power
            left = means - auxiliary.T @ (weights * ratio)
        if np.all(np.isfinite(left)) and np.sum(left**2) < np.sum(missed**2):
            return lam + step, ratio, left
        step = step / 2.0
    power = auxiliary @ lam
    return lam, np.exp(power) if method == "raking" else 1.0 + power, None
