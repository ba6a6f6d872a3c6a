from __future__ import annotations

import pickle

import numpy as np
import pytest
from tests.tiers import cells, sized

import stratal
from stratal.designs import StratifiedWeighting
from stratal.errors import InputError
from stratal.estimation import group_means, mean_estimates
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimate import difference_of
from stratal.estimation.estimates import Estimates
from stratal.estimation.group_means import MAX_STORED_GROUPS, GroupMeans


def simple(n, population_size=10**6):
    return StratifiedWeighting(stratum=np.zeros(n, np.int64), sizes=np.array([population_size]))


@pytest.fixture
def sample():
    rng = np.random.default_rng(1)
    language = rng.choice(["de", "en", "fr"], size=1000, p=[0.6, 0.35, 0.05])
    population = stratal.Population.from_arrays(proxy=rng.uniform(size=1000), groups={"language": language})
    return stratal.plan(population, budget=100).draw(seed=2)


@pytest.fixture
def labels(sample):
    rng = np.random.default_rng(3)
    return dict(zip(sample.ids.tolist(), (rng.random(sample.size) < 0.8).astype(float), strict=True))


def test_one_domain_of_everybody_is_the_mean(sample, labels):
    everyone = np.full(sample.size, "all")
    found = stratal.estimate(sample, labels, by=everyone)[0]
    plain = stratal.estimate(sample, labels, estimator="horvitz-thompson")

    assert found.value == pytest.approx(plain.value)
    assert found.standard_error == pytest.approx(plain.standard_error)


def test_shares_of_domains_bring_the_mean_back(sample, labels):
    table = stratal.estimate(sample, labels, by="language", estimator="horvitz-thompson")
    weights = sample.weighting().weights
    group = sample.groups["language"]
    shares = [weights[group == row.label["domain"]].sum() for row in table]

    plain = stratal.estimate(sample, labels, estimator="horvitz-thompson")
    assert plain.value == pytest.approx(sum(s * row.value for s, row in zip(shares, table, strict=True)))
    assert sum(row.n for row in table) == sample.size
    assert set(table.rows()[0]) == {
        "domain",
        "share",
        "n",
        "estimate",
        "standard_error",
        "estimator",
        "lam",
        "interval_method",
        "confidence_interval",
    }


def test_a_small_domain_has_the_interval_of_its_own_labels():
    from scipy.stats import binomtest

    z, member = np.ones(200), np.arange(200) < 4
    low, high = domain_mean(z, member, simple(200), bounds=(0.0, 1.0)).confidence_interval()

    assert binomtest(4, 4).proportion_ci().low == pytest.approx(low, abs=0.01)
    assert high == 1.0


def test_without_bounds_small_domains_take_few_degrees_of_freedom():
    rng = np.random.default_rng(4)
    z, member = rng.normal(size=300), np.arange(300) < 5
    estimate = domain_mean(z, member, simple(300))

    stats = pytest.importorskip("scipy.stats")
    low, high = stats.t.interval(0.95, 4, z[:5].mean(), stats.sem(z[:5]))
    assert estimate.confidence_interval().width == pytest.approx(high - low, rel=0.01)
    assert domain_mean(z, np.arange(300) < 1, simple(300)).limits() is None


def test_agreeing_unbounded_labels_have_no_interval():
    estimate = domain_mean(np.full(50, 7.0), np.arange(50) < 10, simple(50))

    assert estimate.limits() is None
    with pytest.raises(InputError, match="all labels agree"):
        estimate.confidence_interval()


def test_an_empty_domain_is_undefined_and_said_so(sample, labels):
    only = {
        unit: z for unit, z in labels.items() if sample.groups["language"][list(labels).index(unit)] != "fr"
    }
    table = stratal.estimate(sample, only, by="language")

    assert np.isnan(table.of(domain="fr").value)
    assert table.of(domain="fr").row()["estimate"] is None
    assert any("fr" in note for note in table.notes)


@pytest.mark.parametrize("simultaneous", cells([True, False], fast=(True,)))
def test_group_differences_agree_with_their_p_values(sample, labels, simultaneous):
    table = stratal.estimate(sample, labels, by="language").differences(simultaneous=simultaneous)

    assert [tuple(row.label.values()) for row in table] == [("de", "en"), ("de", "fr"), ("en", "fr")]
    for row in table:
        for alternative in ("two-sided", "less", "greater")[: sized(2, 3)]:
            p_value = row.p_value(0.0, alternative=alternative)
            for level in (0.5, 0.95):
                low, high = row.confidence_interval(level, alternative=alternative)
                assert (low <= 0 <= high) == (p_value >= 1 - level - 1e-9)
                assert -1 <= low <= row.value <= high <= 1


