"""Which levels of a group column the units of each stratum can have, as far as the rule itself says so."""

from __future__ import annotations

import numpy as np

from stratal.arrays import BoolArray, IntArray
from stratal.population.cells import Cells
from stratal.population.rules.crossed import Crossed
from stratal.population.rules.derived import CELL, Derived
from stratal.population.rules.rule import Categories, Rule


def possible_levels(rule: Rule, column: str, levels: tuple[str, ...]) -> BoolArray:
    """Return which levels (L,) of a column each stratum can hold, and whether any other one (H, L + 1).

    What the rule does not guarantee is possible: strata of a proxy can hold every level.

    Parameters
    ----------
    rule : Rule
    column : str
        The group column, such as the model's answers.
    levels : tuple of str (L,)
        The last column of the result stands for all levels that are not among them.

    Examples
    --------
    >>> answers = Categories(column="answer", levels=("cat", "cow", "dog"), codes=np.array([0, 1, 1]))
    >>> possible_levels(answers, "answer", ("cat", "dog")).tolist()
    [[True, False, False], [False, True, True]]
    """
    if isinstance(rule, Categories) and rule.column == column:
        return _of_categories(rule, levels)
    if isinstance(rule, Crossed):
        groups = possible_levels(rule.categories, column, levels)
        within = [possible_levels(inner, column, levels) for inner in rule.inner]
        return np.concatenate([inner & group for inner, group in zip(within, groups, strict=True)])
    if isinstance(rule, Derived):
        cells = possible_levels(rule.inner, CELL, rule.cells.names)[:, :-1]
        return np.asarray((cells[:, :, None] & _of_cells(rule.cells, column, levels)).any(axis=1))
    return np.ones((rule.n_strata, len(levels) + 1), dtype=bool)


def cells_of(rule: Rule) -> IntArray | None:
    """Return the cell of an influence in which each stratum lies (H,); None where the rule has no cells.

    Examples
    --------
    >>> cells_of(Categories(column="answer", levels=("cat", "dog"), codes=np.array([0, 1]))) is None
    True
    """
    if not isinstance(rule, Derived):
        return None
    cells = possible_levels(rule.inner, CELL, rule.cells.names)[:, :-1]
    return np.argmax(cells, axis=1) if np.all(cells.sum(axis=1) == 1) else None


def _of_categories(rule: Categories, levels: tuple[str, ...]) -> BoolArray:
    found = np.zeros((rule.n_strata, len(levels) + 1), dtype=bool)
    number = {level: k for k, level in enumerate(levels)}
    for level, code in zip(rule.levels, rule.codes.tolist(), strict=True):
        found[code, number.get(level, len(levels))] = True
    return found


def _of_cells(cells: Cells, column: str, levels: tuple[str, ...]) -> BoolArray:
    """Return which levels the units of each cell can have (C, L + 1)."""
    another = "another than " + ", ".join(levels)
    values = np.array([*levels, another])
    left = np.ones(len(values), dtype=bool)
    found = []
    for test in cells.tests:
        if set(test.columns) <= {column}:
            passes = np.broadcast_to(test.of({column: values}), (len(values),)) > 0.5
            found.append(left & passes)
            left = left & ~passes
        else:
            found.append(left)
    return np.array([*found, left])
