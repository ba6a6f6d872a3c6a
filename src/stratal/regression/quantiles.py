"""Quantiles: the minimum of the rectified pinball loss, and intervals by inverting its score test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from stratal.arrays import FloatArray, Record
from stratal.errors import InputError
from stratal.intervals import simultaneous as intervals
from stratal.regression.lam import choose_lam
from stratal.regression.options import Options, require_choice
from stratal.regression.pinball import RectifiedPinball
from stratal.regression.score_test import ScoreTest
from stratal.regression.unlabelled import Unlabelled, finite_array, population_units
from stratal.report import Page, Printed, estimate_page, plain_dict
from stratal.weighting import Weighting

_NOT_OF_QUANTILES = ("minimise", "clip", "hessian", "form", "start", "tolerance", "max_iterations")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantileEstimate(Record, Printed):
    """A quantile; the interval inverts the score test, so that no density is estimated.

    Parameters
    ----------
    value : float
    probability : float
        q.
    lam : float (H,)
    estimator, target : str
    n : int
    population_size : float
    degrees_of_freedom : float
    test : ScoreTest
        Answers intervals and p-values; it keeps the population side to look values up.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(9, int), sizes=np.array([900]))
    >>> result = quantile(np.arange(1.0, 10.0), 0.5, weighting=weighting)
    >>> result.value
    5.0
    """

    value: float
    probability: float
    lam: FloatArray
    estimator: str
    target: str
    n: int
    population_size: float
    degrees_of_freedom: float
    test: ScoreTest = field(repr=False)

    def confidence_interval(
        self, confidence_level: float = 0.95, method: str = "t", alternative: str = "two-sided"
    ) -> intervals.Intervals:
        """Return the values that the score test keeps; infinite on a side that the labels cannot bound."""
        level = intervals.require_level(confidence_level)
        side = intervals.require_alternative(alternative)
        low, high = self.test.region(level, self._freedom(method), side)
        return intervals.Intervals(
            low=np.array([low]), high=np.array([high]), confidence_level=level, method=f"score, {method}"
        )

    def p_value(self, null: float, method: str = "t", alternative: str = "two-sided") -> float:
        """Return the p-value of the quantile being `null`."""
        side = intervals.require_alternative(alternative)
        return self.test.p_value(float(null), self._freedom(method), side)

    @property
    def standard_error(self) -> float:
        """Half the 95 % interval over 1.96 (Woodruff 1952); infinite where the interval is."""
        low, high = self.confidence_interval(0.95, method="normal")
        return float((high[0] - low[0]) / (2 * ndtri(0.975)))

    def to_dict(self, confidence_level: float = 0.95, method: str = "t") -> dict[str, Any]:
        """Return a JSON-ready description; an open side of the interval is null."""
        low, high = self.confidence_interval(confidence_level, method)
        return plain_dict(
            {
                "kind": "quantile",
                "estimate": self.value,
                "probability": self.probability,
                "confidence_interval": [low[0], high[0]],
                "confidence_level": confidence_level,
                "interval_method": f"score, {method}",
                "estimator": self.estimator,
                "target": self.target,
                "n": self.n,
                "population_size": self.population_size,
                "lam": self.lam,
            }
        )

    def _page(self) -> Page:
        return estimate_page(self.to_dict())

    def _freedom(self, method: str) -> float:
        require_choice("interval method", method, ("t", "normal"))
        return self.degrees_of_freedom if method == "t" else np.inf


def quantile(
    outcome: Any,
    probability: float,
    *,
    weighting: Weighting,
    proxy: Any = None,
    unlabelled: Unlabelled | None = None,
    population_proxy: Any = None,
    population_stratum: Any = None,
    **options: Any,
) -> QuantileEstimate:
    """Estimate a quantile of the outcome over the population.

    The smallest minimiser of the rectified pinball loss, exactly: no grid. With λ = 0 it is the weighted
    sample quantile inf {t : F(t) ≥ q}.

    Parameters
    ----------
    outcome : array-like (n,)
    probability : float
        q, between 0 and 1.
    weighting : Weighting
    proxy : array-like (n,), optional
        Predictions of the outcome for the labelled units.
    unlabelled : Unlabelled, optional
        The population side, or its arrays `population_proxy` (N,) and `population_stratum` (N,).
    **options
        `estimator`, `lam` (in [0, 1]), `target`, `stratum_weights_known`, `shrink`, `denominator`,
        `correction` of `stratal.regression.m_estimation.m_estimate`.

    Returns
    -------
    QuantileEstimate

    Raises
    ------
    InputError
        For a probability outside (0, 1), λ outside [0, 1], unusable numbers.

    Notes
    -----
    Angelopoulos, Duchi & Zrnic (2023), "PPI++", example 3, with Fisch et al. (2024), eq. 16, for λ.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> f = np.arange(100.0)
    >>> weighting = StratifiedWeighting(stratum=np.zeros(10, int), sizes=np.array([100]))
    >>> quantile(f[::10] + 1, 0.5, weighting=weighting, proxy=f[::10], population_proxy=f, lam=1.0).value
    51.0
    """
    if not 0 < probability < 1:
        raise InputError("probability is out of range", given=probability, allowed="between 0 and 1")
    unlabelled = population_units(unlabelled, None, population_proxy, population_stratum)
    rectified = RectifiedPinball(float(probability), outcome, weighting, proxy, unlabelled)
    unused = [name for name in options if name in _NOT_OF_QUANTILES]
    if unused:
        raise InputError(f"a quantile has no {unused[0]}=", action="Leave it out.")
    chosen = Options.read(options)
    rectified.require_target(chosen)
    if chosen.lam is not None and np.any(np.abs(finite_array("lam", np.atleast_1d(chosen.lam)) - 0.5) > 0.5):
        raise InputError("λ of a quantile is out of range", given=chosen.lam, allowed="0 to 1")
    fit, solution = choose_lam(rectified, chosen)
    value = float(solution.theta[0])
    test = ScoreTest(
        rectified=rectified, options=chosen, fit=fit, distribution=rectified.distribution(fit.lam[:, 0])
    )
    return QuantileEstimate(
        value=value,
        probability=float(probability),
        lam=fit.lam[:, 0],
        estimator=chosen.estimator_name(proxy is not None),
        target=chosen.target,
        n=len(rectified.outcome),
        population_size=rectified.population_size,
        degrees_of_freedom=test.degrees_of_freedom(value),
        test=test,
    )
