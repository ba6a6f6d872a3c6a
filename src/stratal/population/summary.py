"""The small results that leave a population: what is known of a proxy, per-stratum summaries, drawn units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record, code_count
from stratal.errors import InputError
from stratal.population.expressions import Expression, OnArrays
from stratal.question.scores import ANSWER_IS_RIGHT, ORDER, OUTCOME, Score, rating

# The squares of larger proxies and labels would overflow in sums.
MAX_PROXY = 1e100

# Relative rounding error of one addition, with room for squares and their difference.
_ROUNDING = 4 * np.finfo(np.float64).eps


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyInfo:
    """Description of one proxy without its values.

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

    def score(self, answer: str | None) -> Score:
        """Return what it predicts, as far as that follows from its scale; `answer` is the model's column.

        With a model's answer, a proxy with bounds of 0 and 1 is taken for the probability that the answer is
        right. One with other bounds is a rating.
        """
        predicts = OUTCOME
        if not self.scaled:
            predicts = ORDER
        elif answer is not None and self.bounds == (0.0, 1.0):
            predicts = ANSWER_IS_RIGHT
        elif self.bounds not in (None, (0.0, 1.0)):
            predicts = rating(*self.bounds)
        return Score(name=self.name, predicts=predicts)


def proxy_info_for(
    name: str,
    low: float,
    high: float,
    bounds: tuple[float, float] | None,
    scaled: bool | None,
    second_moment: str | None = None,
    label: tuple[float, float] | None = None,
) -> ProxyInfo:
    """Return what is known of a proxy from its smallest and largest value and from what is declared.

    A proxy that is not on the scale of the labels, where that is declared, only orders units.

    Raises
    ------
    InputError
        If values lie outside the bounds that were given.
    """
    range_text = f"{low:g} to {high:g}"
    declared = label or bounds
    if scaled is None and declared is not None and _on_another_scale(low, high, declared):
        return ProxyInfo(name=name, scaled=False, bounds=declared)
    if max(abs(low), abs(high)) > MAX_PROXY:
        problem = f"proxy '{name}' is too large to be squared"
        allowed = f"up to {MAX_PROXY:g} in size"
        raise InputError(problem, given=range_text, allowed=allowed, action="Rescale it.")
    if scaled is False:
        return ProxyInfo(name=name, scaled=False, bounds=label or bounds)
    if label is not None and label != bounds:
        if bounds is not None or low < label[0] or high > label[1]:
            return ProxyInfo(name=name, scaled=False, bounds=label)
        bounds = label
    if bounds is None:
        inside = low >= 0.0 and high <= 1.0
        unit: tuple[float, float] | None
        if inside:
            unit = (0.0, 1.0)
        else:
            unit = None
        return ProxyInfo(name=name, scaled=bool(scaled) or inside, bounds=unit, second_moment=second_moment)
    if not bounds[0] < bounds[1]:
        allowed = "(lowest, highest), such as (0, 1)"
        raise InputError("bounds must be increasing", given=bounds, allowed=allowed)
    if low < bounds[0] or high > bounds[1]:
        allowed = f"{bounds[0]:g} to {bounds[1]:g}"
        action = "Correct the bounds, or declare that the proxy only orders units (scaled=False, --margin)."
        raise InputError(
            f"proxy '{name}' has values outside the bounds", given=range_text, allowed=allowed, action=action
        )
    return ProxyInfo(name=name, scaled=True, bounds=bounds, second_moment=second_moment)


# Share of the range of the labels. A proxy whose values all lie in this lowest part has another scale, such
# as 0 to 1 for labels from 0 to 100.
_LOWEST_PART = 0.1


