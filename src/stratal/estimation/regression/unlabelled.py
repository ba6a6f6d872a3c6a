"""Sums of a loss over the units that carry only a proxy: one interface, held in memory or read in batches.

Estimators ask for two things: the stratum-weighted sums at a θ (for the solver), and the mean and covariance
of the gradients per stratum (for λ and for the variance of a separate unlabelled sample). Both are one pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, numeric_array, refuse_nonfinite
from stratal.errors import InputError
from stratal.estimation.regression.losses import Loss, LossSums

_CHUNK = 1 << 16
"""Units per block where there are no features."""

_CHUNK_NUMBERS = 25_000
"""Numbers in a block's features, so that arrays of their size stay in the cache and the allocator's pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A run of units.

    Parameters
    ----------
    features : float (m, p)
        p may be 0, for a mean.
    proxy : float (m,) or (m, q)
        Predictions of the outcome.
    stratum : int (m,)
    weights : float (m,), optional
        Sampling weights of an unlabelled sample that is itself weighted.

    Examples
    --------
    >>> Block(features=np.ones((1, 1)), proxy=np.ones(1), stratum=np.zeros(1, int)).weights is None
    True
    """

    features: FloatArray
    proxy: FloatArray
    stratum: IntArray
    weights: FloatArray | None = None


class Unlabelled(ABC):
    """The units with a proxy, as an estimator sees them.

    Either all N units of the population, the labelled ones included (`separate` false: the usual case,
    proxies are known everywhere), or a sample of its own without the labelled units (`separate` true: the
    setting of PPI).

    Examples
    --------
    >>> ArrayUnlabelled(features=np.ones((4, 1)), proxy=np.arange(4.0)).counts
    array([4])
    """

    separate: bool
    counts: IntArray
    totals: FloatArray

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield all units, in runs, in a fixed order."""

    def _count(self, n_strata: int, blocks: Iterable[Block]) -> None:
        """Count all units and their weights by stratum, refusing codes that do not exist."""
        self.counts, self.totals = np.zeros(n_strata, dtype=np.int64), np.zeros(n_strata)
        for block in blocks:
            lowest, highest = block.stratum.min(), block.stratum.max()
            if lowest < 0 or highest >= n_strata:
                raise InputError(
                    "a stratum code is out of range",
                    given=f"{lowest} to {highest}",
                    allowed=f"0 to {n_strata - 1}",
                )
            self.counts += np.bincount(block.stratum, minlength=n_strata)
            self.totals += np.bincount(block.stratum, block.weights, minlength=n_strata)
        if np.any(self.counts == 0):
            raise InputError(
                f"stratum {int(np.flatnonzero(self.counts == 0)[0])} has no unlabelled unit",
                allowed="at least one in every stratum",
                action="Merge it with another stratum.",
            )

    @property
    def n_strata(self) -> int:
        """H."""
        return len(self.counts)

    @property
    def size(self) -> int:
        """Number of units."""
        return int(self.counts.sum())

    def summed(
        self, loss: Loss, theta: FloatArray, factors: FloatArray, *, curvature: bool = True
    ) -> LossSums:
        """Return Σ_h factors_h · (mean over U_h) of loss, gradient and Hessian at the proxy; factors (H,)."""
        d = len(theta)
        total = LossSums(value=0.0, gradient=np.zeros(d), hessian=np.zeros((d, d)))
        per_unit = factors / self.totals
        for block in self.blocks():
            weights = per_unit[block.stratum] if self.n_strata > 1 else np.full(len(block.proxy), per_unit[0])
            if block.weights is not None:
                weights = weights * block.weights
            sums = loss.summed(theta, block.features, block.proxy, weights, curvature=curvature)
            total = total.plus(sums)
        return total

    def covariances(self, loss: Loss, theta: FloatArray) -> FloatArray:
        """Return the proxy gradients' covariances (H, d, d) within strata, merged over blocks (Chan 1983).

        The divisor is N_h − 1; a stratum of one unit has zeros.
        """
        d, n_strata = len(theta), self.n_strata
        seen = np.zeros(n_strata)
        means = np.zeros((n_strata, d))
        spread = np.zeros((n_strata, d, d))
        scale = self.counts / self.totals
        for block in self.blocks():
            gradients = loss.gradients(theta, block.features, block.proxy)
            if block.weights is not None:
                gradients = gradients * (block.weights * scale[block.stratum])[:, None]
            for h, rows in _stratum_rows(block.stratum, n_strata):
                part = gradients[rows]
                m = len(part)
                centre = np.full(m, 1.0 / m) @ part
                centred = part - centre
                shift = centre - means[h]
                spread[h] += centred.T @ centred + np.outer(shift, shift) * (seen[h] * m / (seen[h] + m))
                means[h] += shift * (m / (seen[h] + m))
                seen[h] += m
        return np.asarray(spread / np.maximum(seen - 1, 1)[:, None, None])


def _stratum_rows(stratum: IntArray, n_strata: int) -> Iterator[tuple[int, Any]]:
    """Yield each stratum in the block with its rows: slices where the block is sorted by stratum."""
    if n_strata == 1:
        yield 0, slice(None)
        return
    if np.any(stratum[1:] < stratum[:-1]):
        for h in np.unique(stratum):
            yield int(h), np.flatnonzero(stratum == h)
        return
    edges = np.searchsorted(stratum, np.arange(n_strata + 1))
    for h in np.flatnonzero(np.diff(edges)):
        yield int(h), slice(edges[h], edges[h + 1])


