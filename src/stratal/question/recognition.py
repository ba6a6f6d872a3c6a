"""Recognise the roles of a table's columns by their names and contents.

A needed role with several candidates is a `RoleQuestion`, which callers turn into an error with the options
to type. An optional role with several candidates is not used, and a note names the options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote

from stratal.errors import InputError
from stratal.names import option_of
from stratal.protocols import JsonDict
from stratal.question.code_numbers import is_missing_code
from stratal.question.column_words import (
    ANNOTATOR_WORDS,
    ANSWER_WORDS,
    CLASS_NAMES,
    CORRECTNESS_WORDS,
    HUMAN_LABEL_WORDS,
    ID_NAMES,
    JUDGE_WORDS,
    LABEL_NAMES,
    MACHINE_WORDS,
    MEASUREMENT_WORDS,
    MODEL_NAMES,
    MODEL_WORDS,
    NO_COLUMN,
    NO_LABEL_WORDS,
    OUTCOME_WORDS,
    PROBABILITY_WORDS,
    PROXY_WORDS,
    WEAK_LABEL_WORDS,
    WEIGHT_WORDS,
)
from stratal.question.content import is_content_text
from stratal.question.decoding import fold_text
from stratal.question.facts import MAX_CLASS_LENGTH, MAX_RATINGS, MAX_VERDICTS, ColumnFacts
from stratal.question.vocabulary import success_word

# Maximum number of unused scores that a note names, and of possible labels that a question names.
_MAX_SCORES_NAMED = 3
_MAX_LABELS_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleQuestion:
    """The question which column has a needed role, if several columns or none may have it.

    Parameters
    ----------
    role : str
    text : str
        The problem, for an error message.
    candidates : tuple of str
        Columns that may have the role.
    options : tuple of str
        Arguments that answer the question, such as `value='human' (--value human)`.
    is_ambiguous : bool
        Whether several columns may have the role; otherwise none is recognised.
    """

    role: str
    text: str
    candidates: tuple[str, ...]
    options: tuple[str, ...]
    is_ambiguous: bool = True

    def is_answerable(self, columns: Mapping[str, ColumnFacts]) -> bool:
        """Return whether a column may have the role: a table without labels has no column of labels."""
        if self.role != "value":
            return True
        return self.is_ambiguous and any(
            columns[name].is_partial or _label_level(columns[name]) > _UNKNOWN for name in self.candidates
        )

    def error(self, table_name: str) -> InputError:
        """Return the error that asks for the column of a table with the role."""
        return InputError(
            f"{table_name}: {self.text}",
            given=", ".join(map(repr, self.candidates)) or None,
            action=f"State it: {', or '.join(self.options)}.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """The recognised roles of a table's columns.

    Parameters
    ----------
    n_rows : int
    id : str, optional
    value : str, optional
        Column of the labels.
    answer : str, optional
        Column of the model's answers, which labels are compared with.
    judges : tuple of str
    proxy : str, optional
    model : str, optional
        Column of the models' names, in a table with a row per item and model.
    models : tuple of str
        Columns with the outcomes of several models.
    groups : tuple of str
        Columns of categories by which results may be reported.
    scores : tuple of str
        Columns that may be the proxy, the most probable first.
    questions : tuple of RoleQuestion
    notes : tuple of str
        Notes on optional roles that several columns may have, and on duplicate ids.
    columns : mapping of name to ColumnFacts
    """

    n_rows: int
    id: str | None = None
    value: str | None = None
    answer: str | None = None
    judges: tuple[str, ...] = ()
    proxy: str | None = None
    model: str | None = None
    models: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    questions: tuple[RoleQuestion, ...] = ()
    notes: tuple[str, ...] = ()
    columns: Mapping[str, ColumnFacts] = field(default_factory=dict)

    @property
    def possible_labels(self) -> tuple[str, ...]:
        """Columns that may contain the labels by their names, if none is recognised."""
        names = [
            name for question in self.questions if question.role == "value" for name in question.candidates
        ]
        return tuple(name for name in names if _label_level(self.columns[name]) > _UNKNOWN)

    @property
    def positive_class(self) -> str | None:
        """The class that means success, if labels have two classes and are not compared with answers.

        None if no class means success, as for the labels spam and ham: the user has to name one.
        """
        labels = self.columns.get(self.value or "")
        # Numbers and verdicts need no positive class.
        if labels is None or labels.is_number or labels.verdicts is not None or self.answer is not None:
            return None
        return success_word(labels.values or ())

    @property
    def plan_proxy(self) -> str | None:
        """The proxy of a plan: the recognised one, or the most probable score."""
        return self.proxy or next(iter(self.scores), None)

    @property
    def further_scores(self) -> tuple[str, ...]:
        """Columns with scores from 0 to 1 in every row that a plan can use together with its proxy.

        Columns that are named as probabilities are left out: they may be those of the classes.
        """
        proxy = self.columns.get(self.plan_proxy or "")
        if proxy is None or not (proxy.is_complete and proxy.is_probability):
            return ()
        # Columns with another role are no further scores.
        roles = (self.plan_proxy, self.value, self.answer)
        return tuple(
            column.name
            for column in self.columns.values()
            if column.name not in roles and may_be_proxy(column) and _is_score_from_0_to_1(column)
        )

    def sentence(self, reason_unused: str | None = None) -> str:
        """Return the roles in one line; `reason_unused` states why the estimate does not use the proxy."""
        parts = []
        if self.models:
            parts.append(f"models: {', '.join(f'`{name}`' for name in self.models)}")
        if self.model is not None:
            count = ""
            if self.model in self.columns:
                count = f" ({self.columns[self.model].n_distinct:,})"
            parts.append(f"models: `{self.model}`{count}")
        if self.judges:
            judges = ", ".join(self._judge_text(name) for name in self.judges)
            correction = ""
            if reason_unused is not None and self.proxy in self.judges:
                correction = f", which does not correct the estimate ({reason_unused})"
            parts.append(f"judge: {judges}{correction}")
        if self.answer is not None:
            parts.append(f"the model's answer: `{self.answer}`")
        if self.proxy is not None and self.proxy not in self.judges:
            reason = f" (not used: {reason_unused})" if reason_unused else ""
            parts.append(f"proxy: `{self.proxy}`{reason}")
        if self.value is not None and not self.models:
            labels = self.columns.get(self.value)
            # The column of first labels of several annotators has no facts.
            n_labelled = self.n_rows if labels is None else labels.n_entries
            parts.append(f"labels: `{self.value}` in {n_labelled:,} of {self.n_rows:,} rows")
        return "; ".join(parts)

    @property
    def options(self) -> list[str]:
        """Arguments of a command that name the recognised columns, such as `--value` and `human`."""
        columns = {
            "--value": self.value,
            "--id": self.id,
            "--predicted": self.answer,
            "--judge": ",".join(self.judges),
            "--proxy": None if self.proxy in self.judges else self.proxy,
            "--model": self.model,
            "--compare": ",".join(self.models),
        }
        return [word for option, name in columns.items() if name for word in (option, name)]

    def _judge_text(self, name: str) -> str:
        """Return the name of a judge with its verdicts, the one with the largest number first."""
        facts = self.columns.get(name)
        numbers = None if facts is None else facts.verdicts
        if not numbers:
            return f"`{name}`"
        verdicts = sorted(numbers, key=lambda verdict: -numbers[verdict])
        return f"`{name}` ({'/'.join(verdicts)})"

    def to_dict(self) -> JsonDict:
        """Return the recognised roles as a JSON-serializable dict."""
        roles: JsonDict = {
            "id": self.id,
            "label": self.value,
            "predicted": self.answer,
            "judge": list(self.judges),
            "proxy": self.proxy,
            "model": self.model,
            "compare": list(self.models),
        }
        return {name: value for name, value in roles.items() if value not in (None, [])}

    def require_answered(self, table_name: str) -> None:
        """Raise the error of the first question, if there is one."""
        for question in self.questions:
            raise question.error(table_name)

    @property
    def has_models(self) -> bool:
        """Whether the table has outcomes of several models, in rows or in columns."""
        return self.model is not None or bool(self.models)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRoles:
    """Roles that the user states: None if nothing is stated, and empty if no column has the role.

    `groups` are columns by which results are reported or weighted, such as the model's answers.
    """

    id: str | None = None
    value: str | None = None
    answer: str | None = None
    # Whether labels are compared with the model's answers, which are then a column.
    is_compared: bool | None = None
    judges: tuple[str, ...] | None = None
    # Whether the user states that no column is a judge: a column of verdicts is then no proxy either.
    no_judge: bool = False
    proxies: tuple[str, ...] | None = None
    model: str | None = None
    models: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    # Columns with a role that is not recognised, such as features.
    others: tuple[str, ...] = ()

    @property
    def columns(self) -> set[str | None]:
        """The columns with a stated role, and possibly None."""
        names = {self.id, self.value, self.answer, self.model, *self.models, *self.groups, *self.others}
        return names.union(self.judges or (), self.proxies or ())


def recognise(columns: Sequence[ColumnFacts], stated: StatedRoles | None = None) -> Recognition:
    """Return the roles of columns by name and content.

    Parameters
    ----------
    columns : sequence of ColumnFacts
    stated : StatedRoles, optional
        Roles that the user states. They are not recognised again, and their columns have no other role.
    """
    stated = StatedRoles() if stated is None else stated
    by_name = {column.name: column for column in columns}
    recognition = Recognition(
        n_rows=max((column.n_rows for column in columns), default=0),
        id=stated.id,
        value=stated.value,
        answer=stated.answer,
        judges=stated.judges or (),
        proxy=next(iter(stated.proxies or ()), None),
        model=stated.model,
        models=stated.models,
        columns=by_name,
    )
    remaining = [column for column in _without(columns, *stated.columns) if column.n_entries]
    remaining = [column for column in remaining if not _has_fields(column, by_name)]
    # Each step removes the columns that get a role, so that no column has two roles.
    if not recognition.has_models:
        recognition = _with_model_column(recognition, remaining)
    remaining = _without(remaining, recognition.model)
    if recognition.id is None:
        recognition = _with_id(recognition, remaining)
    remaining = _without(remaining, recognition.id)
    if recognition.value is None and not recognition.models:
        recognition = _with_labels(recognition, remaining, stated)
    remaining = _without(remaining, recognition.value, *recognition.models)
    recognition, remaining = _with_answer_and_judges(recognition, remaining, stated)
    if stated.proxies is None and not recognition.has_models:
        recognition = _with_proxy(recognition, remaining)
        remaining = _without(remaining, recognition.proxy)
        recognition = _with_notes_on_scores(recognition, remaining)
    if stated.answer is None and stated.is_compared is None:
        recognition = _with_notes_on_answers(recognition, remaining)
    if recognition.value is not None:
        notes = tuple(_note_on_weights(column) for column in remaining if _may_be_weights(column))
        recognition = replace(recognition, notes=(*recognition.notes, *notes))
    groups = [column.name for column in _without(remaining, recognition.proxy) if _is_group(column)]
    return replace(recognition, groups=tuple(groups))


def _without(columns: Iterable[ColumnFacts], *names: str | None) -> list[ColumnFacts]:
    """Return the columns without those with the names."""
    return [column for column in columns if column.name not in names]


def _with_answer_and_judges(
    recognition: Recognition, columns: list[ColumnFacts], stated: StatedRoles
) -> tuple[Recognition, list[ColumnFacts]]:
    """Return the recognition with the column of answers or the judges, and the columns that have no role."""
    labels = recognition.columns.get(recognition.value or "")
    if labels is None or recognition.has_models:
        return recognition, _without(columns, *recognition.judges)
    if stated.answer is None and stated.is_compared is None:
        # Results may be reported by the model's answers.
        groups = [recognition.columns[name] for name in stated.groups if name in recognition.columns]
        answers = [column for column in groups if column.words & ANSWER_WORDS]
        recognition = _with_answer(recognition, [*columns, *answers], labels)
    columns = _without(columns, recognition.answer)
    if recognition.answer is None and stated.judges is None:
        recognition = _with_judges(recognition, columns, labels)
    if recognition.answer is None and stated.no_judge:
        columns = _without(columns, *_with_judges(recognition, columns, labels).judges)
    return recognition, _without(columns, *recognition.judges)


def _has_fields(column: ColumnFacts, names: Iterable[str]) -> bool:
    """Return whether the entries are objects whose fields are columns of the table, such as `judge.score`."""
    return column.is_nested and any(name.startswith(f"{column.name}.") for name in names)


# ---- ids and models


def _is_named_id(column: ColumnFacts) -> bool:
    """Return whether a column is named like an id, such as `doc_id`."""
    return "id" in column.words or "uuid" in column.words or column.folded_name.endswith("id")


def _may_be_id(column: ColumnFacts) -> bool:
    """Return whether a column may contain ids: no entry missing, all different, and no measurement.

    A column with a usual name of ids may have duplicates, which a note mentions.
    """
    if column.is_nested or column.is_date:
        return False
    # With more duplicates, such a column identifies something else, such as the item of each model's row.
    if column.folded_name in ID_NAMES and 2 * column.n_distinct > column.n_rows:
        return True
    if not column.is_complete or column.n_distinct != column.n_rows:
        return False
    if _is_named_id(column):
        return True
    if column.is_number:
        return column.is_position and not column.words & (PROXY_WORDS | HUMAN_LABEL_WORDS)
    if is_content_text(column.name) or column.words & (MEASUREMENT_WORDS - {"code", "no"}):
        return False
    return column.mean_length <= MAX_CLASS_LENGTH


def _with_id(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the column of ids, if there is one."""
    candidates = [column for column in columns if _may_be_id(column)]
    id_column = min(candidates, key=_id_preference, default=None)
    if id_column is None:
        return recognition
    n_duplicates = id_column.n_entries - id_column.n_distinct
    notes = recognition.notes
    if n_duplicates:
        text = duplicates_text(id_column.name, n_duplicates)
        notes = (*notes, f"{text}: remove them, or number the rows: id='row' (--id row)")
    return replace(recognition, id=id_column.name, notes=notes)


