"""`stratal estimate` and `stratal report`: from the sample and its labels to an estimate, or a page on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import Struct, structs

import stratal
from stratal.cli.command import Needs, Option, argument, command, given, no_effect, part, words
from stratal.cli.draw import PlanFile, population_again, reading_of
from stratal.cli.options import Bounds, ConfidenceLevel, EstimandText, Reading, Text, Whole
from stratal.cli.output import Result, progress
from stratal.cli.parsing import joined, listed, mapping, pair
from stratal.errors import InputError, LabelError, MissingExtraError, refuse_unknown

if TYPE_CHECKING:
    from stratal import Estimates, Labels, Sample
    from stratal.estimation.new_version import NewVersion
    from stratal.planning.findings import Findings


# Column of the labels, unless said otherwise.
LABEL = "label"

# Exit statuses of the verdicts on what is required.
STATUSES = {"PASS": 0, "FAIL": 4, "UNDECIDED": 5}

# What answers that failed count as.
MISSING = "missing"
WRONG = "wrong"

# What --predicted says where labels are no classes.
NO_CLASSES = "none"

FOR_NUMBERS = Needs(
    "without --predicted (for one class: --metric precision,recall --class NAME)",
    lambda given: given["predicted"] in (None, NO_CLASSES),
)

# Options that say what is known of a sample that was drawn elsewhere.
KNOWN = "id stratum sizes cluster weight population population_size proxy predicted"

# What reads a column of the labels by its name.
Column: TypeAlias = "Callable[[str], Labels]"

ELSEWHERE = "with --labelled"
OF_NEW_VERSION = "with --against"
DRAWN = "without --labelled"
NO_PLAIN_MEAN = (
    "without --estimand, --predicted, --cross-fit, --calibration, --outcome, --bounds, --metric, "
    "--compare, --model, --by, --against, --target or --combine (for the mean of numbers)"
)


class EvidenceOptions(Struct, frozen=True, kw_only=True):
    """What `estimate` and `report` estimate, and from what.

    Parameters
    ----------
    value : str, default label
        Column of the label.
    id : str, default the sample's
        Column of ids in LABELS; row for rows in the order of to_label.csv.
    positive : LABEL
        The label that counts as 1, and every other as 0.
    map : LABEL=NUMBER,…
        What labels count as: a number, a class (kitty=cat), or no answer (unsure=).
    combine : str
        What several annotators' answers of one unit become: mean or majority.
    predicted : str, default as drawn, for classes
        Compare labels that are classes with this column of answers, kept by draw or in LABELS; none to take
        labels for right (1) or wrong (0).
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
        With --labelled: all units, or the others, with the proxy. With --calibration, or for a coefficient:
        what the sample was drawn from.
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
    labelled : path
        Units drawn and labelled elsewhere, instead of SAMPLE and LABELS.
    stratum : str
        With --labelled: column of strata.
    sizes : path
        With --labelled: file with columns stratum,size, and of the proxy perhaps mean,variance,count.
    cluster : str
        With --labelled: column of the groups that were drawn together.
    weight : str
        With --labelled: column of weights.
    population_size : int
        With --labelled: units of the population.
    proxy : str
        With --labelled: column of the proxy.

    Examples
    --------
    >>> EvidenceOptions(compare="a,b").answered
    'a'
    """

    sample: Annotated[
        Path | None,
        argument("SAMPLE", "The sample file that `draw` wrote, or a study's folder.", needs=DRAWN),
    ] = None
    labels: Annotated[
        list[Path] | None,
        argument("LABELS…", "Labels, joined by id: CSV, Excel, JSON, Parquet, Feather.", needs=DRAWN),
    ] = None
    value: Text = None
    id: Text = None
    positive: Annotated[Text, Option(needs=FOR_NUMBERS)] = None
    map: Text = None
    combine: str = "mean"
    predicted: Text = None
    estimand: EstimandText = None
    estimator: str = "auto"
    post_stratify: Annotated[Text, Option(needs=(DRAWN, "without --margins (which has it)"))] = None
    margins: Annotated[Text, Option(needs=DRAWN)] = None
    cross_fit: Whole = None
    calibration: Text = None
    features: Annotated[Text, Option(needs="with --calibration")] = None
    population: Path | None = None
    target: Annotated[
        Text,
        Option("population or superpopulation.", shown="population, superpopulation if all is labelled"),
    ] = None
    outcome: Text = None
    bounds: Bounds = None
    winsorise: Annotated[Text, Option(needs=NO_PLAIN_MEAN)] = None
    confidence_level: ConfidenceLevel = 0.95
    look: Annotated[Whole, Option(needs=DRAWN)] = None
    interval: str = "auto"
    metric: Text = None
    class_: Annotated[Text, Option(needs="with --metric")] = None
    compare: Text = None
    model: Text = None
    by: Text = None
    judge: Annotated[Text, Option(needs="without --labelled, --estimand or --model")] = None
    failed_answers: Annotated[Text, Option(needs=DRAWN)] = None
    require: Text = None
    against: Annotated[Path | None, Option(needs=DRAWN)] = None
    answers: Annotated[Text, Option(needs=OF_NEW_VERSION)] = None
    new_labels: Annotated[list[Path] | None, Option(needs=OF_NEW_VERSION)] = None
    labelled: Path | None = None
    stratum: Annotated[Text, Option(needs=ELSEWHERE)] = None
    sizes: Annotated[Path | None, Option(needs=ELSEWHERE)] = None
    cluster: Annotated[Text, Option(needs=ELSEWHERE)] = None
    weight: Annotated[Text, Option(needs=ELSEWHERE)] = None
    population_size: Annotated[Whole, Option(needs=ELSEWHERE)] = None
    proxy: Annotated[Text, Option(needs=ELSEWHERE)] = None

    @property
    def shared(self) -> dict[str, Any]:
        """What a report, and what more labels would buy, take of the keywords of `stratal.estimate`."""
        return given(self, "estimand", "combine") | {"predicted": self.predicted}

    @property
    def answer_column(self) -> str | None:
        """The column of answers that is named, if labels are compared with one."""
        return None if self.predicted == NO_CLASSES else self.predicted

    @property
    def fitted(self) -> dict[str, Any]:
        """The other keywords of `stratal.estimate` that name how to estimate."""
        known = given(self, "estimator", "outcome", "cross_fit", "calibration") | self.stated_target
        return known | {"features": listed(self.features) or None}

    @property
    def stated_target(self) -> dict[str, Any]:
        """The target, where it is stated."""
        return {} if self.target is None else {"target": self.target}

    @property
    def answered(self) -> str:
        """The column of the labels: the first model's where models alone are compared."""
        only = self.metric is None and self.predicted is None and self.value in (None, LABEL)
        alone = only and self.compare and not (self.model or self.labelled)
        return listed(self.compare)[0] if alone else self.value or LABEL


