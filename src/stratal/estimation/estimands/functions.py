"""Ratios and other smooth functions of the means of several outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.estimation.columns import number_columns
from stratal.estimation.estimand import Estimand, LabelledInfluence
from stratal.estimation.estimate import Estimate
from stratal.estimation.fieller import Fieller
from stratal.estimation.linearisation import (
    Linearised,
    linearised_estimate,
    ratio_of_means,
    smooth_mean_function,
)
from stratal.estimation.request import PLAIN, Request
from stratal.estimation.respondents import Respondents
from stratal.intervals.guard import ROUNDING
from stratal.sampling.sample import Sample


class OfOutcomes(Estimand):
    """A function of the means of several outcomes; labels map each outcome's name to its labels."""

    __slots__ = ()

    names: Sequence[str]

    def label_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the outcomes."""
        return tuple(self.names)

    def _columns(self, sample: Sample, labels: Any) -> tuple[FloatArray, Respondents, Any]:
        """Return the outcomes (m, q) of the units that have all, and which these are."""
        names = tuple(self.names)
        given = {str(name) for name in labels} if isinstance(labels, Mapping) else set()
        if not names or given != set(names):
            raise InputError("labels must map each outcome to its labels", allowed=", ".join(names))
        columns, labelled = number_columns(sample, {name: labels[name] for name in names})
        return columns, Respondents.of(sample, labelled), labelled

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return the influence of the labelled units."""
        found = self.estimate(sample, labels)
        assert isinstance(found, Estimate)
        return LabelledInfluence(u=found.evidence.residuals, labelled=self._columns(sample, labels)[2])


@dataclass(frozen=True, slots=True)
class RatioOfMeans(OfOutcomes):
    """The ratio of the means of two outcomes, such as errors per answer word.

    Its interval is Fieller's, for few and skewed labels; a limit is infinite where the labels do not tell the
    denominator's mean from 0.

    Parameters
    ----------
    names : (str, str)
        Of numerator and denominator, as in the labels.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=4).draw(stratal.Population.from_arrays(proxy=[0.5] * 60), seed=7)
    >>> labels = {"errors": [1, 2, 3, 4], "words": [2, 4, 6, 8]}
    >>> stratal.estimate(sample, labels, estimand=RatioOfMeans(["errors", "words"])).value
    0.5
    """

    kind: ClassVar[str] = "ratio_of_means"
    listed: ClassVar[str] = "names"
    names: Sequence[str]

    def __post_init__(self) -> None:
        self._set(names=tuple(self.names))
        if len(set(self.names)) != 2:
            raise InputError(
                "a ratio is of two outcomes", given=", ".join(self.names), allowed="numerator, denominator"
            )

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the ratio."""
        columns, frame, _ = self._columns(sample, labels)
        weighting, target = frame.weighting, request.target
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            result = ratio_of_means(columns[:, 0], columns[:, 1], weighting, target)
        if not np.isfinite(result.value):
            raise InputError(
                "the denominator's mean is 0, so there is no ratio",
                action="Check the denominator, or label units in which it is not 0.",
            )
        _require_error(result, len(columns), "ratio")
        limits, bounds = None, None
        # Where all labels agree, or there is one, an interval is refused as that of any such outcome is.
        if np.isfinite(result.variance) and result.variance > ROUNDING * result.value**2:
            bounds = (0.0 if np.all(columns >= 0) else -np.inf, np.inf)
            limits = replace(Fieller.of(columns[:, 0], columns[:, 1], weighting, target), bounds=bounds)
        found = linearised_estimate(result, weighting, limits=limits, bounds=bounds, target=target)
        return replace(frame.complete(found, sample), label=self.label)


@dataclass(frozen=True, slots=True, eq=False)
class MeanFunction(OfOutcomes):
    """Any smooth function of the means of several outcomes, by linearisation.

    Parameters
    ----------
    function : callable
        Takes the means as keyword arguments, named as the outcomes are, and returns a number.
    names : sequence of str
        The outcomes.
    gradient : callable, optional
        Takes the means (q,), returns the partial derivatives (q,); central differences unless given.
    bounds : (float, float), optional
        What the function cannot leave; cuts the interval.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=4).draw(stratal.Population.from_arrays(proxy=[0.5] * 60), seed=7)
    >>> spread = MeanFunction(lambda z, square: (square - z**2) ** 0.5, ["z", "square"])
    >>> labels = {"z": [1, 2, 3, 4], "square": [1, 4, 9, 16]}
    >>> round(stratal.estimate(sample, labels, estimand=spread).value, 4)
    1.118
    """

    kind: ClassVar[str] = "function"
    listed: ClassVar[str] = "names"
    function: Callable[..., float]
    names: Sequence[str]
    gradient: Callable[[FloatArray], FloatArray] | None = None
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self._set(names=tuple(self.names))
        if not self.names or not callable(self.function):
            raise InputError(
                "a function of means needs a callable and the names of its outcomes",
                action="Write MeanFunction(function, ['z', 'square']).",
            )

    @property
    def text(self) -> str:
        """The kind with the outcomes; a function has no text."""
        return f"{self.kind}:{','.join(self.names)}"

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the function's value at the estimated means."""
        columns, frame, _ = self._columns(sample, labels)
        result = smooth_mean_function(
            columns,
            lambda means: float(self.function(**dict(zip(self.names, means.tolist(), strict=True)))),
            frame.weighting,
            gradient=self.gradient,
            target=request.target,
        )
        _require_error(result, len(columns), "function")
        found = linearised_estimate(result, frame.weighting, bounds=self.bounds, target=request.target)
        return replace(frame.complete(found, sample), label=self.label)


def _require_error(result: Linearised, n: int, what: str) -> None:
    if not np.isfinite(result.standard_error):
        raise InputError(
            f"the standard error of the {what} cannot be estimated",
            given=f"{n} label{'s' if n > 1 else ''}, value {result.value:g}",
            action="Label at least 2 units; rescale what is far from 1.",
        )
