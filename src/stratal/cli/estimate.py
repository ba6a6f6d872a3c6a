"""`stratal estimate`: from the sample and its labels to an estimate with its interval."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import Struct, structs

from stratal.cli.command import Needs, argument, command, option, part, words
from stratal.cli.draw import PlanFile, compared, population_again
from stratal.cli.options import (
    Bounds,
    ConfidenceLevel,
    EstimandText,
    Number,
    Reading,
    Target,
    Text,
    Whole,
    places,
)
from stratal.cli.output import Result, progress
from stratal.cli.parsing import listed, mapping, pair, place
from stratal.errors import InputError, LabelError

if TYPE_CHECKING:
    from stratal.designs.sample import Sample
    from stratal.estimation.estimate import Estimate, Estimates
    from stratal.labels.labels import Labels


LABEL = "label"
"""Column of the labels, unless said otherwise."""

STATUSES = {"PASS": 0, "FAIL": 4, "UNDECIDED": 5}
"""Exit statuses of the verdicts on what is required."""

NO_CLASSES = "none"
"""What --predicted says where labels are no classes."""

FOR_NUMBERS = Needs(
    "without --predicted (for one class: --metric precision,recall --class NAME)",
    lambda given: given["predicted"] in (None, NO_CLASSES),
)

LEARNERS = ("gradient-boosting", "history", "logistic-regression", "ridge")
"""Calibrations that learn from several columns; `stratal.proxy.calibration` has the same."""

KNOWN = (
    *("id", "stratum", "sizes", "cluster", "weight", "population", "population_size"),
    *("proxy", "predicted"),
)
"""Options that say what is known of a sample that was drawn elsewhere."""

Column: TypeAlias = "Callable[[str], Labels]"
"""What reads a column of the labels by its name."""

ELSEWHERE = "with --labelled"
DRAWN = "without --labelled"
NO_PLAIN_MEAN = (
    "without --estimand, --predicted, --lam, --cross-fit, --calibration, --outcome, --bounds, --metric, "
    "--compare, --model, --by, --against, --target or --combine (for the mean of numbers)"
)


class EvidenceOptions(Struct, frozen=True, kw_only=True):
    """What `estimate` and `report` estimate, and from what.

    Parameters
    ----------
    value : str
        Column of the label.
    id : str
        Column of ids in LABELS; row for rows in the order of to_label.csv.
    map : LABEL=NUMBER,…
        What labels count as: a number, a class (kitty=cat), or no answer (unsure=).
    combine : str
        What several annotators' answers of one unit become: mean or majority.
    predicted : str
        Compare labels that are classes with this column of answers, kept by draw or in LABELS; none to take
        labels for right (1) or wrong (0).
    estimator : str
        auto, horvitz-thompson, difference, ppi++, stratppi, hajek or post-stratified.
    post_stratify : GROUP
        Weigh the sample by this group, whose sizes the draw kept.
    margins : COL,…
        Fit the weights to these groups' sizes and proxies' means, any design, by raking (positive weights),
        or by regression after that word and a colon.
    lam : float
        λ given instead of fitted.
    cross_fit : FOLDS
        Fit each unit's λ on the other folds' labels.
    calibration : str
        Calibrate the proxy on the labels, cross-fitted: isotonic or logistic; or learn from several
        columns: gradient-boosting, history, logistic-regression or ridge.
    features : COL,…
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
    require : 'NAME>=X'
        What the whole interval must satisfy: 'value>=.9', 'kappa>=.6', 'recall:cat>=.8', 'value@de<=.1';
        several with semicolons, or the option once for each.
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
    value: Annotated[Text, option(shown=LABEL)] = None
    id: Annotated[Text, option(shown="the sample's")] = None
    positive: Annotated[
        Text, option("The label that counts as 1, and every other as 0.", "LABEL", needs=FOR_NUMBERS)
    ] = None
    map: Text = None
    combine: str = "mean"
    predicted: Annotated[Text, option(shown="as drawn, for classes")] = None
    estimand: EstimandText = None
    estimator: str = "auto"
    post_stratify: Annotated[Text, option(needs=(DRAWN, "without --margins (which has it)"))] = None
    margins: Annotated[Text, option(needs=DRAWN)] = None
    lam: Number = None
    cross_fit: Whole = None
    calibration: Text = None
    features: Annotated[
        Text,
        option(
            shown="the sample's proxies",
            needs=f"with --calibration {', '.join(LEARNERS[:-1])} or {LEARNERS[-1]}",
        ),
    ] = None
    population: Path | None = None
    target: Target = "population"
    outcome: Text = None
    bounds: Bounds = None
    winsorise: Annotated[Text, option(needs=NO_PLAIN_MEAN)] = None
    confidence_level: ConfidenceLevel = 0.95
    look: Annotated[Whole, option(needs=DRAWN)] = None
    interval: str = "auto"
    metric: Text = None
    class_: Annotated[Text, option(needs="with --metric")] = None
    compare: Text = None
    model: Text = None
    by: Text = None
    judge: Annotated[Text, option(needs="without --labelled, --estimand or --model")] = None
    require: Text = None
    labelled: Path | None = None
    stratum: Annotated[Text, option(needs=ELSEWHERE)] = None
    sizes: Annotated[Path | None, option(needs=ELSEWHERE)] = None
    cluster: Annotated[Text, option(needs=ELSEWHERE)] = None
    weight: Annotated[Text, option(needs=ELSEWHERE)] = None
    population_size: Annotated[Whole, option(needs=ELSEWHERE)] = None
    proxy: Annotated[Text, option(needs=ELSEWHERE)] = None

    @property
    def answered(self) -> str:
        """The column of the labels: the first model's where models alone are compared."""
        only = self.metric is None and self.predicted is None and self.value in (None, LABEL)
        alone = only and self.compare and not (self.model or self.labelled)
        return listed(self.compare)[0] if alone else self.value or LABEL


