"""Planned looks: boundaries against published tables and exact probabilities, and their intervals."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.tiers import sized

import stratal
from stratal.errors import InputError
from stratal.intervals.looks import SPENDING, PlannedLooks, boundaries

PUBLISHED = {
    # Reboussin, DeMets, Kim & Lan (2000), and gsDesign's sfLDOF and sfLDPocock: two-sided .05, even looks.
    ("obrien-fleming", 2): (2.963, 1.969),
    ("obrien-fleming", 4): (4.333, 2.963, 2.359, 2.014),
    ("obrien-fleming", 5): (4.877, 3.357, 2.680, 2.290, 2.031),
    ("pocock", 2): (2.157, 2.201),
    ("pocock", 4): (2.368, 2.368, 2.358, 2.350),
    ("pocock", 5): (2.438, 2.427, 2.410, 2.397, 2.386),
}


def bounds_of(name, number, *, error=0.025):
    spent = [0.0, *(SPENDING[name](error, j / number) for j in range(1, number + 1))]
    times = tuple((np.arange(1, number + 1) / number).tolist())
    return boundaries(tuple(np.diff(spent).tolist()), times)


@pytest.mark.parametrize(("case", "wanted"), PUBLISHED.items())
def test_published_boundaries(case, wanted):
    assert bounds_of(*case) == pytest.approx(wanted, abs=6e-4)
    look = PlannedLooks(case[1], case[0]).at(case[1])
    assert look.level(0.95, "two-sided") == pytest.approx(1 - 2 * (1 - _normal(wanted[-1])), abs=2e-4)


def _normal(z):
    return float(multivariate_normal(0.0, 1.0).cdf(z))


def test_bounds_are_passed_as_often_as_is_spent_at_any_times_of_information():
    times = np.array([0.1, 0.15, 0.6, 1.0])
    found = boundaries((0.01, 0.002, 0.008, 0.005), tuple(times.tolist()), two_sided=False)
    covariance = np.sqrt(np.minimum.outer(times, times) / np.maximum.outer(times, times))
    inside = [multivariate_normal(np.zeros(k), covariance[:k, :k]).cdf(found[:k]) for k in range(1, 5)]
    assert 1 - np.array(inside) == pytest.approx(np.cumsum([0.01, 0.002, 0.008, 0.005]), abs=5e-5)


def test_one_look_after_nothing_was_spent_is_a_single_look():
    assert boundaries((0.0, 0.025), (0.5, 1.0))[-1] == pytest.approx(1.959964, abs=1e-5)


def test_four_looks_cost_a_fifth_of_the_width_and_last_ones_of_obrien_and_fleming_hardly_any():
    pocock, careful = bounds_of("pocock", 4), bounds_of("obrien-fleming", 4)
    assert np.all(pocock / 1.96 < 1.21)
    assert careful[-1] / 1.96 < 1.03


@pytest.fixture
def study():
    rng = np.random.default_rng(1)
    score = rng.beta(5, 2, 4000)
    z = (rng.random(4000) < score) * 1.0
    population = stratal.Population.from_arrays(proxy=score, groups={"g": np.where(score > 0.7, "a", "b")})
    return population, z


def labelled(sample, z, number):
    return {unit: z[unit] for unit in sample.ids[:number].tolist()}


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_an_estimate_at_a_look_has_the_level_of_the_look_and_a_p_value_that_agrees(study):
    population, z = study
    sample = stratal.plan(population, 200, looks=4).draw(seed=1)
    at = stratal.estimate(sample, labelled(sample, z, 100), look=2)
    alone = stratal.estimate(sample, labelled(sample, z, 100))
    level = at.evidence.planned_look.level(0.95, "two-sided")
    assert [*at.confidence_interval()] == [*alone.confidence_interval(level)]
    assert at.value == alone.value
    assert "look 2 of 4 (Pocock)" in at.confidence_interval().method
    assert at.evidence.planned_look.adjusted_p_value(1 - level, "two-sided") == pytest.approx(0.05, rel=1e-6)
    for end in at.confidence_interval():
        wanted = at.evidence.planned_look.adjusted_p_value(alone.p_value(end), "two-sided")
        assert at.p_value(end) == pytest.approx(wanted, rel=1e-6)
    assert at.p_value(0.5) > alone.p_value(0.5)


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_the_price_is_paid_once_in_differences_of_estimates(study):
    population, z = study
    sample = stratal.plan(population, 200, looks=4).draw(seed=1)
    labels = labelled(sample, z, 100)
    level = stratal.estimate(sample, labels, look=2).evidence.planned_look.level(0.95, "two-sided")
    at = stratal.estimate(sample, labels, by="g", look=2).differences()[0]
    alone = stratal.estimate(sample, labels, by="g").differences()[0]
    assert [*at.confidence_interval()] == [*alone.confidence_interval(level)]


def test_looks_stay_with_the_sample_and_its_rounds(study, tmp_path):
    population, z = study
    pilot = stratal.plan(population, 60, looks="obrien-fleming:3").draw(seed=1)
    sample = stratal.next_round(pilot, labelled(pilot, z, 60), additional=140)
    sample.write(tmp_path / "sample.parquet")
    read = stratal.Sample.read(tmp_path / "sample.parquet")
    assert read.looks == "obrien-fleming:3"
    found = stratal.estimate(read, labelled(sample, z, 200), look=2)
    # The information of 60 of 200 labels, less what a finite population knows already.
    before = 60 / (1 - 0.3 * 200 / 4000) / (200 / (1 - 200 / 4000))
    assert found.evidence.planned_look.information == pytest.approx((before, 1.0))


def test_a_plan_expects_the_interval_of_the_last_look(study):
    population, _ = study
    once, often = stratal.plan(population, 200), stratal.plan(population, 200, looks=4)
    assert 1.15 < often.expected_half_width / once.expected_half_width < 1.25
    assert often.to_dict()["looks"] == "pocock:4"
    more = stratal.plan(population, half_width=0.05, looks=4).budget
    assert more > 1.3 * stratal.plan(population, half_width=0.05).budget


@pytest.mark.parametrize("looks", [1, 51, True, "x:4", "pocock:", 2.5])
def test_what_is_no_plan_of_looks_is_refused(study, looks):
    with pytest.raises(InputError, match="unknown plan of looks"):
        stratal.plan(study[0], 100, looks=looks)


def test_looks_that_were_not_planned_are_refused(study):
    population, z = study
    sample = stratal.plan(population, 100).draw(seed=1)
    with pytest.raises(InputError, match="no looks were planned"):
        stratal.estimate(sample, labelled(sample, z, 100), look=1)
    sample = stratal.plan(population, 100, looks=3).draw(seed=1)
    with pytest.raises(InputError, match="not planned"):
        stratal.estimate(sample, labelled(sample, z, 100), look=4)


def test_looks_hold_together_for_a_stratified_mean(study):
    # Normal intervals, by sums alone: many draws of strata of different rates, each look a part of the next.
    runs, sizes, rates = sized(4_000, 40_000), np.array([40, 40, 80]), np.array([0.2, 0.5, 0.8])
    rng, weights = np.random.default_rng(2), np.array([0.25, 0.25, 0.5])
    z = [rng.random((runs, size)) < rate for size, rate in zip(sizes, rates, strict=True)]
    held = np.ones(runs, dtype=bool)
    for bound, part in zip(bounds_of("pocock", 4), (0.25, 0.5, 0.75, 1.0), strict=True):
        means = [values[:, : round(part * values.shape[1])].mean(axis=1) for values in z]
        variance = (weights**2 * rates * (1 - rates) / (part * sizes)).sum()
        held &= np.abs(np.stack(means, axis=1) @ weights - weights @ rates) <= bound * np.sqrt(variance)
    assert held.mean() == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / runs) + 0.004)
