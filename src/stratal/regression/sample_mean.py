"""`regress(family="mean")`: the mean's own estimate and intervals, as coefficients that combine and print.

A mean is a regression without features, but there is one rule for means: λ of `stratal.estimate`, drawn to a
calibrated proxy's where labels are not informative, and intervals that know the outcome's bounds. The
sandwich with Student's t, which regressions have, covered .38 of rare outcomes (1 %, 50 labels).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate
from stratal.intervals import simultaneous as intervals
from stratal.intervals.simultaneous import Intervals
from stratal.regression.coefficients import MEstimate
from stratal.sampling.sample import Sample
from stratal.weighting.stratum_moments import stratum_covariances

OPTIONS = ("estimator", "lam", "target", "stratum_weights_known")
"""What the mean's own estimate has of a regression's options; any other asks for the sandwich."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleMean(MEstimate):
    """The mean of a population as the only coefficient, with the intervals of `stratal.estimate`.

    Parameters
    ----------
    mean : Estimate

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=8).draw(stratal.Population.from_arrays(proxy=[0.5] * 99), seed=7)
    >>> found = sample_mean(sample, [1, 1, 1, 1, 1, 1, 1, 1])
    >>> low, high = found.confidence_interval()
    >>> found.coefficients, bool(0.5 < low[0] < 1), high
    (array([1.]), True, array([1.]))
    """

    mean: Estimate

    def confidence_interval(
        self,
        confidence_level: float = 0.95,
        method: str = "auto",
        alternative: str = "two-sided",
        simultaneous: str | None = None,
        seed: int = 0,
    ) -> Intervals:
        """Return the mean's interval; `method` is one of `Estimate.confidence_interval`, `auto` or "t"."""
        intervals.require_level(confidence_level)
        found = self.mean.confidence_interval(confidence_level, method, alternative)
        return Intervals(
            low=np.array([found.low]),
            high=np.array([found.high]),
            confidence_level=confidence_level,
            method=found.method,
        )

    def p_values(
        self,
        null: Any = 0.0,
        method: str = "auto",
        alternative: str = "two-sided",
        simultaneous: str | None = None,
        seed: int = 0,
    ) -> FloatArray:
        """Return the p-value (1,) of the mean being `null`; it agrees with the interval of this method."""
        nulls = np.asarray(null, dtype=np.float64)
        if nulls.size != 1:
            raise InputError("a mean has one coefficient", given=nulls.shape, allowed="one number")
        return np.array([self.mean.p_value(float(nulls.ravel()[0]), method, alternative)])

    def to_dict(self, confidence_level: float = 0.95, method: str = "auto") -> dict[str, Any]:
        """Return a JSON-ready description."""
        found = super(SampleMean, self).to_dict(confidence_level, method)
        return {**found, "interval_method": self.confidence_interval(confidence_level, method).method}


def sample_mean(sample: Sample, labels: Any, *, proxy: str | None = None, **options: Any) -> SampleMean:
    """Return the mean outcome of the population that a sample was drawn from.

    Parameters
    ----------
    sample : Sample
    labels
        As in `stratal.estimate`.
    proxy : str, optional
        The first proxy if left out.
    **options
        Of `OPTIONS`.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=5).draw(stratal.Population.from_arrays(proxy=[0.5] * 99), seed=7)
    >>> sample_mean(sample, [1, 0, 1, 1, 0], estimator="classical").coefficients
    array([0.6])
    """
    asked = options.pop("estimator", "ppi++")
    proxy = proxy or (sample.proxy_names[0] if sample.proxy_names else None)
    lam = options.get("lam")
    used = proxy is not None and asked != "classical"
    if lam is not None and used:
        options["estimator"] = "auto"
    else:
        options["estimator"] = asked if used else _without_proxy(sample)
        options.pop("lam", None)
    found = estimate(sample, labels, proxy=proxy if used else None, **options)
    evidence = found.evidence
    weighting = evidence.weighting
    n_strata = len(weighting.counts)
    within = np.nan_to_num(
        stratum_covariances(np.column_stack([evidence.residuals]), weighting.stratum, n_strata)
    )
    spread = np.zeros_like(within)
    if used and len(sample.summary.sizes) == n_strata:
        column = sample.proxy_names.index(str(proxy))
        spread = sample.summary.proxy_covariances[:, column, column][:, None, None]
    values = np.array([row.lam[0] if row.lam else 0.0 for row in found.strata])
    return SampleMean(
        names=("mean",),
        coefficients=np.array([found.value]),
        covariance=np.array([[found.standard_error**2]]),
        degrees_of_freedom=np.array([found.degrees_of_freedom]),
        loss="mean",
        estimator="classical" if not used else "given λ" if lam is not None else asked,
        lam=values if len(values) else np.zeros(1),
        target=found.target,
        n=found.n,
        population_size=found.population_size,
        counts=weighting.counts,
        sizes=np.asarray(weighting.sizes, dtype=np.float64),
        hessian=np.eye(1),
        residual_covariances=within,
        proxy_covariances=spread,
        notes=found.notes,
        mean=found,
    )


def _without_proxy(sample: Sample) -> str:
    """Return the estimator that uses no proxy under the sample's design."""
    equal = sample.design.kind in ("simple-random", "stratified", "systematic")
    return "horvitz-thompson" if equal else "hajek"