class EstimateOptions(EvidenceOptions, frozen=True, kw_only=True):
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
    >>> EstimateOptions(require="value>=.9").details
    False
    """

    details: bool = False
    disagreements: Annotated[Path | None, option(needs="with --judge")] = None


@command(EstimateOptions)
def estimate(requested: EstimateOptions) -> Result:
    """Estimate how good the model is, with an interval.

    Labels are joined to the sample by id. Units without a label are counted
    as nonresponse and handled within their strata. With --labelled the sample was drawn elsewhere: give what
    is known of its design (strata and sizes, or weights).

    With --require the exit status is 0 if the whole interval satisfies it (PASS), 4 if none of it does
    (FAIL), and 5 if labels do not decide (UNDECIDED), for pipelines.
    """
    from stratal.estimation.requirement import status_of
    from stratal.estimation.second_look import write_disagreements
    from stratal.planning.findings import more_labels_of
    from stratal.report.estimates import answer_page, estimate_page

    with progress("estimating"):
        result = made(requested)
    estimates, level = result.estimate, requested.confidence_level
    held = result.held()
    status = 0 if held is None else STATUSES[status_of(held)]
    again = (*places(requested), *words(part(EvidenceOptions, requested)))
    if result.several:
        found = estimates.to_dict(level)
        then: tuple[Any, ...] = ()
    else:
        found = result.described()
        then = ("report", *again, "--output", "report.html")
        found["more_labels"] = more_labels_of(
            result.sample,
            result.labels,
            estimates,
            estimand=requested.estimand,
            predicted=result.requested.predicted or False,
            combine=requested.combine,
            confidence_level=level,
            interval=requested.interval,
        )
    if held is not None:
        found["requirements"] = held
    if requested.disagreements is not None:
        count = write_disagreements(
            result.sample,
            result.words or as_said(result.labels),
            listed(requested.judge),
            requested.disagreements,
            value=requested.answered,
        )
        found["disagreements"] = {"file": str(requested.disagreements), "items": count}
    page: Any = estimate_page if requested.details else answer_page
    if result.several:
        page = (
            (lambda _: estimates.page(level))
            if requested.details
            else partial(answer_page, about=estimates.title)
        )
    return Result(found, page, *([then] if then else []), status=status)


def as_said(labels: Labels) -> Labels:
    """Return labels as annotators said them, whatever number they count as: --map still spells them."""
    kept = {said: meant for said, meant in (labels.mapping or {}).items() if not isinstance(meant, float)}
    return replace(labels, positive=None, mapping=kept or None)


@dataclass(frozen=True, slots=True)
class Made:
    """An estimate, and what it was made from."""

    requested: EvidenceOptions
    sample: Sample
    labels: Any
    """Labels, or several by their column."""
    estimate: Any
    """Estimate, or Estimates of several."""
    tables: list[Estimates]
    remarks: list[str]
    model: str | None = None
    """The one that the estimate is of, where several are compared."""
    words: Labels | None = None
    """Of a study: the answers in the annotators' words."""

    @property
    def several(self) -> bool:
        """Whether there are several estimates."""
        from stratal.estimation.estimate import Estimates

        return isinstance(self.estimate, Estimates)

    def held(self) -> list[dict[str, Any]] | None:
        """Return the verdicts on what is required; None where nothing is."""
        from stratal.estimation.requirement import held_against

        if self.requested.require is None:
            return None
        return held_against(
            self.estimate,
            self.requested.require.split(";"),
            tables=self.tables,
            confidence_level=self.requested.confidence_level,
            method=self.requested.interval,
        )

    def described(self) -> dict[str, Any]:
        """Return the estimate's dict with the tables that were asked for."""
        from stratal.estimation.estimate import with_tables

        level = self.requested.confidence_level
        found = self.estimate.to_dict(level, self.requested.interval)
        return with_tables(found, self.tables, level, self.remarks)


