"""Whether two values of a unit are the same, whatever format each comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from stratal.arrays import is_null


def same_value(one: Any, other: Any) -> bool:
    """Return whether two values are the same in any format.

    Text files hold texts alone: a number, a truth value, a moment and nested values are equal to their text,
    and a missing value to an empty one.

    Examples
    --------
    >>> same_value(7.0, "7"), same_value(None, ""), same_value("007", 7)
    (True, True, False)
    """
    return _canonical(one) == _canonical(other)


_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(\.\d+?)?0*(Z|[+-]00:00)?")


def _canonical(value: Any) -> str:
    """Return the text by which a value is recognised in another format."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, sort_keys=True, default=str)
    if is_null(value) or value != value:
        return ""
    if isinstance(value, datetime | date):
        value = value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, bool | int | float | Decimal):
        value = str(value)
    text = str(value).strip()
    return next(iter(_readings(text)), text)


def _readings(text: str) -> Iterator[str]:
    if text.lower() in ("true", "false"):
        yield text.lower()
    if _NUMBER.fullmatch(text):
        yield _plain_number(text)
    moment = _MOMENT.fullmatch(text)
    if moment is not None:
        day, minute, second, fraction, zone = moment.groups()
        exact = f"{minute}{second or ':00'}{fraction or ''}".removesuffix(".")
        yield day if exact == "00:00:00" else f"{day} {exact}{'+00:00' if zone else ''}"
    if text[:1] in ("[", "{"):
        try:
            yield json.dumps(json.loads(text), sort_keys=True)
        except ValueError:
            return


def _plain_number(text: str) -> str:
    if text.removeprefix("-").isdigit():
        return text
    number = float(text)
    return str(int(number)) if number.is_integer() and abs(number) < 2.0**53 else repr(number)
