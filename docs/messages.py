"""The page of all messages: what every mistake says and what to do, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

KINDS = {"InputError", "BudgetError", "LabelError", "MissingColumnError", "StudyError", "RequirementError"}
SOURCE = Path(__file__).resolve().parents[1] / "src" / "stratal"


Named = list[tuple[int, str, ast.expr]]
"""Line, name and value of a file's assignments, in their order."""


def assigned(tree: ast.Module) -> Named:
    """Return what names are given in a file; a message may have one for its words."""
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
    """Return the words of an expression that makes a text; what is filled in at run time is `…`."""
    if isinstance(node, ast.Name):  # the words that it was given last before the call
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
    """Yield room, what is said, what is allowed and what to do, of every mistake that the source names."""
    for path in sorted(SOURCE.rglob("*.py")):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
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
                yield room, what, "", action
                continue
            elif "action" in given:
                what = next((said for said in map(words, node.args) if " " in said), "…")
            else:
                continue
            yield room, what, words(given.get("allowed"), named), words(given.get("action"), named)


def page() -> str:
    """Return the page, a table for each room, without repetitions."""
    rooms: dict[str, list[str]] = {}
    for room, *parts in raised():
        row = "| " + " | ".join(" ".join(part.split()).replace("|", "\\|") for part in parts) + " |"
        kept = rooms.setdefault(room, [])
        if row not in kept and (parts[0].strip("… ") or parts[2].strip("… ")):
            kept.append(row)
    text = (
        "# All messages\n\nEverything that `stratal` may say of a mistake, by the part of the package that says it; `…` is filled in when it "
        "is said. The common ones are explained [in the FAQ](../how-to/messages.md).\n"
    )
    for room, rows in sorted(rooms.items()):
        text += f"\n## {room}\n\n| message | allowed | what to do |\n|---|---|---|\n" + "\n".join(sorted(rows)) + "\n"
    return text
