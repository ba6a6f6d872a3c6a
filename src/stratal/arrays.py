"""Checked, read-only arrays: the one place where untrusted numbers become NumPy arrays."""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from functools import cache
from numbers import Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stratal.errors import InputError
from stratal.protocols import WithDict

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
# A float, or an array with an entry for each replicate: kernels broadcast, and a union would need casts.
Number: TypeAlias = Any

# Types of the arrays by the name of their annotation, by which records convert and check their fields.
_DTYPES = {
    "FloatArray": np.dtype(np.float64),
    "IntArray": np.dtype(np.int64),
    "BoolArray": np.dtype(np.bool_),
    "AnyArray": None,
}


def frozen(values: Any, dtype: Any = None) -> AnyArray:
    """Return `values` as an array that cannot be written to (a view where the dtype already fits)."""
    if type(values) is np.ndarray and not values.flags.writeable and (dtype is None or values.dtype == dtype):
        return values
    view: AnyArray = np.asarray(values, dtype).view()
    view.setflags(write=False)
    return view


def finite_vector(name: str, values: object) -> FloatArray:
    """Return `values` as a read-only float64 vector, refusing anything else by name and position.

    Parameters
    ----------
    name : str
        What the values are called in an error.
    values : array-like (n,)
        Numbers. float32 is widened.

    Raises
    ------
    InputError
        If not one-dimensional, not numeric, or if a value is NaN or infinite.
    """
    array = numeric_array(name, values)
    if array.ndim != 1:
        shape_text = f"shape {array.shape}"
        raise InputError(f"{name} must be one-dimensional", given=shape_text, allowed="shape (n,)")
    refuse_nonfinite(name, array)
    return frozen(array)


def array_of(values: object) -> AnyArray:
    """Return `values` as the array that NumPy makes of them.

    PyArrow's dictionaries apart: where a value is missing, chunks of them would give another.
    """
    pieces: list[Any] = []
    if type(values).__module__.startswith("pyarrow"):
        import pyarrow as pa  # loaded already

        if isinstance(values, pa.ChunkedArray):
            pieces = values.chunks
        else:
            pieces = [values]
        pieces = [piece for piece in pieces if isinstance(piece, pa.DictionaryArray)]
    if not pieces:
        return np.asarray(values)
    entries = [np.array([*piece.dictionary.to_pylist(), None], object) for piece in pieces]
    codes = [np.asarray(piece.indices.cast("int64").fill_null(-1)) for piece in pieces]
    return np.concatenate(
        [values_of_codes[code] for values_of_codes, code in zip(entries, codes, strict=True)]
    )


# Divisor instead of 0, below all values that occur: the quotient is then unused, or its numerator is 0.
NO_DIVISOR = 1e-300


def unit_scale(values: Number, bounds: tuple[float, float]) -> Number:
    """Return outcomes between bounds on the scale from 0 to 1."""
    low, high = bounds
    return (values - low) / (high - low)


def code_count(codes: IntArray) -> int:
    """Return the number of groups of units (n,) with codes from 0."""
    return int(codes.max(initial=-1)) + 1


def mid_ranks(values: AnyArray) -> FloatArray:
    """Return the number of smaller values plus half the number of equal ones (n,)."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - counts / 2.0)[group])


def is_masked(values: object) -> bool:
    """Return whether an entry is masked; none can be before `numpy.ma` is loaded, which takes its time."""
    return "numpy.ma" in sys.modules and bool(np.ma.is_masked(values))


def without_mask(values: Any) -> AnyArray:
    """Return `values` as an array, masked entries as None."""
    array = array_of(values)
    if is_masked(values):
        array = array.astype(object)
        array[np.ma.getmaskarray(values)] = None
    return array


def number_of_text(text: str) -> float:
    """Return the number in a text, NaN if there is none; `1_0`, which Python reads as 10, is not one."""
    try:
        if "_" in text:
            return float("nan")
        return float(text)
    except ValueError:
        return float("nan")


def is_null(entry: object) -> bool:
    """Return whether an entry is None, pandas' NA or NaT, or a masked scalar."""
    return entry is None or type(entry).__name__ in ("NAType", "NaTType", "MaskedConstant")


