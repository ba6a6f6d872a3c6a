from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal import estimands
from stratal.designs import StratifiedWeighting
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.hypergeometric import smallest_count
from stratal.intervals.proportion import clopper_pearson
from stratal.metrics.class_answers import answered_classes
from stratal.metrics.class_shares import possible_answers
from stratal.metrics.confusion import Confusion

SIZES = np.array([1000, 4000, 55_000])
POSSIBLE = np.array([[False, True, False], [True, False, True], [True, False, True]])


def confusion(hits=38, misses=(3, 0), possible=POSSIBLE):
    """40 labels in a stratum answered 1, and 60 and 200 in two answered otherwise."""
    counts = np.array([40, 60, 200])
    stratum = np.repeat([0, 1, 2], counts)
    true = np.concatenate([np.arange(n) < k for n, k in zip(counts, (hits, *misses), strict=True)])
    weighting = StratifiedWeighting(stratum=stratum, sizes=SIZES)
    predicted = np.where(stratum == 0, 1, 0)
    return Confusion(
        true=true.astype(int), predicted=predicted, n_classes=2, weighting=weighting, possible=possible
    )


def population(size=6000, seed=3):
    rng = np.random.default_rng(seed)
    score = 1 / (1 + np.exp(-(-7 + 5 * rng.standard_normal(size))))
    true = np.where(rng.random(size) < score, "match", "other")
    groups = {"answer": np.where(score > 0.5, "match", "other")}
    return stratal.Population.from_arrays(proxy={"score": score}, groups=groups, predicted="answer"), true


def test_precision_is_the_interval_of_the_stratum_alone():
    low, high = confusion().metric("precision", 1).confidence_interval()

    # Of 1000 units, so that the limits are whole thousandths, of the hypergeometric test.
    least, most = clopper_pearson(38 / 40, 40 / (1 - 40 / 1000), confidence_level=0.95)
    assert (low, high) == (pytest.approx(float(least), abs=1e-3), pytest.approx(float(most), abs=1e-3))
    labels = np.r_[np.ones(38), np.zeros(2)]
    own = StratifiedWeighting(stratum=np.zeros(40, dtype=int), sizes=np.array([1000]))
    mean = estimate_mean(labels, np.zeros((40, 0)), own, None, stratum=own.stratum, outcome="binary")
    assert (low, high) == pytest.approx(tuple(mean.confidence_interval()))
    assert low * 1000 == pytest.approx(smallest_count(np.array([38]), np.array(40), 1000, 0.025)[0])


def test_all_right_answers_are_as_narrow_as_a_mean():
    low, high = confusion(hits=40).metric("precision", 1).confidence_interval()

    assert 0.9 < low < 0.93
    assert high == 1.0


@pytest.mark.parametrize("name", ["recall", "f1", "jaccard", "specificity", "f2", "prevalence"])
def test_the_interval_holds_the_value_and_lies_within_the_bounds(name):
    metric = confusion().metric(name, 1)
    low, high = metric.confidence_interval()

    assert 0.0 <= low < metric.value < high <= 1.0
    wider = metric.confidence_interval(0.99)
    assert wider.low < low
    assert wider.high > high


def test_a_large_stratum_without_a_miss_may_hold_many():
    low, high = confusion(hits=40, misses=(0, 0)).metric("recall", 1).confidence_interval()

    hidden = 55_000 * (1 - 0.025 ** (1 / 200))  # what none of 200 labels leaves possible
    assert low < 1000 / (1000 + hidden) * 1.02
    assert high == 1.0


def test_one_sided_ends_and_p_values_agree():
    metric = confusion().metric("f1", 1)

    low, _ = metric.confidence_interval(0.9, alternative="greater")
    assert metric.confidence_interval(0.8).low == pytest.approx(low)
    assert metric.p_value(low, alternative="greater") == pytest.approx(0.1, abs=0.01)


def test_a_stratum_of_both_answers_leaves_the_trials():
    mixed = POSSIBLE.copy()
    mixed[1, 1] = True

    for possible in (mixed, None):
        interval = confusion(possible=possible).metric("precision", 1).confidence_interval()
        assert interval.method == "clopper-pearson"


def test_what_is_possible_everywhere_changes_nothing():
    whole = np.ones_like(POSSIBLE)
    for name, which in (("precision", 1), ("recall", 1), ("f1", "macro"), ("mcc", None)):
        before = confusion(possible=None).metric(name, which).confidence_interval()
        after = confusion(possible=whole).metric(name, which).confidence_interval()
        assert tuple(after) == pytest.approx(tuple(before), abs=1e-9)


@pytest.mark.parametrize(("name", "which"), [("mcc", None), ("f1", "micro"), ("f1", "macro")])
def test_strata_borrow_only_what_is_possible(name, which):
    before = confusion(possible=None).metric(name, which).confidence_interval()
    after = confusion().metric(name, which).confidence_interval()

    assert after.high - after.low < before.high - before.low + 0.02