def test_the_difference_of_two_groups_is_near_the_textbook_one():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(5)
    z, member = rng.normal(size=400), rng.random(400) < 0.5
    means = [domain_mean(z, part, simple(400)) for part in (member, ~member)]
    found = difference_of(*means[:2]).confidence_interval()

    expected = stats.ttest_ind(z[member], z[~member], equal_var=False).confidence_interval()
    assert (expected.low, expected.high) == pytest.approx(tuple(found), abs=0.01)


def test_coverage_of_rare_domains():
    rng = np.random.default_rng(6)
    z, member = (rng.random(20_000) < 0.9).astype(float), rng.random(20_000) < 0.1
    truth = z[member].mean()
    inside, draws = 0, sized(200, 1000)
    for _ in range(draws):
        rows = rng.choice(20_000, 60, replace=False)
        estimate = domain_mean(z[rows], member[rows], simple(60, 20_000), bounds=(0.0, 1.0))
        low, high = estimate.confidence_interval()
        inside += low <= truth <= high

    assert inside / draws > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / draws)


def test_a_domain_that_is_a_stratum_has_the_interval_of_that_stratum():
    z, stratum = np.tile([1.0, 1, 1, 0, 1], 8), np.repeat([0, 1], 20)
    both = StratifiedWeighting(stratum=stratum, sizes=np.array([2000, 90_000]))
    alone = StratifiedWeighting(stratum=np.zeros(20, np.int64), sizes=np.array([2000]))
    everyone = np.ones(20, dtype=bool)

    estimate = domain_mean(z, stratum == 0, both, bounds=(0.0, 1.0))
    expected = domain_mean(z[:20], everyone, alone, bounds=(0.0, 1.0))
    assert expected.standard_error == pytest.approx(estimate.standard_error)
    assert tuple(expected.confidence_interval()) == pytest.approx(
        tuple(estimate.confidence_interval()), abs=0.02
    )


def test_answers_of_several_annotators_are_combined_as_in_the_whole():
    population = stratal.Population.from_arrays(proxy=[0.5] * 40, groups={"g": ["a"] * 40})
    sample = stratal.designs.SimpleRandom(budget=10).draw(population, seed=1)
    ids = [str(unit) for unit in sample.ids.tolist() for _ in range(3)]
    labels = stratal.Labels(ids=tuple(ids), values=("yes", "yes", "no") * 10, annotators=("x", "y", "z") * 10)

    for combine, value in (("mean", 2 / 3), ("majority", 1.0)):
        found = stratal.estimate(sample, labels, by="g", combine=combine)[0]
        low, high = found.confidence_interval()
        assert found.value == pytest.approx(value)
        assert found.value == pytest.approx(stratal.estimate(sample, labels, combine=combine).value)
        assert 0 <= low < high <= 1


def test_one_wrong_unit_that_was_not_drawn_is_possible_in_a_domain_near_a_census():
    """Three wrong units in a stratum labelled whole, and one among the 20 of 91 that were not."""
    labelled, sizes = np.array([20, 71]), np.array([20, 91])
    weighting = StratifiedWeighting(stratum=np.repeat([0, 1], labelled), sizes=sizes)
    z = np.r_[np.zeros(3), np.ones(88)]
    member = np.r_[np.ones(86, bool), np.zeros(5, bool)]
    estimate = domain_mean(z, member, weighting, bounds=(0.0, 1.0))
    units = 20 + 91 * 66 / 71

    assert estimate.confidence_interval().low <= 1 - 4 / units < estimate.value
    ratings = domain_mean(1 + 4 * z, member, weighting, bounds=(1.0, 5.0))
    assert ratings.confidence_interval().low == pytest.approx(
        1 + 4 * estimate.confidence_interval().low, abs=0.1
    )


def test_a_domain_labelled_whole_says_little_of_a_superpopulation():
    """Eight right answers, all that there are, had an interval from 1 to 1."""
    weighting = StratifiedWeighting(stratum=np.repeat([0, 1], 10), sizes=np.array([10, 10]))
    member = np.arange(20) % 5 < 2
    given, drawn = (
        domain_mean(np.ones(20), member, weighting, bounds=(0.0, 1.0), target=target).confidence_interval()
        for target in ("population", "superpopulation")
    )

    assert tuple(given) == (1.0, 1.0)
    assert drawn.low == pytest.approx(0.025 ** (1 / 8), abs=0.02)