class EstimateCommand(EvidenceOptions, frozen=True, kw_only=True):
    """The options of `estimate`: those of the evidence, and how much is printed.

    Parameters
    ----------
    details : bool
        Print the strata, all rows and all notes, after the answer.
    disagreements : FILE
        Write the items on which a judge and people differ, for a second look: a new .csv. Filled in, it is
        given after LABELS.

    Examples
    --------
    >>> EstimateCommand(require="value>=.9").details
    False
    """

    details: bool = False
    disagreements: Annotated[Path | None, Option(needs="with --judge")] = None


@command(EstimateCommand)
def estimate(requested: EstimateCommand) -> Result:
    """Estimate how good the model is, with an interval.

    Labels are joined to the sample by id. Units without a label are counted
    as nonresponse and handled within their strata. With --labelled the sample was drawn elsewhere: give what
    is known of its design (strata and sizes, or weights).

    With --require the exit status is 0 if the whole interval satisfies it (PASS), 4 if none of it does
    (FAIL), and 5 if labels do not decide (UNDECIDED), for pipelines.
    """
    from stratal.estimation.estimate import with_tables
    from stratal.estimation.second_look import write_disagreements
    from stratal.planning.findings import more_labels_of
    from stratal.report.estimates import answer_page, estimate_page
    from stratal.report.sections import new_answers_page

    with progress("estimating"):
        result = made(requested)
    estimates, evidence, level = result.estimate, result.evidence, requested.confidence_level
    held = result.held
    status = _exit_status(held)
    if result.new is not None and result.old is None:
        described = {"new_version": result.new.to_dict(), "requirements": held or []}
        shown = partial(new_answers_page, title=f"Answers in {requested.against}")
        return Result(described, shown, status=status)
    then: tuple[Any, ...] | None = None
    page: Any = estimate_page if requested.details else answer_page
    if isinstance(estimates, stratal.Estimates):
        found, about = estimates.to_dict(level), partial(answer_page, about=estimates.title)
        page = estimates.page(level) if requested.details else about
    else:
        found = with_tables(
            estimates.to_dict(level, requested.interval), result.tables, level, result.remarks
        )
        then = ("report", *words(part(EvidenceOptions, requested)), "--output", "report.html")
        how = evidence.requested.shared | given(requested, "confidence_level", "interval")
        found["more_labels"] = more_labels_of(evidence.sample, result.labels, estimates, **how)
    if held is not None:
        found["requirements"] = held
    if result.unscored is not None:
        found["unscored"] = result.unscored
    if result.new is not None:
        found["new_version"] = result.new.to_dict()
        found["notes"] = [_new_answers_note(result.new, requested.against), *found["notes"]]
    if requested.disagreements is not None:
        judges, file, value = listed(requested.judge), requested.disagreements, requested.answered
        count = write_disagreements(evidence.sample, evidence.in_words, judges, file, value=value)
        found["disagreements"] = {"file": str(file), "items": count}
    return Result(found, page, then, status=status)