def made(requested: EvidenceOptions) -> Made:
    """Read what is asked for and estimate.

    Examples
    --------
    >>> made(EvidenceOptions())
    Traceback (most recent call last):
    stratal.errors.InputError: nothing to estimate from...
    """
    from stratal.report.judges import judge_notes

    requested, bounds, evidence = gathered(requested)
    evidence = _with_population(requested, of_models(requested, evidence))
    columns = _label_columns(requested, evidence.sample)
    if columns and requested.judge is not None:
        raise InputError(
            "--judge compares one column of labels with verdicts",
            given=f"a sample planned for {', '.join(columns)}",
            action="Leave it out.",
        )
    evidence = replace(evidence, answered=columns[0]) if columns else evidence
    labels = evidence.labels
    given = {name: evidence.column(name) for name in columns} if columns else labels
    limits = pair("--winsorise", requested.winsorise)
    result = _estimated(requested, evidence.sample, given, bounds, limits)
    _refuse_combination(requested, result)
    tables = _tables(requested, evidence, labels, bounds)
    remarks = _remarks(requested, evidence, labels)
    for table in tables:
        if table.kind == "judge":
            remarks = [*judge_notes(table.rows(requested.confidence_level)), *remarks]
    model = None if columns or evidence.answered == (requested.value or LABEL) else evidence.answered
    return Made(requested, evidence.sample, given, result, tables, remarks, model, evidence.words)


def _label_columns(requested: EvidenceOptions, sample: Sample) -> tuple[str, ...]:
    """Return the columns of labels that the estimand takes together, such as two models' outcomes."""
    from stratal.estimation.estimand import as_estimand

    return as_estimand(requested.estimand or sample.estimand).label_columns(sample)


def _refuse_combination(requested: EvidenceOptions, result: Any) -> None:
    """Refuse options for one estimate where there are several."""
    from stratal.estimation.estimate import Estimates

    if not isinstance(result, Estimates):
        return
    for name in ("interval", "metric", "compare", "judge", "by"):
        if getattr(requested, name) not in (None, "auto"):
            raise InputError(
                f"--{name} would have no effect",
                given=f"--estimand {requested.estimand}"
                if requested.estimand
                else "a sample planned for several",
                allowed=f"--{name} with one estimand",
                action="Leave it out, or ask for it in a command of its own.",
            )


