"""Rules that assign units to strata by their columns, in memory. `queries.table` has the rules as queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar

import numpy as np

from stratal.arrays import AnyArray, BoolArray, Described, FloatArray, IntArray, code_count, select_rows
from stratal.errors import InputError, suggest_names
from stratal.population.expressions import (
    Agree,
    Below,
    Cells,
    Expression,
    columns_read,
    factors_of,
    levels_in,
    reads_only_levels,
)

# Number of units of a batch. Temporary memory depends on it and not on N.
BATCH_UNITS = 1 << 16

# Exact standard deviations are computed from whole numbers of this number of bits. The sum of 2^18 squares is
# then below 2^60, and fits into 64 bits.
_DEVIATION_BITS = 20

# A column is constant up to rounding if its span is at most this share of its smallest value.
_CONSTANT_TOLERANCE = 1e-12

# Bits of the sum of products of d coordinates of a unit and of a centre. With the margin of the units'
# coordinates and the factor 2, it is below 2^53, where doubles are exact.
_CENTRE_BITS = 44

# Coordinates up to 2^6 times the largest coordinate of a centre are not clipped.
_MARGIN_BITS = 6

# Up to this number of cut points, comparing all values with each is faster than a binary search.
_MAX_COMPARED_CUTS = 24

# A sample stores the sizes of the levels of a group only up to this number: estimates do not weight by groups
# with more levels.
MAX_STORED_LEVELS = 200


class Rule(Described, noun="stratification rule", registry={}):
    """Base of all rules. Subclasses are registered by `kind`, which names them in a sample file."""

    __slots__ = ()

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the rule reads; most rules read one."""
        return (self.column,)

    @property
    def n_strata(self) -> int:
        """Number of strata, H."""
        raise NotImplementedError

    def assign(self, columns: Mapping[str, AnyArray]) -> IntArray:
        """Return the stratum code of each unit (n,), from the columns (n,) by name."""
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        codes = np.zeros(len(next(iter(arrays.values()))), np.int64)
        for start in range(0, len(codes), BATCH_UNITS):
            batch = slice(start, start + BATCH_UNITS)
            codes[batch] = self.codes_of(select_rows(arrays, batch))
        return codes

    def codes_of(self, columns: Mapping[str, AnyArray]) -> AnyArray:
        """Return the stratum code of each unit of a batch (n,), as integers of any type."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything(Rule, kind="everything"):
    """One stratum: simple random sampling."""

    columns = ()
    n_strata = 1

    def codes_of(self, columns: Mapping[str, AnyArray]) -> AnyArray:
        """Return zeros; at least one column is needed for the number of units."""
        return np.zeros(len(next(iter(columns.values()))), np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CutPoints(Rule, kind="cut-points"):
    """Intervals of one column: stratum h contains the units with `cuts[h−1] <= x < cuts[h]`.

    Parameters
    ----------
    column : str
        Name of a numeric column, usually a proxy.
    cuts : float (H − 1,)
        Strictly increasing.
    """

    column: str
    cuts: FloatArray

    def __post_init__(self) -> None:
        self._freeze()
        if np.any(np.diff(self.cuts) <= 0) or not np.all(np.isfinite(self.cuts)):
            problem = "cut points must be finite and strictly increasing"
            action = "Sort them and remove duplicates."
            raise InputError(problem, given=self.cuts.tolist(), action=action)

    @property
    def n_strata(self) -> int:
        """Number of cut points plus one."""
        return len(self.cuts) + 1

    def codes_of(self, columns: Mapping[str, AnyArray]) -> AnyArray:
        """Return the number of cut points at or below each value (n,)."""
        values = columns[self.column]
        if len(self.cuts) > _MAX_COMPARED_CUTS:
            return np.searchsorted(self.cuts, values, side="right")
        codes = np.zeros(len(values), np.uint8)
        for cut in self.cuts:
            # A view as integers: adding Boolean values would convert them and take twice the time.
            codes += (values >= cut).view(np.uint8)
        return codes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Categories(Rule, kind="categories"):
    """The levels of a group column; several levels may be one stratum.

    Parameters
    ----------
    column : str
        Name of a group column; its values are compared as text.
    levels : tuple of str (L,)
        Every level that occurs, sorted.
    codes : int (L,)
        Stratum of each level.
    """

    column: str
    levels: tuple[str, ...]
    codes: IntArray

    def __post_init__(self) -> None:
        self._freeze()
        if list(self.levels) != sorted(set(self.levels)) or len(self.codes) != len(self.levels):
            action = "Create such strata with stratal.strata.stratify(population, 'category', by=…)."
            raise InputError("levels must be sorted and distinct, with one code each", action=action)

    @classmethod
    def of_levels(cls, column: str, levels: Iterable[str]) -> Categories:
        """Return the rule with one stratum for each of these levels."""
        sorted_levels = tuple(sorted(levels))
        return cls(column=column, levels=sorted_levels, codes=np.arange(len(sorted_levels)))

    @property
    def n_strata(self) -> int:
        """Number of distinct codes."""
        return code_count(self.codes)

    def codes_of(self, columns: Mapping[str, AnyArray]) -> AnyArray:
        """Return the stratum of each unit's level (n,); raise an error for an unknown level."""
        levels = np.array(self.levels)
        text = columns[self.column].astype(str)
        positions = np.minimum(np.searchsorted(levels, text), len(levels) - 1)
        unknown = np.flatnonzero(levels[positions] != text)
        if len(unknown):
            level = str(text[unknown[0]])
            problem = f"column '{self.column}' has a category that does not occur in the strata"
            raise InputError(problem, given=repr(level), allowed=suggest_names(level, self.levels))
        return self.codes[positions]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntegerGrid:
    """A grid on which the values of d columns become whole numbers, whose sums of products are exact.

    Floating-point sums depend on the processor, the libraries and the number of threads. Subtraction,
    division and rounding down of single values do not (IEEE 754).

    Parameters
    ----------
    origin, step : float (d,)
        A value x has the coordinate ⌊(x − origin)/step + ½⌋. Steps are powers of two times the scale.
    limit : float
        Coordinates are clipped to ± this number.
    """

    origin: FloatArray
    step: FloatArray
    limit: float

    @classmethod
    def of(
        cls, low: FloatArray, high: FloatArray, scale: FloatArray, bits: int, margin: int = 1
    ) -> IntegerGrid:
        """Return the grid on which values between `low` and `high` (d,) have up to ±2^bits steps.

        `scale` (d,) has the units of the columns: distances in a column are divided by it. Coordinates are
        clipped at ± `margin` · 2^bits.
        """
        # Halved first, because the difference of the largest floats overflows.
        half = high / 2.0 - low / 2.0
        max_half_width = float((half / scale).max())
        exponent = 0
        if max_half_width > 0:
            exponent = math.frexp(max_half_width)[1]
        return cls(origin=low + half, step=scale * 2.0 ** (exponent - bits), limit=float(margin << bits))

    def coordinates(self, rows: FloatArray) -> FloatArray:
        """Return the coordinates (n, d) of values (n, d), as whole numbers."""
        positions = (rows - self.origin) / self.step + 0.5
        return np.asarray(np.floor(np.clip(positions, -self.limit, self.limit)))

    def values(self, coordinates: FloatArray) -> FloatArray:
        """Return the values (n, d) at coordinates (n, d)."""
        return self.origin + coordinates * self.step


