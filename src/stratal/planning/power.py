"""Sample sizes for the detection of a difference, and for given costs of labels and predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from stratal.arrays import Record
from stratal.errors import InputError, not_positive_error
from stratal.intervals.interval import check_confidence_level
from stratal.planning.expected_widths import DEFAULT_POWER
from stratal.protocols import JsonDict
from stratal.strata.arguments import whole_number
from stratal.whole_numbers import rounded_up


def plan_to_detect(
    detect: float,
    *,
    rate: float = 0.5,
    equal_answers: float | None = None,
    power: float = DEFAULT_POWER,
    confidence_level: float = 0.95,
    population_size: int | None = None,
) -> JsonDict:
    """Return how many items need a label to detect a difference, before there is any file.

    Parameters
    ----------
    detect : float
        The difference of two accuracies, or of a kappa from a limit, such as 0.02.
    rate : float
        Accuracy of one model; that of the other is closer to one half by `detect`. For a kappa, the share of
        items that people pass.
    equal_answers : float, optional
        Share of the items on which both models give the same answer, and are therefore both right or both
        wrong; for a kappa, the share on which judge and people agree. Default: the errors are independent.
    power : float
        Probability that the interval excludes 0, or the limit.
    confidence_level : float
    population_size : int, optional
        Number of items; infinite by default.

    Returns
    -------
    dict
        The arguments, and `detections`: the number of `labels` for each `comparison`. A labelled item counts
        once, even if its label is compared with the answers of two models.

    Raises
    ------
    InputError
        For shares outside (0, 1), and for a difference that is impossible.

    Notes
    -----
    Paired labels: n = (z_α √q + z_β √(q − D²))² / D² (Connor 1987), where q is the share of items on which
    only one of the two models is right: with two classes, the items with different answers, or fewer if the
    rates do not allow this number. A kappa has its linearised variance (Fleiss, Cohen & Everitt 1969) with
    equal margins.

    Examples
    --------
    >>> result = plan_to_detect(0.02, rate=0.8, equal_answers=0.9)
    >>> [(row["comparison"], row["labels"]) for row in result["detections"]][:2]
    [('both models on the same items', 1960), ('the same items, labelled only where answers differ', 196)]
    """
    shares = {"detect": detect, "rate": rate, "equal_answers": equal_answers, "power": power}
    for name, share in shares.items():
        if share is not None:
            check_share(name, share)
    check_confidence_level(confidence_level)
    # Rounded, so that shares such as 1 − 0.9 give whole numbers of labels.
    if equal_answers is None:
        different_share = 1.0
    else:
        different_share = round(1.0 - equal_answers, 12)
    other_rate = rate + detect
    if rate > 0.5:
        other_rate = rate - detect
    low = min(rate, other_rate)
    high = max(rate, other_rate)
    if low <= 0 or high >= 1 or detect > different_share:
        answers_text = ""
        if equal_answers is not None:
            answers_text = f" and {equal_answers:g} equal answers"
        raise InputError(
            "two models cannot differ by this amount",
            given=f"{detect:g} at a rate of {rate:g}{answers_text}",
            allowed="a difference below the share of different answers, with both rates between 0 and 1",
        )
    if population_size is None:
        size = math.inf
    else:
        size = float(whole_number("population_size", population_size))
    z_level = NormalDist().inv_cdf((1.0 + confidence_level) / 2.0)
    z_power = NormalDist().inv_cdf(power)
    # Share of the items on which only one model is right (q in the docstring).
    discordant_share = low * (1.0 - high) + high * (1.0 - low)  # independent errors
    if equal_answers is not None:
        discordant_share = min(different_share, detect + 2.0 * min(low, 1.0 - high))
    sum_of_errors = z_level * math.sqrt(discordant_share) + z_power * math.sqrt(discordant_share - detect**2)
    paired_labels = sum_of_errors**2 / detect**2
    unit_labels = ((z_level + z_power) / detect) ** 2  # for an outcome of variance 1
    n_paired = _finite_sample_size(paired_labels, size)
    labels_by_comparison = {"both models on the same items": n_paired}
    if equal_answers is not None:
        n_changed = _finite_sample_size(different_share * paired_labels, different_share * size)
        labels_by_comparison["the same items, labelled only where answers differ"] = n_changed
        name = f"a new version, given {n_paired:,} labels of the old one: labels of changed answers"
        labels_by_comparison[name] = n_changed
    separate_variance = low * (1.0 - low) + high * (1.0 - high)
    n_separate = _finite_sample_size(unit_labels * separate_variance, size)
    labels_by_comparison["each model on its own items, in total"] = 2 * n_separate
    # With equal margins, half of the different answers are of each kind.
    if equal_answers is not None and different_share / 2.0 < min(rate, 1.0 - rate):
        kappa, variance = _kappa(equal_answers, rate)
        name = f"a judge's kappa of {kappa:.2f}, which differs by this amount from a limit"
        labels_by_comparison[name] = _finite_sample_size(unit_labels * variance, size)
    return {
        "detect": detect,
        "power": power,
        "confidence_level": confidence_level,
        "population_size": population_size,
        "detections": [{"comparison": name, "labels": count} for name, count in labels_by_comparison.items()],
    }


def check_share(name: str, share: float) -> None:
    """Raise an error if a share does not lie between 0 and 1."""
    if not 0 < share < 1:
        percent = None
        # Such a number is probably a percentage.
        if 1 <= share < 100:
            percent = f"For {share:g}% write {share / 100:g}."
        raise InputError(f"{name} must lie between 0 and 1", given=f"{share:g}", action=percent)


def _finite_sample_size(n_labels: float, population_size: float) -> int:
    """Return the labels in a finite population that are as precise as `n_labels` in an infinite one.

    Cochran (1977), eq. 4.1.
    """
    return rounded_up(n_labels / (1.0 + n_labels / population_size))


def _kappa(agreement: float, rate: float) -> tuple[float, float]:
    """Return Cohen's kappa of two raters, from their agreement and rate of passes, and n times its variance.

    The variance is that of the linearised variable u (Fleiss, Cohen & Everitt 1969).
    """
    chance_agreement = rate**2 + (1.0 - rate) ** 2
    beyond_chance = 1.0 - chance_agreement
    kappa = (agreement - chance_agreement) / beyond_chance
    discordant_share = (1.0 - agreement) / 2.0
    # Shares of the items by the two ratings, 1 for a pass.
    cell_shares = {
        (1, 1): rate - discordant_share,
        (1, 0): discordant_share,
        (0, 1): discordant_share,
        (0, 0): 1.0 - rate - discordant_share,
    }
    margins = (1.0 - rate, rate)
    variance = 0.0
    for (first, second), share in cell_shares.items():
        margin_difference = margins[first] + margins[second] - 2.0 * chance_agreement
        u = ((first == second) - agreement + (kappa - 1.0) * margin_difference) / beyond_chance
        variance += share * u**2
    return kappa, variance


def width_to_detect(detect: float, power: float = DEFAULT_POWER, confidence_level: float = 0.95) -> float:
    """Return the half-width of an interval that detects a difference with this power."""
    z_level = NormalDist().inv_cdf((1.0 + confidence_level) / 2.0)
    z_power = NormalDist().inv_cdf(power)
    return detect * z_level / (z_level + z_power)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestSamples(Record):
    """How many units to label, and how many to predict.

    Parameters
    ----------
    labels : int
        n, the number of units that are labelled and predicted.
    predictions : int
        N, the number of predicted units, including the labelled ones; n if predictions are not worth their
        cost.
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
    power: float = DEFAULT_POWER,
    confidence_level: float = 0.95,
) -> CheapestSamples:
    """Return the cheapest n and N for a mean with a tuned proxy, if predictions have a cost.

    The variance is σ² [(1 − ρ²)/n + ρ²/N], and the best share of labelled units is
    √((1 − ρ²)/ρ² · prediction_cost/label_cost); if that is 1 or more, predictions are not worth their cost.

    Parameters
    ----------
    variance : float
        σ² of the outcome: p(1 − p) for a share.
    correlation : float
        ρ of outcome and prediction.
    label_cost, prediction_cost : float
        Cost of one label, and of one prediction.
    standard_error : float, optional
        Target standard error; the alternative is `difference`.
    difference : float, optional
        Difference from a fixed value, to be detected with `power` by a two-sided test.
    power, confidence_level : float
        Power and confidence level of the test for `difference`.

    Raises
    ------
    InputError
        If not exactly one of `standard_error` and `difference` is given, or a number is out of range.

    Notes
    -----
    Cochran (1977), section 12.7, double sampling for regression; `ppi_power` in ppi_py. The target
    is the superpopulation's mean.

    Examples
    --------
    >>> samples = cheapest_samples(variance=0.16, correlation=0.8, label_cost=1.0, prediction_cost=0.01,
    ...                            standard_error=0.02)
    >>> samples.labels, samples.predictions, round(samples.cost, 2)
    (163, 2197, 184.97)
    >>> cheapest_samples(variance=0.16, correlation=0.05, label_cost=1.0, prediction_cost=0.01,
    ...                  standard_error=0.02).labels
    400
    """
    goal = {"standard_error": standard_error, "difference": difference}
    positive = {"variance": variance, "label_cost": label_cost, "prediction_cost": prediction_cost}
    for name, value in (positive | goal).items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise not_positive_error(name, value)
    are_in_range = 0 < power < 1 and 0 < confidence_level < 1 and -1 < correlation < 1
    if not are_in_range or (standard_error is None) == (difference is None):
        problem = "a correlation, a power, a level, and either a standard error or a difference must be given"
        options = f"{goal}, {correlation=}, {power=}, {confidence_level=}"
        raise InputError(
            problem,
            given=options,
            allowed="power and level between 0 and 1, correlation between -1 and 1",
        )
    normal = NormalDist()
    if standard_error is None:
        quantiles = normal.inv_cdf(0.5 + confidence_level / 2) + normal.inv_cdf(power)
        target_error = (difference or 0.0) / quantiles
    else:
        target_error = standard_error
    explained = correlation**2
    relative_variance = target_error**2 / variance
    # Without predictions.
    n_labels = rounded_up(1 / relative_variance)
    cheapest = CheapestSamples(
        labels=n_labels,
        predictions=n_labels,
        cost=n_labels * label_cost,
        standard_error=math.sqrt(variance / n_labels),
    )
    labelled_share = math.inf
    if explained:
        labelled_share = math.sqrt((1 - explained) * prediction_cost / (explained * label_cost))
    if labelled_share >= 1:
        return cheapest
    optimum = ((1 - explained) + explained * labelled_share) / relative_variance
    # The best whole numbers lie next to the real optimum.
    for n in range(max(2, math.floor(optimum) - 1), math.ceil(optimum) + 2):
        remaining_variance = relative_variance - (1 - explained) / n
        if remaining_variance <= 0:
            continue
        n_predictions = max(n, rounded_up(explained / remaining_variance))
        cost = n * label_cost + n_predictions * prediction_cost
        if cost < cheapest.cost:
            error = math.sqrt(variance * ((1 - explained) / n + explained / n_predictions))
            cheapest = CheapestSamples(labels=n, predictions=n_predictions, cost=cost, standard_error=error)
    return cheapest
