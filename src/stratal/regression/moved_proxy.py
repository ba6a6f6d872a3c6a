"""A biased proxy in least squares: moved onto the outcome as far as the labels tell that it is off.

The rectified loss takes what the proxy leaves around the outcome's coefficients. Where the proxy is biased,
or its slope or scale is another, that is mostly the bias, and the estimate loses: 3 to 4 times in mean
squared error (benchmarks/least_squares.py). Two separate fits, the population's of λf and the labels' of
y − λf, do not care where the proxy lies if λ is fitted around each one's own coefficients, but pay for the
labels' own moments of the features where the proxy is unbiased and labels are few.

Any function of features and proxy is a proxy too. The labels' regression of y − f on the features estimates
the bias η; f is moved by κxη with κ = max(0, 1 − 2d/q), q = η'V⁻¹η the evidence of any bias (the positive
part of James & Stein 1961, with twice their constant). Unbiased, q is about d and the loss is as it was;
biased, κ is near 1 and it is as good as two fits. A proxy whose residuals are too small for the outcome's (a
scale of its own) is stretched before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import FloatArray, Record
from stratal.regression.options import Options
from stratal.regression.rectified_loss import RectifiedLoss
from stratal.regression.solver import require_inverse
from stratal.regression.unlabelled import Block, Unlabelled

_EVIDENCE = 2.0
"""How much evidence of a bias, in units of the coefficients that it may have, is taken for chance."""

_STRETCH = 1.2
"""A slope of the outcome's residuals on the proxy's above which its scale is another."""

_LEVERAGE = 0.75
_ROUNDING = 1e-9


class MovedUnlabelled(Unlabelled):
    """The units with a proxy that is stretched and moved along the features.

    Examples
    --------
    >>> from stratal.regression.unlabelled import ArrayUnlabelled
    >>> units = ArrayUnlabelled(features=np.ones((2, 1)), proxy=np.array([1.0, 2.0]))
    >>> next(MovedUnlabelled(units, 2.0, np.array([0.5])).blocks()).proxy
    array([2.5, 4.5])
    """

    def __init__(self, units: Unlabelled, stretch: float, shift: FloatArray) -> None:
        self.units, self.stretch, self.shift = units, stretch, shift
        self.separate, self.counts, self.totals = units.separate, units.counts, units.totals

    def blocks(self) -> Iterator[Block]:
        """Yield all units, in runs, in a fixed order."""
        for block in self.units.blocks():
            yield replace(block, proxy=self.stretch * block.proxy + block.features @ self.shift)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Move(Record):
    """How a proxy is moved: f becomes stretch · f + x'shift.

    Parameters
    ----------
    stretch : float
    shift : float (d,)
    kept : float
        κ, the share of the bias that the labels show.

    Examples
    --------
    >>> Move(stretch=1.0, shift=np.zeros(1), kept=0.0).notes
    ()
    """

    stretch: float
    shift: FloatArray
    kept: float

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said of it."""
        if self.kept == 0:
            return ()
        return (f"the proxy was moved by {self.kept:.0%} of its own bias along the features",)

    def of(self, rectified: RectifiedLoss) -> RectifiedLoss:
        """Return the loss with the moved proxy."""
        proxy, units = rectified.proxied()
        own = self.stretch * proxy + rectified.features @ self.shift
        return rectified.with_proxy(own, MovedUnlabelled(units, self.stretch, self.shift))


def move_of(rectified: RectifiedLoss, options: Options) -> Move | None:
    """Return how the proxy is to be moved; None where λ is not fitted, or the loss is not least squares.

    Examples
    --------
    >>> from stratal.regression.losses import LinearLoss
    >>> from stratal.regression.unlabelled import ArrayUnlabelled
    >>> from stratal.designs import StratifiedWeighting
    >>> x, noise = np.ones((40, 1)), np.tile([0.1, -0.1, 0.3, -0.3], 10)
    >>> units = ArrayUnlabelled(features=x, proxy=5 + noise)
    >>> weighting = StratifiedWeighting(stratum=np.zeros(20, int), sizes=np.array([40]))
    >>> y = 1 + 0.5 * noise[:20]
    >>> rectified = RectifiedLoss(LinearLoss(), y, weighting, x[:20], 5 + noise[:20], units)
    >>> move_of(rectified, Options()).shift.round(2)
    array([-4.])
    """
    wanted = options.form == "auto" and options.lam is None and options.estimator != "classical"
    if not wanted or rectified.unlabelled is None or not rectified.loss.quadratic:
        return None
    if rectified.features.shape[1] == 0:
        return None
    x, y, weights = rectified.features, rectified.outcome, rectified.weights
    proxy, _ = rectified.proxied()
    bread = rectified.labelled_inverse(np.zeros(x.shape[1]))
    own, proxys = (bread @ (x.T @ (weights * column)) for column in (y, proxy))
    stretch = _stretch(rectified, bread, y - x @ own, proxy - x @ _population_fit(rectified))
    bias = own - stretch * proxys
    leverages = np.clip(weights * np.einsum("ni,ij,nj->n", x, bread, x), 0.0, _LEVERAGE)
    left = (y - stretch * proxy - x @ bias) / (1.0 - leverages)
    spread = bread @ rectified.weighting.covariance(x * left[:, None]) @ bread
    evidence = float(bias @ np.linalg.pinv(spread) @ bias) if np.all(np.isfinite(spread)) else 0.0
    limit = _EVIDENCE * x.shape[1]
    kept = 1.0 - limit / evidence if evidence > limit else 0.0
    return Move(stretch=stretch, shift=kept * bias, kept=kept)


def _population_fit(rectified: RectifiedLoss) -> FloatArray:
    """Return the coefficients (d,) of the proxy over the population."""
    _, units = rectified.proxied()
    sums = units.summed(rectified.loss, np.zeros(rectified.n_parameters), rectified.shares)
    return np.asarray(-require_inverse(sums.hessian) @ sums.gradient)


def _stretch(rectified: RectifiedLoss, bread: FloatArray, own: FloatArray, proxys: FloatArray) -> float:
    """Return what the proxy is multiplied by: the slope of the residuals' influences, where it is above 1."""
    proxy, _ = rectified.proxied()
    if np.max(np.abs(proxys)) <= _ROUNDING * np.max(np.abs(proxy)):
        return 1.0  # the proxy is a line of the features: what is left of it is rounding
    x = rectified.features @ bread
    joint = rectified.weighting.covariance(np.concatenate([x * own[:, None], x * proxys[:, None]], axis=1))
    d = x.shape[1]
    spread = float(np.trace(joint[d:, d:]))
    slope = float(np.trace(joint[:d, d:])) / spread if spread > 0 else 1.0
    return slope if np.isfinite(slope) and slope > _STRETCH else 1.0
