"""Facts of a table's columns, from which their roles are recognised."""

from __future__ import annotations

import datetime
import heapq
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from stratal.arrays import number_of_text
from stratal.protocols import JsonMapping
from stratal.question.facts import MAX_CLASS_LENGTH, ColumnFacts
from stratal.tables.no_answer import is_no_answer, is_no_verdict
from stratal.tables.number_format import MIN_NUMBER_SHARE, POINT, share_of_percentage
from stratal.tables.small_table import SmallTable, formats_with_percentages, is_missing, plain_text

# Kind of a described column of text in which every entry is a percentage.
PERCENTAGE_KIND = "percentage"

# Largest number of distinct values in the facts. A column with more has free text, measurements or very many
# classes.
_MAX_VALUES = 2_000
# Largest number of distinct texts of a column of verdicts, with all texts for a verdict that is missing.
_MAX_VERDICT_TEXTS = 50
# Entries that are inspected for dates, nested values and their length.
_MAX_INSPECTED = 200

# Start of a text that is meant as a number, such as <1%, ~0.8 and 8/10.
_NUMBER_START = re.compile(r"\W{0,3}\d")

# A whole number with decimals, as programs write it in text files; the group is the number without them.
_WHOLE_NUMBER = re.compile(r"([+-]?(?:0|[1-9]\d*))\.0+")

# A word in brackets without quotes, in which judges write their verdicts.
_BRACKETED_WORD = re.compile(r"\[+[^\W\d]\w*\]+")

# Dates and times in the usual orders; whether day or month comes first does not matter.
_DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?([T ]\d\d?:\d\d.*)?|\d\d?[./]\d\d?[./]\d{2,4}( .*)?|\d\d?:\d\d(:\d\d.*)?"
)


def facts_of_table(table: SmallTable) -> list[ColumnFacts]:
    """Return the facts of each column of a small table."""
    metrics = () if table.log is None else table.log.proxies
    return [facts_of_column(name, entries, name in metrics) for name, entries in table.columns.items()]


def facts_of_description(description: JsonMapping) -> list[ColumnFacts]:
    """Return the facts of the columns in a result of `describe_columns`, which has no values of columns."""
    metrics = (description.get("log") or {}).get("proxies", ())
    rows = description["rows"]
    return [
        ColumnFacts(
            name=column["name"],
            n_rows=rows,
            n_entries=rows - column["missing"],
            n_distinct=column["distinct"],
            is_number=column["kind"] == "number",
            minimum=column["minimum"],
            maximum=column["maximum"],
            is_whole=may_be_whole(column),
            values=_binary_values(column),
            is_score_of_log=column["name"] in metrics,
            is_percentage=column["kind"] == PERCENTAGE_KIND,
        )
        for column in description["columns"]
    ]


def may_be_whole(column: JsonMapping) -> bool:
    """Return whether a described column has numbers that may all be whole.

    The smallest and largest number must be whole, and the range must contain enough whole numbers.
    """
    if column["kind"] != "number" or column["minimum"] is None:
        return False
    low = float(column["minimum"])
    high = float(column["maximum"])
    return low.is_integer() and high.is_integer() and column["distinct"] <= high - low + 1


def _binary_values(column: Mapping[str, object]) -> frozenset[str] | None:
    """Return the texts 0 and 1 for a described column of these numbers, None for other columns."""
    extent = (column["minimum"], column["maximum"])
    if column["kind"] == "number" and column["distinct"] == 2 and extent == (0, 1):
        return frozenset({"0", "1"})
    return None


