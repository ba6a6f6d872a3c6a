"""Errors of numeric predictions as estimands: labels are the true numbers.

Mean error, mean absolute error, mean square and its root, R², the share within a tolerance, and the coverage
of prediction intervals, whose limits are two columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray, Record
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, Request
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.means import Mean
from stratal.estimation.resolve import named_groups, number_columns, split_answers
from stratal.estimation.respondents import Respondents, refuse_outside
from stratal.intervals.outcomes import OutcomeKind
from stratal.metrics.numeric_errors import (
    explained_share,
    heavy_tail_notes,
    mean_square,
    root_mean_square,
)
from stratal.metrics.ranking import only_proxy
from stratal.question.question import NUMBER
from stratal.report.notes import Note


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictedNumbers(Record):
    """Labels and predictions of the labelled units.

    Parameters
    ----------
    labels : float (m,)
    predictions : float (m, d)
        One column, or the lower and the upper limits of prediction intervals.
    labelled : bool (n,)
        Whether each drawn unit is labelled.
    bounds : (float, float), optional
        Stated bounds of labels and predictions.
    """

    labels: FloatArray
    predictions: FloatArray
    labelled: BoolArray
    bounds: tuple[float, float] | None = None

    @property
    def errors(self) -> FloatArray:
        """Prediction minus label (m,)."""
        return self.predictions[:, 0] - self.labels

    @property
    def max_error(self) -> float | None:
        """The largest possible absolute error; None without bounds."""
        if self.bounds is None:
            return None
        return self.bounds[1] - self.bounds[0]


class NumericComparison(Estimand):
    """A comparison of numeric predictions with the labels, which are numbers."""

    __slots__ = ()
    takes: ClassVar[tuple[str, ...]] = ("target", "population", "bounds")

    def prediction_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the columns of the predictions."""
        raise NotImplementedError

    def units(self, sample: Sample, labels: object, request: Request) -> PredictedNumbers:
        """Return labels and predictions of the units that have both.

        Raises
        ------
        LabelError
            For labels outside the stated bounds.
        InputError
            For predictions outside the stated bounds, and for a column that the sample does not have.
        """
        labels, new_predictions = split_answers(labels)
        columns: dict[str, Any] = {"label": labels}
        if new_predictions is not None:
            columns["prediction"] = new_predictions
        else:
            columns |= {f"prediction {name!r}": name for name in self.prediction_columns(sample)}
        numbers, labelled = number_columns(sample, columns)
        bounds = request.bounds
        label_bounds = sample.question.outcome.bounds
        if bounds is not None:
            refuse_outside(numbers[:, 0], sample, labelled, None, bounds)
            _refuse_predictions_outside(numbers[:, 1:], sample, labelled, bounds)
        # The bounds in the question are those of the labels; predictions may be outside.
        elif label_bounds is not None and np.all((numbers >= label_bounds[0]) & (numbers <= label_bounds[1])):
            bounds = label_bounds
        return PredictedNumbers(
            labels=numbers[:, 0], predictions=numbers[:, 1:], labelled=labelled, bounds=bounds
        )

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have label and prediction."""
        return self.units(sample, labels, DEFAULT_REQUEST).labelled


def _refuse_predictions_outside(
    predictions: FloatArray, sample: Sample, labelled: BoolArray, bounds: tuple[float, float]
) -> None:
    """Raise an error if predictions (m, d) are outside the bounds, which then do not limit the errors."""
    outside = (predictions < bounds[0]) | (predictions > bounds[1])
    if not np.any(outside):
        return
    first = np.unravel_index(int(np.argmax(outside)), outside.shape)
    first_outside = f"{predictions[first]:g} of id {str(sample.ids[labelled][first[0]])!r}"
    raise InputError(
        f"{int(outside.any(axis=1).sum())} predictions lie outside the bounds of the labels",
        given=first_outside,
        allowed=f"{bounds[0]:g} to {bounds[1]:g}",
        action="Clip the predictions to the bounds, or leave bounds= (--bounds) out.",
    )


@dataclass(frozen=True, slots=True)
class PredictionComparison(NumericComparison, listed_field="prediction", listed_example="forecast"):
    """A function of the errors of one column of predictions.

    Parameters
    ----------
    prediction : str, optional
        The column of the predictions: a proxy, or another column of the sample. Default: the column of the
        model's answers, otherwise the only proxy. It may be given with the labels: {"label": …, "predicted":
        …}.
    """

    prediction: str | None = None

    def prediction_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the one column."""
        # How to name the column, for an error.
        naming = replace(self, prediction="COLUMN").text
        return (self.prediction or sample.question.answer or only_proxy(sample, naming),)


