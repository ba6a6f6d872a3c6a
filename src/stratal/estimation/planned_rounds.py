"""Expected results of a plan in rounds: the total number of labels, and what they can guarantee."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRounds:
    """The labels of all rounds, and what they are expected to guarantee.

    Parameters
    ----------
    total : int
        Labels of all rounds.
    expected_half_width : float, optional
        Of the interval after all rounds, of one estimand.
    expected_items, largest_items : int, optional
        Units that are expected to be accepted, and those of the largest set that satisfies the requirement,
        both if the score is a probability.
    labels_needed : int, optional
        Labels that are expected to accept half of that; of a recall or false positive rate the fewest labels
        of a random sample that can guarantee it.
    cases_needed : int, optional
        How many of those must be of the class (recall), or not of it (false positive rate).
    cases_of_class : bool, optional
        Whether these cases are of the class.
    """

    total: int
    expected_half_width: float | None = None
    expected_items: int | None = None
    largest_items: int | None = None
    labels_needed: int | None = None
    cases_needed: int | None = None
    cases_of_class: bool | None = None
