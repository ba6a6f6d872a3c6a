"""Building a population from a fitted classifier with scikit-learn's methods, and the rows to judge it on."""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import AnyArray
from stratal.errors import InputError
from stratal.population.declaration import CONFIDENCE, PREDICTED
from stratal.population.population import Population
from stratal.proxy.probabilities import accuracy, margin


def from_estimator(model: Any, rows: Any, columns: dict[str, Any]) -> Population:
    """Build a population from a classifier's own confidence; see `Population.from_estimator`."""
    for name in ("proxy", "predicted"):
        if name in columns:
            raise InputError(f"{name} is the classifier's own", action="Give it to Population.from_arrays.")
    classes = getattr(model, "classes_", None)
    if classes is None or any(isinstance(entry, np.ndarray) for entry in classes):
        raise InputError(
            "the model is not a fitted classifier with one answer per unit",
            given=type(model).__name__,
            allowed="a model with classes_, and predict_proba or decision_function",
            action="Give any other model's own prediction of the outcome to Population.from_arrays(proxy=…).",
        )
    proxy, answers = _confidence(model, rows)
    groups = {**(columns.pop("groups", None) or {}), PREDICTED: np.asarray(classes)[answers]}
    return Population.from_arrays(proxy=proxy, groups=groups, predicted=PREDICTED, **columns)


Population.makers["estimator"] = from_estimator


def _confidence(model: Any, rows: Any) -> tuple[Any, AnyArray]:
    """Return the proxy of each row (N,) and the number of its answer's class (N,)."""
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(rows))
        return accuracy(probabilities, name=CONFIDENCE), probabilities.argmax(axis=1)
    if not hasattr(model, "decision_function"):
        raise InputError(
            "the model says nothing of its confidence",
            given=type(model).__name__,
            allowed="predict_proba or decision_function",
            action="Calibrate it: sklearn.calibration.CalibratedClassifierCV.",
        )
    scores = np.asarray(model.decision_function(rows))
    if scores.ndim == 1:
        return margin(scores), (scores > 0).astype(np.int64)
    return margin(scores), scores.argmax(axis=1)
