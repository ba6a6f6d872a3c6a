"""`stratal plan`: the expected precision of a labelling budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

import stratal
from stratal.cli.command import Option, argument, command, command_words, options_of, selected_fields
from stratal.cli.conditions import with_any, without_all
from stratal.cli.draw_options import SharedDrawOptions
from stratal.cli.options import Number, Planning, Reading, Text, Whole
from stratal.cli.output import Result, new_folder_name
from stratal.cli.parsing import parse_path
from stratal.cli.plan_file import PlanFile, planned_question
from stratal.cli.reading_again import connection_words
from stratal.cli.select import SelectOptions, answers_as_groups
from stratal.errors import InputError
from stratal.names import split_names
from stratal.protocols import Keywords

if TYPE_CHECKING:
    from stratal import Plan


# Options that have an effect only without a file, with and without a file, and only without --select.
_FIELDS_WITHOUT_FILE = "population_size rate equal_answers sensitivity specificity"
_FIELDS_OF_BOTH = """file detect power budget half_width confidence_level details value calibrate_by
    indifference"""
_FIELDS_WITHOUT_SELECT = """proxy predicts groups by features predicted margin softmax missing label history
    half_width detect labels previous looks strata stratify allocation minimum assume outcome bounds output"""


class PlanOptions(Planning, frozen=True, kw_only=True):
    """The options of `plan`, with a file or with the number of units only.

    Parameters
    ----------
    population_size : int
        Number of units, for a plan without a file.
    rate : float
        Expected share of correct answers, for a plan without a file.
    detect : float
        Difference to detect: between two models (with a file: --estimand difference:A,B), between two
        versions, or between kappa and a limit.
    sensitivity : float
        Share of units with outcome 1 that a judge also rates 1, for a plan without a file.
    specificity : float
        Share of units with outcome 0 that a judge also rates 0, for a plan without a file.
    equal_answers : float, default computed for independent errors
        Share of items on which both models give the same answer, for --detect without a file.
    power : float
        Power: the probability of detecting the difference in --detect.
    labels : paths
        Existing labels on which the forecast is based: labels of an earlier sample of FILE, or a table of
        other units with a column of the proxy; may be repeated.
    value : COL,…, default label
        Label column in --labels, or one per annotator.
    calibrate_by : COL
        Recalibrate the proxy with --labels within each category of this column.
    output : FILE
        File for the plan, such as plan.json, which `draw` reads.
    details : bool
        Also print the designs, the strata and all notes.
    select : bool
        Compute the number of labels that `stratal select` requires to find the best of the models in
        --answers.
    indifference : float
        Indifference margin: the largest accepted difference from the best model.
    """

    file: Annotated[
        Path, argument("FILE", "File of predictions; leave it out with --population-size.", parser=parse_path)
    ] = None  # type: ignore[assignment]
    population_size: Whole = None
    rate: float = 0.5
    detect: Annotated[Number, Option(needs=(without_all("budget", "half_width"),))] = None
    sensitivity: Annotated[Number, Option(needs=(with_any("specificity"), without_all("detect")))] = None
    specificity: Annotated[Number, Option(needs=(with_any("sensitivity"), without_all("detect")))] = None
    equal_answers: Annotated[Number, Option(needs=(with_any("detect"),))] = None
    power: Annotated[float, Option(needs=(with_any("detect"),))] = 0.8
    labels: list[Path] | None = None
    value: Annotated[Text, Option(needs=(with_any("labels"),))] = None
    calibrate_by: Annotated[Text, Option(needs=(with_any("labels"),))] = None
    output: Path | None = None
    details: bool = False
    select: Annotated[bool, Option(needs=(with_any("answers"),))] = False
    indifference: Annotated[float, Option(needs=(with_any("select"),))] = 0.01


_FIELDS_WITH_FILE = " ".join(
    name
    for name in PlanOptions.__struct_fields__
    if name not in f"{_FIELDS_WITHOUT_FILE} {_FIELDS_OF_BOTH}".split()
)


# Assumptions of a plan.
_FORECAST_FOR_THESE_UNITS = (
    "The forecast is for the mean of these units. The interval for the superpopulation is wider: it also "
    "covers the sampling error of the units themselves."
)
_FORECAST_FOR_ONE_MODEL = (
    "The forecast is for the mean of one model; a difference between two models may be less precise."
)


@command(
    PlanOptions,
    without="show",
    needs={
        _FIELDS_WITH_FILE: with_any("file"),
        _FIELDS_WITHOUT_FILE: without_all("file"),
        _FIELDS_WITHOUT_SELECT: without_all("select"),
    },
)
def plan(requested: PlanOptions) -> Result:
    """Compute the expected precision for a labelling budget.

    Compares designs and estimators by their expected standard error, recommends a design, and shows how many
    units of each stratum would be labelled. With --half-width, it computes the budget instead; the default is
    a budget that suffices even for a poor proxy (--assume). A pilot requires fewer labels: see `stratal draw
    --half-width`.

    With --labels of an earlier sample or a pilot, the forecast uses the measured quality of the proxy.
    """
    if requested.file is None:
        return _plan_without_file(requested)
    if requested.select:
        return _labels_for_selection(requested)
    return _plan_with_file(requested)


def _plan_without_file(requested: PlanOptions) -> Result:
    """Return the result for a number of units, or for a difference to detect."""
    from stratal.planning import plan_to_detect
    from stratal.planning.entry_points import plan_for_rate
    from stratal.report.pages import detection_page, plan_page

    if requested.detect is not None:
        options = selected_fields(
            requested, "population_size", "rate", "equal_answers", "power", "confidence_level"
        )
        return Result(plan_to_detect(requested.detect, **options), detection_page)
    size = requested.population_size
    if size is None:
        usage = "FILE --budget N, --population-size N --rate R --budget N, or --detect D --rate R"
        raise InputError("no population is given to plan for", allowed=usage)
    options = selected_fields(
        requested, "budget", "half_width", "confidence_level", "sensitivity", "specificity"
    )
    described = plan_for_rate(size, requested.rate, **options).to_dict()
    return Result(described, partial(plan_page, details=requested.details))


def _plan_with_file(requested: PlanOptions) -> Result:
    """Return the plan for a file, and the command that draws its sample."""
    from stratal.planning.power import width_to_detect
    from stratal.report.pages import plan_page
    from stratal.report.text import Page

    if requested.detect is not None:
        half_width = width_to_detect(requested.detect, requested.power, requested.confidence_level)
        # The next command must contain exactly the half-width of this plan.
        requested = structs.replace(requested, half_width=float(f"{half_width:.4g}"))
    # Categories with separate calibrations are strata.
    requested = structs.replace(requested, by=requested.by or requested.calibrate_by)
    plan = requested.plan(**_label_keywords(requested))
    if requested.target == "superpopulation":
        plan = replace(plan, assumptions=(*plan.assumptions, _FORECAST_FOR_THESE_UNITS))
    if requested.compare:
        plan = replace(plan, assumptions=(*plan.assumptions, _FORECAST_FOR_ONE_MODEL))
    draw_options = _draw_options(requested, plan)
    if plan.population is not None:
        # Columns that the draw would not accept are an error of the plan already.
        planned_question(plan.population, draw_options)
    next_command = ["draw", *command_words(draw_options)]
    output_lines = []
    if requested.output is not None:
        _write_plan(requested.output, draw_options, plan)
        next_command = ["draw", str(requested.output), *connection_words(requested)]
        output_lines = ["", f"Plan: {requested.output}"]
    shown_columns = requested.content_columns
    if shown_columns:
        next_command += ["--show", ",".join(shown_columns)]
    next_command += ["--seed", "7", "--output", new_folder_name("audit")]
    remarks = []
    if plan.half_width is not None and plan.budget == plan.population_size:
        remarks.append("This half-width is reached only if all units are labelled.")
    remarks += _metrics_remarks(shown_columns)
    # After the JSON object, the parts of the text in their order: the last is the next command.
    return Result(
        plan.to_dict(),
        _detection_text(requested, plan),
        partial(plan_page, details=requested.details),
        Page(lines=remarks),
        output_lines,
        tuple(next_command),
    )


def _detection_text(requested: PlanOptions, plan: Plan) -> str | None:
    """Return the power for the difference in --detect; None without this option."""
    from stratal.report.text import width_text

    if requested.detect is None or not isinstance(requested.half_width, float):
        return None
    difference = width_text(requested.detect, plan.is_share)
    width = width_text(2 * requested.half_width, plan.is_share)
    return (
        f"A difference of {difference} is detected with {100 * requested.power:g}% power if the interval is "
        f"{width} wide."
    )


def _metrics_remarks(content: Sequence[str]) -> list[str]:
    """Return a remark on metrics of classes, if a column of `content` shows the model's answer."""
    from stratal.question.content import is_answer_name

    answer_columns = [name for name in content if is_answer_name(name)]
    if not answer_columns:
        return []
    return [
        "Annotators judge whether the answer is right. Precision, recall and F1 require labels that name "
        f"the class: for these, plan with --predicted {answer_columns[0]} instead of --predicts right."
    ]