def _new_answers_note(new: NewVersion, file: Path | None) -> str:
    """Return the note that the estimate is of new answers."""
    counts = new.to_dict()
    return (
        f"the estimate is of the answers in {file}: {counts['changed']:,} of {counts['units']:,} differ from "
        f"those that the sample keeps, whose estimate is {counts['old']['estimate']:.4g}"
    )


@dataclass(frozen=True, slots=True)
class Gathered:
    """A sample, what reads a column of its labels, the column to estimate from, and the models compared."""

    # With what a study or the draw knows of them.
    requested: EvidenceOptions
    sample: Sample
    column: Column
    answered: str
    models: tuple[str, ...] = ()
    # Of a study that asks several questions: its outcomes.
    questions: tuple[str, ...] = ()
    # Of a study: the answers in the annotators' words, whatever they count as.
    words: Labels | None = None
    bounds: tuple[float, float] | None = None

    @property
    def labels(self) -> Labels:
        """The labels to estimate from."""
        return self.column(self.answered)

    def with_failed_as_wrong(self, *, lowest: bool = True) -> Gathered:
        """Return the evidence in which answers that failed are wrong."""
        classes = self.requested.predicted is not None

        def column(name: str) -> Labels:
            return self.column(name).failed_as_wrong(self.bounds, lowest=lowest, classes=classes)

        return replace(self, column=column)

    @property
    def in_words(self) -> Labels:
        """The labels in the annotators' words, with the mapping and the positive label of the options."""
        labels = self.words or self.labels
        mapped = mapping("--map", self.requested.map) or labels.mapping
        return replace(labels, positive=self.requested.positive, mapping=mapped)


@dataclass(frozen=True, slots=True)
class Made:
    """An estimate, and what it was made from."""

    evidence: Gathered
    # Labels, or several by their column.
    labels: Any
    # Estimate, or Estimates of several.
    estimate: Any
    tables: list[Estimates]
    remarks: list[str]
    # The one that the estimate is of, where several are compared.
    model: str | None

    # The verdicts on what is required; None where nothing is.
    held: list[dict[str, Any]] | None
    # Of a log: answers that failed, scores that are missing, and what the former count as.
    unscored: dict[str, Any] | None = None
    # With --against: what the labels show of the new answers.
    new: NewVersion | None = None
    # If the estimate is of the new answers: that of the old ones.
    old: Made | None = None


def made(requested: EvidenceOptions) -> Made:
    """Read the evidence and estimate; with --against, evaluate the new answers.

    Examples
    --------
    >>> made(EvidenceOptions())
    Traceback (most recent call last):
    stratal.errors.InputError: nothing to estimate from...
    """
    evidence = _with_population(_of_models(_gathered(requested)))
    if requested.against is None:
        return _estimated(evidence)
    return _against(evidence, requested, requested.against)


