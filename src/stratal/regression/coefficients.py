"""The result of an M-estimation: coefficients and their covariance; the interval is chosen afterwards."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record
from stratal.designs import Weighting
from stratal.errors import InputError, near_names
from stratal.intervals.simultaneous import CoefficientIntervals, Family, require_level
from stratal.intervals.skewed import farther, nearer, skewnesses_of
from stratal.regression.options import require_choice
from stratal.report import Page, Printed, plain_dict, regression_page

METHODS = ("auto", "skewness-corrected", "t", "normal")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MEstimate(Record, Printed):
    """Coefficients, their covariance and how they were found.

    Parameters
    ----------
    names : tuple of str (d,)
    coefficients : float (d,)
    covariance : float (d, d)
    degrees_of_freedom : float (d,)
        Of each coefficient's variance.
    loss : str
        What was minimised: "linear", "logistic", …
    estimator : str
        "classical", "ppi++", "stratppi" or "given λ".
    lam : float (H,)
        λ per stratum.
    target : str
        "population" or "superpopulation".
    n : int
        Labels.
    population_size : float
        N, or the size of the separate unlabelled sample.
    counts, sizes : (H,)
        n_h, and N_h (or the known weights) of each stratum.
    hessian : float (d, d)
        A.
    residual_covariances, proxy_covariances : float (H, d, d)
        Within strata: of ∇ℓ(x, y) − λ∇ℓ(x, f) and of ∇ℓ(x, f), for planning the next allocation.
    influences : float (n, d), optional
        What each label adds to the coefficients: their skewness is the estimates'.
    weighting : Weighting, optional
        The design, where `influences` are given.
    iterations : int
    notes : tuple of str

    Examples
    --------
    >>> from stratal.regression.models import mean_vector
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([100]))
    >>> result = mean_vector([1.0, 2.0, 3.0, 4.0], weighting=weighting)
    >>> result.coefficients
    array([2.5])
    >>> low, high = result.confidence_interval(confidence_level=0.9)
    >>> bool(low[0] < 2.5 < high[0])
    True
    """

    names: tuple[str, ...]
    coefficients: FloatArray
    covariance: FloatArray
    degrees_of_freedom: FloatArray
    loss: str
    estimator: str
    lam: FloatArray
    target: str
    n: int
    population_size: float
    counts: IntArray
    sizes: FloatArray
    hessian: FloatArray
    residual_covariances: FloatArray
    proxy_covariances: FloatArray
    influences: FloatArray | None = field(default=None, repr=False)
    weighting: Weighting | None = field(default=None, repr=False)
    iterations: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def standard_errors(self) -> FloatArray:
        """Standard error of each coefficient (d,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def skewness(self) -> FloatArray:
        """γ of each estimate (d,), from what its labels show; variance of other origin has none."""
        if self.influences is None or self.weighting is None:
            return np.zeros(len(self.names))
        shown = skewnesses_of(self.influences, self.weighting)
        own, whole = np.diag(self.weighting.covariance(self.influences)), np.diag(self.covariance)
        share = np.where(whole > 0, own / np.where(whole > 0, whole, 1.0), 0.0)
        return np.asarray(shown * np.clip(share, 0.0, 1.0) ** 1.5)

    def confidence_interval(
        self,
        confidence_level: float = 0.95,
        method: str = "auto",
        alternative: str = "two-sided",
        simultaneous: str | None = None,
        seed: int = 0,
    ) -> CoefficientIntervals:
        """Return an interval per coefficient.

        Parameters
        ----------
        confidence_level : float
            Of each interval, or of all together if `simultaneous`.
        method : str
            "skewness-corrected", which "auto" is: the farther of Student's t and of Hall's (1992)
            transformation of it; "t", with each coefficient's degrees of freedom; "normal" as in the papers.
        alternative : str
            "two-sided", "greater" (a lower bound) or "less" (an upper bound).
        simultaneous : str, optional
            "bonferroni", or "max-t": narrower, by simulation of the largest of the correlated statistics.
        seed : int
            Of that simulation.

        Returns
        -------
        Intervals
            Unpacks into low (d,) and high (d,).
        """
        level = require_level(confidence_level)
        family = self._family(method, alternative, simultaneous, seed)
        reach = farther(family.critical(level), self._lean(method), self._freedom(method))[0]
        reach, side = reach * self.standard_errors, family.side
        low = self.coefficients - (np.inf if side == "less" else reach)
        high = self.coefficients + (np.inf if side == "greater" else reach)
        return CoefficientIntervals(
            low=low,
            high=high,
            confidence_level=level,
            method=_resolved(method) + (f", {simultaneous}" if simultaneous else ""),
        )

    def p_values(
        self,
        null: Any = 0.0,
        method: str = "auto",
        alternative: str = "two-sided",
        simultaneous: str | None = None,
        seed: int = 0,
    ) -> FloatArray:
        """Return the p-value (d,) of each coefficient being `null`.

        It is below 1 − level just where the interval excludes `null`. Parameters are those of
        `confidence_interval`; `null` is a number or (d,).
        """
        nulls = np.asarray(null, dtype=np.float64)
        if nulls.shape not in ((), self.coefficients.shape):
            raise InputError(
                "null must be one number or one per coefficient",
                given=nulls.shape,
                allowed=f"({len(self.names)},)",
            )
        distance = self.coefficients - nulls
        error = self.standard_errors
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.where(distance == 0, 0.0, distance / error)
        family = self._family(method, alternative, simultaneous, seed)
        signed = {"two-sided": np.abs(statistic), "greater": statistic, "less": -statistic}[family.side]
        return family.tails(nearer(signed, self._lean(method), self._freedom(method)))

    def combination(self, contrasts: Any, names: Sequence[str] | None = None) -> MEstimate:
        """Return the estimate of linear combinations of the coefficients: `contrasts` is (d,) or (k, d).

        The degrees of freedom are the smallest of the coefficients involved.
        """
        matrix = np.atleast_2d(np.asarray(contrasts, dtype=np.float64))
        if matrix.shape[1] != len(self.coefficients):
            raise InputError(
                "contrasts must have one column per coefficient",
                given=f"{matrix.shape[1]}",
                allowed=f"{len(self.coefficients)}",
            )
        freedom = np.array(
            [self.degrees_of_freedom[row != 0].min() if np.any(row) else np.inf for row in matrix]
        )
        labels = tuple(names) if names is not None else tuple(f"c{i}" for i in range(len(matrix)))
        mapping = matrix @ np.linalg.pinv(self.hessian)
        return dataclasses.replace(
            self,
            names=labels,
            coefficients=matrix @ self.coefficients,
            covariance=matrix @ self.covariance @ matrix.T,
            degrees_of_freedom=freedom,
            influences=None if self.influences is None else self.influences @ matrix.T,
            hessian=np.eye(len(matrix)),
            residual_covariances=mapping @ self.residual_covariances @ mapping.T,
            proxy_covariances=mapping @ self.proxy_covariances @ mapping.T,
        )

    def index(self, name: str | int) -> int:
        """Return the position of a coefficient, by name or position."""
        if isinstance(name, int):
            if not -len(self.names) <= name < len(self.names):
                raise InputError(
                    "no such coefficient", given=name, allowed=f"0 to {len(self.names) - 1}, or a name"
                )
            return name % len(self.names)
        if name not in self.names:
            raise InputError(f"no such coefficient: {name!r}", allowed=near_names(name, self.names))
        return self.names.index(name)

    def to_dict(self, confidence_level: float = 0.95, method: str = "auto") -> dict[str, Any]:
        """Return a JSON-ready description."""
        low, high = self.confidence_interval(confidence_level, method)
        columns = {
            "name": self.names,
            "estimate": self.coefficients,
            "standard_error": self.standard_errors,
            "p_value": self.p_values(method=method),
            "confidence_interval": np.stack([low, high], axis=1),
            "degrees_of_freedom": self.degrees_of_freedom,
        }
        size = float(self.population_size)
        return plain_dict(
            {
                "kind": "m-estimate",
                "loss": self.loss,
                "estimator": self.estimator,
                "target": self.target,
                "n": self.n,
                "population_size": int(size) if size.is_integer() else size,
                "lam": self.lam,
                "confidence_level": confidence_level,
                "interval_method": _resolved(method),
                "coefficients": [
                    dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
                ],
                "covariance": self.covariance,
                "iterations": self.iterations,
                "notes": self.notes,
            }
        )

    def _page(self) -> Page:
        return regression_page(self.to_dict())

    def _freedom(self, method: str) -> FloatArray:
        require_choice("interval method", method, METHODS)
        return np.full(len(self.names), np.inf) if method == "normal" else self.degrees_of_freedom

    def _lean(self, method: str) -> FloatArray:
        """Return −|γ| (d,): labels lean one way and curvature the other, so both sides are moved."""
        corrected = _resolved(method) == METHODS[1]
        return -np.abs(self.skewness) if corrected else np.zeros(len(self.names))

    def _family(self, method: str, alternative: str, simultaneous: str | None, seed: int) -> Family:
        return Family.of(self._freedom(method), self.covariance, alternative, simultaneous, seed)


def _resolved(method: str) -> str:
    """Return the method that `auto` stands for."""
    return METHODS[1] if method == "auto" else method
