from __future__ import annotations

import pickle

import numpy as np
import pytest

import stratal
from stratal.designs import PoissonWeighting, StratifiedWeighting
from stratal.errors import InputError, LabelError, StratalWarning
from stratal.estimands import ClassReport
from stratal.metrics.class_functions import CLASS_METRICS, METRICS
from stratal.metrics.confusion import Confusion


def simple(n, population_size=100_000):
    return StratifiedWeighting(stratum=np.zeros(n, np.int64), sizes=np.array([population_size]))


def confusion(true, predicted, weighting=None, n_classes=3):
    true = np.array(true)
    weighting = weighting or simple(len(true))
    return Confusion(true=true, predicted=np.array(predicted), n_classes=n_classes, weighting=weighting)


def drawn(rng, size=600, budget=120, n_classes=3):
    true = rng.integers(0, n_classes, size)
    predicted = np.where(rng.random(size) < 0.75, true, rng.integers(0, n_classes, size))
    population = stratal.Population.from_arrays(
        proxy=np.clip(rng.normal(0.7, 0.2, size), 0, 1),
        groups={"answer": np.array(list("abc"))[predicted]},
        predicted="answer",
    )
    sample = stratal.plan(population, budget=budget).draw(seed=5)
    labels = {int(unit): "abc"[true[unit]] for unit in sample.ids}
    return sample, labels, true, predicted


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize(
    ("name", "of_the_other"),
    [
        ("false_positive_rate", "false_negative_rate"),
        ("specificity", "recall"),
        ("negative_predictive_value", "precision"),
    ],
)
def test_averages_over_two_classes_do_not_depend_on_which_class_is_positive(name, of_the_other, average):
    rng = np.random.default_rng(4)
    for prevalence in (0.1, 0.3):
        true = (rng.random(100) < prevalence).astype(int)
        two = confusion(true, np.where(rng.random(100) < 0.95, true, 1 - true), n_classes=2)
        first, second = (two.metric(metric, average) for metric in (name, of_the_other))

        assert first.value == second.value
        assert first.confidence_interval() == second.confidence_interval()


class TestValues:
    def test_all_metrics_agree_with_scikit_learn_on_weighted_labels(self):
        learn = pytest.importorskip("sklearn.metrics")
        rng = np.random.default_rng(1)
        true, predicted = rng.integers(0, 3, 90), rng.integers(0, 3, 90)
        stratum = np.repeat([0, 1, 2], 30)
        weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([100, 900, 5000]))
        found = confusion(true, predicted, weighting)
        weights = weighting.weights

        for average in ("macro", "micro", "weighted"):
            for name, function in (("precision", learn.precision_score), ("recall", learn.recall_score),
                                   ("f1", learn.f1_score), ("jaccard", learn.jaccard_score)):  # fmt: skip
                expected = function(true, predicted, average=average, sample_weight=weights)
                assert expected == pytest.approx(found.metric(name, average).value, abs=1e-12)
        expected = learn.precision_score(true, predicted, average=None, sample_weight=weights)
        assert expected == pytest.approx([found.metric("precision", k).value for k in range(3)])
        expected = learn.matthews_corrcoef(true, predicted, sample_weight=weights)
        assert expected == pytest.approx(found.metric("mcc").value)
        expected = learn.balanced_accuracy_score(true, predicted, sample_weight=weights)
        assert expected == pytest.approx(found.metric("balanced_accuracy").value)

    @pytest.mark.parametrize("name", METRICS)
    def test_linearised_variables_are_the_derivatives(self, name):
        rng = np.random.default_rng(2)
        true, predicted = rng.integers(0, 3, 40), rng.integers(0, 3, 40)
        probability = rng.uniform(0.1, 0.9, 40)
        which = 1 if name in CLASS_METRICS else None

        def at(weights):
            weighting = PoissonWeighting(inclusion_probability=1 / weights, size=1.0)
            return confusion(true, predicted, weighting).metric(name, which)

        weights = 1 / probability
        step = 1e-6
        slopes = np.array([
            (at(weights + step * unit).value - at(weights - step * unit).value) / (2 * step)
            for unit in np.eye(40)
        ])  # fmt: skip

        expected = np.sqrt(np.sum((1 - probability) * (slopes * weights) ** 2))
        assert expected == pytest.approx(at(weights).standard_error, rel=1e-5)

    def test_micro_averages_of_all_classes_are_the_accuracy(self):
        rng = np.random.default_rng(3)
        found = confusion(rng.integers(0, 3, 50), rng.integers(0, 3, 50))

        accuracy = found.metric("accuracy")
        assert accuracy.value == pytest.approx(found.metric("f1", "micro").value)
        assert accuracy.standard_error == pytest.approx(found.metric("recall", "micro").standard_error)

    def test_a_census_is_exact(self):
        rng = np.random.default_rng(4)
        true, predicted = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
        found = confusion(true, predicted, simple(60, 60))

        for name in METRICS:
            metric = found.metric(name, 1 if name in CLASS_METRICS else None)
            assert metric.standard_error == 0
            assert tuple(metric.confidence_interval()) == pytest.approx((metric.value, metric.value))

    def test_the_superpopulation_is_less_certain(self):
        rng = np.random.default_rng(5)
        found = confusion(rng.integers(0, 3, 60), rng.integers(0, 3, 60), simple(60, 80))

        for name in ("precision", "f1", "mcc"):
            which = 1 if name in CLASS_METRICS else None
            here, beyond = (found.metric(name, which, target) for target in ("population", "superpopulation"))
            assert beyond.standard_error > here.standard_error
            assert beyond.confidence_interval().width > here.confidence_interval().width


