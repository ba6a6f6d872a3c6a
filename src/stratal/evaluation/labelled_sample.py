"""The sample and the labels of an evaluation, read from files, a study, a table, logs or a count."""

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
from stratal.estimation.estimand import Estimand, as_estimand
from stratal.estimation.resolve import (
    check_label_codes,
    class_column,
    group_column,
    with_corrected_scores,
    with_group,
)
from stratal.evaluation.labelled_table import LabelledTable, read_labelled_table, sample_of_table
from stratal.evaluation.margins import StatedMargins
from stratal.evaluation.request import EvaluationRequest
from stratal.evaluation.sources import SOURCE_FORMS, SourceForm, form_of, require_present, table_and_request
from stratal.labels.accepted_types import labels_with_sample_ids
from stratal.labels.label_files import (
    is_table,
    read_labels,
    read_labels_of_table,
    read_tool_answers,
    split_by_model,
)
from stratal.labels.labels import LABEL_COLUMN, Labels
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
    read_column : callable
        Returns the labels in a column.
    column : str
        The column of labels that is estimated.
    models : tuple of str
        Columns with the outcomes of the models that are compared.
    bounds : (float, float), optional
        Bounds of the outcome, stated or declared by a study.
    study : Path, optional
        Folder of the study that the labels are from.
    study_questions : tuple of str
        Columns of a study with several questions, if the evaluation is for all of them.
    study_labels_as_written : Labels, optional
        A study's labels as texts, not yet converted to numbers.
    table : LabelledTable, optional
        The table that the labels are from, if no sample was drawn.
    """

    request: EvaluationRequest
    sample: Sample
    read_column: ReadColumn
    column: str
    models: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    study: Path | None = None
    study_questions: tuple[str, ...] = ()
    study_labels_as_written: Labels | None = None
    table: LabelledTable | None = None

    @property
    def estimand(self) -> Estimand:
        """The requested estimand, or that of the sample."""
        return as_estimand(self.request.estimand or self.sample.question.estimand)

    @property
    def labels(self) -> Labels:
        """The labels to estimate from."""
        return self.read_column(self.column)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The columns of labels that the evaluation reads."""
        return self.models or (self.column,)

    @property
    def labels_as_written(self) -> Labels:
        """The labels as the annotators wrote them, with the meanings that the request states."""
        labels = self.study_labels_as_written or self.labels
        mapping = self.request.mapping or labels.mapping
        return replace(labels, positive=self.request.positive, mapping=mapping)

    def with_failed_as_wrong(self, *, lowest: bool = True) -> LabelledSample:
        """Return the sample with labels in which failed answers count as the lowest (or highest) outcome."""
        compared = compared_answers(self.estimand, self.sample, self.labels, self.request.predicted)
        are_classes = bool(compared)

        def read_column(name: str) -> Labels:
            return self.read_column(name).failed_as_wrong(self.bounds, lowest=lowest, classes=are_classes)

        return replace(self, read_column=read_column)


def read_labelled_sample(request: EvaluationRequest, source: Any, labels: Any) -> LabelledSample:
    """Return the sample and the labels that a request evaluates.

    Parameters
    ----------
    request : EvaluationRequest
    source : Sample, Study, table, path, list of paths, or text
        A sample or a study, its file or folder; a table with labels in some rows; logs of one evaluation
        tool, one of each model; or a count such as `47/50`.
    labels
        Files with the labels of a sample, or labels as `stratal.estimate` takes them.
    """
    form = form_of(source, labels)
    if form in (SourceForm.SAMPLE, SourceForm.STUDY):
        if request.table_options:
            option = next(iter(request.table_options)).replace("_", "-")
            raise no_effect_error(f"--{option}", "with a table of labels")
        if form == SourceForm.STUDY:
            labelled_sample = _from_study(request, source, labels)
        else:
            labelled_sample = _from_drawn_sample(request, source, labels)
    else:
        table, request = table_and_request(form, source, labels, request)
        labelled_sample = _from_table(request, table)
        if form == SourceForm.COUNT:
            # A count has no columns whose roles could be stated.
            labelled_sample = replace(labelled_sample, table=None)
    return _with_models(_with_requested_columns(labelled_sample))


