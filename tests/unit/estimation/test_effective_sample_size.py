"""The range around the effective sample size: it holds the estimate, narrows with labels, and is honest."""

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.intervals.proportion import clopper_pearson


@pytest.fixture
def world():
    """5,000 units with a fairly calibrated proxy, and their outcomes."""
    rng = np.random.default_rng(11)
    proxy = rng.beta(3, 1, 5000)
    return stratal.Population.from_arrays(proxy=proxy), (rng.random(5000) < proxy).astype(float)


def ranges(world, budget, draws):
    population, z = world
    plan = stratal.plan(population, budget)
    for seed in range(draws):
        sample = plan.draw(seed=seed)
        estimate = stratal.estimate(sample, z[sample.ids])
        yield plan, estimate, estimate.effective_sample_size_interval()


def test_it_holds_the_estimate_and_narrows_with_labels(world):
    widths = {}
    for budget in (100, 800):
        _, found, (low, high) = next(ranges(world, budget, 1))
        assert low < found.effective_sample_size < high
        widths[budget] = np.log(high / low)
    assert widths[800] < 0.6 * widths[100]


def test_it_holds_the_true_size_about_as_often_as_it_says(world):
    """95 % of 100 draws: at least 89, but for one run in a hundred (binomial)."""
    _, z = world
    held = 0
    for plan, _, (low, high) in ranges(world, 150, 100):
        strata, n_h = plan.strata, plan.allocation.n_h
        squares = np.array([z[strata.codes == h].var(ddof=1) for h in range(strata.n_strata)])
        variance = np.sum(strata.weights**2 * (1 - n_h / strata.sizes) * squares / n_h)
        true = z.var(ddof=1) / (variance + z.var(ddof=1) / len(z))
        held += low <= true <= high
    assert held >= 89


def test_a_higher_level_is_wider(world):
    _, found, (low, high) = next(ranges(world, 100, 1))
    lower, higher = found.effective_sample_size_interval(0.99)

    assert lower < low < high < higher


def test_a_simple_random_sample_is_worth_itself(world):
    population, z = world
    sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=7)
    estimate = stratal.estimate(sample, z[sample.ids], estimator="horvitz-thompson")
    low, high = estimate.effective_sample_size_interval()

    assert low == pytest.approx(200, abs=2)
    assert high == pytest.approx(200, abs=2)


def test_where_nothing_is_known(world):
    population, z = world
    plan = stratal.plan(population, 40)
    sample = plan.draw(seed=7)
    same = stratal.estimate(sample, [1.0] * 40)
    unequal = stratal.designs.Poisson(budget=40).draw(population, seed=7)
    other = stratal.estimate(sample, z[sample.ids], target="superpopulation")

    assert same.effective_sample_size_interval() is None
    assert stratal.estimate(unequal, z[unequal.ids]).effective_sample_size_interval() is None
    assert other.effective_sample_size_interval() is None


def test_every_form_of_the_estimate_has_the_range(world):
    _, found, (low, high) = next(ranges(world, 300, 1))
    shown = (
        f"As precise as about {found.effective_sample_size:,.0f} random labels ({low:,.0f} to {high:,.0f})"
    )

    assert found.to_dict()["effective_sample_size_interval"] == [low, high]
    assert shown in str(found)
    assert shown in found._repr_html_()


def test_widths_are_compared_where_the_standard_error_promises_too_much():
    """A rare class: "worth 32,948", where 17,062 is right and draws range from 21,000 to 40,000."""
    rng = np.random.default_rng(5)
    proxy = 1 / (1 + np.exp(-rng.normal(-8, 2.5, 50_000)))
    z = (rng.random(len(proxy)) < proxy) * 1.0
    plan = stratal.plan(stratal.Population.from_arrays(proxy=proxy), 400)
    compared = 0
    for seed in range(12):
        sample = plan.draw(seed=seed)
        estimate = stratal.estimate(sample, z[sample.ids])
        equal = estimate.to_dict()["random_labels_of_equal_width"]
        if equal is None:
            continue
        compared += 1
        low, high = clopper_pearson(estimate.value, equal / (1 - equal / 50_000))
        assert estimate.effective_sample_size_interval()[0] > equal
        assert f"As precise as about {equal:,.0f} random labels" in str(estimate)
        assert "worth" not in str(estimate)
        assert high - low == pytest.approx(estimate.confidence_interval().width, rel=0.02)
    assert compared >= 2


def test_labels_that_all_agree_have_a_standard_error_and_a_width(world):
    population, _ = world
    sample = stratal.plan(population, 40).draw(seed=7)
    estimate = stratal.estimate(sample, np.ones(40))

    assert estimate.standard_error > 0
    assert "Standard error 0;" not in str(estimate)
    assert "As precise as" in str(estimate)
    whole = stratal.designs.SimpleRandom(budget=5000).draw(population, seed=7)
    assert stratal.estimate(whole, np.ones(5000), target="population").standard_error == 0


