"""The kind and the bounds of an outcome, and the population for which an interval is."""

from __future__ import annotations

from typing import Literal

import numpy as np

from stratal.arrays import FloatArray, are_binary
from stratal.errors import InputError, LabelError, check_choice, finite_bounds
from stratal.question.question import SCALES, TARGETS

OutcomeKind = Literal["binary", "bounded", "unbounded"]


def infer_outcome(
    z: FloatArray, outcome: OutcomeKind | None, bounds: tuple[float, float] | None
) -> tuple[OutcomeKind, tuple[float, float] | None]:
    """Return the kind and the bounds of an outcome.

    Without a kind, it is binary if all labels (n,) are 0 or 1, otherwise bounded if there are bounds.

    Raises
    ------
    LabelError
        For a label outside the bounds.
    InputError
        For an unknown kind, bounds in the wrong order, or a bounded outcome without bounds.
    """
    if outcome is not None:
        check_choice("kind of outcome", outcome, SCALES)
    if bounds is not None:
        bounds = finite_bounds(bounds)
    binary_labels = are_binary(z)
    if outcome is None:
        outcome = "unbounded" if bounds is None else "bounded"
        if binary_labels and bounds in (None, (0.0, 1.0)):
            outcome = "binary"
    if outcome == "unbounded":
        return outcome, None
    if outcome == "binary":
        bounds = (0.0, 1.0)
    if bounds is None:
        raise InputError("a bounded outcome requires bounds", action="Give bounds=(lowest, highest).")
    # The usual case. It needs no search for labels outside the bounds.
    if outcome == "binary" and binary_labels:
        return outcome, bounds
    if outcome == "binary":
        outside = (z != 0) & (z != 1)
    else:
        outside = (z < bounds[0]) | (z > bounds[1])
    if np.any(outside):
        raise LabelError(
            f"{outside.sum()} labels lie outside the {outcome} outcome's values (first: {z[outside][0]:g})",
            allowed="0 or 1" if outcome == "binary" else f"{bounds[0]:g} to {bounds[1]:g}",
        )
    return outcome, bounds


def check_target(target: str) -> None:
    """Raise an `InputError` for an unknown target."""
    check_choice("target", target, TARGETS)
