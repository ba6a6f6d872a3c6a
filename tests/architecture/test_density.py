"""The source stays within its limits of density, and the program that measures it counts what it says."""

from __future__ import annotations

import pytest
from tests.architecture.density import LIMITS, exceeded, measure


def test_the_source_is_within_the_limits():
    assert exceeded(measure()) == []


def test_packed_assignments_and_conditional_expressions_are_counted(tmp_path):
    (tmp_path / "packed.py").write_text('"""One line."""\na, b = 1, 2\nc = a if b else 0\n', encoding="utf-8")

    figures = measure(tmp_path)

    assert figures["packed assignments per 100"] == pytest.approx(50.0)
    assert figures["conditional expressions per 100 assignments"] == pytest.approx(50.0)
    assert figures["tokens per statement"] == pytest.approx(14 / 2)
    assert figures["lines of docstrings per 100 statements"] == pytest.approx(50.0)
    assert len(exceeded(figures)) == 3
    assert set(figures) == set(LIMITS)
