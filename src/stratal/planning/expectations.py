"""What to expect of a design and an estimator before any label is known: closed forms on strata.

A plan is a promise made before any label, on the word of a proxy. The promise is therefore a range over the
ways in which the proxy may be off: the outcome's log-odds may be shifted against the proxy's and flatter or
steeper, and a graded outcome may be less spread than its bounds allow. The hopeful end is the least standard
error over these ways, the cautious end the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.intervals.proportion import student_quantile
from stratal.planning.earlier_labels import EarlierLabels
from stratal.report import plain_dict
from stratal.strata import Allocation, Strata
from stratal.strata.moments import expected_variance, scenarios

ESTIMATORS = ("horvitz-thompson", "difference", "ppi++")
"""The estimators that a plan compares under each design."""

_EXPECTED = (
    *("expected_standard_error", "hopeful_standard_error"),
    *("cautious_standard_error", "relative_efficiency"),
)
"""What is unknown of a design where nothing can be expected of the proxy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDesign:
    """What one design and estimator are expected to give at the budget.

    Parameters
    ----------
    design, estimator : str
    expected_standard_error : float
        In the outcome's units; None where the proxy only orders units, so that nothing can be expected.
    hopeful_standard_error, cautious_standard_error : float
        The ends of its range over the ways in which the proxy may be off (`scenarios`).
    relative_efficiency : float
        Expected variance of a simple random sample's mean over this variance; above 1 is better.
    worst_standard_error : float, optional
        Where nothing can be expected: that of labels of which half lie at either end of the outcome's bounds,
        of 0 and 1 where none are known.

    Examples
    --------
    >>> row = PlannedDesign(design="stratified", estimator="difference", expected_standard_error=0.02,
    ...                     hopeful_standard_error=0.01, cautious_standard_error=0.03,
    ...                     relative_efficiency=1.5)
    >>> row.to_dict()["design"]
    'stratified'
    """

    design: str
    estimator: str
    expected_standard_error: float | None
    hopeful_standard_error: float | None
    cautious_standard_error: float | None
    relative_efficiency: float | None
    worst_standard_error: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict."""
        return {name: getattr(self, name) for name in self.__slots__}


def expectations(
    design: str,
    strata: Strata,
    allocation: Allocation,
    whole: Strata,
    *,
    n_proxies: int = 1,
    labels: EarlierLabels | None = None,
) -> list[PlannedDesign]:
    """Return what each estimator is expected to give under one design.

    Parameters
    ----------
    design : str
        Its name.
    strata : Strata
        What it draws from.
    allocation : Allocation
    whole : Strata
        The population as one stratum, to compare with a simple random sample.
    n_proxies : int
        Proxies that estimators may correct by.
    labels : EarlierLabels, optional
        Labels that are in already, whose word is taken instead of the proxy's.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 100)
    >>> whole = stratal.stratify(population, "none")
    >>> expectations("simple-random", whole, stratal.allocate(whole, 10), whole)[0].relative_efficiency
    1.0
    """
    usable: tuple[str, ...] = ESTIMATORS if n_proxies else ESTIMATORS[:1]
    if not whole.scaled:
        usable = tuple(name for name in usable if name != "difference")
    unknown: dict[str, float | None] = dict.fromkeys(_EXPECTED)
    n_h, census = allocation.n_h, allocation.budget == whole.sizes[0]
    blind = not whole.scaled or (whole.standard_deviations[0] == 0 and not census)
    if labels is None and blind:
        low, high = worst_bounds(whole)
        # The worst: half of each stratum's labels lie at either end of their bounds.
        worst = math.sqrt(expected_variance(strata.sizes, n_h, np.full(len(n_h), ((high - low) / 2) ** 2)))
        return [
            PlannedDesign(
                design=design,
                estimator=name,
                worst_standard_error=None if name == "difference" else worst,
                **unknown,
            )
            for name in usable
        ]
    n = np.array([allocation.budget])
    ways = scenarios(strata) if labels is None else labels.scenario(strata, n_h)
    simple = scenarios(whole) if labels is None else labels.scenario(whole, n)
    random = float(expected_variance(whole.sizes, n, simple.variances[0]))
    rows = []
    for name in usable:
        errors = ways.standard_errors(strata, n_h, name)
        error = float(errors[0])
        efficiency = random / error**2 if error > 0 else (1.0 if random == 0 else None)
        found = error, float(errors.min()), float(errors.max()), efficiency
        rows.append(PlannedDesign(design=design, estimator=name, **dict(zip(_EXPECTED, found, strict=True))))
    return rows


def simple_allocation(whole: Strata, budget: int) -> Allocation:
    """Return a simple random sample's allocation: all labels to all units as one stratum.

    Examples
    --------
    >>> import stratal
    >>> simple_allocation(stratal.stratify(stratal.Population.from_arrays(proxy=[0.5] * 9), "none"), 4).n_h
    array([4])
    """
    one = np.array([1])
    return Allocation(
        n_h=one * budget, method="proportional", budget=budget, minimum=one, maximum=whole.sizes
    )


def worst_bounds(strata: Strata) -> tuple[float, float]:
    """Return the ends between which labels may lie where the worst is planned for: 0 and 1 if none are known.

    Examples
    --------
    >>> import stratal
    >>> worst_bounds(stratal.stratify(stratal.Population.from_arrays(groups={"g": ["a"]}), "none"))
    (0.0, 1.0)
    """
    low, high = strata.bounds
    return (low, high) if math.isfinite(high - low) else (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPart:
    """One of several estimands, and what the labels of a plan are expected to say of it.

    Parameters
    ----------
    estimand : str
    labels : int
        Those of strata in which its influence varies.
    expected_standard_error : float
    expected_half_width : float
        Of the interval at the plan's level, by the normal.
    wanted_half_width : float or None
    relative_efficiency : float
        Variance of as many labels of a simple random sample over the plan's.

    Examples
    --------
    >>> part = PlannedPart(estimand="mean@lang:de", labels=40, expected_standard_error=0.05,
    ...                    expected_half_width=0.1, wanted_half_width=None, relative_efficiency=1.4)
    >>> part.to_dict()["labels"]
    40
    """

    estimand: str
    labels: int
    expected_standard_error: float
    expected_half_width: float
    wanted_half_width: float | None
    relative_efficiency: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON twin; what is not finite is None."""
        return plain_dict(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class InfluenceMoments:
    """Mean and mean square of J influences in H strata, each (J, H).

    Examples
    --------
    >>> InfluenceMoments(means=np.array([[1.0]]), squares=np.array([[5.0]])).deviations
    array([[2.]])
    """

    means: FloatArray
    squares: FloatArray

    @property
    def deviations(self) -> FloatArray:
        """The standard deviations (J, H)."""
        return np.asarray(np.sqrt(np.maximum(self.squares - self.means**2, 0.0)))

    def spreads(self, strata: Strata) -> FloatArray:
        """Return S_h of each influence (J, H), whose divisor is N_h − 1."""
        sizes = strata.sizes
        return np.asarray(self.deviations * np.sqrt(sizes / np.maximum(sizes - 1, 1)))

    def overall(self, strata: Strata) -> FloatArray:
        """Return the variance of each influence over all units (J,)."""
        shares = strata.weights
        return np.asarray(np.maximum(self.squares @ shares - (self.means @ shares) ** 2, 0.0))


def planned_parts(
    names: Sequence[str],
    moments: InfluenceMoments,
    strata: Strata,
    n_h: Any,
    wanted: FloatArray | None,
    confidence_level: float,
) -> tuple[PlannedPart, ...]:
    """Return a row for each of J estimands.

    Parameters
    ----------
    names : sequence of str (J,)
    moments : InfluenceMoments
    strata : Strata
    n_h : int (H,)
    wanted : float (J,), optional
    confidence_level : float

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 100)
    >>> strata = stratal.stratify(population, "none")
    >>> moments = InfluenceMoments(means=np.zeros((1, 1)), squares=np.ones((1, 1)))
    >>> part = planned_parts(["mean"], moments, strata, np.array([25]), None, 0.95)[0]
    >>> round(part.expected_standard_error, 4), round(part.relative_efficiency, 4), part.labels
    (0.1741, 1.0, 25)
    """
    normal = -float(student_quantile((1.0 - confidence_level) / 2.0, np.inf))
    left = 1.0 / int(np.sum(n_h)) - 1.0 / strata.size
    rows = []
    overall, every = moments.overall(strata), np.where(strata.is_known, 0.0, moments.deviations)
    for j, (name, deviations) in enumerate(zip(names, every, strict=True)):
        error = float(np.sqrt(expected_variance(strata.sizes, n_h, deviations**2)))
        random = float(overall[j]) * left * strata.size / max(strata.size - 1, 1)
        rows.append(
            PlannedPart(
                estimand=name,
                labels=int(n_h[deviations > 0].sum()),
                expected_standard_error=error,
                expected_half_width=normal * error,
                wanted_half_width=None if wanted is None else float(wanted[j]),
                relative_efficiency=random / error**2 if error > 0 else np.inf,
            )
        )
    return tuple(rows)


POWER = 0.8
"""How often a difference of this size is shown, in repeated draws."""


def detectable_difference(
    standard_errors: tuple[float, float],
    *,
    confidence_level: float = 0.95,
    power: float = POWER,
    correlation: float = 0.0,
) -> float:
    """Return the difference of two means that a two-sided test on the same labels shows with this power.

    (z_(1 − α/2) + z_power) √(SE_a² + SE_b² − 2 ρ SE_a SE_b); Cochran, 4.6, paired.

    Parameters
    ----------
    standard_errors : (float, float)
        Of the two models' means.
    confidence_level, power : float
    correlation : float
        Of the two means; 0 if the models err on unrelated units, more where they err on the same ones.

    Examples
    --------
    >>> round(detectable_difference((0.02, 0.02)), 4)
    0.0792
    """
    first, second = standard_errors
    variance = first**2 + second**2 - 2 * correlation * first * second
    reach = student_quantile((1.0 - confidence_level) / 2.0, np.inf) + student_quantile(1.0 - power, np.inf)
    return -float(reach) * math.sqrt(max(variance, 0.0))
