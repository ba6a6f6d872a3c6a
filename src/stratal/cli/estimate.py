"""`stratal estimate` and `stratal report`: from the sample and its labels to an estimate, or a page on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

import stratal
from stratal.cli.command import Option, argument, command, part, selected_fields, words
from stratal.cli.conditions import ValueCondition, Values, with_any, without_all
from stratal.cli.options import Bounds, ConfidenceLevel, EstimandText, Reading, RoleOptions, Text, Whole
from stratal.cli.output import Result, progress
from stratal.cli.parsing import joined, listed, mapping, meanings, pair
from stratal.cli.plan_file import PlanFile
from stratal.cli.reading_again import population_again, reading_of

if TYPE_CHECKING:
    from stratal import Evaluation, Population, Sample


# Exit statuses of the verdicts on what is required.
STATUSES = {"PASS": 0, "FAIL": 4, "UNDECIDED": 5}


def _labels_are_numbers(values: Values) -> bool:
    """Return whether no column of answers is named that labels are compared with."""
    from stratal.question import NOT_COMPARED

    return values["predicted"] in (None, NOT_COMPARED)


FOR_NUMBERS = ValueCondition(
    "without --predicted (for one class: --metric precision,recall --class NAME)",
    _labels_are_numbers,
)

# Options whose values are passed on to `stratal.evaluate` as they are.
SAME_KEYWORDS = (
    *("value", "id", "positive", "combine", "estimand", "estimator", "post_stratify"),
    *("margins", "cross_fit", "calibration", "population", "target", "outcome", "confidence_level"),
    *("look", "interval", "model", "by", "failed_answers", "require", "against", "answers", "new_labels"),
    *("same_rows", "chosen", "sizes", "cluster", "weight", "population_size", "tags"),
)

OF_NEW_VERSION = with_any("against")
NO_PLAIN_MEAN = without_all(
    *("estimand", "predicted", "cross_fit", "calibration", "outcome", "bounds", "metric"),
    *("compare", "model", "by", "against", "target", "combine"),
    reason="for the mean of numbers",
)


NEEDS = {"judge": without_all("estimand", "model")}


class EvidenceOptions(RoleOptions, frozen=True, kw_only=True):
    """What `estimate` and `report` estimate, and from what.

    Parameters
    ----------
    value : str, default label, in a table recognised
        Column of the label.
    id : str, default the sample's
        Column of ids; of labels of a sample, row for rows in the order of to_label.csv.
    positive : LABEL
        The label that counts as 1, and every other as 0.
    map : LABEL=NUMBER,…
        What labels count as: a number, a class (kitty=cat), or no answer (unsure=).
    combine : str
        What several annotators' answers of one unit become: mean or majority.
    predicted : str, default as drawn, for classes
        Compare labels that are classes with this column of answers, kept by draw or in LABELS; none to take
        labels for right (1) or wrong (0).
    predicts : COL=MEANING,…, default as drawn
        What a proxy predicts: right (the probability that the answer is right), class:NAME (that of a class),
        rating:LOW..HIGH, outcome (the outcome itself) or order (only an order).
    estimator : str
        auto, horvitz-thompson, difference, ppi++, stratppi, hajek or post-stratified.
    post_stratify : GROUP
        Weigh the sample by this group, whose sizes the draw kept.
    margins : COL,…
        Fit the weights to these groups' sizes and proxies' means, any design, by raking (positive weights),
        or by regression after that word and a colon.
    cross_fit : FOLDS
        Fit each unit's λ on the other folds' labels.
    calibration : str
        Calibrate the proxy on the labels, cross-fitted: isotonic or logistic; or learn from several
        columns: gradient-boosting, history, logistic-regression or ridge.
    features : COL,…, default the sample's proxies
        With a learner: columns of --population to learn from; also 'judge_*'.
    population : FILE
        Of a table of labels: all units, or the others, with the proxy. With --calibration, or for a
        coefficient: what the sample was drawn from.
    outcome : str
        binary, bounded or unbounded; inferred where that is safe.
    winsorise : LOW,HIGH
        Estimate the mean with values beyond these limits at the limits.
    look : int
        Which of the looks that were planned (--looks) this is, from 1: intervals hold at all of them.
    interval : str
        auto, or a method of the documentation's table.
    metric : NAME,…
        Classification metrics: accuracy,precision,recall,f1.
    class_ : NAME,…
        Classes to report.
    compare : COL,…
        Columns of LABELS with models' outcomes.
    model : str
        LABELS are long, one row per unit and model: column of the models' names.
    by : str
        Group to report on, one estimate for each level.
    judge : COL,…
        Compare labels with this judge too: a column of verdicts, kept by draw or in LABELS, or a proxy of
        scores; with several judges, or calls of one, also with their majority or mean.
    failed_answers : str, default wrong for --require, else missing
        What answers of a log count as whose application returned an error or nothing: missing or wrong.
    require : 'NAME>=X'
        What the whole interval must satisfy: 'value>=.9', 'kappa>=.6', 'recall:cat>=.8', 'value@de<=.1';
        several with semicolons, or the option once for each.
    against : FILE
        Answers of a new version of the model, joined by id; --require is then about these.
    answers : COL or OLD=NEW, default the model's answer
        Column of the answers in that file, and in the sample where that is another.
    new_labels : paths
        Labels of answers that changed, as far as they are there.
    same_rows : bool
        Row numbers in the labels are those of the sample's rows, though no column sample_token states it.
    chosen : HOW, default random while rows have no label, else all
        How the labelled rows of a table were chosen: random, random-within:COLUMN, probability:COLUMN
        (inclusion probabilities), all (every row is labelled) or unknown.
    tags : FORMAT, default json if every answer is a list
        How answers and labels of a table hold sets of tags: json, or the separator ';', '|' or ','.
    sizes : path
        Of a table: file with columns stratum,size, and of the proxy perhaps mean,variance,count.
    cluster : str
        Of a table: column of the groups that were drawn together.
    weight : str
        Of a table: column of weights.
    population_size : int
        Of a table: units of the population.
    proxy : COL,…, default recognised
        Of a table: column of the proxy, which is known for every row; none for no proxy.
    """

    files: Annotated[
        list[Path] | None,
        argument(
            "FILE…",
            "A table with labels in some rows; or a sample that `draw` wrote and its labels, a study, "
            "logs of one evaluation tool (one of each model), or a count such as 47/50.",
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
    post_stratify: Annotated[Text, Option(needs=(without_all("margins", reason="which has it"),))] = None
    margins: Text = None
    cross_fit: Whole = None
    calibration: Text = None
    features: Annotated[Text, Option(needs=(with_any("calibration"),))] = None
    population: Path | None = None
    target: Annotated[
        Text,
        Option("population or superpopulation.", shown="population, superpopulation if all is labelled"),
    ] = None
    outcome: Text = None
    bounds: Bounds = None
    winsorise: Annotated[Text, Option(needs=(NO_PLAIN_MEAN,))] = None
    confidence_level: ConfidenceLevel = 0.95
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
    answers: Annotated[Text, Option(needs=(OF_NEW_VERSION,))] = None
    new_labels: Annotated[list[Path] | None, Option(needs=(OF_NEW_VERSION,))] = None
    same_rows: bool = False
    chosen: Text = None
    tags: Text = None
    sizes: Path | None = None
    cluster: Text = None
    weight: Text = None
    population_size: Whole = None
    proxy: Text = None

    @property
    def keywords(self) -> dict[str, Any]:
        """The keywords of `stratal.evaluate`."""
        return {
            **selected_fields(self, *SAME_KEYWORDS),
            **self.role_keywords,
            "mapping": mapping("--map", self.map),
            "predicts": meanings(self.predicts),
            "bounds": pair("--bounds", self.bounds),
            "limits": pair("--winsorise", self.winsorise),
            "features": listed(self.features),
            "metric": listed(self.metric),
            "classes": listed(self.class_),
            "compare": listed(self.compare),
            "proxy": listed(self.proxy),
        }

    @property
    def source(self) -> Path | None:
        """The first file: a sample, a study, a table, a log, or a count."""
        return None if self.files is None else self.files[0]

    @property
    def other_files(self) -> list[Path] | None:
        """The other files: labels of a sample, or logs of other models."""
        return None if self.files is None else self.files[1:] or None

    def evaluate(self) -> Evaluation:
        """Return what is asked for."""
        reader = None if self.source is None else partial(read_population, self.source)
        return stratal.evaluate(self.source, self.other_files, read_population=reader, **self.keywords)


def read_population(
    place: Path, sample: Sample, columns: Sequence[str], *, is_needed: bool = False
) -> Population | None:
    """Return the population of a sample, read again by its plan; None without a plan, or if nothing needs it.

    `columns` are those that a coefficient reads; other models' results are columns of the population too.
    With `is_needed` it is read anyway.
    """
    from stratal.evaluation import sample_file

    file = sample_file(place)
    if file.is_dir():
        with stratal.study.open_study(place, reading=True) as study:
            stored = reading_of(study)
        reading = Reading(**stored) if stored else None
    else:
        plan = PlanFile.beside(file)
        reading = None if plan is None else part(Reading, plan.options)
    if reading is None or (reading.history is None and not columns and not is_needed):
        return None
    features = joined(*listed(reading.features), *columns) or None
    return population_again(structs.replace(reading, features=features), sample)


class EstimateCommand(EvidenceOptions, frozen=True, kw_only=True):
    """The options of `estimate`: those of the evidence, and how much is printed.

    Parameters
    ----------
    details : bool
        Print the strata, all rows and all notes, after the answer.
    disagreements : FILE
        Write the items on which a judge and people differ, for a second look: a new .csv. Filled in, it is
        given after LABELS.
    """

    details: bool = False
    disagreements: Annotated[Path | None, Option(needs=(with_any("judge"),))] = None


@command(EstimateCommand, needs=NEEDS)
def estimate(requested: EstimateCommand) -> Result:
    """Estimate how good the model is, with an interval.

    Of a table with labels in some rows, the columns with the labels, the model's answers, a judge or a score
    are recognised and printed; options name others. --chosen states how the labelled rows were chosen.
    Labels of a sample are joined by id, and units without one are handled within their strata.

    With --require the exit status is 0 if the whole interval satisfies it (PASS), 4 if none of it does
    (FAIL), and 5 if labels do not decide (UNDECIDED), for pipelines.
    """
    with progress("estimating"):
        evaluation = requested.evaluate()
        described = evaluation.to_dict()
    if requested.disagreements is not None:
        count = evaluation.write_disagreements(requested.disagreements)
        described["disagreements"] = {"file": str(requested.disagreements), "items": count}
    then: tuple[Any, ...] | None = None
    if "more_labels" in described:
        then = ("report", *words(part(EvidenceOptions, requested)), "--output", "report.html")
    page = partial(evaluation.page, details=requested.details)
    return Result(described, page, then, status=_exit_status(evaluation))


class ReportOptions(EvidenceOptions, frozen=True, kw_only=True):
    """The options of `report`: those of `estimate`, and what the page says besides.

    Parameters
    ----------
    output : FILE
        The report: .html, .md or .json.
    question : str, default the study's
        What the annotators were asked; the heading of the page.
    quantity : str
        What the estimate is called: accuracy, pass rate, …
    items : int, default none
        Show so many units as annotators saw them; without it no payload is in it.
    """

    output: Path
    question: Text = None
    quantity: Text = None
    items: Whole = None


@command(ReportOptions, needs=NEEDS)
def report(requested: ReportOptions) -> Result:
    """Write a report of the estimate: one self-contained page to send to others.

    Takes the files and the options of `estimate`, and gives the same figures. The
    page asks the network for nothing, and holds nothing that annotators saw unless --items is given.
    With --against it says what the same labels show about a new version of the model, and what needs labels.
    """
    with progress("reporting"):
        evaluation = requested.evaluate()
        asked = words(part(EvidenceOptions, requested))
        findings = evaluation.report(
            title=_title(requested.source),
            question=requested.question,
            quantity=requested.quantity,
            commands=[
                join(["stratal", "estimate", *asked]),
                join(["stratal", "report", *words(requested)]),
            ],
            examples=requested.items or 0,
        )
        path = findings.write(requested.output)
    text = str(findings)
    return Result(findings.to_dict(), text, f"Report: {path}", status=_exit_status(evaluation))


def _exit_status(evaluation: Evaluation) -> int:
    """Return the exit status of the verdict on all requirements."""
    if evaluation.status is None:
        return 0
    return STATUSES[evaluation.status]


def _title(sample: Path | None) -> str | None:
    """Return a heading with the file of predictions, if the plan next to the sample names it."""
    from stratal.evaluation import sample_file

    if sample is None:
        plan = None
    else:
        plan = PlanFile.beside(sample_file(sample))
    if plan is None:
        return None
    return f"How good is the model on {Path(plan.options.file).name}?"
