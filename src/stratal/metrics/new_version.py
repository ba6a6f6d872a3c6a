"""The labelled sample against a new version of the model: what is known anew, and what needs labels.

Labels that are classes judge any answer. Labels that judge the old answer (right or wrong, a grade) hold for
the new one where it is the same; where it changed, the outcome is unknown between its bounds until somebody
labels it.
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
from stratal.estimation.estimand import RIGHT_OPTIONS, EstimandLike, as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.resolve import class_column, compared_column, outcomes, with_group
from stratal.labels.label_values import class_text
from stratal.labels.labels import Labels, join_labels
from stratal.metrics.comparison import compare
from stratal.protocols import JsonDict, Keywords, WithItems
from stratal.randomness import id_texts
from stratal.report.notes import warnings_among
from stratal.report.sections import new_version_page
from stratal.report.text import Page, PageDisplay, json_dict

# The column of the new answers, in a sample that holds them in addition to the old ones.
NEW_ANSWER = "answer of the new version"
# Options of `estimate` that old and new version share, so that the old figure is the report's own.
_CHOICES = ("estimand", *(name for name in RIGHT_OPTIONS if name not in ("limits", "combine")))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NewVersion(PageDisplay):
    """The evidence of a labelled sample on a new version of the model.

    Parameters
    ----------
    described : dict
        Plain: drawn `units` with an answer of the new version, of these the `same`, the `changed` (a blank
        answer is one, where the old was none) and the `blank`; `missing` (drawn units that do not occur among
        the new answers). `labelled` units carry all three figures: `old`, `new` and `difference` (new less
        old), each with `estimate` (None unless `complete`), `lowest` and `highest` (what it is if every
        unknown outcome is the worst or the best) and a `confidence_interval` that holds for both. `known` of
        them have a known new outcome; the others are the ids that `needs_labels` and `needs_answers` list.
        `warnings` are there if the new answers match almost no label.
    """

    described: JsonDict

    def to_dict(self) -> JsonDict:
        """Return the JSON twin."""
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
    """Estimate how good a new version of the model is, and how much better, from labels that are there.

    Parameters
    ----------
    sample, labels, predicted, combine
        See `stratal.estimate`.
    answers : mapping of id to answer, Labels, Series, or array in the order of `sample.ids`
        Of the new version, for the drawn units; ids that were not drawn are left out. A blank, None or NaN is
        a blank answer; a unit that does not occur has no known new outcome.
    old_answers : str, or as `answers`, optional
        What the labels judged: a column of the sample; its column of the model's answers unless given.
    new_labels : see `stratal.estimate`, optional
        Labels of changed answers, as far as they are there; those of units without an old label are left out.
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
        For another option, an estimand that is not a mean, if the old answers are not known, and for an
        outcome without bounds whose new values are not all known.
    LabelError
        If no drawn unit has a new answer, or one has several.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(
    ...     proxy=[0.6] * 40, groups={"answer": ["a", "b"] * 20}, predicted="answer")
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    >>> judged = {unit: 1.0 for unit in sample.ids.tolist()}
    >>> new = {unit: "a" for unit in range(40)}
    >>> found = new_version(sample, judged, new).to_dict()
    >>> found["complete"], found["known"] + len(found["needs_labels"])
    (False, 20)
    """
    strange = [name for name in options if name not in _CHOICES]
    if strange:
        raise InputError(f"new_version takes no {strange[0]}=", allowed=", ".join(_CHOICES))
    labels = join_labels(sample, labels)
    compared = _compared(sample, labels, predicted, options.pop("estimand", None))
    predicted = False if compared is None else compared
    z, _ = _scattered(sample, labels, predicted, combine)
    old = estimate(sample, labels, predicted=predicted, combine=combine, estimand="mean", **options)
    before = _old_answers(sample, old_answers, predicted)
    after, answered = _answers(sample, answers)
    if not np.any(answered):
        problem = "no drawn unit has an answer of the new version"
        allowed = f"answers by the sample's ids, such as {id_texts(sample.ids)[0]!r}"
        raise LabelError(problem, allowed=allowed, action="Check that the ids are those of the sample.")
    same = answered & (before == after)
    warned: list[str] = []
    if predicted:
        new, notes = _scattered(with_new_answers(sample, after), labels, NEW_ANSWER, combine)
        warned = warnings_among(notes)
    else:
        new = np.where(same, z, np.nan)
    if new_labels is not None:
        observed, _ = _scattered(sample, new_labels, False, combine)
        new = np.where(np.isfinite(observed), observed, new)
    # Old, new and difference are of the same units: those whose old answer has a label. Where such a unit has
    # no new answer, its new outcome is as unknown as that of a changed answer without a label.
    labelled = np.isfinite(z)
    new[~answered | ~labelled] = np.nan
    unknown = labelled & np.isnan(new)
    ids = np.array(id_texts(sample.ids))
    return NewVersion(
        described=json_dict(
            {
                "units": int(answered.sum()),
                "labelled": int(labelled.sum()),
                "missing": int((~answered).sum()),
                "same": int(same.sum()),
                "changed": int((answered & ~same).sum()),
                "blank": int((answered & (after == "")).sum()),
                "known": int(np.isfinite(new).sum()),
                "complete": not np.any(unknown),
                "compared": compared is not None,
                "bounds": None if old.bounds is None else list(old.bounds),
                "confidence_level": confidence_level,
                **_figures(sample, old, (z, new), unknown, (confidence_level, interval), options),
                "needs_labels": [str(unit) for unit in ids[unknown & answered]],
                "needs_answers": [str(unit) for unit in ids[unknown & ~answered]],
                **({"warnings": warned} if warned else {}),
            }
        )
    )


def with_new_answers(sample: Sample, answers: object) -> Sample:
    """Return the sample with the answers of a new version, which labels are compared with from now on.

    Parameters
    ----------
    sample : Sample
    answers : see `new_version`
        Of every labelled unit.
    """
    after, _ = _answers(sample, answers)
    column = dict(zip(id_texts(sample.ids), after, strict=True))
    question = sample.question
    if question.answer is not None and question.answer in sample.groups:
        # The labels name the classes of the old answers, also where the new version never gives one.
        classes = tuple(sorted(set(sample.groups[question.answer].tolist())))
        question = question.with_outcome(classes=classes)
    return replace(with_group(sample, NEW_ANSWER, column), question=replace(question, answer=NEW_ANSWER))


def _compared(
    sample: Sample, labels: object, predicted: bool | str | None, requested: EstimandLike
) -> str | None:
    """Return the column that labels are compared with; refuse an estimand that is not a mean of outcomes."""
    question = as_estimand(requested or sample.question.estimand)
    if set(RIGHT_OPTIONS) <= set(question.takes):
        return compared_column(sample, labels, predicted or question.compared or None)
    problem = "a new version is compared by its mean outcome"
    action = "Ask for the mean: estimand='mean' (--estimand mean)."
    raise InputError(
        problem, given=f"the estimand {question.text!r}", allowed="mean or accuracy", action=action
    )


def _scattered(
    sample: Sample, labels: object, predicted: bool | str, combine: str
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return outcomes of the drawn units (n,), NaN where there is none, and notes on them."""
    observed = outcomes(sample, labels, predicted, combine)
    scattered = np.full(sample.size, np.nan)
    scattered[observed.labelled] = observed.z
    return scattered, observed.notes