def exact_deviations(rows: FloatArray, spans: FloatArray) -> FloatArray:
    """Return the standard deviation (d,) of each column of rows (n, d); 1 for a constant column.

    `spans` (d,) is each column's largest value minus its smallest. The deviations are computed from whole
    numbers, so that they are identical on every machine.
    """
    low = rows.min(axis=0)
    is_constant = spans <= _CONSTANT_TOLERANCE * np.abs(low)
    divisor = np.where(is_constant, 1.0, spans)
    positions = np.floor((rows - low) / divisor * 2.0**_DEVIATION_BITS + 0.5).astype(np.int64)
    deviations = np.ones(len(spans))
    for j in np.flatnonzero(~is_constant):
        column = positions[:, j]
        n = len(rows)
        # Python's integers do not overflow, and their quotient is rounded only once.
        variance = (n * int(column @ column) - int(column.sum()) ** 2) / n**2
        deviations[j] = math.sqrt(variance) * spans[j] / 2.0**_DEVIATION_BITS
    return deviations


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NearestCentre(Rule, kind="nearest-centre"):
    """The stratum of the nearest centre, by Euclidean distance of scaled columns.

    Parameters
    ----------
    names : tuple of str (d,)
        Numeric columns.
    centres : float (K, d)
        In the units of the columns.
    scale : float (d,)
        Positive divisors of the columns before distances are computed.
    """

    names: tuple[str, ...]
    centres: FloatArray
    scale: FloatArray

    def __post_init__(self) -> None:
        self._freeze()
        shapes = (self.centres.ndim, self.centres.shape[-1:], self.scale.shape)
        if shapes != (2, (len(self.names),), (len(self.names),)) or not np.all(self.scale > 0):
            problem = "centres must have one coordinate per column, and scales must be positive"
            raise InputError(
                problem, action="Create such strata with stratal.strata.stratify(population, 'features')."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The feature columns."""
        return self.names

    @property
    def n_strata(self) -> int:
        """The number of centres."""
        return len(self.centres)

    @property
    def grid(self) -> IntegerGrid:
        """The grid on which distances are exact, so that every machine and engine selects the same centre."""
        low = self.centres.min(axis=0)
        high = self.centres.max(axis=0)
        bits = (_CENTRE_BITS - math.ceil(math.log2(len(self.names)))) // 2
        return IntegerGrid.of(low, high, self.scale, bits, margin=1 << _MARGIN_BITS)

    @property
    def integer_centres(self) -> tuple[FloatArray, FloatArray]:
        """Twice the centres (K, d) on the grid, and their squared lengths (K,), as whole numbers."""
        centres = self.grid.coordinates(self.centres)
        return 2.0 * centres, np.sum(centres**2, axis=1)

    def codes_of(self, columns: Mapping[str, AnyArray]) -> AnyArray:
        """Return the index of the nearest centre (n,); the first of centres at the same distance.

        The nearest centre c maximises 2 c·x − c·c.
        """
        doubled, squares = self.integer_centres
        rows = self.grid.coordinates(feature_rows(columns, self.names))
        return np.asarray(np.argmax(rows @ doubled.T - squares, axis=1))


def feature_rows(columns: Mapping[str, AnyArray], names: tuple[str, ...]) -> FloatArray:
    """Return the named columns (n,) as a matrix (n, d)."""
    return np.stack([np.asarray(columns[name], np.float64) for name in names], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed(Rule, kind="crossed", nested={"categories": Rule, "inner": Rule}):
    """Groups of levels of a column, each divided into strata by its own rule.

    Parameters
    ----------
    categories : Categories
        Assigns a unit to one of G groups by its level.
    inner : tuple of Rule (G,)
        The strata within each group, usually `CutPoints` of one column. Strata are numbered group by group.
    """

    categories: Categories
    inner: tuple[Rule, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.categories, Categories):
            raise InputError("a crossed rule must cross categories", given=self.categories.kind)
        n_groups = self.categories.n_strata
        if len(self.inner) != n_groups:
            problem = "a crossed rule requires an inner rule for every group"
            raise InputError(problem, given=len(self.inner), allowed=str(n_groups))

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

    @property
    def cuts(self) -> tuple[str, list[FloatArray]] | None:
        """The column and the cut points of every group (G,); None if groups have other rules or columns."""
        cuts = [rule for rule in self.inner if isinstance(rule, CutPoints)]
        if len(cuts) < len(self.inner) or len({rule.column for rule in cuts}) > 1:
            return None
        return cuts[0].column, [rule.cuts for rule in cuts]

    def codes_of(self, columns: Mapping[str, AnyArray]) -> AnyArray:
        """Return the stratum of each unit (n,)."""
        groups = self.categories.codes_of(columns)
        codes = self.offsets[groups]
        if self.cuts is not None:
            # One search for all groups, since there may be many.
            column, cuts = self.cuts
            counts = [len(group_cuts) for group_cuts in cuts]
            # NumPy orders complex numbers by the real part, here the group, and then by the imaginary part.
            keyed_cuts = np.repeat(np.arange(len(cuts)), counts) + 1j * np.concatenate(cuts)
            n_below = np.searchsorted(keyed_cuts, groups + 1j * columns[column], side="right")
            n_in_previous_groups = np.cumsum([0, *counts])[groups]
            return np.asarray(codes + n_below - n_in_previous_groups)
        order = np.argsort(groups, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
            rule = self.inner[groups[rows[0]]]
            if rule.n_strata > 1:
                codes[rows] += rule.codes_of({name: columns[name][rows] for name in rule.columns})
        return codes


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Rule, kind="derived"):
    """A rule of two columns, `cell` and `influence`, that are computed by formulas of the user's columns.

    Parameters
    ----------
    inner : Rule
        The rule of these two columns.
    cells : Cells
        The formulas of `cell`.
    influence : Expression
        The formula of `influence`.
    """

    nested: ClassVar[Mapping[str, type[Described]]] = {"inner": Rule, "cells": Cells, "influence": Expression}
    inner: Rule
    cells: Cells
    influence: Expression

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the formulas read."""
        return columns_read((*self.cells.tests, self.influence))

    @property
    def n_strata(self) -> int:
        """The number of strata of the inner rule."""
        return self.inner.n_strata

    def codes_of(self, columns: Mapping[str, AnyArray]) -> AnyArray:
        """Return the stratum of each unit (n,)."""
        cells = self.cells.assign(columns)
        influence = np.broadcast_to(self.influence.evaluate(columns), cells.shape)
        return self.inner.codes_of({CELL: cells, INFLUENCE: influence})


# Names of the two computed columns of a `Derived` rule.
CELL = "cell"
INFLUENCE = "influence"


# Significant digits to which values of a formula are rounded. A smaller difference between values is a
# rounding error of the engine.
SIGNIFICANT_DIGITS = 12


def round_to_digits(values: FloatArray) -> FloatArray:
    """Return values (n,) rounded to `SIGNIFICANT_DIGITS`."""
    size = np.abs(values)
    digits = SIGNIFICANT_DIGITS - 1 - np.floor(np.log10(np.where(size > 0, size, 1.0)))
    # Neither the scale nor its inverse may overflow.
    scale = 10.0 ** np.clip(digits, -290, 290)
    return np.asarray(np.round(values * scale) / scale)


def cut_between(rule: Rule, values: FloatArray) -> Rule:
    """Return a rule with the same strata of `values`, in which each cut is in the middle between two values.

    Rounding errors of an engine then move no value across a cut.

    Parameters
    ----------
    rule : Rule
        Cut points, also within categories; other rules are returned unchanged.
    values : float (n,)
        In ascending order.
    """
    if isinstance(rule, Crossed):
        return replace(rule, inner=tuple(cut_between(inner, values) for inner in rule.inner))
    if not isinstance(rule, CutPoints) or len(rule.cuts) == 0:
        return rule
    above = np.searchsorted(values, rule.cuts)
    # A cut outside the values does not divide them, and is not changed.
    is_between = (above > 0) & (above < len(values))
    low = values[np.maximum(above - 1, 0)]
    high = values[np.minimum(above, len(values) - 1)]
    return replace(rule, cuts=np.where(is_between, low + (high - low) / 2.0, rule.cuts))


def possible_levels(rule: Rule, column: str, levels: tuple[str, ...]) -> BoolArray:
    """Return whether each level of a column, and any other level, can occur in each stratum (H, L + 1).

    A level can occur unless the rule excludes it: strata of a proxy can have every level.

    Parameters
    ----------
    rule : Rule
    column : str
        The group column, such as the model's answers.
    levels : tuple of str (L,)
        The last column of the result is for all levels that are not among them.
    """
    if isinstance(rule, Categories) and rule.column == column:
        possible = np.zeros((rule.n_strata, len(levels) + 1), dtype=bool)
        position = {level: k for k, level in enumerate(levels)}
        possible[rule.codes, [position.get(level, len(levels)) for level in rule.levels]] = True
        return possible
    if isinstance(rule, Crossed):
        groups = possible_levels(rule.categories, column, levels)
        within = [possible_levels(inner, column, levels) for inner in rule.inner]
        return np.concatenate([inner & group for inner, group in zip(within, groups, strict=True)])
    if isinstance(rule, Derived):
        # In older files, several cells may have the same name.
        names = tuple(dict.fromkeys(rule.cells.names))
        by_cell = _possible_levels_of_cells(rule.cells, column, levels)
        by_name = np.array([by_cell[np.array(rule.cells.names) == name].any(axis=0) for name in names])
        cells_of_strata = possible_levels(rule.inner, CELL, names)[:, :-1]
        # A level can occur in a stratum if it can occur in one of the cells of the stratum.
        return np.asarray((cells_of_strata[:, :, None] & by_name).any(axis=1))
    return np.ones((rule.n_strata, len(levels) + 1), dtype=bool)


def value_ranges(rule: Rule, column: str) -> FloatArray:
    """Return the range [low, high) of the values of a column in each stratum (H, 2).

    Limits that the rule does not guarantee are infinite.
    """
    if isinstance(rule, CutPoints) and rule.column == column:
        edges = np.concatenate([[-np.inf], rule.cuts, [np.inf]])
        return np.column_stack([edges[:-1], edges[1:]])
    if isinstance(rule, Crossed):
        return np.concatenate([value_ranges(inner, column) for inner in rule.inner])
    if isinstance(rule, Derived):
        cells = cells_of(rule)
        if cells is not None:
            return _ranges_of_cells(rule.cells, column)[cells]
    return np.tile([-np.inf, np.inf], (rule.n_strata, 1))


def _ranges_of_cells(cells: Cells, column: str) -> FloatArray:
    """Return the range of a column in each cell (C, 2); a unit is in the first cell whose test it passes."""
    ranges = []
    low = -np.inf
    for test in cells.tests:
        factors = factors_of(test)
        limits = [factor.limit for factor in factors if isinstance(factor, Below) and factor.name == column]
        high = min(limits, default=np.inf)
        ranges.append((low, high))
        # If the test depends on nothing else, all units below the limit are in this or an earlier cell, and
        # none are in later ones.
        if len(limits) == len(factors):
            low = max(low, high)
    return np.array([*ranges, (low, np.inf)])


def cells_of(rule: Rule) -> IntArray | None:
    """Return the number of the cell of each stratum (H,).

    None if the rule has no cells, or if a stratum contains units of several cells.
    """
    if not isinstance(rule, Derived):
        return None
    cells = possible_levels(rule.inner, CELL, rule.cells.names)[:, :-1]
    if not np.all(cells.sum(axis=1) == 1):
        return None
    return np.asarray(np.argmax(cells, axis=1))


# If there are more combinations of the levels of all columns, only the levels of one column are tried.
_MAX_COMBINATIONS = 100_000

# Start of the text that represents all levels that no test names. The named levels follow it, so that the
# text differs from each of them.
_OTHER_LEVEL_PREFIX = "another than "


def _possible_levels_of_cells(cells: Cells, column: str, levels: tuple[str, ...]) -> BoolArray:
    """Return whether each level of a column, and any other level, can occur in each cell (C, L + 1).

    The tests are evaluated for every combination of levels of the columns that they compare. A test, or a
    factor of a test, that reads other columns may be passed or not.
    """
    level_factors = [list(filter(reads_only_levels, factors_of(test))) for test in cells.tests]
    combinations = _level_combinations(list(chain.from_iterable(level_factors)), column, levels)
    size = len(combinations[column])
    # Whether a unit with a combination of levels may have failed all tests of earlier cells.
    may_remain = np.ones(size, dtype=bool)
    may_be_in_cell = []
    for test, factors in zip(cells.tests, level_factors, strict=True):
        evaluated_factors = [factor for factor in factors if set(factor.columns) <= set(combinations)]
        passes = np.ones(size, dtype=bool)
        for factor in evaluated_factors:
            passes &= np.broadcast_to(factor.evaluate(combinations), (size,)) > 0.5
        may_be_in_cell.append(may_remain & passes)
        # If the test depends on nothing else, all units that pass are in this or an earlier cell, and none
        # are in later ones.
        if len(evaluated_factors) == len(factors_of(test)):
            may_remain = may_remain & ~passes
    may_be_in_cell.append(may_remain)
    position = {level: k for k, level in enumerate(levels)}
    # Levels that occur only in a test belong to the other levels.
    codes = np.array([position.get(level, len(levels)) for level in combinations[column].tolist()])
    possible = np.zeros((len(may_be_in_cell), len(levels) + 1), dtype=bool)
    for cell, is_possible in enumerate(may_be_in_cell):
        possible[cell, codes[is_possible]] = True
    return possible


def _level_combinations(
    factors: list[Expression], column: str, levels: tuple[str, ...]
) -> dict[str, AnyArray]:
    """Return all combinations of levels of `column` and of the columns of factors, as arrays by column."""
    levels_and_other = [*levels, _OTHER_LEVEL_PREFIX + ", ".join(levels)]
    has_comparisons = any(isinstance(factor, Agree) for factor in factors)
    levels_by_column = {column: levels_and_other}
    for name in columns_read(factors):
        # If columns are compared with each other, every column may have the levels of `column`.
        if name == column or has_comparisons:
            candidates = levels_and_other
        else:
            candidates = levels_and_other[-1:]
        levels_by_column[name] = list(dict.fromkeys([*levels_in(factors, name), *candidates]))
    if math.prod(map(len, levels_by_column.values())) > _MAX_COMBINATIONS:
        levels_by_column = {column: levels_and_other}
    grids = np.meshgrid(*levels_by_column.values(), indexing="ij")
    return {name: grid.ravel() for name, grid in zip(levels_by_column, grids, strict=True)}
