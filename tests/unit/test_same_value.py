"""A value is known again from its text in another format."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pytest

from stratal.arrays import same_value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (7, "7"), (7.0, "7"), (0.5, "0.5"), (1e-5, "0.00001"), (True, "true"), (None, ""),
        (float("nan"), None), (Decimal("1.50"), "1.5"), ([1, "a"], '[1, "a"]'),
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'), (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.datetime(2026, 1, 2, 3, 4), "2026-01-02T03:04:00"),
        (datetime.datetime(2026, 1, 2), "2026-01-02"), (np.float64(2.0), 2),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, 500000, datetime.UTC), "2026-01-02 03:04:05.5+00:00"),
    ],
)  # fmt: skip
def test_a_value_is_its_text(one, other):
    assert same_value(one, other)


@pytest.mark.parametrize(("one", "other"), [("007", 7), ("a", "b"), (0, ""), (1, True), ("1.0x", "1.0")])
def test_other_values_are_others(one, other):
    assert not same_value(one, other)
