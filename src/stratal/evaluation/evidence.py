"""Inputs of an evaluation: the sample, its labels by column, and what a study declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeAlias

from stratal.arrays import same_value
from stratal.designs import fit_margins, post_stratify
from stratal.designs.disagreements import Disagreements
from stratal.designs.elsewhere import labels_of
from stratal.designs.labelling_files import SAMPLE_NAME
from stratal.designs.sample import Sample, require_sample, with_declared_scores
from stratal.errors import InputError, LabelError, MissingColumnError, near_names, no_effect
from stratal.estimation.entry_points import compared_answers
from stratal.estimation.estimand import as_estimand
from stratal.estimation.resolve import with_corrected_scores, with_group
from stratal.evaluation.request import LABEL, EvaluationRequest
from stratal.labels.label_files import is_table, labels_of_table, read_labels, split_by_model
from stratal.labels.labels import Labels, labels_with_sample_ids
from stratal.tables.files import existing_file
from stratal.tables.logs import ID_NAMES
from stratal.tables.no_answer import is_placeholder
from stratal.tables.small_table import SmallTable

if TYPE_CHECKING:
    from stratal.study import Study

# What reads a column of the labels by its name.
ReadColumn: TypeAlias = Callable[[str], Labels]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A sample, its labels, and which column the estimate is of.

    Parameters
    ----------
    request : EvaluationRequest
        With the estimand that a study declares.
    sample : Sample
    read : callable
        Returns the labels in a column.
    column : str
        The column to estimate from.
    models : tuple of str
        Columns with the outcomes of the models that are compared.
    bounds : (float, float), optional
        Of the outcome, stated or declared by a study.
    study : Path, optional
        Folder of the study that the labels are from.
    questions : tuple of str
        Columns of a study that asks several questions, if no single one was requested.
    study_words : Labels, optional
        A study's answers in the annotators' words.
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
        """The labels in the annotators' words, with what the request says that they count as."""
        labels = self.study_words or self.labels
        mapping = self.request.mapping or labels.mapping
        return replace(labels, positive=self.request.positive, mapping=mapping)

    def with_failed_as_wrong(self, *, lowest: bool = True) -> Evidence:
        """Return the evidence in which answers that failed count as the lowest (or highest) outcome."""
        estimand = as_estimand(self.request.estimand or self.sample.question.estimand)
        classes = bool(compared_answers(estimand, self.sample, self.labels, self.request.predicted))

        def read(name: str) -> Labels:
            return self.read(name).failed_as_wrong(self.bounds, lowest=lowest, classes=classes)

        return replace(self, read=read)


def gather(request: EvaluationRequest, source: Any, labels: Any, table: Any, design: Any) -> Evidence:
    """Return the evidence of a request.

    Parameters
    ----------
    request : EvaluationRequest
    source : Sample, path, Study or None
        The sample, its file or folder, or a study or its folder.
    labels
        Files of labels, or labels as `stratal.estimate` takes them.
    table : path or table, optional
        Units that were drawn and labelled elsewhere, instead of the sample and the labels.
    design : mapping
        Keywords of `Sample.from_labelled` that describe how the units of `table` were drawn.
    """
    if table is None and design:
        raise no_effect("design=", "with labelled=")
    if table is not None and (source is not None or labels is not None):
        raise no_effect("a sample, a study or labels", "without labelled= (--labelled)")
    if table is not None and not isinstance(design, Mapping):
        allowed = "a mapping of keywords of Sample.from_labelled, such as {'proxy': 'score'}"
        raise InputError("design= is not understood", given=repr(design), allowed=allowed)
    if table is not None:
        evidence = _of_external_table(request, table, design)
    elif _is_study(source):
        evidence = _of_study(request, source, labels)
    else:
        evidence = _of_sample(request, source, labels)
    return _with_models(_with_columns(evidence))


def sample_file(path: Path) -> Path:
    """Return the file of a sample, given it or the folder that `draw` wrote."""
    if (path / SAMPLE_NAME).is_file():
        return path / SAMPLE_NAME
    return path


def require_present(path: Path) -> None:
    """Refuse the path of a study or of a sample at which there is nothing."""
    if path.suffix and not path.is_dir():
        existing_file(path)  # its error names the files that are there
    elif not path.exists():
        allowed = "the folder that `stratal study new` made, or the file that `stratal draw` wrote"
        raise InputError(f"{path}: there is neither a study nor a sample here", allowed=allowed)


def _is_study(source: Any) -> bool:
    if isinstance(source, str | Path):
        return sample_file(Path(source)).is_dir()
    if source is None or isinstance(source, Sample):
        return False
    from stratal.study import Study  # loaded only where there may be one

    return isinstance(source, Study)


