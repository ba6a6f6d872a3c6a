from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.planning.labels_so_far import CountsSoFar
from stratal.planning.needs import labels_so_far
from stratal.planning.widths import expected_of_counts, interval_of_counts, quantiles


def labelled(seed=3, rounds=1):
    """Return a stratified sample of 0/1 outcomes after some rounds, and its labels."""
    rng = np.random.default_rng(seed)
    proxy = rng.beta(4, 1, 4_000)
    z = (rng.random(4_000) < 0.4 + 0.6 * proxy**2).astype(float)
    sample = stratal.plan(stratal.Population.from_arrays(proxy=proxy), 120).draw(seed=seed)
    labels = {unit: z[unit] for unit in sample.ids.tolist()}
    for _ in range(rounds - 1):
        sample = stratal.next_round(sample, labels, additional=80)
        labels = {unit: z[unit] for unit in sample.ids.tolist()}
    return sample, labels


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_counts_give_the_interval_of_the_estimate(rounds):
    sample, labels = labelled(rounds=rounds)
    found = stratal.estimate(sample, labels)
    seen = labels_so_far(sample, labels, 0.95, {})
    ones = np.bincount(sample.stratum, found.evidence.z, minlength=seen.strata.n_strata)

    assert seen.looked is (rounds > 1)
    low, high = interval_of_counts(seen.strata.sizes, seen.labelled, ones, 0.95, looked=rounds > 1)
    assert (low, high) == pytest.approx(tuple(found.confidence_interval()), abs=1e-12)
    assert seen.half_widths == pytest.approx([(high - low) / 2])
    assert seen.scale == pytest.approx([1.0])


def test_replicates_are_worked_out_as_each_alone():
    sample, _ = labelled()
    strata = sample.design.strata
    rng = np.random.default_rng(1)
    n_h = np.stack([sample.n_h, sample.n_h + 3, 2 * sample.n_h])
    ones = rng.binomial(n_h, 0.8)
    together = CountsSoFar.of(strata, n_h, ones)
    totals = n_h.sum(axis=1) + np.array([10, 50, 200])
    widths = together.expected_half_width(totals, 0.95)

    for row in range(3):
        alone = CountsSoFar.of(strata, n_h[row], ones[row])
        assert alone.expected_half_width(totals[row], 0.95) == pytest.approx(widths[row])
        assert np.array_equal(alone.allocation(totals[row]), together.allocation(totals)[row])
    assert together.part(np.array([2])).drawn.tolist() == [n_h[2].tolist()]


def test_the_simulated_rule_expects_what_the_rule_itself_does():
    sample, labels = labelled()
    seen = labels_so_far(sample, labels, 0.95, {})
    ones = np.bincount(sample.stratum, [labels[unit] for unit in sample.ids.tolist()]).astype(int)
    counted = CountsSoFar.of(sample.design.strata, sample.n_h, ones)
    larger = seen.allocation(sample.size + 100)

    assert np.array_equal(larger, counted.allocation(np.array(sample.size + 100)))
    expected = counted.expected_half_width(np.array(sample.size + 100), 0.95)
    assert seen.expected(larger)[0] == pytest.approx(float(expected))


def test_the_labels_to_come_are_the_quantiles_of_a_binomial_count():
    found = quantiles(np.array([20, 5, 0]), np.array([0.5, 1.0, 0.3]))

    assert sorted(found[:, 0]) == [7, 9, 10, 11, 13]  # of Binomial(20, ½) at .1, .3, .5, .7, .9
    assert np.all(found[:, 1] == 5)
    assert np.all(found[:, 2] == 0)


def test_more_labels_are_expected_to_give_a_narrower_interval():
    sizes, means = np.array([3_000, 1_000]), np.array([0.9, 0.4])
    widths = [float(expected_of_counts(sizes, np.array([3, 1]) * n, means, 0.95)) for n in (20, 80, 320)]

    assert widths[0] > 1.7 * widths[1] > 1.7**2 * widths[2]


def test_few_answers_are_expected_of_the_next_round_too():
    sample, labels = labelled()
    half = dict(list(labels.items())[::2])
    with pytest.warns(stratal.StratalWarning):
        seen = labels_so_far(sample, half, 0.95, {})
    larger = seen.allocation(sample.size + 100)
    new = np.round(len(half) / sample.size * (larger - sample.n_h)).astype(int)

    assert seen.labelled.sum() == len(half)
    assert np.array_equal(seen.labels_of(larger), seen.labelled + new)