def facts_of_column(name: str, entries: Sequence[object], is_score_of_log: bool = False) -> ColumnFacts:
    """Return the facts of a column from its entries."""
    present = [entry for entry in entries if not is_missing(entry) and not _is_no_answer(entry)]
    head = present[:_MAX_INSPECTED]
    texts = {_without_zeros(str(plain_text(entry))) for entry in present}
    # If the first entry is no number, the others need not be converted.
    if _number(plain_text(next(iter(head), ""))) is not None:
        numbers = [_number(text) for text in texts]
    else:
        numbers = []
    is_number = bool(numbers) and None not in numbers
    mean_length = sum(len(str(entry)) for entry in head) / max(len(head), 1)
    formats = formats_with_percentages(present)
    is_percentage = formats is not None and formats.has_only_percentages
    differing_entries = None
    if not is_number and not is_percentage and mean_length <= MAX_CLASS_LENGTH:
        mark = POINT if formats is None else formats.most_common_mark
        differing_entries = _differing_entries(present, mark)
    finite: list[float] = []
    if formats is not None:
        shares = (share_of_percentage(text, formats.most_common_mark) for text in texts)
        finite = [share for share in shares if not math.isnan(share)]
    elif is_number or differing_entries is not None:
        finite = [number for number in map(_number, texts) if number is not None]
    values = frozenset(texts) if len(texts) <= _MAX_VALUES else frozenset(heapq.nsmallest(_MAX_VALUES, texts))
    return ColumnFacts(
        name=name,
        n_rows=len(entries),
        n_entries=len(present),
        n_distinct=len(texts),
        is_number=is_number,
        minimum=min(finite, default=None),
        maximum=max(finite, default=None),
        is_whole=is_number and all(number.is_integer() for number in finite),
        values=values,
        is_date=_are_dates(head),
        is_nested=_are_nested(head),
        mean_length=mean_length,
        is_score_of_log=is_score_of_log,
        is_percentage=is_percentage,
        differing_entries=differing_entries,
        missing_verdicts=_missing_verdicts(texts),
    )


def _without_zeros(text: str) -> str:
    """Return a whole number without decimals: in a text file, 1.0 is the class 1; other texts as they are."""
    match = _WHOLE_NUMBER.fullmatch(text)
    return text if match is None else match[1]


def _missing_verdicts(texts: Collection[str]) -> frozenset[str]:
    """Return the texts that mean no verdict; none of a column with many texts, which are no verdicts."""
    if len(texts) > _MAX_VERDICT_TEXTS:
        return frozenset()
    return frozenset(filter(is_no_verdict, texts))


def _differing_entries(entries: Sequence[object], mark: str) -> tuple[str | None, str] | None:
    """Return an entry in the most frequent form of numbers, and the first in another form.

    The forms are numbers, and percentages with a decimal mark. None if more than a few entries do not begin
    like numbers.
    """
    # The first entries exclude most columns.
    if not _begin_like_numbers(list(map(str, entries[:_MAX_INSPECTED]))):
        return None
    texts = [str(plain_text(entry)) for entry in entries]
    if not _begin_like_numbers(texts):
        return None
    is_number = [_number(text) is not None for text in texts]
    is_share = [not math.isnan(share_of_percentage(text, mark)) for text in texts]
    has_usual_form = max(is_number, is_share, key=sum)
    usual_entries = (text for text, is_usual in zip(texts, has_usual_form, strict=True) if is_usual)
    other_entries = (text for text, is_usual in zip(texts, has_usual_form, strict=True) if not is_usual)
    return next(usual_entries, None), next(other_entries)


def _begin_like_numbers(texts: Sequence[str]) -> bool:
    """Return whether nearly all texts begin like numbers."""
    n_like_numbers = sum(_NUMBER_START.match(text) is not None for text in texts)
    return n_like_numbers > 0 and n_like_numbers >= MIN_NUMBER_SHARE * len(texts)


def _is_no_answer(entry: object) -> bool:
    """Return whether an entry is a text that means no answer."""
    return isinstance(entry, str) and is_no_answer(entry)


def _number(text: str | None) -> float | None:
    """Return a finite number; None for other texts, truth values among them."""
    number = number_of_text(text or "")
    if math.isfinite(number):
        return number
    return None


def _are_dates(entries: Iterable[object]) -> bool:
    """Return whether there are entries, and all are dates or times."""
    are_dates = [
        isinstance(entry, datetime.date | datetime.time)
        or (isinstance(entry, str) and _DATE.fullmatch(entry.strip()) is not None)
        for entry in entries
    ]
    return bool(are_dates) and all(are_dates)


def _are_nested(entries: Iterable[object]) -> bool:
    """Return whether an entry is a list or an object, also as text."""
    return any(
        isinstance(entry, list | dict) or (isinstance(entry, str) and _may_be_nested_text(entry.strip()))
        for entry in entries
    )


def _may_be_nested_text(text: str) -> bool:
    """Return whether a text may be a list or an object; a verdict in brackets, such as [[A]], is neither."""
    return text.startswith(("[", "{")) and _BRACKETED_WORD.fullmatch(text) is None