def _draw_options(requested: PlanOptions, plan: Plan) -> SharedDrawOptions:
    """Return the options of `draw` for a plan.

    A draw for a half-width starts with a pilot, unless there are labels already. With labels, the options
    contain the recommended design, because `draw` does not read the labels and could choose another.
    """
    # `--assume` has no effect on a draw.
    options: Keywords = structs.asdict(options_of(Planning, requested)) | {"assume": "conservative"}
    if requested.half_width is None or requested.labels:
        if plan.allocation.method == "cost-optimal":
            budget = requested.budget  # the total cost, not the number of labels
        elif plan.rounds is None:
            budget = plan.budget
        else:
            budget = plan.rounds.total
        options |= {"budget": budget, "half_width": None}
    if requested.labels:
        design = plan.recommended.design
    else:
        design = "auto"
    return SharedDrawOptions(**options, design=design)


def _write_plan(path: Path, options: SharedDrawOptions, plan: Plan) -> None:
    """Write the file of a plan; raise an error instead of overwriting another file."""
    from stratal.designs.files import replacing

    if path.suffix.lower() != ".json":
        raise InputError("--output must be a JSON file", given=path, allowed="such as plan.json")
    if path.exists() and PlanFile.read(path) is None:
        raise InputError(f"{path}: already exists and is not a plan", action="Choose another --output.")
    with replacing(path) as partial_file:
        partial_file.write_text(PlanFile.of(options, plan.population).text(path.parent), encoding="utf-8")


