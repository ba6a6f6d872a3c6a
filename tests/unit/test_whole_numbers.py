"""Whole numbers in floating point."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.whole_numbers import MAX_EXACT_INTEGER, all_rounded_up, rounded_down, rounded_up


def test_neighbours_beyond_the_largest_exact_integer_are_the_same_number():
    assert MAX_EXACT_INTEGER - 1.0 != MAX_EXACT_INTEGER
    assert MAX_EXACT_INTEGER + 1.0 == MAX_EXACT_INTEGER


@pytest.mark.parametrize(("number", "up", "down"), [(0.07 * 100, 7, 7), (0.29 * 100, 29, 29), (7.1, 8, 7)])
def test_rounding_errors_move_no_count(number, up, down):
    """0.07 · 100 is just above 7, and 0.29 · 100 just below 29."""
    assert rounded_up(number) == up
    assert all_rounded_up(np.array([number, up])).tolist() == [up, up]
    assert rounded_down(number) == down
