"""`Wave`: the evaluation of one week, from a sample with labels, a folder, a study or the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stratal.designs.labelling_files import find_table_to_label, sample_file
from stratal.designs.sample import Sample
from stratal.designs.sample_file import is_sample_file
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.evaluation.evaluation import Evaluation, evaluate
from stratal.evaluation.labelled_sample import read_labelled_sample
from stratal.evaluation.labelled_table import (
    LabelledTable,
    read_labelled_table,
    with_joined_annotators,
)
from stratal.evaluation.request import EvaluationRequest
from stratal.evaluation.sources import SourceForm, form_of
from stratal.labels.annotator_columns import names_of_labels
from stratal.names import option_of
from stratal.population.softmax import PREDICTED_CLASS
from stratal.protocols import JsonDict, Keywords
from stratal.question.chosen_rows import UNKNOWN
from stratal.question.column_words import NO_COLUMN
from stratal.study.database import DATABASE
from stratal.tables.column_facts import facts_of_table
from stratal.tables.small_table import SmallTable, is_missing
from stratal.waves.order import sorted_waves
from stratal.waves.score import ScoreMoments, moments_of_column, moments_of_sample

# The group, model or metric of an estimate, as pairs of a name and a value; empty for the mean of all items.
RowKey = tuple[tuple[str, str | None], ...]
MEAN_OF_ALL_ITEMS: RowKey = ()

# Allowed forms of waves, for errors.
WAVE_FORMS = (
    "folders that `draw` wrote, with the labels in their to_label.csv; studies; pairs (sample, labels); or "
    "one table with a column of waves"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """The items of one week with the evaluation of their labels.

    Parameters
    ----------
    name : str
    evaluation : Evaluation, optional
        None while the wave has no labels.
    scores : mapping of str to ScoreMoments
        Mean and spread of each proxy over all items of the wave.
    """

    name: str
    evaluation: Evaluation | None
    scores: Mapping[str, ScoreMoments]

    @property
    def rows(self) -> dict[RowKey, Estimate]:
        """The estimates by group, model or metric: all items first, then the groups."""
        if self.evaluation is None:
            return {}
        result = self.evaluation.estimate
        if isinstance(result, Estimates):
            rows = [*result]
        else:
            rows = [result]
        for table in self.evaluation.tables:
            rows += [*table]
        return {tuple(row.label.items()): row for row in rows}

    @property
    def sample(self) -> Sample | None:
        """The sample; None while the wave has no labels."""
        if self.evaluation is None:
            return None
        return self.evaluation.sample


# Words that the name of a column of waves may contain.
_WAVE_WORDS = frozenset(("wave", "week", "month", "date", "day", "period", "quarter", "release", "version"))


def _wave_action(sources: Sequence[Any]) -> str | None:
    """Return the advice to name the column of waves, if the first source is the file of a table."""
    path = next(iter(sources), None)
    if not isinstance(path, str | Path) or not Path(path).is_file() or is_sample_file(Path(path)):
        return None
    names = [
        facts.name for facts in facts_of_table(SmallTable.of(path, str(path))) if facts.words & _WAVE_WORDS
    ]
    options = " or ".join(option_of("wave", name) for name in names)
    options = options or "wave= (--wave COLUMN)"
    return f"Name the column of the waves: {options}."


def read_waves(waves: Any, wave_column: str | None, options: Mapping[str, Any]) -> list[Wave]:
    """Return the evaluation of each wave, in the order of the arguments or, for a table, in time.

    Parameters
    ----------
    waves
        The argument of `stratal.trend`.
    wave_column : str, optional
        The column of waves, if `waves` is one table.
    options
        Keywords of `stratal.evaluate`.

    Raises
    ------
    InputError
        For waves of another form, duplicate names, and fewer than two waves.
    """
    if wave_column is not None:
        requests = [*_waves_of_table(waves, wave_column, options)]
    else:
        requests = [(name, source, labels, dict(options)) for name, source, labels in _named_sources(waves)]
    if len(requests) < 2:
        action = None
        if wave_column is None:
            action = _wave_action([source for _, source, _, _ in requests])
        raise InputError(
            "a trend requires two waves or more",
            given=f"{len(requests)} wave",
            allowed=WAVE_FORMS,
            action=action,
        )
    evaluated_waves = [_read_wave(*request) for request in requests]
    targets = {next(iter(wave.rows.values())).target for wave in evaluated_waves if wave.rows}
    if len(targets) > 1 and options.get("target") is None:
        # If all items of one week are labelled, its target is the population of these items, whose level has
        # no error. All waves must have the same target.
        return read_waves(waves, wave_column, {**options, "target": "superpopulation"})
    return evaluated_waves


def _read_wave(name: str, source: Any, labels: Any, options: Keywords) -> Wave:
    """Return one wave; without an evaluation while it has no labels."""
    request = EvaluationRequest(**options)
    if _has_labels(request, source, labels):
        evaluation = evaluate(source, labels, **options)
        return Wave(
            name=name, evaluation=evaluation, scores=_score_moments(evaluation.sample, source, request)
        )
    sample = None
    form = form_of(source, labels)
    if form == SourceForm.SAMPLE:
        if isinstance(source, Sample):
            sample = source
        else:
            sample = Sample.read(sample_file(Path(source)))
    if form == SourceForm.STUDY:
        sample = _study_sample(source)
    return Wave(name=name, evaluation=None, scores=_score_moments(sample, source, request))


def _has_labels(request: EvaluationRequest, source: Any, labels: Any) -> bool:
    """Return whether any unit of a wave has a label."""
    form = form_of(source, labels)
    if form == SourceForm.SAMPLE:
        if labels is None or (isinstance(labels, Sized) and len(labels) == 0):
            return False
        labelled_sample = read_labelled_sample(request, source, labels)
        return any(labelled_sample.read_column(name).answered for name in labelled_sample.label_columns)
    if form == SourceForm.STUDY:
        # The modules of studies, with their database, are imported only for studies.
        from stratal.study import Study, open_study

        if isinstance(source, Study):
            return any(source.labels(name).answered for name in source.form.columns)
        with open_study(source, read_only=True) as study:
            return any(study.labels(name).answered for name in study.form.columns)
    if form == SourceForm.TABLE and isinstance(source, SmallTable):
        names = request.compare or (request.label_column,)
        return any(not is_missing(entry) for name in names for entry in source.values(name))
    return True


def _study_sample(source: Any) -> Sample:
    """Return the sample of a study or of its folder."""
    # The modules of studies, with their database, are imported only for studies.
    from stratal.study import Study, open_study

    if isinstance(source, Study):
        return source.sample()
    with open_study(source, read_only=True) as study:
        return study.sample()


def _score_moments(sample: Sample | None, source: Any, request: EvaluationRequest) -> dict[str, ScoreMoments]:
    """Return the moments of each proxy over all items: of the sample's summary, or of the rows of a table."""
    if not isinstance(source, SmallTable):
        if sample is None:
            return {}
        return moments_of_sample(sample)
    moments = {}
    source = source.with_shares(request.proxy)
    for name in () if request.states_no_proxy else request.proxy:
        column = source.numbers_or_nan(name)
        if np.all(np.isfinite(column)):
            moments[name] = moments_of_column(column)
    return moments


