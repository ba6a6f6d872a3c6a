"""Generate the page of all error messages from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

KINDS = {"InputError", "BudgetError", "LabelError", "MissingColumnError", "StudyError", "RequirementError"}
SOURCE = Path(__file__).resolve().parents[1] / "src" / "stratal"


Named = list[tuple[int, str, ast.expr]]
"""Line, name and value of a file's assignments, in their order."""


def assigned(tree: ast.Module) -> Named:
    """Return the assignments to names in a file; the text of a message may have a name."""
    found: Named = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            for name, text in zip(target.elts, value.elts, strict=False) if several else [(target, value)]:
                if isinstance(name, ast.Name):
                    found.append((node.lineno, name.id, text))
    return sorted(found, key=lambda entry: entry[0])


def words(node: ast.expr | None, named: Named = ()) -> str:
    """Return the text of an expression; parts that are filled in at run time are `…`."""
    if isinstance(node, ast.Name):  # the last assignment before the call
        before = [text for line, name, text in named if name == node.id and line < node.lineno]
        text = words(before[-1]) if before else "…"
        return text if " " in text else "…"
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(words(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return words(node.left) + words(node.right)
    if isinstance(node, ast.IfExp):
        return " / ".join(filter(None, (words(node.body), words(node.orelse))))
    if isinstance(node, ast.Constant) or node is None:
        return ""
    return "…"


def raised() -> Iterator[tuple[str, str, str, str]]:
    """Yield subpackage, problem, allowed values and advice of every error in the source."""
    for path in sorted(SOURCE.rglob("*.py")):
        subpackage = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text())
        named = assigned(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            if isinstance(node.func, ast.Name) and node.func.id in KINDS:
                what = words(node.args[0] if node.args else given.get("what"), named)
            elif isinstance(node.func, ast.Name) and node.func.id == "HTTPException":
                what, _, action = words(node.args[1], named).partition(". ")
                yield subpackage, what, "", action
                continue
            elif "action" in given:
                what = next((said for said in map(words, node.args) if " " in said), "…")
            else:
                continue
            yield subpackage, what, words(given.get("allowed"), named), words(given.get("action"), named)


def page() -> str:
    """Return the page, a table for each subpackage, without repetitions."""
    subpackages: dict[str, list[str]] = {}
    for subpackage, *parts in raised():
        row = "| " + " | ".join(" ".join(part.split()).replace("|", "\\|") for part in parts) + " |"
        kept = subpackages.setdefault(subpackage, [])
        if row not in kept and (parts[0].strip("… ") or parts[2].strip("… ")):
            kept.append(row)
    text = (
        "# All messages\n\nAll error messages of `stratal`, by the part of the package that raises them. `…` stands for a value that is "
        "filled in. The most frequent ones are explained in [error messages](../how-to/messages.md).\n"
    )
    for subpackage, rows in sorted(subpackages.items()):
        text += f"\n## {subpackage}\n\n| message | allowed | what to do |\n|---|---|---|\n" + "\n".join(sorted(rows)) + "\n"
    return text
