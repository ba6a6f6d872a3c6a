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
    ANSWER_WORDS,
    CLASS_NAMES,
    CORRECTNESS_WORDS,
    HUMAN_WORDS,
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
    PEOPLE_WORDS,
    PROBABILITY_WORDS,
    PROXY_WORDS,
    WEAK_LABEL_WORDS,
    WEIGHT_WORDS,
)
from stratal.question.content import is_content_text
from stratal.question.decoding import fold_text
from stratal.question.facts import MAX_CLASS_LENGTH, MAX_RATINGS, MAX_VERDICTS, ColumnFacts
from stratal.question.vocabulary import success_word


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleQuestion:
    """A needed role with several candidates, or none.

    Parameters
    ----------
    role : str
    text : str
        The problem.
    candidates : tuple of str
        Columns that may have the role.
    options : tuple of str
        What to type, as `value='human' (--value human)`.
    is_ambiguous : bool
        Whether several columns may have the role; otherwise none is recognised.
    """

    role: str
    text: str
    candidates: tuple[str, ...]
    options: tuple[str, ...]
    is_ambiguous: bool = True

    def is_about_labels(self, columns: Mapping[str, ColumnFacts]) -> bool:
        """Return whether the table has labels; without any, there is nothing to ask for."""
        if self.role != "value":
            return True
        return self.is_ambiguous and any(
            columns[name].is_partial or _label_level(columns[name]) >= 1 for name in self.candidates
        )

    def error(self, label: str) -> InputError:
        """Return the error that asks for the role of a column of the table `label`."""
        return InputError(
            f"{label}: {self.text}",
            given=", ".join(map(repr, self.candidates)) or None,
            action=f"State it: {', or '.join(self.options)}.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """The recognised roles of a table's columns.

    Parameters
    ----------
    rows : int
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
        Columns that may be the proxy, the likeliest first.
    questions : tuple of RoleQuestion
    notes : tuple of str
        Optional roles that several columns may have, and duplicate ids.
    columns : mapping of name to ColumnFacts
    """

    rows: int
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
        """Columns without gaps that may hold labels by their names, if none is recognised."""
        names = [
            name for question in self.questions if question.role == "value" for name in question.candidates
        ]
        return tuple(name for name in names if _label_level(self.columns[name]) >= 1)

    @property
    def positive_class(self) -> str | None:
        """The class that means success, of two classes of labels that no column of answers has; or None.

        Labels such as spam and ham have no such class, and the user has to name one.
        """
        labels = self.columns.get(self.value or "")
        # Numbers and verdicts count by themselves, and classes are compared with answers.
        if labels is None or labels.is_number or labels.verdicts is not None or self.answer is not None:
            return None
        return success_word(labels.values or ())

    @property
    def plan_proxy(self) -> str | None:
        """The proxy of a plan: the recognised one, or the likeliest score."""
        return self.proxy or next(iter(self.scores), None)

    @property
    def further_scores(self) -> tuple[str, ...]:
        """Columns with scores from 0 to 1 in every row that a plan can use together with its proxy.

        Columns with probabilities are left out: they may be those of the classes.
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

    def sentence(self, unused: str | None = None) -> str:
        """Return the roles in one line; `unused` is why the proxy does not enter the estimate."""
        parts = []
        if self.models:
            parts.append(f"models: {', '.join(f'`{name}`' for name in self.models)}")
        if self.model is not None:
            count = ""
            if self.model in self.columns:
                count = f" ({self.columns[self.model].distinct:,})"
            parts.append(f"models: `{self.model}`{count}")
        if self.judges:
            judges = ", ".join(self._with_values(name) for name in self.judges)
            correction = ""
            if unused is not None and self.proxy in self.judges:
                correction = f", which does not correct the estimate ({unused})"
            parts.append(f"judge: {judges}{correction}")
        if self.answer is not None:
            parts.append(f"the model's answer: `{self.answer}`")
        if self.proxy is not None and self.proxy not in self.judges:
            reason = f" (not used: {unused})" if unused else ""
            parts.append(f"proxy: `{self.proxy}`{reason}")
        if self.value is not None and not self.models:
            labels = self.columns.get(self.value)
            if labels is None:
                present = self.rows
            else:
                present = labels.present
            parts.append(f"labels: `{self.value}` in {present:,} of {self.rows:,} rows")
        return "; ".join(parts)

    @property
    def options(self) -> list[str]:
        """The options of a command that name the recognised columns."""
        named = {
            "--value": self.value,
            "--id": self.id,
            "--predicted": self.answer,
            "--judge": ",".join(self.judges),
            "--proxy": None if self.proxy in self.judges else self.proxy,
            "--model": self.model,
            "--compare": ",".join(self.models),
        }
        return [word for option, name in named.items() if name for word in (option, name)]

    def _with_values(self, name: str) -> str:
        facts = self.columns.get(name)
        numbers = None if facts is None else facts.verdicts
        if not numbers:
            return f"`{name}`"
        ordered = sorted(numbers, key=lambda value: -numbers[value])
        return f"`{name}` ({'/'.join(ordered)})"

    def to_dict(self) -> JsonDict:
        """Return the roles that a column has, for JSON."""
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

    def require_answered(self, label: str) -> None:
        """Raise the error of the first unanswered question."""
        for question in self.questions:
            raise question.error(label)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRoles:
    """Roles that the user states; None where nothing is stated, and empty where no column has the role.

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
    # Columns with a role that is not in this list, such as features.
    others: tuple[str, ...] = ()


def recognise(columns: Sequence[ColumnFacts], stated: StatedRoles | None = None) -> Recognition:
    """Return the roles of columns by name and content.

    Parameters
    ----------
    columns : sequence of ColumnFacts
    stated : StatedRoles, optional
        Roles that the user states. They are not recognised again, and their columns have no other role.
    """
    # Each step removes the columns that have a role, so that no column has two.
    stated = StatedRoles() if stated is None else stated
    by_name = {column.name: column for column in columns}
    rows = max((column.rows for column in columns), default=0)
    taken = {stated.id, stated.value, stated.answer, stated.model, *stated.models, *stated.others}
    taken |= {*(stated.judges or ()), *(stated.proxies or ()), *stated.groups}
    recognition = Recognition(
        rows=rows,
        id=stated.id,
        value=stated.value,
        answer=stated.answer,
        judges=stated.judges or (),
        proxy=next(iter(stated.proxies or ()), None),
        model=stated.model,
        models=stated.models,
        columns=by_name,
    )
    free = [column for column in columns if column.name not in taken and column.present]
    free = [column for column in free if not _has_fields(column, by_name)]
    if recognition.model is None and not recognition.models:
        recognition = _with_model_column(recognition, free)
    free = [column for column in free if column.name != recognition.model]
    if recognition.id is None:
        recognition = _with_id(recognition, free)
    free = [column for column in free if column.name != recognition.id]
    if recognition.value is None and not recognition.models:
        recognition = _with_labels(recognition, free, stated)
    free = [column for column in free if column.name not in (recognition.value, *recognition.models)]
    labels = by_name.get(recognition.value or "")
    if labels is not None and recognition.model is None and not recognition.models:
        if stated.answer is None and stated.is_compared is None:
            answers = [by_name[name] for name in stated.groups if name in by_name]
            answers = [column for column in answers if column.words & ANSWER_WORDS]
            recognition = _with_answer(recognition, [*free, *answers], labels)
        free = [column for column in free if column.name != recognition.answer]
        if stated.judges is None and recognition.answer is None:
            recognition = _with_judges(recognition, free, labels)
        if stated.no_judge and recognition.answer is None:
            judges = _with_judges(recognition, free, labels).judges
            free = [column for column in free if column.name not in judges]
    free = [column for column in free if column.name not in recognition.judges]
    if stated.proxies is None and recognition.model is None and not recognition.models:
        recognition = _with_proxy(recognition, free)
        free = [column for column in free if column.name != recognition.proxy]
        recognition = _with_notes_on_scores(recognition, free)
    if stated.answer is None and stated.is_compared is None:
        recognition = _with_notes_on_answers(recognition, free)
    if recognition.value is not None:
        notes = tuple(_note_on_weights(column) for column in free if _may_be_weights(column))
        recognition = replace(recognition, notes=(*recognition.notes, *notes))
    groups = [column.name for column in free if _is_group(column) and column.name != recognition.proxy]
    return replace(recognition, groups=tuple(groups))


def _has_fields(column: ColumnFacts, names: Iterable[str]) -> bool:
    """Return whether a column holds objects whose fields are columns of the table, such as `judge.score`."""
    return column.is_nested and any(name.startswith(f"{column.name}.") for name in names)


# ---- ids and models


def _is_named_id(column: ColumnFacts) -> bool:
    return "id" in column.words or "uuid" in column.words or column.plain_name.endswith("id")


def _may_be_id(column: ColumnFacts) -> bool:
    """Return whether a column could hold ids: no entry missing, all different, and no measurement.

    A column that is named like an id may have duplicates, which a note mentions.
    """
    if column.is_nested or column.is_date:
        return False
    # With more duplicates, such a column numbers something else, such as the item of each model's row.
    if column.plain_name in ID_NAMES and 2 * column.distinct > column.rows:
        return True
    if not column.is_complete or column.distinct != column.rows:
        return False
    if _is_named_id(column):
        return True
    if column.is_number:
        return column.is_position and not column.words & (PROXY_WORDS | HUMAN_WORDS)
    if is_content_text(column.name) or column.words & (MEASUREMENT_WORDS - {"code", "no"}):
        return False
    return column.mean_length <= MAX_CLASS_LENGTH


def _with_id(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    candidates = [column for column in columns if _may_be_id(column)]
    chosen = min(candidates, key=_id_preference, default=None)
    if chosen is None:
        return recognition
    duplicates = chosen.present - chosen.distinct
    notes = recognition.notes
    if duplicates:
        text = duplicates_text(chosen.name, duplicates)
        notes = (*notes, f"{text}: remove them, or number the rows: id='row' (--id row)")
    return replace(recognition, id=chosen.name, notes=notes)


def duplicates_text(name: str, count: int) -> str:
    """Return the statement that a column of ids has duplicate values."""
    if count == 1:
        noun = "duplicate value"
    else:
        noun = "duplicate values"
    return f"{name!r} has {count:,} {noun}, so it does not identify rows"


def _id_preference(column: ColumnFacts) -> tuple[bool, bool, bool, bool]:
    """Return the order of candidates for the ids: usual names, other names of ids, text, short text."""
    is_usual = column.plain_name in ID_NAMES
    return (
        not is_usual,
        not _is_named_id(column),
        column.is_number,
        column.mean_length > MAX_CLASS_LENGTH / 2,
    )


def _with_model_column(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the column of models, if each item has a row for each of them."""
    named = {column.plain_name: column for column in columns}
    model = next((named[name] for name in MODEL_NAMES if name in named), None)
    if model is None or not model.is_complete or not 1 < model.distinct <= recognition.rows // 2:
        return recognition
    # Text that is unique in each row is the id of a row, so that no item has several rows.
    if any(column.distinct == column.rows and not column.is_number for column in columns):
        return recognition
    # Each item has one row for each model: the numbers of items and models multiply to that of rows.
    items = [
        column
        for column in columns
        if column is not model
        and column.is_complete
        and column.distinct * model.distinct == column.rows
        and (_is_named_id(column) or not column.is_number)
    ]
    item = min(items, key=_id_preference, default=None) or _question_with_runs(columns, model)
    if item is None:
        name = model.name
        note = (
            f"{name!r} names {model.distinct:,} models, whose rows are evaluated together; to compare them "
            f"on the same items: {option_of('model', name)}; to report each: by={name!r} "
            f"(--by {quote(name)})"
        )
        return replace(recognition, notes=(*recognition.notes, note))
    return replace(recognition, model=model.name, id=recognition.id or item.name)


def _question_with_runs(columns: Sequence[ColumnFacts], model: ColumnFacts) -> ColumnFacts | None:
    """Return the column of questions that each model has answered several times; None without one."""
    questions = [column for column in columns if column.is_complete and column.may_have_runs]
    runs = [column.distinct for column in columns if column.is_complete and column.may_be_runs]
    for question in sorted(questions, key=_id_preference):
        repeats, remainder = divmod(question.rows, question.distinct * model.distinct)
        is_balanced = remainder == 0 and repeats > 1
        # Some runs may be missing.
        has_runs = any(question.rows <= question.distinct * model.distinct * count for count in runs)
        if is_balanced or (repeats >= 1 and has_runs):
            return question
    return None


# ---- labels


def _label_level(column: ColumnFacts) -> int:
    """Return how clearly the name is that of human labels: 3 (certain) to 0 (unknown); -1 if it is not."""
    words = column.words
    if column.plain_name in LABEL_NAMES:
        if column.is_partial:
            return 3
        return 2
    if words & NO_LABEL_WORDS or (column.is_measurement and not words & HUMAN_WORDS):
        return -1
    if words & HUMAN_WORDS and not words & MACHINE_WORDS:
        return 3
    if words & MACHINE_WORDS:
        return -1
    if words & WEAK_LABEL_WORDS:
        return 1
    return 0


def _is_named_by_people(column: ColumnFacts) -> bool:
    """Return whether the name is that of people's labels, and not of the people."""
    return _label_level(column) == 3 and not column.words <= PEOPLE_WORDS


def _may_be_labels(column: ColumnFacts) -> bool:
    if column.is_date:
        return False
    # A column of labels by its name may hold sets of tags: lists, or text with separators.
    is_named = column.plain_name in LABEL_NAMES
    return is_named or column.is_number or column.are_classes or column.verdicts is not None


def _may_be_sets(column: ColumnFacts, columns: Sequence[ColumnFacts]) -> bool:
    """Return whether a column may hold people's sets of tags: a model predicts sets for all rows."""
    if not column.is_nested or _label_level(column) < 2:
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
    usable = [column for column in columns if levels.get(column.name, -1) >= 0]
    partial = [column for column in usable if column.is_partial and _holds_labels(column, columns, levels)]
    complete = [
        column
        for column in usable
        if column.is_complete
        and levels[column.name] >= 2
        and (stated.answer is not None or _is_named_by_people(column) or _are_decodable(column, columns))
    ]
    metrics = [column for column in columns if column.is_metric]
    if not partial and not complete and metrics:
        passed = passing_metric([column.name for column in metrics])
        if passed is not None:
            note = "'score' is not used; to estimate its mean: value='score' (--value score)"
            return replace(recognition, value=passed, notes=(*recognition.notes, note))
        return _chosen_labels(recognition, metrics)
    if not partial and not complete and recognition.model is not None:
        outcomes = [column for column in columns if _is_outcome(column)]
        return _chosen_labels(recognition, outcomes)
    best = max((levels[column.name] for column in partial), default=-1)
    if best >= 1:
        candidates = [column for column in partial if levels[column.name] == best]
        if best < 3:
            candidates += complete
        elif any(levels[column.name] == 3 for column in complete):
            candidates += [column for column in complete if levels[column.name] == 3]
        return _chosen_labels(recognition, candidates)
    if partial:
        return _chosen_labels(recognition, [*partial, *complete])
    if complete:
        best = max(levels[column.name] for column in complete)
        return _chosen_labels(recognition, [column for column in complete if levels[column.name] == best])
    return _with_compared_models(recognition, columns)


def passing_metric(names: Sequence[str]) -> str | None:
    """Return the metric of a log that says whether an answer passed, if the only other one is its score."""
    others = [name for name in names if name != "score"]
    if len(others) == 1 and len(names) == 2 and others[0] in CORRECTNESS_WORDS:
        return others[0]
    return None


def _holds_labels(column: ColumnFacts, columns: Sequence[ColumnFacts], levels: Mapping[str, int]) -> bool:
    """Return whether a column with gaps holds labels: by its name, or as verdicts that most rows lack."""
    if levels[column.name] >= 1:
        return True
    # People label few rows; a column with a few gaps is another one, such as a judge that sometimes failed.
    is_sparse = 2 * column.present < column.rows
    return is_sparse and (column.verdicts is not None or _has_same_classes(column, columns))


def _are_decodable(column: ColumnFacts, columns: Sequence[ColumnFacts]) -> bool:
    """Return whether labels count as numbers, or are classes of another column.

    Classes in every row, and in no other column, are what a model predicts.
    """
    if column.is_nested:
        return any(other.is_nested and other is not column for other in columns)
    return column.is_number or column.verdicts is not None or _has_same_classes(column, columns)


def _has_same_classes(column: ColumnFacts, columns: Sequence[ColumnFacts]) -> bool:
    if not column.are_classes or column.is_number:
        return False
    return any(
        other is not column and other.is_complete and _share_classes(column, other) for other in columns
    )


def _is_outcome(column: ColumnFacts) -> bool:
    is_named = bool(column.words & OUTCOME_WORDS) and not column.is_measurement
    return is_named and (column.is_number or column.verdicts is not None)


def _chosen_labels(recognition: Recognition, candidates: Sequence[ColumnFacts]) -> Recognition:
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
        if candidates and all(column.is_partial or _label_level(column) >= 1 for column in candidates):
            options += (_annotators_option(names),)
    question = RoleQuestion(
        role="value", text=text, candidates=names, options=options, is_ambiguous=len(names) > 1
    )
    return replace(recognition, questions=(*recognition.questions, question))


def _annotators_option(names: Sequence[str]) -> str:
    """Return the option that names the columns of several annotators."""
    return f"if they are the answers of several annotators: {option_of('value', ','.join(names))}"


def _compare_option(names: Sequence[str], content: str = "outcomes") -> str:
    """Return the option that compares several models, whose outcomes or answers the columns hold."""
    joined = ",".join(names)
    return f"if they are the {content} of several models: compare={list(names)} (--compare {quote(joined)})"


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
        return _chosen_labels(recognition, outcomes)
    empty = [
        name
        for name, column in recognition.columns.items()
        if not column.present and _label_level(column) >= 2
    ]
    if empty:
        question = RoleQuestion(
            role="value",
            text=f"no row of column {empty[0]!r} has a label",
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
            *(option_of("value", name) for name in names[:4] or ("COLUMN",)),
            "if no row has a label, choose rows to label: stratal plan FILE",
        ),
    )
    return replace(recognition, questions=(*recognition.questions, question))


