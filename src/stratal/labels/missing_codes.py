"""Numbers such as -1 and 99 that files contain where a row has no label."""

from __future__ import annotations

from collections.abc import Iterable

from stratal.arrays import number_of_text
from stratal.errors import LabelError
from stratal.labels.label_values import are_numeric_labels

# Usual codes for rows without an answer.
_MISSING_CODES = frozenset((-1, -8, -9, -98, -99, -998, -999, -9999, 88, 98, 99, 888, 998, 999, 9999))

# Beside labels above this, such as counts, no code is refused: percentages are the largest usual scale.
_MAX_RATING = 100.0

# A positive code is refused if it is more than this many times the largest other label: 88 and 99 beside
# ratings up to 20, but not beside percentages.
_MIN_RATIO = 4.0


def is_missing_code(text: str) -> bool:
    """Return whether a text is a usual code of missing labels.

    Examples
    --------
    >>> is_missing_code("-1"), is_missing_code("99.0"), is_missing_code("7")
    (True, True, False)
    """
    return number_of_text(text) in _MISSING_CODES


def refuse_missing_code(
    texts: Iterable[str],
    source: str,
    column: str,
    *,
    bounds: tuple[float, float] | None = None,
    mapped: Iterable[object] = (),
) -> None:
    """Refuse labels of which one is a usual code of missing labels and far from all others.

    Parameters
    ----------
    texts : iterable of str
        The labels, or the distinct ones.
    source : str
        The file or table that they are from.
    column : str
    bounds : (float, float), optional
        Of the labels, as far as they are declared: a code within them is a label.
    mapped : iterable, optional
        Labels whose meaning is declared.

    Raises
    ------
    LabelError
        With the two ways to state what the code means.
    """
    distinct_texts = set(texts)
    if are_numeric_labels(distinct_texts):
        numbers = {number_of_text(text) for text in distinct_texts}
        refuse_missing_number(numbers, source, column, bounds=bounds, mapped=mapped)


def refuse_missing_number(
    labels: Iterable[float],
    source: str,
    column: str,
    *,
    bounds: tuple[float, float] | None = None,
    mapped: Iterable[object] = (),
) -> None:
    """Refuse numbers as `refuse_missing_code` refuses texts."""
    numbers = set(labels) - {number_of_text(str(label)) for label in mapped}
    codes = _codes_far_from_others(numbers)
    if bounds is not None:
        low, high = bounds
        codes = [code for code in codes if not low <= code <= high]
    if not codes:
        return
    code = f"{codes[0]:g}"
    others = numbers.difference(codes)
    low, high = min(numbers), max(numbers)
    raise LabelError(
        f"{source}: {code} in {column!r} may mean that a row has no label",
        given=f"labels from {min(others):g} to {max(others):g}, and {code}",
        action=f"If so, pass mapping={{{code!r}: None}} (--map {code}=). If it is a real label, state the "
        f"range of the labels: bounds=({low:g}, {high:g}) (--bounds={low:g},{high:g}).",
    )


def _codes_far_from_others(numbers: set[float]) -> list[float]:
    """Return the usual codes among numbers that no other number is near to."""
    codes = sorted(numbers.intersection(_MISSING_CODES))
    others = numbers.difference(codes)
    if not codes or not others or min(others) < 0 or max(others) > _MAX_RATING:
        return []
    least_far = _MIN_RATIO * max(max(others), 1.0)
    return [code for code in codes if code < 0 or code > least_far]
