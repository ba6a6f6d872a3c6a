"""Labels by which a difference shows: of two models on the same items, of two versions, of a kappa.

Before there is any file: from the share of right answers and how often both models answer alike.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

from stratal.errors import InputError, names_mistyped
from stratal.intervals.interval import tail_shares
from stratal.strata.integers import whole_number

POWER = 0.8
"""Chance that a difference shows, as plans of studies usually have it (Cohen 1988)."""


@names_mistyped
def plan_to_detect(
    detect: float,
    *,
    rate: float = 0.5,
    equal_answers: float | None = None,
    power: float = POWER,
    confidence_level: float = 0.95,
    population_size: int | None = None,
) -> dict[str, Any]:
    """Return how many items need a label for a difference to show, before there is any file.

    Parameters
    ----------
    detect : float
        The difference of two shares of right answers, or of a kappa from a limit, such as 0.02.
    rate : float
        Share of right answers of one model; that of the other is `detect` nearer to one half. For a kappa,
        the share that people pass.
    equal_answers : float, optional
        Share of the items on which both answer alike, and so are both right or both wrong; for a kappa, how
        often judge and people agree. Without it the models err independently.
    power : float
        Chance that it shows: that the interval excludes 0, or the limit.
    confidence_level : float
    population_size : int, optional
        Items in all; very many unless given.

    Returns
    -------
    dict
        What was given, and `detections`: of each `comparison` the `labels`, which are items that are looked
        at once, for the answers of both models.

    Raises
    ------
    InputError
        For shares outside (0, 1), and for a difference that there cannot be.

    Notes
    -----
    Paired labels: n = (z_α √q + z_β √(q − D²))² / D² (Connor 1987), with q the share of items on which one of
    both is right alone: those with different answers, as between two classes, or fewer if the rates allow no
    more. A kappa has its linearised variance (Fleiss, Cohen & Everitt 1969) with equal margins.

    Examples
    --------
    >>> found = plan_to_detect(0.02, rate=0.8, equal_answers=0.9)
    >>> [(row["comparison"], row["labels"]) for row in found["detections"]][:2]
    [('both models on the same items', 1960), ('the same, labelled only where answers differ', 196)]
    """
    shares = {"detect": detect, "rate": rate, "equal_answers": equal_answers, "power": power}
    for name, share in shares.items():
        if share is not None and not 0 < share < 1:
            percent = f"For {share:g} % write {share / 100:g}." if 1 <= share < 100 else None
            raise InputError(f"{name} must lie between 0 and 1", given=f"{share:g}", action=percent)
    tail_shares(confidence_level, "two-sided")
    different = 1.0 if equal_answers is None else round(1.0 - equal_answers, 12)
    low, high = sorted((rate, rate - detect if rate > 0.5 else rate + detect))
    if low <= 0 or high >= 1 or detect > different:
        raise InputError(
            "two models cannot differ by so much",
            given=f"{detect:g} at a rate of {rate:g}"
            + ("" if equal_answers is None else f" and {equal_answers:g} equal answers"),
            allowed="a difference smaller than the share of different answers, between rates from 0 to 1",
        )
    size = math.inf if population_size is None else float(whole_number("population_size", population_size))
    z_level, z_power = (NormalDist().inv_cdf(share) for share in ((1.0 + confidence_level) / 2.0, power))

    def enough(labels: float, items: float = size) -> int:
        """Return the labels among so many items: fewer than of infinitely many."""
        return math.ceil(labels / (1.0 + labels / items) - 1e-9)

    # One of both right alone: where answers differ, up to what the rates allow; or by chance.
    alone = low * (1.0 - high) + high * (1.0 - low)
    if equal_answers is not None:
        alone = min(different, detect + 2.0 * min(low, 1.0 - high))
    paired = (z_level * math.sqrt(alone) + z_power * math.sqrt(alone - detect**2)) ** 2 / detect**2
    rows = {"both models on the same items": enough(paired)}
    squared = ((z_level + z_power) / detect) ** 2
    if equal_answers is not None:
        changed = enough(different * paired, different * size)
        rows["the same, labelled only where answers differ"] = changed
        rows[f"a new version, if {enough(paired):,} labels of the old one are there: where it changed"] = (
            changed
        )
    rows["each model on items of its own, together"] = 2 * enough(
        squared * (low * (1.0 - low) + high * (1.0 - high))
    )
    if equal_answers is not None and different / 2.0 < min(rate, 1.0 - rate):
        value, variance = _kappa(equal_answers, rate)
        rows[f"a judge's kappa of {value:.2f} to differ so much from a limit"] = enough(squared * variance)
    return {
        "detect": detect,
        "power": power,
        "confidence_level": confidence_level,
        "population_size": population_size,
        "detections": [{"comparison": name, "labels": count} for name, count in rows.items()],
    }


def _kappa(agreed: float, rate: float) -> tuple[float, float]:
    """Return Cohen's kappa of two raters who both pass this share, and its variance times n."""
    chance = rate**2 + (1.0 - rate) ** 2
    value = (agreed - chance) / (1.0 - chance)
    apart = (1.0 - agreed) / 2.0
    cells = {(1, 1): rate - apart, (1, 0): apart, (0, 1): apart, (0, 0): 1.0 - rate - apart}
    margins = (1.0 - rate, rate)
    variables = [
        ((a == b) - agreed + (value - 1.0) * (margins[a] + margins[b] - 2.0 * chance)) / (1.0 - chance)
        for a, b in cells
    ]
    return value, sum(share * u**2 for share, u in zip(cells.values(), variables, strict=True))


def width_to_detect(detect: float, power: float = POWER, confidence_level: float = 0.95) -> float:
    """Return the half-width of an interval by which a difference shows with this chance.

    Examples
    --------
    >>> round(width_to_detect(0.02), 4)
    0.014
    """
    z_level, z_power = (NormalDist().inv_cdf(share) for share in ((1.0 + confidence_level) / 2.0, power))
    return detect * z_level / (z_level + z_power)
