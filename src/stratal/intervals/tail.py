"""The tail of a weighted sum of counts: that of one count with the sum's first three moments, scaled.

Exact where the strata weigh alike; the normal quantile of the tail comes from the incomplete beta function,
or nearly from a saddlepoint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, ndtri

from stratal.arrays import BoolArray, FloatArray

_POISSON = 1e-8
_MOST_SKEWED = 1.9
_NOTHING = 1e-300
_ALL = 1.0 - 1e-16
LARGEST = float(ndtri(_ALL))
"""The normal quantile that stands for certainty."""


@dataclass(frozen=True, slots=True)
class Count:
    """A count (R,) whose tail stands for the sum's: `size` trials of rate `rate`, and `reached` of them.

    Binomial where the sum's variance is below its mean, negative binomial (`size` and `rate` negative) where
    it is above. `turned`: counted from the other end, the one that the estimate is nearer to.

    Examples
    --------
    >>> ten = [np.array([number]) for number in (8.0, 5.0, 5.0, 2.5, 0.0, 0.5)]
    >>> count = Count.of(*ten)
    >>> bool(count.turned[0]), count.size.round(3), count.rate.round(3), count.reached.round(3)
    (True, array([10.]), array([0.5]), array([2.5]))
    >>> count.quantile.round(3), count.nearly.round(3)
    (array([-1.601]), array([-1.603]))
    """

    size: FloatArray
    rate: FloatArray
    reached: FloatArray
    turned: BoolArray

    @classmethod
    def of(
        cls,
        estimate: FloatArray,
        mean: FloatArray,
        rest: FloatArray,
        variance: FloatArray,
        third: FloatArray,
        half: FloatArray,
    ) -> Count:
        """Return the count with the sum's mean, variance and third moment; `rest` is the mean's from above.

        `half` is half the step of the sum: `reached` lies between two steps.
        """
        turned = estimate > (mean + rest) / 2.0
        centre = np.maximum(np.where(turned, rest, mean), _NOTHING)
        third = np.where(turned, -third, third)
        from_end = np.where(turned, mean + rest - estimate + 2.0 * half, estimate)
        ratio = variance / centre
        skew = np.minimum(third / variance, _MOST_SKEWED * ratio)
        scale = 2.0 * ratio - skew
        rate = (ratio - skew) / scale
        rate = np.where(np.abs(rate) < _POISSON, np.where(rate < 0, -_POISSON, _POISSON), rate)
        return cls(centre / (scale * rate), rate, (from_end - half) / scale, turned)

    @property
    def quantile(self) -> FloatArray:
        """The normal quantile (R,) of the probability to reach so many, by the incomplete beta function."""
        size, rate = self.size, self.rate
        count = np.maximum(self.reached + 0.5, _NOTHING)
        other = np.where(rate > 0, size - count + 1.0, -size)
        chance = np.where(rate > 0, np.minimum(rate, 1.0), -rate / (1.0 - rate))
        tail = np.where(other > 0, betainc(count, np.maximum(other, _NOTHING), chance), 0.0)
        return np.asarray(ndtri(np.clip(np.where(self.turned, 1.0 - tail, tail), _NOTHING, _ALL)))

    @property
    def nearly(self) -> FloatArray:
        """The same to about a thousandth, by Lugannani & Rice's (1980) saddlepoint; NaN where it has none."""
        size, rate, s = self.size, self.rate, self.reached
        expected, t = size * rate, size - s
        with np.errstate(invalid="ignore", divide="ignore"):
            one, other = np.log(s / expected), np.log(t / (size - expected))
            root = np.sign(s - expected) * np.sqrt(2.0 * np.maximum(s * one + t * other, 0.0))
            wald = 2.0 * np.sinh((one - other) / 2.0) * np.sqrt(s * t / size)
            star = root + np.log(wald / root) / root
        return np.asarray(np.where(self.turned, star, -star))
