"""More items for a study: another round, or a larger budget, of the same draw."""

from __future__ import annotations

import math

from stratal.designs import Disagreements, Sample
from stratal.designs.extending import last_round, require_same_draw
from stratal.errors import InputError
from stratal.planning import next_round
from stratal.planning.selection import Selection, usual_round
from stratal.population.population import Population
from stratal.study.creating import add_items
from stratal.study.study import Study, anytime_interval, estimate_options

MORE = 1.5
"""Times as many units as the interval seems to need."""


def grow(study: Study, additional: int, *, population: Population, by_labels: bool | None = None) -> Sample:
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
    sample, labels = study.sample(), study.labels()
    selection = selection_so_far(study, population, additional)
    if selection is not None:
        if not selection.done:
            add_round(study, selection.sample)
        return selection.sample
    if by_labels is None:
        by_labels = sample.design.rounds_by_labels and labels.answered > 0
    if not by_labels:
        larger = next_round(sample, additional=additional, population=population)
    else:
        options = estimate_options(study, sample)
        larger = next_round(sample, labels, additional=additional, population=population, **options)
    add_round(study, larger)
    return larger


def selection_so_far(study: Study, population: Population, additional: int | None = None) -> Selection | None:
    """Return how models stand by the labels so far, with the next round; None where no model is selected."""
    sample = study.sample()
    if not isinstance(sample.design, Disagreements):
        return None
    return Selection.resume(sample, population).update(study.labels(), additional)


def units_needed(study: Study) -> int:
    """Return how many more units the study needs until its interval is as narrow as was asked for.

    The interval that holds at every moment narrows about as 1/√n, more slowly over several rounds; half as
    many again are drawn, which costs no label, since labelling ends as soon as it is narrow enough.

    Raises
    ------
    InputError
        If no half-width was asked for, and for designs that have no such interval.
    LabelError
        If there is no label yet.
    """
    sample, wanted = study.sample(), study.setting("half_width")
    if isinstance(sample.design, Disagreements):
        return usual_round(sample.size)
    if not wanted:
        what = "this study has no half-width to extend it to"
        raise InputError(what, allowed="--additional N, or --until WIDTH first")
    if study.setting("enough") == "yes":
        return 0
    ratio = anytime_interval(study).width / 2 / float(wanted)
    total = math.ceil(MORE * sample.size * max(ratio, 1.0) ** 2)
    return min(total, sample.population_size) - sample.size


def add_round(study: Study, larger: Sample) -> int:
    """Add a sample that extends the study's own; return how many items are new.

    Raises
    ------
    InputError
        If it is another draw: another seed, or units that are no longer there.
    """
    sample = study.sample()
    require_same_draw(sample, larger)
    number, before = last_round(larger), last_round(sample)
    if number != before + 1:
        raise InputError("rounds are numbered without gaps", given=f"round {number}", allowed=str(before + 1))
    with study.saving() as connection:
        added = add_items(connection, study.folder, larger, number)
        connection.keep(enough="no", next_look="0")
    return added
