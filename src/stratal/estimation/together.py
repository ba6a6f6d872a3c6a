"""Several estimands as one: the sum of their influences, and the cells in which each is known or open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import mul

import numpy as np

from stratal.population.cells import Cells
from stratal.population.expressions import Constant, Expression, total
from stratal.population.influence import Influence, averages
from stratal.population.level_tests import LevelSet, both_tests
from stratal.population.population import Population

MOST_CELLS = 64
"""Cells of a list; where there would be more, units are told apart by whether they are known to all."""

KNOWN, OPEN = "nothing open", "something open"


def together(influences: list[Influence], population: Population) -> Influence:
    """Return one influence for several estimands: Neyman's rule on it minimises the sum of their variances.

    Each is divided by the deviation that it is expected to have, so that all count alike. The mean of
    v = Σ u_j orders the units within cells, and Σ E[u_j²], times their number, is no less than E[v²]. The
    cells are those of all; what is known in every one is known.

    Examples
    --------
    >>> from stratal.population.expressions import Number
    >>> p, everything = Number(name="p"), Cells(names=("all",))
    >>> part = Influence(value=0.5, mean=p - 0.5, square=p * 0.0 + 0.25, cells=everything)
    >>> population = Population.from_arrays(proxy={"p": [0.25, 0.75]})
    >>> together([part, part], population).cells.names
    ('all',)
    """
    squares = np.maximum(averages(population, [part.square for part in influences]), 1e-300)
    scales = 1.0 / np.sqrt(squares)
    mean = total([float(c) * part.mean for c, part in zip(scales, influences, strict=True)])
    square = total(
        [float(len(scales) * c**2) * part.square for c, part in zip(scales, influences, strict=True)]
    )
    cells, known = crossed_cells(influences)
    return Influence(value=np.nan, mean=mean, square=square, cells=cells, known=known)


def crossed_cells(influences: list[Influence]) -> tuple[Cells, tuple[str, ...]]:
    """Return the cells of several influences crossed, and those that are known to all.

    Cells that no unit can be in are left out: answers of two classes at once.

    Examples
    --------
    >>> from stratal.population.expressions import Agree
    >>> cells = Cells(names=("same", "differ"), tests=(Agree(names=("a", "b")),))
    >>> zero = Constant(value=0.0)
    >>> part = Influence(value=0.0, mean=zero, square=zero, cells=cells, known=("same",))
    >>> crossed_cells([part, part])[0].names
    ('same', 'differ')
    """
    cells, known = influences[0].cells, influences[0].known
    for part in influences[1:]:
        if part.cells == cells:
            known = tuple(name for name in known if name in part.known)
            continue
        most = max(MOST_CELLS, len(cells.names), len(part.cells.names))
        found = _Crossing(_Side(cells, known), _Side(part.cells, part.known)).cells(most)
        if found is None:
            return _known_or_open(influences)
        cells, known = found
    return cells, known


def _known_or_open(influences: list[Influence]) -> tuple[Cells, tuple[str, ...]]:
    """Return two cells: where all influences are known, and the rest; one where some is known nowhere."""
    if not all(part.known for part in influences):
        return Cells(names=("all",)), ()
    needless = [part.needless for part in influences]
    return Cells(names=(KNOWN, OPEN), tests=(reduce(mul, needless),)), (KNOWN,)


@dataclass(frozen=True)
class _Side:
    """One of the two divisions that are crossed."""

    division: Cells
    known: tuple[str, ...]

    @cached_property
    def tests(self) -> list[Expression | None]:
        """The tests of all cells; the last has none."""
        return [*self.division.tests, None]

    @cached_property
    def levels(self) -> list[LevelSet | None]:
        """The levels of the units in each cell; None where they are no matter of levels."""
        found = [LevelSet.of(test) for test in self.division.tests]
        if not found or None in found or len({entry.name for entry in found if entry}) > 1:
            return [*found, None]
        rest = reduce(LevelSet.both, (entry.rest for entry in found if entry is not None))
        return [*found, rest]


@dataclass(frozen=True)
class _Crossing:
    """Two divisions crossed."""

    first: _Side
    second: _Side

    def cells(self, most: int) -> tuple[Cells, tuple[str, ...]] | None:
        """Return the cells and those that are known to both; None of more than `most`."""
        pairs = list(self._pairs())
        if len(pairs) > most:
            return None
        names = [self._name(i, j) for i, j in pairs]
        tests = [both_tests(self.first.tests[i], self.second.tests[j]) for i, j in pairs]
        known = [
            name
            for name, (i, j) in zip(names, pairs, strict=True)
            if self.first.division.names[i] in self.first.known
            and self.second.division.names[j] in self.second.known
        ]
        asked = (Constant(value=1.0) if test is None else test for test in tests[:-1])
        return Cells(names=tuple(names), tests=tuple(asked)), tuple(known)

    def _pairs(self) -> Iterator[tuple[int, int]]:
        for i, own in enumerate(self.first.levels):
            for j, other in enumerate(self.second.levels):
                if own is None or other is None or not own.excludes(other):
                    yield i, j

    def _name(self, i: int, j: int) -> str:
        """Return the names of two cells, of which the one that says less is left out."""
        own, other = self.first.division.names[i], self.second.division.names[j]
        levels, others = self.first.levels[i], self.second.levels[j]
        if levels is not None and others is not None:
            if levels.excludes(others.rest):
                return own
            if others.excludes(levels.rest):
                return other
        named = dict.fromkeys(name for name in (own, other) if name != "all")
        return " & ".join(named) or "all"
