"""Checks of budgets, whole numbers, and arguments with one entry per stratum."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, finite_vector, frozen, numeric_array, refuse_nonfinite
from stratal.errors import BudgetError, InputError


def check_budget(budget: object, population_size: float = math.inf) -> None:
    """Raise a `BudgetError` unless the budget is a whole number from 1 to N."""
    allowed = "1 to N, the number of units"
    if math.isfinite(population_size):
        allowed = f"1 to {population_size:,.0f}"
    if not isinstance(budget, numbers.Integral) or isinstance(budget, bool) or int(budget) < 1:
        raise BudgetError(
            "the budget must be a whole number of units",
            given=repr(budget),
            allowed=allowed,
            action="Give the number of units that people can label, such as 100.",
        )
    if int(budget) > population_size:
        raise BudgetError(
            "the budget is larger than the population",
            given=budget,
            allowed=allowed,
            action="To label all units, use their number as the budget.",
        )


def whole_number(name: str, value: object) -> int:
    """Return a nonnegative whole number as an int.

    Fractions, negative numbers, booleans and other types raise `InputError`.
    """
    array = np.asarray(value)
    is_number = array.ndim == 0 and array.dtype.kind in "iuf" and np.isfinite(array)
    if is_number and array >= 0 and array == int(array):
        return int(array)
    raise InputError(f"{name} must be a whole number", given=repr(value), allowed="0, 1, 2, …")


def whole_numbers_per_stratum(name: str, values: Any, length: int | None = None) -> IntArray:
    """Return `values` as read-only integers (H,); one number is repeated if a length is given."""
    if length is not None and np.ndim(values) == 0:
        return frozen(np.full(length, whole_number(name, values), dtype=np.int64))
    # Integers, as from an earlier call, need no conversion.
    is_integer_vector = isinstance(values, np.ndarray) and values.dtype == np.int64 and values.ndim == 1
    if is_integer_vector and length in (None, len(values)) and np.all(values >= 0):
        return frozen(values)
    if length is None:
        length = len(finite_vector(name, values))
    array = one_per_stratum(name, values, length)
    fractional_strata = np.flatnonzero(array != np.floor(array))
    if len(fractional_strata):
        h = int(fractional_strata[0])
        raise InputError(
            f"{name} must be whole numbers", given=f"{array[h]:g} in stratum {h}", allowed="0, 1, 2, …"
        )
    return frozen(array.astype(np.int64))


def one_per_stratum(
    name: str,
    values: object,
    count: int,
    minimum: float = 0.0,
    *,
    entity: str = "stratum",
    max_axes: int = 1,
) -> FloatArray:
    """Return `values` as a read-only array (…, count) of finite numbers of at least `minimum`.

    For errors, `name` is the name of the argument, and `entity` is what each entry of the last axis belongs
    to. `max_axes` is the largest allowed number of axes.
    """
    array = np.atleast_1d(numeric_array(name, values))
    refuse_nonfinite(name, array)
    if array.ndim > max_axes or array.shape[-1] != count:
        shape = f"{' × '.join(map(str, array.shape))} for {count}"
        raise InputError(f"{name} must have one entry per {entity}", given=shape, allowed="as many")
    if np.any(array < minimum):
        raise InputError(f"{name} must not be negative", given=f"{array.min():g}", allowed="0 or more")
    return frozen(array)
