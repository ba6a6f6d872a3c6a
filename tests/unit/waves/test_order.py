"""The order of waves in a column: by their numbers where these show it, else that of the rows."""

from __future__ import annotations

import pytest

import stratal
from stratal.errors import InputError
from stratal.waves.order import sorted_waves


@pytest.mark.parametrize(
    "levels",
    [
        ["Q3 2025", "Q4 2025", "Q1 2026"],
        ["Oct 2025", "Nov 2025", "Dec 2025", "Jan 2026"],
        ["Jan 2026", "Feb 2026", "Mar 2026"],
        ["w52/2025", "w1/2026"],
        ["12/2025", "01/2026"],
        ["11.2025", "12.2025", "1.2026"],
        ["122025", "012026"],
        ["week 52 of 2025", "week 1 of 2026"],
        ["before", "after"],
        ["2 weeks ago", "1 week ago"],
        ["3 weeks ago", "2 weeks ago"],
        ["2025.25", "2025.5", "2025.75"],
        ["2025.11", "2025.12", "2026.01"],
        ["v1.9", "v1.10"],
        ["baseline", "week 1", "week 2"],
        ["2025", "2026-01"],
    ],
)
def test_waves_whose_numbers_do_not_show_the_order_keep_that_of_adjacent_rows(levels):
    rows = [level for level in levels for _ in range(3)]
    assert sorted_waves(rows) == levels

    mixed = [*rows, levels[0]]
    with pytest.raises(InputError, match="the order of the waves is not clear"):
        sorted_waves(mixed)


@pytest.mark.parametrize(
    "levels",
    [
        ["9", "10", "11"],
        ["-1", "0", "1"],
        ["9.0", "10.0"],
        ["week 9", "Week 10"],
        ["2025-W52", "2026-W01", "2026-W9", "2026-W10"],
        ["2025Q4", "2026Q1"],
        ["FY2025 Q4", "FY2026 Q1"],
        ["2026-03-02", "2026-03-09", "2026-11-02"],
        ["20251231", "20260101"],
    ],
)
def test_waves_with_one_number_or_the_year_first_are_sorted(levels):
    assert sorted_waves([*levels[::-1], *levels]) == levels
    assert sorted_waves(levels[::-1]) == levels


@pytest.mark.parametrize(
    "levels",
    [
        ["51", "52", "1", "2"],
        ["week 52", "week 1"],
        ["3/12/2026", "4/11/2026"],
        ["Q1 2026", "Q4 2025", "Q3 2025"],
    ],
)
def test_an_order_that_is_not_clear_is_refused_with_the_next_step(levels):
    with pytest.raises(InputError, match="the order of the waves is not clear") as error:
        sorted_waves(levels)
    assert "2026-" in str(error.value)


def test_the_latest_wave_of_a_table_is_the_last_quarter():
    quarters = ["Q3 2025", "Q4 2025", "Q1 2026"]
    table = {
        "quarter": [quarter for quarter in quarters for _ in range(30)],
        "label": [1, 0, 1] * 30,
        "id": range(90),
    }
    result = stratal.trend(table, wave="quarter")

    assert [wave.name for wave in result.waves] == quarters
    assert any(
        "order of the rows: Q3 2025 is the first and Q1 2026 is the latest" in note for note in result.notes
    )
    by_number = stratal.trend({**table, "quarter": [1] * 30 + [2] * 60}, wave="quarter")
    assert not any("order of the rows" in note for note in by_number.notes)