def _with_population(requested: EvidenceOptions, evidence: GatheredEvidence) -> GatheredEvidence:
    """Return the evidence with the population of --population in the sample, for what reads it there."""
    from stratal.designs.extending import require_same_population
    from stratal.designs.handover import PLAN_NAME
    from stratal.estimation.calibrated import population_of
    from stratal.estimation.estimand import as_estimand

    if requested.labelled is not None:
        return evidence
    sample = evidence.sample
    question = as_estimand(requested.estimand or sample.estimand)
    read = question.numbers if question.reads_population else ()
    plan = None if requested.sample is None else PlanFile.read(requested.sample.parent / PLAN_NAME)
    reading = _reading(requested, plan)
    if reading is not None and reading.history is not None and requested.population is None:
        units = require_same_population(sample, population_again(reading, sample))
        return replace(evidence, sample=replace(sample, population=units))
    if requested.population is None and read:
        requested = structs.replace(requested, population=None if plan is None else plan.options.file)
    if requested.population is None:
        return evidence
    if not read and requested.calibration is None:
        raise InputError(
            "--population would have no effect",
            allowed="--population with --calibration or --labelled, or for a coefficient",
            action="Leave it out, or change the other option.",
        )
    units = population_of(sample, requested.population, (*listed(requested.features), *read))
    return replace(evidence, sample=replace(sample, population=units))


def _reading(requested: EvidenceOptions, plan: PlanFile | None) -> Reading | None:
    """Return how the units were read that a sample or a study was drawn from, where that is known."""
    if requested.sample is None or not requested.sample.is_dir():
        return None if plan is None else part(Reading, plan.options)
    from stratal.study.opening import open_study

    with open_study(requested.sample, reading=True) as study:
        known: dict[str, Any] = json.loads(study.setting("reading") or "{}")
    return Reading(**known | {"file": place(known["file"])}) if known else None


def _agreement(sample: Sample, labels: Labels, *, classes: bool) -> list[str]:
    """Return how far several annotators agree, in words."""
    from stratal.errors import MissingExtraError
    from stratal.labels.annotators import agreement_of
    from stratal.labels.labels import with_ids_of

    try:
        found = agreement_of(with_ids_of(sample, labels), classes=classes)
    except MissingExtraError as error:
        return [f"how far the annotators agree: {error}"]
    return [] if found is None else [str(found), *found.warnings]


def _estimated(
    requested: EvidenceOptions,
    sample: Sample,
    labels: Any,
    bounds: tuple[float, float] | None,
    limits: tuple[float, float] | None,
) -> Estimate | Estimates:
    """Return the estimate of the mean, within limits if any are given, or of the accuracy of classes."""
    from stratal.estimation.evaluation import estimate as estimated

    found: Estimate | Estimates = estimated(
        sample,
        labels,
        estimator=requested.estimator,
        target=requested.target,
        outcome=requested.outcome,
        bounds=bounds,
        limits=limits,
        lam=requested.lam,
        predicted=requested.predicted or False,
        combine=requested.combine,
        cross_fit=requested.cross_fit,
        calibration=requested.calibration,
        features=listed(requested.features) or None,
        estimand=requested.estimand,
        look=requested.look,
    )
    return found


def _tables(
    requested: EvidenceOptions, evidence: GatheredEvidence, labels: Labels, bounds: tuple[float, float] | None
) -> list[Estimates]:
    """Return the tables of metrics, comparisons and domains that are wanted."""
    from stratal.estimation.comparison import compare
    from stratal.estimation.estimands import ClassReport, JudgeReport
    from stratal.estimation.estimate import Estimates
    from stratal.estimation.evaluation import at_look
    from stratal.estimation.evaluation import estimate as estimated

    found: list[Estimates] = []
    sample, predicted = evidence.sample, requested.predicted
    shared: dict[str, Any] = {"target": requested.target}
    if requested.metric is not None:
        classes = listed(requested.class_)
        _refuse_strangers(sample, labels, predicted, classes)
        report = ClassReport(listed(requested.metric), classes, predicted=predicted)
        found.append(estimated(sample, labels, estimand=report, **shared))
    if evidence.models:
        outcomes = {name: evidence.column(name) for name in evidence.models}
        found.append(compare(sample, outcomes, bounds=bounds, **shared))
    if requested.judge is not None:
        question = JudgeReport(listed(requested.judge))
        said = evidence.words or as_said(labels)
        # Groups first: that a judge is worse in one of them is what a reader must not miss.
        if requested.by is not None and not {*question.judges} <= {*sample.proxy_names}:
            found.append(estimated(sample, said, estimand=question, by=requested.by, **shared))
        found.append(estimated(sample, said, estimand=question, **shared))
    if evidence.questions:
        rows = [_of_question(requested, evidence, name) for name in evidence.questions]
        found.append(Estimates.from_rows(sample, rows, "questions", []))
    if requested.by is not None:
        shared |= {"predicted": predicted or False, "combine": requested.combine, "bounds": bounds}
        found.append(estimated(sample, labels, estimand="mean", by=requested.by, **shared))
    return found if requested.look is None else [at_look(table, sample, requested.look) for table in found]


