from __future__ import annotations

import numpy as np
import pytest

from stratal.arrays import equal_values, finite_vector, frozen, numeric_array, same_length
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
