"""The declaration of roles, outcome and estimand."""

import pytest

import stratal
from stratal.errors import InputError
from stratal.question import Outcome, Question, Score


def test_a_question_is_the_same_after_json():
    question = Question(
        id="key",
        scores=(Score(name="p", predicts="class:spam", declared=True), Score(name="rank", predicts="order")),
        answer="answer",
        groups=("site",),
        outcome=Outcome(scale="bounded", bounds=(1, 5), mapping={"unsure": None, "good": 5.0}),
        estimand={"kind": "f1", "positive": "spam"},
    )

    assert Question.from_dict(question.to_dict()) == question


@pytest.mark.parametrize(
    ("declared", "later"),
    [
        ({"predicted": False}, {"predicted": True}),
        ({"predicted": True}, {"predicted": "none"}),
        ({"positive": "pass"}, {"positive": "fail"}),
        ({"mapping": {"ok": 1}}, {"mapping": {"OK": 0}}),
    ],
)
def test_an_option_that_contradicts_the_question_is_refused(declared, later):
    question = Question(answer="answer").refine(**declared)

    with pytest.raises(InputError) as refused:
        question.refine(**later)

    assert refused.value.given
    assert refused.value.allowed
    assert question.refine(**declared) == question


def test_a_comparison_needs_a_column_of_answers():
    with pytest.raises(InputError):
        Question().refine(predicted=True)


@pytest.mark.parametrize(
    "wrong",
    [{"scale": "bounded"}, {"scale": "binary", "bounds": (0, 1)}, {"scale": "odd"}, {"decoding": "odd"}],
)
def test_an_outcome_that_contradicts_itself_is_refused(wrong):
    with pytest.raises(InputError):
        Outcome(**wrong)


def test_a_sample_stores_the_roles_of_its_columns(tmp_path):
    population = stratal.Population.from_arrays(
        proxy={"confidence": [0.9, 0.8, 0.7, 0.6]},
        groups={"answer": ["a", "b", "a", "b"], "site": ["x", "x", "y", "y"]},
        predicted="answer",
    )
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=7)

    again = stratal.Sample.read(sample.write(tmp_path / "sample.parquet"))

    assert again.question == sample.question
    assert again.question.answer == "answer"
    assert set(again.question.groups) == {"answer", "site"}
    assert again.question.score("confidence") == Score(name="confidence", predicts="right")
