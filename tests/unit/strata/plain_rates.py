"""Smoothed deviations from plain lists, for the tests of `stratal.strata.standard_deviations`."""

from __future__ import annotations

import numpy as np

from stratal.strata import standard_deviations
from stratal.strata.strata import Moments


def strata_of(
    sizes, proxy_means=None, proxy_variances=None, conditional_variances=None, scaled=True, bounds=(0, 1)
):
    """Return strata whose proxy is that of an outcome of 0 and 1, where nothing else is said of it."""
    n, width = len(sizes), bounds[1] - bounds[0]
    means = np.full(n, np.nan) if proxy_means is None else np.asarray(proxy_means, float)
    inside = conditional_variances
    if inside is None:
        share = (means - bounds[0]) / width if np.isfinite(width) else 0 * means
        inside = np.nan_to_num(share * (1 - share) * width**2) if np.isfinite(width) else np.zeros(n)
    return Moments(
        sizes=sizes,
        proxy_means=means,
        proxy_variances=np.zeros(n) if proxy_variances is None else proxy_variances,
        conditional_variances=inside,
        scaled=scaled,
    )


def smoothed_standard_deviations(
    sizes, counts, sums, squares=None, *, kurtoses=None, bounds=(0.0, 1.0), **proxy
):
    strata = strata_of(sizes, bounds=bounds, **proxy)
    return standard_deviations.smoothed_standard_deviations(
        strata, counts, sums, squares, kurtoses=kurtoses, bounds=bounds
    )
