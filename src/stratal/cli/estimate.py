"""`stratal estimate` and `stratal report`: from the sample and its labels to an estimate, or a page on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from os.path import normpath
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import structs

import stratal
from stratal.cli.command import Option, argument, command, command_words, options_of, selected_fields
from stratal.cli.conditions import ValueCondition, Values, with_any, without_all
from stratal.cli.options import Bounds, ConfidenceLevel, EstimandText, Reading, RoleOptions, Text, Whole
from stratal.cli.output import Result, markdown_text, show_progress
from stratal.cli.parsing import join_names, parse_mapping, parse_meanings, parse_pair
from stratal.cli.plan_file import PlanFile
from stratal.cli.reading_again import read_population_again, stored_reading_options
from stratal.errors import check_choice, no_effect_error
from stratal.names import split_names
from stratal.protocols import Keywords
from stratal.report.verdicts import FAIL, PASS, UNDECIDED

if TYPE_CHECKING:
    from stratal import Evaluation, Population, Sample, Threshold


# Formats of the output.
TEXT_FORMAT = "text"
MARKDOWN = "markdown"

# Exit statuses of the verdicts on what is required.
STATUSES = {PASS: 0, FAIL: 4, UNDECIDED: 5}


def _labels_are_numbers(values: Values) -> bool:
    """Return whether labels are numbers, and not compared with a column of answers."""
    from stratal.question import NOT_COMPARED

    return values["predicted"] in (None, NOT_COMPARED)


FOR_NUMBERS = ValueCondition(
    "without --predicted (for one class: --metric precision,recall --class NAME)",
    _labels_are_numbers,
)

# Options whose values are keywords of `stratal.evaluate` without conversion.
EVALUATE_FIELDS = (
    *("value", "id", "positive", "combine", "estimand", "estimator", "post_stratify"),
    *("margins", "cross_fit", "calibration", "population", "target", "outcome", "confidence_level"),
    *("look", "interval", "model", "by", "failed_answers", "require", "against", "answers", "new_labels"),
    *("same_rows", "chosen", "sizes", "cluster", "weight", "population_size", "tags", "lists"),
)

# Options whose values are keywords of `stratal.threshold` without conversion.
_THRESHOLD_FIELDS = (
    *("value", "id", "positive", "combine", "predicted", "confidence_level", "by", "target", "population"),
    *("chosen", "sizes", "cluster", "weight", "population_size", "tags", "lists"),
)

# Conditions under which options have an effect.
WITH_NEW_VERSION = with_any("against")
ONLY_MEAN_OF_NUMBERS = without_all(
    *("estimand", "predicted", "cross_fit", "calibration", "outcome", "bounds", "metric"),
    *("compare", "model", "by", "against", "target", "combine"),
    reason="for the mean of numbers",
)


# Further conditions for `estimate`, `report` and `trend`.
NEEDS = {"judge": without_all("estimand", "model")}


class EvidenceOptions(RoleOptions, frozen=True, kw_only=True):
    """The options of `estimate` and `report` that state what is estimated.

    Parameters
    ----------
    value : COL,…, default label; recognised in a table
        Label column, or one per annotator.
    id : str, default the sample's
        Column of ids. For labels of a sample, row if the rows are in the order of to_label.csv.
    positive : LABEL
        Label that counts as 1; all other labels count as 0.
    map : LABEL=NUMBER,…
        Values of labels: a number (pass=1), a class (kitty=cat) or no answer (unsure=).
    combine : str
        How the answers of several annotators to one unit are combined: mean or majority.
    predicted : str, default that of the sample
        Column of the model's answers, which are compared with labels that name classes; none if labels mean
        right (1) or wrong (0).
    predicts : COL=MEANING,…, default as drawn
        What a proxy predicts: right (probability that the answer is right), class:NAME (probability of a
        class), rating:LOW..HIGH, outcome (the outcome itself) or order (only the order of units).
    estimator : str
        auto, horvitz-thompson, difference, ppi++, stratppi, hajek or post-stratified.
    post_stratify : GROUP
        Post-stratify by this group, whose sizes are stored in the sample.
    margins : COL,… or FILE
        Calibrate the weights by raking to the sizes of these groups and the means of these proxies; with the
        prefix 'regression:', by regression. Known totals: a file with the columns variable,
        level and total.
    cross_fit : FOLDS
        Number of folds for cross-fitting: the λ of each unit is fitted to the labels of the other folds.
    calibration : str
        Recalibrate the proxy on the labels with cross-fitting: isotonic or logistic; or fit a model of
        several columns: gradient-boosting, history, logistic-regression or ridge.
    features : COL,…, default the sample's proxies
        Columns of --population for a model of --calibration; or a pattern such as 'judge_*'.
    population : FILE
        For a table of labels: file with the proxy for all units, or for the unlabelled units. For
        --calibration or a coefficient: file from which the sample was drawn.
    outcome : str
        Kind of outcome: binary, bounded or unbounded. If omitted, it is inferred where this is safe.
    winsorise : LOW,HIGH
        Replace values beyond these limits with the nearest limit, and estimate the mean of the result.
    look : int
        Number of this interim analysis, starting at 1, if several were planned (--looks): the intervals of
        all looks hold simultaneously.
    interval : str
        Interval method, also for groups, metrics and comparisons of models: auto, or a name from the table in
        the documentation. Comparisons of judges always use their own method.
    metric : NAME,…
        Metrics: accuracy,precision,recall,f1,fpr,fnr,confusion; brier for a probability.
    class_ : NAME,…
        Classes to report, with --metric.
    compare : COL,…
        Columns with the outcomes or answers of the models to compare.
    model : str
        Column of the models' names, if the labels have a row per unit and model.
    by : str
        Column of groups; each group is estimated separately.
    judge : COL,…
        Judges to compare with the labels: columns of verdicts, or proxies with scores. For several judges, or
        repeated calls to one judge, their majority or mean is also compared.
    failed_answers : str, default wrong with --require, else missing
        How answers in a log count if the application returned an error or nothing: missing or wrong.
    require : 'NAME>=X'
        Requirement that the whole interval must satisfy: 'value>=.9', 'kappa>=.6', 'recall:cat>=.8',
        'value@de<=.1'; several are separated by semicolons, or the option is repeated.
    against : FILE
        File with the answers of a new version of the model, joined by id; --require then applies to them.
    answers : COL or OLD=NEW, default the model's answer
        Column of the answers in the file of --against; OLD=NEW if the column has the name OLD in the sample.
    new_labels : paths
        File with the labels of answers that changed, with --against.
    same_rows : bool
        Accept labels that have row numbers as ids and no column sample_token.
    chosen : HOW, default all if at least 90% of the rows have a label, else random
        How the labelled rows of a table were chosen: random, random-within:COLUMN, probability:COLUMN
        (inclusion probabilities), all (every row was to be labelled) or unknown.
    lists : USE
        What the list in each row of a table counts as: rows (each entry is a row, and the units are
        clusters), mean, precision@K or hit@K.
    tags : FORMAT, default json if every answer is a list
        Format of sets of tags in the answers and labels of a table: json, or the separator ';', '|' or ','.
    sizes : path
        For a table: file with the columns stratum and size, and optionally mean, variance and count of the
        proxy.
    cluster : str
        For a table: column of the clusters (rows that were drawn together).
    weight : str
        For a table: column of weights.
    population_size : int
        For a table: number of units of the population.
    proxy : COL,…, default recognised
        For a table: columns of proxies, known for every row; none for no proxy.
    """

    files: Annotated[
        list[Path] | None,
        argument(
            "FILE…",
            "A table with labels in some rows; a sample that `draw` wrote, with its labels; a study; "
            "logs of one evaluation tool (one for each model); or a count such as 47/50.",
        ),
    ] = None
    value: Text = None
    id: Text = None
    positive: Annotated[Text, Option(needs=(FOR_NUMBERS,))] = None
    map: Text = None
    combine: str = "mean"
    predicts: Text = None
    estimand: EstimandText = None
    estimator: str = "auto"
    # Margins of a group are a post-stratification, too: the error says that --margins "has it".
    post_stratify: Annotated[Text, Option(needs=(without_all("margins", reason="which has it"),))] = None
    margins: Text = None
    cross_fit: Whole = None
    calibration: Text = None
    features: Annotated[Text, Option(needs=(with_any("calibration"),))] = None
    population: Path | None = None
    target: Annotated[
        Text,
        Option(
            "Target of the interval: population (these units) or superpopulation (all future units).",
            default_text="population; superpopulation if (nearly) all units are labelled",
        ),
    ] = None
    outcome: Text = None
    bounds: Bounds = None
    winsorise: Annotated[Text, Option(needs=(ONLY_MEAN_OF_NUMBERS,))] = None
    confidence_level: ConfidenceLevel = 0.95
    # "Look" is the standard term for an interim analysis of a group sequential design.
    look: Whole = None
    interval: str = "auto"
    metric: Text = None
    class_: Annotated[Text, Option(needs=(with_any("metric"),))] = None
    compare: Text = None
    model: Text = None
    by: Text = None
    failed_answers: Text = None
    require: Text = None
    against: Path | None = None
    answers: Annotated[Text, Option(needs=(WITH_NEW_VERSION,))] = None
    new_labels: Annotated[list[Path] | None, Option(needs=(WITH_NEW_VERSION,))] = None
    same_rows: bool = False
    chosen: Text = None
    tags: Text = None
    lists: Text = None
    sizes: Path | None = None
    cluster: Text = None
    weight: Text = None
    population_size: Whole = None
    proxy: Text = None

    @property
    def keywords(self) -> Keywords:
        """The keywords of `stratal.evaluate`."""
        return {
            **selected_fields(self, *EVALUATE_FIELDS),
            **self.role_keywords,
            "mapping": parse_mapping("--map", self.map),
            "predicts": parse_meanings(self.predicts),
            "bounds": parse_pair("--bounds", self.bounds),
            "limits": parse_pair("--winsorise", self.winsorise),
            "features": split_names(self.features),
            "metric": split_names(self.metric),
            "classes": split_names(self.class_),
            "compare": split_names(self.compare),
            "proxy": split_names(self.proxy),
        }

    @property
    def source(self) -> Path | None:
        """The first file: a sample, a study, a table, a log, or a count."""
        if self.files is None:
            return None
        return self.files[0]

    @property
    def other_files(self) -> list[Path] | None:
        """The other files: labels of a sample, or logs of other models."""
        if self.files is None:
            return None
        return self.files[1:] or None

    def evaluate(self) -> Evaluation:
        """Return the evaluation that the options request."""
        reader = None
        if self.source is not None:
            reader = partial(read_population, self.source)
        return stratal.evaluate(self.source, self.other_files, read_population=reader, **self.keywords)

    def accept(self, requirement: str, score: Sequence[str] = ()) -> Threshold:
        """Return the accepted set: the units whose score is above a threshold that meets a requirement."""
        reader = None
        if self.source is not None:
            reader = partial(read_population, self.source, is_needed=True)
        return stratal.threshold(
            self.source,
            self.other_files,
            requirement,
            score=score or None,
            proxy=split_names(self.proxy),
            read_population=reader,
            mapping=parse_mapping("--map", self.map),
            predicts=parse_meanings(self.predicts),
            **selected_fields(self, *_THRESHOLD_FIELDS),
        )


def read_population(
    source: Path, sample: Sample, columns: Sequence[str], *, is_needed: bool = False
) -> Population | None:
    """Return the population of a sample, read again as in its plan; None without a plan or need.

    It is needed for the `columns` of a coefficient, for results of other models, or if `is_needed`. `source`
    is the sample, its folder or a study.
    """
    from stratal.evaluation import sample_file

    file = sample_file(source)
    reading = None
    if file.is_dir():
        with stratal.study.open_study(source, read_only=True) as study:
            options = stored_reading_options(study)
        if options:
            reading = Reading(**options)
    else:
        plan = PlanFile.next_to(file)
        if plan is not None:
            reading = options_of(Reading, plan.options)
    if reading is None or (reading.history is None and not columns and not is_needed):
        return None
    features = join_names(*split_names(reading.features), *columns) or None
    return read_population_again(structs.replace(reading, features=features), sample)


class EstimateCommand(EvidenceOptions, frozen=True, kw_only=True):
    """The options of `estimate`.

    Parameters
    ----------
    details : bool
        Also print the strata, all rows and all notes.
    disagreements : FILE
        CSV file to write, with the items on which a judge and the labels differ, for a second review. Once
        the file is filled in, pass it after the labels.
    format : str
        Format of the output: text, or markdown for a comment on a pull request.
    """

    details: bool = False
    format: Annotated[str, Option(needs=(without_all("json"),))] = TEXT_FORMAT
    disagreements: Path | None = None


@command(EstimateCommand, needs=NEEDS)
def estimate(requested: EstimateCommand) -> Result:
    """Estimate how good the model is, with an interval.

    If a table has labels in some rows, the command recognises the columns with the labels, the model's
    answers, and a judge's verdicts or scores, and prints which columns it uses; options name other columns.
    --chosen states how the labelled rows were chosen. Labels of a sample are joined by id; units without a
    label are handled within their strata.

    With --require, the exit status is 0 if the whole interval satisfies the requirement (PASS), 4 if no part
    of it does (FAIL), and 5 if the labels do not decide (UNDECIDED).
    """
    check_choice("format", requested.format, (TEXT_FORMAT, MARKDOWN))
    with show_progress("estimating"):
        evaluation = requested.evaluate()
        # The JSON object of the result.
        described = evaluation.to_dict(brief=not _prints_all_rows(requested))
    if requested.disagreements is not None:
        count = evaluation.write_disagreements(requested.disagreements)
        described["disagreements"] = {"file": str(requested.disagreements), "items": count}
    status = _exit_status(evaluation)
    if requested.format == MARKDOWN:
        # `markdown_text` prints the requirements as a table.
        without_requirements = {key: value for key, value in described.items() if key != "requirements"}
        page = evaluation.page(without_requirements, details=requested.details)
        return Result(described, markdown_text(described, page), status=status)
    next_command: tuple[Any, ...] | None = None
    # Only the result of a single estimand has a forecast for more labels. A report explains such results.
    if "more_labels" in described:
        next_command = (
            "report",
            *command_words(options_of(EvidenceOptions, requested)),
            "--output",
            "report.html",
        )
    return Result(described, partial(evaluation.page, details=requested.details), next_command, status=status)


def _prints_all_rows(requested: EstimateCommand) -> bool:
    """Return whether more than the first rows of a table are printed."""
    as_json: bool = click.get_current_context().params["json"]
    return as_json or requested.details or requested.format == MARKDOWN


class ReportOptions(EvidenceOptions, frozen=True, kw_only=True):
    """The options of `report`.

    Parameters
    ----------
    output : FILE
        File of the report: .html, .md or .json.
    question : str, default the study's
        Question to the annotators, which is the heading of the report.
    quantity : str
        Name of the estimated quantity, such as accuracy or pass rate.
    items : int, default none
        Number of items to show as annotators saw them; by default no item is included.
    """

    output: Path
    question: Text = None
    quantity: Text = None
    items: Whole = None


@command(ReportOptions, needs=NEEDS)
def report(requested: ReportOptions) -> Result:
    """Write a one-page report of the estimate.

    Files, options and results are the same as for `estimate`. The page loads nothing from the network and
    contains no items unless --items is given. With --against, it reports what the labels show about a new
    version of the model, and which answers must still be labelled. For a sample that was planned for a
    threshold, and with --estimand 'threshold:REQUIREMENT', the report contains the accepted set of
    `threshold`.
    """
    from stratal.thresholds import ReportRequest

    with show_progress("reporting"):
        request = ReportRequest.of(requested.source, requested.other_files, requested.estimand)
        accepted = None
        # The goal is the requirement of an accepted set, in `--estimand 'threshold:REQUIREMENT'` or in the
        # plan of the sample.
        if request.goal is not None:
            accepted = requested.accept(request.goal.require, split_names(request.goal.score))
        draw_commands = _draw_commands(requested.source)
        report_command = join(["stratal", "report", *command_words(requested)])
        if accepted is not None and request.estimand is None:
            _refuse_estimate_options(requested)
            findings = accepted.report(title=requested.question, commands=[*draw_commands, report_command])
            status = STATUSES[accepted.verdict]
        else:
            # The estimand without the accepted set, which `request` has separately.
            estimate_options = structs.replace(requested, estimand=request.estimand)
            evaluation = estimate_options.evaluate()
            estimate_words = command_words(options_of(EvidenceOptions, estimate_options))
            estimate_command = join(["stratal", "estimate", *estimate_words])
            findings = evaluation.report(
                title=_title(requested.source),
                question=requested.question,
                quantity=requested.quantity,
                threshold=None if accepted is None else accepted.to_dict(),
                commands=[*draw_commands, estimate_command, report_command],
                examples=requested.items or 0,
            )
            status = _exit_status(evaluation)
            if status == 0 and accepted is not None:
                status = STATUSES[accepted.verdict]
        path = findings.write(requested.output)
    return Result(findings.to_dict(), str(findings), f"Report: {path}", status=status)


def _refuse_estimate_options(requested: ReportOptions) -> None:
    """Refuse options that have no effect on the report of an accepted set."""
    names = (*_THRESHOLD_FIELDS, "files", "estimand", "proxy", "map", "predicts", "output", "question")
    options = {f"--{name.replace('_', '-')}" for name in names}
    for word in command_words(requested):
        if word.startswith("--") and word not in options:
            raise no_effect_error(word, "with --estimand 'NAME;threshold:REQUIREMENT', for the estimate")


def _exit_status(evaluation: Evaluation) -> int:
    """Return the exit status of the verdict on all requirements; 0 without requirements."""
    if evaluation.status is None:
        return 0
    return STATUSES[evaluation.status]


def _draw_commands(source: Path | None) -> list[str]:
    """Return the command that drew a sample, in a list; empty without a plan, and for several rounds."""
    from stratal.evaluation import is_sample, sample_file

    if source is None or not is_sample(source):
        return []
    file = sample_file(source)
    plan = PlanFile.next_to(file)
    if plan is None or int(stratal.Sample.read(file).round.max()) > 1:
        return []
    options = plan.options
    if "://" not in str(options.file):
        options = structs.replace(options, file=Path(normpath(options.file)))
    return [join(["stratal", "draw", *command_words(options), "--output", str(file.parent)])]


def _title(source: Path | None) -> str | None:
    """Return a heading with the file of predictions: a table, or the file in the plan of a sample."""
    from stratal.evaluation import is_sample, sample_file

    if source is None:
        return None
    if source.is_file() and not is_sample(source):
        return f"How good is the model on {source.name}?"
    plan = PlanFile.next_to(sample_file(source))
    if plan is None:
        return None
    return f"How good is the model on {Path(plan.options.file).name}?"
