"""`Cells`: parts of a population, by formulas of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from stratal.arrays import AnyArray, Described
from stratal.population.expressions import Expression, OnArrays


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells(Described):
    """Which of several cells a unit is in: the first whose formula is 1, else the last.

    Parameters
    ----------
    names : tuple of str (C,)
    tests : tuple of Expression (C − 1,)
        1 for the units of a cell, else 0.

    Examples
    --------
    >>> from stratal.population.expressions import Agree
    >>> cells = Cells(names=("agree", "differ"), tests=(Agree(names=("new", "old")),))
    >>> cells.of({"new": np.array(["cat", "dog"]), "old": np.array(["cat", "cat"])}).tolist()
    ['agree', 'differ']
    """

    noun: ClassVar[str] = "division"
    registry: ClassVar[dict[str, Any]] = {}
    kind: ClassVar[str] = "cells"
    names: tuple[str, ...]
    tests: tuple[Expression, ...] = ()

    def __post_init__(self) -> None:
        self._set(names=tuple(self.names), tests=tuple(self.tests))

    def test_of(self, name: str) -> Expression | None:
        """Return the formula that is 1 in a cell; None for the last, which is what the others leave."""
        at = self.names.index(name)
        return self.tests[at] if at < len(self.tests) else None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the formulas read."""
        return tuple(dict.fromkeys(name for test in self.tests for name in test.columns))

    def of(self, columns: Mapping[str, AnyArray]) -> AnyArray:
        """Return each unit's cell as text (n,), from arrays (n,) by name."""
        size = len(next(iter(columns.values())))
        numbers = np.full(size, len(self.tests))
        engine = OnArrays(columns)
        for number, test in reversed(list(enumerate(self.tests))):
            numbers[np.broadcast_to(test.of(engine) > 0.5, (size,))] = number
        return np.asarray(np.array(self.names, dtype=np.str_)[numbers])

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Self:
        """Return the cells from the fields of `to_dict` but `kind`."""
        return cls(names=fields["names"], tests=tuple(Expression.from_dict(test) for test in fields["tests"]))
