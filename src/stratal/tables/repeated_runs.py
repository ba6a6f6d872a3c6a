"""Repeated runs of a benchmark: several rows for each question, which are not independent units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stratal.arrays import IntArray
from stratal.question.facts import ColumnFacts
from stratal.tables.small_table import SmallTable


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRuns:
    """The questions of which a table has several rows, one for each run.

    Parameters
    ----------
    column : str
        Column of the questions.
    questions : int
    min_runs, max_runs : int
        Runs of a question.
    """

    column: str
    questions: int
    min_runs: int
    max_runs: int

    @classmethod
    def of(cls, column: str, questions: Sequence[str]) -> RepeatedRuns:
        """Return the runs of a column with the question of each row."""
        counts = Counter(questions).values()
        return cls(column=column, questions=len(counts), min_runs=min(counts), max_runs=max(counts))

    @property
    def sentence(self) -> str:
        """How the rows are taken, in words."""
        runs = f"{self.max_runs:,}"
        if self.min_runs < self.max_runs:
            runs = f"{self.min_runs:,} to {runs}"
        return f"every row has a label; {runs} runs of each of {self.questions:,} `{self.column}` (clusters)"


def repeated_runs(rows: SmallTable, facts: Iterable[ColumnFacts]) -> RepeatedRuns | None:
    """Return the repeated runs of a table with a column of runs; None of other tables.

    Every question has each run once at most, and a run is not one question's alone.
    """
    columns = [column for column in facts if column.is_complete and column.name in rows.columns]
    runs = [column for column in columns if column.may_be_runs]
    for question in columns:
        if not question.may_have_runs:
            continue
        questions = rows.texts(question.name).tolist()
        max_runs = max(Counter(questions).values())
        for run in runs:
            pairs = set(zip(questions, rows.texts(run.name).tolist(), strict=True))
            # More distinct runs than any question has are runs of single questions, such as timestamps.
            if run.name != question.name and run.distinct <= max_runs and len(pairs) == len(rows):
                return RepeatedRuns.of(question.name, questions)
    return None


def numbers_of_repeats(units: Sequence[str], models: Sequence[str]) -> IntArray:
    """Return for each row (n,) how many rows of its unit and model are before it."""
    counts = Counter[tuple[str, str]]()
    numbers = []
    for pair in zip(units, models, strict=True):
        numbers.append(counts[pair])
        counts[pair] += 1
    return np.array(numbers, dtype=np.int64)