class MeanErrorFunction(PredictionComparison):
    """The mean of a function of the error of each unit."""

    __slots__ = ()

    def outcome(self, units: PredictedNumbers) -> tuple[FloatArray, OutcomeKind, tuple[float, float] | None]:
        """Return the outcome (m,) of each labelled unit, and its scale and bounds."""
        raise NotImplementedError

    def _as_mean(self, sample: Sample, labels: object, request: Request) -> tuple[FloatArray, Request]:
        """Return outcomes of the drawn units (n,), NaN without a label, the request for their mean."""
        units = self.units(sample, labels, request)
        z, scale, bounds = self.outcome(units)
        outcomes = np.full(sample.size, np.nan)
        outcomes[units.labelled] = z
        # A proxy predicts the label, not the error, so that no estimator with a proxy is used.
        mean_request = replace(
            request, estimator="horvitz-thompson", outcome=scale, bounds=bounds, population=None
        )
        return outcomes, mean_request

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the mean."""
        outcomes, mean_request = self._as_mean(sample, labels, request)
        # The bounds of the sample are those of the labels, not of this outcome.
        mean = Mean().estimate(_without_bounds(sample), outcomes, mean_request)
        return replace(mean, label=self.label)

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return the mean of each group."""
        outcomes, mean_request = self._as_mean(sample, labels, request)
        return Mean().by(_without_bounds(sample), outcomes, group, mean_request)


def _without_bounds(sample: Sample) -> Sample:
    """Return the sample without the declared scale and bounds of its labels, for other outcomes."""
    question = sample.question.with_outcome(decoding=NUMBER, scale=None, bounds=None)
    return replace(sample, question=question)


@dataclass(frozen=True, slots=True)
class MeanError(MeanErrorFunction, kind="mean_error"):
    """The mean of prediction minus label: the bias of the predictions.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy={"forecast": [3.0, 5.0, 8.0, 4.0]})
    >>> sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=7)
    >>> stratal.estimate(sample, {0: 2, 1: 5, 2: 7, 3: 4}, estimand="mean_error:forecast").value
    0.5
    """

    def outcome(self, units: PredictedNumbers) -> tuple[FloatArray, OutcomeKind, tuple[float, float] | None]:
        """Return the errors."""
        max_error = units.max_error
        if max_error is None:
            return units.errors, "unbounded", None
        return units.errors, "bounded", (-max_error, max_error)


@dataclass(frozen=True, slots=True)
class MeanAbsoluteError(MeanErrorFunction, kind="mae"):
    """The mean absolute error.

    Examples
    --------
    >>> MeanAbsoluteError("forecast").text
    'mae:forecast'
    """

    def outcome(self, units: PredictedNumbers) -> tuple[FloatArray, OutcomeKind, tuple[float, float] | None]:
        """Return the absolute errors."""
        max_error = units.max_error
        if max_error is None:
            return np.abs(units.errors), "unbounded", None
        return np.abs(units.errors), "bounded", (0.0, max_error)


@dataclass(frozen=True, slots=True)
class WithinTolerance(MeanErrorFunction, kind="within", listed_field="tolerance", listed_example="0.5"):
    """The share of units whose prediction differs from the label by no more than a tolerance.

    Parameters
    ----------
    tolerance : float
        In the unit of the labels, at least 0.

    Examples
    --------
    >>> WithinTolerance(tolerance=0.5, prediction="forecast").text
    'within:prediction=forecast,0.5'
    >>> Estimand.parse_text("within:0.5").tolerance
    0.5
    """

    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.tolerance) and self.tolerance >= 0):
            action = "Write within:0.5 for errors of at most 0.5."
            raise InputError("a tolerance must be at least 0", given=f"{self.tolerance:g}", action=action)

    def outcome(self, units: PredictedNumbers) -> tuple[FloatArray, OutcomeKind, tuple[float, float] | None]:
        """Return whether each error is within the tolerance, up to rounding."""
        magnitude = np.maximum(np.abs(units.labels), np.abs(units.predictions[:, 0]))
        is_within = np.abs(units.errors) <= self.tolerance + _ROUNDING * magnitude
        return is_within.astype(np.float64), "binary", None


