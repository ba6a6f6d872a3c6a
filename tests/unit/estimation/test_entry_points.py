from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from tests.work import calls

import stratal
from stratal.errors import BudgetError, InputError, LabelError, StratalWarning
from stratal.estimation.requirement import assess_requirements
from stratal.estimation.stratum_table import StratumTable
from stratal.report.estimates import answer_page


def stratified(population, budget=100, seed=7, n_strata=5, method="k-means"):
    strata = stratal.strata.stratify(population, method, n_strata)
    design = stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, budget))
    return design.draw(population, seed)


def revealed(sample, truth):
    return {name: truth[name] for name in sample.ids.tolist()}


def test_horvitz_thompson_is_the_weighted_sum_of_stratum_means(population, truth):
    sample = stratified(population)
    z = np.array([truth[name] for name in sample.ids.tolist()])
    weights = sample.summary.sizes / 500
    by_hand = sum(weights[h] * z[sample.stratum == h].mean() for h in range(5))

    result = stratal.estimate(sample, revealed(sample, truth), estimator="horvitz-thompson")

    assert result.value == pytest.approx(by_hand, abs=1e-12)


def test_a_census_is_exact(population, truth):
    sample = stratal.designs.SimpleRandom(budget=500).draw(population, seed=1)
    exact = np.mean(list(truth.values()))

    for estimator in ("horvitz-thompson", "difference", "ppi++", "stratppi"):
        result = stratal.estimate(sample, truth, estimator=estimator, target="population")
        low, high = result.confidence_interval()
        assert result.value == pytest.approx(exact, abs=1e-12)
        assert result.standard_error == pytest.approx(0, abs=1e-9)
        assert (low, high) == pytest.approx((exact, exact), abs=1e-9)


def test_the_target_of_a_census_is_the_superpopulation_unless_stated(population, truth):
    sample = stratal.designs.SimpleRandom(budget=500).draw(population, seed=1)
    estimate = stratal.estimate(sample, truth)
    stated = stratal.estimate(sample, truth, target="superpopulation")
    low, high = estimate.confidence_interval()

    assert estimate.target == "superpopulation"
    assert [*estimate.confidence_interval()] == [*stated.confidence_interval()]
    assert low < estimate.value < high
    assert "all 500 units are labelled" in str(answer_page(estimate.to_dict()).lines[0])
    items = stratal.estimate(sample, truth, target="population")
    assert "exact for these 500 units" in answer_page(items.to_dict()).lines[0]
    page = answer_page(items.to_dict() | {"requirements": assess_requirements(items, ["value>=.1"])})
    assert "Required value>=0.1: PASS, exactly for these 500 units." in page.lines
    partial = {name: None if name == next(iter(truth)) else value for name, value in truth.items()}
    assert stratal.estimate(sample, partial).target == "population"
    several = stratal.estimate(sample, truth, estimand=["mean", "mean"])
    assert {row.target for row in several} == {"superpopulation"}
    models = {"a": truth, "b": {name: 1 - value for name, value in truth.items()}}
    assert stratal.compare(sample, models)[0].target == "superpopulation"
    assert stratal.compare(sample, models, target="population")[0].target == "population"


def test_a_stratum_without_labels_is_merged_and_said_so(population, truth):
    sample = stratified(population)
    labels = {
        name: truth[name]
        for name, h in zip(sample.ids.tolist(), sample.stratum.tolist(), strict=True)
        if h != 2
    }
    # The labels of a whole stratum are missing, and so depend on the proxy too.
    with pytest.warns(StratalWarning), pytest.warns(StratalWarning, match="1 stratum has no label"):
        result = stratal.estimate(sample, labels, estimator="difference")

    assert len(result.strata) == 4
    assert sum(row.size for row in result.strata) == 500
    assert 0.5 < result.value < 1


def test_class_labels_are_compared_with_the_models_answers():
    population = stratal.Population.from_arrays(
        proxy=[0.9, 0.8, 0.7, 0.6], groups={"answer": ["cat", "dog", "cat", "1"]}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)

    result = stratal.estimate(sample, {0: "cat", 1: "cat", 2: "cat", 3: 1.0}, predicted=True)

    assert result.value == 0.75
    assert result.outcome == "binary"


def test_class_labels_without_the_models_answers_are_refused(population, truth):
    sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)
    with pytest.raises(InputError, match="no column contains the model's answers"):
        stratal.estimate(sample, revealed(sample, truth), predicted=True)


def test_labels_outside_the_bounds_are_refused(population):
    sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)
    with pytest.raises(LabelError, match="outside"):
        stratal.estimate(sample, [1, 2, 3, 7], bounds=(1, 5))
    with pytest.raises(LabelError, match="outside"):
        stratal.estimate(sample, [1, 0, 1, 0.5], outcome="binary")


