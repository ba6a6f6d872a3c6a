"""How the labelled rows of a table were chosen, as users state it (`--chosen`)."""

from __future__ import annotations

from dataclasses import dataclass

from stratal.errors import InputError

# Kinds of selection, as `chosen=` states them.
RANDOM = "random"
RANDOM_WITHIN = "random-within"
PROBABILITY = "probability"
# Every row was to be labelled; labels may be missing.
ALL = "all"
UNKNOWN = "unknown"

# If at least this share of the rows have a label, all rows were probably to be labelled, and the other labels
# are missing: random samples of nine tenths of the rows are unusual.
MIN_RESPONSE_RATE = 0.9

MISSING_AT_RANDOM = (
    "Labels are missing at random: units with and without a label are alike, given the score if the estimate "
    "uses one."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSelection:
    """How the labelled rows were chosen.

    Parameters
    ----------
    kind : {"random", "random-within", "probability", "all", "unknown"}
    column : str, optional
        The column of strata, or of inclusion probabilities.
    """

    kind: str
    column: str | None = None

    @classmethod
    def parse(cls, text: str) -> RowSelection:
        """Return the selection of a text such as `random-within:COLUMN`.

        Raises
        ------
        InputError
            For an unknown kind, and a missing or superfluous column.
        """
        kind, colon, column = text.partition(":")
        needs_column = kind in (RANDOM_WITHIN, PROBABILITY)
        is_known = kind in (RANDOM, RANDOM_WITHIN, PROBABILITY, ALL, UNKNOWN)
        if not is_known or needs_column != bool(column.strip()) or (colon and not needs_column):
            raise InputError(
                "unknown selection of the labelled rows: chosen= (--chosen)",
                given=repr(text),
                allowed="random, random-within:COLUMN, probability:COLUMN, all, unknown",
            )
        return cls(kind=kind, column=column.strip() or None)

    def __str__(self) -> str:
        if self.column is None:
            return self.kind
        return f"{self.kind}:{self.column}"

    def description(self, n_rows: int, population_size: int, n_labelled: int) -> str:
        """Return the assumption about the selection as a clause, from the numbers of rows and units."""
        if self.kind == RANDOM_WITHIN:
            return f"taken as a random sample of the rows of each `{self.column}`"
        if self.kind == PROBABILITY:
            return f"taken as drawn independently with the probabilities in `{self.column}`"
        if self.kind == UNKNOWN:
            return (
                "chosen in an unknown way: weighted by quantiles of the proxy, which assumes that rows with "
                "and without a label are alike within each quantile; requirements stay undecided"
            )
        if self.kind == ALL and n_labelled < n_rows:
            n_missing = n_rows - n_labelled
            missing = "1 label is" if n_missing == 1 else f"{n_missing:,} labels are"
            return (
                f"every row was to be labelled, and {missing} taken as missing at random (for an interval "
                f"for these {n_rows:,} rows alone: --target population)"
            )
        if self.kind == ALL:
            return (
                "every row has a label (if these are a sample of more rows: --population FILE or "
                "--population-size N)"
            )
        if population_size == n_rows:
            return f"taken as a random sample of all {n_rows:,} rows"
        return f"taken as a random sample of {population_size:,} units"

    def report_assumptions(self, design: str, n_missing: int) -> tuple[str, tuple[str, ...]]:
        """Return a clause such as `, taken as a random sample`, and the sentences of the assumptions.

        Parameters
        ----------
        design : str
            Description of the design by which the labelled units are treated as drawn.
        n_missing : int
            Number of units without a label.
        """
        if self.kind == ALL and not n_missing:
            return "", ()
        if self.kind == ALL:
            return ", and all others were to be labelled, too", (MISSING_AT_RANDOM,)
        if self.kind == UNKNOWN:
            assumption = (
                "Units with and without a label are alike within each group for which weights are computed."
            )
            return f", chosen in an unknown way and taken as {design}", (assumption,)
        assumption = "The labelled units were chosen at random as described, and not based on their labels."
        return f", taken as {design}", (assumption,)