def _named_sources(waves: Any) -> list[tuple[str, Any, Any]]:
    """Return name, source and labels of each wave."""
    if isinstance(waves, Mapping):
        named_sources = [(str(name), *_source_and_labels(wave)) for name, wave in waves.items()]
    elif isinstance(waves, Sequence) and not isinstance(waves, str):
        sources_and_labels = [_source_and_labels(wave) for wave in waves]
        names = _wave_names([source for source, _ in sources_and_labels])
        named_sources = [(name, *pair) for name, pair in zip(names, sources_and_labels, strict=True)]
    else:
        raise InputError(
            "waves must be a list, a mapping from names to waves, or a table with wave= (--wave)",
            allowed=WAVE_FORMS,
        )
    names = [name for name, _, _ in named_sources]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two waves are called {name!r}", action="Give each wave once.")
    return named_sources


def _wave_names(sources: Sequence[Any]) -> list[str]:
    """Return the names of folders and files, and numbers for waves in memory."""
    paths = [Path(source) if isinstance(source, str | Path) else None for source in sources]
    names = []
    for number, path in enumerate(paths, start=1):
        if path is None:
            names.append(f"wave {number}")
        elif path.suffix:
            names.append(path.resolve().parent.name)
        else:
            names.append(path.resolve().name)
    if len(set(names)) < len(names):
        return [name if path is None else str(path) for name, path in zip(names, paths, strict=True)]
    return names


