"""Several annotators of one unit: how far they agree, and one value of their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, number_of_text, plain_fields
from stratal.errors import InputError, LabelError, optional_import, type_text
from stratal.labels.label_values import class_text
from stratal.labels.labels import ADJUDICATED, Labels
from stratal.protocols import JsonDict

COMBINATIONS = ("mean", "majority")
LEVELS = ("nominal", "ordinal", "interval", "ratio")
# Share of the units whose answers may differ without a decision before a warning: decided one way, a tenth
# moves a share by .05, which is the half-width that some 400 labels give.
MAX_OPEN_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorAgreement:
    """How far several annotators agree.

    Parameters
    ----------
    annotators : tuple of str
    answers : int
    units : int
        Units with an answer.
    shared : int
        Units with two answers or more.
    alpha : float, optional
        Krippendorff's α: 1 is perfect agreement, 0 what chance gives. None where it is undefined: no unit is
        shared, or every answer is the same.
    level : str
        Level of measurement that α takes.
    agreed : float, optional
        Share of the pairs of answers of one unit that are the same.
    open : int
        Units whose answers differ, and of which nobody has decided.
    decided : int
        Units whose answers a decision replaced; the answers count here.
    """

    annotators: tuple[str, ...]
    answers: int
    units: int
    shared: int
    alpha: float | None
    level: str
    agreed: float | None = None
    open: int = 0
    decided: int = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons against an estimate from these answers: agreement below chance, many open cases."""
        warnings = []
        if self.alpha is not None and self.alpha < 0:
            warnings.append(
                f"the annotators agree less than by chance (Krippendorff's alpha {self.alpha:.2f}): first "
                "make sure that all annotators understand the question in the same way, then use the "
                "estimate"
            )
        if self.open > MAX_OPEN_SHARE * self.units:
            warnings.append(
                f"{self.open:,} of {self.units:,} labelled units have different answers and no decision: "
                "resolve these disagreements, or clarify the rubric"
            )
        return tuple(warnings)

    def to_dict(self) -> JsonDict:
        """Return a plain dict."""
        return plain_fields(self)

    def __str__(self) -> str:
        if self.alpha is None:
            alpha_text = "undefined"
        else:
            alpha_text = f"{self.alpha:.3f}"
        if self.agreed is None:
            agreement_text = ""
        else:
            agreement_text = f" ({self.agreed:.0%} of the pairs agree)"
        if self.open:
            undecided_text = f", {self.open:,} undecided"
        else:
            undecided_text = ""
        return (
            f"{len(self.annotators)} annotators, {self.answers:,} answers, {self.shared:,} of {self.units:,} "
            f"units with several answers{agreement_text}{undecided_text}; Krippendorff's alpha "
            f"({self.level}) {alpha_text}"
        )


