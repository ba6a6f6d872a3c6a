"""Plans with labels of earlier waves: halves by the expected outcome, and a bounded loss if they mislead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

import stratal
from stratal.errors import InputError
from stratal.planning.previous_waves import LARGEST_VARIANCE_RATIO, PreviousWaves, WaveLabels
from stratal.strata.strata import expected_variance

SIZE = 3000
TOPICS = np.array(["a", "b", "c", "d"])
BIAS = np.array([-2.0, -0.5, 0.5, 2.0])


def items(seed, name, bias=BIAS, *, has_topics=True):
    """Return new items with a score, and the probability that each answer is right."""
    rng = np.random.default_rng(seed)
    score = expit(2.0 + 1.2 * rng.standard_normal(SIZE))
    topic = rng.integers(0, 4, SIZE)
    population = stratal.Population.from_arrays(
        proxy={"score": score},
        groups={"topic": TOPICS[topic]} if has_topics else None,
        ids=[f"{name}-{item}" for item in range(SIZE)],
    )
    return population, expit(0.8 * logit(score) + bias[topic])


def earlier(number=3, n_labels=150, **options):
    """Return earlier waves as pairs of sample and labels."""
    waves = []
    for wave in range(number):
        population, rate = items(wave, f"w{wave}", **options)
        sample = stratal.plan(population, n_labels).draw(seed=wave)
        rows = [int(unit.split("-")[1]) for unit in sample.ids]
        waves.append((sample, (np.random.default_rng(wave).random(n_labels) < rate[rows]).astype(float)))
    return waves


@pytest.fixture(scope="module")
def waves():
    return earlier()


def standard_error(plan, rate):
    """Return the standard error of the stratified mean, expected over the outcomes."""
    codes = plan.strata.codes
    means = np.array([rate[codes == h].mean() for h in range(plan.strata.n_strata)])
    return np.sqrt(expected_variance(plan.strata.sizes, plan.allocation.n_h, means * (1 - means)))


@pytest.fixture(scope="module")
def plans(waves):
    """Return the plan with earlier waves and the one without, for each budget."""
    population, _ = items(10, "now")
    return {
        budget: (stratal.plan(population, budget, previous=waves), stratal.plan(population, budget))
        for budget in (25, 50, 150)
    }


def test_labels_of_earlier_waves_make_the_mean_more_precise(plans):
    _, rate = items(10, "now")
    ratios = [standard_error(plan, rate) / standard_error(without, rate) for plan, without in plans.values()]

    assert max(ratios[1:]) < 0.96
    assert ratios[0] < 1.0


@pytest.mark.parametrize("bias", [0 * BIAS, -BIAS])
def test_labels_that_mislead_cost_at_most_five_percent(plans, bias):
    _, rate = items(10, "now", bias)
    for plan, without in plans.values():
        assert standard_error(plan, rate) <= 1.05 * standard_error(without, rate)


def test_each_half_keeps_nearly_its_share_of_the_plan_without_earlier_waves(waves):
    population, _ = items(10, "now")
    previous = PreviousWaves.read(waves, population, None)
    for budget in (60, 150):
        raw = stratal.strata.stratify(population, n_strata=4)
        allocation = stratal.strata.allocate(raw, budget, "robust")
        strata, halved = previous.divide(population, raw, allocation)
        parents = np.array([int(np.unique(raw.codes[strata.codes == h])[0]) for h in range(strata.n_strata)])
        shares = allocation.n_h[parents] * strata.sizes / raw.sizes[parents]

        assert strata.n_strata == 8
        assert halved.n_h.sum() == budget
        assert np.all(np.abs(strata.sizes - raw.sizes[parents] / 2) <= 1)
        assert np.all(halved.n_h >= shares / LARGEST_VARIANCE_RATIO - 1e-9)
        assert not np.array_equal(halved.n_h, np.round(shares))


def test_the_sample_stores_the_formula_and_needs_no_earlier_wave(waves, tmp_path):
    population, rate = items(10, "now")
    sample = stratal.plan(population, 80, previous=waves).draw(seed=3)
    sample.write(tmp_path / "sample.parquet")
    stored = stratal.Sample.read(tmp_path / "sample.parquet")
    rows = [int(unit.split("-")[1]) for unit in stored.ids]
    labels = (np.random.default_rng(0).random(80) < rate[rows]).astype(float)
    larger = stratal.next_round(stored, labels, population=population, additional=20)

    assert {"score", "topic"} <= set(stored.design.strata.rule.columns)
    assert stratal.estimate(stored, labels) == stratal.estimate(sample, labels)
    assert larger.size == 100
    assert set(stored.ids) <= set(larger.ids)


def test_without_a_further_column_the_plan_is_that_without_earlier_waves():
    waves = earlier(has_topics=False)
    population, _ = items(10, "now", has_topics=False)
    with_labels = stratal.plan(population, 100, previous=waves)
    without = stratal.plan(population, 100)

    assert with_labels.strata == without.strata
    assert with_labels.allocation == without.allocation
    assert "would only recalibrate the proxy, which saves no labels" in with_labels.previous
    assert "groups=, --groups" in with_labels.previous
    assert without.to_dict().keys() == with_labels.to_dict().keys() - {"previous"}


def test_few_labels_and_few_drawn_units_leave_the_plan_as_it_is(waves):
    population, _ = items(10, "now")
    few = stratal.plan(population, 100, previous=earlier(1, 30))
    small = stratal.plan(population, 6, previous=waves)

    assert few.strata == stratal.plan(population, 100).strata
    assert "too few" in few.previous
    assert small.allocation.n_h.sum() == 6


def test_a_half_width_is_reached_by_the_same_rule(waves):
    population, _ = items(10, "now")
    plan = stratal.plan(population, half_width=0.08, previous=waves)

    assert plan.half_width_range[1] <= 0.08
    assert plan.previous.startswith("450 labels of 3 earlier waves")
    assert plan.strata.names[0].startswith("score < ")
    assert "expected outcome" in plan.strata.names[0]


def test_ratings_and_a_second_proxy_are_regressed_too():
    rng = np.random.default_rng(4)
    pairs = []
    for name in ("first", "now"):
        judge = rng.uniform(1, 5, SIZE)
        length = rng.uniform(1, 5, SIZE)
        rating = np.clip(judge + (length - 3) / 2 + rng.normal(0, 0.3, SIZE), 1, 5)
        population = stratal.Population.from_arrays(
            proxy={"judge": judge, "length": length},
            bounds=(1, 5),
            ids=[f"{name}-{item}" for item in range(SIZE)],
        )
        pairs.append((population, rating))
    sample = stratal.plan(pairs[0][0], 200).draw(seed=1)
    labels = pairs[0][1][[int(unit.split("-")[1]) for unit in sample.ids]]
    previous = PreviousWaves.read([(sample, labels)], pairs[1][0], "judge")
    columns = {"judge": np.array([2.0, 2.0]), "length": np.array([1.4, 4.6])}

    assert previous.further_proxies == ("length",)
    assert previous.relative_variance < 0.3
    low, high = 1 + 4 * previous.expected_share.evaluate(columns)
    assert low == pytest.approx(1.2, abs=0.35)
    assert high == pytest.approx(2.8, abs=0.35)


@pytest.mark.parametrize(("switch", "expected"), [(6, np.inf), (3, 1.0)])
def test_old_labels_lose_weight_only_if_later_ones_are_predicted_better(switch, expected):
    rng = np.random.default_rng(2)
    waves = []
    for wave in range(6):
        topic = rng.integers(0, 2, 400)
        rate = np.where((topic == 0) == (wave < switch), 0.2, 0.8)
        columns = {"score": rng.uniform(0.4, 0.6, 400), "topic": np.array(["a", "b"])[topic]}
        waves.append(WaveLabels(columns=columns, outcomes=(rng.random(400) < rate).astype(float)))
    previous = PreviousWaves(
        waves=tuple(waves), proxy="score", bounds=(0.0, 1.0), further_proxies=(), groups=("topic",)
    )

    assert previous.half_life == expected
    assert PreviousWaves.fit(previous, 1, 3.0) == pytest.approx(previous.fit(1, np.inf))


def test_what_cannot_be_meant_is_refused(waves):
    population, _ = items(10, "now")
    sample, labels = waves[0]

    def refusal(error, previous, **options):
        with pytest.raises(error) as raised:
            stratal.plan(options.pop("population", population), 100, previous=previous, **options)
        return raised.value

    def message(error, previous, **options):
        return str(refusal(error, previous, **options))

    assert "must be a list of earlier waves" in message(InputError, "week1")
    assert "the wrong form" in message(InputError, [sample])
    assert "no earlier wave has a label" in message(InputError, [(sample, [None] * 150)])
    assert "mutually exclusive" in message(InputError, waves, labels={"now-1": 1})
    assert "for the mean of one outcome" in message(InputError, waves, by="topic")
    assert "for the mean of one outcome" in message(InputError, waves, n_strata=4)
    assert "cannot be read as a wave" in message(InputError, ["nowhere/"])
    assert "not on the scale" in message(InputError, [(replace(sample), 3 * labels)])
    other = stratal.Population.from_arrays(proxy={"other": [0.1, 0.9] * 100})
    assert "was drawn without the proxy 'other'" in message(InputError, waves, population=other)
    ordered = stratal.Population.from_arrays(proxy={"score": [1.0, 9.0] * 100}, scaled=False)
    without_bounds = refusal(InputError, waves, population=ordered)
    assert "scale with known bounds; 'score' is not such a proxy" in without_bounds.what
    assert without_bounds.action == "State the bounds: bounds=(lowest, highest) (--bounds LOW,HIGH)."
