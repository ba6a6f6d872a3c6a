"""Numbers with the digits of usual codes of missing labels, such as -1 and 99."""

from __future__ import annotations

import math

from stratal.arrays import number_of_text

# Codes of one digit: -1, -2, -7, -8 and -9, and 8 and 9.
_NEGATIVE_DIGITS = "12789"
_POSITIVE_DIGITS = "89"
# Longer codes repeat one digit, such as 77 and 888, or end in another digit after nines, such as 97 and 996.
_REPEATED_DIGITS = "789"
_DIGITS_AFTER_NINES = "678"


def is_code(number: float) -> bool:
    """Return whether a number has the digits of a usual code of missing labels.

    Examples
    --------
    >>> [number for number in (-1, -3, 7, 9, 77, 90, 97, 99.5, 996, -99999) if is_code(number)]
    [-1, 9, 77, 97, 996, -99999]
    """
    if not math.isfinite(number) or not float(number).is_integer():
        return False
    digits = str(int(abs(number)))
    if len(digits) == 1:
        return digits in (_NEGATIVE_DIGITS if number < 0 else _POSITIVE_DIGITS)
    is_repeated = digits == digits[0] * len(digits) and digits[0] in _REPEATED_DIGITS
    return is_repeated or (set(digits[:-1]) == {"9"} and digits[-1] in _DIGITS_AFTER_NINES)


def is_missing_code(text: str) -> bool:
    """Return whether a text is a usual code of missing labels.

    Examples
    --------
    >>> is_missing_code("-1"), is_missing_code("99.0"), is_missing_code("7")
    (True, True, False)
    """
    return is_code(number_of_text(text))
