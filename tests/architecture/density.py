"""Density of the source per statement, against limits: `make lint`, `python -m tests.architecture.density`.

A statement is a logical line without docstrings, so that formatting does not change a figure. The limits are
the goals where they are reached, and the present figures, rounded up, where they are not: they only go down.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "stratal"

LAYOUT = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT)

LIMITS = {
    "tokens per statement": 11.5,
    "packed assignments per 100": 0.3,
    "conditional expressions per 100 assignments": 4.5,
    "lines of docstrings per 100 statements": 43.0,
}


@dataclass
class Counts:
    """What is counted in the source."""

    statements: int = 0
    tokens: int = 0
    assignments: int = 0
    packed: int = 0
    conditionals: int = 0
    docstring_lines: int = 0

    def add(self, path: Path) -> None:
        """Count a file."""
        text = path.read_text(encoding="utf-8")
        docstring_lines: set[int] = set()
        for node in ast.walk(ast.parse(text)):
            docstring_lines |= lines_of_docstring(node)
            if isinstance(node, ast.Assign):
                self.packed += isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
            is_assignment = isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            self.assignments += is_assignment
            self.conditionals += isinstance(node, ast.IfExp)
        self.docstring_lines += len(docstring_lines)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in LAYOUT or token.start[0] in docstring_lines:
                continue
            if token.type == tokenize.NEWLINE:
                self.statements += 1
            else:
                self.tokens += 1

    def figures(self) -> dict[str, float]:
        """Return the figures that have a limit."""
        return {
            "tokens per statement": self.tokens / self.statements,
            "packed assignments per 100": 100 * self.packed / self.assignments,
            "conditional expressions per 100 assignments": 100 * self.conditionals / self.assignments,
            "lines of docstrings per 100 statements": 100 * self.docstring_lines / self.statements,
        }


def lines_of_docstring(node: ast.AST) -> set[int]:
    """Return the numbers of the lines of a node's docstring; none if it has no docstring."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    if ast.get_docstring(node, clean=False) is None:
        return set()
    first = node.body[0]
    return set(range(first.lineno, (first.end_lineno or first.lineno) + 1))


def measure(source: Path = SOURCE) -> dict[str, float]:
    """Return the figures of all files below a folder."""
    counts = Counts()
    for path in sorted(source.rglob("*.py")):
        counts.add(path)
    return counts.figures()


def exceeded(figures: dict[str, float]) -> list[str]:
    """Return a line for each figure above its limit."""
    return [
        f"{name}: {figure:.2f}, limit {LIMITS[name]:g}"
        for name, figure in figures.items()
        if figure > LIMITS[name]
    ]


def main() -> None:
    """Print the figures; exit with 1 if one is above its limit."""
    figures = measure()
    for name, figure in figures.items():
        print(f"{name}: {figure:.2f} (limit {LIMITS[name]:g})")
    sys.exit(1 if exceeded(figures) else 0)


if __name__ == "__main__":
    main()
