"""Rounds of unequal probabilities: without bias over all draws, whatever predicts, and nested."""

from itertools import combinations

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.designs.successive import Successive, SuccessiveWeighting
from stratal.population.expressions import NumberColumn


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_no_bias_over_all_draws_of_two_rounds_whose_second_depends_on_labels():
    """Every pair of rounds of one Poisson-like unit each: the second round's π follows the first label."""
    z = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    size, first = len(z), np.array([0.4, 0.1, 0.2, 0.1, 0.2])
    mean = total = 0.0
    for i in range(size):
        left = np.setdiff1d(np.arange(size), [i])
        second = np.where(z[left] == z[i], 0.7, 0.3) * (1.0 + left)
        second /= second.sum()
        for j, q in zip(left, second, strict=True):
            weighting = SuccessiveWeighting(
                inclusion_probability=np.array([first[i], q]),
                round=np.array([0, 1]),
                round_weights=np.array([0.25, 0.75]),
                response_rates=np.ones(2),
                size=float(size),
            )
            chance = first[i] * q
            mean += chance * float(weighting.mean(z[[i, j], None])[0])
            total += chance * weighting.total
    assert mean == pytest.approx(z.mean(), abs=1e-12)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_one_round_weighs_as_a_sample_proportional_to_size_does():
    population = stratal.Population.from_arrays(proxy={"p": np.linspace(0.05, 0.95, 60)})
    own = Successive(budgets=(15,), predicted=(NumberColumn(name="p"),)).draw(population, seed=7)
    usual = stratal.designs.ProportionalToSize(budget=15).draw(population, seed=7)
    assert set(own.ids.tolist()) == set(usual.ids.tolist())
    order = np.argsort(own.ids), np.argsort(usual.ids)
    np.testing.assert_allclose(
        own.inclusion_probability[order[0]], usual.inclusion_probability[order[1]], rtol=1e-9
    )
    z = (np.arange(15) % 3 == 0).astype(float)[:, None]
    mask = np.ones(15, bool)
    given = [sample.weighting(mask) for sample in (own, usual)]
    y = [z[np.argsort(np.argsort(sample.ids))] for sample in (own, usual)]
    np.testing.assert_allclose(given[0].covariance(y[0]), given[1].covariance(y[1]), rtol=1e-9)


def test_later_rounds_take_units_that_are_left_and_keep_their_predecessors():
    population = stratal.Population.from_arrays(proxy={"p": np.linspace(0.05, 0.95, 40)})
    design = Successive(budgets=(10,), predicted=(NumberColumn(name="p"),))
    sample = design.draw(population, seed=3)
    for _ in range(3):
        larger = stratal.next_round(sample, sample.ids % 2, additional=10)
        assert larger.ids[: sample.size].tolist() == sample.ids.tolist()
        assert len(set(larger.ids.tolist())) == larger.size
        sample = larger
    assert sample.size == 40
    assert set(sample.inclusion_probability[sample.round == 4].tolist()) == {1.0}


def test_a_round_without_answers_counts_for_nothing():
    population = stratal.Population.from_arrays(proxy={"p": np.linspace(0.1, 0.9, 50)})
    sample = Successive(budgets=(10,), predicted=(NumberColumn(name="p"),)).draw(population, seed=3)
    sample = stratal.next_round(sample, np.ones(10), additional=10)
    weighting = sample.weighting(sample.round == 1)
    assert weighting.round_weights.tolist() == [1.0, 0.0]
    np.testing.assert_allclose(weighting.weights, 1.0 / (50 * sample.inclusion_probability[:10]))


def test_the_variance_is_that_of_repeated_draws(rng):
    """Horvitz-Thompson over draws of three rounds; tolerance four standard errors of the mean."""
    p = rng.beta(2, 2, 120)
    z = (rng.random(120) < p).astype(float)
    population = stratal.Population.from_arrays(proxy={"p": p})
    design = Successive(budgets=(15, 15, 15), predicted=(NumberColumn(name="p"),) * 3)
    values, variances = [], []
    draws = sized(150, 2000)
    for seed in range(draws):
        sample = design.draw(population, seed=seed)
        weighting = sample.weighting()
        residuals = (z[sample.ids] - p[sample.ids])[:, None]
        values.append(float(weighting.mean(residuals)[0]) + p.mean())
        variances.append(float(weighting.covariance(residuals)[0, 0]))
    error = np.std(values) / np.sqrt(draws)
    assert abs(np.mean(values) - z.mean()) < 4 * error
    spread = np.var(values) * np.sqrt(2.0 / draws)
    assert abs(np.mean(variances) - np.var(values)) < 4 * spread


def test_it_is_written_and_read(tmp_path):
    population = stratal.Population.from_arrays(proxy={"p": np.linspace(0.1, 0.9, 50)})
    sample = Successive(budgets=(10,), predicted=(NumberColumn(name="p"),)).draw(population, seed=3)
    assert stratal.Sample.read(sample.write(tmp_path / "s.parquet")) == sample


def test_all_pairs_are_possible():
    population = stratal.Population.from_arrays(proxy={"p": [0.2, 0.5, 0.7, 0.9]})
    design = Successive(budgets=(1, 1), predicted=(NumberColumn(name="p"),) * 2)
    seen = {tuple(sorted(design.draw(population, seed=seed).ids.tolist())) for seed in range(120)}
    assert seen == set(combinations(range(4), 2))
