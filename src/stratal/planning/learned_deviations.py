"""S_h of the residuals of a learner, from the labels so far: where another round helps most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.estimation.calibrated import Calibrating, calibrated_proxy
from stratal.estimation.respondents import Respondents

if TYPE_CHECKING:
    from stratal.sampling.sample import Sample

STRENGTH = 16.0
"""Labels' worth of what the predictions themselves say of a stratum's residuals."""

POOLED = 0.2
"""Share of the pooled residual variance in that: no stratum is believed to be settled."""


def learned_deviations(
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
    >>> learned_deviations(sample, np.ones(60, dtype=bool), z, how)[1].split(":")[0]
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
