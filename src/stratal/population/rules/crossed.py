"""The rule of a category crossed with another rule: each category has cuts (or centres) of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.errors import InputError
from stratal.population.rules.rule import Categories, CutPoints, Rule, in_chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed(Rule):
    """A category crossed with rules that differ from category to category.

    Parameters
    ----------
    categories : Categories
        Puts a unit into one of G groups by its level.
    inner : tuple of Rule (G,)
        The strata within each group, usually `CutPoints` of one column. Strata are numbered group by group.

    Examples
    --------
    >>> languages = Categories(column="language", levels=("de", "en"), codes=np.array([0, 1]))
    >>> halves = CutPoints(column="proxy", cuts=np.array([0.5]))
    >>> whole = CutPoints(column="proxy", cuts=np.array([]))
    >>> rule = Crossed(categories=languages, inner=(halves, whole))
    >>> rule.assign({"language": np.array(["en", "de", "de"]), "proxy": np.array([0.9, 0.5, 0.1])})
    array([2, 1, 0])
    >>> Rule.from_dict(rule.to_dict()) == rule
    True
    """

    kind: ClassVar[str] = "crossed"
    categories: Categories
    inner: tuple[Rule, ...]

    def __post_init__(self) -> None:
        if len(self.inner) != self.categories.n_strata:
            raise InputError(
                "a crossed rule needs an inner rule for every group",
                given=len(self.inner),
                allowed=str(self.categories.n_strata),
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The group column and all columns of the inner rules."""
        inner = (name for rule in self.inner for name in rule.columns)
        return tuple(dict.fromkeys((self.categories.column, *inner)))

    @property
    def n_strata(self) -> int:
        """All strata of all groups."""
        return sum(rule.n_strata for rule in self.inner)

    @property
    def offsets(self) -> IntArray:
        """Number of the first stratum of each group (G,)."""
        return np.cumsum([0, *(rule.n_strata for rule in self.inner[:-1])])

    def assign(self, columns: Mapping[str, AnyArray]) -> IntArray:
        """Return the stratum of each unit (n,); in few bytes for many units."""
        arrays = {name: np.asarray(columns[name]) for name in self.columns}
        offsets, cuts = self.offsets, [rule for rule in self.inner if isinstance(rule, CutPoints)]
        alike = len(cuts) == len(self.inner) and len({rule.column for rule in cuts}) == 1
        first = np.cumsum([0, *(len(rule.cuts) for rule in cuts)])
        every = np.concatenate([*(rule.cuts for rule in cuts), [np.inf]])

        def codes_of(part: slice) -> IntArray:
            here = {name: array[part] for name, array in arrays.items()}
            groups = self.categories.assign(here)
            if alike:
                values = np.asarray(here[cuts[0].column], np.float64)
                return np.asarray(offsets[groups] + _intervals(every, first, groups, values))
            return self._assigned(offsets[groups], groups, here)

        return in_chunks(codes_of, len(arrays[self.categories.column]), self.n_strata)

    def _assigned(self, codes: IntArray, groups: IntArray, columns: Mapping[str, AnyArray]) -> IntArray:
        """Return the first strata of units' groups (n,) with what the group's rule adds."""
        order = np.argsort(groups, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
            rule = self.inner[groups[rows[0]]] if len(rows) else None
            if rule is not None and rule.n_strata > 1:
                codes[rows] += rule.assign({name: columns[name][rows] for name in rule.columns})
        return codes

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Self:
        """Return the rule from the fields of `to_dict` but `kind`."""
        categories = Rule.from_dict(fields["categories"])
        if not isinstance(categories, Categories):
            raise InputError("a crossed rule must cross categories", given=fields["categories"].get("kind"))
        return cls(categories=categories, inner=tuple(Rule.from_dict(entry) for entry in fields["inner"]))


def _intervals(cuts: FloatArray, first: IntArray, groups: IntArray, values: FloatArray) -> IntArray:
    """Return the interval of each unit within its group (n,): a binary search of all units at once.

    Group g has the cuts from `first[g]` to `first[g + 1]`.
    """
    low, high = first[groups], first[groups + 1]
    start = low.copy()
    while True:
        searching = low < high
        if not searching.any():
            return np.asarray(low - start)
        middle = (low + high) // 2
        right = searching & (cuts[middle] <= values)
        low = np.where(right, middle + 1, low)
        high = np.where(searching & ~right, middle, high)
