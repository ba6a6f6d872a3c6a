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

# Kinds of questions, by the form of their answers.
CHOICES = "choices"
SCALE = "scale"
PAIR = "pair"
CLASSES = "classes"
SEVERAL = "several"
NUMBER_ANSWER = "number"
TEXT_ANSWER = "short-text"
TAGS = "tags"
QUESTION_KINDS = (CHOICES, SCALE, PAIR, CLASSES, SEVERAL, NUMBER_ANSWER, TEXT_ANSWER, TAGS)
# Kinds whose answer is stored unchanged if a study has only one question; other answers are stored as JSON.
UNCHANGED_KINDS = (CHOICES, SCALE, PAIR, CLASSES, TAGS)
# Kinds whose answer is any number of choices.
MULTIPLE_CHOICE_KINDS = (SEVERAL, TAGS)

# The answer to a pair if neither side is better.
TIE = "tie"

# Name of the outcome of a question without a name.
DEFAULT_OUTCOME_NAME = "label"

# The default question for annotators.
DEFAULT_QUESTION = "Is the answer correct?"

# Suffix of the name of a second outcome of a conditional question: whether it was asked.
ASKED = "asked"

# Largest number of characters of an answer that is free text, by kind of question.
MAX_ANSWER_CHARACTERS = {CLASSES: 200, TEXT_ANSWER: 2000}

# Largest number of choices that an error lists.
_MAX_CHOICES_LISTED = 40

# Keys of choices in their order. The keys s (skip), u (undo), f (flag) and n (note) have another meaning.
CHOICE_KEYS = "1234567890qwertyiopadghjklzxcvbm"

# Names of choices that have the values 1 and 0 if a question has two choices without stated numbers.
_WORDS_FOR_ONE = ("pass", "passed", "yes", "true", "correct", "right", "good", "ok", "1")
_WORDS_FOR_ZERO = ("fail", "failed", "no", "false", "incorrect", "wrong", "bad", "not ok", "0")


class PlainRecord(Record):
    """An immutable record that validates its fields, and is converted to a plain dict."""

    __slots__ = ()

    def to_dict(self) -> JsonDict:
        """Return the record as a JSON-ready dict."""
        return plain_fields(self)


