"""Estimate a new version of the model from existing labels, and list the units that need a new label.

Labels that are classes apply to any answer. Labels of the old answer (right or wrong, a grade) apply to the
new answer if it is the same. If it changed, its outcome is unknown, within the bounds, until it is labelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError
from stratal.estimation.entry_points import estimate
from stratal.estimation.estimand import ACCURACY_OPTIONS, EstimandLike, as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.resolve import check_label_codes, class_column, compared_column, outcomes, with_group
from stratal.labels.joined_labels import join_labels
from stratal.labels.label_values import class_text
from stratal.labels.labels import Labels
from stratal.metrics.comparison import compare
from stratal.protocols import JsonDict, Keywords, WithItems
from stratal.randomness import id_texts
from stratal.report.notes import warnings_among
from stratal.report.sections import new_version_page
from stratal.report.text import Page, PageDisplay, json_dict

# The column of the new answers, in a sample that also has the old ones.
NEW_ANSWER = "answer of the new version"
# Options of `estimate`, which apply to both versions, so that the old estimate is that of the report.
_ESTIMATE_OPTIONS = ("estimand", *(name for name in ACCURACY_OPTIONS if name not in ("limits", "combine")))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NewVersion(PageDisplay):
    """The evidence of a labelled sample on a new version of the model.

    Parameters
    ----------
    described : dict
        Plain values: the numbers of drawn `units` with a new answer, among them of the `same`, `changed` and
        `blank` answers (a blank answer is a changed one unless the old answer was blank), and of `missing`
        units without a new answer. The `old`, the `new` and the `difference` (new − old) are estimated from
        the `labelled` units: each has an `estimate` (None unless `complete`), the `lowest` and `highest`
        estimate if every unknown outcome is the worst or the best, and a `confidence_interval` that contains
        those of both. The new outcome of `known` units is known; the ids of the others are in `needs_labels`
        and `needs_answers`. `warnings` exist if the new answers match almost no label.
    """

    described: JsonDict

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict."""
        return dict(self.described)

    def _page(self) -> Page:
        return new_version_page(self.described)


def new_version(
    sample: Sample,
    labels: object,
    answers: object,
    *,
    old_answers: object = None,
    new_labels: object = None,
    predicted: bool | str | None = None,
    combine: str = "mean",
    confidence_level: float = 0.95,
    interval: str = "auto",
    **options: Any,
) -> NewVersion:
    """Estimate a new version of the model, and its difference from the old one, from existing labels.

    Parameters
    ----------
    sample, labels, predicted, combine
        See `stratal.estimate`.
    answers : mapping of id to answer, Labels, Series, or array in the order of `sample.ids`
        Answers of the new version for the drawn units; other ids are ignored. A blank, None or NaN is a blank
        answer. The new outcome of a unit without an entry is unknown.
    old_answers : str, or as `answers`, optional
        The answers that were labelled: a column of the sample. Default: the column of the model's answers.
    new_labels : see `stratal.estimate`, optional
        Existing labels of changed answers; labels of units without an old label are ignored.
    confidence_level : float
    interval : str
        Method of the intervals of the old and the new version.
    **options
        As in `stratal.estimate`: `estimator`, `target`, `outcome`, `bounds`, `lam`, `calibration`, …

    Returns
    -------
    NewVersion

    Raises
    ------
    InputError
        For an unsupported option, an estimand that is not a mean, unknown old answers, and for an outcome
        without bounds if some new outcomes are unknown.
    LabelError
        If no drawn unit has a new answer, or a unit has several.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(
    ...     proxy=[0.6] * 40, groups={"answer": ["a", "b"] * 20}, predicted="answer")
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    >>> judged = {unit: 1.0 for unit in sample.ids.tolist()}
    >>> new = {unit: "a" for unit in range(40)}
    >>> result = new_version(sample, judged, new).to_dict()
    >>> result["complete"], result["known"] + len(result["needs_labels"])
    (False, 20)
    """
    for name in options:
        if name not in _ESTIMATE_OPTIONS:
            raise InputError(f"new_version does not accept {name}=", allowed=", ".join(_ESTIMATE_OPTIONS))
    labels = join_labels(sample, labels)
    answer_column = _compared_column(sample, labels, predicted, options.pop("estimand", None))
    predicted = False if answer_column is None else answer_column
    old_outcomes, _ = _outcomes_of_drawn(sample, labels, predicted, combine)
    old = estimate(sample, labels, predicted=predicted, combine=combine, estimand="mean", **options)
    old_texts = _old_answers(sample, old_answers, predicted)
    new_texts, answered = _answers(sample, answers)
    if not np.any(answered):
        problem = "the new version has no answer for any drawn unit"
        allowed = f"answers by the sample's ids, such as {id_texts(sample.ids)[0]!r}"
        raise LabelError(problem, allowed=allowed, action="Check that the ids are the same as in the sample.")
    is_same = answered & (old_texts == new_texts)
    warnings: list[str] = []
    if predicted:
        new_sample = with_new_answers(sample, new_texts)
        new_outcomes, notes = _outcomes_of_drawn(new_sample, labels, NEW_ANSWER, combine)
        warnings = warnings_among(notes)
    else:
        new_outcomes = np.where(is_same, old_outcomes, np.nan)
    if new_labels is not None:
        joined = join_labels(sample, new_labels)
        outcome = options.get("outcome")
        joined = check_label_codes(sample, joined, "new_labels", outcome=outcome, bounds=old.bounds)
        labelled_outcomes, _ = _outcomes_of_drawn(sample, joined, False, combine)
        new_outcomes = np.where(np.isfinite(labelled_outcomes), labelled_outcomes, new_outcomes)
    # All three estimates are of the same units: those whose old answer has a label. The new outcome is
    # unknown without a new answer, and for a changed answer without a label.
    labelled = np.isfinite(old_outcomes)
    new_outcomes[~answered | ~labelled] = np.nan
    unknown = labelled & np.isnan(new_outcomes)
    ids = np.array(id_texts(sample.ids))
    described: JsonDict = {
        "units": int(answered.sum()),
        "labelled": int(labelled.sum()),
        "missing": int((~answered).sum()),
        "same": int(is_same.sum()),
        "changed": int((answered & ~is_same).sum()),
        "blank": int((answered & (new_texts == "")).sum()),
        "known": int(np.isfinite(new_outcomes).sum()),
        "complete": not np.any(unknown),
        "compared": answer_column is not None,
        "bounds": None if old.bounds is None else list(old.bounds),
        "confidence_level": confidence_level,
    }
    described |= _estimates_of_versions(
        sample, old, old_outcomes, new_outcomes, unknown, (confidence_level, interval), options
    )
    described["needs_labels"] = [str(unit) for unit in ids[unknown & answered]]
    described["needs_answers"] = [str(unit) for unit in ids[unknown & ~answered]]
    if warnings:
        described["warnings"] = warnings
    return NewVersion(described=json_dict(described))


