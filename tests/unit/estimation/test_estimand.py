"""Estimands by their text and their record, and several of them as one."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.estimands import F1, Differences, Estimand, LevelMeans
from stratal.estimation.crossed_cells import combined_influence, crossed_cells
from stratal.estimation.estimand import as_estimand

TEXTS = (
    "mean",
    "accuracy",
    "accuracy:predicted=old",
    "precision:match",
    "recall:match,probability=score",
    "f1:match",
    "fbeta:match,beta=0.5",
    "specificity:match",
    "balanced_accuracy",
    "mcc",
    "average:f1",
    "average:recall,average=weighted",
    "difference:new,old",
    "difference:new,old,proxies=p+q",
    "win_rate:new,old",
    "ratio:new,old",
    "differences:a,b,c",
    "mean@language",
    "mean@language:de,en,predicted=new",
    "means:fluency,adequacy",
    "quantile:0.9",
    "auc:match",
    "average_precision:match,score=p",
    "metrics:recall,f1,average=macro+micro",
    "ratio_of_means:errors,words",
    "coefficient:length",
    "coefficient:intercept,features=length+age",
    "coefficient:length,features=length+age,family=logistic,proxy=score",
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_and_a_record_are_one_estimand(text):
    estimand = Estimand.parse_text(text)

    assert estimand.text == text
    assert Estimand.from_dict(estimand.to_dict()) == estimand
    assert as_estimand(text) == as_estimand(estimand) == as_estimand(estimand.to_dict())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f1", "missing or invalid arguments"),
        ("f11:match", "no such estimand"),
        ("mcc:match", "does not support this argument"),
        ("f1:match,beta=2", "does not support this argument"),
        ("difference:new", "requires different models"),
        ("difference:new,old,older", "requires different models"),
        ("difference:new,old,proxies=p", "each model must have its own proxy"),
        ("quantile:2", "out of range"),
        ("quantile:many", "missing or invalid arguments"),
        ("coefficient:lenght,features=length", "the regression has no such coefficient.*'length'"),
        ("coefficient:intercept", "the regression has no such coefficient"),
        ("coefficient:length,family=probit", "family"),
        ("average:roc", "no such metric of a class"),
        ("average:f1,average=mean", "no such average"),
    ],
)
def test_a_slip_is_named(text, message):
    with pytest.raises(InputError, match=message):
        Estimand.parse_text(text)


def test_a_comma_does_for_the_colon_after_a_category():
    found = Estimand.parse_text("mean@language,predicted=new")

    assert found == Estimand.parse_text("mean@language:predicted=new")


def test_titles_say_what_it_is_of():
    texts = ("quantile:.9", "difference:new,old", "mean@language", "coefficient:length")

    assert [Estimand.parse_text(text).title for text in texts] == [
        "0.9 quantile",
        "difference of new, old",
        "mean by language",
        "coefficient of length",
    ]


def test_what_is_no_estimand_is_refused():
    with pytest.raises(InputError, match="not an estimand"):
        as_estimand(3)


def test_options_of_a_mean_are_refused_with_another_estimand():
    population = stratal.Population.from_arrays(groups={"a": ["x", "y"] * 5}, predicted="a")
    sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)

    with pytest.raises(InputError, match="takes no lam="):
        stratal.estimate(sample, ["x"] * 4, estimand=F1("x"), lam=0.5)


@pytest.mark.parametrize("option", [{"features": ["x"]}, {"calibration": "logistic"}, {"clip": True}])
def test_options_of_the_mean_are_refused(option):
    population = stratal.Population.from_arrays(
        proxy=[0.2, 0.7, 0.9, 0.4], groups={"answer": list("abab")}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=7)

    with pytest.raises(InputError, match=f"takes no {next(iter(option))}="):
        stratal.estimate(sample, list("abaa"), estimand="f1:a", **option)


def test_several_share_the_cells_in_which_all_are_known():
    groups = {"a": list("xxyyx"), "b": list("xyxyx"), "g": list("uuvvv")}
    population = stratal.Population.from_arrays(proxy=[0.1, 0.9, 0.5, 0.4, 0.3], groups=groups)
    pair = Estimand.parse_text("difference:a,b").influence(population)
    level = Estimand.parse_text("mean@g:u").influence(population)
    cells, known = crossed_cells([pair, level])
    columns = next(population.batches(("a", "b", "g")))

    assert known == ("same answer & other g",)
    assert cells.assign(columns).tolist() == [
        "same answer & g u",
        "different answers & g u",
        "different answers & other g",
        "same answer & other g",
        "same answer & other g",
    ]
    assert combined_influence([pair, level], population).known_cells == known


def test_the_combined_second_moment_bounds_that_of_the_sum():
    rng = np.random.default_rng(2)
    groups = {name: rng.choice(["x", "y", "z"], 400) for name in ("a", "b", "c")}
    population = stratal.Population.from_arrays(proxy=rng.random(400), groups=groups)
    mean, square, cells = Differences(("a", "b", "c")).influence(population).moments(population)

    assert np.all(square >= mean**2 - 1e-12)
    assert np.all(square[cells == "same answer"] == 0)
    assert np.all(square[cells != "same answer"] > 0)


def test_levels_that_are_not_asked_about_need_no_label():
    population = stratal.Population.from_arrays(proxy=[0.5] * 6, groups={"g": list("abcabc")})
    influence = LevelMeans("g", ("a",)).influence(population)
    _, square, cells = influence.moments(population)

    assert influence.known_cells == ("other g",)
    assert np.all((square > 0) == (cells == "g a"))


NO_MAJORITY = {"combine": "majority"}, "takes no combine="
OTHER_ANSWERS = {"predicted": "language"}, "takes no predicted="


@pytest.mark.parametrize(
    ("estimand", "option", "said"),
    [
        (estimand, *refused)
        for estimand in ("mean@language", "f1:a", "f1:a;f1:b", "mean@language,predicted=old")
        for refused in (NO_MAJORITY, OTHER_ANSWERS)
    ]
    + [("accuracy", *OTHER_ANSWERS), ("accuracy:predicted=old", *OTHER_ANSWERS)],
)
def test_what_an_estimand_would_leave_out_of_account_is_refused(estimand, option, said):
    groups = {name: list("ab") * 10 for name in ("new", "old", "language")}
    population = stratal.Population.from_arrays(proxy=[0.5] * 20, groups=groups, predicted="new")
    sample = stratal.designs.SimpleRandom(budget=10).draw(population, seed=7)
    with pytest.raises(InputError, match=said):
        stratal.estimate(sample, list("ab") * 5, estimand=estimand, **option)


@pytest.mark.parametrize(
    ("estimand", "predicted"),
    [("f1:a", "new"), ("f1:a", True), ("f1:a;accuracy:predicted=old", True), ("f1:a,predicted=old", "old")],
)
def test_what_an_estimand_compares_labels_with_may_be_said(estimand, predicted):
    groups = {name: list("ab") * 10 for name in ("new", "old")}
    population = stratal.Population.from_arrays(proxy=[0.5] * 20, groups=groups, predicted="new")
    sample = stratal.designs.SimpleRandom(budget=10).draw(population, seed=7)
    labels = list("ab") * 5

    with_answers = stratal.estimate(sample, labels, estimand=estimand, predicted=predicted)
    assert with_answers.to_dict() == stratal.estimate(sample, labels, estimand=estimand).to_dict()