class TestIntervals:
    def test_a_simple_random_sample_gives_the_textbook_interval_of_the_denominator(self):
        from scipy.stats import binomtest

        true, predicted = np.repeat([1, 1, 0, 0], [30, 6, 4, 60]), np.repeat([1, 0, 1, 0], [30, 6, 4, 60])
        found = confusion(true, predicted, simple(100, 10**9), n_classes=2)

        interval = found.metric("recall", 1).confidence_interval()
        exact = binomtest(30, 36).proportion_ci(method="exact")
        assert (exact.low, exact.high) == pytest.approx(tuple(interval), abs=0.01)

    @pytest.mark.parametrize("name", METRICS)
    def test_all_right_still_has_width_and_stays_inside(self, name):
        true = np.repeat([0, 1, 2], 4)
        metric = confusion(true, true).metric(name, 1 if name in CLASS_METRICS else None)
        low, high = metric.confidence_interval()

        assert -1 <= low < high <= 1
        assert np.isfinite([low, high]).all()

    @pytest.mark.parametrize("name", METRICS)
    def test_all_wrong_still_has_width_and_stays_inside(self, name):
        true = np.repeat([0, 1, 2], 4)
        metric = confusion(true, (true + 1) % 3).metric(name, 1 if name in CLASS_METRICS else None)
        low, high = metric.confidence_interval()

        assert (-1 if name in ("mcc", "kappa") else 0) <= low < high <= 1

    def test_intervals_and_p_values_agree(self):
        rng = np.random.default_rng(6)
        found = confusion(rng.integers(0, 3, 80), rng.integers(0, 3, 80))

        for name, which in (("f1", 1), ("mcc", None), ("recall", "macro")):
            metric = found.metric(name, which)
            low, high = metric.confidence_interval(0.9)
            for end in (low, high):
                assert metric.p_value(end) == pytest.approx(0.1, abs=1e-3)

    def test_errors_that_a_stratum_may_hide_widen_the_interval(self):
        """Recall is 1 in the sample; a large stratum with few labels may hold missed positives."""
        true = np.array([1] * 10 + [0] * 10)
        found = [
            confusion(
                true, true, StratifiedWeighting(stratum=np.repeat([0, 1], 10), sizes=np.array(sizes)), 2
            )
            for sizes in ([1000, 1000], [1000, 50_000])
        ]

        even, uneven = (entry.metric("recall", 1).confidence_interval().low for entry in found)
        assert uneven < even