def _source_and_labels(wave: Any) -> tuple[Any, Any]:
    """Return the source of a wave and its labels; for a folder that `draw` wrote, its to_label.csv.

    `FOLDER=FILE,…` names other files of labels.
    """
    if isinstance(wave, tuple | list):
        if len(wave) != 2:
            raise InputError(
                "a wave must be a pair (sample, labels)", given=f"{len(wave)} values", allowed=WAVE_FORMS
            )
        return wave[0], wave[1]
    if not isinstance(wave, str | Path):
        return wave, None
    text = str(wave)
    folder, equals, files = text.partition("=")
    if equals and not Path(text).exists():
        return Path(folder), [Path(file) for file in files.split(",")]
    path = Path(wave)
    file = sample_file(path)
    is_study = path.is_dir() and (path / DATABASE).is_file()
    is_folder_or_file_of_draw = file != path or bool(path.suffix)
    if is_study or not is_folder_or_file_of_draw:
        return path, None
    table = find_table_to_label(file.parent)
    if table is None:
        return path, None
    return path, [table]


def _waves_of_table(
    table: Any, wave_column: str, options: Mapping[str, Any]
) -> Iterator[tuple[str, SmallTable, None, JsonDict]]:
    """Yield name, rows, labels (None) and options of each wave in a column of a table.

    The roles of the other columns are recognised on the whole table.
    """
    if isinstance(table, list | tuple) and len(table) == 1:
        table = table[0]
    request = EvaluationRequest(**options)
    required = (wave_column, *names_of_labels(request.value))
    rows = SmallTable.of(table, "the table of labels", required)
    waves_of_rows = rows.texts(wave_column).tolist()
    column = rows.find(wave_column)
    other_columns = {name: entries for name, entries in rows.columns.items() if name != column}
    # Before the rows are split, because a wave may have the labels of only one annotator.
    rows = with_joined_annotators(replace(rows, columns=other_columns), request)
    if options.get("chosen") == UNKNOWN:
        raise InputError(
            "changes cannot be estimated from rows that were chosen in an unknown way",
            action="Draw the rows to label at random.",
        )
    labelled = read_labelled_table(rows, request)
    if PREDICTED_CLASS in labelled.rows.joined:
        # A wave may have labels of too few classes to recognise the probabilities.
        rows = labelled.rows
    options_with_roles = {**options, **_recognised_roles(labelled, request)}
    for name in sorted_waves(waves_of_rows):
        indices = [row for row, wave in enumerate(waves_of_rows) if wave == name]
        yield name, rows.only(indices), None, options_with_roles


def _recognised_roles(table: LabelledTable, request: EvaluationRequest) -> JsonDict:
    """Return the columns of the whole table as options, so that every wave has the same."""
    recognition = table.recognition
    is_compared = table.request.predicted is not None and table.request.predicted is not False
    models = request.compare or recognition.models
    if is_compared:
        predicted = table.request.predicted
    elif models:
        predicted = None
    else:
        predicted = NO_COLUMN
    judge = request.judge
    if not judge and request.estimand is None and not models:
        # A recognised judge is a proxy; its agreement is compared over waves only if that is requested.
        judge = (NO_COLUMN,)
    proxy = request.proxy or (recognition.proxy or NO_COLUMN,)
    return {
        "value": request.value or recognition.value,
        "id": request.id or recognition.id,
        "predicted": predicted,
        "judge": judge,
        "proxy": proxy,
        "model": request.model or recognition.model,
        "cluster": table.request.cluster,
        "compare": models,
    }
