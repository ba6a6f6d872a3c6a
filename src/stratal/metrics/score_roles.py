"""The declared meaning of a score, and labels as the numbers that it predicts."""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs.sample import Sample
from stratal.estimation.resolve import class_column
from stratal.question.scores import OUTCOME, Score


def is_probability(sample: Sample, score: str) -> bool:
    """Return whether a score may be a probability: it is not declared as a rating or an order."""
    role = sample.question.score(score)
    return role is None or role.is_probability or role.predicts == OUTCOME


def class_of_score(sample: Sample, score: str) -> str | None:
    """Return the class whose probability a score is declared to be; None for other scores."""
    role = sample.question.score(score)
    if role is None:
        return None
    return role.of_class


def class_indicator(sample: Sample, labels: object, score: Score) -> FloatArray:
    """Return 1 where the label is the class that a score predicts, else 0 (n,); NaN without a label."""
    classes = class_column(sample, labels, "labels")
    present = {str(entry) for entry in classes if entry is not None}
    # A class may be missing from few labels, but not from labels that are declared to be numbers.
    if sample.question.compares is False and len(present) > 1:
        score.refuse_unknown_class(present, "the labels")
    return np.array([np.nan if entry is None else float(entry == score.of_class) for entry in classes])