def _of_sample(request: EvaluationRequest, source: Any, labels: Any) -> Evidence:
    """Return the evidence of a sample that stratal drew."""
    allowed = "SAMPLE LABELS…, STUDY, or --labelled FILE"
    if source is None:
        raise InputError("nothing to estimate from", allowed=allowed)
    if isinstance(source, str | Path):
        sample = _read_sample(Path(source), labels, allowed)
    else:
        sample = require_sample(source, "evaluate")
    if labels is None:
        raise InputError("the labels are missing", allowed=allowed)
    if isinstance(sample.design, Disagreements):
        sample.weighting()  # it explains what such a sample is for
    sample, request = _with_question(sample, request)
    files = _paths(labels)
    if files is None:
        read = _given_columns(sample, labels, request)
    else:
        read = _file_columns(sample, files, request)
    return Evidence(
        request=request,
        sample=sample,
        read=read,
        column=request.label_column,
        bounds=request.bounds,
    )


def _with_question(sample: Sample, request: EvaluationRequest) -> tuple[Sample, EvaluationRequest]:
    """Return sample and request with the judges, models and target that either declares.

    What only the sample declares is left out if the request is about something else: an estimand, one model's
    rows, or another column of labels.
    """
    question = sample.question.refine(judges=request.judge, models=request.compare, target=request.target)
    sample = replace(sample, question=question)
    request = replace(request, target=question.target)
    estimand = as_estimand(request.estimand or question.estimand)
    is_single = len(estimand.parts_of(sample)) == 1 and not estimand.label_columns(sample)
    if request.estimand is not None or request.model is not None or not is_single:
        return sample, request
    judges = question.judges
    models = question.models if request.value is None else request.compare
    return sample, replace(request, judge=judges, compare=models)


def _read_sample(path: Path, labels: Any, allowed: str) -> Sample:
    require_present(path)
    file = sample_file(path)
    if labels is None or labels == []:
        example = f"Give their file too: stratal estimate {file} {file.parent / 'to_label.csv'}"
        other = f"If {file} was labelled elsewhere: stratal doctor {file} shows the command"
        raise InputError(f"{file}: the labels are missing", allowed=allowed, action=f"{example}. {other}.")
    return Sample.read(file)


def _paths(labels: Any) -> tuple[Path, ...] | None:
    """Return the files of labels; None for labels in memory."""
    if isinstance(labels, str | Path):
        return (Path(labels),)
    if not isinstance(labels, list | tuple) or not all(isinstance(path, str | Path) for path in labels):
        return None
    # A list of texts is a list of labels unless one of them is a file: then another one is mistyped.
    are_files = any(isinstance(path, Path) or Path(path).is_file() for path in labels)
    return tuple(map(Path, labels)) if are_files else None


def _file_columns(sample: Sample, files: Sequence[Path], request: EvaluationRequest) -> ReadColumn:
    """Return what reads a column of files."""
    id_name = request.id or sample.question.id
    order = sample.ids.tolist()
    if request.id not in (None, "row"):
        read_labels(*files, id_name=id_name, value=id_name, order=order)  # refuses a missing column of ids
    # Of several columns with usual names of labels, the user must name one.
    usual = None if request.value is None else LABEL

    def read(name: str) -> Labels:
        value = usual if name == LABEL else name
        how: Any = {"order": order, "same_rows": request.same_rows}
        return read_labels(*files, id_name=id_name, value=value, **how)

    return read


def _given_columns(sample: Sample, labels: Any, request: EvaluationRequest) -> ReadColumn:
    """Return what gives a column of labels in memory: of a table, a mapping of columns, or the only one."""
    if is_table(labels, filter(None, (request.label_column, request.model, *request.compare))):
        usual = None if request.value is None else LABEL
        return lambda name: labels_of_table(labels, sample, usual if name == LABEL else name, request.id)
    several = isinstance(labels, Mapping) and all(
        isinstance(column, Labels | Mapping) for column in labels.values()
    )
    columns: Mapping[str, Any]
    if several and labels:
        columns = labels
    else:
        columns = {request.label_column: labels}

    def read(name: str) -> Labels:
        if name not in columns:
            known = ", ".join(map(repr, columns))
            raise MissingColumnError(f"the labels have no column {name!r}", column=name, allowed=known)
        return labels_with_sample_ids(sample, columns[name])

    return read


def _of_study(request: EvaluationRequest, source: Study | str | Path, labels: Any) -> Evidence:
    """Return the evidence of a study: its present labels, and what its question declares."""
    if labels:
        what = "a study has its labels in itself: LABELS would have no effect"
        raise InputError(what, action="Leave them out, or give the sample instead of the study.")
    # Studies are loaded only where there is one.
    from stratal.study import Study, open_study

    if isinstance(source, Study):
        return _of_open_study(request, source)
    with open_study(source, reading=True) as study:
        return _of_open_study(request, study)


