"""The message for something else where a `Population` is asked for: what it is, and what to write instead."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from stratal.errors import kind_of

_COLUMNS = "id='ID', proxy='PROXY'"


def told(given: Any) -> tuple[str, str]:
    """Return what was given, in words, and what to write instead.

    Examples
    --------
    >>> told("predictions.csv")[0]
    "the path 'predictions.csv'"
    """
    if isinstance(given, str | os.PathLike):
        path = os.fspath(given)
        return f"the path {path!r}", f"Read it first: stratal.Population.read({path!r}, {_COLUMNS})."
    if hasattr(given, "columns") or hasattr(given, "__arrow_c_stream__"):
        if hasattr(given, "columns"):
            return kind_of(given), f"Make one first: stratal.Population.from_table(frame, {_COLUMNS})."
        return kind_of(given), "Make one first: stratal.Population.from_arrays(proxy=values)."
    if isinstance(given, Mapping):
        return kind_of(given), "Make one first: stratal.Population.from_arrays(proxy=…, ids=…)."
    if hasattr(given, "population_size") and hasattr(given, "design"):
        what = f"{kind_of(given)}, drawn or planned from a population"
        return what, "Give the population itself; labels of a sample go to stratal.estimate."
    if hasattr(given, "__len__"):
        return kind_of(given), "Make one first: stratal.Population.from_arrays(proxy=values)."
    return kind_of(given), "Make one by Population.read, Population.from_table or Population.from_arrays."
