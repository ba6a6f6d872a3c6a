"""`stratal report`: one page that says what was found, for somebody who was not there."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import stratal
from stratal.cli.command import Option, command, given, part, words
from stratal.cli.draw import PlanFile
from stratal.cli.estimate import EvidenceOptions, Made, made
from stratal.cli.options import Text, Whole
from stratal.cli.output import Result, progress
from stratal.cli.parsing import mapping

if TYPE_CHECKING:
    from stratal import Sample
    from stratal.estimation.new_version import NewVersion
    from stratal.planning.findings import Findings


OF_NEW_VERSION = "with --against"


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
    against : FILE
        Answers of a new version of the model, joined by id.
    answers : COL or OLD=NEW, default the model's answer
        Column of the answers in that file, and in the sample where that is another.
    new_labels : paths
        Labels of answers that changed, as far as they are there.
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
    against: Path | None = None
    answers: Annotated[Text, Option(needs=OF_NEW_VERSION)] = None
    new_labels: Annotated[list[Path] | None, Option(needs=OF_NEW_VERSION)] = None
    items: Whole = None


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
    result = made(requested)
    asked, known = result.evidence.requested, dict[str, Any]()
    if requested.sample is not None and result.evidence.words is not None:
        known = _of_study(requested.sample)
    question = requested.question or known.get("question")
    quantity = requested.quantity or known.get("quantity")
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
        require=result.held or (),
        title=None if question else _title(requested.sample),
        question=question,
        quantity=quantity,
        pairs=known.get("pairs", ()),
        new=None if requested.against is None else _new_version(requested, result, requested.against),
        commands=_commands(requested),
        examples=requested.items or 0,
        **given(requested, "confidence_level", "interval", "target"),
        **asked.shared,
    )


def _title(sample: Path | None) -> str | None:
    """Return a heading with the file of predictions, if the plan next to the sample names it."""
    plan = None if sample is None else PlanFile.beside(sample)
    return None if plan is None else f"How good is the model on {Path(plan.options.file).name}?"


def _of_study(folder: Path) -> dict[str, Any]:
    """Return a study's question and how far each pair of its annotators agrees."""
    from stratal.study.status import pairs_of

    with stratal.study.open_study(folder, reading=True) as study:
        pairs, question = pairs_of(study), study.question
    choices = question.choices
    ones = [choice.name for choice in choices if choice.value == 1] if len(choices) == 2 else []
    quantity = f"share of {ones[0]!r}" if len(ones) == 1 else None
    return {"question": question.text, "pairs": pairs, "quantity": quantity}


def _new_version(requested: ReportOptions, result: Made, file: Path) -> NewVersion:
    sample: Sample = result.evidence.sample
    asked = result.evidence.requested
    before, equals, after = (requested.answers or "").partition("=")
    # One name is that of both, where the sample has such a column; else of the new answers alone.
    old = before if equals or before in {*sample.shown, *sample.groups} else None
    column = after or before or asked.predicted or sample.predicted or "answer"
    changed = None
    if requested.new_labels:
        changed = stratal.read_labels(
            *requested.new_labels,
            id_name=requested.id or sample.id_name,
            mapping=mapping("--map", requested.map),
            **given(requested, "value", "positive"),
        )
    return stratal.new_version(
        sample,
        result.labels,
        stratal.read_labels(file, id_name=sample.id_name, value=column),
        old_answers=old,
        new_labels=changed,
        **given(requested, "confidence_level", "interval"),
        bounds=None if result.several or result.estimate.outcome != "bounded" else result.estimate.bounds,
        **asked.shared,
        **asked.fitted,
    )


def _commands(requested: ReportOptions) -> list[str]:
    """Return what to type to get the estimate and the report again."""
    return [
        shlex.join(["stratal", name, *words(part(kind, requested))])
        for name, kind in (("estimate", EvidenceOptions), ("report", ReportOptions))
    ]
