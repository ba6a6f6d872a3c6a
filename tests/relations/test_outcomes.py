"""Outcomes counted from the other end, in other units, or without anything to gain from a proxy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relations.world import DESIGNS, World, by_language, numbers, same
from tests.tiers import sized

import stratal

# Units without a label, and weak proxies, are meant here.
pytestmark = pytest.mark.filterwarnings("ignore::stratal.StratalWarning")

SEEDS = st.integers(0, 10**6)
ESTIMATORS = st.sampled_from(["auto", "horvitz-thompson", "difference", "ppi++"])


def mirrored(found: stratal.Estimate) -> list[float]:
    value, error, low, high = numbers(found)
    return [1 - value, error, 1 - high, 1 - low]


@pytest.mark.parametrize("design", ["simple random", "strata", "poisson", "proportional to size", "clusters"])
@settings(max_examples=sized(3, 30))
@given(seed=SEEDS, estimator=ESTIMATORS, answered=st.sampled_from([1.0, 0.8]))
def test_wrong_answers_are_what_right_ones_leave(design, seed, estimator, answered):
    world = World.of(seed)
    opposite = {"proxy": 1 - world.proxy, "other": 1 - world.other}
    first = DESIGNS[design](world.population(), seed)
    second = DESIGNS[design](world.population(proxy=opposite), seed)
    if design == "poisson" and estimator == "horvitz-thompson":
        estimator = "hajek"  # the sum over a random number of units is not a mean, and has no complement
    right = stratal.estimate(first, world.labels(first, world.right, answered), estimator=estimator)
    wrong = stratal.estimate(second, world.labels(second, 1 - world.right, answered), estimator=estimator)

    same(mirrored(right), numbers(wrong), 1e-7)


@pytest.mark.parametrize("design", ["simple random", "strata", "proportional to size", "clusters"])
@pytest.mark.parametrize("bounded", [True, False])
@settings(max_examples=sized(3, 30))
@given(
    seed=SEEDS,
    scale=st.sampled_from([0.01, 2.0, 250.0]),
    shift=st.sampled_from([-3.0, 0.0, 40.0]),
    answered=st.sampled_from([1.0, 0.8]),
)
def test_units_of_measurement_do_not_matter(design, bounded, seed, scale, shift, answered):
    world = World.of(seed)
    results = []
    for a, b in ((1.0, 0.0), (scale, shift)):
        ends = (b + a, b + 5 * a)
        proxy = {"proxy": b + a * (1 + 4 * world.proxy)}
        units = world.population(proxy=proxy, bounds=ends)
        sample = DESIGNS[design](units, seed)
        options = {"bounds": ends} if bounded else {"outcome": "unbounded"}
        labels = world.labels(sample, b + a * world.rating, answered)
        value, error, low, high = numbers(stratal.estimate(sample, labels, **options))
        results.append([(value - b) / a, error / a, (low - b) / a, (high - b) / a])

    same(results[0], results[1], 1e-6)


@pytest.mark.parametrize("design", ["simple random", "strata", "planned", "clusters"])
@settings(max_examples=sized(2, 20))
@given(seed=SEEDS, answered=st.sampled_from([1.0, 0.8]))
def test_a_slope_of_nothing_is_no_proxy(design, seed, answered):
    world = World.of(seed)
    sample = DESIGNS[design](world.population(), seed)
    labels = world.labels(sample, world.right, answered)

    same(
        stratal.estimate(sample, labels, estimator="horvitz-thompson"),
        stratal.estimate(sample, labels, estimator="difference", lam=0.0),
    )


@pytest.mark.parametrize("design", ["simple random", "strata", "clusters"])
@settings(max_examples=sized(3, 30))
@given(seed=SEEDS, constant=st.sampled_from([0.0, 0.3, 1.0]))
def test_a_constant_proxy_is_no_proxy(design, seed, constant):
    world = World.of(seed)
    found = []
    for proxy in ({"proxy": np.full(len(world.ids), constant)}, None):
        sample = DESIGNS[design](world.population(proxy=proxy), seed)
        found.append(stratal.estimate(sample, world.labels(sample, world.right, 0.9)))

    assert all(slope == 0 for slope in found[0].lam)
    same(*found)


@settings(max_examples=sized(3, 60))
@given(seed=SEEDS, estimator=ESTIMATORS, column=st.sampled_from(["right", "rating"]))
def test_one_stratum_is_a_simple_random_sample(seed, estimator, column):
    world = World.of(seed).changed(language=np.full(240, "all"))
    units = world.population()
    options: dict[str, Any] = {"outcome": "unbounded"} if column == "rating" else {}
    found = []
    for design in (stratal.designs.SimpleRandom(budget=90), by_language(units)):
        sample = design.draw(units, seed)
        labels = world.labels(sample, getattr(world, column))
        found.append(stratal.estimate(sample, labels, estimator=estimator, **options))

    same(*found)


@pytest.mark.parametrize(
    "estimand", [None, "f1:dog", "difference:answer,rival", "recall:dog", "win_rate:answer,rival"]
)
@pytest.mark.parametrize("stratified", [False, True])
def test_a_census_is_exact(estimand, stratified):
    world = World.of(5)
    units = world.population()
    sample = by_language(units, 240).draw(units, 1) if stratified else DESIGN_OF_ALL.draw(units, 1)
    column = world.right if estimand is None else world.truth
    found = stratal.estimate(sample, world.labels(sample, column), estimand=estimand, target="population")
    hits = ((world.answer == "dog") & (world.truth == "dog")).sum()
    both = (world.answer == "dog").sum() + (world.truth == "dog").sum()
    truths = {
        None: world.right.mean(),
        "f1:dog": 2 * hits / both,
        "difference:answer,rival": (world.right - world.rival_right).mean(),
        "win_rate:answer,rival": 0.5 + 0.5 * np.sign(world.right - world.rival_right).mean(),
        "recall:dog": hits / (world.truth == "dog").sum(),
    }
    value, error, low, high = numbers(found)

    assert value == pytest.approx(truths[estimand], abs=1e-12)
    assert [error, low, high] == pytest.approx([0, value, value], abs=1e-12)


DESIGN_OF_ALL = stratal.designs.SimpleRandom(budget=240)