def _of_open_study(request: EvaluationRequest, study: Study) -> Evidence:
    from stratal.study.question import ASKED
    from stratal.study.study import estimate_options, sample_for_column

    form = study.form
    columns = {name: study.labels(name) for name in form.columns}
    first = next(iter(columns))
    if request.value in (None, LABEL):
        named = first
    else:
        named = str(request.value)
    asked = named if named in columns else first
    sample, request = _with_question(sample_for_column(study, asked), request)
    if named in columns:
        declared = estimate_options(study, named)
    else:
        declared = {}
    if not columns[first].answered:
        folder = quote(str(study.folder))
        raise LabelError(
            f"{study.folder}: nothing is labelled yet",
            action=f"Let annotators label: stratal study label {folder}.",
        )
    one_question = request.estimand is not None or request.compare or request.model or request.metric
    questions: tuple[str, ...] = ()
    if request.value in (None, LABEL) and len(form.questions) > 1 and not one_question:
        questions = tuple(name for name in columns if not name.endswith(f"_{ASKED}"))

    def read(name: str) -> Labels:
        if name != LABEL and name not in columns:
            allowed = ", ".join(columns)
            what = "the study asks no such question"
            raise MissingColumnError(what, column=name, given=repr(name), allowed=allowed)
        return columns.get(name, columns[first])

    return Evidence(
        request=replace(request, estimand=request.estimand or declared.get("estimand")),
        sample=sample,
        read=read,
        column=request.label_column,
        bounds=request.bounds or declared.get("bounds"),
        study=Path(study.folder),
        questions=questions,
        study_words=study.labels(asked, words=True),
    )


def _of_external_table(request: EvaluationRequest, table: Any, design: Any) -> Evidence:
    """Return the evidence of units that were drawn and labelled elsewhere."""
    design_options = {name: value for name, value in dict(design).items() if value is not None}
    if request.model is not None:
        # From here on each model is a column of labels.
        needed = [request.by, request.post_stratify, request.answer_column, *request.judge]
        needed += [design_options.get(name) for name in ("stratum", "cluster", "weight", "proxy")]
        table, models = _one_row_for_each_unit(table, request, [name for name in needed if name])
        request = replace(request, model=None, value=models[0], compare=models)
    groups = [request.by, request.post_stratify, *_margin_groups(request)]
    proxy = design_options.get("proxy") or ()
    others = {design_options.get("stratum"), *((proxy,) if isinstance(proxy, str) else proxy)}
    kept = tuple(dict.fromkeys(name for name in groups if name and name not in others))
    # A file of sizes with a column of variances also holds the proxy's moments.
    if (
        design_options.get("sizes") is not None
        and request.population is None
        and design_options.get("proxy") is not None
    ):
        moments = SmallTable.of(design_options["sizes"], "--sizes").find("variance") is not None
        if moments:
            design_options["proxy_moments"] = design_options["sizes"]
        else:
            design_options["proxy_moments"] = None
    sample, first = Sample.from_labelled(
        table,
        value=request.label_column,
        groups=kept,
        id=request.id,
        population=request.population,
        placeholders=_placeholders(request),
        **request.roles.keywords | {"predicted": request.answer_column},
        **design_options,
    )
    sample, request = _with_question(sample, request)

    def read(name: str) -> Labels:
        return replace(labels_of(sample, table, name), notes=first.notes)

    return Evidence(
        request=request,
        sample=sample,
        read=read,
        column=request.label_column,
        bounds=request.bounds,
    )


def _placeholders(request: EvaluationRequest) -> tuple[str, ...]:
    """Return the words, such as NA, that the request says to be no label."""
    mapped = request.mapping or {}
    return tuple(str(word) for word, value in mapped.items() if value is None and is_placeholder(str(word)))


