"""Facts of a table's columns, from which their roles are recognised."""

from __future__ import annotations

import datetime
import heapq
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from stratal.arrays import number_of_text
from stratal.protocols import JsonMapping
from stratal.question.facts import ColumnFacts
from stratal.tables.no_answer import is_no_answer
from stratal.tables.number_format import ColumnNumbers, share_of_percentage
from stratal.tables.small_table import SmallTable, formats_with_percentages, is_missing, plain_text

# Kind of a described column of text in which every entry is a percentage.
PERCENTAGE_KIND = "percentage"

# Distinct values that are kept; a column with more holds free text or measurements, or very many classes.
_MAX_VALUES = 2_000
# Entries that are inspected for dates, nested values and their length.
_MAX_INSPECTED = 200

# Dates and times in the usual orders; whether day or month comes first does not matter.
_DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?([T ]\d\d?:\d\d.*)?|\d\d?[./]\d\d?[./]\d{2,4}( .*)?|\d\d?:\d\d(:\d\d.*)?"
)


def facts_of_table(table: SmallTable) -> list[ColumnFacts]:
    """Return the facts of each column of a small table."""
    metrics = () if table.log is None else table.log.proxies
    return [_facts(name, entries, name in metrics) for name, entries in table.columns.items()]


def facts_of_description(description: JsonMapping) -> list[ColumnFacts]:
    """Return the facts of columns that `describe_columns` described; values are unknown.

    Whole numbers are inferred: the range must have room for the distinct values.
    """
    metrics = (description.get("log") or {}).get("proxies", ())
    rows = description["rows"]
    return [
        ColumnFacts(
            name=row["name"],
            rows=rows,
            present=rows - row["missing"],
            distinct=row["distinct"],
            is_number=row["kind"] == "number",
            minimum=row["minimum"],
            maximum=row["maximum"],
            is_whole=may_be_whole(row),
            values=_binary_values(row),
            is_metric=row["name"] in metrics,
            is_percentage=row["kind"] == PERCENTAGE_KIND,
        )
        for row in description["columns"]
    ]


def may_be_whole(row: JsonMapping) -> bool:
    """Return whether the description of a column is of numbers that may all be whole."""
    if row["kind"] != "number" or row["minimum"] is None:
        return False
    low = float(row["minimum"])
    high = float(row["maximum"])
    return low.is_integer() and high.is_integer() and row["distinct"] <= high - low + 1


def _binary_values(row: Mapping[str, object]) -> frozenset[str] | None:
    """Return 0 and 1 if a column of numbers has no other values."""
    is_binary = (
        row["kind"] == "number" and row["distinct"] == 2 and (row["minimum"], row["maximum"]) == (0, 1)
    )
    if is_binary:
        return frozenset({"0", "1"})
    return None


def _facts(name: str, entries: Sequence[object], is_metric: bool) -> ColumnFacts:
    present = [entry for entry in entries if not is_missing(entry) and not _is_no_answer(entry)]
    head = present[:_MAX_INSPECTED]
    texts = {str(plain_text(entry)) for entry in present}
    # The first entry shows most columns of text, which saves reading all of theirs as numbers.
    if _number(plain_text(next(iter(head), ""))) is not None:
        numbers = [_number(text) for text in texts]
    else:
        numbers = []
    is_number = bool(numbers) and None not in numbers
    finite = [number for number in numbers if is_number and number is not None]
    formats = formats_with_percentages(present)
    if formats is not None:
        finite = _shares(texts, formats)
    values = frozenset(texts) if len(texts) <= _MAX_VALUES else frozenset(heapq.nsmallest(_MAX_VALUES, texts))
    return ColumnFacts(
        name=name,
        rows=len(entries),
        present=len(present),
        distinct=len(texts),
        is_number=is_number,
        minimum=min(finite, default=None),
        maximum=max(finite, default=None),
        is_whole=is_number and all(number.is_integer() for number in finite),
        values=values,
        is_date=_are_dates(head),
        is_nested=_are_nested(head),
        mean_length=sum(len(str(entry)) for entry in head) / max(len(head), 1),
        is_metric=is_metric,
        is_percentage=formats is not None and formats.has_only_percentages,
        number_among_percentages=None if formats is None else formats.number_among_percentages,
    )


def _shares(texts: Iterable[str], formats: ColumnNumbers) -> list[float]:
    """Return the percentages among texts as shares."""
    return [
        share
        for share in (share_of_percentage(text, formats.most_common_mark) for text in texts)
        if not math.isnan(share)
    ]


def _is_no_answer(entry: object) -> bool:
    return isinstance(entry, str) and is_no_answer(entry)


def _number(text: str | None) -> float | None:
    """Return a finite number; None for other texts, truth values among them."""
    number = number_of_text(text or "")
    if math.isfinite(number):
        return number
    return None


def _are_dates(entries: Iterable[object]) -> bool:
    are_dates = [
        isinstance(entry, datetime.date | datetime.time)
        or (isinstance(entry, str) and _DATE.fullmatch(entry.strip()) is not None)
        for entry in entries
    ]
    return bool(are_dates) and all(are_dates)


def _are_nested(entries: Iterable[object]) -> bool:
    return any(
        isinstance(entry, list | dict) or (isinstance(entry, str) and entry.lstrip().startswith(("[", "{")))
        for entry in entries
    )
