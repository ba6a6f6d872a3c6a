"""The steps in which a weighted sum of counts moves, and how far the other strata's counts blur each.

A stratum's own step shows in the sum as far as the others do not fill it in: e^(−Σ_k c_k p_k(1 − p_k)
(1 − cos 2π s_k/s_h)) of it is left, the size of the others' characteristic function at the step's frequency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record

_GROUPED_FROM = 100
_MOST_CELLS = 4_000_000


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
            blur = _unfilled(sizes, sizes) * pull
            return cls(
                sizes=sizes,
                blur=blur[..., 0] if blur.shape[-1] == 1 else blur,
                pull=pull,
                order=none,
                starts=none,
            )
        order = np.argsort(-sizes[:, 0], kind="stable")
        falling = sizes[order]
        starts = np.flatnonzero(np.diff(falling[:, 0], prepend=np.inf))
        different = falling[starts]
        looked_at = different[: max(_MOST_CELLS // len(different), 1)]
        blur = _unfilled(looked_at, different)[..., 0]
        return cls(sizes=looked_at, blur=blur, pull=pull, order=order, starts=starts)

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


def _unfilled(sizes: FloatArray, others: FloatArray) -> FloatArray:
    """Return how far (D, K, R) steps of `others` (K, R) stay off whole steps of `sizes` (D, R)."""
    ratio = others / np.where(sizes > 0, sizes, np.inf)[:, None]
    return np.asarray(1.0 - np.cos(2.0 * np.pi * ratio))