def _of_question(requested: EvidenceOptions, evidence: GatheredEvidence, name: str) -> Estimate:
    """Return the estimate of one of a study's questions, labelled by its name."""
    from stratal.study.opening import open_study
    from stratal.study.study import estimate_study

    assert requested.sample is not None
    with open_study(requested.sample, reading=True) as study:
        return replace(estimate_study(study, name, target=requested.target), label={"question": name})


def _remarks(requested: EvidenceOptions, evidence: GatheredEvidence, labels: Labels) -> list[str]:
    """Return what else is to be said: how far annotators agree, and what the labels were taken for."""
    sample = evidence.sample
    found = _agreement(sample, labels, classes=requested.predicted is not None)
    found += [evidence.disagreements] if evidence.disagreements else []
    if sample.looks is not None and requested.look is None:
        found.append(
            f"looks were planned ({sample.looks}): this interval is right if there was no look before; "
            "otherwise say which look this is: --look N"
        )
    asked_for_mean = requested.estimand is None and sample.estimand is None
    if (
        asked_for_mean
        and requested.predicted is None
        and sample.predicted is not None
        and not requested.compare
    ):
        found.append(
            "labels were taken as right (1) or wrong (0); if they are classes, compare them with the model's "
            f"answers: --predicted {sample.predicted}"
        )
    if evidence.by_default and sample.predicted is not None:
        answers = {*sample.groups[sample.predicted].tolist()}
        if answers <= {"0", "1"}:
            found.append(
                f"labels were compared with the answers in {sample.predicted!r}; if they say right (1) "
                "or wrong (0): --predicted none"
            )
    if evidence.answered != (requested.value or LABEL) and evidence.models:
        found.append(f"the estimate is of {evidence.answered!r}, the first of the models compared")
    return found


def _refuse_strangers(
    sample: Sample, labels: Labels, predicted: str | None, classes: tuple[str, ...]
) -> None:
    """Refuse classes that neither a label nor an answer has."""
    from stratal.errors import near_names
    from stratal.estimation.columns import class_column

    columns = (class_column(sample, labels, "labels"), class_column(sample, predicted, "predicted"))
    found = sorted({str(entry) for column in columns for entry in column if entry is not None})
    for name in classes:
        if name not in found:
            raise InputError(
                f"--class: no drawn unit has the class {name!r}", allowed=near_names(name, found)
            )


@dataclass(frozen=True, slots=True)
class GatheredEvidence:
    """A sample, what reads a column of its labels, the column to estimate from, and the models compared."""

    sample: Sample
    column: Column
    answered: str
    models: tuple[str, ...] = ()
    by_default: bool = False
    """Whether labels are compared with the model's answers though no option says so."""
    questions: tuple[str, ...] = ()
    """Of a study that asks several questions: its outcomes."""
    words: Labels | None = None
    """Of a study: the answers in the annotators' words, whatever they count as."""
    disagreements: str = ""
    """What is said of a study whose annotators differ."""

    @property
    def labels(self) -> Labels:
        """The labels to estimate from."""
        return self.column(self.answered)


def require_present(path: Path) -> None:
    """Refuse the path of a study or of a sample at which there is nothing."""
    from stratal.tables.files import existing_file

    if path.suffix and not path.is_dir():
        existing_file(path)  # it names the files that are there
    if not path.exists():
        raise InputError(
            f"{path}: there is neither a study nor a sample here",
            allowed="the folder that `stratal study new` made, or the file that `stratal draw` wrote",
            action="Check the path.",
        )


