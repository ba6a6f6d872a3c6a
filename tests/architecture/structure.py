"""Subpackages, imports and size of the code: `make structure`, or `python -m tests.architecture.structure`.

Arguments are source folders named `stratal`; several are compared in columns. `--calls "VERB"` lists the
functions that one call of a verb enters instead ("plan", "a report", ...).

Imports are counted at run time, inside functions (lazy) and for type annotations. The `__init__` of the
package names every public object lazily and is not counted as an importer. Code lines exclude docstrings,
comments and blank lines.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "stratal"

LAYERS = (
    *("__init__", "errors", "protocols", "names", "arrays", "whole_numbers", "randomness"),
    *("report", "question", "proxy", "tables", "population", "strata", "labels", "designs"),
    *("intervals", "estimation", "metrics", "regression", "planning", "simulation", "study"),
    *("evaluation", "thresholds", "waves", "cli"),
    *("estimands", "testing", "__main__"),
)
"""Subpackages and single modules in the order of imports: each may import itself and those before it."""

SINGLE_MODULES = (*LAYERS[:7], *LAYERS[-3:])
Function = ast.FunctionDef | ast.AsyncFunctionDef


def subpackage(module: str) -> str:
    """Return the subpackage of a dotted module name; a single module is its own subpackage."""
    return [*module.split("."), "__init__"][1]


@dataclass(frozen=True)
class Import:
    """One import: of which name in which module, and when ("run", "lazy" or "type")."""

    importer: str
    module: str
    name: str
    kind: str

    @property
    def subpackages(self) -> tuple[str, str]:
        return subpackage(self.importer), subpackage(self.module)


@dataclass(frozen=True)
class Package:
    """A source folder, parsed but not imported."""

    source: Path
    papers: Path | None = field(default=None)

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        return {name: ast.parse(path.read_text()) for name, path in self.paths.items()}

    @cached_property
    def paths(self) -> dict[str, Path]:
        """Return the file of each dotted module name."""
        paths = {}
        for path in sorted(self.source.rglob("*.py")):
            parts = path.relative_to(self.source.parent).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        return paths

    @cached_property
    def imports(self) -> list[Import]:
        """Return every import of one file by another."""
        imports = [
            entry
            for name, tree in self.trees.items()
            if name != "stratal"
            for entry in self._imports_in(name, tree)
        ]
        return [entry for entry in dict.fromkeys(imports) if entry.importer != entry.module]

    def _imports_in(self, importer: str, tree: ast.AST, kind: str = "run") -> Iterator[Import]:
        for node in ast.iter_child_nodes(tree):
            kind_inside = kind
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                kind_inside = "type"
            elif isinstance(node, Function) and kind == "run":
                kind_inside = "lazy"
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "stratal":
                for alias in node.names:
                    full_name = f"{node.module}.{alias.name}"
                    module = full_name if full_name in self.paths else str(node.module)
                    yield Import(importer, module, alias.name, kind)
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names if alias.name.split(".")[0] == "stratal"]
                yield from (Import(importer, name, "", kind) for name in names)
            yield from self._imports_in(importer, node, kind_inside)

    def dependencies(self) -> set[tuple[str, str]]:
        """Return the pairs of subpackages of which the first imports the second."""
        return {entry.subpackages for entry in self.imports if len(set(entry.subpackages)) == 2}

    def upward_imports(self) -> list[Import]:
        """Return the imports of a later subpackage by an earlier one that are not allowed.

        An import for type annotations is allowed if it imports a protocol or an abstract base class.
        """
        upward = []
        for entry in self.imports:
            importer, imported = entry.subpackages
            is_upward = LAYERS.index(importer) < LAYERS.index(imported)
            if is_upward and (entry.kind != "type" or not self._is_abstract(entry.module, entry.name)):
                upward.append(entry)
        return upward

    def _is_abstract(self, module: str, name: str) -> bool:
        for node in ast.walk(self.trees[module]):
            if isinstance(node, ast.ClassDef) and node.name == name:
                bases = {ast.unparse(base).split("[")[0] for base in node.bases}
                keywords = {ast.unparse(keyword.value) for keyword in node.keywords}
                return bool(bases & {"Protocol", "ABC"} or "ABCMeta" in keywords)
            if isinstance(node, ast.ImportFrom) and name in {a.asname or a.name for a in node.names}:
                return node.module in self.trees and self._is_abstract(str(node.module), name)
        return False

    def cycles(self) -> list[list[str]]:
        """Return the sets of files that import each other in a cycle, by imports of any kind."""
        targets: dict[str, set[str]] = {name: set() for name in self.paths}
        for entry in self.imports:
            targets[entry.importer].add(entry.module)
        reachable = {name: _reachable(name, targets) for name in targets}
        cycles = {frozenset(b for b in reachable[a] if a in reachable[b]) for a in targets}
        return sorted(sorted(cycle) for cycle in cycles if len(cycle) > 1)

    def counts(self) -> dict[str, object]:
        """Return everything that is counted without running the code."""
        # `__main__` must be a single module: `python -m stratal` looks for it there.
        single = [
            name
            for name, path in self.paths.items()
            if path.parent == self.source and path.name != "__main__.py"
        ]
        subpackages = {subpackage(name) for name in self.paths if self.paths[name].parent != self.source}
        has_layers = subpackages <= set(LAYERS)
        lengths = {name: len(code_line_numbers(path.read_text())) for name, path in self.paths.items()}
        longest = max(lengths, key=lambda name: lengths[name])
        return {
            "subpackages": len(subpackages),
            "single modules": len(single),
            "files": len(self.paths),
            "dependencies between subpackages": len(self.dependencies()),
            "upward imports": len(self.upward_imports()) if has_layers else "—",
            "import cycles between files": len(self.cycles()),
            "code lines of stratal": self.code_lines(self.source),
            "code lines of the papers": self.code_lines(self.papers) if self.papers else "—",
            "files of fewer than 40 code lines": sum(lines < 40 for lines in lengths.values()),
            "longest file (code lines)": f"{lengths[longest]} ({longest})",
        }

    @staticmethod
    def code_lines(folder: Path) -> int:
        """Return the number of code lines of a folder."""
        return sum(len(code_line_numbers(path.read_text())) for path in folder.rglob("*.py"))


def _reachable(start: str, targets: dict[str, set[str]]) -> set[str]:
    reachable: set[str] = set()
    queue = [start]
    while queue:
        for name in targets.get(queue.pop(), set()) - reachable:
            reachable.add(name)
            queue.append(name)
    return reachable


def code_line_numbers(text: str) -> list[int]:
    """Return the numbers of the lines that are not docstrings, comments or blank."""
    docstring_lines = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(text.splitlines(), 1)
    return [n for n, line in lines if line.strip() and line.strip()[0] != "#" and n not in docstring_lines]


TRACED_CALLS = """
import json, sys
from pathlib import Path
import numpy as np
import stratal

