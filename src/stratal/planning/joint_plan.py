"""The variances of the influences of several estimands, and the precision of each with one allocation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.planning.plan import PlannedPart
from stratal.population.influence import Influence, influence_moments
from stratal.population.population import Population
from stratal.strata import Strata
from stratal.strata.strata import expected_variance

# A share of known units that differs from 1 only by the rounding of sums.
_ALL_KNOWN = 1.0 - 1e-9


def influence_deviations(
    population: Population, strata: Strata, influences: Sequence[Influence]
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the expected variation of J influences, and the strata whose labels are known already.

    Returns
    -------
    deviations : float (J, H)
        Standard deviation of each influence in each stratum, divisor N_h.
    variances : float (J,)
        Variance of each influence over all units.
    is_known : bool (J, H)
        Whether all units of a stratum are known to the estimand without a label.
    """
    means, squared_means, squares, known_shares = influence_moments(population, strata.rule, influences)
    squares = np.maximum(squares, squared_means)
    variances = squares @ strata.weights - (means @ strata.weights) ** 2
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    return deviations, np.maximum(variances, 0.0), np.asarray(known_shares > _ALL_KNOWN)


def planned_parts(
    names: Sequence[str],
    strata: Strata,
    n_h: IntArray,
    deviations: FloatArray,
    variances: FloatArray,
    *,
    normal_quantile: float,
    target_half_widths: FloatArray | None,
) -> tuple[PlannedPart, ...]:
    """Return the precision that n_h (H,) labels are expected to give each of J estimands.

    Parameters
    ----------
    names : sequence of str (J,)
    strata : Strata
    n_h : int (H,)
    deviations, variances
        See `influence_deviations`.
    normal_quantile : float
        Half-width in standard errors.
    target_half_widths : float (J,), optional
    """
    budget = int(n_h.sum())
    # Variance of a simple random sample's mean, over that of a single draw.
    simple_factor = (1.0 / budget - 1.0 / strata.size) * strata.size / max(strata.size - 1, 1)
    parts = []
    for j, deviation in enumerate(np.where(strata.is_known, 0.0, deviations)):
        error = float(np.sqrt(expected_variance(strata.sizes, n_h, deviation**2)))
        # Without an error, the estimand is known exactly.
        efficiency = np.inf
        if error > 0:
            efficiency = float(variances[j]) * simple_factor / error**2
        part = PlannedPart(
            estimand=names[j],
            labels=int(n_h[deviation > 0].sum()),
            expected_standard_error=error,
            expected_half_width=normal_quantile * error,
            wanted_half_width=None if target_half_widths is None else float(target_half_widths[j]),
            relative_efficiency=efficiency,
        )
        parts.append(part)
    return tuple(parts)