def _drawn(
    sample: Path | None, files: list[Path] | None, id_name: str | None, value: str | None
) -> tuple[Sample, Column, dict[str, Any]]:
    """Return the sample, what reads a column of its labels, and what a study's question says of them."""
    from stratal.designs.sample import Sample
    from stratal.labels.label_file import read_labels

    if sample is not None and sample.is_dir():
        return _studied(sample, files, value)
    if sample is not None:
        require_present(sample)
    if sample is not None and not files:
        raise InputError(
            f"{sample}: the labels are missing",
            allowed="SAMPLE LABELS…, STUDY, or --labelled FILE",
            action=f"Give their file too: stratal estimate {sample} {sample.parent / 'to_label.csv'}."
            if sample.suffix == ".parquet"
            else f"If {sample} was labelled elsewhere: stratal doctor {sample} shows the command.",
        )
    if sample is None or not files:
        raise InputError("nothing to estimate from", allowed="SAMPLE LABELS…, STUDY, or --labelled FILE")
    drawn = Sample.read(sample)
    ids, order = id_name or drawn.id_name, drawn.ids.tolist()
    if id_name is not None and id_name != "row":
        read_labels(*files, id_name=id_name, value=id_name, order=order)
    usual = None if value is None else LABEL  # of columns called alike, one must be named

    def column(name: str) -> Labels:
        return read_labels(*files, id_name=ids, value=usual if name == LABEL else name, order=order)

    return drawn, column, {}


def _studied(
    folder: Path, files: list[Path] | None, value: str | None
) -> tuple[Sample, Column, dict[str, Any]]:
    """Return what `_drawn` does, of a study with its present labels."""
    from stratal.designs.handover import SAMPLE_NAME
    from stratal.study.database import DATABASE
    from stratal.study.opening import open_study
    from stratal.study.status import disagreements_of
    from stratal.study.study import estimate_options

    given = files or [folder / "to_label.csv"]
    if (folder / SAMPLE_NAME).is_file() and not (folder / DATABASE).exists():
        raise InputError(
            f"{folder}: contains a sample but no study",
            action=f"Give the files: stratal estimate {join(map(str, [folder / SAMPLE_NAME, *given]))}.",
        )
    if files:
        raise InputError(
            "a study has its labels in itself", given=files[0], action="Give the study's folder alone."
        )
    with open_study(folder, reading=True) as study:
        drawn, form = study.sample(), study.form
        first = next(iter(form.columns))
        name = first if value in (None, LABEL) else value
        labels = {each: study.labels(each) for each in form.columns}
        known = estimate_options(study, drawn, name) if name in labels else {}
        known["words"] = study.labels(name, words=True) if name in labels else None
        apart = disagreements_of(study)
    if not labels[first].answered:
        raise LabelError(
            f"{folder}: nothing is labelled yet",
            action=f"Let annotators label: stratal study label {quote(str(folder))}.",
        )
    if known.pop("predicted", False):
        known["predicted"] = drawn.predicted
    if apart["apart"]:
        several = f"the {apart['shared']:,} items that several people answered"
        known["disagreements"] = (
            f"annotators differ on {apart['share']:.0%} of {several}: {apart['open']:,} without a decision"
        )
    if value in (None, LABEL) and len(form.questions) > 1:
        known["questions"] = tuple(each for each in labels if not each.endswith("_asked"))

    def column(name: str) -> Labels:
        if name != LABEL and name not in labels:
            raise InputError("the study asks no such question", given=repr(name), allowed=", ".join(labels))
        return labels.get(name, labels[first])

    return drawn, column, known


