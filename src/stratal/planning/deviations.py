"""S_h from the labels so far: of the outcome, recalibrated or raw, and of what a learner leaves of it."""

from __future__ import annotations

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.sample import Sample
from stratal.designs.stratum_moments import stratum_counts, stratum_covariances, stratum_kurtoses
from stratal.errors import InputError
from stratal.estimation.calibrated import Calibrating, calibrated_proxy
from stratal.estimation.respondents import Respondents
from stratal.strata import Strata
from stratal.strata.rates import smoothed_standard_deviations

DEVIATIONS = ("recalibrated", "raw")

STRENGTH = 16.0
"""Labels' worth of what the predictions themselves say of a stratum's residuals."""

POOLED = 0.2
"""Share of the pooled residual variance in that: no stratum is believed to be settled."""


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
        The proxy recalibrated on the labels and smoothed (`stratal.strata.rates`), or the sample's own
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


def residual_deviations(
    sample: Sample, labelled: BoolArray, z: FloatArray, how: Calibrating
) -> tuple[FloatArray, str]:
    """Return the standard deviation of z − φ(x) in each stratum (H,), smoothed, and what is to be said of φ.

    Parameters
    ----------
    sample : Sample
    labelled : bool (n,)
    z : float (m,)
        Outcomes of the labelled units.
    how : Calibrating
        The learner and what it learns from.

    Notes
    -----
    φ is cross-fitted and chosen as `estimate(…, calibration=learner)` does it, so residuals are of labels
    that φ has not seen. A stratum's own are mixed with what φ's mean m_h and variance V_h over the stratum
    lead one to expect, (m_h − low)(high − m_h) − V_h, scaled to the residuals of all strata.

    Examples
    --------
    >>> import stratal
    >>> x = np.linspace(0, 1, 200)
    >>> population = stratal.Population.from_arrays(proxy=x)
    >>> sample = stratal.plan(population, budget=60).draw(seed=7)
    >>> z = (np.abs(sample.proxies[:, 0] - 0.5) < 0.2) * 1.0
    >>> how = Calibrating(column=[0], method="ridge")
    >>> residual_deviations(sample, np.ones(60, dtype=bool), z, how)[1].split(":")[0]
    'deviations of residuals; ridge learned from proxy'
    """
    frame = Respondents.of(sample, labelled)
    found = calibrated_proxy(sample, labelled, frame, z, how)
    sizes, stratum = found.summary.sizes, frame.stratum
    squares = (z - found.values[:, 0]) ** 2
    expected = _expected(
        found.summary.proxy_means[:, 0], found.summary.proxy_covariances[:, 0, 0], how.bounds
    )
    deviations = _smoothed(squares, stratum, sizes, expected)
    note = f"deviations of residuals; {found.note}"
    return (deviations if frame.codes is None else deviations[frame.codes]), note


def _expected(means: FloatArray, variances: FloatArray, bounds: tuple[float, float] | None) -> FloatArray:
    """Return what predictions lead one to expect of the residuals' variance (H,), up to a factor."""
    if bounds is None or not np.all(np.isfinite(bounds)):
        return np.ones(len(means))
    low, high = bounds
    return np.asarray(np.maximum((means - low) * (high - means) - variances, 0.0))


def _smoothed(squares: FloatArray, stratum: IntArray, sizes: IntArray, expected: FloatArray) -> FloatArray:
    """Return standard deviations (H,) from squared residuals (m,), mixed with what is expected.

    Examples
    --------
    >>> _smoothed(np.full(4, 0.25), np.array([0, 0, 1, 1]), np.array([50, 50]), np.ones(2))
    array([0.5, 0.5])
    """
    counts = np.bincount(stratum, minlength=len(sizes))
    sums = np.bincount(stratum, squares, minlength=len(sizes))
    pooled = float(sizes @ (sums / np.maximum(counts, 1)) / sizes[counts > 0].sum())
    awaited = float(counts @ expected)
    factor = sums.sum() / awaited if awaited > 0 else 0.0
    prior = POOLED * pooled + (1 - POOLED) * factor * expected
    return np.asarray(np.sqrt((STRENGTH * prior + sums) / (STRENGTH + counts)))