def test_any_estimates_can_hold_together_and_be_combined():
    groups = {"language": ["de", "en", "fr", "it"] * 50}
    sample = stratal.designs.SimpleRandom(budget=120).draw(
        stratal.Population.from_arrays(groups=groups), seed=1
    )
    estimate = stratal.estimate(sample, np.arange(120) % 5 > 0, by="language")
    wider = estimate.simultaneous()
    low, high = wider.confidence_interval(0.95)
    for row, below, above in zip(estimate, low, high, strict=True):
        alone, of_four = row.confidence_interval(0.95), row.confidence_interval(1 - 0.05 / 4)
        assert of_four.low - 0.01 < below < alone.low
        assert alone.high < above < of_four.high + 0.01
    for method in ("auto", "t"):
        alone = estimate[0].p_value(0.7, method)
        assert alone < wider[0].p_value(0.7, method) < 4 * alone + 0.01
    ends = estimate.simultaneous().confidence_interval(0.95, alternative="less")
    assert np.all(ends[1] > estimate.confidence_interval(0.95, alternative="less")[1])


def test_estimates_of_other_labels_do_not_hold_together():
    sample = stratal.designs.SimpleRandom(budget=40).draw(
        stratal.Population.from_arrays(ids=range(400)), seed=1
    )
    whole = stratal.estimate(sample, np.arange(40) % 5 > 0)
    fewer = stratal.estimate(
        sample, dict.fromkeys(sample.ids.tolist()[:37], 1.0) | {int(sample.ids[39]): 0.0}
    )
    both = Estimates(estimates=(whole, fewer), kind="estimands", title="")
    with pytest.raises(InputError, match="do not use the same labelled units"):
        both.simultaneous()


def answered_population(size=4000):
    rng = np.random.default_rng(5)
    language = rng.choice(["de", "en", "fr"], size, p=[0.6, 0.3, 0.1])
    logit = rng.normal(size=size) * 2 - 1.5
    true = rng.random(size) < 1 / (1 + np.exp(-logit))
    predicted = logit + rng.normal(size=size) > 0
    population = stratal.Population.from_arrays(
        proxy=1 / (1 + np.exp(-logit)),
        groups={"answer": np.where(predicted, "match", "other"), "language": language},
        predicted="answer",
    )
    return population, np.where(true, "match", "other"), predicted, true, language


METRICS_OF_GROUPS = {
    "f1:match": lambda hit, miss, alarm, rest: 2 * hit / (2 * hit + alarm + miss),
    "fbeta:match,beta=2": lambda hit, miss, alarm, rest: 5 * hit / (5 * hit + alarm + 4 * miss),
    "balanced_accuracy": lambda hit, miss, alarm, rest: (hit / (hit + miss) + rest / (rest + alarm)) / 2,
    "mcc": lambda hit, miss, alarm, rest: (
        (hit * rest - alarm * miss) / np.sqrt((hit + alarm) * (hit + miss) * (rest + alarm) * (rest + miss))
    ),
}


@pytest.mark.parametrize("metric", METRICS_OF_GROUPS)
def test_metrics_of_groups_are_those_of_their_cells_and_their_intervals_hold(metric):
    population, labels, predicted, true, language = answered_population()
    plan = stratal.plan(population, 300)
    truth = {}
    for name in ("de", "en", "fr"):
        own, said = true[language == name], predicted[language == name]
        cells = [np.sum(own & said), np.sum(own & ~said), np.sum(~own & said), np.sum(~own & ~said)]
        truth[name] = METRICS_OF_GROUPS[metric](*map(float, cells))
    held = []
    for seed in range(sized(6, 40)):
        sample = plan.draw(seed=seed)
        estimate = stratal.estimate(sample, labels[sample.ids], estimand=metric, by="language")
        weights = 1 / sample.inclusion_probability
        for row in estimate:
            inside = np.asarray(language[sample.ids] == row.label["domain"])
            own, said = true[sample.ids], predicted[sample.ids]
            pairs = [own & said, own & ~said, ~own & said, ~own & ~said]
            cells = [float(weights[inside & pair].sum()) for pair in pairs]
            if np.isfinite(row.value):
                assert row.value == pytest.approx(METRICS_OF_GROUPS[metric](*cells))
                low, high = row.confidence_interval()
                held.append(low <= truth[row.label["domain"]] <= high)

    # Three standard errors of a share of .95 of so many intervals below it.
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(held))


