"""Numbers such as -1 and 99 that files contain where a row has no label.

Such a code that counts as a label makes an estimate wrong without a sign of it, and a label that is taken for
a code is lost. A number is therefore asked about if it is one of the usual codes and cannot be a value of the
scale of the other labels:

- *Ratings* are at most eleven different values, as on the widest usual scale, 0 to 10. A negative code is
  asked about if no other label is negative, and a positive one if it is more than four times the largest
  other label, such as 99 beside ratings up to 20. 8 and 9 must also be at most a tenth of the labels: beside
  many 0 and 1 they are codes, and a few ratings on a scale to 10 may be 1, 2 and 9.
- *-1 beside 0 and 1*, or 1 alone, is the scale of preferences (loss, tie, win) if a tenth of the labels, and
  at least three, are -1. Files rarely lack more labels than that without another sign of it, and a
  comparison in which fewer than a tenth are losses is rare too.
- *Measurements*, such as percentages, counts and continuous scores, are more than eleven different values.
  A new value beyond the others is usual among them, so that a code must be farther away. A negative one is
  asked about if its distance from the others is at least their range (-1 beside scores from 0 to 1, not
  beside percentages). A positive one is asked about if it is more than eight times the largest other label,
  about a digit longer (999 beside numbers up to 100), and beyond the largest by a larger factor than the
  largest is beyond the median (which excludes heavy tails).
- *No other label* than codes: asked about if one of them is negative. Percentages may be 98 and 99.

Codes within the stated bounds of the labels are labels. Those beyond them are asked about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from stratal.arrays import FloatArray, number_of_text
from stratal.errors import LabelError
from stratal.labels.label_values import are_numeric_labels, format_mapping

# Usual codes for rows without an answer.
_MISSING_CODES = frozenset((-1, -8, -9, -98, -99, -998, -999, -9999, 8, 9, 88, 98, 99, 888, 998, 999, 9999))

# Beside labels above this, such as counts, no code is asked about: percentages are the largest usual scale.
_MAX_LABEL = 100.0

# Largest number of different ratings: 0 to 10.
_MAX_RATINGS = 11

# How many times the largest other label a positive code exceeds: with ratings, and with measurements.
_MIN_RATIO = 4.0
_MIN_MEASUREMENT_RATIO = 8.0

# Codes up to this may be ratings on a usual scale, and are asked about only up to a share of the labels.
_LARGEST_RATING = 10.0
_MAX_SHARE_OF_RATINGS = 0.1

# Smallest share and number of labels -1 beside 0 and 1 that are a scale.
_MIN_LOSS_SHARE = 0.1
_MIN_LOSSES = 3
_LOSS = -1.0


def is_missing_code(text: str) -> bool:
    """Return whether a text is a usual code of missing labels.

    Examples
    --------
    >>> is_missing_code("-1"), is_missing_code("99.0"), is_missing_code("7")
    (True, True, False)
    """
    return number_of_text(text) in _MISSING_CODES


def refuse_missing_code(
    counts: Mapping[str, int],
    source: str,
    column: str,
    *,
    bounds: tuple[float, float] | None = None,
    classes: Collection[str] | None = None,
) -> None:
    """Refuse labels of which one is a usual code of missing labels, and no value of the scale of the others.

    Parameters
    ----------
    counts : mapping of str to int
        The number of labels of each text, without those whose meaning is declared.
    source : str
        The file or table that they are from.
    column : str
    bounds : (float, float), optional
        Of the labels, as far as they are declared: a code within them is a label.
    classes : collection of str, optional
        The classes of a model, if labels are compared with them: a code among them is a class.

    Raises
    ------
    LabelError
        With the ways to state what the code means.
    """
    if not any(map(is_missing_code, counts)) or not are_numeric_labels(counts):
        return
    count_of: dict[float, int] = {}
    for text, count in counts.items():
        number = number_of_text(text)
        count_of[number] = count_of.get(number, 0) + count
    known_classes = {number_of_text(name) for name in classes or ()}
    codes = _codes_beyond_scale(count_of, known_classes)
    if bounds is not None:
        low, high = bounds
        codes = [code for code in codes if not low <= code <= high]
    if not codes:
        return
    raise LabelError(
        f"{source}: {codes[0]:g} in {column!r} may mean that a row has no label",
        given=_describe_counts(count_of, codes),
        action=_possible_actions(count_of, codes, is_class=classes is not None),
    )


def _codes_beyond_scale(count_of: Mapping[float, int], classes: set[float]) -> list[float]:
    """Return the usual codes that are no values of the scale of the other labels; see the module."""
    codes = sorted(number for number in count_of if number in _MISSING_CODES and number not in classes)
    others = np.array(sorted(classes.union(count_of).difference(codes)))
    if not codes or np.any(np.isnan(others)):
        return []
    if not len(others):
        has_negative = codes[0] < 0
        return codes if has_negative else []
    if others[0] < 0 or others[-1] > _MAX_LABEL:
        return []
    if len(others) > _MAX_RATINGS:
        repeated = np.repeat(others, [max(count_of.get(other, 0), 1) for other in others.tolist()])
        return [code for code in codes if _is_beyond_measurements(code, repeated)]
    if codes == [_LOSS] and _are_preferences(count_of, others):
        return []
    return [code for code in codes if _is_beyond_ratings(code, count_of, max(float(others[-1]), 1.0))]


def _is_beyond_ratings(code: float, count_of: Mapping[float, int], largest: float) -> bool:
    """Return whether a code is beyond ratings that are not negative, of which `largest` is the largest."""
    if code < 0:
        return True
    is_frequent = count_of[code] > _MAX_SHARE_OF_RATINGS * sum(count_of.values())
    if code <= _LARGEST_RATING and is_frequent:
        return False
    return code > _MIN_RATIO * largest


def _is_beyond_measurements(code: float, others: FloatArray) -> bool:
    """Return whether a code is far beyond all other labels (m,), sorted, that are measurements."""
    lowest = float(others[0])
    largest = float(others[-1])
    if code < 0:
        return lowest - code >= largest - lowest
    median = max(float(np.median(others)), 1.0)
    ratio = code / max(largest, 1.0)
    return ratio > max(_MIN_MEASUREMENT_RATIO, largest / median)


def _are_preferences(count_of: Mapping[float, int], others: FloatArray) -> bool:
    """Return whether -1 beside other labels (m,) is a loss beside ties and wins."""
    losses = count_of[_LOSS]
    is_frequent = losses >= _MIN_LOSSES and losses >= _MIN_LOSS_SHARE * sum(count_of.values())
    return is_frequent and 1.0 in others and set(others.tolist()) <= {0.0, 1.0}


def _describe_counts(count_of: Mapping[float, int], codes: list[float]) -> str:
    """Return the range of the other labels, and how often each code occurs."""
    code_counts = " and ".join(
        f"{code:g} ({count_of[code]:,} of {sum(count_of.values()):,})" for code in codes
    )
    others = set(count_of).difference(codes)
    if not others:
        return f"only {code_counts}"
    return f"labels from {min(others):g} to {max(others):g}, and {code_counts}"


def _possible_actions(count_of: Mapping[float, int], codes: list[float], *, is_class: bool) -> str:
    """Return the ways to state what codes mean."""
    texts = [f"{code:g}" for code in codes]
    no_label = f"If so, pass {format_mapping(dict.fromkeys(texts))}."
    as_itself = format_mapping({f"{code:g}": code for code in codes})
    if is_class:
        return f"{no_label} If it is a class, map it to itself: {as_itself}."
    low = min(count_of)
    high = max(count_of)
    actions = (
        f"{no_label} If it is a real label, state the range of the labels: bounds=({low:g}, {high:g}) "
        f"(--bounds={low:g},{high:g}); or, of an estimand without bounds, map it to itself: {as_itself}."
    )
    others = set(count_of).difference(codes)
    if codes == [_LOSS] and 1.0 in others and others <= {0.0, 1.0}:
        actions += " If it means wrong or a loss, and only 1 counts: positive='1' (--positive 1)."
    return actions
