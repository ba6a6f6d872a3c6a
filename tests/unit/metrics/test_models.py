"""Several models: where their answers are the same, nothing has to be labelled."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.estimands import Difference, Estimand, Ratio

CLASSES = np.array(["cat", "dog", "owl"])


@pytest.fixture
def pool():
    rng = np.random.default_rng(21)
    truth = rng.integers(0, 3, 900)
    new = np.where(rng.random(900) < 0.8, truth, rng.integers(0, 3, 900))
    old = np.where(rng.random(900) < 0.85, new, rng.integers(0, 3, 900))
    sure = np.clip(rng.normal(0.7, 0.15, (2, 900)), 0, 1)
    population = stratal.Population.from_arrays(
        proxy={"p": sure[0], "q": sure[1]},
        groups={"new": CLASSES[new], "old": CLASSES[old], "third": CLASSES[rng.integers(0, 3, 900)]},
    )
    return population, CLASSES[truth]


def drawn(population, text, budget=80, seed=5):
    influence = Estimand.parse_text(text).influence(population)
    strata = stratal.strata.stratify(population, "neyman", 3, influence=influence)
    return stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, budget)).draw(
        population, seed
    )


def truth_of(sample, truth):
    return {int(unit): str(truth[unit]) for unit in sample.ids}


@pytest.mark.parametrize("text", ["difference:new,old", "difference:new,old,proxies=p+q", "win_rate:new,old"])
def test_only_units_that_the_models_answer_differently_are_drawn(pool, text):
    population, truth = pool
    sample = drawn(population, text)

    assert np.all(sample.groups["new"] != sample.groups["old"])
    estimate = stratal.estimate(sample, truth_of(sample, truth), estimand=text)
    low, high = estimate.confidence_interval()
    assert low < estimate.value < high


@pytest.mark.parametrize("text", ["difference:new,old", "win_rate:new,old"])
def test_labels_of_all_units_that_differ_know_the_answer_exactly(pool, text):
    population, truth = pool
    columns = next(population.batches(("new", "old")))
    right = [(columns[name] == truth).astype(float) for name in ("new", "old")]
    differ = int(np.sum(columns["new"] != columns["old"]))
    wins = float(np.mean((right[0] > right[1]) + 0.5 * (right[0] == right[1])))
    expected = wins if text.startswith("win") else float(np.mean(right[0] - right[1]))

    sample = drawn(population, text, budget=differ)
    estimate = stratal.estimate(sample, truth_of(sample, truth), estimand=text)

    assert estimate.value == pytest.approx(expected, abs=1e-12)
    assert estimate.standard_error == 0.0
    np.testing.assert_allclose([*estimate.confidence_interval()], [expected, expected], atol=1e-12)


def test_the_interval_lies_within_what_the_units_that_differ_allow(pool):
    population, truth = pool
    sample = drawn(population, "difference:new,old", budget=4)
    columns = next(population.batches(("new", "old")))
    share = float(np.mean(columns["new"] != columns["old"]))
    low, high = stratal.estimate(
        sample, truth_of(sample, truth), estimand="difference:new,old"
    ).confidence_interval()

    assert -share <= low < high <= share


def test_a_ratio_needs_labels_everywhere(pool):
    population, truth = pool
    estimand = Ratio(("new", "old"))

    assert estimand.influence(population).known_cells == ()
    sample = drawn(population, estimand.text, budget=200)
    labels = truth_of(sample, truth)
    z = {
        name: {k: float(v == sample.groups[name][i]) for i, (k, v) in enumerate(labels.items())}
        for name in ("new", "old")
    }
    (ratio,) = stratal.compare(sample, z).ratios
    estimate = stratal.estimate(sample, labels, estimand=estimand)

    assert estimate.value == pytest.approx(ratio.value, rel=1e-12)
    np.testing.assert_allclose([*estimate.confidence_interval()], [*ratio.confidence_interval()], rtol=1e-9)


@pytest.mark.parametrize("design", ["simple random", "strata"])
def test_the_intervals_are_those_of_compare(pool, design):
    population, truth = pool
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=5)
    if design == "strata":
        sample = drawn(population, "ratio:new,old", budget=40)
    labels = truth_of(sample, truth)
    right = {
        name: {unit: float(labels[unit] == sample.groups[name][i]) for i, unit in enumerate(labels)}
        for name in ("new", "old")
    }
    compared = stratal.compare(sample, right)

    for kind, pair in (("difference", compared[0]), ("win_rate", compared.win_rates[0])):
        found, ends = stratal.estimate(sample, labels, estimand=f"{kind}:new,old"), pair.limits()
        assert [*found.confidence_interval()] == pytest.approx(ends, abs=1e-12)
        null = {"difference": 0.0, "win_rate": 0.5}[kind]
        assert (found.p_value(null) < 0.05) == (not ends[0] <= null <= ends[1])
        assert found.confidence_interval(method="t").method == "t"


def test_units_that_are_answered_alike_shrink_an_interval_as_they_do_the_value(pool):
    population, truth = pool
    sample = drawn(population, "win_rate:new,old", budget=60)
    labels = truth_of(sample, truth)
    columns = next(population.batches(("new", "old")))
    share = float(np.mean(columns["new"] != columns["old"]))
    estimate = stratal.estimate(sample, labels, estimand="win_rate:new,old")
    difference = stratal.estimate(sample, labels, estimand="difference:new,old")

    low, high = estimate.confidence_interval()
    assert estimate.value == pytest.approx(0.5 + difference.value / 2, abs=1e-12)
    assert 0.5 - share / 2 <= low < estimate.value < high <= 0.5 + share / 2


def test_differences_of_outcomes_beyond_one_have_an_interval():
    population = stratal.Population.from_arrays(ids=np.arange(500))
    sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=5)
    rng = np.random.default_rng(4)
    stars = {"a": rng.integers(1, 6, 30) * 1.0, "b": rng.integers(1, 6, 30) * 1.0}
    estimate = stratal.estimate(sample, stars, estimand="difference:a,b")
    pair = stratal.compare(sample, stars)[0]

    assert estimate.outcome == "unbounded"
    assert [*estimate.confidence_interval()] == pytest.approx([*pair.confidence_interval()], rel=1e-12)


def test_outcomes_of_each_model_do_in_place_of_answers():
    rng = np.random.default_rng(2)
    population = stratal.Population.from_arrays(proxy={"a": rng.random(200), "b": rng.random(200)})
    sample = drawn(population, "difference:a,b", budget=60)
    outcomes = {name: rng.random(60) for name in ("a", "b")}
    estimate = stratal.estimate(sample, outcomes, estimand="difference:a,b")

    assert estimate.value == pytest.approx(stratal.compare(sample, outcomes)[0].value, rel=1e-12)


def test_the_moments_are_those_of_who_may_be_right(pool):
    population, _ = pool
    mean, square, cells = Difference(("new", "old"), ("p", "q")).influence(population).moments(population)
    columns = next(population.batches(("p", "q", "new", "old")))
    both = np.maximum(columns["p"] + columns["q"], 1.0)
    differ = columns["new"] != columns["old"]

    np.testing.assert_allclose(mean, np.where(differ, (columns["p"] - columns["q"]) / both, 0.0), atol=1e-12)
    np.testing.assert_allclose(
        square, np.where(differ, (columns["p"] + columns["q"]) / both, 0.0), atol=1e-12
    )
    assert set(cells[differ]) == {"different answers"}


def test_another_estimand_is_refused_where_it_is_not_identified(pool):
    population, truth = pool
    sample = drawn(population, "difference:new,old")
    labels = truth_of(sample, truth)

    assert stratal.estimate(sample, labels, estimand="win_rate:new,old").value > 0
    for text in ("ratio:new,old", "accuracy:predicted=new", "difference:new,third"):
        with pytest.raises(InputError, match="this sample cannot be used for this estimate"):
            stratal.estimate(sample, labels, estimand=text)
    with pytest.raises(InputError, match="known only for this population"):
        stratal.estimate(sample, labels, estimand="difference:new,old", target="superpopulation")


def test_labels_that_tell_nothing_of_the_models_are_refused(pool):
    population, _ = pool
    sample = stratal.designs.SimpleRandom(budget=5).draw(population, seed=1)
    with pytest.raises(InputError, match="labels must give the outcome of every model"):
        stratal.estimate(sample, [1.0] * 5, estimand="difference:one,two")
