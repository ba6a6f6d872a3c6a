"""Records that a study and its page exchange: the question, items, answers, receipts, progress."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, repeat

import msgspec

from stratal.arrays import Record, number_of_text, plain_fields, text_of_value
from stratal.errors import InputError
from stratal.protocols import JsonDict, JsonMapping
from stratal.question import Outcome
from stratal.question.tags import SEPARATORS, read_set, tags_of

CHOICES = "choices"
SCALE = "scale"
PAIR = "pair"
CLASSES = "classes"
SEVERAL = "several"
NUMBER_ANSWER = "number"
TEXT_ANSWER = "short-text"
TAGS = "tags"
QUESTION_KINDS = (CHOICES, SCALE, PAIR, CLASSES, SEVERAL, NUMBER_ANSWER, TEXT_ANSWER, TAGS)
# Kinds of which any number of choices may be taken.
ANY_NUMBER = (SEVERAL, TAGS)
TIE = "tie"
LABEL = "label"
# What annotators are asked unless something else is stated.
DEFAULT_QUESTION = "Is the answer correct?"
ASKED = "asked"
# Characters of an answer in the annotator's own words.
LONGEST = {CLASSES: 200, TEXT_ANSWER: 2000}

# Keys of choices in their order: without s (skip), u (undo), f (flag) and n (note).
KEYS = "1234567890qwertyiopadghjklzxcvbm"

_ONE = ("pass", "passed", "yes", "true", "correct", "right", "good", "ok", "1")
_ZERO = ("fail", "failed", "no", "false", "incorrect", "wrong", "bad", "not ok", "0")


class PlainRecord(Record):
    """A record that is a plain dict when it goes out."""

    __slots__ = ()

    def to_dict(self) -> JsonDict:
        """Return the record as a JSON-ready dict."""
        return plain_fields(self)


class JsonRecord(msgspec.Struct, frozen=True):
    """A record that a page or a command shows as a plain dict."""

    def to_dict(self) -> JsonDict:
        """Return the record as a JSON-ready dict."""
        return dict(msgspec.to_builtins(self))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice(PlainRecord):
    """One of the answers that can be chosen.

    Parameters
    ----------
    name : str
    value : float, optional
        What it counts as; None where choices are classes, to be compared with the model's answer.
    key : str
        The key that chooses it.
    none : bool
        Whether it counts as no answer, such as "Unsure": nonresponse in an estimate.
    """

    name: str
    value: float | None
    key: str
    none: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudyQuestion(PlainRecord):
    """The question for annotators; make one by `of_choices`, `of_scale`, `of_pair`, … or from TOML.

    Parameters
    ----------
    text : str
    kind : {"choices", "scale", "pair", "classes", "several", "number", "short-text", "tags"}
    choices : tuple of Choice
        Of a pair: the two columns and `tie`. Of classes: those known beforehand, which annotators may add to.
    scale : (float, float), optional
        Lowest and highest number; of a scale whole numbers between them.
    rubric : str
        How to judge; Markdown.
    rubric_version : int
        From 1; every answer is saved with the version that it was given under.
    name : str
        What its labels are called where a study asks several questions.
    ends : (str, str), optional
        What the lowest and the highest number of a scale mean.
    when : (str, str), optional
        Another question and the answer to it after which alone this one is asked.
    limit : float
        Difference between numbers up to which two annotators agree; a larger one is adjudicated.

    Examples
    --------
    >>> question = StudyQuestion.of_choices("Is the answer correct?", ["Pass", "Fail"])
    >>> [(choice.name, choice.value, choice.key) for choice in question.choices]
    [('Pass', 1.0, '1'), ('Fail', 0.0, '2')]
    """

    text: str
    kind: str = CHOICES
    choices: tuple[Choice, ...] = ()
    scale: tuple[float, float] | None = None
    rubric: str = ""
    rubric_version: int = 1
    name: str = ""
    ends: tuple[str, str] | None = None
    when: tuple[str, str] | None = None
    limit: float = 0.0

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        if not self.text.strip():
            action = "Write what annotators are asked: --question 'Is the answer right?'."
            raise InputError("a question needs words", given=repr(self.text), action=action)
        names = [choice.name for choice in self.choices]
        if "" in names or len({*names}) < len(names):
            names_text = ", ".join(map(repr, names))
            action = "Leave out the repeated or empty one."
            raise InputError("choices need different names", given=names_text, action=action)

    @classmethod
    def of_choices(cls, text: str, choices: Iterable[str], *, rubric: str = "") -> StudyQuestion:
        """Return a question with choices: `Pass`, or `Partly=0.5` with what it counts as.

        Of two choices, words such as Pass and Fail, yes and no, correct and wrong count as 1 and 0. Without
        numbers choices are classes, which an estimate compares with the model's answer. `Unsure=` counts as
        no answer.
        """
        parsed_choices = [_parsed(choice) for choice in choices]
        counting = [(name, number) for name, number, none in parsed_choices if not none]
        if len(counting) < 2:
            names = ", ".join(name for name, *_ in parsed_choices)
            allowed = "two or more, such as Pass,Fail"
            raise InputError("a question needs two choices", given=names, allowed=allowed)
        numbers = _numbers(counting)
        choice_records = _choices((name, numbers.get(name), none) for name, _, none in parsed_choices)
        return cls(text=text.strip(), choices=choice_records, rubric=rubric)

    @classmethod
    def of_scale(
        cls, text: str, low: int, high: int, *, rubric: str = "", ends: tuple[str, str] | None = None
    ) -> StudyQuestion:
        """Return a question answered by a whole number from `low` to `high`; `ends`: what those mean."""
        if not (float(low).is_integer() and float(high).is_integer() and 1 <= high - low <= 100):
            problem = "a scale needs two whole numbers, the lower first"
            raise InputError(problem, given=f"{low}, {high}", allowed="such as 1,5")
        names = [str(k) for k in range(int(low), int(high) + 1)]
        keys = [name if len(name) == 1 else "" for name in names]
        choices = _choices(((name, float(name), False) for name in names), keys)
        bounds = (float(low), float(high))
        return cls(text=text.strip(), kind=SCALE, choices=choices, scale=bounds, rubric=rubric, ends=ends)

    @classmethod
    def of_pair(cls, text: str, first: str, second: str, *, rubric: str = "") -> StudyQuestion:
        """Return a question of which of two columns is better; a win of `first` counts as 1, a tie as ½."""
        choices = _choices([(first, 1.0, False), (second, 0.0, False), (TIE, 0.5, False)])
        return cls(text=text.strip(), kind=PAIR, choices=choices, rubric=rubric)

    @classmethod
    def of_classes(cls, text: str, classes: Iterable[str] = (), *, rubric: str = "") -> StudyQuestion:
        """Return a question answered in the annotator's own words, with known classes to choose from."""
        choices = _choices((name.strip(), None, False) for name in classes)
        return cls(text=text.strip(), kind=CLASSES, choices=choices, rubric=rubric)

    @classmethod
    def of_several(cls, text: str, choices: Iterable[str], *, rubric: str = "") -> StudyQuestion:
        """Return a question of which any number of choices may be taken; each is an outcome of its own."""
        choice_records = _choices((name.strip(), 1.0, False) for name in choices)
        return cls(text=text.strip(), kind=SEVERAL, choices=choice_records, rubric=rubric)

    @classmethod
    def of_tags(cls, text: str, choices: Iterable[str], *, rubric: str = "") -> StudyQuestion:
        """Return a question of which any number of choices may be taken; their set is the label.

        An estimate compares it with the set of tags that the model answers.
        """
        choice_records = _choices((name.strip(), None, False) for name in choices)
        return cls(text=text.strip(), kind=TAGS, choices=choice_records, rubric=rubric)

    @classmethod
    def from_table(cls, table: JsonMapping, *, rubric: str = "") -> StudyQuestion:
        """Return the question that a table of a TOML file describes.

        Examples
        --------
        >>> StudyQuestion.from_table({"name": "tone", "text": "How polite?", "scale": [1, 5]}).kind
        'scale'
        """
        allowed_fields = {"name", "text", "ends", "when", "limit", *QUESTION_KINDS}
        kinds = [kind for kind in QUESTION_KINDS if table.get(kind) not in (None, False)]
        if len(kinds) != 1 or set(table) - allowed_fields or not isinstance(table.get("text"), str):
            raise InputError(
                "a question requires a text and one kind of answers", given=", ".join(map(str, table)),
                allowed=f"text, one of {', '.join(QUESTION_KINDS)}, and perhaps name, ends, when, limit",
            )  # fmt: skip
        kind = kinds[0]
        text = table["text"]
        answers = table[kind]
        ends = table.get("ends")
        try:
            if kind in (NUMBER_ANSWER, TEXT_ANSWER):
                if answers is True:
                    scale = None
                else:
                    scale = (float(answers[0]), float(answers[1]))
                question = cls(text=text.strip(), kind=kind, rubric=rubric, scale=scale)
            else:
                if kind in (SCALE, PAIR):
                    parts = answers
                else:
                    parts = [[*answers]]
                question = getattr(cls, f"of_{kind}")(text, *parts, rubric=rubric)
            other, mark, answer = str(table.get("when", "")).partition("=")
            return replace(
                question,
                name=str(table.get("name", "")),
                ends=None if ends is None else (str(ends[0]), str(ends[1])),
                when=(other, answer) if mark else None,
                limit=float(table.get("limit", 0)),
            )
        except InputError:
            raise
        except (TypeError, ValueError, IndexError, AttributeError):
            allowed = "choices = ['Pass', 'Fail'], scale = [1, 5], when = 'correct=Fail', limit = 1"
            raise InputError(f"the question {text[:60]!r} cannot be read", allowed=allowed) from None

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two columns of a pair."""
        if self.kind == PAIR:
            return (self.choices[0].name, self.choices[1].name)
        return None

    @property
    def counted(self) -> bool:
        """Whether every answer counts as a number."""
        if self.kind in (CLASSES, TEXT_ANSWER, SEVERAL, TAGS):
            return False
        return all(choice.value is not None or choice.none for choice in self.choices)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lowest and highest number that an answer counts as; None for classes."""
        values = [choice.value for choice in self.choices if choice.value is not None]
        if self.kind in (NUMBER_ANSWER, SCALE):
            return self.scale
        if self.counted:
            return (min(values), max(values))
        return None

    def answer(self, value: object) -> str:
        """Return an answer as it is kept, refusing one that this question does not take.

        Examples
        --------
        >>> StudyQuestion.of_scale("How helpful?", 1, 5).answer(4)
        '4'
        """
        names = [choice.name for choice in self.choices]
        text = _text_of(value)
        if self.kind == TAGS:
            sets = (read_set(text, separator) for separator in SEPARATORS)
            fitting = [tags for tags in sets if tags is not None and {*tags_of(tags)} <= {*names}]
            if text and fitting:
                return fitting[0]
        elif self.kind == SEVERAL:
            with suppress(ValueError, RecursionError):
                if text.startswith("["):
                    chosen = json.loads(text)
                else:
                    chosen = [text]
                if all(candidate in names for candidate in chosen):
                    return json.dumps([name for name in names if name in chosen], ensure_ascii=False)
        elif (
            text in names
            or (self.kind in LONGEST and 0 < len(text) <= LONGEST[self.kind])
            or (self.kind == NUMBER_ANSWER and _within(text, self.scale))
        ):
            return text
        allowed = ", ".join(names[:40])
        if self.kind in LONGEST:
            allowed = f"1 to {LONGEST[self.kind]} characters"
        elif self.kind == NUMBER_ANSWER:
            if self.scale:
                allowed = " to ".join(f"{end:g}" for end in self.scale)
            else:
                allowed = "a number"
        raise InputError("this question does not take such an answer", given=repr(text[:60]), allowed=allowed)

    def outcome(self, answer: str, choice: str = "") -> str | float | None:
        """Return what an answer counts as: a number, the class itself, None for no answer.

        With the `choice` of several: 1 if that was taken, 0 if not.
        """
        if self.kind == SEVERAL:
            chosen = json.loads(answer)
            if choice:
                return float(choice in chosen)
            return "|".join(chosen)
        if self.kind == NUMBER_ANSWER:
            return float(answer)
        chosen_choice = next((entry for entry in self.choices if entry.name == answer), None)
        if chosen_choice is not None and (chosen_choice.none or self.counted):
            return chosen_choice.value
        return answer

    def differ(self, answers: Collection[str]) -> bool:
        """Return whether answers of several people differ by more than the limit; short texts never do."""
        if self.kind == TEXT_ANSWER or len(answers) < 2:
            return False
        if self.counted and self.limit:
            outcomes = [self.outcome(answer) for answer in answers]
        else:
            outcomes = [None]
        if None in outcomes:
            return len({*answers}) > 1
        numbers = [float(number) for number in outcomes if number is not None]
        return max(numbers) - min(numbers) > self.limit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Form(PlainRecord):
    """The questions that a study asks about each item; the rubric is the first one's.

    The answers to them are kept as one text: of a single question of choices, a scale, a pair or classes the
    answer itself, else JSON with a name for each answer.

    Parameters
    ----------
    questions : tuple of StudyQuestion
        With a name each where there are several.

    Examples
    --------
    >>> right = replace(StudyQuestion.of_choices("Right?", ["Pass", "Fail"]), name="right")
    >>> why = replace(StudyQuestion.of_classes("Why?"), name="why", when=("right", "Fail"))
    >>> form = Form(questions=(right, why))
    >>> form.answer({"right": "Pass"}), form.outcome("right", '{"right":"Pass"}')
    ('{"right":"Pass"}', 1.0)
    """

    questions: tuple[StudyQuestion, ...]

    def __post_init__(self) -> None:
        if not self.questions:
            raise InputError("a study needs a question", action="Write one: --question 'Is it right?'.")
        questions_by_name: dict[str, StudyQuestion] = {}
        for question in self.questions:
            name = question.name
            other = questions_by_name.get((question.when or ("",))[0])
            if name in questions_by_name or (len(self.questions) > 1 and not name.isidentifier()):
                allowed = "letters, digits and _, such as correct"
                problem = "each of several questions needs a name of its own"
                raise InputError(problem, given=repr(name), allowed=allowed)
            if other:
                answers = [choice.name for choice in other.choices]
            else:
                answers = []
            if question.when and question.when[1] not in answers:
                problem = f"question {name!r} waits for an answer that cannot be"
                allowed = "QUESTION=ANSWER"
                action = "Name an answer of a question before it."
                raise InputError(problem, given="=".join(question.when), allowed=allowed, action=action)
            questions_by_name[name] = question
        list(self.columns)  # refuses two of one name
        pairs = {question.pair for question in self.questions if question.pair}
        if len(pairs) > 1:
            problem = "all pairs of a study must compare the same two columns"
            raise InputError(
                problem, given=str(sorted(pairs)), action="Make a study for each pair of columns."
            )

    @classmethod
    def of(cls, requested: StudyQuestion | Iterable[StudyQuestion] | Form) -> Form:
        """Return the form of one question or several."""
        if isinstance(requested, Form):
            return requested
        return cls(questions=(requested,) if isinstance(requested, StudyQuestion) else tuple(requested))

    @classmethod
    def from_toml(cls, text: str, rubric: str = "") -> Form:
        """Return the form of a TOML file with a table `[[question]]` for each question."""
        allowed = "a table [[question]] for each"
        try:
            tables = tomllib.loads(text).get("question")
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"the file of questions is not TOML ({error})", allowed=allowed) from None
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise InputError("the file of questions contains none", allowed=allowed)
        return cls(questions=tuple(StudyQuestion.from_table(table, rubric=rubric) for table in tables))

    @classmethod
    @lru_cache(maxsize=16)
    def decode(cls, text: str) -> Form:
        """Return the form that `encode` wrote; one question by itself is that of a study of version 0.1.0."""
        decoded = json.loads(text)
        if isinstance(decoded, list):
            questions = decoded
        else:
            questions = [decoded]
        return cls(questions=tuple(msgspec.convert(questions, list[StudyQuestion])))

    def compared_with(self, outcome: Outcome) -> Form:
        """Return the form for answers that a sample holds: sets of tags have any number of choices.

        Choices that are classes become tags; classes in the annotator's own words are those of the answers.

        Examples
        --------
        >>> form = Form.of(StudyQuestion.of_classes("What is it about?"))
        >>> asked = form.compared_with(Outcome(tag_format="json", tags=("a", "b"))).first
        >>> asked.kind, [choice.name for choice in asked.choices]
        ('tags', ['a', 'b'])
        """
        if not outcome.holds_sets:
            return self
        questions = []
        for question in self.questions:
            if question.kind in (CHOICES, CLASSES) and not question.counted:
                names = [choice.name for choice in question.choices] or outcome.tags
                tags = _choices((name, None, False) for name in names)
                question = replace(question, kind=TAGS, choices=tags)
            questions.append(question)
        return replace(self, questions=tuple(questions))

    def encode(self) -> str:
        """Return the form as a setting of the study."""
        described = [question.to_dict() for question in self.questions]
        return json.dumps(described[0] if len(described) == 1 else described, ensure_ascii=False)

    @property
    def first(self) -> StudyQuestion:
        """The first question: the one that decides when labelling may stop."""
        return self.questions[0]

    @property
    def plain(self) -> bool:
        """Whether there is one question, whose answer is kept as it is."""
        return len(self.questions) == 1 and self.first.kind in (*QUESTION_KINDS[:4], TAGS)

    def answer_text(self, column: str, stored: str | None) -> str | None:
        """Return the answer for one of `columns`, in its own words; None where it was not asked."""
        question, part = self.columns[column]
        answer = self.answers(stored).get(question.name)
        if answer is None or not part:
            return answer
        return str(question.outcome(answer, part))

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two columns that are compared."""
        return next((question.pair for question in self.questions if question.pair), None)

    @property
    def columns(self) -> dict[str, tuple[StudyQuestion, str]]:
        """Outcomes by name: the question and, of several choices, the one (`modes_Invented`).

        A number that is asked for under a condition has a second outcome, whether it was (`tone_asked`): its
        mean where it was asked is the ratio of both means.
        """
        columns: dict[str, tuple[StudyQuestion, str]] = {}
        for question in self.questions:
            name = question.name or LABEL
            if question.kind == TEXT_ANSWER:
                parts = []
            else:
                parts = [(name, "")]
            if question.kind == SEVERAL:
                names = [choice.name for choice in question.choices]
                parts = [("_".join([name, *re.findall(r"\w+", choice)]), choice) for choice in names]
            elif question.when and question.counted:
                parts.append((f"{name}_{ASKED}", ASKED))
            for column, part in parts:
                if column in columns:
                    allowed = "names and choices that differ"
                    raise InputError("two outcomes would have the same name", given=column, allowed=allowed)
                columns[column] = question, part
        return columns

    def answer(self, value: object) -> str:
        """Return the answers as they are kept, by question; that of a single question may come by itself."""
        if self.plain:
            return self.first.answer(value.get(self.first.name) if isinstance(value, Mapping) else value)
        answers = self.answers(value) if isinstance(value, str) else value
        if not isinstance(answers, Mapping):
            problem = "the answers need their questions' names"
            allowed = 'such as {"correct": "Pass"}'
            raise InputError(problem, given=type(value).__name__, allowed=allowed)
        unknown = sorted({*answers} - {question.name for question in self.questions})
        if unknown:
            allowed = ", ".join(question.name for question in self.questions)
            raise InputError("no such question", given=repr(unknown[0])[:60], allowed=allowed)
        stored: dict[str, str] = {}
        for question in self.questions:
            value = answers.get(question.name)
            if not self._is_asked(question, stored) or (value in (None, "") and question.kind == TEXT_ANSWER):
                continue
            try:
                stored[question.name] = question.answer(value)
            except InputError as error:
                problem = f"{question.name}: {error.what}"
                raise InputError(problem, given=error.given, allowed=error.allowed) from None
        return json.dumps(stored, ensure_ascii=False, separators=(",", ":"))

    def _is_asked(self, question: StudyQuestion, stored: Mapping[str, str]) -> bool:
        """Return whether the answers so far meet the question's condition."""
        if question.when is None:
            return True
        (name, required_answer), other = question.when, self._before(question)
        if name not in stored or other is None:
            return False
        if other.kind == SEVERAL:
            return other.outcome(stored[name], required_answer) == 1.0
        return stored[name] == required_answer

    def _before(self, question: StudyQuestion) -> StudyQuestion | None:
        """Return the question on whose answer another depends."""
        return next(
            (other for other in self.questions if question.when and other.name == question.when[0]), None
        )

    def answers(self, stored: str | None) -> dict[str, str]:
        """Return the answer to each question that was asked, of the text that is kept."""
        if stored is None:
            return {}
        if self.plain:
            return {self.first.name: stored}
        with suppress(ValueError):
            decoded = json.loads(stored)
            if isinstance(decoded, dict):
                return decoded
        raise InputError("the answers cannot be read", given=repr(stored[:60]), allowed="a JSON object")

    def outcome(self, column: str, stored: str | None) -> str | float | None:
        """Return what the kept answers count as for one of `columns`; None for no answer.

        Where a condition was not met, a number or a choice of several counts as 0; where the answer that it
        depends on counts as none, nobody knows, and it has no value either.
        """
        question, part = self.columns[column]
        answers = self.answers(stored)
        answer = answers.get(question.name)
        if answer is None:
            other = self._before(question)
            decided = other and other.name in answers and other.outcome(answers[other.name]) is not None
            if decided and (question.kind == SEVERAL or question.counted):
                return 0.0
            return None
        outcome = question.outcome(answer, part)
        if part == ASKED and question.counted and outcome is not None:
            return 1.0
        return outcome

    def differ(self, stored: Collection[str]) -> bool:
        """Return whether the answers of several people to any question differ."""
        answers_of_people = [self.answers(text) for text in stored]
        for question in self.questions:
            answers = [answers[question.name] for answers in answers_of_people if question.name in answers]
            if question.differ(answers):
                return True
        return False


