"""What `estimate` returns is known to a type checker: mypy reads this file too, and fails where it is not."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import pytest

import stratal
from stratal import estimands
from stratal.estimation.estimand import as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimate_table import EstimateTable
from stratal.estimation.quantity import Quantity


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(1)
    population = stratal.Population.from_arrays(
        proxy={"p": rng.random(200), "q": rng.random(200)},
        groups={"new": rng.choice(["a", "b"], 200), "old": rng.choice(["a", "b"], 200)},
        features={"length": rng.normal(size=200)},
        predicted="new",
    )
    return stratal.SimpleRandom(budget=60).draw(population, seed=1)


CLASSES, NUMBERS = ["a", "b", "a"] * 20, [0.0, 1.0, 1.0] * 20


def test_a_mean_is_an_estimate(sample):
    found = stratal.estimate(sample, NUMBERS)
    assert_type(found, Estimate)
    assert isinstance(found, Estimate)
    mean = stratal.estimate(sample, NUMBERS, estimand=estimands.Mean(), target="population")
    assert_type(mean, Estimate)
    assert isinstance(mean, Estimate)


def test_shares_and_differences_are_estimates(sample):
    accuracy = stratal.estimate(sample, CLASSES, estimand=estimands.Accuracy())
    difference = stratal.estimate(sample, CLASSES, estimand=estimands.Difference(("new", "old")))
    assert_type(accuracy, Estimate)
    assert_type(difference, Estimate)
    assert isinstance(accuracy, Estimate)
    assert isinstance(difference, Estimate)


def test_other_numbers_are_quantities(sample):
    f1 = stratal.estimate(sample, CLASSES, estimand=estimands.F1("a"))
    balanced = stratal.estimate(sample, CLASSES, estimand=estimands.BalancedAccuracy())
    average = stratal.estimate(sample, CLASSES, estimand=estimands.Average("f1"))
    ratio = stratal.estimate(sample, CLASSES, estimand=estimands.Ratio(("new", "old")))
    slope = stratal.estimate(sample, NUMBERS, estimand=estimands.Coefficient("length"))
    assert_type(f1, Quantity)
    assert_type(balanced, Quantity)
    assert_type(average, Quantity)
    assert_type(ratio, Quantity)
    assert_type(slope, Quantity)
    assert all(isinstance(found, Quantity) for found in (f1, balanced, average, ratio, slope))


def test_several_are_a_table(sample):
    listed = stratal.estimate(sample, CLASSES, estimand=[estimands.F1("a"), "recall:a"])
    levels = stratal.estimate(sample, NUMBERS, estimand=estimands.LevelMeans("old"))
    assert_type(listed, EstimateTable)
    assert_type(levels, EstimateTable)
    assert isinstance(listed, EstimateTable)
    assert isinstance(levels, EstimateTable)


def test_a_text_tells_nothing_beforehand(sample):
    found = stratal.estimate(sample, CLASSES, estimand="f1:a")
    assert_type(found, Any)
    assert stratal.estimate(sample, CLASSES, estimand=as_estimand("f1:a")).value == found.value


def test_a_wrong_keyword_is_an_error_of_types_too(sample):
    with pytest.raises(TypeError, match="unexpected keyword"):
        stratal.estimate(sample, NUMBERS, estimater="ppi++")  # type: ignore[call-overload]
