"""How a text file writes numbers: decimal point or comma, and what stands between thousands.

One file has one convention. It is found from all values of all columns of numbers: `0,5` and `1.234.567` are
of a decimal comma, `0.5` and `1,234,567` of a decimal point. `1.234` and `1,234` alone are ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stratal.errors import InputError

POINT = "."
COMMA = ","

_SIGN = r"[-+]?"
_EXPONENT = r"([eE][-+]?[0-9]+)?"
# What each entry of a column of numbers is; `{d}` is the mark of decimals and `{t}` the one of thousands.
_WHOLE = rf"{_SIGN}[0-9]+{_EXPONENT}"
_LONG_WHOLE = rf"{_SIGN}[1-9][0-9]{{3,}}"
_ONE_GROUP = rf"{_SIGN}[1-9][0-9]{{0,2}}{{mark}}[0-9]{{{{3}}}}"
_DECIMALS = rf"{_SIGN}([0-9]*{{mark}}[0-9]+|[0-9]+{{mark}}){_EXPONENT}"
_GROUPS = (
    rf"{_SIGN}[1-9][0-9]{{0,2}}({{mark}}[0-9]{{{{3}}}}({{mark}}[0-9]{{{{3}}}})+|"
    rf"({{mark}}[0-9]{{{{3}}}})+{{other}}[0-9]+)"
)
_GROUPED = rf"{_SIGN}[1-9][0-9]{{0,2}}({{mark}}[0-9]{{{{3}}}})+({{other}}[0-9]+)?{_EXPONENT}"

# The share of a column's entries that are numbers, from which it is a column of numbers.
_MOSTLY = 0.9

# Columns that are called so hold ids, which stay as they are.
_ID = re.compile(r"(^|[^a-z])ids?([^a-z]|$)")


def _with_marks(pattern: str, mark: str) -> str:
    other = COMMA if mark == POINT else POINT
    filled = pattern.replace("{mark}", re.escape(mark)).replace("{other}", re.escape(other))
    return filled.replace("{{", "{").replace("}}", "}")


# Name of a fact: the pattern of the entries that are counted for it.
PATTERNS: dict[str, str] = {"whole": _WHOLE, "long": _LONG_WHOLE} | {
    f"{fact}{mark}": _with_marks(pattern, mark)
    for mark in (POINT, COMMA)
    for fact, pattern in (("one", _ONE_GROUP), ("decimals", _DECIMALS), ("groups", _GROUPS))
}
PATTERNS |= {
    f"zeros{mark}": rf"{PATTERNS[f'one{mark}'].removesuffix('[0-9]{3}')}[0-9]{{2}}0" for mark in ".,"
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNumbers:
    """How many entries of a column are written how.

    Parameters
    ----------
    present : int
        Entries that are not blank.
    counts : mapping of str to int
        Entries of each of `PATTERNS`.
    first : mapping of str to str
        The first entry of each.
    """

    present: int
    counts: Mapping[str, int]
    first: Mapping[str, str | None]

    @property
    def is_number(self) -> bool:
        """Whether nearly all entries are numbers in some convention."""
        kinds = ("whole", "decimals.", "decimals,", "groups.", "groups,")
        numbers = sum(self.counts[kind] for kind in kinds)
        return self.present > 0 and numbers >= _MOSTLY * self.present

    @property
    def evidence(self) -> set[str]:
        """The marks of decimals that some entry can only have."""
        return {
            mark
            for mark, other in ((POINT, COMMA), (COMMA, POINT))
            if self.counts[f"decimals{mark}"] > self.counts[f"one{mark}"] or self.counts[f"groups{other}"]
        }

    def ambiguous_mark(self) -> str | None:
        """Return the mark of entries such as 1.234 or 1,234; None where there are none, or of both kinds."""
        marks = [mark for mark in (POINT, COMMA) if self.counts[f"one{mark}"]]
        return marks[0] if len(marks) == 1 else None

    def guessed(self) -> str | None:
        """Return the mark of decimals by the whole numbers beside entries such as 1.234; None if open.

        A tool that groups thousands writes no 1234. One that fills up decimals, as in 2.500, writes no 900.
        """
        mark = self.ambiguous_mark()
        if mark is None:
            return None
        other = COMMA if mark == POINT else POINT
        if self.counts["long"]:
            return mark
        if self.counts[f"zeros{mark}"] and self.counts["whole"]:
            return other
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """How the columns of a file write numbers.

    Parameters
    ----------
    decimals : mapping of str to str
        The mark of decimals of each column that is not written as Python writes numbers.
    facts : mapping of str to ColumnNumbers
    ambiguous : mapping of str to str
        Of columns that may be read in two ways: an entry.

    Examples
    --------
    >>> column_format({"x": ["1.234", "900", "2.500"]}, may_group=True).decimals
    {'x': ','}
    """

    decimals: Mapping[str, str]
    facts: Mapping[str, ColumnNumbers]
    ambiguous: Mapping[str, str]

    def require_unambiguous(self, label: str, names: Sequence[str]) -> None:
        """Refuse columns of numbers that may be read in two ways.

        Raises
        ------
        InputError
            With both readings of an entry.
        """
        for name in names:
            if name in self.ambiguous:
                raise ambiguous_number(label, name, self.ambiguous[name])


def ambiguous_number(label: str, name: str, entry: str) -> InputError:
    """Return the error of a column that may be read in two ways."""
    grouped = re.sub(r"[.,]", "", entry)
    decimal = entry.replace(",", ".")
    return InputError(
        f"{label}: {entry!r} in column {name!r} may be {grouped} or {decimal}",
        given=f"{entry!r}; no other number of the file shows which mark it has for decimals",
        allowed="a file in which the mark of decimals is certain",
        action=f"Write the numbers without marks between thousands ({grouped}), or with another number of "
        f"decimals ({float(decimal):.4f}).",
    )


def column_facts(entries: Sequence[str | None]) -> ColumnNumbers:
    """Return how many of some entries are written how.

    Examples
    --------
    >>> column_facts(["0,5", "1", None]).evidence
    {','}
    """
    present = [entry.strip() for entry in entries if entry and entry.strip()]
    matches = {
        name: [entry for entry in present if re.fullmatch(pattern, entry)]
        for name, pattern in PATTERNS.items()
    }
    return ColumnNumbers(
        present=len(present),
        counts={name: len(found) for name, found in matches.items()},
        first={name: next(iter(found), None) for name, found in matches.items()},
    )


def column_format(columns: Mapping[str, Sequence[str | None]], *, may_group: bool) -> NumberFormat:
    """Return how columns in memory write numbers; see `file_format`."""
    return file_format(
        {name: column_facts(entries) for name, entries in columns.items()}, may_group=may_group
    )


def file_format(facts: Mapping[str, ColumnNumbers], *, may_group: bool, shared: bool = True) -> NumberFormat:
    """Return how the columns of a file write numbers.

    Parameters
    ----------
    facts : mapping of column to ColumnNumbers
    may_group : bool
        Whether `1.234` may be a thousand where nothing else tells: in files whose delimiter is a semicolon,
        as spreadsheets write them where the mark of decimals is a comma.
    shared : bool
        Whether all columns are written alike; in a workbook only what was typed as text has such marks.

    Examples
    --------
    >>> column_format({"a": ["1.234"], "b": ["0,5"]}, may_group=True).decimals
    {'a': ',', 'b': ','}
    >>> column_format({"a": ["1.234", "2.345"]}, may_group=True).ambiguous
    {'a': '1.234'}
    """
    numbers = {
        name: column
        for name, column in facts.items()
        if column.is_number and not _ID.search(name.lower()) and len(column.evidence) < 2
    }
    of_file = set().union(*(column.evidence for column in numbers.values()))
    decimals: dict[str, str] = {}
    ambiguous: dict[str, str] = {}
    for name, column in numbers.items():
        own = column.evidence or (of_file if shared and len(of_file) == 1 else set())
        mark = next(iter(own), None)
        odd = column.ambiguous_mark()
        if mark is None and odd is not None and may_group:
            mark = column.guessed()
            if mark is None:
                ambiguous[name] = str(column.first[f"one{odd}"])
        if mark is not None and _is_written_otherwise(column, mark):
            decimals[name] = mark
    return NumberFormat(decimals=decimals, facts=numbers, ambiguous=ambiguous)


def _is_written_otherwise(column: ColumnNumbers, mark: str) -> bool:
    """Return whether Python reads some entry as another number than the one that is meant, or as none."""
    other = COMMA if mark == POINT else POINT
    grouped = column.counts[f"one{other}"] or column.counts[f"groups{other}"]
    return bool(grouped or (mark == COMMA and column.counts["decimals,"]))


def reading_notes(written: NumberFormat, names: Sequence[str]) -> tuple[str, ...]:
    """Return which columns are read otherwise than they are written, with the first entry of each kind."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for name in names:
        mark = written.decimals[name]
        other = COMMA if mark == POINT else POINT
        first = written.facts[name].first
        grouped = first[f"groups{other}"] or first[f"one{other}"]
        with_comma = first["decimals,"] if mark == COMMA else None
        if with_comma:
            found.setdefault("with a decimal comma", []).append((name, with_comma, mark))
        if grouped:
            words = f"with a {'point' if other == POINT else 'comma'} between thousands"
            found.setdefault(words, []).append((name, grouped, mark))
    notes = []
    for words, columns in found.items():
        shown = ", ".join(repr(name) for name, _, _ in columns)
        _, entry, mark = columns[0]
        verb = "are" if len(columns) > 1 else "is"
        notes.append(f"{shown} {verb} written {words}: {entry!r} is read as {plain_number(entry, mark)}")
    return tuple(notes)


