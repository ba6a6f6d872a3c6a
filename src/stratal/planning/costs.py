"""What labels and predictions cost together: the cheapest pair of sample sizes for an error or a power."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from stratal.arrays import Record
from stratal.errors import InputError, not_positive


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
        raise InputError(
            "give a standard error or a difference, a correlation, and shares as power and level",
            given=f"{goal}, {correlation=}, {power=}, {confidence_level=}",
            allowed="shares below 1",
        )
    normal = NormalDist()
    steps = normal.inv_cdf(0.5 + confidence_level / 2) + normal.inv_cdf(power)
    wanted = (difference or 0.0) / steps if standard_error is None else standard_error
    explained, target = correlation**2, wanted**2 / variance
    share = math.sqrt((1 - explained) * prediction_cost / (explained * label_cost)) if explained else math.inf
    alone = math.ceil(1 / target - 1e-9)
    best = CheapestSamples(
        labels=alone, predictions=alone, cost=alone * label_cost, standard_error=math.sqrt(variance / alone)
    )
    if share >= 1:
        return best
    centre = ((1 - explained) + explained * share) / target
    for n in range(max(2, math.floor(centre) - 1), math.ceil(centre) + 2):
        left = target - (1 - explained) / n
        if left <= 0:
            continue
        total = max(n, math.ceil(explained / left - 1e-9))
        cost = n * label_cost + total * prediction_cost
        if cost < best.cost:
            error = math.sqrt(variance * ((1 - explained) / n + explained / total))
            best = CheapestSamples(labels=n, predictions=total, cost=cost, standard_error=error)
    return best
