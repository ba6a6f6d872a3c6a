"""The results of a population's methods: descriptions of proxies, summaries of strata and drawn units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record, code_count
from stratal.errors import InputError
from stratal.population.expressions import ArrayEvaluator, Expression
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
        Whether it predicts the outcome on its scale. A margin only orders units: it may define strata, and an
        estimator may use it only with a fitted λ.
    bounds : (float, float), optional
        Bounds of the outcome that it predicts; (0, 1) for a probability.
    second_moment : str, optional
        Column of E[z² | x]. Without it, the outcome is assumed to have the largest variance that its bounds
        allow (binary for (0, 1)).

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
        """Return the quantity that the proxy predicts, inferred from its scale.

        If there is a column `answer` of the model's answers, a proxy with the bounds 0 and 1 is assumed to be
        the probability that the answer is right. A proxy with other bounds is a rating.
        """
        predicts = OUTCOME
        if not self.scaled:
            predicts = ORDER
        elif answer is not None and self.bounds == (0.0, 1.0):
            predicts = ANSWER_IS_RIGHT
        elif self.bounds not in (None, (0.0, 1.0)):
            predicts = rating(*self.bounds)
        return Score(name=self.name, predicts=predicts)


def infer_proxy_info(
    name: str,
    low: float,
    high: float,
    bounds: tuple[float, float] | None,
    scaled: bool | None,
    second_moment: str | None = None,
    label: tuple[float, float] | None = None,
) -> ProxyInfo:
    """Return the description of a proxy, inferred from its extent and the declarations.

    Parameters
    ----------
    name : str
    low, high : float
        Smallest and largest value of the proxy.
    bounds : (float, float), optional
        Declared bounds of the outcome that the proxy predicts.
    scaled : bool, optional
        Declaration that the proxy is, or is not, on the scale of the outcome.
    second_moment : str, optional
        Column of E[z² | x].
    label : (float, float), optional
        Declared bounds of the labels. A proxy on another scale only orders units.

    Raises
    ------
    InputError
        If values lie outside the declared bounds.
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
        may_be_probability = low >= 0.0 and high <= 1.0
        return ProxyInfo(
            name=name,
            scaled=bool(scaled) or may_be_probability,
            bounds=(0.0, 1.0) if may_be_probability else None,
            second_moment=second_moment,
        )
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


# If all values of a proxy are in this lowest share of the range of the labels, the proxy has another scale,
# such as 0 to 1 for labels from 0 to 100.
_LOWEST_RANGE_SHARE = 0.1


