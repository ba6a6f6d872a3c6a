"""Plain values: what JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_AS_THEY_ARE = (str, int, bool, type(None))


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: arrays become lists, what is not finite becomes None.

    Examples
    --------
    >>> plain([float("nan"), 0.5, {"n": (1, 2)}])
    [None, 0.5, {'n': [1, 2]}]
    """
    if type(value) in _AS_THEY_ARE:  # most of a large table
        return value
    if type(value) is float:
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return plain_dict(value)
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_dict(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict whose values JSON can hold; see `plain`.

    Examples
    --------
    >>> plain_dict({"low": -math.inf, "n": 3})
    {'low': None, 'n': 3}
    """
    return {name: plain(value) for name, value in entries.items()}