def _within(text: str, bounds: tuple[float, float] | None) -> bool:
    number = number_of_text(text)
    return math.isfinite(number) and (bounds is None or bounds[0] <= number <= bounds[1])


def _choices(
    rows: Iterable[tuple[str, float | None, bool]], keys: Iterable[str] = KEYS
) -> tuple[Choice, ...]:
    """Return choices of names and numbers with a key for each, none for those after the last."""
    pairs = zip(rows, chain(keys, repeat("")), strict=False)
    return tuple(Choice(name=name, value=value, key=key, none=none) for (name, value, none), key in pairs)


def _parsed(choice: str) -> tuple[str, float | None, bool]:
    """Return the name of `Partly=0.5`, its number, and whether it counts as no answer (`Unsure=`)."""
    name, mark, number = choice.strip().rpartition("=")
    if not mark or not number:
        return (name or number).strip(), None, bool(mark)
    try:
        value = float(number)
    except ValueError:
        return choice.strip(), None, False
    if not math.isfinite(value):
        raise InputError("a choice must count as a number", given=repr(choice), allowed="Pass=1, Fail=0")
    return name.strip(), value, False


def _numbers(named: list[tuple[str, float | None]]) -> dict[str, float | None]:
    """Return what the choices count as: as given, or 1 and 0 for the usual words."""
    without = [name for name, number in named if number is None]
    if without and len(without) < len(named):
        action = "Give each, as in Pass=1,Fail=0."
        raise InputError(f"choice {without[0]!r} has no number, others have one", action=action)
    if len(without) == 2:
        for ones, zeros in (without, reversed(without)):
            if ones.lower() in _ONE and zeros.lower() in _ZERO:
                return {ones: 1.0, zeros: 0.0}
    return dict(named)


