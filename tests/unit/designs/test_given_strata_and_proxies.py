"""A proxy of a table from elsewhere: within strata that the user named, and in groups."""

from __future__ import annotations

import numpy as np
import pytest

import stratal

GROUPS = ("code", "maths", "prose")


def tables(seed=3, units=1500, labels=100, correlation=True):
    """Three groups of different rates, and a judge that is right about the outcome in 88 %."""
    rng = np.random.default_rng(seed)
    group = np.repeat(GROUPS, units)
    truth = (rng.random(3 * units) < np.repeat([0.4, 0.6, 0.8], units)).astype(float)
    judge = np.where(rng.random(3 * units) < 0.88, truth, 1.0 - truth)
    if not correlation:
        judge = (rng.random(3 * units) < 0.5) * 1.0
    ids = np.arange(3 * units)
    chosen = np.concatenate([rng.choice(ids[group == name], labels, replace=False) for name in GROUPS])
    population = {"id": ids, "group": group, "half": np.where(ids % 2 == 0, "even", "odd"), "judge": judge}
    labelled = {name: values[chosen] for name, values in population.items()} | {"right": truth[chosen]}
    return population, labelled, truth


def test_auto_uses_the_proxy_within_strata_that_the_user_named():
    population, labelled, truth = tables()
    sample, labels = stratal.Sample.from_labelled(
        labelled, value="right", stratum="group", proxy="judge", population=population
    )
    auto = stratal.estimate(sample, labels)
    plain = stratal.estimate(sample, labels, estimator="horvitz-thompson")

    assert auto.estimator == "ppi++"
    low, high = auto.confidence_interval()
    without = plain.confidence_interval()
    assert high - low < 0.85 * (without.high - without.low)
    assert low <= truth.mean() <= high


def test_few_labels_in_many_strata_use_no_proxy():
    population, labelled, _ = tables(labels=17)
    sample, labels = stratal.Sample.from_labelled(
        labelled, value="right", stratum="group", proxy="judge", population=population
    )
    assert stratal.estimate(sample, labels).estimator == "horvitz-thompson"


@pytest.mark.parametrize("by", ["group", "half"])
@pytest.mark.parametrize("stratum", ["group", None])
def test_groups_use_the_proxy_means_of_the_population(by, stratum):
    population, labelled, _ = tables()
    sample, labels = stratal.Sample.from_labelled(
        labelled,
        value="right",
        stratum=stratum,
        proxy="judge",
        population=population,
        groups=("group", "half"),
    )
    judge = population["judge"]
    for name, means in sample.means_of_levels[by].items():
        assert means == [pytest.approx(judge[population[by] == name].mean())]
    auto = stratal.estimate(sample, labels, by=by)
    plain = stratal.estimate(sample, labels, by=by, estimator="horvitz-thompson")
    widths = [np.mean([row.confidence_interval().high - row.confidence_interval().low for row in found])
              for found in (auto, plain)]  # fmt: skip
    assert {row.estimator for row in auto} == {"ppi++"}
    assert widths[0] < 0.9 * widths[1]


def test_rows_without_a_label_are_the_other_units_of_a_group():
    population, labelled, _ = tables()
    right = np.full(len(population["id"]), None, dtype=object)
    right[labelled["id"]] = labelled["right"]
    sample, labels = stratal.Sample.from_labelled(
        population | {"right": right}, value="right", stratum="group", proxy="judge", groups=("half",)
    )
    expected = population["judge"][population["half"] == "odd"].mean()
    assert sample.means_of_levels["half"]["odd"] == [pytest.approx(expected)]
    assert {row.estimator for row in stratal.estimate(sample, labels, by="half")} == {"ppi++"}


def test_a_population_without_the_groups_says_so():
    population, labelled, _ = tables()
    del population["half"]
    sample, labels = stratal.Sample.from_labelled(
        labelled, value="right", stratum="group", proxy="judge", population=population, groups=("half",)
    )
    found = stratal.estimate(sample, labels, by="half", estimator="ppi++")
    assert any("lacks a group column" in note for note in labels.notes)
    assert any("used no proxy in the groups" in note for note in found.notes)


def drawn_in(method: str, budget: int, levels: int = 3) -> tuple[stratal.Sample, np.ndarray]:
    """Return a sample of strata made in this way, and the outcomes of all units."""
    rng = np.random.default_rng(3)
    truth = (rng.random(3000) < 0.6) * 1.0
    judge = np.where(rng.random(3000) < 0.88, truth, 1.0 - truth)
    kind = (np.arange(3000) % levels).astype(str)
    population = stratal.Population.from_arrays(proxy=judge, groups={"kind": kind})
    by = "kind" if method == "category" else None
    strata = stratal.strata.stratify(population, method, by=by)
    allocation = stratal.strata.allocate(strata, budget, "proportional")
    design = stratal.designs.Stratified(strata=strata, allocation=allocation)
    return design.draw(population, seed=5), truth


@pytest.mark.parametrize(
    ("method", "budget", "levels", "estimator"),
    [
        ("category", 150, 3, "ppi++"),
        ("none", 150, 3, "ppi++"),
        ("k-means", 150, 3, "horvitz-thompson"),
        ("category", 51, 3, "horvitz-thompson"),
        ("category", 120, 60, "horvitz-thompson"),
        ("category", 180, 60, "ppi++"),
    ],
)
def test_auto_fits_lambda_within_strata_that_were_not_cut_on_the_proxy(method, budget, levels, estimator):
    sample, truth = drawn_in(method, budget, levels)
    assert stratal.estimate(sample, truth[sample.ids]).estimator == estimator


def test_lambda_in_a_drawn_category_makes_the_interval_narrower():
    sample, truth = drawn_in("category", 300)
    found = stratal.estimate(sample, truth[sample.ids]).confidence_interval()
    plain = stratal.estimate(sample, truth[sample.ids], estimator="horvitz-thompson").confidence_interval()
    assert found.width < 0.8 * plain.width
    assert truth.mean() in found
