"""The plan of the house, counted: `make map`, or `python -m tests.architecture.house [SOURCE ...]`.

`--calls "VERB"` instead lists the functions that one call of a verb enters ("plan", "a report", ...).

A source is a folder `stratal`; several are set side by side. Arrows are imports, at run time, inside
functions (lazy) and for types alone. The package's own `__init__` names every public thing lazily and is left
out of the arrows. Code lines leave out docstrings, comments and blank lines.
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

HERE = Path(__file__).parents[2] / "src" / "stratal"

ROOMS = (
    *("__init__", "errors", "arrays", "randomness"),
    *("report", "question", "proxy", "tables", "population", "strata", "labels", "designs"),
    *("intervals", "estimation", "planning", "simulation", "study", "evaluation", "cli"),
    *("estimands", "testing", "__main__"),
)
"""Each room has its own floor: it may import those before it, and itself."""

LOOSE = (*ROOMS[:4], *ROOMS[-3:])
Definition = ast.FunctionDef | ast.AsyncFunctionDef


def room(module: str) -> str:
    """Return the room of a module's dotted name; a loose file is its own."""
    return [*module.split("."), "__init__"][1]


@dataclass(frozen=True)
class Arrow:
    """One import: who, of what name in which module, and when ("run", "lazy" or "type")."""

    importer: str
    module: str
    name: str
    kind: str

    @property
    def rooms(self) -> tuple[str, str]:
        return room(self.importer), room(self.module)


@dataclass(frozen=True)
class House:
    """A source folder, read but not imported."""

    source: Path
    papers: Path | None = field(default=None)

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        return {name: ast.parse(path.read_text()) for name, path in self.paths.items()}

    @cached_property
    def paths(self) -> dict[str, Path]:
        """Return the file of each module's dotted name."""
        found = {}
        for path in sorted(self.source.rglob("*.py")):
            parts = path.relative_to(self.source.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        return found

    @cached_property
    def arrows(self) -> list[Arrow]:
        """Return every import of one file by another."""
        found = [
            arrow for name, tree in self.trees.items() if name != "stratal" for arrow in self._of(name, tree)
        ]
        return [arrow for arrow in dict.fromkeys(found) if arrow.importer != arrow.module]

    def _of(self, importer: str, tree: ast.AST, kind: str = "run") -> Iterator[Arrow]:
        for node in ast.iter_child_nodes(tree):
            inner = kind
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                inner = "type"
            elif isinstance(node, Definition) and kind == "run":
                inner = "lazy"
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "stratal":
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    module = full if full in self.paths else str(node.module)
                    yield Arrow(importer, module, alias.name, kind)
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names if alias.name.split(".")[0] == "stratal"]
                yield from (Arrow(importer, name, "", kind) for name in names)
            yield from self._of(importer, node, inner)

    def room_arrows(self) -> set[tuple[str, str]]:
        """Return the pairs of rooms of which the first imports the second."""
        return {arrow.rooms for arrow in self.arrows if len(set(arrow.rooms)) == 2}

    def pointing_up(self) -> list[Arrow]:
        """Return the imports of a later room by an earlier one that nothing excuses.

        An import for types alone may point up to a protocol or an abstract base class.
        """
        up = [a for a in self.arrows if ROOMS.index(a.rooms[0]) < ROOMS.index(a.rooms[1])]
        return [a for a in up if a.kind != "type" or not self._abstract(a.module, a.name)]

    def _abstract(self, module: str, name: str) -> bool:
        for node in ast.walk(self.trees[module]):
            if isinstance(node, ast.ClassDef) and node.name == name:
                bases = {ast.unparse(base).split("[")[0] for base in node.bases}
                keywords = {ast.unparse(keyword.value) for keyword in node.keywords}
                return bool(bases & {"Protocol", "ABC"} or "ABCMeta" in keywords)
            if isinstance(node, ast.ImportFrom) and name in {a.asname or a.name for a in node.names}:
                return node.module in self.trees and self._abstract(str(node.module), name)
        return False

    def loops(self) -> list[list[str]]:
        """Return the sets of files that import each other in a circle, of whatever kind the imports are."""
        targets: dict[str, set[str]] = {name: set() for name in self.paths}
        for arrow in self.arrows:
            targets[arrow.importer].add(arrow.module)
        reached = {name: _reached(name, targets) for name in targets}
        circles = {frozenset(b for b in reached[a] if a in reached[b]) for a in targets}
        return sorted(sorted(circle) for circle in circles if len(circle) > 1)

    def figures(self) -> dict[str, object]:
        """Return all that is counted without running anything."""
        loose = [
            name
            for name, path in self.paths.items()
            if path.parent == self.source and path.name != "__main__.py"  # where `python -m` looks for it
        ]
        rooms = {room(name) for name in self.paths if self.paths[name].parent != self.source}
        known = rooms <= set(ROOMS)
        lengths = {name: len(code_line_numbers(path.read_text())) for name, path in self.paths.items()}
        longest = max(lengths, key=lambda name: lengths[name])
        return {
            "rooms": len(rooms),
            "loose files": len(loose),
            "files": len(self.paths),
            "arrows between rooms": len(self.room_arrows()),
            "arrows that point up": len(self.pointing_up()) if known else "—",
            "import loops between files": len(self.loops()),
            "code lines of stratal": self.code_lines(self.source),
            "code lines of the papers": self.code_lines(self.papers) if self.papers else "—",
            "files of fewer than 40 code lines": sum(lines < 40 for lines in lengths.values()),
            "longest file (code lines)": f"{lengths[longest]} ({longest})",
        }

    @staticmethod
    def code_lines(folder: Path) -> int:
        """Return the lines of a folder that are neither docstring, nor comment, nor blank."""
        return sum(len(code_line_numbers(path.read_text())) for path in folder.rglob("*.py"))


