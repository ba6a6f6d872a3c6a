"""Decide how labels are decoded: by comparison with the model's answers, or as numbers."""

from __future__ import annotations

from collections.abc import Collection

from stratal.arrays import number_of_text
from stratal.errors import InputError, LabelError
from stratal.question.question import Question
from stratal.question.tags import is_set

# Spellings of truth values in Python, JSON and spreadsheets, each with its digit; 1 and True are one class.
TRUTH_VALUES = {"True": "1", "true": "1", "TRUE": "1", "False": "0", "false": "0", "FALSE": "0"}
# Labels that mean wrong, half right or right, but may also be names of classes.
HALF = "0.5"
RIGHT_OR_WRONG = frozenset({"0", "1", HALF, *TRUTH_VALUES})

# Maximum number of labels or answers that an error quotes.
_MAX_EXAMPLES = 5


def truth_number(text: str) -> float:
    """Return the number of a text, 1 and 0 for truth values; NaN for other texts."""
    return number_of_text(TRUTH_VALUES.get(text, text))


def fold_text(text: str) -> str:
    """Return a text without spaces and differences in case."""
    return "".join(text.split()).casefold()


def is_compared(question: Question, labels: Collection[str], answers: Collection[str]) -> bool:
    """Return whether labels are compared with the model's answers.

    Parameters
    ----------
    question : Question
        If it declares how labels are decoded, the labels and answers have no influence.
    labels : collection of str
        The distinct labels.
    answers : collection of str
        The distinct answers of the model, for the drawn units.

    Raises
    ------
    LabelError
        If the labels are ambiguous: they are 0 and 1, which are some of the model's answers.
    """
    if question.compares is not None:
        return question.compares
    if question.answer is None:
        return False
    if question.outcome.holds_sets:
        # Annotators write the correct set, or judge the model's set with 1 or 0.
        has_sets = any(map(is_set, labels))
        tag = next((label for label in sorted(labels) if label in question.outcome.tags), None)
        if not has_sets and tag is not None and not {*labels} <= RIGHT_OR_WRONG:
            raise LabelError(
                f"the label {tag!r} is a tag, but the model's answers are sets of tags",
                allowed=question.outcome.label_format,
                action="Write each label as a set of tags; or 1 and 0 if the whole set is right or wrong.",
            )
        return has_sets
    label_classes = {TRUTH_VALUES.get(label, label) for label in labels}
    answer_classes = {TRUTH_VALUES.get(answer, answer) for answer in answers}
    if label_classes.isdisjoint(answer_classes):
        # Classes in another spelling are compared too, so that the comparison refuses them.
        return not set(map(fold_text, label_classes)).isdisjoint(map(fold_text, answer_classes))
    other_classes = answer_classes - RIGHT_OR_WRONG
    # No answer equals a label that means half right, or that half of the annotators chose 1.
    has_halves = HALF in label_classes - answer_classes
    if label_classes <= RIGHT_OR_WRONG and (other_classes or has_halves):
        label_examples = ", ".join(map(repr, sorted(labels)[:_MAX_EXAMPLES]))
        answer_examples = ", ".join(map(repr, sorted(other_classes or answer_classes)[:_MAX_EXAMPLES]))
        raise LabelError(
            f"the labels ({label_examples}) may be classes, or mean right (1) and wrong (0)",
            given=f"answers such as {answer_examples}",
            allowed="one declared meaning",
            action=f"If labels are classes: predicted={question.answer!r} (--predicted {question.answer}); "
            "if they mean right or wrong: predicted=False (--predicted none).",
        )
    return True


def refuse_ambiguous_choices(question: Question, choices: Collection[str], answers: Collection[str]) -> None:
    """Refuse choices that are all answers of the model: they may be classes, or mean right and wrong.

    Parameters
    ----------
    question : Question
        If it declares how labels are decoded, nothing is ambiguous.
    choices : collection of str
        The labels that annotators can choose, such as yes and no.
    answers : collection of str
        The distinct answers of the model.

    Raises
    ------
    InputError
        With both meanings of the choices.
    """
    answer_words = {TRUTH_VALUES.get(answer, answer).casefold() for answer in answers}
    choice_words = {TRUTH_VALUES.get(choice, choice).casefold() for choice in choices}
    if question.compares is not None or question.answer is None:
        return
    if not choice_words or not choice_words <= answer_words:
        return
    choices_text = ", ".join(map(repr, sorted(choices)))
    raise InputError(
        f"the choices {choices_text} may be classes, or mean wrong and right",
        given=f"the model's answers in {question.answer!r} are the same words",
        allowed="one meaning",
        action="If annotators name the class: StudyQuestion.of_classes (--classes "
        f"{','.join(sorted(choices))}). If they judge the answer: use other words, such as Right and Wrong "
        "(--choices Right,Wrong).",
    )


def comparison_note(question: Question, labels: Collection[str]) -> str | None:
    """Return the note that labels such as 0 and 1 were compared with the answers; None for other labels."""
    if question.compares is not None or not {*labels} <= RIGHT_OR_WRONG:
        return None
    return (
        f"labels were compared with the answers in {question.answer!r}; "
        "if they mean right (1) and wrong (0): predicted=False (--predicted none)"
    )
