"""Rules that put a unit into a stratum: small, serialisable, and the same on every engine.

A rule names the columns that it looks at and assigns codes 0 … H − 1. NumPy assignment is here; tables
translate a rule into a query (`stratal.population.queries.table`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import AnyArray, Described, FloatArray, IntArray
from stratal.errors import InputError, near_names

_CHUNK = 1 << 15
_FEW_CUTS = 24

EAGER_LIMIT = 1_000_000
"""Codes of more units than this are kept in one byte each, where they fit."""


class Rule(Described):
    """Base of all rules. Subclasses are registered by `kind`, which names them in a sample file.

    Examples
    --------
    >>> rule = CutPoints(column="proxy", cuts=np.array([0.5]))
    >>> rule.assign({"proxy": np.array([0.2, 0.5])})
    array([0, 1])
    >>> Rule.from_dict(rule.to_dict()) == rule
    True
    """

    __slots__ = ()
    noun: ClassVar[str] = "stratification rule"
    registry: ClassVar[dict[str, Any]] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the rule reads."""
        raise NotImplementedError

    @property
    def n_strata(self) -> int:
        """H."""
        raise NotImplementedError

    def assign(self, columns: Mapping[str, AnyArray]) -> IntArray:
        """Return the stratum code of each unit (n,), from the columns (n,) by name."""
        raise NotImplementedError


def kind_of_codes(n_units: int, n_strata: int) -> np.dtype[Any]:
    """Return the type in which the codes of so many units are kept.

    Examples
    --------
    >>> kind_of_codes(10, 3), kind_of_codes(2_000_000, 3)
    (dtype('int64'), dtype('uint8'))
    """
    return np.min_scalar_type(n_strata) if n_units > EAGER_LIMIT else np.dtype(np.int64)


def in_chunks(codes_of: Callable[[slice], AnyArray], n_units: int, n_strata: int) -> IntArray:
    """Return the codes (n,) of all units, found for some at a time; in few bytes for many units.

    Parameters
    ----------
    codes_of : callable
        Returns the codes of a slice of the units.
    n_units, n_strata : int
        n and H.

    Examples
    --------
    >>> in_chunks(lambda part: np.arange(3)[part] // 2, 3, 2)
    array([0, 0, 1])
    """
    codes = np.empty(n_units, kind_of_codes(n_units, n_strata))
    for start in range(0, n_units, _CHUNK):
        part = slice(start, start + _CHUNK)
        codes[part] = codes_of(part)
    return codes


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything(Rule):
    """One stratum: simple random sampling.

    Examples
    --------
    >>> Everything().n_strata
    1
    """

    kind: ClassVar[str] = "everything"
    columns = ()
    n_strata = 1

    def assign(self, columns: Mapping[str, AnyArray]) -> IntArray:
        """Return zeros; at least one column is needed to know how many."""
        return np.zeros(len(next(iter(columns.values()))), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CutPoints(Rule):
    """Intervals of one column: stratum h holds `cuts[h−1] <= x < cuts[h]`.

    Parameters
    ----------
    column : str
        Name of a numeric column, usually a proxy.
    cuts : float (H − 1,)
        Strictly increasing.

    Examples
    --------
    >>> CutPoints(column="proxy", cuts=np.array([0.5, 0.9])).assign({"proxy": np.array([0.9, 0.1, 0.7])})
    array([2, 0, 1])
    """

    kind: ClassVar[str] = "cut-points"
    column: str
    cuts: FloatArray

    def __post_init__(self) -> None:
        self._freeze()
        if np.any(np.diff(self.cuts) <= 0) or not np.all(np.isfinite(self.cuts)):
            raise InputError(
                "cut points must be finite and strictly increasing",
                given=self.cuts.tolist(),
                action="Sort them, and leave out repeated ones.",
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def n_strata(self) -> int:
        """Cut points plus one."""
        return len(self.cuts) + 1

    def assign(self, columns: Mapping[str, AnyArray]) -> IntArray:
        """Return the number of cut points at or below each value (n,); in single bytes for many units."""
        values = columns[self.column]
        if len(self.cuts) > _FEW_CUTS:
            return in_chunks(
                lambda part: np.searchsorted(self.cuts, values[part], side="right"),
                len(values),
                self.n_strata,
            )
        codes = np.zeros(len(values), dtype=np.uint8)
        for start in range(0, len(values), _CHUNK):
            part, chunk = codes[start : start + _CHUNK], values[start : start + _CHUNK]
            for cut in self.cuts:
                part += chunk >= cut
        return codes if len(values) > EAGER_LIMIT else codes.astype(np.int64)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Categories(Rule):
    """An existing column of categories, possibly with some merged.

    Parameters
    ----------
    column : str
        Name of a group column; its values are compared as text.
    levels : tuple of str (L,)
        Every level that occurs, sorted.
    codes : int (L,)
        Stratum of each level.

    Examples
    --------
    >>> rule = Categories(column="language", levels=("de", "en"), codes=np.array([0, 1]))
    >>> rule.assign({"language": np.array(["en", "de"])})
    array([1, 0])
    """

    kind: ClassVar[str] = "categories"
    column: str
    levels: tuple[str, ...]
    codes: IntArray

    def __post_init__(self) -> None:
        self._freeze()
        self._set(levels=tuple(self.levels))
        if list(self.levels) != sorted(set(self.levels)) or len(self.codes) != len(self.levels):
            raise InputError(
                "levels must be sorted and distinct, with one code each",
                action="Make such strata by stratal.stratify(population, 'category', by=…).",
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def n_strata(self) -> int:
        """Distinct codes."""
        return int(self.codes.max()) + 1

    def level_numbers(self, values: AnyArray) -> IntArray:
        """Return the index in `levels` of each value (n,), refusing a level that was not there."""
        levels, text = np.array(self.levels), np.asarray(values).astype(str)
        positions = np.minimum(np.searchsorted(levels, text), len(levels) - 1)
        strange = np.flatnonzero(levels[positions] != text)
        if len(strange):
            raise InputError(
                f"column '{self.column}' has a category that the strata do not know",
                given=repr(str(text[strange[0]])),
                allowed=near_names(str(text[strange[0]]), self.levels),
            )
        return positions.astype(np.int64)

    def assign(self, columns: Mapping[str, AnyArray]) -> IntArray:
        """Return the stratum of each unit's level (n,); in few bytes for many units."""
        values = np.asarray(columns[self.column])
        return in_chunks(
            lambda part: self.codes[self.level_numbers(values[part])], len(values), self.n_strata
        )
