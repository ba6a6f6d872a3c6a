"""The order in time of the waves in a column of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from stratal.arrays import number_of_text
from stratal.errors import InputError

# Numbers in names are compared as numbers, so that week10 follows week9.
_DIGITS = re.compile(r"(\d+)")
# Names that begin with a year sort by time.
_YEAR = re.compile(r"(19|20)\d\d")
# A day, a month and a year, whose order depends on the country: 3/12/2026.
_DAY_AND_MONTH = re.compile(r"\d{1,2}[/.]\d{1,2}[/.]\d{2,4}")
# One number that ends in a year, such as 122025 or 31122025, grows with the day or month, not with time.
_ENDS_IN_YEAR = re.compile(r"\d{1,2}(\d{2})?(19|20)\d\d")
# Words in names whose numbers decrease with time: "2 weeks ago".
_BACKWARDS = re.compile(r"\b(ago|before|left)\b")
# Numbers such as 51, 52, 1, 2 begin a new year: they fall once, to at most 2, and by at least 3.
_MAX_FIRST_NUMBER = 2
_MIN_FALL_AT_YEAR_END = 3


def sorted_waves(waves: Sequence[str]) -> list[str]:
    """Return the distinct waves in their order in time, from the wave (n,) of each row.

    Waves are sorted if their numbers show the order; see `are_sortable`. Otherwise they keep the order of the
    rows.

    Raises
    ------
    InputError
        If the numbers do not show the order, and rows of different waves are mixed, years fall, or waves are
        dates such as 3/12/2026; and if one number restarts within the rows, as weeks do in January.
    """
    distinct = list(dict.fromkeys(waves))
    runs = 1 + sum(wave != previous for previous, wave in pairwise(waves))
    is_contiguous = runs == len(distinct)
    if are_sortable(distinct):
        in_order = sorted(distinct, key=_sort_key)
        if is_contiguous and in_order != distinct:
            _require_no_restart([_sort_key(wave)[0] for wave in distinct], distinct)
        return in_order
    ambiguous = [wave for wave in distinct if _DAY_AND_MONTH.fullmatch(wave)]
    if ambiguous:
        raise _unclear_order_error(repr(ambiguous[0]), "Write dates such as 2026-03-02.")
    if not is_contiguous:
        raise _unclear_order_error(
            f"{', '.join(map(repr, distinct[:3]))}, and rows of different waves are mixed",
            "Sort the rows by time, or name the waves with the year first: 2026-03, 2026-W09, 2026Q1.",
        )
    years = [_years(wave) for wave in distinct]
    if all(years) and sorted(years) != years:
        raise _unclear_order_error(
            f"rows from {distinct[0]!r} to {distinct[-1]!r}",
            "Sort the rows by time, the earliest first, or name the waves with the year first: 2026-03.",
        )
    return distinct


def are_sortable(distinct: Sequence[str]) -> bool:
    """Return whether the numbers in the names of waves show their order in time.

    The texts between the numbers are the same in all waves, and there is one number (9, week 9) or a year
    comes first (2026-03-02, 2026-W09, 2026Q1).
    """
    if np.all(np.isfinite([_whole_number(wave) for wave in distinct])):
        return not any(_ends_in_year(wave) for wave in distinct)
    parts = [_DIGITS.split(wave.casefold()) for wave in distinct]
    texts = {tuple(" ".join(text.split()) for text in entries[::2]) for entries in parts}
    if len(texts) > 1 or _BACKWARDS.search(distinct[0].casefold()):
        return False
    numbers = parts[0][1::2]
    if len(numbers) == 1:
        return not any(_ends_in_year(entries[1]) for entries in parts)
    # The digits of a decimal number are not a month: 2025.5 is later than 2025.25.
    if len(numbers) == 2 and all(np.isfinite(number_of_text(wave)) for wave in distinct):
        return False
    return len(numbers) > 1 and all(_YEAR.fullmatch(entries[1]) for entries in parts)


def _whole_number(wave: str) -> float:
    """Return the number of a wave that is a whole number, otherwise NaN."""
    number = number_of_text(wave)
    if np.isfinite(number) and number == np.floor(number):
        return number
    return np.nan


def _ends_in_year(text: str) -> bool:
    """Return whether digits end in a year, and do not begin with one."""
    return _ENDS_IN_YEAR.fullmatch(text) is not None and _YEAR.match(text) is None


def _sort_key(wave: str) -> tuple[float, ...]:
    """Return the number of a wave that is a whole number, otherwise all numbers in its name."""
    number = _whole_number(wave)
    if np.isfinite(number):
        return (number,)
    return tuple(float(digits) for digits in _DIGITS.findall(wave))


def _years(wave: str) -> list[str]:
    """Return the numbers of a wave that are years."""
    return [digits for digits in _DIGITS.findall(wave) if _YEAR.fullmatch(digits)]


def _require_no_restart(numbers: Sequence[float], distinct: Sequence[str]) -> None:
    """Raise an error for numbers in the order of the rows that rise, restart at 1 or 2, and rise again."""
    falls = [index for index in range(1, len(numbers)) if numbers[index] < numbers[index - 1]]
    if len(falls) != 1:
        return
    last = numbers[falls[0] - 1]
    first = numbers[falls[0]]
    if first <= _MAX_FIRST_NUMBER and last - first >= _MIN_FALL_AT_YEAR_END:
        raise _unclear_order_error(
            f"{distinct[falls[0]]!r} after {distinct[falls[0] - 1]!r}",
            "Name the waves with the year first: 2026-W09.",
        )


def _unclear_order_error(case: str, action: str) -> InputError:
    """Return the error for waves whose order is not clear, with the names that show this."""
    return InputError("the order of the waves is not clear", given=case, action=action)
