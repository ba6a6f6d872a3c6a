"""`stratal estimate`: from the sample and its labels to an estimate with its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratal.cli import options as o
from stratal.cli.evidence import EvidenceOptions, GatheredEvidence, gathered, of_models
from stratal.cli.output import print_json, print_next, print_page, progress
from stratal.cli.records import takes
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.designs.sample import Sample
    from stratal.estimation.estimate import Estimate
    from stratal.estimation.estimates import Estimates
    from stratal.labels.labels import Labels


REQUIREMENT_FAILED = 4
"""Exit status where the interval does not lie where it must."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiringOptions(EvidenceOptions):
    """The options of `estimate`, and what is required of its interval.

    Examples
    --------
    >>> RequiringOptions(require_lower=0.9).require_upper is None
    True
    """

    require_lower: Annotated[
        float | None,
        typer.Option(help="Exit status 4 unless the interval's lower end is at least this."),
    ] = None
    require_upper: Annotated[
        float | None, typer.Option(help="Exit status 4 unless the interval's upper end is at most this.")
    ] = None


@takes(RequiringOptions)
def estimate(asked: RequiringOptions) -> None:
    """Estimate how good the model is, with an interval.

    Labels are joined to the sample by id. Units without a label are nonresponse: handled within strata, and
    counted. With --labelled the sample was drawn elsewhere: give what is known of how (strata and sizes, or
    weights).

    With --require-lower or --require-upper the exit status is 4 if the interval does not lie there, for
    pipelines.
    """
    from stratal.estimation.requirement import Requirement
    from stratal.report import estimate_page

    wanted = Requirement(lower=asked.require_lower, upper=asked.require_upper)
    with progress("estimating"):
        result = made(asked)
    estimates = result.estimate
    required = asked.require_lower is not None or asked.require_upper is not None
    if result.several:
        if required:
            raise InputError(
                "--require-lower and --require-upper need one interval, and here there are several",
                action="Ask for one estimate in a command of its own.",
            )
        if asked.json:
            print_json(estimates.to_dict(asked.confidence_level))
        else:
            print_page(estimates.page(asked.confidence_level))
        return
    wanted.check(estimates.bounds)
    found = result.described()
    if required:
        found["requirement"] = wanted.to_dict(found["confidence_interval"])
    if asked.json:
        print_json(found)
    else:
        print_page(estimate_page(found))
        again = o.words(o.part(EvidenceOptions, asked))
        print_next("report", *o.places(asked), *again, "--output", "report.html")
    if not wanted.met(found["confidence_interval"]):
        raise typer.Exit(REQUIREMENT_FAILED)


@dataclass(frozen=True, slots=True)
class Made:
    """An estimate, and what it was made from."""

    asked: EvidenceOptions
    sample: Sample
    labels: Any
    """Labels, or several by their column."""
    estimate: Any
    """Estimate, or Estimates of several."""
    tables: list[Estimates]
    remarks: list[str]
    model: str | None = None
    """The one that the estimate is of, where several are compared."""

    @property
    def several(self) -> bool:
        """Whether there are several estimates."""
        from stratal.estimation.estimates import Estimates

        return isinstance(self.estimate, Estimates)

    def described(self) -> dict[str, Any]:
        """Return the estimate's dict with the tables that were asked for."""
        from stratal.estimation.estimates import with_tables

        level = self.asked.confidence_level
        return with_tables(
            self.estimate.to_dict(level, self.asked.interval), self.tables, level, self.remarks
        )


def made(asked: EvidenceOptions) -> Made:
    """Read what is asked for and estimate.

    Examples
    --------
    >>> made(EvidenceOptions())
    Traceback (most recent call last):
    stratal.errors.InputError: nothing to estimate from...
    """
    asked, bounds, evidence = gathered(asked)
    evidence = _with_population(asked, of_models(asked, evidence))
    columns = _label_columns(asked, evidence.sample)
    evidence = replace(evidence, answered=columns[0]) if columns else evidence
    labels = evidence.labels
    given = {name: evidence.column(name) for name in columns} if columns else labels
    limits = o.pair("--winsorise", asked.winsorise)
    result = _estimated(asked, evidence.sample, given, bounds, limits)
    _refuse_beside(asked, result)
    tables = _tables(asked, evidence, labels, bounds)
    remarks = _remarks(asked, evidence, labels)
    model = None if columns or evidence.answered == asked.value else evidence.answered
    return Made(asked, evidence.sample, given, result, tables, remarks, model)


