"""`require`: whether an interval lies where it must, for pipelines and tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from stratal.errors import InputError, MissingExtraError, RequirementError, kind_of, names_mistyped
from stratal.estimation.estimate import Estimate
from stratal.report import value_with_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Where both ends of an interval must lie.

    Parameters
    ----------
    lower : float, optional
        The lower end must be at least this.
    upper : float, optional
        The upper end must be at most this.

    Examples
    --------
    >>> Requirement(lower=0.9).met([0.91, 0.97]), Requirement(lower=0.9, upper=0.95).met([0.91, 0.97])
    (True, False)
    """

    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            real = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (real and math.isfinite(value)):
                raise InputError(
                    f"{name} must be a finite number",
                    given=repr(value),
                    action="Give it in the outcome's units, such as 0.9.",
                )
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise InputError(
                "the lower requirement must be below the upper one",
                given=f"at least {self.lower}, at most {self.upper}",
                action="Swap them, or give one of them.",
            )

    @property
    def words(self) -> list[str]:
        """What is required, in words."""
        ends = (("a lower end of at least", self.lower), ("an upper end of at most", self.upper))
        return [f"{words} {limit:g}" for words, limit in ends if limit is not None]

    def check(self, bounds: tuple[float, float] | None) -> None:
        """Refuse a requirement that no labels could fail, or none could meet, given an estimate's bounds.

        Raises
        ------
        InputError
            Naming the requirement and the bounds.

        Examples
        --------
        >>> Requirement(lower=0.9).check((0.0, 1.0))
        >>> Requirement(upper=5.0).check((0.0, 1.0))
        Traceback (most recent call last):
        stratal.errors.InputError: an upper end of at most 5 is always met (given: an estimate that lies
        between 0 and 1; allowed: from 0, less than 1)...
        """
        if bounds is None:
            return
        low, high = bounds
        if self.lower is not None and not low < self.lower <= high:
            what, always, allowed = self.words[0], self.lower <= low, f"more than {low:g}, up to {high:g}"
        elif self.upper is not None and not low <= self.upper < high:
            what, always, allowed = self.words[-1], self.upper >= high, f"from {low:g}, less than {high:g}"
        else:
            return
        raise InputError(
            f"{what} is {'always' if always else 'never'} met",
            given=f"an estimate that lies between {low:g} and {high:g}",
            allowed=allowed,
            action="Require a limit that the estimate could meet or miss, in the outcome's units.",
        )

    def met(self, interval: Any) -> bool:
        """Return whether an interval lies where it must; an open or unknown end does not."""
        if interval is None:
            return self.lower is None and self.upper is None
        low, high = interval
        above = self.lower is None or (low is not None and low >= self.lower)
        return above and (self.upper is None or (high is not None and high <= self.upper))

    def to_dict(self, interval: Any) -> dict[str, Any]:
        """Return what was required, and whether it is met."""
        return {"lower": self.lower, "upper": self.upper, "met": self.met(interval)}


@names_mistyped
def require(
    estimate: Estimate,
    *,
    lower: float | None = None,
    upper: float | None = None,
    confidence_level: float = 0.95,
    method: str = "auto",
) -> Estimate:
    """Return the estimate if its interval lies where it must, and raise otherwise.

    For a test (pytest shows the figures where it fails) and for any pipeline. What is held against the limit
    is the end of the two-sided interval, not the estimate: a model passes because its labels show it, not
    because they are few.

    Parameters
    ----------
    estimate : Estimate
    lower, upper : float, optional
        The lower end must be at least `lower`, the upper end at most `upper`; at least one of them.
    confidence_level : float
    method : str
        Of the interval.

    Raises
    ------
    RequirementError
        An AssertionError that says the estimate, its interval and what was required.
    InputError
        If nothing is required, or what no estimate within these bounds could miss or meet.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 400)
    >>> sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
    >>> found = stratal.estimate(sample, [1.0] * 95 + [0.0] * 5)
    >>> stratal.require(found, lower=0.85).value
    0.95
    >>> stratal.require(found, lower=0.9)
    Traceback (most recent call last):
    stratal.errors.RequirementError: the interval does not lie where it must (given: 0.95, 95% interval 0.8975
    to 0.98, from 100 labels; allowed: a lower end of at least 0.9)...
    """
    if not isinstance(estimate, Estimate):
        raise InputError(
            "require takes an Estimate",
            given=kind_of(estimate),
            action="Make one first: stratal.estimate(sample, labels).",
        )
    if lower is None and upper is None:
        raise InputError("nothing is required", allowed="lower=, upper=, or both")
    wanted = Requirement(lower=lower, upper=upper)
    wanted.check(estimate.bounds)
    found = estimate.to_dict(confidence_level, method)
    if not wanted.met(found["confidence_interval"]):
        raise RequirementError(
            "the interval does not lie where it must",
            given=f"{value_with_interval(found)}, from {found['n']:,} labels",
            allowed=", ".join(wanted.words),
            action="More labels narrow it; a better model moves it.",
        )
    return estimate


LOGGED = (
    "estimate",
    "standard_error",
    "n",
    "population_size",
    "effective_sample_size",
    "relative_efficiency",
)
"""What of an estimate becomes a metric, beside the ends of its interval."""


@names_mistyped
def log_to_mlflow(
    estimate: Estimate, name: str = "accuracy", *, confidence_level: float = 0.95, run_id: str | None = None
) -> dict[str, float]:
    """Log an estimate in MLflow: its figures as metrics, all of it as a JSON file.

    Parameters
    ----------
    estimate : Estimate
    name : str
        What is estimated; the metrics are called `accuracy`, `accuracy_low`, `accuracy_high`,
        `accuracy_standard_error` and so on, the file `accuracy.json`.
    confidence_level : float
    run_id : str, optional
        The run to log in; the active one, or a new one, if left out.

    Returns
    -------
    dict
        The metrics. What is not finite is left out.

    Raises
    ------
    MissingExtraError
        If MLflow is not installed.
    InputError
        For a name that MLflow does not take.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.9, 0.5])
    >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    >>> estimate = stratal.estimate(sample, [1, 0])
    >>> log_to_mlflow(estimate, "a/b c!")
    Traceback (most recent call last):
    stratal.errors.InputError: a metric cannot be called so (given: 'a/b c!'...
    """
    if not name or not all(mark.isalnum() or mark in "_-. " for mark in name):
        raise InputError(
            "a metric cannot be called so", given=repr(name), allowed="letters, digits, _, -, . and spaces"
        )
    try:
        import mlflow
    except ImportError:
        raise MissingExtraError("mlflow-skinny", extra="mlflow") from None
    described = estimate.to_dict(confidence_level)
    metrics = _metrics(described, name)
    path = f"{name}.json"
    if run_id is None:
        mlflow.log_metrics(metrics)
        mlflow.log_dict(described, path)
    else:
        client = mlflow.MlflowClient()
        for key, figure in metrics.items():
            client.log_metric(run_id, key, figure)
        client.log_dict(run_id, described, path)
    return metrics


def _metrics(described: dict[str, Any], name: str) -> dict[str, float]:
    low, high = described["confidence_interval"]
    found = {f"{name}_low": low, f"{name}_high": high}
    found |= {name if key == "estimate" else f"{name}_{key}": described.get(key) for key in LOGGED}
    return {
        key: float(figure) for key, figure in found.items() if figure is not None and math.isfinite(figure)
    }