# ---- answers, judges, proxies, groups


def are_answers(labels: ColumnFacts, column: ColumnFacts) -> bool:
    """Return whether a column may hold a model's answers, with which labels that are classes are compared."""
    return column.is_complete and column.are_classes and _share_classes(labels, column)


def _share_classes(labels: ColumnFacts, other: ColumnFacts) -> bool:
    """Return whether most classes of the labels also occur in another column.

    Not all have to: people may use a class that the model never predicts. Codes of missing labels are no
    classes. Differences in case and spaces are left to the comparison, which refuses them.
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
        same = [column for column in columns if column.is_complete and column.is_nested]
    else:
        same = [column for column in columns if are_answers(labels, column)]
    named = [column for column in same if column.words & ANSWER_WORDS]
    are_numbers = labels.verdicts is not None or labels.is_number
    are_classes = labels.plain_name in CLASS_NAMES and all(column.are_truth_values for column in named)
    if named and labels.are_truth_values and not are_classes:
        return _with_truth_question(recognition, named, labels)
    if len(named) == 1:
        return replace(recognition, answer=named[0].name)
    if are_numbers and not named:
        return _with_class_question(recognition, same, labels)
    candidates = named or [
        column for column in same if _label_level(column) < 3 and not _are_scores_in_percent(column)
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
    """Return whether percentages are scores, and no classes such as 10%, 25% and 50%."""
    has_score_name = bool(column.words & (PROXY_WORDS | JUDGE_WORDS))
    return column.is_percentage and (has_score_name or column.distinct > MAX_RATINGS)


def _with_truth_question(
    recognition: Recognition, answers: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition of labels 0 and 1, which mean wrong and right unless they may be classes.

    The answers may also be 0 and 1, so that only the name of the column, or the user, decides.
    """
    if labels.words & CORRECTNESS_WORDS:
        return recognition
    names = tuple(column.name for column in answers)
    classes = (option_of("predicted", name) for name in names)
    question = RoleQuestion(
        role="predicted",
        text=f"the labels 0 and 1 in {labels.name!r} may be classes, or mean wrong and right",
        candidates=names,
        options=(
            *(f"if they are classes: {option}" for option in classes),
            f"if they mean wrong and right: predicted={NO_COLUMN!r} (--predicted {NO_COLUMN})",
        ),
    )
    return replace(recognition, questions=(*recognition.questions, question))