def _label_columns(asked: EvidenceOptions, sample: Sample) -> tuple[str, ...]:
    """Return the columns of labels that the estimand takes together, such as two models' outcomes."""
    from stratal.estimation.estimand import as_estimand

    return as_estimand(asked.estimand or sample.estimand).label_columns(sample)


def _refuse_beside(asked: EvidenceOptions, result: Any) -> None:
    """Refuse options for one estimate where there are several."""
    from stratal.estimation.estimates import Estimates

    if not isinstance(result, Estimates):
        return
    for name in ("interval", "metric", "compare", "by"):
        if getattr(asked, name) not in (None, "auto"):
            raise InputError(
                f"--{name} would have no effect",
                given=f"--estimand {asked.estimand}" if asked.estimand else "a sample planned for several",
                allowed=f"--{name} with one estimand",
                action="Leave it out, or ask for it in a command of its own.",
            )


def _with_population(asked: EvidenceOptions, evidence: GatheredEvidence) -> GatheredEvidence:
    """Return the evidence with the population of --population in the sample, for what reads it there."""
    from stratal.estimation.calibrated import population_of
    from stratal.estimation.estimand import as_estimand

    if asked.population is None or asked.labelled is not None:
        return evidence
    sample = evidence.sample
    question = as_estimand(asked.estimand or sample.estimand)
    read = question.numbers if question.reads_population else ()
    if not read and asked.calibration is None:
        raise InputError(
            "--population would have no effect",
            allowed="--population with --calibration or --labelled, or for a coefficient",
            action="Leave it out, or change the other option.",
        )
    units = population_of(sample, asked.population, (*o.listed(asked.features), *read))
    return replace(evidence, sample=replace(sample, population=units))


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
    asked: EvidenceOptions,
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
        estimator=asked.estimator,
        target=asked.target,
        outcome=asked.outcome,
        bounds=bounds,
        limits=limits,
        lam=asked.lam,
        predicted=asked.predicted or False,
        combine=asked.combine,
        cross_fit=asked.cross_fit,
        calibration=asked.calibration,
        features=o.listed(asked.features) or None,
        estimand=asked.estimand,
    )
    return found


def _tables(
    asked: EvidenceOptions, evidence: GatheredEvidence, labels: Labels, bounds: tuple[float, float] | None
) -> list[Estimates]:
    """Return the tables of metrics, comparisons and domains that are wanted."""
    from stratal.estimation.comparison import compare
    from stratal.estimation.estimands import ClassReport
    from stratal.estimation.evaluation import estimate as estimated

    found: list[Estimates] = []
    sample, predicted = evidence.sample, asked.predicted
    shared: dict[str, Any] = {"target": asked.target}
    if asked.metric is not None:
        classes = o.listed(asked.class_)
        _refuse_strangers(sample, labels, predicted, classes)
        report = ClassReport(o.listed(asked.metric), classes, predicted=predicted)
        found.append(estimated(sample, labels, estimand=report, **shared))
    if evidence.models:
        outcomes = {name: evidence.column(name) for name in evidence.models}
        found.append(compare(sample, outcomes, bounds=bounds, **shared))
    if asked.by is not None:
        shared |= {"predicted": predicted or False, "combine": asked.combine, "bounds": bounds}
        found.append(estimated(sample, labels, estimand="mean", by=asked.by, **shared))
    return found


def _remarks(asked: EvidenceOptions, evidence: GatheredEvidence, labels: Labels) -> list[str]:
    """Return what else is to be said: how far annotators agree, and what the labels were taken for."""
    sample = evidence.sample
    found = _agreement(sample, labels, classes=asked.predicted is not None)
    asked_for_mean = asked.estimand is None and sample.estimand is None
    if asked_for_mean and asked.predicted is None and sample.predicted is not None and not asked.compare:
        found.append(
            "labels were taken as right (1) or wrong (0); if they are classes, compare them with the model's "
            f"answers: --predicted {sample.predicted}"
        )
    if evidence.answered != asked.value and evidence.models:
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