class JsonRecord(msgspec.Struct, frozen=True):
    """A record that is created often and without checks: pages and commands receive it as a plain dict."""

    def to_dict(self) -> JsonDict:
        """Return the record as a JSON-ready dict."""
        return dict(msgspec.to_builtins(self))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice(PlainRecord):
    """One of the possible answers to a question with choices.

    Parameters
    ----------
    name : str
    value : float, optional
        The outcome of the choice as a number; None for classes, which are compared with the model's answer.
    key : str
        Keyboard shortcut, empty without one.
    none : bool
        Whether the choice means no answer, such as "Unsure"; it is nonresponse in an estimate.
    """

    name: str
    value: float | None
    key: str
    none: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudyQuestion(PlainRecord):
    """The question for annotators; built by `of_choices`, `of_scale`, `of_pair`, … or `from_table` (TOML).

    Parameters
    ----------
    text : str
    kind : {"choices", "scale", "pair", "classes", "several", "number", "short-text", "tags"}
    choices : tuple of Choice
        For a pair: the two columns and `tie`. For classes: suggestions; annotators may type other classes.
    scale : (float, float), optional
        Lowest and highest number. The answers of a scale are whole numbers.
    rubric : str
        Instructions for annotators, as Markdown.
    rubric_version : int
        Version of the rubric, from 1; it is stored with every answer.
    name : str
        Name of the outcome, if a study has several questions.
    ends : (str, str), optional
        Meaning of the lowest and the highest number of a scale.
    when : (str, str), optional
        Condition: the name of an earlier question, and its answer for which this question is asked.
    limit : float
        Largest difference between two numbers that is still agreement. Larger differences are adjudicated.

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
            action = "Write the question for the annotators: --question 'Is the answer right?'."
            raise InputError("the question must not be empty", given=repr(self.text), action=action)
        names = [choice.name for choice in self.choices]
        if "" in names or len({*names}) < len(names):
            names_text = ", ".join(map(repr, names))
            action = "Remove the repeated or empty choice."
            raise InputError("choices must have different names", given=names_text, action=action)

    @classmethod
    def of_choices(cls, text: str, choices: Iterable[str], *, rubric: str = "") -> StudyQuestion:
        """Return a question with choices such as `Pass`, or `Partly=0.5` with a number.

        Two choices such as Pass and Fail, yes and no, correct and wrong have the numbers 1 and 0. Otherwise,
        choices without numbers are classes, which an estimate compares with the model's answer. `Unsure=`
        means no answer.
        """
        parsed_choices = [_parse_choice(choice) for choice in choices]
        answering_choices = [(name, number) for name, number, none in parsed_choices if not none]
        if len(answering_choices) < 2:
            names = ", ".join(name for name, *_ in parsed_choices)
            allowed = "two or more, such as Pass,Fail"
            raise InputError("a question requires at least two choices", given=names, allowed=allowed)
        numbers = _choice_values(answering_choices)
        choice_records = _choices_with_keys(
            (name, numbers.get(name), none) for name, _, none in parsed_choices
        )
        return cls(text=text.strip(), choices=choice_records, rubric=rubric)

    @classmethod
    def of_scale(
        cls, text: str, low: int, high: int, *, rubric: str = "", ends: tuple[str, str] | None = None
    ) -> StudyQuestion:
        """Return a question whose answer is a whole number from `low` to `high`, with meanings `ends`."""
        # The page shows one button for each number.
        if not (float(low).is_integer() and float(high).is_integer() and 1 <= high - low <= 100):
            problem = "a scale requires two whole numbers, the lower one first"
            raise InputError(problem, given=f"{low}, {high}", allowed="such as 1,5")
        names = [str(k) for k in range(int(low), int(high) + 1)]
        keys = [name if len(name) == 1 else "" for name in names]
        choices = _choices_with_keys(((name, float(name), False) for name in names), keys)
        bounds = (float(low), float(high))
        return cls(text=text.strip(), kind=SCALE, choices=choices, scale=bounds, rubric=rubric, ends=ends)

    @classmethod
    def of_pair(cls, text: str, first: str, second: str, *, rubric: str = "") -> StudyQuestion:
        """Return the question which of two columns is better; a win of `first` is 1, a tie ½, a loss 0."""
        choices = _choices_with_keys([(first, 1.0, False), (second, 0.0, False), (TIE, 0.5, False)])
        return cls(text=text.strip(), kind=PAIR, choices=choices, rubric=rubric)

    @classmethod
    def of_classes(cls, text: str, classes: Iterable[str] = (), *, rubric: str = "") -> StudyQuestion:
        """Return a question whose answer is a class, which annotators type or select from `classes`."""
        choices = _choices_with_keys((name.strip(), None, False) for name in classes)
        return cls(text=text.strip(), kind=CLASSES, choices=choices, rubric=rubric)

    @classmethod
    def of_several(cls, text: str, choices: Iterable[str], *, rubric: str = "") -> StudyQuestion:
        """Return a question whose answer is any number of choices; each choice is a separate outcome."""
        choice_records = _choices_with_keys((name.strip(), 1.0, False) for name in choices)
        return cls(text=text.strip(), kind=SEVERAL, choices=choice_records, rubric=rubric)

    @classmethod
    def of_tags(cls, text: str, choices: Iterable[str], *, rubric: str = "") -> StudyQuestion:
        """Return a question whose answer is any number of choices; their set is the label.

        An estimate compares it with the set of tags of the model's answer.
        """
        choice_records = _choices_with_keys((name.strip(), None, False) for name in choices)
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
                "a question requires a `text` and exactly one kind of answer",
                given=", ".join(map(str, table)),
                allowed=f"text, one of {', '.join(QUESTION_KINDS)}, and optionally name, ends, when, limit",
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
                    arguments = answers
                else:
                    arguments = [[*answers]]
                question = getattr(cls, f"of_{kind}")(text, *arguments, rubric=rubric)
            condition_name, equals_sign, condition_answer = str(table.get("when", "")).partition("=")
            return replace(
                question,
                name=str(table.get("name", "")),
                ends=None if ends is None else (str(ends[0]), str(ends[1])),
                when=(condition_name, condition_answer) if equals_sign else None,
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
    def is_numeric(self) -> bool:
        """Whether the outcome of every answer is a number."""
        if self.kind in (CLASSES, TEXT_ANSWER, SEVERAL, TAGS):
            return False
        return all(choice.value is not None or choice.none for choice in self.choices)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lowest and highest outcome of an answer; None for classes."""
        values = [choice.value for choice in self.choices if choice.value is not None]
        if self.kind in (NUMBER_ANSWER, SCALE):
            return self.scale
        if self.is_numeric:
            return (min(values), max(values))
        return None

    def answer(self, value: object) -> str:
        """Return an answer in its stored form; raise an error for an invalid answer.

        Examples
        --------
        >>> StudyQuestion.of_scale("How helpful?", 1, 5).answer(4)
        '4'
        """
        text = _answer_text(value)
        stored = self._stored_answer(text)
        if stored is None:
            problem = "this question does not accept this answer"
            raise InputError(problem, given=repr(text[:60]), allowed=self._allowed_answers())
        return stored

    def _stored_answer(self, text: str) -> str | None:
        """Return the stored form of an answer; None for an invalid answer."""
        names = [choice.name for choice in self.choices]
        if self.kind == TAGS:
            # The text is read in each format of sets; the right one yields only existing tags.
            sets = [read_set(text, separator) for separator in SEPARATORS]
            valid_sets = [tags for tags in sets if tags is not None and {*tags_of(tags)} <= {*names}]
            if text and valid_sets:
                return valid_sets[0]
            return None
        if self.kind == SEVERAL:
            with suppress(ValueError, RecursionError):
                chosen = json.loads(text) if text.startswith("[") else [text]
                if all(name in names for name in chosen):
                    return json.dumps([name for name in names if name in chosen], ensure_ascii=False)
            return None
        is_free_text = self.kind in MAX_ANSWER_CHARACTERS
        if (
            text in names
            or (is_free_text and 0 < len(text) <= MAX_ANSWER_CHARACTERS[self.kind])
            or (self.kind == NUMBER_ANSWER and _is_number_within(text, self.scale))
        ):
            return text
        return None

    def _allowed_answers(self) -> str:
        """Return the allowed answers, for an error."""
        if self.kind in MAX_ANSWER_CHARACTERS:
            return f"1 to {MAX_ANSWER_CHARACTERS[self.kind]} characters"
        if self.kind == NUMBER_ANSWER:
            return " to ".join(f"{end:g}" for end in self.scale) if self.scale else "a number"
        return ", ".join(choice.name for choice in self.choices[:_MAX_CHOICES_LISTED])

    def outcome(self, answer: str, choice: str = "") -> str | float | None:
        """Return the outcome of a stored answer: a number, the class itself, or None for no answer.

        If the answer is any number of choices, the outcome of one `choice` is 1 if it was chosen, otherwise
        0. Without `choice`, it is a text with all chosen names, separated by `|`.
        """
        if self.kind == SEVERAL:
            chosen = json.loads(answer)
            if choice:
                return float(choice in chosen)
            return "|".join(chosen)
        if self.kind == NUMBER_ANSWER:
            return float(answer)
        chosen_choice = next((entry for entry in self.choices if entry.name == answer), None)
        if chosen_choice is not None and (chosen_choice.none or self.is_numeric):
            return chosen_choice.value
        return answer

    def differ(self, answers: Collection[str]) -> bool:
        """Return whether answers of several annotators differ by more than `limit`; short texts never do."""
        if self.kind == TEXT_ANSWER or len(answers) < 2:
            return False
        if self.is_numeric and self.limit:
            outcomes = [self.outcome(answer) for answer in answers]
            numbers = [float(outcome) for outcome in outcomes if outcome is not None]
            # An answer that means no answer has no distance from others.
            if len(numbers) == len(outcomes):
                return max(numbers) - min(numbers) > self.limit
        return len({*answers}) > 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Form(PlainRecord):
    """The questions of a study, which are asked for each item. The first one has the rubric.

    The answers to an item are stored as one text. For a single question with choices, a scale, a pair,
    classes or tags, it is the answer itself, otherwise a JSON object with the answers by name (see
    `is_plain`).

    Parameters
    ----------
    questions : tuple of StudyQuestion
        Each of several questions has a name.

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
            raise InputError(
                "a study requires a question", action="Write a question: --question 'Is it right?'."
            )
        questions_by_name: dict[str, StudyQuestion] = {}
        for question in self.questions:
            name = question.name
            if name in questions_by_name or (len(self.questions) > 1 and not name.isidentifier()):
                allowed = "letters, digits and _, such as correct"
                problem = "each of several questions must have its own name"
                raise InputError(problem, given=repr(name), allowed=allowed)
            if question.when:
                earlier_name, required_answer = question.when
                earlier = questions_by_name.get(earlier_name)
                if earlier is None or required_answer not in [choice.name for choice in earlier.choices]:
                    problem = f"question {name!r} depends on an answer that cannot occur"
                    allowed = "QUESTION=ANSWER"
                    action = "Name an answer to an earlier question."
                    raise InputError(problem, given="=".join(question.when), allowed=allowed, action=action)
            questions_by_name[name] = question
        # The property raises an error for two outcomes with the same name.
        list(self.columns)
        pairs = {question.pair for question in self.questions if question.pair}
        if len(pairs) > 1:
            problem = "all pairs of a study must compare the same two columns"
            raise InputError(
                problem, given=str(sorted(pairs)), action="Create a separate study for each pair of columns."
            )

    @classmethod
    def of(cls, requested: StudyQuestion | Iterable[StudyQuestion] | Form) -> Form:
        """Return the form of one question or several."""
        if isinstance(requested, Form):
            return requested
        if isinstance(requested, StudyQuestion):
            return cls(questions=(requested,))
        return cls(questions=tuple(requested))

    @classmethod
    def from_toml(cls, text: str, rubric: str = "") -> Form:
        """Return the form of a TOML file with a table `[[question]]` for each question."""
        allowed = "one table [[question]] per question"
        try:
            question_tables = tomllib.loads(text).get("question")
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"the question file is not valid TOML ({error})", allowed=allowed) from None
        if not isinstance(question_tables, list) or not all(isinstance(row, dict) for row in question_tables):
            raise InputError("the question file contains no questions", allowed=allowed)
        return cls(
            questions=tuple(StudyQuestion.from_table(table, rubric=rubric) for table in question_tables)
        )

    @classmethod
    @lru_cache(maxsize=16)
    def decode(cls, text: str) -> Form:
        """Return the form that `encode` wrote: a single question, or a list of several."""
        decoded = json.loads(text)
        if isinstance(decoded, list):
            questions = decoded
        else:
            questions = [decoded]
        return cls(questions=tuple(msgspec.convert(questions, list[StudyQuestion])))

    def with_tags_of(self, outcome: Outcome) -> Form:
        """Return the form whose labels are comparable with the model's answers, given their outcome.

        If the answers are sets of tags, choices that are classes become tags. Typed classes become the tags
        of the answers.

        Examples
        --------
        >>> form = Form.of(StudyQuestion.of_classes("What is it about?"))
        >>> question = form.with_tags_of(Outcome(tag_format="json", tags=("a", "b"))).first
        >>> question.kind, [choice.name for choice in question.choices]
        ('tags', ['a', 'b'])
        """
        if not outcome.holds_sets:
            return self
        questions = []
        for question in self.questions:
            if question.kind in (CHOICES, CLASSES) and not question.is_numeric:
                names = [choice.name for choice in question.choices] or outcome.tags
                tags = _choices_with_keys((name, None, False) for name in names)
                question = replace(question, kind=TAGS, choices=tags)
            questions.append(question)
        return replace(self, questions=tuple(questions))

    def encode(self) -> str:
        """Return the form as a setting of the study."""
        questions: object = [question.to_dict() for question in self.questions]
        if len(self.questions) == 1:
            questions = self.first.to_dict()
        return json.dumps(questions, ensure_ascii=False)

    @property
    def first(self) -> StudyQuestion:
        """The first question, whose interval determines when labelling may stop."""
        return self.questions[0]

    @property
    def is_plain(self) -> bool:
        """Whether there is one question, whose answer is stored unchanged."""
        return len(self.questions) == 1 and self.first.kind in UNCHANGED_KINDS

    def column_name(self, column: str | None) -> str:
        """Return the name of an outcome, by default that of the first question's; refuse other names."""
        columns = self.columns
        if column is None:
            return next(iter(columns))
        if column not in columns:
            raise InputError("the study has no such question", given=repr(column), allowed=", ".join(columns))
        return column

    def answer_text(self, column: str, stored: str | None) -> str | None:
        """Return the answer for one of `columns` as text; None if the question was not asked."""
        question, component = self.columns[column]
        answer = self.answers(stored).get(question.name)
        if answer is None or not component:
            return answer
        return str(question.outcome(answer, component))

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two compared columns."""
        return next((question.pair for question in self.questions if question.pair), None)

    @property
    def columns(self) -> dict[str, tuple[StudyQuestion, str]]:
        """The question and the component of each outcome, by the name of the outcome.

        The component is empty for most questions. If an answer is any number of choices, each choice is the
        component of a separate outcome (`modes_Invented`). A conditional question with a numeric answer has a
        second outcome with the component `ASKED`, whether it was asked (`tone_asked`): the mean of the
        answers to it is the ratio of both means.
        """
        columns: dict[str, tuple[StudyQuestion, str]] = {}
        for question in self.questions:
            name = question.name or DEFAULT_OUTCOME_NAME
            if question.kind == TEXT_ANSWER:
                outcomes = []
            else:
                outcomes = [(name, "")]
            if question.kind == SEVERAL:
                names = [choice.name for choice in question.choices]
                outcomes = [("_".join([name, *re.findall(r"\w+", choice)]), choice) for choice in names]
            elif question.when and question.is_numeric:
                outcomes.append((f"{name}_{ASKED}", ASKED))
            for column, component in outcomes:
                if column in columns:
                    allowed = "names and choices that differ"
                    raise InputError("two outcomes would have the same name", given=column, allowed=allowed)
                columns[column] = question, component
        return columns

    def answer(self, value: object) -> str:
        """Return the stored form of answers by question; a single question may have a plain value."""
        if self.is_plain and isinstance(value, Mapping):
            return self.first.answer(value.get(self.first.name))
        if self.is_plain:
            return self.first.answer(value)
        answers: object = value
        if isinstance(value, str):
            answers = self.answers(value)
        if not isinstance(answers, Mapping):
            problem = "the answers must be a mapping from question names to answers"
            allowed = 'such as {"correct": "Pass"}'
            raise InputError(problem, given=type(value).__name__, allowed=allowed)
        unknown = sorted({*answers} - {question.name for question in self.questions})
        if unknown:
            allowed = ", ".join(question.name for question in self.questions)
            raise InputError("unknown question", given=repr(unknown[0])[:60], allowed=allowed)
        stored: dict[str, str] = {}
        for question in self.questions:
            answer = answers.get(question.name)
            # A short text may be empty.
            is_empty_text = answer in (None, "") and question.kind == TEXT_ANSWER
            if is_empty_text or not self._is_asked(question, stored):
                continue
            try:
                stored[question.name] = question.answer(answer)
            except InputError as error:
                problem = f"{question.name}: {error.what}"
                raise InputError(problem, given=error.given, allowed=error.allowed) from None
        return json.dumps(stored, ensure_ascii=False, separators=(",", ":"))

    def _is_asked(self, question: StudyQuestion, stored: Mapping[str, str]) -> bool:
        """Return whether the previous answers meet the question's condition."""
        if question.when is None:
            return True
        name, required_answer = question.when
        earlier = self._condition_question(question)
        if name not in stored or earlier is None:
            return False
        if earlier.kind == SEVERAL:
            return earlier.outcome(stored[name], required_answer) == 1.0
        return stored[name] == required_answer

    def _condition_question(self, question: StudyQuestion) -> StudyQuestion | None:
        """Return the question whose answer determines whether a question is asked; None if it always is."""
        if question.when is None:
            return None
        return next((earlier for earlier in self.questions if earlier.name == question.when[0]), None)

    def answers(self, stored: str | None) -> dict[str, str]:
        """Return the answers by question from the stored text, for questions that were asked."""
        if stored is None:
            return {}
        if self.is_plain:
            return {self.first.name: stored}
        with suppress(ValueError):
            decoded = json.loads(stored)
            if isinstance(decoded, dict):
                return decoded
        raise InputError("the answers cannot be read", given=repr(stored[:60]), allowed="a JSON object")

    def outcome(self, column: str, stored: str | None) -> str | float | None:
        """Return the outcome of the stored answers for one of `columns`; None for no answer.

        If a condition was not met, a numeric outcome or the outcome of one choice is 0. If the answer to the
        question of the condition means no answer, the outcome is unknown too.
        """
        question, component = self.columns[column]
        answers = self.answers(stored)
        answer = answers.get(question.name)
        if answer is None:
            earlier = self._condition_question(question)
            if earlier is None or earlier.name not in answers:
                return None
            if earlier.outcome(answers[earlier.name]) is None:
                return None
            if question.kind == SEVERAL or question.is_numeric:
                return 0.0
            return None
        outcome = question.outcome(answer, component)
        if component == ASKED and question.is_numeric and outcome is not None:
            return 1.0
        return outcome

    def differ(self, stored: Collection[str]) -> bool:
        """Return whether the stored answers of several annotators to any question differ."""
        answers_by_annotator = [self.answers(text) for text in stored]
        for question in self.questions:
            answers = [answers[question.name] for answers in answers_by_annotator if question.name in answers]
            if question.differ(answers):
                return True
        return False


