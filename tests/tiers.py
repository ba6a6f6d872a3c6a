"""Two tiers: `make test` answers within minutes, `make test-slow` runs everything in full, every night.

Nothing is tested in the slow tier alone. What is long has a short form in the fast one: fewer draws (the
tolerance follows their number), fewer examples, or those cells of a matrix that reach lines of their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest

Value = TypeVar("Value")

SLOW = os.environ.get("STRATAL_TESTS") == "slow"


def sized(fast: Value, slow: Value) -> Value:
    """Return how many draws, tries or examples this tier makes."""
    return slow if SLOW else fast


def cells(values: Iterable[Any], fast: Sequence[Any]) -> list[Any]:
    """Return the cells of a matrix as parameters, those whose first value is not in `fast` marked slow."""
    parameters = []
    for value in values:
        is_parameter_set = hasattr(value, "values") and hasattr(value, "marks")
        arguments = value.values if is_parameter_set else value
        if not isinstance(arguments, tuple):
            arguments = (arguments,)
        marks = list(getattr(value, "marks", ()))
        if arguments[0] not in fast:
            marks.append(pytest.mark.slow)
        parameters.append(pytest.param(*arguments, marks=marks))
    return parameters