def test_the_rule_of_a_sample_says_what_its_strata_can_hold():
    units, true = population()
    sample = stratal.plan(units, budget=300, estimand=estimands.F1("match", probability="score")).draw(seed=1)
    labels = {unit: true[int(unit)] for unit in sample.ids.tolist()}
    possible = answered_classes(sample, labels, None).confusion.possible

    assert possible is not None
    assert not np.any(possible[:, 0] & possible[:, 1])
    assert np.all(possible[sample.stratum, np.where(sample.groups["answer"] == "match", 0, 1)])
    report = stratal.estimate(sample, labels, estimand=estimands.ClassReport())
    assert report.of(metric="precision", **{"class": "match"}).confidence_interval().width < 0.3


def test_answers_of_one_s_own_and_strata_of_the_proxy_are_not_known():
    units, true = population()
    sample = stratal.plan(units, budget=300, by="answer").draw(seed=1)
    labels = {unit: true[int(unit)] for unit in sample.ids.tolist()}
    own = dict.fromkeys(sample.ids.tolist(), "match")
    plain = stratal.plan(units, budget=300, by=None).draw(seed=1)
    others = {unit: true[int(unit)] for unit in plain.ids.tolist()}

    assert answered_classes(sample, labels, None).confusion.possible is not None
    assert answered_classes(sample, labels, own).confusion.possible is None
    assert answered_classes(plain, others, None).confusion.possible is None


def test_merged_strata_can_hold_what_either_could():
    units, true = population()
    sample = stratal.plan(units, budget=300, by="answer").draw(seed=1)
    labels = {unit: true[int(unit)] for unit in sample.ids.tolist()}
    answered = answered_classes(sample, labels, None)
    codes = np.zeros(len(sample.summary.sizes), dtype=int)
    merged = replace(
        answered.respondents,
        codes=codes,
        stratum=codes[sample.stratum],
        weighting=answered.respondents.weighting.merge_strata(codes),
    )

    found = possible_answers(sample, merged, "answer", ["match", "other"], answered.confusion.predicted)
    assert found.tolist() == [[True, True, False]]


@pytest.mark.parametrize("name", ["recall", "f1", "precision", "mcc"])
def test_rounds_whose_sizes_follow_labels_only_widen(name):
    plain = confusion()
    label_based = replace(plain, weighting=replace(plain.weighting, has_adaptive_allocation=True))
    which = None if name == "mcc" else 1
    one, two = (each.metric(name, which).confidence_interval() for each in (plain, label_based))

    assert two.low <= one.low + 1e-12
    assert two.high >= one.high - 1e-12
    assert two.width > one.width or name == "precision"  # whose limits stay on the same whole units
    assert two.width < 1.25 * one.width


@pytest.fixture(scope="module")
def rarely_right():
    """A model whose answers 1 are right for 2 of 150 units, and a plan that labels only these answers."""
    rng = np.random.default_rng(4)
    score = rng.random(3000)
    answers = np.where(score > 0.95, "1", "0")
    true = np.full(3000, "0")
    true[np.flatnonzero(answers == "1")[:2]] = "1"
    population = stratal.Population.from_arrays(
        proxy={"score": score}, predicted="answer", groups={"answer": answers}
    )
    return population, true, stratal.plan(population, 60, estimand="precision:1")


def test_precision_without_a_right_answer_is_zero_with_an_upper_limit(rarely_right):
    """Labels of which none was among the drawn answers were refused as another vocabulary."""
    _, true, plan = rarely_right
    for seed in range(30):
        sample = plan.draw(seed=seed)
        labels = true[np.asarray(sample.ids, dtype=int)]
        if set(labels) == {"0"}:
            break
    assert set(labels) == {"0"}
    assert set(sample.groups["answer"]) == {"1"}

    result = stratal.estimate(sample, labels)
    low, high = result.confidence_interval()
    assert (result.value, low) == (0.0, 0.0)
    assert 0.02 < high < 0.1
    assert stratal.estimate(sample, labels.astype(int), estimand="precision:1").value == 0.0
    with pytest.raises(stratal.errors.LabelError, match="no label occurs among the model's answers"):
        stratal.estimate(sample, ["spam"] * 60)


def test_simulation_of_a_plan_for_precision_counts_draws_without_a_right_answer(rarely_right):
    population, true, _ = rarely_right

    table = stratal.simulate(
        population, true, designs=["planned"], budgets=[60], replicates=20, estimand="precision:1"
    )
    assert "precision:1" in str(table)


def test_accuracy_without_a_right_answer_is_zero():
    """All drawn answers were of one class, and all labels of the other."""
    answers = np.array(["no"] * 40 + ["yes"] * 400)
    population = stratal.Population.from_arrays(
        proxy=np.linspace(0.1, 0.9, 440), predicted="answer", groups={"answer": answers}
    )
    for seed in range(30):
        sample = stratal.designs.SimpleRandom(budget=10).draw(population, seed=seed)
        if set(sample.groups["answer"]) == {"yes"}:
            break

    result = stratal.estimate(sample, ["no"] * 10, predicted=True)
    assert result.value == 0.0
    assert result.confidence_interval().high > 0.1
