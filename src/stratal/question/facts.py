"""`ColumnFacts`: the facts of a column from which its role is recognised."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from stratal.errors import LabelError
from stratal.question.column_words import (
    JUDGE_WORDS,
    MEASUREMENT_WORDS,
    MODEL_NAMES,
    PROXY_WORDS,
    QUESTION_WORDS,
    RUN_WORDS,
)
from stratal.question.decoding import truth_number
from stratal.question.vocabulary import numbers_by_word

# Words end at other characters, before a capital letter (isCorrect), and before a digit (score2).
_WORD_BREAKS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])|(?<=[^\W\d_])(?=\d)")

# Largest number of distinct verdicts, and of labels that are compared with them: for, against and, at most,
# undecided. More are scores or classes.
MAX_VERDICTS = 3

# Largest number of different ratings: 0 to 10.
MAX_RATINGS = 11

# Maximum mean number of characters of a class: longer texts are answers in sentences.
MAX_CLASS_LENGTH = 60
# Minimum mean number of rows of a group: with fewer, nearly every group is a single row.
_MIN_MEAN_GROUP_SIZE = 1.2
# Minimum share of the rows that have an entry in a column of groups: a few may be missing.
_MIN_SHARE_WITH_ENTRY = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """Facts of a column from which its role is recognised.

    Parameters
    ----------
    name : str
    n_rows, n_entries, n_distinct : int
        Number of rows of the table, of entries that are not missing, and of distinct entries.
    is_number : bool
        Whether every entry is a number.
    minimum, maximum : float, optional
        Range of the entries that are numbers.
    is_whole : bool
        Whether every number is whole.
    values : frozenset of str, optional
        The distinct entries as text; None if they are many or unknown.
    is_date, is_nested : bool
        Whether entries are dates or times, or lists and objects.
    mean_length : float
        Mean number of characters of an entry.
    is_score_of_log : bool
        Whether the table is the log of an evaluation tool, and the column is one of its scores.
    is_percentage : bool
        Whether every entry is a number with a percent sign: text that is a class, or a score whose `minimum`
        and `maximum` are shares.
    differing_entries : (str or None, str), optional
        Of text whose entries nearly all begin like numbers: an entry in the most frequent form of numbers
        (None without one), and the first entry in another form. `minimum` and `maximum` are those of the
        entries in the most frequent form.
    missing_verdicts : frozenset of str
        Distinct entries that mean that a judge has no verdict, such as `error`.
    """

    name: str
    n_rows: int
    n_entries: int
    n_distinct: int
    is_number: bool = False
    minimum: float | None = None
    maximum: float | None = None
    is_whole: bool = False
    values: frozenset[str] | None = None
    is_date: bool = False
    is_nested: bool = False
    mean_length: float = 0.0
    is_score_of_log: bool = False
    is_percentage: bool = False
    differing_entries: tuple[str | None, str] | None = None
    missing_verdicts: frozenset[str] = frozenset()

    @property
    def words(self) -> frozenset[str]:
        """The words of the name, in lower case."""
        return words_of_name(self.name)

    @property
    def folded_name(self) -> str:
        """The name without differences in case and surrounding spaces."""
        return self.name.strip().casefold()

    @property
    def is_complete(self) -> bool:
        """Whether every row has an entry."""
        return self.n_entries == self.n_rows

    @property
    def is_partial(self) -> bool:
        """Whether some rows have an entry and others do not."""
        return 0 < self.n_entries < self.n_rows

    @property
    def is_measurement(self) -> bool:
        """Whether the name or the content is that of a measurement, a position or a date."""
        # Bounding boxes of images have such columns.
        is_coordinate = self.folded_name in ("x", "y", "w", "h")
        is_named = is_coordinate or bool(self.words & MEASUREMENT_WORDS)
        # Distinct whole numbers of a column that is named like a score are scores, such as 0 to 100.
        is_position = self.is_position and not self.words & (PROXY_WORDS | JUDGE_WORDS)
        return self.is_date or self.is_nested or is_named or is_position

    @property
    def may_be_groups(self) -> bool:
        """Whether equal entries may be groups of rows, such as the answers to a question."""
        is_category = not self.is_number or self.is_whole
        is_nearly_complete = self.n_entries >= _MIN_SHARE_WITH_ENTRY * self.n_rows
        has_groups = self.n_distinct > 1 and _MIN_MEAN_GROUP_SIZE * self.n_distinct <= self.n_entries
        return is_category and is_nearly_complete and not self.is_nested and has_groups

    @property
    def may_number_runs(self) -> bool:
        """Whether the entries may number repeated runs, or be their seeds."""
        return bool(self.words & RUN_WORDS) and not self.is_date and 1 < self.n_distinct < self.n_rows

    @property
    def may_be_repeated_questions(self) -> bool:
        """Whether the entries may be questions that are run repeatedly."""
        is_named = "id" in self.words or bool(self.words & QUESTION_WORDS)
        is_run = bool(self.words & RUN_WORDS) or self.folded_name in MODEL_NAMES
        return is_named and not is_run and not self.is_nested and 1 < self.n_distinct < self.n_rows

    @property
    def is_position(self) -> bool:
        """Whether the entries are distinct whole numbers of at least 0, such as row numbers."""
        if not self.is_number or not self.is_whole or self.n_distinct != self.n_rows:
            return False
        return self.minimum is not None and self.maximum is not None and self.minimum >= 0

    @property
    def verdicts(self) -> dict[str, float] | None:
        """The number of each verdict, such as pass and fail or 0 and 1; None for other columns."""
        verdicts = (self.values or frozenset()) - self.missing_verdicts
        n_verdicts = self.n_distinct - len(self.missing_verdicts)
        if not verdicts or n_verdicts > MAX_VERDICTS or self.is_nested:
            return None
        return verdict_numbers(verdicts)

    @property
    def are_truth_values(self) -> bool:
        """Whether the entries are 0 and 1, or True and False."""
        texts = self.values or frozenset[str]()
        return self.verdicts is not None and all(truth_number(text) in (0.0, 1.0) for text in texts)

    @property
    def are_classes(self) -> bool:
        """Whether the entries may be classes: text or whole numbers, each of several rows."""
        # If most values occur once, they are texts or measurements; two rows may have two classes.
        max_classes = max(2, self.n_entries / 2)
        if self.is_nested or self.is_date or self.n_distinct > max_classes:
            return False
        if self.is_number:
            return self.is_whole
        return self.mean_length <= MAX_CLASS_LENGTH

    @property
    def is_probability(self) -> bool:
        """Whether the entries are numbers from 0 to 1."""
        return (
            self.minimum is not None and self.maximum is not None and 0 <= self.minimum <= self.maximum <= 1
        )


def words_of_name(name: str) -> frozenset[str]:
    """Return the words of a column's name, in lower case."""
    return frozenset(word.casefold() for word in _WORD_BREAKS.split(name) if word)


def verdict_numbers(values: Iterable[str]) -> dict[str, float] | None:
    """Return the number of each verdict.

    None if the words are unknown or ambiguous, or if there are other numbers.
    """
    texts = list(values)
    numbers = [truth_number(text) for text in texts]
    if set(numbers) <= {0.0, 1.0}:
        return dict(zip(texts, numbers, strict=True))
    try:
        return numbers_by_word(texts)
    except LabelError:
        # Ambiguous words are compared as classes.
        return None
