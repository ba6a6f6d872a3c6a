"""Tables of estimates: rows alone, levels, domains that partition, classes in another order, weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relations.world import CLASSES, DESIGNS, LANGUAGES, World, by_language, numbers, same
from tests.tiers import sized

import stratal
from stratal.estimands import ClassReport

# Units without a label, and weak proxies, are meant here.
pytestmark = pytest.mark.filterwarnings("ignore::stratal.StratalWarning")

SEEDS = st.integers(0, 10**6)
PLAIN = st.sampled_from(["simple random", "strata", "planned", "poisson", "proportional to size"])


@settings(max_examples=sized(3, 60))
@given(seed=SEEDS, design=PLAIN, answered=st.sampled_from([1.0, 0.8]))
def test_a_list_of_estimands_gives_what_each_gives_alone(seed, design, answered):
    world = World.of(seed)
    sample = DESIGNS[design](world.population(), seed)
    labels = world.labels(sample, world.truth, answered)
    asked = ["f1:dog", "precision:cat", "recall:dog", "difference:answer,rival", "accuracy"]
    table = stratal.estimate(sample, labels, estimand=asked)

    same(
        numbers(table),
        [n for name in asked for n in numbers(stratal.estimate(sample, labels, estimand=name))],
    )


@settings(max_examples=sized(3, 60))
@given(seed=SEEDS, design=st.sampled_from(sorted(DESIGNS)), column=st.sampled_from(["right", "rating"]))
def test_levels_are_nested_and_one_side_is_half_of_two(seed, design, column):
    world = World.of(seed)
    sample = DESIGNS[design](world.population(), seed)
    options: dict[str, Any] = {"outcome": "unbounded"} if column == "rating" else {}
    found = stratal.estimate(sample, world.labels(sample, getattr(world, column), 0.9), **options)
    low, high = found.confidence_interval(0.95)
    inner = found.confidence_interval(0.9)

    assert low <= inner.low <= found.value <= inner.high <= high
    assert found.confidence_interval(0.975, alternative="greater").low == pytest.approx(low, rel=1e-6)
    assert found.confidence_interval(0.975, alternative="less").high == pytest.approx(high, rel=1e-6)


@settings(max_examples=sized(3, 60))
@given(seed=SEEDS, answered=st.sampled_from([1.0, 0.8]))
def test_domains_that_are_the_strata_average_to_the_whole(seed, answered):
    world = World.of(seed)
    units = world.population()
    sample = by_language(units).draw(units, seed)
    labels = world.labels(sample, world.right, answered)
    rows = stratal.estimate(sample, labels, by="language")
    shares = {name: np.mean(world.language == name) for name in LANGUAGES}
    whole = sum(shares[row.label["domain"]] * row.value for row in rows)

    assert whole == pytest.approx(stratal.estimate(sample, labels, estimator="horvitz-thompson").value)


@settings(max_examples=sized(3, 60))
@given(seed=SEEDS, design=PLAIN, answered=st.sampled_from([1.0, 0.8]))
def test_classes_by_other_names_have_the_same_metrics(seed, design, answered):
    world = World.of(seed)
    name = dict(zip(CLASSES, ("z", "y", "x"), strict=True))
    renamed = world.changed(
        **{
            column: np.array([name[entry] for entry in getattr(world, column)])
            for column in ("answer", "rival", "truth")
        }
    )
    rows = []
    for one, names in ((world, {entry: entry for entry in CLASSES}), (renamed, name)):
        sample = DESIGNS[design](one.population(), seed)
        report = ClassReport(
            ["accuracy", "precision", "recall", "f1", "mcc", "balanced_accuracy"],
            [names[entry] for entry in CLASSES],
        )
        table = stratal.estimate(sample, one.labels(sample, one.truth, answered), estimand=report)
        back = {new: old for old, new in names.items()}
        rows.append({(row["metric"], back.get(row["class"], row["class"])): row for row in table.rows()})

    assert rows[0].keys() == rows[1].keys()
    for key, row in rows[0].items():
        np.testing.assert_allclose(
            [rows[1][key]["estimate"], *rows[1][key]["confidence_interval"]],
            [row["estimate"], *row["confidence_interval"]],
            atol=1e-9,
            err_msg=str(key),
        )


@settings(max_examples=sized(3, 50))
@given(seed=SEEDS, answered=st.sampled_from([1.0, 0.8]))
def test_metrics_know_who_answers_from_who_is_answered(seed, answered):
    """Precision is recall with the roles changed; F1 and Matthews' correlation do not distinguish them."""
    world = World.of(seed)
    sample = DESIGNS["simple random"](world.population(), seed)
    true = world.labels(sample, world.truth, answered)
    predicted = {unit: value for unit, value in world.labels(sample, world.answer).items() if unit in true}
    metrics = ["precision", "recall", "f1", "mcc"]
    found = [
        {
            (row.label["metric"], row.label["class"]): row.value
            for row in stratal.estimate(sample, both, estimand=ClassReport(metrics))
        }
        for both in (
            {"label": true, "predicted": predicted},
            {"label": predicted, "predicted": true},
        )
    ]
    turned = {"precision": "recall", "recall": "precision"}
    for (metric, name), value in found[0].items():
        assert found[1][turned.get(metric, metric), name] == pytest.approx(value)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 7.0])
def test_weights_count_in_any_unit(factor):
    rng = np.random.default_rng(2)
    table = {
        "right": rng.integers(0, 2, 60).tolist(),
        "weight": (factor * rng.lognormal(0, 0.4, 60)).tolist(),
    }
    sample, labels = stratal.Sample.from_labelled(table, value="right", weight="weight", population_size=900)
    table["weight"] = (np.array(table["weight"]) / factor).tolist()
    other, again = stratal.Sample.from_labelled(table, value="right", weight="weight", population_size=900)

    same(stratal.estimate(sample, labels), stratal.estimate(other, again))


@settings(max_examples=sized(3, 40))
@given(seed=SEEDS, answered=st.sampled_from([1.0, 0.8]))
def test_strata_of_one_sampling_fraction_may_be_merged(seed, answered):
    """A stratum split at random in two that are labelled alike: the value is that of the whole."""
    world = World.of(seed)
    labelled = world.labels(DESIGNS["simple random"](world.population(), seed), world.right, answered)
    values = list(labelled.values())
    half = len(values) // 2 * 2
    table = {"z": values[:half], "stratum": ["a", "b"] * (half // 2)}
    split = stratal.Sample.from_labelled(table, value="z", stratum="stratum", sizes={"a": 120, "b": 120})
    whole = stratal.Sample.from_labelled(table, value="z", population_size=240)

    assert stratal.estimate(*split).value == pytest.approx(stratal.estimate(*whole).value)