def _against(evidence: Gathered, requested: EvidenceOptions, file: Path) -> Made:
    """Return the evaluation of the answers of a new version, as far as their outcomes are known."""
    from stratal.estimation.new_version import NEW_ANSWER, with_new_answers
    from stratal.estimation.requirement import held_against_new_version

    requirements = requested.require
    evidence = replace(evidence, requested=structs.replace(evidence.requested, require=None))
    old = _estimated(evidence)
    answers = _new_answers(requested, evidence, file)
    new = _new_version(requested, old, answers)
    if new.found["compared"] and new.found["complete"]:
        asked = structs.replace(evidence.requested, predicted=NEW_ANSWER, require=requirements)
        sample = with_new_answers(evidence.sample, answers)
        result = _estimated(replace(evidence, sample=sample, requested=asked))
        return replace(result, new=new, old=old)
    held = None
    if requirements is not None:
        held = held_against_new_version(new.to_dict(), requirements.split(";"))
    return replace(old, new=new, held=held)


def _estimated(evidence: Gathered) -> Made:
    """Return the estimate, the tables and the verdicts that are requested of the evidence."""
    from stratal.estimation.estimand import as_estimand
    from stratal.report.estimates import judge_notes

    requested, sample = evidence.requested, evidence.sample
    columns = as_estimand(requested.estimand or sample.question.estimand).label_columns(sample)
    if columns and requested.judge is not None:
        raise no_effect("--judge", f"of one column of labels, and not of {', '.join(columns)}")
    evidence = replace(evidence, answered=columns[0]) if columns else evidence
    unscored = _unscored(evidence)
    if requested.failed_answers == WRONG:
        evidence = evidence.with_failed_as_wrong()
    found, labels = _estimate_and_labels(evidence, columns)
    if isinstance(found, stratal.Estimates):
        for name in ("interval", "metric", "compare", "judge"):
            if getattr(requested, name) not in (None, "auto"):
                raise no_effect(f"--{name}", "with one estimand")
    tables = _tables(evidence)
    remarks = _remarks(evidence)
    for table in tables:
        if table.kind == "judge":
            remarks = [*judge_notes(table.rows(requested.confidence_level)), *remarks]
    model = None if columns or evidence.answered == (requested.value or LABEL) else evidence.answered
    held = None
    if requested.require is not None:
        held = _verdicts(evidence, columns, found, tables)
    return Made(evidence, labels, found, tables, remarks, model, held, unscored)


def _estimate_and_labels(evidence: Gathered, columns: tuple[str, ...]) -> tuple[Any, Any]:
    """Return the estimate, or several of an estimand of several columns, and the labels that it is from."""
    requested = evidence.requested
    labels: Any = {name: evidence.column(name) for name in columns} or evidence.labels
    found = stratal.estimate(
        evidence.sample,
        labels,
        bounds=evidence.bounds,
        limits=pair("--winsorise", requested.winsorise),
        look=requested.look,
        **requested.shared,
        **requested.fitted,
    )
    return found, labels


def _unscored(evidence: Gathered) -> dict[str, Any] | None:
    """Return how many drawn answers of a log failed and how many scores are missing; None of other labels."""
    requested = evidence.requested
    refuse_unknown("failed answers", requested.failed_answers or MISSING, (MISSING, WRONG))
    names = evidence.models or (evidence.answered,)
    labels = {name: evidence.column(name) for name in names}
    if all(each.failed is None for each in labels.values()):
        if requested.failed_answers is not None:
            raise no_effect("--failed-answers", "with scores in the log of an evaluation tool")
        return None
    failed = {name if evidence.models else "": each.failed_answers for name, each in labels.items()}
    missing = {name: len(each.ids) - each.answered - each.failed_answers for name, each in labels.items()}
    counted = f"they count as {requested.failed_answers or MISSING}"
    if requested.failed_answers is None:
        counted = f"{counted}, and as {WRONG} for --require; --failed-answers changes it"
    return {"failed_answers": failed, "missing_scores": missing, "counted": counted}


def _verdicts(
    evidence: Gathered, columns: tuple[str, ...], found: Any, tables: list[Estimates]
) -> list[dict[str, Any]]:
    """Return the verdicts on what is required, for which failed answers are wrong unless an option says else.

    Wrong is the score that speaks against the requirement: the highest where it is to be at most so much.
    """
    from stratal.estimation.requirement import Requirement, held_against

    requested = evidence.requested
    how: dict[str, Any] = {"confidence_level": requested.confidence_level, "method": requested.interval}
    texts = (requested.require or "").split(";")
    names = evidence.models or (evidence.answered,)
    any_failed = any(evidence.column(name).failed_answers for name in names)
    if not any_failed or requested.failed_answers is not None:
        return held_against(found, texts, tables=tables, **how)
    held = []
    for text in texts:
        lowest = Requirement.parse(text).sign == ">="
        strict = evidence.with_failed_as_wrong(lowest=lowest)
        strict_found, _ = _estimate_and_labels(strict, columns)
        held += held_against(strict_found, [text], tables=_tables(strict), **how)
    return held


