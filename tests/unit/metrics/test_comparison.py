from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.tiers import cells, sized

import stratal
from stratal.designs import StratifiedWeighting
from stratal.errors import InputError, LabelError, StratalWarning
from stratal.estimation.estimates import Estimates
from stratal.estimation.outcome_means import estimate_mean
from stratal.metrics.comparison import contrast_interval


@pytest.fixture
def sample():
    rng = np.random.default_rng(1)
    population = stratal.Population.from_arrays(
        proxy={"one": rng.uniform(size=2000), "two": rng.uniform(size=2000)}
    )
    return stratal.designs.SimpleRandom(budget=120).draw(population, seed=3)


def outcomes(sample, rates, seed=2):
    rng = np.random.default_rng(seed)
    return {f"m{j}": (rng.random(sample.size) < rate).astype(float) for j, rate in enumerate(rates)}


def test_two_models_are_a_paired_t_test(sample):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(4)
    a, b = rng.normal(1, 1, sample.size), rng.normal(0.8, 1, sample.size)
    correction = np.sqrt(1 - sample.size / 2000)

    found = stratal.compare(sample, {"a": a, "b": b})[0]

    test = stats.ttest_rel(a, b)
    assert found.value == pytest.approx(np.mean(a - b))
    assert found.standard_error == pytest.approx(stats.sem(a - b) * correction)
    expected = 2 * stats.t.sf(abs(test.statistic) / correction, 119)
    assert found.p_value(0.0) == pytest.approx(expected, rel=1e-6)
    assert found.row()["p_value"] == found.p_value(0.0)


@pytest.mark.parametrize("alternative", cells(["two-sided", "less", "greater"], fast=("two-sided",)))
def test_p_values_agree_with_intervals(sample, alternative):
    found = outcomes(sample, [0.8, 0.7, 0.6, 0.75])
    for simultaneous in (True, False):
        for pair in stratal.compare(sample, found, simultaneous=simultaneous):
            p_value = pair.p_value(0.0, alternative=alternative)
            for level in (0.8, 0.95, 0.99):
                low, high = pair.confidence_interval(level, alternative=alternative)
                excluded = not (low <= 0 <= high)
                assert excluded == (p_value < 1 - level)


def test_one_sided_intervals_are_one_sided(sample):
    """ppi-python's default dropped the alternative and returned two-sided intervals."""
    pair = stratal.compare(sample, outcomes(sample, [0.8, 0.6]))[0]
    ends = {
        alternative: pair.confidence_interval(alternative=alternative)
        for alternative in ("two-sided", "less", "greater")
    }

    assert ends["greater"].high == 1.0
    assert ends["less"].low == -1.0
    assert ends["greater"].low > ends["two-sided"].low
    one_sided = pair.p_value(0.0, alternative="greater")
    assert pair.p_value(0.0) == pytest.approx(2 * one_sided, rel=1e-6)


def test_models_that_never_differ_still_have_an_interval(sample):
    right = np.ones(sample.size)
    row = stratal.compare(sample, {"a": right, "b": right}).rows()[0]
    low, high = row["confidence_interval"]

    assert row["estimate"] == 0
    assert 0 < row["standard_error"] < 0.01  # none is 0 while units are unlabelled, as of any mean
    assert -1 < low < 0 < high < 1
    assert row["p_value"] == 1
    assert row["win_rate"]["estimate"] == 0.5
    assert row["win_rate"]["ties"] == 1


def test_unbounded_outcomes_that_never_differ_are_refused_an_interval(sample):
    z = np.linspace(2, 5, sample.size)
    table = stratal.compare(sample, {"a": z, "b": z})

    assert table.rows()[0]["confidence_interval"] is None
    assert "bounds" in table.notes[0]


def test_simultaneous_intervals_are_wider_and_reproducible(sample):
    found = outcomes(sample, [0.8, 0.7, 0.6])
    together, again, alone = (
        stratal.compare(sample, found, simultaneous=flag) for flag in (True, True, False)
    )

    assert together.rows() == again.rows()
    bonferroni = 1 - 0.05 / 3
    for wide, narrow in zip(together, alone, strict=True):
        width = wide.confidence_interval().width
        assert narrow.confidence_interval().width < width
        assert narrow.p_value(0.0) <= wide.p_value(0.0)
        assert narrow.confidence_interval(bonferroni).width > 0.98 * width


def test_simultaneous_coverage():
    rng = np.random.default_rng(5)
    draws, inside = sized(80, 150), 0
    for _ in range(draws):
        z = rng.normal(size=(60, 3)) * [1, 2, 1] + rng.normal(size=(60, 1))
        stratum = np.zeros(60, np.int64)
        weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([10**6]))
        found = []
        for a, b in ((0, 1), (0, 2), (1, 2)):
            pair = estimate_mean(
                z[:, a] - z[:, b], np.zeros((60, 0)), weighting, None, stratum=stratum, outcome="unbounded"
            )
            found.append(replace(pair, evidence=replace(pair.evidence, interval=contrast_interval(pair))))
        low, high = (
            Estimates(estimates=tuple(found), kind="comparisons", title="")
            .simultaneous()
            .confidence_interval(0.9)
        )
        inside += bool(np.all((low <= 0) & (high >= 0)))

    error = np.sqrt(0.9 * 0.1 / draws)
    assert abs(inside / draws - 0.9) < 3.5 * error