def _label_keywords(requested: PlanOptions) -> dict[str, Any]:
    """Return the keywords of `stratal.plan` for existing labels; empty without labels.

    If a file of labels also has the columns of the proxy, it is read as the population of the labelled units.
    """
    from stratal.tables.small_table import SmallTable

    if not requested.labels:
        return {}
    reading = requested.with_required_columns
    labelled_units = None
    id_name = requested.id
    if reading.proxy:
        columns = {*split_names(reading.proxy), *reading.group_names}
        files_with_proxy = [
            path for path in requested.labels if columns <= set(SmallTable.of(path, str(path)).columns)
        ]
        if files_with_proxy:
            options = selected_fields(reading, "id", "proxy", "groups", "by", "bounds", "margin", "predicts")
            labelled_units = Reading(file=files_with_proxy[0], **options).population()
            id_name = labelled_units.id_name
    labels = stratal.read_labels(
        *requested.labels, id_name=id_name, value=requested.value, **requested.label_values
    )
    return {"labels": labels, "labelled_units": labelled_units, "calibrate_by": requested.calibrate_by}


def _labels_for_selection(requested: PlanOptions) -> Result:
    """Return the expected number of labels that `stratal select` requires."""
    from stratal.planning.selection import expected_labels
    from stratal.report.text import Page

    reading = answers_as_groups(requested)
    expected = expected_labels(
        reading.population(),
        reading.group_names,
        requested.confidence_level,
        requested.indifference,
        criterion=requested.estimand or "accuracy",
    )
    line = (
        f"The best of {expected['models']} models within {requested.indifference:g}: about "
        f"{expected['optimistic']:,} labels if the others are clearly worse, {expected['conservative']:,} if "
        f"all are equally good, {expected['most']:,} at most, of {expected['population_size']:,} units."
    )
    shared_fields = """file id answers delimiter remote engine threads memory
        budget confidence_level indifference estimand positive"""
    options = SelectOptions(**selected_fields(requested, *shared_fields.split()))
    next_command = ("select", *command_words(options), "--output", new_folder_name("round1"))
    return Result(expected, Page(lines=[line]), next_command)