def annotator_agreement(labels: Labels, *, level: str = "nominal") -> AnnotatorAgreement:
    """Return the agreement of the annotators of `labels`, measured by Krippendorff's α.

    Parameters
    ----------
    labels : Labels
        Labels with annotators, as `read_labels` returns them for a file with a column `annotator`. If a unit
        was decided, the original answers are used (`Labels.replaced`).
    level : {"nominal", "ordinal", "interval", "ratio"}
        Scale of the answers: classes, ranks, or numbers.

    Raises
    ------
    LabelError
        If no annotators are named, or if answers are not numbers although the level requires numbers.
    MissingExtraError
        If the package `krippendorff` is not installed.

    Examples
    --------
    >>> labels = Labels(ids=("a", "a", "b", "b"), values=(1, 1, 0, 0), annotators=("ann", "bob") * 2)
    >>> annotator_agreement(labels).alpha
    1.0
    """
    if level not in LEVELS:
        raise InputError("unknown level of measurement", given=repr(level), allowed=", ".join(LEVELS))
    if not isinstance(labels, Labels):
        action = "Read them with stratal.read_labels(file), or create Labels(ids=…, values=…, annotators=…)."
        raise InputError("annotator_agreement takes Labels", given=type_text(labels), action=action)
    if labels.annotators is None:
        action = "Add a column `annotator`, with one row per answer."
        raise LabelError(f"{labels.source}: no annotators are named", action=action)
    # A decision replaces the answers of the annotators, whose agreement is measured all the same.
    if labels.replaced is None:
        decided_units = set()
    else:
        decided_units = set(labels.replaced.ids)
    answers = [row for row in _collect_answers(labels) if labels.replaced is None or row[1] != ADJUDICATED]
    rows = np.array(answers, object).reshape(-1, 3)
    units, unit_index = np.unique(rows[:, 0].astype(str), return_inverse=True)
    annotators, annotator_index = np.unique(rows[:, 1].astype(str), return_inverse=True)
    numbers = _finite_numbers(rows[:, 2].tolist())
    if numbers is None:
        if level != "nominal":
            problem = f"{labels.source}: level {level!r} requires numbers"
            raise LabelError(problem, allowed="level='nominal' for classes")
        # The package takes numbers; for classes any numbers do.
        numbers = np.unique(rows[:, 2].astype(str), return_inverse=True)[1].astype(np.float64)
    ratings = np.full((len(annotators), len(units)), np.nan)
    ratings[annotator_index, unit_index] = numbers
    is_shared = np.sum(np.isfinite(ratings), axis=0) > 1
    shared_ratings = ratings[:, is_shared]
    alpha = None
    agreeing_share = None
    disputed_units = units[:0]
    if shared_ratings.size:
        alpha = _krippendorff_alpha(shared_ratings, level)
        distinct_ratings = np.unique(shared_ratings[np.isfinite(shared_ratings)])
        counts = np.sum(shared_ratings[None] == distinct_ratings[:, None, None], axis=1)
        agreeing_share = float(
            np.sum(counts * (counts - 1)) / np.sum(counts.sum(axis=0) * (counts.sum(axis=0) - 1))
        )
        disputed_units = units[is_shared][
            np.nanmin(shared_ratings, axis=0) < np.nanmax(shared_ratings, axis=0)
        ]
    return AnnotatorAgreement(
        annotators=tuple(annotators.tolist()),
        answers=len(rows),
        units=len(units),
        shared=int(is_shared.sum()),
        alpha=alpha,
        level=level,
        agreed=agreeing_share,
        open=len(set(disputed_units.tolist()) - decided_units),
        decided=len(decided_units),
    )


def _collect_answers(labels: Labels) -> list[tuple[str, str, float | str]]:
    """Return the unit, the annotator and the meaning of each answer, those that a decision replaced too."""
    answers = []
    meanings = labels.interpreted()[1].meanings
    for labels_part in (labels, labels.replaced):
        if labels_part is not None:
            annotators = labels_part.annotators or ("",) * len(labels_part.ids)
            for unit, annotator, value in zip(labels_part.ids, annotators, labels_part.values, strict=True):
                if value is None:
                    meaning = None
                else:
                    meaning = meanings.get(class_text(value), value)
                # NaN is not equal to itself: such answers are missing.
                if meaning is not None and meaning == meaning:
                    answers.append((unit, annotator, meaning))
    return answers


def measure_agreement(labels: Labels, *, classes: bool = False) -> AnnotatorAgreement | None:
    """Return how far the annotators of labels agree, None where fewer than two are named.

    Status, estimate and report all take it from here, so that they say the same.
    """
    if labels.replaced is not None:
        replaced_annotators = labels.replaced.annotators
    else:
        replaced_annotators = ()
    # A skip may name nobody, as those of Langfuse.
    nobody = {ADJUDICATED, "", None}
    if len({*(labels.annotators or ()), *(replaced_annotators or ())} - nobody) < 2:
        return None
    return annotator_agreement(labels, level=measurement_level(labels, classes=classes))


def measurement_level(labels: Labels, *, classes: bool = False) -> str:
    """Return what answers measure as far as they show it: three numbers or more a scale, unless `classes`."""
    if classes:
        numbers = None
    else:
        numbers = _finite_numbers([value for _, _, value in _collect_answers(labels)])
    if numbers is None or len(np.unique(numbers)) <= 2:
        return "nominal"
    return "interval"


def _finite_numbers(values: list[float | str]) -> FloatArray | None:
    """Return answers (m,) as numbers, of their texts where they are none; None unless all are finite."""
    numbers = [number_of_text(value) if isinstance(value, str) else value for value in values]
    if np.all(np.isfinite(numbers)):
        return np.array(numbers, float)
    return None


def _krippendorff_alpha(table: Any, level: str) -> float | None:
    values = table[np.isfinite(table)]
    # Without different answers, no disagreement is to be expected by chance: α is 0/0.
    if np.all(values == values[0]):
        return None
    with optional_import("krippendorff", extra="agreement"):
        import krippendorff
    # The package declares the levels as literals; `level` was checked above.
    measure: Any = level
    return float(krippendorff.alpha(reliability_data=table, level_of_measurement=measure))
