from __future__ import annotations

import numpy as np

import stratal
from stratal.planning.rounds import CountsSoFar, further
from stratal.planning.widths import interval_of_counts


def case(size=6_000, seed=5):
    rng = np.random.default_rng(seed)
    proxy = rng.beta(1, 6, size)
    return stratal.Population.from_arrays(proxy=proxy), (rng.random(size) < proxy).astype(float)


def next_counts(seen, now, wanted, level, looked):
    """Return n_h (R, H) after the next round."""

    def width(total, rows):
        some = seen.part(rows)
        return some.half_width(some.allocation(total), level)

    drawn = seen.counts.sum(axis=1)
    return seen.allocation(
        drawn + further(width, now, wanted, drawn, int(seen.sizes.sum()), looked=looked)[0]
    )


def stopped(plan, z, half_width, studies, seed, most_rounds=4):
    """Return the labels, rounds and limits, each (R,), of studies that go on until they are narrow enough."""
    strata, level, random = plan.strata, plan.confidence_level, np.random.default_rng(seed)
    good = np.bincount(np.asarray(strata.codes), z, minlength=strata.n_strata).astype(np.int64)
    bad = strata.sizes - good
    n_h = np.tile(plan.allocation.n_h, (studies, 1))
    ones = random.hypergeometric(good, bad, n_h)
    rounds, open_ = np.ones(studies, dtype=np.int64), np.arange(studies)
    low, high = np.zeros(studies), np.ones(studies)
    for number in range(1, most_rounds + 1):
        looked = number > 1
        low[open_], high[open_] = interval_of_counts(
            strata.sizes, n_h[open_], ones[open_], level, looked=looked
        )
        wide = (high - low)[open_] / 2.0 > half_width
        open_ = open_[wide & (n_h[open_].sum(axis=1) < strata.size)]
        if len(open_) == 0 or number == most_rounds:
            break
        seen = CountsSoFar.of(strata, n_h[open_], ones[open_])
        larger = next_counts(seen, (high - low)[open_] / 2.0, half_width, level, looked)
        more = larger - n_h[open_]
        ones[open_] += random.hypergeometric(good - ones[open_], bad - (n_h - ones)[open_], more)
        n_h[open_] = larger
        rounds[open_] += 1
    return n_h.sum(axis=1), rounds, low, high


def test_the_rule_is_the_one_of_labels_needed():
    """One study by hand, with the labels that the simulated one happened to draw, asks for as many more."""
    population, z = case()
    plan = stratal.plan(population, half_width=0.02, pilot=True)
    by_hand = []
    for seed in range(40):
        sample, rounds = plan.draw(seed), 1
        while rounds < 4:
            labels = {unit: z[unit] for unit in sample.ids.tolist()}
            larger = stratal.next_round(sample, labels, half_width=0.02)
            if larger is sample:
                break
            sample, rounds = larger, rounds + 1
        by_hand.append((sample.size, rounds))
    labels, simulated, _, _ = stopped(plan, z, 0.02, studies=400, seed=1)
    sizes, rounds = np.array(by_hand).T

    error = np.hypot(sizes.std() / 40**0.5, labels.std() / 400**0.5)
    assert abs(sizes.mean() - labels.mean()) < 3.5 * error
    assert abs(rounds.mean() - simulated.mean()) < 0.5


def test_intervals_hold_after_stopping():
    """Without guard 4 they hold in .92 of the studies of this population."""
    population, z = case()
    plan = stratal.plan(population, half_width=0.02, pilot=True)
    _, _, low, high = stopped(plan, z, 0.02, studies=2_000, seed=2)

    assert np.mean((high - low) / 2 <= 1.05 * 0.02) > 0.9
    assert np.mean((low <= z.mean()) & (z.mean() <= high)) > 0.94 - 3.3 * (0.05 * 0.95 / 2_000) ** 0.5
