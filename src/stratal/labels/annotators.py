"""The agreement of several annotators who labelled the same units."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, number_of_text, plain_fields
from stratal.errors import InputError, LabelError, optional_import, type_text
from stratal.labels.label_values import LabelMapping, are_numeric_labels, class_text, comparison_key
from stratal.labels.labels import ADJUDICATED, Labels
from stratal.protocols import JsonDict

COMBINATIONS = ("mean", "majority")
LEVELS = ("nominal", "ordinal", "interval", "ratio")
# Maximum share of units with different answers, but no decision. The mean of the answers 0 and 1 is .5,
# so that decisions on a tenth of the units can change a proportion by .05. This is the half-width of the
# interval from about 400 labels.
MAX_OPEN_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorAgreement:
    """The agreement of several annotators.

    Parameters
    ----------
    annotators : tuple of str
    answers : int
        Number of answers.
    units : int
        Number of units with an answer.
    shared : int
        Number of units with at least two answers.
    alpha : float, optional
        Krippendorff's α: 1 is perfect agreement, 0 is the agreement by chance. None if no unit has two
        answers, or all answers are the same.
    level : str
        Level of measurement of the answers.
    agreed : float, optional
        Share of equal answers among all pairs of answers to one unit.
    open : int
        Number of units with different answers and without a decision.
    decided : int
        Number of units whose answers were replaced by a decision. The replaced answers enter the agreement.
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
        """Reasons against an estimate from these answers: agreement below chance, many undecided units."""
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
        """Return a JSON-serializable dict."""
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
    replaced_ids = () if labels.replaced is None else labels.replaced.ids
    answers = _collect_answers(labels)
    if labels.replaced is not None:
        # The agreement is that of the replaced answers, not of the decisions.
        answers = [answer for answer in answers if answer[1] != ADJUDICATED]
    units, annotators, ratings = _rating_matrix(answers, level, labels.source)
    is_shared = np.sum(np.isfinite(ratings), axis=0) > 1
    shared_ratings = ratings[:, is_shared]
    alpha = None
    agreeing_share = None
    disputed_units: list[str] = []
    if shared_ratings.size:
        alpha = _krippendorff_alpha(shared_ratings, level)
        agreeing_share = _agreeing_share(shared_ratings)
        is_disputed = np.nanmin(shared_ratings, axis=0) < np.nanmax(shared_ratings, axis=0)
        disputed_units = units[is_shared][is_disputed].tolist()
    return AnnotatorAgreement(
        annotators=tuple(annotators.tolist()),
        answers=len(answers),
        units=len(units),
        shared=int(is_shared.sum()),
        alpha=alpha,
        level=level,
        agreed=agreeing_share,
        open=len({*disputed_units}.difference(replaced_ids)),
        decided=len({*replaced_ids}),
    )


def _collect_answers(labels: Labels) -> list[tuple[str, str, float | str]]:
    """Return the unit, the annotator and the meaning of each answer, with the answers that were replaced."""
    answers = []
    sources = [labels] if labels.replaced is None else [labels, labels.replaced]
    texts = {class_text(value): None for source in sources for value in source.values if value is not None}
    meanings = {**_spellings(texts), **labels.interpreted()[1].meanings}
    for source in sources:
        annotators = source.annotators or ("",) * len(source.ids)
        for unit, annotator, value in zip(source.ids, annotators, source.values, strict=True):
            meaning = None if value is None else meanings.get(class_text(value), value)
            # NaN is not equal to itself: such answers are missing.
            if meaning is not None and meaning == meaning:
                answers.append((unit, annotator, meaning))
    return answers


def _spellings(texts: Collection[str]) -> dict[str, float | str | None]:
    """Return the first spelling of each answer, for answers that are words.

    Words are equal if they count as the same number, such as `pass` and 1, or differ only in case and spaces.
    """
    if not any(math.isnan(number_of_text(text)) for text in texts):
        return {}
    keys: dict[str, float | str] = {text: comparison_key(text) for text in texts}
    if are_numeric_labels(texts):
        keys |= LabelMapping().numbers(texts)
    first_texts: dict[float | str, str] = {}
    return {text: first_texts.setdefault(key, text) for text, key in keys.items()}


def _rating_matrix(
    answers: Sequence[tuple[str, str, float | str]], level: str, source: str
) -> tuple[AnyArray, AnyArray, FloatArray]:
    """Return the units (n,), the annotators (k,), and their answers as numbers (k, n); NaN if missing."""
    rows = np.array(answers, object).reshape(-1, 3)
    units, unit_index = np.unique(rows[:, 0].astype(str), return_inverse=True)
    annotators, annotator_index = np.unique(rows[:, 1].astype(str), return_inverse=True)
    numbers = _finite_numbers(rows[:, 2].tolist())
    if numbers is None:
        if level != "nominal":
            problem = f"{source}: level {level!r} requires numbers"
            raise LabelError(problem, allowed="level='nominal' for classes")
        # At the nominal level, any different numbers represent the classes.
        numbers = np.unique(rows[:, 2].astype(str), return_inverse=True)[1].astype(np.float64)
    ratings = np.full((len(annotators), len(units)), np.nan)
    ratings[annotator_index, unit_index] = numbers
    return units, annotators, ratings


def _agreeing_share(ratings: FloatArray) -> float:
    """Return the share of equal answers among all pairs of answers to one unit, from ratings (k, n)."""
    distinct_ratings = np.unique(ratings[np.isfinite(ratings)])
    counts = np.sum(ratings[None] == distinct_ratings[:, None, None], axis=1)
    totals = counts.sum(axis=0)
    return float(np.sum(counts * (counts - 1)) / np.sum(totals * (totals - 1)))


def measure_agreement(labels: Labels, *, classes: bool = False) -> AnnotatorAgreement | None:
    """Return the agreement at the level of measurement of the labels, None for fewer than two annotators."""
    replaced_annotators = None if labels.replaced is None else labels.replaced.annotators
    annotators = {*(labels.annotators or ()), *(replaced_annotators or ())}
    # A skipped item may have no annotator, as in exports of Langfuse.
    if len(annotators - {ADJUDICATED, "", None}) < 2:
        return None
    return annotator_agreement(labels, level=measurement_level(labels, classes=classes))


def measurement_level(labels: Labels, *, classes: bool = False) -> str:
    """Return the level of measurement: interval for three or more numbers except `classes`, or nominal."""
    if classes:
        return "nominal"
    numbers = _finite_numbers([value for _, _, value in _collect_answers(labels)])
    if numbers is None or len(np.unique(numbers)) <= 2:
        return "nominal"
    return "interval"


def _finite_numbers(values: list[float | str]) -> FloatArray | None:
    """Return answers (m,) as numbers, None unless all are finite numbers or texts of them."""
    numbers = [number_of_text(value) if isinstance(value, str) else value for value in values]
    if np.all(np.isfinite(numbers)):
        return np.array(numbers, float)
    return None


def _krippendorff_alpha(ratings: FloatArray, level: str) -> float | None:
    """Return Krippendorff's α of ratings (k, n), None if all are equal."""
    finite_ratings = ratings[np.isfinite(ratings)]
    # Without different ratings, α is 0/0.
    if np.all(finite_ratings == finite_ratings[0]):
        return None
    with optional_import("krippendorff", extra="agreement"):
        import krippendorff
    # `Any`, because the package declares the levels as literals.
    literal_level: Any = level
    return float(krippendorff.alpha(reliability_data=ratings, level_of_measurement=literal_level))
