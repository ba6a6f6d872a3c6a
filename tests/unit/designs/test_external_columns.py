"""Sizes of strata in a file of their own, or in each row of the units."""

from __future__ import annotations

import pytest

from stratal.designs.external_columns import stratum_sizes
from stratal.errors import InputError
from stratal.tables.small_table import SmallTable

ROWS = {
    "unit": [1, 2, 3, 4],
    "region": ["n", "n", "s", "s"],
    "N_h": ["30", "30", "5", "5"],
    "income": ["1.5", "2", "3", "1.5"],
}


def test_sizes_may_stand_beside_the_units():
    assert stratum_sizes(SmallTable.of(ROWS, "rows").columns, "region") == {"n": 30, "s": 5}


def test_two_sizes_of_one_stratum_are_refused():
    with pytest.raises(InputError, match=r"a stratum occurs twice, with different sizes.*'n'"):
        stratum_sizes({"stratum": ["n", "n"], "size": [30, 31]}, None)
