"""Interim estimates of a study, the width at which labelling ends, and further rounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stratal.arrays import IntArray
from stratal.designs import Disagreements, Sample
from stratal.designs.extending import last_round, require_same_draw
from stratal.errors import InputError, StratalError, not_positive_error
from stratal.estimation.entry_points import estimate
from stratal.estimation.estimand import as_estimand
from stratal.estimation.estimate import Estimate
from stratal.intervals.looks import PlannedLooks
from stratal.labels.labels import Labels
from stratal.planning import next_round
from stratal.planning.findings import more_labels_of
from stratal.planning.selection import Selection, default_round_size
from stratal.population.population import Population
from stratal.protocols import JsonDict, Keywords
from stratal.randomness import id_texts
from stratal.study.creating import add_items, require_next_round
from stratal.study.current_labels import completion_order, present_labels
from stratal.study.journal import append_setting
from stratal.study.study import Study, anytime_interval, estimate_options, sample_for_column, update_stopping

# Numbers of labels for which the course of an estimate is computed. Each takes one estimate.
_COURSE_POINTS = 8

# A further round draws so many times as many units as the interval seems to need, because its width is
# uncertain; labelling ends as soon as the interval is narrow enough.
UNITS_MARGIN = 1.5


def estimate_study(study: Study, column: str | None = None, **options: Any) -> Estimate:
    """Estimate from the present labels of a study.

    Parameters
    ----------
    study : Study
    column : str, optional
        Which of several questions, by its name; the first unless given.
    **options
        As of `stratal.estimate`; bounds and classes are known from the question unless given.

    Raises
    ------
    LabelError
        If there is no label yet, or labels are classes and the sample holds no model's answers.
    """
    sample = sample_for_column(study, column)
    options = {**estimate_options(study, column), **options}
    estimand = as_estimand(options.get("estimand") or sample.question.estimand)
    columns = estimand.label_columns(sample)
    labels: Labels | dict[str, Labels]
    if columns:
        labels = {name: study.labels(name) for name in columns}
    else:
        labels = study.labels(column)
    study_estimate: Estimate = estimate(sample, labels, **options)
    return study_estimate


def planned_look(study: Study, confidence_level: float = 0.95) -> JsonDict | None:
    """Return the last planned look that is due, with its estimate and interval; None before the first.

    Look k uses the first k / K of the items in the order in which they were answered or skipped; with several
    rounds, all items up to the end of round k. Later answers do not change it.
    """
    sample = sample_for_column(study)
    assert sample.looks is not None
    planned = PlannedLooks.parse(sample.looks)
    with study.verified() as connection:
        rows, _ = completion_order(connection, sample)
        labels = present_labels(connection, study.form, str(study.folder))
    if sample.round.max(initial=1) > 1:
        ends = np.cumsum(np.bincount(sample.round)[1:])[: planned.number]
    else:
        ends = np.ceil(np.arange(1, planned.number + 1) * sample.size / planned.number).astype(np.int64)
    due = int(np.searchsorted(ends, len(rows), "right"))
    if due == 0:
        return None
    labels_of_look = _labels_of_units(labels, sample, rows[: ends[due - 1]])
    look_estimate = estimate(sample, labels_of_look, look=due, **estimate_options(study))
    return {"look": due, "of": planned.number, "estimate": look_estimate.to_dict(confidence_level)}


def _labels_of_units(labels: Labels, sample: Sample, rows: IntArray) -> Labels:
    """Return the labels of the units in some rows (m,) of the sample."""
    ids = set(id_texts(sample.ids[rows]))
    return labels.only([row for row, unit in enumerate(labels.ids) if unit in ids])


def estimate_course(study: Study, confidence_level: float = 0.95) -> list[JsonDict]:
    """Return the estimate and its interval after some numbers of labels, the last of them the present one.

    Items count in the order in which they were finished. Each interval is that of labelling that stops there.
    """
    sample = sample_for_column(study)
    with study.verified() as connection:
        rows, _ = completion_order(connection, sample)
        labels = present_labels(connection, study.form, str(study.folder))
    course: list[JsonDict] = []
    for count in np.unique(np.linspace(0, len(rows), _COURSE_POINTS + 1).astype(np.int64))[1:].tolist():
        first_labels = _labels_of_units(labels, sample, rows[:count])
        try:
            described = estimate(sample, first_labels, **estimate_options(study)).to_dict(confidence_level)
        except StratalError:
            # The first labels may all agree, which leaves an outcome without bounds without an interval.
            continue
        names = ("estimate", "confidence_interval")
        labels_used = {"labels": described.get("labels", described["n"])}
        course.append(labels_used | {name: described[name] for name in names})
    return course


def expected_course(study: Study, interim: Estimate, confidence_level: float = 0.95) -> list[JsonDict]:
    """Return the half-widths that further labels are expected to give, by their number."""
    sample = sample_for_column(study)
    return more_labels_of(sample, study.labels(), interim, confidence_level, **estimate_options(study))


def set_half_width(study: Study, half_width: float | None) -> bool:
    """Set the half-width at which labelling ends, or none; return whether it is reached already."""
    text = half_width_setting(half_width)
    with study.transaction() as connection:
        connection.save_settings(half_width=text, enough="no", next_look="0")
        append_setting(connection, "half_width", text)
    return update_stopping(study)


def half_width_setting(half_width: float | None) -> str:
    """Return a half-width as text for the study's settings, empty for none."""
    if half_width is None:
        return ""
    if not (isinstance(half_width, int | float) and math.isfinite(half_width) and half_width > 0):
        raise not_positive_error("half_width", half_width)
    return repr(float(half_width))