def _one_row_for_each_unit(
    table: Any, request: EvaluationRequest, needed: Sequence[Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a table with a row per unit and model as one with a column of labels for each model.

    Other columns are kept if they have one value for each unit; those that are `needed` must.
    """
    rows = SmallTable.of(table, "the table of labels")
    assert request.model is not None
    models = [str(entry) for entry in rows.values(request.model)]
    id_name = request.id or rows.find(*ID_NAMES)
    if id_name is None:
        action = "Name the column: id= (--id COL)."
        raise InputError(f"{rows.label}: rows of several models need a column of ids", action=action)
    ids = [str(entry) for entry in rows.values(id_name)]
    names = tuple(request.compare) or tuple(dict.fromkeys(models))
    for name in names:
        if name not in models:
            allowed = near_names(name, dict.fromkeys(models))
            raise InputError(f"{rows.label}: no row is of the model {name!r}", allowed=allowed)
    labels = rows.values(request.value or LABEL)
    units = {unit: number for number, unit in enumerate(dict.fromkeys(ids))}
    labels_by_model: dict[str, list[Any]] = {name: [None] * len(units) for name in names}
    seen_pairs = set()
    for unit, model, label in zip(ids, models, labels, strict=True):
        if (unit, model) in seen_pairs:
            what = f"{rows.label}: unit {unit!r} has two rows of model {model!r}"
            raise LabelError(what, allowed="one row for each unit and model")
        seen_pairs.add((unit, model))
        if model in labels_by_model:
            labels_by_model[model][units[unit]] = label
    others = _columns_of_units(rows, ids, {request.model, request.value or LABEL, id_name}, needed)
    clash = next((name for name in names if name in (*others, id_name)), None)
    if clash is not None:
        what = f"{rows.label}: {clash!r} is a column and the name of a model"
        raise InputError(what, action="Rename the column or the model.")
    return {id_name: list(units), **others, **labels_by_model}, names


def _columns_of_units(
    rows: SmallTable, ids: Sequence[str], without: set[str], needed: Sequence[Any]
) -> dict[str, list[Any]]:
    """Return the columns that have one value for each unit, an entry per unit.

    `ids` are the units of the rows, `without` columns that are left out.
    """
    required = {name for entry in needed for name in ((entry,) if isinstance(entry, str) else entry)}
    columns = {}
    for name, entries in rows.lists.items():
        if name in without:
            continue
        first: dict[str, Any] = {}
        differing = None
        for unit, entry in zip(ids, entries, strict=True):
            if not same_value(first.setdefault(unit, entry), entry):
                differing = unit
                break
        if differing is None:
            columns[name] = list(first.values())
        elif name in required:
            what = f"{rows.label}: column {name!r} differs between the rows of unit {differing!r}"
            action = "Give a column with one value for each unit, or the rows of one model alone."
            raise InputError(what, action=action)
    return columns


def _margin_groups(request: EvaluationRequest) -> tuple[str, ...]:
    if request.margins is not None:
        return _margins(request)[1]
    return ()


def _margins(request: EvaluationRequest) -> tuple[str, tuple[str, ...]]:
    """Return the method and the groups of `margins`, such as `raking:site,language`."""
    text = request.margins or ""
    method, colon, names = text.rpartition(":")
    if not colon or method not in ("raking", "regression"):
        method = "raking"
        names = text
    return method, tuple(name.strip() for name in names.split(",") if name.strip())


def _with_columns(evidence: Evidence) -> Evidence:
    """Return the evidence with weights, answers and verdicts that are requested, each column read once."""
    request = evidence.request
    read_once = cache(evidence.read)

    def read(name: str) -> Labels:
        return replace(read_once(name), positive=request.positive, mapping=request.mapping)

    sample = evidence.sample
    if request.predicts is not None:
        sample = with_corrected_scores(sample, request.predicts, read(evidence.column))
        sample = with_declared_scores(sample, request.predicts)
    sample = _weighted(sample, request)
    sample = _with_answers(sample, request.answer_column, read_once, "--predicted", "--predicted")
    for judge in request.judge:
        if judge not in sample.proxy_names:
            sample = _with_answers(sample, judge, read_once, "--judge", "--groups")
    return replace(evidence, sample=sample, read=read)


def _weighted(sample: Sample, request: EvaluationRequest) -> Sample:
    """Return the sample weighted to the known sizes of groups and means of proxies, if any are named."""
    if request.margins is not None:
        method, groups = _margins(request)
        return fit_margins(sample, groups, method=method)
    if request.post_stratify is not None:
        return post_stratify(sample, request.post_stratify)
    return sample


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
            given=f"the sample keeps {', '.join(map(repr, sample.groups)) or 'no column'}",
            action=f"Put the column in the labels, or draw with {kept_by}, so that it is kept.",
        ) from None
    return with_group(sample, name, answers)


def _with_models(evidence: Evidence) -> Evidence:
    """Return the evidence with the models compared: columns of the labels, or levels of a long table."""
    request = evidence.request
    if not request.compare and request.model is None:
        return evidence
    if request.answer_column is None and not request.metric:
        # The columns of several models are outcomes, not classes.
        question = evidence.sample.question.refine(predicted=False)
        evidence = replace(evidence, sample=replace(evidence.sample, question=question))
    if request.model is None:
        return replace(evidence, models=tuple(request.compare))
    outcomes = split_by_model(evidence.read(request.model), evidence.labels, tuple(request.compare))
    models = tuple(outcomes)
    return replace(evidence, read=outcomes.__getitem__, column=models[0], models=models)