def test_both_of_three_classes_are_not_estimated_by_groups():
    population = stratal.Population.from_arrays(
        groups={"answer": ["a", "b", "c"] * 20, "half": ["x"] * 30 + ["y"] * 30}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=1)

    with pytest.raises(stratal.InputError, match=r"mcc by group requires two classes \(given: 3 classes"):
        stratal.estimate(sample, (["a", "b", "b"] * 20)[:30], estimand="mcc", by="half")


def test_a_quantile_of_groups_is_that_of_their_units_and_its_interval_holds():
    rng = np.random.default_rng(2)
    size = 3000
    group = rng.choice(["x", "y"], size, p=[0.8, 0.2])
    score = rng.normal(size=size)
    z = score + rng.normal(size=size) + (group == "y")
    population = stratal.Population.from_arrays(proxy=score, groups={"group": group})
    plan = stratal.plan(population, 200)
    held = []
    for seed in range(sized(15, 100)):
        sample = plan.draw(seed=seed)
        for row in stratal.estimate(sample, z[sample.ids], estimand="quantile:.7", by="group"):
            inside = group[sample.ids] == row.label["domain"]
            order = np.argsort(z[sample.ids][inside])
            weights = (1 / sample.inclusion_probability)[inside][order]
            share = np.cumsum(weights) / weights.sum() + 1e-12
            assert row.value == z[sample.ids][inside][order][np.searchsorted(share, 0.7)]
            low, high = row.confidence_interval()
            held.append(low <= np.quantile(z[group == row.label["domain"]], 0.7) <= high)
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(held))


def test_several_estimands_have_groups_each():
    population, labels, *_ = answered_population()
    sample = stratal.plan(population, 200).draw(seed=4)

    estimate = stratal.estimate(sample, labels[sample.ids], estimand="f1:match;accuracy", by="language")

    assert len(estimate) == 6
    one = stratal.estimate(sample, labels[sample.ids], estimand="accuracy", by="language")
    assert estimate.of(estimand="accuracy", domain="en").value == one.of(domain="en").value


def many_groups(labels_per_group: int = 3) -> tuple[stratal.designs.Sample, np.ndarray]:
    """Return a stratified sample of more groups than are stored, some units of none, and outcomes."""
    random = np.random.default_rng(4)
    groups = MAX_STORED_GROUPS + 50
    kind = np.array([f"k{number}" for number in random.integers(0, groups, 8 * groups)])
    population = stratal.Population.from_arrays(proxy=random.random(len(kind)), groups={"kind": kind})
    sample = stratal.plan(population, labels_per_group * groups).draw(seed=1)
    return sample, (random.random(sample.size) < 0.7).astype(np.float64)


def test_groups_that_are_not_stored_have_the_estimates_of_those_that_are(monkeypatch):
    sample, z = many_groups()
    computed = stratal.estimate(sample, z, by="kind")
    monkeypatch.setattr(mean_estimates, "MAX_STORED_GROUPS", 10**6)
    stored = stratal.estimate(sample, z, by="kind")

    assert isinstance(computed.estimates, GroupMeans)
    assert isinstance(stored.estimates, tuple)
    assert computed.rows() == stored.rows()
    assert computed.notes == stored.notes
    assert computed.title == stored.title
    np.testing.assert_allclose(computed.values, [row.value for row in stored], rtol=1e-12)
    assert computed.of(domain="k7").row() == stored.of(domain="k7").row()
    assert [row.label for row in computed[2:5]] == [row.label for row in stored[2:5]]


def test_a_table_of_very_many_groups_has_the_intervals_of_the_lowest(monkeypatch):
    sample, z = many_groups()
    table = stratal.estimate(sample, z, by="kind")
    rows = {row["domain"]: row for row in table.rows()}
    computed = []

    def counted(*arguments, **options):
        computed.append(arguments)
        return domain_mean(*arguments, **options)

    monkeypatch.setattr(group_means, "domain_mean", counted)
    lowest = table.lowest_to_dict(5)["domains"]

    assert len(computed) == 5
    assert table.of(domain="k3").label == {"domain": "k3"}
    assert len(computed) == 6
    assert [row["domain"] for row in lowest] == list(rows)
    described = [row for row in lowest if row["confidence_interval"] is not None]
    assert len(described) == 5
    assert max(row["estimate"] for row in described) <= min(
        row["estimate"] for row in lowest if row["confidence_interval"] is None
    )
    for row in lowest:
        whole = rows[row["domain"]]
        assert row["estimate"] == pytest.approx(whole["estimate"], abs=1e-12)
        assert row["n"] == whole["n"]
        assert row["confidence_interval"] in (None, whole["confidence_interval"])


