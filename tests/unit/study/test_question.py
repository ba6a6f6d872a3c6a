"""Questions: what they take, what answers count as, which keys choose them."""

from __future__ import annotations

import pytest

from stratal.errors import InputError
from stratal.study import Form, StudyQuestion


@pytest.mark.parametrize(
    ("choices", "values"),
    [
        (["Pass", "Fail"], [1.0, 0.0]),
        (["no", "yes"], [0.0, 1.0]),
        (["Wrong", "Correct"], [0.0, 1.0]),
        (["good=2", "ok=1", "bad=0"], [2.0, 1.0, 0.0]),
        (["Pass=0", "Fail=1"], [0.0, 1.0]),
        (["cat", "dog"], [None, None]),
        (["yes", "correct"], [None, None]),
        (["a=b", "c=d"], [None, None]),
    ],
)
def test_what_choices_count_as(choices, values):
    question = StudyQuestion.of_choices("?", choices)

    assert [choice.value for choice in question.choices] == values
    assert question.is_numeric == (None not in values)


@pytest.mark.parametrize(
    "make",
    [
        lambda: StudyQuestion.of_choices("?", ["one"]),
        lambda: StudyQuestion.of_choices("?", ["a", "a"]),
        lambda: StudyQuestion.of_choices("?", ["a=1", "b"]),
        lambda: StudyQuestion.of_choices("?", ["a=1", "b=inf"]),
        lambda: StudyQuestion.of_choices("  ", ["a", "b"]),
        lambda: StudyQuestion.of_choices("?", ["", "b"]),
        lambda: StudyQuestion.of_scale("?", 5, 1),
        lambda: StudyQuestion.of_scale("?", 1, 1.5),
        lambda: StudyQuestion.of_pair("?", "a", "a"),
        lambda: StudyQuestion.of_pair("?", "a", "tie"),
        lambda: StudyQuestion.of_classes("?", ["a", "a "]),
    ],
)
def test_questions_that_make_no_sense_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_keys_are_numbers_first_and_never_those_of_commands():
    question = StudyQuestion.of_choices("?", [f"class {number}" for number in range(30)])
    keys = [choice.key for choice in question.choices]

    assert keys[:10] == list("1234567890")
    assert len(set(keys)) == 30
    assert not set(keys) & set("sufn")


@pytest.mark.parametrize("given", [4, 4.0, "4", " 4 "])
def test_numbers_of_a_scale_are_taken_as_people_write_them(given):
    assert StudyQuestion.of_scale("?", 1, 5).answer(given) == "4"


@pytest.mark.parametrize("given", [0, 6, 4.5, "four", None, True, "", float("nan")])
def test_a_scale_takes_nothing_else(given):
    with pytest.raises(InputError, match="does not accept"):
        StudyQuestion.of_scale("?", 1, 5).answer(given)


def test_free_classes_take_words_of_ones_own():
    question = StudyQuestion.of_classes("What is it?", ["cat"])

    assert question.answer(" a small horse ") == "a small horse"
    assert question.outcome("cat") == "cat"
    for wrong in ("", "x" * 201):
        with pytest.raises(InputError, match="1 to 200 characters"):
            question.answer(wrong)


def test_a_pair_counts_a_win_of_the_first_as_1_and_a_tie_as_a_half():
    question = StudyQuestion.of_pair("Which?", "a", "b")

    assert [question.outcome(answer) for answer in ("a", "b", "tie")] == [1.0, 0.0, 0.5]
    with pytest.raises(InputError):
        question.answer("left")


@pytest.mark.parametrize(
    "question",
    [
        StudyQuestion.of_choices("Right?", ["Pass", "Fail"], rubric="# How to judge"),
        StudyQuestion.of_scale("How good?", 1, 5),
        StudyQuestion.of_pair("Which?", "a", "b"),
        StudyQuestion.of_classes("What?", ["cat"], rubric="Animals only"),
    ],
)
def test_a_question_survives_being_written_down(question):
    form = Form.of(question)

    assert Form.decode(form.encode()) == form