def numeric_array(name: str, values: Any) -> FloatArray:
    """Return `values` as float64 of any shape, refusing text, dates, complex numbers and other objects."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    array = array_of(values)
    masked = np.ma.getmaskarray(values) if is_masked(values) else ()
    null = [is_null(entry) for entry in array.ravel()] if array.dtype.kind == "O" else ()
    for kind, missing in (("masked", masked), ("null", null)):
        if np.any(missing):
            problem = f"{name} holds a missing value ({kind}) at position {np.argmax(missing)}"
            action = "Drop or fill these units first; a unit without a proxy cannot be planned for."
            raise InputError(problem, allowed="finite numbers", action=action)
    try:
        texts = array.dtype.kind == "O" and any(isinstance(entry, str) for entry in array.ravel())
        if texts or array.dtype.kind not in "biufO":
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is not numeric", given=f"dtype {array.dtype}", allowed="numbers") from None


def refuse_nonfinite(name: str, array: FloatArray) -> None:
    """Raise an `InputError` that tells NaN from infinity, counts them and names the first position."""
    flat = array.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.dot(flat, flat)  # as fast as reading; where it overflows each number is looked at
    if math.isfinite(squares):
        return
    for kind, bad in (("NaN", np.isnan(array)), ("infinite", np.isinf(array))):
        if np.any(bad):
            count = int(bad.sum())
            first = np.argmax(bad)
            description = f"{count} {'values that are' if count > 1 else 'value that is'} {kind}"
            raise InputError(
                f"{name} holds {description} (first at position {first}; allowed: finite numbers)",
                action="Drop or fill these units first; a unit without a number cannot be planned for.",
            )


def same_length(**arrays: AnyArray) -> int:
    """Return the common length of the named arrays; if two differ, raise an `InputError` that names them."""
    (first_name, first), *_ = arrays.items()
    for name, array in arrays.items():
        requirement = "must have one entry per unit"
        if np.ndim(array) == 0:
            raise InputError(
                f"{name} {requirement}", given=repr(array.item()), action="Give a list or an array."
            )
        if len(array) != len(first):
            lengths = f"{len(array)} and {len(first)}"
            action = "Give one number for each unit, in the same order."
            raise InputError(f"{name} and {first_name} {requirement}", given=lengths, action=action)
    return len(first)


@cache
def _to_freeze(record: Any) -> tuple[tuple[tuple[str, Any], ...], tuple[str, ...]]:
    """Return the fields of a record that hold arrays, each with its dtype, and those that hold tuples."""
    declared = [(entry.name, str(entry.type).removesuffix(" | None")) for entry in fields(record)]
    arrays = tuple((name, _DTYPES[kind]) for name, kind in declared if kind in _DTYPES)
    return arrays, tuple(name for name, kind in declared if kind.startswith("tuple["))


class Record:
    """Base of frozen dataclasses: equality by value, arrays checked into their declared type and read-only.

    A field annotated `FloatArray`, `IntArray`, `BoolArray` or `AnyArray` (or one of these or None) is frozen
    when the record is made; a list in a field annotated as a tuple becomes one, and lists in it. Fields
    declared with `compare=False` are left out of equality.
    """

    __slots__ = ()

    def _freeze(self) -> None:
        """Make every array field a read-only array of its declared type, and a tuple's list a tuple."""
        arrays, tuples = _to_freeze(type(self))  # type: ignore[arg-type]  # a class has a hash
        for name, dtype in arrays:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, frozen(value, dtype))
        for name, value in field_values(self, tuples).items():
            if type(value) is list:
                object.__setattr__(self, name, _tuples(value))

    __post_init__ = _freeze

    def _set(self, **values: object) -> None:
        """Set fields of a record that is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        compared = [entry.name for entry in fields(self) if entry.compare]  # type: ignore[arg-type]
        return equal_values(field_values(self, compared), field_values(other, compared))

    __hash__ = None  # type: ignore[assignment]


def _tuples(value: object) -> Any:
    if type(value) is list:
        return tuple(map(_tuples, value))
    return value


class Described(Record):
    """Base of records of several kinds: each is registered by its `kind` and written as a plain dict.

    A base of such kinds names what they are (`noun`) and holds a `registry` of its own. Where kinds live in
    later rooms too, it names the modules by which they come (`entry_modules`): a kind that nobody has
    imported yet is looked for there, so that a file says all that is needed to read it. Fields that hold
    described records, or several, are named in `nested`, with the base of their kinds. What a kind declares
    of itself may stand with its bases: `class Constant(Expression, kind="constant")`.
    """

    __slots__ = ()
    kind: ClassVar[str]
    noun: ClassVar[str]
    registry: ClassVar[dict[str, Any]]
    entry_modules: ClassVar[tuple[str, ...]] = ()
    nested: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **declared: object) -> None:
        for name, value in declared.items():
            setattr(cls, name, value)
        if "kind" in cls.__dict__:
            cls.registry[cls.kind] = cls

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description with `kind` as its first key."""
        return {"kind": self.kind} | plain_fields(self)

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Self:
        """Return the record from the fields of `to_dict` but `kind`."""
        for name, base in cls.nested.items():
            described = fields[name]
            several = isinstance(described, list | tuple)
            if several:
                record = tuple(map(base.from_dict, described))
            else:
                record = base.from_dict(described)
            fields = {**fields, name: record}
        return cls(**fields)

    @classmethod
    def of_kind(cls, kind: Any) -> Any:
        """Return the class of a kind; None if there is none."""
        for module in cls.entry_modules:
            if kind not in cls.registry:
                importlib.import_module(module)
        return cls.registry.get(kind)

    @classmethod
    def from_dict(cls, description: Mapping[str, object]) -> Self:
        """Return the record that `to_dict` described."""
        entries = dict(description)
        kind = entries.pop("kind", None)
        named: type[Self] | None = cls.of_kind(kind)
        if named is None:
            raise InputError(f"unknown {cls.noun}", given=repr(kind), allowed=", ".join(sorted(cls.registry)))
        return named.parse(entries)


