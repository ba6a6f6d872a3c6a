"""Options that describe how a sample is drawn from a file: those of `draw`, `study new` and a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import structs

import stratal
from stratal.cli.command import Option, options_of
from stratal.cli.conditions import Condition, ValueCondition, with_any
from stratal.cli.options import Planning, Reading, Seed, Text
from stratal.cli.output import show_progress
from stratal.cli.parsing import join_names, parse_pair
from stratal.errors import InputError, warn_caller
from stratal.names import split_names

if TYPE_CHECKING:
    from stratal import Sample
    from stratal.question import Question


DESIGNS = "auto, simple-random, stratified, poisson, proportional-to-size, systematic, clusters, successive"

# Conditions of planning options in commands that draw a sample. A key lists fields separated by spaces.
DRAW_NEEDS: dict[str, Condition] = {
    "half_width": with_any(design=("auto", "stratified", "simple-random")),
    "strata stratify by allocation minimum previous": with_any(design=("auto", "stratified")),
    "residual_sd": with_any("half_width", design=("auto", "stratified")),
    "stratify": ValueCondition(
        "other than k-means if --estimand is given, because its strata are cut by neyman",
        lambda values: values["estimand"] in (None, "mean") or values["stratify"] != "k-means",
    ),
    "confidence_level": with_any("half_width"),
}


class SharedDrawOptions(Planning, frozen=True, kw_only=True):
    """Options that describe how a sample is drawn from a file.

    Parameters
    ----------
    cluster : str
        Column of the clusters, for --design clusters.
    """

    seed: Seed = 0
    design: Annotated[
        str,
        Option(
            f"Design: {DESIGNS}; auto chooses the recommended one. Poisson and proportional-to-size take a "
            "size measure after a colon: sqrt-variance (default), equal or a column."
        ),
    ] = "auto"
    cluster: Annotated[Text, Option(needs=(with_any(design=("clusters",)),))] = None

    def sample(self) -> tuple[Sample, dict[str, str]]:
        """Draw the first round; with --half-width, a pilot, whose labels determine the sample size.

        The texts give the reason for the size of a `pilot`, and how labels of `previous` waves are used.
        """
        if self.design not in ("auto", "simple-random", "stratified"):
            return _draw_other_design(self), {}
        is_pilot = self.half_width is not None
        plan = self.plan(pilot=is_pilot)
        # A draw does not print the notes of its plan.
        for warning in plan.score_warnings:
            warn_caller(warning)
        with show_progress("drawing"):
            sample = plan.using(None if self.design == "auto" else self.design).draw(self.seed)
        texts = {}
        if is_pilot:
            # A plan appends the reason for the size of its pilot as its last note.
            texts["pilot"] = plan.notes[-1]
        if plan.previous is not None:
            texts["previous"] = plan.previous
        return sample, texts

    def with_declarations(self, question: Question) -> Question:
        """Return the question with the options about labels: scale, bounds, values, models and target."""
        if self.outcome is not None or self.bounds is not None:
            scale = self.outcome or "bounded"
            bounds = parse_pair("--bounds", self.bounds)
            question = question.with_outcome(scale=scale, bounds=bounds)
        values = {name: value for name, value in self.label_values.items() if value is not None}
        models = split_names(self.compare)
        if len(models) == 1:
            action = "Name the columns with their outcomes: --compare MODEL_A,MODEL_B."
            raise InputError("a comparison requires two models", given=models[0], action=action)
        question = question.refine(models=models, target=self.target)
        return question.with_outcome(**values)


def _draw_other_design(requested: SharedDrawOptions) -> Sample:
    """Return a sample of a design other than simple random and stratified sampling."""
    name, colon, size_measure = requested.design.partition(":")
    size_measure = size_measure or "sqrt-variance"
    design_class = stratal.designs.Design.class_of_kind(name)
    if design_class is None or (colon and name not in ("poisson", "proportional-to-size")):
        raise InputError("unknown design", given=repr(requested.design), allowed=DESIGNS)
    reading = options_of(Reading, requested)
    budget = requested.budget
    if budget is None:
        raise InputError(f"--design {name} needs --budget", action="Add --budget N, the number of labels.")
    if requested.cluster is not None:
        reading = structs.replace(reading, groups=join_names(*reading.group_names, requested.cluster))
    # Another size measure is a column.
    if size_measure not in ("equal", "sqrt-variance"):
        reading = structs.replace(reading, features=join_names(*split_names(reading.features), size_measure))
    with show_progress("drawing"):
        design = design_class.from_options(budget, size_measure, requested.cluster)
        sample: Sample = design.draw(reading.population(), requested.seed)
    return sample
