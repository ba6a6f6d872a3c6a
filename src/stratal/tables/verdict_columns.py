"""Columns of a judge's verdicts in a table: their numbers as a proxy, and whether they can be one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from stratal.arrays import BoolArray, number_of_text
from stratal.errors import InputError
from stratal.question.facts import MAX_VERDICTS, verdict_numbers
from stratal.tables.no_answer import is_no_verdict
from stratal.tables.small_table import SmallTable, plain_text

# A larger distance of the number of missing verdicts in labelled rows from its mean, in standard deviations,
# is not chance: a false alarm occurs in about 1 of 370 tables.
_MAX_MISSING_DEVIATIONS = 3.0
# Largest number of distinct texts of a column of verdicts, including spellings of a missing one; scores have
# more.
_MAX_TEXTS = 50

# Function that returns the number of each verdict, None if they count as no numbers.
Decoder = Callable[[Sequence[str]], dict[str, float] | None]


def vocabulary_numbers(verdicts: Sequence[str]) -> dict[str, float] | None:
    """Return the number of each verdict, such as pass and fail; None for other words and for scores."""
    if len(verdicts) > MAX_VERDICTS:
        return None
    return verdict_numbers(verdicts)


def are_verdict_words(rows: SmallTable, column: str) -> bool:
    """Return whether a column contains verdicts instead of scores: words, or 0 and 1."""
    verdicts = _verdicts_of_column(rows, column)
    if verdicts is None:
        return False
    return are_words(verdicts) or vocabulary_numbers(verdicts) is not None


def are_words(verdicts: Sequence[str]) -> bool:
    """Return whether there are verdicts, and none is a number."""
    return bool(verdicts) and all(np.isnan(number_of_text(text)) for text in verdicts)


def _verdicts_of_column(rows: SmallTable, column: str) -> list[str] | None:
    """Return the distinct verdicts of a column, without texts that mean none; None if they are many."""
    texts = set[str | None]()
    for entry in rows.values(column):
        texts.add(plain_text(entry))
        if len(texts) > _MAX_TEXTS:
            return None
    return sorted(text for text in texts if text is not None and not is_no_verdict(text))


def numbers_of_column(rows: SmallTable, column: str, decode: Decoder) -> dict[str, float] | None:
    """Return the number of each verdict in a column; None for scores, and for words without numbers."""
    verdicts = _verdicts_of_column(rows, column)
    if verdicts is None:
        return None
    return decode(verdicts)


def with_verdict_numbers(
    rows: SmallTable, proxies: Sequence[str], decode: Decoder = vocabulary_numbers
) -> tuple[SmallTable, dict[str, str]]:
    """Return the table with a column of numbers for each proxy with verdicts, and the names of these columns.

    A missing verdict is replaced by the mean of the others. This does not bias the estimate if verdicts are
    missing equally often in labelled and in other rows.
    """
    lists = dict(rows.columns)
    names = {}
    for proxy in proxies:
        numbers = numbers_of_column(rows, proxy, decode)
        if numbers is None or len(numbers) < 2:
            continue
        entries = [numbers.get(str(plain_text(entry))) for entry in rows.values(proxy)]
        mean = float(np.mean([entry for entry in entries if entry is not None]))
        positive = max(numbers, key=numbers.__getitem__)
        if np.isnan(number_of_text(positive)):
            name = f"{proxy} ({positive} = 1)"
        else:
            name = f"{proxy} (number)"
        lists[name] = [mean if entry is None else entry for entry in entries]
        names[proxy] = name
    return replace(rows, columns=lists), names


def dependence_of_missing_verdicts(
    rows: SmallTable, column: str, is_labelled: BoolArray, decode: Decoder
) -> str | None:
    """Return the counts that show that verdicts are missing more, or less, often in labelled rows (n,).

    The means over all rows and over the labelled rows then refer to different kinds of rows, and an estimate
    that is corrected by their difference would be biased. If missing verdicts are independent of labels, the
    count is hypergeometric. None if chance explains the counts.
    """
    numbers = numbers_of_column(rows, column, decode)
    if numbers is None:
        return None
    lacks_verdict = np.array([str(plain_text(entry)) not in numbers for entry in rows.values(column)])
    size = len(is_labelled)
    labelled = int(is_labelled.sum())
    missing = int(lacks_verdict.sum())
    if missing == 0 or not 0 < labelled < size:
        return None
    missing_labelled = int((lacks_verdict & is_labelled).sum())
    share = missing / size
    deviation = np.sqrt(labelled * share * (1.0 - share) * (size - labelled) / (size - 1))
    # Correction for continuity: .5.
    if abs(missing_labelled - labelled * share) <= _MAX_MISSING_DEVIATIONS * deviation + 0.5:
        return None
    others = missing - missing_labelled
    return (
        f"{missing_labelled:,} of {labelled:,} labelled rows and {others:,} of {size - labelled:,} other rows"
    )


def usable_proxies(
    rows: SmallTable,
    is_labelled: BoolArray,
    proxies: Sequence[str],
    *,
    stated: Sequence[str],
    decode: Decoder = vocabulary_numbers,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the proxies that can correct an estimate, and notes on the others.

    A column with the same verdict in every row is uninformative. A column whose missing verdicts depend on
    the labels would bias the estimate.

    Parameters
    ----------
    rows : SmallTable
    is_labelled : bool (n,)
    proxies : sequence of str
    stated : sequence of str
        The proxies that the user named.
    decode : Decoder
        How verdicts count as numbers: by the vocabularies, or as the user declared it for labels.

    Raises
    ------
    InputError
        If the user names a column whose verdicts are missing depending on the labels.
    """
    usable = []
    notes = []
    for proxy in proxies:
        counts = dependence_of_missing_verdicts(rows, proxy, is_labelled, decode)
        constant = _constant_verdict(rows, proxy, decode)
        if constant is not None:
            notes.append(
                f"{proxy!r} is {constant!r} in every row that has a verdict, so it does not correct the "
                f"estimate"
            )
        elif counts is None:
            usable.append(proxy)
        elif proxy in stated:
            raise InputError(
                f"{rows.table_name}: whether a row has a verdict in {proxy!r} depends on whether it has "
                "a label",
                given=f"no verdict in {counts}",
                allowed="verdicts that are missing at random",
                action="Get the missing verdicts, or leave the proxy out: proxy='none' (--proxy none).",
            )
        else:
            notes.append(
                f"{proxy!r} has no verdict in {counts}. Chance does not explain this difference, so the "
                "column is not used to correct the estimate"
            )
    return tuple(usable), tuple(notes)


def _constant_verdict(rows: SmallTable, column: str, decode: Decoder) -> str | None:
    """Return the only verdict of a column of words, or of numbers with gaps; None for other columns."""
    numbers = numbers_of_column(rows, column, decode)
    if numbers is None or len(numbers) != 1:
        return None
    (verdict,) = numbers
    entries = [plain_text(entry) for entry in rows.values(column)]
    is_complete = all(str(text) == verdict for text in entries)
    if is_complete and np.isfinite(number_of_text(verdict)):
        return None
    return verdict
