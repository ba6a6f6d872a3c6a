"""A requirement is held against the ends of the interval; a test fails with the figures."""

import numpy as np
import pytest

import stratal
from stratal.estimation.requirement import Requirement


@pytest.fixture
def found():
    population = stratal.Population.from_arrays(proxy=np.full(400, 0.5))
    sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
    return stratal.estimate(sample, [1.0] * 95 + [0.0] * 5)


def test_the_end_of_the_interval_decides(found):
    low, high = found.confidence_interval()

    assert stratal.require(found, lower=low, upper=high) is found
    with pytest.raises(stratal.errors.RequirementError, match="a lower end of at least"):
        stratal.require(found, lower=np.nextafter(low, 1.0))
    with pytest.raises(AssertionError, match="an upper end of at most"):
        stratal.require(found, upper=np.nextafter(high, 0.0))


def test_level_and_method_count(found):
    low, _ = found.confidence_interval(0.5)

    assert stratal.require(found, lower=low, confidence_level=0.5)
    with pytest.raises(stratal.errors.RequirementError, match="99% interval"):
        stratal.require(found, lower=low, confidence_level=0.99)


def test_open_and_unknown_ends_do_not_pass():
    assert not Requirement(lower=0.0).met([None, 1.0])
    assert not Requirement(upper=1.0).met(None)
    assert Requirement().met(None)
    assert Requirement(upper=1.0).met([None, 1.0])


@pytest.mark.parametrize(
    "given",
    [{}, {"lower": "0.9"}, {"lower": True}, {"lower": 0.9, "upper": 0.8}, {"lower": 0.5, "upper": 0.5}],
)
def test_requirements_that_cannot_be(found, given):
    with pytest.raises(stratal.InputError):
        stratal.require(found, **given)


def test_only_estimates():
    with pytest.raises(stratal.InputError, match="takes an Estimate"):
        stratal.require(0.95, lower=0.9)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("end", ["lower", "upper"])
def test_a_requirement_is_a_finite_number(found, end, number):
    with pytest.raises(stratal.InputError, match="must be a finite number"):
        stratal.require(found, **{end: number})


@pytest.mark.parametrize(
    ("given", "fate"),
    [
        ({"upper": 5.0}, "always"),
        ({"upper": 1.0}, "always"),
        ({"lower": 0.0}, "always"),
        ({"lower": -3}, "always"),
        ({"lower": 1.5}, "never"),
        ({"upper": -0.5}, "never"),
        ({"lower": 90}, "never"),
    ],
)
def test_a_requirement_can_be_met_and_missed(found, given, fate):
    with pytest.raises(stratal.InputError, match=f"{fate} met"):
        stratal.require(found, **given)


def test_the_bounds_of_a_requirement_are_the_outcomes():
    population = stratal.Population.from_arrays(proxy=np.full(400, 0.5))
    sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=7)
    ratings, errors = np.resize([1.0, 3.0, 5.0], 60), np.resize([-7.0, 3.5, 5.0], 60)

    assert stratal.require(stratal.estimate(sample, ratings, bounds=(1, 5)), upper=4.9)
    with pytest.raises(stratal.InputError, match="a lower end of at least 1 is always met"):
        stratal.require(stratal.estimate(sample, ratings, bounds=(1, 5)), lower=1)
    assert stratal.require(stratal.estimate(sample, errors, outcome="unbounded"), upper=500.0)