def plain_number(entry: str, mark: str) -> str:
    """Return a number as Python writes it.

    Examples
    --------
    >>> plain_number("1.234,5", ","), plain_number("1,234.5", ".")
    ('1234.5', '1234.5')
    """
    other = COMMA if mark == POINT else POINT
    return entry.replace(other, "").replace(mark, POINT)


def facts_sql(column: str, text: Callable[[str], str]) -> list[str]:
    """Return the SQL of the facts of a column: its entries, and of each pattern their count and the first.

    `text` quotes a text for SQL.
    """
    trimmed = f"trim({column})"
    found = [f"count(*) FILTER ({trimmed} <> '')"]
    for pattern in PATTERNS.values():
        match = f"regexp_full_match({trimmed}, {text(pattern)})"
        found += [f"count(*) FILTER ({match})", f"first({trimmed}) FILTER ({match})"]
    return found


def facts_of_row(row: Sequence[int | str | None]) -> ColumnNumbers:
    """Return the facts of a column from the answer of `facts_sql`."""
    counts = row[1::2]
    return ColumnNumbers(
        present=int(row[0] or 0),
        counts={name: int(count or 0) for name, count in zip(PATTERNS, counts, strict=True)},
        first={
            name: None if entry is None else str(entry)
            for name, entry in zip(PATTERNS, row[2::2], strict=True)
        },
    )


def number_sql(column: str, mark: str, text: Callable[[str], str]) -> str:
    """Return the SQL of a column with numbers as Python writes them; other entries stay as they are."""
    other = COMMA if mark == POINT else POINT
    patterns = (_with_marks(_GROUPED, other), _with_marks(_DECIMALS, mark))
    match = " OR ".join(f"regexp_full_match(trim({column}), {text(pattern)})" for pattern in patterns)
    plain = f"replace(replace({column}, {text(other)}, ''), {text(mark)}, '.')"
    return f"CASE WHEN {match} THEN {plain} ELSE {column} END"
