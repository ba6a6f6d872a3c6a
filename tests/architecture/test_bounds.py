"""Tells when the upper bounds on DuckDB and sqlglot can go: with the first Ibis after 12."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def bounds() -> dict[str, str]:
    text = (ROOT / "pyproject.toml").read_text()
    return {
        entry.split("[")[0].split(">")[0].split("<")[0]: entry
        for entry in tomllib.loads(text)["project"]["dependencies"]
    }


def test_the_bounds_that_ibis_12_needs_go_with_it() -> None:
    """See docs/decisions/0003-ibis-bounds.md."""
    given = bounds()
    if "<13" not in given["ibis-framework"]:
        held = [entry for name, entry in given.items() if name in ("duckdb", "sqlglot") and "<" in entry]
        assert not held, f"Ibis 13 is allowed: try without the upper bounds of {held}, and drop this test"
    if int(version("ibis-framework").split(".")[0]) > 12:
        pytest.fail("a newer Ibis is installed: lift ibis<13, try without duckdb<2 and sqlglot<30.18")
