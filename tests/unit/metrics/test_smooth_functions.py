from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.designs import StratifiedWeighting
from stratal.errors import InputError, LabelError
from stratal.estimands import AUC, ClassReport, MeanFunction, Quantile, RatioOfMeans
from stratal.estimation.linearised import ratio_of_means
from stratal.metrics.ranking import area_under_curve, average_precision, ranking_metric
from stratal.regression.quantiles import weighted_quantile, weighted_quantile_estimate


def simple(n, population_size=10**6):
    return StratifiedWeighting(stratum=np.zeros(n, np.int64), sizes=np.array([population_size]))


RATIO = RatioOfMeans(["a", "b"])


@pytest.fixture
def sample():
    rng = np.random.default_rng(1)
    population = stratal.Population.from_arrays(proxy=rng.uniform(size=2000))
    return stratal.plan(population, budget=150).draw(seed=2)


class TestFunctions:
    def test_a_ratio_is_a_smooth_function(self, sample):
        rng = np.random.default_rng(3)
        a, b = rng.uniform(1, 2, sample.size), rng.uniform(1, 3, sample.size)

        direct = stratal.estimate(sample, {"a": a, "b": b}, estimand=RATIO)
        quotient = MeanFunction(lambda a, b: a / b, ["a", "b"])
        general = stratal.estimate(sample, {"a": a, "b": b}, estimand=quotient)
        assert direct.value == pytest.approx(general.value)
        assert direct.standard_error == pytest.approx(general.standard_error, rel=1e-6)
        beyond = stratal.estimate(sample, {"a": a, "b": b}, estimand=RATIO, target="superpopulation")
        assert beyond.standard_error > direct.standard_error

    def test_the_delta_method_covers(self):
        rng = np.random.default_rng(4)
        draws, inside = 500, 0
        for _ in range(draws):
            a = rng.gamma(4, size=80)
            result = ratio_of_means(a**2, a, simple(80))
            inside += abs(result.value - 5) < 1.99 * result.standard_error

        assert inside / draws > 0.95 - 0.03 - 3 * np.sqrt(0.95 * 0.05 / draws)

    def test_it_prints_and_has_a_json_twin(self, sample):
        rng = np.random.default_rng(12)
        labels = {"a": rng.uniform(1, 2, sample.size), "b": rng.uniform(1, 3, sample.size)}
        estimate = stratal.estimate(sample, labels, estimand=RATIO)

        described = estimate.to_dict(0.9)
        assert described["confidence_interval"] == list(estimate.confidence_interval(0.9))
        assert described["interval_method"] == "fieller"
        assert str(estimate).startswith("Ratio of means of a, b 0.")

    def test_refusals(self, sample):
        z = np.ones(sample.size)
        logarithm = MeanFunction(lambda z: float(np.log(z - 2)) if z > 2 else np.nan, ["z"])
        with pytest.raises(InputError, match="not finite at the estimated means"):
            stratal.estimate(sample, {"z": z}, estimand=logarithm)
        nothing = stratal.estimate(sample, {"a": z, "b": 0 * z}, estimand=RATIO)
        assert np.isnan(nothing.value)
        assert "undefined" in {note.code for note in nothing.notes}
        with pytest.raises(InputError, match="names of its outcomes"):
            MeanFunction(lambda: 1.0, [])
        with pytest.raises(InputError, match="map each outcome to its labels"):
            stratal.estimate(sample, z, estimand=RATIO)
        with pytest.raises(InputError, match="a ratio requires two outcomes"):
            RatioOfMeans(["a", "a"])
        with pytest.raises(InputError, match="no such target"):
            stratal.estimate(sample, {"a": z, "b": z}, estimand=RATIO, target="everyone")
        with pytest.raises(InputError, match="one entry per drawn unit"):
            stratal.estimate(sample, {"a": z[:-1], "b": z}, estimand=RATIO)


