"""`Question`: the roles of the columns, the outcome and the estimand, declared once.

A plan, a sample and a study store the question. All later steps use the stored declarations, and may add
others (`Question.refine`).
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

# How a label becomes a number: by comparison with the model's answer, or because it represents a number.
Decoding: TypeAlias = Literal["comparison", "number"]
COMPARISON: Decoding = "comparison"
NUMBER: Decoding = "number"
DECODINGS: tuple[Decoding, ...] = (COMPARISON, NUMBER)

# Possible numbers of the outcome of a unit: 0 and 1, an interval, or any number.
SCALES = ("binary", "bounded", "unbounded")

# Whether the interval is for the mean of the N units, or of the distribution that they are from.
POPULATION = "population"
SUPERPOPULATION = "superpopulation"
TARGETS = (POPULATION, SUPERPOPULATION)

# Largest number of classes that the hint for annotators names.
MAX_CLASSES_NAMED = 10

# Value of `predicted=` that states that labels are not compared with answers.
NOT_COMPARED = "none"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome(Record):
    """How a label becomes a number z, and the range of z.

    Parameters
    ----------
    decoding : {"comparison", "number"}, optional
        `comparison`: labels are classes, and z is 1 if the label equals the model's answer, otherwise 0.
        `number`: labels are numbers, or words that represent numbers (pass and fail, win, tie and loss).
        Default: not declared.
    scale : {"binary", "bounded", "unbounded"}, optional
    bounds : (float, float), optional
        Lower and upper bound of a bounded outcome.
    positive : str, optional
        The label that counts as 1; every other counts as 0.
    mapping : mapping of label to float, str or None, optional
        The number, the class or no answer (None) that a label counts as.
    classes : tuple of str
        Possible labels, in addition to the model's answers.
    tag_format : str, optional
        How sets of tags are written in cells: `json` for lists and JSON lists, or the separator of text.
        `none` states that cells are not sets, although they look like lists. None if answers are not sets.
    tags : tuple of str
        The tags of all answers, if labels and answers are sets.
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
        """The range of z: (0, 1) for a binary outcome, `bounds` for a bounded one, None otherwise."""
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
        """Whether labels are declared to represent numbers, so that they are not compared with answers."""
        numbers = [value for value in (self.mapping or {}).values() if isinstance(value, float | int)]
        return self.decoding == NUMBER or self.positive is not None or bool(numbers)

    def to_dict(self) -> JsonDict:
        """Return a JSON-serializable dict of the declared fields."""
        return _declared_fields(self)

    @classmethod
    def from_dict(cls, description: JsonMapping) -> Self:
        """Return the outcome that `to_dict` returned."""
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
        The number of the first row, if the ids are row numbers; None otherwise, and in files of versions that
        did not store it.
    sample_token : str, optional
        Text that identifies the sample if its ids are row numbers. Labels of the rows of another sample are
        then refused.
    scores : tuple of Score
        The proxies, each with what it predicts.
    answer, judges, other_answers : optional
        See `ColumnRoles`.
    groups, features, shown : tuple of str
        Columns for results by group, for clustering and regression, and to show to annotators.
    stratum, cluster, weight : str, optional
        Columns with the design of a sample that was drawn by another program.
    chosen : str, optional
        How the labelled rows of a table were chosen, as text of a `RowSelection`, such as `random`.
    models : tuple of str
        Columns of the labels with the outcomes of the models that are compared.
    target : {"population", "superpopulation"}, optional
        Whose mean the interval is for.
    outcome : Outcome
    estimand : mapping, optional
        Specification of the estimand (`Estimand.to_dict`). Default: the mean outcome.

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
        """Return a description of the labels for annotators; `classes` are known answers of the model."""
        if self.answer is not None and self.compares is not False:
            if not 1 < len(classes) <= MAX_CLASSES_NAMED:
                return "the correct class, which is compared with the model's answer"
            names = f"{', '.join(classes[:-1])} or {classes[-1]}"
            return f"the correct class, such as {names}, which is compared with the model's answer"
        if self.predicts_right:
            return "1 if the model's answer is right, 0 if it is wrong"
        return "a number, or a word such as pass or fail"

    def score(self, name: str) -> Score | None:
        """Return the score with a name, None if there is none."""
        return next((score for score in self.scores if score.name == name), None)

    def with_outcome(self, **changes: Any) -> Self:
        """Return the question with changed fields of its outcome."""
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
        """Return the question with the declarations of later options.

        Parameters
        ----------
        predicted : bool or str, optional
            `False` or "none": labels are converted to numbers. `True`: labels are compared with the model's
            answer. Another text: labels are compared with this column of answers.
        positive, mapping : optional
            As in `Outcome`.
        scores : iterable of Score
            Declared scores, which replace inferred ones.
        judges, models : sequence of str
            Judges and compared models: a subset or a superset of those that were declared before.
        target : str, optional

        Raises
        ------
        InputError
            If an option contradicts an earlier declaration.
        """
        refined = self
        if predicted is not None:
            refined = refined._with_decoding(predicted)
        if positive is not None:
            stored = self.outcome.positive
            if stored is not None and str(stored).casefold() != str(positive).casefold():
                raise _contradiction("positive", positive, stored)
            refined = refined.with_outcome(positive=str(positive))
        if mapping is not None:
            refined = refined.with_outcome(mapping=self._merged_mapping(mapping))
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
        """Return the question with a declared score in place of the inferred one, if any."""
        require_same_meaning(self.score(score.name), score)
        scores = {entry.name: entry for entry in self.scores} | {score.name: score}
        return replace(self, scores=tuple(scores.values()))

    def _with_decoding(self, predicted: bool | str) -> Self:
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

    def _merged_mapping(self, mapping: Mapping[Any, Any]) -> JsonDict:
        """Return the stored mapping with further entries; labels that differ only in case are one label."""
        merged = dict(self.outcome.mapping or {})
        stored_spellings = {label.casefold(): label for label in merged}
        for label, value in mapping.items():
            spelling = stored_spellings.get(str(label).casefold())
            if spelling is not None and merged[spelling] != value:
                raise _contradiction("mapping", f"{label}={value}", f"{spelling}={merged[spelling]}")
            merged[spelling or str(label)] = value
        return merged

    def to_dict(self) -> JsonDict:
        """Return a JSON-serializable dict of the declared fields."""
        return _declared_fields(self)

    @classmethod
    def from_dict(cls, description: JsonMapping) -> Self:
        """Return the question that `to_dict` returned."""
        fields = dict(description)
        fields["scores"] = tuple(Score(**score) for score in fields.get("scores", ()))
        fields["outcome"] = Outcome.from_dict(fields.get("outcome", {}))
        return cls(**fields)


def _declared_fields(record: Record) -> JsonDict:
    """Return the fields of a record that are neither None nor empty, as JSON-serializable values."""
    return {name: value for name, value in plain_fields(record).items() if value not in (None, [], {})}


def _require_nested(option: str, columns: Sequence[str], stored: Sequence[str]) -> None:
    """Refuse columns that are neither a subset nor a superset of the `stored` ones."""
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
