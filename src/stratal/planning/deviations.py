"""S_h from the labels so far: recalibrated and smoothed, or raw as Kumar and Raj have it."""

from __future__ import annotations

import numpy as np

from stratal.allocation.rates import smoothed_standard_deviations
from stratal.arrays import FloatArray, IntArray
from stratal.errors import InputError
from stratal.strata import Strata
from stratal.weighting.stratum_moments import stratum_counts, stratum_covariances, stratum_kurtoses

DEVIATIONS = ("recalibrated", "raw")


def estimated_deviations(
    strata: Strata,
    z: FloatArray,
    stratum: IntArray,
    *,
    deviations: str = "recalibrated",
    bounds: tuple[float, float] | None = None,
) -> FloatArray:
    """Return S_h (H,) from labelled units.

    Parameters
    ----------
    strata : Strata
    z : float (n,)
        Outcome of the labelled units.
    stratum : int (n,)
        Stratum of each.
    deviations : {"recalibrated", "raw"}
        The proxy recalibrated on the labels and smoothed (`stratal.allocation.rates`), or the sample's own
        (Kumar & Raj 2016, eq. 3), which are 0 where a stratum's labels all agree.
    bounds : (float, float), optional
        Of the outcome, infinite where it has none. Those of the proxy if left out and all labels lie within;
        0 and 1 if there are none and all labels are 0 or 1.

    Raises
    ------
    InputError
        For an unknown kind.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 50 + [0.9] * 50)
    >>> strata = stratal.stratify(population, n_strata=2)
    >>> z, h = np.array([0.0, 0, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
    >>> estimated_deviations(strata, z, h).round(2)
    array([0.31, 0.41])
    >>> estimated_deviations(strata, z, h, deviations="raw").round(2)
    array([0.  , 0.58])
    """
    if deviations not in DEVIATIONS:
        raise InputError(
            "no such kind of deviations", given=repr(deviations), allowed=", ".join(map(repr, DEVIATIONS))
        )
    n_strata = strata.n_strata
    if deviations == "raw":
        return raw_deviations(z, stratum, n_strata)
    binary, limits = _outcome(strata, z, bounds)
    return smoothed_standard_deviations(
        strata.sizes,
        stratum_counts(stratum, n_strata),
        np.bincount(stratum, z, minlength=n_strata),
        None if binary else np.bincount(stratum, z**2, minlength=n_strata),
        proxy_means=strata.proxy_means,
        proxy_variances=strata.proxy_variances,
        conditional_variances=strata.conditional_variances,
        kurtoses=None if np.isfinite(limits[1] - limits[0]) else stratum_kurtoses(z, stratum, n_strata),
        bounds=limits,
        scaled=strata.scaled,
    )


def raw_deviations(z: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the sample's s_h (H,) with divisor n_h − 1; the pooled one below two labels.

    Examples
    --------
    >>> raw_deviations(np.array([0.0, 1.0, 1.0, 1.0]), np.array([0, 0, 1, 1]), 2).round(3)
    array([0.707, 0.   ])
    """
    own = stratum_covariances(z[:, None], stratum, n_strata)[:, 0, 0]
    free = np.maximum(stratum_counts(stratum, n_strata) - 1, 0)
    pooled = float(np.nansum(own * free)) / max(int(free.sum()), 1)
    return np.asarray(np.sqrt(np.where(np.isnan(own), pooled, own)))


def _outcome(
    strata: Strata, z: FloatArray, bounds: tuple[float, float] | None
) -> tuple[bool, tuple[float, float]]:
    """Return whether the outcome takes only the values of its bounds, and the bounds."""
    limits = strata.bounds if bounds is None else bounds
    if not np.all(np.isfinite(limits)) and (bounds is not None or strata.scaled):
        return False, (-np.inf, np.inf)
    binary = bool(np.all((z == 0) | (z == 1)))
    finite = bool(np.isfinite(limits[0]) and np.isfinite(limits[1]))
    if binary and (not finite or tuple(limits) == (0.0, 1.0)):
        return True, (0.0, 1.0)
    if finite and bool(np.all((z >= limits[0]) & (z <= limits[1]))):
        return False, (float(limits[0]), float(limits[1]))
    if bounds is not None:
        raise InputError(
            "a label lies outside the bounds", given=f"{z.min():g} to {z.max():g}", allowed=f"{bounds}"
        )
    return False, (-np.inf, np.inf)
