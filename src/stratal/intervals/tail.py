"""The tail of a weighted sum of counts: that of one count with the sum's first three moments, scaled.

Exact where the strata weigh alike; the normal quantile of the tail comes from the incomplete beta function,
or nearly from a saddlepoint.

A stratum's own step shows in the sum as far as the others do not fill it in: e^(−Σ_k c_k p_k(1 − p_k)
(1 − cos 2π s_k/s_h)) of it is left, the size of the others' characteristic function at the step's frequency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, ndtri

from stratal.arrays import BoolArray, FloatArray, IntArray, Record

_POISSON = 1e-8
_MOST_SKEWED = 1.9
_NOTHING = 1e-300
_ALL = 1.0 - 1e-16
_GROUPED_FROM = 100
_MOST_CELLS = 4_000_000
LARGEST = float(ndtri(_ALL))
"""The normal quantile that is taken for certainty."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps(Record):
    """The steps s_h of H strata; all (…, R) or (…, 1) for replicates of one allocation.

    Few strata have one step each. Of many, strata with equal steps are taken together, D ≤ H different ones
    from the largest: a category of 10⁵ levels has some dozens. Beyond 2000 different ones the largest are
    looked at, as many as there is room for; the sum then moves in steps much smaller than these.

    Parameters
    ----------
    sizes : float (D, …)
        The steps looked at.
    blur : float (D, H, …) or (D, all different steps)
        By which each stratum's, or step's, p(1 − p) blurs a step.
    pull : float (H, …)
        c_h, by which a stratum's p(1 − p) counts, where strata are grouped.
    order, starts : int (H,), (all different steps,)
        Strata by their step, the largest first, and where each step begins; `starts` is empty where there is
        no grouping.

    Examples
    --------
    >>> steps = Steps.of(np.array([[0.1], [0.2]]), np.array([[10.0], [10.0]]))
    >>> steps.largest(np.array([[0.2], [0.0]]), np.ones((2, 1))).round(4)
    array([0.1])
    """

    sizes: FloatArray
    blur: FloatArray
    pull: FloatArray
    order: IntArray
    starts: IntArray

    @classmethod
    def of(cls, sizes: FloatArray, pull: FloatArray) -> Steps:
        """Return the steps of strata from their sizes and c_h, each (H, R) or (H, 1)."""
        none = np.zeros(0, np.int64)
        if sizes.shape[1] > 1 or len(sizes) < _GROUPED_FROM:
            order, starts, looked_at, others, pulled = none, none, sizes, sizes, pull
        else:
            order = np.argsort(-sizes[:, 0], kind="stable")
            falling = sizes[order]
            starts = np.flatnonzero(np.diff(falling[:, 0], prepend=np.inf))
            others, pulled = falling[starts], np.ones(1)
            looked_at = others[: max(_MOST_CELLS // len(others), 1)]
        ratio = others / np.where(looked_at > 0, looked_at, np.inf)[:, None]
        blur = (1.0 - np.cos(2.0 * np.pi * ratio)) * pulled
        one = blur.shape[-1] == 1
        return cls(sizes=looked_at, blur=blur[..., 0] if one else blur, pull=pull, order=order, starts=starts)

    def largest(self, apart: FloatArray, share: FloatArray) -> FloatArray:
        """Return the largest step that is left (R,), times its stratum's `share` (H, R); `share` is used up.

        `apart` (H, R) is p(1 − p).
        """
        if len(self.starts):
            share = np.maximum.reduceat(share[self.order], self.starts, axis=0)[: len(self.sizes)]
            apart = np.add.reduceat((self.pull * apart)[self.order], self.starts, axis=0)
        left = self.blur @ apart if self.blur.ndim == 2 else np.einsum("hkr,kr->hr", self.blur, apart)
        np.exp(np.negative(left, out=left), out=left)
        left *= self.sizes
        left *= share
        return np.asarray(left.max(axis=0))

    def at(self, rows: IntArray) -> Steps:
        """Return the steps of some replicates."""
        if self.sizes.shape[1] == 1:
            return self
        return Steps(
            sizes=self.sizes[:, rows],
            blur=self.blur[..., rows],
            pull=self.pull[:, rows],
            order=self.order,
            starts=self.starts,
        )
