"""Simulations of estimands other than the mean."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import InputError
from stratal.planning.plan import Plan


@pytest.fixture
def labelled():
    rng = np.random.default_rng(3)
    truth = rng.random(2000) < 0.05
    score = np.where(truth, rng.beta(5, 2, 2000), rng.beta(1, 15, 2000))
    population = stratal.Population.from_arrays(
        proxy={"score": score},
        groups={"answer": np.where(score > 0.5, "match", "other")},
        predicted="answer",
    )
    return population, np.where(truth, "match", "other")


def test_a_plan_for_f1_is_seen_to_save_labels(labelled):
    population, truth = labelled
    designs, replicates = ["simple-random", "planned", "two-round"], sized(15, 60)
    table = stratal.simulate(
        population,
        truth,
        designs=designs,
        budgets=[150],
        replicates=replicates,
        seed=1,
        estimand="f1:match,probability=score",
    )
    answer = next(population.batches(("answer",)))["answer"] == "match"
    found = truth == "match"

    assert table["design"].tolist() == designs
    assert table["truth"][0] == pytest.approx(2 * np.sum(answer & found) / np.sum(answer.astype(int) + found))
    assert table["relative_efficiency"][0] == 1.0
    assert np.all(table["relative_efficiency"][1:] > 2)
    assert np.all(table["coverage"] > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / replicates))
    assert "f1:match" in str(table)


def test_the_same_seed_gives_the_same_table(labelled):
    population, truth = labelled
    given = {
        "designs": ["planned"],
        "budgets": [60],
        "replicates": 5,
        "seed": 4,
        "estimand": "f1:match,probability=score",
    }
    assert stratal.simulate(population, truth, **given) == stratal.simulate(population, truth, **given)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"designs": ["equal-size:4:opt-a1"]}, "allocation '(opt-a1|oracle)'"),
        ({"designs": ["equal-size:4:oracle"]}, "allocation '(opt-a1|oracle)'"),
        ({"estimators": ["hajek"]}, "does not accept estimators="),
        ({"intervals": ["t"]}, "does not accept intervals="),
        ({"bounds": (0, 1)}, "does not accept bounds="),
        ({"proxy": "score"}, "does not accept proxy="),
        ({"with_replacement": True}, "does not accept with_replacement="),
        ({"stratum_weights_known": False}, "does not accept stratum_weights_known="),
        ({"estimand": "f1:match;recall:match"}, "one estimand"),
    ],
)
def test_what_cannot_be_simulated_is_refused(labelled, changed, message):
    population, truth = labelled
    given = {"designs": ["planned"], "budgets": [60], "replicates": 2, "estimand": "f1:match"} | changed
    with pytest.raises(InputError, match=message):
        stratal.simulate(population, truth, **given)


def test_units_with_ids_of_their_own_are_refused(labelled):
    _, truth = labelled
    named = stratal.Population.from_arrays(
        groups={"answer": truth}, predicted="answer", ids=[f"u{i}" for i in range(2000)]
    )
    with pytest.raises(InputError, match="numbered by row"):
        stratal.simulate(named, truth, designs=["planned"], budgets=[60], replicates=2, estimand="f1:match")


def test_the_mean_is_simulated_by_its_plan_too():
    rng = np.random.default_rng(1)
    proxy = rng.beta(3, 1, 1000)
    z = (rng.random(1000) < proxy) * 1.0
    population = stratal.Population.from_arrays(proxy=proxy)
    table = stratal.simulate(
        population, z, designs=["simple-random", "planned", "two-round"], budgets=[80], replicates=10,
        estimand="mean",
    )  # fmt: skip

    assert table["design"].tolist() == ["simple-random", "planned", "two-round"]
    assert table["truth"][0] == pytest.approx(z.mean())


def test_means_and_metrics_share_designs_workers_and_stores(labelled, tmp_path):
    """A metric is simulated under strata, a mean under its plan, and both in one store of cells."""
    population, truth = labelled
    given = {"designs": ["simple-random", "k-means:3:robust"], "budgets": [60, 90], "replicates": 5}
    metric = {"estimand": "f1:match,probability=score", "store": tmp_path / "cells.parquet"} | given
    first = stratal.simulate(population, truth, **metric)
    again = stratal.simulate(population, truth, **metric, workers=2)
    other = stratal.simulate(population, np.roll(truth, 1), **metric)
    z = (truth == "match") * 1.0
    mean = stratal.simulate(population, z, **given | {"designs": ["simple-random", "planned"]})

    assert first == again
    assert first != other
    assert first["n_strata"].tolist() == [1, 1, 3, 3]
    assert first["relative_efficiency"][:2].tolist() == [1.0, 1.0]
    assert mean["estimator"].tolist() == ["horvitz-thompson"] * 4
    assert mean["truth"][0] == pytest.approx(z.mean())


@pytest.mark.parametrize("estimand", ["coefficient:x", None])
def test_a_replicate_whose_labels_all_agree_has_an_interval_without_width(estimand):
    """Some tenth of the samples of 25 units hold none of the 9 % that are not 0."""
    x = np.random.default_rng(5).normal(size=400)
    population = stratal.Population.from_arrays(proxy=x, features={"x": x})
    outcome = np.where(np.arange(400) % 11 == 0, 7.0 + x, 0.0)
    given = {"designs": ["simple-random" if estimand else "poisson:equal"], "budgets": [25], "replicates": 60}
    table = stratal.simulate(population, outcome, seed=2, estimand=estimand, **given)

    assert 0.3 < table["coverage"][0] < 1.0
    assert table["width"][0] > 0


@pytest.mark.parametrize(
    ("estimand", "budget"),
    [
        ("f1:match,probability=score", 150),  # in some replicates all labels agree with the answers
        ("f1:match,probability=score", 40),
        ("recall:match,probability=score", 200),
        ("precision:match,probability=score", 60),  # a function of one rate, whose other strata have no label
        ("specificity:match,probability=score", 60),
        ("fbeta:match,probability=score,beta=2", 60),
    ],
)
def test_replicates_of_a_class_are_those_of_single_samples(labelled, estimand, budget):
    population, truth = labelled
    replicates = sized(10, 200)
    options = {"designs": ["planned"], "budgets": [budget], "replicates": replicates, "seed": 6}
    table = stratal.simulate(population, truth, estimand=estimand, **options)
    plan = stratal.plan(population, budget, estimand=estimand)
    seeds = np.random.SeedSequence(6).generate_state(replicates, np.uint64).tolist()
    samples = [plan.draw(seed) for seed in seeds]
    estimates = [stratal.estimate(sample, truth[sample.ids], target="population") for sample in samples]
    intervals = [estimate.confidence_interval(0.95) for estimate in estimates]
    ends = np.array([(interval.low, interval.high) for interval in intervals])
    values = np.array([estimate.value for estimate in estimates])
    census = table["truth"][0]

    assert table["mse"][0] == pytest.approx(np.mean((values - census) ** 2), rel=1e-9, abs=1e-15)
    variances = [estimate.standard_error**2 for estimate in estimates]
    assert table["estimated_variance"][0] == pytest.approx(np.mean(variances), rel=1e-9)
    assert table["width"][0] == pytest.approx(np.mean(ends[:, 1] - ends[:, 0]), rel=1e-9)
    assert table["coverage"][0] == np.mean((ends[:, 0] <= census) & (census <= ends[:, 1]))


def test_most_replicates_of_a_class_need_no_sample(labelled, monkeypatch):
    """Only labels that all agree with the answers are estimated by themselves."""
    population, truth = labelled
    samples = []
    draw = Plan.draw

    def counted_draw(plan, seed):
        samples.append(seed)
        return draw(plan, seed)

    monkeypatch.setattr(Plan, "draw", counted_draw)
    stratal.simulate(
        population, truth, designs=["planned"], budgets=[150], replicates=40, seed=6,
        estimand="f1:match,probability=score",
    )  # fmt: skip

    assert 0 < len(samples) < 20
