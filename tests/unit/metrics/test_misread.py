"""A proxy that is the probability of a class is not taken as the probability that the answer is right."""

from __future__ import annotations

import re

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, StratalWarning
from stratal.estimands import F1, Accuracy, Average, Recall


def _pool(score, answer):
    return stratal.Population.from_arrays(
        proxy={"score": score}, groups={"answer": answer}, predicted="answer"
    )


@pytest.fixture
def scores():
    rng = np.random.default_rng(1)
    return np.where(rng.random(4000) < 0.15, rng.beta(8, 2, 4000), rng.beta(1, 250, 4000))


def test_the_probability_of_a_rare_class_is_refused_with_what_to_write(scores):
    population = _pool(scores, np.where(scores > 0.5, "match", "other"))

    with pytest.raises(InputError, match="f1:match,probability=score") as raised:
        stratal.plan(population, 200, estimand="f1:match")
    assert "0.6% of the 3,398 other answers would be right" in str(raised.value)

    meant = stratal.plan(population, 200, estimand="f1:match,probability=score")
    assert meant.recommended.expected_standard_error > 0.01


def test_a_plan_warns_if_the_probability_of_a_class_is_that_of_a_right_answer(scores):
    """Such a plan promised an interval of 1.2 points, and its samples were worse than random ones."""
    answer = np.where(scores > 0.5, "match", "other")
    population = _pool(np.maximum(scores, 1.0 - scores), answer)
    warning = "of the 3,398 other answers would be 'match', and the forecast would be wrong"

    misread = stratal.plan(population, 200, estimand="recall:match,probability=score")
    meant = stratal.plan(population, 200, estimand="recall:match")

    assert any(warning in note and "write recall:match." in note for note in misread.notes)
    assert not any("forecast would be wrong" in note for note in meant.notes)
    assert warning in str(misread)


def test_a_plan_warns_if_a_declared_probability_of_a_class_is_that_of_a_right_answer(scores):
    answer = np.where(scores > 0.5, "match", "other")
    confidence = {"score": np.maximum(scores, 1.0 - scores)}
    population = stratal.Population.from_arrays(
        proxy=confidence, groups={"answer": answer}, predicted="answer", predicts="class:match"
    )

    notes = " ".join(stratal.plan(population, 200, estimand="recall:match").notes)

    assert re.search("other answers would be 'match'.*predicts={'score': 'right'}", notes)


def test_a_draw_prints_the_warning_of_the_plan(scores, tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    lines = [
        f"u{row},{'match' if score > 0.5 else 'other'},{max(score, 1 - score)}\n"
        for row, score in enumerate(scores.tolist())
    ]
    (tmp_path / "file.csv").write_text("id,answer,score\n" + "".join(lines))
    options = ["--proxy", "score", "--predicted", "answer", "--budget", "200"]
    options += ["--estimand", "recall:match,probability=score"]
    planned = run_command("plan", "file.csv", *options, "--output", "plan.json")

    assert "the forecast would be wrong" in planned.stdout
    for source in (["file.csv", *options], ["plan.json"]):
        with pytest.warns(StratalWarning, match="'recall:match,probability=score' uses 'score' as the"):
            run_command("draw", *source, "--output", f"drawn-{source[0]}")


@pytest.mark.parametrize(
    ("declared", "estimand"),
    [
        ("right", "recall:match,probability=score"),
        ("class:other", "f1:match,probability=score"),
        ("class:match", "f1:match,right=score"),
        ("order", "f1:match,probability=score"),
    ],
)
def test_an_estimand_that_contradicts_a_declaration_is_refused_and_the_remedy_works(
    scores, declared, estimand
):
    population = stratal.Population.from_arrays(
        proxy={"score": scores},
        groups={"answer": np.where(scores > 0.5, "match", "other")},
        predicted="answer",
        predicts=declared,
    )
    with pytest.raises(
        InputError, match=rf"contradicts .*score={declared}; allowed.*write (\S+)\. "
    ) as raised:
        stratal.plan(population, 200, estimand=estimand)

    remedy = re.search(r"write (\S+)\. ", str(raised.value))[1]
    assert stratal.plan(population, 200, estimand=remedy).allocation.budget == 200


def test_a_high_threshold_leaves_high_probabilities_to_other_answers():
    scores = np.random.default_rng(1).beta(3.0, 2.0, 4000)
    population = _pool(scores, np.where(scores > 0.85, "match", "other"))

    assert np.mean(scores[scores <= 0.85]) > 0.5
    assert F1("match", probability="score").misread_score_notes(population) == ()


def test_a_plan_states_that_its_estimand_takes_a_score_as_the_probability_of_a_class(scores):
    population = _pool(scores, np.where(scores > 0.5, "match", "other"))
    (row,) = stratal.plan(population, 200, estimand="f1:match,probability=score").to_dict()["proxies"]

    assert (row["predicts"], row["declared"]) == ("class:match", True)


def test_each_of_several_estimands_is_looked_at(scores):
    population = _pool(scores, np.where(scores > 0.5, "match", "other"))

    with pytest.raises(InputError, match="recall:match,probability=score"):
        stratal.plan(population, 200, estimand=["accuracy", "recall:match"])


def test_what_may_be_a_confidence_passes(scores):
    confidence = np.maximum(scores, 1.0 - scores)
    answer = np.where(scores > 0.5, "match", "other")
    for estimand in (F1("match"), Recall("other"), Accuracy(), Average("f1")):
        estimand.refuse_a_misread_proxy(_pool(confidence, answer))

    # A judge who doubts most answers of one kind, and some of the other.
    doubted = np.where(answer == "match", 0.45, 0.4) + 0.3 * (np.arange(4000) % 2)
    F1("match").refuse_a_misread_proxy(_pool(doubted, answer))
    # One class alone is answered; no proxy; a probability that is named.
    F1("match").refuse_a_misread_proxy(_pool(scores, ["match"] * 4000))
    F1("a").refuse_a_misread_proxy(stratal.Population.from_arrays(groups={"g": ["a", "b"]}, predicted="g"))
    F1("match", probability="score").refuse_a_misread_proxy(_pool(scores, answer))


def test_who_says_that_it_is_the_chance_of_a_right_answer_is_believed(scores):
    population = _pool(scores, np.where(scores > 0.5, "match", "other"))
    with pytest.raises(InputError, match="right answer, write f1:match,right=score"):
        stratal.plan(population, 200, estimand="f1:match")

    plan = stratal.plan(population, 200, estimand="f1:match,right=score")

    assert plan.allocation.budget == 200
    assert plan.estimand["right"] == "score"
    # Other answers with a low score are then believed to be of the class: far more than of those answered so.
    believed = F1("match", right="score").influence(population)
    assert believed.value < 0.3 < F1("match", probability="score").influence(population).value


def test_the_named_column_need_not_be_the_first_proxy():
    rng = np.random.default_rng(3)
    sure, other = rng.uniform(0.5, 1.0, 500), rng.uniform(0, 1, 500)
    groups = {"answer": np.where(rng.random(500) < 0.2, "match", "other")}
    first = stratal.Population.from_arrays(proxy={"sure": sure}, groups=groups, predicted="answer")
    second = stratal.Population.from_arrays(
        proxy={"other": other, "sure": sure}, groups=groups, predicted="answer"
    )
    plain, named = F1("match").influence(first), F1("match", right="sure").influence(second)

    assert named.value == plain.value
    assert F1("match", right="sure").numeric_columns == ("sure",)


def test_a_belief_is_one_or_the_other():
    with pytest.raises(InputError, match="one of the two"):
        F1("match", probability="a", right="b")
