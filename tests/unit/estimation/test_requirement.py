"""A requirement is held against the ends of the interval; a test fails with the figures."""

import numpy as np
import pytest

import stratal
from stratal.estimation.requirement import Requirement


@pytest.fixture
def found():
    population = stratal.Population.from_arrays(proxy=np.full(400, 0.5))
    sample = stratal.SimpleRandom(budget=100).draw(population, seed=7)
    return stratal.estimate(sample, [1.0] * 95 + [0.0] * 5)


def test_the_end_of_the_interval_decides(found):
    low, high = found.confidence_interval()

    assert stratal.require(found, lower=low, upper=high) is found
    with pytest.raises(stratal.RequirementError, match="a lower end of at least"):
        stratal.require(found, lower=np.nextafter(low, 1.0))
    with pytest.raises(AssertionError, match="an upper end of at most"):
        stratal.require(found, upper=np.nextafter(high, 0.0))


def test_level_and_method_count(found):
    low, _ = found.confidence_interval(0.5)

    assert stratal.require(found, lower=low, confidence_level=0.5)
    with pytest.raises(stratal.RequirementError, match="99% interval"):
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