class TestTable:
    def test_accuracy_is_what_estimate_says(self):
        sample, labels, *_ = drawn(np.random.default_rng(7))
        found = stratal.estimate(sample, labels, estimand=ClassReport()).of(metric="accuracy")
        plain = stratal.estimate(sample, labels, predicted=True)

        assert plain.value == found.value
        assert tuple(plain.confidence_interval()) == tuple(found.confidence_interval())

    def test_rows_and_json(self):
        sample, labels, *_ = drawn(np.random.default_rng(8))
        table = stratal.estimate(
            sample, labels, estimand=ClassReport(metrics="accuracy, recall", average="macro")
        )

        found = [(row.label["metric"], row.label["class"]) for row in table]
        assert found == [("accuracy", None), *(("recall", c) for c in (*"abc", "macro"))]
        assert set(table.rows()[0]) == {
            "metric",
            "class",
            "share",
            "estimate",
            "standard_error",
            "confidence_interval",
            "n",
        }
        assert table.to_dict()["metrics"] == table.rows()
        assert "recall" in str(table)
        assert "<table>" in table._repr_html_()

    def test_labels_of_any_kind_are_joined_by_id(self):
        sample, labels, true, predicted = drawn(np.random.default_rng(9))
        pandas = pytest.importorskip("pandas")
        expected = stratal.estimate(sample, labels, estimand=ClassReport()).rows()

        reordered = dict(sorted(labels.items(), key=lambda item: item[1]))
        answers = np.array(list("abc"))[predicted]
        in_order = {"label": np.array(list("abc"))[true[sample.ids]], "predicted": answers[sample.ids]}
        by_id = {"label": labels, "predicted": {int(unit): answers[unit] for unit in sample.ids}}
        for given in (reordered, in_order, by_id):
            assert expected == stratal.estimate(sample, given, estimand=ClassReport()).rows()
        assert (
            expected
            == stratal.estimate(
                sample, pandas.Series(labels), estimand=ClassReport(predicted="answer")
            ).rows()
        )

    def test_numbers_as_classes(self):
        sample, _, true, predicted = drawn(np.random.default_rng(10))
        labels = {"label": true[sample.ids].astype(float), "predicted": predicted[sample.ids]}
        table = stratal.estimate(sample, labels, estimand=ClassReport(classes=[2], metrics="recall"))

        assert [row.label["class"] for row in table] == ["2"]

    def test_a_class_that_was_never_predicted_is_undefined_and_said_so(self):
        sample, labels, *_ = drawn(np.random.default_rng(11))
        table = stratal.estimate(sample, labels, estimand=ClassReport(classes=["zebra"], metrics="precision"))

        assert table.rows()[0]["estimate"] is None
        assert table.rows()[0]["confidence_interval"] == [
            0.0,
            1.0,
        ]  # nothing is known, and that is an interval
        assert "zebra" in table.notes[0]
        assert "–" in str(table)

    def test_some_units_without_a_label_are_nonresponse(self):
        sample, labels, *_ = drawn(np.random.default_rng(12))
        some = dict(list(labels.items())[:-5])

        assert (
            stratal.estimate(sample, some, estimand=ClassReport(metrics="accuracy"))[0].n == len(labels) - 5
        )

    def test_refusals_name_what_is_wrong(self):
        sample, labels, *_ = drawn(np.random.default_rng(13))
        with pytest.raises(InputError, match=r"no such metric.*precisoin"):
            stratal.estimate(sample, labels, estimand=ClassReport(metrics=["precisoin"]))
        with pytest.raises(InputError, match="no such average"):
            stratal.estimate(sample, labels, estimand=ClassReport(average="mean"))
        with pytest.raises(LabelError, match="no unit is labelled"):
            stratal.estimate(sample, dict.fromkeys(labels), estimand=ClassReport())
        with pytest.raises(LabelError, match="not in this sample"):
            stratal.estimate(sample, {**labels, 10**6: "a"}, estimand=ClassReport())
        with pytest.raises(InputError, match="no group column 'answr'"):
            stratal.estimate(sample, labels, estimand=ClassReport(predicted="answr"))
        with pytest.raises(LabelError, match="have no prediction"):
            stratal.estimate(
                sample, {"label": labels, "predicted": {int(sample.ids[0]): "a"}}, estimand=ClassReport()
            )
        with pytest.raises(InputError, match="must be a list"):
            stratal.estimate(sample, labels, estimand=ClassReport(classes="a"))

    def test_a_macro_average_has_the_error_of_its_interval(self):
        """Two of three classes have no wrong label: only the third had a variance."""
        true = np.repeat([0, 1, 2], [40, 6, 6])
        predicted = true.copy()
        predicted[:4] = 1
        weighting = StratifiedWeighting(stratum=np.zeros(52, dtype=np.int64), sizes=np.array([5200]))
        confusion = Confusion(true=true, predicted=predicted, n_classes=3, weighting=weighting)
        found = confusion.metric("recall", "macro")
        alone = confusion.metric("recall", 0).standard_error
        # Six of six are right: half a label more of either kind, on six trials.
        share = 6.5 / 7
        expected = np.sqrt(alone**2 + 2 * share * (1 - share) / 7) / 3

        assert found.standard_error == pytest.approx(expected, rel=0.1)
        assert found.standard_error > 2 * alone / 3
        assert found.standard_error**2 == pytest.approx(found.evidence.variance)

    def test_macro_without_some_class_is_not_another_average(self):
        found = confusion([0, 0, 1, 1], [0, 0, 1, 0])

        assert np.isnan(found.metric("recall", "macro").value)
        assert found.metric("recall", "macro").notes


