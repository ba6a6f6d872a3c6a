"""Anticipated moments of an estimand before any label, and the strata of a plan for it.

A label provides most information if the influence of its unit on the estimand is uncertain. Therefore,
`AnticipatedInfluence` stratifies by the anticipated influence, within cells of units with similar answers.
For a mean, the influence is the outcome up to a constant, and `AnticipatedOutcome` stratifies by the proxy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stratal.arrays import IntArray, code_count
from stratal.errors import BudgetError, InputError, not_positive_error
from stratal.population.influence import Influence
from stratal.population.population import Population
from stratal.strata import Strata, stratify
from stratal.strata.level_groups import count_groups, pool_small_levels
from stratal.strata.number_of_strata import DEFAULT_STRATA
from stratal.strata.proxy_intervals import CUT_METHODS
from stratal.strata.strata import (
    CALIBRATION_SLOPE,
    SCENARIO_OFFSETS,
    SCENARIO_RESIDUAL_FACTORS,
    SCENARIO_SLOPES,
)

if TYPE_CHECKING:
    from stratal.strata.mean_score import MeanScore

# Residual standard deviation over that of the proxy, assumed for outcomes without bounds by default: a
# correlation of .89.
RESIDUAL_SHARE = 0.5

# Common scales of ratings, narrow ones first.
LIKELY_SCALES = ((1.0, 5.0), (0.0, 5.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0))

# Minimum number of units for which distinct whole numbers are probably row numbers and not scores.
_MIN_ROW_NUMBERS = 20

# Default minimum of labels per stratum, so that its variance can be estimated.
MIN_LABELS = 2

# Cuts of a proxy on the scale of an outcome with bounds.
ROBUST_NEYMAN = "robust-neyman"
K_MEANS = "k-means"

# With this budget or more, robust Neyman cuts have up to 15 strata. On real predictions, the variance was 2%
# smaller than with 10 strata. With fewer labels, each of 15 strata would have too few.
MANY_LABELS = 200
MAX_STRATA_OF_MANY_LABELS = 15

NO_MISSING_LABELS = "All requested labels are returned"


@dataclass(frozen=True, slots=True, kw_only=True)
class StratificationOptions:
    """Options of `plan` for the strata and their labels; None selects the default of the estimand.

    Parameters
    ----------
    method, n_strata, by, proxy
        As in `stratal.strata.stratify`; strata in each cell or category.
    allocation : str, optional
    minimum : int
        Minimum number of labels per stratum.
    residual_sd : float, optional
        Standard deviation of outcome minus proxy, for outcomes without bounds.
    expected_slope : float, optional
        Slope of the outcome on the proxy that expectations assume: 1 for stated probabilities.
    opposed_scores : mapping of str to float, optional
        Scores with a negative correlation with the outcome of earlier labels, and this correlation.
    """

    method: str | None = None
    n_strata: int | None = None
    by: str | None = None
    proxy: str | None = None
    allocation: str | None = None
    minimum: int = MIN_LABELS
    residual_sd: float | None = None
    expected_slope: float | None = None
    opposed_scores: Mapping[str, float] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the number of strata and the allocation are unset, so that a plan compares several."""
        has_number = self.method is None or self.method in CUT_METHODS
        return has_number and self.n_strata is None and self.allocation is None


