"""Several questions about an item: what they take, what each counts as, when annotators differ."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.study import Form, StudyQuestion, check_study, estimate_study, open_study, study_status
from stratal.study.web.content import answer_view, form_view

TOML = """
[[question]]
name = "correct"
text = "Is the answer correct?"
choices = ["Pass", "Fail", "Unsure="]
[[question]]
name = "modes"
text = "What is wrong?"
several = ["Made up", "Incomplete"]
when = "correct=Fail"
[[question]]
name = "tone"
text = "How kind?"
scale = [1, 5]
ends = ["rude", "kind"]
limit = 1
[[question]]
name = "minutes"
text = "How long would it take?"
number = [0, 60]
when = "correct=Pass"
[[question]]
name = "remark"
text = "Anything else?"
short-text = true
"""
PASS = {"correct": "Pass", "tone": 4, "minutes": 12.5}
FAIL = {"correct": "Fail", "modes": ["Made up"], "tone": 5, "remark": "no"}
UNSURE = {"correct": "Unsure", "tone": "3"}


@pytest.fixture
def form():
    return Form.from_toml(TOML, "*Be* strict.")


def test_a_file_of_questions_is_read_and_kept(form):
    assert [question.kind for question in form.questions] == [
        "choices", "several", "scale", "number", "short-text",
    ]  # fmt: skip
    assert Form.decode(form.encode()) == form
    assert [*form.columns] == [
        "correct",
        "modes_Made_up",
        "modes_Incomplete",
        "tone",
        "minutes",
        "minutes_asked",
    ]
    assert form.first.rubric == "*Be* strict."
    assert not form.is_plain


def test_answers_are_unchanged_and_conditions_hold(form):
    kept = form.answer({**PASS, "modes": ["Incomplete"]})

    assert form.answers(kept) == {"correct": "Pass", "tone": "4", "minutes": "12.5"}
    assert form.answer(kept) == kept
    assert form.answers(form.answer(FAIL))["modes"] == '["Made up"]'


def test_what_answers_count_as(form):
    said = {name: form.answer(value) for name, value in (("pass", PASS), ("fail", FAIL), ("unsure", UNSURE))}
    table = {name: [form.outcome(name, said[who]) for who in said] for name in form.columns}

    assert table == {
        "correct": [1.0, 0.0, None],
        "modes_Made_up": [0.0, 1.0, None],
        "modes_Incomplete": [0.0, 0.0, None],
        "tone": [4.0, 5.0, 3.0],
        "minutes": [12.5, 0.0, None],
        "minutes_asked": [1.0, 0.0, None],
    }
    assert form.outcome("tone", None) is None


def test_numbers_differ_beyond_the_limit_and_texts_never(form):
    def answers(**given):
        return form.answer({**PASS, **given})

    assert not form.differ([answers(), answers(tone=5, remark="odd")])
    assert form.differ([answers(tone=3), answers(tone=5)])
    assert form.differ([answers(), form.answer(FAIL)])
    assert form.differ([form.answer(FAIL), form.answer({**FAIL, "modes": []})])


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"correct": "Pass", "tone": 4}, "minutes"),
        ({**PASS, "tone": 6}, "tone"),
        ({**PASS, "minutes": "nan"}, "minutes"),
        ({**PASS, "minutes": 61}, "minutes"),
        ({**FAIL, "modes": ["Other"]}, "modes"),
        ({**PASS, "other": 1}, "unknown question"),
        ("Pass", "cannot be read"),
        ([], "from question names to answers"),
        ({}, "correct"),
        ({**PASS, "remark": "x" * 2001}, "remark"),
        ({**PASS, "correct": ["Pass"]}, "correct"),
        ({**FAIL, "modes": [["Made up"]]}, "modes"),
    ],
)
def test_what_the_form_does_not_take(form, given, named):
    with pytest.raises(InputError, match=named):
        form.answer(given)


ONE = "[[question]]\nname='a'\ntext='?'\n"
OTHER = "\n[[question]]\nname='b'\ntext='?'\n"


@pytest.mark.parametrize(
    "text",
    [
        *("", "question = 1", "not toml", ONE, "[[question]]\ntext=''\nscale=[1,5]"),
        *(ONE + "scale=[1]", ONE + "scale=[1,5]\nmore=1", ONE + "several=['x y','x_y']"),
        ONE + "scale=[1,5]\n" + ONE + "scale=[1,5]",
        "[[question]]\ntext='?'\nscale=[1,5]" + OTHER + "scale=[1,5]",
        ONE + "scale=[1,5]\nwhen='b=1'",
        ONE + "scale=[1,5]" + OTHER + "scale=[1,5]\nwhen='a=9'",
        ONE + "pair=['x','y']" + OTHER + "pair=['x','z']",
    ],
)
def test_files_that_make_no_sense_are_refused(text):
    with pytest.raises(InputError):
        Form.from_toml(text)


def test_unsure_counts_as_no_answer_of_a_single_question():
    question = StudyQuestion.of_choices("Right?", ["Pass", "Fail", "Unsure="])

    assert question.is_numeric
    assert question.bounds == (0.0, 1.0)
    assert [question.outcome(name) for name in ("Pass", "Fail", "Unsure")] == [1.0, 0.0, None]


@pytest.fixture
def answered(make_study, form):
    """A study in which two people answered, and what they should have said of each item."""
    study = make_study(question=form, overlap=0.5)
    chance, truth = np.random.default_rng(3), {}
    for who in study.annotators:
        while (item := study.next_item(who)) is not None:
            given = [PASS, FAIL, UNSURE][int(chance.integers(3))]
            study.submit(who, item.id, given)
            truth.setdefault(item.id, []).append(given)
    return study, truth


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_each_question_is_an_outcome_of_its_own_on_the_same_sample(answered):
    study, truth = answered
    sample = study.sample()

    for column in ("correct", "modes_Made_up", "tone"):
        labels = study.labels(column)
        direct = stratal.estimate(sample, labels, **({"bounds": (1, 5)} if column == "tone" else {}))
        assert estimate_study(study, column).value == direct.value
    together = stratal.estimate(
        sample,
        {name: study.labels(name) for name in ("correct", "tone")},
        estimand="means:correct,tone",
    )
    assert len(together.simultaneous()) == 2
    unsure = sum(all(given is UNSURE for given in said) for said in truth.values())
    assert estimate_study(study).n == len(truth) - unsure


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_the_mean_of_a_question_under_a_condition_is_that_of_the_items_where_it_was_asked(answered):
    study, _ = answered

    assert estimate_study(study, "minutes").value == pytest.approx(12.5)


def test_status_has_every_question_and_the_share_of_disagreements(answered):
    study, truth = answered
    status = study_status(study)
    shared = [said for said in truth.values() if len(said) == 2]
    apart = sum(one is not other for one, other in shared)

    assert [entry["outcome"] for entry in status["questions"]] == [
        "correct", "modes_Made_up", "modes_Incomplete", "tone", "minutes",
    ]  # fmt: skip
    assert status["disagreements"] == {
        "open": apart, "decided": 0, "apart": apart, "shared": len(shared), "share": apart / len(shared),
    }  # fmt: skip
    assert status["estimate"] == status["questions"][0]["estimate"]
    assert status["questions"][0]["agreement"]["pairs"][0]["classes"] == ["Fail", "Pass", "Unsure"]
    assert check_study(study).problems == ()


def test_every_disagreement_is_assigned_to_one_who_did_not_answer_it_if_there_is_such_a_one(make_study):
    study = make_study(adjudicators=["eve", "ann"], overlap=1.0)
    for who, value in (("ann", "Pass"), ("bob", "Fail")):
        while (item := study.next_item(who)) is not None:
            study.submit(who, item.id, value)
    counts = {who: study.assigned_disagreements(who)[0] for who in ("ann", "bob", "eve")}

    assert counts == {"ann": 0, "bob": 0, "eve": 40}
    assert len(study.assigned_disagreements("ann", limit=5)[1]) == 5, "whoever has none helps"
    assert study.assigned_disagreements("bob")[1] == ()


def test_a_changed_answer_of_several_questions_is_seen_by_a_check(answered):
    study, _ = answered
    with study.database.write() as connection:
        connection.execute("UPDATE item SET apart = 1 - apart WHERE item = 1")

    with open_study(study.folder) as again:
        assert any("the record of whether" in problem for problem in check_study(again).problems)


def test_the_page_has_the_questions_without_what_they_count_as(answered):
    study, _ = answered
    view = form_view(study)

    assert view["questions"][1]["when"] == ("correct", "Fail")
    assert "value" in view["questions"][0]["choices"][0]
    assert "none" not in str(view["questions"])
    answer = study.history("ann")[0]
    shown = answer_view(answer, study.item("ann", answer.item), study.form)
    assert shown["value"]["tone"] in ("3", "4", "5")


def test_two_pairs_on_one_item_are_shuffled_alike(make_study, form):
    which = StudyQuestion.of_pair("Which is better?", "a", "b")
    both = Form.of([replace(which, name="better"), replace(which, name="kinder", text="Which is kinder?")])

    assert both.pair == ("a", "b")
    assert both.answer({"better": "a", "kinder": "tie"}) == '{"better":"a","kinder":"tie"}'


def test_one_of_several_choices_may_come_by_itself():
    question = StudyQuestion.of_several("What is wrong?", ["Made up", "Incomplete"])

    assert question.answer("Made up") == '["Made up"]'
    assert question.outcome(question.answer("Made up"), "Made up") == 1.0


def test_a_question_that_was_never_reached_leaves_the_others_their_estimates(make_study, form, run_command):
    study = make_study(question=form, overlap=0.0)
    for who in ("ann", "bob"):
        while (item := study.next_item(who)) is not None:
            study.submit(who, item.id, FAIL)

    never = estimate_study(study, "minutes")
    assert np.isnan(never.value)
    assert [note.code for note in never.notes if "minutes_asked" in note] == ["undefined"]
    assert estimate_study(study, "tone").value == 5
    status = {entry["outcome"]: entry for entry in study_status(study)["questions"]}
    assert status["minutes"]["estimate"]["estimate"] is None
    assert status["tone"]["estimate"]["estimate"] == 5
    study.close()
    printed = run_command("estimate", study.folder, "--json")
    questions = {row["question"]: row for row in json.loads(printed.stdout)["questions"]}
    assert questions["minutes"]["estimate"] is None
    assert questions["tone"]["estimate"] == 5
