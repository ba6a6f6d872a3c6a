"""Inputs of an evaluation: the sample, its labels by column, and what a study declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeAlias

from stratal.designs import fit_margins, post_stratify
from stratal.designs.disagreements import Disagreements
from stratal.designs.external_columns import labels_of
from stratal.designs.labelling_files import sample_file
from stratal.designs.sample import Sample, require_sample, with_declared_scores
from stratal.errors import InputError, LabelError, MissingColumnError, no_effect_error
from stratal.estimation.entry_points import compared_answers
from stratal.estimation.estimand import as_estimand
from stratal.estimation.resolve import (
    check_label_codes,
    class_column,
    group_column,
    with_corrected_scores,
    with_group,
)
from stratal.evaluation.labelled_table import LabelledTable, read_labelled_table, sample_of_table
from stratal.evaluation.margins import StatedMargins
from stratal.evaluation.request import LABEL, EvaluationRequest
from stratal.evaluation.sources import SOURCE_FORMS, SourceForm, form_of, require_present, table_and_request
from stratal.labels.accepted_types import labels_with_sample_ids
from stratal.labels.label_files import is_table, read_labels, read_labels_of_table, split_by_model
from stratal.labels.labels import Labels
from stratal.protocols import JsonMapping
from stratal.question.chosen_rows import UNKNOWN
from stratal.randomness import id_texts

if TYPE_CHECKING:
    from stratal.study import Study

# A function that reads a column of labels by its name.
ReadColumn: TypeAlias = Callable[[str], Labels]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSample:
    """A sample, its labels, and the column of labels that is estimated.

    Parameters
    ----------
    request : EvaluationRequest
        It contains the estimand that a study declares.
    sample : Sample
    read : callable
        Returns the labels in a column.
    column : str
        The column of labels that is estimated.
    models : tuple of str
        Columns with the outcomes of the models that are compared.
    bounds : (float, float), optional
        Bounds of the outcome, stated or declared by a study.
    study : Path, optional
        Folder of the study that the labels are from.
    questions : tuple of str
        Columns of a study that asks several questions, if no single one was requested.
    study_words : Labels, optional
        A study's answers in the annotators' words.
    table : LabelledTable, optional
        The table that the labels are from, if no sample was drawn.
    """

    request: EvaluationRequest
    sample: Sample
    read: ReadColumn
    column: str
    models: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    study: Path | None = None
    questions: tuple[str, ...] = ()
    study_words: Labels | None = None
    table: LabelledTable | None = None

    @property
    def labels(self) -> Labels:
        """The labels to estimate from."""
        return self.read(self.column)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of labels that the evaluation reads."""
        return self.models or (self.column,)

    @property
    def in_words(self) -> Labels:
        """The labels in the annotators' words, with the meanings that the request states."""
        labels = self.study_words or self.labels
        mapping = self.request.mapping or labels.mapping
        return replace(labels, positive=self.request.positive, mapping=mapping)

    def with_failed_as_wrong(self, *, lowest: bool = True) -> LabelledSample:
        """Return the evidence in which answers that failed count as the lowest (or highest) outcome."""
        estimand = as_estimand(self.request.estimand or self.sample.question.estimand)
        classes = bool(compared_answers(estimand, self.sample, self.labels, self.request.predicted))

        def read(name: str) -> Labels:
            return self.read(name).failed_as_wrong(self.bounds, lowest=lowest, classes=classes)

        return replace(self, read=read)


def gather(request: EvaluationRequest, source: Any, labels: Any) -> LabelledSample:
    """Return the evidence of a request.

    Parameters
    ----------
    request : EvaluationRequest
    source : Sample, Study, table, path, list of paths, or text
        A sample or a study, its file or folder; a table with labels in some rows; logs of one evaluation
        tool, one of each model; or a count such as `47/50`.
    labels
        Of a sample: files of labels, or labels as `stratal.estimate` takes them.
    """
    form = form_of(source, labels)
    if form in (SourceForm.SAMPLE, SourceForm.STUDY):
        if request.table_options:
            option = next(iter(request.table_options)).replace("_", "-")
            raise no_effect_error(f"--{option}", "with a table of labels")
        if form == SourceForm.STUDY:
            evidence = _of_study(request, source, labels)
        else:
            evidence = _of_sample(request, source, labels)
    else:
        table, request = table_and_request(form, source, labels, request)
        evidence = _of_table(request, table)
        if form == SourceForm.COUNT:
            # A count has no columns whose roles could be stated.
            evidence = replace(evidence, table=None)
    return _with_models(_with_columns(evidence))


