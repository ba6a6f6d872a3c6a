"""Ids that a spreadsheet changed: 0415 became 415, 1336 became 1336.0, 123456789012 became 1.23457E+11."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal

_WHOLE = re.compile(r"([+-]?)0*(\d+?)(?:[.,]0*)?")
_SCIENTIFIC = re.compile(r"([+-]?\d)(?:[.,](\d+))?[eE]([+-]?\d+)")


def matched(
    ids: Sequence[str], annotators: Sequence[str] | None, known: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return ids (m,) as they were before a spreadsheet changed them, and what is to be said of that.

    An id is matched only where it is that of no unit, exactly one unit could have become it, and nobody
    gave that unit's own id as well. All others stay as they are.

    Parameters
    ----------
    ids : sequence of str (m,)
    annotators : sequence of str (m,), optional
    known : collection of str
        The sample's ids.

    Examples
    --------
    >>> matched(["415", "x"], None, {"0415", "x"})
    (('0415', 'x'), ("1 id was matched as a spreadsheet changed it (first: '415' is '0415')",))
    >>> matched(["415"], None, {"0415", "00415"})
    (('415',), ())
    """
    strangers = [row for row, text in enumerate(ids) if text not in known]
    if not strangers:
        return tuple(ids), ()
    who = [""] * len(ids) if annotators is None else annotators
    taken = {(text, by) for text, by in zip(ids, who, strict=True) if text in known}
    could = _Candidates(known)
    result, first = list(ids), None
    for row in strangers:
        found = could.become(ids[row])
        if len(found) == 1 and (found[0], who[row]) not in taken:
            result[row] = found[0]
            first = first or (ids[row], found[0])
    changed = sum(after != before for after, before in zip(result, ids, strict=True))
    if first is None:
        return tuple(result), ()
    ids_were = "1 id was" if changed == 1 else f"{changed:,} ids were"
    note = f"{ids_were} matched as a spreadsheet changed {'it' if changed == 1 else 'them'}"
    return tuple(result), (f"{note} (first: {first[0]!r} is {first[1]!r})",)


class _Candidates:
    """The units whose ids a spreadsheet could have turned into a given text."""

    def __init__(self, known: Collection[str]) -> None:
        self._forms: dict[str, list[str]] = {}
        self._numbers: list[tuple[Decimal, str]] = []
        for text in known:
            self._forms.setdefault(bare_form(text), []).append(text)
            if _WHOLE.fullmatch(text) or _SCIENTIFIC.fullmatch(text):
                self._numbers.append((Decimal(text.replace(",", ".")), text))
        self._rounded: dict[int, dict[str, list[str]]] = {}

    def become(self, text: str) -> list[str]:
        """Return the ids that could have become `text`."""
        scientific = _SCIENTIFIC.fullmatch(text.strip())
        if scientific is None:
            return self._forms.get(bare_form(text), [])
        digits = len(scientific.group(2) or "")
        if digits not in self._rounded:
            rounded: dict[str, list[str]] = {}
            for number, known in self._numbers:
                rounded.setdefault(f"{number:.{digits}E}", []).append(known)
            self._rounded[digits] = rounded
        return self._rounded[digits].get(f"{Decimal(text.strip().replace(',', '.')):.{digits}E}", [])


def bare_form(text: str) -> str:
    """Return what is left of an id without leading zeros, a trailing .0, spaces and a date's midnight.

    Examples
    --------
    >>> bare_form("007"), bare_form(" 7.0")
    ('7', '7')
    """
    text = text.strip()
    whole = _WHOLE.fullmatch(text)
    if whole is not None:
        return whole.group(1).replace("+", "") + whole.group(2)
    return re.sub(r"[T ]00:00(:00)?$", "", text)
