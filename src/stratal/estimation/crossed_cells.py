"""Crossed cells of several influences, and one influence for several estimands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from operator import mul

import numpy as np

from stratal.arrays import NO_DIVISOR
from stratal.population.expressions import (
    ALL_UNITS,
    ByLevel,
    Cells,
    Constant,
    Expression,
    as_level_test,
    combine_tests,
    sum_of,
)
from stratal.population.influence import Influence, population_means
from stratal.population.population import Population

# Maximum number of crossed cells. With more, the cells are only those with and without known influences.
MAX_CELLS = 64

# Names of these two cells. An influence is open if it depends on a label.
NOTHING_OPEN = "nothing open"
SOMETHING_OPEN = "something open"


def combined_influence(influences: list[Influence], population: Population) -> Influence:
    """Return one influence for several estimands: Neyman's rule on it minimises the sum of their variances.

    Each influence u_j is divided by its expected standard deviation, so that all have equal weight. The
    result has the mean of v = Σ u_j, by which strata are formed within cells, and J Σ E[u_j²], an upper bound
    of E[v²]. The cells are the crossed cells of all; a cell is known if it is known for each estimand.
    """
    # The scale of an influence that is 0 for all units must be finite.
    squares = np.maximum(
        population_means(population, [influence.square for influence in influences]), NO_DIVISOR
    )
    scales = (1.0 / np.sqrt(squares)).tolist()
    count = len(scales)
    mean = sum_of([scale * influence.mean for scale, influence in zip(scales, influences, strict=True)])
    square = sum_of(
        [count * scale**2 * influence.square for scale, influence in zip(scales, influences, strict=True)]
    )
    cells, known_cells = crossed_cells(influences)
    # The estimands have different expected values.
    return Influence(value=np.nan, mean=mean, square=square, cells=cells, known_cells=known_cells)


def crossed_cells(influences: list[Influence]) -> tuple[Cells, tuple[str, ...]]:
    """Return the crossed cells of several influences, and the names of those that are known for all.

    Cells without possible units, such as two answers at once, are omitted. Names are unique: if two columns
    have cells with the same name, the name contains the column.
    """
    cells = influences[0].cells
    known_cells = influences[0].known_cells
    crossed = _cells_of(influences[0])
    for influence in influences[1:]:
        # Crossing equal cells would only add cells without units.
        if influence.cells == cells:
            known_cells = tuple(name for name in known_cells if name in influence.known_cells)
            crossed = [
                replace(cell, is_known=cell.is_known and cell.name in influence.known_cells)
                for cell in crossed
            ]
            continue
        # An estimand may have more cells by itself.
        max_cells = max(MAX_CELLS, len(crossed), len(influence.cells.names))
        pairs = (cell.intersection(other) for cell, other in product(crossed, _cells_of(influence)))
        crossed = [cell for cell in pairs if cell is not None]
        if len(crossed) > max_cells:
            return _known_or_open(influences)
        names = _distinct_names(crossed)
        crossed = [replace(cell, name=name) for cell, name in zip(crossed, names, strict=True)]
        tests = (Constant(value=1.0) if cell.test is None else cell.test for cell in crossed[:-1])
        cells = Cells(names=names, tests=tuple(tests))
        known_cells = tuple(cell.name for cell in crossed if cell.is_known)
    return cells, known_cells


def _known_or_open(influences: list[Influence]) -> tuple[Cells, tuple[str, ...]]:
    """Return the cell of units whose influences are all known and that of other units, or one cell of all."""
    if not all(influence.known_cells for influence in influences):
        return ALL_UNITS, ()
    tests_of_known = [influence.is_known for influence in influences]
    return Cells(names=(NOTHING_OPEN, SOMETHING_OPEN), tests=(reduce(mul, tests_of_known),)), (NOTHING_OPEN,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CrossedCell:
    """A cell of several crossed divisions of the population.

    Parameters
    ----------
    name : str
    parts : mapping of column to str
        The name of the cell in each division. The column is the one whose levels define the division, or ""
        if the division has another definition.
    test : Expression, optional
        1 for units of the cell; None for the units that are in no previous cell.
    levels : mapping of column to ByLevel
        For each column that defines a division, a test that is true for all units of the cell.
    is_known : bool
        Whether the influences of all divisions are known in the cell.
    """

    name: str
    parts: Mapping[str, str]
    test: Expression | None
    levels: Mapping[str, ByLevel]
    is_known: bool

    def intersection(self, other: _CrossedCell) -> _CrossedCell | None:
        """Return the intersection with another cell; None if no unit can be in both."""
        levels = dict(self.levels)
        parts = dict(self.parts)
        for column, test in other.levels.items():
            if column in levels and levels[column].is_disjoint_from(test):
                return None
            if column in levels:
                levels[column] = levels[column].product(test)
            else:
                levels[column] = test
        for column, other_name in other.parts.items():
            name = parts.get(column)
            if name is None:
                parts[column] = other_name
            elif column:
                parts[column] = _name_of_intersection(
                    name, self.levels[column], other_name, other.levels[column]
                )
            else:
                parts[column] = _joined_names((name, other_name))
        return _CrossedCell(
            name=self.name,
            parts=parts,
            test=combine_tests(self.test, other.test),
            levels=levels,
            is_known=self.is_known and other.is_known,
        )


def _cells_of(influence: Influence) -> list[_CrossedCell]:
    """Return the cells of one influence, with the levels of their units if they are of one column."""
    cells = influence.cells
    tests: list[ByLevel] = []
    for test in cells.tests:
        by_level = as_level_test(test)
        if by_level is not None:
            tests.append(by_level)
    levels_by_cell: list[Mapping[str, ByLevel]] = [{}] * len(cells.names)
    column = ""
    columns = {test.name for test in tests}
    if len(tests) == len(cells.tests) and len(columns) == 1:
        (column,) = columns
        # The last cell has all levels that no test names.
        other_levels = reduce(ByLevel.product, (test.complement for test in tests))
        levels_by_cell = [{column: test} for test in (*tests, other_levels)]
    return [
        _CrossedCell(
            name=name,
            parts={column: name},
            test=test,
            levels=levels,
            is_known=name in influence.known_cells,
        )
        for name, test, levels in zip(cells.names, (*cells.tests, None), levels_by_cell, strict=True)
    ]


def _name_of_intersection(name: str, levels: ByLevel, other_name: str, other_levels: ByLevel) -> str:
    """Return the name of the intersection of two cells of one column.

    If one cell contains the other, it is the name of the smaller one.
    """
    if levels.is_disjoint_from(other_levels.complement):
        return name
    if other_levels.is_disjoint_from(levels.complement):
        return other_name
    return _joined_names((name, other_name))


def _joined_names(names: Iterable[str]) -> str:
    """Return distinct names as one, without the name `all` of the only cell of a division."""
    return " & ".join(dict.fromkeys(name for name in names if name != "all")) or "all"


def _distinct_names(cells: Sequence[_CrossedCell]) -> tuple[str, ...]:
    """Return the name of each cell: those of its parts, with the column if two columns share a name."""
    columns: dict[str, set[str]] = {}
    for cell in cells:
        for column, name in cell.parts.items():
            columns.setdefault(name, set()).add(column)
    shared = {name for name, definitions in columns.items() if len(definitions) > 1}
    return tuple(
        _joined_names(
            f"{name} ({column})" if column and name in shared else name for column, name in cell.parts.items()
        )
        for cell in cells
    )