def extend_study(
    study: Study, additional: int, *, population: Population, by_labels: bool | None = None
) -> Sample:
    """Draw more items of the same draw, and give them to the annotators.

    Parameters
    ----------
    study : Study
    additional : int
        Units to add.
    population : Population
        The one that the sample was drawn from.
    by_labels : bool, optional
        Whether the labels so far say which strata get them (`stratal.next_round`), which helps most but
        biases the estimate a little; if not, the design stays as it is and only its budget grows. By labels
        by default, where the design is simple random or stratified and there are labels.

    Returns
    -------
    Sample
        With all rounds.

    Raises
    ------
    InputError
        For a population that is not the sample's, and a design that cannot be extended.
    BudgetError
        If fewer units are left.
    """
    sample = study.sample()
    labels = study.labels()
    selection = current_selection(study, population, additional)
    if selection is not None:
        if not selection.done:
            add_round(study, selection.sample)
        return selection.sample
    if by_labels is None:
        by_labels = sample.design.allows_label_based_rounds and labels.answered > 0
    previous_labels: tuple[Labels, ...] = ()
    options: Keywords = {}
    if by_labels:
        previous_labels = (labels,)
        compares = sample_for_column(study).question.compares
        options = estimate_options(study) | {"predicted": compares}
    larger = next_round(sample, *previous_labels, additional=additional, population=population, **options)
    add_round(study, larger)
    return larger


def current_selection(
    study: Study, population: Population, additional: int | None = None
) -> Selection | None:
    """Return the comparison of models by the labels so far and the next round; None without such a design."""
    sample = study.sample()
    if not isinstance(sample.design, Disagreements):
        return None
    return Selection.resume(sample, population).update(study.labels(), additional)


def units_needed(study: Study) -> int:
    """Return how many more units the study needs until its interval is as narrow as requested.

    The anytime-valid interval narrows about as 1/√n, more slowly over several rounds. Half as many units
    again are drawn, which costs no label, because labelling ends as soon as the interval is narrow enough.

    Raises
    ------
    InputError
        If no half-width was asked for, and for designs that have no such interval.
    LabelError
        If there is no label yet.
    """
    sample = study.sample()
    requested_width = study.setting("half_width")
    if isinstance(sample.design, Disagreements):
        return default_round_size(sample.size)
    if not requested_width:
        problem = "this study has no target half-width"
        raise InputError(problem, allowed="--additional N, or --until WIDTH first")
    if study.setting("enough") == "yes":
        return 0
    ratio = anytime_interval(study).width / 2 / float(requested_width)
    total = math.ceil(UNITS_MARGIN * sample.size * max(ratio, 1.0) ** 2)
    return min(total, sample.population_size) - sample.size


def add_round(study: Study, larger: Sample) -> int:
    """Add the new round of a sample that extends the study's sample; return how many items are new.

    Raises
    ------
    InputError
        If it is another draw: another seed, or units that are no longer there.
    """
    number = last_round(larger)
    with study.transaction() as connection:
        # Two commands may draw at the same time: the second one then gets an error that says so.
        if number > 1:
            require_next_round(connection, number)
        require_same_draw(study.sample(), larger)
        added = add_items(connection, study.folder, larger, number)
        connection.save_settings(enough="no", next_look="0")
    return added