class TestRanking:
    def test_weighted_values_agree_with_scikit_learn(self):
        learn = pytest.importorskip("sklearn.metrics")
        rng = np.random.default_rng(5)
        score = rng.integers(0, 9, 80).astype(float)
        positive, weights = rng.random(80) < 0.1 + 0.08 * score, rng.uniform(0.1, 3, 80)

        found = [function(score, positive, weights)[0] for function in (area_under_curve, average_precision)]
        expected = [
            learn.roc_auc_score(positive, score, sample_weight=weights),
            learn.average_precision_score(positive, score, sample_weight=weights),
        ]
        assert expected == pytest.approx(found, abs=1e-12)

    @pytest.mark.parametrize("function", [area_under_curve, average_precision])
    def test_influences_are_the_derivatives(self, function):
        rng = np.random.default_rng(6)
        score, positive = rng.integers(0, 6, 30).astype(float), rng.random(30) < 0.4
        weights = rng.uniform(0.5, 2, 30)
        step = 1e-6 * np.eye(30)
        slopes = [
            (function(score, positive, weights + e)[0] - function(score, positive, weights - e)[0]) / 2e-6
            for e in step
        ]

        assert slopes == pytest.approx(function(score, positive, weights)[1], abs=1e-7)

    def test_the_standard_error_is_delongs(self):
        """With equal weights: s²(V10)/n1 + s²(V01)/n0, up to the divisors."""
        rng = np.random.default_rng(7)
        positive = np.arange(400) < 150
        score = rng.normal(size=400) + positive
        found = ranking_metric(area_under_curve, score, positive, simple(400))
        v10 = np.array([np.mean(score[~positive] < s) for s in score[positive]])
        v01 = np.array([np.mean(score[positive] > s) for s in score[~positive]])

        delong = np.sqrt(v10.var(ddof=1) / 150 + v01.var(ddof=1) / 250)
        assert delong == pytest.approx(found.standard_error, rel=0.01)

    @pytest.mark.parametrize("function", [area_under_curve, average_precision])
    def test_a_perfect_ranking_still_has_an_interval_inside_the_bounds(self, function):
        positive = np.arange(30) < 6
        found = ranking_metric(function, positive + 0.0, positive, simple(30))
        low, high = found.confidence_interval()

        assert found.value == 1.0
        assert 0 < low < high == 1.0

    def test_a_census_is_exact(self):
        rng = np.random.default_rng(8)
        positive = rng.random(50) < 0.5
        found = ranking_metric(area_under_curve, rng.normal(size=50), positive, simple(50, 50))

        assert found.standard_error == 0
        assert tuple(found.confidence_interval()) == pytest.approx((found.value, found.value))

    def test_the_table_and_its_refusals(self, sample):
        rng = np.random.default_rng(9)
        labels = dict(zip(sample.ids.tolist(), rng.choice(["good", "bad"], sample.size), strict=True))
        both = ["auc:good", "average_precision:good"]
        table = stratal.estimate(sample, labels, estimand=both)

        assert [row.label["estimand"] for row in table] == both
        undefined = stratal.estimate(sample, dict.fromkeys(labels, "good"), estimand=both)
        assert undefined.rows()[0]["estimate"] is None
        assert "one class" in undefined.notes[0]
        with pytest.raises(InputError, match="no such estimand"):
            stratal.estimate(sample, labels, estimand="roc:good")
        with pytest.raises(InputError, match="no column 'confidence' for the score"):
            stratal.estimate(sample, labels, estimand=AUC("good", score="confidence"))
        with pytest.raises(LabelError, match="no unit is labelled"):
            stratal.estimate(sample, dict.fromkeys(labels), estimand=both)


class TestQuantiles:
    def test_weighted_quantiles_repeat_units(self):
        values, weights = np.array([1.0, 2, 3, 4]), np.array([1, 3, 2, 4])
        repeated = np.repeat(values, weights)

        for p in (0.1, 0.25, 0.5, 0.75, 0.9):
            expected = np.quantile(repeated, p, method="inverted_cdf")
            assert expected == weighted_quantile(values, weights.astype(float), p)

    def test_ends_are_open_where_the_labels_do_not_reach(self):
        z = np.array([3.0, 4.0, 5.0])
        assert tuple(weighted_quantile_estimate(z, 0.5, simple(3)).confidence_interval()) == (-np.inf, np.inf)
        within = weighted_quantile_estimate(z, 0.5, simple(3), bounds=(1, 5))
        assert tuple(within.confidence_interval()) == (1, 5)

    def test_one_sided_and_refused(self, sample):
        z = np.arange(sample.size, dtype=float)
        estimate = stratal.estimate(sample, z, estimand=Quantile(0.5))
        two, one = estimate.confidence_interval(), estimate.confidence_interval(alternative="greater")
        assert one.low >= two.low
        assert one.high == np.inf
        with pytest.raises(InputError, match="probability is out of range"):
            Quantile(50)

    def test_a_census_is_exact(self):
        z = np.arange(9.0)
        estimate = weighted_quantile_estimate(z, 0.5, simple(9, 9))
        assert estimate.value == 4.0
        assert tuple(estimate.confidence_interval()) == (4.0, 4.0)