def _is_number_within(text: str, bounds: tuple[float, float] | None) -> bool:
    """Return whether a text is a finite number within bounds (None: any)."""
    number = number_of_text(text)
    return math.isfinite(number) and (bounds is None or bounds[0] <= number <= bounds[1])


def _choices_with_keys(
    choices: Iterable[tuple[str, float | None, bool]], keys: Iterable[str] = CHOICE_KEYS
) -> tuple[Choice, ...]:
    """Return choices with keys, given the name, the number, and whether the choice means no answer, of each.

    Choices after the last key have no key.
    """
    choices_and_keys = zip(choices, chain(keys, repeat("")), strict=False)
    return tuple(
        Choice(name=name, value=value, key=key, none=none) for (name, value, none), key in choices_and_keys
    )


def _parse_choice(choice: str) -> tuple[str, float | None, bool]:
    """Return name and number of a choice such as `Partly=0.5`, and whether it means no answer (`Unsure=`)."""
    name, equals_sign, number = choice.strip().rpartition("=")
    if not equals_sign:
        # `rpartition` returns a text without the sign as the last part.
        return number.strip(), None, False
    if not number:
        return name.strip(), None, True
    try:
        value = float(number)
    except ValueError:
        # The name of a choice may contain an equals sign, such as `a=b`.
        return choice.strip(), None, False
    if not math.isfinite(value):
        raise InputError(
            "the number of a choice must be finite", given=repr(choice), allowed="Pass=1, Fail=0"
        )
    return name.strip(), value, False


