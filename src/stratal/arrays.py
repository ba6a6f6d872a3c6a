"""Validated, read-only arrays: all numbers from users are converted to NumPy arrays here."""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
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

# Data types by the names of annotations. Records convert their fields to these types.
_DTYPES = {
    "FloatArray": np.dtype(np.float64),
    "IntArray": np.dtype(np.int64),
    "BoolArray": np.dtype(np.bool_),
    "AnyArray": None,
}


def frozen(values: Any, dtype: Any = None) -> AnyArray:
    """Return `values` as a read-only array. It is a view if the dtype does not change."""
    if type(values) is np.ndarray and not values.flags.writeable and (dtype is None or values.dtype == dtype):
        return values
    view: AnyArray = np.asarray(values, dtype).view()
    view.setflags(write=False)
    return view


def finite_vector(name: str, values: object) -> FloatArray:
    """Return `values` as a read-only float64 vector.

    Parameters
    ----------
    name : str
        Name of the values in an error.
    values : array-like (n,)
        Numbers; float32 is converted to float64.

    Raises
    ------
    InputError
        If the values are not one-dimensional or not numeric, or if one is NaN or infinite.
    """
    array = numeric_array(name, values)
    if array.ndim != 1:
        shape_text = f"shape {array.shape}"
        raise InputError(f"{name} must be one-dimensional", given=shape_text, allowed="shape (n,)")
    refuse_nonfinite(name, array)
    return frozen(array)


def array_of(values: object) -> AnyArray:
    """Return `values` as an array, as `numpy.asarray` does, except for dictionary arrays of PyArrow.

    NumPy converts chunks of dictionary arrays with missing values incorrectly.
    """
    dictionary_arrays: list[Any] = []
    if type(values).__module__.startswith("pyarrow"):
        import pyarrow as pa  # loaded already

        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        dictionary_arrays = [chunk for chunk in chunks if isinstance(chunk, pa.DictionaryArray)]
    if not dictionary_arrays:
        return np.asarray(values)
    decoded_chunks = []
    for chunk in dictionary_arrays:
        # A missing value has the code -1, which selects the last entry.
        entries = np.array([*chunk.dictionary.to_pylist(), None], object)
        codes = np.asarray(chunk.indices.cast("int64").fill_null(-1))
        decoded_chunks.append(entries[codes])
    return np.concatenate(decoded_chunks)


# Divisor instead of 0, smaller than all values that occur. The quotient is then not used, or 0.
NO_DIVISOR = 1e-300


def unit_scale(values: Number, bounds: tuple[float, float]) -> Number:
    """Return outcomes between bounds on the scale from 0 to 1."""
    low, high = bounds
    return (values - low) / (high - low)


def code_count(codes: IntArray) -> int:
    """Return the number of groups, given the code of each unit's group (n,), from 0."""
    return int(codes.max(initial=-1)) + 1


def means_of_sums(sums: AnyArray, counts: AnyArray, empty: float | FloatArray = 0.0) -> FloatArray:
    """Return sums / counts, and `empty` if a count is 0; the shapes are broadcast."""
    return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), empty))


def divide(numerator: Number, divisor: Number, *, where: Any, otherwise: Number) -> FloatArray:
    """Return numerator / divisor where `where` is true, otherwise `otherwise`; the shapes are broadcast."""
    return np.asarray(np.where(where, numerator / np.where(where, divisor, 1.0), otherwise))


def mid_ranks(values: AnyArray) -> FloatArray:
    """Return the number of smaller values plus half the number of equal ones (n,)."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - counts / 2.0)[group])


def are_binary(values: AnyArray) -> bool:
    """Return whether all values (…,) are 0 or 1."""
    return bool(np.all((values == 0) | (values == 1)))


def has_entry(column: AnyArray) -> BoolArray:
    """Return which entries of a column (n,) are not None."""
    return np.array([entry is not None for entry in column.tolist()], dtype=bool)


def is_masked(values: object) -> bool:
    """Return whether an entry is masked.

    No array can be masked before `numpy.ma` is loaded, and loading it takes time.
    """
    return "numpy.ma" in sys.modules and bool(np.ma.is_masked(values))


def without_mask(values: Any) -> AnyArray:
    """Return `values` as an array with None for masked entries."""
    array = array_of(values)
    if is_masked(values):
        array = array.astype(object)
        array[np.ma.getmaskarray(values)] = None
    return array


def number_of_text(text: str) -> float:
    """Return the number in a text, or NaN. `1_0`, which Python reads as 10, is not a number."""
    try:
        if "_" in text:
            return float("nan")
        return float(text)
    except ValueError:
        return float("nan")


def is_number(value: object) -> bool:
    """Return whether a value is a real number; booleans are not."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def is_null(entry: object) -> bool:
    """Return whether an entry is None, pandas' NA or NaT, or a masked scalar."""
    return entry is None or type(entry).__name__ in ("NAType", "NaTType", "MaskedConstant")


