"""What `estimate` returns, told to type checkers by what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar, Unpack, cast, overload

from stratal.estimation.estimate import Estimate
from stratal.estimation.estimate_table import EstimateTable
from stratal.sampling.sample import Sample

if TYPE_CHECKING:
    from stratal.population.population import Population

Answer = TypeVar("Answer", covariant=True)


class Answering(Protocol[Answer]):
    """An estimand, by what its own `estimate` returns.

    Examples
    --------
    >>> from stratal.estimation.estimands import F1
    >>> asked: Answering[object] = F1("match")
    """

    def estimate(self, sample: Sample, labels: Any, target: str = "population") -> Answer:
        """Return the estimate from labels."""
        ...


class EstimateKeywords(TypedDict, total=False):
    """The keywords of `stratal.estimate` beside `estimand`.

    Examples
    --------
    >>> options: EstimateKeywords = {"estimator": "ppi++"}
    """

    estimator: str
    target: str
    outcome: Any
    bounds: tuple[float, float] | None
    lam: Any
    proxy: str | None
    predicted: bool | str
    clip: bool
    combine: str
    cross_fit: int | None
    calibration: Any
    features: Sequence[str] | None
    population: Population | None
    stratum_weights_known: bool


class EstimateFunction(Protocol):
    """`stratal.estimate`: an `Estimate` of the mean, what an estimand's own `estimate` returns, or a table.

    Examples
    --------
    >>> from stratal.estimation.evaluation import estimate
    >>> made: EstimateFunction = estimate
    """

    @overload
    def __call__(
        self, sample: Sample, labels: Any, *, estimand: None = None, **options: Unpack[EstimateKeywords]
    ) -> Estimate: ...

    @overload
    def __call__(
        self,
        sample: Sample,
        labels: Any,
        *,
        estimand: Answering[Answer],
        **options: Unpack[EstimateKeywords],
    ) -> Answer: ...

    @overload
    def __call__(
        self,
        sample: Sample,
        labels: Any,
        *,
        estimand: list[Any] | tuple[Any, ...],
        **options: Unpack[EstimateKeywords],
    ) -> EstimateTable: ...

    @overload
    def __call__(
        self,
        sample: Sample,
        labels: Any,
        *,
        estimand: str | Mapping[str, Any] | Sequence[Any] | Answering[Any] | None,
        **options: Unpack[EstimateKeywords],
    ) -> Any: ...


def told_by_question(function: Callable[..., Any]) -> EstimateFunction:
    """Return a function as it is, with its return type told by the estimand that it gets.

    The text of an estimand, such as `"f1:match"`, tells a type checker nothing: it takes the result for
    anything.

    Examples
    --------
    >>> told_by_question(len) is len
    True
    """
    return cast(EstimateFunction, function)
