"""Expected results of a plan in rounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRounds:
    """The total number of labels of a plan in rounds, and the result that is expected from them.

    Parameters
    ----------
    total : int
        Number of labels of all rounds.
    expected_half_width : float, optional
        Half-width of the interval after all rounds, for one estimand.
    expected_items, largest_items : int, optional
        If the score is a probability: expected number of accepted units, and size of the largest set of units
        that satisfies the requirement.
    labels_needed : int, optional
        Number of labels for which half of the largest set is expected to be accepted. For a recall or a false
        positive rate: the smallest random sample that can guarantee it.
    cases_needed : int, optional
        Number of these labels that must be of the class (recall), or not of it (false positive rate).
    cases_of_class : bool, optional
        Whether `cases_needed` are of the class.
    """

    total: int
    expected_half_width: float | None = None
    expected_items: int | None = None
    largest_items: int | None = None
    labels_needed: int | None = None
    cases_needed: int | None = None
    cases_of_class: bool | None = None
