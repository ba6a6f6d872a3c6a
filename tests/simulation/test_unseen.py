"""A graded outcome that is nearly always the same, and rarely at its far bound."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import cells, sized

import stratal
from stratal.intervals.interval import max_unseen_share

DRAWS = sized(60, 400)


@pytest.mark.parametrize(
    ("share", "n"), cells([(0.02, 50), (0.05, 24), (0.05, 50), (0.1, 50)], fast=(0.02, 0.05))
)
def test_rare_extremes_are_covered(share, n):
    size = 2000
    z = np.where(np.random.default_rng(0).permutation(size) < share * size, 5.0, 3.0)
    population = stratal.Population.from_arrays(ids=np.arange(size))
    covered = 0
    for seed in range(DRAWS):
        sample = stratal.designs.SimpleRandom(budget=n).draw(population, seed=seed)
        low, high = stratal.estimate(sample, z[sample.ids], bounds=(1, 5)).confidence_interval()
        covered += low <= z.mean() <= high

    assert covered / DRAWS > 0.95 - 3 * np.sqrt(0.95 * 0.05 / DRAWS)


def test_the_share_is_that_of_no_success():
    assert max_unseen_share(10, 0.0, 0.05) == pytest.approx(1 - 0.05**0.1)
    assert max_unseen_share(10, 1.0, 0.05) == 0
    assert max_unseen_share(10, 0.0, 0.0) == 0


def test_without_replacement_it_is_close_to_the_hypergeometric_bound_and_above():
    """Of 20 units 16 were drawn: two of the other four may be unlike them, three hardly (.0035)."""
    assert 2 / 20 < max_unseen_share(16, 0.8, 0.025) < 3 / 20
    assert max_unseen_share(4000, 0.8, 0.025) * 5000 == pytest.approx(2.77, abs=0.01)


def test_one_sided_bounds_move_one_side_only():
    population = stratal.Population.from_arrays(ids=np.arange(1000))
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    found = stratal.estimate(sample, np.full(20, 3.0), bounds=(1, 5))
    low, high = found.confidence_interval(alternative="greater")

    assert low < 2.8
    assert high == 5.0


def test_binary_outcomes_keep_their_exact_interval():
    population = stratal.Population.from_arrays(ids=np.arange(10_000))
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    low, high = stratal.estimate(sample, np.ones(20)).confidence_interval()

    assert high == 1
    assert low == pytest.approx(0.025 ** (1 / (20 / (1 - 20 / 10_000))), abs=1e-4)  # a unit is 1e-4
