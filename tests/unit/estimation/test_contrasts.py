"""A difference of models with their proxies: that of `compare`, also beside strata without labels."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.estimands import Difference

ASKED = Difference(("new", "old"), ("p", "q"))


@pytest.fixture(scope="module")
def truth():
    """Two models, right with chances of which the proxies know."""
    rng = np.random.default_rng(5)
    p = rng.beta(3, 1, 3000)
    q = np.clip(p + rng.normal(0, 0.25, 3000), 0.02, 0.98)
    new = rng.random(3000) < p
    old = np.where(rng.random(3000) < 0.5, new, rng.random(3000) < q)
    return {"p": p, "q": q, "new": new, "old": old}


def population_of(truth, p, q):
    answers = {name: np.where(truth[name], "right", "wrong") for name in ("new", "old")}
    return stratal.Population.from_arrays(proxy={"p": p, "q": q}, groups=answers)


@pytest.mark.parametrize("stratified", [False, True])
def test_it_is_the_difference_of_compare(truth, stratified):
    """Up to λ, which the rule for means draws a little to a calibrated proxy's: far below the error."""
    population = population_of(truth, truth["p"], truth["q"])
    design = stratal.plan(population, 120, proxy="p", n_strata=4).using(
        "stratified" if stratified else "simple-random"
    )
    sample = design.draw(seed=3)
    found = stratal.estimate(sample, ["right"] * 120, estimand=ASKED)
    outcomes = {name: truth[name][sample.ids] * 1.0 for name in ("new", "old")}
    row = stratal.compare(sample, outcomes, proxies={"new": "p", "old": "q"}).rows[0]
    plain = stratal.estimate(sample, ["right"] * 120, estimand="difference:new,old")

    assert found.value == pytest.approx(row["difference"], abs=0.01 * row["standard_error"])
    assert found.standard_error == pytest.approx(row["standard_error"], rel=0.01)
    assert [*found.confidence_interval()] == pytest.approx(
        row["confidence_interval"], abs=0.03 * row["standard_error"]
    )
    assert found.estimator == "ppi++"
    assert found.value != plain.value


def test_proxies_that_know_all_leave_no_error_beside_strata_without_labels(truth):
    population = population_of(truth, truth["new"] * 1.0, truth["old"] * 1.0)
    sample = stratal.plan(population, 60, estimand=Difference(("new", "old"))).draw(seed=2)
    found = stratal.estimate(sample, ["right"] * 60, estimand=ASKED)

    assert sample.design.strata.is_known.any()
    assert found.value == pytest.approx(truth["new"].mean() - truth["old"].mean(), abs=1e-4)
    assert found.standard_error < 1e-3
    assert found.population_size == 3000


def test_few_labels_fit_no_weight(truth):
    sample = stratal.SimpleRandom(budget=40).draw(population_of(truth, truth["p"], truth["q"]), seed=1)

    assert stratal.estimate(sample, ["right"] * 40, estimand=ASKED).estimator == "horvitz-thompson"


def test_what_is_left_of_the_error_covers(truth):
    """300 samples: mean squared error as stated, and below that without the proxies."""
    population = population_of(truth, truth["p"], truth["q"])
    value = truth["new"].mean() - truth["old"].mean()
    errors, stated, plain, covered = [], [], [], 0
    for seed in range(300):
        sample = stratal.SimpleRandom(budget=100).draw(population, seed=seed)
        found = stratal.estimate(sample, ["right"] * 100, estimand=ASKED)
        low, high = found.confidence_interval()
        errors.append(found.value - value)
        stated.append(found.standard_error**2)
        plain.append(stratal.estimate(sample, ["right"] * 100, estimand="difference:new,old").value - value)
        covered += low <= value <= high

    assert np.mean(np.square(errors)) < np.mean(np.square(plain))
    assert np.mean(stated) == pytest.approx(np.mean(np.square(errors)), rel=4 * np.sqrt(2 / 300))
    assert covered / 300 > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300)


def test_a_ratio_minds_no_unseen_pair_where_both_answer_alike():
    """Two labels of two thirds of the units that both answer alike made the interval eight times too wide."""
    rng = np.random.default_rng(1)
    right = rng.choice(list("abcd"), 3000)
    new = np.where(rng.random(3000) < 0.75, right, rng.choice(list("abcd"), 3000))
    old = np.where(rng.random(3000) < 0.7, right, rng.choice(list("abcd"), 3000))
    population = stratal.Population.from_arrays(groups={"new": new, "old": old})
    plan = stratal.plan(population, 100, estimand="ratio:new,old")
    value = np.mean(new == right) / np.mean(old == right)
    found = []
    for seed in range(150):
        sample = plan.draw(seed)
        low, high = stratal.estimate(sample, right[sample.ids]).confidence_interval()
        found.append((low <= value <= high, (high - low) / 2))
    covered, widths = np.array(found).T

    assert covered.mean() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 150)
    assert np.median(widths) < 1.2 * plan.expected_half_width
