"""Notes on drawn units without a label: how many there are, and in which strata.

Whether labels are missing at random is tested in `missing_labels`.
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import BoolArray
from stratal.designs.sample import Sample
from stratal.errors import warn_caller
from stratal.report.notes import UNLABELLED, Note, unlabelled_text

# Share of missing labels above which a warning states the assumption.
_MUCH_NONRESPONSE = 0.1
# Up to so many missing labels need no warning: 1 of 5 is a large share, but may be an oversight.
_FEW = 4

# Number of strata that a note names: a list of all may fill a page.
STRATA_NAMED = 3


def nonresponse_notes(
    sample: Sample, labelled: BoolArray, *, by_stratum_alone: bool = False
) -> tuple[str, ...]:
    """Return notes on units without a label: a warning if they are many, and their numbers by stratum.

    `by_stratum_alone` leaves the warning out.
    """
    missing = sample.size - int(labelled.sum())
    notes: list[str] = []
    if missing > max(_MUCH_NONRESPONSE * sample.size, _FEW) and not by_stratum_alone:
        text = unlabelled_text(sample.size, sample.size - missing)
        notes.append(Note(UNLABELLED, text))
        warn_caller(text)
    names = sample.design.stratum_names
    if missing and len(names) > 1:
        drawn = np.bincount(sample.stratum, minlength=len(names))
        lacking = np.bincount(sample.stratum[~labelled], minlength=len(names))
        worst = np.argsort(-lacking / np.maximum(drawn, 1), kind="stable")[:STRATA_NAMED]
        shown = ", ".join(f"{names[h]}: {lacking[h]} of {drawn[h]}" for h in worst if lacking[h])
        notes.append(f"units without a label, by stratum: {shown}")
    return tuple(notes)