def test_a_result_of_very_many_groups_stores_no_array_for_each():
    sample, z = many_groups()
    table = stratal.estimate(sample, z, by="kind")

    assert len(pickle.dumps(table)) < 60 * len(table) + len(pickle.dumps(sample)) + 40 * len(z)


def small_language(n_labels):
    """A sample of strata by language: 20 of 900 units of German, and `n_labels` of 100 units of Czech."""
    rng = np.random.default_rng(0)
    language = np.repeat(["cs", "de"], [100, 900])
    classes = np.where(rng.random(1_000) < 0.2, "spam", "ham")
    answers = np.where(rng.random(1_000) < 0.9, classes, np.where(classes == "ham", "spam", "ham"))
    population = stratal.Population.from_arrays(groups={"language": language, "answer": answers})
    strata = stratal.strata.stratify(population, "category", by="language")
    counts = np.array([n_labels, 20])
    allocation = stratal.strata.allocate(strata, int(counts.sum()), "equal", minimum=counts, maximum=counts)
    sample = stratal.designs.Stratified(strata=strata, allocation=allocation).draw(population, seed=1)
    return sample, classes, answers


@pytest.mark.parametrize("metric", ["accuracy", "recall:spam", "f1:spam", "kappa", "mcc"])
def test_a_group_of_a_stratum_that_is_labelled_completely_is_known(metric):
    """Its interval was 0 to 1: units of other strata without labels seemed to be possible members."""
    sample, classes, answers = small_language(100)
    estimand = f"{metric}{',' if ':' in metric else ':'}predicted=answer"

    czech = stratal.estimate(sample, classes[sample.ids].tolist(), estimand=estimand, by="language")[0]

    if metric == "accuracy":
        assert czech.value == pytest.approx(np.mean((classes == answers)[:100]))
    assert czech.limits() == pytest.approx((czech.value, czech.value))
    assert czech.standard_error == 0.0
    assert czech.label == {"domain": "cs"}


def test_the_mean_of_a_group_of_a_stratum_that_is_labelled_completely_is_known():
    sample, classes, answers = small_language(100)
    is_right = (classes == answers).astype(float)

    czech, german = stratal.estimate(sample, is_right[sample.ids].tolist(), by="language")

    assert czech.limits() == pytest.approx((is_right[:100].mean(), is_right[:100].mean()))
    assert german.limits()[1] - german.limits()[0] > 0.1


def test_recall_of_a_group_of_whole_strata_uses_its_labels_alone():
    """With 99 of 100 labels, the interval of the recall was 0 to 1."""
    sample, classes, answers = small_language(99)
    estimand = "recall:spam,predicted=answer"

    czech = stratal.estimate(sample, classes[sample.ids].tolist(), estimand=estimand, by="language")[0]

    is_spam = classes[:100] == "spam"
    recall = np.mean(answers[:100][is_spam] == "spam")
    low, high = czech.limits()
    assert low <= recall <= high
    assert high - low < 0.1


def test_a_group_of_which_all_units_were_drawn_is_known_in_strata_of_another_column():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "c"], [900, 100])
    nested = np.array([f"{name}{number % 2}" for number, name in enumerate(group)])
    outcomes = (rng.random(1_000) < 0.9).astype(float)
    population = stratal.Population.from_arrays(groups={"nested": nested, "group": group})
    strata = stratal.strata.stratify(population, "category", by="nested")
    counts = np.array([20, 20, 50, 50])
    allocation = stratal.strata.allocate(strata, 140, "equal", minimum=counts, maximum=counts)
    sample = stratal.designs.Stratified(strata=strata, allocation=allocation).draw(population, seed=1)

    estimate = stratal.estimate(sample, outcomes[sample.ids], by="group")[1]

    assert estimate.label == {"domain": "c"}
    assert estimate.limits() == pytest.approx((outcomes[900:].mean(), outcomes[900:].mean()))
