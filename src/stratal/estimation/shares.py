"""Intervals of functions of a few shares of the population, each of which has an interval of its own.

The ends are the least and the largest value of the function over all shares that together lie no further from
the estimates than the end of any one of them does alone ("MOVER", Zou & Donner 2008): on the ellipsoid
x_j + Δ_j d_j, d'R⁻¹d = 1, with R the correlation of the estimates and Δ_j the distance of a limit on the side
to which d_j points. Everything comes from labels: skewness, small counts, the design, rounds and the target
are matters of the shares' own limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray
from stratal.intervals.limits import Margins, Term

ShareFunction = Callable[[FloatArray], FloatArray]
"""Shares (d, …) to values (…); NaN where there is none."""

_CIRCLE = 256
"""Directions of two shares: what lies between them changes an end by under 1e-4 of its distance."""

_ROUNDING = 1e-12
"""A limit no further from its share is the share itself: every unit is labelled."""

_SPHERE = 1500
"""Directions of three shares: the next one is within .06 radians, which changes an end by under .2 %."""


def directions(correlation: FloatArray) -> FloatArray:
    """Return directions (d, m) over the ellipsoid of d = 1, 2 or 3 shares with a correlation (d, d).

    Examples
    --------
    >>> directions(np.eye(1)).tolist()
    [[-1.0, 1.0]]
    >>> around = directions(np.array([[1.0, -0.5], [-0.5, 1.0]]))
    >>> inverse = np.linalg.inv([[1.0, -0.5], [-0.5, 1.0]])
    >>> bool(np.allclose(np.einsum("jm,jk,km->m", around, inverse, around), 1.0))
    True
    """
    d = len(correlation)
    if d == 1:
        return np.array([[-1.0, 1.0]])
    if d == 2:
        angles = np.arange(_CIRCLE) * (2.0 * np.pi / _CIRCLE)
        sphere = np.stack([np.cos(angles), np.sin(angles)])
    else:
        # Fibonacci's lattice is even over the sphere; the axes are where a single share's limit lies.
        rank = np.arange(_SPHERE) + 0.5
        height, angles = 1.0 - 2.0 * rank / _SPHERE, rank * np.pi * (3.0 - np.sqrt(5.0))
        ring = np.sqrt(1.0 - height**2)
        lattice = np.stack([ring * np.cos(angles), ring * np.sin(angles), height])
        sphere = np.concatenate([lattice, np.eye(3), -np.eye(3)], axis=1)
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T @ sphere)


def ends_over(
    function: ShareFunction, centre: FloatArray, low: FloatArray, high: FloatArray, around: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest value (…) over the ellipsoid; replicate axes may follow the shares.

    Parameters
    ----------
    function : callable
    centre, low, high : float (d, …)
        The shares and their limits.
    around : float (d, m)
        See `directions`.

    Examples
    --------
    >>> low, high = ends_over(lambda s: s[0] + s[1], np.full(2, 0.5), np.full(2, 0.4), np.full(2, 0.8),
    ...                       directions(np.eye(2)))
    >>> round(float(low), 3), round(float(high), 3)
    (0.859, 1.424)
    """
    step = around.reshape(*around.shape, *(1,) * (centre.ndim - 1))
    reach = np.where(step > 0, (high - centre)[:, None], (centre - low)[:, None])
    values = function(np.clip(centre[:, None] + reach * step, 0.0, 1.0))
    # Where nothing is defined around the estimate, anything is possible.
    some = np.isfinite(values)
    least = np.min(np.where(some, values, np.inf), axis=0)
    most = np.max(np.where(some, values, -np.inf), axis=0)
    return np.where(some.any(axis=0), least, -np.inf), np.where(some.any(axis=0), most, np.inf)


def between_units(
    centre: FloatArray, low: FloatArray, high: FloatArray, units: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return limits (d, …) of shares moved outwards by half of one of their units (d, …).

    Limits of a share of few units may fall on whole units, and the truth on the same one. That is enough for
    the share alone, but a function's end there just misses its true value, the other shares being inexact.

    Examples
    --------
    >>> low, high = between_units(np.array([0.5]), np.array([0.4]), np.array([0.6]), np.array([10.0]))
    >>> low.round(2), high.round(2)
    (array([0.35]), array([0.65]))
    """
    half = 0.5 / units
    return (
        np.where(centre - low > _ROUNDING, np.maximum(low - half, 0.0), low),
        np.where(high - centre > _ROUNDING, np.minimum(high + half, 1.0), high),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OfShares(Margins):
    """A function of estimated shares.

    Parameters
    ----------
    function : callable
        Shares (d, …) to values (…).
    rates : tuple of Term (d,)
        The shares, at most three.
    correlation : float (d, d)
        Of the estimates.
    units : float (d,)
        How many units each is a share of; infinite where it is no count. See `between_units`.

    Examples
    --------
    >>> from stratal.intervals.limits import Binomial
    >>> rate = Binomial(value=0.5, trials=25)
    >>> product = OfShares.independent(lambda s: s[0] * s[1], [rate, rate])
    >>> [round(end, 3) for end in product.ends(0.95, "two-sided")]
    [0.126, 0.416]
    """

    function: ShareFunction
    rates: tuple[Term, ...]
    correlation: FloatArray
    units: FloatArray

    @classmethod
    def independent(
        cls, function: ShareFunction, rates: Sequence[Term], units: Sequence[float] | None = None
    ) -> OfShares:
        """Return a function of shares that were estimated from samples apart."""
        count = np.full(len(rates), np.inf) if units is None else np.array(units)
        return cls.of(function, rates, np.eye(len(rates)), count)

    @classmethod
    def of(
        cls, function: ShareFunction, rates: Sequence[Term], correlation: FloatArray, units: FloatArray
    ) -> OfShares:
        """Return the limits around the function's value at the estimated shares."""
        return cls(
            value=float(function(np.array([rate.value for rate in rates]))),
            function=function,
            rates=tuple(rates),
            correlation=correlation,
            units=units,
        )

    @property
    def method(self) -> str:
        """The name of the method."""
        return "mover"

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the value, `error` being left out on either side."""
        level = max(1.0 - 2.0 * error, 1e-12)
        ends = [rate.confidence_interval(level) for rate in self.rates]
        centre = np.array([rate.value for rate in self.rates])
        low, high = (np.array([getattr(end, side) for end in ends]) for side in ("low", "high"))
        if len(centre) > 1:
            low, high = between_units(centre, low, high, self.units)
        # As far from the function of these shares: what is estimated may differ, as where weights vary.
        value = float(self.function(centre))
        least, most = ends_over(self.function, centre, low, high, directions(self.correlation))
        return value - min(float(least), value), max(float(most), value) - value