def workflow(measure):
    rng = np.random.default_rng(0)
    proxy = rng.beta(3, 1, 500)
    population = stratal.Population.from_arrays(proxy=proxy)
    plan = measure("plan", lambda: stratal.plan(population, 100))
    measure("plan(half_width=)", lambda: stratal.plan(population, half_width=0.05))
    sample = measure("draw", lambda: plan.draw(seed=1))
    labels = dict(zip(sample.ids.tolist(), (rng.random(100) < 0.8).astype(float).tolist()))
    estimate = measure("estimate", lambda: stratal.estimate(sample, labels))
    measure("confidence_interval", lambda: estimate.confidence_interval())
    measure("next_round", lambda: stratal.next_round(sample, labels, half_width=0.05))
    measure("a report", lambda: stratal.findings(sample, labels)._repr_html_())

def trace(name, call):
    entered = set()
    def profile(frame, event, _):
        code = frame.f_code
        if event == "call" and "/stratal/" in code.co_filename and not code.co_name.startswith("<"):
            entered.add((code.co_filename, code.co_qualname))
    sys.setprofile(profile)
    try:
        return call()
    finally:
        sys.setprofile(None)
        functions[name] = sorted(
            (str(Path(file).relative_to(HOME).with_suffix("")), function) for file, function in entered
        )

functions, HOME = {}, Path(stratal.__file__).parent
workflow(lambda name, call: call())
workflow(trace)
print(json.dumps(functions))
"""
"""One call of each verb on 500 units and 100 labels. The first run loads the modules and is not traced."""


def entered_functions(source: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the files and functions of stratal that each traced call enters."""
    process = subprocess.run(
        [sys.executable, "-c", TRACED_CALLS],
        env={"PYTHONPATH": str(source.parent), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    traced = json.loads(process.stdout)
    return {verb: [(file, function) for file, function in entered] for verb, entered in traced.items()}


def main(sources: list[Path]) -> None:
    """Print one column for each source, and the import cycles of the last."""
    columns = []
    for source in sources:
        package = Package(source, source.parents[1] / "papers")
        entered = entered_functions(source)
        columns.append(package.counts() | {f"`{verb}` enters": _count(entered[verb]) for verb in entered})
    for row in columns[0]:
        print(f"| {row} | {' | '.join(str(column[row]) for column in columns)} |")
    for cycle in package.cycles():
        print("cycle:", *(name.removeprefix("stratal.") for name in cycle))


def _count(entered: list[tuple[str, str]]) -> str:
    return f"{len({file for file, _ in entered})} files, {len(entered)} functions"


def print_functions(verb: str) -> None:
    """Print the functions that one verb enters, one line per file."""
    entered = entered_functions(SOURCE)[verb]
    for file in sorted({file for file, _ in entered}):
        print(f"{file}: {', '.join(function for other, function in entered if other == file)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--calls"]:
        print_functions(sys.argv[2])
    else:
        main([Path(name).resolve() for name in sys.argv[1:]] or [SOURCE])
