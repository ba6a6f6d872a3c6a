"""Interval of a function of a few shares of the population that have their own intervals ("MOVER").

The limits are the smallest and the largest value of the function on an ellipsoid around the estimated shares
("method of variance estimates recovery", Zou & Donner 2008): x_j + Δ_j d_j with d'R⁻¹d = 1. R is the
correlation of the estimates, and Δ_j the distance from a share to its limit on the side of d_j. The limits of
the shares account for skewness, small counts, the design, rounds and the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray
from stratal.estimation.share_functions import ShareFunction
from stratal.intervals.interval import two_sided_level
from stratal.intervals.interval_types import OffsetInterval, Term

# Number of directions for two shares: more directions change a limit by less than 1e-4 of its distance.
_N_DIRECTIONS_OF_TWO = 256

# A limit at most this far from its share differs from it only by rounding: every unit is labelled.
_MAX_ROUNDING_ERROR = 1e-12

# Number of directions for three shares: the angle between neighbours is less than 0.06 radians, which changes
# a limit by less than 0.2%.
_N_DIRECTIONS_OF_THREE = 1500


def directions(correlation: FloatArray) -> FloatArray:
    """Return directions (d, m) over the ellipsoid of d = 1, 2 or 3 shares with a correlation (d, d)."""
    d = len(correlation)
    if d == 1:
        return np.array([[-1.0, 1.0]])
    if d == 2:
        angles = np.arange(_N_DIRECTIONS_OF_TWO) * (2.0 * np.pi / _N_DIRECTIONS_OF_TWO)
        sphere = np.stack([np.cos(angles), np.sin(angles)])
    else:
        # Fibonacci's lattice covers the sphere evenly. Without correlation, the axes are the directions of
        # the limits of single shares.
        rank = np.arange(_N_DIRECTIONS_OF_THREE) + 0.5
        height = 1.0 - 2.0 * rank / _N_DIRECTIONS_OF_THREE
        angles = rank * np.pi * (3.0 - np.sqrt(5.0))
        ring = np.sqrt(1.0 - height**2)
        lattice = np.stack([ring * np.cos(angles), ring * np.sin(angles), height])
        sphere = np.concatenate([lattice, np.eye(3), -np.eye(3)], axis=1)
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T @ sphere)


def limits_on_ellipsoid(
    function: Callable[[FloatArray], FloatArray],
    centre: FloatArray,
    low: FloatArray,
    high: FloatArray,
    ellipsoid: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value (…) on the ellipsoid; replicate axes may follow the shares.

    Parameters
    ----------
    function : callable
    centre, low, high : float (d, …)
        The shares and their limits.
    ellipsoid : float (d, m)
        The directions that `directions` returns.
    """
    steps = ellipsoid.reshape(*ellipsoid.shape, *(1,) * (centre.ndim - 1))
    distances = np.where(steps > 0, (high - centre)[:, None], (centre - low)[:, None])
    values = function(np.clip(centre[:, None] + distances * steps, 0.0, 1.0))
    is_finite = np.isfinite(values)
    smallest = np.min(np.where(is_finite, values, np.inf), axis=0)
    largest = np.max(np.where(is_finite, values, -np.inf), axis=0)
    # If the function is undefined on the whole ellipsoid, every value is possible.
    is_defined = is_finite.any(axis=0)
    return np.where(is_defined, smallest, -np.inf), np.where(is_defined, largest, np.inf)


def move_limits_outwards(
    centre: FloatArray, low: FloatArray, high: FloatArray, units: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return limits (d, …) of shares of `units` (d, …), moved outwards by half a unit.

    The true share of few units may be equal to its limit, which is then still right. But the interval of a
    function of this limit and of other, inexact shares would just miss the true value.
    """
    half = 0.5 / units
    outer_low = np.where(centre - low > _MAX_ROUNDING_ERROR, np.maximum(low - half, 0.0), low)
    outer_high = np.where(high - centre > _MAX_ROUNDING_ERROR, np.minimum(high + half, 1.0), high)
    return outer_low, outer_high


def limits_of_function(
    function: Callable[[FloatArray], FloatArray],
    centre: FloatArray,
    low: FloatArray,
    high: FloatArray,
    units: FloatArray,
    correlation: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the limits (…) of a function of shares with limits, all (d, …).

    `units` (d, …) are those of `move_limits_outwards`, and `correlation` (d, d) is that of the shares.
    """
    if len(centre) > 1:
        low, high = move_limits_outwards(centre, low, high, units)
    return limits_on_ellipsoid(function, centre, low, high, directions(correlation))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShareFunctionInterval(OffsetInterval):
    """A function of estimated shares.

    Parameters
    ----------
    function : ShareFunction
    rates : tuple of Term (d,)
        The shares, at most three.
    correlation : float (d, d)
        Correlation of the estimates.
    units : float (d,)
        Number of units of which each is a share; infinite if the share is not a count. See
        `move_limits_outwards`.
    """

    function: ShareFunction
    rates: tuple[Term, ...]
    correlation: FloatArray
    units: FloatArray

    method = "mover"

    @classmethod
    def of(
        cls,
        function: ShareFunction,
        rates: Sequence[Term],
        correlation: FloatArray | None = None,
        units: FloatArray | float = np.inf,
    ) -> ShareFunctionInterval:
        """Return the interval around the function of the estimated shares; by default uncorrelated."""
        centre = np.array([rate.value for rate in rates])
        return cls(
            value=float(function(centre)),
            function=function,
            rates=tuple(rates),
            correlation=np.eye(len(rates)) if correlation is None else correlation,
            units=np.broadcast_to(units, len(rates)),
        )

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits below and above the value, with `error` on each side."""
        level = two_sided_level(error)
        ends = [rate.confidence_interval(level) for rate in self.rates]
        centre = np.array([rate.value for rate in self.rates])
        low = np.array([end.low for end in ends])
        high = np.array([end.high for end in ends])
        # Distances are from the function of these shares, which may differ from the estimate if weights vary.
        value = float(self.function(centre))
        smallest, largest = limits_of_function(self.function, centre, low, high, self.units, self.correlation)
        return value - min(float(smallest), value), max(float(largest), value) - value