def _with_population(evidence: Gathered) -> Gathered:
    """Return the evidence with the population of --population in the sample, for what reads it there."""
    from stratal.designs.extending import require_same_population
    from stratal.estimation.calibrated import population_of
    from stratal.estimation.estimand import as_estimand

    requested, sample = evidence.requested, evidence.sample
    place, file = requested.sample, requested.population
    if place is None:
        return evidence
    question = as_estimand(requested.estimand or sample.question.estimand)
    read = question.numbers if question.reads_population else ()
    if file is not None and not read and requested.calibration is None:
        raise no_effect("--population", "with --calibration or --labelled, or for a coefficient")
    if place.is_dir():
        with stratal.study.open_study(place, reading=True) as study:
            known = reading_of(study)
        reading = Reading(**known) if known else None
    else:
        plan = PlanFile.beside(place)
        reading = None if plan is None else part(Reading, plan.options)
    if file is not None:
        units = population_of(sample, file, (*listed(requested.features), *read))
    elif reading is not None and (reading.history is not None or read):
        reading = structs.replace(reading, features=joined(*listed(reading.features), *read) or None)
        units = require_same_population(sample, population_again(reading, sample))
    else:
        return evidence
    return replace(evidence, sample=replace(sample, population=units))


def _tables(evidence: Gathered) -> list[Estimates]:
    """Return the tables of metrics, comparisons and domains that are wanted."""
    from stratal.estimation.evaluation import at_look
    from stratal.estimation.resolve import class_column

    found: list[Estimates] = []
    requested, sample, labels = evidence.requested, evidence.sample, evidence.labels
    target = requested.stated_target
    if requested.metric is not None:
        from stratal.estimation.estimands.classification import ClassReport

        metrics, classes = listed(requested.metric), listed(requested.class_)
        answers = {"labels": labels, "predicted": requested.answer_column}
        seen = {str(one) for name, given in answers.items() for one in class_column(sample, given, name)}
        for name in classes:
            refuse_unknown("class among the drawn units", name, sorted(seen - {"None"}))
        report = ClassReport(metrics, classes, predicted=requested.answer_column)
        found.append(stratal.estimate(sample, labels, estimand=report, **target))
    if evidence.models:
        outcomes = {name: evidence.column(name) for name in evidence.models}
        found.append(stratal.compare(sample, outcomes, bounds=evidence.bounds, **target))
    if requested.judge is not None:
        from stratal.estimation.estimands.judges import JudgeReport

        question = JudgeReport(listed(requested.judge))
        gives_scores = {*question.judges} <= {*sample.proxy_names}
        said = labels if gives_scores else evidence.in_words
        # Groups first: that a judge is worse in one of them is what a reader must not miss.
        if requested.by is not None and not gives_scores:
            found.append(stratal.estimate(sample, said, estimand=question, by=requested.by, **target))
        found.append(stratal.estimate(sample, said, estimand=question, **target))
    if evidence.questions and requested.sample is not None:
        with stratal.study.open_study(requested.sample, reading=True) as study:
            answered = [name for name in evidence.questions if study.labels(name).answered]
            each = {name: stratal.study.estimate_study(study, name, **target) for name in answered}
        rows = [replace(row, label={"question": name}) for name, row in each.items()]
        unanswered = sorted({*evidence.questions} - {*answered})
        remarks = [f"the question {name!r} has no answer yet, and no estimate" for name in unanswered]
        found.append(stratal.Estimates.from_rows(sample, rows, "questions", remarks))
    if requested.by is not None:
        options = requested.shared | requested.fitted | {"bounds": evidence.bounds}
        found.append(stratal.estimate(sample, labels, by=requested.by, **options))
    return found if requested.look is None else [at_look(table, sample, requested.look) for table in found]


