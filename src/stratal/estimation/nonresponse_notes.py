"""Notes on drawn units without a label: how many there are, and in which strata.

Whether labels are missing at random is tested in `missing_labels`.
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import BoolArray
from stratal.designs.sample import Sample
from stratal.errors import warn_caller
from stratal.report.notes import UNLABELLED, Note, unlabelled_text

# A warning states the assumption if more labels are missing than this share and than this number: 1 of 5 is
# a large share, but may be an oversight.
_MAX_SHARE_WITHOUT_WARNING = 0.1
_MAX_NUMBER_WITHOUT_WARNING = 4

# Maximum number of strata that a note names.
MAX_STRATA_NAMED = 3


def nonresponse_notes(
    sample: Sample, labelled: BoolArray, *, without_warning: bool = False
) -> tuple[str, ...]:
    """Return notes on units without a label: a warning if there are many, and their numbers by stratum.

    `labelled` (n,) is whether each drawn unit has a label; `without_warning` omits the warning.
    """
    missing = sample.size - int(labelled.sum())
    notes: list[str] = []
    max_missing = max(_MAX_SHARE_WITHOUT_WARNING * sample.size, _MAX_NUMBER_WITHOUT_WARNING)
    if missing > max_missing and not without_warning:
        text = unlabelled_text(sample.size, sample.size - missing)
        notes.append(Note(UNLABELLED, text))
        warn_caller(text)
    names = sample.design.stratum_names
    if missing and len(names) > 1:
        drawn_counts = np.bincount(sample.stratum, minlength=len(names))
        missing_counts = np.bincount(sample.stratum[~labelled], minlength=len(names))
        strata = np.argsort(-missing_counts / np.maximum(drawn_counts, 1), kind="stable")[:MAX_STRATA_NAMED]
        texts = [f"{names[h]}: {missing_counts[h]} of {drawn_counts[h]}" for h in strata if missing_counts[h]]
        notes.append(f"units without a label, by stratum: {', '.join(texts)}")
    return tuple(notes)
