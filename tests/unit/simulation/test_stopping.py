from __future__ import annotations

import numpy as np
from benchmarks.promises import stopped
from tests.tiers import sized

import stratal


def case(size=6_000, seed=5):
    rng = np.random.default_rng(seed)
    proxy = rng.beta(1, 6, size)
    return stratal.Population.from_arrays(proxy=proxy), (rng.random(size) < proxy).astype(float)


def test_the_rule_is_the_one_of_labels_needed():
    """One study by hand, with the labels that the simulated one happened to draw, asks for as many more."""
    population, z = case()
    plan = stratal.plan(population, half_width=0.02, pilot=True)
    by_hand, studies = [], sized(8, 40)
    for seed in range(studies):
        sample, rounds = plan.draw(seed), 1
        while rounds < 4:
            labels = {unit: z[unit] for unit in sample.ids.tolist()}
            larger = stratal.next_round(sample, labels, half_width=0.02)
            if larger is sample:
                break
            sample, rounds = larger, rounds + 1
        by_hand.append((sample.size, rounds))
    found = stopped(plan, z, 0.02, studies=400, seed=1)
    simulated, ended = found.labels, found.rounds
    sizes, rounds = np.array(by_hand).T

    error = np.hypot(sizes.std() / studies**0.5, simulated.std() / 400**0.5)
    assert abs(sizes.mean() - simulated.mean()) < 3.5 * error
    assert abs(rounds.mean() - ended.mean()) < 0.5


def test_intervals_hold_after_stopping():
    """Without guard 6 they hold in .92 of the studies of this population."""
    population, z = case()
    studies = sized(400, 2_000)
    plan = stratal.plan(population, half_width=0.02, pilot=True)
    found = stopped(plan, z, 0.02, studies=studies, seed=2)
    low, high = found.low, found.high

    assert np.mean((high - low) / 2 <= 1.05 * 0.02) > 0.9
    assert np.mean((low <= z.mean()) & (z.mean() <= high)) > 0.94 - 3.3 * (0.05 * 0.95 / studies) ** 0.5
