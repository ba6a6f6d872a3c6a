"""`Question`: the roles of the columns, the outcome, and what is estimated, declared once.

A plan, a sample and a study store the question. Every entry point passes it to the same functions; no other
module decides what a column means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias

from stratal.arrays import Record, plain_fields
from stratal.errors import InputError, check_choice, finite_bounds
from stratal.protocols import JsonDict, JsonMapping
from stratal.question.roles import ColumnRoles
from stratal.question.scores import ANSWER_IS_RIGHT, Score, require_same_meaning
from stratal.question.tags import NO_SETS, checked_format, how_to_write

# How a label becomes a number: by comparison with the model's answer, or because it stands for a number.
Decoding: TypeAlias = Literal["comparison", "number"]
COMPARISON: Decoding = "comparison"
NUMBER: Decoding = "number"
DECODINGS: tuple[Decoding, ...] = (COMPARISON, NUMBER)

# Which numbers the outcome of a unit can be.
SCALES = ("binary", "bounded", "unbounded")

# Whether the interval is about these units, or about those that could come.
POPULATION = "population"
SUPERPOPULATION = "superpopulation"
TARGETS = (POPULATION, SUPERPOPULATION)

# Largest number of classes that the hint for annotators names.
MAX_CLASSES_NAMED = 10

# What `predicted` is called where labels are not compared with any answer.
NOT_COMPARED = "none"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome(Record):
    """How a label becomes a number z, and which numbers z can be.

    Parameters
    ----------
    decoding : {"comparison", "number"}, optional
        `comparison`: labels are classes, and z is 1 where the label equals the model's answer. `number`:
        labels are numbers, or words that stand for numbers (pass and fail, win, tie and loss). None if
        nobody declared it.
    scale : {"binary", "bounded", "unbounded"}, optional
    bounds : (float, float), optional
        Of a bounded outcome.
    positive : str, optional
        The label that counts as 1; every other counts as 0.
    mapping : mapping of label to float, str or None, optional
        The number, the class or no answer (None) that a label counts as.
    classes : tuple of str
        Classes that labels may name, in addition to the compared answers.
    tag_format : str, optional
        How cells hold sets of tags: `json` for lists and JSON lists, or the separator of text. `none` states
        that they hold no sets, although they look like lists. None if answers are not sets.
    tags : tuple of str
        The tags of all answers, where labels and answers are sets.
    """

    decoding: Decoding | None = None
    scale: str | None = None
    bounds: tuple[float, float] | None = None
    positive: str | None = None
    mapping: Mapping[str, float | str | None] | None = None
    classes: tuple[str, ...] = ()
    tag_format: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._freeze()
        checked_format(self.tag_format)
        self._set(tags=tuple(self.tags))
        if self.decoding is not None:
            check_choice("decoding of labels", self.decoding, DECODINGS)
        if self.scale is not None:
            check_choice("kind of outcome", self.scale, SCALES)
        if (self.scale == "bounded") != (self.bounds is not None):
            what = "bounds are required for a bounded outcome, and not allowed for any other outcome"
            scale_text = f"{self.scale}, {self.bounds}"
            raise InputError(what, given=scale_text, allowed="outcome='bounded' with bounds=")
        if self.bounds is not None:
            self._set(bounds=finite_bounds(self.bounds))
        if self.mapping is not None:
            self._set(mapping=dict(self.mapping))

    @property
    def holds_sets(self) -> bool:
        """Whether labels and answers are sets of tags."""
        return self.tag_format not in (None, NO_SETS)

    @property
    def limits(self) -> tuple[float, float] | None:
        """The range of z: 0 and 1 of a binary outcome, bounds of a bounded one, None if there is none."""
        if self.scale == "binary":
            return (0.0, 1.0)
        return self.bounds

    @property
    def label_format(self) -> str | None:
        """How labels are written, in words; None if they are not sets of tags."""
        if self.holds_sets:
            return how_to_write(str(self.tag_format), self.tags)
        return None

    @property
    def stands_for_numbers(self) -> bool:
        """Whether the declared values of the labels are numbers, so that no answer is compared."""
        numbers = [value for value in (self.mapping or {}).values() if isinstance(value, float | int)]
        return self.decoding == NUMBER or self.positive is not None or bool(numbers)

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict of what is declared."""
        return _declared_fields(self)

    @classmethod
    def from_dict(cls, description: JsonMapping) -> Self:
        """Return the outcome that `to_dict` described."""
        bounds = description.get("bounds")
        return cls(**{**description, "bounds": None if bounds is None else tuple(bounds)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question(ColumnRoles):
    """The roles of the columns, how a label becomes a number, and what is estimated.

    Parameters
    ----------
    id : str
        Column of the ids.
    row_base : int, optional
        The number of the first row, where the ids are row numbers; None where they are not, or where an
        earlier version stored the question.
    sample_token : str, optional
        Of the rows that row numbers count, so that labels of other rows are refused. None where ids are not
        row numbers.
    scores : tuple of Score
        The proxies, each with what it predicts.
    answer, judges, other_answers : optional
        See `ColumnRoles`.
    groups, features, shown : tuple of str
        Columns to report by, to learn from, and to show to annotators.
    stratum, cluster, weight : str, optional
        Columns that describe how units were chosen elsewhere.
    chosen : str, optional
        How the labelled rows of a table were chosen, as `RowSelection` reads it.
    models : tuple of str
        Columns of the labels with the outcomes of the models that are compared.
    target : {"population", "superpopulation"}, optional
        What the interval is about.
    outcome : Outcome
    estimand : mapping, optional
        Specification of what the labels are for (`Estimand.to_dict`); the mean outcome if left out.

    Raises
    ------
    InputError
        For two scores of one name, and an unknown target.
    """

    id: str = "id"
    row_base: int | None = None
    sample_token: str | None = None
    scores: tuple[Score, ...] = ()
    groups: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    stratum: str | None = None
    cluster: str | None = None
    weight: str | None = None
    chosen: str | None = None
    models: tuple[str, ...] = ()
    target: str | None = None
    outcome: Outcome = field(default_factory=Outcome)
    estimand: JsonMapping | None = None

    def __post_init__(self) -> None:
        self._freeze()
        names = [score.name for score in self.scores]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            action = "Declare only once what each column predicts."
            raise InputError("a column is declared as a score twice", given=repr(repeated), action=action)
        if self.target is not None:
            check_choice("target", self.target, TARGETS)

    @property
    def compares(self) -> bool | None:
        """Whether labels are compared with the model's answer; None if that is not declared."""
        if self.outcome.decoding is None:
            if self.outcome.stands_for_numbers:
                return False
            return None
        return self.outcome.decoding == COMPARISON

    @property
    def predicts_right(self) -> bool:
        """Whether a proxy was declared to predict that the model's answer is right."""
        return any(score.declared and score.predicts == ANSWER_IS_RIGHT for score in self.scores)

    def label_hint(self, classes: Sequence[str] = ()) -> str:
        """Return what annotators write as a label, in words; `classes` are known answers of the model."""
        if self.answer is not None and self.compares is not False:
            if not 1 < len(classes) <= MAX_CLASSES_NAMED:
                return "the correct class, which is compared with the model's answer"
            names = f"{', '.join(classes[:-1])} or {classes[-1]}"
            return f"the correct class, such as {names}, which is compared with the model's answer"
        if self.predicts_right:
            return "1 if the model's answer is right, 0 if it is wrong"
        return "a number, or a word such as pass or fail"

    def score(self, name: str) -> Score | None:
        """Return what is declared or inferred of a score."""
        return next((score for score in self.scores if score.name == name), None)

    def with_outcome(self, **changes: Any) -> Self:
        """Return the question with changes of its outcome."""
        return replace(self, outcome=replace(self.outcome, **changes))

    def refine(
        self,
        *,
        predicted: bool | str | None = None,
        positive: str | None = None,
        mapping: Mapping[Any, object] | None = None,
        scores: Iterable[Score] = (),
        judges: Sequence[str] = (),
        models: Sequence[str] = (),
        target: str | None = None,
    ) -> Self:
        """Return the question with what later options declare.

        Parameters
        ----------
        predicted : bool or str, optional
            `False` or "none": labels are converted to numbers. `True`: labels are compared with the model's
            answer.
            Another text: labels are compared with this column of answers.
        positive, mapping : optional
            As in `Outcome`.
        scores : iterable of Score
            What columns predict; it takes the place of what was inferred.
        judges, models : sequence of str
            Judges and compared models: some of those that were declared before, or all of them and others.
        target : str, optional

        Raises
        ------
        InputError
            If an option contradicts what was declared; it names both.
        """
        refined = self
        if predicted is not None:
            refined = refined._decoded(predicted)
        if positive is not None:
            stored = self.outcome.positive
            if stored is not None and str(stored).casefold() != str(positive).casefold():
                raise _contradiction("positive", positive, stored)
            refined = refined.with_outcome(positive=str(positive))
        if mapping is not None:
            refined = refined.with_outcome(mapping=self._merged(mapping))
        for score in scores:
            refined = refined._with_score(score)
        if judges:
            _require_nested("judge", judges, self.judges)
            refined = replace(refined, judges=tuple(judges))
        if models:
            _require_nested("compare", models, self.models)
            refined = replace(refined, models=tuple(models))
        if target is not None:
            if self.target not in (None, target):
                raise _contradiction("target", target, self.target)
            refined = replace(refined, target=target)
        return refined

    def _with_score(self, score: Score) -> Self:
        """Return the question with a score that is declared."""
        require_same_meaning(self.score(score.name), score)
        others = {entry.name: entry for entry in self.scores}
        return replace(self, scores=tuple({**others, score.name: score}.values()))

    def _decoded(self, predicted: bool | str) -> Self:
        """Return the question with the decoding that `predicted` declares."""
        compares = predicted not in (False, NOT_COMPARED)
        if compares and self.outcome.decoding == NUMBER:
            stored = "labels are converted to numbers"
            raise _contradiction("predicted", predicted, stored)
        if not compares and self.outcome.decoding == COMPARISON:
            raise _contradiction("predicted", NOT_COMPARED, f"labels are compared with {self.answer!r}")
        answer = predicted if compares and isinstance(predicted, str) else self.answer
        if compares and answer is None:
            action = "Name the column of the model's answers: predicted='COLUMN' (--predicted COLUMN)."
            raise InputError("no column contains the model's answers", given="predicted=True", action=action)
        decoding = COMPARISON if compares else NUMBER
        return replace(self, answer=answer).with_outcome(decoding=decoding)

    def _merged(self, mapping: Mapping[Any, Any]) -> JsonDict:
        """Return the declared mapping with more entries."""
        merged = dict(self.outcome.mapping or {})
        spelling = {label.casefold(): label for label in merged}
        for label, value in mapping.items():
            stored = spelling.get(str(label).casefold())
            if stored is not None and merged[stored] != value:
                raise _contradiction("mapping", f"{label}={value}", f"{stored}={merged[stored]}")
            merged[stored or str(label)] = value
        return merged

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict of what is declared."""
        return _declared_fields(self)

    @classmethod
    def from_dict(cls, description: JsonMapping) -> Self:
        """Return the question that `to_dict` described."""
        parts = dict(description)
        parts["scores"] = tuple(Score(**score) for score in parts.get("scores", ()))
        parts["outcome"] = Outcome.from_dict(parts.get("outcome", {}))
        return cls(**parts)


def _declared_fields(record: Record) -> JsonDict:
    """Return the fields of a record that differ from nothing, as JSON knows them."""
    return {name: value for name, value in plain_fields(record).items() if value not in (None, [], {})}


def _require_nested(option: str, columns: Sequence[str], stored: Sequence[str]) -> None:
    """Refuse columns that are neither a part of those declared before nor all of them and more."""
    if not (set(stored) <= set(columns) or set(columns) <= set(stored)):
        raise _contradiction(option, ",".join(columns), ",".join(stored))


def _contradiction(option: str, declared: object, stored: object) -> InputError:
    """Return the error of an option that contradicts the stored question."""
    return InputError(
        f"{option}= (--{option.replace('mapping', 'map')}) contradicts what was declared when the sample "
        f"was drawn",
        given=str(declared),
        allowed=str(stored),
        action="Omit the option, or draw again with it.",
    )