def test_the_outcome_is_inferred_where_that_is_safe(population):
    sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)

    assert stratal.estimate(sample, [1, 0, 1, 1]).outcome == "binary"
    assert stratal.estimate(sample, [1, 0, 0.5, 1]).bounds == (0.0, 1.0)
    assert stratal.estimate(sample, [1, 4, 3, 5]).outcome == "unbounded"
    assert stratal.estimate(sample, [1, 4, 3, 5], bounds=(1, 5)).outcome == "bounded"


def test_a_proxy_that_only_orders_needs_a_fitted_lambda(truth):
    margins = np.random.default_rng(0).normal(size=500) * 5
    population = stratal.Population.from_arrays(proxy=margins, ids=list(truth))
    sample = stratal.designs.SimpleRandom(budget=50).draw(population, seed=1)

    assert stratal.estimate(sample, revealed(sample, truth)).estimator == "horvitz-thompson"
    assert stratal.estimate(sample, revealed(sample, truth), estimator="ppi++").n == 50
    with pytest.raises(InputError, match="only orders"):
        stratal.estimate(sample, revealed(sample, truth), estimator="difference")


def test_the_estimate_survives_the_file(population, truth, tmp_path):
    sample = stratified(population)
    back = stratal.Sample.read(sample.write(tmp_path / "s.parquet"))

    assert stratal.estimate(back, revealed(sample, truth)) == stratal.estimate(
        sample, revealed(sample, truth)
    )


def test_the_value_does_not_depend_on_the_order_of_labels(population, truth):
    sample = stratified(population)
    labels = revealed(sample, truth)
    backwards = dict(reversed(labels.items()))

    assert stratal.estimate(sample, labels) == stratal.estimate(sample, backwards)


def test_no_warning_when_every_stratum_has_labels(population, truth):
    sample = stratified(population)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stratal.estimate(sample, revealed(sample, truth))


# ---- designs


def test_draws_are_nested_in_the_budget(population):
    small = stratal.designs.SimpleRandom(budget=50).draw(population, seed=7)
    large = stratal.designs.SimpleRandom(budget=60).draw(population, seed=7)
    assert set(small.ids) < set(large.ids)

    strata = stratal.strata.stratify(population, n_strata=5)
    for method in ("proportional", "equal", "neyman", "robust"):
        smaller, larger = (
            stratal.designs.Stratified(
                strata=strata, allocation=stratal.strata.allocate(strata, budget, method)
            ).draw(population, seed=7)
            for budget in (50, 60)
        )
        assert set(smaller.ids) < set(larger.ids)


def test_the_order_of_rows_is_irrelevant():
    proxy = np.random.default_rng(5).random(300)
    ids = np.array([f"u{i}" for i in range(300)])
    order = np.random.default_rng(6).permutation(300)
    one = stratal.Population.from_arrays(proxy=proxy, ids=ids)
    other = stratal.Population.from_arrays(proxy=proxy[order], ids=ids[order])

    assert (
        stratal.plan(one, 40).draw(seed=3).ids.tolist() == stratal.plan(other, 40).draw(seed=3).ids.tolist()
    )


def test_inclusion_frequencies_are_the_inclusion_probabilities():
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 20))
    strata = stratal.strata.stratify(population, "equal-size", 2)
    allocation = stratal.strata.allocate(strata, 6, "neyman")
    design = stratal.designs.Stratified(strata=strata, allocation=allocation)
    replicates = 2000
    hits = np.zeros(20)
    for seed in range(replicates):
        hits[design.draw(population, seed).ids] += 1
    expected = (allocation.n_h / strata.sizes)[strata.codes]
    error = np.sqrt(expected * (1 - expected) / replicates)

    assert np.all(np.abs(hits / replicates - expected) < 4.5 * error)


@pytest.mark.parametrize("budget", [0, -1, 2.5, "many", True])
def test_a_budget_must_be_a_whole_number(budget):
    with pytest.raises(BudgetError, match="whole number"):
        stratal.designs.SimpleRandom(budget=budget)


def test_strata_of_another_population_are_refused(population):
    strata = stratal.strata.stratify(population, n_strata=5)
    design = stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, 50))
    other = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 400))
    with pytest.raises(InputError, match="another population"):
        design.draw(other, seed=1)


def test_a_seed_must_be_a_whole_number(population):
    for seed in (-1, 1.5, "7", None):
        with pytest.raises(InputError, match="seed"):
            stratal.designs.SimpleRandom(budget=5).draw(population, seed=seed)


def test_labels_that_all_agree_are_not_worth_the_whole_population(population):
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    result = stratal.estimate(sample, np.ones(20), estimator="horvitz-thompson")

    assert result.effective_sample_size is None
    assert result.design_effect is None
    assert result.to_dict()["effective_sample_size"] is None


@pytest.mark.parametrize("lam", ["a", [None], {}])
def test_a_lambda_that_is_no_number(population, lam):
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    with pytest.raises(InputError, match="λ"):
        stratal.estimate(sample, np.ones(20), lam=lam)


@pytest.mark.parametrize("level", ["a", None, 95, 0, float("nan")])
def test_a_level_that_is_none(population, level):
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    with pytest.raises(InputError, match="confidence_level"):
        stratal.estimate(sample, np.ones(20)).confidence_interval(level)


