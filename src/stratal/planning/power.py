"""Labels by which a difference shows, and what labels and predictions cost, before there is any file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from stratal.arrays import Record
from stratal.errors import InputError, names_mistyped, not_positive
from stratal.intervals.interval import tail_shares
from stratal.strata.allocation import whole_number

# Chance that a difference shows, as plans of studies usually have it (Cohen 1988).
POWER = 0.8


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
            if 1 <= share < 100:
                percent = f"For {share:g} % write {share / 100:g}."
            else:
                percent = None
            raise InputError(f"{name} must lie between 0 and 1", given=f"{share:g}", action=percent)
    tail_shares(confidence_level, "two-sided")
    if equal_answers is None:
        different = 1.0
    else:
        different = round(1.0 - equal_answers, 12)
    low, high = sorted((rate, rate - detect if rate > 0.5 else rate + detect))
    if low <= 0 or high >= 1 or detect > different:
        raise InputError(
            "two models cannot differ by so much",
            given=f"{detect:g} at a rate of {rate:g}"
            + ("" if equal_answers is None else f" and {equal_answers:g} equal answers"),
            allowed="a difference smaller than the share of different answers, between rates from 0 to 1",
        )
    if population_size is None:
        size = math.inf
    else:
        size = float(whole_number("population_size", population_size))
    z_level, z_power = (NormalDist().inv_cdf(share) for share in ((1.0 + confidence_level) / 2.0, power))

    def enough(labels: float, items: float = size) -> int:
        """Return the labels among so many items: fewer than of infinitely many."""
        return math.ceil(labels / (1.0 + labels / items) - 1e-9)

    # One of both right alone: where answers differ, up to what the rates allow; or by chance.
    discordant = low * (1.0 - high) + high * (1.0 - low)
    if equal_answers is not None:
        discordant = min(different, detect + 2.0 * min(low, 1.0 - high))
    paired = (z_level * math.sqrt(discordant) + z_power * math.sqrt(discordant - detect**2)) ** 2 / detect**2
    rows = {"both models on the same items": enough(paired)}
    squared = ((z_level + z_power) / detect) ** 2
    if equal_answers is not None:
        new_version_row = (
            f"a new version, if {enough(paired):,} labels of the old one are there: where it changed"
        )
        changed = enough(different * paired, different * size)
        rows |= {"the same, labelled only where answers differ": changed, new_version_row: changed}
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
    """Return the half-width of an interval by which a difference shows with this chance."""
    z_level, z_power = (NormalDist().inv_cdf(share) for share in ((1.0 + confidence_level) / 2.0, power))
    return detect * z_level / (z_level + z_power)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestSamples(Record):
    """How many units to label, and how many to predict in all.

    Parameters
    ----------
    labels : int
        n, labelled and predicted.
    predictions : int
        N, predicted, the labelled ones among them; n where predictions do not pay.
    cost : float
        n · label_cost + N · prediction_cost; without predictions n · label_cost.
    standard_error : float

    Examples
    --------
    >>> CheapestSamples(labels=10, predictions=10, cost=10.0, standard_error=0.1).labels
    10
    """

    labels: int
    predictions: int
    cost: float
    standard_error: float


def cheapest_samples(
    *,
    variance: float,
    correlation: float,
    label_cost: float,
    prediction_cost: float,
    standard_error: float | None = None,
    difference: float | None = None,
    power: float = 0.8,
    confidence_level: float = 0.95,
) -> CheapestSamples:
    """Return the cheapest n and N for a mean that is estimated with a tuned proxy, when predictions cost too.

    The variance is σ² [(1 − ρ²)/n + ρ²/N], and the best share of labelled units is
    √((1 − ρ²)/ρ² · prediction_cost/label_cost); where that is 1 or more, predictions do not pay.

    Parameters
    ----------
    variance : float
        σ² of the outcome: p(1 − p) for a share.
    correlation : float
        ρ of outcome and prediction.
    label_cost, prediction_cost : float
        Of one label, and of one prediction.
    standard_error : float, optional
        What is wanted; or instead
    difference : float, optional
        From a fixed value, to be found with `power` by a two-sided test.
    power, confidence_level : float
        Of `difference`.

    Raises
    ------
    InputError
        If not exactly one of `standard_error` and `difference` is given, or a number is out of range.

    Notes
    -----
    Cochran (1977), section 12.7, double sampling for regression; what ppi_py calls `ppi_power`. The target
    is the superpopulation's mean.

    Examples
    --------
    >>> found = cheapest_samples(variance=0.16, correlation=0.8, label_cost=1.0, prediction_cost=0.01,
    ...                          standard_error=0.02)
    >>> found.labels, found.predictions, round(found.cost, 2)
    (163, 2197, 184.97)
    >>> cheapest_samples(variance=0.16, correlation=0.05, label_cost=1.0, prediction_cost=0.01,
    ...                  standard_error=0.02).labels
    400
    """
    goal = {"standard_error": standard_error, "difference": difference}
    positive = {"variance": variance, "label_cost": label_cost, "prediction_cost": prediction_cost}
    for name, value in (positive | goal).items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise not_positive(name, value)
    shares = 0 < power < 1 and 0 < confidence_level < 1 and -1 < correlation < 1
    if not shares or (standard_error is None) == (difference is None):
        problem = "give a standard error or a difference, a correlation, and shares as power and level"
        options = f"{goal}, {correlation=}, {power=}, {confidence_level=}"
        raise InputError(problem, given=options, allowed="shares below 1")
    normal = NormalDist()
    steps = normal.inv_cdf(0.5 + confidence_level / 2) + normal.inv_cdf(power)
    if standard_error is None:
        target_error = (difference or 0.0) / steps
    else:
        target_error = standard_error
    explained = correlation**2
    target = target_error**2 / variance
    if explained:
        share = math.sqrt((1 - explained) * prediction_cost / (explained * label_cost))
    else:
        share = math.inf
    labels_only = math.ceil(1 / target - 1e-9)
    best = CheapestSamples(
        labels=labels_only,
        predictions=labels_only,
        cost=labels_only * label_cost,
        standard_error=math.sqrt(variance / labels_only),
    )
    if share >= 1:
        return best
    centre = ((1 - explained) + explained * share) / target
    for n in range(max(2, math.floor(centre) - 1), math.ceil(centre) + 2):
        remaining_variance = target - (1 - explained) / n
        if remaining_variance <= 0:
            continue
        total = max(n, math.ceil(explained / remaining_variance - 1e-9))
        cost = n * label_cost + total * prediction_cost
        if cost < best.cost:
            error = math.sqrt(variance * ((1 - explained) / n + explained / total))
            best = CheapestSamples(labels=n, predictions=total, cost=cost, standard_error=error)
    return best
