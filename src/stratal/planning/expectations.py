"""What to expect of a design and an estimator before any label is known: closed forms on strata.

A plan is a promise made before any label, on the word of a proxy. The promise is therefore a range over the
ways in which the proxy may be off: the outcome's log-odds may be shifted against the proxy's and flatter or
steeper, and a graded outcome may be less spread than its bounds allow. The hopeful end is the least standard
error over these ways, the cautious end the largest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.allocation import Allocation
from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.planning.earlier_labels import EarlierLabels
from stratal.strata import Strata
from stratal.strata.moments import (
    CALIBRATION_SLOPE,
    OFFSETS,
    SLOPES,
    expected_variance,
    scenarios,
)

if TYPE_CHECKING:
    from stratal.population.population import Population

ESTIMATORS = ("horvitz-thompson", "difference", "ppi++")
"""The estimators that a plan compares under each design."""

RESIDUAL_SHARE = 0.5
"""Residual standard deviation over the proxy's own, assumed of outcomes without bounds unless given: a
correlation of .89."""


_MANY = 20
"""Units from which on a different whole number in each is a number of the unit, seldom a score."""

LIKELY_SCALES = ((1.0, 5.0), (0.0, 5.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0))
"""Scales on which scores are often given, narrow ones first."""

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
    has_proxy = math.isfinite(whole.proxy_means[0])
    usable: tuple[str, ...] = ESTIMATORS if has_proxy else ESTIMATORS[:1]
    if not whole.scaled:
        usable = tuple(name for name in usable if name != "difference")
    unknown: dict[str, float | None] = dict.fromkeys(_EXPECTED)
    n_h, census = allocation.n_h, allocation.budget == whole.sizes[0]
    blind = not (has_proxy and whole.scaled) or (whole.standard_deviations[0] == 0 and not census)
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


def with_residual(strata: Strata, residual_sd: float | None) -> Strata:
    """Return strata whose outcome also varies where the proxy does not: for outcomes without bounds.

    Parameters
    ----------
    strata : Strata
        Those of an outcome within bounds stay as they are.
    residual_sd : float, optional
        Standard deviation of outcome less proxy; half the proxy's own if left out.

    Examples
    --------
    >>> import stratal
    >>> counts = stratal.Population.from_arrays(proxy=[0.0, 2.0, 4.0, 9.0], scaled=True)
    >>> with_residual(stratal.stratify(counts, "none"), 2.0).conditional_variances
    array([4.])
    """
    bounded = math.isfinite(strata.bounds[1] - strata.bounds[0])
    if residual_sd is not None and (bounded or not strata.scaled):
        raise InputError(
            "residual_sd would have no effect",
            given="bounds {:g} to {:g}".format(*strata.bounds) if bounded else "a proxy that only orders",
            allowed="residual_sd= (--residual-sd) with a proxy on the scale of an outcome without bounds",
            action="Leave it out.",
        )
    if bounded or not strata.scaled or (residual_sd is None and np.any(strata.conditional_variances > 0)):
        return strata
    means, weights = strata.proxy_means, strata.weights
    spread = float(weights @ (strata.proxy_variances + (means - weights @ means) ** 2))
    left = RESIDUAL_SHARE**2 * spread if residual_sd is None else residual_sd**2
    return replace(strata, conditional_variances=np.full(strata.n_strata, left))


def assumptions(whole: Strata, labels: EarlierLabels | None = None) -> tuple[str, ...]:
    """Return what the expectations of a population rest on: labels that are in already, or the proxy's word.

    Examples
    --------
    >>> import stratal
    >>> assumptions(stratal.stratify(stratal.Population.from_arrays(groups={"g": ["a"]}), "none"))
    ('Nothing is known of the outcome before the first label.',)
    """
    if labels is not None:
        return (*labels.assumptions, _ALL_COME_BACK)
    if not math.isfinite(whole.proxy_means[0]):
        return ("Nothing is known of the outcome before the first label.",)
    if not whole.scaled:
        scale = "" if math.isfinite(whole.bounds[1] - whole.bounds[0]) else ", if labels are 0 or 1"
        return (f"The proxy only orders units, so that nothing better than the worst is known{scale}.",)
    if whole.standard_deviations[0] == 0:
        return ("The proxy calls every outcome certain: no standard error can be expected from it alone.",)
    low, high = whole.bounds
    if not math.isfinite(high - low):
        left = math.sqrt(float(whole.conditional_variances[0]))
        return (
            f"The outcome has no bounds: its standard deviation about the proxy is taken to be {left:.4g}, "
            "half to twice that in the range; better give it (residual_sd=, --residual-sd) or label a pilot.",
            _ALL_COME_BACK,
        )
    return (
        f"Outcomes follow the proxy with a slope of {CALIBRATION_SLOPE}: most proxies are too sure.",
        f"Hopeful to cautious: log-odds off by up to {OFFSETS[-1]:g} either way, and {SLOPES[0]:g} to "
        f"{SLOPES[-1]:g} times as steep as the proxy's.",
        _ALL_COME_BACK,
    )


_ALL_COME_BACK = "All labels that are asked for come back."


def _numbered(values: FloatArray, size: int) -> bool:
    """Return whether the sorted values of a proxy number the units: whole, and no two alike."""
    whole = np.array_equal(values, np.floor(values))
    apart = len(values) == size or values[-1] - values[0] == size - 1
    return bool(size >= _MANY and whole and apart)


def scale_notes(population: Population, proxy: str | None) -> tuple[str, ...]:
    """Return what to ask of a proxy on no known scale that looks like percent, a rating or row numbers.

    Examples
    --------
    >>> import stratal
    >>> scale_notes(stratal.Population.from_arrays(proxy=[87.0, 12.5, 99.0]), None)[0][:64]
    "Does 'proxy', 12.5 to 99, predict labels on a scale of 0 to 100?"
    """
    if not population.proxies:
        return ()
    info = population.proxy_info(proxy)
    if info.scaled or info.bounds is not None:
        return ()
    values = population.distribution(info.name).values
    least, most = float(values[0]), float(values[-1])
    if _numbered(values, population.size):
        return (
            f"'{info.name}' is another whole number in each row, {least:g} to {most:g}, as a row number is. "
            "Does it tell which units are right? Else name another column.",
        )
    fitting = [scale for scale in LIKELY_SCALES if scale[0] <= least and most <= scale[1]]
    if not fitting:
        return ()
    low, high = fitting[0]
    return (
        f"Does '{info.name}', {least:g} to {most:g}, predict labels on a scale of {low:g} to {high:g}? "
        f"Then give bounds=({low:g}, {high:g}) (--proxy-bounds {low:g},{high:g}). "
        "Pass/fail labels: label='pass/fail' (--label pass/fail).",
    )
