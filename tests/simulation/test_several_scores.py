"""Several scores in the strata of the first: one λ for each, which useless ones hardly disturb."""

import numpy as np
import pytest
from tests.tiers import sized

import stratal

DRAWS = sized(60, 400)
UNITS = 4000


def scores_of(kind):
    """Return outcomes (N,) and two or three scores."""
    random = np.random.default_rng(17)
    first = random.random(UNITS)
    z = (random.random(UNITS) < first).astype(float)
    if kind == "second is good":
        return z, {"first": first, "second": np.clip(0.6 * z + 0.4 * random.random(UNITS), 0, 1)}
    if kind == "others are noise":
        return z, {"first": first, "noise": random.random(UNITS), "flags": random.integers(0, 2, UNITS)}
    rare = np.clip(random.beta(0.3, 8, UNITS), 0, 1)
    z = (random.random(UNITS) < rare).astype(float)
    return z, {"first": rare, "inverted": 1 - rare, "noise": random.random(UNITS)}


@pytest.mark.parametrize(
    ("kind", "largest_ratio"),
    [("second is good", 0.6), ("others are noise", 1.05), ("rare, others are wrong", 1.05)],
)
def test_the_squared_error_beside_that_of_the_labels_alone(kind, largest_ratio):
    z, scores = scores_of(kind)
    population = stratal.Population.from_arrays(proxy=scores, bounds=(0, 1))
    plan = stratal.plan(population, budget=80, proxy="first")
    errors = {"auto": [], "horvitz-thompson": []}
    covers = []
    for seed in range(DRAWS):
        sample = plan.draw(seed=seed)
        for estimator, of_estimator in errors.items():
            estimate = stratal.estimate(sample, z[sample.ids], estimator=estimator)
            of_estimator.append(estimate.value - z.mean())
        low, high = stratal.estimate(sample, z[sample.ids]).confidence_interval()
        covers.append(low <= z.mean() <= high)
    ratio = np.mean(np.square(errors["auto"])) / np.mean(np.square(errors["horvitz-thompson"]))

    # The ratio of two correlated errors has a standard error of a few percent.
    assert ratio <= largest_ratio + 0.05
    assert np.mean(covers) >= 0.94 - 2 * np.sqrt(0.94 * 0.06 / DRAWS)


def test_the_number_of_labels_decides():
    z, scores = scores_of("others are noise")
    population = stratal.Population.from_arrays(proxy=scores, bounds=(0, 1))
    one_score = stratal.Population.from_arrays(proxy={"first": scores["first"]}, bounds=(0, 1))
    for units, budget, estimator in (
        (population, 40, "horvitz-thompson"),
        (population, 60, "ppi++"),
        (one_score, 60, "horvitz-thompson"),
    ):
        sample = stratal.plan(units, budget=budget).draw(seed=1)
        assert stratal.estimate(sample, z[sample.ids]).estimator == estimator
