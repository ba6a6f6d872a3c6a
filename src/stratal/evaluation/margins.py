"""Margins as users state them: names of columns, a mapping of totals, or a file of totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stratal.arrays import is_number
from stratal.designs.margins import MARGIN_METHODS
from stratal.errors import InputError
from stratal.names import split_names
from stratal.protocols import JsonMapping
from stratal.tables.files import FORMATS, existing_file
from stratal.tables.small_table import SmallTable

# Names of the columns of a file of totals, in order of preference.
_VARIABLE_NAMES = ("variable", "column", "margin", "group")
_LEVEL_NAMES = ("level", "value", "category", "class")
_TOTAL_NAMES = ("total", "count", "size", "units", "n", "population")

_FORMS = (
    "names of columns, a file of totals, or a mapping from each column to a mapping from levels to numbers "
    "of units"
)

# Published totals are often rounded, so that the sums of two margins may differ by this number of units.
_MAX_ROUNDING_DIFFERENCE = 0.5
# Totals with at most this sum are shares, which add up to about 1.
_MAX_SUM_OF_SHARES = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedMargins:
    """Columns whose totals over the population are known, as the user states them.

    Parameters
    ----------
    columns : tuple of str
    totals : mapping of column to mapping of level to number of units, optional
        None: the totals that the sample contains.
    method : {"raking", "regression"}
    """

    columns: tuple[str, ...]
    totals: Mapping[str, Mapping[str, float]] | None
    method: str

    @classmethod
    def of(cls, margins: str | Path | JsonMapping | StatedMargins) -> StatedMargins:
        """Return the margins that a text, a file or a mapping states.

        Raises
        ------
        InputError
            For a missing file, missing columns, a level with two rows, totals that are not numbers of units,
            and margins of populations with different sizes.
        """
        if isinstance(margins, StatedMargins):
            return margins
        if isinstance(margins, Mapping):
            totals = {str(column): _totals_of_mapping(column, levels) for column, levels in margins.items()}
            _check_sums(totals)
            return cls(columns=tuple(totals), totals=totals, method=MARGIN_METHODS[0])
        if not isinstance(margins, str | Path):
            raise InputError("margins= cannot be read", given=repr(margins), allowed=_FORMS)
        method, colon, text = str(margins).partition(":")
        if not colon or method not in MARGIN_METHODS:
            method = MARGIN_METHODS[0]
            text = str(margins)
        path = Path(text)
        if path.is_file() or path.suffix.lower() in FORMATS:
            totals = _totals_of_file(existing_file(path))
            _check_sums(totals)
            return cls(columns=tuple(totals), totals=totals, method=method)
        return cls(columns=split_names(text), totals=None, method=method)

    @property
    def population_size(self) -> int | None:
        """Number of units in the population, by the totals; None without totals."""
        if self.totals is None:
            return None
        return round(sum(self.totals[self.columns[0]].values()))


def _totals_of_mapping(column: object, levels: object) -> dict[str, float]:
    """Return the number of units of each level of a column."""
    if not isinstance(levels, Mapping):
        raise InputError(f"margins= for {column!r} cannot be read", given=repr(levels), allowed=_FORMS)
    for level, units in levels.items():
        if not is_number(units) or not np.isfinite(units) or units < 0:
            raise InputError(
                f"the total of level {level!r} of {column!r} is not a number of units",
                given=repr(units),
                allowed="a number of at least 0",
            )
    return {str(level): float(units) for level, units in levels.items()}


def _totals_of_file(path: Path) -> dict[str, dict[str, float]]:
    """Return the number of units of each level of each variable in a file."""
    table = SmallTable.of(path, str(path))
    names = [table.find(*names) for names in (_VARIABLE_NAMES, _LEVEL_NAMES, _TOTAL_NAMES)]
    if None in names:
        raise InputError(
            f"{path}: a file of margin totals must have three columns",
            given=", ".join(table.names),
            allowed="variable, level and total",
        )
    variable, level, total = (str(name) for name in names)
    units = table.numbers(total, positive=True)
    totals: dict[str, dict[str, float]] = {}
    rows = zip(table.texts(variable).tolist(), table.texts(level).tolist(), units.tolist(), strict=True)
    for column, name, count in rows:
        levels = totals.setdefault(column, {})
        if name in levels:
            raise InputError(
                f"{path}: level {name!r} of {column!r} has two rows", allowed="one row for each level"
            )
        levels[name] = count
    return totals


def _check_sums(totals: dict[str, dict[str, float]]) -> None:
    """Raise an error unless all margins add up to the same number of units."""
    if not totals:
        raise InputError("margins= names no column", given="{}", allowed=_FORMS)
    sums = {column: float(sum(levels.values())) for column, levels in totals.items()}
    first_sum = next(iter(sums.values()))
    if not np.allclose([*sums.values()], first_sum, rtol=1e-6, atol=_MAX_ROUNDING_DIFFERENCE):
        raise InputError(
            "the totals in margins= (--margins) do not add up to the same population size",
            given=", ".join(f"{units:,.10g} in {column!r}" for column, units in sums.items()),
            allowed="the same sum over the levels of every margin",
        )
    if first_sum <= _MAX_SUM_OF_SHARES:
        raise InputError(
            "the totals in margins= (--margins) are shares",
            given=", ".join(f"{units:g} in {column!r}" for column, units in sums.items()),
            allowed="numbers of units in the population",
        )
