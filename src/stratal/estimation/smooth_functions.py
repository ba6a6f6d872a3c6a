"""Other targets on the same labels: smooth functions of means, ratios, quantiles, and ranking metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError, LabelError, names_mistyped
from stratal.estimation.classes import class_text
from stratal.estimation.columns import class_column, number_column, number_columns
from stratal.estimation.estimate_table import EstimateTable, title_of
from stratal.estimation.fieller import Fieller
from stratal.estimation.linearisation import Linearised, ratio_of_means, smooth_mean_function
from stratal.estimation.quantile import quantile_interval
from stratal.estimation.quantity import Quantity
from stratal.estimation.ranking import ranking_metric
from stratal.estimation.respondents import Respondents
from stratal.intervals.guard import ROUNDING
from stratal.intervals.interval import ConfidenceInterval
from stratal.sampling.sample import Sample


@names_mistyped
def smooth_function(
    sample: Sample,
    variables: Mapping[str, Any],
    function: Callable[..., float],
    *,
    gradient: Callable[[FloatArray], FloatArray] | None = None,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
) -> Quantity:
    """Estimate any smooth function of the population means of several variables, by linearisation.

    Parameters
    ----------
    sample : Sample
    variables : mapping of name to values
        Each a mapping of id to number, an array in the order of `sample.ids`, a Series or Labels. Units that
        lack one of them are left out, as nonresponse.
    function : callable
        Takes the means as keyword arguments, named as the variables are, and returns a number.
    gradient : callable, optional
        Takes the means (q,), returns the partial derivatives (q,); central differences if not given.
    bounds : (float, float), optional
        What the function cannot leave; cuts the interval.
    target : {"population", "superpopulation"}

    Returns
    -------
    Quantity
        With `confidence_interval` (Student's t) and `p_value`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 60)
    >>> sample = stratal.SimpleRandom(budget=4).draw(population, seed=7)
    >>> spread = stratal.smooth_function(
    ...     sample, {"z": [1, 2, 3, 4], "square": [1, 4, 9, 16]}, lambda z, square: (square - z**2) ** 0.5)
    >>> round(spread.value, 4)
    1.118
    """
    if not variables:
        raise InputError("smooth_function needs at least one variable", action="Name them: {'z': labels}.")
    columns, labelled = number_columns(sample, variables)
    frame = Respondents.of(sample, labelled)
    names = list(variables)
    result = smooth_mean_function(
        columns,
        lambda means: float(function(**dict(zip(names, means.tolist(), strict=True)))),
        frame.weighting,
        gradient=gradient,
        target=target,
    )
    return _quantity(result, len(columns), bounds, "function")


@names_mistyped
def ratio(sample: Sample, numerator: Any, denominator: Any, *, target: str = "population") -> Quantity:
    """Estimate the ratio of the means of two outcomes, such as errors per answer word.

    Its interval is Fieller's, for few and skewed labels (`stratal.estimation.fieller`); an end is infinite
    where the labels do not tell the denominator's mean from 0.

    Parameters
    ----------
    sample : Sample
    numerator, denominator : mapping of id to number, array in the order of `sample.ids`, Series or Labels
    target : {"population", "superpopulation"}

    Raises
    ------
    InputError
        If the denominator's estimated mean is 0.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 60)
    >>> sample = stratal.SimpleRandom(budget=4).draw(population, seed=7)
    >>> stratal.ratio(sample, [1, 2, 3, 4], [2, 4, 6, 8]).value
    0.5
    """
    columns, labelled = number_columns(sample, {"numerator": numerator, "denominator": denominator})
    frame = Respondents.of(sample, labelled)
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        result = ratio_of_means(columns[:, 0], columns[:, 1], frame.weighting, target)
    if not np.isfinite(result.value):
        raise InputError(
            "the denominator's mean is 0, so there is no ratio",
            action="Check the denominator, or label units in which it is not 0.",
        )
    found = _quantity(result, len(columns), None, "ratio")
    if not (np.isfinite(result.variance) and result.variance > ROUNDING * result.value**2):
        return found  # all labels agree, or there is one: refused an interval as any such outcome is
    lowest = 0.0 if np.all(columns >= 0) else -np.inf
    reach = Fieller.of(columns[:, 0], columns[:, 1], frame.weighting, target)
    return replace(found, parts=reach, bounds=(lowest, np.inf))


@names_mistyped
def quantile(
    sample: Sample,
    labels: Any,
    probability: float,
    *,
    bounds: tuple[float, float] | None = None,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
) -> tuple[Quantity, ConfidenceInterval]:
    """Estimate a quantile of a numeric outcome, with Woodruff's interval.

    Parameters
    ----------
    sample : Sample
    labels : mapping of id to number, array in the order of `sample.ids`, Series or Labels
    probability : float
        ½ is the median.
    bounds : (float, float), optional
        What the outcome cannot leave; ends are there, or infinite, where the labels do not reach.
    confidence_level, alternative
        See `Estimate.confidence_interval`.

    Raises
    ------
    InputError
        For a probability outside (0, 1), and where one label leaves the standard error unknown.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 60)
    >>> sample = stratal.SimpleRandom(budget=9).draw(population, seed=7)
    >>> median, interval = stratal.quantile(sample, [1, 2, 3, 4, 5, 6, 7, 8, 9], 0.5)
    >>> median.value, interval.low, interval.high
    (5.0, 2.0, 8.0)
    """
    columns, labelled = number_columns(sample, {"labels": labels})
    frame = Respondents.of(sample, labelled)
    quantity, interval = quantile_interval(
        columns[:, 0],
        probability,
        frame.weighting,
        confidence_level=confidence_level,
        alternative=alternative,
        bounds=bounds,
    )
    if not np.isfinite(quantity.standard_error):
        raise InputError(
            "the standard error of a quantile cannot be estimated",
            given=f"{len(columns)} label{'s' if len(columns) > 1 else ''}",
            action="Label at least 2 units, drawn by chance.",
        )
    return quantity, interval


@names_mistyped
def ranking_metrics(
    sample: Sample,
    y_true: Any,
    score: Any = None,
    *,
    positive: Any = 1,
    metrics: Sequence[str] | str = ("auc", "average_precision"),
    target: str = "population",
    confidence_level: float = 0.95,
) -> EstimateTable:
    """Estimate how well a score ranks positives above negatives in the whole population.

    Parameters
    ----------
    sample : Sample
    y_true : mapping of id to class, array in the order of `sample.ids`, Series or Labels
    score : str, array or mapping, optional
        Name of a proxy, or scores of the drawn units; the only proxy if not given.
    positive : class
        The class that should rank high.
    metrics : sequence of str
        Of `auc` (ties count one half) and `average_precision`.
    target : {"population", "superpopulation"}
    confidence_level : float

    Returns
    -------
    EstimateTable
        Rows as those of `classification_metrics`; n is the number of labels of the smaller class.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.9, 0.4, 0.8, 0.3, 0.7])
    >>> sample = stratal.SimpleRandom(budget=5).draw(population, seed=7)
    >>> labels = {int(unit): int(unit % 2 == 1) for unit in sample.ids}
    >>> stratal.ranking_metrics(sample, labels, metrics="auc").rows[0]["metric"]
    'auc'
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    true = class_column(sample, y_true, "y_true")
    scores = number_column(sample, _only_proxy(sample) if score is None else score, "score")
    labelled = np.array([entry is not None for entry in true], dtype=bool)
    if not np.any(labelled):
        raise LabelError("no unit is labelled yet", allowed="at least one label")
    if np.any(np.isnan(scores[labelled])):
        raise LabelError("score: a labelled unit has none", allowed="a number for every labelled unit")
    frame = Respondents.of(sample, labelled)
    hits = np.array([entry == class_text(positive) for entry in true[labelled]], dtype=bool)
    rows, notes = [], list(frame.notes)
    for name in names:
        quantity = ranking_metric(name, scores[labelled], hits, frame.weighting, target)
        rows.append({"metric": name, "class": class_text(positive), **quantity.row(confidence_level)})
        notes.extend(f"{name}: {note}" for note in quantity.notes)
    return EstimateTable(
        kind="metrics",
        title=title_of(sample, len(hits), target),
        rows=tuple(rows),
        confidence_level=confidence_level,
        notes=tuple(notes),
    )


def _quantity(result: Linearised, n: int, bounds: tuple[float, float] | None, what: str) -> Quantity:
    if not np.isfinite(result.standard_error):
        raise InputError(
            f"the standard error of the {what} cannot be estimated",
            given=f"{n} label{'s' if n > 1 else ''}, value {result.value:g}",
            action="Label at least 2 units; rescale what is far from 1.",
        )
    return Quantity(
        value=result.value,
        standard_error=result.standard_error,
        degrees_of_freedom=max(result.degrees_of_freedom, 1.0),
        n=n,
        bounds=bounds,
    )


def _only_proxy(sample: Sample) -> str:
    if len(sample.proxy_names) != 1:
        raise InputError(
            "say which score is meant",
            given=f"{len(sample.proxy_names)} proxies",
            allowed=", ".join(map(repr, sample.proxy_names)) or "an array of scores",
        )
    return sample.proxy_names[0]
