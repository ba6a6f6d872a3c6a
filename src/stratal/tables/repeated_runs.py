"""Repeated runs of a benchmark: several rows for each question, which are not independent units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stratal.arrays import IntArray
from stratal.question.facts import ColumnFacts
from stratal.tables.logs.log import occurrence_numbers
from stratal.tables.small_table import SmallTable


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRuns:
    """A table with several rows for each question, one for each run.

    Parameters
    ----------
    column : str
        Column of the questions.
    questions : int
        Number of questions.
    min_runs, max_runs : int
        Smallest and largest number of runs of a question.
    """

    column: str
    questions: int
    min_runs: int
    max_runs: int

    @classmethod
    def of(cls, column: str, questions: Sequence[str]) -> RepeatedRuns:
        """Return the runs, given the name of the column of questions and the question of each row."""
        counts = Counter(questions).values()
        return cls(column=column, questions=len(counts), min_runs=min(counts), max_runs=max(counts))

    @property
    def sentence(self) -> str:
        """Sentence on the units of the estimate: the questions are clusters of runs."""
        runs = f"{self.max_runs:,}"
        if self.min_runs < self.max_runs:
            runs = f"{self.min_runs:,} to {runs}"
        return f"every row has a label; {runs} runs of each of {self.questions:,} `{self.column}` (clusters)"


def repeated_runs(rows: SmallTable, facts: Iterable[ColumnFacts]) -> RepeatedRuns | None:
    """Return the repeated runs of a table with a column of runs; None for other tables.

    Each pair of a question and a run occurs once, and runs occur for several questions.
    """
    columns = [column for column in facts if column.is_complete and column.name in rows.columns]
    runs = [column for column in columns if column.may_number_runs]
    for question in columns:
        if not question.may_be_repeated_questions:
            continue
        questions = rows.texts(question.name).tolist()
        max_runs = max(Counter(questions).values())
        for run in runs:
            pairs = set(zip(questions, rows.texts(run.name).tolist(), strict=True))
            # With more distinct runs than any question has, each question has other runs, such as timestamps.
            if run.name != question.name and run.n_distinct <= max_runs and len(pairs) == len(rows):
                return RepeatedRuns.of(question.name, questions)
    return None


def numbers_of_repeats(units: Sequence[str], models: Sequence[str]) -> IntArray:
    """Return for each row (n,) how many previous rows have the same unit and model."""
    return np.array(occurrence_numbers(zip(units, models, strict=True)), dtype=np.int64) - 1