def _reached(start: str, targets: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for name in targets.get(waiting.pop(), set()) - seen:
            seen.add(name)
            waiting.append(name)
    return seen


def code_line_numbers(text: str) -> list[int]:
    """Return the numbers of the lines that are neither docstring, nor comment, nor blank."""
    strings = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(text.splitlines(), 1)
    return [n for n, line in lines if line.strip() and line.strip()[0] != "#" and n not in strings]


TRIP = """
import json, sys
from pathlib import Path
import numpy as np
import stratal

def trip(measure):
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

def counted(name, call):
    seen = set()
    def look(frame, event, _):
        code = frame.f_code
        if event == "call" and "/stratal/" in code.co_filename and not code.co_name.startswith("<"):
            seen.add((code.co_filename, code.co_qualname))
    sys.setprofile(look)
    try:
        return call()
    finally:
        sys.setprofile(None)
        figures[name] = sorted(
            (str(Path(file).relative_to(HOME).with_suffix("")), calls) for file, calls in seen
        )

figures, HOME = {}, Path(stratal.__file__).parent
trip(lambda name, call: call())
trip(counted)
print(json.dumps(figures))
"""
"""One real call of each verb on 500 units and 100 labels, run once before it is counted."""


def passed(source: Path) -> dict[str, list[tuple[str, str]]]:
    """Return, for each call of a trip, the files and functions of stratal that it enters."""
    done = subprocess.run(
        [sys.executable, "-c", TRIP],
        env={"PYTHONPATH": str(source.parent), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        verb: [(file, call) for file, call in entered] for verb, entered in json.loads(done.stdout).items()
    }


def main(sources: list[Path]) -> None:
    """Print one column for each source, then what is still wrong in the last."""
    columns = []
    for source in sources:
        house = House(source, source.parents[1] / "papers")
        entered = passed(source)
        columns.append(house.figures() | {f"`{verb}` passes": _count(entered[verb]) for verb in entered})
    for row in columns[0]:
        print(f"| {row} | {' | '.join(str(column[row]) for column in columns)} |")
    for loop in house.loops():
        print("loop:", *(name.removeprefix("stratal.") for name in loop))


def _count(entered: list[tuple[str, str]]) -> str:
    return f"{len({file for file, _ in entered})} files, {len(entered)} functions"


def show(verb: str) -> None:
    """Print the functions that one verb enters, a line for each file."""
    entered = passed(HERE)[verb]
    for file in sorted({file for file, _ in entered}):
        print(f"{file}: {', '.join(call for other, call in entered if other == file)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--calls"]:
        show(sys.argv[2])
    else:
        main([Path(name).resolve() for name in sys.argv[1:]] or [HERE])
