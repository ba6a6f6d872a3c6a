"""`stratal report`: one page that says what was found, to send to others."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from stratal.cli.command import command, option, part, words
from stratal.cli.estimate import EvidenceOptions, Made, made
from stratal.cli.options import Text, Whole, places
from stratal.cli.output import Result, progress
from stratal.cli.parsing import listed, mapping

if TYPE_CHECKING:
    from stratal.estimation.new_version import NewVersion
    from stratal.planning.findings import Findings


OF_NEW_VERSION = "with --against"


class ReportOptions(EvidenceOptions, frozen=True, kw_only=True):
    """The options of `report`: those of `estimate`, and what the page says besides.

    Parameters
    ----------
    output : FILE
        The report: .html, .md or .json.
    question : str
        What the annotators were asked; the heading of the page.
    quantity : str
        What the estimate is called: accuracy, pass rate, …
    against : FILE
        Answers of a new version of the model, joined by id.
    answers : COL or OLD=NEW
        Column of the answers in that file, and in the sample where that is another.
    new_labels : paths
        Labels of answers that changed, as far as they are there.
    items : int
        Show so many units as annotators saw them; without it no payload is in it.

    Examples
    --------
    >>> ReportOptions(output=Path("report.html")).items is None
    True
    """

    output: Path
    question: Annotated[Text, option(shown="the study's")] = None
    quantity: Text = None
    against: Path | None = None
    answers: Annotated[Text, option(shown="the model's answer", needs=OF_NEW_VERSION)] = None
    new_labels: Annotated[list[Path] | None, option(names=("--labels",), needs=OF_NEW_VERSION)] = None
    items: Annotated[Whole, option(shown="none")] = None


@command(ReportOptions)
def report(requested: ReportOptions) -> Result:
    """Write a report of the estimate: one self-contained page to send to others.

    Takes a study, or a sample and its labels, and the options of `estimate`, and gives the same figures. The
    page asks the network for nothing, and holds nothing that annotators saw unless --items is given.
    With --against it says what the same labels show about a new version of the model, and what needs labels.
    """
    with progress("reporting"):
        found = _findings(requested)
        path = found.write(requested.output)
    return Result(found.to_dict(), str(found), f"Report: {path}")


def _findings(requested: ReportOptions) -> Findings:
    from stratal.planning.findings import findings

    result = made(requested)
    known = _of_study(requested.sample)
    question = requested.question or known.get("question")
    return findings(
        result.sample,
        result.labels,
        found=result.estimate,
        tables=result.tables,
        notes=result.remarks,
        require=result.held() or (),
        title=None if question else _title(requested.sample),
        question=question,
        quantity=_of_model(
            requested.quantity or known.get("quantity") or _counted(requested.positive), result.model
        ),
        confidence_level=requested.confidence_level,
        interval=requested.interval,
        pairs=known.get("pairs", ()),
        new=None if requested.against is None else _new_version(requested, result, requested.against),
        commands=_commands(requested),
        examples=requested.items or 0,
        predicted=result.requested.predicted or False,
        combine=requested.combine,
        estimand=requested.estimand,
        target=requested.target,
    )


def _title(sample: Path | None) -> str | None:
    """Return a heading with the file of predictions, if the plan next to the sample names it."""
    from stratal.cli.draw import PlanFile
    from stratal.designs.handover import PLAN_NAME

    plan = None if sample is None else PlanFile.read(sample.parent / PLAN_NAME)
    if plan is None or plan.options.file is None:
        return None
    return f"How good is the model on {Path(plan.options.file).name}?"


def _of_model(quantity: str | None, model: str | None) -> str | None:
    """Return what the estimate is called where it is of one of several models."""
    return quantity if model is None else f"{quantity or 'mean outcome'} of {model}"


def _counted(positive: str | None) -> str | None:
    """Return what the mean is called where one label counts as 1 and all others as 0."""
    return None if positive is None else f"share of {positive!r}"


def _of_study(folder: Path | None) -> dict[str, Any]:
    """Return a study's question and how far each pair of its annotators agrees; nothing of a file."""
    if folder is None or not folder.is_dir():
        return {}
    from stratal.study.opening import open_study
    from stratal.study.status import pairs_of

    with open_study(folder, reading=True) as study:
        pairs, question = pairs_of(study), study.question
    choices = question.choices
    ones = [choice.name for choice in choices if choice.value == 1] if len(choices) == 2 else []
    return {
        "question": question.text,
        "pairs": pairs,
        "quantity": f"share of {ones[0]!r}" if len(ones) == 1 else None,
    }


def _new_version(requested: ReportOptions, result: Made, file: Path) -> NewVersion:
    from stratal.estimation.new_version import new_version
    from stratal.labels.label_file import read_labels

    sample = result.sample
    predicted = result.requested.predicted
    before, equals, after = (requested.answers or "").partition("=")
    # One name is that of both, where the sample has such a column; else of the new answers alone.
    old = before if equals or before in {*sample.shown, *sample.groups} else None
    column = after or before or predicted or sample.predicted or "answer"
    given = None
    if requested.new_labels:
        given = read_labels(
            *requested.new_labels,
            id_name=requested.id or sample.id_name,
            value=requested.value,
            positive=requested.positive,
            mapping=mapping("--map", requested.map),
        )
    return new_version(
        sample,
        result.labels,
        read_labels(file, id_name=sample.id_name, value=column),
        old_answers=old,
        new_labels=given,
        predicted=predicted or False,
        combine=requested.combine,
        confidence_level=requested.confidence_level,
        interval=requested.interval,
        estimator=requested.estimator,
        target=requested.target,
        outcome=requested.outcome,
        bounds=None if result.several or result.estimate.outcome != "bounded" else result.estimate.bounds,
        lam=requested.lam,
        cross_fit=requested.cross_fit,
        calibration=requested.calibration,
        features=listed(requested.features) or None,
        estimand=requested.estimand,
    )


def _commands(requested: ReportOptions) -> list[str]:
    """Return what to type to get the estimate and the report again."""
    return [
        shlex.join(["stratal", name, *places(requested), *words(part(kind, requested))])
        for name, kind in (("estimate", EvidenceOptions), ("report", ReportOptions))
    ]