def test_many_missing_labels_warn():
    sample, labels, *_ = drawn(np.random.default_rng(14))
    some = dict(list(labels.items())[: len(labels) // 2])

    with pytest.warns(StratalWarning, match="have no label"):
        stratal.estimate(sample, some, estimand=ClassReport())


def test_a_class_that_nobody_saw_may_still_exist():
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 100))
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    labels = {"label": ["b"] * 20, "predicted": ["b"] * 20}
    table = stratal.estimate(
        sample, labels, estimand=ClassReport(metrics="prevalence", classes=["a", "b"], average=[])
    )
    low, high = table.of(**{"class": "a"}).confidence_interval()

    assert low == 0
    assert 0.05 < high < 0.3


def test_classes_that_only_labels_have_are_averaged():
    """No unit of the others is a hit, which left an array one class short."""
    population = stratal.Population.from_arrays(groups={"answer": ["x"] * 60}, predicted="answer")
    sample = stratal.designs.SimpleRandom(budget=7).draw(population, seed=1)
    labels = ["a", "b", "a", "b", "a", "a", "b"]
    table = stratal.estimate(
        sample, labels, estimand=ClassReport(metrics=["f1", "recall"], classes=["a", "b"])
    )

    assert [(row.label["class"], row.value) for row in table] == [("a", 0), ("b", 0), ("macro", 0)] * 2


@pytest.mark.parametrize("estimand", ["f1:yes,probability=p", None])
def test_of_two_answers_what_is_the_same_share_has_the_same_interval(estimand):
    rng = np.random.default_rng(4)
    chance = rng.beta(0.3, 3.0, 2000)
    names = np.array(["no", "yes"])
    answer, truth = names[(chance > 0.3).astype(int)], names[(rng.random(2000) < chance).astype(int)]
    population = stratal.Population.from_arrays(proxy={"p": chance}, groups={"a": answer}, predicted="a")
    by = {"by": "a"} if estimand is None else {"estimand": estimand}
    sample = stratal.plan(population, budget=100, **by).draw(seed=5)
    labels = dict(zip(sample.ids.tolist(), truth[sample.ids].tolist(), strict=True))
    metrics = ["precision", "negative_predictive_value", "recall", "specificity", "f1"]
    table = stratal.estimate(
        sample, labels, estimand=ClassReport(metrics=metrics, average=["macro", "micro"])
    )

    def interval(metric, which):
        return tuple(table.of(metric=metric, **{"class": which}).confidence_interval())

    for one, other in (("precision", "negative_predictive_value"), ("recall", "specificity")):
        for which, opposite in (("yes", "no"), ("no", "yes"), ("macro", "macro")):
            assert interval(one, which) == pytest.approx(interval(other, opposite))
        low, high = (interval(one, which) for which in ("yes", "no"))
        # The mean of both is open as far as either is, though one of them is a matter of hits alone.
        assert np.diff(interval(one, "macro"))[0] > max(np.diff(low)[0], np.diff(high)[0]) / 2.0
    assert interval("precision", "micro") == pytest.approx(interval("recall", "micro"))
    assert interval("precision", "micro") == pytest.approx(interval("f1", "micro"))