def _remarks(evidence: Gathered) -> list[str]:
    """Return what else is to be said: how far annotators agree, and what the labels were taken for."""
    from stratal.estimation.estimand import as_estimand
    from stratal.estimation.evaluation import compared_answers
    from stratal.labels.annotators import agreement_of
    from stratal.labels.labels import with_ids_of

    requested, sample, found = evidence.requested, evidence.sample, list[str]()
    try:
        question = as_estimand(requested.estimand or sample.question.estimand)
        compared = compared_answers(question, sample, evidence.labels, requested.predicted)
        classes = compared is not None
        agreement = agreement_of(with_ids_of(sample, evidence.labels), classes=classes)
        found += [] if agreement is None else [str(agreement), *agreement.warnings]
    except MissingExtraError as error:
        found.append(f"how far the annotators agree: {error}")
    if sample.looks is not None and requested.look is None:
        found.append(
            f"looks were planned ({sample.looks}): this interval is right if there was no look before; "
            "otherwise say which look this is: --look N"
        )
    if evidence.answered != (requested.value or LABEL) and evidence.models:
        found.append(f"the estimate is of {evidence.answered!r}, the first of the models compared")
    return found


def require_present(path: Path) -> None:
    """Refuse the path of a study or of a sample at which there is nothing."""
    from stratal.tables.files import existing_file

    if path.suffix and not path.is_dir():
        existing_file(path)  # it names the files that are there
    elif not path.exists():
        allowed = "the folder that `stratal study new` made, or the file that `stratal draw` wrote"
        raise InputError(f"{path}: there is neither a study nor a sample here", allowed=allowed)


def _gathered(requested: EvidenceOptions) -> Gathered:
    """Return what to estimate from: a study, a sample and its labels, or a sample from elsewhere."""
    from stratal.designs.handover import SAMPLE_NAME

    place = requested.sample
    if requested.labelled is not None:
        evidence = _elsewhere(requested, requested.labelled)
    elif place is not None and place.is_dir() and not (place / SAMPLE_NAME).is_file():
        evidence = _studied(requested, place)
    else:
        evidence = _drawn(requested)
    meant, read = mapping("--map", requested.map), cache(evidence.column)  # several ask for the same

    def column(name: str) -> Labels:
        return replace(read(name), positive=requested.positive, mapping=meant)

    bounds = pair("--bounds", requested.bounds) or evidence.bounds
    sample, requested = evidence.sample, evidence.requested
    if requested.labelled is None:
        sample = _with_predictions(_weighted(sample, requested), requested.predicted, read)
        for judge in listed(requested.judge):
            if judge not in sample.proxy_names:
                sample = _with_predictions(sample, judge, read, "--judge")
    return replace(evidence, requested=requested, sample=sample, column=column, bounds=bounds)


def _drawn(requested: EvidenceOptions) -> Gathered:
    """Return a sample with the files of its labels."""
    from stratal.designs.handover import SAMPLE_NAME
    from stratal.labels.exchange import read_labels

    sample, files = requested.sample, requested.labels
    if sample is not None:
        require_present(sample)
        sample = sample / SAMPLE_NAME if (sample / SAMPLE_NAME).is_file() else sample
        requested = structs.replace(requested, sample=sample)
    allowed = "SAMPLE LABELS…, STUDY, or --labelled FILE"
    if sample is None:
        raise InputError("nothing to estimate from", allowed=allowed)
    if not files:
        own = f"Give their file too: stratal estimate {sample} {sample.parent / 'to_label.csv'}"
        other = f"If {sample} was labelled elsewhere: stratal doctor {sample} shows the command"
        raise InputError(f"{sample}: the labels are missing", allowed=allowed, action=f"{own}. {other}.")
    drawn = stratal.Sample.read(sample)
    if isinstance(drawn.design, stratal.designs.Disagreements):
        drawn.weighting()  # which says what such a sample is for
    ids, order = requested.id or drawn.question.id, drawn.ids.tolist()
    if requested.id not in (None, "row"):  # that there is such a column
        read_labels(*files, id_name=ids, value=ids, order=order)
    usual = None if requested.value is None else LABEL  # of columns called alike, one must be named

    def column(name: str) -> Labels:
        return read_labels(*files, id_name=ids, value=usual if name == LABEL else name, order=order)

    return Gathered(requested, drawn, column, requested.answered)