def _text_of(value: object) -> str:
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return ""
    return text_of_value(value)


class Answer(JsonRecord, frozen=True, kw_only=True):
    """The present or an earlier answer of one annotator to one item.

    Parameters
    ----------
    seq : int
        Line of the journal.
    item : str
        Id of the item.
    annotator : str
    status : {"submitted", "skipped"}
    value : str, optional
        Name of the choice, number on the scale, column of the better side or `tie`, class; None for a skip.
    note : str
    at : str
        When, UTC, by the server's clock.
    seconds : float, optional
        Time that the annotator took.
    """

    seq: int
    item: str
    annotator: str
    status: str
    value: str | None
    note: str = ""
    at: str = ""
    seconds: float | None = None


class Item(JsonRecord, frozen=True, kw_only=True):
    """One item as an annotator sees it: without proxy, prediction or stratum.

    Parameters
    ----------
    id : str
    position : int
        Place in the study's random order, from 1.
    payload : mapping of column to value
        The columns of `--show`, in their order: text, numbers, lists and dicts (JSON).
    sides : (str, str), optional
        Pairs: the columns in the order in which they are to be shown, shuffled for each annotator and item.
    answer : Answer, optional
        What this annotator says of it now; None where there is nothing yet.
    flagged : bool
    """

    id: str
    position: int
    payload: JsonMapping = {}
    sides: tuple[str, str] | None = None
    answer: Answer | None = None
    flagged: bool = False


