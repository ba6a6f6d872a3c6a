"""Each guarantee of docs/guarantees.md names its tests, and these exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ROWS = [
    line
    for line in (ROOT / "docs/guarantees.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| guarantee")
]


def names(path: Path) -> set[str]:
    """Return the tests and the classes of tests that a file defines."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_a_guarantee_names_tests_that_exist():
    for row in ROWS:
        named = re.findall(r"`(tests/[^`]*)`", row)
        assert named, f"no test is named: {row}"
        for entry in named:
            path, _, name = entry.partition("::")
            assert name in names(ROOT / path), entry
            assert name.startswith(("test_", "Test"))
