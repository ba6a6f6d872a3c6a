"""The ways in which a proxy may be off, and the variance of a stratified mean in each: what a plan promises.

The outcome's log-odds may be shifted against the proxy's and flatter or steeper, and a graded outcome may be
less spread than its bounds allow. Labels may later refute all of them (`stratal.estimation.promise`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record
from stratal.strata.moments import shrunk_log_odds
from stratal.strata.strata import Strata

CALIBRATION_SLOPE = 0.8
"""Slope of the outcome on the proxy that expectations assume; a calibrated proxy has 1."""

OFFSETS = (-1.5, 0.0, 1.5)
"""Shifts of the log-odds: seven in eight of a standard normal, the prior that rounds with labels have."""

SLOPES = (0.25, 0.5, 1.0, 2.0)
"""Factors on the log-odds about the overall mean: from nearly useless to much too timid."""

SPREADS = (0.25, 1.0)
"""Shares of the largest variance r(1 - r) that a graded outcome outside 0 and 1 may have."""

RESIDUALS = (0.5, 1.0, 2.0)
"""Factors on the standard deviation that is assumed of what a proxy without bounds leaves open."""

_LEAST_LEFT = 0.05
"""No proxy explains more of a stratum's variance than all but this share."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario(Record):
    """Strata as they would be if the proxy were off in one way, or in each of several.

    Parameters
    ----------
    means : float (…, H)
        Mean outcome of each stratum; a leading axis holds several ways.
    variances : float (…, H)
        S_h² of the outcome, divisor N_h.
    slope : float (…,)
        Slope of the outcome on the proxy within strata.
    bounds : (float, float), optional
        Of the outcome, where labels tell more of them than the strata do.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 100)
    >>> found = scenarios(stratal.stratify(population, "none"))
    >>> found.means.shape, float(found.variances.max())
    ((13, 1), 0.25)
    """

    means: FloatArray
    variances: FloatArray
    slope: FloatArray
    bounds: tuple[float, float] | None = None

    def way(self, number: int | IntArray) -> Scenario:
        """Return one of several ways, or some of them; the first is the expected one."""
        moved = ("means", "variances", "slope")
        return replace(self, **{name: getattr(self, name)[number] for name in moved})

    def standard_errors(self, strata: Strata, n_h: IntArray, estimator: str) -> FloatArray:
        """Return the standard errors (…,) of an estimator at n_h (H,).

        Horvitz-Thompson averages z. For λ = 1 it is z − ẑ, whose variance is S_h² − (2b − 1) Var_h(ẑ), and
        for the fitted λ = b it is z − b ẑ with S_h² − b² Var_h(ẑ), b being the slope.
        """
        taken = {"difference": 2 * self.slope - 1, "ppi++": self.slope**2}.get(estimator, 0 * self.slope)
        left = self.variances - taken[..., None] * strata.proxy_variances
        left = np.maximum(left, _LEAST_LEFT * self.variances)
        return np.asarray(np.sqrt(expected_variance(strata.sizes, n_h, left)))


def scenarios(strata: Strata) -> Scenario:
    """Return the ways in which the proxy of these strata may be off: the expected one, then the others.

    Outcomes are expected to follow the proxy with a slope of 0.8: each stratum's mean outcome lies
    `CALIBRATION_SLOPE` as far from the overall mean as its mean proxy, and the plug-in variance changes as
    u(1 - u) does, which for a binary outcome is exact. One stratum keeps its plug-in S, which depends on the
    overall mean alone.

    Parameters
    ----------
    strata : Strata
        Of a proxy that is on the outcome's scale.

    Examples
    --------
    >>> import stratal
    >>> judge = stratal.Population.from_arrays(proxy=[0.0] * 50 + [1.0] * 50)
    >>> found = scenarios(stratal.stratify(judge, n_strata=2))
    >>> found.means[0], float(found.variances.max().round(3))
    (array([0.1, 0.9]), 0.25)
    """
    low, high = strata.bounds
    width, plug_in, sizes = high - low, strata.standard_deviations**2, strata.sizes
    if not math.isfinite(width):
        ways = strata.proxy_variances + np.square(RESIDUALS)[:, None] * strata.conditional_variances
        means = np.tile(strata.proxy_means, (len(ways) + 1, 1))
        slopes = np.array([CALIBRATION_SLOPE, *[1.0] * len(ways)])
        return Scenario(means=means, variances=np.vstack([plug_in, ways]), slope=slopes)
    told = np.clip((strata.proxy_means - low) / width, 0.0, 1.0)
    widest, overall = told * (1 - told) * width**2, np.average(told, weights=sizes)
    followed = overall + CALIBRATION_SLOPE * (told - overall)
    middle = np.average(strata.proxy_means, weights=sizes)
    expected = middle + CALIBRATION_SLOPE * (strata.proxy_means - middle)
    if len(told) > 1 and strata.scaled:
        share = np.divide(plug_in, widest, out=np.ones_like(widest), where=widest > 0)
        plug_in = np.minimum(share, 1.0) * followed * (1 - followed) * width**2
    binary = (low, high) == (0.0, 1.0) and np.allclose(
        strata.standard_deviations**2, widest, rtol=1e-3, atol=1e-6
    )
    centre, distance = shrunk_log_odds(sizes, told)
    grid = np.meshgrid(OFFSETS, SLOPES, (1.0,) if binary else SPREADS, indexing="ij")
    offset, slope, spread = (axis.reshape(-1, 1) for axis in grid)
    rates = 1.0 / (1.0 + np.exp(-(centre + offset + slope * distance)))
    return Scenario(
        means=np.vstack([expected, low + width * rates]),
        variances=np.vstack([plug_in, spread * rates * (1 - rates) * width**2]),
        slope=np.concatenate([[CALIBRATION_SLOPE], np.minimum(slope, 1.0).ravel()]),
    )


def expected_variance(sizes: IntArray, n_h: IntArray, variances: FloatArray) -> Any:
    """Return the variance of a stratified mean, Σ W_h² (1 − f_h) S_h² / n_h.

    Fogliato et al. (2024), eq. 5 and 8; Cochran, eq. 5.6.

    Parameters
    ----------
    sizes, n_h : int (H,)
    variances : float (…, H)
        Within-stratum variances with divisor N_h.

    Returns
    -------
    float (…,)
        Infinite where a stratum that varies gets no draw.

    Examples
    --------
    >>> float(expected_variance(np.array([100]), np.array([10]), np.array([0.25])).round(6))
    0.022727
    """
    spread = variances * sizes / np.maximum(sizes - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = (sizes / sizes.sum()) ** 2 * (1 - n_h / sizes) * spread / n_h
    return np.sum(np.where(spread > 0, parts, 0.0), axis=-1)