class Receipt(JsonRecord, frozen=True, kw_only=True):
    """A saved answer, on disk before this is returned.

    Parameters
    ----------
    seq : int
        Line of the journal.
    action : str
        One of `Action`; `change` for an answer that replaces an earlier one.
    item : str, optional
    repeated : bool
        Whether the same request had been saved before; nothing was saved twice.
    """

    seq: int
    action: str
    item: str | None
    repeated: bool = False


class Progress(JsonRecord, frozen=True, kw_only=True):
    """How far the study is, for one annotator.

    Parameters
    ----------
    submitted, skipped : int
        Of this annotator.
    share : int
        Items that this annotator will have answered in the end, if all who still have work share the rest.
    done, total : int
        Answers given and wanted, of all annotators (an item that two label counts twice).
    seconds_left : float, optional
        Expected time until the study is done, for this annotator, at the pace of all.
    disagreements : int
        Items that wait for adjudication.
    enough : bool
        Whether the interval is as narrow as was asked for, so that labelling may stop.
    message : str
        What the annotator should know, such as a clock that went back; empty if nothing.
    """

    submitted: int
    skipped: int
    share: int
    done: int
    total: int
    seconds_left: float | None = None
    disagreements: int = 0
    enough: bool = False
    message: str = ""


class Disagreement(JsonRecord, frozen=True, kw_only=True):
    """An item on which annotators differ.

    Parameters
    ----------
    item : Item
        `item.answer` is the decision, where there is one.
    answers : tuple of Answer
        The answer of each annotator, in the order of the journal.
    """

    item: Item
    answers: tuple[Answer, ...]