def _studied(requested: EvidenceOptions, folder: Path) -> Gathered:
    """Return a study's sample with its present labels, and what its question says of them."""
    from stratal.study.study import estimate_options, sample_for_column

    value, files = requested.value, requested.labels
    if files:
        raise no_effect("LABELS", "with a sample; a study has its labels in itself")
    with stratal.study.open_study(folder, reading=True) as study:
        form = study.form
        first = next(iter(form.columns))
        name = first if value in (None, LABEL) else str(value)
        labels = {each: study.labels(each) for each in form.columns}
        drawn = sample_for_column(study, name if name in labels else first)
        known = estimate_options(study, name) if name in labels else {}
        said = study.labels(name if name in labels else first, words=True)
    if not labels[first].answered:
        raise LabelError(
            f"{folder}: nothing is labelled yet",
            action=f"Let annotators label: stratal study label {quote(str(folder))}.",
        )
    questions = tuple[str, ...]()
    only_labels = requested.estimand is None and not (requested.compare or requested.model)
    if value in (None, LABEL) and len(form.questions) > 1 and only_labels and requested.metric is None:
        questions = tuple(each for each in labels if not each.endswith("_asked"))

    def column(name: str) -> Labels:
        if name != LABEL and name not in labels:
            raise InputError("the study asks no such question", given=repr(name), allowed=", ".join(labels))
        return labels.get(name, labels[first])

    estimand = requested.estimand or known.get("estimand")
    return Gathered(
        structs.replace(requested, estimand=estimand),
        drawn,
        column,
        requested.answered,
        questions=questions,
        words=said,
        bounds=known.get("bounds"),
    )


def _elsewhere(requested: EvidenceOptions, table: Path) -> Gathered:
    """Return a sample that was drawn elsewhere, with its table."""
    from stratal.designs.elsewhere import labels_of
    from stratal.tables.small_table import SmallTable

    groups = () if requested.by is None or requested.by == requested.stratum else (requested.by,)
    known = given(requested, *KNOWN.split())
    if requested.sizes is not None and requested.population is None:
        moments = SmallTable.of(requested.sizes, "--sizes").find("variance") is not None
        known["proxy_moments"] = requested.sizes if moments else None
    drawn, first = stratal.Sample.from_labelled(table, value=requested.value or LABEL, groups=groups, **known)

    def column(name: str) -> Labels:
        return replace(labels_of(drawn, table, name), notes=first.notes)

    return Gathered(requested, drawn, column, requested.answered)


def _weighted(sample: Sample, requested: EvidenceOptions) -> Sample:
    """Return the sample weighted to what is known of groups and proxies, if any are named."""
    if requested.margins is not None:
        method, colon, groups = requested.margins.rpartition(":")
        known = colon and method in ("raking", "regression")
        method, groups = (method, groups) if known else ("raking", requested.margins)
        return stratal.designs.fit_margins(sample, listed(groups), method=method)
    if requested.post_stratify is not None:
        return stratal.designs.post_stratify(sample, requested.post_stratify)
    return sample


def _with_predictions(
    sample: Sample, predicted: str | None, column: Column, name: str = "--predicted"
) -> Sample:
    """Return the sample with the model's answers, from the labels where the draw did not keep them."""
    from stratal.estimation.resolve import with_group

    if predicted is None or predicted == NO_CLASSES or predicted in sample.groups:
        return sample
    kept = "--predicted" if name == "--predicted" else "--groups"
    try:
        given = column(predicted)
    except InputError as error:
        if f"no column {predicted!r}" not in str(error):
            raise
        raise InputError(
            f"{name}: neither the sample nor the labels have a column {predicted!r}",
            given=f"the sample keeps {', '.join(map(repr, sample.groups)) or 'no column'}",
            action=f"Put the column in the labels, or draw with {kept}, so that it is kept.",
        ) from None
    return with_group(sample, predicted, given)


