"""The metrics of a classifier by name: what `stratal.estimands` offers of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from stratal.errors import InputError
from stratal.estimation.estimands.classification import Classification
from stratal.estimation.estimate import Estimate
from stratal.estimation.metric_functions import AVERAGES, CLASS_METRICS, is_f_measure
from stratal.estimation.quantity import Quantity
from stratal.sampling.sample import Sample


@dataclass(frozen=True, slots=True)
class _OfAll(Classification):
    predicted: str | None = None


@dataclass(frozen=True, slots=True)
class Accuracy(_OfAll):
    """The share of answers that are right.

    Parameters
    ----------
    predicted : str, optional
        The group column of the model's answers; the population's own unless given.

    Examples
    --------
    >>> Accuracy().text
    'accuracy'
    """

    kind: ClassVar[str] = "accuracy"

    def estimate(self, sample: Sample, labels: Any, target: str = "population") -> Estimate:
        """Return the accuracy, from the true classes."""
        return self._answered(sample, labels).accuracy(sample, target)


@dataclass(frozen=True, slots=True)
class BalancedAccuracy(_OfAll):
    """The mean recall over the classes.

    Examples
    --------
    >>> BalancedAccuracy(predicted="answer").text
    'balanced_accuracy:predicted=answer'
    """

    kind: ClassVar[str] = "balanced_accuracy"

    def estimate(self, sample: Sample, labels: Any, target: str = "population") -> Quantity:
        """Return the balanced accuracy, from the true classes."""
        return self._metric(sample, labels, target)


@dataclass(frozen=True, slots=True)
class MatthewsCorrelation(_OfAll):
    """Matthews' correlation of answers and truth, of any number of classes.

    Examples
    --------
    >>> MatthewsCorrelation().text
    'mcc'
    """

    kind: ClassVar[str] = "mcc"

    def estimate(self, sample: Sample, labels: Any, target: str = "population") -> Quantity:
        """Return the correlation, from the true classes."""
        return self._metric(sample, labels, target)


@dataclass(frozen=True, slots=True)
class Average(Classification):
    """A metric of each class, averaged over all classes.

    Parameters
    ----------
    metric : str
        One of the metrics of a class, such as `f1`.
    average : {"macro", "micro", "weighted"}
    predicted : str, optional
        As for `Accuracy`.

    Examples
    --------
    >>> Average("f1").text, Average("recall", "weighted").text
    ('average:f1', 'average:recall,average=weighted')
    """

    kind: ClassVar[str] = "average"
    listed: ClassVar[str] = "metric"
    metric: str
    average: str = "macro"
    predicted: str | None = None

    def __post_init__(self) -> None:
        if self.metric not in CLASS_METRICS and not is_f_measure(self.metric):
            raise InputError(
                "no such metric of a class", given=repr(self.metric), allowed=", ".join(CLASS_METRICS)
            )
        if self.average not in AVERAGES:
            raise InputError("no such average", given=repr(self.average), allowed=", ".join(AVERAGES))

    @property
    def name(self) -> str:
        """The metric of each class."""
        return self.metric

    @property
    def of(self) -> str:
        """The average."""
        return self.average

    def estimate(self, sample: Sample, labels: Any, target: str = "population") -> Quantity:
        """Return the averaged metric, from the true classes."""
        return self._metric(sample, labels, target)


@dataclass(frozen=True, slots=True)
class OfClass(Classification):
    """A metric of one class; what follows has these fields, and differs by its name alone.

    Parameters
    ----------
    positive, predicted, probability, right
        As for `F1`.

    Examples
    --------
    >>> issubclass(F1, OfClass)
    True
    """

    listed: ClassVar[str] = "positive"
    positive: str
    predicted: str | None = None
    probability: str | None = None
    right: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._set(positive=str(self.positive))
        if self.probability is not None and self.right is not None:
            raise InputError(
                "a belief is the probability of the class or that of a right answer",
                given=f"probability={self.probability}, right={self.right}",
                allowed="one of the two",
            )

    @property
    def of(self) -> str:
        """The class."""
        return self.positive

    @classmethod
    def example(cls) -> str:
        """Return an example of the text form."""
        return f"{cls.kind}:match"

    def estimate(self, sample: Sample, labels: Any, target: str = "population") -> Quantity:
        """Return the metric with its interval, from the true classes."""
        return self._metric(sample, labels, target)


@dataclass(frozen=True, slots=True)
class Precision(OfClass):
    """The share of the units answered as a class that are of it.

    Examples
    --------
    >>> Precision("match").text
    'precision:match'
    """

    kind: ClassVar[str] = "precision"


@dataclass(frozen=True, slots=True)
class Recall(OfClass):
    """The share of the units of a class that are answered as it.

    Examples
    --------
    >>> Recall("match").text
    'recall:match'
    """

    kind: ClassVar[str] = "recall"


@dataclass(frozen=True, slots=True)
class F1(OfClass):
    """The harmonic mean of a class's precision and recall.

    Parameters
    ----------
    positive : str
        The class.
    predicted : str, optional
        The group column of the model's answers; the population's own unless given.
    probability : str, optional
        The proxy or feature that holds the probability of the class. Without it the first proxy is taken as
        the probability that the answer is right.
    right : str, optional
        The proxy or feature that holds the probability that the answer is right. Naming it says that it is
        so, even where its values look like the probability of the class.

    Examples
    --------
    >>> F1("match").text
    'f1:match'
    """

    kind: ClassVar[str] = "f1"


@dataclass(frozen=True, slots=True)
class Specificity(OfClass):
    """The share of the units of other classes that are not answered as the class.

    Examples
    --------
    >>> Specificity("match").text
    'specificity:match'
    """

    kind: ClassVar[str] = "specificity"


@dataclass(frozen=True, slots=True)
class NegativePredictiveValue(OfClass):
    """The share of the units not answered as a class that are not of it.

    Examples
    --------
    >>> NegativePredictiveValue("match").text
    'negative_predictive_value:match'
    """

    kind: ClassVar[str] = "negative_predictive_value"


@dataclass(frozen=True, slots=True)
class Jaccard(OfClass):
    """Hits over the units that are of a class or answered as it.

    Examples
    --------
    >>> Jaccard("match").text
    'jaccard:match'
    """

    kind: ClassVar[str] = "jaccard"


@dataclass(frozen=True, slots=True)
class Prevalence(OfClass):
    """The share of the units that are of a class.

    Examples
    --------
    >>> Prevalence("match").text
    'prevalence:match'
    """

    kind: ClassVar[str] = "prevalence"


@dataclass(frozen=True, slots=True)
class FBeta(OfClass):
    """The F measure that weighs recall β² times as much as precision (van Rijsbergen 1979).

    Parameters
    ----------
    positive, predicted, probability, right
        As for `F1`.
    beta : float

    Examples
    --------
    >>> FBeta("match", beta=0.5).text
    'fbeta:match,beta=0.5'
    """

    kind: ClassVar[str] = "fbeta"
    beta: float = 2.0

    @property
    def name(self) -> str:
        """The metric, as `classification_metrics` calls it."""
        return f"f{self.beta:g}"
