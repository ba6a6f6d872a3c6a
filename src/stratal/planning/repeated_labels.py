"""The expected width of a metric's interval with more labels, as if the existing labels were repeated."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, IntArray
from stratal.designs.sample import Sample
from stratal.errors import InputError, StratalWarning
from stratal.estimation.estimand import Estimand, Several
from stratal.estimation.estimate import Estimate
from stratal.estimation.resolve import class_column
from stratal.labels.joined_labels import JoinedLabels
from stratal.labels.label_values import LabelMapping
from stratal.planning.next_allocation import design_with_counts


def half_width_of(estimate: Estimate, confidence_level: float, method: str = "auto") -> float:
    """Return half the width of the interval; infinite if there is none yet."""
    # Only intervals of means accept a method.
    options: Mapping[str, Any] = {} if method == "auto" else {"method": method}
    try:
        width = estimate.confidence_interval(confidence_level, **options).width / 2.0
    except InputError:  # equal labels of an outcome without bounds
        return math.inf
    if math.isfinite(width):
        return width
    return math.inf


@dataclass(frozen=True, kw_only=True)
class RepeatedLabelWidths:
    """Half the width of a metric's interval if the labels of each stratum were repeated.

    Parameters
    ----------
    requested : Estimand
    sample : Sample
    classes : object (n,)
        Label of each drawn unit; None if there is none.
    rows_by_stratum : tuple of int arrays (H,)
        Labelled units of each stratum, or all of its drawn units if none is labelled, so that the stratum
        also has no labels when they are repeated.
    confidence_level : float
    """

    requested: Estimand
    sample: Sample
    classes: AnyArray
    rows_by_stratum: tuple[IntArray, ...]
    confidence_level: float

    @classmethod
    def of(
        cls, requested: Estimand, sample: Sample, labels: object, labelled: BoolArray, confidence_level: float
    ) -> RepeatedLabelWidths | None:
        """Return the widths; None for estimands whose labels are not classes, and for several estimands."""
        if isinstance(requested, Several) or not requested.by_answer or sample.design.strata is None:
            return None
        rows_by_stratum = []
        for h in range(len(sample.n_h)):
            drawn = np.flatnonzero(sample.stratum == h)
            labelled_rows = drawn[labelled[drawn]]
            rows_by_stratum.append(labelled_rows if len(labelled_rows) else drawn)
        return cls(
            requested=requested,
            sample=sample,
            classes=class_column(sample, labels, "labels"),
            rows_by_stratum=tuple(rows_by_stratum),
            confidence_level=confidence_level,
        )

    def half_width(self, n_h: IntArray, *, label_based: bool) -> float:
        """Return half the width with the units of each stratum repeated until there are n_h (H,).

        `label_based` states whether n_h depends on labels, as in an adaptive design.
        """
        sample = self.sample
        counts_and_rows = zip(n_h.tolist(), self.rows_by_stratum, strict=True)
        rows = np.concatenate([np.resize(rows, n) for n, rows in counts_and_rows if len(rows)])
        counts = np.bincount(sample.stratum[rows], minlength=len(n_h))
        repeated_sample = sample.of_rows(
            rows,
            ids=np.arange(len(rows)),
            inclusion_probability=(counts / sample.summary.sizes)[sample.stratum[rows]],
            round=np.ones(len(rows), np.int64),
            # Only the interval of this design is used, not its note, for which `rule_text` is required.
            design=design_with_counts(sample, counts, rule_text="expected", label_based=label_based),
            looks=None,
        )
        classes = self.classes[rows]
        is_labelled = np.array([entry is not None for entry in classes])
        repeated_labels = JoinedLabels(
            unit=np.flatnonzero(is_labelled),
            values=classes[is_labelled],
            labelled=is_labelled,
            label_mapping=LabelMapping(),
            ids=repeated_sample.ids,
        )
        with warnings.catch_warnings(action="ignore", category=StratalWarning):
            estimate = self.requested.estimate(repeated_sample, repeated_labels)
        assert isinstance(estimate, Estimate)
        return half_width_of(estimate, self.confidence_level)