def _on_another_scale(low: float, high: float, bounds: tuple[float, float]) -> bool:
    """Return whether values from `low` to `high` cannot predict labels within these bounds as they are.

    Probabilities and their like, from 0 to 1, predict no label from 0 to 5.
    """
    if bounds == (0.0, 1.0) or low < bounds[0]:
        return False
    unit = bounds[0] <= 0.0 <= low and high <= 1.0 < bounds[1]
    return unit or high <= bounds[0] + _LOWEST_PART * (bounds[1] - bounds[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumSummary(Record):
    """The summary of a population that estimators use: sizes and proxy moments per stratum.

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
            raise InputError("stratum sizes, proxy means and covariances do not match")

    def of_proxies(self, columns: list[int]) -> StratumSummary:
        """Return the summary of some of the proxies, by their numbers."""
        return replace(
            self,
            proxy_means=self.proxy_means[:, columns],
            proxy_covariances=self.proxy_covariances[:, columns][:, :, columns],
        )

    @property
    def size(self) -> int:
        """N."""
        return int(self.sizes.sum())

    @classmethod
    def without_proxies(cls, sizes: IntArray) -> StratumSummary:
        """Return the summary of strata (H,) of a population without proxies."""
        n_strata = len(sizes)
        return cls(
            sizes=sizes, proxy_means=np.empty((n_strata, 0)), proxy_covariances=np.empty((n_strata, 0, 0))
        )

    @property
    def unbiased_covariances(self) -> FloatArray:
        """S_h² of the proxies (H, k, k), divisor N_h − 1; the rounding of a constant proxy becomes 0."""
        factor = np.where(self.sizes > 1, self.sizes / np.maximum(self.sizes - 1, 1), 0.0)
        deviations = np.sqrt(np.abs(np.einsum("hii->hi", self.proxy_covariances)))
        # Engines add in any order, so that the variance of a constant may be a rounding error instead of 0.
        is_constant = deviations <= 1e-12 * np.abs(self.proxy_means)
        covariances = self.proxy_covariances * factor[:, None, None]
        return np.asarray(np.where(is_constant[:, :, None] | is_constant[:, None, :], 0.0, covariances))

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
        # What is left of a constant proxy is rounding, which grows as the root of the units.
        variances = covariances[:, diagonal, diagonal]
        squares = moments[:, diagonal, diagonal]
        rounding_error = _ROUNDING / np.sqrt(divisor[:, None]) * squares
        covariances[:, diagonal, diagonal] = np.where(variances > rounding_error, variances, 0.0)
        return cls(sizes=counts, proxy_means=means + centres, proxy_covariances=covariances)

    def part(self, keep: BoolArray) -> StratumSummary:
        """Return the summary of some of the strata: those where `keep` (H,) is true.

        Examples
        --------
        >>> both = StratumSummary(sizes=np.array([1, 2]), proxy_means=np.zeros((2, 0)),
        ...                       proxy_covariances=np.zeros((2, 0, 0)))
        >>> both.part(np.array([False, True])).sizes
        array([2])
        """
        return StratumSummary(
            sizes=self.sizes[keep],
            proxy_means=self.proxy_means[keep],
            proxy_covariances=self.proxy_covariances[keep],
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
        n_new = code_count(codes)
        k = self.proxy_means.shape[1]
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
        ids = self.ids[rows]
        stratum = self.stratum[rows]
        proxies = self.proxies[rows]
        groups, shown, features = (
            {name: values[rows] for name, values in columns.items()}
            for columns in (self.groups, self.shown, self.features)
        )
        return Drawn(ids=ids, stratum=stratum, proxies=proxies, groups=groups, shown=shown, features=features)


# Share by which a proxy is moved to the overall mean before its variance is computed. A proxy of 0 or 1 may
# be wrong, and a unit of size 0 would never be drawn.
HEDGE = 0.2

# Sizes are added in whole steps of the largest counted one divided by this, so that sums are exact.
SIZE_STEPS = 2.0**32


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A size measure x of each unit.

    Parameters
    ----------
    kind : {"equal", "column", "sqrt-variance"}
        1; a column's own value; or √ of the plug-in variance of the outcome, hedged.
    column : str, optional
        A proxy or feature column; of `sqrt-variance`, the proxy.
    formula : Expression, optional
        Instead of a proxy: what predicts the outcome.
    second : bool
        Whether the variance comes from the proxy's second moments rather than from its bounds.
    centre : float
        Overall mean of the proxy (of the variance, with second moments), which the hedge moves towards.
    low, high : float
        Bounds of the outcome.
    """

    kind: str
    column: str | None = None
    formula: Expression | None = None
    second: bool = False
    centre: float = 0.0
    low: float = 0.0
    high: float = 1.0

    def of_arrays(self, values: FloatArray, second: FloatArray | None = None) -> FloatArray:
        """Return x (n,) from the column's values (n,) and, where they count, its second moments (n,)."""
        return np.asarray(self.on(OnArrays({}), values, second))

    def on(self, engine: OnArrays, values: Any, second: Any) -> Any:
        """Return x as an expression of whatever `values` are: arrays or columns of a table."""
        if self.kind == "column":
            return values
        keep = engine.constant(1.0 - HEDGE)
        moved = engine.constant(HEDGE * self.centre)
        if self.second:
            return engine.apply("sqrt", engine.at_least(second - values * values, 0.0) * keep + moved)
        low = engine.constant(self.low)
        high = engine.constant(self.high)
        hedged = values * keep + moved
        return engine.apply("sqrt", engine.at_least((hedged - low) * (high - hedged), 0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SizeProfile(Record):
    """Summary of all N sizes for inclusion probabilities.

    Parameters
    ----------
    units : int
        N.
    low : float
        Smallest size.
    largest : float (m,)
        The m largest sizes, in decreasing order.
    rest : float
        Sum of all others.
    """

    units: int
    low: float
    largest: FloatArray
    rest: float

    @classmethod
    def of(cls, sizes: FloatArray, count: int) -> SizeProfile:
        """Return the profile of sizes (N,) with the `count` largest."""
        if count < len(sizes):
            top = np.partition(sizes, len(sizes) - count)[len(sizes) - count :]
        else:
            top = sizes
        largest = np.sort(top)[::-1]
        low = float(sizes.min())
        cap = float(largest[-1])
        if low > 0:
            total = int(whole_steps(np.minimum(sizes, cap), cap).sum())
        else:
            total = 0
        return cls(units=len(sizes), low=low, largest=largest, rest=rest_of(total, cap, count))

    @property
    def high(self) -> float:
        """Largest size."""
        return float(self.largest[0])


def whole_steps(sizes: FloatArray, cap: float) -> IntArray:
    """Return sizes (n,) as whole steps of `cap / STEPS`, rounded to the nearest."""
    return np.floor(sizes * (SIZE_STEPS / cap) + 0.5).astype(np.int64)


def rest_of(total: int, cap: float, count: int) -> float:
    """Return the sum of all sizes but the `count` largest, from the steps of sizes capped at these.

    Capping at the least of them keeps the steps fine where a few sizes are huge.
    """
    return max(int(total) - count * int(SIZE_STEPS), 0) * (cap / SIZE_STEPS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Units whose permanent random number u is below a limit times their size.

    Parameters
    ----------
    drawn : Drawn
        In the order in which they are shown.
    uniform, size : float (n,)
        u in [0, 1) and x of each.
    """

    drawn: Drawn
    uniform: FloatArray
    size: FloatArray
