"""Poisson sampling: units are drawn with probabilities π; their number is random, or fixed (sequential)."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, finite_vector
from stratal.designs.sample import Design, Sample, require_column_name
from stratal.designs.stratified import StratifiedWeighting
from stratal.designs.stratum_moments import satterthwaite
from stratal.designs.weighting import Weighting
from stratal.errors import InputError
from stratal.population.drawn_units import Candidates, DrawnUnits
from stratal.population.population import Population
from stratal.population.size_measure import SizeMeasure, SizeProfile
from stratal.randomness import id_texts
from stratal.strata.arguments import check_budget


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoissonWeighting(Weighting):
    """Poisson sampling, or a fixed-size design with unequal probabilities.

    Parameters
    ----------
    inclusion_probability : float (n,)
        π of the labelled units, in (0, 1].
    size : float
        N.
    fixed_size : bool
        Whether the number of units was fixed (sequential Poisson). The variance then does not include the
        variation of n.

    Examples
    --------
    >>> PoissonWeighting(inclusion_probability=np.array([0.5, 0.25]), size=6).weights
    array([0.33333333, 0.66666667])
    """

    inclusion_probability: FloatArray
    size: float
    fixed_size: bool = False

    @property
    def weights(self) -> FloatArray:
        """1 / (N π) per unit (n,)."""
        return np.asarray(1.0 / (self.inclusion_probability * self.size))

    def covariance(self, variables: FloatArray) -> FloatArray:
        """Return the covariance of the weighted sums; see `poisson` and `fixed_size`."""
        if self.fixed_size:
            return fixed_size(variables, self.inclusion_probability, self.size)
        return poisson(variables, self.inclusion_probability, self.size)

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Return the effective number of random units minus one; each has one degree (Satterthwaite)."""
        terms = (variable / self.inclusion_probability) ** 2 * (1.0 - self.inclusion_probability)
        # Certain units have no variance.
        is_random = self.inclusion_probability < 1
        return max(float(satterthwaite(terms[is_random], np.ones(int(is_random.sum())))) - 1.0, 1.0)

    def post_stratified(self, stratum: IntArray, sizes: IntArray) -> Weighting:
        """Return the weighting of strata (n,) of known sizes (H,) for units with equal probabilities."""
        if np.ptp(self.inclusion_probability) > 0:
            return Weighting.post_stratified(self, stratum, sizes)
        return StratifiedWeighting(stratum=stratum, sizes=sizes)


def poisson(variables: FloatArray, inclusion_probability: FloatArray, population_size: float) -> FloatArray:
    """Return the covariance of Σ y / (N π) under Poisson sampling.

    Σ (1 − π) (y / π)² / N² (q, q) for variables y (n, q) and π (n,) of the labelled units; unbiased (Särndal,
    Swensson & Wretman 1992, eq. 3.5.3).
    """
    scaled = variables / (population_size * inclusion_probability[:, None])
    return np.asarray((scaled * (1.0 - inclusion_probability)[:, None]).T @ scaled)


def fixed_size(
    variables: FloatArray, inclusion_probability: FloatArray, population_size: float
) -> FloatArray:
    """Return the approximate covariance of Σ y / (N π) under a fixed-size design with unequal probabilities.

    n / (n − 1) Σ (1 − π) (y/π − A)² / N² with A = Σ (1 − π) y/π / Σ (1 − π): the approximation for
    conditional Poisson sampling (Hájek 1964), which also holds for sequential Poisson sampling (Rosén 1997).
    """
    complements = 1.0 - inclusion_probability
    scaled = variables / (population_size * inclusion_probability[:, None])
    # If all units are certain, there is no variance.
    if np.sum(complements) <= 0:
        return np.zeros((variables.shape[1],) * 2)
    centred = scaled - np.average(scaled, axis=0, weights=complements)
    n_random = int(np.sum(complements > 0))
    # With a single random unit, the variance is unknown.
    factor = np.nan
    if n_random > 1:
        factor = n_random / (n_random - 1)
    return np.asarray(factor * (centred * complements[:, None]).T @ centred)


