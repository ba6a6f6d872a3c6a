"""What `estimate` returns is known to a type checker: mypy reads this file too, and fails where it is not."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import pytest

import stratal
from stratal import estimands
from stratal.estimation.estimand import as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(1)
    population = stratal.Population.from_arrays(
        proxy={"p": rng.random(200), "q": rng.random(200)},
        groups={"new": rng.choice(["a", "b"], 200), "old": rng.choice(["a", "b"], 200)},
        features={"length": rng.normal(size=200)},
        predicted="new",
    )
    return stratal.designs.SimpleRandom(budget=60).draw(population, seed=1)


CLASSES, NUMBERS = ["a", "b", "a"] * 20, [0.0, 1.0, 1.0] * 20


def test_a_mean_is_an_estimate(sample):
    estimate = stratal.estimate(sample, NUMBERS)
    assert_type(estimate, Estimate)
    assert isinstance(estimate, Estimate)


@pytest.mark.parametrize(
    "asked",
    [
        estimands.Mean(),
        estimands.Accuracy(),
        estimands.Difference(("new", "old")),
        estimands.F1("a"),
        estimands.BalancedAccuracy(),
        estimands.Average("f1"),
        estimands.Ratio(("new", "old")),
        estimands.Coefficient("length"),
        estimands.AUC("a", score="p"),
    ],
)
def test_one_number_is_an_estimate(sample, asked):
    labels = NUMBERS if asked.kind in ("mean", "coefficient") else CLASSES
    estimate = stratal.estimate(sample, labels, estimand=asked)
    assert isinstance(estimate, Estimate)
    assert estimate.label == ({} if asked.kind == "mean" else {"estimand": asked.text})


def test_several_numbers_are_estimates(sample):
    for found in (
        stratal.estimate(sample, CLASSES, estimand=[estimands.F1("a"), "recall:a"]),
        stratal.estimate(sample, NUMBERS, estimand=estimands.LevelMeans("old")),
        stratal.estimate(sample, NUMBERS, by="old"),
        stratal.estimate(sample, CLASSES, estimand=estimands.ClassReport()),
    ):
        assert isinstance(found, Estimates)
        assert all(isinstance(row, Estimate) for row in found)


def test_an_estimand_tells_nothing_beforehand(sample):
    estimate = stratal.estimate(sample, CLASSES, estimand="f1:a")
    assert_type(estimate, Any)
    assert stratal.estimate(sample, CLASSES, estimand=as_estimand("f1:a")).value == estimate.value


def test_a_wrong_keyword_is_refused(sample):
    with pytest.raises(TypeError, match="unexpected keyword"):
        stratal.estimate(sample, NUMBERS, estimater="ppi++")
