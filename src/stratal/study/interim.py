"""Interim estimates of a study, the half-width at which labelling ends, and further rounds."""

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
from stratal.study.creating import insert_round, require_next_round
from stratal.study.current_labels import completion_order, current_labels
from stratal.study.journal import append_setting
from stratal.study.study import Study, anytime_interval, estimate_options, sample_for_column, update_stopping

# Number of label counts in the course of an estimate, which shows how it changed. Each requires one estimate.
_COURSE_POINTS = 8

# Factor by which the estimated number of units for the requested half-width is increased in a further round,
# because the estimate is uncertain. Labelling ends as soon as the interval is narrow enough.
UNITS_MARGIN = 1.5


def estimate_study(study: Study, column: str | None = None, **options: Any) -> Estimate:
    """Return the estimate from the current labels of a study.

    Parameters
    ----------
    study : Study
    column : str, optional
        Name of the outcome. Default: that of the first question.
    **options
        As for `stratal.estimate`. Default of bounds and estimand: those that the question implies.

    Raises
    ------
    LabelError
        If there is no label, or if labels are classes and the sample has no answers of the model.
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
    """Return the number of the last planned interim analysis (look) that is due, and its estimate.

    None before the first analysis, and if none is planned.

    Analysis k of K uses the first k / K of the items in the order in which they were answered or skipped.
    With several rounds, it uses all items up to the end of round k. Later answers do not change it.
    """
    sample = sample_for_column(study)
    if sample.looks is None:
        return None
    planned = PlannedLooks.parse(sample.looks)
    with study.verified() as connection:
        rows, _ = completion_order(connection, sample)
        labels = current_labels(connection, study.form, str(study.folder))
    if sample.round.max(initial=1) > 1:
        item_counts = np.cumsum(np.bincount(sample.round)[1:])[: planned.number]
    else:
        looks = np.arange(1, planned.number + 1)
        item_counts = np.ceil(looks * sample.size / planned.number).astype(np.int64)
    # Number of the last analysis for which enough items are finished.
    look = int(np.searchsorted(item_counts, len(rows), "right"))
    if look == 0:
        return None
    labels_of_look = _labels_of_units(labels, sample, rows[: item_counts[look - 1]])
    look_estimate = estimate(sample, labels_of_look, look=look, **estimate_options(study))
    return {"look": look, "of": planned.number, "estimate": look_estimate.to_dict(confidence_level)}


def _labels_of_units(labels: Labels, sample: Sample, rows: IntArray) -> Labels:
    """Return the labels of the units in these rows (m,) of the sample."""
    ids = set(id_texts(sample.ids[rows]))
    return labels.only([row for row, unit in enumerate(labels.ids) if unit in ids])


def estimate_course(study: Study, confidence_level: float = 0.95) -> list[JsonDict]:
    """Return the estimate and its interval after increasing numbers of items, the last of them all items.

    The order of the items is that in which they were answered or skipped. Each interval is valid if labelling
    stops at this number.
    """
    sample = sample_for_column(study)
    with study.verified() as connection:
        rows, _ = completion_order(connection, sample)
        labels = current_labels(connection, study.form, str(study.folder))
    course: list[JsonDict] = []
    for count in np.unique(np.linspace(0, len(rows), _COURSE_POINTS + 1).astype(np.int64))[1:].tolist():
        first_labels = _labels_of_units(labels, sample, rows[:count])
        try:
            result = estimate(sample, first_labels, **estimate_options(study)).to_dict(confidence_level)
        except StratalError:
            # The first labels may all agree, which leaves an outcome without bounds without an interval.
            continue
        # An estimate contains its number of labels only if it differs from the number of drawn units.
        point = {"labels": result.get("labels", result["n"])}
        point |= {name: result[name] for name in ("estimate", "confidence_interval")}
        course.append(point)
    return course


def expected_course(study: Study, interim: Estimate, confidence_level: float = 0.95) -> list[JsonDict]:
    """Return the expected half-width for increasing numbers of further labels, one dict for each."""
    sample = sample_for_column(study)
    return more_labels_of(sample, study.labels(), interim, confidence_level, **estimate_options(study))


def set_half_width(study: Study, half_width: float | None) -> bool:
    """Set or remove (None) the half-width at which labelling ends; return whether it is reached already."""
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
    """Extend the sample of a study by a further round, and add its items to the study.

    Parameters
    ----------
    study : Study
    additional : int
        Number of units to add.
    population : Population
        The population from which the sample was drawn.
    by_labels : bool, optional
        Whether the current labels determine the allocation of the units to strata (`stratal.next_round`).
        This increases the precision most, with a small bias of the estimate. Otherwise, the design is
        unchanged and only its budget increases. Default: true for simple random and stratified designs with
        labels.

    Returns
    -------
    Sample
        The sample with all rounds.

    Raises
    ------
    InputError
        For another population, and for a design that cannot be extended.
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
    extended_sample = next_round(
        sample, *previous_labels, additional=additional, population=population, **options
    )
    add_round(study, extended_sample)
    return extended_sample


def current_selection(
    study: Study, population: Population, additional: int | None = None
) -> Selection | None:
    """Return the selection of a model with the current labels and the next round; None for other designs."""
    sample = study.sample()
    if not isinstance(sample.design, Disagreements):
        return None
    return Selection.resume(sample, population).update(study.labels(), additional)


def units_needed(study: Study) -> int:
    """Return the number of additional units for the requested half-width of the interval.

    The half-width of the anytime-valid interval is about proportional to 1/√n, and decreases more slowly over
    several rounds. The number is therefore increased by the factor `UNITS_MARGIN`. This costs no labels,
    because labelling ends as soon as the interval is narrow enough.

    Raises
    ------
    InputError
        If no half-width was requested, and for designs without an anytime-valid interval.
    LabelError
        If there is no label.
    """
    sample = study.sample()
    requested_half_width = study.setting("half_width")
    if isinstance(sample.design, Disagreements):
        return default_round_size(sample.size)
    if not requested_half_width:
        problem = "this study has no target half-width"
        raise InputError(problem, allowed="--additional N, or --until WIDTH first")
    if study.setting("enough") == "yes":
        return 0
    ratio = anytime_interval(study).width / 2 / float(requested_half_width)
    total = math.ceil(UNITS_MARGIN * sample.size * max(ratio, 1.0) ** 2)
    return min(total, sample.population_size) - sample.size


def add_round(study: Study, extended_sample: Sample) -> int:
    """Add the new round of a sample that extends the study's sample; return the number of new items.

    Raises
    ------
    InputError
        If it is not the same draw: another seed, or missing units.
    """
    number = last_round(extended_sample)
    with study.transaction() as connection:
        # If two commands draw at the same time, the second one gets an error here. A sample with only one
        # round is not a further round of any study: the next line compares the draws.
        if number > 1:
            require_next_round(connection, number)
        require_same_draw(study.sample(), extended_sample)
        item_count = insert_round(connection, study.folder, extended_sample, number)
        connection.save_settings(enough="no", next_look="0")
    return item_count
