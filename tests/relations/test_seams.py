"""Options together: plans for estimands, two rounds, labels that are missing, files between, other names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relations.world import CLASSES, World, same
from tests.tiers import sized

import stratal

# Units without a label, and weak proxies, are meant here.
pytestmark = pytest.mark.filterwarnings("ignore::stratal.StratalWarning")

PLANNED = (
    "f1:dog,right=proxy",
    "recall:dog,right=proxy",
    "mcc",
    "accuracy",
    "mean@language",
    "difference:answer,rival,proxies=proxy+other",
    "f1:dog,right=proxy;recall:cat,right=proxy",
    "difference:answer,rival;accuracy",
)
NAMES = dict(zip(CLASSES, ("z", "y", "x"), strict=True))


def labelled(world: World, sample: stratal.Sample, estimand: str, answered: float):
    column = world.right if estimand == "mean@language" else world.truth
    return world.labels(sample, column, answered)


def two_rounds(world: World, estimand: str, seed: int, answered: float, place=None) -> stratal.Sample:
    units = world.population()
    sample = stratal.plan(units, budget=60, estimand=estimand).draw(seed=seed)
    if place is not None:
        sample = stratal.Sample.read(sample.write(place))
    labels = labelled(world, sample, estimand, answered)
    try:
        return stratal.next_round(sample, labels, additional=30, population=units)
    except stratal.errors.BudgetError:  # all units on which two models differ have been drawn
        return sample


@settings(max_examples=sized(4, 80))
@given(seed=st.integers(0, 10**6), estimand=st.sampled_from(PLANNED), answered=st.sampled_from([1.0, 0.8]))
def test_two_rounds_do_not_follow_the_order_of_the_rows(seed, estimand, answered):
    world = World.of(seed)
    mixed = world.reordered(np.random.default_rng(seed).permutation(len(world.ids)))
    samples = [two_rounds(one, estimand, seed, answered) for one in (world, mixed)]

    assert set(samples[0].ids.tolist()) == set(samples[1].ids.tolist())
    same(*(stratal.estimate(one, labelled(world, one, estimand, answered)) for one in samples))


@settings(max_examples=sized(3, 60))
@given(seed=st.integers(0, 10**6), estimand=st.sampled_from(PLANNED), answered=st.sampled_from([1.0, 0.8]))
def test_two_rounds_with_a_file_between_are_the_same(seed, estimand, answered, tmp_path_factory):
    world = World.of(seed)
    place = tmp_path_factory.mktemp("between") / "sample.parquet"
    straight, through = (two_rounds(world, estimand, seed, answered, where) for where in (None, place))

    assert straight.ids.tolist() == through.ids.tolist()
    labels = labelled(world, straight, estimand, answered)
    same(stratal.estimate(straight, labels), stratal.estimate(through, labels))


@settings(max_examples=sized(3, 60))
@given(
    seed=st.integers(0, 10**6),
    estimand=st.sampled_from([name for name in PLANNED if name != "mean@language"]),
    answered=st.sampled_from([1.0, 0.8]),
)
def test_two_rounds_do_not_follow_what_classes_are_called(seed, estimand, answered):
    world = World.of(seed)
    renamed = world.changed(
        **{
            column: np.array([NAMES[entry] for entry in getattr(world, column)])
            for column in ("answer", "rival", "truth")
        }
    )
    other = estimand
    for old, new in NAMES.items():
        other = other.replace(f":{old}", f":{new}")
    first, second = two_rounds(world, estimand, seed, answered), two_rounds(renamed, other, seed, answered)

    assert set(first.ids.tolist()) == set(second.ids.tolist())
    same(
        stratal.estimate(first, labelled(world, first, estimand, answered)),
        stratal.estimate(second, labelled(renamed, second, other, answered)),
    )


@settings(max_examples=sized(3, 60))
@given(seed=st.integers(0, 10**6), estimand=st.sampled_from(PLANNED), answered=st.sampled_from([1.0, 0.8]))
def test_a_blank_label_is_no_label(seed, estimand, answered):
    """Units that are left out, and units that are there without a value, are nonresponse alike."""
    world = World.of(seed)
    sample = two_rounds(world, estimand, seed, answered)
    given_labels = labelled(world, sample, estimand, answered)
    with_blanks = dict.fromkeys(sample.ids.tolist(), "") | given_labels

    same(stratal.estimate(sample, given_labels), stratal.estimate(sample, with_blanks))
