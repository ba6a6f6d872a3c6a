"""Only the major version of Ibis has an upper bound: other packages are not restricted."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_only_ibis_has_an_upper_bound() -> None:
    """See docs/decisions/0003-ibis-bounds.md."""
    text = (ROOT / "pyproject.toml").read_text()
    bounded = [entry for entry in tomllib.loads(text)["project"]["dependencies"] if "<" in entry]

    assert bounded == ["ibis-framework>=12,<13"]
    if int(version("ibis-framework").split(".")[0]) > 12:
        pytest.fail("a newer Ibis is installed: lift ibis<13 and pyspark<4.1, and look at the decision again")
