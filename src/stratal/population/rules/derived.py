"""The rule on columns that are computed from others: their formulas travel with the rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from stratal.arrays import AnyArray, IntArray
from stratal.population.cells import Cells
from stratal.population.expressions import Expression
from stratal.population.rules.rule import Rule, in_chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Rule):
    """A rule that looks at formulas of columns.

    Parameters
    ----------
    inner : Rule
        Reads the columns `cell` and `influence`, which no population has.
    cells : Cells
    influence : Expression

    Examples
    --------
    >>> from stratal.population.expressions import Number
    >>> from stratal.population.rules.rule import CutPoints
    >>> halves = CutPoints(column="influence", cuts=np.array([0.0]))
    >>> rule = Derived(inner=halves, cells=Cells(names=("all",)), influence=Number(name="p") - 0.5)
    >>> rule.columns, rule.assign({"p": np.array([0.2, 0.7])})
    (('p',), array([0, 1]))
    >>> Rule.from_dict(rule.to_dict()) == rule
    True
    """

    kind: ClassVar[str] = "derived"
    inner: Rule
    cells: Cells
    influence: Expression

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the formulas read."""
        return tuple(dict.fromkeys((*self.cells.columns, *self.influence.columns)))

    @property
    def n_strata(self) -> int:
        """Those of the inner rule."""
        return self.inner.n_strata

    def assign(self, columns: Mapping[str, AnyArray]) -> IntArray:
        """Return the stratum of each unit (n,); in few bytes for many units."""
        arrays = {name: np.asarray(columns[name]) for name in self.columns}

        def codes_of(part: slice) -> IntArray:
            chunk = {name: array[part] for name, array in arrays.items()}
            size = len(next(iter(chunk.values())))
            values = np.broadcast_to(self.influence.of(chunk), (size,))
            return self.inner.assign({CELL: self.cells.of(chunk), INFLUENCE: values})

        return in_chunks(codes_of, len(next(iter(arrays.values()))), self.n_strata)

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Self:
        """Return the rule from the fields of `to_dict` but `kind`."""
        return cls(
            inner=Rule.from_dict(fields["inner"]),
            cells=Cells.from_dict(fields["cells"]),
            influence=Expression.from_dict(fields["influence"]),
        )


CELL = "cell"
INFLUENCE = "influence"
"""What the inner rule calls the two columns."""
