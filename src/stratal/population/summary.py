"""The small results that leave a population: what is known of a proxy, per-stratum summaries, drawn units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record
from stratal.errors import InputError

LARGEST_PROXY = 1e100
"""Proxies and labels beyond this overflow in sums of squares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyInfo:
    """What is known of one proxy besides its values.

    Parameters
    ----------
    name : str
        Column name.
    scaled : bool
        Whether it predicts the outcome on the outcome's own scale. A margin only orders: it may stratify,
        and may enter an estimator only through a fitted λ.
    bounds : (float, float), optional
        Bounds of the outcome that it predicts; (0, 1) for a probability.
    second_moment : str, optional
        Column that holds E[z² | x]. Without it the outcome is taken to be as spread as its bounds allow:
        binary on (0, 1).

    Examples
    --------
    >>> ProxyInfo(name="confidence").bounds
    (0.0, 1.0)
    """

    name: str
    scaled: bool = True
    bounds: tuple[float, float] | None = (0.0, 1.0)
    second_moment: str | None = None


def proxy_info_for(
    name: str,
    low: float,
    high: float,
    bounds: tuple[float, float] | None,
    scaled: bool | None,
    second_moment: str | None = None,
    label: tuple[float, float] | None = None,
) -> ProxyInfo:
    """Return what is known of a proxy from its smallest and largest value and from what the user said.

    A proxy that is not on the scale of the labels, where that is said, only orders units.

    Raises
    ------
    InputError
        If values lie outside the bounds that were given.

    Examples
    --------
    >>> proxy_info_for("score", 1.0, 5.0, (1.0, 5.0), None).scaled
    True
    """
    if max(abs(low), abs(high)) > LARGEST_PROXY:
        raise InputError(
            f"proxy '{name}' is too large to be squared",
            given=f"{low:g} to {high:g}",
            allowed=f"up to {LARGEST_PROXY:g} in size",
            action="Rescale it.",
        )
    if scaled is False:
        return ProxyInfo(name=name, scaled=False, bounds=label or bounds)
    if label is not None and label != bounds:
        if bounds is not None or low < label[0] or high > label[1]:
            return ProxyInfo(name=name, scaled=False, bounds=label)
        bounds = label
    if bounds is None:
        inside = low >= 0.0 and high <= 1.0
        unit: tuple[float, float] | None = (0.0, 1.0) if inside else None
        return ProxyInfo(name=name, scaled=bool(scaled) or inside, bounds=unit, second_moment=second_moment)
    if not bounds[0] < bounds[1]:
        raise InputError(
            "bounds must be increasing", given=bounds, allowed="(lowest, highest), such as (0, 1)"
        )
    if low < bounds[0] or high > bounds[1]:
        raise InputError(
            f"proxy '{name}' leaves the bounds",
            given=f"{low:g} to {high:g}",
            allowed=f"{bounds[0]:g} to {bounds[1]:g}",
            action="Correct the bounds, or say that it only orders (scaled=False, --margin).",
        )
    return ProxyInfo(name=name, scaled=True, bounds=bounds, second_moment=second_moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a population holds, by name.

    Parameters
    ----------
    size : int
        N.
    proxies : tuple of ProxyInfo
    groups, shown, features : tuple of str
        Categories, payload and numbers.
    id_name : str
    predicted : str, optional
        The group that holds the model's answer.
    notes : tuple of str
        What was done to read the units.
    own_stratum : str, optional
        The group whose level `missing` holds the units without a proxy.

    Examples
    --------
    >>> Contents(size=3).proxies
    ()
    """

    size: int
    proxies: tuple[ProxyInfo, ...] = ()
    groups: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    id_name: str = "id"
    predicted: str | None = None
    notes: tuple[str, ...] = ()
    own_stratum: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumSummary(Record):
    """What estimators need of the population: sizes and proxy moments per stratum.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    proxy_means : float (H, k)
        Mean of each of the k proxies over the N_h units.
    proxy_covariances : float (H, k, k)
        Covariances of the proxies over the N_h units, divisor N_h.

    Examples
    --------
    >>> StratumSummary(
    ...     sizes=np.array([2]), proxy_means=np.array([[0.5]]), proxy_covariances=np.array([[[0.25]]])
    ... ).size
    2
    """

    sizes: IntArray
    proxy_means: FloatArray
    proxy_covariances: FloatArray

    def __post_init__(self) -> None:
        self._freeze()
        n_strata, k = self.proxy_means.shape
        if self.sizes.shape != (n_strata,) or self.proxy_covariances.shape != (n_strata, k, k):
            raise InputError("stratum sizes, proxy means and covariances do not fit together")

    @property
    def size(self) -> int:
        """N."""
        return int(self.sizes.sum())

    @property
    def overall_means(self) -> FloatArray:
        """Proxy means (k,) over all strata."""
        return np.asarray(self.sizes @ self.proxy_means / self.size)

    @classmethod
    def of_sums(
        cls, counts: IntArray, sums: FloatArray, products: FloatArray, centres: FloatArray
    ) -> StratumSummary:
        """Return the summary from sums (H, k) and lower triangles of sums of products (H, k, k), centred.

        Examples
        --------
        >>> StratumSummary.of_sums(
        ...     np.array([2]), np.array([[1.0]]), np.array([[[1.0]]]), np.array([10.0])
        ... ).proxy_covariances.ravel()
        array([0.25])
        """
        divisor = np.maximum(counts, 1)
        means = sums / divisor[:, None]
        moments = np.tril(products) + np.tril(products, -1).transpose(0, 2, 1)
        covariances = moments / divisor[:, None, None] - means[:, :, None] * means[:, None, :]
        diagonal = np.arange(len(centres))
        covariances[:, diagonal, diagonal] = np.maximum(covariances[:, diagonal, diagonal], 0.0)
        return cls(sizes=counts, proxy_means=means + centres, proxy_covariances=covariances)

    def part(self, kept: BoolArray) -> StratumSummary:
        """Return the summary of some of the strata: those where `kept` (H,) is true.

        Examples
        --------
        >>> both = StratumSummary(sizes=np.array([1, 2]), proxy_means=np.zeros((2, 0)),
        ...                       proxy_covariances=np.zeros((2, 0, 0)))
        >>> both.part(np.array([False, True])).sizes
        array([2])
        """
        return StratumSummary(
            sizes=self.sizes[kept],
            proxy_means=self.proxy_means[kept],
            proxy_covariances=self.proxy_covariances[kept],
        )

    def merged(self, codes: IntArray) -> StratumSummary:
        """Return the summary of coarser strata; `codes` (H,) gives each stratum's new one.

        Examples
        --------
        >>> fine = StratumSummary(sizes=np.array([1, 1]), proxy_means=np.array([[0.0], [1.0]]),
        ...                       proxy_covariances=np.zeros((2, 1, 1)))
        >>> fine.merged(np.array([0, 0])).proxy_covariances.ravel()
        array([0.25])
        """
        n_new, k = int(codes.max()) + 1, self.proxy_means.shape[1]
        sizes = np.bincount(codes, self.sizes, minlength=n_new)
        means = np.zeros((n_new, k))
        np.add.at(means, codes, self.proxy_means * self.sizes[:, None])
        means /= sizes[:, None]
        centred = self.proxy_means - means[codes]
        spread = self.proxy_covariances + centred[:, :, None] * centred[:, None, :]
        covariances = np.zeros((n_new, k, k))
        np.add.at(covariances, codes, spread * self.sizes[:, None, None])
        return StratumSummary(
            sizes=sizes.astype(np.int64),
            proxy_means=means,
            proxy_covariances=covariances / sizes[:, None, None],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """Units that a draw picked, in the draw's order (random across strata).

    Parameters
    ----------
    ids : (n,)
        int64 where the ids are integers (or row numbers), else text.
    stratum : int (n,)
    proxies : float (n, k)
    groups, shown, features : mapping of column name to (n,) array
        Group columns (text), payload columns for the annotators, and numbers.

    Examples
    --------
    >>> Drawn(ids=np.array([4]), stratum=np.array([0]), proxies=np.array([[0.5]])).ids
    array([4])
    """

    ids: AnyArray
    stratum: IntArray
    proxies: FloatArray
    groups: Mapping[str, AnyArray] = field(default_factory=dict)
    shown: Mapping[str, AnyArray] = field(default_factory=dict)
    features: Mapping[str, FloatArray] = field(default_factory=dict)

    def only(self, rows: IntArray) -> Drawn:
        """Return the units at these positions, in this order."""
        return Drawn(
            ids=self.ids[rows],
            stratum=self.stratum[rows],
            proxies=self.proxies[rows],
            groups={name: values[rows] for name, values in self.groups.items()},
            shown={name: values[rows] for name, values in self.shown.items()},
            features={name: values[rows] for name, values in self.features.items()},
        )


def refuse_more_than_there_are(counts: IntArray, sizes: IntArray) -> None:
    """Refuse to draw more units of a stratum than it has; both are (H,)."""
    for stratum in np.flatnonzero(counts > sizes)[:1].tolist():
        raise InputError(
            f"stratum {stratum} has fewer units than are to be drawn",
            given=int(counts[stratum]),
            allowed=f"up to {sizes[stratum]}",
        )
