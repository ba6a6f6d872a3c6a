"""Each promise of docs/promises.md names the tests that hold it, and these exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ROWS = [
    line
    for line in (ROOT / "docs/promises.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| promise")
]


def names(path: Path) -> set[str]:
    """Return the tests and the classes of tests that a file defines."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


@pytest.mark.parametrize("row", ROWS, ids=[row[2:50] for row in ROWS])
def test_a_promise_names_tests_that_exist(row):
    held = re.findall(r"`(tests/[^`]*)`", row)
    assert held, "nothing holds it"
    for entry in held:
        path, _, name = entry.partition("::")
        assert name in names(ROOT / path), entry
        assert name.startswith(("test_", "Test"))