def _of_sample(request: EvaluationRequest, source: Any, labels: Any) -> LabelledSample:
    """Return the evidence of a sample that stratal drew."""
    if isinstance(source, str | Path):
        sample = _read_sample(Path(source), labels)
    else:
        sample = require_sample(source, "evaluate")
    if labels is None:
        raise InputError("the labels are missing", allowed=SOURCE_FORMS)
    if isinstance(sample.design, Disagreements):
        sample.weighting()  # raises the error that explains the purpose of such a sample
    sample, request = _with_question(sample, request)
    files = _paths(labels)
    if files is None:
        read = _given_columns(sample, labels, request)
    else:
        read = _file_columns(sample, files, request)
    return LabelledSample(
        request=request,
        sample=sample,
        read=read,
        column=request.label_column,
        bounds=request.bounds,
    )


def _with_question(sample: Sample, request: EvaluationRequest) -> tuple[Sample, EvaluationRequest]:
    """Return sample and request with the judges, models and target that either of them declares.

    Declarations of the sample are not used if the request is for another estimand, one model's rows, or
    another column of labels.
    """
    question = sample.question.refine(judges=request.judge, models=request.compare, target=request.target)
    sample = replace(sample, question=question)
    request = replace(request, target=question.target)
    estimand = as_estimand(request.estimand or question.estimand)
    is_single = len(estimand.parts_of(sample)) == 1 and not estimand.label_columns(sample)
    if request.estimand is not None or request.model is not None or not is_single:
        return sample, request
    models = question.models if request.value is None else request.compare
    return sample, replace(request, judge=question.judges, compare=models)


def _read_sample(path: Path, labels: Any) -> Sample:
    """Return the sample of a file or folder; missing labels are an error."""
    require_present(path)
    file = sample_file(path)
    if labels is None or labels == []:
        action = f"Also give the file of the labels, after the sample: {file.parent / 'to_label.csv'}."
        raise InputError(f"{file}: the labels are missing", allowed=SOURCE_FORMS, action=action)
    return Sample.read(file)


def _paths(labels: Any) -> tuple[Path, ...] | None:
    """Return the files of labels; None for labels in memory."""
    if isinstance(labels, str | Path):
        return (Path(labels),)
    if not isinstance(labels, list | tuple) or not all(isinstance(path, str | Path) for path in labels):
        return None
    # A list of texts contains labels, unless one of them is a file. Then all are files, and one that does not
    # exist is misspelt.
    if any(isinstance(path, Path) or Path(path).is_file() for path in labels):
        return tuple(map(Path, labels))
    return None


def _file_columns(sample: Sample, files: Sequence[Path], request: EvaluationRequest) -> ReadColumn:
    """Return the function that reads a column of files."""
    id_name = request.id or sample.question.id
    order = sample.ids.tolist()
    if request.id not in (None, "row"):
        try:
            read_labels(*files, id_name=id_name, value=id_name, order=order)
        except MissingColumnError as error:
            raise error.with_action("Name the column of the ids: id= (--id COL).") from None
    # With None, the reader finds the column of labels, or raises an error for several.
    usual = None if request.value is None else LABEL

    def read(name: str) -> Labels:
        value = usual if name == LABEL else name
        reading_options: Any = {"order": order, "same_rows": request.same_rows}
        return read_labels(*files, id_name=id_name, value=value, **reading_options)

    return read


def _given_columns(sample: Sample, labels: Any, request: EvaluationRequest) -> ReadColumn:
    """Return the function that reads a column of labels in memory: a table, a mapping, or a single column."""
    if is_table(labels, filter(None, (request.label_column, request.model, *request.compare))):
        usual = None if request.value is None else LABEL
        return lambda name: read_labels_of_table(labels, sample, usual if name == LABEL else name, request.id)
    columns: JsonMapping = {request.label_column: labels}
    # A mapping by id has plain values.
    if (
        isinstance(labels, Mapping)
        and labels
        and all(isinstance(column, Labels | Mapping) for column in labels.values())
    ):
        columns = labels

    def read(name: str) -> Labels:
        if name not in columns:
            column_names = ", ".join(map(repr, columns))
            raise MissingColumnError(f"the labels have no column {name!r}", column=name, allowed=column_names)
        return labels_with_sample_ids(sample, columns[name])

    return read