def _of_models(evidence: Gathered) -> Gathered:
    """Return the evidence with the models compared: columns of the labels, or levels of a long table."""
    from stratal.labels.exchange import by_model

    requested = evidence.requested
    wanted = listed(requested.compare)
    if not wanted and requested.model is None:
        return evidence
    sample = evidence.sample
    if requested.predicted is None and requested.metric is None:
        # The columns of several models are outcomes, and no classes.
        sample = replace(sample, question=sample.question.refine(predicted=False))
    evidence = replace(evidence, sample=sample)
    if requested.model is None:
        return replace(evidence, models=wanted)
    found = by_model(evidence.column(requested.model), evidence.labels, wanted)
    models = tuple(found)
    return replace(evidence, column=lambda name: found[name], answered=models[0], models=models)


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

    Examples
    --------
    >>> ReportOptions(output=Path("report.html")).items is None
    True
    """

    output: Path
    question: Text = None
    quantity: Text = None
    items: Whole = None


@command(ReportOptions)
def report(requested: ReportOptions) -> Result:
    """Write a report of the estimate: one self-contained page to send to others.

    Takes a study, or a sample and its labels, and the options of `estimate`, and gives the same figures. The
    page asks the network for nothing, and holds nothing that annotators saw unless --items is given.
    With --against it says what the same labels show about a new version of the model, and what needs labels.
    """
    with progress("reporting"):
        result = made(requested)
        found = _findings(requested, result)
        path = found.write(requested.output)
    return Result(found.to_dict(), str(found), f"Report: {path}", status=_exit_status(result.held))


def _exit_status(verdicts: list[dict[str, Any]] | None) -> int:
    """Return the exit status of the verdicts on all requirements."""
    from stratal.estimation.requirement import status_of

    return 0 if verdicts is None else STATUSES[status_of(verdicts)]


def _findings(requested: ReportOptions, evaluated: Made) -> Findings:
    """Return the report: of the answers that the sample keeps, with a section on new ones."""
    result = evaluated.old or evaluated
    asked, question, quantity = result.evidence.requested, requested.question, requested.quantity
    pairs: list[dict[str, Any]] = []
    if requested.sample is not None and result.evidence.words is not None:
        from stratal.study.status import pairs_of

        with stratal.study.open_study(requested.sample, reading=True) as study:
            pairs, choices = pairs_of(study), study.question.choices
            question = question or study.question.text
        ones = [choice.name for choice in choices if choice.value == 1] if len(choices) == 2 else []
        quantity = quantity or (f"share of {ones[0]!r}" if len(ones) == 1 else None)
    if quantity is None and requested.positive is not None:
        quantity = f"share of {requested.positive!r}"
    if result.model is not None:
        quantity = f"{quantity or 'mean outcome'} of {result.model}"
    return stratal.findings(
        result.evidence.sample,
        result.labels,
        found=result.estimate,
        tables=result.tables,
        notes=result.remarks,
        require=evaluated.held or (),
        title=None if question else _title(requested.sample),
        question=question,
        quantity=quantity,
        pairs=pairs,
        new=evaluated.new,
        commands=[
            join(["stratal", name, *words(part(kind, requested))])
            for name, kind in (("estimate", EvidenceOptions), ("report", ReportOptions))
        ],
        examples=requested.items or 0,
        **given(requested, "confidence_level", "interval"),
        **requested.stated_target,
        **asked.shared,
    )


def _title(sample: Path | None) -> str | None:
    """Return a heading with the file of predictions, if the plan next to the sample names it."""
    plan = None if sample is None else PlanFile.beside(sample)
    return None if plan is None else f"How good is the model on {Path(plan.options.file).name}?"


def _new_answers(requested: EvidenceOptions, evidence: Gathered, file: Path) -> Labels:
    """Return the answers of the new version, from the column of --answers or the sample's own."""
    before, _, after = (requested.answers or "").partition("=")
    sample = evidence.sample
    column = after or before or evidence.requested.answer_column or sample.question.answer or "answer"
    return stratal.read_labels(file, id_name=sample.question.id, value=column)


def _new_version(requested: EvidenceOptions, result: Made, answers: Labels) -> NewVersion:
    """Return what the labels show of the new answers."""
    sample: Sample = result.evidence.sample
    asked = result.evidence.requested
    before, equals, _ = (requested.answers or "").partition("=")
    # One name is that of both, where the sample has such a column; else of the new answers alone.
    old = before if equals or before in {*sample.shown, *sample.groups} else None
    changed = None
    if requested.new_labels:
        changed = stratal.read_labels(
            *requested.new_labels,
            id_name=requested.id or sample.question.id,
            mapping=mapping("--map", requested.map),
            **given(requested, "value", "positive"),
        )
    graded = not isinstance(result.estimate, stratal.Estimates) and result.estimate.outcome == "bounded"
    return stratal.new_version(
        sample,
        result.labels,
        answers,
        old_answers=old,
        new_labels=changed,
        **given(requested, "confidence_level", "interval"),
        bounds=result.estimate.bounds if graded else None,
        **asked.shared,
        **asked.fitted,
    )