# Relative rounding error of a difference, such as 0.3 − 0.1, which exceeds 0.2.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class IntervalCoverage(
    MeanErrorFunction, kind="interval_coverage", listed_field="ends", listed_example="low,high"
):
    """The share of labels within prediction intervals, including their limits.

    Parameters
    ----------
    ends : (str, str)
        The columns of the lower and of the upper limits.

    Examples
    --------
    >>> IntervalCoverage(ends=("low", "high")).text
    'interval_coverage:low,high'
    """

    ends: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._set(ends=tuple(self.ends))
        if len(self.ends) != 2 or self.prediction is not None:
            problem = "the coverage of prediction intervals requires two columns"
            raise InputError(problem, given=", ".join(self.ends), action="Write interval_coverage:low,high.")

    def prediction_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the columns of both limits."""
        return self.ends

    def outcome(self, units: PredictedNumbers) -> tuple[FloatArray, OutcomeKind, tuple[float, float] | None]:
        """Return whether each label is within its interval."""
        if units.predictions.shape[1] != 2:
            problem = (
                "the coverage of prediction intervals requires two columns, but one column was given with "
                "the labels"
            )
            raise InputError(problem, action="Give the labels alone; the sample contains both columns.")
        low, high = units.predictions.T
        swapped = low > high
        if np.any(swapped):
            problem = f"{int(swapped.sum())} prediction intervals have a lower end above their upper end"
            interval_text = f"{low[swapped][0]:g} to {high[swapped][0]:g}"
            raise InputError(problem, given=interval_text, action="Name the column of lower ends first.")
        return ((low <= units.labels) & (units.labels <= high)).astype(np.float64), "binary", None


@dataclass(frozen=True, slots=True)
class MeanSquaredError(PredictionComparison, kind="mse"):
    """The mean squared error.

    Examples
    --------
    >>> MeanSquaredError().text
    'mse'
    """

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the mean square of the errors, or its root (`RootMeanSquaredError`)."""
        units = self.units(sample, labels, request)
        respondents = Respondents.of(sample, units.labelled)
        estimate = self._from_mean_square(
            mean_square(units.errors, respondents.weighting, units.max_error, request.target)
        )
        return replace(
            respondents.complete(estimate, sample, label=self.label), remarks=_remarks(respondents, units)
        )

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return the mean square of each group, or its root."""
        units = self.units(sample, labels, request)
        respondents = Respondents.of(sample, units.labelled)
        groups, names = named_groups(sample, group)
        rows = []
        for name in names:
            member = groups[units.labelled] == name
            square = mean_square(units.errors, respondents.weighting, units.max_error, request.target, member)
            rows.append(respondents.complete(self._from_mean_square(square), sample, label={"domain": name}))
        return Estimates.from_rows(sample, rows, "domains", _remarks(respondents, units))

    @staticmethod
    def _from_mean_square(square: Estimate) -> Estimate:
        """Return the estimate of this metric from that of the mean square."""
        return square


@dataclass(frozen=True, slots=True)
class RootMeanSquaredError(MeanSquaredError, kind="rmse"):
    """The root of the mean squared error; its limits are the roots of those of the mean squared error.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy={"forecast": [3.0, 5.0, 8.0, 4.0]})
    >>> sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=7)
    >>> stratal.estimate(sample, {0: 2, 1: 4, 2: 7, 3: 5}, estimand="rmse:forecast").value
    1.0
    """

    @staticmethod
    def _from_mean_square(square: Estimate) -> Estimate:
        """Return the root."""
        return root_mean_square(square)


@dataclass(frozen=True, slots=True)
class ExplainedVariance(PredictionComparison, kind="r2"):
    """R²: 1 − mean squared error / variance of the labels. It is negative if their mean predicts better.

    Examples
    --------
    >>> ExplainedVariance("forecast").text
    'r2:forecast'
    """

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return R²."""
        units = self.units(sample, labels, request)
        respondents = Respondents.of(sample, units.labelled)
        estimate = explained_share(
            units.errors, units.labels, respondents.weighting, units.bounds, request.target
        )
        remarks = (*_remarks(respondents, units), *estimate.remarks)
        return replace(respondents.complete(estimate, sample, label=self.label), remarks=remarks)


def _remarks(respondents: Respondents, units: PredictedNumbers) -> tuple[str | Note, ...]:
    """Return the notes on squared errors: on nonresponse, and on heavy tails if there are no bounds."""
    if units.bounds is not None:
        return respondents.notes
    return (*respondents.notes, *heavy_tail_notes(units.errors))