def test_rank_sets_follow_the_intervals(sample):
    found = outcomes(sample, [0.95, 0.5, 0.52])
    ranks = stratal.compare(sample, found).ranks()

    assert ranks["m0"] == (1, 1)
    assert ranks["m1"][1] == 3
    alike = outcomes(sample, [0.5, 0.52])
    assert stratal.compare(sample, alike).ranks() == {"m0": (1, 2), "m1": (1, 2)}


def test_a_reference_model_is_compared_with_all_others(sample):
    found = outcomes(sample, [0.8, 0.7, 0.6])
    table = stratal.compare(sample, found, reference="m1")

    assert [pair.label for pair in table] == [{"a": "m0", "b": "m1"}, {"a": "m2", "b": "m1"}]
    with pytest.raises(InputError, match="all pairs"):
        table.ranks()


def test_proxies_of_the_models_reduce_the_variance():
    rng = np.random.default_rng(6)
    size = 3000
    p, q = rng.uniform(size=size), rng.uniform(size=size)
    population = stratal.Population.from_arrays(proxy={"p": p, "q": q})
    sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=1)
    z = {"a": p + rng.normal(0, 0.1, size), "b": q + rng.normal(0, 0.1, size)}
    z = {name: values[sample.ids] for name, values in z.items()}

    plain = stratal.compare(sample, z)[0]
    better = stratal.compare(sample, z, proxies={"a": "p", "b": "q"})[0]
    assert better.standard_error < 0.6 * plain.standard_error


def test_labels_are_joined_by_id_and_incomplete_units_left_out(sample):
    found = outcomes(sample, [0.8, 0.6])
    by_id = {name: dict(zip(sample.ids.tolist(), z, strict=True)) for name, z in found.items()}
    assert stratal.compare(sample, found).rows() == stratal.compare(sample, by_id).rows()

    del by_id["m0"][int(sample.ids[0])]
    table = stratal.compare(sample, by_id)
    assert table[0].n == sample.size - 1
    assert "1 of 120 drawn units lack" in table.notes[-1]


def test_ratio_and_win_rate(sample):
    a, b = outcomes(sample, [0.9, 0.5]).values()
    row = stratal.compare(sample, {"a": a, "b": b}).rows()[0]

    assert row["ratio"]["estimate"] == pytest.approx(a.mean() / b.mean())
    low, high = row["ratio"]["confidence_interval"]
    assert 1 < low < row["ratio"]["estimate"] < high
    assert row["win_rate"]["estimate"] == pytest.approx(np.mean((a > b) + 0.5 * (a == b)))


def test_a_model_that_is_never_right_has_no_ratio(sample):
    (a,) = outcomes(sample, [0.9]).values()

    assert stratal.compare(sample, {"a": a, "b": 0 * a}).rows()[0]["ratio"] is None


def test_refusals(sample):
    found = outcomes(sample, [0.8, 0.6])
    with pytest.raises(InputError, match="requires two models"):
        stratal.compare(sample, {"m0": found["m0"]})
    with pytest.raises(InputError, match=r"no such model.*'m9'"):
        stratal.compare(sample, found, reference="m9")
    with pytest.raises(InputError, match="no such proxy"):
        stratal.compare(sample, found, proxies={"m0": "three"})
    for pair in (*stratal.compare(sample, found), *stratal.compare(sample, found, simultaneous=False)):
        with pytest.raises(InputError, match="no such alternative"):
            pair.confidence_interval(alternative="bigger")
        with pytest.raises(InputError, match="no such alternative"):
            pair.p_value(0.0, alternative="bigger")
    with pytest.raises(LabelError, match="no unit has a label of all a, b"):
        stratal.compare(sample, {"a": {int(sample.ids[0]): None}, "b": {}})


def test_one_label_is_enough_for_bounded_outcomes_and_says_so_for_others(sample):
    first = int(sample.ids[0])
    with pytest.warns(StratalWarning):
        bounded = stratal.compare(sample, {"a": {first: 1}, "b": {first: 0}}).rows()[0]
    with pytest.warns(StratalWarning), pytest.raises(InputError, match="one label of an unbounded outcome"):
        stratal.compare(sample, {"a": {first: 3.7}, "b": {first: 0.2}})

    low, high = bounded["confidence_interval"]
    assert -1 <= low < high <= 1
    json.dumps(bounded, allow_nan=False)


def test_graded_outcomes_have_the_bounds_that_the_sample_knows():
    """Models that never differ on the labels may still differ elsewhere, by no more than the bounds allow."""
    population = stratal.Population.from_arrays(proxy=[3.0] * 400, bounds=(1.0, 5.0))
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    ratings = [1.0, 2.5, 3.0, 4.0] * 5
    row = stratal.compare(sample, {"new": ratings, "old": ratings}).rows()[0]
    told = stratal.compare(sample, {"new": ratings, "old": ratings}, bounds=(1.0, 5.0)).rows()[0]

    low, high = row["confidence_interval"]
    assert -4.0 < low < 0.0 < high < 4.0
    assert row["confidence_interval"] == told["confidence_interval"]
    unbounded = sample.with_outcome("unbounded")
    undeclared = stratal.compare(unbounded, {"new": ratings, "old": ratings}).rows()[0]
    assert undeclared["confidence_interval"] is None


@pytest.mark.parametrize("alternative", ["two-sided", "less"])
def test_a_difference_beyond_all_doubt_has_the_smallest_p_value_of_all(sample, alternative):
    models = outcomes(sample, (0.05, 0.5, 0.6, 0.98))

    pairs = stratal.compare(sample, models)

    p = {(pair.label["a"], pair.label["b"]): pair.p_value(0.0, alternative=alternative) for pair in pairs}
    assert p["m0", "m3"] == min(p.values()) < 1e-4
