"""Metrics as functions of shares with intervals of their own, and what a plan may not say of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal import estimands
from stratal.designs import StratifiedWeighting
from stratal.estimands import ClassReport
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.interval_types import BinomialInterval, UndefinedInterval
from stratal.intervals.proportion import clopper_pearson
from stratal.intervals.unseen_units import max_unseen_units
from stratal.metrics.class_functions import Shares, metric_function, two_class_metric
from stratal.metrics.class_shares import CountedAnswersInterval
from stratal.metrics.confusion import Confusion
from stratal.question import Question


def pool(inflated: bool, size=20_000, rate=0.01):
    """Answers of a decent model; scores of one trained on as many positives as negatives, or calibrated."""
    rng = np.random.default_rng(2)
    odds = -7.6 + 3.0 * rng.standard_normal(size)
    true = rng.random(size) < 1 / (1 + np.exp(-odds))
    said = odds - np.log(rate / (1 - rate)) if inflated else odds
    answer = odds > np.quantile(odds, 1 - rate)
    population = stratal.Population.from_arrays(
        proxy={"score": 1 / (1 + np.exp(-said))},
        groups={"answer": np.where(answer, "match", "other")},
        predicted="answer",
    )
    return population, np.where(true, "match", "other")


def drawn(estimand, inflated=True, budget=100, seed=1):
    population, truth = pool(inflated)
    sample = stratal.plan(population, budget, estimand=estimand).draw(seed=seed)
    return sample, {int(unit): str(truth[unit]) for unit in sample.ids}


@pytest.mark.parametrize("given", ["recall:match,probability=score", "recall:match,right=score"])
def test_one_positive_label_does_not_make_recall_certain(given):
    """Planned with scores of a model trained on balanced classes it printed "1, .9706 to 1"; truth .808."""
    population, _ = pool(inflated=True)
    sample = stratal.plan(population, 100, estimand=given).draw(seed=1)
    positive = int(sample.ids[np.argmax(sample.groups["answer"] == "match")])
    labels = {int(unit): "match" if int(unit) == positive else "other" for unit in sample.ids}

    estimate = stratal.estimate(sample, labels)
    low, high = estimate.confidence_interval()

    assert (estimate.value, estimate.n, estimate.labels) == (1.0, 1, 100)
    assert low < 0.1
    assert high == 1.0
    assert 0.0 < estimate.standard_error <= 0.5


@pytest.mark.parametrize("kind", ["f1", "recall", "fbeta", "precision", "specificity", "prevalence"])
def test_what_a_plan_expected_changes_no_interval(kind):
    asked = estimands.Estimand.parse_text(f"{kind}:match,probability=score")
    sample, labels = drawn(asked)
    strata = sample.design.strata
    optimistic = replace(strata, conditional_variances=strata.conditional_variances / 100)
    other = replace(sample, design=replace(sample.design, strata=optimistic))
    without = replace(sample, question=replace(sample.question, estimand=None))

    said = [stratal.estimate(entry, labels, estimand=asked) for entry in (sample, other, without)]

    assert len({tuple(entry.confidence_interval()) for entry in said}) == 1
    assert len({(entry.value, entry.standard_error) for entry in said}) == 1


def test_a_list_of_estimands_keeps_nothing_of_the_plan_and_has_the_intervals_of_each():
    asked = ["f1:match,probability=score", "recall:match,probability=score"]
    sample, labels = drawn(asked)
    estimate = stratal.estimate(sample, labels)

    assert set(sample.question.estimand) == {"kind", "estimands"}
    for text in asked:
        own = stratal.estimate(sample, labels, estimand=text).confidence_interval()
        assert tuple(estimate.of(estimand=text).confidence_interval()) == tuple(own)


def test_where_no_positive_is_seen_anything_is_possible():
    sample, labels = drawn("recall:match,probability=score")
    estimate = stratal.estimate(sample, dict.fromkeys(labels, "other"))
    table = stratal.estimate(sample, dict.fromkeys(labels, "other"), estimand=["recall:match", "mcc"])

    assert np.isnan(estimate.value)
    assert tuple(estimate.confidence_interval()) == (0.0, 1.0)
    assert estimate.confidence_interval().method == "every possible value"
    assert "is undefined (95% interval 0.0% to 100.0%)" in str(estimate)
    assert [row.limits() for row in table] == [[0.0, 1.0], [-1.0, 1.0]]


def test_misses_that_no_label_showed_are_bounded_and_told():
    sample, labels = drawn("recall:match,probability=score", budget=300)
    answers = dict(zip(sample.ids.tolist(), sample.groups["answer"].tolist(), strict=True))
    agreed = {unit: answers[unit] for unit in labels}

    estimate = stratal.estimate(sample, agreed)
    others = np.array([h for h in range(sample.design.strata.n_strata)
                       if np.all(sample.groups["answer"][sample.stratum == h] == "other")])  # fmt: skip
    most = max_unseen_units(sample.summary.sizes[others], sample.n_h[others])
    hits = float(np.sum(sample.summary.sizes)) - float(np.sum(sample.summary.sizes[others]))
    note = next(text for text in estimate.notes if "no" in text and "labelled units" in text)

    assert f"up to {int(most):,} of these {int(sample.summary.sizes[others].sum()):,} units" in note
    assert estimate.confidence_interval().low == pytest.approx(hits / (hits + most), rel=0.03)
    table = stratal.estimate(sample, agreed, estimand=ClassReport("recall"))
    assert any(text.endswith(note) for text in table.notes)


def test_prevalence_is_a_mean():
    sample, labels = drawn("prevalence:match,probability=score")
    estimate = stratal.estimate(sample, labels)
    plain = replace(sample, question=Question())
    mean = stratal.estimate(plain, {unit: float(word == "match") for unit, word in labels.items()})

    assert estimate.value == pytest.approx(mean.value)
    assert tuple(estimate.confidence_interval()) == pytest.approx(tuple(mean.confidence_interval()))


def test_the_share_of_answers_is_known_and_says_so():
    sample, labels = drawn("f1:match,probability=score")
    asked = ClassReport("predicted_prevalence")
    table = stratal.estimate(sample, labels, estimand=asked)
    found = table.of(metric="predicted_prevalence", **{"class": "match"})

    assert found.value == 0.01
    assert found.standard_error == 0.0
    assert tuple(found.confidence_interval()) == (0.01, 0.01)
    assert any("counted over the answers of all 20,000 units" in note for note in table.notes)
    beyond = stratal.estimate(sample, labels, estimand=asked, target="superpopulation")
    wider = beyond.of(**{"class": "match"}).confidence_interval()
    assert tuple(wider) == pytest.approx(tuple(map(float, clopper_pearson(0.01, 20_000))))


def test_a_prevalence_lies_in_the_middle_of_its_own_interval_under_unequal_probabilities():
    """Shares of a Poisson sample add up to another number than 1; the limits lie around what is reported."""
    rng = np.random.default_rng(4)
    answers = rng.choice(["x", "y"], 800)
    population = stratal.Population.from_arrays(groups={"answer": answers}, predicted="answer")
    sample = stratal.designs.Poisson(probability=0.15).draw(population, seed=3)
    estimate = stratal.estimate(sample, rng.choice(["x", "y"], sample.size), estimand="prevalence:x")
    low, high = estimate.confidence_interval()
    mean = stratal.estimate(
        replace(sample, question=Question()), np.ones(sample.size), estimator="horvitz-thompson"
    )

    assert abs(mean.value - 1.0) > 1e-3
    assert (low + high) / 2 == pytest.approx(estimate.value, abs=0.005)


@pytest.mark.parametrize("name", ["recall", "f1", "f0.5", "jaccard", "precision", "specificity"])
def test_a_superpopulation_makes_the_same_interval_a_little_wider(name):
    sample, labels = drawn("f1:match,probability=score")
    here, beyond = (
        stratal.estimate(sample, labels, estimand=ClassReport(name), target=target)
        .of(metric=name, **{"class": "match"})
        .confidence_interval()
        for target in ("population", "superpopulation")
    )

    assert beyond.low <= here.low + 1e-3
    assert beyond.high >= here.high - 1e-3
    assert beyond.width < 1.3 * here.width + 1e-3


@pytest.mark.parametrize(
    ("name", "which"),
    [
        *((name, 1) for name in ("recall", "precision", "f1", "f2", "specificity", "jaccard", "prevalence")),
        *((name, kind) for name in ("recall", "f1") for kind in ("macro", "micro", "weighted")),
        *((name, None) for name in ("mcc", "balanced_accuracy")),
    ],
)
def test_a_metric_of_two_classes_is_the_same_function_of_two_shares(name, which):
    rng = np.random.default_rng(3)
    function = metric_function(name, which, 2)
    of_two = two_class_metric(function, 2)
    for _ in range(20):
        cells = rng.dirichlet(np.ones(4))  # hits, misses, false alarms, the rest
        shares = Shares(
            hits=np.array([cells[3], cells[0]]),
            predicted=np.array([cells[1] + cells[3], cells[0] + cells[2]]),
            true=np.array([cells[2] + cells[3], cells[0] + cells[1]]),
            total=1.0,
        )
        assert of_two(cells[0], cells[1], cells[0] + cells[2]) == pytest.approx(function(shares)[0])


def test_several_metrics_have_no_function_of_two_shares_in_three_classes():
    assert two_class_metric(metric_function("mcc", None, 3), 3) is None
    assert two_class_metric(metric_function("f1", "macro", 3), 3) is None
    assert two_class_metric(metric_function("f1", 2, 3), 3) is not None


def confusion_of(hits, misses, alarms, n, size=100_000):
    """A simple random sample of two classes."""
    true = np.arange(n) < hits + misses
    predicted = np.r_[np.ones(hits), np.zeros(misses), np.ones(alarms), np.zeros(n - hits - misses - alarms)]
    weighting = StratifiedWeighting(stratum=np.zeros(n, dtype=int), sizes=np.array([size]))
    return Confusion(true=true.astype(int), predicted=predicted.astype(int), n_classes=2, weighting=weighting)


def test_matthews_correlation_without_a_hit_is_not_significantly_below_chance():
    """Ten positives and ten answers among 200 labels, none both: guessing gives that six times in ten."""
    found = confusion_of(0, 10, 10, 200).metric("mcc")
    low, high = found.confidence_interval()

    assert found.value == pytest.approx(-1 / 19)
    assert low < found.value < 0.0 < high
    assert found.p_value(0.0) > 0.05


def test_matthews_correlation_is_of_either_class_alike():
    one, other = confusion_of(12, 3, 5, 200), confusion_of(180, 5, 3, 200)
    assert one.metric("mcc").value == pytest.approx(other.metric("mcc").value)
    assert tuple(one.metric("mcc").confidence_interval()) == pytest.approx(
        tuple(other.metric("mcc").confidence_interval()), abs=1e-3
    )


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "b", "c"]])
@pytest.mark.parametrize("target", ["population", "superpopulation"])
def test_the_mean_prevalence_of_all_classes_is_known_by_definition(classes, target):
    answers = np.tile(classes, 100)
    population = stratal.Population.from_arrays(groups={"answer": answers}, predicted="answer")
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=1)
    truth = np.roll(answers, 3)[sample.ids]
    found = [
        stratal.estimate(sample, truth, estimand=f"average:prevalence,average={kind}", target=target)
        for kind in ("macro", "micro")
    ]
    report = ClassReport(["prevalence", "predicted_prevalence"])
    table = stratal.estimate(sample, truth, estimand=report, target=target)
    share = 1 / len(classes)

    for quantity in found:
        assert quantity.value == share
        assert quantity.standard_error == 0.0
        assert tuple(quantity.confidence_interval()) == (share, share)
        assert "by definition" in quantity.notes[0]
    for metric in ("prevalence", "predicted_prevalence"):
        row = table.of(metric=metric, **{"class": "macro"})
        assert (row.value, row.limits()) == (share, [share, share])


def test_the_mean_prevalence_of_some_classes_is_estimated():
    answers = np.tile(["a", "b", "c"], 100)
    population = stratal.Population.from_arrays(groups={"answer": answers}, predicted="answer")
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=1)
    report = ClassReport(["prevalence"], classes=["a", "b"])
    table = stratal.estimate(sample, answers[sample.ids], estimand=report)

    assert table.of(metric="prevalence", **{"class": "macro"}).standard_error > 0


def few_labels_of_many_units(seed=1, label_based=False):
    """5 labels of 5,000 units, all right, and 300 of 1,000 of which a third are wrong, of three classes."""
    rng = np.random.default_rng(seed)
    true = np.r_[np.zeros(5, int), rng.choice(3, 300, p=[0.6, 0.3, 0.1])]
    wrong = np.r_[np.zeros(5, bool), np.arange(300) % 3 == 0]
    weighting = StratifiedWeighting(
        stratum=np.repeat([0, 1], [5, 300]),
        sizes=np.array([5000, 1000]),
        has_adaptive_allocation=label_based,
    )
    return Confusion(
        true=true, predicted=np.where(wrong, (true + 1) % 3, true), n_classes=3, weighting=weighting
    )


@pytest.mark.parametrize(("name", "which"), [("recall", "weighted"), ("recall", "micro"), ("f1", "micro")])
def test_averages_that_are_the_share_of_right_answers_have_its_interval(name, which):
    """On trials they were .93 to .95 here: 95 % intervals covered .11 where a plan had put few labels."""
    confusion = few_labels_of_many_units()
    right = (confusion.true == confusion.predicted).astype(float)
    mean = estimate_mean(
        right,
        np.zeros((305, 0)),
        confusion.weighting,
        None,
        stratum=confusion.weighting.stratum,
        outcome="binary",
    )

    assert tuple(confusion.metric(name, which).confidence_interval()) == pytest.approx(
        tuple(mean.confidence_interval()), abs=1e-9
    )


@pytest.mark.parametrize(("name", "which"), [("mcc", None), ("precision", "weighted"), ("f1", "weighted")])
def test_an_average_allows_for_errors_where_few_labels_stand_for_many_units(name, which):
    """Five right answers leave 1 − .025^(1/5) = .52 of 5,000 units open; on trials alone they left none."""
    confusion = few_labels_of_many_units()
    found = confusion.metric(name, which).confidence_interval()
    share = confusion.metric("recall", "weighted").confidence_interval()

    assert share.low < 0.6
    assert found.low < share.low + 0.15
    wider = few_labels_of_many_units(label_based=True).metric(name, which).confidence_interval()
    assert wider.low <= found.low + 1e-9
    assert wider.high >= found.high - 1e-9


def test_what_strata_of_one_answer_cannot_hold_makes_averages_no_wider():
    confusion = few_labels_of_many_units()
    predicted = np.repeat([0, 1], [5, 300])
    possible = np.array([[True, False, False, False], [False, True, False, False]])
    plain = replace(confusion, predicted=predicted)
    mixed, alike = (
        each.metric("mcc").confidence_interval() for each in (plain, replace(plain, possible=possible))
    )

    assert alike.width < mixed.width


@pytest.mark.parametrize("name", ["recall", "precision", "f1", "specificity"])
def test_all_units_labelled_say_little_of_those_that_may_come(name):
    """With every unit labelled and no error the superpopulation's interval had no width and covered .69."""
    true = np.repeat([0, 1], [30, 8])
    weighting = StratifiedWeighting(stratum=np.zeros(38, dtype=int), sizes=np.array([38]))
    confusion = Confusion(true=true, predicted=true, n_classes=2, weighting=weighting)
    n = 30 if name == "specificity" else 8

    given = confusion.metric(name, 1).confidence_interval()
    drawn = confusion.metric(name, 1, "superpopulation").confidence_interval()

    assert tuple(given) == (1.0, 1.0)
    low = float(clopper_pearson(1.0, float(n))[0])
    assert drawn.low == pytest.approx(2 * low / (1 + low) if name == "f1" else low, abs=0.08)