@pytest.mark.parametrize(
    "design",
    [
        stratal.designs.ProportionalToSize(budget=40),
        stratal.designs.Poisson(budget=40, size="sqrt-variance"),
        stratal.designs.ClusterSample(cluster="page", n_clusters=8),
        stratal.designs.Systematic(budget=40),
    ],
    ids=lambda design: design.kind,
)
def test_post_stratification_does_not_forget_how_units_were_drawn(design):
    """It would put equal weights in the place of the design's, and call clusters single units."""
    population = stratal.Population.from_arrays(
        proxy=np.linspace(0.05, 0.95, 400), groups={"page": (np.arange(400) // 10).astype(str)}
    )
    sample = design.draw(population, seed=1)
    labels = (np.arange(sample.size) % 3 > 0).astype(float)
    with pytest.raises(InputError, match="equal probabilities"):
        stratal.estimate(sample, labels, estimator="post-stratified")


def test_equal_chances_can_be_post_stratified():
    population = stratal.Population.from_arrays(proxy=np.linspace(0.05, 0.95, 400))
    sample = stratal.designs.Poisson(budget=40).draw(population, seed=1)
    labels = (np.arange(sample.size) % 3 > 0).astype(float)
    estimate = stratal.estimate(sample, labels, estimator="post-stratified")
    assert estimate.value == pytest.approx(labels.mean())


@pytest.mark.parametrize("typo", [11.0, -0.5, 10.0, 1e9])
def test_one_slip_of_the_finger_does_not_make_an_outcome_unbounded(typo):
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 60))
    sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=1)
    labels = np.r_[np.zeros(10), np.ones(19), typo]

    with pytest.raises(LabelError, match=rf"first: {re.escape(f'{typo:g}')} of id .*outcome='unbounded'"):
        stratal.estimate(sample, labels)
    assert stratal.estimate(sample, labels, outcome="unbounded").value == pytest.approx(labels.mean())


@pytest.mark.parametrize("labels", [[0, 1, 0.5, 1], [0, 1, 2, 3], [0, 0.5, 11, 1], [1, 2]])
def test_other_outcomes_are_taken_as_they_are(labels):
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 60))
    sample = stratal.designs.SimpleRandom(budget=len(labels)).draw(population, seed=1)

    assert stratal.estimate(sample, labels).value == pytest.approx(np.mean(labels))


def test_known_shares_of_a_superpopulation_take_the_variance_between_strata_off():
    population = stratal.Population.from_arrays(proxy=[0.1] * 300 + [0.9] * 300)
    sample = stratal.plan(population, 60, n_strata=2).draw(seed=1)
    labels = np.where(sample.proxies[:, 0] > 0.5, 1.0, 0.0)
    labels[:3] = 1.0 - labels[:3]
    drawn = stratal.estimate(sample, labels, target="superpopulation")
    known = stratal.estimate(sample, labels, target="superpopulation", stratum_weights_known=True)

    assert known.value == drawn.value
    between = 0.25 * (known.strata[1].mean - known.strata[0].mean) ** 2 / 600
    assert drawn.standard_error**2 - known.standard_error**2 == pytest.approx(between, rel=0.05)


def test_the_table_of_many_strata_takes_few_calls_a_stratum():
    def table(n_strata):
        stratum = np.arange(2 * n_strata) // 2
        return StratumTable(sizes=np.full(n_strata, 10), stratum=stratum, z=np.ones(2 * n_strata)).rows()

    few, many = (calls(table, n_strata)[1] for n_strata in (1_000, 2_000))

    assert table(3)[1].to_dict() == {
        "name": "1", "size": 10, "n": 2, "mean": 1.0, "standard_deviation": 0.0, "weight": 1 / 3, "lam": []
    }  # fmt: skip
    assert many - few < 6 * 1_000


def test_what_is_said_of_a_mean_is_said_of_it_in_a_list_too(population):
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=7).with_outcome("unbounded")
    labels = np.arange(40.0) ** 4
    alone = stratal.estimate(sample, labels)
    listed = stratal.estimate(sample, labels, estimand=["mean", "mean"])

    tails = [
        note for note in alone.notes if note.startswith(("no bounds are known", "the labels are skewed"))
    ]
    assert len(tails) == 2
    assert all(any(note.endswith(tail) for note in listed.notes) for tail in tails)
    assert [row.design_effect for row in listed] == [alone.design_effect] * 2
    assert listed[0].strata == alone.strata
    assert alone.strata[0].n == 40


def test_labels_that_are_no_class_are_refused_at_once_and_not_when_they_are_shown():
    population = stratal.Population.from_arrays(
        proxy=[0.5] * 4, groups={"answer": ["cat", "dog"] * 2}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=7)
    labels = dict(zip(range(4), ["cat", "dog", "n/a", "cat"], strict=True))
    for estimand in ("accuracy", "f1:cat", "kappa"):
        with pytest.raises(LabelError, match="'n/a' indicates that there is no answer"):
            stratal.estimate(sample, labels, estimand=estimand)