class ArrayUnlabelled(Unlabelled):
    """Units held in memory.

    Parameters
    ----------
    proxy : array-like (N,) or (N, q)
        Predictions of the outcome.
    features : array-like (N, p), optional
        Left out for a mean or a quantile.
    stratum : int (N,), optional
        0 … H − 1; all in one stratum if left out.
    n_strata : int, optional
        H, where the last strata may be empty.
    weights : array-like (N,), optional
        Sampling weights, for a separate weighted sample.
    separate : bool
        Whether the labelled units are not among these.

    Raises
    ------
    InputError
        For lengths that differ, numbers that are not finite, a stratum without units.

    Examples
    --------
    >>> units = ArrayUnlabelled(proxy=[1.0, 2.0, 4.0], stratum=np.array([0, 1, 1]))
    >>> units.counts
    array([1, 2])
    """

    def __init__(
        self,
        *,
        proxy: Any,
        features: Any = None,
        stratum: Any = None,
        n_strata: int | None = None,
        weights: Any = None,
        separate: bool = False,
    ) -> None:
        self.separate = separate
        self.proxy = finite_array("proxy", proxy)
        n = len(self.proxy)
        if n == 0:
            raise InputError("there are no unlabelled units", allowed="at least one")
        self.features = np.empty((n, 0)) if features is None else feature_matrix("features", features)
        self.stratum = np.zeros(n, dtype=np.int64) if stratum is None else np.asarray(stratum, dtype=np.int64)
        self.weights = None if weights is None else finite_array("weights", weights)
        for name in ("features", "stratum", "weights"):
            values = getattr(self, name)
            if values is not None and len(values) != n:
                raise InputError(
                    f"unlabelled {name} and proxy must have one entry per unit",
                    given=f"{len(values)} and {n}",
                    action="Give one row for each unlabelled unit in both.",
                )
        if np.any(self.stratum[1:] < self.stratum[:-1]):
            order = np.argsort(self.stratum, kind="stable")
            for name in ("proxy", "features", "stratum", "weights"):
                values = getattr(self, name)
                setattr(self, name, None if values is None else values[order])
        self._count(max(int(self.stratum[-1]) + 1, 1) if n_strata is None else n_strata, self.blocks())

    def blocks(self) -> Iterator[Block]:
        """Yield runs short enough for the cache."""
        width = self.features.shape[1]
        chunk = max(_CHUNK_NUMBERS // width, 512) if width else _CHUNK
        for start in range(0, len(self.proxy), chunk):
            rows = slice(start, start + chunk)
            yield Block(
                features=self.features[rows],
                proxy=self.proxy[rows],
                stratum=self.stratum[rows],
                weights=None if self.weights is None else self.weights[rows],
            )


class BatchedUnlabelled(Unlabelled):
    """Units read in batches, each pass anew: for populations larger than memory.

    Parameters
    ----------
    batches : callable
        Returns an iterable of `Block`; called once per pass, it must yield the same units each time.
    n_strata : int
        H.
    separate : bool
        Whether the labelled units are not among these.

    Examples
    --------
    >>> def batches():
    ...     for start in (0.0, 2.0):
    ...         yield Block(features=np.ones((2, 1)), proxy=start + np.arange(2.0), stratum=np.zeros(2, int))
    >>> BatchedUnlabelled(batches, n_strata=1).size
    4
    """

    def __init__(
        self, batches: Callable[[], Iterable[Block]], *, n_strata: int, separate: bool = False
    ) -> None:
        self.separate = separate
        self._batches = batches
        self._count(n_strata, self._checked())

    def _checked(self) -> Iterator[Block]:
        for block in self.blocks():
            refuse_nonfinite("proxy", block.proxy)
            refuse_nonfinite("features", block.features)
            yield block

    def blocks(self) -> Iterator[Block]:
        """Start a new pass."""
        return iter(self._batches())


def population_units(
    unlabelled: Unlabelled | None, features: Any, proxy: Any, stratum: Any, *, intercept: bool = False
) -> Unlabelled | None:
    """Return the population side, from units or from arrays; `None` where there is no proxy.

    Examples
    --------
    >>> population_units(None, None, [0.1, 0.2], None).size
    2
    """
    if unlabelled is not None and proxy is not None:
        raise InputError(
            "give unlabelled= or the population's arrays, not both",
            action="Give unlabelled= alone, or the arrays alone.",
        )
    if unlabelled is not None and intercept:
        raise InputError(
            "intercept=True cannot reach into unlabelled=", action="Add the column of ones there."
        )
    if proxy is None:
        return unlabelled
    if features is not None and intercept:
        features = with_intercept(feature_matrix("population_features", features))
    return ArrayUnlabelled(features=features, proxy=proxy, stratum=stratum)


def with_intercept(features: FloatArray) -> FloatArray:
    """Return the features with a column of ones before them.

    Examples
    --------
    >>> with_intercept(np.array([[2.0]]))
    array([[1., 2.]])
    """
    return np.concatenate([np.ones((len(features), 1)), features], axis=1)


def finite_array(name: str, values: Any) -> FloatArray:
    """Return `values` as finite float64 of shape (n,) or (n, q).

    Examples
    --------
    >>> finite_array("proxy", [1, 2])
    array([1., 2.])
    """
    array = numeric_array(name, values)
    if array.ndim not in (1, 2):
        raise InputError(
            f"{name} must be a vector or a matrix", given=f"shape {array.shape}", allowed="(n,) or (n, d)"
        )
    refuse_nonfinite(name, array)
    return array


def feature_matrix(name: str, values: Any) -> FloatArray:
    """Return `values` as a finite float64 matrix (n, p); a vector becomes one column.

    Examples
    --------
    >>> feature_matrix("features", [1, 2]).shape
    (2, 1)
    """
    array = finite_array(name, values)
    return np.ascontiguousarray(array if array.ndim == 2 else array[:, None])
