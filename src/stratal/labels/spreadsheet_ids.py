"""Ids that a spreadsheet changed, and their restoration."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal

# Groups: the sign, and the digits without leading zeros (empty for 0). Possessive quantifiers avoid
# backtracking on long texts.
_WHOLE_NUMBER = re.compile(r"([+-]?)(?:0*+([^\D0]\d*+)|0++)(?:[.,]0*+)?")


# Spreadsheets show long ids in this form, such as 1.23457E+11, with a comma in some countries.
_SCIENTIFIC = re.compile(r"([+-]?\d)(?:[.,](\d+))?[eE]([+-]?\d+)")


def restore_spreadsheet_ids(
    ids: Sequence[str], annotators: Sequence[str] | None, sample_ids: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return ids (m,) as they were before a spreadsheet changed them, and notes about the changes.

    An id is restored only if no unit has it, exactly one unit has an id that a spreadsheet could turn into
    it, and the annotator did not also label this unit under its correct id. Other ids are unchanged.

    Parameters
    ----------
    ids : sequence of str (m,)
    annotators : sequence of str (m,), optional
    sample_ids : collection of str
        The sample's ids.
    """
    unmatched_rows = [row for row, text in enumerate(ids) if text not in sample_ids]
    if not unmatched_rows:
        return tuple(ids), ()
    row_annotators: Sequence[str] = [""] * len(ids)
    if annotators is not None:
        row_annotators = annotators
    answered_pairs = {(text, by) for text, by in zip(ids, row_annotators, strict=True) if text in sample_ids}
    sample_texts = _SpreadsheetIds(sample_ids)
    result = list(ids)
    first_change = None
    for row in unmatched_rows:
        originals = sample_texts.originals_of(ids[row])
        if len(originals) == 1 and (originals[0], row_annotators[row]) not in answered_pairs:
            result[row] = originals[0]
            first_change = first_change or (ids[row], originals[0])
    change_count = sum(after != before for after, before in zip(result, ids, strict=True))
    if first_change is None:
        return tuple(result), ()
    if change_count == 1:
        subject = "1 id was"
    else:
        subject = f"{change_count:,} ids were"
    note = f"{subject} matched although a spreadsheet had changed {'it' if change_count == 1 else 'them'}"
    return tuple(result), (f"{note} (first: {first_change[0]!r} is {first_change[1]!r})",)


class _SpreadsheetIds:
    """The ids of a sample, by the texts that a spreadsheet could turn them into."""

    def __init__(self, sample_ids: Collection[str]) -> None:
        self._forms: dict[str, list[str]] = {}
        self._numbers: list[tuple[Decimal, str]] = []
        for text in sample_ids:
            self._forms.setdefault(normalize_id(text), []).append(text)
            if _WHOLE_NUMBER.fullmatch(text) or _SCIENTIFIC.fullmatch(text):
                self._numbers.append((Decimal(text.replace(",", ".")), text))
        self._rounded: dict[int, dict[str, list[str]]] = {}

    def originals_of(self, text: str) -> list[str]:
        """Return the ids that a spreadsheet could have turned into `text`."""
        scientific = _SCIENTIFIC.fullmatch(text.strip())
        if scientific is None:
            return self._forms.get(normalize_id(text), [])
        digits = len(scientific.group(2) or "")
        if digits not in self._rounded:
            rounded: dict[str, list[str]] = {}
            for number, original in self._numbers:
                rounded.setdefault(f"{number:.{digits}E}", []).append(original)
            self._rounded[digits] = rounded
        # Spreadsheets of some languages write decimal commas.
        number = Decimal(text.strip().replace(",", "."))
        return self._rounded[digits].get(f"{number:.{digits}E}", [])


def normalize_id(text: str) -> str:
    """Return an id without leading zeros, a trailing .0, surrounding spaces and the midnight of a date."""
    text = text.strip()
    match = _WHOLE_NUMBER.fullmatch(text)
    if match is not None:
        return match.group(1).replace("+", "") + (match.group(2) or "0")
    if text.endswith("00:00"):
        return re.sub(r"[T ]00:00(:00)?$", "", text)
    return text