def gathered(
    requested: EvidenceOptions,
) -> tuple[EvidenceOptions, tuple[float, float] | None, GatheredEvidence]:
    """Return the options with what a study knows of them, the outcome's bounds, and what to estimate from.

    Examples
    --------
    >>> gathered(EvidenceOptions())
    Traceback (most recent call last):
    stratal.errors.InputError: nothing to estimate from...
    """
    bounds = pair("--bounds", requested.bounds)
    if requested.labelled is None:
        sample, column, known = _drawn(requested.sample, requested.labels, requested.id, requested.value)
        bounds = bounds or known.get("bounds")
        requested = structs.replace(requested, estimand=requested.estimand or known.get("estimand"))
        sample = _with_predictions(_post_stratified(sample, requested), requested.predicted, column)
        for judge in listed(requested.judge):
            if judge not in sample.proxy_names:
                sample = _with_predictions(sample, judge, column, "--judge")
    else:
        (sample, column), known = _elsewhere(requested, requested.labelled), {}
    meant = mapping("--map", requested.map)

    def counted(name: str) -> Labels:
        return replace(column(name), positive=requested.positive, mapping=meant)

    predicted = requested.predicted or known.get("predicted")
    only_labels = requested.estimand is None and not (requested.compare or requested.model)
    by_default = (
        requested.sample is not None and not requested.sample.is_dir() and only_labels and predicted is None
    )
    if by_default:
        predicted = compared(sample, counted(requested.answered))
    requested = structs.replace(requested, predicted=None if predicted == NO_CLASSES else predicted)
    by_default = by_default and predicted is not None
    found = GatheredEvidence(sample, counted, requested.answered, by_default=by_default)
    alone = only_labels and requested.metric is None
    questions = known.get("questions", ()) if alone else ()
    said: Labels | None = known.get("words")
    said = as_said(replace(said, mapping=meant)) if said is not None and meant else said
    more = {"words": said, "disagreements": known.get("disagreements", "")}
    return requested, bounds, replace(found, questions=questions, **more)


def _post_stratified(sample: Sample, requested: EvidenceOptions) -> Sample:
    """Return the sample weighted to what is known of groups and proxies, if any are named."""
    from stratal.designs.margins import fit_margins, post_stratify

    if requested.margins is not None:
        method, colon, groups = requested.margins.rpartition(":")
        known = colon and method in ("raking", "regression")
        method, groups = (method, groups) if known else ("raking", requested.margins)
        return fit_margins(sample, listed(groups), method=method)
    return sample if requested.post_stratify is None else post_stratify(sample, requested.post_stratify)


def _with_predictions(
    sample: Sample, predicted: str | None, column: Column, name: str = "--predicted"
) -> Sample:
    """Return the sample with the model's answers, from the labels where the draw did not keep them."""
    if predicted in (None, NO_CLASSES) or predicted in sample.groups:
        return sample
    from stratal.estimation.columns import with_group

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


def _elsewhere(requested: EvidenceOptions, table: Path) -> tuple[Sample, Column]:
    """Return a sample that was drawn elsewhere, and what reads a column of its table."""
    from stratal.designs.elsewhere import labels_of
    from stratal.designs.sample import Sample
    from stratal.tables.small_table import SmallTable

    groups = () if requested.by is None or requested.by == requested.stratum else (requested.by,)
    known: dict[str, Any] = {name: getattr(requested, name) for name in KNOWN}
    if requested.sizes is not None and requested.population is None:
        moments = SmallTable.of(requested.sizes, "--sizes").find("variance") is not None
        known["proxy_moments"] = requested.sizes if moments else None
    drawn, first = Sample.from_labelled(table, value=requested.value or LABEL, groups=groups, **known)
    return drawn, lambda name: replace(labels_of(drawn, table, name), notes=first.notes)


def of_models(requested: EvidenceOptions, evidence: GatheredEvidence) -> GatheredEvidence:
    """Return the evidence with the models compared: columns of the labels, or levels of a long table.

    Examples
    --------
    >>> of_models(EvidenceOptions(compare="a,b"), GatheredEvidence(None, None, "a")).models
    ('a', 'b')
    """
    wanted = listed(requested.compare)
    if requested.model is None:
        return replace(evidence, models=wanted)
    from stratal.labels.label_file import by_model

    found = by_model(evidence.column(requested.model), evidence.labels, wanted)
    models = tuple(found)
    return GatheredEvidence(evidence.sample, lambda name: found[name], models[0], models)
