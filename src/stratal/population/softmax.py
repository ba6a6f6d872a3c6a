"""Columns with the probabilities of all classes (a softmax): how they are recognised and named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

# Largest distance of a row's sum from 1 at which proxies are recognised as a softmax. Files contain rounded
# probabilities.
SOFTMAX_TOLERANCE = 0.02

# Names of the columns computed from a softmax: the probability of the answer, and the most probable class.
CONFIDENCE = "confidence"
PREDICTED_CLASS = "predicted_class"


def is_softmax(row_sum_facts: Mapping[str, Any], tolerance: float = SOFTMAX_TOLERANCE) -> bool:
    """Return whether columns are a softmax: not negative, and each row adds up to 1 within the tolerance.

    Parameters
    ----------
    row_sum_facts : mapping
        Number of complete rows `n_rows`, the smallest value `minimum`, and the largest distance of a row's
        sum from 1, `max_deviation`.
    tolerance : float
    """
    is_sum_one = row_sum_facts["n_rows"] and row_sum_facts["max_deviation"] <= tolerance
    return bool(is_sum_one and row_sum_facts["minimum"] >= 0)


def class_names(columns: Sequence[str]) -> list[str]:
    """Return the classes of columns of probabilities: their names without the common prefix.

    The prefix ends with a character that is neither a letter nor a digit, or the classes are numbers.
    """
    # The common prefix of the first and the last name in sorted order is the common prefix of all names.
    pairs = zip(min(columns), max(columns), strict=False)
    prefix = "".join(first for first, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    letters = prefix.rstrip("0123456789")
    if letters and all(name[len(letters) :].isdigit() for name in columns):
        return [name[len(letters) :] for name in columns]
    # A prefix of letters may belong to the classes, as in `cat` and `car`.
    end = max((position + 1 for position, mark in enumerate(prefix) if not mark.isalnum()), default=0)
    names = [name[end:] for name in columns]
    # If a name is the prefix itself, nothing would remain of it.
    if all(names):
        return names
    return list(columns)
