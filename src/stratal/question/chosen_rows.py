"""How the labelled rows of a table were chosen, as users state it (`--chosen`).

The choice of a model is in `stratal.planning.selection`.
"""

from __future__ import annotations

from dataclasses import dataclass

from stratal.errors import InputError

# Ways in which labelled rows were chosen.
RANDOM = "random"
RANDOM_WITHIN = "random-within"
PROBABILITY = "probability"
ALL = "all"
UNKNOWN = "unknown"

# Smallest share of labelled rows of a table whose rows were all meant to be labelled. Nobody draws a random
# sample of nine tenths: the other labels are missing.
NEARLY_ALL = 0.9

MISSING_AT_RANDOM = (
    "Labels are missing at random: units with and without a label are alike, given the score if the estimate "
    "uses one."
)

# For errors about an unknown way.
SELECTION_FORMS = "random, random-within:COLUMN, probability:COLUMN, all, unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRows:
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
    def parse(cls, text: str) -> ChosenRows:
        """Return the selection that a text states.

        Raises
        ------
        InputError
            For another text, and a missing or superfluous column.
        """
        kind, colon, column = text.partition(":")
        needs_column = kind in (RANDOM_WITHIN, PROBABILITY)
        is_known = kind in (RANDOM, RANDOM_WITHIN, PROBABILITY, ALL, UNKNOWN)
        if not is_known or needs_column != bool(column.strip()) or (colon and not needs_column):
            what = "unknown selection of the labelled rows"
            raise InputError(f"{what}: chosen= (--chosen)", given=repr(text), allowed=SELECTION_FORMS)
        return cls(kind=kind, column=column.strip() or None)

    def __str__(self) -> str:
        if self.column is None:
            return self.kind
        return f"{self.kind}:{self.column}"

    def sentence(self, rows: int, units: int, labelled: int) -> str:
        """Return how the labelled rows are taken as chosen, in words.

        `rows` are those of the table, `units` those of the population, and `labelled` the rows with a label.
        """
        if self.kind == RANDOM_WITHIN:
            return f"taken as a random sample of the rows of each `{self.column}`"
        if self.kind == PROBABILITY:
            return f"taken as drawn independently with the probabilities in `{self.column}`"
        if self.kind == UNKNOWN:
            # Requirements (--require) then neither pass nor fail.
            return (
                "chosen in an unknown way: weighted by quantiles of the proxy, which assumes that rows with "
                "and without a label are alike within each quantile; requirements stay undecided"
            )
        if self.kind == ALL and labelled < rows:
            missing = "1 label is" if rows - labelled == 1 else f"{rows - labelled:,} labels are"
            return (
                f"every row was to be labelled, and {missing} taken as missing at random (for an interval "
                f"for these {rows:,} rows alone: --target population)"
            )
        if self.kind == ALL:
            return (
                "every row has a label (if these are a sample of more rows: --population FILE or "
                "--population-size N)"
            )
        if units == rows:
            return f"taken as a random sample of all {rows:,} rows"
        return f"taken as a random sample of {units:,} units"

    def of_units(self, description: str, missing: int) -> tuple[str, tuple[str, ...]]:
        """Return the end of the sentence on a design, such as `, taken as DESCRIPTION`, and the assumptions.

        Parameters
        ----------
        description : str
            Description of the design by which the labelled units are treated as drawn.
        missing : int
            Number of units without a label.
        """
        if self.kind == ALL and not missing:
            return "", ()
        if self.kind == ALL:
            return ", and all others were to be labelled, too", (MISSING_AT_RANDOM,)
        if self.kind == UNKNOWN:
            alike = (
                "Units with and without a label are alike within each group for which weights are computed."
            )
            return f", chosen in an unknown way and taken as {description}", (alike,)
        at_random = "The labelled units were chosen at random as described, and not based on their labels."
        return f", taken as {description}", (at_random,)