def inclusion_probabilities(sizes: object, budget: int) -> FloatArray:
    """Return π (N,) ∝ size with Σ π = budget; units whose π would exceed 1 are certain (π = 1).

    Parameters
    ----------
    sizes : float (N,)
        Positive.
    budget : int
        From 1 to N.

    Raises
    ------
    InputError
        If a size is zero, negative, NaN or infinite.
    BudgetError
        If the budget is above N.

    Examples
    --------
    >>> inclusion_probabilities([1.0, 1.0, 2.0, 16.0], 2)
    array([0.25, 0.25, 0.5 , 1.  ])
    """
    x = finite_vector("sizes", sizes)
    check_budget(budget, len(x))
    return np.minimum(1.0, inclusion_scale(SizeProfile.of(x, budget), budget) * x)


def inclusion_scale(profile: SizeProfile, budget: int, name: str = "the size measure") -> float:
    """Return the c for which the sum of π = min(1, c x) is the budget, for sizes x.

    `profile.largest` are the `budget` largest sizes, and `name` is the name of the sizes in errors.
    """
    require_positive_sizes(profile, name)
    # Every unit is certain. The next larger number ensures π = 1 for the smallest size in spite of rounding.
    if budget == profile.units:
        return float(np.nextafter(1.0 / profile.low, np.inf))
    # If the k largest units are certain, the others have π = (budget − k) x / Σ x. The solution is the
    # smallest k for which no such π exceeds 1.
    largest = profile.largest
    remaining = budget - np.arange(budget)
    sums_of_others = profile.rest + np.cumsum(largest[::-1])[::-1]
    k = int(np.argmax(remaining * largest <= sums_of_others))
    return float(remaining[k] / sums_of_others[k])


def sequential_poisson(
    population: Population,
    measured: SizeMeasure,
    scale: float,
    budget: int,
    seed: int,
    excluded: Sequence[str] = (),
) -> tuple[Candidates, IntArray]:
    """Return candidates, and the positions of the `budget` units with the smallest u/x, certain units first.

    Units with ids in `excluded` are not drawn.
    """
    # The candidates exceed the budget by about six standard deviations (√budget, as for a Poisson number),
    # and by 10 for small budgets. If too few of them can be drawn, the margin is doubled.
    margin = (6.0 * np.sqrt(budget) + 10.0) / budget
    while True:
        candidates = population.units_below_size_limit(measured, scale * (1.0 + margin), seed)
        ids = np.array(id_texts(candidates.drawn.ids))
        rows = np.flatnonzero(~np.isin(ids, np.array(excluded, dtype=np.str_)))
        if len(rows) >= budget:
            break
        margin = 2.0 * margin + 1.0
    is_certain = scale * candidates.size[rows] >= 1.0
    ranking = np.where(is_certain, -1.0, candidates.uniform[rows] / candidates.size[rows])
    return candidates, rows[np.lexsort((ids[rows], ranking))[:budget]]


def require_positive_sizes(profile: SizeProfile, name: str) -> None:
    """Raise an `InputError` for a size that is not positive and finite: the unit could never be drawn."""
    if profile.low <= 0 or not np.isfinite(profile.high):
        action = "A unit that can never be drawn biases the estimate: give such units a small size."
        raise InputError(
            f"{name} contains a size that is not positive", given=f"{profile.low:g}", action=action
        )


