"""The number format of a text file: decimal point or comma, and the separator of thousands.

One file has one format. It is detected from all values of all columns of numbers: `0,5` and `1.234.567` have
a decimal comma, `0.5` and `1,234,567` a decimal point. `1.234` and `1,234` alone are ambiguous.

A column in which every number has a percent sign contains shares if it is read as numbers: `83%` is 0.83.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stratal.arrays import number_of_text
from stratal.errors import InputError

# Decimal marks; the other one separates thousands.
POINT = "."
COMMA = ","

# Characters in front of a percent sign. Several languages write a no-break space, which may be narrow.
_SPACES = " \t\u00a0\u202f"
# The second sign is as wide as the characters of East Asian text.
_PERCENT_SIGNS = "%\uff05"

# Sign and exponent in all patterns.
_SIGN = r"[-+]?"
_EXPONENT = r"([eE][-+]?[0-9]+)?"
# Patterns of the entries of a column of numbers; `{mark}` is a point or comma, and `{other}` the other one.
# 12, and 1234 without a separator of thousands.
_WHOLE = rf"{_SIGN}[0-9]+{_EXPONENT}"
_LONG_WHOLE = rf"{_SIGN}[1-9][0-9]{{3,}}"
# 1.234, in which the mark may be either a decimal mark or a separator of thousands.
_ONE_GROUP = rf"{_SIGN}[1-9][0-9]{{0,2}}{{mark}}[0-9]{{{{3}}}}"
# 0.5, in which the mark is a decimal mark unless the entry is also `_ONE_GROUP`.
_DECIMALS = rf"{_SIGN}([0-9]*{{mark}}[0-9]+|[0-9]+{{mark}}){_EXPONENT}"
# 1.234.567 and 1.234,5, in which the mark certainly separates thousands.
_GROUPS = (
    rf"{_SIGN}[1-9][0-9]{{0,2}}({{mark}}[0-9]{{{{3}}}}({{mark}}[0-9]{{{{3}}}})+|"
    rf"({{mark}}[0-9]{{{{3}}}})+{{other}}[0-9]+)"
)
# 12.5 %.
_PERCENT = rf"{_SIGN}([0-9]+{{mark}}?|[0-9]*{{mark}}[0-9]+)[{_SPACES}]*[{_PERCENT_SIGNS}]"
# A number with or without decimals whose thousands are separated by the mark.
_GROUPED = rf"{_SIGN}[1-9][0-9]{{0,2}}({{mark}}[0-9]{{{{3}}}})+({{other}}[0-9]+)?{_EXPONENT}"

# Next step in error messages on numbers that are written with a comma or a percent sign.
DECIMAL_POINT_REMEDY = (
    "Write the numbers with a decimal point and without a percent sign; write shares as numbers between 0 "
    "and 1, such as 0.976. You can change the column's format in a spreadsheet program."
)

# Smallest share of numbers among the entries of a column of numbers; the others may be typing errors.
MIN_NUMBER_SHARE = 0.9

# Number of first rows in which numbers are searched for in text, before their formats are counted in all
# rows.
HEAD_ROWS = 1_000

# Name of a column of ids, whose entries are never converted.
_ID_NAME = re.compile(r"(^|[^a-z])ids?([^a-z]|$)")


def _other_mark(mark: str) -> str:
    """Return the comma for a point, and the point for a comma."""
    if mark == POINT:
        return COMMA
    return POINT


def _with_marks(pattern: str, mark: str) -> str:
    """Return a pattern with `mark` filled in, and the other mark as `other`."""
    other = _other_mark(mark)
    filled = pattern.replace("{mark}", re.escape(mark)).replace("{other}", re.escape(other))
    return filled.replace("{{", "{").replace("}}", "}")


# Patterns whose matching entries are counted, by name. The name of a pattern with a mark ends with it, as in
# `one.`. `zeros` are entries of `one` that end with 0.
PATTERNS: dict[str, str] = {"whole": _WHOLE, "long": _LONG_WHOLE} | {
    f"{name}{mark}": _with_marks(pattern, mark)
    for mark in (POINT, COMMA)
    for name, pattern in (("one", _ONE_GROUP), ("decimals", _DECIMALS), ("groups", _GROUPS))
}
PATTERNS |= {f"percent{mark}": _with_marks(_PERCENT, mark) for mark in (POINT, COMMA)}
# Pattern of a percentage with either decimal mark.
PERCENTAGE = "|".join(PATTERNS[f"percent{mark}"] for mark in (POINT, COMMA))
_COMPILED_PERCENTAGE = re.compile(PERCENTAGE)
PATTERNS |= {
    f"zeros{mark}": rf"{PATTERNS[f'one{mark}'].removesuffix('[0-9]{3}')}[0-9]{{2}}0" for mark in ".,"
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatCounts:
    """Number of entries of a column in each number format.

    Parameters
    ----------
    present : int
        Entries that are not blank.
    counts : mapping of str to int
        Entries of each of `PATTERNS`.
    first : mapping of str to str
        The first entry of each of `PATTERNS`, None if there is none.
    """

    present: int
    counts: Mapping[str, int]
    first: Mapping[str, str | None]

    @property
    def is_number(self) -> bool:
        """Whether nearly all entries are numbers in some format."""
        return self.present > 0 and self._numbers >= MIN_NUMBER_SHARE * self.present

    @property
    def _numbers(self) -> int:
        """Number of entries that are numbers without a percent sign."""
        kinds = ("whole", "decimals.", "decimals,", "groups.", "groups,")
        return sum(self.counts[kind] for kind in kinds)

    @property
    def most_common_mark(self) -> str:
        """The decimal mark of most percentages; a point for whole ones."""
        if self.counts[f"percent{COMMA}"] > self.counts[f"percent{POINT}"]:
            return COMMA
        return POINT

    @property
    def percent_mark(self) -> str | None:
        """The decimal mark of a column in which every number has a percent sign; None for other columns.

        With both marks in one column, or other numbers next to percentages, it is unknown what is meant.
        """
        mark = self.most_common_mark
        count = self.counts[f"percent{mark}"]
        if count > 0 and count >= MIN_NUMBER_SHARE * self.present and self._numbers == 0:
            return mark
        return None

    @property
    def has_only_percentages(self) -> bool:
        """Whether every entry is a percentage."""
        return self.percent_mark is not None and self.counts[f"percent{self.percent_mark}"] == self.present

    @property
    def proven_marks(self) -> set[str]:
        """The decimal marks that an entry proves, by decimals or by a separator of thousands."""
        return {
            mark
            for mark, other in ((POINT, COMMA), (COMMA, POINT))
            if self.counts[f"decimals{mark}"] > self.counts[f"one{mark}"] or self.counts[f"groups{other}"]
        }

    def ambiguous_mark(self) -> str | None:
        """Return the mark of entries such as 1.234 or 1,234; None without such entries or with both kinds."""
        marks = [mark for mark in (POINT, COMMA) if self.counts[f"one{mark}"]]
        # With 1.234 and 1,234 in one column, one of them has decimals, but it is unknown which.
        if len(marks) == 1:
            return marks[0]
        return None

    def probable_mark(self) -> str | None:
        """Return the decimal mark implied by whole numbers next to entries such as 1.234; None if unknown.

        A column with separators of thousands has no 1234, so that 1234 shows that 1.234 has decimals. A
        column with three decimals, as in 2.500, has no 900.
        """
        mark = self.ambiguous_mark()
        if mark is None:
            return None
        other = _other_mark(mark)
        if self.counts["long"]:
            return mark
        if self.counts[f"zeros{mark}"] and self.counts["whole"]:
            return other
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """The number format of the columns of a file.

    Parameters
    ----------
    decimals : mapping of str to str
        Decimal mark of each column that differs from the number format of Python.
    counts : mapping of str to FormatCounts
        The counts of each column of numbers.
    ambiguous : mapping of str to str
        An entry of each column with two interpretations.
    """

    decimals: Mapping[str, str]
    counts: Mapping[str, FormatCounts]
    ambiguous: Mapping[str, str]

    def require_unambiguous(self, table_name: str, names: Sequence[str]) -> None:
        """Raise an error for columns of numbers with two interpretations."""
        for name in names:
            if name in self.ambiguous:
                raise ambiguous_number_error(table_name, name, self.ambiguous[name])


def ambiguous_number_error(table_name: str, name: str, entry: str) -> InputError:
    """Return the error for a column with two interpretations."""
    grouped = re.sub(r"[.,]", "", entry)
    decimal = entry.replace(",", ".")
    return InputError(
        f"{table_name}: {entry!r} in column {name!r} may be {grouped} or {decimal}",
        given=f"{entry!r}; no other number in the file shows which decimal mark is used",
        allowed="a file in which the decimal mark is unambiguous",
        action=f"Write the numbers without thousands separators ({grouped}), or with another number of "
        f"decimals ({float(decimal):.4f}).",
    )


def count_formats(entries: Sequence[str | None]) -> FormatCounts:
    """Return the number of entries in each number format."""
    present = [entry.strip() for entry in entries if entry and entry.strip()]
    counts = {}
    first_entries = {}
    for name, pattern in PATTERNS.items():
        matching = [entry for entry in present if re.fullmatch(pattern, entry)]
        counts[name] = len(matching)
        first_entries[name] = next(iter(matching), None)
    return FormatCounts(present=len(present), counts=counts, first=first_entries)


def is_percentage(entry: str | None) -> bool:
    """Return whether an entry is a number with a percent sign."""
    return entry is not None and _COMPILED_PERCENTAGE.fullmatch(entry.strip()) is not None


def percentage_pattern(mark: str) -> str:
    """Return the pattern of a percentage with this decimal mark."""
    return PATTERNS[f"percent{mark}"]


def share_of_percentage(entry: str, mark: str) -> float:
    """Return a percentage with this decimal mark as a share; NaN for another entry."""
    if not re.fullmatch(percentage_pattern(mark), entry.strip()):
        return math.nan
    digits = python_number(re.sub("[^-+0-9.,]", "", entry), mark)
    # The exponent shifts the decimal point exactly, unlike a division.
    return float(f"{digits}e-2")


def numbers_of_texts(texts: Sequence[str]) -> list[float]:
    """Return the numbers in texts, NaN for other texts; if every text is a percentage, they are shares."""
    counts = count_formats(texts)
    if counts.has_only_percentages:
        return [share_of_percentage(text, counts.most_common_mark) for text in texts]
    return list(map(number_of_text, texts))


def percentage_notes(counts: Mapping[str, FormatCounts]) -> tuple[str, ...]:
    """Return the note on columns of percentages that are read as shares, with an example; empty for none."""
    if not counts:
        return ()
    column = next(iter(counts.values()))
    mark = str(column.percent_mark)
    entry = str(column.first[f"percent{mark}"])
    verb = "are" if len(counts) > 1 else "is"
    names = ", ".join(map(repr, counts))
    share = share_of_percentage(entry, mark)
    return (f"{names} {verb} written as percentages: {entry!r} is read as {share:g}",)


def file_format(
    counts: Mapping[str, FormatCounts], *, point_may_group_thousands: bool, have_one_format: bool = True
) -> NumberFormat:
    """Return the number format of the columns of a file.

    Parameters
    ----------
    counts : mapping of column to FormatCounts
    point_may_group_thousands : bool
        Whether `1.234` may mean a thousand if no other entry decides: in files whose delimiter is a
        semicolon, which spreadsheets write in locales with a decimal comma.
    have_one_format : bool
        Whether all columns have the same format. They need not in a workbook, in which only numbers that were
        typed as text have marks.
    """
    numbers = {
        name: column
        for name, column in counts.items()
        if column.is_number and not _ID_NAME.search(name.lower()) and len(column.proven_marks) < 2
    }
    file_marks = set().union(*(column.proven_marks for column in numbers.values()))
    decimals: dict[str, str] = {}
    ambiguous: dict[str, str] = {}
    for name, column in numbers.items():
        marks = column.proven_marks
        # Another column of the file shows the decimal mark.
        if not marks and have_one_format and len(file_marks) == 1:
            marks = file_marks
        mark = next(iter(marks), None)
        ambiguous_mark = column.ambiguous_mark()
        if mark is None and ambiguous_mark is not None and have_one_format:
            probable_mark = column.probable_mark()
            # In other files, only whole numbers next to 2.500 show that points separate thousands.
            if point_may_group_thousands or probable_mark != ambiguous_mark:
                mark = probable_mark
            if point_may_group_thousands and mark is None:
                ambiguous[name] = str(column.first[f"one{ambiguous_mark}"])
        if mark is not None and _needs_conversion(column, mark):
            decimals[name] = mark
    return NumberFormat(decimals=decimals, counts=numbers, ambiguous=ambiguous)


def _needs_conversion(column: FormatCounts, mark: str) -> bool:
    """Return whether Python would misread or reject an entry of a column."""
    other = _other_mark(mark)
    grouped = column.counts[f"one{other}"] or column.counts[f"groups{other}"]
    return bool(grouped or (mark == COMMA and column.counts["decimals,"]))


def number_format_notes(number_format: NumberFormat, names: Sequence[str]) -> tuple[str, ...]:
    """Return notes on the converted columns, with an example for each format."""
    columns_by_format: dict[str, list[tuple[str, str, str]]] = {}
    notes = []
    for name in names:
        mark = number_format.decimals[name]
        other = _other_mark(mark)
        first_entries = number_format.counts[name].first
        grouped = first_entries[f"groups{other}"] or first_entries[f"one{other}"]
        with_comma = first_entries["decimals,"]
        if mark == COMMA and with_comma:
            columns_by_format.setdefault("with a decimal comma", []).append((name, with_comma, mark))
        if grouped:
            separator = "point" if other == POINT else "comma"
            description = f"with a {separator} between thousands"
            columns_by_format.setdefault(description, []).append((name, grouped, mark))
    for description, columns in columns_by_format.items():
        shown = ", ".join(repr(name) for name, _, _ in columns)
        _, entry, mark = columns[0]
        verb = "are" if len(columns) > 1 else "is"
        notes.append(
            f"{shown} {verb} written {description}; for example, {entry!r} is read as "
            f"{python_number(entry, mark)}"
        )
    return tuple(notes)


def python_number(entry: str, mark: str) -> str:
    """Return a number in the format of Python."""
    other = _other_mark(mark)
    return entry.replace(other, "").replace(mark, POINT)


def format_counts_sql(column: str, quote: Callable[[str], str]) -> list[str]:
    """Return the SQL of a column's number of entries, and of the count and first entry of each pattern.

    `quote` returns a text as an SQL literal, here and below.
    """
    trimmed = f"trim({column})"
    expressions = [f"count(*) FILTER ({trimmed} <> '')"]
    for pattern in PATTERNS.values():
        match = f"regexp_full_match({trimmed}, {quote(pattern)})"
        expressions += [f"count(*) FILTER ({match})", f"first({trimmed}) FILTER ({match})"]
    return expressions


def format_counts_of_row(row: Sequence[int | str | None]) -> FormatCounts:
    """Return the counts of a column from a result row of `format_counts_sql`."""
    counts = (int(count or 0) for count in row[1::2])
    first_entries = (None if entry is None else str(entry) for entry in row[2::2])
    return FormatCounts(
        present=int(row[0] or 0),
        counts=dict(zip(PATTERNS, counts, strict=True)),
        first=dict(zip(PATTERNS, first_entries, strict=True)),
    )


def number_sql(column: str, mark: str, quote: Callable[[str], str]) -> str:
    """Return the SQL of a column with numbers in the format of Python; other entries are unchanged."""
    other = _other_mark(mark)
    patterns = (_with_marks(_GROUPED, other), _with_marks(_DECIMALS, mark))
    match = " OR ".join(f"regexp_full_match(trim({column}), {quote(pattern)})" for pattern in patterns)
    number = f"replace(replace({column}, {quote(other)}, ''), {quote(mark)}, '.')"
    return f"CASE WHEN {match} THEN {number} ELSE {column} END"


def share_sql(column: str, mark: str, quote: Callable[[str], str]) -> str:
    """Return the SQL of a column of percentages as shares; other entries are unchanged."""
    match = f"regexp_full_match(trim({column}), {quote(percentage_pattern(mark))})"
    digits = f"regexp_replace({column}, {quote('[^-+0-9.,]')}, '', 'g')"
    # The exponent shifts the decimal point exactly, unlike a division.
    share = f"replace({digits}, {quote(mark)}, '.') || 'e-2'"
    return f"CASE WHEN {match} THEN CAST(CAST({share} AS DOUBLE) AS VARCHAR) ELSE {column} END"
