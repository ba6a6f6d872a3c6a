"""Times of tracing platforms: without a time zone they are in UTC, wherever the command runs."""

from __future__ import annotations

import time

import pytest

from stratal.tables.platforms.platform import parse_milliseconds


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_a_time_without_a_zone_is_in_utc_everywhere(monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert (
            parse_milliseconds("2026-03-02T12:00")
            == parse_milliseconds("2026-03-02T12:00+00:00")
            == 1772452800000
        )
        assert parse_milliseconds("2026-03-02T21:00+09:00") == 1772452800000
    finally:
        monkeypatch.undo()
        time.tzset()
