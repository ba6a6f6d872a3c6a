"""A larger draw contains the smaller one, whichever way it is made larger."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relations.world import World, by_language, same
from tests.tiers import sized

import stratal

# Units without a label, and weak proxies, are meant here.
pytestmark = pytest.mark.filterwarnings("ignore::stratal.StratalWarning")

SEEDS = st.integers(0, 10**6)
GROWING = {
    "simple random": lambda units, n: stratal.designs.SimpleRandom(budget=n),
    "strata": lambda units, n: by_language(units, n),
    "poisson": lambda units, n: stratal.designs.Poisson(probability=n / 240),
    "proportional to size": lambda units, n: stratal.designs.ProportionalToSize(budget=n, size="size"),
    "clusters": lambda units, n: stratal.designs.ClusterSample(budget=n, cluster="cluster"),
}


@pytest.mark.parametrize("design", GROWING)
@settings(max_examples=sized(3, 50))
@given(seed=SEEDS, sizes=st.tuples(st.integers(10, 100), st.integers(0, 100)))
def test_draws_are_nested(design, seed, sizes):
    units = World.of(seed % 7).population()
    small, large = (GROWING[design](units, n).draw(units, seed) for n in (sizes[0], sum(sizes)))
    assert set(small.ids.tolist()) <= set(large.ids.tolist())


@pytest.mark.parametrize("design", [name for name in GROWING if name != "clusters"])
@settings(max_examples=sized(3, 40))
@given(seed=SEEDS)
def test_an_extended_draw_is_the_larger_one(design, seed):
    world = World.of(seed % 7)
    units = world.population()
    target = GROWING[design](units, 90)
    whole = target.draw(units, seed)
    grown = stratal.next_round(GROWING[design](units, 50).draw(units, seed), design=target, population=units)

    assert set(grown.ids.tolist()) == set(whole.ids.tolist())
    same(*(stratal.estimate(one, world.labels(one, world.right, 0.9)) for one in (grown, whole)))


@settings(max_examples=sized(3, 40))
@given(seed=SEEDS)
def test_a_sample_that_was_written_is_the_one_that_was_drawn(seed, tmp_path_factory):
    world = World.of(seed % 7)
    sample = stratal.plan(world.population(), budget=60, estimand="f1:dog,right=proxy").draw(seed=seed)
    labels = world.labels(sample, world.truth, 0.9)
    place = tmp_path_factory.mktemp("written")
    found = stratal.estimate(sample, labels)
    for name in ("sample.parquet", "sample.csv"):
        again = stratal.Sample.read(sample.write(place / name))
        same(stratal.estimate(again, labels), found)
