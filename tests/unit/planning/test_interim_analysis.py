from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.counts import CountsSoFar

import stratal
from stratal.errors import InputError
from stratal.planning.interim_analysis import InterimAnalysis
from stratal.planning.interim_widths import (
    count_quantiles,
    expected_half_width_of_counts,
    interval_of_counts,
)


def changed(seen, **changes):
    """Return the same with other attributes."""
    other = copy(seen)
    vars(other).update(changes)
    return other


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
    seen = InterimAnalysis(sample, labels, 0.95, {})
    ones = np.bincount(sample.stratum, found.evidence.z, minlength=seen.strata.n_strata)

    assert seen.label_based is sample.weighting().has_adaptive_allocation
    low, high = interval_of_counts(seen.strata.sizes, seen.labelled, ones, 0.95, label_based=seen.label_based)
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
    widths = together.half_width(together.allocation(totals), 0.95)

    for row in range(3):
        alone = CountsSoFar.of(strata, n_h[row], ones[row])
        assert alone.half_width(alone.allocation(totals[row]), 0.95) == pytest.approx(widths[row])
        assert np.array_equal(alone.allocation(totals[row]), together.allocation(totals)[row])
    assert together.part(np.array([2])).counts.tolist() == [n_h[2].tolist()]


def test_the_simulated_rule_expects_what_the_rule_itself_does():
    sample, labels = labelled()
    seen = InterimAnalysis(sample, labels, 0.95, {})
    ones = np.bincount(sample.stratum, [labels[unit] for unit in sample.ids.tolist()]).astype(int)
    counted = CountsSoFar.of(sample.design.strata, sample.n_h, ones)
    larger = changed(seen, one_round_allocation=None).allocation(sample.size + 100)

    assert np.array_equal(larger, counted.allocation(np.array(sample.size + 100)))
    expected = counted.half_width(larger, 0.95)
    assert seen.expected(larger)[0] == pytest.approx(float(expected))


def test_the_labels_to_come_are_the_quantiles_of_a_binomial_count():
    found = count_quantiles(np.array([20, 5, 0]), np.array([0.5, 1.0, 0.3]))

    assert sorted(found[:, 0]) == [7, 9, 10, 11, 13]  # of Binomial(20, ½) at .1, .3, .5, .7, .9
    assert np.all(found[:, 1] == 5)
    assert np.all(found[:, 2] == 0)


def test_more_labels_are_expected_to_give_a_narrower_interval():
    sizes, means = np.array([3_000, 1_000]), np.array([0.9, 0.4])
    widths = [
        float(expected_half_width_of_counts(sizes, np.array([3, 1]) * n, means, 0.95)) for n in (20, 80, 320)
    ]

    assert widths[0] > 1.7 * widths[1] > 1.7**2 * widths[2]


def test_few_answers_are_expected_of_the_next_round_too():
    sample, labels = labelled()
    half = dict(list(labels.items())[::2])
    with pytest.warns(stratal.StratalWarning):
        seen = InterimAnalysis(sample, half, 0.95, {})
    larger = seen.allocation(sample.size + 100)
    new = np.round(len(half) / sample.size * (larger - sample.n_h)).astype(int)

    assert seen.labelled.sum() == len(half)
    assert np.array_equal(seen.labels_of(larger), seen.labelled + new)


@pytest.fixture(scope="module")
def inverted():
    """A pool of 6 % matches whose score, told to be a match's probability, is one minus it."""
    rng = np.random.default_rng(0)
    size = 3000
    truth = rng.random(size) < 0.06
    score = np.where(truth, rng.beta(4, 2, size), rng.beta(1, 15, size))
    wrong = np.clip(1.0 - score + rng.normal(0, 0.02, size), 0.001, 0.999)
    population = stratal.Population.from_arrays(
        proxy={"score": wrong},
        groups={"answer": np.where(score > 0.5, "match", "other")},
        predicted="answer",
    )
    return population, np.where(truth, "match", "other")


@pytest.mark.parametrize("text", ["f1:match,probability=score", "mcc", "accuracy"])
def test_the_plan_s_own_variances_may_widen_what_is_expected_and_never_narrow_it(inverted, text):
    """They are half of what shares out a round; a forecast from that alone would take the plan's word."""
    population, truth = inverted
    plan = stratal.plan(population, 150, estimand=text)
    sample = plan.draw(3)
    strata, by_plan = sample.design.strata, []
    for odd in (0, 1):
        claimed = strata.standard_deviations * np.where(np.arange(strata.n_strata) % 2 == odd, 10.0, 0.1)
        other = replace(strata, proxy_variances=np.zeros(strata.n_strata), conditional_variances=claimed**2)
        design = stratal.designs.Stratified(strata=other, allocation=sample.design.allocation)
        seen = InterimAnalysis(replace(sample, design=design), truth[sample.ids], 0.95, {})
        for n_h in (seen.allocation(300), seen.allocation(600), np.minimum(2 * sample.n_h, strata.sizes)):
            expected = seen.expected(n_h)
            assert expected >= changed(seen, deviations=seen.label_deviations).expected(n_h)
            by_plan.append(bool(changed(seen, label_deviations=seen.deviations).expected(n_h) < expected))

    assert any(by_plan)


def test_units_that_nobody_answers_do_not_draw_the_rest():
    """The level is known no better than its answers allow; units of others do not help."""
    rng = np.random.default_rng(4)
    proxy, part = rng.beta(4, 1, 3000), rng.choice(["a", "b", "c"], 3000, p=(0.7, 0.25, 0.05))
    z = (rng.random(3000) < proxy).astype(float)
    population = stratal.Population.from_arrays(proxy=proxy, groups={"part": part})
    sample = stratal.plan(population, 120, estimand="mean@part").draw(seed=3)
    some = {int(unit): z[unit] for k, unit in enumerate(sample.ids.tolist()) if k % 3}
    with pytest.warns(stratal.StratalWarning):
        needed = stratal.labels_needed(sample, some, 0.05)

    assert not needed.reached
    assert needed.expected_total < 2000


def test_an_estimate_from_which_a_round_is_planned_does_not_hold_the_sample():
    rng = np.random.default_rng(1)
    truth = rng.choice(["a", "b"], 400)
    answers = np.where(rng.random(400) < 0.8, truth, "a")
    units = stratal.Population.from_arrays(proxy=rng.random(400), groups={"m": answers}, predicted="m")
    sample = stratal.plan(units, 80, estimand="f1:a").draw(seed=1)
    seen = InterimAnalysis(sample, truth[sample.ids])

    assert [labels.cache for labels in seen.estimates[0].read.columns.values()] == [{}]


def test_what_decides_nothing_is_refused():
    rng = np.random.default_rng(4)
    proxy, part = rng.beta(4, 1, 500), rng.choice(["a", "b"], 500)
    population = stratal.Population.from_arrays(proxy=proxy, groups={"part": part}, predicted="part")
    one = stratal.plan(population, 60, estimand="mcc").draw(seed=3)
    several = stratal.plan(population, 60, estimand="mean@part").draw(seed=3)
    classes, z = part[one.ids], (proxy > 0.7)[several.ids]

    for options in ({"deviations": "raw"}, {"learner": "ridge"}):
        with pytest.raises(InputError, match="can only be allocated by the variance of its influence"):
            stratal.next_round(one, classes, additional=10, **options)
    with pytest.raises(InputError, match="takes no bounds="):
        stratal.next_round(one, classes, additional=10, bounds=(0, 2))
    with pytest.raises(InputError, match="can only be allocated by the variance of its influence"):
        stratal.next_round(several, z, additional=10, allocation_of="remainder")
