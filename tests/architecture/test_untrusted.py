"""Files are data: nothing in the package can run what a file says."""

from __future__ import annotations

import ast
from pathlib import Path

import stratal

SOURCE = Path(stratal.__file__).parent
MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "yaml"}
CALLS = {"eval", "exec", "compile", "system", "popen"}
WORDS = {"allow_pickle", "shell"}


def runs(tree: ast.AST) -> list[str]:
    """Return what in a module can run text or bytes as a program."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module] if (node.module or "").split(".")[0] in MODULES else []
        elif isinstance(node, ast.Call):
            function = node.func
            owner = function.value if isinstance(function, ast.Attribute) else None
            name = getattr(function, "id", None) or getattr(function, "attr", "")
            free = owner is None or (isinstance(owner, ast.Name) and owner.id in ("os", "builtins"))
            found += [name] if name in CALLS and free else []
            found += [word.arg for word in node.keywords if word.arg in WORDS]
    return found


def test_nothing_is_unpickled_or_evaluated():
    found = {
        str(path.relative_to(SOURCE)): ways
        for path in SOURCE.rglob("*.py")
        if (ways := runs(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert found == {}


def test_what_runs_text_is_seen():
    tree = ast.parse("import pickle\neval(text)\nos.system(text)\nnumpy.load(path, allow_pickle=True)")
    assert runs(tree) == ["pickle", "eval", "system", "allow_pickle"]
