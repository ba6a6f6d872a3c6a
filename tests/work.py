"""How much work a call is, counted and not timed, so that a busy machine fails no test."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import pytest


def calls(function: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    """Return what a function returns, and how many functions (Python's and C's) were called on the way."""
    if "MUTANT_UNDER_TEST" in os.environ:
        pytest.skip("a mutant is reached by calls of its own")
    count = 0

    def look(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(look)
    try:
        found = function(*arguments)
    finally:
        sys.setprofile(None)
    return found, count