def with_new_answers(sample: Sample, answers: object) -> Sample:
    """Return the sample with the answers of a new version, with which labels are then compared.

    Parameters
    ----------
    sample : Sample
    answers : see `new_version`
        Answers to all labelled units.
    """
    texts, _ = _answers(sample, answers)
    column = dict(zip(id_texts(sample.ids), texts, strict=True))
    question = sample.question
    if question.answer is not None and question.answer in sample.groups:
        # Labels may be classes of the old answers that the new version never gives.
        classes = tuple(sorted(set(sample.groups[question.answer].tolist())))
        question = question.with_outcome(classes=classes)
    return replace(with_group(sample, NEW_ANSWER, column), question=replace(question, answer=NEW_ANSWER))


def _compared_column(
    sample: Sample, labels: object, predicted: bool | str | None, requested: EstimandLike
) -> str | None:
    """Return the column with which labels are compared; an estimand that is not a mean is an error."""
    estimand = as_estimand(requested or sample.question.estimand)
    if set(ACCURACY_OPTIONS) <= set(estimand.takes):
        return compared_column(sample, labels, predicted or estimand.compared or None)
    problem = "a new version can be compared only by its mean outcome"
    action = "Request the mean: estimand='mean' (--estimand mean)."
    raise InputError(
        problem, given=f"the estimand {estimand.text!r}", allowed="mean or accuracy", action=action
    )


