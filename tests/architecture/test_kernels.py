"""`make mutants` finds the kernels that it is to change, and the tests that are to notice."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_kernels_and_their_tests_are_there():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
    places = [
        *settings["only_mutate"],
        *settings["pytest_add_cli_args_test_selection"],
        *settings["also_copy"],
    ]

    assert [place for place in places if not (ROOT / place).exists()] == []