def _of_study(request: EvaluationRequest, source: Study | str | Path, labels: Any) -> LabelledSample:
    """Return the evidence of a study: its present labels, and what its question declares."""
    if labels:
        problem = "a study already contains its labels: LABELS has no effect"
        raise InputError(
            problem, action="Leave out the files of labels, or give the sample instead of the study."
        )
    # The modules of studies are imported only if they are needed.
    from stratal.study import Study, open_study

    if isinstance(source, Study):
        return _of_open_study(request, source)
    with open_study(source, read_only=True) as study:
        return _of_open_study(request, study)


def _of_open_study(request: EvaluationRequest, study: Study) -> LabelledSample:
    """Return the evidence of an open study."""
    from stratal.study.question import ASKED
    from stratal.study.study import estimate_options, sample_for_column

    form = study.form
    columns = {name: study.labels(name) for name in form.columns}
    first = next(iter(columns))
    requested_column = first
    if request.value not in (None, LABEL):
        requested_column = str(request.value)
    is_known = requested_column in columns  # an unknown column is reported when it is read
    column_name = requested_column if is_known else first
    sample, request = _with_question(sample_for_column(study, column_name), request)
    declared = estimate_options(study, column_name) if is_known else {}
    if not columns[first].answered:
        folder = quote(str(study.folder))
        raise LabelError(
            f"{study.folder}: no item is labelled yet",
            action=f"Let annotators label: stratal study label {folder}.",
        )
    one_question = request.estimand is not None or request.compare or request.model or request.metric
    questions: tuple[str, ...] = ()
    if request.value in (None, LABEL) and len(form.questions) > 1 and not one_question:
        questions = tuple(name for name in columns if not name.endswith(f"_{ASKED}"))

    def read(name: str) -> Labels:
        if name != LABEL and name not in columns:
            allowed = ", ".join(columns)
            problem = "the study has no such question"
            raise MissingColumnError(problem, column=name, given=repr(name), allowed=allowed)
        return columns.get(name, columns[first])

    return LabelledSample(
        request=replace(request, estimand=request.estimand or declared.get("estimand")),
        sample=sample,
        read=read,
        column=request.label_column,
        bounds=request.bounds or declared.get("bounds"),
        study=Path(study.folder),
        questions=questions,
        study_words=study.labels(column_name, as_text=True),
    )


def _of_table(request: EvaluationRequest, source: Any) -> LabelledSample:
    """Return the evidence of a table with labels in some or all rows."""
    table = read_labelled_table(source, request)
    request = table.request
    margins = () if request.margins is None else StatedMargins.of(request.margins).columns
    groups = [request.by, request.post_stratify, *margins, *request.groups]
    sample, first = sample_of_table(table, tuple(dict.fromkeys(name for name in groups if name)))
    sample, request = _with_question(sample, request)

    def read(name: str) -> Labels:
        return replace(labels_of(sample, table.rows, name), notes=first.notes)

    return LabelledSample(
        request=request,
        sample=sample,
        read=read,
        column=request.label_column,
        bounds=request.bounds,
        table=table,
    )


def _with_columns(evidence: LabelledSample) -> LabelledSample:
    """Return the evidence with weights, answers and verdicts that are requested, each column read once."""
    request = evidence.request
    read_once = cache(evidence.read)

    @cache
    def read(name: str) -> Labels:
        labels = _with_checked_codes(evidence, name, read_once(name))
        if request.positive is None and request.mapping is None and evidence.study is None:
            return labels  # `Labels` may declare their meaning themselves
        return replace(labels, positive=request.positive, mapping=request.mapping)

    sample = evidence.sample
    if request.predicts is not None:
        sample = with_corrected_scores(sample, request.predicts, read(evidence.column))
        sample = with_declared_scores(sample, request.predicts)
    sample = _weighted(sample, evidence)
    sample = _with_answers(sample, request.answer_column, read_once, "--predicted", "--predicted")
    for judge in request.judge:
        if judge not in sample.proxy_names:
            sample = _with_answers(sample, judge, read_once, "--judge", "--groups")
    return replace(evidence, sample=sample, read=read)