def size_measure(population: Population, size: str, proxy: str | None = None) -> SizeMeasure:
    """Return the size measure of a design.

    Parameters
    ----------
    population : Population
    size : str
        `equal`, `sqrt-variance` (of a proxy on the scale of the outcome), or the name of a proxy or feature
        with positive values.
    proxy : str, optional
        The proxy of `sqrt-variance`. Default: the first proxy.

    Raises
    ------
    InputError
        If the proxy does not predict the variance.
    """
    if require_column_name(size, "size") == "equal":
        return SizeMeasure(kind="equal")
    if size != "sqrt-variance":
        return SizeMeasure(kind="column", column=size)
    info = population.proxy_info(proxy)
    has_moments = info.second_moment is not None or population.has_second_moments(info.name)
    if not info.scaled or (info.bounds is None and not has_moments):
        problem = f"proxy '{info.name}' contains no information about the outcome's variance"
        allowed = "a proxy on the outcome's scale, with bounds or second moments"
        raise InputError(
            problem, allowed=allowed, action="Name a column of sizes, or give the proxy's bounds."
        )
    distribution = population.distribution(info.name)
    if has_moments:
        centre = float(distribution.counts @ distribution.conditional_variances / distribution.size)
        # Without a variance anywhere, no unit is more informative than another.
        if centre <= 0:
            return SizeMeasure(kind="equal")
        return SizeMeasure(kind="sqrt-variance", column=info.name, uses_second_moments=True, centre=centre)
    assert info.bounds is not None
    low, high = info.bounds
    # If all proxies are at a bound, no unit has a variance.
    if not low < distribution.mean < high:
        return SizeMeasure(kind="equal")
    return SizeMeasure(kind="sqrt-variance", column=info.name, centre=distribution.mean, low=low, high=high)


