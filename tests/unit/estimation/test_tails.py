"""What is said of tails: nothing of bounded outcomes, of others what their labels and the proxy show."""

from __future__ import annotations

import numpy as np
import pytest

import stratal


def notes_of(z, proxy, budget=60, seed=3, **options) -> str:
    population = stratal.Population.from_arrays(proxy=proxy, bounds=None)
    sample = stratal.designs.SimpleRandom(budget=budget).draw(population, seed=seed)
    labels = z[np.asarray(sample.ids, dtype=int)]
    estimate = stratal.estimate(sample, labels, estimator="horvitz-thompson", **options)
    return " | ".join(estimate.notes)


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(5)


def test_the_risk_is_said_of_every_outcome_without_bounds(random):
    z = random.normal(size=2000)
    notes = notes_of(z, random.normal(size=2000))

    assert "up to 4.8% of the units may be unlike any labelled one" in notes
    assert "skewed" not in notes
    assert "proxy's variance" not in notes


def test_bounds_leave_no_such_risk(random):
    z = random.random(2000)

    assert "unlike" not in notes_of(z, z, bounds=(0, 1), outcome="bounded")


def test_labels_with_a_long_tail_say_so(random):
    notes = notes_of(random.lognormal(0, 2, 2000), random.normal(size=2000))

    assert "further upwards" in notes
    assert "further downwards" in notes_of(-random.lognormal(0, 2, 2000), random.normal(size=2000))


def test_a_tail_of_the_proxy_that_was_not_drawn_is_named(random):
    """One unit in a hundred is an outlier that the proxy knows of; half of such samples hold none."""
    far = random.random(2000) < 0.01
    z = random.normal(size=2000) + 50 * far
    proxy = random.normal(size=2000) + 50 * far
    population = stratal.Population.from_arrays(proxy=proxy, bounds=None)
    found = {True: 0, False: 0}
    said = {True: 0, False: 0}
    for seed in range(40):
        sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=seed)
        units = np.asarray(sample.ids, dtype=int)
        estimate = stratal.estimate(sample, z[units], estimator="horvitz-thompson")
        drawn = bool(far[units].any())
        found[drawn] += 1
        said[drawn] += "its tail was not drawn" in " ".join(estimate.notes)

    assert said[False] == found[False] > 5
    assert said[True] < found[True] / 2


def test_labelled_units_with_one_value_of_the_proxy_have_no_ratio(random):
    """The note said that the variance was 1000.0 times as large."""
    proxy = np.zeros(2000)
    proxy[random.choice(2000, 3, replace=False)] = 1.0
    notes = notes_of(random.normal(size=2000), proxy, seed=1)

    assert "the proxy hardly varies among the labelled units of a stratum" in notes
    assert "1000" not in notes


def test_rounding_errors_of_a_constant_proxy_are_no_tail(random):
    for constant in (0.1, 1 / 3, 1e6 + 0.1):
        assert "its tail was not drawn" not in notes_of(random.normal(size=2000), np.full(2000, constant))