def _with_checked_codes(evidence: LabelledSample, name: str, labels: Labels) -> Labels:
    """Return a column of labels, refusing codes of missing labels unless something says what they mean.

    Of labels that are compared with classes, the estimator knows the classes, and refuses codes.
    """
    request = evidence.request
    sample = evidence.sample
    if evidence.questions:
        return replace(labels, codes_checked=True)
    if request.has_words_as_labels or labels.positive is not None or sample.question.compares:
        return labels
    declared = replace(labels, mapping={**(labels.mapping or {}), **(request.mapping or {})})
    checked = check_label_codes(sample, declared, name, outcome=request.outcome, bounds=evidence.bounds)
    return replace(labels, codes_checked=checked.codes_checked)


def _weighted(sample: Sample, evidence: LabelledSample) -> Sample:
    """Return the sample weighted to the known sizes of groups and means of proxies, if any are named.

    Rows that were chosen in an unknown way are weighted by quantiles of the proxy.
    """
    request = evidence.request
    if request.margins is not None:
        margins = StatedMargins.of(request.margins)
        return fit_margins(sample, margins.columns, totals=margins.totals, method=margins.method)
    if request.post_stratify is not None:
        return post_stratify(sample, _column_of_table(evidence, request.post_stratify))
    if evidence.table is None or evidence.table.selection.kind != UNKNOWN:
        return sample
    if not sample.proxy_names:
        raise InputError(
            "if rows were chosen in an unknown way, a proxy is required that is known for every row",
            given=f"chosen={UNKNOWN!r} (--chosen {UNKNOWN})",
            action="Name the column of the judge or of the score: judge= (--judge), proxy= (--proxy).",
        )
    return post_stratify(sample, sample.proxy_names[0])


def _column_of_table(evidence: LabelledSample, name: str) -> str:
    """Return the column of numbers instead of a proxy that is written in words."""
    if evidence.table is None:
        return name
    return evidence.table.numeric_names.get(name, name)


def _with_answers(sample: Sample, name: str | None, read: ReadColumn, option: str, kept_by: str) -> Sample:
    """Return the sample with a column of answers or verdicts, from the labels where it was not kept."""
    if name is None or name in sample.groups:
        return sample
    try:
        answers = read(name)
    except MissingColumnError as error:
        if error.column != name:
            raise
        raise InputError(
            f"{option}: neither the sample nor the labels have a column {name!r}",
            given=f"columns of the sample: {', '.join(map(repr, sample.groups)) or 'none'}",
            action=f"Add the column to the file of labels, matched by id. A sample drawn with {kept_by} "
            "contains it.",
        ) from None
    return with_group(sample, name, answers)


def _with_models(evidence: LabelledSample) -> LabelledSample:
    """Return the evidence with the models compared: columns of the labels, or levels of a long table."""
    request = evidence.request
    if not request.compare and request.model is None:
        return evidence
    if request.answer_column is None and not request.metric:
        # The columns of several models are outcomes, not classes.
        question = evidence.sample.question.refine(predicted=False)
        evidence = replace(evidence, sample=replace(evidence.sample, question=question))
    if request.model is None:
        return replace(evidence, models=tuple(request.compare), read=cache(partial(_read_outcomes, evidence)))
    outcomes = split_by_model(evidence.read(request.model), evidence.labels, tuple(request.compare))
    models = tuple(outcomes)
    return replace(evidence, read=outcomes.__getitem__, column=models[0], models=models)


def _read_outcomes(evidence: LabelledSample, name: str) -> Labels:
    """Return the outcomes of a model: a column of the labels, or 1 where its stored answer equals the label.

    The sample stores the answers as a group column, and the labels are classes.
    """
    try:
        return evidence.read(name)
    except MissingColumnError as error:
        if error.column != name:
            raise
        if name not in evidence.sample.groups:
            raise error.with_action(
                "Name columns of the labels, or columns of the sample with the models' answers: compare= "
                "(--compare A,B)."
            ) from None
    labels = evidence.read(evidence.request.value or LABEL)
    answers = group_column(evidence.sample, name)
    classes = class_column(evidence.sample, labels, "labels", answers=answers)
    values = [
        None if label is None else float(label == answer)
        for label, answer in zip(classes, answers, strict=True)
    ]
    ids = id_texts(evidence.sample.ids)
    return Labels(ids=tuple(ids), values=tuple(values), source=labels.source, notes=labels.notes)
