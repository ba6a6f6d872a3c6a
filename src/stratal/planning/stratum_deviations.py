"""The standard deviation of the outcome in each stratum, estimated from labels, for allocations."""

from __future__ import annotations

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, are_binary
from stratal.designs.sample import Sample
from stratal.designs.stratum_moments import stratum_counts, stratum_covariances, stratum_kurtoses
from stratal.errors import InputError, check_choice
from stratal.estimation.calibrated import CalibrationOptions, calibrated_proxy
from stratal.estimation.respondents import Respondents
from stratal.strata import Strata
from stratal.strata.standard_deviations import smoothed_standard_deviations

# Weight of the prior of a stratum's residual variance, in labels (docs/methods/adaptive.md).
PRIOR_LABELS = 16.0

# Share of the pooled residual variance in the prior; the rest is the variance that the predictions imply.
# With the implied variance alone, a stratum of predictions near 0 and 1 would get almost no labels.
POOLED_SHARE = 0.2


def estimated_deviations(
    strata: Strata,
    z: FloatArray,
    stratum: IntArray,
    *,
    deviations: str = "recalibrated",
    bounds: tuple[float, float] | None = None,
) -> FloatArray:
    """Return S_h (H,), the standard deviations of the outcome, estimated from labelled units.

    Parameters
    ----------
    strata : Strata
    z : float (n,)
        Outcomes of the labelled units.
    stratum : int (n,)
        Stratum of each labelled unit.
    deviations : {"recalibrated", "raw"}
        The proxy recalibrated on the labels and smoothed (`stratal.strata.standard_deviations`), or the
        sample standard deviations (Kumar & Raj 2016, eq. 3), which are 0 if all labels of a stratum agree.
    bounds : (float, float), optional
        Bounds of the outcome; infinite if it has none. Default: `strata.bounds` if all labels lie within
        them; 0 and 1 if all labels are 0 or 1 and the proxy is not on the outcome's scale; else none.

    Raises
    ------
    InputError
        If `deviations` is unknown, or a label lies outside `bounds`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 50 + [0.9] * 50)
    >>> strata = stratal.strata.stratify(population, n_strata=2)
    >>> z, h = np.array([0.0, 0, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
    >>> estimated_deviations(strata, z, h).round(2)
    array([0.31, 0.41])
    >>> estimated_deviations(strata, z, h, deviations="raw").round(2)
    array([0.  , 0.58])
    """
    check_choice("kind of deviations", deviations, ("recalibrated", "raw"))
    n_strata = strata.n_strata
    if deviations == "raw":
        return raw_deviations(z, stratum, n_strata)
    outcome_bounds = _outcome_bounds(strata, z, bounds)
    sums_of_squares = None
    # The squares of 0 and 1 are the outcomes themselves.
    if not (are_binary(z) and outcome_bounds == (0.0, 1.0)):
        sums_of_squares = np.bincount(stratum, z**2, minlength=n_strata)
    kurtoses = None
    if outcome_bounds == _UNBOUNDED:
        kurtoses = stratum_kurtoses(z, stratum, n_strata)
    return smoothed_standard_deviations(
        strata,
        stratum_counts(stratum, n_strata),
        np.bincount(stratum, z, minlength=n_strata),
        sums_of_squares,
        kurtoses=kurtoses,
        bounds=outcome_bounds,
    )


_UNBOUNDED = (-np.inf, np.inf)


def _outcome_bounds(strata: Strata, z: FloatArray, bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Return finite bounds of the outcome, or `_UNBOUNDED`; see `bounds` of `estimated_deviations`."""
    low, high = strata.bounds if bounds is None else bounds
    is_finite = bool(np.isfinite(high - low))
    if are_binary(z) and bounds is None and not strata.scaled and not is_finite:
        return 0.0, 1.0
    is_outside = (z < low) | (z > high)
    if np.any(is_outside):
        if bounds is None:
            return _UNBOUNDED
        first_outside = z[np.argmax(is_outside)]
        raise InputError("a label lies outside the bounds", given=f"{first_outside:g}", allowed=f"{bounds}")
    return (float(low), float(high)) if is_finite else _UNBOUNDED


def raw_deviations(z: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return s_h (H,) with divisor n_h − 1; the pooled one for strata with fewer than two labels."""
    variances = stratum_covariances(z[:, None], stratum, n_strata)[:, 0, 0]
    degrees_of_freedom = np.maximum(stratum_counts(stratum, n_strata) - 1, 0)
    pooled = float(np.nansum(variances * degrees_of_freedom)) / max(int(degrees_of_freedom.sum()), 1)
    return np.asarray(np.sqrt(np.where(np.isnan(variances), pooled, variances)))


def residual_deviations(
    sample: Sample, labelled: BoolArray, z: FloatArray, options: CalibrationOptions
) -> tuple[FloatArray, str]:
    """Return the smoothed standard deviation of z − φ(x) in each stratum (H,), and a note on φ.

    Parameters
    ----------
    sample : Sample
    labelled : bool (n,)
    z : float (m,)
        Outcomes of the labelled units.
    options : CalibrationOptions
        The learner and what it learns from.

    Notes
    -----
    φ(x) is the out-of-fold prediction of z by the learner, chosen as by `estimate(…, calibration=learner)`.
    The residual variance of a stratum is shrunk to a prior: `POOLED_SHARE` of the pooled variance, plus the
    rest of the variance that φ's mean m_h and variance V_h imply, (m_h − low)(high − m_h) − V_h. The implied
    variances are scaled to the residuals of all strata.
    """
    respondents = Respondents.of(sample, labelled)
    calibration = calibrated_proxy(sample, labelled, respondents, z, options)
    sizes = calibration.summary.sizes
    counts = np.bincount(respondents.stratum, minlength=len(sizes))
    squared_residuals = (z - calibration.values[:, 0]) ** 2
    sums = np.bincount(respondents.stratum, squared_residuals, minlength=len(sizes))
    pooled_variance = float(sizes @ (sums / np.maximum(counts, 1)) / sizes[counts > 0].sum())
    implied_variances = np.ones(len(sizes))
    if options.bounds is not None and np.all(np.isfinite(options.bounds)):
        low, high = options.bounds
        means = calibration.summary.proxy_means[:, 0]
        unexplained = (means - low) * (high - means) - calibration.summary.proxy_covariances[:, 0, 0]
        implied_variances = np.maximum(unexplained, 0.0)
    implied_sum = float(counts @ implied_variances)
    scale = sums.sum() / implied_sum if implied_sum > 0 else 0.0
    prior = POOLED_SHARE * pooled_variance + (1 - POOLED_SHARE) * scale * implied_variances
    deviations = np.sqrt((PRIOR_LABELS * prior + sums) / (PRIOR_LABELS + counts))
    # `Respondents` merges strata without labels with others. Return a value for each stratum of the design.
    if respondents.codes is not None:
        deviations = deviations[respondents.codes]
    return np.asarray(deviations), f"deviations of residuals; {calibration.note}"