class UnequalProbabilities(Design):
    """Base class of Poisson sampling with a random or a fixed number of units."""

    __slots__ = ()
    fixed_size = False
    # With fewer labels, λ is fitted to noise and costs 7% more error (docs/decisions/0010).
    hajek_below = 8
    budget: int | None
    size: str
    proxy: str | None

    def weighting(self, sample: Sample, labelled: BoolArray) -> PoissonWeighting:
        """Return the weights 1 / (N π), under the assumption that labels are missing at random.

        The π of each labelled unit is multiplied by the response rate Σ_labelled 1/π / Σ_drawn 1/π, as if
        response were a second, independent draw.
        """
        weights = 1.0 / sample.inclusion_probability
        if len(weights):
            rate = float(weights[labelled].sum() / weights.sum())
        else:
            rate = 1.0
        return PoissonWeighting(
            inclusion_probability=np.asarray(sample.inclusion_probability[labelled] * min(rate, 1.0)),
            size=sample.population_size,
            fixed_size=self.fixed_size,
        )

    def for_budget(self, population: Population, budget: int) -> tuple[SizeMeasure, float]:
        """Return the size measure x, and the c for which the sum of π = min(1, c x) is the budget."""
        check_budget(budget, population.size)
        measured = size_measure(population, self.size, self.proxy)
        profile = population.size_profile(measured, budget)
        return measured, inclusion_scale(profile, budget, f"size '{self.size}'")

    @classmethod
    def from_options(cls, budget: int, size: str, cluster: str | None, proxy: str | None = None) -> Self:
        """Return the design of a budget and a size measure."""
        return cls(budget=budget, size=size, proxy=proxy)  # type: ignore[call-arg]

    def larger_design(self, sample: Sample, additional: int) -> Design:
        """Return the design with the larger budget; raise an error for a design without a budget."""
        if self.budget is None:
            return Design.larger_design(self, sample, additional)
        return self.from_options(self.budget + additional, self.size, None, self.proxy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson(UnequalProbabilities):
    """Poisson sampling: a unit is drawn if its permanent random number u is below its π.

    Inclusion probabilities are exact. The number of units is random; its mean is Σ π. The design is nested:
    with the same seed, larger probabilities keep every unit.

    Parameters
    ----------
    probability : str or float, optional
        π: the name of a proxy or feature, or one number for all units; above 0 and at most 1.
    budget : int, optional
        Expected number of units, instead of `probability`: π = min(1, c x) for the size measure x.
    size : str
        x for a `budget`: `equal`, `sqrt-variance` or a column; see `ProportionalToSize`.
    proxy : str, optional
        The proxy of `sqrt-variance`. Default: the first proxy.

    Raises
    ------
    InputError
        If not exactly one of `probability` and `budget` is given; when drawing, for a π outside (0, 1].

    Notes
    -----
    Särndal, Swensson & Wretman (1992), 3.5. The variance Σ (1 − π) (y/π)² / N² is unbiased.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9, 0.7])
    >>> sample = Poisson(budget=3, size="sqrt-variance").draw(population, seed=7)
    >>> sample.inclusion_probability.round(2)
    array([0.81, 0.65, 0.86])
    """

    kind = "poisson"
    report_description = ("a Poisson sample with unequal inclusion probabilities", "lohr")
    probability: str | float | None = None
    budget: int | None = None
    size: str = "equal"
    proxy: str | None = None

    def __post_init__(self) -> None:
        probability = self.probability
        if (probability is None) == (self.budget is None):
            problem = "either probabilities or a budget must be given"
            raise InputError(problem, given=f"{probability}, {self.budget}", allowed="one of the two")
        if probability is not None and not isinstance(probability, numbers.Real):
            require_column_name(probability, "probability")
        elif probability is not None and not 0 < float(probability) <= 1:
            raise InputError("a probability is out of range", given=probability, allowed="above 0, at most 1")

    def select(self, population: Population, seed: int) -> tuple[Design, DrawnUnits, FloatArray, None]:
        """Draw every unit with u < π."""
        measured, scale = self._measure(population)
        candidates = population.units_below_size_limit(measured, scale, seed)
        return self, candidates.drawn, np.minimum(1.0, scale * candidates.size), None

    def _measure(self, population: Population) -> tuple[SizeMeasure, float]:
        """Return the size measure x, and the c of π = min(1, c x)."""
        if self.budget is not None:
            return self.for_budget(population, self.budget)
        if not isinstance(self.probability, str):
            return SizeMeasure(kind="equal"), float(self.probability or 0.0)
        measured = SizeMeasure(kind="column", column=self.probability)
        profile = population.size_profile(measured, 1)
        require_positive_sizes(profile, f"column '{self.probability}'")
        if profile.high > 1:
            problem = f"column '{self.probability}' contains a probability above 1"
            action = (
                "Use the column as a size measure: Poisson(budget=…, size=…) draws very large units with "
                "certainty."
            )
            raise InputError(problem, given=f"{profile.high:g}", action=action)
        return measured, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProportionalToSize(UnequalProbabilities):
    """Sequential Poisson sampling: the n units with the smallest u/π, for π ∝ size and permanent numbers u.

    Exactly `budget` units are drawn. Units whose π would exceed 1 are certain, so that their π is exact. The
    π of the others is approximate: relative frequencies differ from it by up to 22% for N = 10 and n = 3, and
    by 3% for N = 100 and n = 10. The design is nested in the budget, except that in rare cases a unit that
    becomes certain replaces another one.

    Parameters
    ----------
    budget : int
        Number of units, from 1 to N.
    size : str
        `sqrt-variance`: √((ẑ' − low)(high − ẑ')), where ẑ' is the proxy shrunk by a fifth towards its overall
        mean, so that units with a proxy of exactly 0 or 1 can be drawn (with second moments: √ of the plug-in
        variance, shrunk in the same way). Otherwise the name of a proxy or feature with positive values, or
        `equal`.
    proxy : str, optional
        The proxy of `sqrt-variance`. Default: the first proxy.

    Notes
    -----
    Ohlsson (1995, 1998), "Sequential Poisson sampling". The variance is Hájek's approximation with a fixed n
    (`stratal.designs.poisson.fixed_size`).

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.0, 0.5, 1.0, 0.9])
    >>> ProportionalToSize(budget=2).draw(population, seed=7).size
    2
    """

    kind = "proportional-to-size"
    report_description = (
        "a sequential Poisson sample with inclusion probabilities proportional to size",
        "ohlsson",
    )
    assumption = "The variance is the approximate variance of the design."
    fixed_size = True
    budget: int
    size: str = "sqrt-variance"
    proxy: str | None = None

    def select(self, population: Population, seed: int) -> tuple[Design, DrawnUnits, FloatArray, None]:
        """Draw `budget` units."""
        measured, scale = self.for_budget(population, self.budget)
        candidates, order = sequential_poisson(population, measured, scale, self.budget, seed)
        rows = np.sort(order)
        return self, candidates.drawn.only(rows), np.minimum(1.0, scale * candidates.size[rows]), None