def numeric_array(name: str, values: Any) -> FloatArray:
    """Return `values` as float64 of any shape; text, dates and complex numbers raise an error."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    array = array_of(values)
    masked_entries = np.ma.getmaskarray(values) if is_masked(values) else ()
    null_entries = [is_null(entry) for entry in array.ravel()] if array.dtype.kind == "O" else ()
    for kind, missing_mask in (("masked", masked_entries), ("null", null_entries)):
        if np.any(missing_mask):
            problem = f"{name} holds a missing value ({kind}) at position {np.argmax(missing_mask)}"
            action = "Drop or fill these units first; a unit without a proxy cannot be planned for."
            raise InputError(problem, allowed="finite numbers", action=action)
    try:
        has_texts = array.dtype.kind == "O" and any(isinstance(entry, str) for entry in array.ravel())
        # Allowed: booleans, integers, floats, and objects that are converted to numbers.
        if has_texts or array.dtype.kind not in "biufO":
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is not numeric", given=f"dtype {array.dtype}", allowed="numbers") from None


def refuse_nonfinite(name: str, array: FloatArray) -> None:
    """Raise an `InputError` with the number and the first position of NaN or infinite values."""
    flat = array.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        sum_of_squares = np.dot(flat, flat)
    # A finite sum proves that all values are finite. It is faster than the separate checks, which follow if
    # it is not finite, for example because of an overflow.
    if math.isfinite(sum_of_squares):
        return
    for kind, invalid_mask in (("NaN", np.isnan(array)), ("infinite", np.isinf(array))):
        if np.any(invalid_mask):
            count = int(invalid_mask.sum())
            first = np.argmax(invalid_mask)
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
def _fields_to_freeze(record: Any) -> tuple[tuple[tuple[str, Any], ...], tuple[str, ...]]:
    """Return the names and dtypes of the array fields of a record, and the names of its tuple fields."""
    declared = [(entry.name, str(entry.type).removesuffix(" | None")) for entry in fields(record)]
    arrays = tuple((name, _DTYPES[kind]) for name, kind in declared if kind in _DTYPES)
    return arrays, tuple(name for name, kind in declared if kind.startswith("tuple["))


class Record:
    """Base of frozen dataclasses with equality by value and read-only arrays of their declared types.

    On creation, values of fields with the annotation `FloatArray`, `IntArray`, `BoolArray` or `AnyArray`
    (optionally `| None`) are converted to read-only arrays. In fields that are annotated as tuples, lists and
    nested lists are converted to tuples. Fields with `compare=False` do not affect equality.
    """

    __slots__ = ()

    def _freeze(self) -> None:
        """Convert the values of array fields to read-only arrays, and lists in tuple fields to tuples."""
        arrays, tuples = _fields_to_freeze(type(self))  # type: ignore[arg-type]  # a class has a hash
        for name, dtype in arrays:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, frozen(value, dtype))
        for name, value in field_values(self, tuples).items():
            if type(value) is list:
                object.__setattr__(self, name, _tuples(value))

    __post_init__ = _freeze

    def _set(self, **values: object) -> None:
        """Set fields of this frozen record, during its creation or to cache a computed value."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        compared = [entry.name for entry in fields(self) if entry.compare]  # type: ignore[arg-type]
        return equal_values(field_values(self, compared), field_values(other, compared))

    __hash__ = None  # type: ignore[assignment]


def _tuples(value: object) -> Any:
    """Return a list and its nested lists as tuples; other values are unchanged."""
    if type(value) is list:
        return tuple(map(_tuples, value))
    return value