@dataclass(frozen=True, kw_only=True)
class _Anticipated:
    """Base class of the anticipated moments of all estimands."""

    population: Population
    options: StratificationOptions
    n_proxies: int = 0
    # Notes on the choice among several scores.
    score_notes: tuple[str, ...] = ()
    _strata_by_number: dict[tuple[str, int, int | None], Strata] = field(default_factory=dict, repr=False)

    allocation: ClassVar[str]
    # Whether a plan has strata only if they clearly reduce the variance. Otherwise, it has strata unless they
    # increase the variance.
    strata_are_optional: ClassVar[bool]
    # Largest number of strata within each cell or category.
    most_strata: ClassVar[int]
    # Minimum average number of labels per stratum. It exceeds the minimum of a stratum, so that the rest of
    # the budget can be allocated.
    per_stratum: ClassVar[int]

    def fallback_alternatives(self, budget: int) -> Iterator[Strata]:
        """Yield strata to compare if the default ones hardly improve on a simple random sample."""
        return iter(())

    def _number(self, budget: int, n_cells: int, max_strata: int | None = None) -> int:
        """Return the number of strata in each cell; by default at most `most_strata`."""
        if self.options.n_strata is not None:
            return self.options.n_strata
        labels_per_number = max(self.per_stratum, self.options.minimum) * n_cells
        return max(1, min(max_strata or self.most_strata, budget // labels_per_number))

    @property
    def can_be_stratified(self) -> bool:
        """Whether the units can be divided into strata."""
        return True

    def suffices(self, budget: int, strata: Strata) -> bool:
        """Return whether the budget is at least the sum of the minimums of the strata."""
        open_sizes = strata.sizes[~strata.is_known]
        return int(np.minimum(self.options.minimum, open_sizes).sum()) <= budget


@dataclass(frozen=True, kw_only=True)
class AnticipatedInfluence(_Anticipated):
    """Anticipated influence of an estimand. The estimator uses no proxy: the strata are based on it.

    Parameters
    ----------
    population : Population
    options : StratificationOptions
    n_proxies : int
        Always 0.
    influence : Influence
    text : str
        Text of the estimand.
    """

    influence: Influence
    text: str

    allocation: ClassVar[str] = "neyman"
    method: ClassVar[str] = "neyman"
    strata_are_optional: ClassVar[bool] = False
    # The units of a rare class are in a small part of the range of the influence, which needs narrow strata.
    most_strata: ClassVar[int] = 15
    per_stratum: ClassVar[int] = 4

    @cached_property
    def population_stratum(self) -> Strata:
        """The population as one stratum."""
        return stratify(self.population, "none", influence=self.influence)

    @property
    def budgets(self) -> tuple[int, int]:
        """The smallest budget that can be planned, and the number of units that need a label."""
        strata = self.strata(1)
        sizes = strata.sizes[~strata.is_known]
        n_units = int(sizes.sum())
        return min(n_units, max(2, int(np.minimum(sizes, self.options.minimum).sum()))), n_units

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The basis of the expectations."""
        value = self.influence.value
        if math.isnan(value):
            planned = f"Planned for {self.text}; the proxies predict the influence of each label."
        else:
            planned = f"Planned for {self.text}, which is {value:.4g} if the proxies are accurate."
        return (
            planned,
            f"The range covers residuals from {min(SCENARIO_RESIDUAL_FACTORS):.2g} to "
            f"{max(SCENARIO_RESIDUAL_FACTORS):.2g} times those that the proxies predict; overconfident "
            "scores have the larger residuals.",
            "Standard errors are approximate (to first order), and assume that no label is missing.",
        )

    def remarks(self, strata: Strata) -> tuple[str, ...]:
        """Return a note on the units that need no label."""
        if not np.any(strata.is_known):
            return ()
        share = float(strata.weights[strata.is_known].sum())
        return (
            f"{share:.1%} of the units require no label, because their contribution to {self.text} is known.",
        )

    def strata(self, budget: int) -> Strata:
        """Return the strata of the influence, within its cells."""
        return self._stratify(self._max_strata(budget))

    def alternatives(self, budget: int) -> Iterator[Strata]:
        """Yield the strata for which the budget is large enough, those with the largest number first."""
        for number in range(self._max_strata(budget), 0, -1):
            strata = self._stratify(number)
            if number == 1 or self.suffices(budget, strata):
                yield strata

    def _max_strata(self, budget: int) -> int:
        """Return the largest number of strata in each cell."""
        cells = len(self.influence.cells.names) - len(self.influence.known_cells)
        return self._number(budget, max(cells, 1))

    def _stratify(self, number: int) -> Strata:
        """Return strata with this number in each cell."""
        method = self.options.method or self.method
        key = method, number, None
        if key not in self._strata_by_number:
            strata = stratify(self.population, method, number, influence=self.influence)
            if np.all(strata.is_known):
                action = "Nothing needs to be labelled; check the proxies if this is unexpected."
                raise InputError(
                    f"{self.text} is known without labels, so no unit requires a label", action=action
                )
            self._strata_by_number[key] = strata
        return self._strata_by_number[key]


@dataclass(frozen=True, kw_only=True)
class AnticipatedOutcome(_Anticipated):
    """Anticipated moments of the outcome, given a proxy.

    Parameters
    ----------
    population : Population
    options : StratificationOptions
    n_proxies : int
        Number of proxies that the estimator may use.
    scores : MeanScore, optional
        Mean of several scores, by which units are stratified instead of a proxy.
    """

    scores: MeanScore | None = None

    allocation: ClassVar[str] = "robust"
    strata_are_optional: ClassVar[bool] = True
    most_strata: ClassVar[int] = DEFAULT_STRATA
    per_stratum: ClassVar[int] = 5

    @cached_property
    def population_stratum(self) -> Strata:
        """The population as one stratum."""
        if self.scores is None:
            stratum = stratify(self.population, "none", proxy=self.options.proxy)
        else:
            stratum = self.scores.strata("none", 1)
        return self._with_expectations(stratum)

    def _with_expectations(self, strata: Strata) -> Strata:
        """Return strata with the slope and the residual standard deviation of the options."""
        if self.options.expected_slope is not None:
            strata = replace(strata, expected_slope=self.options.expected_slope)
        return with_residual(strata, self.options.residual_sd)

    @property
    def budgets(self) -> tuple[int, int]:
        """The smallest budget that can be planned, and the number of all units."""
        size = self.population.size
        return min(size, max(2, self.options.minimum)), size

    def strata(self, budget: int) -> Strata:
        """Return the strata of the proxy within categories; one stratum if there is neither."""
        options = self.options
        if not self.can_be_stratified:
            return replace(
                self.population_stratum,
                notes=("There is no proxy, so nothing shows which units are uncertain.",),
            )
        sizes = self._level_sizes
        n_groups = count_groups(sizes, budget, options.minimum)
        # Small categories share a stratum only if the budget does not suffice for all.
        pool = budget if n_groups < len(sizes) else None
        strata = self._stratify(self._max_strata(budget, n_groups), pool, self._method)
        if len(strata.sizes) > 1 and not self.suffices(budget, strata):
            needed = int(np.minimum(options.minimum, strata.sizes).sum())
            problem = f"the budget is below {options.minimum} units for each of {strata.n_strata} strata"
            action = "Use fewer strata, a larger budget, or minimum=1 (--minimum 1)."
            raise BudgetError(problem, given=budget, allowed=f"{needed} to {strata.size}", action=action)
        return strata

    @property
    def can_be_stratified(self) -> bool:
        """Whether the units can be divided into strata: by a proxy, categories or features."""
        return bool(self.n_proxies or self.options.by is not None or self.options.method == "features")

    @cached_property
    def _method(self) -> str:
        """Method of stratification: only by categories if there is no proxy."""
        if self.options.by is not None and not self.n_proxies:
            return "category"
        if self.options.method is not None:
            return self.options.method
        return default_method(self.population, self.options.proxy)

    def alternatives(self, budget: int) -> Iterator[Strata]:
        """Yield strata for which the budget is large enough: first without, then with more and more pooling.

        Pooling joins small categories in one stratum. For each pooling, the largest number of strata is
        first. The size below which categories are pooled doubles each time. All categories are never pooled
        into one stratum, because the user requested them.
        """
        return self._alternatives(budget, self._method)

    def fallback_alternatives(self, budget: int) -> Iterator[Strata]:
        """Yield the strata of k-means if robust Neyman cuts are the default, and not the user's choice."""
        if self.options.method is None and self._method == ROBUST_NEYMAN:
            yield from self._alternatives(budget, K_MEANS)

    def _alternatives(self, budget: int, method: str) -> Iterator[Strata]:
        for pool, n_groups in self._pools:
            for number in numbers_to_compare(self._max_strata(budget, n_groups)):
                strata = self._stratify(number, pool, method)
                if strata.n_strata > 1 and self.suffices(budget, strata):
                    yield strata

    def _max_strata(self, budget: int, n_groups: int) -> int:
        """Return the largest number of strata within each of `n_groups` groups of categories."""
        # Without a proxy, categories are not divided further, so that their number is no limit.
        if self._method == "category":
            n_groups = 1
        if self._method == ROBUST_NEYMAN and budget >= MANY_LABELS:
            return self._number(budget, n_groups, MAX_STRATA_OF_MANY_LABELS)
        return self._number(budget, n_groups)

    @cached_property
    def _level_sizes(self) -> IntArray:
        """Number of units in each category (L,); one number of all units without categories."""
        by = self.options.by
        if by is None:
            return np.array([self.population.size])
        return np.array(list(self.population.levels(by).values()))

    @cached_property
    def _pools(self) -> list[tuple[int | None, int]]:
        """Pairs of the budget by which small categories are pooled (or None) and the number of groups."""
        sizes = self._level_sizes
        minimum = self.options.minimum
        pool = None
        pools: list[tuple[int | None, int]] = [(pool, len(sizes))]
        n_groups = len(sizes)
        # Categories with fewer units are pooled.
        min_size = 2
        while n_groups > 1:
            if n_groups < pools[-1][1]:
                pools.append((pool, n_groups))
            pool = max(1, minimum * int(sizes.sum()) // min_size)
            n_groups = code_count(pool_small_levels(sizes, pool, minimum))
            min_size *= 2
        return pools

    def _stratify(self, number: int, pool: int | None, method: str) -> Strata:
        """Return strata by a method, with this number in each category; small categories may be pooled."""
        key = method, number, pool
        if key not in self._strata_by_number:
            options = self.options
            if self.scores is not None:
                strata = self.scores.strata(method, number)
            else:
                strata = stratify(
                    self.population,
                    method,
                    number,
                    by=options.by,
                    proxy=options.proxy,
                    minimum=options.minimum,
                    budget=pool,
                )
            self._strata_by_number[key] = self._with_expectations(strata)
        return self._strata_by_number[key]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The basis of the expectations."""
        stratum = self.population_stratum
        if not self.n_proxies:
            return ("Nothing is known about the outcome before the first label.",)
        low, high = stratum.bounds
        bounded = math.isfinite(high - low)
        if not stratum.scaled:
            scale = "" if bounded else ", if labels are 0 or 1"
            return (f"The proxy only orders units, so only the worst case is known{scale}.",)
        if stratum.standard_deviations[0] == 0:
            return (
                "The proxy implies that every outcome is certain, so by itself it predicts no standard "
                "error.",
            )
        if not bounded:
            residual_sd = math.sqrt(float(stratum.conditional_variances[0]))
            return (
                "The outcome has no bounds. Its standard deviation about the proxy is assumed to be "
                f"{residual_sd:.4g}, and the range covers half to twice this value. It is better to give "
                "the standard deviation (residual_sd=, --residual-sd) or to label a pilot.",
                NO_MISSING_LABELS,
            )
        expectation = f"Scores are somewhat overconfident (slope {CALIBRATION_SLOPE} on the log-odds scale)"
        if self.options.expected_slope == 1.0:
            expectation = "Scores are calibrated probabilities (slope 1 on the log-odds scale)"
        return (
            expectation,
            f"The range covers errors of the log-odds of up to {SCENARIO_OFFSETS[-1]:g}, and slopes of "
            f"{SCENARIO_SLOPES[0]:g} to {SCENARIO_SLOPES[-1]:g}",
            NO_MISSING_LABELS,
        )

    def remarks(self, strata: Strata) -> tuple[str, ...]:
        """Return a question about a proxy on an unknown scale, which may be a row number or a rating."""
        if self.population_stratum.scaled or not self.n_proxies:
            return ()
        info = self.population.proxy_info(self.options.proxy)
        if info.bounds is not None:
            return ()
        values = self.population.distribution(info.name).values
        smallest = float(values[0])
        largest = float(values[-1])
        size = self.population.size
        are_whole_numbers = np.array_equal(values, np.floor(values))
        if size >= _MIN_ROW_NUMBERS and are_whole_numbers and len(values) == size:
            return (
                f"'{info.name}' is a different whole number in each row, {smallest:g} to {largest:g}, like a "
                "row number. Does this column predict which units are right? If not, name another column.",
            )
        fitting = [scale for scale in LIKELY_SCALES if scale[0] <= smallest and largest <= scale[1]]
        if not fitting:
            return ()
        low, high = fitting[0]
        return (
            f"Does '{info.name}' ({smallest:g} to {largest:g}) predict labels on a scale of {low:g} to "
            f"{high:g}? If so, give bounds=({low:g}, {high:g}) (--bounds {low:g},{high:g}). If labels are "
            "pass or fail, give label='pass/fail' (--label pass/fail).",
        )


Anticipated = AnticipatedInfluence | AnticipatedOutcome


def numbers_to_compare(max_strata: int) -> list[int]:
    """Return numbers of strata, the largest first; above ten only 12 and 15, because others differ little.

    Examples
    --------
    >>> numbers_to_compare(14)
    [12, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    """
    return [number for number in range(max_strata, 0, -1) if number <= DEFAULT_STRATA or number % 3 == 0]


def default_method(population: Population, proxy: str | None) -> str:
    """Return the default method by which a plan for a mean stratifies by a proxy (default: the first).

    Robust Neyman cuts require bounds of the outcome, and assume that the outcome may be at a bound. Otherwise
    only distances between proxies are known, which k-means uses.
    """
    if not population.proxies:
        return K_MEANS
    info = population.proxy_info(proxy)
    if info.scaled and info.bounds is not None and info.second_moment is None:
        return ROBUST_NEYMAN
    return K_MEANS


def with_residual(strata: Strata, residual_sd: float | None) -> Strata:
    """Return strata with a residual variance of the outcome, for outcomes without bounds.

    Parameters
    ----------
    strata : Strata
        Strata of an outcome with bounds are returned unchanged.
    residual_sd : float, optional
        Standard deviation of outcome minus proxy. Default: half of that of the proxy.
    """
    bounded = math.isfinite(strata.bounds[1] - strata.bounds[0])
    if residual_sd is not None and not 0 < residual_sd < math.inf:
        raise not_positive_error("residual_sd", residual_sd)
    if residual_sd is not None and (bounded or not strata.scaled):
        if bounded:
            conflict = "bounds {:g} to {:g}".format(*strata.bounds)
        else:
            conflict = "a proxy that only orders"
        allowed = "residual_sd= (--residual-sd) with a proxy on the scale of an outcome without bounds"
        raise InputError("residual_sd would have no effect", given=conflict, allowed=allowed)
    # Bounds or second moments already determine the residual variance.
    if bounded or not strata.scaled or (residual_sd is None and np.any(strata.conditional_variances > 0)):
        return strata
    weights = strata.weights
    deviations = strata.proxy_means - weights @ strata.proxy_means
    proxy_variance = float(weights @ (strata.proxy_variances + deviations**2))
    if residual_sd is None:
        residual_variance = RESIDUAL_SHARE**2 * proxy_variance
    else:
        residual_variance = residual_sd**2
    return replace(strata, conditional_variances=np.full(strata.n_strata, residual_variance))
