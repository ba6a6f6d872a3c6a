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

# Largest z-score of the number of missing verdicts in labelled rows that chance explains. If verdicts are
# missing at random, about 1 table in 370 exceeds it.
_MAX_Z_SCORE = 3.0
# A column with more distinct texts contains scores. The texts include all spellings of a missing verdict.
_MAX_DISTINCT_TEXTS = 50

# Function that returns the number of each verdict; None if the verdicts are not numbers.
Decoder = Callable[[Sequence[str]], dict[str, float] | None]


def vocabulary_numbers(verdicts: Sequence[str]) -> dict[str, float] | None:
    """Return 1 or 0 for each verdict, such as pass and fail; None for unknown words and for scores."""
    if len(verdicts) > MAX_VERDICTS:
        return None
    return verdict_numbers(verdicts)


def is_verdict_column(rows: SmallTable, column: str) -> bool:
    """Return whether a column contains verdicts (words, or 0 and 1) instead of scores."""
    verdicts = _verdicts_of_column(rows, column)
    if verdicts is None:
        return False
    return are_all_words(verdicts) or vocabulary_numbers(verdicts) is not None


def are_all_words(verdicts: Sequence[str]) -> bool:
    """Return whether there are verdicts, and none is a number."""
    return bool(verdicts) and all(np.isnan(number_of_text(text)) for text in verdicts)


def _verdicts_of_column(rows: SmallTable, column: str) -> list[str] | None:
    """Return the distinct verdicts of a column; None if they are too many.

    Texts that mean a missing verdict are left out.
    """
    texts = set[str | None]()
    for entry in rows.values(column):
        texts.add(plain_text(entry))
        if len(texts) > _MAX_DISTINCT_TEXTS:
            return None
    return sorted(text for text in texts if text is not None and not is_no_verdict(text))


def verdict_numbers_of_column(rows: SmallTable, column: str, decode: Decoder) -> dict[str, float] | None:
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
    columns = dict(rows.columns)
    numeric_names = {}
    for proxy in proxies:
        numbers = verdict_numbers_of_column(rows, proxy, decode)
        # A column with the same number in every row is used as it is.
        if numbers is None or len(numbers) < 2:
            continue
        entries = [numbers.get(str(plain_text(entry))) for entry in rows.values(proxy)]
        mean = float(np.mean([entry for entry in entries if entry is not None]))
        positive = max(numbers, key=numbers.__getitem__)
        if np.isnan(number_of_text(positive)):
            name = f"{proxy} ({positive} = 1)"
        else:
            name = f"{proxy} (number)"
        columns[name] = [mean if entry is None else entry for entry in entries]
        numeric_names[proxy] = name
    return replace(rows, columns=columns), numeric_names


def _describe_dependent_missingness(
    rows: SmallTable, column: str, is_labelled: BoolArray, decode: Decoder
) -> str | None:
    """Return the numbers of missing verdicts if they depend on whether a row is labelled (n,), else None.

    If they do, the labelled rows do not represent all rows that have a verdict, and the proxy would bias the
    estimate.
    """
    numbers = verdict_numbers_of_column(rows, column, decode)
    if numbers is None:
        return None
    lacks_verdict = np.array([str(plain_text(entry)) not in numbers for entry in rows.values(column)])
    size = len(is_labelled)
    labelled = int(is_labelled.sum())
    missing = int(lacks_verdict.sum())
    missing_labelled = int((lacks_verdict & is_labelled).sum())
    if not 0 < labelled < size or _is_explained_by_chance(missing_labelled, size, missing, labelled):
        return None
    others = missing - missing_labelled
    return (
        f"{missing_labelled:,} of {labelled:,} labelled rows and {others:,} of {size - labelled:,} other rows"
    )


def _is_explained_by_chance(missing_labelled: int, size: int, missing: int, labelled: int) -> bool:
    """Return whether a number of missing verdicts in labelled rows is likely if the two are independent.

    The number is then hypergeometric. The test uses the normal approximation.
    """
    share = missing / size
    mean = labelled * share
    deviation = np.sqrt(labelled * share * (1.0 - share) * (size - labelled) / (size - 1))
    continuity_correction = 0.5
    return bool(abs(missing_labelled - mean) <= _MAX_Z_SCORE * deviation + continuity_correction)


def usable_proxies(
    rows: SmallTable,
    is_labelled: BoolArray,
    proxies: Sequence[str],
    *,
    named_by_user: Sequence[str],
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
    named_by_user : sequence of str
        The other proxies were recognised. They are left out if they cannot be used.
    decode : Decoder
        How verdicts count as numbers: like usual words such as pass, or as the user declared it for labels.

    Raises an `InputError` if the user names a column whose verdicts are missing depending on the labels.
    """
    usable = []
    notes = []
    for proxy in proxies:
        missing_counts = _describe_dependent_missingness(rows, proxy, is_labelled, decode)
        constant = _constant_verdict(rows, proxy, decode)
        if constant is not None:
            notes.append(
                f"{proxy!r} is {constant!r} in every row that has a verdict, so it does not correct the "
                f"estimate"
            )
        elif missing_counts is None:
            usable.append(proxy)
        elif proxy in named_by_user:
            raise InputError(
                f"{rows.table_name}: whether a row has a verdict in {proxy!r} depends on whether it has "
                "a label",
                given=f"no verdict in {missing_counts}",
                allowed="verdicts that are missing at random",
                action="Get the missing verdicts, or leave the proxy out: proxy='none' (--proxy none).",
            )
        else:
            notes.append(
                f"{proxy!r} has no verdict in {missing_counts}. Chance does not explain this difference, so "
                "the column is not used to correct the estimate"
            )
    return tuple(usable), tuple(notes)


def _constant_verdict(rows: SmallTable, column: str, decode: Decoder) -> str | None:
    """Return the verdict of a column that contains only one; None for other columns.

    The result is also None for a number in every row: such a column can be used as a proxy.
    """
    numbers = verdict_numbers_of_column(rows, column, decode)
    if numbers is None or len(numbers) != 1:
        return None
    (verdict,) = numbers
    entries = [plain_text(entry) for entry in rows.values(column)]
    is_complete = all(str(text) == verdict for text in entries)
    if is_complete and np.isfinite(number_of_text(verdict)):
        return None
    return verdict
