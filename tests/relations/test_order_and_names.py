"""Neither the order of the rows nor what strata are called has a meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relations.world import DESIGNS, World, by_language, same
from tests.tiers import sized

import stratal

# Units without a label, and weak proxies, are meant here.
pytestmark = pytest.mark.filterwarnings("ignore::stratal.StratalWarning")

ESTIMANDS: dict[str, tuple[dict[str, Any], str]] = {
    "mean": ({}, "right"),
    "f1": ({"estimand": "f1:dog"}, "truth"),
    "list": ({"estimand": "recall:cat;precision:dog;mean@language"}, "truth"),
    "difference": ({"estimand": "difference:answer,rival"}, "truth"),
    "ratings": ({"outcome": "unbounded"}, "rating"),
}


def estimated(world: World, sample: stratal.Sample, kind: str, answered: float = 1.0):
    options, column = ESTIMANDS[kind]
    if kind == "list":
        options, column = {"estimand": "recall:cat;precision:dog;accuracy"}, "truth"
    return stratal.estimate(sample, world.labels(sample, getattr(world, column), answered), **options)


@pytest.mark.parametrize("design", DESIGNS)
@settings(max_examples=sized(3, 30))
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(sorted(ESTIMANDS)),
    answered=st.sampled_from([1.0, 0.8]),
)
def test_the_order_of_the_rows_changes_nothing(design, seed, kind, answered):
    if design == "clusters" and kind != "mean":
        kind = "ratings"
    world = World.of(seed)
    mixed = world.reordered(np.random.default_rng(seed).permutation(len(world.ids)))
    first = DESIGNS[design](world.population(), seed)
    second = DESIGNS[design](mixed.population(), seed)

    assert sorted(first.ids.tolist()) == sorted(second.ids.tolist())
    same(estimated(world, first, kind, answered), estimated(mixed, second, kind, answered))


@settings(max_examples=sized(4, 80))
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(sorted(ESTIMANDS)))
def test_what_strata_are_called_and_how_they_stand_changes_nothing(seed, kind):
    world = World.of(seed)
    renamed = world.changed(
        language=np.array([{"de": "z", "en": "m", "fr": "a"}[name] for name in world.language])
    )
    first = by_language(world.population()).draw(world.population(), seed)
    second = by_language(renamed.population()).draw(renamed.population(), seed)

    assert set(first.ids.tolist()) == set(second.ids.tolist())
    same(estimated(world, first, kind), estimated(renamed, second, kind))


@settings(max_examples=sized(3, 40))
@given(seed=st.integers(0, 10**6))
def test_further_rounds_do_not_follow_the_order_of_the_rows(seed):
    world = World.of(seed)
    mixed = world.reordered(np.random.default_rng(seed).permutation(len(world.ids)))
    rounds = []
    for one in (world, mixed):
        sample = stratal.plan(one.population(), budget=50, proxy="proxy").draw(seed=seed)
        again = stratal.next_round(sample, one.labels(sample, one.right), additional=30)
        found = stratal.estimate(again, one.labels(again, one.right, 0.9))
        rounds.append((set(again.ids.tolist()), found))

    assert rounds[0][0] == rounds[1][0]
    same(rounds[0][1], rounds[1][1])