def _choice_values(choices: list[tuple[str, float | None]]) -> dict[str, float | None]:
    """Return the number of each choice: the stated one, or 1 and 0 for a pair of the usual words."""
    unnumbered = [name for name, number in choices if number is None]
    if unnumbered and len(unnumbered) < len(choices):
        action = "Give each choice a number, as in Pass=1,Fail=0."
        raise InputError(f"choice {unnumbered[0]!r} has no number, although others have one", action=action)
    if len(unnumbered) == 2:
        for positive, negative in (unnumbered, reversed(unnumbered)):
            if positive.lower() in _WORDS_FOR_ONE and negative.lower() in _WORDS_FOR_ZERO:
                return {positive: 1.0, negative: 0.0}
    return dict(choices)


def _answer_text(value: object) -> str:
    """Return an answer from Python or JSON as text: lists and dicts as JSON, empty for None."""
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return ""
    return text_of_value(value)


class Answer(JsonRecord, frozen=True, kw_only=True):
    """The current or an earlier answer of one annotator to one item.

    Parameters
    ----------
    seq : int
        Line of the journal.
    item : str
        Id of the item.
    annotator : str
    status : {"submitted", "skipped"}
    value : str, optional
        The stored answer, such as the name of a choice (see `Form.answer`); None for a skip.
    note : str
    at : str
        Time of the answer in UTC, by the server's clock.
    seconds : float, optional
        Working time of the annotator.
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
        Position in the study's random order, from 1.
    payload : mapping of column to value
        The columns of `--show`, in their order: text, numbers, lists and dicts (JSON).
    sides : (str, str), optional
        For pairs: the columns in display order, shuffled for each annotator and item.
    answer : Answer, optional
        The current answer of this annotator; None if there is none.
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
    """The progress of a study, for one annotator.

    Parameters
    ----------
    submitted, skipped : int
        Numbers of answers of this annotator.
    share : int
        Expected number of items of this annotator at the end, if all annotators with open items share the
        rest.
    done, total : int
        Existing and required answers of all annotators (an item with two annotators counts twice).
    seconds_left : float, optional
        Expected time until the study is complete for this annotator, at the mean pace of all.
    disagreements : int
        Items that wait for adjudication.
    enough : bool
        Whether the interval has reached its target width, so that labelling may stop.
    message : str
        A message to the annotator, for example that the clock was set back; may be empty.
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
    """An item with different answers of annotators.

    Parameters
    ----------
    item : Item
        `item.answer` is the decision, if there is one.
    answers : tuple of Answer
        The answer of each annotator, in the order of the journal.
    """

    item: Item
    answers: tuple[Answer, ...]