def test_nan_in_an_array_is_a_unit_without_a_label():
    """As in `estimate`: nonresponse, neither a mistake nor a class called nan."""
    population = stratal.Population.from_arrays(proxy=np.linspace(0.1, 0.9, 500))
    sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=2)
    right = np.tile([1.0, 0.0, 1.0], 20)
    missing = np.where(np.arange(60) == 3, np.nan, right)
    by_id = dict(zip(sample.ids.tolist(), right, strict=True))
    del by_id[sample.ids.tolist()[3]]
    ones = np.ones(60)

    def results(given):
        yield stratal.estimate(sample, given, estimand=Quantile(0.5)).confidence_interval()
        both, total = {"a": given, "b": ones}, MeanFunction(lambda a, b: a + b, ["a", "b"])
        yield stratal.estimate(sample, both, estimand=RATIO).value
        yield stratal.estimate(sample, both, estimand=total).value
        yield stratal.compare(sample, {"a": given, "b": 1 - right}).rows()
        answers = {"label": given, "predicted": right.astype(int)}
        yield stratal.estimate(sample, answers, estimand=ClassReport()).rows()
        scores = {"label": given, "score": np.linspace(0, 1, 60)}
        yield stratal.estimate(sample, scores, estimand=["auc:1", "average_precision:1"]).rows()

    for by_array, by_mapping in zip(results(missing), results(by_id), strict=True):
        assert by_array == by_mapping


def test_models_come_in_a_mapping():
    sample = stratal.designs.SimpleRandom(budget=2).draw(
        stratal.Population.from_arrays(proxy=[0.1, 0.5]), seed=1
    )
    with pytest.raises(InputError, match="mapping"):
        stratal.compare(sample, [[1, 0], [0, 0]])


class TestFiniteOrRefused:
    """What one label, a denominator near 0 or numbers far from 1 leave unknown is said, never NaN."""

    def sample(self, n):
        population = stratal.Population.from_arrays(proxy=np.linspace(0.1, 0.9, 50))
        return stratal.designs.SimpleRandom(budget=n).draw(population, seed=1)

    def test_a_ratio_of_one_label_has_no_standard_error(self):
        with pytest.raises(InputError, match="standard error of the ratio cannot be estimated"):
            stratal.estimate(self.sample(1), {"a": [2.0], "b": [4.0]}, estimand=RATIO)

    def test_a_function_of_one_label_has_none_either(self):
        with pytest.raises(InputError, match="standard error of the function"):
            stratal.estimate(self.sample(1), {"a": [2.0]}, estimand=MeanFunction(lambda a: a, ["a"]))

    def test_a_quantile_of_one_label_is_refused(self):
        with pytest.raises(InputError, match="standard error of a quantile"):
            stratal.estimate(self.sample(1), [2.0], estimand=Quantile(0.5))

    def test_the_standard_error_of_a_quantile_among_ties_is_a_number(self):
        labels = np.repeat([1.0, 2.0], [38, 2])
        estimate = stratal.estimate(self.sample(40), labels, estimand=Quantile(0.5))
        assert estimate.value == 1.0
        assert 0 < estimate.standard_error < 0.5
        assert tuple(estimate.confidence_interval()) == (1.0, 1.0)

    @pytest.mark.parametrize("size", [1e120, 1e-120, 5e-324])
    def test_labels_whose_squares_no_computer_holds_are_refused(self, size):
        labels = np.array([1.0, 2.0, 3.0, 5.0]) * size
        sample, ones = self.sample(4), np.ones(4)
        calls = (
            lambda: stratal.estimate(sample, labels, outcome="unbounded"),
            lambda: stratal.estimate(sample, {"a": labels, "b": ones}, estimand=RATIO),
            lambda: stratal.compare(sample, {"a": labels, "b": ones}),
            lambda: stratal.estimate(sample, labels, by=list("abab"), outcome="unbounded"),
            lambda: stratal.next_round(sample, labels, additional=2, outcome="unbounded"),
        )
        for call in calls:
            with pytest.raises(InputError, match=r"too (large|small)"):
                call()

    @pytest.mark.parametrize("size", [1e-99, 1e-60, 1e60, 1e98])
    def test_whatever_the_scale_the_interval_is_the_same_in_units_of_it(self, size):
        labels = np.array([1.0, 2.0, 3.0, 5.0, 9.0, 27.0])
        sample = self.sample(6)
        plain, scaled = (stratal.estimate(sample, labels * one, outcome="unbounded") for one in (1.0, size))
        assert np.allclose(np.array([*scaled.confidence_interval()]) / size, [*plain.confidence_interval()])

    def test_ratios_of_far_apart_numbers_are_refused_without_a_warning(self):
        labels = {"a": [1e99, 2e99, 9e99], "b": [1e-99, 3e-99, 2e-99]}
        with pytest.raises(InputError, match="ratio"):
            stratal.estimate(self.sample(3), labels, estimand=RATIO)