def _with_class_question(
    recognition: Recognition, same: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition with a question if whole numbers may be classes or ratings."""
    is_rating = bool(labels.words & PROXY_WORDS) or labels.distinct <= 2
    candidates = [column for column in same if column.is_number and not column.is_measurement]
    candidates = [column for column in candidates if not column.words & (PROXY_WORDS | JUDGE_WORDS)]
    are_many = labels.distinct > MAX_RATINGS and labels.plain_name in LABEL_NAMES
    is_unclear = bool(candidates) or (are_many and labels.distinct <= labels.present / 2)
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
    # Judges with two or three percentages, such as 0% and 100%, have verdicts in other words than the labels.
    is_score = column.is_number or (column.is_percentage and column.distinct > MAX_VERDICTS)
    if labels.verdicts is not None:
        return column.verdicts is not None or is_score
    if labels.is_number:
        return is_score
    return _share_classes(labels, column)


def _with_judges(
    recognition: Recognition, columns: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition with the judges; columns of the same words are named in a note."""
    comparable = [
        column for column in columns if not column.is_measurement and _is_comparable(column, labels)
    ]
    candidates = [column for column in comparable if 2 * column.present >= column.rows]
    named = [
        column
        for column in comparable
        if column.words & JUDGE_WORDS and not column.words & (NO_LABEL_WORDS | HUMAN_WORDS)
    ]
    judges = [column for column in named if column in candidates]
    sparse = tuple(
        f"{column.name!r} has an entry in only {column.present:,} of {column.rows:,} rows and is not used; "
        f"to compare it with the labels: {option_of('judge', column.name)}"
        for column in named
        if column not in candidates
    )
    recognition = replace(recognition, notes=(*recognition.notes, *sparse))
    verdicts = [column for column in judges if column.verdicts is not None]
    # A judge with verdicts usually has a column of scores too.
    if verdicts and len(verdicts) < len(judges):
        judges = verdicts
    if len(judges) > 1 and len(verdicts) == 0:
        judges = _related(judges, labels) or judges
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


def _related(columns: Sequence[ColumnFacts], labels: ColumnFacts) -> list[ColumnFacts]:
    """Return the columns whose names share a word with that of the labels, apart from words for people."""
    shared = labels.words - HUMAN_WORDS - {"label", "score", "rating", "verdict"}
    return [column for column in columns if column.words & shared]


def may_be_proxy(column: ColumnFacts) -> bool:
    """Return whether a column may hold scores, by its name and content."""
    is_labels = _label_level(column) >= 2
    if not (column.is_number or column.is_percentage) or column.is_measurement or is_labels:
        return False
    if _is_named_id(column) or column.words & HUMAN_WORDS:
        return False
    if column.is_metric or column.words & (PROXY_WORDS | JUDGE_WORDS):
        return True
    # A few percentages, such as discounts, are classes.
    return column.is_probability and not _is_group(column)


def _is_score_from_0_to_1(column: ColumnFacts) -> bool:
    has_score_name = bool(column.words & (PROXY_WORDS | JUDGE_WORDS)) or column.is_metric
    has_range = column.is_complete and column.is_probability
    return has_score_name and has_range and not column.words & PROBABILITY_WORDS


def _with_proxy(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the proxy: the first judge's, or the likeliest score."""
    named = [
        column.name for column in columns if column.plain_name == "proxy" and _is_comparable_score(column)
    ]
    if recognition.judges or named:
        return replace(recognition, proxy=next(iter((*named, *recognition.judges))))
    candidates = [column for column in columns if may_be_proxy(column)]
    if recognition.value is not None:
        # A plan refuses gaps and names the option for them. An estimate is valid without the score.
        notes = [_note_on_gaps(column) for column in candidates if not column.is_complete]
        notes += [note for note in map(unreadable_score_note, columns) if note is not None]
        recognition = replace(recognition, notes=(*recognition.notes, *notes))
        candidates = [column for column in candidates if column.is_complete]
    levels: list[Callable[[ColumnFacts], bool]] = [
        lambda column: column.plain_name in ("proxy", "confidence", "score", "judge"),
        lambda column: column.is_complete and bool(column.words & PROXY_WORDS) and column.is_probability,
        lambda column: bool(column.words & (PROXY_WORDS | JUDGE_WORDS)),
        lambda column: column.is_complete and column.is_metric,
        lambda column: column.is_complete and column.distinct > 2,
    ]
    ordered = [column.name for is_at_level in levels for column in candidates if is_at_level(column)]
    recognition = replace(recognition, scores=tuple(dict.fromkeys(ordered)))
    for is_at_level in levels:
        best = [column for column in candidates if is_at_level(column)]
        if len(best) > 1 and recognition.value is not None:
            best = _related(best, recognition.columns[recognition.value]) or best
        if len(best) == 1:
            return replace(recognition, proxy=best[0].name)
        if best:
            options = " or ".join(option_of("proxy", column.name) for column in best)
            text = f"no proxy is used, because several columns may be a proxy: {options}"
            return replace(recognition, notes=(*recognition.notes, text))
    return recognition


def _note_on_gaps(column: ColumnFacts) -> str:
    return (
        f"{column.name!r} is not used, because {column.rows - column.present:,} of {column.rows:,} rows have "
        "no score; fill in the missing scores to use it"
    )


def unreadable_score_note(column: ColumnFacts) -> str | None:
    """Return the note on a column that may hold scores, but not as numbers of one form; None for others."""
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
    return column.is_number or column.is_percentage or column.verdicts is not None


def _with_notes_on_scores(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with a note on columns that may be scores and are not used."""
    labels = recognition.columns.get(recognition.value or "")
    # `_with_proxy` has a note on several candidates already.
    has_note = recognition.proxy is None and recognition.scores
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
    unused_names = [column.name for column in unused[:3]]
    names = ", ".join(map(repr, unused_names))
    verb = "is" if len(unused) == 1 else "are"
    if recognition.proxy is None:
        purpose = "to use it"
        options = " or ".join(option_of("proxy", name) for name in unused_names)
    else:
        purpose = "to use all scores"
        every_name = [recognition.proxy, *unused_names]
        options = f"proxy={every_name!r} (--proxy {quote(','.join(every_name))})"
    note = f"{names} {verb} not used ({reason}); {purpose}: {options}"
    return replace(recognition, notes=(*recognition.notes, note))


def _may_be_weights(column: ColumnFacts) -> bool:
    """Return whether a column may hold the weights of the rows, by its name and content."""
    is_positive = column.minimum is not None and column.minimum > 0
    return bool(column.words & WEIGHT_WORDS) and column.is_number and is_positive and column.distinct > 1


def _note_on_weights(column: ColumnFacts) -> str:
    option = option_of("weight", column.name)
    return f"{column.name!r} is not used; if it is the number of units that each row represents, add {option}"


def _may_be_quantity(column: ColumnFacts) -> bool:
    is_other = column.is_measurement or _is_named_id(column) or _label_level(column) >= 1
    return column.is_number and column.is_complete and column.distinct > 2 and not is_other


def _with_notes_on_answers(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with a note on columns of answers that labels are not compared with."""
    is_of_answers = recognition.value is not None and recognition.model is None and not recognition.models
    if not is_of_answers or recognition.answer is not None or recognition.questions:
        return recognition
    notes = tuple(
        f"{column.name!r} is not used, because the labels count as numbers; if they are classes to compare "
        f"with it: {option_of('predicted', column.name)}"
        for column in columns
        if column.words & ANSWER_WORDS and column.are_classes and column.is_complete
    )
    return replace(recognition, notes=(*recognition.notes, *notes))


# A table of results by group stays legible with so many rows.
_MAX_GROUPS = 50


def _is_group(column: ColumnFacts) -> bool:
    is_category = column.are_classes and not column.is_number and not column.is_measurement
    return is_category and column.is_complete and 1 < column.distinct <= _MAX_GROUPS