def test_one_class_alone_keeps_its_trials():
    weighting = StratifiedWeighting(stratum=np.zeros(1, dtype=int), sizes=np.array([1]))
    only = Confusion(true=np.zeros(1, int), predicted=np.zeros(1, int), n_classes=1, weighting=weighting)

    assert tuple(only.metric("accuracy").confidence_interval()) == (1.0, 1.0)


def test_cells_of_clusters_add_up_and_two_classes_mirror_each_other() -> None:
    # By weights that do not add up to 1 the cells' sum was .95, and one class's interval twice the other's.
    rng = np.random.default_rng(7)
    cluster = np.repeat(np.arange(200), rng.integers(3, 12, 200))
    true = np.where(rng.random(len(cluster)) < 0.2, "pass", "fail")
    judge = np.where(rng.random(len(cluster)) < 0.8, true, "fail")
    population = stratal.Population.from_arrays(groups={"judge": judge, "cluster": cluster.astype(str)})
    sample = stratal.designs.ClusterSample(cluster="cluster", n_clusters=25).draw(population, seed=1)
    estimate = stratal.estimate(sample, true[sample.ids], judge="judge")
    assert sum(row.value for row in estimate if row.label["metric"] == "share") == pytest.approx(1.0)
    passed, failed = (estimate.of(metric="prevalence", **{"class": name}) for name in ("pass", "fail"))
    low, high = failed.confidence_interval()
    assert passed.confidence_interval().low == pytest.approx(1 - high)
    assert passed.confidence_interval().high == pytest.approx(1 - low)


