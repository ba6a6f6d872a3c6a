"""A difference of models with their proxies: that of `compare`, also beside strata without labels."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import cells, sized

import stratal
from stratal import estimands
from stratal.estimands import Difference, WinRate

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


def sample_of(truth, stratified):
    population = population_of(truth, truth["p"], truth["q"])
    design = "stratified" if stratified else "simple-random"
    return stratal.plan(population, 120, proxy="p", n_strata=4).using(design).draw(seed=3)


@pytest.mark.parametrize("stratified", [False, True])
def test_it_is_the_difference_of_compare(truth, stratified):
    sample = sample_of(truth, stratified)
    estimate = stratal.estimate(sample, ["right"] * 120, estimand=ASKED)
    outcomes = {name: truth[name][sample.ids] * 1.0 for name in ("new", "old")}
    pair = stratal.compare(sample, outcomes, proxies={"new": "p", "old": "q"})[0]
    plain = stratal.estimate(sample, ["right"] * 120, estimand="difference:new,old")

    assert estimate.value == pytest.approx(pair.value, rel=1e-12)
    assert estimate.standard_error == pytest.approx(pair.standard_error, rel=1e-12)
    assert [*estimate.confidence_interval()] == pytest.approx([*pair.confidence_interval()], rel=1e-12)
    assert estimate.estimator == "ppi++"
    assert estimate.value != plain.value


def test_proxies_that_know_all_leave_no_error_beside_strata_without_labels(truth):
    population = population_of(truth, truth["new"] * 1.0, truth["old"] * 1.0)
    sample = stratal.plan(population, 60, estimand=Difference(("new", "old"))).draw(seed=2)
    estimate = stratal.estimate(sample, ["right"] * 60, estimand=ASKED)

    assert sample.design.strata.is_known.any()
    assert estimate.value == pytest.approx(truth["new"].mean() - truth["old"].mean(), abs=1e-4)
    assert estimate.standard_error < 1e-3
    assert estimate.population_size == 3000


def test_few_labels_fit_no_weight(truth):
    sample = stratal.designs.SimpleRandom(budget=40).draw(
        population_of(truth, truth["p"], truth["q"]), seed=1
    )

    assert stratal.estimate(sample, ["right"] * 40, estimand=ASKED).estimator == "horvitz-thompson"


def test_what_is_left_of_the_error_covers(truth):
    """300 samples: mean squared error as stated, and below that without the proxies."""
    population = population_of(truth, truth["p"], truth["q"])
    value = truth["new"].mean() - truth["old"].mean()
    errors, stated, plain, covered = [], [], [], 0
    for seed in range(300):
        sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=seed)
        estimate = stratal.estimate(sample, ["right"] * 100, estimand=ASKED)
        low, high = estimate.confidence_interval()
        errors.append(estimate.value - value)
        stated.append(estimate.standard_error**2)
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


def asked_with(kind):
    return estimands.Estimand.parse_text(f"{kind}:new,old,proxies=p+q"), f"{kind}:new,old"


@pytest.mark.parametrize("stratified", [False, True])
def test_the_win_rate_of_right_and_wrong_with_proxies_is_half_the_difference(truth, stratified):
    sample = sample_of(truth, stratified)
    difference = stratal.estimate(sample, ["right"] * 120, estimand=ASKED)
    wins = stratal.estimate(sample, ["right"] * 120, estimand=WinRate(("new", "old"), ("p", "q")))

    assert wins.estimator == "ppi++"
    assert wins.value == pytest.approx(0.5 + difference.value / 2, abs=1e-12)
    assert wins.standard_error == pytest.approx(difference.standard_error / 2)
    assert [*wins.confidence_interval()] == pytest.approx(
        [0.5 + end / 2 for end in difference.confidence_interval()], abs=1e-12
    )
    assert wins.p_value(0.5) == pytest.approx(difference.p_value(0.0), abs=1e-9)


def test_wins_with_proxies_beside_strata_without_labels_are_half_the_difference(truth):
    population = population_of(truth, truth["p"], truth["q"])
    sample = stratal.plan(population, 80, estimand=Difference(("new", "old"))).draw(seed=2)
    difference = stratal.estimate(sample, ["right"] * 80, estimand=ASKED)
    wins = stratal.estimate(sample, ["right"] * 80, estimand=WinRate(("new", "old"), ("p", "q")))

    assert sample.design.strata.is_known.any()
    assert wins.value == pytest.approx(0.5 + difference.value / 2, abs=1e-12)
    assert [*wins.confidence_interval()] == pytest.approx(
        [0.5 + end / 2 for end in difference.confidence_interval()], abs=1e-12
    )


@pytest.mark.parametrize("labels", [40, 50])
def test_few_labels_leave_the_proxies_out(truth, labels):
    sample = stratal.designs.SimpleRandom(budget=labels).draw(
        population_of(truth, truth["p"], truth["q"]), seed=1
    )
    found, plain = (
        stratal.estimate(sample, ["right"] * labels, estimand=way) for way in asked_with("win_rate")
    )

    assert (found.value == plain.value) == (labels < 50)


@pytest.mark.parametrize("graded", cells([False, True], fast=(True,)))
def test_what_the_proxies_leave_of_wins_covers(truth, graded):
    """Samples of 60: narrower than without proxies, and as many intervals hold."""
    samples = sized(60, 300)
    population = population_of(truth, truth["p"], truth["q"])
    new, old = truth["new"] * 1.0, truth["old"] * 1.0
    if graded:
        new, old = (np.round(2 * (z + chance)) / 4 for z, chance in ((new, truth["p"]), (old, truth["q"])))
    value = np.mean(0.5 + 0.5 * np.sign(new - old))
    held, widths = np.zeros((2, samples)), np.zeros((2, samples))
    for seed in range(samples):
        sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=seed)
        labels = {"new": new[sample.ids], "old": old[sample.ids]}
        for way, asked in enumerate(asked_with("win_rate")):
            low, high = stratal.estimate(sample, labels, estimand=asked).confidence_interval()
            held[way, seed], widths[way, seed] = low <= value <= high, high - low

    assert held[0].mean() > 0.95 - 3 * np.sqrt(0.95 * 0.05 / samples)
    assert widths[0].mean() < 0.97 * widths[1].mean()


@pytest.mark.parametrize("kind", ["difference", "win_rate"])
def test_strata_that_were_made_of_the_proxies_leave_nothing_to_fit(truth, kind):
    """A λ fitted on a handful of labels in each of a dozen strata made intervals up to 1.9 times as wide."""
    population = population_of(truth, truth["p"], truth["q"])
    asked, plain = asked_with(kind)
    rated = stratal.Population.from_arrays(proxy={"p": truth["p"], "q": truth["q"]})
    sample = stratal.plan(rated, 60, estimand=asked).draw(seed=3)
    labels = {name: truth[name][sample.ids] * 1.0 for name in ("new", "old")}
    found, without = (stratal.estimate(sample, labels, estimand=way) for way in (asked, plain))

    assert len(sample.summary.sizes) > 5
    assert found.value == without.value
    assert [*found.confidence_interval()] == [*without.confidence_interval()]
    other = stratal.designs.SimpleRandom(budget=60).draw(population, seed=3)
    assert stratal.estimate(other, ["right"] * 60, estimand=asked).value != pytest.approx(
        stratal.estimate(other, ["right"] * 60, estimand=plain).value
    )


def test_strata_of_something_else_leave_the_proxies(truth):
    groups = {"half": np.where(np.arange(3000) % 2, "odd", "even")}
    population = stratal.Population.from_arrays(proxy={"p": truth["p"], "q": truth["q"]}, groups=groups)
    sample = stratal.plan(population, 100, method="category", by="half", n_strata=2).draw(seed=3)
    labels = {name: truth[name][sample.ids] * 1.0 for name in ("new", "old")}

    assert len(sample.summary.sizes) == 2
    assert stratal.estimate(sample, labels, estimand=ASKED).estimator == "ppi++"
    pair = stratal.compare(sample, labels, proxies={"new": "p", "old": "q"})[0]
    assert pair.value != pytest.approx(stratal.compare(sample, labels)[0].value)


def test_compare_fits_nothing_in_strata_that_were_made_of_the_proxies(truth):
    rated = stratal.Population.from_arrays(proxy={"p": truth["p"], "q": truth["q"]})
    sample = stratal.plan(rated, 60, estimand=ASKED).draw(seed=3)
    labels = {name: truth[name][sample.ids] * 1.0 for name in ("new", "old")}

    with_proxies = stratal.compare(sample, labels, proxies={"new": "p", "old": "q"})
    assert with_proxies.rows() == stratal.compare(sample, labels).rows()
