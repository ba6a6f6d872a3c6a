"""Two models in the other order: differences change their sign, ratios turn over, wins are losses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relations.world import DESIGNS, World, numbers, same
from tests.tiers import sized

import stratal

# Units without a label, and weak proxies, are meant here.
pytestmark = pytest.mark.filterwarnings("ignore::stratal.StratalWarning")

SEEDS = st.integers(0, 10**6)
MIRRORS = {
    "difference": lambda v, e, low, high: [-v, e, -high, -low],
    "win_rate": lambda v, e, low, high: [1 - v, e, 1 - high, 1 - low],
    "ratio": lambda v, e, low, high: [1 / v, e / v**2, 1 / high, 1 / low],
}


@pytest.mark.parametrize("design", ["simple random", "strata", "planned", "poisson", "clusters"])
@pytest.mark.parametrize("kind", MIRRORS)
@settings(max_examples=sized(3, 30))
@given(seed=SEEDS, answered=st.sampled_from([1.0, 0.8]), proxies=st.booleans())
def test_swapped_models_mirror_the_estimate(design, kind, seed, answered, proxies):
    world = World.of(seed)
    sample = DESIGNS[design](world.population(), seed)
    labels = world.labels(sample, world.truth, answered)
    one, two = (",proxies=proxy+other", ",proxies=other+proxy") if proxies else ("", "")
    first = stratal.estimate(sample, labels, estimand=f"{kind}:answer,rival{one}")
    second = stratal.estimate(sample, labels, estimand=f"{kind}:rival,answer{two}")

    same(MIRRORS[kind](*numbers(first)), numbers(second), 1e-7)


@settings(max_examples=sized(3, 60))
@given(seed=SEEDS, design=st.sampled_from(sorted(DESIGNS)))
def test_compare_mirrors_too(seed, design):
    world = World.of(seed)
    sample = DESIGNS[design](world.population(), seed)
    a, b = world.labels(sample, world.right), world.labels(sample, world.rival_right)
    first = stratal.compare(sample, {"a": a, "b": b})
    second = stratal.compare(sample, {"b": b, "a": a})

    same(MIRRORS["difference"](*numbers(first)), numbers(second))
    same(MIRRORS["win_rate"](*numbers(first.win_rates[0])), numbers(second.win_rates[0]))
    same(MIRRORS["ratio"](*numbers(first.ratios[0])), numbers(second.ratios[0]))
    assert first[0].p_value(0.0) == pytest.approx(second[0].p_value(0.0))


@settings(max_examples=sized(3, 60))
@given(seed=SEEDS, design=st.sampled_from(["simple random", "strata", "planned"]))
def test_estimand_and_compare_agree_on_labels_that_are_outcomes(seed, design):
    world = World.of(seed)
    sample = DESIGNS[design](world.population(), seed)
    outcomes = {"answer": world.labels(sample, world.right), "rival": world.labels(sample, world.rival_right)}
    found = stratal.estimate(sample, outcomes, estimand="difference:answer,rival")

    same(stratal.compare(sample, outcomes), found)


@settings(max_examples=sized(3, 40))
@given(seed=SEEDS)
def test_a_model_ties_with_itself(seed):
    world = World.of(seed)
    sample = DESIGNS["planned"](world.population(), seed)
    outcome = world.labels(sample, world.right)
    (row,) = stratal.compare(sample, {"a": outcome, "b": dict(outcome)}).rows()

    assert (row["estimate"], row["win_rate"]["estimate"], row["ratio"]["estimate"]) == (0, 0.5, 1)
    assert row["confidence_interval"][0] == pytest.approx(-row["confidence_interval"][1])
    assert np.isclose(row["p_value"], 1)