def test_no_standard_error_is_shown_where_an_unbounded_outcome_agrees(world):
    population, _ = world
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=7)
    estimate = stratal.estimate(sample, np.full(40, 3.0), outcome="unbounded", estimator="horvitz-thompson")

    assert np.isnan(estimate.standard_error)
    assert "Standard error –" in str(estimate.summary())


@pytest.mark.parametrize("metric", ["precision", "recall"])
def test_metrics_are_as_precise_as_a_number_of_random_labels_of_all_units(metric):
    rng = np.random.default_rng(1)
    score = 1.0 / (1.0 + np.exp(-4.0 * rng.normal(size=4_000) + 4.0))
    labels = np.where(rng.random(4_000) < score, "pos", "neg")
    answers = np.where(score > 0.3, "pos", "neg")
    population = stratal.Population.from_arrays(
        proxy={"score": score}, groups={"answer": answers}, predicted="answer", predicts="class:pos"
    )
    planned = stratal.plan(population, 200, estimand=f"{metric}:pos")
    values = {"planned": [], "random": []}
    sizes = []
    for seed in range(sized(60, 300)):
        sample = planned.draw(seed=seed)
        estimate = stratal.estimate(sample, labels[sample.ids.astype(int)].tolist(), estimand=f"{metric}:pos")
        values["planned"].append(estimate.value)
        sizes.append(estimate.effective_sample_size)
        random = stratal.designs.SimpleRandom(budget=200).draw(population, seed=seed)
        of_random = stratal.estimate(
            random, labels[random.ids.astype(int)].tolist(), estimand=f"{metric}:pos"
        )
        values["random"].append(of_random.value)
        assert of_random.effective_sample_size == pytest.approx(200)

    # 1 / m − 1 / N is proportional to the variance with m random labels.
    ratio = np.var(values["planned"]) / np.var(values["random"])
    expected = 1.0 / (ratio * (1.0 / 200 - 1.0 / 4_000) + 1.0 / 4_000)
    assert 0.6 < np.median(sizes) / expected < 1.6
    assert str(estimate).splitlines()[1].startswith("As precise as about ")


def test_a_proxy_makes_means_and_differences_of_groups_worth_more_random_labels(world):
    """With the same labels, twice the variance is half as many random labels."""
    population, z = world
    groups = np.where(np.arange(len(z)) % 3 == 0, "a", "b")
    population = stratal.Population.from_arrays(
        proxy=np.random.default_rng(11).beta(3, 1, len(z)), groups={"group": groups}
    )
    sample = stratal.designs.SimpleRandom(budget=400).draw(population, seed=7)
    with_proxy, without_proxy = (
        stratal.estimate(sample, z[sample.ids], by="group", estimator=estimator)
        for estimator in ("auto", "horvitz-thompson")
    )
    pairs = [
        *zip(with_proxy, without_proxy, strict=True),
        *zip(with_proxy.differences(), without_proxy.differences(), strict=True),
    ]
    for first, second in pairs:
        assert first.standard_error < second.standard_error
        assert second.effective_sample_size == pytest.approx(400, rel=0.01)
        ratio = (second.standard_error / first.standard_error) ** 2
        assert first.effective_sample_size == pytest.approx(400 * ratio, rel=0.03)
        low, high = first.effective_sample_size_interval()
        assert low < first.effective_sample_size < high


def test_an_average_is_worth_no_known_number_of_random_labels_if_the_labels_of_a_class_agree():
    """Its standard error then has a part that no label shows: it was worth 8 of 100 random labels."""
    answers = np.array(["rare"] * 6 + ["often"] * 494 + ["other"] * 500)
    population = stratal.Population.from_arrays(
        ids=np.arange(1000), groups={"answer": answers}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=300).draw(population, seed=3)
    drawn = answers[sample.ids.astype(int)]
    labels = np.where((np.arange(300) % 9 == 0) & (drawn != "rare"), "often", drawn)
    labels = np.where((np.arange(300) % 9 == 1) & (drawn != "rare"), "other", labels)
    estimate = stratal.estimate(sample, labels.tolist(), estimand="balanced_accuracy")

    assert 0 < np.sum(labels == "rare") < 5
    assert estimate.standard_error > 0
    assert estimate.effective_sample_size is None
    assert estimate.effective_sample_size_interval() is None
    assert "As precise as" not in str(estimate)


def test_coefficients_with_a_proxy_are_worth_no_known_number_of_random_labels(world):
    """Their influences are those of residuals, which do not show the variance without a proxy."""
    _, z = world
    rng = np.random.default_rng(11)
    population = stratal.Population.from_arrays(
        proxy=rng.beta(3, 1, len(z)), features={"x": np.arange(len(z)) % 10}
    )
    sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=7)
    with_proxy, without_proxy = (
        stratal.regress(
            sample, z[sample.ids], features="x", population=population, estimator=estimator, correction="none"
        )
        for estimator in ("ppi++", "classical")
    )

    assert with_proxy[0].lam[0] > 0
    assert with_proxy[0].effective_sample_size is None
    assert without_proxy[0].effective_sample_size == pytest.approx(200, rel=0.02)
