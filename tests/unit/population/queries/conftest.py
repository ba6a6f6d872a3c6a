"""Populations of these tests are tables, however small."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def nothing_fits_in_memory(monkeypatch):
    monkeypatch.setattr("stratal.tables.source.MAX_MEMORY_ROWS", 0)