def _answers(sample: Sample, answers: object) -> tuple[AnyArray, BoolArray]:
    """Return the answer to each drawn unit (n,) as text, empty where it is blank, and which have one (n,).

    A blank answer is an answer: the new version said nothing, where the old one may have been right. A unit
    that does not occur has none.
    """
    texts = id_texts(sample.ids)
    if isinstance(answers, Labels):
        pairs = list(zip(answers.ids, answers.values, strict=True))
    elif isinstance(answers, WithItems):
        pairs = list(answers.items())
    else:
        return _texts(class_column(sample, answers, "answers of the new version")), np.ones(sample.size, bool)
    if pairs:
        names = id_texts(np.array([name for name, _ in pairs], dtype=object))
    else:
        names = []
    drawn = set(texts)
    answer_of_unit = {}
    for name, (_, value) in zip(names, pairs, strict=True):
        if name in answer_of_unit:
            problem = f"unit {name!r} has several answers of the new version"
            raise LabelError(problem, action="Give one answer for each unit.")
        if name in drawn:
            answer_of_unit[name] = value
    answered = np.array([name in answer_of_unit for name in texts], dtype=bool)
    return _texts([answer_of_unit.get(name) for name in texts]), answered


def _texts(values: Iterable[object]) -> AnyArray:
    """Return answers (n,) as text, empty where they are blank."""
    blank = (value is None or value != value or not str(value).strip() for value in values)
    texts = ["" if none else class_text(value) for none, value in zip(blank, values, strict=True)]
    return np.array(texts, dtype=object)


def _old_answers(sample: Sample, old_answers: object, predicted: bool | str) -> AnyArray:
    """Return what was judged (n,) as text, None where it is not known."""
    if old_answers is None:
        if isinstance(predicted, str):
            old_answers = predicted
        else:
            old_answers = sample.question.answer
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


def _figures(
    sample: Sample,
    old: Estimate,
    z: tuple[FloatArray, FloatArray],
    unknown: BoolArray,
    level: tuple[float, str],
    options: Keywords,
) -> JsonDict:
    """Return old, new and difference, with unknown new outcomes at their worst and at their best.

    `level` has the method of the intervals too.
    """
    before, after = z
    bounds = old.bounds
    if np.any(unknown) and bounds is None:
        problem = f"{int(unknown.sum())} units have no known new outcome, and what it can be has no bounds"
        raise InputError(problem, action="Give bounds= (--bounds LOW,HIGH), or label the changed answers.")
    same = {"outcome": old.outcome, "bounds": bounds if old.outcome == "bounded" else None}
    worst_and_best: tuple[float, ...] = (np.nan,)
    if bounds is not None and np.any(unknown):
        worst_and_best = bounds
    outcomes_at_ends = [np.where(unknown, end, after) for end in worst_and_best]
    news = [
        estimate(sample, outcomes, **options | same | {"estimand": "mean"}) for outcomes in outcomes_at_ends
    ]
    rows = [
        compare(sample, {"new": outcomes, "old": before}, bounds=bounds, target=old.target)[0]
        for outcomes in outcomes_at_ends
    ]
    return {
        "old": _spanned([old], *level),
        "new": _spanned(news, *level),
        "difference": _spanned(rows, level[0]),
    }


def _spanned(estimates: list[Estimate], level: float, method: str = "auto") -> JsonDict:
    """Return what is known of a figure from its estimate at worst and at best."""
    values = [row.value for row in estimates]
    ends = [row.limits(level, method) for row in estimates]
    low = ends[0]
    high = ends[-1]
    return {
        "estimate": values[0] if len(values) == 1 else None,
        "lowest": min(values),
        "highest": max(values),
        "confidence_interval": None if low is None or high is None else [low[0], high[1]],
    }