def duplicates_text(name: str, count: int) -> str:
    """Return the statement that a column of ids has duplicate values."""
    if count == 1:
        noun = "duplicate value"
    else:
        noun = "duplicate values"
    return f"{name!r} has {count:,} {noun}, so it does not identify rows"


def _id_preference(column: ColumnFacts) -> tuple[bool, bool, bool, bool]:
    """Return the sort key of candidates for the ids: usual names, other names of ids, text, short text."""
    is_usual = column.folded_name in ID_NAMES
    return (
        not is_usual,
        not _is_named_id(column),
        column.is_number,
        column.mean_length > MAX_CLASS_LENGTH / 2,
    )


def _with_model_column(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the column of models, if each item has a row for each of them."""
    by_name = {column.folded_name: column for column in columns}
    model = next((by_name[name] for name in MODEL_NAMES if name in by_name), None)
    if model is None or not model.is_complete or not 1 < model.n_distinct <= recognition.n_rows // 2:
        return recognition
    # Text that differs in every row identifies a row, so that no item has several rows.
    if any(column.n_distinct == column.n_rows and not column.is_number for column in columns):
        return recognition
    # If each item has one row for each model, the number of rows is the number of items times that of models.
    items = [
        column
        for column in columns
        if column is not model
        and column.is_complete
        and column.n_distinct * model.n_distinct == column.n_rows
        and (_is_named_id(column) or not column.is_number)
    ]
    item = min(items, key=_id_preference, default=None) or _question_with_runs(columns, model)
    if item is None:
        name = model.name
        note = (
            f"{name!r} names {model.n_distinct:,} models, whose rows are evaluated together; to compare them "
            f"on the same items: {option_of('model', name)}; to report each: by={name!r} "
            f"(--by {quote(name)})"
        )
        return replace(recognition, notes=(*recognition.notes, note))
    return replace(recognition, model=model.name, id=recognition.id or item.name)


def _question_with_runs(columns: Sequence[ColumnFacts], model: ColumnFacts) -> ColumnFacts | None:
    """Return the column of questions that each model has answered several times; None without one."""
    questions = [column for column in columns if column.is_complete and column.may_be_repeated_questions]
    run_counts = [column.n_distinct for column in columns if column.is_complete and column.may_number_runs]
    for question in sorted(questions, key=_id_preference):
        n_runs, remainder = divmod(question.n_rows, question.n_distinct * model.n_distinct)
        is_balanced = remainder == 0 and n_runs > 1
        # Some rows of runs may be missing.
        has_runs = any(
            question.n_rows <= question.n_distinct * model.n_distinct * count for count in run_counts
        )
        if is_balanced or (n_runs >= 1 and has_runs):
            return question
    return None


# ---- labels


# How certain it is by the name of a column that it contains labels of people.
_NOT_LABELS = -1
_UNKNOWN = 0
_POSSIBLY_LABELS = 1
_PROBABLY_LABELS = 2
_CERTAINLY_LABELS = 3


def _label_level(column: ColumnFacts) -> int:
    """Return how certain it is by its name that a column contains labels of people."""
    words = column.words
    if column.folded_name in LABEL_NAMES:
        # A column `label` without gaps may also contain the model's answers.
        return _CERTAINLY_LABELS if column.is_partial else _PROBABLY_LABELS
    if words & NO_LABEL_WORDS or (column.is_measurement and not words & HUMAN_LABEL_WORDS):
        return _NOT_LABELS
    if words & HUMAN_LABEL_WORDS and not words & MACHINE_WORDS:
        return _CERTAINLY_LABELS
    if words & MACHINE_WORDS:
        return _NOT_LABELS
    if words & WEAK_LABEL_WORDS:
        return _POSSIBLY_LABELS
    return _UNKNOWN


def _is_named_by_people(column: ColumnFacts) -> bool:
    """Return whether the name is that of people's labels, and not of the people."""
    return _label_level(column) == _CERTAINLY_LABELS and not column.words <= ANNOTATOR_WORDS


def _may_be_labels(column: ColumnFacts) -> bool:
    """Return whether the entries may be labels, or the name is that of labels."""
    if column.is_date:
        return False
    # A column with a name of labels may contain sets of tags: lists, or text with separators.
    is_named = column.folded_name in LABEL_NAMES
    return is_named or column.is_number or column.are_classes or column.verdicts is not None


def _may_be_sets(column: ColumnFacts, columns: Sequence[ColumnFacts]) -> bool:
    """Return whether a column may contain people's sets of tags: a model predicts sets for all rows."""
    if not column.is_nested or _label_level(column) < _PROBABLY_LABELS:
        return False
    return any(other.is_nested and other.is_complete and other is not column for other in columns)


def _with_labels(
    recognition: Recognition, columns: Sequence[ColumnFacts], stated: StatedRoles
) -> Recognition:
    """Return the recognition with the column of labels, or a question."""
    levels = {
        column.name: _label_level(column)
        for column in columns
        if _may_be_labels(column) or _may_be_sets(column, columns)
    }
    usable = [column for column in columns if levels.get(column.name, _NOT_LABELS) > _NOT_LABELS]
    partial = [column for column in usable if column.is_partial and _contains_labels(column, columns, levels)]
    complete = [
        column
        for column in usable
        if column.is_complete
        and levels[column.name] >= _PROBABLY_LABELS
        and (stated.answer is not None or _is_named_by_people(column) or _are_decodable(column, columns))
    ]
    if partial:
        return _with_label_column(recognition, _label_candidates(partial, complete, levels))
    if complete:
        max_level = max(levels[column.name] for column in complete)
        candidates = [column for column in complete if levels[column.name] == max_level]
        return _with_label_column(recognition, candidates)
    scores_of_log = [column for column in columns if column.is_score_of_log]
    if scores_of_log:
        return _with_score_as_labels(recognition, scores_of_log)
    if recognition.model is not None:
        return _with_label_column(recognition, [column for column in columns if _is_outcome(column)])
    return _with_compared_models(recognition, columns)


def _label_candidates(
    partial: Sequence[ColumnFacts], complete: Sequence[ColumnFacts], levels: Mapping[str, int]
) -> list[ColumnFacts]:
    """Return the columns that may have the labels, from those with gaps (`partial`) and without gaps."""
    max_level = max(levels[column.name] for column in partial)
    if max_level == _UNKNOWN:
        return [*partial, *complete]
    candidates = [column for column in partial if levels[column.name] == max_level]
    if max_level < _CERTAINLY_LABELS:
        return [*candidates, *complete]
    return candidates + [column for column in complete if levels[column.name] == _CERTAINLY_LABELS]


def _with_score_as_labels(recognition: Recognition, scores: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with a score of a log as the labels, or a question."""
    passed = passing_metric([column.name for column in scores])
    if passed is None:
        return _with_label_column(recognition, scores)
    note = "'score' is not used; to estimate its mean: value='score' (--value score)"
    return replace(recognition, value=passed, notes=(*recognition.notes, note))


def passing_metric(names: Sequence[str]) -> str | None:
    """Return the score of a log that states whether an answer passed, if the only other one is `score`."""
    other_names = [name for name in names if name != "score"]
    if len(other_names) == 1 and len(names) == 2 and other_names[0] in CORRECTNESS_WORDS:
        return other_names[0]
    return None


def _contains_labels(column: ColumnFacts, columns: Sequence[ColumnFacts], levels: Mapping[str, int]) -> bool:
    """Return whether a column with gaps has labels: by its name, or as verdicts or classes of few rows."""
    if levels[column.name] > _UNKNOWN:
        return True
    # People label few rows; a column with few gaps has other values, such as verdicts of a judge that failed.
    is_sparse = 2 * column.n_entries < column.n_rows
    return is_sparse and (column.verdicts is not None or _has_same_classes(column, columns))


def _are_decodable(column: ColumnFacts, columns: Sequence[ColumnFacts]) -> bool:
    """Return whether labels count as numbers, or are classes of another column.

    Classes in every row that occur in no other column are a model's answers.
    """
    if column.is_nested:
        return any(other.is_nested and other is not column for other in columns)
    return column.is_number or column.verdicts is not None or _has_same_classes(column, columns)


def _has_same_classes(column: ColumnFacts, columns: Sequence[ColumnFacts]) -> bool:
    """Return whether a column of classes shares them with another column, which may have the answers."""
    if not column.are_classes or column.is_number:
        return False
    return any(
        other is not column and other.is_complete and _share_classes(column, other) for other in columns
    )


def _is_outcome(column: ColumnFacts) -> bool:
    """Return whether a column contains outcomes of a benchmark, by its name and content."""
    is_named = bool(column.words & OUTCOME_WORDS) and not column.is_measurement
    return is_named and (column.is_number or column.verdicts is not None)


def _with_label_column(recognition: Recognition, candidates: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the only candidate as the column of labels, or a question."""
    if len(candidates) == 1:
        return replace(recognition, value=candidates[0].name)
    names = tuple(column.name for column in candidates)
    if not candidates:
        text = "no column of labels is recognised"
        options: tuple[str, ...] = ("value='COLUMN' (--value COLUMN)",)
    else:
        text = "several columns may contain the labels"
        options = tuple(option_of("value", name) for name in names)
        if all(column.is_number or column.verdicts for column in candidates):
            options += (_compare_option(names),)
        if all(column.is_partial or _label_level(column) > _UNKNOWN for column in candidates):
            options += (_annotators_option(names),)
    question = RoleQuestion(
        role="value", text=text, candidates=names, options=options, is_ambiguous=len(names) > 1
    )
    return replace(recognition, questions=(*recognition.questions, question))


def _annotators_option(names: Sequence[str]) -> str:
    """Return the text of the option that names the columns of several annotators."""
    return f"if they are the answers of several annotators: {option_of('value', ','.join(names))}"


def _compare_option(names: Sequence[str], content: str = "outcomes") -> str:
    """Return the text of the option that compares several models; `content` of the columns is theirs."""
    option = f"compare={list(names)} (--compare {quote(','.join(names))})"
    return f"if they are the {content} of several models: {option}"


def _with_compared_models(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the outcomes of several models, or a question."""
    outcomes = [
        column
        for column in columns
        if column.is_complete and column.verdicts is not None and not column.is_measurement
    ]
    correctness = [column for column in outcomes if column.words & CORRECTNESS_WORDS]
    if len(correctness) == 1 and all(
        column.words & ANSWER_WORDS for column in outcomes if column is not correctness[0]
    ):
        return replace(recognition, value=correctness[0].name)
    if len(outcomes) > 1 and all(column.words & MODEL_WORDS for column in outcomes):
        return replace(recognition, models=tuple(column.name for column in outcomes))
    if len(outcomes) > 1:
        return _with_label_column(recognition, outcomes)
    empty_label_names = [
        name
        for name, column in recognition.columns.items()
        if not column.n_entries and _label_level(column) >= _PROBABLY_LABELS
    ]
    if empty_label_names:
        question = RoleQuestion(
            role="value",
            text=f"no row of column {empty_label_names[0]!r} has a label",
            candidates=(),
            options=("fill in labels, or name another column: value='COLUMN' (--value COLUMN)",),
        )
        return replace(recognition, questions=(*recognition.questions, question))
    names = tuple(
        column.name
        for column in columns
        if _may_be_labels(column) and not column.is_measurement and not column.words & PROXY_WORDS
    )
    question = RoleQuestion(
        role="value",
        text="no column of labels is recognised",
        is_ambiguous=False,
        candidates=names,
        options=(
            *(option_of("value", name) for name in names[:_MAX_LABELS_NAMED] or ("COLUMN",)),
            "if no row has a label, choose rows to label: stratal plan FILE",
        ),
    )
    return replace(recognition, questions=(*recognition.questions, question))


# ---- answers, judges, proxies, groups


def are_answers(labels: ColumnFacts, column: ColumnFacts) -> bool:
    """Return whether a column may contain a model's answers, if the labels are classes."""
    return column.is_complete and column.are_classes and _share_classes(labels, column)


def _share_classes(labels: ColumnFacts, other: ColumnFacts) -> bool:
    """Return whether most classes of the labels also occur in another column.

    Not all have to: people may use a class that the model never predicts. Codes of missing labels are not
    counted. Case and spaces are ignored here; the comparison of labels and answers reports them.
    """
    if labels.values is None or other.values is None:
        return False
    label_classes = set(map(fold_text, labels.values))
    other_classes = set(map(fold_text, other.values))
    codes = {value for value in label_classes - other_classes if is_missing_code(value)}
    return 2 * len(label_classes & other_classes) > len(label_classes - codes)


def _with_answer(
    recognition: Recognition, columns: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition with the column of answers that labels are compared with, or a question."""
    if labels.is_nested:
        comparable = [column for column in columns if column.is_complete and column.is_nested]
    else:
        comparable = [column for column in columns if are_answers(labels, column)]
    named = [column for column in comparable if column.words & ANSWER_WORDS]
    are_numbers = labels.verdicts is not None or labels.is_number
    are_classes = labels.folded_name in CLASS_NAMES and all(column.are_truth_values for column in named)
    if named and labels.are_truth_values and not are_classes:
        return _with_truth_question(recognition, named, labels)
    if len(named) == 1:
        return replace(recognition, answer=named[0].name)
    if are_numbers and not named:
        return _with_class_question(recognition, comparable, labels)
    candidates = named or [
        column
        for column in comparable
        if _label_level(column) < _CERTAINLY_LABELS and not _are_scores_in_percent(column)
    ]
    if len(candidates) == 1:
        return replace(recognition, answer=candidates[0].name)
    if not candidates:
        return recognition
    names = tuple(column.name for column in candidates)
    question = RoleQuestion(
        role="predicted",
        text="several columns may contain the model's answers",
        candidates=names,
        options=(
            *(option_of("predicted", name) for name in names),
            _compare_option(names, "answers"),
        ),
    )
    return replace(recognition, questions=(*recognition.questions, question))


def _are_scores_in_percent(column: ColumnFacts) -> bool:
    """Return whether percentages are scores rather than classes such as 10%, 25% and 50%."""
    has_score_name = bool(column.words & (PROXY_WORDS | JUDGE_WORDS))
    return column.is_percentage and (has_score_name or column.n_distinct > MAX_RATINGS)


def _with_truth_question(
    recognition: Recognition, answers: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition with the question whether the labels 0 and 1 are classes, or wrong and right.

    If the name of their column means correct, they are wrong and right, and there is no question.
    """
    if labels.words & CORRECTNESS_WORDS:
        return recognition
    names = tuple(column.name for column in answers)
    class_options = (option_of("predicted", name) for name in names)
    question = RoleQuestion(
        role="predicted",
        text=f"the labels 0 and 1 in {labels.name!r} may be classes, or mean wrong and right",
        candidates=names,
        options=(
            *(f"if they are classes: {option}" for option in class_options),
            f"if they mean wrong and right: predicted={NO_COLUMN!r} (--predicted {NO_COLUMN})",
        ),
    )
    return replace(recognition, questions=(*recognition.questions, question))


def _with_class_question(
    recognition: Recognition, comparable: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition with a question if labels that are whole numbers may be classes or quantities.

    The `comparable` columns have most of the numbers, too.
    """
    is_rating = bool(labels.words & PROXY_WORDS) or labels.n_distinct <= 2
    candidates = [column for column in comparable if column.is_number and not column.is_measurement]
    candidates = [column for column in candidates if not column.words & (PROXY_WORDS | JUDGE_WORDS)]
    # More numbers than ratings have may be codes of classes if they repeat.
    are_many = labels.n_distinct > MAX_RATINGS and labels.folded_name in LABEL_NAMES
    is_unclear = bool(candidates) or (are_many and labels.n_distinct <= labels.n_entries / 2)
    if not labels.is_number or not labels.is_whole or is_rating or not is_unclear:
        return recognition
    names = tuple(column.name for column in candidates)
    options = [option_of("predicted", name) for name in names]
    question = RoleQuestion(
        role="predicted",
        text=f"the whole numbers in {labels.name!r} may be classes or quantities",
        candidates=names or (labels.name,),
        options=(
            *(f"if they are classes: {option}" for option in options or ["predicted=… (--predicted COLUMN)"]),
            "if they are quantities: predicted='none' (--predicted none)",
        ),
    )
    return replace(recognition, questions=(*recognition.questions, question))


def _is_comparable(column: ColumnFacts, labels: ColumnFacts) -> bool:
    """Return whether a judge's verdicts or scores can be compared with the labels."""
    # Two or three percentages, such as 0% and 100%, are verdicts.
    is_score = column.is_number or (column.is_percentage and column.n_distinct > MAX_VERDICTS)
    if labels.verdicts is not None:
        return column.verdicts is not None or is_score
    if labels.is_number:
        return is_score
    return _share_classes(labels, column)


def _with_judges(
    recognition: Recognition, columns: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition with the judges, and notes on columns that may be judges but are not used."""
    comparable = [
        column for column in columns if not column.is_measurement and _is_comparable(column, labels)
    ]
    # A column with an entry in fewer than half of the rows is not used.
    candidates = [column for column in comparable if 2 * column.n_entries >= column.n_rows]
    named = [
        column
        for column in comparable
        if column.words & JUDGE_WORDS and not column.words & (NO_LABEL_WORDS | HUMAN_LABEL_WORDS)
    ]
    judges = [column for column in named if column in candidates]
    notes_on_sparse = tuple(
        f"{column.name!r} has an entry in only {column.n_entries:,} of {column.n_rows:,} rows and is not "
        f"used; to compare it with the labels: {option_of('judge', column.name)}"
        for column in named
        if column not in candidates
    )
    recognition = replace(recognition, notes=(*recognition.notes, *notes_on_sparse))
    verdicts = [column for column in judges if column.verdicts is not None]
    # A judge with verdicts usually has a column of scores too.
    if verdicts and len(verdicts) < len(judges):
        judges = verdicts
    if len(judges) > 1 and len(verdicts) == 0:
        judges = _named_like_labels(judges, labels) or judges
    if judges:
        return replace(recognition, judges=tuple(column.name for column in judges))
    unnamed = [
        column
        for column in candidates
        if column.is_complete
        and column.verdicts is not None
        and (not column.is_number or column.words & CORRECTNESS_WORDS)
    ]
    notes = tuple(
        f"{column.name!r} is not used; if it is a judge: {option_of('judge', column.name)}"
        f"; if it is the model's answer: {option_of('predicted', column.name)}"
        for column in unnamed
    )
    return replace(recognition, notes=(*recognition.notes, *notes))


def _named_like_labels(columns: Sequence[ColumnFacts], labels: ColumnFacts) -> list[ColumnFacts]:
    """Return the columns whose names share a specific word with that of the labels, such as `tone`."""
    specific_words = labels.words - HUMAN_LABEL_WORDS - {"label", "score", "rating", "verdict"}
    return [column for column in columns if column.words & specific_words]


def may_be_proxy(column: ColumnFacts) -> bool:
    """Return whether a column may contain scores, by its name and content."""
    is_labels = _label_level(column) >= _PROBABLY_LABELS
    if not (column.is_number or column.is_percentage) or column.is_measurement or is_labels:
        return False
    if _is_named_id(column) or column.words & HUMAN_LABEL_WORDS:
        return False
    if column.is_score_of_log or column.words & (PROXY_WORDS | JUDGE_WORDS):
        return True
    # A few percentages, such as discounts, are classes.
    return column.is_probability and not _is_group(column)


def _is_score_from_0_to_1(column: ColumnFacts) -> bool:
    """Return whether a column contains scores from 0 to 1 without gaps, and is not named as a probability."""
    has_score_name = bool(column.words & (PROXY_WORDS | JUDGE_WORDS)) or column.is_score_of_log
    has_range = column.is_complete and column.is_probability
    return has_score_name and has_range and not column.words & PROBABILITY_WORDS


def _with_proxy(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the proxy: a column `proxy`, the first judge, or the likeliest score."""
    named = [
        column.name for column in columns if column.folded_name == "proxy" and _is_comparable_score(column)
    ]
    if recognition.judges or named:
        return replace(recognition, proxy=[*named, *recognition.judges][0])
    candidates = [column for column in columns if may_be_proxy(column)]
    if recognition.value is not None:
        # A score with gaps cannot be the proxy, but an estimate is valid without one. A plan refuses gaps.
        notes = [_note_on_gaps(column) for column in candidates if not column.is_complete]
        notes += [note for note in map(unreadable_score_note, columns) if note is not None]
        recognition = replace(recognition, notes=(*recognition.notes, *notes))
        candidates = [column for column in candidates if column.is_complete]
    # The first test that a column passes decides; several columns that pass it are ambiguous.
    tests: list[Callable[[ColumnFacts], bool]] = [
        lambda column: column.folded_name in ("proxy", "confidence", "score", "judge"),
        lambda column: column.is_complete and bool(column.words & PROXY_WORDS) and column.is_probability,
        lambda column: bool(column.words & (PROXY_WORDS | JUDGE_WORDS)),
        lambda column: column.is_complete and column.is_score_of_log,
        lambda column: column.is_complete and column.n_distinct > 2,
    ]
    names_in_order = [column.name for passes in tests for column in candidates if passes(column)]
    recognition = replace(recognition, scores=tuple(dict.fromkeys(names_in_order)))
    for passes in tests:
        passing = [column for column in candidates if passes(column)]
        if len(passing) > 1 and recognition.value is not None:
            passing = _named_like_labels(passing, recognition.columns[recognition.value]) or passing
        if len(passing) == 1:
            return replace(recognition, proxy=passing[0].name)
        if passing:
            options = " or ".join(option_of("proxy", column.name) for column in passing)
            text = f"no proxy is used, because several columns may be a proxy: {options}"
            return replace(recognition, notes=(*recognition.notes, text))
    return recognition


def _note_on_gaps(column: ColumnFacts) -> str:
    """Return the note that a score with gaps is not used."""
    return (
        f"{column.name!r} is not used, because {column.n_rows - column.n_entries:,} of {column.n_rows:,} "
        "rows have no score; fill in the missing scores to use it"
    )


def unreadable_score_note(column: ColumnFacts) -> str | None:
    """Return the note on a column whose scores are not numbers of one form; None for other columns."""
    if column.differing_entries is None or column.verdicts is not None:
        return None
    if not may_be_proxy(replace(column, is_percentage=True)):
        return None
    number, other = column.differing_entries
    if number is None:
        return (
            f"{column.name!r} is not used, because its entries, such as {other!r}, cannot be read as "
            "numbers; write them as numbers with a decimal point to use it"
        )
    return (
        f"{column.name!r} is not used, because it contains {other!r} next to numbers such as {number!r}; "
        "write all its entries as numbers of the same form to use it"
    )


def _is_comparable_score(column: ColumnFacts) -> bool:
    """Return whether the entries are numbers, or verdicts that count as numbers."""
    return column.is_number or column.is_percentage or column.verdicts is not None


def _with_notes_on_scores(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with a note on columns that may be scores and are not used."""
    labels = recognition.columns.get(recognition.value or "")
    # `_with_proxy` has a note on several candidates already.
    has_note = recognition.proxy is None and recognition.scores
    # If every row has a label, the estimate needs no proxy.
    if labels is None or not labels.is_partial or has_note:
        return recognition
    if recognition.proxy is None:
        # Every number may be a score on another scale, such as a percentage.
        unused = [column for column in columns if _may_be_quantity(column)]
        reason = "not recognised as a score"
    else:
        unused = [column for column in columns if may_be_proxy(column) and column.is_complete]
        reason = f"{recognition.proxy!r} is the proxy"
    if not unused:
        return recognition
    unused_names = [column.name for column in unused[:_MAX_SCORES_NAMED]]
    names = ", ".join(map(repr, unused_names))
    verb = "is" if len(unused) == 1 else "are"
    if recognition.proxy is None:
        purpose = "to use it"
        options = " or ".join(option_of("proxy", name) for name in unused_names)
    else:
        purpose = "to use all scores"
        score_names = [recognition.proxy, *unused_names]
        options = f"proxy={score_names!r} (--proxy {quote(','.join(score_names))})"
    note = f"{names} {verb} not used ({reason}); {purpose}: {options}"
    return replace(recognition, notes=(*recognition.notes, note))


def _may_be_weights(column: ColumnFacts) -> bool:
    """Return whether a column may contain the weights of the rows, by its name and content."""
    is_positive = column.minimum is not None and column.minimum > 0
    return bool(column.words & WEIGHT_WORDS) and column.is_number and is_positive and column.n_distinct > 1


def _note_on_weights(column: ColumnFacts) -> str:
    """Return the note that a column may contain weights, which are not used."""
    option = option_of("weight", column.name)
    return f"{column.name!r} is not used; if it is the number of units that each row represents, add {option}"


def _may_be_quantity(column: ColumnFacts) -> bool:
    """Return whether a column of numbers may be a score on any scale."""
    is_other = column.is_measurement or _is_named_id(column) or _label_level(column) > _UNKNOWN
    return column.is_number and column.is_complete and column.n_distinct > 2 and not is_other


def _with_notes_on_answers(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with a note on columns of answers that labels are not compared with."""
    may_be_compared = recognition.value is not None and not recognition.has_models
    if not may_be_compared or recognition.answer is not None or recognition.questions:
        return recognition
    notes = tuple(
        f"{column.name!r} is not used, because the labels count as numbers; if they are classes to compare "
        f"with it: {option_of('predicted', column.name)}"
        for column in columns
        if column.words & ANSWER_WORDS and column.are_classes and column.is_complete
    )
    return replace(recognition, notes=(*recognition.notes, *notes))


# A table of results with more groups is hard to read.
_MAX_GROUPS = 50


def _is_group(column: ColumnFacts) -> bool:
    """Return whether a column contains categories by which results may be reported."""
    is_category = column.are_classes and not column.is_number and not column.is_measurement
    return is_category and column.is_complete and 1 < column.n_distinct <= _MAX_GROUPS
