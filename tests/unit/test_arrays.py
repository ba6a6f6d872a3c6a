from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from stratal.arrays import (
    array_of,
    code_count,
    equal_values,
    finite_vector,
    frozen,
    mid_ranks,
    numeric_array,
    same_length,
    unit_scale,
)
from stratal.errors import InputError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.1, float("nan")], "NaN.*position 1"),
        ([float("inf"), float("nan")], "NaN"),
        ([float("-inf")], "infinite"),
        ([0.1, None], "missing value.*position 1"),
        (["a"], "not numeric"),
        ([[0.1]], "one-dimensional"),
        (0.5, "one-dimensional"),
    ],
)
def test_what_is_no_finite_vector_is_named(values, message):
    with pytest.raises(InputError, match=message):
        finite_vector("proxy", values)


def test_float32_is_widened():
    vector = finite_vector("proxy", np.array([0.1], dtype=np.float32))

    assert vector.dtype == np.float64
    assert vector[0] == float(np.float32(0.1))


def test_frozen_arrays_cannot_be_written_and_leave_the_original_alone():
    original = np.zeros(2)
    with pytest.raises(ValueError, match="read-only"):
        frozen(original)[0] = 1
    original[0] = 1


def test_lengths_that_differ_are_named():
    with pytest.raises(InputError, match=r"z and proxy.*2 and 3"):
        same_length(proxy=np.zeros(3), z=np.zeros(2))


def test_equality_goes_into_mappings_and_arrays():
    assert equal_values({"a": np.array(["x"])}, {"a": np.array(["x"])})
    assert not equal_values({"a": np.array([1])}, {"a": np.array([2])})
    assert not equal_values({"a": np.array([1])}, {"b": np.array([1])})
    assert not equal_values(np.array([1]), [1])


def test_booleans_are_numbers():
    assert numeric_array("z", [True, False]).tolist() == [1, 0]


@pytest.mark.parametrize(
    "values",
    [
        np.array(["0.5", "1_0"]),
        np.array(["0.5", "1"], dtype=object),
        np.array([1 + 2j]),
        np.array(["2024-01-01"], dtype="datetime64[ns]"),
        np.array([5], dtype="timedelta64[s]"),
        np.array([b"1"]),
        np.array([10**400], dtype=object),
    ],
    ids=["text", "objects", "complex", "dates", "durations", "bytes", "huge"],
)
def test_what_only_looks_like_numbers_is_refused(values):
    with pytest.raises(InputError, match="not numeric"):
        numeric_array("proxy", values)


def test_masked_entries_are_missing():
    with pytest.raises(InputError, match=r"missing value \(masked\) at position 1"):
        numeric_array("proxy", np.ma.masked_array([0.1, 0.2], [False, True]))

    assert numeric_array("proxy", np.ma.masked_array([0.1, 0.2])).tolist() == [0.1, 0.2]


@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("entries", [["x", None, "y"], [0.5, None, 0.25]])
def test_what_is_missing_in_a_dictionary_of_pyarrow_stays_missing(entries, chunks):
    column = pa.chunked_array([pa.array(entries).dictionary_encode()] * chunks)

    found = array_of(column).tolist()

    assert [None if value != value else value for value in found] == entries * chunks


def test_equal_values_share_the_mean_of_their_ranks():
    assert mid_ranks(np.array([3.0, 1.0, 3.0, 7.0])).tolist() == [2.0, 0.5, 2.0, 3.5]


def test_no_units_are_in_no_group():
    assert code_count(np.array([0, 2, 1])) == 3
    assert code_count(np.zeros(0, np.int64)) == 0


def test_outcomes_at_the_bounds_are_0_and_1():
    assert unit_scale(np.array([1.0, 3.0, 5.0]), (1.0, 5.0)).tolist() == [0.0, 0.5, 1.0]