def plain(value: object) -> Any:
    """Return a field's value as JSON knows it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in value]
    if isinstance(value, Real) and not isinstance(value, int | float):
        return float(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, WithDict):
        return value.to_dict()
    return value


def field_names(record: Any) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass, or of a record of one."""
    return tuple(entry.name for entry in fields(record))


def field_values(record: object, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return fields of a record by name: those with the names, otherwise all."""
    return {name: getattr(record, name) for name in (field_names(record) if names is None else names)}


def plain_fields(record: object, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return fields of a record by name, as JSON stores them: those with the names, otherwise all."""
    return {name: plain(value) for name, value in field_values(record, names).items()}


def equal_values(left: Any, right: Any) -> bool:
    """Return whether two field values are equal: arrays element by element (NaN to NaN), mappings by key."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        both = isinstance(left, np.ndarray) and isinstance(right, np.ndarray)
        return both and bool(np.array_equal(left, right, equal_nan=left.dtype.kind == "f"))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal_values(left[key], right[key]) for key in left)
    return bool(left == right)


def same_value(one: object, other: object) -> bool:
    """Return whether two values of a unit are the same, whatever format each comes from.

    Text files hold texts alone: a number, a truth value, a moment and nested values are equal to their text,
    and a missing value to an empty one.
    """
    return _canonical(one) == _canonical(other)


def _canonical(value: object) -> str:
    """Return the text by which a value is recognised in another format."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    nested = isinstance(value, list | tuple | dict)
    if not nested and (is_null(value) or value != value):
        return ""
    if nested:
        text = json.dumps(value, default=str)
    else:
        text = str(value).strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    with suppress(ValueError, RecursionError):
        number = json.loads(text)
        is_whole_number = isinstance(number, float) and number.is_integer()
        return json.dumps(int(number) if is_whole_number else number, sort_keys=True)
    with suppress(ValueError):
        return str(datetime.fromisoformat(text))
    return text


def text_of_value(value: object) -> str:
    """Return a value as text without surrounding spaces, whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


# Beyond these a square could overflow, or vanish.
LARGEST_NUMBER = 1e100
SMALLEST_NUMBER = 1e-100


def refuse_extremes(name: str, values: FloatArray) -> None:
    """Refuse numbers whose squares a computer does not hold: one that is huge, or all of them tiny.

    Raises
    ------
    InputError
        Naming the allowed sizes.
    """
    largest = float(np.max(np.abs(values), initial=0.0))
    action = "Rescale the values."
    if largest > LARGEST_NUMBER:
        raise InputError(
            f"{name} are too large", allowed=f"up to {LARGEST_NUMBER:g} in absolute value", action=action
        )
    if 0.0 < largest < SMALLEST_NUMBER:
        what = f"{name} are too small to be squared"
        size_text = f"up to {largest:g}"
        raise InputError(
            what,
            given=size_text,
            allowed=f"0, or at least {SMALLEST_NUMBER:g} in absolute value",
            action=action,
        )


def checked_threads(threads: int) -> int:
    """Return a number of threads, refusing anything but a whole number from 1 on."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InputError("threads must be a whole number above 0", given=threads, allowed="1 or more")
    return threads
