"""The message for something else where a sample or a design is asked for: what to write instead."""

from __future__ import annotations

import os
from typing import Any

from stratal.designs.sample import Design, Sample
from stratal.errors import InputError, kind_of
from stratal.population.population import Population


def require_sample(given: Any, verb: str) -> Sample:
    """Return a sample, or say how to come by one from what was given.

    Parameters
    ----------
    given : Sample
    verb : str
        What asks for it, for the error.

    Raises
    ------
    InputError
        For a population, a plan, a path, labels or anything else; it names the line to write.

    Examples
    --------
    >>> require_sample("audit/sample.parquet", "estimate")
    Traceback (most recent call last):
    stratal.errors.InputError: estimate takes a Sample (given: the path 'audit/sample.parquet'). Read it
    first: stratal.Sample.read('audit/sample.parquet').
    """
    if isinstance(given, Sample):
        return given
    what, action = _told(given)
    raise InputError(f"{verb} takes a Sample", given=what, action=action)


def require_design(given: Any, verb: str) -> Design:
    """Return a design, or say what one is.

    Examples
    --------
    >>> require_design(10, "extend")
    Traceback (most recent call last):
    stratal.errors.InputError: extend takes a Design (given: an int). Make one, such as
    stratal.SimpleRandom(budget=100).
    """
    if isinstance(given, Design):
        return given
    number = given if isinstance(given, int) and given > 10 else 100
    raise InputError(
        f"{verb} takes a Design",
        given=kind_of(given),
        action=f"Make one, such as stratal.SimpleRandom(budget={number}).",
    )


def _told(given: Any) -> tuple[str, str]:
    """Return what was given, in words, and what to write instead."""
    if isinstance(given, Population):
        return kind_of(given), "Draw from it first: stratal.plan(population, budget=…).draw(seed=…)."
    if isinstance(given, str | os.PathLike):
        path = os.fspath(given)
        return f"the path {path!r}", f"Read it first: stratal.Sample.read({path!r})."
    if hasattr(given, "draw"):
        return kind_of(given), "Draw it first: .draw(seed=…)."
    return kind_of(given), (
        "The sample comes first, then the labels. Units that were drawn and labelled elsewhere become one by "
        "stratal.Sample.from_labelled(table, value=…, population_size=…)."
    )


def require_column_name(given: Any, what: str) -> str:
    """Return the name of a column, or say that values belong into the population.

    Examples
    --------
    >>> require_column_name([0.1, 0.2], "size")
    Traceback (most recent call last):
    stratal.errors.InputError: size is the name of a column (given: a list)...
    """
    if isinstance(given, str):
        return given
    raise InputError(
        f"{what} is the name of a column",
        given=kind_of(given),
        action=f"Give the values to the population, as features={{'x': values}}, and {what}='x' here.",
    )