def _from_drawn_sample(request: EvaluationRequest, source: Any, labels: Any) -> LabelledSample:
    """Return a sample that stratal drew, with its labels."""
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
        read_column = _reader_of_memory(sample, labels, request)
    else:
        read_column = _reader_of_files(sample, files, request)
    return LabelledSample(
        request=request,
        sample=sample,
        read_column=read_column,
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
    if labels is None or (isinstance(labels, list) and not labels):
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


def _reader_of_files(sample: Sample, files: Sequence[Path], request: EvaluationRequest) -> ReadColumn:
    """Return the function that reads a column of files."""
    id_name = request.id or sample.question.id
    order = sample.ids.tolist()
    if request.id not in (None, "row"):
        try:
            read_labels(*files, id_name=id_name, value=id_name, order=order)
        except MissingColumnError as error:
            # In an export of an annotation tool, the ids are in the data of the tasks.
            if any(read_tool_answers(path, str(request.id)) is None for path in files):
                raise error.with_action("Name the column of the ids: id= (--id COL).") from None

    def read_column(name: str) -> Labels:
        return read_labels(
            *files,
            id_name=id_name,
            value=_stated_column(name, request),
            mapping=request.mapping,
            order=order,
            same_rows=request.same_rows,
            # The column `label` replaces only that of the labels, not that of a judge or a model.
            in_every_file=name != request.value,
        )

    return read_column


def _stated_column(name: str, request: EvaluationRequest) -> str | None:
    """Return the column to read, or None: the reader then recognises it, or raises an error for several."""
    if name == LABEL_COLUMN and request.value is None:
        return None
    return name


def _reader_of_memory(sample: Sample, labels: Any, request: EvaluationRequest) -> ReadColumn:
    """Return the function that reads a column of labels in memory: a table, a mapping, or a single column."""
    if is_table(labels, filter(None, (request.label_column, request.model, *request.compare))):
        return lambda name: read_labels_of_table(
            labels, sample, _stated_column(name, request), request.id, mapping=request.mapping
        )
    columns: JsonMapping = {request.label_column: labels}
    # In a mapping by id, the values are answers and no columns.
    if isinstance(labels, Mapping) and labels:
        are_columns = all(isinstance(column, Labels | Mapping) for column in labels.values())
        if are_columns:
            columns = labels

    def read_column(name: str) -> Labels:
        if name not in columns:
            column_names = ", ".join(map(repr, columns))
            raise MissingColumnError(f"the labels have no column {name!r}", column=name, allowed=column_names)
        return labels_with_sample_ids(sample, columns[name])

    return read_column


def _from_study(request: EvaluationRequest, source: Study | str | Path, labels: Any) -> LabelledSample:
    """Return the sample of a study with its current labels."""
    if labels:
        problem = "a study already contains its labels: LABELS has no effect"
        raise InputError(
            problem, action="Leave out the files of labels, or give the sample instead of the study."
        )
    # The modules of studies are imported only if they are needed.
    from stratal.study import Study, open_study

    if isinstance(source, Study):
        return _from_open_study(request, source)
    with open_study(source, read_only=True) as study:
        return _from_open_study(request, study)


def _from_open_study(request: EvaluationRequest, study: Study) -> LabelledSample:
    """Return the sample of an open study with its current labels and the estimand that it declares."""
    from stratal.study.question import ASKED
    from stratal.study.study import estimate_options, sample_for_column

    form = study.form
    columns = {name: study.labels(name) for name in form.columns}
    first_column = next(iter(columns))
    requested_column = first_column
    if request.value not in (None, LABEL_COLUMN):
        requested_column = str(request.value)
    is_known = requested_column in columns  # an unknown column is reported when it is read
    column_name = requested_column if is_known else first_column
    sample, request = _with_question(sample_for_column(study, column_name), request)
    declared_options = estimate_options(study, column_name) if is_known else {}
    if not columns[first_column].answered:
        folder = quote(str(study.folder))
        raise LabelError(
            f"{study.folder}: no item is labelled yet",
            action=f"Let annotators label: stratal study label {folder}.",
        )
    # These options use the labels of one question.
    is_for_one_question = request.estimand is not None or request.compare or request.model or request.metric
    study_questions: tuple[str, ...] = ()
    if request.value in (None, LABEL_COLUMN) and len(form.questions) > 1 and not is_for_one_question:
        # Columns that record whether a conditional question was asked are not questions.
        study_questions = tuple(name for name in columns if not name.endswith(f"_{ASKED}"))

    def read_column(name: str) -> Labels:
        if name != LABEL_COLUMN and name not in columns:
            allowed = ", ".join(columns)
            problem = "the study has no such question"
            raise MissingColumnError(problem, column=name, given=repr(name), allowed=allowed)
        return columns.get(name, columns[first_column])

    return LabelledSample(
        request=replace(request, estimand=request.estimand or declared_options.get("estimand")),
        sample=sample,
        read_column=read_column,
        column=request.label_column,
        bounds=request.bounds or declared_options.get("bounds"),
        study=Path(study.folder),
        study_questions=study_questions,
        study_labels_as_written=study.labels(column_name, as_text=True),
    )


def _from_table(request: EvaluationRequest, source: Any) -> LabelledSample:
    """Return the labelled rows of a table as a sample, with their labels."""
    table = read_labelled_table(source, request)
    request = table.request
    margins = () if request.margins is None else StatedMargins.of(request.margins).columns
    groups = [request.by, request.post_stratify, *margins, *request.groups]
    sample, labels = sample_of_table(table, tuple(dict.fromkeys(name for name in groups if name)))
    sample, request = _with_question(sample, request)

    def read_column(name: str) -> Labels:
        return replace(labels_of(sample, table.rows, name), notes=labels.notes)

    return LabelledSample(
        request=request,
        sample=sample,
        read_column=read_column,
        column=request.label_column,
        bounds=request.bounds,
        table=table,
    )


def _with_requested_columns(labelled_sample: LabelledSample) -> LabelledSample:
    """Return the sample with the weights, answers and verdicts that are requested, and checked labels."""
    request = labelled_sample.request
    # Each column is read once, although checked labels and answers are both read from it.
    labelled_sample = replace(labelled_sample, read_column=cache(labelled_sample.read_column))
    read_checked = cache(partial(_read_checked_labels, labelled_sample))
    sample = labelled_sample.sample
    if request.predicts is not None:
        sample = with_corrected_scores(sample, request.predicts, read_checked(labelled_sample.column))
        sample = with_declared_scores(sample, request.predicts)
    sample = _with_weights(sample, labelled_sample)
    read_answers = labelled_sample.read_column
    sample = _with_answers(sample, request.answer_column, read_answers, "--predicted", "--predicted")
    for judge in request.judge:
        if judge not in sample.proxy_names:
            sample = _with_answers(sample, judge, read_answers, "--judge", "--groups")
    return replace(labelled_sample, sample=sample, read_column=read_checked)


def _read_checked_labels(labelled_sample: LabelledSample, name: str) -> Labels:
    """Return a column of labels with the meanings that the request states, without codes such as -1."""
    request = labelled_sample.request
    labels = _with_checked_codes(labelled_sample, name, labelled_sample.read_column(name))
    if request.positive is None and request.mapping is None and labelled_sample.study is None:
        return labels  # `Labels` may declare their meaning themselves
    return replace(labels, positive=request.positive, mapping=request.mapping)


def _with_checked_codes(labelled_sample: LabelledSample, name: str, labels: Labels) -> Labels:
    """Return a column of labels; codes of missing labels raise an error unless their meaning is declared."""
    request = labelled_sample.request
    sample = labelled_sample.sample
    if labelled_sample.study_questions:
        return replace(labels, codes_checked=True)
    # Labels that are classes are checked by the estimator, which knows all classes.
    if request.has_words_as_labels or labels.positive is not None or sample.question.compares:
        return labels
    declared = replace(labels, mapping={**(labels.mapping or {}), **(request.mapping or {})})
    bounds = labelled_sample.bounds
    checked = check_label_codes(sample, declared, name, outcome=request.outcome, bounds=bounds)
    return replace(labels, codes_checked=checked.codes_checked)


def _with_weights(sample: Sample, labelled_sample: LabelledSample) -> Sample:
    """Return the sample weighted to the known sizes of groups and means of proxies, if any are requested.

    Rows that were chosen in an unknown way are weighted by quantiles of the proxy.
    """
    request = labelled_sample.request
    if request.margins is not None:
        margins = StatedMargins.of(request.margins)
        return fit_margins(sample, margins.columns, totals=margins.totals, method=margins.method)
    if request.post_stratify is not None:
        return post_stratify(sample, _column_of_table(labelled_sample, request.post_stratify))
    if labelled_sample.table is None or labelled_sample.table.selection.kind != UNKNOWN:
        return sample
    if not sample.proxy_names:
        raise InputError(
            "if rows were chosen in an unknown way, a proxy is required that is known for every row",
            given=f"chosen={UNKNOWN!r} (--chosen {UNKNOWN})",
            action="Name the column of the judge or of the score: judge= (--judge), proxy= (--proxy).",
        )
    return post_stratify(sample, sample.proxy_names[0])


def _column_of_table(labelled_sample: LabelledSample, name: str) -> str:
    """Return the name of a column, or of the column of numbers for a proxy that is written in words."""
    if labelled_sample.table is None:
        return name
    return labelled_sample.table.numeric_names.get(name, name)


def _with_answers(
    sample: Sample, name: str | None, read_column: ReadColumn, option: str, draw_option: str
) -> Sample:
    """Return the sample with a column of answers or verdicts, read from the labels if the sample lacks it.

    The error names `option`, with which the column was requested, and the option of `stratal draw` that
    stores it in the sample.
    """
    if name is None or name in sample.groups:
        return sample
    try:
        answers = read_column(name)
    except MissingColumnError as error:
        if error.column != name:
            raise
        raise InputError(
            f"{option}: neither the sample nor the labels have a column {name!r}",
            given=f"columns of the sample: {', '.join(map(repr, sample.groups)) or 'none'}",
            action=f"Add the column to the file of labels, matched by id. A sample drawn with {draw_option} "
            "contains it.",
        ) from None
    return with_group(sample, name, answers)


def _with_models(labelled_sample: LabelledSample) -> LabelledSample:
    """Return the sample with the models to compare: columns of labels, or values of a column of models."""
    request = labelled_sample.request
    if not request.compare and request.model is None:
        return labelled_sample
    if request.answer_column is None and not request.metric:
        # The columns of several models are outcomes, not classes.
        question = labelled_sample.sample.question.refine(predicted=False)
        labelled_sample = replace(labelled_sample, sample=replace(labelled_sample.sample, question=question))
    if request.model is None:
        read_outcomes = cache(partial(_read_outcomes, labelled_sample))
        return replace(labelled_sample, models=request.compare, read_column=read_outcomes)
    model_names = labelled_sample.read_column(request.model)
    outcomes = split_by_model(model_names, labelled_sample.labels, request.compare)
    models = tuple(outcomes)
    return replace(labelled_sample, read_column=outcomes.__getitem__, column=models[0], models=models)


def _read_outcomes(labelled_sample: LabelledSample, name: str) -> Labels:
    """Return the outcomes of a model: a column of the labels, or 1 where its stored answer equals the label.

    The sample stores the answers as a group column, and the labels are classes.
    """
    try:
        return labelled_sample.read_column(name)
    except MissingColumnError as error:
        if error.column != name:
            raise
        if name not in labelled_sample.sample.groups:
            raise error.with_action(
                "Name columns of the labels, or columns of the sample with the models' answers: compare= "
                "(--compare A,B)."
            ) from None
    labels = labelled_sample.read_column(labelled_sample.request.value_or_default)
    sample = labelled_sample.sample
    answers = group_column(sample, name)
    classes = class_column(sample, labels, "labels", answers=answers)
    values = tuple(
        None if label is None else float(label == answer)
        for label, answer in zip(classes, answers, strict=True)
    )
    return Labels(ids=tuple(id_texts(sample.ids)), values=values, source=labels.source, notes=labels.notes)
