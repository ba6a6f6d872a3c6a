"""An estimate in MLflow, beside the run of the model that it is of."""

from __future__ import annotations

import math
from typing import Any

from stratal.errors import InputError, MissingExtraError, names_mistyped
from stratal.estimation.estimate import Estimate

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
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
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