class Described(Record):
    """Base of records that are stored as JSON-serializable dicts with a `kind`, which identifies their class.

    A base class of several kinds defines a `noun` for errors and its own `registry`. If kinds are defined in
    modules that may not be imported yet, `entry_modules` has the names of these modules, and `class_of_kind`
    imports them. `nested` maps the fields that contain such records, or tuples of them, to the base classes
    of these. Class attributes may be given as class arguments: `class Constant(Expression, kind="constant")`.
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
        """Return a JSON-serializable dict with `kind` as its first key."""
        return {"kind": self.kind} | plain_fields(self)

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Self:
        """Return the record with the fields of `to_dict`, without `kind`."""
        for name, base in cls.nested.items():
            contents = fields[name]
            if isinstance(contents, list | tuple):
                record = tuple(map(base.from_dict, contents))
            else:
                record = base.from_dict(contents)
            fields = {**fields, name: record}
        return cls(**fields)

    @classmethod
    def class_of_kind(cls, kind: Any) -> Any:
        """Return the class of a kind; None if there is none."""
        for module in cls.entry_modules:
            if kind not in cls.registry:
                importlib.import_module(module)
        return cls.registry.get(kind)

    @classmethod
    def from_dict(cls, description: Mapping[str, object]) -> Self:
        """Return the record with the contents of `to_dict`."""
        entries = dict(description)
        kind = entries.pop("kind", None)
        kind_class: type[Self] | None = cls.class_of_kind(kind)
        if kind_class is None:
            raise InputError(f"unknown {cls.noun}", given=repr(kind), allowed=", ".join(sorted(cls.registry)))
        return kind_class.parse(entries)


def plain(value: object) -> Any:
    """Return a value as a JSON-serializable object."""
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
    """Return the names of the fields of a dataclass or of an instance."""
    return tuple(entry.name for entry in fields(record))


def field_values(record: object, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the fields of a record by name; by default all."""
    return {name: getattr(record, name) for name in (field_names(record) if names is None else names)}


def without_none(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that are not None."""
    return {name: value for name, value in entries.items() if value is not None}


def plain_fields(record: object, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the fields of a record by name as JSON-serializable objects; by default all."""
    return {name: plain(value) for name, value in field_values(record, names).items()}


def equal_values(left: Any, right: Any) -> bool:
    """Return whether two field values are equal: arrays element by element (NaN equals NaN), dicts by key."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        are_arrays = isinstance(left, np.ndarray) and isinstance(right, np.ndarray)
        return are_arrays and bool(np.array_equal(left, right, equal_nan=left.dtype.kind == "f"))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal_values(left[key], right[key]) for key in left)
    return bool(left == right)


def same_value(one: object, other: object) -> bool:
    """Return whether two values of a unit are equal, also if they were read from different file formats.

    Text files contain only texts. Numbers, booleans, times and nested values therefore equal their texts, and
    a missing value equals an empty text.
    """
    return _canonical(one) == _canonical(other)


def _canonical(value: object) -> str:
    """Return a text that is equal for equal values in different file formats."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    is_nested = isinstance(value, list | tuple | dict)
    if not is_nested and (is_null(value) or value != value):
        return ""
    if is_nested:
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
    """Return a value as text without surrounding spaces; whole numbers have no decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


# Range of absolute values whose squares neither overflow nor underflow.
LARGEST_NUMBER = 1e100
SMALLEST_NUMBER = 1e-100


def sums_by_code(variables: FloatArray, codes: IntArray, count: int = 0) -> FloatArray:
    """Return the sums (K, q) of variables (n, q) over the units of each code; K is at least `count`."""
    return np.stack([np.bincount(codes, column, minlength=count) for column in variables.T], axis=1)


def select_rows(columns: Mapping[str, AnyArray], rows: Any) -> dict[str, AnyArray]:
    """Return the rows of columns by name: a slice, a mask (n,) or positions (m,)."""
    return {name: column[rows] for name, column in columns.items()}


def as_matrix(columns: Sequence[AnyArray], size: int) -> FloatArray:
    """Return d columns (n,) of `size` numbers as a matrix (n, d); d may be 0."""
    matrix = np.empty((size, len(columns)))
    for number, column in enumerate(columns):
        matrix[:, number] = column
    return matrix


def refuse_extremes(name: str, values: FloatArray) -> None:
    """Raise an error for numbers whose squares would overflow or underflow.

    Raises
    ------
    InputError
        If a number is above `LARGEST_NUMBER`, or all numbers are below `SMALLEST_NUMBER`, in absolute value.
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
    """Return a number of threads; refuse values that are not a positive integer."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InputError("threads must be a whole number above 0", given=threads, allowed="1 or more")
    return threads
