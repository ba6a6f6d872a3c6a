"""Draw names, messages and constants of the package to read: `python -m tests.architecture.words SEED`.

Names are those of functions, classes, arguments and fields; messages are the texts of errors and warnings;
constants are the named ones, numbers in expressions other than 0, 1 and 2, and guards: an `if` that ends in a
return, a raise or a continue.
"""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "stratal"
EACH = 50


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.lineno, node.target.id


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Error", "Warning", "warn")):
            for given in [*node.args, *(word.value for word in node.keywords)]:
                text = isinstance(given, ast.Constant) and isinstance(given.value, str)
                if text or isinstance(given, ast.JoinedStr):
                    yield node.lineno, ast.unparse(given)


def constants(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.col_offset == 0:
            yield node.lineno, ast.unparse(node)[:120]
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            if node.value not in (0, 1, 2):
                yield node.lineno, repr(node.value)
        elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue):
            yield node.lineno, f"if {ast.unparse(node.test)}"


def main(seed: int) -> None:
    trees = {path.relative_to(SOURCE): path for path in sorted(SOURCE.rglob("*.py"))}
    for kind in (names, messages, constants):
        found = {
            (text if kind is names else f"{text}:{place}:{line}"): (place, line, text)
            for place, path in trees.items()
            for line, text in kind(ast.parse(path.read_text()))
        }
        print(f"## {kind.__name__}: {EACH} of {len(found)}")
        for key in random.Random(seed).sample(sorted(found), EACH):
            place, line, text = found[key]
            shown = (SOURCE / place).read_text().splitlines()[line - 1].strip()
            print(f"{place}:{line}: {text}" + (f"\n    {shown}" if kind is constants else ""))


if __name__ == "__main__":
    main(int(sys.argv[1]))
