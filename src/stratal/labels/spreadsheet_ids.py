"""Restoration of ids that a spreadsheet changed, such as 7 for 007."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal

# A whole number, possibly with a fraction of zeros. Groups: the sign, and the digits without leading zeros
# (no match for 0). Possessive quantifiers (`*+`) avoid backtracking on long texts.
_WHOLE_NUMBER = re.compile(r"([+-]?)(?:0*+([^\D0]\d*+)|0++)(?:[.,]0*+)?")

# Spreadsheets show long ids in this form, such as 1.23457E+11, with a comma in some countries.
_SCIENTIFIC = re.compile(r"([+-]?\d)(?:[.,](\d+))?[eE]([+-]?\d+)")


def restore_spreadsheet_ids(
    ids: Sequence[str], annotators: Sequence[str] | None, sample_ids: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return ids (m,) as they were before a spreadsheet changed them, and notes about the changes.

    An id is restored only if no unit has it, exactly one unit has an id that a spreadsheet could turn into
    it, and the annotator did not also label this unit under its correct id. Other ids are unchanged.
    """
    unmatched_rows = [row for row, text in enumerate(ids) if text not in sample_ids]
    if not unmatched_rows:
        return tuple(ids), ()
    row_annotators: Sequence[str] = [""] * len(ids)
    if annotators is not None:
        row_annotators = annotators
    matched_pairs = {
        (text, annotator) for text, annotator in zip(ids, row_annotators, strict=True) if text in sample_ids
    }
    index = _SpreadsheetIdIndex(sample_ids)
    restored_ids = list(ids)
    changes = []
    for row in unmatched_rows:
        originals = index.find_originals(ids[row])
        if len(originals) == 1 and (originals[0], row_annotators[row]) not in matched_pairs:
            restored_ids[row] = originals[0]
            changes.append((ids[row], originals[0]))
    return tuple(restored_ids), _change_notes(changes)


def _change_notes(changes: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the note about restored ids, from pairs of a changed and a restored id."""
    if not changes:
        return ()
    changed, restored = changes[0]
    if len(changes) == 1:
        note = "1 id was matched although a spreadsheet had changed it"
    else:
        note = f"{len(changes):,} ids were matched although a spreadsheet had changed them"
    return (f"{note} (first: {changed!r} is {restored!r})",)


class _SpreadsheetIdIndex:
    """An index of the ids of a sample by the texts to which a spreadsheet could change them."""

    def __init__(self, sample_ids: Collection[str]) -> None:
        self._ids_by_normalized: dict[str, list[str]] = {}
        self._numeric_ids: list[tuple[Decimal, str]] = []
        for text in sample_ids:
            self._ids_by_normalized.setdefault(normalize_id(text), []).append(text)
            if _WHOLE_NUMBER.fullmatch(text) or _SCIENTIFIC.fullmatch(text):
                self._numeric_ids.append((Decimal(text.replace(",", ".")), text))
        # By the number of decimal places, and by the rounded number.
        self._ids_by_rounded: dict[int, dict[str, list[str]]] = {}

    def find_originals(self, text: str) -> list[str]:
        """Return the ids that a spreadsheet could have turned into `text`."""
        scientific = _SCIENTIFIC.fullmatch(text.strip())
        if scientific is None:
            return self._ids_by_normalized.get(normalize_id(text), [])
        n_decimals = len(scientific.group(2) or "")
        if n_decimals not in self._ids_by_rounded:
            ids_by_rounded: dict[str, list[str]] = {}
            for number, original in self._numeric_ids:
                ids_by_rounded.setdefault(f"{number:.{n_decimals}E}", []).append(original)
            self._ids_by_rounded[n_decimals] = ids_by_rounded
        # Spreadsheets of some languages write decimal commas.
        number = Decimal(text.strip().replace(",", "."))
        return self._ids_by_rounded[n_decimals].get(f"{number:.{n_decimals}E}", [])


def normalize_id(text: str) -> str:
    """Return an id without the differences that spreadsheets cause: zeros at the start, .0, spaces, 00:00."""
    text = text.strip()
    match = _WHOLE_NUMBER.fullmatch(text)
    if match is not None:
        return match.group(1).replace("+", "") + (match.group(2) or "0")
    if text.endswith("00:00"):
        return re.sub(r"[T ]00:00(:00)?$", "", text)
    return text