def _outcomes_of_drawn(
    sample: Sample, labels: object, predicted: bool | str, combine: str
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the outcomes of the drawn units (n,), NaN without a label, and notes on them."""
    decoded = outcomes(sample, labels, predicted, combine)
    drawn_outcomes = np.full(sample.size, np.nan)
    drawn_outcomes[decoded.labelled] = decoded.z
    return drawn_outcomes, decoded.notes


def _answers(sample: Sample, answers: object) -> tuple[AnyArray, BoolArray]:
    """Return the answers to the drawn units (n,) as text, empty if blank, and which units have one (n,).

    A blank answer is an answer. A unit without an entry has none.
    """
    ids = id_texts(sample.ids)
    if isinstance(answers, Labels):
        pairs = list(zip(answers.ids, answers.values, strict=True))
    elif isinstance(answers, WithItems):
        pairs = list(answers.items())
    else:
        column = class_column(sample, answers, "answers of the new version")
        return _texts(column), np.ones(sample.size, bool)
    answered_ids: list[str] = []
    if pairs:
        answered_ids = id_texts(np.array([unit for unit, _ in pairs], dtype=object))
    drawn = set(ids)
    answer_of_unit = {}
    for unit, (_, value) in zip(answered_ids, pairs, strict=True):
        if unit in answer_of_unit:
            problem = f"unit {unit!r} has several answers of the new version"
            raise LabelError(problem, action="Give one answer for each unit.")
        if unit in drawn:
            answer_of_unit[unit] = value
    answered = np.array([unit in answer_of_unit for unit in ids], dtype=bool)
    return _texts([answer_of_unit.get(unit) for unit in ids]), answered


def _texts(values: Iterable[object]) -> AnyArray:
    """Return answers (n,) as text, empty where they are blank."""
    texts = []
    for value in values:
        is_blank = value is None or value != value or not str(value).strip()  # NaN differs from itself
        texts.append("" if is_blank else class_text(value))
    return np.array(texts, dtype=object)


def _old_answers(sample: Sample, old_answers: object, predicted: bool | str) -> AnyArray:
    """Return the labelled answers (n,) as text, None if unknown."""
    if old_answers is None:
        old_answers = predicted if isinstance(predicted, str) else sample.question.answer
    if old_answers is None:
        allowed = "old_answers=, or a sample drawn with the model's answers (--predicted COL)"
        raise InputError("the earlier answers of the model are unknown", allowed=allowed)
    if isinstance(old_answers, str):
        if old_answers in sample.shown:
            column = sample.shown[old_answers]
        else:
            column = class_column(sample, old_answers, "answers")
        return _texts(column)
    texts, has_answer = _answers(sample, old_answers)
    texts[~has_answer] = None
    return texts


def _estimates_of_versions(
    sample: Sample,
    old: Estimate,
    old_outcomes: FloatArray,
    new_outcomes: FloatArray,
    unknown: BoolArray,
    level: tuple[float, str],
    options: Keywords,
) -> JsonDict:
    """Return old, new and difference, with unknown new outcomes at the lower and at the upper bound.

    Outcomes and the mask `unknown` are of the drawn units (n,). `level` is the confidence level and the
    method of the intervals.
    """
    bounds = old.bounds
    if np.any(unknown) and bounds is None:
        problem = f"the new outcome of {int(unknown.sum())} units is unknown, and outcomes have no bounds"
        raise InputError(problem, action="Give bounds= (--bounds LOW,HIGH), or label the changed answers.")
    # The new version has the outcome scale of the old one, even if its labels happen to be 0 and 1.
    scale = {"outcome": old.outcome, "bounds": bounds if old.outcome == "bounded" else None}
    mean_options = options | scale | {"estimand": "mean"}
    # One pass if all outcomes are known, and otherwise one with the worst and one with the best.
    replacements: tuple[float, ...] = (np.nan,)
    if bounds is not None and np.any(unknown):
        replacements = bounds
    old_column = replace(join_labels(sample, old_outcomes), codes_checked=True)
    new_estimates = []
    differences = []
    for replacement in replacements:
        completed = np.where(unknown, replacement, new_outcomes)
        new_estimates.append(estimate(sample, completed, **mean_options))
        new_column = replace(join_labels(sample, completed), codes_checked=True)
        columns = {"new": new_column, "old": old_column}
        comparisons = compare(sample, columns, bounds=bounds, target=old.target)
        differences.append(comparisons[0])
    return {
        "old": _range_of_estimates([old], *level),
        "new": _range_of_estimates(new_estimates, *level),
        "difference": _range_of_estimates(differences, level[0]),
    }


def _range_of_estimates(estimates: list[Estimate], level: float, method: str = "auto") -> JsonDict:
    """Return an estimate, or its range from the worst to the best, with the interval that contains both."""
    values = [row.value for row in estimates]
    interval_of_worst = estimates[0].limits(level, method)
    interval_of_best = estimates[-1].limits(level, method)
    interval = None
    if interval_of_worst is not None and interval_of_best is not None:
        interval = [interval_of_worst[0], interval_of_best[1]]
    return {
        "estimate": values[0] if len(values) == 1 else None,
        "lowest": min(values),
        "highest": max(values),
        "confidence_interval": interval,
    }