class TestLabelsOfARanking:
    """A score ranks units: the model's answers that the sample holds have no part in it."""

    @pytest.fixture
    def sample(self):
        rng = np.random.default_rng(4)
        answers = rng.choice(["cat", "dog"], 200)
        population = stratal.Population.from_arrays(
            proxy=rng.random(200), groups={"answer": answers}, predicted="answer"
        )
        return stratal.designs.SimpleRandom(budget=40).draw(population, seed=1)

    def test_plain_labels_need_no_table(self, sample):
        with pytest.raises(InputError, match="no class is called '1'"):
            stratal.estimate(sample, [0, 1] * 20, estimand="auc")
        estimate = stratal.estimate(sample, [0, 1] * 20, estimand="auc:1,score=proxy")
        assert not [note for note in estimate.notes if note.startswith("labels:")]

    @pytest.mark.parametrize("predicted", [True, "answer"])
    def test_answers_to_compare_with_are_refused(self, sample, predicted):
        with pytest.raises(InputError, match="takes no predicted="):
            stratal.estimate(sample, [0, 1] * 20, estimand="auc", predicted=predicted)


def test_a_report_of_a_sample_for_one_metric_shows_what_it_tells_and_names_the_rest():
    rng = np.random.default_rng(1)
    score = rng.random(4000)
    answer = np.where(score > 0.8, "match", "other")
    truth = np.where(rng.random(4000) < 0.9, answer, np.where(answer == "match", "other", "match"))
    population = stratal.Population.from_arrays(
        proxy=np.maximum(score, 1.0 - score), groups={"answer": answer}, predicted="answer"
    )
    sample = stratal.plan(population, 200, estimand="precision:match").draw(seed=1)
    assert 0 in sample.n_h
    labels = truth[sample.ids]
    alone = stratal.estimate(sample, labels)

    table = stratal.estimate(sample, labels, estimand=ClassReport())

    assert [dict(row.label) for row in table] == [{"metric": "precision", "class": "match"}]
    assert (table[0].value, table[0].limits()) == (alone.value, alone.limits())
    assert any(
        note.startswith(
            "this sample was drawn for 'precision:match' and cannot be used to estimate accuracy, "
            "precision of 'other'"
        )
        for note in table.notes
    )
    with pytest.raises(InputError, match="got no label, because no label is required there for 'precision'"):
        stratal.estimate(sample, labels, estimand=ClassReport(["recall", "accuracy"]))


@pytest.mark.parametrize("estimand", ["f1:1", "recall:1", "precision:1", "mcc", "balanced_accuracy", "kappa"])
def test_an_estimate_goes_to_another_process_with_its_interval(estimand):
    score = np.linspace(0.05, 0.95, 60)
    truth = np.random.default_rng(3).random(60) < score
    answers = {"answer": np.where(score > 0.5, "1", "0")}
    population = stratal.Population.from_arrays(proxy=score, groups=answers, predicted="answer")
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, 1)
    estimate = stratal.estimate(sample, np.where(truth, "1", "0")[sample.ids], estimand=estimand)
    assert pickle.loads(pickle.dumps(estimate)).confidence_interval() == estimate.confidence_interval()