def test_differences_of_groups_with_one_label_each_are_unknown_not_nan():
    sample = stratal.designs.SimpleRandom(budget=3).draw(
        stratal.Population.from_arrays(proxy=[0.5] * 9), seed=1
    )
    table = stratal.estimate(sample, [1.0, 2.5, 7.0], by=["a", "b", "c"], outcome="unbounded")
    assert "nan" not in str(table.differences()).lower()


def test_groups_of_huge_labels_differ_without_an_overflow():
    population = stratal.Population.from_arrays(proxy=[0.5] * 30)
    sample = stratal.designs.SimpleRandom(budget=6).draw(population, seed=1)
    labels = np.array([1.0, 3.0, 2.0, 5.0, 9.0, 4.0])
    plain, huge = (
        stratal.estimate(sample, labels * size, by=list("aabbab"), outcome="unbounded").differences()[0]
        for size in (1.0, 1e90)
    )
    assert np.isclose(huge.standard_error / 1e90, plain.standard_error)


def test_a_tiny_proxy_beside_huge_labels_overflows_nowhere():
    proxy = np.tile([1e-99, 3e-99, 2e-99, 5e-99], 8)
    population = stratal.Population.from_arrays(proxy=proxy, groups={"half": np.repeat(["a", "b"], 16)})
    strata = stratal.strata.stratify(population, "category", by="half")
    allocation = stratal.strata.allocate(strata, 12, "proportional")
    sample = stratal.designs.Stratified(strata=strata, allocation=allocation).draw(population, seed=1)
    labels = np.arange(12) * 1e99 / 12
    estimate = stratal.estimate(sample, labels, estimator="stratppi", outcome="unbounded")
    assert np.all(np.isfinite([*estimate.confidence_interval()]))


def test_the_json_twin_of_a_ratio_without_an_upper_end_is_json():
    sample = stratal.designs.SimpleRandom(budget=4).draw(stratal.Population.from_arrays(ids=range(9)), seed=7)

    found = stratal.estimate(sample, {"a": [1, 2, 3, 4], "b": [2, 3, 4, 6]}, estimand=RATIO).to_dict()
    assert found["bounds"] == [0.0, None]


@pytest.mark.parametrize("statistic", [area_under_curve, average_precision])
def test_a_perfect_ranking_of_the_units_at_hand_is_not_that_of_all_that_may_come(statistic):
    """It had standard error 0 and, with every unit labelled, an interval from 1 to 1."""
    positive = np.arange(24) < 6
    found, whole, drawn = (
        ranking_metric(statistic, positive + 0.0, positive, simple(24, size), target)
        for size, target in ((1000, "population"), (24, "population"), (24, "superpopulation"))
    )

    assert found.standard_error > 0.01
    assert (whole.standard_error, *whole.confidence_interval()) == (0.0, 1.0, 1.0)
    assert drawn.confidence_interval().low == pytest.approx(found.confidence_interval().low, abs=0.05)


@pytest.mark.parametrize(("statistic", "least"), [(area_under_curve, 0.8), (average_precision, 0.65)])
def test_few_labels_of_high_scores_may_have_missed_what_ranks_high(statistic, least):
    """Three labels of a quarter of the units show no positive, 36 of another one show three: .82 covered."""
    counts = np.array([36, 15, 6, 3])
    stratum = np.repeat(np.arange(4), counts)
    score = stratum + np.concatenate([np.arange(n) / n for n in counts])
    positive = np.isin(np.arange(60), [5, 17, 29])
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.full(4, 500))

    found = ranking_metric(statistic, score, positive, weighting)

    assert found.value < 0.2
    assert found.confidence_interval().high > least
    assert found.p_value(found.confidence_interval().high) == pytest.approx(0.05, abs=1e-3)