@pytest.mark.parametrize(
    ("hits", "false_alarms"),
    [
        (0.010, 0.004),
        # The labels show more units with the answer than there are.
        (0.030, 0.030),
    ],
)
def test_kappa_is_limited_by_the_counted_units_and_the_lower_limits_of_the_cells(hits, false_alarms):
    answered = 0.02
    kappa = two_class_metric(metric_function("kappa", None, 2), 2)
    shares = [BinomialInterval(value=value, trials=1000.0) for value in (hits, false_alarms, 0.05)]
    interval = CountedAnswersInterval(
        value=0.25,
        bounds=(-1.0, 1.0),
        inner=UndefinedInterval(value=0.25, bounds=(-1.0, 1.0)),
        metric=kappa,
        hits=shares[0],
        false_alarms=shares[1],
        misses=shares[2],
        answered=answered,
    )
    limits = [share.confidence_interval(0.975) for share in shares]
    expected_hits = answered * hits / (hits + false_alarms)
    possible_hits = [
        min(limits[0].low, expected_hits),
        max(answered - limits[1].low, expected_hits),
    ]

    low, high = interval.ends(0.95, "two-sided")

    assert low == pytest.approx(min(0.25, kappa(possible_hits[0], limits[2].high, answered)))
    assert high == pytest.approx(max(0.25, kappa(possible_hits[1], limits[2].low, answered)))
    assert -1.0 < low < high < 1.0


def test_intervals_of_kappa_at_higher_levels_contain_those_at_lower_ones() -> None:
    # With 8 hits and 2 false alarms of 150, and 11 counted answers, an interval of .95 was inside that of .9,
    # and the p-value contradicted both.
    shares = [BinomialInterval(value=count / 150.0, trials=150.0) for count in (8, 2, 1)]
    interval = CountedAnswersInterval(
        value=0.8,
        bounds=(-1.0, 1.0),
        inner=UndefinedInterval(value=0.8, bounds=(-1.0, 1.0)),
        metric=two_class_metric(metric_function("kappa", None, 2), 2),
        hits=shares[0],
        false_alarms=shares[1],
        misses=shares[2],
        answered=4.0 / 150.0,
    )
    ends = np.array([interval.ends(level, "two-sided") for level in np.linspace(0.5, 0.99, 50)])

    assert np.all(np.diff(ends[:, 0]) <= 1e-12)
    assert np.all(np.diff(ends[:, 1]) >= -1e-12)