def _on_another_scale(low: float, high: float, bounds: tuple[float, float]) -> bool:
    """Return whether values from `low` to `high` are on another scale than labels within the bounds.

    Values from 0 to 1, such as probabilities, are on another scale than labels from 0 to 5.
    """
    if bounds == (0.0, 1.0) or low < bounds[0]:
        return False
    may_be_probability = bounds[0] <= 0.0 <= low and high <= 1.0 < bounds[1]
    return may_be_probability or high <= bounds[0] + _LOWEST_RANGE_SHARE * (bounds[1] - bounds[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumSummary(Record):
    """The summary of a population that estimators use: sizes and proxy moments per stratum.

    Parameters
    ----------
    sizes : int (H,)
        Number of units in each stratum, N_h.
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

    def select_proxies(self, columns: list[int]) -> StratumSummary:
        """Return the summary of the proxies at these positions."""
        return replace(
            self,
            proxy_means=self.proxy_means[:, columns],
            proxy_covariances=self.proxy_covariances[:, columns][:, :, columns],
        )

    @property
    def size(self) -> int:
        """Number of units in all strata, N."""
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
        """Covariances S_h² of the proxies (H, k, k), divisor N_h − 1; exactly 0 for a constant proxy."""
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
        """Return the summary from the sums of centred proxies.

        Parameters
        ----------
        counts : int (H,)
            Number of units in each stratum.
        sums : float (H, k)
            Sums of the proxies minus their centres.
        products : float (H, k, k)
            Sums of the products of centred proxies; only the lower triangles are read.
        centres : float (k,)
            The numbers that were subtracted from the proxies.

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
        # The variance of a constant proxy is only rounding error, which grows with the square root of the
        # number of units.
        variances = covariances[:, diagonal, diagonal]
        squares = moments[:, diagonal, diagonal]
        rounding_error = _ROUNDING / np.sqrt(divisor[:, None]) * squares
        covariances[:, diagonal, diagonal] = np.where(variances > rounding_error, variances, 0.0)
        return cls(sizes=counts, proxy_means=means + centres, proxy_covariances=covariances)

    def select_strata(self, mask: BoolArray) -> StratumSummary:
        """Return the summary of the strata for which `mask` (H,) is true.

        Examples
        --------
        >>> both = StratumSummary(sizes=np.array([1, 2]), proxy_means=np.zeros((2, 0)),
        ...                       proxy_covariances=np.zeros((2, 0, 0)))
        >>> both.select_strata(np.array([False, True])).sizes
        array([2])
        """
        return StratumSummary(
            sizes=self.sizes[mask],
            proxy_means=self.proxy_means[mask],
            proxy_covariances=self.proxy_covariances[mask],
        )

    def merge_strata(self, codes: IntArray) -> StratumSummary:
        """Return the summary of merged strata, given the number of the new stratum of each stratum (H,).

        Examples
        --------
        >>> fine = StratumSummary(sizes=np.array([1, 1]), proxy_means=np.array([[0.0], [1.0]]),
        ...                       proxy_covariances=np.zeros((2, 1, 1)))
        >>> fine.merge_strata(np.array([0, 0])).proxy_covariances.ravel()
        array([0.25])
        """
        n_merged = code_count(codes)
        k = self.proxy_means.shape[1]
        sizes = np.bincount(codes, self.sizes, minlength=n_merged)
        means = np.zeros((n_merged, k))
        np.add.at(means, codes, self.proxy_means * self.sizes[:, None])
        means /= sizes[:, None]
        # Second moments about the mean of the merged stratum: within the old strata and between them.
        centred = self.proxy_means - means[codes]
        moments = self.proxy_covariances + centred[:, :, None] * centred[:, None, :]
        covariances = np.zeros((n_merged, k, k))
        np.add.at(covariances, codes, moments * self.sizes[:, None, None])
        return StratumSummary(
            sizes=sizes.astype(np.int64),
            proxy_means=means,
            proxy_covariances=covariances / sizes[:, None, None],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnUnits:
    """Selected units in the random order in which annotators see them.

    Parameters
    ----------
    ids : (n,)
        int64 if the ids are integers or row numbers, else text.
    stratum : int (n,)
        Number of the stratum of each unit.
    proxies : float (n, k)
    groups, shown, features : mapping of column name to (n,) array
        Group columns (text), columns that annotators see, and columns of numbers.

    Examples
    --------
    >>> DrawnUnits(ids=np.array([4]), stratum=np.array([0]), proxies=np.array([[0.5]])).ids
    array([4])
    """

    ids: AnyArray
    stratum: IntArray
    proxies: FloatArray
    groups: Mapping[str, AnyArray] = field(default_factory=dict)
    shown: Mapping[str, AnyArray] = field(default_factory=dict)
    features: Mapping[str, FloatArray] = field(default_factory=dict)

    def only(self, rows: IntArray) -> DrawnUnits:
        """Return the units at these positions, in this order."""
        return DrawnUnits(
            ids=self.ids[rows],
            stratum=self.stratum[rows],
            proxies=self.proxies[rows],
            groups={name: values[rows] for name, values in self.groups.items()},
            shown={name: values[rows] for name, values in self.shown.items()},
            features={name: values[rows] for name, values in self.features.items()},
        )


# Share by which a proxy is shrunk towards the overall mean before its variance is computed. A proxy of 0 or 1
# may be wrong, and a unit of size 0 would never be drawn.
MEAN_SHRINKAGE = 0.2

# Sizes are rounded to whole multiples of the largest size in a sum divided by this number, so that sums are
# exact integers.
SIZE_STEPS = 2.0**32


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMeasure:
    """A size measure x of each unit, to which inclusion probabilities are proportional.

    Parameters
    ----------
    kind : {"equal", "column", "sqrt-variance"}
        1, the value of a column, or the square root of the plug-in variance of the outcome, with the proxy
        shrunk by `MEAN_SHRINKAGE`.
    column : str, optional
        A proxy or a feature; for `sqrt-variance`, the proxy.
    formula : Expression, optional
        A prediction of the outcome, instead of a proxy.
    uses_second_moments : bool
        Whether the variance is computed from the proxy's second moments instead of the outcome's bounds.
    centre : float
        Overall mean of the proxy (with second moments: of the variance), towards which it is shrunk.
    low, high : float
        Bounds of the outcome.
    """

    kind: str
    column: str | None = None
    formula: Expression | None = None
    uses_second_moments: bool = False
    centre: float = 0.0
    low: float = 0.0
    high: float = 1.0

    def evaluate(self, values: FloatArray, second_moments: FloatArray | None = None) -> FloatArray:
        """Return x (n,) from the column's values (n,) and, if they are used, its second moments (n,)."""
        return np.asarray(self.evaluate_with(ArrayEvaluator({}), values, second_moments))

    def evaluate_with(self, evaluator: ArrayEvaluator, values: Any, second_moments: Any) -> Any:
        """Return x computed from arrays or from columns of a table, with the operations of the evaluator."""
        if self.kind == "column":
            return values
        factor = evaluator.constant(1.0 - MEAN_SHRINKAGE)
        offset = evaluator.constant(MEAN_SHRINKAGE * self.centre)
        if self.uses_second_moments:
            variances = evaluator.at_least(second_moments - values * values, 0.0)
            return evaluator.apply("sqrt", variances * factor + offset)
        low = evaluator.constant(self.low)
        high = evaluator.constant(self.high)
        shrunk = values * factor + offset
        return evaluator.apply("sqrt", evaluator.at_least((shrunk - low) * (high - shrunk), 0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SizeProfile(Record):
    """Summary of the size measure of N units, from which inclusion probabilities are computed.

    Parameters
    ----------
    units : int
        Number of units, N.
    low : float
        Smallest size.
    largest : float (m,)
        The m largest sizes, in decreasing order.
    rest : float
        Sum of all other sizes.
    """

    units: int
    low: float
    largest: FloatArray
    rest: float

    @classmethod
    def of(cls, sizes: FloatArray, count: int) -> SizeProfile:
        """Return the profile of sizes (N,), with the `count` largest sizes in `largest`."""
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
    """Return sizes (n,) as multiples of `cap / SIZE_STEPS`, rounded to the nearest integer."""
    return np.floor(sizes * (SIZE_STEPS / cap) + 0.5).astype(np.int64)


def rest_of(total: int, cap: float, count: int) -> float:
    """Return the sum of all sizes except the `count` largest.

    Parameters
    ----------
    total : int
        Sum of all sizes in steps, each limited to `cap`. The limit keeps the steps fine if some sizes are
        huge.
    cap : float
        The smallest of the `count` largest sizes.
    count : int
    """
    return max(int(total) - count * int(SIZE_STEPS), 0) * (cap / SIZE_STEPS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Units whose permanent random number u is below a limit times their size.

    Parameters
    ----------
    drawn : DrawnUnits
        The units, in the order in which annotators see them.
    uniform, size : float (n,)
        Permanent random number u in [0, 1) and size measure x of each unit.
    """

    drawn: DrawnUnits
    uniform: FloatArray
    size: FloatArray
